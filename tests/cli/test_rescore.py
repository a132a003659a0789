"""``trustassay rescore``: other settings, nothing asked anew."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, records

MODULE = """
def judge(premise, hypothesis):
    with open("asked.log", "a") as log:
        log.write(hypothesis + "\\n")
    return 0.6
"""


@pytest.fixture
def old(cli: Cli, tmp_path: Path) -> Path:
    (tmp_path / "rejudge.py").write_text(MODULE)
    jsonl(tmp_path / "in.jsonl", records(3))
    said = cli("score", "in.jsonl", "--entailer", "python:rejudge:judge", "--out", "old")
    assert said.status == 0
    return tmp_path / "old"


def test_another_threshold_asks_nothing_anew(cli: Cli, old: Path) -> None:
    asked = (old.parent / "asked.log").read_text()
    said = cli("rescore", "old", "--metric", "grounding:threshold=0.7", "--out", "new", "--json")
    assert said.status == 0
    assert (old.parent / "asked.log").read_text() == asked
    assert "replies reused from the stored run, 0 newly requested" in said.err
    assert not said.err.startswith("0 ")
    values = json.loads(said.out)["metrics"]["grounding"]["values"]
    assert values["answered_citation_f1"] == 0.0
    before = json.loads((old / "summary.json").read_text())["metrics"]["grounding"]["values"]
    assert before["answered_citation_f1"] == 100.0


def test_another_entailer_is_asked(cli: Cli, old: Path) -> None:
    said = cli("rescore", "old", "--entailer", "lexical", "--out", "new")
    assert said.status == 0
    assert json.loads((old.parent / "new" / "run.json").read_text())["backends"] == {
        "entailer": "lexical"
    }


def test_it_goes_on_like_any_other_run(cli: Cli, old: Path) -> None:
    first = cli("rescore", "old", "--out", "new", "--json")
    again = cli("rescore", "old", "--out", "new", "--json")
    assert again.status == 0
    assert again.out == first.out
    other = cli("rescore", "old", "--out", "new", "--metric", "grounding:threshold=0.9")
    assert other.status == 2
    assert "threshold was 0.5, now 0.9" in other.err


def test_a_run_that_was_stopped_early_can_be_rescored(cli: Cli, old: Path) -> None:
    (old / "summary.json").unlink()
    (old / "assessments.jsonl").unlink()
    assert cli("rescore", "old", "--out", "new").status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old", "--out", "old"], "holds the stored run; give the new run another folder (--out)"),
        (["nothing", "--out", "new"], "nothing: holds no run"),
        (["in.jsonl", "--out", "new"], "in.jsonl"),
        (["old", "--out", "in.jsonl"], "in.jsonl"),
        (["old", "--out", "new", "--metric", "groundin"], "did you mean grounding?"),
        (["old", "--out", "new", "--entailer", "lexikal"], "did you mean lexical?"),
        (["old"], "--out"),
    ],
)
def test_bad_arguments_are_2(cli: Cli, old: Path, arguments: list[str], words: str) -> None:
    said = cli("rescore", *arguments)
    assert said.status == 2
    assert words in said.err
    assert not (old.parent / "new").exists()
