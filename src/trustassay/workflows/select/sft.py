"""The best answer of each question, split in two, as files to fine-tune with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trustassay.answering import OWN_PROMPT
from trustassay.files import whole
from trustassay.runs.lines import encoded_sample
from trustassay_papers.select.answers import (
    SCORE,
    TEST_SHARE,
    Answers,
    Example,
    chat_record,
    choose_targets,
    read_answers,
    split,
    tied,
)

__all__ = ["QUESTIONS", "TEST", "TRAIN", "Targets", "select_sft", "write_targets"]

TRAIN, TEST, QUESTIONS = "train.jsonl", "test.jsonl", "test_questions.jsonl"


@dataclass(slots=True)
class Targets:
    """What was written: questions to train on and to test with.

    ties: of both, those with another answer of the same value.
    """

    answers: Answers
    train: int
    test: int
    ties: int


def select_sft(
    run: Path,
    out: Path,
    *,
    by: str = SCORE,
    metric: str | None = None,
    test_share: float = TEST_SHARE,
    seed: int = 0,
) -> Targets:
    """Write the best answer of each question of a finished run into the folder ``out``.

    ``train.jsonl`` and ``test.jsonl`` are in the chat format; ``test_questions.jsonl`` has the
    questions of the latter for ``generate``, each to be asked as it was trained on, by itself.

    Args:
        by: a way of choosing, as of :mod:`~trustassay_papers.select.answers`.

    Raises:
        RunFolderError, UnknownNameError, ValueError: as :func:`read_answers` and :func:`split`.
    """
    answers = read_answers(run, [by], metric=metric)
    train, test = split(choose_targets(answers.questions, by), test_share, seed)
    write_targets(out, train, test)
    ties = sum(tied(question, by) for question in answers.questions)
    return Targets(answers, len(train), len(test), ties)


def write_targets(out: Path, train: Sequence[Example], test: Sequence[Example]) -> None:
    """Write the three files of :func:`select_sft` into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    _write(out / TRAIN, map(chat_record, train))
    _write(out / TEST, map(chat_record, test))
    with whole(out / QUESTIONS) as file:
        file.writelines(map(_question, test))


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with whole(path) as file:
        for record in records:
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


def _question(example: Example) -> bytes:
    """Return the line of a question without the answer and what describes the answer."""
    sample = replace(
        example.sample,
        response=None,
        model=None,
        label=None,
        resamples=(),
        metadata={OWN_PROMPT: example.question},
    )
    return encoded_sample(sample)
