"""``trustassay papers cite`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support import command, jsonl, killed_at_work, lines, run_command

DOCUMENTS = [
    "The harbour bridge was opened in 1932.",
    {"title": "Bees", "text": "Bees make honey from nectar."},
    "The harbour bridge was opened in 1932.",
]


def answer(response: str, **others: Any) -> dict[str, Any]:
    return {"id": "a", "question": "?", "response": response, "documents": DOCUMENTS, **others}


def responses(path: Path) -> list[str]:
    return [row["response"] for row in lines(path)]


@pytest.mark.parametrize("by", ["entailment", "bm25", "embedding"])
def test_each_sentence_gets_the_document_that_supports_it(
    cli: Cli, tmp_path: Path, by: str
) -> None:
    text = "The bridge was opened in 1932. Bees make honey! Xylophones zigzag quietly."
    jsonl(tmp_path / "a.jsonl", [answer(text)])
    said = cli("papers", "cite", "a.jsonl", "--by", by, "--out", "c.jsonl")
    assert said.status == 0
    expected = "The bridge was opened in 1932 [1]. Bees make honey [2]! Xylophones zigzag quietly."
    assert responses(tmp_path / "c.jsonl") == [expected]
    assert "1 answer in c.jsonl, 2 citations added" in said.err
    assert "1 sentence without support" in said.err


def test_what_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    rows = [
        answer("I could not find an answer. I am sorry."),
        answer("Bees make honey [3]. Bees make honey.", id="b"),
        answer("Bees make honey.", id="c", documents=[]),
        answer("", id="d", extra="kept"),
    ]
    jsonl(tmp_path / "a.jsonl", rows)
    assert cli("papers", "cite", "a.jsonl", "--out", "c.jsonl", "--only-uncited").status == 0
    assert responses(tmp_path / "c.jsonl") == [row["response"] for row in rows]
    assert lines(tmp_path / "c.jsonl")[3]["extra"] == "kept"
    assert cli("papers", "cite", "a.jsonl", "--out", "c.jsonl").status == 0
    assert responses(tmp_path / "c.jsonl")[1] == "Bees make honey [3]. Bees make honey [2]."


def test_what_an_answer_tells_beside_what_it_declines_is_cited(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [answer("I could not find his name. Bees make honey.")])
    cli("papers", "cite", "a.jsonl", "--out", "c.jsonl")
    assert responses(tmp_path / "c.jsonl") == ["I could not find his name. Bees make honey [2]."]


def test_the_threshold_decides(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [answer("Bees make honey.")])
    cli("papers", "cite", "a.jsonl", "--out", "c.jsonl", "--threshold", "0.99")
    assert responses(tmp_path / "c.jsonl") == ["Bees make honey."]


def test_what_was_cited_scores_better(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [answer("Bees make honey. The bridge was opened in 1932.")])
    cli("papers", "cite", "a.jsonl", "--out", "c.jsonl")
    recall = {}
    for name in ("a", "c"):
        said = cli("score", f"{name}.jsonl", "--metric", "grounding", "--out", name, "--json")
        summary = json.loads(said.out)["metrics"]["grounding"]["values"]
        recall[name] = summary["regular_citation_rec"]
    assert recall == {"a": 0, "c": 100}


FAILING = """
from trustassay.errors import BackendError
def entails(premise, hypothesis):
    if "trouble" in hypothesis:
        raise BackendError("no idea")
    return True
"""


def test_an_answer_that_cannot_be_judged_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_entailer.py").write_text(FAILING)
    monkeypatch.syspath_prepend(tmp_path)
    jsonl(tmp_path / "a.jsonl", [answer("It is trouble."), answer("It is windy.", id="b")])
    uri = "python:failing_entailer:entails"
    said = cli("papers", "cite", "a.jsonl", "--entailer", uri, "--out", "c.jsonl")
    assert said.status == 0
    assert "a: " in said.err
    assert "no idea" in said.err
    assert responses(tmp_path / "c.jsonl") == ["It is windy [1]."]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--by", "entailments"], "did you mean"),
        (["--threshold", "50"], "threshold: expected 0 to 1, got 50"),
        (["--entailer", "lexicon"], "did you mean"),
        (["--field", "response=reply"], "no record has reply"),
    ],
)
def test_what_a_user_gets_wrong(
    cli: Cli, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    jsonl(tmp_path / "a.jsonl", [answer("Bees make honey.")])
    said = cli("papers", "cite", "a.jsonl", "--out", "c.jsonl", *arguments)
    assert said.status == 2
    assert expected in said.err
    assert not (tmp_path / "c.jsonl").exists()


def test_faulty_answers(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", [{"question": "?", "response": "x"}, {"question": "?"}])
    said = cli("papers", "cite", "a.jsonl", "--out", "c.jsonl")
    assert said.status == 2
    assert "a.jsonl:1 and 1 more: documents: is missing" in said.err
    assert "a.jsonl:2: response: is missing" in said.err


SLOW = """
import time
def entails(premise, hypothesis):
    time.sleep(0.01)
    if hypothesis.startswith("Break") and not __import__("os").environ.get("MENDED"):
        raise RuntimeError("broken")
    return float("bridge" in premise and "bridge" in hypothesis)
"""


@pytest.mark.slow
def test_killed_at_work_and_started_again_then_what_failed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    rows = [
        answer(f"The bridge has {i} arches. Bees hum {i} songs.") | {"id": i} for i in range(200)
    ]
    rows[70]["response"] = "Break the bridge."
    jsonl(tmp_path / "a.jsonl", rows)
    options = ("--entailer", "python:slow:entails")

    def ended(out: str, status: int, **environment: str) -> str:
        done = run_command(
            "papers",
            "cite",
            "a.jsonl",
            "--out",
            out,
            *options,
            cwd=tmp_path,
            **found,
            **environment,
        )
        assert done.returncode == status, done.stderr
        return done.stderr

    found = {"PYTHONPATH": str(tmp_path)}
    part = tmp_path / ".c.jsonl.part"
    arguments = command("papers", "cite", "a.jsonl", "--out", "c.jsonl", *options)
    killed_at_work(arguments, part, cwd=tmp_path, **found)
    said = ended("c.jsonl", 0)
    assert "already done" in said
    assert "70: " in said
    assert len(lines(tmp_path / "c.jsonl")) == 199
    said = ended("c.jsonl", 0, MENDED="1")
    assert "199 answers already done" in said
    assert "already done" not in ended("whole.jsonl", 0, MENDED="1")
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert responses(tmp_path / "c.jsonl")[1] == "The bridge has 1 arches [1]. Bees hum 1 songs."
    assert not part.exists()
