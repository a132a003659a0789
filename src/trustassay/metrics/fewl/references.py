"""Whose answers count as references of a sample, and why others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trustassay.metrics.grounding.refusal import refuses_outright
from trustassay.sample import Sample, is_blank

__all__ = ["Absent", "Key", "Reference", "answers_of", "blank", "counted", "silent", "subject_of"]

Key = tuple[str, int]
"""Who answers throughout a file: a name, and which of its answers, from 1; a pair of both, since
a name may look like another one with a number."""


class Reference(NamedTuple):
    """One answer of a reference.

    name and number: who it is, and which of a model's several answers. silent: why it is no
    answer, if it is none.
    """

    name: str
    number: int
    text: str
    silent: str = ""

    @property
    def key(self) -> Key:
        """Who it is throughout a file."""
        return self.name, self.number

    @property
    def shown(self) -> str:
        """The name as people read it; a model's first answer has no number."""
        return self.name if self.number == 1 else f"{self.name} {self.number}"


class Absent(NamedTuple):
    """A reference that does not count for a sample, and why."""

    shown: str
    why: str


def answers_of(references: Mapping[str, tuple[str, ...]], *, drop: bool) -> list[Reference]:
    """Return the answers of references; one model's several answers are numbered from 1.

    drop: an answer that declines is silent.
    """
    return [
        Reference(name, number, text, silent(text, drop=drop))
        for name, texts in references.items()
        for number, text in enumerate(texts, 1)
    ]


def counted(
    sample: Sample, expected: Iterable[str], *, drop: bool
) -> tuple[list[Reference], list[Absent]]:
    """Return the references of a sample that count, and the others with the reason.

    ``expected`` are the names that should be there; ``drop``: one that declines does not
    count. The model under assessment is not its own reference.
    """
    present, absent = [], []
    for one in answers_of(sample.references, drop=drop):
        if one.name == sample.model:
            absent.append(Absent(one.shown, "is the model under assessment"))
        elif one.silent:
            absent.append(Absent(one.shown, one.silent))
        else:
            present.append(one)
    answered = {name for name, texts in sample.references.items() if texts}
    missing = sorted({*expected, *sample.references} - answered - {sample.model})
    return present, [*absent, *(Absent(name, "gave no answer") for name in missing)]


def silent(text: str, *, drop: bool = True) -> str:
    """Return why a text is no answer: it is blank or, to ``drop``, a refusal in English; empty for
    an answer.
    """
    if is_blank(text):
        return "gave an empty answer"
    return "refused to answer" if drop and refuses_outright(text) else ""


def blank(text: str | None) -> bool:
    """Whether a text says nothing."""
    return text is None or is_blank(text)


def subject_of(sample: Sample) -> Key:
    """Return as whom the answer under assessment agrees with references: its model, if known."""
    return (sample.model, 1) if sample.model else ("", 0)
