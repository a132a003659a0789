"""Claims with their verdicts, as they stand in the evidence of an assessment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trustassay.views import EvidenceRow, Mark

Verdict: TypeAlias = Literal["supported", "not found", "contradicted", "no claim"]

_MARKS = {
    "supported": Mark("good", "✓", "supported"),
    "not found": Mark("bad", "✕", "not found in the passages"),
    "contradicted": Mark("bad", "✕", "contradicted"),
    "no claim": Mark("none", "○", "claims nothing"),
}
_NOT_JUDGED = Mark("none", "○", "not judged")


@dataclass(frozen=True, slots=True)
class ClaimSpan(EvidenceRow, told_by=("start", "end")):
    """Characters of an answer that are not supported."""

    start: int
    end: int
    """The first character, and the one behind the last."""
    probability: float
    """The probability that no passage entails the claim."""


@dataclass(frozen=True, slots=True)
class Statement(EvidenceRow, row_kind="statement", told_by=("text",)):
    """A claim with its verdict, as it stands in the evidence of an assessment."""

    text: str
    """The part of the answer, as it is written."""
    verdict: str
    hypothesis: str | None = None
    """What was judged, if not the text."""
    entailment: float | None = None
    """The largest probability that a passage, or several together, entail it."""
    contradiction: float | None = None
    why: str = ""
    """Why this verdict."""
    passages: Sequence[int] | None = None
    """The numbers, from 1, of those that decide."""
    quote: str | None = None
    """Their words."""
    missing: Sequence[str] | None = None
    """Words that no passage has."""
    borderline: bool = False
    """Supported, and near the threshold."""
    first: float | None = None
    """The first reader's probability of entailment, where a second one read the claim, too."""
    spans: Sequence[ClaimSpan] | None = None
    """Where it stands in the answer, and words of it that no passage has, if not supported."""

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        if self.verdict == "supported" and self.borderline and self.entailment is not None:
            return Mark("fair", "≈", f"borderline ({self.entailment:.2f})")
        return _MARKS.get(self.verdict, _NOT_JUDGED)
