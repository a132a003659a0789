"""A long ending says what it is about, step by step; a short one says nothing."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.runs.test_ending import STEPS
from tests.support import jsonl, records
from trustassay.core import progress


@pytest.fixture
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell of a step that takes any time at all."""
    monkeypatch.setattr(progress, "SHOW_AFTER_S", 1e-9)


def test_each_step_is_told(cli: Cli, told_at_once: None, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(40))
    said = cli("score", "in.jsonl", "--entailer", "lexical", "--out", "run")
    told = [line.split(":")[0] for line in said.err.splitlines()]
    assert [step for step in told if step in STEPS] == STEPS
    assert "writing the table: 16/40" in said.err
    again = cli("rescore", "run", "--entailer", "lexical", "--out", "again")
    assert [step for step in STEPS if step in again.err] == STEPS
    report = cli("report", "run")
    assert [step for step in STEPS if step in report.err] == ["counting groups", STEPS[-1]]


def test_short_steps_are_not_told(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", records(3))
    said = cli("score", "in.jsonl", "--entailer", "lexical", "--out", "run")
    assert not [step for step in STEPS if step in said.err]
