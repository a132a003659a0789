"""What a metric found, in the form in which other tools show it: a value and a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trustassay.metric import Assessment, Metric
from trustassay.runs.looks import one_line, reason_of
from trustassay.show.first_card import problem_of
from trustassay.workflows.scorer import Assay

__all__ = ["Finding", "findings_of", "refused"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one metric found in a record.

    ``score`` is ``None`` where it could not be scored (``error`` says why), and where the metric
    has no score for such an answer, as for a refusal that nobody can judge: never 0 in its place.
    ``passed`` is whether the answer needs no look by the metric's own line; ``None`` where it has
    no score, or the metric draws no line. ``faulty`` tells that the record itself is at fault: a
    field is missing or wrong.
    """

    metric: str
    score: float | None
    reason: str = ""
    verdict: str | None = None
    error: str | None = None
    passed: bool | None = None
    lower_is_better: bool = False
    faulty: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def comment(self) -> str:
        """The sentence beside the score: why it is what it is, or why there is none."""
        if self.error is not None:
            return f"could not be scored: {self.error}"
        if self.score is None:
            return f"no score: {self.reason or self.verdict or 'the metric gives no reason'}"
        words = self.reason or self.verdict or ""
        if not self.lower_is_better:
            return words
        return f"{words} (low scores are good)" if words else "low scores are good"

    def passes(self, threshold: float | None) -> bool | None:
        """Return whether the score is on the good side of ``threshold``, or ``passed`` without one.

        What could not be scored does not pass.
        """
        if self.error is not None:
            return False
        if threshold is None or self.score is None:
            return self.passed
        return self.score <= threshold if self.lower_is_better else self.score >= threshold


def findings_of(metrics: Sequence[Metric], assay: Assay) -> list[Finding]:
    """Return what each metric found, in the order of ``metrics``."""
    return [_finding(metric, assay[metric.name]) for metric in metrics]


def refused(metrics: Sequence[Metric], error: str) -> list[Finding]:
    """Return the findings of a record that no metric can score."""
    return [
        Finding(
            one.name,
            None,
            error=one_line(error),
            lower_is_better=one.lower_is_better,
            faulty=True,
        )
        for one in metrics
    ]


def _finding(metric: Metric, found: Assessment) -> Finding:
    unscored = found.error is not None or found.score is None
    return Finding(
        metric.name,
        None if unscored else found.score,
        "" if found.error is not None else reason_of(metric, found),
        found.verdict,
        None if found.error is None else one_line(found.error),
        None if unscored or not metric.line else problem_of(metric, found) is None,
        metric.lower_is_better,
        parts=dict(found.parts),
    )
