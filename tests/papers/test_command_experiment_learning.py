"""``trustassay papers experiment fewl-icl`` through the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support import QUICK, jsonl
from trustassay.cli.main import app

TOWNS = ("Oslo", "Quebec", "Lima", "Cairo", "Delhi", "Fez")
RIVERS = ("Tigris", "Amur", "Ebro", "Nyx", "Volga", "Po")
LEARNER = """
import re

def model(prompt):
    return "a long answer" if re.search(r"^Answer: .", prompt, re.M) else "no"

def judge(prompt):
    found = re.search(r"Reply A =+\\n(.*?)\\n=+ Reply B =+\\n(.*?)\\n=+ end", prompt, re.S)
    a, b = map(len, found.groups())
    return "A" if a > b else "B" if b > a else "C"
"""


def test_from_answers_to_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("learner", "quick"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    (tmp_path / "learner.py").write_text(LEARNER)
    (tmp_path / "quick.py").write_text(QUICK)
    rows = [
        {
            "id": f"{i}-{text}",
            "question": f"what is thing {i}",
            "response": text,
            "label": int(text == town),
            "references": {"liar": river, "one": town, "two": town},
        }
        for i, (town, river) in enumerate(zip(TOWNS, RIVERS, strict=True))
        for text in (river, town)
    ]
    source = jsonl(tmp_path / "answers.jsonl", rows)
    arguments = [
        "papers",
        "experiment",
        "fewl-icl",
        str(source),
        "--backend",
        "similarity=novel",
        "--examples",
        "2",
    ]
    arguments += ["--embedder", "python:quick:embedder", "--model", "python:learner:model"]
    arguments += ["--judge", "python:learner:judge", "--out", "out", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    found = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(found) == [
        "baseline against vanilla",
        "FEWL against vanilla",
        "labels against vanilla",
        "FEWL against baseline",
    ]
    assert found["FEWL against vanilla"]["won, %"]["value"] == 100
    assert found["FEWL against baseline"]["tied, %"]["value"] == 100
    assert "| FEWL against vanilla | 100.0 |" in (tmp_path / "out" / "experiment.md").read_text()
    refused = CliRunner().invoke(app, [*arguments, "--single", "nobody"])
    assert refused.exit_code == 2
    assert "unknown reference 'nobody'" in " ".join(refused.stderr.split())
