"""``trustassay papers dataset`` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support import command, jsonl, killed_at_work, lines

SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve()
HALUEVAL = SHARED / "data" / "halueval" / "qa_data_first1000.json"

QUESTIONS: list[dict[str, Any]] = [
    {"id": "a", "question": "What do bees make?", "answers": [["honey", "mead"]]},
    {"id": "b", "question": "Where does the Nile flow?", "answers": ["north"]},
    {"id": "c", "question": "Who rules the bees?", "answers": ["wolves"]},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "bees.txt").write_text("What bees make is honey. A queen rules the bees.")
    (folder / "nile.md").write_text("The Nile does flow north, where the sea is.")
    return folder


def test_from_texts_to_a_score(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", QUESTIONS)
    said = cli(
        "papers", "dataset", "q.jsonl", "--corpus", corpus, "--out", "d.jsonl", "--documents", 2
    )
    assert said.status == 0
    assert "3 questions in d.jsonl, 2 of them answerable from 2 documents" in said.err
    rows = lines(tmp_path / "d.jsonl")
    assert [row["answerable"] for row in rows] == [True, True, False]
    assert rows[0]["documents"][0]["id"] == "bees.txt#1"
    answers = [row | {"response": f"They make {row['answers'][0][0]} [1]."} for row in rows]
    jsonl(tmp_path / "answers.jsonl", answers)
    said = cli("score", "answers.jsonl", "--metric", "grounding", "--out", "run", "--json")
    assert said.status == 0
    assert json.loads(said.out)["metrics"]["grounding"]["n"] == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--corpus", "nowhere"], "nowhere: no such file or folder"),
        (["--corpus", "empty"], "empty: contains no file that can be read"),
        (["--corpus", "bad.jsonl"], "bad.jsonl:1: text: is missing"),
        ([], "give either --corpus"),
        (["--corpus", "texts", "--retriever", "bm25:texts"], "give either --corpus"),
        (["--retriever", "bm52:texts"], "unknown retriever 'bm52'; did you mean bm25?"),
        (["--corpus", "texts", "--claims", "sentence"], "did you mean"),
        (["--corpus", "texts", "--claims", "model"], "claims=model needs a model"),
        (["--corpus", "texts", "--documents", "200"], "not more than candidates"),
        (["--corpus", "texts", "--entailer", "lexicon"], "did you mean"),
        (["--corpus", "texts", "--field", "answers=gold"], "no record has gold"),
    ],
)
def test_what_a_user_gets_wrong(
    cli: Cli, corpus: Path, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    jsonl(tmp_path / "q.jsonl", QUESTIONS)
    jsonl(tmp_path / "bad.jsonl", [{"id": "x"}])
    (tmp_path / "empty").mkdir()
    said = cli("papers", "dataset", "q.jsonl", "--out", "d.jsonl", *arguments)
    assert said.status == 2
    assert expected in said.err
    assert not (tmp_path / "d.jsonl").exists()


def test_faulty_questions(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    jsonl(tmp_path / "q.jsonl", [*QUESTIONS, {"question": "Why?"}])
    said = cli("papers", "dataset", "q.jsonl", "--corpus", corpus, "--out", "d.jsonl")
    assert said.status == 2
    assert "q.jsonl:4: answers: is missing (expected gold answers, or claims)" in said.err
    arguments = ("--corpus", corpus, "--out", "d.jsonl", "--skip-bad", "--documents", 1)
    assert cli("papers", "dataset", "q.jsonl", *arguments).status == 0
    assert len(lines(tmp_path / "d.jsonl")) == 3


SLOW = """
import time
def entails(premise, hypothesis):
    time.sleep(0.02)
    return "honey" in premise
"""


@pytest.mark.slow
def test_killed_at_work_and_started_again(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    rows = [
        QUESTIONS[0] | {"id": f"q{i}", "question": f"What do bees make in {i}?"} for i in range(120)
    ]
    jsonl(tmp_path / "q.jsonl", rows)
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path),
        "TRUSTASSAY_CACHE": "off",
    }

    def arguments(out: str) -> list[str]:
        options = ("--entailer", "python:slow:entails", "--documents", "1")
        return command("papers", "dataset", "q.jsonl", "--corpus", corpus, "--out", out, *options)

    part = tmp_path / ".d.jsonl.part"
    killed_at_work(arguments("d.jsonl"), part, cwd=tmp_path, **environment)
    with part.open("ab") as file:
        file.write(b'{"record": {"id":')
    for out in ("d.jsonl", "whole.jsonl"):
        done = subprocess.run(
            arguments(out), cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        assert (b"already done" in done.stderr) == (out == "d.jsonl")
    assert (tmp_path / "d.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(lines(tmp_path / "d.jsonl")) == 120


@pytest.mark.skipif(not HALUEVAL.exists(), reason=f"no {HALUEVAL}; set TRUSTASSAY_SHARED")
@pytest.mark.slow
def test_real_questions_find_their_passages(cli: Cli, tmp_path: Path) -> None:
    with HALUEVAL.open() as file:
        rows = [json.loads(line) for line in file]
    jsonl(tmp_path / "c.jsonl", [{"id": i, "text": r["knowledge"]} for i, r in enumerate(rows)])
    questions = [
        {"id": i, "question": r["question"], "answers": [r["right_answer"]]}
        for i, r in enumerate(rows[:40])
    ]
    jsonl(tmp_path / "q.jsonl", questions)
    said = cli("papers", "dataset", "q.jsonl", "--corpus", "c.jsonl", "--out", "d.jsonl")
    assert said.status == 0
    found = lines(tmp_path / "d.jsonl")
    hits = sum(row["id"] in {d["id"] for d in row["documents"]} for row in found)
    assert hits >= 38  # each question was written from the passage of its number
    assert sum(row["answerable"] for row in found) >= 20
