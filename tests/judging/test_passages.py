"""What is read of the passages of an answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.readers import SPLIT, Reader, documents, run
from trustassay.core.sample import Document
from trustassay.judging.passages import (
    MAX_EVIDENCE_WORDS,
    MAX_JOINED_SENTENCES,
    MAX_JOINED_WORDS,
    MAX_SENTENCE_WORDS,
    Passages,
    add_title,
    ask_reader,
    build_premise,
    choose_windows,
    read_passage_text,
)
from trustassay.text.words import content_words

LAMPS = json.dumps([{"name": "red lamp", "price": 20}, {"name": "blue lamp", "price": 25}])


def passages(*texts: str | tuple[str, str]) -> Passages:
    return Passages(documents(*texts), SPLIT)


# One passage ------------------------------------------------------------------------------------


def test_a_passage_is_read_folded_and_without_html() -> None:
    document = Document("1", "<p>The &ldquo;red&rdquo; lamp\u200b costs <b>20\xa0€</b>.</p>")
    assert read_passage_text(document).strip() == 'The "red" lamp costs 20 €.'


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[12] Dogs bark. [1] Cats purr.", "Dogs bark. [1] Cats purr."),
        ("[2023] Dogs bark.", "[2023] Dogs bark."),
        ("[1]", "[1]"),
    ],
)
def test_the_number_of_a_passage_is_no_part_of_its_first_sentence(text: str, read: str) -> None:
    assert read_passage_text(Document("d", text)) == read


def test_the_excerpt_of_a_passage_is_read_in_place_of_its_text() -> None:
    assert read_passage_text(Document("1", "A long text.", excerpt="The lamp is red.")) == (
        "The lamp is red."
    )


def test_a_title_stands_above_its_text() -> None:
    assert add_title("It is red.", "Lamps") == "Title: Lamps\nIt is red."
    assert add_title("It is red.", "") == "It is red."
    assert build_premise(Document("1", "It is red.", "“Lamps”")) == 'Title: "Lamps"\nIt is red.'


def test_dates_are_spelled_alike_for_a_reader() -> None:
    reader = Reader()
    run(ask_reader(reader.models, "It opened on 2021-03-03.", "It opened on March 3, 2021."))
    assert reader.asked == [("It opened on 3 March 2021.", "It opened on 3 March 2021.")]


def test_a_passage_without_a_text_is_never_read() -> None:
    parsed = passages(("The red lamp", ""), ("", " \n"), "The lamp is red.")
    assert [one.passages for one in parsed.find_nearest("The red lamp is old.", 3)] == [[2]]
    assert [len(one) for one in parsed.sentences] == [0, 0, 1]


def test_sentences_know_their_passage_and_their_place() -> None:
    parsed = passages("It rains. The lamp is red.", "It is old.")
    flat = [
        (one.passage, one.place, one.text) for sentences in parsed.sentences for one in sentences
    ]
    assert flat == [
        (0, 0, "It rains."),
        (0, 1, "The lamp is red."),
        (1, 0, "It is old."),
    ]


def test_data_are_read_as_sentences() -> None:
    parsed = passages("The lamp is red.", LAMPS)
    assert parsed.data == {1}
    assert "The price of red lamp is 20." in [one.text for one in parsed.sentences[1]]


# The nearest windows ----------------------------------------------------------------------------


def test_a_short_passage_is_one_window_with_its_title() -> None:
    (nearest,) = passages(("Lamps", "The lamp is red.\nIt is old.")).find_nearest("A lamp.", 3)
    assert (nearest.passages, nearest.text) == ([0], "The lamp is red. It is old.")
    assert nearest.premise == "Title: Lamps\nThe lamp is red. It is old."
    assert nearest.words == {"lamp", "red", "old"}


def test_of_data_the_rows_that_a_statement_is_about_are_read() -> None:
    days = [f"2021-{month:02}-{day:02}" for month in range(1, 9) for day in range(1, 29)]
    table = json.dumps([{"date": day, "rain": f"{place} mm"} for place, day in enumerate(days)])
    parsed = passages("The lamp is red.", table)
    rain, lamp = parsed.find_nearest("The rain of March 5 was 3 mm.", 3)
    assert (lamp.passages, lamp.text) == ([0], "The lamp is red.")
    row = "The date is 2021-03-05. The rain of 2021-03-05 is 60 mm."
    assert rain.text == f"{row} There are 224 rows."


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40))
def test_a_window_is_of_whole_sentences_and_short(lengths: list[int]) -> None:
    sentences = [" ".join(["Word"] + ["word"] * (n - 1)) + "." for n in lengths]
    (window,) = passages(" ".join(sentences)).find_nearest("Some word.", 1)
    words = len(window.text.split())
    assert words <= MAX_EVIDENCE_WORDS or window.text in sentences
    assert words <= MAX_SENTENCE_WORDS


def test_a_text_without_full_stops_is_read_in_pieces() -> None:
    filler = " ".join(f"and number {n} was read out" for n in range(200))
    parsed = passages(f"{filler} and the tall lamp is red {filler}")
    (window,) = parsed.choose_evidence("The tall lamp is red.")
    assert "the tall lamp is red" in window.text
    assert len(window.text.split()) <= MAX_EVIDENCE_WORDS


def test_the_window_with_most_of_the_words_is_read_of_a_long_passage() -> None:
    text = " ".join(f"Number {n} says nothing of it at all." for n in range(200))
    (window,) = passages(f"{text} The tall lamp is red. {text}").find_nearest("A red lamp.", 1)
    assert "The tall lamp is red." in window.text


def test_the_nearest_passages_have_most_of_the_words() -> None:
    parsed = passages("A red lamp.", "It rains.", "A tall red lamp.", "A red house.")
    nearest = parsed.find_nearest("The tall lamp is red.", 3)
    assert [one.passages for one in nearest] == [[2], [0], [3]]


def test_of_equally_near_passages_the_first_come_first() -> None:
    parsed = passages(*["The lamp is red."] * 5)
    assert [one.passages for one in parsed.find_nearest("A red lamp.", 2)] == [[0], [1]]


def test_words_of_a_title_make_a_passage_near() -> None:
    parsed = passages("It is red.", ("The tall lamp", "It is red."))
    assert parsed.find_nearest("The tall lamp is red.", 1)[0].passages == [1]


# The evidence for a statement -------------------------------------------------------------------


def test_a_window_and_sentences_of_all_passages_are_read() -> None:
    parsed = passages("Maria founded the firm. It is small.", "It rains. The firm began in Lisbon.")
    window, sentences = parsed.choose_evidence("Maria founded the firm in Lisbon.")
    assert (window.text, window.passages) == ("Maria founded the firm. It is small.", [0])
    assert sentences.text == "Maria founded the firm.\nThe firm began in Lisbon."
    assert sentences.passages == [0, 1]


def test_sentences_alone_are_read_where_they_have_several_words_more() -> None:
    parsed = passages("Maria founded the firm.", "The firm began in sunny Lisbon.")
    (sentences,) = parsed.choose_evidence("Maria founded the firm in sunny Lisbon.")
    assert sentences.passages == [0, 1]


def test_sentences_are_chosen_and_read_with_the_titles_of_their_passages() -> None:
    parsed = passages(
        ("Bern office", "Parking is free. It rains."),
        ("Rome office", "It snows. Parking is free. It is old. It is tall."),
        "A bus goes to the lake.",
    )
    window, sentences = parsed.choose_evidence("Parking is free at the Rome office.")
    assert (window.passages, sentences.passages) == ([1], [1])
    assert sentences.premise == "Title: Rome office\nParking is free."
    (both,) = parsed.choose_evidence("Parking is free at the Rome office; a bus goes to the lake.")
    assert both.premise == ("Title: Rome office\nParking is free.\nA bus goes to the lake.")
    assert both.title == "Rome office"


def test_the_same_text_is_read_once() -> None:
    (only,) = passages("It rains.", "The lamp is red.").choose_evidence("The lamp is red.")
    assert (only.text, only.passages) == ("The lamp is red.", [1])


def test_rows_of_data_are_not_taken_together() -> None:
    parsed = passages(LAMPS, "The lamp is old. It is red.")
    window, sentences = parsed.choose_evidence("The red lamp costs 20.")
    assert (window.passages, sentences.passages) == ([0], [1])
    assert "The price of red lamp is 20." in window.text


def test_data_and_prose_are_read_as_one_text_where_each_has_words_of_its_own() -> None:
    parsed = passages(LAMPS, "It rains. The lamp ships to Turin in June.")
    statement = "The red lamp with the name and price of 20 ships to Turin in June."
    (both,) = parsed.choose_evidence(statement)
    assert both.passages == [0, 1]
    assert "The price of red lamp is 20." in both.text
    assert both.text.endswith("The lamp ships to Turin in June.")


def test_a_window_alone_is_read_where_it_has_several_words_more() -> None:
    (window,) = passages(LAMPS, "The lamp is old.").choose_evidence("The red lamp costs 20.")
    assert window.passages == [0]


def test_without_a_shared_word_the_first_window_is_read() -> None:
    assert [one.text for one in passages("It rains.").choose_evidence("The lamp is red.")] == [
        "It rains."
    ]
    assert passages("", " ").choose_evidence("The lamp is red.") == []


WORDS = st.sampled_from("lamp red house tall Turin stands 1902 old door green river north".split())
SENTENCES = st.lists(WORDS, min_size=1, max_size=30).map(lambda one: f"{' '.join(one)}.")
TEXTS = st.lists(st.lists(SENTENCES, max_size=6).map(" ".join), max_size=4)


@given(TEXTS, SENTENCES)
def test_the_evidence_is_little_and_of_the_passages(texts: list[str], statement: str) -> None:
    evidence = passages(*texts).choose_evidence(statement)
    assert len(evidence) <= 2
    assert bool(evidence) == any(map(str.strip, texts))
    wanted = frozenset(content_words(statement))
    for one in evidence:
        words = sum(len(part.text.split()) for part in one.parts)
        assert len(one.parts) <= MAX_JOINED_SENTENCES
        assert words <= MAX_JOINED_WORDS or len(one.parts) == 1
        assert all(part.text in texts[part.passage] for part in one.parts)
        if len(one.parts) > 1:
            assert one.parts == sorted(one.parts)
            assert all(part.words & wanted for part in one.parts)


# Windows of a second reader ----------------------------------------------------------------------


def test_windows_hold_the_words_of_the_statement_in_reading_order() -> None:
    texts = [
        ["Anna was born in Bern.", "She studied law.", "Nothing else is known of her."],
        ["The prize was given in 1999.", "Anna won the prize."],
    ]
    chosen = choose_windows("Anna won the prize in 1999 after studying law.", texts, 2, 8)
    assert [one.passage for one in chosen] == [0, 1]
    assert chosen[1].text == "Anna won the prize."
    assert "1999" in choose_windows("The prize of 1999", texts, 1, 8)[0].text
    everything = choose_windows("Anna won the prize.", texts, 3, 60)
    assert [one.text for one in everything] == [" ".join(texts[0]), " ".join(texts[1])]


def test_the_first_window_is_shown_where_none_holds_a_word() -> None:
    parsed = passages("It rains. It hails.", "It snows.")
    assert [one.text for one in parsed.choose_windows("The lamp is red.")] == [
        "It rains. It hails."
    ]


@given(
    st.lists(st.lists(st.text("ab .", max_size=12), max_size=6), max_size=4),
    st.text("ab .", max_size=12),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_windows_are_of_the_passages_and_never_meet(
    texts: list[list[str]], statement: str, most: int, longest: int
) -> None:
    chosen = choose_windows(statement, texts, most, longest)
    assert len(chosen) <= most
    assert bool(chosen) == any(texts)
    for one in chosen:
        assert one.text == " ".join(texts[one.passage][one.start : one.end])
        assert not any(one.overlaps(other) for other in chosen if other != one)
        assert one.end == one.start + 1 or len(one.text.split()) <= longest


# Shares -----------------------------------------------------------------------------------------


def test_two_neighbouring_sentences_hold_a_share_of_the_words() -> None:
    parsed = passages("The lamp is tall. It is red. It rains. A house.", "The tall red lamp.", "")
    statement = "The tall lamp is in the red house."
    assert parsed.largest_share(statement, 0) == pytest.approx(3 / 4)
    assert parsed.largest_share(statement, 1) == pytest.approx(3 / 4)
    assert parsed.largest_share(statement, 2) == 0


def test_the_closest_sentence_holds_most_of_the_words() -> None:
    parsed = passages("It rains. The tall lamp is red. The lamp is old.", "It rains.", "")
    assert parsed.find_closest_sentence("The tall lamp", 0) == "The tall lamp is red."
    assert parsed.find_closest_sentence("The tall lamp", 2) == ""


@given(TEXTS, SENTENCES)
def test_a_share_is_from_0_to_1_and_1_of_a_sentence_that_stands_there(
    texts: list[str], statement: str
) -> None:
    parsed = passages(*texts, statement)
    assert all(0 <= parsed.largest_share(statement, number) <= 1 for number in range(len(texts)))
    assert parsed.largest_share(statement, len(texts)) == 1
