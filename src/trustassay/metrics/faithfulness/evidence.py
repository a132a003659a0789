"""Evidence of faithfulness, and its view: each sentence, its verdict, and what decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trustassay.metrics.grounding.evidence import Refusal
from trustassay.views import EvidenceRow, Mark, Rows

_MARKS = {
    "supported": Mark("good", "✓", "supported"),
    "not found": Mark("bad", "✕", "not found in the passages"),
    "contradicted": Mark("bad", "✕", "contradicted"),
    "no claim": Mark("none", "○", "claims nothing"),
}
_NOT_JUDGED = Mark("none", "○", "not judged")


@dataclass(frozen=True, slots=True)
class Statement(EvidenceRow, row_kind="statement", told_by=("text",)):
    """One sentence or claim.

    passages: the numbers, from 1, of those that decide; quote: their words. hypothesis: what was
    judged, if not the text. missing: words that no passage holds, or those that decide lack. first:
    the first reader's probability of entailment, where a second one read the statement, too.
    """

    text: str
    verdict: str
    hypothesis: str | None = None
    entailment: float | None = None
    contradiction: float | None = None
    why: str = ""
    passages: Sequence[int] | None = None
    quote: str | None = None
    missing: Sequence[str] | None = None
    borderline: bool = False
    first: float | None = None

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        if self.verdict == "supported" and self.borderline and self.entailment is not None:
            return Mark("fair", "≈", f"borderline ({self.entailment:.2f})")
        return _MARKS.get(self.verdict, _NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class Trace:
    """All evidence of one assessment; ``rest`` is evidence of any other kind."""

    statements: Sequence[Statement]
    refusal: str
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> Trace:
        """Sort the evidence of a sample that has so many documents."""
        rows = Rows(evidence, Statement, Refusal)
        statements = [
            replace(one, passages=[n for n in one.passages or () if 1 <= n <= documents])
            for one in rows.of(Statement)
        ]
        refusals = [one.text for one in rows.of(Refusal)]
        return cls(statements, "".join(refusals[-1:]), rows.rest)
