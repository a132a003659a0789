"""``demo --files`` writes files that lead to figures with intervals, offline."""

from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path

import pytest

from tests.docs.pages import inside, run_command
from trustassay.cli import demo
from trustassay.cli.demo import EXAMPLE_FILES


def test_the_files_are_written_and_score_to_an_interval(tmp_path: Path) -> None:
    with inside(tmp_path):
        assert "made up" in run_command("trustassay demo --files .")
        run_command("trustassay demo --files .")
        assert {path.name for path in tmp_path.iterdir()} == set(EXAMPLE_FILES)
        run_command("trustassay generate questions.jsonl --model python:models:small --out a.jsonl")
        shown = run_command("trustassay score a.jsonl --metric reference --out runs/a")
    assert "token_recall  0.600  0.477 to 0.714  60" in shown


def test_what_a_real_model_replied_is_written_and_can_be_asked(tmp_path: Path) -> None:
    asking = "--entailer lexical --model replay:qwen-replies.jsonl --out"
    options = "perturbations=1,original=response"
    with inside(tmp_path):
        shown = run_command("trustassay demo --files .")
        assert f"qwen.jsonl: 60 answers of {demo.MODEL};" in shown
        assert "qwen*: recorded replies of real models (Apache-2.0)." in shown
        harmony = f"semantic_harmonicity:prompt=qwen-prompt.jinja,{options}"
        shown = run_command(f"trustassay score qwen.jsonl --metric {harmony} {asking} runs/a")
        assert " of 60 questions." in shown
        assert f"asked replay:qwen-replies.jsonl?model={demo.MODEL}#" in shown
        harmony = f"semantic_harmonicity:{options} --limit 1"
        shown = run_command(f"trustassay score qwen.jsonl --metric {harmony} {asking} b", (1,))
    assert "no reply to 'Who invented the saxophone?" in shown
    assert "use the options of the recorded run, or a model that can be asked" in shown
    written = [(tmp_path / f"qwen{end}").read_bytes() for end in (".jsonl", "-replies.jsonl")]
    assert written[0] == (demo.FOLDER / "answers.jsonl").read_bytes()
    assert written[1] == gzip.decompress(demo.REPLIES.read_bytes())


def test_another_file_of_that_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("mine\n")
    with inside(tmp_path):
        shown = run_command("trustassay demo --files .", allowed=(1, 2))
    assert "answers.jsonl already exists and is another file" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_the_files_are_small() -> None:
    folder = files("trustassay.input") / "example"
    assert sum(len(path.read_bytes()) for path in folder.iterdir() if path.is_file()) < 300_000


@pytest.mark.parametrize("name", ["questions", "answers"])
def test_there_are_sixty(name: str) -> None:
    text = (files("trustassay.input") / "example" / f"{name}.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 60
