"""Evidence of TrustScore, and its view: its two parts, of the answer or of each claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trustassay.metric import Assessment, Metric
from trustassay.sample import Sample
from trustassay.views import EvidenceRow, Mark, Rows

_MARKS = {
    "support": Mark("good", "✓", "the facts support it"),
    "neutral": Mark("none", "○", "the facts leave it open"),
    "contradict": Mark("bad", "✕", "the facts contradict it"),
    "consistent": Mark("good", "✓", "the model chooses its own answer again"),
    "inconsistent": Mark("bad", "✕", "the model does not choose its own answer again"),
}
_ABSENT = Mark("none", "○", "not assessed")


@dataclass(frozen=True, slots=True)
class PartRow(EvidenceRow):
    """The assessment of one of the two metrics."""

    score: float | None
    verdict: str | None
    reason: str
    parts: Any
    evidence: Sequence[Any]

    @classmethod
    def of(cls, part: Assessment) -> PartRow:
        """Return what is kept of an assessment."""
        return cls(part.score, part.verdict, part.reason, dict(part.parts), list(part.evidence))


@dataclass(frozen=True, slots=True)
class Row(EvidenceRow):
    """The answer, or one of its claims, with both parts.

    bounds: between which scores it lies; ``None`` where that is not known. weakest: of all claims.
    """

    told_by = ("kind", "text")

    kind: Literal["claim", "answer"]
    text: str
    score: float | None
    factcheck: PartRow | None
    consistency: PartRow | None
    bounds: Sequence[float] | None = None
    verdict: str | None = None
    reason: str = field(kw_only=True)
    weakest: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one of the two metrics says: ``data`` is for its own template."""

    title: str
    mark: Mark
    reason: str
    data: Any

    @classmethod
    def of(cls, metric: Metric, sample: Sample, row: PartRow | None) -> Part:
        """Return it as the metric draws it."""
        evidence = row.evidence if row else ()
        part = Assessment(sample.id, metric.name, None, evidence=evidence)
        mark = _MARKS.get((row and row.verdict) or "", _ABSENT)
        return cls(metric.title, mark, row.reason if row else "", metric.view(sample, part).data)


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer, or one of its claims, with both parts."""

    row: Row
    factcheck: Part
    consistency: Part

    @property
    def tone(self) -> str:
        """The worse of the two marks."""
        tones = {self.factcheck.mark.tone, self.consistency.mark.tone}
        return next(tone for tone in ("bad", "none", "good") if tone in tones)


@dataclass(frozen=True, slots=True)
class Claims:
    """All evidence of an assessment; ``by_claim`` says that the answer was taken apart."""

    shown: Sequence[Claim]
    by_claim: bool
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(
        cls, factcheck: Metric, consistency: Metric, sample: Sample, evidence: Iterable[Any]
    ) -> Claims:
        """Sort the evidence; both metrics draw their parts."""
        found = Rows(evidence, Row)
        shown = [
            Claim(
                row,
                Part.of(factcheck, sample, row.factcheck),
                Part.of(consistency, sample, row.consistency),
            )
            for row in found.of(Row)
        ]
        return cls(shown, any(one.row.kind == "claim" for one in shown), found.rest)
