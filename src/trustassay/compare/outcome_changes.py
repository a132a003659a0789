"""Changes between two runs in the shares of all questions that passed, failed or got no answer.

Questions are paired, not scores, so a question that one run refused counts as well. A rise of the
unwanted outcomes, *failed* and *not answered*, is tested:

1. Compute for each question the share of its answers with an outcome, before and after.
2. Count the independent units in which that share rose and in which it fell.
3. Test whether chance explains the rise: exactly (McNemar 1947), with a margin by Tango (1998).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.compare.pairing import RunPairing
from trustassay.compare.run_scores import RunScores
from trustassay.core.json_form import as_json, difference_as_json
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, OutcomeKind
from trustassay.statistics.comparison import Difference, mean_of_differences, share_rise_p
from trustassay.statistics.intervals import MIN_UNITS

UNWANTED_KINDS: Sequence[OutcomeKind] = (FAILED, NOT_ANSWERED, NOT_SCORED)
"""Outcomes whose rise is tested."""
ONE_SIDED_LEVEL = 0.025
"""The level of a one-sided test: that of one end of a 95 % interval."""
ROUNDING_ERROR = 1e-9
"""Changes up to this size are rounding errors."""


@dataclass(frozen=True)
class OutcomeChange:
    """The share of one outcome in two runs."""

    kind: OutcomeKind
    word: str
    """The metric's own word for the outcome."""
    first: float
    """Its share of the questions that both runs asked, in per cent; of all questions of the first
    run where the runs have none in common."""
    second: float
    """The same for the second run."""
    answers: tuple[int, int]
    """The number of answers with this outcome in each run."""
    change: Difference
    """The second share minus the first, in points."""
    risen: int
    """The number of independent units with more such answers in the second run."""
    fallen: int
    """The number of independent units with fewer such answers in the second run."""
    units: int
    """The number of independent units that were compared."""
    rise_p: float | None
    """One-sided p-value of the hypothesis that the share rose by no more than the margin; ``None``
    where a rise is welcome, or where nothing changed, so that no test could raise an alarm (Tarone
    1990)."""

    @property
    def is_unwanted(self) -> bool:
        """Whether more of it is worse."""
        return self.kind in UNWANTED_KINDS

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``no clear change``, by the interval of the change alone."""
        if self.change.interval is None:
            # With few questions there is no interval, but the exact test may still show a rise.
            if self.rise_p is not None and self.rise_p < ONE_SIDED_LEVEL:
                return "worse"
            return "unknown"
        low, high = self.change.interval
        if low <= 0 <= high:
            return "no clear change"
        return "worse" if (low > 0) == self.is_unwanted else "better"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "word": self.word,
            "first": self.first,
            "second": self.second,
            "answers": as_json(self.answers),
            **difference_as_json(self.change),
            "risen": self.risen,
            "fallen": self.fallen,
            "units": self.units,
            "rise_p": self.rise_p,
            "verdict": self.verdict,
        }


def compare_outcomes(
    first: RunScores, second: RunScores, pairing: RunPairing, margin: float = 0.0
) -> list[OutcomeChange]:
    """Compare the share of each outcome, in the order of the metric's shares.

    Args:
        first: the earlier run.
        second: the later run.
        pairing: which of their answers belong together.
        margin: points, 0 to below 100, by which an unwanted share may rise.
    """
    kinds = [kind for kind in second.outcomes.shares if kind in first.outcomes.shares]
    return [_compare_outcome(kind, first, second, pairing, margin) for kind in kinds]


def _compare_outcome(
    kind: OutcomeKind, first: RunScores, second: RunScores, pairing: RunPairing, margin: float
) -> OutcomeChange:
    shares_of_runs = first.outcomes.shares[kind], second.outcomes.shares[kind]
    # Fallback without common questions: the shares of each run by itself, and no change.
    before, after = shares_of_runs[0].percent, shares_of_runs[1].percent
    change, rise_p = Difference(0.0, None, "no question in common"), None
    risen = fallen = units = 0
    if len(pairing.first):
        sides = first.indicate(kind)[pairing.first], second.indicate(kind)[pairing.second]
        before, after = (
            100 * float(pairing.means_by_question(has_outcome).mean()) for has_outcome in sides
        )
        # Questions with many answers count once, not once an answer.
        by_question = pairing.means_by_question(sides[1] - sides[0])
        change = mean_of_differences(100 * by_question, 100.0, pairing.units, MIN_UNITS)
        # Only the sign is used below, so the sum over a unit does as well as its mean.
        by_unit = np.bincount(pairing.units, by_question)
        risen, fallen = (
            int((by_unit > ROUNDING_ERROR).sum()),
            int((by_unit < -ROUNDING_ERROR).sum()),
        )
        units = len(by_unit)
        # Discordant units alone carry information on a change (McNemar).
        if kind in UNWANTED_KINDS and risen + fallen:
            rise_p = share_rise_p(risen, fallen, units, margin / 100)
    return OutcomeChange(
        kind,
        second.outcomes.words[kind],
        before,
        after,
        (shares_of_runs[0].answers, shares_of_runs[1].answers),
        change,
        risen,
        fallen,
        units,
        rise_p,
    )


def describe_outcome_changes(changes: Sequence[OutcomeChange]) -> str:
    """Write the shares of both runs: ``supported 95 → 63 %, not supported 3 → 37 %``."""
    return ", ".join(
        f"{change.word} {change.first:.1f} → {change.second:.1f} %" for change in changes
    )


def headline(changes: Sequence[OutcomeChange], questions: int) -> str:
    """Return a sentence on the outcome that got worse, or better, among all questions."""
    # Separate shares of different questions say nothing about a change.
    if not questions:
        return "The runs have no question in common: a change cannot be told from other questions."
    clear = [change for change in changes if change.verdict in ("worse", "better")]
    worse = [change for change in clear if change.verdict == "worse" and change.is_unwanted]
    # Bad news first, then good news about an unwanted outcome, then any other clear change.
    for change in worse or [change for change in clear if change.is_unwanted] or clear:
        return f"{change.verdict.capitalize()}: {_describe_change(change, questions)}."
    unknown = [change for change in changes if change.change.interval is None]
    if unknown:
        return f"Whether anything changed is unknown: {unknown[0].change.without}."
    return f"No clear change of any outcome, over {questions:,} questions of both runs."


def _describe_change(outcome: OutcomeChange, questions: int) -> str:
    ends = ""
    if outcome.change.interval is not None:
        low, high = outcome.change.interval
        ends = f" (95 % interval {low:+.1f} to {high:+.1f})".replace("-", "−")
    change = f"{outcome.change.value:+.1f} points".replace("-", "−")
    return (
        f"{outcome.word} went from {outcome.first:.1f} to {outcome.second:.1f} % of all questions, "
        f"{change}{ends} over {questions:,} questions of both runs"
    )
