"""Predictions for samples by what was fitted without them: folds of whole clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Fit", "Predict", "fold_numbers", "out_of_fold"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Predict = Callable[[Floats], Floats]
"""Of a table of m rows to m numbers."""
Fit = Callable[[Floats, Floats, Places], Predict]
"""Of a table, the labels and the cluster of each row, to what predicts."""


def fold_numbers(
    clusters: ArrayLike, labels: ArrayLike, folds: int, rng: np.random.Generator
) -> Places:
    """Return the fold of each sample, 0 to folds - 1, shape (n,).

    All samples of a cluster are in one fold, and each fold has about the same share of either
    class: clusters are taken in random order, those with most samples first, and each goes to the
    fold that has least of what it brings.

    Args:
        clusters: number of each sample's cluster, shape (n,); any whole numbers.
        labels: of two classes, above 0 or not, shape (n,).

    Raises:
        ValueError: there are fewer than two folds, or fewer clusters of either class than folds.
    """
    of, y = np.asarray(clusters, dtype=np.int64), np.asarray(labels, dtype=np.float64) > 0
    if of.ndim != 1 or of.shape != y.shape:
        raise ValueError(f"expected n clusters and n labels, got shapes {of.shape} and {y.shape}")
    names, place = np.unique(of, return_inverse=True)
    counts = np.stack([np.bincount(place[y == kind], minlength=len(names)) for kind in (0, 1)])
    fewest = int((counts > 0).sum(axis=1).min(initial=len(names)))
    if not 2 <= folds <= fewest:
        raise ValueError(
            f"expected 2 to {fewest} folds (the clusters with the rarer class), got {folds}"
        )
    shares = counts / counts.sum(axis=1, keepdims=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(-counts.sum(axis=0)[order], kind="stable")]
    filled = np.zeros((2, folds))
    fold = np.empty(len(names), dtype=np.int64)
    for cluster in order.tolist():
        # The sum of squares of shares grows least where least of these classes is.
        fold[cluster] = int(np.argmin(shares[:, cluster] @ filled))
        filled[:, fold[cluster]] += shares[:, cluster]
    return np.asarray(fold[place])


def out_of_fold(
    fit: Fit, table: ArrayLike, labels: ArrayLike, clusters: ArrayLike, folds: Sequence[int]
) -> Floats:
    """Return a prediction for each sample by the fit on all folds but its own, shape (n,).

    Whatever is chosen by the labels (a method, a strength, a direction) has to be chosen inside
    ``fit``, which gets the clusters for that.

    Args:
        table: shape (n, d), or (n,). labels, clusters: shape (n,). folds: of each sample, as
            :func:`fold_numbers` returns them.
    """
    x, y = np.asarray(table, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    of, fold = np.asarray(clusters, dtype=np.int64), np.asarray(folds)
    found = np.full(len(y), np.nan)
    for number in np.unique(fold):
        mine = fold == number
        found[mine] = fit(x[~mine], y[~mine], of[~mine])(x[mine])
    return found
