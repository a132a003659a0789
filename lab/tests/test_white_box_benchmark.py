"""The benchmark of perturbed embeddings: a radius is chosen on one half and told on the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lab.benchmarks.white_box import CHARACTERS, compared, halves, moved
from trustassay.statistics.resampling import generator

WRONG = {f"q{i}": i % 2 for i in range(80)}


def near(ids: list[str], noise: float, name: str) -> dict[str, float]:
    """Return scores that follow the label of some questions, and chance for the others."""
    rng = generator(0, name)
    return {i: float((i in ids) * WRONG[i] + noise * rng.random()) for i in WRONG}


def test_the_radius_is_chosen_on_one_half_and_told_on_the_other() -> None:
    first, second = halves([*WRONG])
    assert sorted(first + second) == sorted(WRONG) and abs(len(first) - len(second)) <= 1
    assert halves([*WRONG][::-1]) == (first, second)
    scores = {
        CHARACTERS: near(second, 2.0, "characters"),
        "0.1": near(first, 0.1, "good where it is chosen"),
        "0.2": near(second, 0.1, "good where it is told"),
    }
    found = compared(scores, WRONG)
    assert found["chosen"] == "0.1"
    assert found["auroc on both halves"]["0.1"][0] == 1
    assert found["auroc on both halves"]["0.2"][1] == 1
    assert found["answers"] == {"scored by all": 80, "to choose": 40, "told": 40}
    told, characters = found["embeddings"], found[CHARACTERS]
    assert told["auroc"] == found["auroc on both halves"]["0.1"][1] < 0.75
    difference = found["embeddings less characters"]
    assert difference["value"] == pytest.approx(told["auroc"] - characters["auroc"])
    assert difference["interval"][0] < difference["value"] < difference["interval"][1]


def test_only_answers_that_all_columns_score_count() -> None:
    scores = {name: near([*WRONG], 0.1, name) for name in (CHARACTERS, "0.1")}
    del scores["0.1"]["q3"]
    assert compared(scores, WRONG)["answers"]["scored by all"] == 79


@pytest.mark.parametrize("ids", [[], ["q1"], ["q1", "q3", "q5"]])
def test_without_both_kinds_of_answers_nothing_is_told(ids: list[str]) -> None:
    wrong = {i: WRONG[i] for i in ids}
    scores = {name: dict.fromkeys(ids, 0.5) for name in (CHARACTERS, "0.1")}
    found = compared(scores, wrong)
    assert found["chosen"] == "0.1"
    assert "embeddings" not in found


def test_moved_replies_are_those_that_differ_from_the_answer() -> None:
    rows: list[Any] = [{"original": "a"}, {"answer": "a "}, {"answer": "b"}, {"empty": "x"}]
    one: Any = SimpleNamespace(evidence=rows)
    assert moved([one]) == 0.5
    assert moved([]) is None
