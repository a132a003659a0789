"""What changed in a metric's figures, over the answers that are behind them in both runs.

A figure as a mean says nothing of answers that were refused or failed: it stands below the shares
of all questions (:mod:`trustassay.compare.outcome_changes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trustassay.assessment import Direction, Weighted
from trustassay.compare.outcome_changes import SAME
from trustassay.compare.pairing import Pairing
from trustassay.compare.run_scores import RunScores, better_of
from trustassay.metric import Figure, Mean, Share
from trustassay.show.text import ends_text, rounded
from trustassay.statistics import Floats, comparison
from trustassay.statistics.intervals import FEWEST, FEWEST_FOR_MEANS
from trustassay.statistics.resampling import drawn_counts, generator
from trustassay.workflows.json_form import difference_as_json


@dataclass(frozen=True)
class FigureChange:
    """A figure of two runs over the answers that are paired and behind it in both.

    better: whether more of it is better, "" where that is not known. difference: second less first.
    questions: of the pairs behind it.
    """

    key: str
    figure: Figure
    better: Direction
    first: float
    second: float
    difference: comparison.Difference
    questions: int

    @property
    def verdict(self) -> Literal["better", "worse", "changed", "no clear change", "unknown"]:
        """What the interval says of the change."""
        if self.difference.interval is None:
            return "unknown"
        low, high = self.difference.interval
        if low <= 0 <= high:
            return "no clear change"
        if not self.better:
            return "changed"
        return "better" if (low > 0) == (self.better == "higher") else "worse"

    def in_words(self) -> str:
        """Return a sentence on what changed."""
        unit = self.figure.unit
        first, second = (rounded(value, unit) for value in (self.first, self.second))
        of = f"over {self.questions:,} questions scored in both runs"
        change = f"{self.key} went from {first} to {second} {unit}".rstrip()
        if self.difference.interval is None:
            reason = self.difference.without
            return f"{change}, {of}; whether that is a real change is unknown ({reason})."
        ends = ends_text(self.difference.interval, "+")
        verdict = self.verdict.capitalize()
        return f"{verdict}: {change} (95 % interval of the change {ends}), {of}.".replace("-", "−")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "first": self.first,
            "second": self.second,
            **difference_as_json(self.difference),
            "questions": self.questions,
            "better": self.better or None,
            "verdict": self.verdict,
        }


def figure_changes(
    first: RunScores, second: RunScores, pairing: Pairing, keys: Sequence[str], seed: int = 0
) -> dict[str, FigureChange]:
    """Return the changes of figures over the pairs that are behind them in both runs.

    A pair counts for a figure if neither answer failed and both are among those that the figure is
    made of: an answer that was refused in one run is no part of a mean score, or it could look as
    if refusing made the others better. Units are drawn with replacement, with all their answers in
    both runs. A key that cannot be resampled, or has no value over these pairs, is left out.
    """
    pairing = pairing.keep(~(first.errors[pairing.first] | second.errors[pairing.second]))
    if not len(pairing.first):
        return {}
    before, after = first.weighted.at(pairing.first), second.weighted.at(pairing.second)
    # Figures of the same pairs share their draws, so that they are drawn once.
    keys_by_pairs: dict[bytes, list[str]] = {}
    for key in keys:
        if key in second.figures and key in before.keys() & after.keys():
            behind_both = before.counted(key) & after.counted(key)
            keys_by_pairs.setdefault(behind_both.tobytes(), []).append(key)
    result: dict[str, FigureChange] = {}
    for mask, keys_of_pairs in keys_by_pairs.items():
        kept = pairing.keep(np.frombuffer(mask, dtype=np.bool_))
        if len(kept.first):
            result |= _changes_over(first, second, kept, keys_of_pairs, seed)
    return {key: result[key] for key in keys if key in result}


def _changes_over(
    first: RunScores, second: RunScores, pairing: Pairing, keys: Sequence[str], seed: int
) -> dict[str, FigureChange]:
    """Return the changes of figures over all of these pairs: of means and shares with the interval
    of a paired mean, of others from units drawn with replacement, the same for all.
    """
    sides = [first.weighted.at(pairing.first), second.weighted.at(pairing.second)]
    whole = [side.figures(np.ones((1, len(pairing.first)))) for side in sides]
    values = {
        key: (float(whole[0][key][0]), float(whole[1][key][0]))
        for key in keys
        if not any(np.isnan(one[key][0]) for one in whole)
    }
    rng = generator(seed, "paired", first.info.name)
    drawn = _draw(sides, pairing, [key for key in values if not _width_of(second, key)], rng)
    units, changes = pairing.units_of_pairs, {}
    for key, (before, after) in values.items():
        inputs = [side.inputs(key) for side in sides]
        differ = ~np.isclose(inputs[0], inputs[1], rtol=0, atol=SAME, equal_nan=True).all(axis=1)
        changed = len(np.unique(units[differ]))
        figure = second.figures[key]
        fewest = FEWEST_FOR_MEANS if isinstance(figure.statistic, Mean) else FEWEST
        if width := _width_of(second, key):
            scale = 100.0 if isinstance(figure.statistic, Share) else 1.0
            moved = scale * (inputs[1] - inputs[0])[:, 0]
            difference = comparison.mean_of_differences(moved, width, units, fewest)
            difference = comparison.with_few_changes(difference, changed)
        else:
            difference = comparison.paired_difference(
                after - before, drawn[key], int(units.max()) + 1, changed, fewest
            )
        better = better_of(figure, second.info)
        count = pairing.question_count
        changes[key] = FigureChange(key, figure, better, before, after, difference, count)
    return changes


def _width_of(scores: RunScores, key: str) -> float:
    """Return how far the values apart can lie that a figure is a plain mean of; 0 if it is none."""
    figure = scores.figures[key]
    if not isinstance(figure.statistic, Mean | Share):
        return 0.0
    ends = figure.within(scores.info.score_range)
    return ends[1] - ends[0] if ends else 0.0


def _draw(
    sides: Sequence[Weighted], pairing: Pairing, keys: Sequence[str], rng: np.random.Generator
) -> dict[str, Floats]:
    """Return the differences of figures over units drawn with replacement, shape (B,) each."""
    units = pairing.units_of_pairs
    differences: dict[str, list[Floats]] = {key: [] for key in keys}
    for counts in drawn_counts(int(units.max()) + 1, rng) if keys else ():
        weights = counts[:, units]
        before, after = (side.figures(weights) for side in sides)
        for key, draws in differences.items():
            draws.append(after[key] - before[key])
    return {key: np.concatenate(draws) for key, draws in differences.items()}


def why_not_compared(pairing: Pairing, first: RunScores, second: RunScores) -> str:
    """Return why :func:`figure_changes` left a figure out that both summaries have."""
    if not len(pairing.first):
        return "the runs have no question in common"
    if (first.errors[pairing.first] | second.errors[pairing.second]).all():
        return "no pair was scored in both runs"
    return "it cannot be resampled, or has no value over the pairs"
