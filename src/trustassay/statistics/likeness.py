"""Whether new values look as if they came from where earlier ones did, of which only some
quantiles were kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Spread", "Unlike", "effective_size", "kolmogorov_p_value", "spread_of", "unlikeness"]

Floats = NDArray[np.float64]
POINTS = 51
"""Points at which a distribution is kept."""
DIGITS = 6
TERMS = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution in short.

    size: how many independent values it is worth. missing: the share without a value. points:
    values, rising; shares: of all values there are, those at or below each point.
    """

    size: float
    missing: float
    points: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Unlike:
    """How far two distributions are apart at most, 0 to 1, and how likely as much is by chance."""

    distance: float
    p: float


def effective_size(clusters: ArrayLike) -> float:
    """Return how many clusters of one size n samples are worth: n^2 over the sum of the squares of
    the clusters' sizes (Kish 1965); 0 for none. Samples of a cluster count as one, however little
    they have in common.
    """
    sizes = np.unique(np.asarray(clusters), return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(sizes) else 0.0


def spread_of(values: ArrayLike, clusters: ArrayLike) -> Spread:
    """Return the distribution of values, shape (n,), NaN where there is none, in 51 quantiles.

    Raises:
        ValueError: there are no values at all, or one is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x) or np.isinf(x).any():
        raise ValueError("expected finite values, or NaN where there is none; at least one")
    there = x[~np.isnan(x)]
    points: list[float] = []
    if len(there):
        found = np.quantile(there, np.linspace(0, 1, POINTS), method="inverted_cdf")
        points = sorted({float(f"{point:.{DIGITS}g}") for point in found.tolist()})
    shares = [float((there <= point).mean()) for point in points]
    return Spread(effective_size(clusters), float(np.isnan(x).mean()), tuple(points), tuple(shares))


def unlikeness(kept: Spread, values: ArrayLike, clusters: ArrayLike) -> Unlike:
    """Compare values with a distribution by the two-sample test of Kolmogorov and Smirnov.

    A missing value counts as below all others. The distance is the largest at the kept points, so
    it is at most that of all values, and the test raises no more false alarms than it says.

    Args:
        values, clusters: shape (n,), NaN where there is no value; n = 0 is like everything.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return Unlike(0.0, 1.0)
    ranked = np.sort(np.where(np.isnan(x), -np.inf, x))
    at = np.array([-np.inf, *kept.points])
    here = np.searchsorted(ranked, at, side="right") / len(x)
    there = kept.missing + (1 - kept.missing) * np.array([0.0, *kept.shares])
    distance = float(np.abs(here - there).max())
    return Unlike(distance, kolmogorov_p_value(distance, kept.size, effective_size(clusters)))


def kolmogorov_p_value(distance: float, first: float, second: float) -> float:
    """Return the chance of a distance as large between two samples of these sizes of one
    distribution: 2 sum_j (-1)^(j-1) exp(-2 j^2 l^2), l = (r + 0.12 + 0.11 / r) D and r the root of
    the sizes' product over their sum (Stephens 1970).
    """
    if first <= 0 or second <= 0:
        return 1.0
    root = math.sqrt(first * second / (first + second))
    scaled = (root + 0.12 + 0.11 / root) * distance
    if scaled < 0.2:  # the sum is 1 to many digits, and its terms hardly fall
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2 * j**2 * scaled**2) for j in range(1, TERMS))
    return min(1.0, max(0.0, 2 * math.fsum(terms)))
