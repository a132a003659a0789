"""``trustassay papers distractors`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.support import jsonl, lines

SOURCE = ("--source", "mine=python:tests.papers.test_distractor_sets:LISTED")
RECORDS = [
    {"id": "a", "question": "who wrote it", "response": "Jane wrote it."},
    {"id": "b", "question": "? \x1b[31m", "response": "..."},
]


def test_they_are_shown_to_people(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", RECORDS)
    said = cli("papers", "distractors", "a.jsonl", *SOURCE)
    assert said.status == 0
    assert "    Jane -> Anna  (level 1, mine)" in said.out
    assert "none: not assessable" in said.out
    assert "\x1b" not in said.out and "<U+001B>" in said.out
    assert "4 distractors of 2 answers" in said.err
    assert "1 answers have fewer than 3 distractors: not assessable" in said.err


def test_json_lines_for_programs_and_a_file(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", RECORDS)
    said = cli("papers", "distractors", "a.jsonl", *SOURCE, "--most", "2", "--json")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [len(row["distractors"]) for row in rows] == [2, 0]
    written = cli("papers", "distractors", "a.jsonl", *SOURCE, "--most", "2", "--out", "d.jsonl")
    assert written.status == 0 and not written.out
    assert lines(tmp_path / "d.jsonl") == rows
    assert "2 distractors of 2 answers in d.jsonl" in written.err


def test_mistakes_are_explained_before_anything_is_done(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", RECORDS)
    for arguments, words in (
        (("--source", "embeding"), "did you mean embedding"),
        (("--source", "word2vec:none.bin"), "none.bin: cannot be read"),
        (("--source", "llm"), "name one with --backend generator=URI"),
        ((*SOURCE, "--backend", "linker=spacy:none"), "spacy:none"),
    ):
        said = cli("papers", "distractors", "a.jsonl", *arguments, "--out", "d.jsonl")
        assert words in said.err, said.err
        assert said.status in (1, 2)
    assert not (tmp_path / "d.jsonl").exists() or not lines(tmp_path / "d.jsonl")


def test_a_service_that_is_down_is_named_once_in_the_same_words(cli: Cli, tmp_path: Path) -> None:
    records = [RECORDS[0] | {"id": str(i)} for i in range(4)]
    jsonl(tmp_path / "a.jsonl", [row | {"response": f"Jane {row['id']}."} for row in records])
    port = "http://127.0.0.1:1"
    linker = f"linker=spotlight:{port}?patience=1"
    said = cli("papers", "distractors", "a.jsonl", *SOURCE, "--backend", linker)
    assert said.status == 1
    assert "0 distractors of 4 answers" in said.err and "failed: 4" in said.err
    errors = {line.split(": ", 1)[1] for line in said.err.splitlines() if line.startswith("  ")}
    (error,) = errors
    assert error.startswith(f"DBpedia Spotlight at {port}: no connection")
    assert "try later, or name another address by spotlight:URL" in error
    assert "no other reply came for 1 s" in error
