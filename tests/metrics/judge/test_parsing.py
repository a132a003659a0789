"""The parser of judges' replies: every shape, none misread."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.judge.replies import FIVE, KINDS, YES_NO, ZERO_TO_FIVE
from trustassay.metrics.judge.parsing import read_reply
from trustassay.metrics.judge.rubric import SHIPPED, read_rubric

SHAPES = [
    (rubric, reply, says)
    for rubric, replies in (
        ("truthfulness", FIVE),
        ("answer", ZERO_TO_FIVE),
        ("verdict", YES_NO),
        ("categories", KINDS),
    )
    for says, texts in replies.items()
    for reply in texts
]
FAULTS = ("none", "several", "outside")
RUBRICS = [read_rubric(name) for name in SHIPPED]
BY_NAME = {rubric.name: rubric for rubric in RUBRICS}
TRUTH = BY_NAME["truthfulness"]


def test_there_are_more_than_three_hundred_shapes() -> None:
    assert len({(rubric, reply) for rubric, reply, _ in SHAPES}) == len(SHAPES) > 300


@pytest.mark.parametrize("says", list(dict.fromkeys(says for *_, says in SHAPES)))
def test_shapes_are_read_as_they_are_meant(says: str) -> None:
    misread = []
    for rubric, reply, meant in SHAPES:
        if meant == says:
            found = read_reply(reply, BY_NAME[rubric])
            if (found.label or found.fault) != says:
                misread.append((rubric, reply, found[:2]))
    assert not misread


def test_the_reason_is_what_stands_behind_its_word() -> None:
    for reply in (
        "Score: 4\nReason: One date is off.",
        "Reason: One date is off.\nScore: 4",
        "**Score:** 4\n**Reason:** One date is off.",
        '{"score": 4, "reason": "One date is off."}',
        "Score: 4\nExplanation: One date is off.\n",
    ):
        assert read_reply(reply, TRUTH)[2] == "One date is off."
    assert read_reply("4", TRUTH).reason == ""


PIECES = st.sampled_from(
    "1 2 4 5 7 0.9 -1 3/5 80% Score: score rating \n . , - ( ) or to four not if mostly "
    'completely truthful Reason: on reflection actually yes no { } " ** <score> </score> I give it '
    "a ½ ４ of out fıve sıx slıghtly İrrelevant ſcore: factual inaccuracy".split(" ")
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=14).map(" ".join)))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_one_level_or_one_fault(text: str) -> None:
    for rubric in RUBRICS:
        found = read_reply(text, rubric)
        assert (found.label in rubric.values) != (found.fault in FAULTS)


@given(st.lists(PIECES, max_size=14).map(" ".join))
@settings(max_examples=200, deadline=None)
def test_a_level_stands_in_the_text_as_a_word_of_its_own(text: str) -> None:
    label = read_reply(text, TRUTH).label
    if label is not None:
        written = text.replace("４", "4").replace("four", "4").lower()
        written = " ".join(re.sub(r'["*]', "", written).split())
        for level in TRUTH.levels:
            written = written.replace(level.name, level.label)
        assert re.search(rf"(?<![\d.]){label}(?![\d.]*\d)", written)


AROUND = st.sampled_from(["{}", "**{}**", "\n{}\n", "> {}", "{}.", "{}\nReason: 2 of 3 are right."])
BEFORE = st.sampled_from(["", "Score: ", "score = ", "Rating: ", "**Score:** ", "Final score: "])


@given(st.integers(1, 5), AROUND, BEFORE)
@settings(max_examples=60, deadline=None)
def test_a_level_is_read_whatever_stands_around_it(level: int, around: str, before: str) -> None:
    assert read_reply(around.format(f"{before}{level}"), TRUTH).label == str(level)


@given(st.decimals(-20, 200, places=1), AROUND, BEFORE)
@settings(max_examples=60, deadline=None)
def test_a_number_off_the_scale_is_no_level(number, around: str, before: str) -> None:  # type: ignore[no-untyped-def]
    found = read_reply(around.format(f"{before}{number}"), TRUTH)
    if number not in (1, 2, 3, 4, 5):
        assert found.label is None
    else:
        assert found.label == str(int(number))


@pytest.mark.parametrize(
    "text", ["score " * 5000, "(" * 20000, "4 or " * 5000, "4\n" * 5000, "I give " * 4000]
)
def test_long_replies_take_no_time(text: str) -> None:
    import time

    started = time.process_time()
    read_reply(text, TRUTH)
    assert time.process_time() - started < 2
