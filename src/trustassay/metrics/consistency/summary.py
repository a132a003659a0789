"""The figures of a data set: shares of answers, and shares of the choices behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from trustassay.metric import Assessment, Figure, Mean, Share, Summary, Total
from trustassay.metrics.consistency.maths import LETTERS, PLACES, position_bias
from trustassay.metrics.consistency.options import ConsistencyOptions
from trustassay.statistics.intervals import (
    FEWEST_FOR_MEANS,
    Interval,
    RowSums,
    mean_interval,
    too_few_units,
)
from trustassay.summaries import summarised, units_of

__all__ = ["BOUNDS", "FIGURES", "summarise"]

_PLACES = LETTERS[:PLACES]
_AMONG = "of all whose reply names an option"
_BIAS = "how far the places chosen differ from the answer's; 0 not at all, 0.75 always the same"


def _places(kind: str, words: str) -> Iterator[Figure]:
    for x in _PLACES:
        yield Figure(f"{kind}_{x.lower()}", f"choices {words} {x}, {_AMONG}", group="places")


BOUNDS = (
    Figure(
        "mean_low",
        "mean score if all open answers had the least",
        "",
        statistic=Mean("lowest", (0.0, 1.0)),
    ),
    Figure(
        "mean_high",
        "mean score if all open answers had the largest",
        "",
        statistic=Mean("highest", (0.0, 1.0)),
    ),
    Figure("open", "answers left open, since replies cannot be read", "", statistic=Total("open")),
)
"""Figures that say how far answers without a score may move the mean."""
FIGURES: Mapping[str, Figure] = {
    figure.key: figure
    for figure in (
        Figure("mean", "mean score, Trust_BC", "", headline=True, statistic=Mean()),
        *BOUNDS,
        Figure(
            "consistent",
            "answers that the model kept to in every choice",
            headline=True,
            statistic=Share("consistent"),
        ),
        Figure("assessable", "answers that could be assessed", headline=True),
        Figure("checks_consistent", f"choices of its own answer, {_AMONG}", headline=True),
        Figure("none_chosen", f"choices of none of the above, {_AMONG}"),
        Figure("asked_again", "choices asked for again, since the first reply names no option"),
        Figure("unparsed", "choices whose reply names no option", headline=True),
        Figure("checks", "choices asked for each answer", "", statistic=Mean("checks")),
        Figure(
            "short",
            "answers with too few distractors for all choices",
            "",
            statistic=Total("short"),
        ),
        Figure("position_bias", _BIAS, "", group="places"),
        *_places("offered", "with the answer at"),
        *_places("chosen", "of"),
    )
}
_STATISTICS = {key: one.statistic for key, one in FIGURES.items() if one.statistic}
RATIOS: Mapping[str, tuple[str, str]] = {
    "assessable": ("assessed", "answers"),
    "checks_consistent": ("consistent", "parsed"),
    "none_chosen": ("none_chosen", "parsed"),
    "asked_again": ("asked_again", "checks"),
    "unparsed": ("unparsed", "checks"),
} | {
    f"{kind}_{x.lower()}": (f"{kind}_{x.lower()}", "parsed")
    for kind in ("offered", "chosen")
    for x in _PLACES
}
"""Figures that are a sum over answers by another, as percentages."""
_COLUMNS = tuple(dict.fromkeys(name for pair in RATIOS.values() for name in pair))
_WHY = {
    "answers": "no sample was scored",
    "checks": "nothing was asked",
    "parsed": "no reply names an option",
}


class _Sums:
    """Sums over the answers that did not fail, and of their products."""

    def __init__(self) -> None:
        self.rows = RowSums(len(_COLUMNS))

    def counted(self, assessments: Iterable[Assessment]) -> Iterator[Assessment]:
        """Yield the assessments, counted in."""
        for one in assessments:
            if one.error is None:
                parts = one.parts
                own = {
                    "answers": 1.0,
                    "assessed": float(one.score is not None),
                    "parsed": parts.get("checks", 0) - parts.get("unparsed", 0),
                }
                row = [own[name] if name in own else parts.get(name, 0) for name in _COLUMNS]
                self.rows.add(np.array([row], dtype=np.float64), units_of([one]))
            yield one

    @property
    def totals(self) -> dict[str, float]:
        """The sum of each column."""
        return dict(zip(_COLUMNS, self.rows.total.tolist(), strict=True))

    def interval(self, above: str, below: str) -> Interval | str:
        """Return the interval of a ratio of two sums, from 0 to 1, or why it has none.

        The answers, or their units, are what was drawn, and not the choices: those of one answer go
        together.
        """
        each = dict(zip(_COLUMNS, np.eye(len(_COLUMNS)), strict=True))
        found = self.rows.ratio(each[above], each[below])
        reason = too_few_units(self.rows.n, self.rows.units, found.units, FEWEST_FOR_MEANS)
        return reason or mean_interval(*found)


def summarise(metric: ConsistencyOptions, assessments: Collection[Assessment]) -> Summary:
    """Return the figures over ``assessments``, read once and in order."""
    sums = _Sums()
    found = summarised(_STATISTICS, sums.counted(assessments), metric.score_range)
    totals, without = sums.totals, found.without_interval
    for key, (above, below) in RATIOS.items():
        found.support[key] = sums.rows.n
        if sums.rows.units < sums.rows.n:
            found.units[key] = sums.rows.units
        if not totals[below]:
            found.values[key], found.not_applicable[key] = None, _WHY[below]
            continue
        found.values[key] = 100 * totals[above] / totals[below]
        interval = sums.interval(above, below)
        if isinstance(interval, str):
            without[key] = interval
        else:
            found.intervals[key] = (100 * interval[0], 100 * interval[1])
    bias = position_bias(totals)
    found.values["position_bias"], found.support["position_bias"] = bias, sums.rows.n
    if bias is None:
        found.not_applicable["position_bias"] = "no option from A to D was chosen"
    else:
        without["position_bias"] = "a distance is above 0 by chance alone"
    return Summary(
        {key: found.values[key] for key in FIGURES},
        found.n,
        found.failed,
        found.intervals,
        found.support,
        found.not_applicable,
        metric.settings(),
        without,
        units=found.units,
    )
