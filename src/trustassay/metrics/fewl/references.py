"""Whose answers count as references of a sample, and what they say when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from trustassay.capabilities import Models
from trustassay.errors import AssessmentError
from trustassay.metrics.fewl.evidence import Absent
from trustassay.metrics.grounding.refusal import refuses_outright
from trustassay.prompts import shipped
from trustassay.prose import Prose, plain
from trustassay.sample import Sample, is_blank

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


LONGEST = 8
"""Tokens of a reply."""


class _YesOrNo(Prose):
    approved = r"(?:it|they|he|she|both) (?:do|is|are|did)"


async def says_same(
    reference: Reference, statements: Sequence[str], question: str, models: Models
) -> list[float]:
    """Return 1 or 0 for every statement; a reply that is neither yes nor no is left out.

    Raises:
        AssessmentError: the run has no model of the reference's name to ask.
        BackendError: a call failed.
    """
    if reference.name not in models.names("references"):
        raise AssessmentError(
            f"expertise=ask: {reference.name!r} is no model of this run; expected it as a "
            f"reference ({reference.name}=URI), or expertise=similarity"
        )
    prompt = shipped(__package__, "same-answer")
    replies = await asyncio.gather(
        *(
            models.chat(
                prompt.filled(question=question, answer=reference.text, statement=statement),
                role="references",
                name=reference.name,
                max_tokens=LONGEST,
                prompt=prompt.name,
            )
            for statement in statements
        )
    )
    read = (yes_or_no(reply.text) for reply in replies)
    return [float(one) for one in read if one is not None]


def yes_or_no(text: str) -> bool | None:
    """Return which of both a reply names; ``None`` where it names neither, or both."""
    found = _yes_or_no().read(plain(text))
    return None if len(found) != 1 else "yes" in found


@cache
def _yes_or_no() -> Prose:
    return _YesOrNo({"yes": "yes", "no": "no"}, ("answer",))
