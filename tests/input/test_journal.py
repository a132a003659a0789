"""The file of `annotate`: its last states, whatever a kill left of its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import jsonl
from trustassay.input.journal import is_journal, read_journal
from trustassay.input.ratings import read_ratings
from trustassay.input.records import InputError

START = {"action": "start", "input": "x"}


def line(item: str, rating: Any, **others: Any) -> dict[str, Any]:
    return {"item": item, "rater": "ann", "rating": rating, "repeat": 0, **others}


def test_the_last_line_of_a_showing_counts(tmp_path: Path) -> None:
    rows = [
        START,
        line("a", 1),
        line("b", 2),
        line("a", 3),
        line("b", None, action="undo"),
        line("c", None, action="skip"),
        line("a", 5, repeat=1),
        line("a", 4, model="m"),
    ]
    path = jsonl(tmp_path / "r.jsonl", rows)
    assert is_journal(path)
    states = [
        (where, row["item"], row["rating"]) for where, row in read_journal(path).last_states()
    ]
    assert states == [
        (f"{path}:4", "a", 3),
        (f"{path}:6", "c", None),
        (f"{path}:7", "a", 5),
        (f"{path}:8", "a", 4),
    ]
    found = read_ratings(path)
    assert [(one.model, one.value, one.repeat) for one in found.ratings] == [
        ("", 3, 0),
        ("", 5, 1),
        ("m", 4, 0),
    ]
    assert found.missing_count == 1


def test_named_raters_are_the_only_ones(tmp_path: Path) -> None:
    rows = [START, line("a", 1), line("a", 2) | {"rater": "note"}, line("b", 3)]
    path = jsonl(tmp_path / "r.jsonl", rows)
    assert [one.value for one in read_ratings(path, raters=["ann"]).ratings] == [1, 3]
    assert [one.value for one in read_ratings(path, raters=["note"]).ratings] == [2]  # no column
    with pytest.raises(InputError, match=r"r.jsonl: unknown rater 'anna'; did you mean ann\?"):
        read_ratings(path, raters=["anna"])


@given(cut=st.integers(0, 400))
def test_wherever_it_is_cut_whole_lines_are_read(tmp_path_factory: Any, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    whole = jsonl(path, [START, *(line(f"é{n}", n) for n in range(5))]).read_bytes()
    path.write_bytes(whole[:cut])
    found = read_journal(path)
    kept = whole[:cut].count(b"\n")
    assert found.sound_bytes == len(b"".join(whole.splitlines(keepends=True)[:kept]))
    assert [row["rating"] for _, row in found.lines] == list(range(max(kept - 1, 0)))


def test_words_are_in_the_order_of_the_rubric_unless_levels_say_otherwise(tmp_path: Path) -> None:
    rows = [START | {"levels": ["poor", "good"]}, line("a", "good"), line("b", "poor")]
    path = jsonl(tmp_path / "r.jsonl", rows)
    assert read_ratings(path).categories == ("poor", "good")
    assert read_ratings(path, levels=["good", "poor"]).categories == ("good", "poor")


def test_other_files_are_no_journal(tmp_path: Path) -> None:
    assert not is_journal(jsonl(tmp_path / "r.jsonl", [line("a", 1)]))
    assert not is_journal(tmp_path / "missing.jsonl")
    assert not is_journal(tmp_path)
    (tmp_path / "r.jsonl").write_text(json.dumps(START) + "\n")
    with pytest.raises(ValueError, match="contains no ratings"):
        read_ratings(tmp_path / "r.jsonl")
