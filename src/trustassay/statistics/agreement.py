"""Agreement of raters: kappas, alphas, AC1, ICC and plain percentages, as functions on arrays.

A rating is a number; a category is rated by its place in the list of categories. Raters may have
left items out where a function says so. ``None`` stands for a coefficient that is not defined:
there is nothing to compare, or all ratings are of one category, so that chance would agree as well.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places, intervals
from trustassay.statistics.distributions import f_quantile
from trustassay.statistics.intervals import Interval

Weights = Literal["none", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal", "interval"]


def percent_agreement(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return the percentage of items on which two raters agree, 0 to 100.

    Shapes (n,); items that one of them left out (NaN) do not count. ``None`` without a common item.
    """
    a, b, _ = _common_items(first, second)
    return 100.0 * (float((a == b).sum()) / len(a)) if len(a) else None


def mean_absolute_difference(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return the mean distance of two raters' numbers, 0 or more; as :func:`percent_agreement`."""
    a, b, _ = _common_items(first, second)
    return float(np.abs(a - b).sum()) / len(a) if len(a) else None


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
        categories: all categories of the scale, by their numbers; if not given, those that occur.
            A category that nobody used changes weighted kappas only where it lies between others.
        times: shape (n,), how often each item counts; once if not given.

    ``None`` where both raters gave all items the same category, or have no common item.

    Raises:
        ValueError: a rating is not among the categories.
    """
    a, b, n = _common_items(first, second, times)
    levels = _scale_levels(np.concatenate([a, b]), categories)
    size = len(levels)
    # one bincount over pairs of categories is the contingency table
    cells = size * _level_places(levels, a) + _level_places(levels, b)
    table = np.bincount(cells, weights=n, minlength=size**2).reshape(size, size)
    weight = _disagreements(size, weights)
    expected = float((weight * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    if not len(a) or expected == 0:
        return None
    return 1.0 - float(n.sum()) * float((weight * table).sum()) / expected


def count_categories(ratings: ArrayLike, levels: Floats | None = None) -> Floats:
    """Count how often each category was given to each item, shape (items, categories).

    Args:
        ratings: shape (raters, items), NaN where a rater left an item out.
        levels: the categories, sorted; other ratings do not count. If not given, those that occur.
    """
    table = np.asarray(ratings, dtype=float)
    _, items = np.nonzero(~np.isnan(table))
    values = table[~np.isnan(table)]
    levels = np.unique(values) if levels is None else levels
    n, size = table.shape[1], len(levels)
    places = np.minimum(np.searchsorted(levels, values), size - 1)
    # One bincount over items and categories: a pass for each category takes ten times as long.
    cells = (items * size + places)[levels[places] == values]
    return np.bincount(cells, minlength=n * size).reshape(n, size).astype(float)


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
        raise ValueError("Fleiss's kappa needs the same number of ratings for each item, 2 or more")
    m, n = float(raters[0]), _item_weights(times, len(table))
    # pairs of raters that agree on an item: the sum of n (n - 1) over categories
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
    # An item with a single rating has nothing to be compared with.
    is_paired = (~np.isnan(table)).sum(axis=0) >= 2
    table, weights = table[:, is_paired], _item_weights(times, table.shape[1])[is_paired]
    if not table.size:
        return None
    levels = np.unique(table[~np.isnan(table)])
    counts = count_categories(table, levels)
    # Pairs of ratings of one item, each item weighing as many ratings as it has.
    shares = counts * (weights / (counts.sum(axis=1) - 1))[:, None]
    pairs = shares.T @ counts - np.diag(shares.sum(axis=0))
    totals = weights @ counts
    n = float(totals.sum())
    if scale == "nominal":
        distance = 1.0 - np.eye(len(levels))
    else:
        # Ordinal distances depend on how many ratings lie between, so on the totals.
        at = _positions(levels, totals, scale)
        distance = np.subtract.outer(at, at) ** 2
    expected = float((distance * np.outer(totals, totals)).sum())
    if expected == 0:
        return None
    return 1.0 - (n - 1) * float((distance * pairs).sum()) / expected


def _positions(levels: Floats, totals: Floats, scale: Scale) -> Floats:
    """Return the positions of categories: their numbers, or the middle of their ranks."""
    return levels if scale == "interval" else np.cumsum(totals) - totals / 2


def gwet_ac(
    ratings: ArrayLike,
    weights: Weights = "none",
    categories: Sequence[float] | None = None,
    times: ArrayLike | None = None,
) -> float | None:
    """Return Gwet's AC1, or AC2 with weights, at most 1; 0 is what chance gives (Gwet 2008, 2014).

    (p_a - p_e) / (1 - p_e), with p_a the agreement of two ratings of the same item, and
    p_e = T sum(pi (1 - pi)) / (q (q - 1)), where pi are the shares of the q categories and T is the
    sum of the weights of agreement, 1 - d / max(d). Unlike kappa it stays high where nearly all
    ratings are of one category and raters agree on those.

    Args:
        ratings: shape (raters, items), NaN where a rater left an item out. An item with one rating
            counts for the shares of categories alone.
        weights: by which the distance d of two different categories counts.
        categories: all of the scale, by their numbers; those that occur where not given. AC1, too,
            depends on how many there are.
        times: shape (items,), how often each item counts, else once.

    ``None`` where there are fewer than two categories, or no item has two ratings.

    Raises:
        ValueError: a rating is not among the categories.
    """
    table = np.asarray(ratings, dtype=float)
    rated = table[~np.isnan(table)]
    levels = _scale_levels(rated, categories)
    _level_places(levels, rated)  # raises where a rating is strange
    counts = count_categories(table, levels)
    # items that nobody rated are dropped; those with one rating stay for the shares below
    ratings_per_item, n = counts.sum(axis=1), _item_weights(times, len(counts))
    counts, ratings_per_item, n = (
        counts[ratings_per_item > 0],
        ratings_per_item[ratings_per_item > 0],
        n[ratings_per_item > 0],
    )
    is_paired, q = ratings_per_item >= 2, len(levels)
    if q < 2 or not is_paired.any():
        return None
    apart = _disagreements(q, weights)
    weight = 1.0 - apart / apart.max()
    alike = (counts[is_paired] * (counts[is_paired] @ weight - 1)).sum(axis=1) / (
        ratings_per_item * (ratings_per_item - 1)
    )[is_paired]
    observed = float(alike @ n[is_paired]) / float(n[is_paired].sum())
    share = n @ (counts / ratings_per_item[:, None]) / n.sum()
    chance = float(weight.sum() * (share * (1 - share)).sum()) / (q * (q - 1))
    return (observed - chance) / (1 - chance)


class Intraclass(NamedTuple):
    """Intraclass correlations for absolute agreement."""

    single: float
    """The correlation of single ratings, ICC(A,1)."""
    mean: float
    """The correlation of means of k ratings, ICC(A,k)."""
    single_interval: Interval | None
    """The interval of ``single``; ``None`` where it is not defined."""
    mean_interval: Interval | None
    """The interval of ``mean``; ``None`` where it is not defined."""


def intraclass(
    ratings: ArrayLike, times: ArrayLike | None = None, level: float | None = 0.95
) -> Intraclass | None:
    """Return ICC(A,1) and ICC(A,k) of two-way random effects (McGraw and Wong 1996, tables 4, 7).

    They are ICC(2,1) and ICC(2,k) of Shrout and Fleiss (1979), and at most 1. The intervals are
    those of F, for normal ratings by raters who are a random sample of all raters.

    Args:
        ratings: shape (raters, items), of 2 raters or more; items that one left out (NaN) do not
            count.
        times: shape (items,), how often each item counts, else once.
        level: of the intervals; ``None`` for none, which takes a fifth of the time.

    ``None`` for fewer than two items or raters, and where all ratings are the same. The intervals
    are ``None`` where raters agree fully, and where the correlation is not above 0, since the
    degrees of freedom are not defined then.
    """
    table = np.asarray(ratings, dtype=float)
    is_complete = ~np.isnan(table).any(axis=0)
    table, weight = table[:, is_complete], _item_weights(times, table.shape[1])[is_complete]
    k, n = len(table), float(weight.sum())
    if k < 2 or n < 2:
        return None
    table = table - float((table @ weight).sum()) / (n * k)
    items, raters = table.mean(axis=0), table @ weight / n
    residuals = table - items - raters[:, None]
    # mean squares of the two-way analysis of variance: items, raters and the residual
    by_item = k * float(weight @ items**2) / (n - 1)
    by_rater = n * float((raters**2).sum()) / (k - 1)
    error = float((residuals**2 @ weight).sum()) / ((n - 1) * (k - 1))
    below = by_item + (k - 1) * error + k * (by_rater - error) / n
    if below <= 0:
        return None
    single = (by_item - error) / below
    mean_below = by_item + (by_rater - error) / n
    mean = (by_item - error) / mean_below if mean_below > 0 else -np.inf
    # callers that only resample the coefficient skip the intervals
    if level is None or not 0 < single < 1:
        return Intraclass(single, mean, None, None)
    a = k * single / (n * (1 - single))
    b = 1 + a * (n - 1)
    parts = (a * by_rater, b * error)
    # Satterthwaite's degrees of freedom of the denominator (McGraw and Wong 1996, table 7)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (k - 1) + parts[1] ** 2 / ((n - 1) * (k - 1)))
    p = (1 + level) / 2
    upper, lower = f_quantile(p, n - 1, freedom), f_quantile(p, freedom, n - 1)
    error_terms = k * by_rater + (k * n - k - n) * error
    low = n * (by_item - upper * error) / (upper * error_terms + n * by_item)
    high = n * (lower * by_item - error) / (error_terms + n * lower * by_item)
    # The bounds of the mean follow from those of a single rating by Spearman and Brown's formula.
    of_mean = tuple(k * end / (1 + (k - 1) * end) for end in (low, high))
    return Intraclass(single, mean, (low, high), of_mean)  # type: ignore[arg-type]


MIN_EFFECTIVE_UNITS: Mapping[Scale, float] = {"nominal": 14, "ordinal": 10, "interval": 12}
"""The effective units (:func:`_effective_units`) that an interval needs, by kind of distance."""
MAX_JACKKNIFE_GROUPS = 1000
"""Units that the jackknife leaves out in turn; more units are put into this many groups."""


def item_interval(
    coefficient: Callable[[Floats, Floats], float | None],
    ratings: Floats,
    units: Places | None = None,
    scale: Scale | None = "nominal",
    fewest: int = intervals.MIN_UNITS,
) -> Interval | str:
    """Return the interval of a coefficient of agreement, or the reason why there is none.

    Each unit is left out in turn (:func:`~trustassay.statistics.intervals.jackknife_interval`, on
    Fisher's scale). Items with the same ratings are computed once and counted: a scale of few
    levels gives few kinds of items, however many items there are.

    Args:
        coefficient: takes ratings, shape (raters, k), and how often each item counts, shape (k,);
            returns a number of at most 1.
        ratings: shape (raters, n), NaN where a rater left an item out.
        units: the unit number of each item, below 0 for an item by itself, shape (n,).
        scale: how the coefficient measures distances in what chance gives; ``None`` if chance
            depends little on the scatter of the ratings, as for AC1.
        fewest: units below which there is no interval.

    There is no interval where nearly all ratings are the same: the coefficient then depends on the
    few units that differ (:func:`_effective_units`).
    """
    n = ratings.shape[1]
    unit_of_item = intervals.unit_places(units, n)
    count, worth = int(unit_of_item.max(initial=-1)) + 1, intervals.effective_size(unit_of_item)
    # Where distances are squared, few ratings far from the others decide.
    fewest = max(fewest, intervals.MIN_UNITS_FOR_MEANS) if scale == "interval" else fewest
    if reason := intervals.reason_too_few_units(n, count, worth, fewest, "items"):
        return reason
    if scale and _effective_units(ratings, unit_of_item, scale) < MIN_EFFECTIVE_UNITS[scale]:
        return "nearly all ratings are the same: too few units have other ratings"
    listed = np.where(np.isnan(ratings), np.inf, ratings)  # a NaN would equal no other
    kinds, which = np.unique(listed, axis=1, return_inverse=True)
    kinds, which = np.where(np.isinf(kinds), np.nan, kinds), which.ravel()
    times: Floats = np.bincount(which, minlength=kinds.shape[1]).astype(np.float64)
    # Leaving out groups bounds the work, and changes the interval little.
    if count > MAX_JACKKNIFE_GROUPS:
        unit_of_item, count = unit_of_item % MAX_JACKKNIFE_GROUPS, MAX_JACKKNIFE_GROUPS
    order = np.argsort(unit_of_item, kind="stable")
    ends = np.searchsorted(unit_of_item[order], np.arange(1, count))
    # Units with the same multiset of items give the same value when left out: compute it once.
    alike = Counter(tuple(sorted(part.tolist())) for part in np.split(which[order], ends))
    without = []
    for unit in alike:
        remaining_times = times - np.bincount(unit, minlength=len(times))
        is_present = remaining_times > 0
        without.append(coefficient(kinds[:, is_present], remaining_times[is_present]))
    value = coefficient(kinds, times)
    if value is None or any(estimate is None for estimate in without):
        return "undefined if one unit is left out: nearly all ratings are the same"
    values = np.repeat(np.array(without, dtype=float), list(alike.values()))
    result = intervals.jackknife_interval(value, values, "fisher")
    return result or "raters agree on nearly all items, so how often they disagree is unknown"


def _effective_units(ratings: Floats, units: Places, scale: Scale) -> float:
    """Return how many units the scatter of the ratings comes from: (sum s)^2 / sum s^2.

    s is the sum of a unit's squared distances from the mean; for categories, from the mean of their
    indicators.
    """
    raters, items = np.nonzero(~np.isnan(ratings))
    values = ratings[raters, items]
    levels, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if scale == "nominal":
        share = counts / len(values)
        # |e_k - p|^2 of the indicator vector e_k of category k and the vector p of shares
        apart: Floats = (1 - 2 * share + float((share**2).sum()))[place]
    else:
        at = _positions(levels, counts.astype(np.float64), scale)[place]
        apart = (at - at.mean()) ** 2
    scatter = np.bincount(units[items], apart, minlength=int(units.max()) + 1)
    squares = float((scatter**2).sum())
    return float(scatter.sum()) ** 2 / squares if squares else 0.0


def _disagreements(size: int, weights: Weights) -> Floats:
    """Return the weights of disagreement of categories by their places, shape (size, size)."""
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    if weights == "none":
        return np.asarray(distance > 0, dtype=np.float64)
    return np.asarray(distance**2 if weights == "quadratic" else distance, dtype=np.float64)


def _item_weights(times: ArrayLike | None, n: int) -> Floats:
    return np.ones(n) if times is None else np.asarray(times, dtype=float)


def _common_items(
    first: ArrayLike, second: ArrayLike, times: ArrayLike | None = None
) -> tuple[Floats, Floats, Floats]:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"expected ratings of the same items, got {a.shape} and {b.shape}")
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both], _item_weights(times, len(a))[both]


def _level_places(levels: Floats, values: Floats) -> Places:
    """Return the place of each value among sorted categories; ValueError if one is not there."""
    places = np.minimum(np.searchsorted(levels, values), max(len(levels) - 1, 0))
    strange = values[levels[places] != values] if len(levels) else values
    if len(strange):
        raise ValueError(f"the rating {strange[0]:g} is not among the categories")
    return np.asarray(places, dtype=np.int64)


def _scale_levels(values: Floats, categories: Sequence[float] | None) -> Floats:
    """Return the sorted categories of a scale; if none are given, those that occur."""
    # Of the few levels of a scale ``np.unique`` takes ten times as long.
    return np.unique(values) if categories is None else np.array(sorted(set(categories)), float)
