"""Two samples of scores compared: differences with intervals, Kolmogorov-Smirnov, permutations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.intervals import (
    FEWEST,
    FEWEST_FOR_MEANS,
    Interval,
    Term,
    mean_interval,
    quantile_interval,
    sum_interval,
    too_few,
)

__all__ = [
    "Difference",
    "KolmogorovSmirnov",
    "difference_of_means",
    "difference_of_medians",
    "difference_of_shares",
    "kolmogorov_smirnov",
    "mean_of_differences",
    "sign_flip_p",
]

Floats = NDArray[np.float64]

CHUNK = 4096
CELLS = 2048
"""Places at which the permutation test of two large samples compares their distributions."""


class Difference(NamedTuple):
    """A difference, second minus first, with its 95 % interval, or why it has none."""

    value: float
    interval: Interval | None
    without: str | None = None


class KolmogorovSmirnov(NamedTuple):
    """The largest distance of two distribution functions.

    ``at`` is the value where it is reached, ``p`` that of the permutation test.
    """

    statistic: float
    at: float
    p: float


def difference_of_means(
    first: ArrayLike, second: ArrayLike, bounds: tuple[float, float] = (0.0, 1.0)
) -> Difference:
    """Return mean(second) - mean(first) of two independent samples.

    Its interval is put together from those of both means (Zou and Donner 2008); of numbers that
    are all 0 or 1 it is much like Newcombe's (1998, method 10).

    Args:
        bounds: between which all values lie.

    Raises:
        ValueError: a sample is empty.
    """
    return _difference_of_means(_sample(first), _sample(second), bounds, FEWEST_FOR_MEANS)


def difference_of_shares(first: ArrayLike, second: ArrayLike) -> Difference:
    """Return the difference of the percentages of true values of two independent samples.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = (100.0 * _sample(one) for one in (first, second))
    return _difference_of_means(a, b, (0.0, 100.0), FEWEST)


def _difference_of_means(
    a: Floats, b: Floats, bounds: tuple[float, float], fewest: int
) -> Difference:
    value = float(b.mean() - a.mean())
    if reason := too_few("samples", min(len(a), len(b)), fewest):
        return Difference(value, None, reason)
    terms = [_mean(b, bounds, 1.0), _mean(a, bounds, -1.0)]
    return Difference(value, sum_interval(terms, np.eye(2)))


def _mean(sample: Floats, bounds: tuple[float, float], weight: float) -> Term:
    """Return the mean of a sample with its interval."""
    low, high = bounds
    shares = (sample - low) / (high - low)
    mean, n = float(shares.mean()), len(shares)
    interval = mean_interval(min(max(mean, 0.0), 1.0), float(shares.var()) / n, n)
    ends = (low + (high - low) * interval[0], low + (high - low) * interval[1])
    return Term(low + (high - low) * mean, ends, weight)


def mean_of_differences(differences: ArrayLike, largest: float = 1.0) -> Difference:
    """Return the mean of paired differences, second minus first.

    Where their skewness g is harmless, n > 25 g^2 (Cochran 1977, sec. 2.15), the interval is that
    of a mean of numbers from -``largest`` to ``largest``, which is nearly Student's. Else, as where
    few samples changed, it is put together from those of the mean rise and the mean fall, which
    are skewed as they are.

    Raises:
        ValueError: there is none.
    """
    sample = _sample(differences)
    value, n = float(sample.mean()), len(sample)
    if reason := too_few("pairs", n, FEWEST_FOR_MEANS):
        return Difference(value, None, reason)
    moved = sample - value
    # n > 25 g^2 with g = m3 / m2^(3/2), without dividing: all may be the same.
    if n * float(np.mean(moved**2)) ** 3 > 25 * float(np.mean(moved**3)) ** 2:
        return Difference(value, _mean(sample, (-largest, largest), 1.0).interval)
    sides = [np.maximum(sample, 0.0), np.maximum(-sample, 0.0)]
    scatter = float(sides[0].std() * sides[1].std())
    together = -float(sides[0].mean() * sides[1].mean()) / scatter if scatter else 0.0
    terms = [_mean(sides[0], (0.0, largest), 1.0), _mean(sides[1], (0.0, largest), -1.0)]
    correlation = np.array([[1.0, together], [together, 1.0]])
    return Difference(value, sum_interval(terms, correlation))


