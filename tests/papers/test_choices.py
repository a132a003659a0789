"""Replies to questions with choices: our grader, the published one, and published outputs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from trustassay.errors import BackendError
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection, read_records
from trustassay.papers.experiments.choices import (
    FiveChoiceSetup,
    Grade,
    QuestionChoices,
    first_letter,
    grade_as_published,
    grade_reply,
    read_published_outputs,
    run_five_choice,
)

HALTT = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")).resolve() / "data" / "haltt4llm"
CHOICES = QuestionChoices(
    ("the river", "the sea", "the lake", "None of the above", "I don't know"), 0
)


@pytest.mark.parametrize(
    ("reply", "ours", "published"),
    [
        ("A. the river", Grade("right", 0), "right"),
        ("The river", Grade("right", 0), "right"),
        ("A. Rivers do.", Grade("right", 0), "wrong"),  # no space before its letter
        ("The answer is A.", Grade("right", 0), "right"),
        ("(A)", Grade("right", 0), "right"),
        ("B", Grade("wrong", 1), "wrong"),
        ("D.", Grade("wrong", 3), "unknown"),
        ("d", Grade("wrong", 3), "unknown"),
        ("E. I don't know", Grade("unknown", 4), "unknown"),
        ("E", Grade("unknown", 4), "wrong"),
        ("B. the sea, not the river", Grade("wrong", 1), "right"),  # the words are in it
        ("water", Grade("unreadable"), "wrong"),
        ("", Grade("unreadable"), "wrong"),
        ("A or B", Grade("unreadable"), "wrong"),
    ],
)
def test_replies_are_graded_in_two_ways(reply: str, ours: Grade, published: str) -> None:
    assert grade_reply(reply, CHOICES) == ours
    assert grade_as_published(reply, CHOICES) == published


def test_shuffled_choices_keep_the_right_one() -> None:
    shown = CHOICES.shuffle([2, 0, 4, 1, 3])
    assert shown.texts[:2] == ("the lake", "the river")
    assert shown.right == 1
    assert grade_reply("B", shown).verdict == "right"
    assert grade_reply("C", shown).verdict == "unknown"


def test_a_letter_is_first_as_a_label_alone() -> None:
    assert [first_letter(one) for one in ("A. x", " (B) x", "C: x", "A river", "a. x")] == [
        "A", "B", "C", None, None,
    ]  # fmt: skip


QUESTIONS = """[{"question": "What flows? ", "answers": [
{"text": "", "correct": true, "choice": "A"}, {"text": "sea", "correct": false, "choice": "B"},
{"text": "I don't know", "correct": false, "choice": "C"}]},
{"question": "What burns?", "answers": [
{"text": "wood", "correct": true, "choice": "A"}, {"text": "ice", "correct": false, "choice": "B"},
{"text": "I don't know", "correct": false, "choice": "C"}]}]"""
RESULTS = """Total score: 1 of 4

Incorrect: 1
Question 1: What flows?{trail}
    A.{trail}
    B. sea
    C. I don't know
B. sea
 and more (incorrect A.)

Unknown: 1
Question 2: What burns?
    A. wood
    B. ice
    C. I don't know
I don't know (uncertain)

Question 9: What is beyond the questions?
"""


def test_published_outputs_are_read_by_their_blocks(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(QUESTIONS)
    questions = read_records(tmp_path / "questions.json", RecordSelection())
    path = tmp_path / "results.txt"
    path.write_text(RESULTS.replace("{trail}", " "))
    found = read_published_outputs(path, questions)
    assert {place: tuple(one) for place, one in found.items()} == {
        0: ("B. sea\n and more", "wrong"), 1: ("I don't know", "unknown"),
    }  # fmt: skip
    path.write_text(RESULTS.replace("What burns", "What cools"))
    with pytest.raises(InputError, match="question 2 differs from the input's"):
        read_published_outputs(path, questions)
    path.write_text(RESULTS.replace("(uncertain)", ""))
    with pytest.raises(InputError, match="question 2: expected '"):
        read_published_outputs(path, questions)
    with pytest.raises(InputError, match="begin with 'Total score:'"):
        read_published_outputs(tmp_path / "questions.json", questions)


PUBLISHED = {  # right, unknown, first letter A; computed from the files by other means
    "text-davinci-003": (142, 246, 143),
    "text-davinci-002": (220, 7, 222),
    "alpaca-lora-4bit": (196, 1, 199),
    "gpt4all-4bit": (582, 8, 661),
    "llama-4bit": (614, 3, 648),
}


def test_no_model_is_asked_before_all_are_checked(tmp_path: Path) -> None:
    """The first model would be asked all questions before the second one is loaded."""
    setup = FiveChoiceSetup(models=[f"replay:{tmp_path}/none.jsonl", f"gguf:{tmp_path}/none.gguf"])
    (tmp_path / "q.json").write_text(QUESTIONS)
    with pytest.raises(BackendError, match=r"none\.gguf: there is no such file"):
        asyncio.run(run_five_choice(tmp_path / "q.json", tmp_path, setup, RecordSelection()))
    assert not (tmp_path / "model-1").exists()


@pytest.mark.skipif(not HALTT.exists(), reason="haltt4llm's files are not there")
def test_counts_of_the_published_outputs(tmp_path: Path) -> None:
    name = "test_results_truthfulqa_trivia_questions.json_{}.txt"
    outputs = {model: HALTT / name.format(model) for model in PUBLISHED}
    source = HALTT / "truthfulqa_trivia_questions.json"
    result = asyncio.run(
        run_five_choice(source, tmp_path, FiveChoiceSetup(outputs=outputs), RecordSelection())
    )
    rows = {row["name"]: row for row in result.to_dict()["rows"]}
    for model, (right, unknown, first) in PUBLISHED.items():
        row = rows[model]
        assert row["n"] == 737
        assert row["right (published)"]["count"] == right
        assert row["unknown (published)"]["count"] == unknown
        assert row["first letter A"]["count"] == first
    assert rows["text-davinci-003"]["right"]["count"] == 143
    assert rows["always the first choice of the input"]["right"]["count"] == 737
