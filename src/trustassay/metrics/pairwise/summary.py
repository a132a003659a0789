"""The figures of a data set: the win rate in both conventions, and the effect of the order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from trustassay.metric import Assessment, Figure, Metric, Summary
from trustassay.metrics.pairwise import maths
from trustassay.statistics.intervals import FEWEST, Interval, RowSums, mean_interval, too_few
from trustassay.summaries import units_of

__all__ = ["FIGURES", "Rate", "rates", "summarise"]

_BEHIND = {
    "win_rate": "questions that were won or lost",
    "first_chosen": "questions with a choice",
}
"""What a rate is of, where not of all questions that were read."""


def _figures(*rows: tuple[str, str, str, bool]) -> dict[str, Figure]:
    return {key: Figure(key, words, unit, headline=main) for key, words, unit, main in rows}


FIGURES: Mapping[str, Figure] = _figures(
    ("win_rate", "won among those that were won or lost; 50 for equals", "%", True),
    ("wins", "questions won: preferred in both orders", "", True),
    ("losses", "questions lost: the other answer preferred in both orders", "", True),
    ("unsure", "dropped: not sure in one order or both, or equal answers", "", True),
    ("inconsistent", "dropped: the same place chosen in both orders", "", True),
    ("unreadable", "dropped: a reply that names no choice", "", True),
    ("first_both", "of the inconsistent: the first place chosen twice", "", False),
    ("second_both", "of the inconsistent: the second place chosen twice", "", False),
    ("equal", "of the unsure: answers that are equal, which nobody was asked about", "", False),
    ("win_share", "won, if ties are kept; the three shares sum to 100", "%", True),
    ("loss_share", "lost, if ties are kept", "%", True),
    ("tie_share", "tied: neither won nor lost in both orders", "%", True),
    ("first_chosen", "choices for the answer that is read first; 50 without a bias", "%", True),
)


def summarise(metric: Metric, assessments: Collection[Assessment]) -> Summary:
    """Return the figures over the questions that were judged, read once."""
    n = failed = equal = 0
    sums = RowSums(16)  # the table of each question as a row
    for one in assessments:
        n += 1
        failed += one.error is not None
        if one.error is None:
            row = np.zeros((1, 16))
            row[0, 4 * int(one.parts["first"]) + int(one.parts["swapped"])] = 1
            sums.add(row, units_of([one]))
            equal += int(one.parts["equal"])
    table = sums.total.reshape(4, 4)
    counts = maths.outcomes(table)
    values: dict[str, float | int | None] = {
        "wins": counts["win"],
        "losses": counts["loss"],
        "unsure": counts["unsure"],
        "inconsistent": counts["inconsistent"],
        "unreadable": counts["unreadable"],
        "first_both": int(table[0, 0]),
        "second_both": int(table[1, 1]),
        "equal": equal,
    }
    found = rates(sums)
    values |= {key: one.value for key, one in found.items()}
    return Summary(
        {key: values[key] for key in FIGURES},
        n,
        failed,
        {key: one.interval for key, one in found.items() if one.interval},
        {key: found[key].support if key in found else sums.n for key in FIGURES},
        {key: one.why for key, one in found.items() if one.value is None},
        metric.settings(),
        {key: one.why for key, one in found.items() if one.value is not None and one.why},
        units={key: one.units for key, one in found.items() if one.units < one.support},
    )


class Rate(NamedTuple):
    """A rate in percent, ``None`` if nothing is behind it; its interval, and why it has none.

    support: the questions behind it, or answers to them; units: of these, independent ones.
    """

    value: float | None
    interval: Interval | None
    why: str
    support: int
    units: int


def rates(sums: RowSums) -> dict[str, Rate]:
    """Return :data:`~trustassay.metrics.pairwise.maths.RATES` of the sums of questions' tables."""
    return {key: _rate(key, sums) for key in maths.RATES}


def _rate(key: str, sums: RowSums) -> Rate:
    above, below = (one.ravel() for one in maths.RATES[key])
    behind, what = below > 0, _BEHIND.get(key, "questions")
    support = int(sums.total[behind].sum())
    if not support:
        return Rate(None, None, f"no {what}", 0, 0)
    value = maths.rate(key, sums.total.reshape(4, 4))
    units = int(sums.alone[behind].sum() + (sums.several[:, behind] > 0).any(axis=1).sum())
    mean = sums.ratio(above, below)
    if reason := too_few(what, min(units, math.floor(mean.units + 1e-9)), FEWEST):
        return Rate(value, None, reason, support, units)
    low, high = mean_interval(*mean)
    return Rate(value, (100 * low, 100 * high), "", support, units)
