"""Confidence intervals of the figures of a data set, from sums over its answers.

Every figure is a smooth function of sums, so its variance follows from theirs and from its
derivatives. Which interval is made of it depends on what the figure is: a mean, an F1 of two
populations that overlap, or a mean of such figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.metrics.grounding import maths
from trustassay.statistics.intervals import (
    FEWEST,
    Interval,
    RowSums,
    Term,
    mean_interval,
    sum_interval,
    t_interval,
    too_few,
)

__all__ = ["FEWEST_BEHIND", "Intervals", "figure_intervals"]

Floats = NDArray[np.float64]
Figures = Callable[[Floats], Mapping[str, Floats]]

FEWEST_BEHIND = 3
"""Answers below which a mean or an F1 has no interval, and neither has a figure made of it."""
STEP = 1e-4
"""The share of a population's size by which its sums are moved to find derivatives."""

OVERLAPPING = frozenset(
    {"reject_f1", "answerable_f1", "calib_str_em_f1", "calib_claims_nli_f1", "calib_qampari_em_f1"}
)
"""F1s whose precision and recall are means over two populations that overlap."""


class Intervals(NamedTuple):
    """The intervals of figures, and for those without one the reason."""

    found: dict[str, Interval]
    absent: dict[str, str]


def figure_intervals(
    wanted: Iterable[str],
    figures: Figures,
    sums: RowSums,
    units: Mapping[str, int],
    correctness: str | None,
) -> Intervals:
    """Return the intervals of the wanted figures, all of which have a value.

    Args:
        figures: the figures of sums of shape (..., 2 K), K of terms and K sizes of populations.
        units: the number of units behind each figure.
        correctness: as for :func:`maths.figures`; it says what the trust score is made of.
    """
    made = {key: _parts(key, correctness) for key in wanted}
    what = "answers" if sums.units == sums.n else "units"
    absent = {key: words for key, parts in made.items() if (words := _too_few(parts, units, what))}
    made = {key: parts for key, parts in made.items() if key not in absent}
    simple = sorted({part for parts in made.values() for part in parts})
    point, slopes = _derivatives(simple, figures, sums.total)
    covariance = sums.covariance(slopes)
    alone = {
        key: _interval(key, point[key], float(covariance[i, i]), units[key])
        for i, key in enumerate(simple)
    }
    found = {}
    for key, parts in made.items():
        places = [simple.index(part) for part in parts]
        interval = _together(parts, point, alone, covariance[np.ix_(places, places)])
        if interval:
            found[key] = interval
        else:
            absent[key] = "all answers have the same value, so its variance is unknown"
    return Intervals(found, absent)


def _parts(key: str, correctness: str | None) -> dict[str, float]:
    """Return the figures whose weighted sum a figure is, or itself."""
    if key == "macro_avg":
        return {"reject_rec": 1 / 2, "answerable_rec": 1 / 2}
    if key == "macro_f1":
        return {"reject_f1": 1 / 2, "answerable_f1": 1 / 2}
    if key == "trust_score" and correctness:
        thirds = {maths.CORRECTNESS_F1[correctness]: 1 / 3, "answered_citation_f1": 1 / 3}
        return thirds | {"reject_f1": 1 / 6, "answerable_f1": 1 / 6}
    return {key: 1.0}


def _too_few(parts: Iterable[str], units: Mapping[str, int], what: str) -> str | None:
    """Return why a figure made of these parts has no interval, or ``None`` if it has one."""
    reason = too_few(f"scored {what}", units["answered_ratio"], FEWEST)
    for part in parts:
        reason = reason or too_few(f"{what} for {part}", units[part], FEWEST_BEHIND)
    return reason


def _derivatives(
    keys: Sequence[str], figures: Figures, total: Floats
) -> tuple[dict[str, float], Floats]:
    """Return figures and their derivatives by the sums, shape (figures, 2 K), by differences."""
    width = len(total)
    sizes = np.tile(total[width // 2 :], 2)
    steps = STEP * np.where(sizes > 0, sizes, 1.0)
    moved = total + np.concatenate([np.zeros((1, width)), np.diag(steps), -np.diag(steps)])
    found = figures(moved)
    point = {key: float(found[key][0]) for key in keys}
    ahead, behind = (
        np.array([found[key][i : i + width] for key in keys]).reshape(len(keys), width)
        for i in (1, 1 + width)
    )
    return point, (ahead - behind) / (2 * steps)


def _interval(key: str, value: float, variance: float, n: int) -> Interval | None:
    """Return the interval of a mean or an F1."""
    if key.endswith(("_length", "num_preds")):
        interval = t_interval(value, variance, n)
        return interval and (max(interval[0], 0.0), interval[1])
    scale = 1.0 if key in maths.NOT_PERCENT else 100.0
    share, variance = min(max(value / scale, 0.0), 1.0), variance / scale**2
    if key in OVERLAPPING:
        low, high = _overlap_f1_interval(share, variance, n)
    else:
        low, high = mean_interval(share, variance, n)
    return min(low, share) * scale, max(high, share) * scale


def _overlap_f1_interval(f1: float, variance: float, n: int) -> Interval:
    """Return the interval of an F1 over n answers of either of two populations.

    F1 = 2 J / (1 + J), where J (Jaccard's index) is the share of the n answers that are in both
    and count: a share like others, exactly so where every answer counts whole or not at all.
    """
    index = f1 / (2 - f1)
    slope = 2 / (2 - f1) ** 2
    low, high = mean_interval(index, variance * slope**2, n)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _together(
    weights: Mapping[str, float],
    point: Mapping[str, float],
    alone: Mapping[str, Interval | None],
    covariance: Floats,
) -> Interval | None:
    """Return the interval of a weighted sum of figures, from theirs and their covariance.

    Two figures of 0 or 100 % without variance may well lose it together, as both F1s of refusals
    do by one wrong refusal: their correlation is taken as 1.
    """
    terms = []
    for key, weight in weights.items():
        interval = alone[key]
        if interval is None:
            return None
        terms.append(Term(point[key], interval, weight))
    if len(terms) == 1:
        return terms[0].interval
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    flat = errors < 1e-6
    together = np.outer(flat, flat) | np.eye(len(terms), dtype=bool)
    both = np.outer(errors, errors)
    known = ~(flat[:, None] | flat)
    correlation = np.divide(covariance, both, out=together.astype(np.float64), where=known)
    np.fill_diagonal(correlation, 1.0)
    return sum_interval(terms, np.clip(correlation, -1.0, 1.0))
