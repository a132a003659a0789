"""What the weights ``ideal`` read: the labelled answers of a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import jsonl
from trustassay.papers.experiments.answers import RecordSelection, collect_answers, read_records

CHALE = {
    "Question": "q",
    "Short_ans": "short",
    "Long_ans": "long",
    "non-halu": "sound",
    "mid-halu": "half",
    "halu": "false",
}
GOLD = {"answers": [["gold"], ["other gold"]], "incorrect_answers": ["bad", "worse"]}


def labelled(text: str, label: int, **more: Any) -> dict[str, Any]:
    return {"id": text, "question": "q", "response": text, "label": label} | more


def lists_of(source: Path) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the right and the wrong answers that the samples list; all should be the same."""
    records = RecordSelection()
    answers = collect_answers(read_records(source, records), records, every=False)
    assert len(answers) > 1
    return {
        (tuple(text for aliases in one.sample.answers for text in aliases),
         one.sample.incorrect_answers)
        for one in answers
    }  # fmt: skip


def test_chale_lists_its_sound_answer_and_its_false_one(tmp_path: Path) -> None:
    (tmp_path / "chale.json").write_text(json.dumps({k: [v, v] for k, v in CHALE.items()}))
    assert lists_of(tmp_path / "chale.json") == {(("sound", "sound"), ("false", "false"))}


@pytest.mark.parametrize("half", ["mid-halu", "half-hallu"])
def test_half_wrong_records_are_neither(tmp_path: Path, half: str) -> None:
    rows = [
        labelled("sound", 1, kind="right"),
        labelled("half", 0, kind=half),
        labelled("false", 0, kind="hallu"),
    ]
    assert lists_of(jsonl(tmp_path / "rows.jsonl", rows)) == {(("sound",), ("false",))}


def test_labelled_records_without_kinds_keep_the_lists_that_they_have(tmp_path: Path) -> None:
    rows = [labelled("gold", 1), labelled("bad", 0)]
    assert lists_of(jsonl(tmp_path / "bare.jsonl", rows)) == {(("gold",), ("bad",))}
    listing = [row | GOLD for row in rows]
    expected = {(("gold", "other gold"), ("bad", "worse"))}
    assert lists_of(jsonl(tmp_path / "listing.jsonl", listing)) == expected


def test_a_question_lists_all_of_its_answers_though_two_are_compared(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "questions.jsonl", [{"id": "a", "question": "q"} | GOLD])
    assert lists_of(source) == {(("gold", "other gold"), ("bad", "worse"))}
