"""The formulas, by hand and by what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.reference.measures import (
    aggregate_values,
    contains,
    mean_log_probability,
    novel,
    token_overlap,
)

WORDS = st.lists(st.sampled_from("abcd"), max_size=6)


def test_token_overlap_by_hand() -> None:
    # Two of three words of the answer and two of four of the gold answer; "a" counts once.
    found = token_overlap(["a", "b", "a"], ["a", "b", "c", "d"])
    assert found[:2] == (2 / 3, 2 / 4)
    assert found.f1 == pytest.approx(4 / 7)
    assert token_overlap(["a"], ["b"]) == (0, 0, 0)
    assert token_overlap([], []) == (1, 1, 1)
    assert token_overlap([], ["a"]) == token_overlap(["a"], []) == (0, 0, 0)


@given(WORDS, WORDS)
def test_token_overlap_turns_around_with_its_texts(one: list[str], other: list[str]) -> None:
    there, back = token_overlap(one, other), token_overlap(other, one)
    assert there.precision == back.recall
    assert there.f1 == pytest.approx(back.f1)
    assert 0 <= min(there) <= there.f1 <= max(there) <= 1
    assert (there.f1 == 1) == (sorted(one) == sorted(other))


@given(WORDS, WORDS)
def test_contains_is_what_a_search_in_text_says(answer: list[str], gold: list[str]) -> None:
    expected = bool(gold) and f" {' '.join(gold)} " in f" {' '.join(answer)} "
    assert contains(answer, gold) is expected


def test_novel_keeps_an_answer_that_only_repeats_the_question() -> None:
    assert novel(["who", "was", "sax"], {"who", "was"}) == ["sax"]
    assert novel(["who", "was"], {"who", "was"}) == ["who", "was"]
    assert novel([], {"who"}) == []


def test_means() -> None:
    assert mean_log_probability([-1.0, -2.0, -6.0]) == -3
    with pytest.raises(ValueError, match="without tokens"):
        mean_log_probability([])
    assert [aggregate_values([0.5, 1.0, 0.0], how) for how in ("best", "first", "mean")] == [
        1,
        0.5,
        0.5,
    ]
