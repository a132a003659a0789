"""``demo --files`` writes files that lead to figures with intervals, offline."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.docs.pages import inside, run_command
from trustassay.cli.demo import EXAMPLE_FILES


def test_the_files_are_written_and_score_to_an_interval(tmp_path: Path) -> None:
    with inside(tmp_path):
        assert "scripted" in run_command("trustassay demo --files .")
        run_command("trustassay demo --files .")
        assert {path.name for path in tmp_path.iterdir()} == set(EXAMPLE_FILES)
        run_command("trustassay generate questions.jsonl --model python:models:small --out a.jsonl")
        shown = run_command("trustassay score a.jsonl --metric reference --out runs/a")
    assert "token_recall  0.600  0.477 to 0.714  60" in shown


def test_another_file_of_that_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("mine\n")
    with inside(tmp_path):
        shown = run_command("trustassay demo --files .", allowed=(1, 2))
    assert "answers.jsonl already exists and is another file" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_the_files_are_small() -> None:
    folder = files("trustassay.data") / "example"
    assert sum(len((folder / name).read_bytes()) for name in EXAMPLE_FILES) < 300_000


@pytest.mark.parametrize("name", ["questions", "answers"])
def test_there_are_sixty(name: str) -> None:
    text = (files("trustassay.data") / "example" / f"{name}.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 60
