"""Judged claims, as they are stored in the evidence of an assessment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trustassay.core.evidence import EvidenceRow, Mark

ClaimVerdict: TypeAlias = Literal["supported", "not found", "contradicted", "no claim"]

_MARKS = {
    "supported": Mark("good", "✓", "supported"),
    "not found": Mark("bad", "✕", "not found in the passages"),
    "contradicted": Mark("bad", "✕", "contradicted"),
    "no claim": Mark("none", "○", "claims nothing"),
}
NOT_JUDGED = Mark("none", "○", "not judged")


@dataclass(frozen=True, slots=True)
class ClaimSpan(EvidenceRow, required=("start", "end")):
    """Characters of an answer that are not supported."""

    start: int
    """Offset of the first character."""
    end: int
    """Offset behind the last character."""
    probability: float
    """The probability that no passage entails the claim."""


@dataclass(frozen=True, slots=True)
class JudgedClaim(EvidenceRow, row_kind="statement", required=("text",)):
    """A claim with its verdict, as it is stored in the evidence of an assessment."""

    text: str
    """The part of the answer, as it is written."""
    verdict: str
    """``supported``, ``contradicted``, ``not found`` or ``no claim``."""
    hypothesis: str | None = None
    """The statement that was judged; ``None`` where it is the text."""
    entailment: float | None = None
    """The largest probability that a passage, or several together, entail it."""
    contradiction: float | None = None
    """The largest probability that a passage contradicts it."""
    why: str = ""
    """The reason for this verdict."""
    passages: Sequence[int] | None = None
    """The numbers, from 1, of the passages that decide."""
    quote: str | None = None
    """The sentence of a passage that decides, or is closest."""
    missing: Sequence[str] | None = None
    """Words that no passage has, or values that the rows of the claim's dates do not have."""
    borderline: bool = False
    """Whether it is supported by a probability near the threshold."""
    first: float | None = None
    """The first reader's probability of entailment, where a second one read the claim, too."""
    spans: Sequence[ClaimSpan] | None = None
    """Unless it is supported: its place in the answer, and the places of its words that no passage
    has."""

    @property
    def mark(self) -> Mark:
        """The mark of the verdict in the report."""
        # Rows of a rule, or of older runs, may be borderline without a probability to show.
        if self.verdict == "supported" and self.borderline and self.entailment is not None:
            return Mark("fair", "≈", f"borderline ({self.entailment:.2f})")
        # Evidence of runs of other versions may have verdicts that are not known here.
        return _MARKS.get(self.verdict, NOT_JUDGED)
