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
    too_few,
)
from trustassay.summaries import summarised

__all__ = ["FIGURES", "summarise"]

_PLACES = LETTERS[:PLACES]
_AMONG = "of choices whose reply names an option: "


def _figures(*rows: tuple[str, str, str, str, bool]) -> dict[str, Figure]:
    found = {
        key: Figure(key, words, unit, group, headline, _STATISTICS.get(key))
        for key, words, unit, group, headline in rows
    }
    return found


_STATISTICS = {
    "mean": Mean(),
    "consistent": Share("consistent"),
    "checks": Mean("checks"),
    "short": Total("short"),
}
FIGURES: Mapping[str, Figure] = _figures(
    ("mean", "mean score, Trust_BC", "", "", True),
    ("consistent", "answers that the model kept to in every choice", "%", "", True),
    ("assessable", "answers that could be assessed", "%", "", True),
    ("checks_consistent", _AMONG + "the model took its own answer", "%", "", True),
    ("none_chosen", _AMONG + "it took none of the above", "%", "", False),
    ("unparsed", "choices whose reply names no option", "%", "", False),
    ("checks", "choices asked for each answer", "", "", False),
    ("short", "answers with too few distractors for all choices", "", "", False),
    (
        "position_bias",
        "how far the places chosen differ from those of the answer; 0 not at all, 0.75 always one",
        "",
        "places",
        False,
    ),
    *(
        (f"offered_{x.lower()}", _AMONG + f"the answer stood at {x}", "%", "places", False)
        for x in _PLACES
    ),
    *((f"chosen_{x.lower()}", _AMONG + f"it took {x}", "%", "places", False) for x in _PLACES),
)
RATIOS: Mapping[str, tuple[str, str]] = {
    "assessable": ("assessed", "answers"),
    "checks_consistent": ("consistent", "parsed"),
    "none_chosen": ("none_chosen", "parsed"),
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
                self.rows.add(np.array([row], dtype=np.float64))
            yield one

    @property
    def totals(self) -> dict[str, float]:
        """The sum of each column."""
        return dict(zip(_COLUMNS, self.rows.total.tolist(), strict=True))

    def interval(self, above: str, below: str) -> Interval | str:
        """Return the interval of a ratio of two sums, from 0 to 1, or why it has none.

        The answers are what was drawn, and not the choices: those of one answer go together. The
        ratio's variance is that of its linear form (Cochran 1977, section 6.3).
        """
        if reason := too_few("samples", self.rows.n, FEWEST_FOR_MEANS):
            return reason
        totals = self.totals
        ratio = totals[above] / totals[below]
        gradient = np.zeros((1, len(_COLUMNS)))
        gradient[0, _COLUMNS.index(above)] += 1 / totals[below]
        gradient[0, _COLUMNS.index(below)] -= ratio / totals[below]
        variance = float(self.rows.covariance(gradient)[0, 0])
        return mean_interval(ratio, variance, self.rows.n)


def summarise(metric: ConsistencyOptions, assessments: Collection[Assessment]) -> Summary:
    """Return the figures over ``assessments``, read once and in order."""
    sums = _Sums()
    found = summarised(_STATISTICS, sums.counted(assessments), metric.score_range)
    totals, without = sums.totals, found.without_interval
    for key, (above, below) in RATIOS.items():
        found.support[key] = sums.rows.n
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
    )
