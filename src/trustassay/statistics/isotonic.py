"""Isotonic regression: the rising function of a score that is nearest to labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Isotonic", "isotonic_regression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A function that never falls: straight lines between knots, and constant outside them.

    knots: scores, rising, shape (k,), k >= 1. values: the function there, never falling.
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, scores: ArrayLike) -> Floats:
        """Return the function at each score, of the same shape; NaN stays NaN."""
        x = np.asarray(scores, dtype=np.float64)
        found = np.interp(x, self.knots, self.values)
        return np.asarray(np.where(np.isnan(x), np.nan, found))


def isotonic_regression(
    scores: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
) -> Isotonic:
    """Return the rising function with the least sum of weighted squared distances from labels.

    Found exactly by pooling adjacent violators (Ayer et al. 1955): equal scores first become one
    point with their mean label, then neighbours that fall are pooled into their mean until none
    does. Between the last score of one pool and the first of the next lies a straight line.

    Args:
        scores, labels: shape (n,), n >= 1, finite.
        weights: above 0, shape (n,); ones if not given.

    Raises:
        ValueError: shapes differ, nothing is given, a number is not finite, or a weight is not
            above 0.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.ndim != 1 or not x.shape == y.shape == w.shape or not len(x):
        raise ValueError(
            f"expected scores, labels and weights of one length, 1 or more, got shapes {x.shape}, "
            f"{y.shape} and {w.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(w).all()):
        raise ValueError("expected finite scores, labels and weights")
    if (w <= 0).any():
        raise ValueError("expected weights above 0")
    points, place = np.unique(x, return_inverse=True)
    weight: Floats = np.bincount(place, w).astype(np.float64)
    mean = np.bincount(place, w * y) / weight
    values = np.repeat(*_pooled(mean, weight))
    # Within a pool only its ends matter for the straight lines.
    inside = np.zeros(len(points), dtype=bool)
    inside[1:-1] = (values[1:-1] == values[:-2]) & (values[1:-1] == values[2:])
    return Isotonic(tuple(points[~inside].tolist()), tuple(values[~inside].tolist()))


def _pooled(means: Floats, weights: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the means of the pools, and how many points each holds."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, points
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        pool = (mean, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            before, more, count = pools.pop()
            total = more + pool[1]
            pool = ((before * more + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    return np.array([pool[0] for pool in pools]), np.array([pool[2] for pool in pools])
