"""Figures that a metric only declares: means, shares, quantiles and totals, with intervals."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trustassay.statistics.intervals import (
    binomial_interval,
    mean_interval,
    quantile_interval,
    t_interval,
)

__all__ = ["Mean", "Quantile", "Share", "Statistic", "Summarised", "Total", "summarised"]

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of the scores, or of a part.

    ``bounds`` are the least and largest value that a part can take; those of the score are the
    metric's. Without bounds the interval is Student's.
    """

    of: str = "score"
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The percentage of a verdict among the scored answers."""

    verdict: str


@dataclass(frozen=True, slots=True)
class Quantile:
    """The q-quantile of the scores, or of a part, 0 < q < 1."""

    q: float
    of: str = "score"


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a part over the answers; it has no interval."""

    of: str


Statistic = Mean | Share | Quantile | Total


@dataclass(slots=True)
class Summarised:
    """Declared figures over a data set, by their keys."""

    n: int = 0
    failed: int = 0
    values: dict[str, float | None] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    support: dict[str, int] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)


def summarised(
    statistics: Mapping[str, Statistic],
    assessments: Iterable[Any],
    score_range: tuple[float, float] = (0.0, 1.0),
) -> Summarised:
    """Return figures over assessments, which are read once.

    A figure counts the assessments without an error that have its score, verdict or part; where
    there is none it does not apply.
    """
    found = Summarised()
    columns = {key: array("d") for key in statistics}
    for assessment in assessments:
        found.n += 1
        found.failed += assessment.error is not None
        if assessment.error is not None:
            continue
        for key, statistic in statistics.items():
            value = _value(statistic, assessment)
            if value is not None:
                columns[key].append(value)
    for key, statistic in statistics.items():
        numbers = np.frombuffer(columns[key], dtype=float) if columns[key] else np.empty(0)
        found.support[key] = len(numbers)
        if not len(numbers):
            found.values[key] = None
            found.not_applicable[key] = "no sample has it" if found.n else "no sample was scored"
            continue
        found.values[key], interval = _figure(statistic, numbers, score_range)
        if interval:
            found.intervals[key] = interval
    return found


def _value(statistic: Statistic, assessment: Any) -> float | None:
    """Return what one assessment contributes, if anything."""
    if isinstance(statistic, Share):
        return (
            None if assessment.verdict is None else float(assessment.verdict == statistic.verdict)
        )
    if statistic.of == "score":
        score: float | None = assessment.score
        return score
    return assessment.parts.get(statistic.of)  # type: ignore[no-any-return]


def _figure(
    statistic: Statistic, numbers: Any, score_range: tuple[float, float]
) -> tuple[float, Interval | None]:
    n = len(numbers)
    if isinstance(statistic, Total):
        return float(numbers.sum()), None
    if isinstance(statistic, Quantile):
        ordered = np.sort(numbers)
        return float(np.quantile(ordered, statistic.q)), quantile_interval(ordered, statistic.q)
    mean, variance = float(numbers.mean()), float(numbers.var()) / n
    if isinstance(statistic, Share):
        interval = binomial_interval(float(numbers.sum()), n) if n > 1 else None
        return 100 * mean, interval and (100 * interval[0], 100 * interval[1])
    bounds = score_range if statistic.of == "score" else statistic.bounds
    if n < 2:
        return mean, None
    if bounds is None or not all(map(math.isfinite, bounds)):
        return mean, t_interval(mean, variance, n)
    low, width = bounds[0], bounds[1] - bounds[0]
    inner = mean_interval((mean - low) / width, variance / width**2, n)
    return mean, (low + width * inner[0], low + width * inner[1])
