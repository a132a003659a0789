"""Which pairs the development set of reworded statements has."""

from lab.benchmarks.rewording import MAX_OF_ONE, SOURCES, Source, choose_pairs
from lab.training.measure import containment
from lab.training.sets import Item

WORDS = "anchor basket candle dragon engine forest garden hammer island jacket".split()


def build_item(number: int, shared: int, *, supported: bool, document: str = "") -> Item:
    """Return a pair whose passage has ``shared`` of the ten words of its statement."""
    passage = " ".join([f"zebra{number}", *WORDS[:shared]])
    return Item(passage, " ".join(WORDS), 0 if supported else 1, document or f"d{number}")


def build_source(low: float = 0.5, high: float = 0.7) -> Source:
    return Source(list, low, high)


def test_supported_pairs_have_few_words_and_unsupported_ones_many() -> None:
    items = [
        build_item(10 * shared + supported, shared, supported=bool(supported))
        for shared in range(11)
        for supported in (0, 1)
    ]
    chosen = choose_pairs(items, build_source())
    overlaps = containment([(item.premise, item.hypothesis) for item in chosen])
    # Of the supported ones 0 to 4 of 10 words, of the unsupported ones 7 to 10; as many of either.
    assert [item.label for item in chosen] == [0] * 4 + [1] * 4
    assert set(overlaps[:4].round(1)) < {0.0, 0.1, 0.2, 0.3, 0.4}
    assert sorted(overlaps[4:].round(1)) == [0.7, 0.8, 0.9, 1.0]


def test_a_statement_and_a_passage_are_taken_a_few_times() -> None:
    others = [build_item(number, 9, supported=False) for number in range(100, 120)]
    same_document = [build_item(n, 1, supported=True, document="one") for n in range(9)]
    assert len(choose_pairs([*same_document, *others], build_source())) == 2 * MAX_OF_ONE
    same_passage = [
        build_item(0, 1, supported=True, document=f"document {number}") for number in range(9)
    ]
    assert len(choose_pairs([*same_passage, *others], build_source())) == 2 * MAX_OF_ONE


def test_the_order_of_the_rows_changes_nothing() -> None:
    items = [build_item(number, 2, supported=True) for number in range(30)]
    items += [build_item(number, 8, supported=False) for number in range(30, 40)]
    chosen = choose_pairs(items, build_source())
    assert choose_pairs(items[::-1], build_source()) == chosen
    # Not the first rows of the file.
    assert chosen[:10] != items[:10]


def test_counting_words_ranks_a_source_the_wrong_way_round() -> None:
    assert all(source.low <= source.high for source in SOURCES.values())
