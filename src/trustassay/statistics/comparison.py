"""Two samples of scores compared: differences with intervals, Kolmogorov-Smirnov, permutations."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.intervals import (
    FEWEST,
    FEWEST_FOR_MEANS,
    Interval,
    Term,
    bounded_interval,
    sum_interval,
    too_few,
    unit_mean,
    unit_quantile_interval,
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
    "sign_flip_ps",
]

Floats = NDArray[np.float64]
SampleUnits = tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]

FLIPPED_AT_ONCE = 4_000_000
"""Signs of the largest matrix that is held."""
CELLS = 2048
"""Places at which the permutation test of two large samples compares their distributions."""


class Difference(NamedTuple):
    """A difference, second minus first, with its 95 % interval, or why it has none."""

    value: float
    interval: Interval | None
    without: str | None = None


class KolmogorovSmirnov(NamedTuple):
    """The largest distance of two distribution functions.

    ``at`` is the value where it is reached, ``p`` that of the permutation test, ``None`` where
    samples are not independent.
    """

    statistic: float
    at: float
    p: float | None


def difference_of_means(
    first: ArrayLike,
    second: ArrayLike,
    bounds: tuple[float, float] = (0.0, 1.0),
    units: SampleUnits = (None, None),
) -> Difference:
    """Return mean(second) - mean(first) of two independent samples.

    Its interval is put together from those of both means (Zou and Donner 2008); of numbers that
    are all 0 or 1 it is much like Newcombe's (1998, method 10).

    Args:
        bounds: between which all values lie. units: of the values of both samples, as for
            :func:`~trustassay.statistics.intervals.unit_mean`.

    Raises:
        ValueError: a sample is empty.
    """
    return _difference_of_means(_sample(first), _sample(second), bounds, units, FEWEST_FOR_MEANS)


def difference_of_shares(
    first: ArrayLike, second: ArrayLike, units: SampleUnits = (None, None)
) -> Difference:
    """Return the difference of the percentages of true values of two independent samples.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = (100.0 * _sample(one) for one in (first, second))
    return _difference_of_means(a, b, (0.0, 100.0), units, FEWEST)


def _difference_of_means(
    a: Floats, b: Floats, bounds: tuple[float, float], units: SampleUnits, fewest: int
) -> Difference:
    value = float(b.mean() - a.mean())
    means = [unit_mean(a, units[0]), unit_mean(b, units[1])]
    what = "samples" if units[0] is units[1] is None else "independent units (of equal size)"
    if reason := too_few(what, math.floor(min(one.units for one in means) + 1e-9), fewest):
        return Difference(value, None, reason)
    terms = []
    for mean, weight in zip(means, (-1.0, 1.0), strict=True):
        ends = bounded_interval(mean, bounds)
        assert ends
        terms.append(Term(mean.mean, ends, weight))
    return Difference(value, sum_interval(terms, np.eye(2)))


def mean_of_differences(
    differences: ArrayLike,
    largest: float = 1.0,
    units: NDArray[np.int64] | None = None,
    fewest: int = FEWEST_FOR_MEANS,
) -> Difference:
    """Return the mean of paired differences, second minus first.

    Where the skewness g of n units is harmless, n > 25 g^2 (Cochran 1977, sec. 2.15), the interval
    is that of a mean of numbers from -``largest`` to ``largest``, which is nearly Student's. Else,
    as where few samples changed, it is put together from those of the mean rise and the mean fall,
    which are skewed as they are.

    Args:
        units: of the pairs, as for :func:`~trustassay.statistics.intervals.unit_mean`.
        fewest: units below which there is no interval.

    Raises:
        ValueError: there is none.
    """
    sample = _sample(differences)
    mean = unit_mean(sample, units)
    value, n = mean.mean, mean.units
    what = "pairs" if n == len(sample) else "questions (of equal size)"
    if reason := too_few(what, math.floor(n + 1e-9), fewest):
        return Difference(value, None, reason)
    moved = _apart(sample, units)
    # n > 25 g^2 with g = m3 / m2^(3/2), without dividing: all may be the same.
    if n * float(np.mean(moved**2)) ** 3 > 25 * float(np.mean(moved**3)) ** 2:
        return Difference(value, bounded_interval(mean, (-largest, largest)))
    sides = [np.maximum(sample, 0.0), np.maximum(-sample, 0.0)]
    rise, fall = (_apart(side, units) for side in sides)
    scatter = float(rise.std() * fall.std())
    together = float(np.mean(rise * fall)) / scatter if scatter else 0.0
    terms = []
    for side, weight in zip(sides, (1.0, -1.0), strict=True):
        own = unit_mean(side, units)
        ends = bounded_interval(own, (0.0, largest))
        assert ends
        terms.append(Term(own.mean, ends, weight))
    correlation = np.array([[1.0, together], [together, 1.0]])
    return Difference(value, sum_interval(terms, np.clip(correlation, -1.0, 1.0)))


def _apart(sample: Floats, units: NDArray[np.int64] | None) -> Floats:
    """Return the sums of each unit's distances from the mean."""
    apart = sample - sample.mean()
    if units is None or not (units >= 0).any():
        return np.asarray(apart)
    place = np.unique(units[units >= 0], return_inverse=True)[1]
    return np.concatenate([apart[units < 0], np.bincount(place, apart[units >= 0])])


def difference_of_medians(
    first: ArrayLike, second: ArrayLike, units: SampleUnits = (None, None)
) -> Difference:
    """Return median(second) - median(first) of two independent samples.

    Its interval is put together from those of both medians. units: as in
    :func:`difference_of_means`.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = _sample(first), _sample(second)
    value = float(np.median(b) - np.median(a))
    terms = []
    for sample, own, weight in ((b, units[1], 1.0), (a, units[0], -1.0)):
        alone = np.full(len(sample), -1)
        interval = unit_quantile_interval(sample, alone if own is None else own, 0.5)
        worth = unit_mean(sample, own).units
        what = "samples" if own is None else "independent units (of equal size)"
        reason = too_few(what, math.floor(worth + 1e-9), FEWEST)
        if reason or interval is None:
            return Difference(value, None, reason or "too few independent units")
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
    return float(sign_flip_ps(_sample(differences)[None], rng, permutations)[0])


def sign_flip_ps(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> Floats:
    """Return :func:`sign_flip_p` of several rows, with the same flips for all, shape (r,).

    Args:
        differences: shape (r, n), of the same n units; n may be 0.
    """
    rows = np.asarray(differences, dtype=np.float64)
    observed = np.abs(rows.sum(axis=1))
    slack = 1e-12 * np.abs(rows).sum(axis=1)
    some = np.flatnonzero(rows.any(axis=0))
    reached = np.zeros(len(rows))
    at_once = max(1, FLIPPED_AT_ONCE // max(len(some), 1))
    for start in range(0, permutations, at_once):
        size = (min(at_once, permutations - start), len(some))
        signs = 2.0 * rng.integers(0, 2, size=size, dtype=np.int8) - 1.0
        reached += (np.abs(rows[:, some] @ signs.T) >= (observed - slack)[:, None]).sum(axis=1)
    return np.asarray((1 + reached) / (1 + permutations))
