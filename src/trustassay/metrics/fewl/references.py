"""Whose answers count as references of a sample, and why others do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trustassay.metrics.grounding.refusal import refuses_in_words
from trustassay.sample import Sample, is_blank

__all__ = ["Absent", "Reference", "answers_of", "blank", "counted", "silent", "subject_of"]

_DECLINES = re.compile(
    r"\W*(?:(?:i['’]m|i am|we are) sorry\b|sorry\b|i apologi[sz]e\b|as an ai\b"
    r"|(?:i|we) (?:cannot|can['’]t|can not|could not|couldn['’]t|won['’]t|am unable|are unable)\b)",
    re.IGNORECASE,
)


class Reference(NamedTuple):
    """One answer of a reference.

    key: who it is throughout a file: the name, and a number where a model gave several answers.
    silent: why it is no answer, if it is none.
    """

    key: str
    name: str
    text: str
    silent: str = ""


class Absent(NamedTuple):
    """A reference that does not count for a sample, and why."""

    key: str
    why: str


def answers_of(references: Mapping[str, tuple[str, ...]]) -> list[Reference]:
    """Return the answers of references; one model's several answers are numbered from 1."""
    return [
        Reference(name if len(texts) == 1 else f"{name} {number}", name, text, silent(text))
        for name, texts in references.items()
        for number, text in enumerate(texts, 1)
    ]


def counted(sample: Sample, expected: Iterable[str]) -> tuple[list[Reference], list[Absent]]:
    """Return the references of a sample that count, and the others with the reason.

    ``expected`` are the names that should be there. The model under assessment is not its own
    reference.
    """
    present, absent = [], []
    for one in answers_of(sample.references):
        if one.name == sample.model:
            absent.append(Absent(one.key, "is the model under assessment"))
        elif one.silent:
            absent.append(Absent(one.key, one.silent))
        else:
            present.append(one)
    missing = sorted({*expected} - {*sample.references} - {sample.model})
    return present, [*absent, *(Absent(name, "gave no answer") for name in missing)]


def silent(text: str) -> str:
    """Return why a text is no answer: blank, or a refusal in English; empty for an answer."""
    if is_blank(text):
        return "gave an empty answer"
    return "refused to answer" if _DECLINES.match(text) or refuses_in_words(text) else ""


def blank(text: str | None) -> bool:
    """Whether a text says nothing."""
    return text is None or is_blank(text)


def subject_of(sample: Sample) -> str:
    """Return as whom the answer under assessment agrees with references: its model."""
    return sample.model or "the answers"
