"""How the shares of all questions that passed, failed or were not answered changed between runs.

Questions are paired, not scores: an answer that is refused or invented in one run is a pair too. A
rise of what nobody wants, *failed* and *not answered*, is tested:

1. For each question, the share of its answers with an outcome before and after.
2. In how many independent units that rose, and in how many it fell.
3. The exact test of McNemar (1947) that a rise is chance; with a margin that of Tango (1998).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.compare.pairing import Pairing
from trustassay.compare.run_scores import RunScores
from trustassay.core.outcome import FAILED, NOT_ANSWERED, NOT_SCORED, OutcomeKind
from trustassay.statistics.comparison import Difference, mean_of_differences, share_rise_p
from trustassay.statistics.intervals import FEWEST
from trustassay.workflows.json_form import as_json, difference_as_json

UNWANTED: Sequence[OutcomeKind] = (FAILED, NOT_ANSWERED, NOT_SCORED)
"""Outcomes of which a rise is tested."""
ONE_SIDED = 0.025
"""The level of a one-sided test, which is that of one end of a 95 % interval."""
SAME = 1e-9
"""A change that is rounding."""


@dataclass(frozen=True)
class OutcomeChange:
    """One outcome in two runs.

    first, second: its share of the questions that both runs asked, in per cent; of all questions of
    each run where they have none in common. answers: how many answers of each run have it. change:
    in points, second less first. risen, fallen: of ``units`` independent units, those with more
    and with fewer such answers. rise_p: one-sided, that the share did not rise by more than the
    margin; ``None`` where nothing changed, so that no test could raise an alarm (Tarone 1990), or a
    rise is welcome.
    """

    kind: OutcomeKind
    word: str
    first: float
    second: float
    answers: tuple[int, int]
    change: Difference
    risen: int
    fallen: int
    units: int
    rise_p: float | None

    @property
    def is_unwanted(self) -> bool:
        """Whether more of it is worse."""
        return self.kind in UNWANTED

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``no clear change``, by the interval of the change alone."""
        if self.change.interval is None:
            if self.rise_p is not None and self.rise_p < ONE_SIDED:
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


def outcome_changes(
    first: RunScores, second: RunScores, pairing: Pairing, margin: float = 0.0
) -> list[OutcomeChange]:
    """Return the change of each outcome, in the order of the metric's shares.

    Args:
        margin: points, 0 to below 100, by which an unwanted share may rise.
    """
    kinds = [kind for kind in second.outcomes.shares if kind in first.outcomes.shares]
    return [_outcome_change(kind, first, second, pairing, margin) for kind in kinds]


def _outcome_change(
    kind: OutcomeKind, first: RunScores, second: RunScores, pairing: Pairing, margin: float
) -> OutcomeChange:
    whole = first.outcomes.shares[kind], second.outcomes.shares[kind]
    before, after = whole[0].percent, whole[1].percent
    change, rise_p = Difference(0.0, None, "no question in common"), None
    risen = fallen = units = 0
    if len(pairing.first):
        sides = first.has(kind)[pairing.first], second.has(kind)[pairing.second]
        before, after = (100 * float(pairing.means_by_question(one).mean()) for one in sides)
        by_question = pairing.means_by_question(sides[1] - sides[0])
        change = mean_of_differences(100 * by_question, 100.0, pairing.units, FEWEST)
        by_unit = np.bincount(pairing.units, by_question)
        risen, fallen = int((by_unit > SAME).sum()), int((by_unit < -SAME).sum())
        units = len(by_unit)
        if kind in UNWANTED and risen + fallen:
            rise_p = share_rise_p(risen, fallen, units, margin / 100)
    return OutcomeChange(
        kind,
        second.outcomes.words[kind],
        before,
        after,
        (whole[0].answers, whole[1].answers),
        change,
        risen,
        fallen,
        units,
        rise_p,
    )


def outcomes_in_words(changes: Sequence[OutcomeChange]) -> str:
    """Write the shares of both runs: ``supported 95 → 63 %, not supported 3 → 37 %``."""
    return ", ".join(f"{one.word} {one.first:.1f} → {one.second:.1f} %" for one in changes)


def headline(changes: Sequence[OutcomeChange], questions: int) -> str:
    """Return a sentence on what got worse, or better, of all questions."""
    if not questions:
        return "The runs have no question in common: a change cannot be told from other questions."
    clear = [one for one in changes if one.verdict in ("worse", "better")]
    worse = [one for one in clear if one.verdict == "worse" and one.is_unwanted]
    for one in worse or [one for one in clear if one.is_unwanted] or clear:
        return f"{one.verdict.capitalize()}: {_change_in_words(one, questions)}."
    unknown = [one for one in changes if one.change.interval is None]
    if unknown:
        return f"Whether anything changed is unknown: {unknown[0].change.without}."
    return f"No clear change of any outcome, over {questions:,} questions of both runs."


def _change_in_words(one: OutcomeChange, questions: int) -> str:
    ends = ""
    if one.change.interval is not None:
        low, high = one.change.interval
        ends = f" (95 % interval {low:+.1f} to {high:+.1f})".replace("-", "−")
    change = f"{one.change.value:+.1f} points".replace("-", "−")
    return (
        f"{one.word} went from {one.first:.1f} to {one.second:.1f} % of all questions, {change}"
        f"{ends} over {questions:,} questions of both runs"
    )
