"""What is read of the passages of an answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.readers import SPLIT, Reader, documents, run
from trustassay.core.sample import Document
from trustassay.judging.passages import (
    MAX_EXCERPT_WORDS,
    MAX_JOINED_SENTENCES,
    MAX_JOINED_WORDS,
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
    assert [one.passage for one in parsed.excerpts] == [2]
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


# Excerpts ---------------------------------------------------------------------------------------


def test_a_short_passage_is_one_excerpt_with_its_title() -> None:
    (excerpt,) = passages(("Lamps", "The lamp is red.\nIt is old.")).excerpts
    assert (excerpt.passage, excerpt.text) == (0, "The lamp is red.\nIt is old.")
    assert excerpt.premise == "Title: Lamps\nThe lamp is red.\nIt is old."
    assert excerpt.words == {"lamp", "red", "old"}


def test_of_long_data_the_rows_that_a_statement_is_about_are_read() -> None:
    days = [f"2021-{month:02}-{day:02}" for month in range(1, 9) for day in range(1, 29)]
    table = json.dumps([{"date": day, "rain": f"{place} mm"} for place, day in enumerate(days)])
    parsed = passages("The lamp is red.", table)
    ((lamp, _), (rain, _)) = parsed.find_nearest("The rain of March 5 was 3 mm.", 3)[::-1]
    assert (lamp.passage, lamp.text) == (0, "The lamp is red.")
    row = "The date is 2021-03-05. The rain of 2021-03-05 is 60 mm."
    assert rain.text == f"{row} There are 224 rows."


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(0, 900))
def test_excerpts_of_a_long_passage_have_all_of_its_words_in_order(
    lengths: list[int], longest: int
) -> None:
    sentences = [" ".join(["Word"] + ["word"] * (n - 1)) + "." for n in [*lengths, max(1, longest)]]
    text = " ".join(sentences)
    excerpts = passages(text).excerpts
    assert " ".join(one.text for one in excerpts).split() == text.split()
    assert all(len(one.text.split()) <= MAX_EXCERPT_WORDS for one in excerpts)


def test_excerpts_end_with_a_sentence_where_these_are_short() -> None:
    text = " ".join(f"Number {n} says nothing of it at all." for n in range(200))
    excerpts = passages(text).excerpts
    assert len(excerpts) == 4
    assert all(one.text.endswith("at all.") for one in excerpts)


def test_the_nearest_excerpts_hold_the_largest_shares_of_the_words() -> None:
    parsed = passages("A red lamp.", "It rains.", "A tall red lamp.", "A red house.")
    nearest = parsed.find_nearest("The tall lamp is red.", 3)
    assert [excerpt.passage for excerpt, _ in nearest] == [2, 0, 3]
    assert [share for _, share in nearest] == pytest.approx([1, 2 / 3, 1 / 3])


def test_of_equally_near_excerpts_the_first_come_first() -> None:
    parsed = passages(*["The lamp is red."] * 5)
    assert [excerpt.passage for excerpt, _ in parsed.find_nearest("A red lamp.", 2)] == [0, 1]


def test_words_of_a_title_make_a_passage_near() -> None:
    parsed = passages("It is red.", ("The tall lamp", "It is red."))
    assert parsed.find_nearest("The tall lamp is red.", 1)[0][0].passage == 1


def test_a_statement_without_content_words_has_no_share() -> None:
    assert [share for _, share in passages("The lamp is red.").find_nearest("It is so.", 3)] == [0]


# Sentences together -----------------------------------------------------------------------------


def test_sentences_that_add_words_are_taken_together_before_windows() -> None:
    parsed = passages("Maria founded the firm. It is small.", "It rains. The firm began in Lisbon.")
    sentences, around = parsed.find_joint_evidence("Maria founded the firm in Lisbon.")
    assert [one.text for one in sentences] == [
        "Maria founded the firm.",
        "The firm began in Lisbon.",
    ]
    assert [one.passage for one in around] == [0, 1]


def test_one_sentence_is_not_read_together_with_itself() -> None:
    (around,) = passages("It rains.", "The lamp is red.").find_joint_evidence("The lamp is red.")
    assert [one.text for one in around] == ["The lamp is red."]


def test_rows_of_data_are_not_taken_together() -> None:
    joined = passages(LAMPS, "The lamp is old.").find_joint_evidence("The red lamp costs 20.")
    assert {one.passage for used in joined for one in used} == {1}


def test_nothing_is_taken_where_no_word_is_held() -> None:
    assert passages("It rains.").find_joint_evidence("The lamp is red.") == []


WORDS = st.sampled_from("lamp red house tall Turin stands 1902 old door green river north".split())
SENTENCES = st.lists(WORDS, min_size=1, max_size=30).map(lambda one: f"{' '.join(one)}.")
TEXTS = st.lists(st.lists(SENTENCES, max_size=6).map(" ".join), max_size=4)


@given(TEXTS, SENTENCES)
def test_sentences_together_are_few_and_short_and_each_adds_a_word(
    texts: list[str], statement: str
) -> None:
    parsed = passages(*texts)
    used = [] if len(joined := parsed.find_joint_evidence(statement)) < 2 else list(joined[0])
    words = sum(len(one.text.split()) for one in used)
    assert len(used) <= MAX_JOINED_SENTENCES
    assert words <= MAX_JOINED_WORDS
    assert used == sorted(used)
    wanted = frozenset(content_words(statement))
    assert len(used) <= len(wanted)
    assert all(one.words & wanted for one in used)


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
