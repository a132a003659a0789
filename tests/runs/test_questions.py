"""Sketches of the questions of runs: which runs asked mostly the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support import Recorder, records
from trustassay import score
from trustassay.runs.units import (
    SKETCH_SIZE,
    read_sketch,
    share_questions,
    sketch_questions,
)


def questions(first: int, end: int) -> list[str]:
    return [f"When was bridge {i} built?" for i in range(first, end)]


def are_shared(first: list[str], second: list[str]) -> bool:
    sketches = [read_sketch(sketch_questions(one)) for one in (first, second)]
    both_ways = {share_questions(*sketches), share_questions(*sketches[::-1])}
    assert len(both_ways) == 1
    return both_ways.pop()


def test_order_repetition_case_and_white_space_change_no_sketch() -> None:
    plain = questions(0, 300)
    other = [one.upper().replace(" ", "  ") for one in plain * 2]
    random.Random(3).shuffle(other)
    assert sketch_questions(other) == sketch_questions(plain)
    assert len(read_sketch(sketch_questions(plain))) == SKETCH_SIZE


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ((0, 30), (0, 30), True),
        ((0, 30), (30, 60), False),
        ((0, 30), (0, 60), True),  # half of all questions
        ((0, 30), (0, 61), False),  # of a small set the share is exact
        ((0, 2000), (200, 2200), True),  # 82 %
        ((0, 2000), (1600, 3600), False),  # 11 %
        ((0, 50), (0, 2000), False),  # a small part of the other
    ],
)
def test_runs_share_questions_if_half_of_all_are_in_both(
    first: tuple[int, int], second: tuple[int, int], shared: bool
) -> None:
    assert are_shared(questions(*first), questions(*second)) is shared


def test_what_is_not_known_is_not_shared() -> None:
    assert not share_questions(read_sketch(""), read_sketch(""))
    assert not are_shared(questions(0, 9), [])


def test_a_run_keeps_the_sketch_of_its_questions(tmp_path: Path) -> None:
    score(records(5), metrics="grounding", entailer=Recorder(), out=tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["questions"] == sketch_questions(one["question"] for one in records(5))
