"""How far probabilities of two classes can be believed, and how well 0.5 divides the classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.intervals import (
    FEWEST,
    Interval,
    RowSums,
    Term,
    mean_interval,
    sum_interval,
)

__all__ = [
    "BINS",
    "ReliabilityBin",
    "balanced_accuracy",
    "balanced_accuracy_interval",
    "calibration_error",
    "places_in_bins",
    "reliability_bins",
]

Floats = NDArray[np.float64]
BINS = 15


def places_in_bins(chances: ArrayLike, bins: int = BINS) -> NDArray[np.int64]:
    """Return the bin of each probability, from 0; of equal width, and 1 belongs to the last."""
    given = np.asarray(chances, dtype=np.float64)
    return np.minimum((given * bins).astype(np.int64), bins - 1)


def calibration_error(chances: ArrayLike, truth: ArrayLike, bins: int = BINS) -> float | None:
    """Return the expected calibration error, 0 to 1 (Guo et al. 2017, eq. 3).

    The mean over bins of equal width of the distance between the mean probability and the share
    that is true, weighed by how many fall into the bin; ``None`` without data.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
        bins: of equal width from 0 to 1; 1 belongs to the last.
    """
    given, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if not len(given):
        return None
    place = places_in_bins(given, bins)
    gaps = np.abs(np.bincount(place, given, bins) - np.bincount(place, true, bins))
    return float(gaps.sum() / len(given))


class ReliabilityBin(NamedTuple):
    """Probabilities that lie together: how many, their mean, and the share that is true."""

    n: int
    chance: float
    true: float


def reliability_bins(
    chances: ArrayLike, truth: ArrayLike, bins: int = BINS
) -> list[ReliabilityBin]:
    """Return the bins of :func:`calibration_error` that hold anything, the lowest first.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
    """
    given, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    place = places_in_bins(given, bins)
    n = np.bincount(place, minlength=bins)
    means = [np.bincount(place, one, bins) / np.maximum(n, 1) for one in (given, true)]
    columns = zip(n.tolist(), *(one.tolist() for one in means), strict=True)
    return [ReliabilityBin(*column) for column in columns if column[0]]


def balanced_accuracy(chances: ArrayLike, truth: ArrayLike, threshold: float = 0.5) -> float | None:
    """Return the mean of both classes' accuracy when what reaches the threshold counts as true.

    ``None`` where one of the classes is missing.
    """
    said = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    if not true.any() or true.all():
        return None
    return float((said[true].mean() + (~said[~true]).mean()) / 2)


def balanced_accuracy_interval(
    chances: ArrayLike, truth: ArrayLike, units: NDArray[np.int64], threshold: float = 0.5
) -> Interval | None:
    """Return the interval of :func:`balanced_accuracy`, of both accuracies' own intervals (Zou and
    Donner 2008).

    Args:
        units: the number of each pair's unit, below 0 for one by itself, shape (n,).

    ``None`` where pairs of one of the classes are of fewer than 20 units of equal size.
    """
    said = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    rows = np.column_stack([true, true & said, ~true, ~true & ~said]).astype(np.float64)
    sums = RowSums(4)
    sums.add(rows, units)
    if not sums.total[[0, 2]].all():
        return None
    columns = np.eye(4)
    means = [sums.ratio(columns[at + 1], columns[at]) for at in (0, 2)]
    if min(mean.units for mean in means) < FEWEST - 1e-9:
        return None
    gradients = np.array(
        [
            (columns[at + 1] - mean.mean * columns[at]) / sums.total[at]
            for at, mean in zip((0, 2), means, strict=True)
        ]
    )
    covariance = sums.covariance(gradients)
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))  # rounding may leave one below 0
    scale = np.outer(errors, errors)
    correlation = np.divide(covariance, scale, out=np.zeros((2, 2)), where=scale > 0)
    np.fill_diagonal(correlation, 1.0)
    low, high = sum_interval(
        [Term(mean.mean, mean_interval(*mean), 0.5) for mean in means], correlation
    )
    return max(low, 0.0), min(high, 1.0)
