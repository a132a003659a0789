"""``trustassay papers distractors`` as a user meets it."""

from __future__ import annotations

import json
import re
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
    assert "no distractors: not assessable" in said.out
    assert "\x1b" not in said.out and "<U+001B>" in said.out
    assert "4 distractors for 2 answers" in said.err
    assert "not assessable: 1 answer with fewer than 3 distractors" in said.err


def test_json_lines_for_programs_and_a_file(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", RECORDS)
    said = cli("papers", "distractors", "a.jsonl", *SOURCE, "--most", "2", "--json")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [len(row["distractors"]) for row in rows] == [2, 0]
    written = cli("papers", "distractors", "a.jsonl", *SOURCE, "--most", "2", "--out", "d.jsonl")
    assert written.status == 0 and not written.out
    assert lines(tmp_path / "d.jsonl") == rows
    assert "2 distractors for 2 answers in d.jsonl" in written.err


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
    output = cli("papers", "distractors", "a.jsonl", *SOURCE, "--backend", linker)
    assert output.status == 1
    assert "0 distractors for 4 answers" in output.err and "failed: 4" in output.err
    errors = {line.split(": ", 1)[1] for line in output.err.splitlines() if line.startswith("  ")}
    (error,) = errors
    assert error.startswith(f"DBpedia Spotlight at {port}: no connection")
    assert "try again later, or give another address as spotlight:URL" in error
    assert "no other reply came for 1 s" in error


def test_algorithm_paper_replaces_years_by_years_with_the_built_in_sources(
    cli: Cli, tmp_path: Path
) -> None:
    answers = ["It came out in 1983.", "A spider has 8 legs.", "About 139,000 live there."]
    records = [{"id": str(i), "question": "what", "response": a} for i, a in enumerate(answers)]
    jsonl(tmp_path / "a.jsonl", records)
    output = cli(
        "papers", "distractors", "a.jsonl", "--algorithm", "paper", "--most", "8", "--json"
    )
    forms = {"1983": "19[0-9]{2}|200[0-3]", "8": "[02-79]", "139,000": "[0-9]{2,3},000"}
    by_number = [
        one for line in output.out.splitlines() for one in json.loads(line)["distractors"]
        if one["replaced"] in forms
    ]  # fmt: skip
    assert {one["replaced"] for one in by_number} == set(forms)
    for one in by_number:
        assert re.fullmatch(forms[one["replaced"]], one["replacement"]), one
