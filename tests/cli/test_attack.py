"""``trustassay attack`` through the command line: traces, going on, other settings."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trustassay.cli.main import app

MODEL = """
from pathlib import Path
import zlib

def answer(prompt):
    with Path("asked.txt").open("a") as file:
        file.write("x")
    return f"Answer number {zlib.crc32(prompt.encode()) % 3}: <script>alert(1)</script>"
"""
ARGUMENTS = ["--model", "python:wobbly:answer", "--candidates", "2", "--perturbations", "3"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "wobbly.py").write_text(MODEL)
    return tmp_path


def attack(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["attack", "Say it.", *ARGUMENTS, *arguments])
    return result.exit_code, result.output


def test_a_search_leaves_its_trace_and_goes_on_without_asking_again(here: Path) -> None:
    code, output = attack("--out", "one", "--steps", "2")
    assert code == 0, output
    rows = [json.loads(line) for line in (here / "one" / "trace.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 1, 2, 2]
    assert rows[0]["prompt"] == "Say it."
    assert rows[0]["kept"]
    asked = len((here / "asked.txt").read_text())
    assert asked <= 5 * 4
    before = (here / "one" / "trace.jsonl").read_bytes()
    page = (here / "one" / "ascent.html").read_bytes()
    assert b"Say it." in page
    assert b"<script>" not in page
    assert attack("--out", "one", "--steps", "2")[0] == 0
    assert (here / "one" / "trace.jsonl").read_bytes() == before
    assert (here / "one" / "ascent.html").read_bytes() == page
    assert len((here / "asked.txt").read_text()) == asked
    assert attack("--out", "one", "--steps", "3")[0] == 0
    assert (here / "one" / "trace.jsonl").read_bytes().startswith(before)


def test_other_settings_take_another_folder(here: Path) -> None:
    assert attack("--out", "one", "--steps", "1")[0] == 0
    code, output = attack("--out", "one", "--steps", "1", "--seed", "3")
    assert code == 2
    assert "seed was 0, now 3" in output


def test_a_folder_with_something_else_is_left_alone(here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "letter.txt").write_text("dear")
    code, output = attack("--out", "mine")
    assert code == 2
    assert "holds no session" in output
    assert [path.name for path in (here / "mine").iterdir()] == ["letter.txt"]


def test_a_budget_of_calls_and_json(here: Path) -> None:
    result = CliRunner().invoke(
        app, ["attack", "Say it.", *ARGUMENTS, "--out", "one", "--calls", "9", "--json"]
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert len(found["points"]) == 2
    assert found["start"] == found["points"][0]
    assert found["requests"] == 8
    assert len((here / "asked.txt").read_text()) <= 9
