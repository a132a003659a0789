"""Faults of the program: an exit status of their own, and a traceback that can be shared."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from trustassay.cli.main import app
from trustassay.metrics.reference.metric import Reference

SECRET = "a-very-secret-value"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SOME_API_KEY", SECRET)


def broken(*_: Any, **__: Any) -> Any:
    raise ValueError(f"{SECRET} in /tmp/elsewhere/file.json")


def score(folder: Path) -> tuple[int, str]:
    rows = [{"id": str(i), "question": "?", "response": "x", "answers": ["x"]} for i in range(3)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["score", str(folder / "in.jsonl"), "--metric", "reference:parts=em"]
    result = CliRunner().invoke(app, [*words, "--out", str(folder / "run")])
    return result.exit_code, result.output


def checked(path: Path, tmp_path: Path) -> str:
    text = path.read_text()
    assert "ValueError: [key] in file.json" in text
    assert "in broken" in text
    assert str(tmp_path) not in text
    assert str(Path(__file__).parent) not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return text


def test_a_fault_of_the_program_is_not_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.runs.execute.write_results", broken)
    code, output = score(tmp_path)
    assert code == 70
    assert "error, not caused by the input: ValueError at tests/cli/test_internal.py:" in output
    kept = tmp_path / "run" / "internal-error.txt"
    assert str(kept) in output
    assert SECRET not in output
    assert "Traceback" not in output
    checked(kept, tmp_path)
    monkeypatch.undo()
    assert score(tmp_path)[0] == 0


def test_without_a_run_the_users_folder_of_states_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.compare.gate.gate", broken)
    result = CliRunner().invoke(app, ["gate", str(tmp_path), "--min", "reference.mean=1"])
    assert result.exit_code == 70
    checked(tmp_path / "state" / "trustassay" / "internal-error.txt", tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["gate", str(tmp_path), "--min", "reference.mean=1"])
    assert result.exit_code == 70
    (kept,) = tmp_path.glob("trustassay-*.txt")
    assert str(kept) in result.output
    checked(kept, tmp_path)


def test_an_error_in_a_compiled_library_is_placed_where_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: Any, **__: Any) -> None:
        np.random.default_rng(0).integers(10**30)

    monkeypatch.setattr("trustassay.compare.gate.gate", draw)
    result = CliRunner().invoke(app, ["gate", str(tmp_path), "--min", "reference.mean=1"])
    assert result.exit_code == 70
    assert f"tests/cli/test_internal.py:{draw.__code__.co_firstlineno + 1};" in result.output


def test_a_metrics_fault_says_where_and_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reference, "assess", broken)
    code, output = score(tmp_path)
    assert code == 1
    assert f"tracebacks of internal errors: {tmp_path / 'run' / 'tracebacks'}" in output
    line = (tmp_path / "run" / "assessments.jsonl").read_text().splitlines()[0]
    number = broken.__code__.co_firstlineno + 1
    assert json.loads(line)["error"] == (
        f"reference failed: ValueError: [key] in file.json (tests/cli/test_internal.py:{number})"
    )
    (kept,) = (tmp_path / "run" / "tracebacks").iterdir()  # one of three that are the same
    assert kept.name == f"reference-tests-cli-test_internal.py-{number}.txt"
    checked(kept, tmp_path)
    monkeypatch.undo()
    assert score(tmp_path)[0] == 0
    assert not (tmp_path / "run" / "tracebacks").exists()
