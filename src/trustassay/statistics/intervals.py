"""Confidence intervals that hold for few samples: of shares, of means and of quantiles.

All are computed from sums, without resampling, so they take no time and depend on no seed.
``python -m benchmarks.coverage`` measures how often they hold the true value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.distributions import (
    incomplete_beta,
    normal_quantile,
    student_t_quantile,
)

__all__ = [
    "FEWEST",
    "FEWEST_FOR_MEANS",
    "Interval",
    "RowSums",
    "Term",
    "binomial_interval",
    "fewest_for_quantile",
    "mean_interval",
    "quantile_interval",
    "sum_interval",
    "t_interval",
    "too_few",
    "wilson_interval",
]

Floats = NDArray[np.float64]
Interval = tuple[float, float]

FEWEST = 20
"""Samples below which no figure is to be given an interval."""
FEWEST_FOR_MEANS = 40
"""The same of means of scores of any size: of 20 samples, one time in eight none belongs to the
tenth that makes up most of the mean (docs/intervals.md)."""
UNSEEN = 1.0
"""Events of the largest possible size that :func:`mean_interval` adds to those that were seen."""
SAME = 1e-12
"""A design effect that is rounding: all numbers are the same."""
MANY = 1000
"""Successes and failures from which on Wilson's interval stands for the exact one."""


def too_few(what: str, there: int, needed: int) -> str | None:
    """Return why a figure has no interval, or ``None`` if there are enough samples."""
    return f"too few {what}: {there:,}; at least {needed:,} are needed" if there < needed else None


class RowSums:
    """Sums of rows and of their products, in one pass and the memory of one matrix.

    ``total`` has shape (width,), ``products`` shape (width, width), the sum of each row's outer
    product with itself. They give the variance of any smooth function of the sums.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.total: Floats = np.zeros(width)
        self.products: Floats = np.zeros((width, width))

    def add(self, rows: Floats) -> None:
        """Count in more rows, shape (m, width)."""
        self.n += len(rows)
        self.total += rows.sum(axis=0)
        self.products += rows.T @ rows

    def covariance(self, gradients: Floats) -> Floats:
        """Return the covariances of figures with these gradients by the sums, shape (f, f).

        Args:
            gradients: derivative of each figure by each sum, shape (f, width).

        The infinitesimal jackknife (Efron and Tibshirani 1993, sec. 21): a row r moves a figure
        by g r, and the figure's variance is the sum of the squares of these about their mean. It
        is that of draws with replacement, with n and not n - 1. Of no row at all it is 0.
        """
        if not self.n:
            return np.zeros((len(gradients), len(gradients)))
        moved = gradients @ self.total
        found: Floats = gradients @ self.products @ gradients.T - np.outer(moved, moved) / self.n
        return found


def wilson_interval(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return the score interval of a share (Wilson 1927); n above 0."""
    z2 = normal_quantile((1 + level) / 2) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def binomial_interval(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return the mid-P interval of a share of independent yes and no (Lancaster 1961).

    The bounds are the shares p at which P(X < x) + P(X = x) / 2 is (1 - level) / 2, and the same
    of P(X > x). Clopper and Pearson (1934) count P(X = x) whole and are too wide by about one
    success; Wilson's interval is nearly the same in the middle, but holds a share near 0 or 1 as
    seldom as 84 times in a hundred.

    ``successes`` and ``n`` need not be whole: the binomial is continued by the incomplete beta
    function. None of n gives (0, 1 - (1 - level)^(1/n)), n of n the mirror image. From 1,000
    successes and failures on, where both agree, it is Wilson's.

    Raises:
        ValueError: n is not above 0, or successes are not between 0 and n.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"expected 0 <= successes <= n and n above 0, got {successes} of {n}")
    if min(successes, n - successes) >= MANY:
        return wilson_interval(successes, n, level)
    low, high = wilson_interval(successes, n, level)
    tail = (1 - level) / 2
    return (
        1 - _upper_bound(n - successes, n, tail, 1 - low),
        _upper_bound(successes, n, tail, high),
    )


def _upper_bound(x: float, n: float, tail: float, guess: float) -> float:
    """Return the p at which P(X < x) + P(X = x) / 2 = tail, by Newton's steps in a bracket."""
    if n - x <= 1e-9 * n:
        return 1.0
    ways = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
    low, high = x / n, 1.0
    p = guess if low < guess < high else (low + high) / 2
    for _ in range(100):
        if p >= 1:
            return 1.0
        equal = math.exp(ways + x * math.log(p) + (n - x) * math.log1p(-p))
        surplus = 1 - incomplete_beta(x + 1, n - x, p) - equal / 2 - tail
        low, high = (p, high) if surplus > 0 else (low, p)
        slope = equal / 2 * ((n - x) / (1 - p) + x / p)
        last, p = p, p + surplus / slope if slope else high
        if not low < p < high:
            p = (low + high) / 2
        if abs(p - last) <= 1e-8 * min(p, 1 - p):  # the error is about the square of the step
            break
    return p


