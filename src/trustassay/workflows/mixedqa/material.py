"""What MixedQA is made of: the questions, the models, and answers that are there already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import MODEL, Backends
from trustassay.capabilities import ChatModel, LocalChatModel
from trustassay.data.question_sets import QUESTION_SETS, QuestionFile, read_questions
from trustassay.data.reading import read_samples
from trustassay.data.records import Fault, InputError
from trustassay.errors import UsageError
from trustassay.runs.intake import BadInputError, Intake
from trustassay.runs.lines import encoded_sample
from trustassay.sample import Problem, Sample
from trustassay_papers.mixedqa.drawing import Recorded, key_of

__all__ = ["Chat", "Material", "read_material"]

Chat = ChatModel | LocalChatModel


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that is read before a model is asked; ``files`` counts records by file."""

    sources: Sequence[str]
    questions: Sequence[Sample]
    files: Sequence[Mapping[str, Any]]
    recorded: Recorded
    models: Mapping[str, Chat]

    @property
    def backends(self) -> Backends:
        """Return the models, under the names by which they are asked."""
        return Backends.of(chat={MODEL: self.models})

    def digest(self) -> str:
        """Return what tells these questions and recorded answers from others."""
        found = hashlib.sha256()
        for sample in self.questions:
            found.update(encoded_sample(sample))
        for name, answers in self.recorded.items():
            content = [name, *([key, one.response] for key, one in answers.items())]
            found.update(json.dumps(content).encode())
        return found.hexdigest()


def read_material(
    files: Sequence[QuestionFile],
    models: Sequence[resolve.ChatChoice],
    answers: Sequence[tuple[str, Path]],
    *,
    skip_bad: bool,
    step: Callable[[], None],
) -> Material:
    """Read and check everything; ``step`` is called for each question.

    Raises:
        BadInputError: records have faults, and ``skip_bad`` is off.
        InputError: a file cannot be read at all.
        BackendError, UnknownNameError: no such model.
        ValueError: no file, nobody who answers, or one name for two of them.
    """
    if not files:
        raise UsageError("name at least one file of questions")
    named: dict[str, Chat] = {}
    for choice in models:
        model = resolve.chat(choice)
        _new_name(model.name, named)
        named[model.name] = model
    intake = Intake()
    questions, counted = _questions(files, intake, step)
    recorded: dict[str, dict[str, Sample]] = {}
    for name, path in answers:
        _new_name(name, {**named, **recorded})
        recorded[name] = _answers(name, path, intake)
    if not (named or recorded):
        raise UsageError("name who answers: --model URI, or --answers NAME=FILE")
    if intake.faulty and not skip_bad:
        raise BadInputError(intake.faults, intake.faulty)
    given = {file.set.title for file in files}
    sources = [one.title for one in QUESTION_SETS.values() if one.title in given]
    return Material(sources, questions, counted, recorded, named)


def _new_name(name: str, known: Mapping[str, Any]) -> None:
    if name in known:
        raise UsageError(f"{name} is named twice; expected each model once")


def _questions(
    files: Sequence[QuestionFile], intake: Intake, step: Callable[[], None]
) -> tuple[list[Sample], list[dict[str, Any]]]:
    known: dict[str, str] = {}
    questions: list[Sample] = []
    counted = []
    for file in files:
        before, sound = intake.faulty, 0
        for record in read_questions(file):
            step()
            if isinstance(record, Fault):
                intake.note(record)
                continue
            sample = record.sample
            key = key_of(sample.question)
            if known.setdefault(sample.id, key) != key:
                words = f"{sample.id!r} is already used by another question of this split"
                intake.note(Fault(record.where, (Problem("id", words),)))
                continue
            questions.append(sample)
            sound += 1
        faulty = intake.faulty - before
        about = {"source": file.set.title, "split": file.split, "path": file.path}
        counted.append({**about, "questions": sound, "faulty": faulty})
    return questions, counted


def _answers(name: str, path: Path, intake: Intake) -> dict[str, Sample]:
    """Read the answers that a model gave: by question, each question once."""
    found: dict[str, Sample] = {}
    for record in read_samples(path):
        if isinstance(record, Fault):
            intake.note(record)
            continue
        if record.sample.model not in (None, name):
            continue
        key = key_of(record.sample.question)
        if key in found:
            words = f"{name} has answered it in an earlier record"
            intake.note(Fault(record.where, (Problem("question", words),)))
            continue
        found[key] = record.sample
    if not found:
        raise InputError(f"{path}: no record of the model {name}")
    return found
