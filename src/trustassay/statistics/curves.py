"""The curves that scores draw against labels: ROC, and the mean label of what is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["kept_means", "roc_curve"]

Floats = NDArray[np.float64]


def roc_curve(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return false and true positive rates as the threshold falls, each from 0 to 1.

    One point for each different score, after (0, 0). Labels above 0 are positive; both classes
    must be there.

    Raises:
        ValueError: one of the classes is missing.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64) > 0
    if not y.any() or y.all():
        raise ValueError("expected labels of both classes")
    order = np.argsort(-x, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(x[order])), len(x) - 1)
    found = []
    for of_class in (~y[order], y[order]):
        reached = np.cumsum(of_class)[ends] / of_class.sum()
        found.append(np.concatenate([[0.0], reached]))
    return found[0], found[1]


def kept_means(scores: ArrayLike, labels: ArrayLike) -> Floats:
    """Return the mean label of the k answers with the highest scores, for k = 1 ... n, shape (n,).

    Where the k-th has the score of others, the mean is that expected of a random choice among
    them. With labels of 0 and 1, one less it is the risk at a coverage of k / n (El-Yaniv and
    Wiener 2010).
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    order = np.argsort(-x, kind="stable")
    _, places, counts = np.unique(-x[order], return_inverse=True, return_counts=True)
    of_ties = np.bincount(places, y[order], len(counts)) / np.maximum(counts, 1)
    return np.asarray(np.cumsum(of_ties[places]) / np.arange(1, len(x) + 1))
