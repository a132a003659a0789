"""Two samples of scores compared: differences with intervals, Kolmogorov-Smirnov, permutations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.bootstrap import (
    CHUNK,
    BootstrapSums,
    percentile_interval,
    resampled_quantiles,
)

__all__ = [
    "Difference",
    "KolmogorovSmirnov",
    "difference_of_means",
    "difference_of_medians",
    "kolmogorov_smirnov",
    "sign_flip_p",
]

Floats = NDArray[np.float64]

CELLS = 2048
"""Places at which the permutation test of two large samples compares their distributions."""


class Difference(NamedTuple):
    """A difference, second minus first, with a percentile bootstrap interval."""

    value: float
    interval: tuple[float, float]


class KolmogorovSmirnov(NamedTuple):
    """The largest distance of two distribution functions.

    ``at`` is the value where it is reached, ``p`` that of the permutation test.
    """

    statistic: float
    at: float
    p: float


def difference_of_means(
    first: ArrayLike, second: ArrayLike, rng: np.random.Generator, replicates: int = 1000
) -> Difference:
    """Return mean(second) - mean(first); each sample is resampled by itself.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = _sample(first), _sample(second)
    resampled = _resampled_means(b, rng, replicates) - _resampled_means(a, rng, replicates)
    return _difference(float(b.mean() - a.mean()), resampled)


def difference_of_medians(
    first: ArrayLike, second: ArrayLike, rng: np.random.Generator, replicates: int = 1000
) -> Difference:
    """Return median(second) - median(first); each sample is resampled by itself.

    Raises:
        ValueError: a sample is empty.
    """
    a, b = _sample(first), _sample(second)
    resampled = resampled_quantiles(b, 0.5, rng, replicates)
    resampled = resampled - resampled_quantiles(a, 0.5, rng, replicates)
    return _difference(float(np.median(b) - np.median(a)), resampled)


def _difference(value: float, resampled: Floats) -> Difference:
    interval = percentile_interval(resampled)
    assert interval
    return Difference(value, interval)


def _sample(values: ArrayLike) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("expected one value or more")
    return sample


def _resampled_means(sample: Floats, rng: np.random.Generator, replicates: int) -> Floats:
    sums = BootstrapSums(len(sample), 1, rng, replicates)
    for start in range(0, len(sample), CHUNK):
        sums.add(sample[start : start + CHUNK, None])
    sums.finish()
    return sums.resampled[:, 0] / len(sample)


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
