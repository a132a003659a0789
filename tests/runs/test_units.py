"""Which samples of a run are one unit of its intervals."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import jsonl, run_command
from trustassay import score
from trustassay.input.records import InputError
from trustassay.metrics import Reference
from trustassay.runs.folder import RunFolder
from trustassay.runs.units import read_units


def units(path: Path, rows: Sequence[Mapping[str, Any]], unit: str | None = None) -> list[int]:
    """Return the units of samples with these fields, numbered in the order in which they begin."""
    lines = [json.dumps({"id": str(n), **row}) for n, row in enumerate(rows)]
    (path / "samples.jsonl").write_text("\n".join(lines) + "\n")
    found = read_units(RunFolder(path), unit)
    if found is None:
        return [-1] * len(rows)
    order = {number: place for place, number in enumerate(dict.fromkeys(found[found >= 0]))}
    return [order[one] if one >= 0 else -1 for one in found.tolist()]


def asked(question: str, *texts: str, **fields: Any) -> dict[str, Any]:
    return {"question": question, "documents": [{"text": text} for text in texts], **fields}


def test_answers_to_a_question_are_one_unit(tmp_path: Path) -> None:
    rows = [asked("Who?"), asked("When?"), asked("who? "), asked("Where?"), asked("when?")]
    assert units(tmp_path, rows) == [0, 1, 0, -1, 1]


def test_questions_that_are_asked_once_are_units_by_themselves(tmp_path: Path) -> None:
    assert read_units(RunFolder(tmp_path), "answer") is None
    assert units(tmp_path, [asked("a"), asked("b")]) == [-1, -1]


def test_one_instruction_for_many_texts_is_not_one_question(tmp_path: Path) -> None:
    """The third shares a document with the first, and the fifth one with the third."""
    texts = [("one",), ("two",), ("three", "one"), ("four",), ("three",)]
    rows = [asked("Summarise this.", *some) for some in texts]
    assert units(tmp_path, rows) == [0, -1, 0, -1, 0]


def test_two_texts_of_one_instruction_are_two_units(tmp_path: Path) -> None:
    rows = [asked("Summarise this.", "one"), asked("Summarise this.", "two")]
    assert units(tmp_path, rows) == [-1, -1]


def test_a_question_with_an_answer_without_documents_is_one_unit(tmp_path: Path) -> None:
    rows = [asked("Who?", "one"), asked("Who?", "two"), asked("Who?", " ")]
    assert units(tmp_path, rows) == [0, 0, 0]


def test_a_field_says_what_belongs_together(tmp_path: Path) -> None:
    rows = [
        asked("a", metadata={"chat": 1}),
        asked("b", metadata={"chat": 1}),
        asked("c", chat=1),
        asked("d", chat=""),
        asked("e"),
    ]
    assert units(tmp_path, rows, "chat") == [0, 0, 0, -1, -1]


def many(questions: int, answers: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{q}-{a}",
            "question": f"What is {q}?",
            "response": f"It is {q}." if q % 3 else "No idea.",
            "answers": [str(q)],
        }
        for q in range(questions)
        for a in range(answers)
    ]


def test_a_run_counts_questions_and_says_so(tmp_path: Path) -> None:
    metric = Reference(parts="em+token_recall")
    run = score(many(50, 10), metrics=metric, out=tmp_path / "ten")
    one = score(many(50, 1), metrics=metric)
    ten = run.summaries["reference"]
    assert ten.support["token_recall"] == 500
    assert ten.units["token_recall"] == 50
    expected = one.summaries["reference"].intervals["token_recall"]
    assert ten.intervals["token_recall"] == pytest.approx(expected)
    assert "in 50 units" in (tmp_path / "ten" / "report.html").read_text() or run.report()
    again = score(many(50, 10), metrics=metric, unit="answer").summaries["reference"]
    assert again.units == {}
    low, high = again.intervals["token_recall"]
    assert high - low < 0.5 * (expected[1] - expected[0])


@pytest.mark.slow
def test_the_command_line_names_units_and_keeps_them(tmp_path: Path) -> None:
    rows = [{**row, "chat": row["id"].split("-")[1]} for row in many(6, 25)]
    file, run, chats = jsonl(tmp_path / "log.jsonl", rows), tmp_path / "run", tmp_path / "chats"

    def trustassay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = run_command(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done

    told = trustassay("score", file, "--metric", "reference:parts=em", "--out", run).stderr
    assert "units" in told and "6; at least" in told
    advice = "; score with --unit answer to take each answer as a unit"
    assert advice in " ".join(told.split())
    out = trustassay("rescore", run, "--out", chats, "--unit", "chat", "--json").stdout
    assert json.loads(out)["metrics"]["reference"]["units"]["em"] == 25
    assert json.loads((chats / "run.json").read_bytes())["unit"] == "chat"
    out = trustassay("rescore", chats, "--out", tmp_path / "kept", "--json").stdout
    assert json.loads(out)["metrics"]["reference"]["units"]["em"] == 25


def test_a_field_that_no_sample_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unit: no sample has the field 'chta'"):
        score(many(2, 2), metrics=Reference(parts="em"), unit="chta", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
