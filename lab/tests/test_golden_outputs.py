"""The check of stored outputs notices a change, and not the time or the place of a run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lab.benchmarks.golden.scenarios import Step
from lab.benchmarks.golden_outputs import content, differences, hashed, normalised, run_step


def test_time_and_place_do_not_count(tmp_path: Path) -> None:
    first = f'{{"seconds": 1.25, "path": "{tmp_path}/a", "mean": 0.12345678901}} took 3 s'
    second = '{"seconds": 0.5, "path": "/elsewhere/a", "mean": 0.12345678902} took 12 min'
    assert normalised(first, tmp_path) == normalised(second, Path("/elsewhere"))
    for key in ("started", "ended"):
        first, second = (f'{{"{key}": "2026-{month}-29T01:34:50Z"}}' for month in (11, 12))
        assert normalised(first, tmp_path) == normalised(second, tmp_path)


@pytest.mark.parametrize("changed", ["mean 0.123556", "mean 0.123456 %", "means 0.123456"])
def test_a_change_counts(changed: str, tmp_path: Path) -> None:
    was = hashed(normalised("mean 0.123456", tmp_path))
    assert hashed(normalised(changed, tmp_path)) != was


def test_calls_are_compared_by_key_and_reply(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    columns = "key BLOB, capability TEXT, backend TEXT, request TEXT, reply TEXT, seconds REAL"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE calls ({columns})")
        connection.execute("INSERT INTO calls VALUES (x'0a', 'chat', 'b', 'Who?', 'She.', 0.5)")
        connection.commit()
        before = content(path, tmp_path)
        connection.execute("UPDATE calls SET seconds = 7")
        connection.commit()
        assert content(path, tmp_path) == before
        connection.execute("UPDATE calls SET key = x'0b'")
        connection.commit()
    assert content(path, tmp_path) != before


def test_a_difference_names_the_output() -> None:
    stored, now = {"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"}
    assert differences(stored, now) == ["changed  b", "missing  c", "new      d"]


def test_a_command_runs_as_from_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    printed = run_step(Step("score none.jsonl"), 0, folder)
    assert printed.splitlines()[1] == "status 2"
    assert "none.jsonl: no such file" in printed
