"""Changes of a metric's figures between two runs, over answers that count in both.

A figure such as a mean leaves out answers that were refused or that failed. Therefore the shares of
all questions (:mod:`trustassay.compare.outcome_changes`) are always shown above the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trustassay.compare.outcome_changes import ROUNDING_ERROR
from trustassay.compare.pairing import RunPairing
from trustassay.compare.run_scores import RunScores, find_better_direction
from trustassay.core.assessment import Direction, WeightedFigures
from trustassay.core.json_form import difference_as_json
from trustassay.core.metric import Figure, Mean, Share
from trustassay.report.text import ends_text, format_figure
from trustassay.statistics import Floats, comparison
from trustassay.statistics.intervals import MIN_UNITS, MIN_UNITS_FOR_MEANS
from trustassay.statistics.resampling import draw_counts, generator


@dataclass(frozen=True)
class FigureChange:
    """A figure of two runs, over the paired answers that count in it in both runs."""

    key: str
    """The figure's name within its metric."""
    figure: Figure
    better: Direction
    """Whether higher or lower values are better; "" where that is not known."""
    first: float
    second: float
    difference: comparison.Difference
    """The second value minus the first."""
    questions: int
    """The number of questions behind the pairs."""

    @property
    def verdict(self) -> Literal["better", "worse", "changed", "no clear change", "unknown"]:
        """What the interval of the change shows."""
        if self.difference.interval is None:
            return "unknown"
        low, high = self.difference.interval
        if low <= 0 <= high:
            return "no clear change"
        if not self.better:
            return "changed"
        return "better" if (low > 0) == (self.better == "higher") else "worse"

    def in_words(self) -> str:
        """Return one sentence on the change."""
        unit = self.figure.unit
        first, second = (format_figure(value, unit) for value in (self.first, self.second))
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


def compare_figures(
    first: RunScores, second: RunScores, pairing: RunPairing, keys: Sequence[str], seed: int = 0
) -> dict[str, FigureChange]:
    """Return the changes of figures over the pairs that count in them in both runs.

    A pair counts in a figure if neither answer failed and the figure is computed from both: an
    answer that one run refused is in no mean score, otherwise refusing could seem to improve the
    rest. Units are drawn with replacement, with all their answers in both runs. A figure that
    cannot be resampled, or that has no value over these pairs, is left out.
    """
    # Failed answers are in no figure, in neither run.
    pairing = pairing.select(~(first.errors[pairing.first] | second.errors[pairing.second]))
    if not len(pairing.first):
        return {}
    before, after = first.weighted.at(pairing.first), second.weighted.at(pairing.second)
    # Group figures by the pairs behind them (bytes of the mask are hashable): they share draws.
    keys_by_pairs: dict[bytes, list[str]] = {}
    for key in keys:
        if key in second.figures and key in before.keys() & after.keys():
            behind_both = before.is_counted(key) & after.is_counted(key)
            keys_by_pairs.setdefault(behind_both.tobytes(), []).append(key)
    # The mask selects again from the pairs without failures.
    result: dict[str, FigureChange] = {}
    for mask, keys_of_pairs in keys_by_pairs.items():
        pairs_behind_figures = pairing.select(np.frombuffer(mask, dtype=np.bool_))
        if len(pairs_behind_figures.first):
            result |= _compare_over_pairs(first, second, pairs_behind_figures, keys_of_pairs, seed)
    # In the order in which the figures were asked for, not in the order of the groups.
    return {key: result[key] for key in keys if key in result}


def _compare_over_pairs(
    first: RunScores, second: RunScores, pairing: RunPairing, keys: Sequence[str], seed: int
) -> dict[str, FigureChange]:
    """Return the changes of figures over all of these pairs.

    Means and shares get the interval of a paired mean. Other figures get intervals from units drawn
    with replacement; they all share the same draws.
    """
    sides = [first.weighted.at(pairing.first), second.weighted.at(pairing.second)]
    all_figures = [side.figures(np.ones((1, len(pairing.first)))) for side in sides]
    values = {
        key: (float(all_figures[0][key][0]), float(all_figures[1][key][0]))
        for key in keys
        # Pairs may exist and the figure still be undefined, for instance a quantile of no values.
        if not any(np.isnan(figures_of_run[key][0]) for figures_of_run in all_figures)
    }
    rng = generator(seed, "paired", first.info.name)
    draws = _draw_differences(
        sides, pairing, [key for key in values if not _range_width(second, key)], rng
    )
    units, changes = pairing.units_of_pairs, {}
    for key, (before, after) in values.items():
        inputs = [side.inputs(key) for side in sides]
        # A unit counts as changed if any answer of it moved by more than rounding error.
        differ = ~np.isclose(inputs[0], inputs[1], rtol=0, atol=ROUNDING_ERROR, equal_nan=True).all(
            axis=1
        )
        changed = len(np.unique(units[differ]))
        figure = second.figures[key]
        # A mean of unbounded scores needs more questions than a share before its interval is
        # honest.
        fewest = MIN_UNITS_FOR_MEANS if isinstance(figure.statistic, Mean) else MIN_UNITS
        if width := _range_width(second, key):
            # The inputs of a share are 0 and 1; the figure itself is in per cent.
            scale = 100.0 if isinstance(figure.statistic, Share) else 1.0
            differences = scale * (inputs[1] - inputs[0])[:, 0]
            difference = comparison.mean_of_differences(differences, width, units, fewest)
            # With very few changed units the interval of a mean is too narrow, so it is withheld.
            difference = comparison.widen_for_few_changes(difference, changed)
        else:
            difference = comparison.difference_from_resamples(
                after - before, draws[key], int(units.max()) + 1, changed, fewest
            )
        better = find_better_direction(figure, second.info)
        count = pairing.question_count
        changes[key] = FigureChange(key, figure, better, before, after, difference, count)
    return changes


def _range_width(scores: RunScores, key: str) -> float:
    """Return the width of the range of the values that a figure averages; 0 if it is no mean."""
    figure = scores.figures[key]
    if not isinstance(figure.statistic, Mean | Share):
        return 0.0
    ends = figure.value_range(scores.info.score_range)
    return ends[1] - ends[0] if ends else 0.0


def _draw_differences(
    sides: Sequence[WeightedFigures],
    pairing: RunPairing,
    keys: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Return the differences of figures over units drawn with replacement, shape (draws,) each."""
    units = pairing.units_of_pairs
    differences: dict[str, list[Floats]] = {key: [] for key in keys}
    for counts in draw_counts(int(units.max()) + 1, rng) if keys else ():
        weights = counts[:, units]
        before, after = (side.figures(weights) for side in sides)
        for key, draws in differences.items():
            draws.append(after[key] - before[key])
    return {key: np.concatenate(draws) for key, draws in differences.items()}


def explain_missing_figure(pairing: RunPairing, first: RunScores, second: RunScores) -> str:
    """Return why :func:`compare_figures` left out a figure that both summaries have."""
    if not len(pairing.first):
        return "the runs have no question in common"
    if (first.errors[pairing.first] | second.errors[pairing.second]).all():
        return "no pair was scored in both runs"
    return "it cannot be resampled, or has no value over the pairs"