def difference_of_medians(first: ArrayLike, second: ArrayLike) -> Difference:
    """Return median(second) - median(first) of two independent samples.

    Its interval is put together from those of both medians.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = np.sort(_sample(first)), np.sort(_sample(second))
    value = float(np.median(b) - np.median(a))
    if reason := too_few("samples", min(len(a), len(b)), FEWEST):
        return Difference(value, None, reason)
    terms = []
    for sample, weight in ((b, 1.0), (a, -1.0)):
        interval = quantile_interval(sample, 0.5)
        assert interval
        terms.append(Term(float(np.median(sample)), interval, weight))
    return Difference(value, sum_interval(terms, np.eye(2)))


def _sample(values: ArrayLike) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("expected one value or more")
    return sample


def kolmogorov_smirnov(
    first: ArrayLike, second: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> KolmogorovSmirnov:
    """Return D = max |F1(x) - F2(x)| and the share of permutations that reach it.

    p = (1 + permutations with D as large) / (1 + permutations), so never 0. Which sample a value
    came from is drawn anew for all values at once, as numbers out of each cell of equal values;
    of more than 2,048 different values the test, though not the statistic, takes neighbours for
    equal, in the data and the permutations alike, and so stays exact.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = np.sort(_sample(first)), np.sort(_sample(second))
    values = np.unique(np.concatenate([a, b]))
    gaps = np.abs(_cumulative(a, values) - _cumulative(b, values))
    statistic, at = float(gaps.max()), float(values[np.argmax(gaps)])
    if len(values) > CELLS:
        steps = np.linspace(0, len(a) + len(b) - 1, CELLS + 1)[1:].astype(np.int64)
        values = np.unique(np.sort(np.concatenate([a, b]))[steps])
    in_a, in_b = _counts(a, values), _counts(b, values)
    observed = float(np.abs(np.cumsum(in_a) / len(a) - np.cumsum(in_b) / len(b)).max())
    both = in_a + in_b
    reached = 0
    for start in range(0, permutations, 256):
        size = min(256, permutations - start)
        drawn = rng.multivariate_hypergeometric(both, len(a), size=size, method="marginals")
        share = np.cumsum(drawn, axis=1) / len(a)
        rest = np.cumsum(both - drawn, axis=1) / len(b)
        reached += int((np.abs(share - rest).max(axis=1) >= observed - 1e-12).sum())
    return KolmogorovSmirnov(statistic, at, (1 + reached) / (1 + permutations))


def _cumulative(ordered: Floats, values: Floats) -> Floats:
    return np.searchsorted(ordered, values, side="right") / len(ordered)


def _counts(ordered: Floats, values: Floats) -> NDArray[np.int64]:
    """Return how many of a sorted sample lie in each cell that ends at one of the values."""
    return np.diff(np.searchsorted(ordered, values, side="right"), prepend=0).astype(np.int64)


def sign_flip_p(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> float:
    """Return the two-sided p-value that the mean of paired differences is 0.

    Under the hypothesis each difference could as well have the other sign: p is
    (1 + flips with a mean as far from 0) / (1 + flips). Differences of 0 say nothing; without any
    other, p is 1.
    """
    found = _sample(differences)
    found = found[found != 0]
    observed = abs(found.sum())
    sums = np.zeros(permutations)
    for start in range(0, len(found), CHUNK):
        block = found[start : start + CHUNK]
        signs = rng.integers(0, 2, size=(permutations, len(block)), dtype=np.int8)
        sums += 2 * (signs @ block) - block.sum()
    slack = 1e-12 * np.abs(found).sum()
    return float((1 + (np.abs(sums) >= observed - slack).sum()) / (1 + permutations))