def mean_interval(mean: float, variance: float, n: int, level: float = 0.95) -> Interval:
    """Return the interval of a mean of n independent numbers between 0 and 1.

    Args:
        mean: from 0 to 1. It may be another figure between 0 and 1 that n samples make up.
        variance: the variance of the mean, the n numbers' mean square about it over n.
        n: the numbers, 1 or more.

    Numbers that are all 0 or 1 have the variance m (1 - m) / n; others have a share d of that,
    the design effect, and tell as much as n / d numbers of 0 and 1 do (Korn and Graubard 1998).
    So the interval is :func:`binomial_interval` of m n / d successes of n / d, which is as
    skewed as the mean is. Two things are added, which vanish where all are 0 or 1:

    - What was seen, k = min(m, 1 - m) n / d events of the size d, may not be all there is: d is
      taken as if one event more of the largest size had been seen, (k d + 1) / (k + 1).
    - The variance is an estimate: it is raised by (t / z)^2 n / (n - 1), times 1 - d.

    Where all numbers are the same, what was not seen may be a share of up to
    u = 1 - (1 - level)^(1/n), and of any size: (m - u m, m + u (1 - m)). A single number says
    nothing of how others scatter: (0, 1).

    Raises:
        ValueError: n is below 1, or the mean is not between 0 and 1.
    """
    if n < 1 or not 0 <= mean <= 1:
        raise ValueError(f"expected n of 1 or more and a mean from 0 to 1, got {n} and {mean}")
    if n < 2:
        return (0.0, 1.0)
    whole = mean * (1 - mean)
    effect = max(variance, 0.0) * n / whole if whole > 0 else 0.0
    if effect <= SAME:
        unseen = 1 - (1 - level) ** (1 / n)
        return mean - unseen * mean, mean + unseen * (1 - mean)
    events = min(mean, 1 - mean) * n / effect
    effect = (events * effect + UNSEEN) / (events + UNSEEN)
    p = (1 + level) / 2
    estimated = (student_t_quantile(p, n - 1) / normal_quantile(p)) ** 2 * n / (n - 1)
    told = n / effect / (1 + max(1 - effect, 0.0) * (estimated - 1))
    return binomial_interval(mean * told, told, level)


def t_interval(mean: float, variance: float, n: int, level: float = 0.95) -> Interval | None:
    """Return Student's interval of a mean of n numbers that have no bounds.

    ``variance`` is as in :func:`mean_interval`. ``None`` for a single number, and where all are
    the same: their scatter is unknown.
    """
    if n < 2 or variance <= 0:
        return None
    reach = student_t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance * n / (n - 1))
    return mean - reach, mean + reach


class Term(NamedTuple):
    """A figure with its interval, and the weight with which it enters a sum."""

    value: float
    interval: Interval
    weight: float


def sum_interval(terms: Sequence[Term], correlation: Floats) -> Interval:
    """Return the interval of a weighted sum of figures (Zou and Donner 2008, "MOVER").

    The distances from the sum to its bounds are put together, as standard errors are, from those
    of each figure, on the side from which it moves the sum that way; so intervals that are not
    symmetric stay so, and that of a figure of 0 or 100 % has its width.

    Args:
        terms: one or more. correlation: of the figures, shape (f, f).
    """
    weights = np.array([term.weight for term in terms])
    values = np.array([term.value for term in terms])
    reach = np.abs(np.array([term.interval for term in terms]).T - values)
    down, up = np.where(weights > 0, reach, reach[::-1]) * np.abs(weights)
    together = np.sign(np.outer(weights, weights)) * correlation
    total = float(weights @ values)
    below, above = (math.sqrt(max(float(side @ together @ side), 0.0)) for side in (down, up))
    return total - below, total + above


def quantile_interval(ordered: Floats, q: float, level: float = 0.95) -> Interval | None:
    """Return the interval of the q-quantile, 0 < q < 1, from n sorted values.

    A value of the sample at place u (from 1 on, and between two places linearly) lies below the
    quantile with a probability of I_q(u, n + 1 - u), whatever the distribution (Hutson 1999);
    the bounds stand where that is (1 + level) / 2 and (1 - level) / 2. Among equal values it
    holds the quantile more often.

    ``None`` if the places lie beyond the sample: a median needs 6 values, the 90 % quantile 36.
    """
    n = len(ordered)
    if n < fewest_for_quantile(q, level):
        return None
    tail = (1 - level) / 2
    places = (_place(n, q, 1 - tail), _place(n, q, tail))
    low, high = np.interp(places, np.arange(1, n + 1), ordered)
    return float(low), float(high)


def fewest_for_quantile(q: float, level: float = 0.95) -> int:
    """Return the number of values from which :func:`quantile_interval` has bounds."""
    return math.ceil(math.log((1 - level) / 2) / math.log(max(q, 1 - q)))


@cache
def _place(n: int, q: float, probability: float) -> float:
    """Return the u from 1 to n with I_q(u, n + 1 - u) = probability, which falls with u."""
    low, high = 1.0, float(n)
    while high - low > 1e-9 * n:
        middle = (low + high) / 2
        if incomplete_beta(middle, n + 1 - middle, q) > probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
