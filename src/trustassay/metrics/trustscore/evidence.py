"""Evidence of TrustScore, read into views: its two parts, of the answer or of each claim.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.metric import Assessment, Metric
from trustassay.sample import Sample
from trustassay.views import Mark, as_data, text_in

_MARKS = {
    "support": Mark("good", "✓", "the facts support it"),
    "neutral": Mark("none", "○", "the facts leave it open"),
    "contradict": Mark("bad", "✕", "the facts contradict it"),
    "consistent": Mark("good", "✓", "the model keeps to it"),
    "inconsistent": Mark("bad", "✕", "the model does not keep to it"),
}
_ABSENT = Mark("none", "○", "not assessed")
SHOWN = 120


@dataclass(frozen=True, slots=True)
class Part:
    """What one of the two metrics says: ``data`` is for its own template."""

    title: str
    mark: Mark
    reason: str
    data: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer, or one of its claims, with both parts."""

    number: int
    text: str
    score: float | None
    weakest: bool
    reason: str
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
    def read(cls, metrics: Mapping[str, Metric], sample: Sample, evidence: Iterable[Any]) -> Claims:
        """Sort the evidence; ``metrics`` draw the parts by their names."""
        shown: list[Claim] = []
        rest: list[Mapping[str, Any]] = []
        by_claim = False
        for item in evidence:
            match item:
                case {"kind": "claim" | "answer" as kind, "text": str(text)}:
                    by_claim = by_claim or kind == "claim"
                    parts = {
                        name: _part(metric, sample, item.get(name))
                        for name, metric in metrics.items()
                    }
                    score = item.get("score")
                    shown.append(
                        Claim(
                            len(shown) + 1,
                            text,
                            score if isinstance(score, int | float) else None,
                            item.get("weakest") is True,
                            text_in(item, "reason"),
                            **parts,
                        )
                    )
                case _:
                    rest.append(as_data(item))
        return cls(shown, by_claim, rest)


def problem_in(assessment: Assessment, *, by_claim: bool) -> str | None:
    """Return what is wrong with an answer, or with its weakest claim, in one sentence."""
    if assessment.error is not None:
        return None
    if assessment.score is None:
        return assessment.reason
    verdict, _, kept = (assessment.verdict or "").partition(", ")
    held = [
        words
        for found, words in (
            (verdict == "contradict", "the facts contradict it"),
            (kept == "inconsistent", "the model does not keep to it"),
        )
        if found
    ]
    if not held:
        return None
    if not by_claim:
        return "; ".join(held)
    rows = [row for row in assessment.evidence if isinstance(row, Mapping) and row.get("weakest")]
    text = text_in(rows[0], "text") if rows else ""
    text = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return f"weakest claim, {text!r}: {'; '.join(held)}"


def _part(metric: Metric, sample: Sample, told: Any) -> Part:
    told = told if isinstance(told, Mapping) else {}
    evidence = told.get("evidence")
    part = Assessment(
        sample.id,
        metric.name,
        None,
        evidence=evidence if isinstance(evidence, list | tuple) else (),
    )
    verdict = told.get("verdict")
    return Part(
        metric.title,
        _MARKS.get(verdict, _ABSENT) if isinstance(verdict, str) else _ABSENT,
        text_in(told, "reason"),
        metric.view(sample, part).data,
    )
