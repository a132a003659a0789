"""Figures of agreement with labels, and their intervals over documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["auc", "best_balanced_accuracy", "interval", "resamples"]

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
RESAMPLES = 1000


def auc(scores: Floats, truth: Truth) -> float:
    """Return the chance that a supported pair outscores another; ties count half."""
    order = np.unique(scores, return_inverse=True)[1]
    counts = np.bincount(order)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[order]
    positive = int(truth.sum())
    wins = float(ranks[truth].sum()) - positive * (positive + 1) / 2
    return wins / (positive * (len(truth) - positive))


def best_balanced_accuracy(scores: Floats, truth: Truth) -> float:
    """Return the largest balanced accuracy over all thresholds (optimistic)."""
    order = np.argsort(-scores, kind="stable")
    hits, misses = np.cumsum(truth[order]), np.cumsum(~truth[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    rates = (hits / truth.sum() + 1 - misses / (~truth).sum()) / 2
    return float(max(0.5, rates[last].max()))


def resamples(claims: Sequence[str], name: str) -> list[NDArray[np.int64]]:
    """Return bootstrap picks of row numbers, drawing whole claims."""
    rng = np.random.default_rng([0, 5, *name.encode()])
    groups: dict[str, list[int]] = {}
    for number, claim in enumerate(claims):
        groups.setdefault(claim, []).append(number)
    rows = [np.array(g) for g in groups.values()]
    if len(rows) == len(claims):
        return list(rng.integers(0, len(rows), (RESAMPLES, len(rows))))
    return [
        np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))])
        for _ in range(RESAMPLES)
    ]


def interval(
    statistic: Callable[[Floats, Truth], float | None],
    scores: Floats,
    truth: Truth,
    picks: list[NDArray[np.int64]],
) -> list[float]:
    """Return the statistic, and its 95 % interval, from the resamples where it is defined."""
    every = [statistic(scores[p], truth[p]) for p in (np.arange(len(truth)), *picks)]
    value, *values = [v for v in every if v is not None]
    low, high = np.quantile(values, [0.025, 0.975])
    return [round(float(v), 4) for v in (value, low, high)]
