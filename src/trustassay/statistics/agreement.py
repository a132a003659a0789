"""How far raters agree: kappas, Krippendorff's alpha, and plain shares; pure functions on arrays.

A rating is a number; of categories, the place in their list. Raters may differ in how they use the
scale and may have left items out where a function says so. ``None`` stands for a coefficient that
is not defined: there is nothing to compare, or all ratings are of one category, so that chance
alone would agree, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.bootstrap import expanded_interval
from trustassay.statistics.intervals import FEWEST, too_few

__all__ = [
    "Scale",
    "Weights",
    "bootstrap_interval",
    "cohen_kappa",
    "counts_of",
    "fleiss_kappa",
    "item_interval",
    "krippendorff_alpha",
    "mean_absolute_difference",
    "percent_agreement",
]

Floats = NDArray[np.float64]
Weights = Literal["none", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal", "interval"]


def percent_agreement(
    first: ArrayLike, second: ArrayLike, times: ArrayLike | None = None
) -> float | None:
    """Return the percentage of items on which two raters agree, 0 to 100.

    Shapes (n,); items that one of them left out (NaN) do not count. ``times``: how often each item
    counts, else once. ``None`` without a common item.
    """
    a, b, n = _common(first, second, times)
    return 100.0 * (float(((a == b) * n).sum()) / float(n.sum())) if len(a) else None


def mean_absolute_difference(
    first: ArrayLike, second: ArrayLike, times: ArrayLike | None = None
) -> float | None:
    """Return the mean distance of two raters' numbers, 0 or more; as :func:`percent_agreement`."""
    a, b, n = _common(first, second, times)
    return float((np.abs(a - b) * n).sum()) / float(n.sum()) if len(a) else None


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    weights: Weights = "none",
    categories: Sequence[float] | None = None,
    times: ArrayLike | None = None,
) -> float | None:
    """Return Cohen's kappa of two raters, at most 1; 0 is what chance gives (Cohen 1960, 1968).

    1 - sum(w o) / sum(w e), with o the shares of pairs of categories, e the products of the raters'
    own shares, and w the weight of a disagreement: 1, the distance of the categories' places, or
    its square (Cohen 1968, eq. 9).

    Args:
        first, second: shape (n,), NaN for an item left out, which then does not count.
        weights: of two different categories.
        categories: all of the scale, by their numbers; those that occur where not given. A
            category that nobody used changes weighted kappas only where it lies between others.
        times: shape (n,), how often each item counts, else once.

    ``None`` where both raters used one and the same category for all, or have no common item.

    Raises:
        ValueError: a rating is not among the categories.
    """
    a, b, n = _common(first, second, times)
    known = np.unique(np.concatenate([a, b])) if categories is None else _sorted(categories)
    size = len(known)
    cells = size * _places(known, a) + _places(known, b)
    table = np.bincount(cells, weights=n, minlength=size**2).reshape(size, size)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    weight = {"none": (distance > 0) * 1.0, "linear": distance, "quadratic": distance**2}[weights]
    expected = float((weight * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    if not len(a) or expected == 0:
        return None
    return 1.0 - float(n.sum()) * float((weight * table).sum()) / expected


def counts_of(ratings: ArrayLike) -> Floats:
    """Return how often each category was given to each item, shape (items, categories).

    ``ratings`` has shape (raters, items); NaN is left out. Categories are those that occur, sorted.
    """
    table = np.asarray(ratings, dtype=float)
    known = np.unique(table[~np.isnan(table)])
    return np.stack([(table == value).sum(axis=0) for value in known], axis=1).astype(float)


def fleiss_kappa(counts: ArrayLike, times: ArrayLike | None = None) -> float | None:
    """Return Fleiss's kappa of any number of raters, at most 1 (Fleiss 1971, eq. 7).

    Args:
        counts: shape (items, categories), how many raters gave each category to each item; every
            item has the same number of ratings, m >= 2.
        times: shape (items,), how often each item counts, else once.

    ``None`` where all ratings are of one category, or there is no item.

    Raises:
        ValueError: items have different numbers of ratings, or fewer than two.
    """
    table = np.asarray(counts, dtype=float)
    if not table.size:
        return None
    raters = table.sum(axis=1)
    if raters[0] < 2 or (raters != raters[0]).any():
        raise ValueError("Fleiss's kappa takes the same number of ratings of each item, 2 or more")
    m, n = float(raters[0]), _times(times, len(table))
    alike = float((((table**2).sum(axis=1) - m) * n).sum() / n.sum())
    observed = alike / (m * (m - 1))
    totals = n @ table
    chance = float(((totals / totals.sum()) ** 2).sum())
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(
    ratings: ArrayLike, scale: Scale = "nominal", times: ArrayLike | None = None
) -> float | None:
    """Return Krippendorff's alpha, at most 1; 0 is what chance gives (Krippendorff 2011).

    1 - D_o / D_e: the mean distance of two ratings of the same item, over that of any two ratings.
    The distance is 1 for different categories, the squared difference of the numbers, or for
    ordinal data the squared number of ratings between two categories, half of their own included.

    Args:
        ratings: shape (raters, items), NaN where a rater left an item out. Items with fewer than
            two ratings do not count.
        scale: what the numbers are.
        times: shape (items,), how often each item counts, else once.

    ``None`` where fewer than two ratings can be compared, or all of those are the same.
    """
    if scale not in get_args(Scale):
        raise ValueError(f"scale: expected one of {', '.join(get_args(Scale))}, got {scale!r}")
    table = np.asarray(ratings, dtype=float)
    two = (~np.isnan(table)).sum(axis=0) >= 2
    table, weights = table[:, two], _times(times, table.shape[1])[two]
    if not table.size:
        return None
    known = np.unique(table[~np.isnan(table)])
    counts = counts_of(table)
    # Pairs of ratings of one item, each item weighing as many ratings as it has.
    shares = counts * (weights / (counts.sum(axis=1) - 1))[:, None]
    pairs = shares.T @ counts - np.diag(shares.sum(axis=0))
    totals = weights @ counts
    n = float(totals.sum())
    distance = _distance(known, totals, scale)
    expected = float((distance * np.outer(totals, totals)).sum())
    if expected == 0:
        return None
    return 1.0 - (n - 1) * float((distance * pairs).sum()) / expected


def _distance(known: Floats, totals: Floats, scale: Scale) -> Floats:
    """Return the squared distances of categories, shape (c, c)."""
    if scale == "nominal":
        return 1.0 - np.eye(len(known))
    at = known if scale == "interval" else np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(at, at) ** 2, dtype=np.float64)


def bootstrap_interval(
    statistic: Callable[[NDArray[np.int64]], float | None],
    n: int,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> tuple[float, float] | str:
    """Return the interval of a coefficient over items, or why there is none: percentiles, somewhat
    expanded (:func:`~trustassay.statistics.bootstrap.expanded_interval`).

    Args:
        statistic: the coefficient of the items at these places, drawn with replacement, shape (n,).
        n: the items.

    Draws in which the coefficient is not defined are left out; where those are more than one in
    ten there is no interval.
    """
    if reason := too_few("items", n, FEWEST):
        return reason
    found = [statistic(rng.integers(0, n, n)) for _ in range(replicates)]
    defined = [value for value in found if value is not None]
    if len(defined) < 0.9 * replicates:
        return "not defined in more than a tenth of the draws: nearly all ratings are the same"
    return expanded_interval(defined, n, level)


def item_interval(
    coefficient: Callable[[Floats, Floats], float | None],
    ratings: Floats,
    rng: np.random.Generator,
    replicates: int = 1000,
) -> tuple[float, float] | str:
    """Return the interval of a coefficient of ratings; as :func:`bootstrap_interval`, and quicker.

    Items with the same ratings are counted, not listed: a table of few levels has few kinds of
    items, however many items it has.

    Args:
        coefficient: that of ratings of shape (raters, k), of which the item at each place counts as
            often as it is drawn, shape (k,).
        ratings: shape (raters, n), NaN where a rater left an item out.
    """
    listed = np.where(np.isnan(ratings), np.inf, ratings)  # a NaN would equal no other
    kinds, which = np.unique(listed, axis=1, return_inverse=True)
    kinds, which = np.where(np.isinf(kinds), np.nan, kinds), which.ravel()

    def drawn(places: NDArray[np.int64]) -> float | None:
        times = np.bincount(which[places], minlength=kinds.shape[1])
        there = np.flatnonzero(times)
        return coefficient(kinds[:, there], times[there].astype(float))

    return bootstrap_interval(drawn, ratings.shape[1], rng, replicates)


def _times(times: ArrayLike | None, n: int) -> Floats:
    return np.ones(n) if times is None else np.asarray(times, dtype=float)


def _common(
    first: ArrayLike, second: ArrayLike, times: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"expected ratings of the same items, got {a.shape} and {b.shape}")
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both], _times(times, len(a))[both]


def _places(known: Floats, values: Floats) -> NDArray[np.int64]:
    """Return where values stand among sorted categories."""
    places = np.minimum(np.searchsorted(known, values), max(len(known) - 1, 0))
    strange = values[known[places] != values] if len(known) else values
    if len(strange):
        raise ValueError(f"the rating {strange[0]:g} is not among the categories")
    return np.asarray(places, dtype=np.int64)


def _sorted(categories: Sequence[float]) -> Floats:
    """Return what ``np.unique`` does, in a tenth of its time for the few levels of a scale."""
    return np.array(sorted(set(categories)), dtype=float)
