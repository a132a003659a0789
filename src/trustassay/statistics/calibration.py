"""How good probabilities of being right are."""

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Places, intervals

RELIABILITY_BINS = 15
"""Bins of equal width, as in Guo et al. 2017."""


def assign_bins(chances: ArrayLike, bins: int = RELIABILITY_BINS) -> Places:
    """Return the bin of each probability, from 0; of equal width, and 1 belongs to the last."""
    probabilities = np.asarray(chances, dtype=np.float64)
    return np.minimum((probabilities * bins).astype(np.int64), bins - 1)


def calibration_error(
    chances: ArrayLike, truth: ArrayLike, bins: int = RELIABILITY_BINS
) -> float | None:
    """Return the expected calibration error, 0 to 1 (Guo et al. 2017, eq. 3).

    It is the mean over bins of equal width of the distance between the mean probability and the
    share that is true, weighted by the number of values in the bin; ``None`` without data.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
        bins: of equal width from 0 to 1; 1 belongs to the last.
    """
    probabilities, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if not len(probabilities):
        return None
    place = assign_bins(probabilities, bins)
    # Sums instead of means: the weights by the bins' sizes cancel against the means' denominators.
    gaps = np.abs(np.bincount(place, probabilities, bins) - np.bincount(place, true, bins))
    return float(gaps.sum() / len(probabilities))


def balanced_accuracy(chances: ArrayLike, truth: ArrayLike, threshold: float = 0.5) -> float | None:
    """Return the mean of the accuracies in both classes; ``None`` where a class is missing.

    Probabilities from the threshold on count as a prediction of true.
    """
    is_called_true = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    if not true.any() or true.all():
        return None
    return float((is_called_true[true].mean() + (~is_called_true[~true]).mean()) / 2)


def balanced_accuracy_interval(
    chances: ArrayLike, truth: ArrayLike, units: Places, threshold: float = 0.5
) -> intervals.Interval | None:
    """Return the interval of :func:`balanced_accuracy`.

    It is combined from the intervals of both accuracies (Zou and Donner 2008).

    Args:
        units: the unit number of each pair, below 0 for a pair by itself, shape (n,).

    ``None`` where a class has pairs of fewer than 20 units of equal size.
    """
    is_called_true = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    # columns: size and hits of the true class, size and hits of the false class
    rows = np.column_stack([true, true & is_called_true, ~true, ~true & ~is_called_true]).astype(
        np.float64
    )
    sums = intervals.RowSums(4)
    sums.add(rows, units)
    if not sums.total[[0, 2]].all():
        return None
    columns = np.eye(4)
    means = [sums.ratio(columns[at + 1], columns[at]) for at in (0, 2)]
    if min(mean.units for mean in means) < intervals.MIN_UNITS - 1e-9:
        return None
    shares = np.array([[mean.mean] for mean in means])
    # Units with pairs of both classes make the accuracies covary; a ratio's gradient is (y - r x) /
    # X.
    gradients = (columns[[1, 3]] - shares * columns[[0, 2]]) / sums.total[[0, 2], None]
    covariance = sums.covariance(gradients)
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))  # rounding may leave one below 0
    scale = np.outer(errors, errors)
    correlation = np.divide(covariance, scale, out=np.zeros((2, 2)), where=scale > 0)
    np.fill_diagonal(correlation, 1.0)
    low, high = intervals.sum_interval(
        [intervals.Term(mean.mean, intervals.mean_interval(*mean), 0.5) for mean in means],
        correlation,
    )
    # Combined intervals may end slightly outside the range.
    return max(low, 0.0), min(high, 1.0)
