"""A newcomer's file on the command line: what cannot be told, and standard input."""

import io
import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, summary_of

LEXICAL = ("--entailer", "lexical")
ROW = {"Prompt": "Which river?", "Reply": "The Tagus.", "Sources": ["The Tagus flows."]}


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_the_command_that_is_proposed_works(cli: Cli, tmp_path: Path, name: str) -> None:
    jsonl(tmp_path / "log.jsonl", [ROW | {"n": n} for n in range(42)])
    (tmp_path / "log.csv").write_text("Prompt,Reply,Sources\n" + "Q?,A.,p\n" * 42)
    said = cli("score", name, *LEXICAL, "--out", "my run")
    assert said.status == 2
    assert "found the fields Prompt, Reply, Sources" in said.err
    assert said.err.count("question: is missing") <= 1
    [line] = [line for line in said.err.splitlines() if line.startswith("  trustassay score")]
    again = cli(*shlex.split(line)[1:])
    assert again.status == 0, again.err
    assert summary_of(tmp_path / "my run")["metrics"]["faithfulness"]["n"] == 42


def test_questions_and_answers_alone_are_told_what_they_lack(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"question": "Q?", "answer": "A."}] * 9)
    said = cli("score", "log.jsonl", *LEXICAL)
    assert said.status == 2
    assert "log.jsonl:1 and 8 more: response: is missing" in said.err
    assert "  trustassay score log.jsonl --entailer lexical --field response=answer\n" in said.err
    assert "documents=" not in said.err
    assert "give --retriever" in said.err


def test_without_a_guess_the_name_is_left_open(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"a": "Q?", "b": "A."}])
    said = cli("score", "log.jsonl")
    assert "metric grounding: no sample can be read" in said.err
    assert "each NAME stands for one of these fields" in said.err
    assert "--field question=NAME" in said.err


def test_standard_input_is_scored_and_scored_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"question": "Q?", "answer": f"A{n}.", "context": "A0."} for n in range(3)]
    for _ in range(2):
        piped(monkeypatch, "\n".join(map(json.dumps, rows)))
        assert cli("score", "-", *LEXICAL).status == 0
    [run] = (tmp_path / "trustassay-runs").iterdir()
    assert run.name.startswith("stdin-")
    piped(monkeypatch, json.dumps(rows[:1]))
    assert cli("score", "-", *LEXICAL, "--out", str(run)).status == 2  # another input's folder
    piped(monkeypatch, json.dumps({"question": "Q?"}) + "\n[")
    said = cli("score", "-", *LEXICAL)
    assert "standard input:2: column" in said.err


def test_standard_input_cannot_be_watched(cli: Cli) -> None:
    options = ("--metric", "faithfulness", "--threshold", "0.5", "--out", "w", *LEXICAL)
    said = cli("watch", "-", *options)
    assert said.status == 2
    assert "standard input cannot be watched; expected a file that grows" in said.err
