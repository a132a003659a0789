"""Evidence of the fact check, and its view: the statement, and what each passage says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trustassay.views import EvidenceRow, Mark, Rows

_DECIDES = {
    "support": Mark("good", "✓", "supports the answer"),
    "contradict": Mark("bad", "✕", "contradicts the answer"),
}
_SHOWN = Mark("none", "○", "shown to the judge")
_FAILED = Mark("none", "○", "not judged")
_JUDGED = Mark("none", "○", "does not decide")
_REPLIES = {**_DECIDES, "neutral": Mark("none", "○", "leaves the answer open")}


@dataclass(frozen=True, slots=True)
class Statement(EvidenceRow):
    """What passages were searched with, if ``retrieved``, and what they were to entail."""

    row_kind = "statement"
    told_by = ("text",)

    text: str
    retrieved: bool
    hypothesis: str = ""


@dataclass(frozen=True, slots=True)
class JudgeReply(EvidenceRow):
    """What the judge said of all passages, and its verdict."""

    row_kind = "reply"
    told_by = ("text",)

    text: str
    verdict: str

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        return _REPLIES.get(self.verdict, _REPLIES["neutral"])


@dataclass(frozen=True, slots=True)
class Passage(EvidenceRow):
    """A passage, and what it says of the answer.

    number: counts from 1. title, text: ``None`` of a document of the sample, which has them.
    error: why it could not be judged. entailment, neutral, contradiction: ``None`` where it was not
    judged by itself. decides: the verdict that it decides.
    """

    row_kind = "passage"
    told_by = ("number",)

    number: int
    id: str
    title: str | None = None
    text: str | None = None
    error: str = ""
    entailment: float | None = None
    neutral: float | None = None
    contradiction: float | None = None
    decides: str = ""

    @property
    def mark(self) -> Mark:
        """What it says, for the report."""
        usual = _FAILED if self.error else _SHOWN if self.entailment is None else _JUDGED
        return _DECIDES.get(self.decides, usual)


@dataclass(frozen=True, slots=True)
class Facts:
    """All evidence of a fact check: the statement, the judge's reply if one was asked for, and the
    passages; ``rest`` is evidence of any other kind.
    """

    statement: Statement | None
    reply: JudgeReply | None
    passages: Sequence[Passage]
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> Facts:
        """Read the evidence of a sample that has so many documents."""
        rows = Rows(evidence, Statement, JudgeReply, Passage)
        statements, replies = rows.of(Statement), rows.of(JudgeReply)
        passages = [
            one if 1 <= one.number <= documents else replace(one, text=one.text or "")
            for one in rows.of(Passage)
        ]
        last = statements[-1] if statements else None
        return cls(last, replies[-1] if replies else None, passages, rows.rest)
