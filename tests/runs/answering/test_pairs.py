"""Pairs of wrong and corrected answers from whatever a generator writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.sample import Sample
from trustassay.runs.answering import AnswerPairing, AnswerPairs, parse_pairs

ASKED = """1. Wrong Answer: The capital is Lyon.
1. Non-Wrong Answer: Paris is the capital.
2. Wrong Answer: The capital is Nice,
   on the coast.
2. Non-Wrong Answer: It is Paris."""


def test_the_layout_that_is_asked_for() -> None:
    assert parse_pairs(ASKED) == AnswerPairs(
        ("The capital is Lyon.", "The capital is Nice, on the coast."),
        ("Paris is the capital.", "It is Paris."),
        0,
    )


@pytest.mark.parametrize(
    "text",
    [
        "**1. Wrong Answer:** x\n**1. Non-Wrong Answer:** y",
        "Sure! Here they are:\n\n1) wrong answer: x\n1) Non Wrong Answer: y",
        "- 1. Wrong: x\n- 1. Corrected: y",
        "1. Incorrect answer: x\n\n1. Correct answer: y\n",
    ],
)
def test_other_wrappings(text: str) -> None:
    assert parse_pairs(text) == AnswerPairs(("x",), ("y",), 0)


def test_halves_of_pairs_are_dropped_and_counted() -> None:
    text = "1. Wrong Answer: a\n2. Wrong Answer: b\n2. Non-Wrong Answer: c\n3. Non-Wrong Answer: d"
    assert parse_pairs(text) == AnswerPairs(("b",), ("c",), 2)


def test_a_cut_last_item_is_no_pair() -> None:
    assert parse_pairs("1. Wrong Answer: a\n1. Non-Wrong Answer:") == AnswerPairs((), (), 1)


@given(st.text())
def test_any_text_gives_as_many_of_both(text: str) -> None:
    found = parse_pairs(text)
    assert len(found.wrong) == len(found.corrected)


def test_the_prompt_says_question_and_number() -> None:
    request = AnswerPairing(pairs=7).request(Sample("a", "Which town?"))
    assert "Write 7 wrong answers" in request.messages[0].content
    assert "Which town?" in request.messages[0].content
    assert request.prompt == "wrong-answers/1"


def test_fewer_than_one_pair_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="pairs: expected 1 or more, got 0"):
        AnswerPairing(pairs=0)


def test_an_item_without_words_does_not_take_the_next_one() -> None:
    text = "1. Wrong Answer:\n1. Non-Wrong Answer: right\n2. Wrong Answer:\n  two\n2. Non-Wrong: 2"
    assert parse_pairs(text) == (("two",), ("2",), 1)
