"""Which documents are kept, on cases worked out by hand and by what always holds."""

from hypothesis import given
from hypothesis import strategies as st

from trustassay.papers.dataset import choose_documents

flags = st.integers(1, 4).flatmap(
    lambda golds: st.lists(st.lists(st.integers(0, 1), min_size=golds, max_size=golds), max_size=9)
)


def covered(supports: list[list[int]], kept: list[int]) -> int:
    return len({g for d in kept for g, flag in enumerate(supports[d]) if flag})


def test_those_that_support_most_come_first_earlier_ones_where_equal() -> None:
    assert choose_documents([[0, 0], [1, 0], [1, 1], [0, 1]], 2) == [2, 1]


def test_one_that_adds_nothing_gives_way_to_one_that_does() -> None:
    # 0 and 1 support the same two claims; the third claim stands in document 3 alone. The first
    # place already loses nothing by giving way, since document 1 covers the same.
    assert choose_documents([[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]], 2) == [3, 1]


def test_without_support_the_best_retrieved_stay() -> None:
    assert choose_documents([[0], [0], [0]], 2) == [0, 1]
    assert choose_documents([[], []], 1) == [0]
    assert choose_documents([], 5) == []


@given(flags, st.integers(1, 5))
def test_it_keeps_k_different_documents_and_covers_no_less_than_the_top(
    supports: list[list[int]], k: int
) -> None:
    kept = choose_documents(supports, k)
    assert len(set(kept)) == len(kept) == min(k, len(supports))
    top = sorted(range(len(supports)), key=lambda d: -sum(supports[d]))[:k]
    assert covered(supports, kept) >= covered(supports, top)


@given(flags, st.integers(1, 5))
def test_it_is_answerable_whenever_some_document_supports_something(
    supports: list[list[int]], k: int
) -> None:
    assert bool(covered(supports, choose_documents(supports, k))) == any(map(any, supports))
