"""Faults of a rubric's file are told in short words, whatever the file holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trustassay.metrics.judge.options import RubricError, read_rubric

RUBRIC = """\
name: mine
task: How good is it?
{more}
levels:
  - {{score: 1, means: Bad.}}
  - {{score: {score}, means: Good.}}
"""


def fault(tmp_path: Path, text: str) -> str:
    path = tmp_path / "r.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RubricError) as caught:
        read_rubric(path)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def test_a_file_without_faults(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RUBRIC.format(more="", score=2), encoding="utf-8")
    assert read_rubric(tmp_path / "r.yaml").values == {"1": 1, "2": 2}


def test_references_within_the_file_are_refused_before_they_grow(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    started = time.process_time()
    said = fault(tmp_path, "\n".join([*rows, "name: *a29"]))
    assert said.endswith("r.yaml: YAML aliases (*name) are not allowed; write the value out")
    assert time.process_time() - started < 2


def test_a_large_value_is_told_in_short(tmp_path: Path) -> None:
    said = fault(tmp_path, RUBRIC.format(more=f"title: {list(range(9000))}", score=2))
    assert "title: expected text, got '[0, 1, 2, 3, 4, 5, ...]'" in said


@pytest.mark.parametrize(
    ("more", "score", "words"),
    [
        ("", "9" * 400, "levels[1].value: expected a number, got '9999"),
        ("", "0x" + "f" * 5000, "a number in it is too large"),
        ("passes: 0x" + "f" * 5000, 2, "a number in it is too large"),
        ("", "9" * 5000, "r.yaml: not YAML"),
    ],
)
def test_a_huge_number_is_a_fault(tmp_path: Path, more: str, score: object, words: str) -> None:
    assert words in fault(tmp_path, RUBRIC.format(more=more, score=score))
