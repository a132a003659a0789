"""The parser of judges' replies; ``tests/test_prose.py`` has replies of every shape."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.core.capabilities import TokenLogprob
from trustassay.metrics.judge.options import SHIPPED, read_rubric
from trustassay.metrics.judge.replies import read_reply
from trustassay.metrics.judge.votes import compute_expected_value, level_logprobs

FAULTS = ("none", "several", "outside")
RUBRICS = [read_rubric(name) for name in SHIPPED]
BY_NAME = {rubric.name: rubric for rubric in RUBRICS}
TRUTH = BY_NAME["truthfulness"]


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


def test_json_as_deep_as_one_likes_raises_nothing() -> None:
    for depth in (10, 500, 900, 5000):
        inner = "[" * depth + "]" * depth
        for text in (
            '{"max": ' + inner + ', "score": 4}',
            '{"score": ' * depth + "4" + "}" * depth,
            '{"score": ' + "[" * depth + "4" + "]" * depth + "}",
        ):
            assert read_reply(text, TRUTH).label in (None, "4")


def test_a_stored_reply_is_read_by_the_rules_of_today() -> None:
    """Replies are stored as received; a level is not."""
    assert read_reply("2. Weltkrieg begann 1939.", TRUTH) == (None, "none", "")
    assert read_reply('{"score": 4, "max_score": 5, "reason": "One date."}', TRUTH) == (
        "4",
        None,
        "One date.",
    )


@pytest.mark.parametrize(
    ("tokens", "label", "place"),
    [
        (["Score", ":", " 4"], "4", 2),
        (["Bewertung", ":", " 4"], "4", 2),
        (["4", " eras", "\n", "Score", ":", " 4"], "4", 5),
        (["4", "/5", "\n", "4", " eras"], "4", 0),
        (["It names ", "4", " eras", ".\n", "Score: ", "4"], "4", 5),
        (["Max score: ", "5", "\nScore: ", "5"], "5", 3),
        (["It", " is", " fine"], "4", None),
        (["4 "] * 30, "5", None),
    ],
)
def test_log_probabilities_are_those_of_the_token_that_is_read(
    tokens: list[str], label: str, place: int | None
) -> None:
    told = [TokenLogprob(token, -float(i), ()) for i, token in enumerate(tokens)]
    found = level_logprobs(told, TRUTH, label)
    assert found == ({} if place is None else {label: -float(place)})


def test_a_log_probability_that_is_not_known_costs_the_others_nothing() -> None:
    """Servers write NaN for a number that they failed to compute; other tokens keep theirs."""
    score = TokenLogprob(" 4", -0.5, (("5", -2.0),))
    logprobs = level_logprobs([TokenLogprob("Score", math.nan), score], TRUTH, "4")
    assert logprobs == {"4": -0.5, "5": -2.0}
    logprobs = level_logprobs([score._replace(logprob=math.nan)], TRUTH, "4")
    assert logprobs == {"5": -2.0}
    expected_value = compute_expected_value(logprobs, TRUTH.values)
    assert expected_value is not None
    assert expected_value == pytest.approx((5.0, math.exp(-2)))
