"""How far scores agree with labels: Pearson, Spearman, Kendall's tau-b, AUROC, their intervals.

Everywhere two samples of equal length n stand side by side, and a measure that is not defined,
as where all values of one are equal, is ``None``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.resampling import percentile_interval

__all__ = [
    "MEASURES",
    "auroc",
    "bootstrap_interval",
    "kendall_tau_b",
    "pearson",
    "pearson_p",
    "ranks",
    "spearman",
]

Floats = NDArray[np.float64]
Measure = Callable[[ArrayLike, ArrayLike], float | None]


def pearson(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return Pearson's r, the covariance of two samples over both standard deviations.

    Raises:
        ValueError: the samples differ in length.
    """
    a, b = _pair(x, y)
    if len(a) < 2 or _constant(a) or _constant(b):
        return None
    a, b = (one - one.mean() for one in map(_scaled, (a, b)))
    r = float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
    return min(max(r, -1.0), 1.0)


def pearson_p(r: float, n: int) -> float:
    """Return the two-sided p-value of Pearson's r of n pairs: of Student's t with n - 2 degrees.

    t^2 = r^2 (n - 2) / (1 - r^2), so p = I_{1 - r^2}((n - 2) / 2, 1 / 2). With 2 pairs it is 1.
    """
    return 1.0 if n < 3 else incomplete_beta((n - 2) / 2, 0.5, 1 - r * r)


def spearman(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return Spearman's rho: Pearson's r of the ranks, ties having the mean of theirs."""
    a, b = _pair(x, y)
    return pearson(ranks(a), ranks(b))


def ranks(values: ArrayLike) -> Floats:
    """Return the ranks from 1 of the values, ties having the mean of theirs; shape (n,)."""
    array = np.asarray(values, dtype=np.float64)
    _, places, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return Kendall's tau-b: (concordant - discordant pairs) over the root of the product of
    the pairs that differ in x and those that differ in y (Kendall 1945).

    Counted in a table of both samples' different values: time and memory grow with their product.
    """
    a, b = _pair(x, y)
    (_, rows), (_, columns) = (np.unique(one, return_inverse=True) for one in (a, b))
    if len(a) < 2 or _constant(a) or _constant(b):
        return None
    table = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), 1)
    # Of each cell, the pairs of one further on in x and further on, or back, in y.
    below = table[::-1].cumsum(axis=0)[::-1]
    below = np.vstack([below[1:], np.zeros((1, table.shape[1]), dtype=np.int64)])
    left = np.cumsum(below, axis=1) - below
    right = below.sum(axis=1, keepdims=True) - left - below
    pairs = len(a) * (len(a) - 1) // 2
    tied_x, tied_y = (
        int((counts * (counts - 1) // 2).sum()) for counts in (table.sum(axis=1), table.sum(axis=0))
    )
    difference = int((table * (right - left)).sum())
    return difference / math.sqrt((pairs - tied_x) * (pairs - tied_y))


def auroc(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return the share of pairs of a positive and a negative in which the positive scores higher.

    Ties count half (Mann-Whitney's U over its largest value). Labels above 0 are positive;
    ``None`` where one of both kinds is missing.
    """
    a, b = _pair(scores, labels)
    positive = b > 0
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return None
    return (float(ranks(a)[positive].sum()) - m * (m + 1) / 2) / (m * n)


MEASURES: Mapping[str, Measure] = {
    "Pearson": pearson,
    "Spearman": spearman,
    "Kendall tau-b": kendall_tau_b,
    "AUROC": auroc,
}
"""The measures by the names that the field gives them."""


def bootstrap_interval(
    measure: Measure,
    x: ArrayLike,
    y: ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Return the percentile interval of a measure over resamples of the pairs (Efron 1979).

    Resamples in which the measure is not defined are left out; ``None`` where it never is.
    """
    a, b = _pair(x, y)
    found = []
    for _ in range(replicates if len(a) else 0):
        picks = rng.integers(0, len(a), len(a))
        value = measure(a[picks], b[picks])
        found.append(math.nan if value is None else value)
    return percentile_interval(found, level)


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"expected two samples of one length, got shapes {a.shape} and {b.shape}")
    return a, b


def _scaled(values: Floats) -> Floats:
    """Return the values over a power of 2, so that neither sums nor squares leave the range."""
    exponent = np.frexp(np.abs(values).max())[1]
    return np.asarray(np.ldexp(values, -exponent))


def _constant(values: Floats) -> bool:
    return bool((values == values[0]).all())
