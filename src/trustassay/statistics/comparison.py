"""Comparison of matched pairs: differences of means and shares, and sign-flip tests.

Also: comparison of a stored distribution with new values, and how far scores and verdicts move when
a single thing is changed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats, Places, intervals
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.intervals import MIN_UNITS, Estimate, Term
from trustassay.statistics.resampling import (
    draw_counts,
    resample_interval,
    student_percentile_interval,
)

MAX_SIGNS_AT_ONCE = 4_000_000
"""Entries of the largest matrix of signs that is held in memory."""


class Difference(NamedTuple):
    """A difference, second minus first."""

    value: float
    """The difference."""
    interval: intervals.Interval | None
    """Its 95 % interval; ``None`` where it has none."""
    without: str | None = None
    """Why there is no interval."""


def _make_term(mean: intervals.UnitMean, bounds: tuple[float, float], weight: float) -> Term:
    ends = intervals.interval_within_bounds(mean, bounds)
    assert ends
    return Term(mean.mean, ends, weight)


def mean_of_differences(
    differences: ArrayLike,
    largest: float = 1.0,
    units: Places | None = None,
    fewest: int = intervals.MIN_UNITS_FOR_MEANS,
) -> Difference:
    """Return the mean of paired differences, second minus first.

    Where the skewness g of n units is harmless, n > 25 g^2 (Cochran 1977, sec. 2.15), the interval
    is that of a mean of numbers from -``largest`` to ``largest``, which is nearly Student's.
    Otherwise, for instance where few samples changed, it is combined from the intervals of the mean
    rise and the mean fall, each with its own skewness.

    Args:
        units: of the pairs, as for :func:`~trustassay.statistics.intervals.unit_mean`.
        fewest: units below which there is no interval.

    Raises:
        ValueError: there is none.
    """
    sample = _as_sample(differences)
    mean = intervals.unit_mean(sample, units)
    value, n = mean.mean, mean.units
    what = "pairs" if n == len(sample) else "questions (of equal size)"
    if reason := intervals.reason_too_few(what, math.floor(n + 1e-9), fewest):
        return Difference(value, None, reason)
    place = intervals.unit_places(units, len(sample))
    moved = np.bincount(place, sample - sample.mean())
    # n > 25 g^2 with g = m3 / m2^(3/2), without dividing: all may be the same.
    if n * float(np.mean(moved**2)) ** 3 > 25 * float(np.mean(moved**3)) ** 2:
        return Difference(value, intervals.interval_within_bounds(mean, (-largest, largest)))
    # The two sides exclude each other, so they are correlated negatively: no sample rises and
    # falls.
    sides = [np.maximum(sample, 0.0), np.maximum(-sample, 0.0)]
    rise, fall = (np.bincount(place, side - side.mean()) for side in sides)
    scatter = float(rise.std() * fall.std())
    together = float(np.mean(rise * fall)) / scatter if scatter else 0.0
    terms = [
        _make_term(intervals.unit_mean(side, units), (0.0, largest), weight)
        for side, weight in zip(sides, (1.0, -1.0), strict=True)
    ]
    correlation = np.array([[1.0, together], [together, 1.0]])
    return Difference(value, intervals.sum_interval(terms, np.clip(correlation, -1.0, 1.0)))


def _as_sample(values: ArrayLike) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("expected one value or more")
    return sample


def sign_flip_p(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> float:
    """Return the two-sided p-value that the mean of paired differences is 0.

    Under the hypothesis each difference could as well have the other sign, so p is
    (1 + flips with a mean as far from 0) / (1 + flips). Differences of 0 carry no information; if
    all are 0, p is 1.
    """
    return float(sign_flip_ps(_as_sample(differences)[None], rng, permutations)[0])


def sign_flip_ps(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> Floats:
    """Return :func:`sign_flip_p` of several rows, shape (r,), with the same flips for all rows.

    Args:
        differences: shape (r, n), of the same n units; n may be 0.
    """
    rows = np.asarray(differences, dtype=np.float64)
    observed = np.abs(rows.sum(axis=1))
    # A flip that equals the observed sum counts as reaching it, whatever the rounding.
    slack = 1e-12 * np.abs(rows).sum(axis=1)
    # columns of zeros cannot change any sum, so they need no signs
    some = np.flatnonzero(rows.any(axis=0))
    reached = np.zeros(len(rows))
    at_once = max(1, MAX_SIGNS_AT_ONCE // max(len(some), 1))
    for start in range(0, permutations, at_once):
        size = (min(at_once, permutations - start), len(some))
        signs = 2.0 * rng.integers(0, 2, size=size, dtype=np.int8) - 1.0
        reached += (np.abs(rows[:, some] @ signs.T) >= (observed - slack)[:, None]).sum(axis=1)
    return np.asarray((1 + reached) / (1 + permutations))


MIN_CHANGED_QUESTIONS = 6
"""Changed questions that a significant difference needs: if rises and falls are equally likely,
five of five changes go the same way one time in 16, six of six one time in 32."""


def difference_from_resamples(
    value: float, drawn: Floats, units: int, changed: int, fewest: int = intervals.MIN_UNITS
) -> Difference:
    """Return a difference, second less first, with its interval from paired resamples.

    Args:
        value: the difference over all units.
        drawn: the same over units drawn with replacement, drawn together for both runs, shape (B,);
            NaN where one of the figures is undefined.
        units: how many units were drawn from.
        changed: in how many of them the data of the figure changed.
        fewest: units below which there is no interval.

    The interval is the expanded percentile interval (Hesterberg 2015). Without any change it is
    (0, 0); with fewer than :data:`MIN_CHANGED_QUESTIONS` changes it is made wide enough to hold 0.
    """
    if reason := intervals.reason_too_few("questions", units, fewest):
        return Difference(value, None, reason)
    defined = drawn[~np.isnan(drawn)]
    # Percentiles of the remaining tenth-and-more undefined draws would favour the defined ones.
    if changed and len(defined) < 0.9 * len(drawn):
        return Difference(value, None, "the figure rests on too few answers")
    interval = student_percentile_interval(defined, units) if changed else (0.0, 0.0)
    return widen_for_few_changes(Difference(value, interval), changed)


def widen_for_few_changes(difference: Difference, changed: int) -> Difference:
    """Adjust the interval of a difference that few changes make up.

    Without any change the interval is (0, 0); with fewer than :data:`MIN_CHANGED_QUESTIONS`
    changes it is extended to contain 0.
    """
    if difference.interval is None or changed >= MIN_CHANGED_QUESTIONS:
        return difference
    low, high = difference.interval if changed else (0.0, 0.0)
    return Difference(difference.value, (min(low, 0.0), max(high, 0.0)))


def share_rise_p(risen: int, fallen: int, n: int, margin: float = 0.0) -> float:
    """Return the one-sided p-value of a share of n pairs not rising by more than a margin.

    Args:
        risen: pairs that have the property only in the second run.
        fallen: pairs that have it only in the first run.
        margin: from 0 to 1. A negative margin asks whether the share fell by less than that.

    Without a margin this is the exact test of McNemar (1947): of all pairs that changed, the number
    of risen ones is binomial with 1/2. With a margin it is the score test of Tango (1998): the
    distance of d = (risen - fallen) / n from the margin m, over its standard error at the likeliest
    shares for a difference of m.

    Raises:
        ValueError: the counts are no counts of n pairs.
    """
    if risen < 0 or fallen < 0 or risen + fallen > n or n < 1:
        raise ValueError(f"expected counts among n pairs, got {risen} and {fallen} of {n}")
    if not margin:
        changed = risen + fallen
        return incomplete_beta(risen, changed - risen + 1, 0.5) if risen else 1.0
    if margin < 0:  # the same with rises and falls exchanged
        return 1 - share_rise_p(fallen, risen, n, -margin)
    a, c = 2 * n, -fallen * margin * (1 - margin)
    b = (2 * n - risen + fallen) * margin - (risen + fallen)
    fall = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)  # the likeliest share of falls
    error = math.sqrt(n * (2 * fall + margin * (1 - margin)))
    return 1 - NormalDist().cdf((risen - fallen - n * margin) / error)


STORED_QUANTILES = 51
"""Quantiles by which a distribution is stored."""
QUANTILE_DIGITS = 6
"""Significant digits of a stored quantile."""
KOLMOGOROV_TERMS = 100
"""Terms of Kolmogorov's series; the sum is exact to all digits long before."""


@dataclass(frozen=True, slots=True)
class DistributionSummary:
    """A distribution of scores, stored by some of its quantiles."""

    size: float
    """How many independent values the distribution is worth."""
    missing: float
    """The share of answers without a value, 0 to 1."""
    points: tuple[float, ...]
    """Values, rising."""
    shares: tuple[float, ...]
    """The share of the existing values that lie at or below each point."""


@dataclass(frozen=True, slots=True)
class DistributionDistance:
    """The distance of two distributions."""

    distance: float
    """The largest distance of the distribution functions, 0 to 1."""
    p: float
    """The probability of a distance as large by chance."""


def summarise_distribution(values: ArrayLike, clusters: ArrayLike) -> DistributionSummary:
    """Return the distribution of values, shape (n,), in 51 quantiles; NaN is a missing value.

    Raises:
        ValueError: there are no values at all, or one is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x) or np.isinf(x).any():
        raise ValueError("expected finite values, or NaN where there is none; at least one")
    finite = x[~np.isnan(x)]
    points: list[float] = []
    if len(finite):
        result = np.quantile(finite, np.linspace(0, 1, STORED_QUANTILES), method="inverted_cdf")
        # Rounded so that a stored file is the same on every machine; equal quantiles become one
        # point.
        points = sorted({float(f"{point:.{QUANTILE_DIGITS}g}") for point in result.tolist()})
    shares = [float((finite <= point).mean()) for point in points]
    return DistributionSummary(
        intervals.effective_size(clusters), float(np.isnan(x).mean()), tuple(points), tuple(shares)
    )


def compare_distribution(
    stored: DistributionSummary, values: ArrayLike, clusters: ArrayLike
) -> DistributionDistance:
    """Compare values with a distribution by the two-sample test of Kolmogorov and Smirnov.

    A missing value counts as lower than all others. The distance is taken at the stored points
    only, so it is at most the distance over all values, and the test raises no more false alarms
    than it promises.

    Args:
        values, clusters: shape (n,), NaN where there is no value; n = 0 is like everything.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return DistributionDistance(0.0, 1.0)
    ranked = np.sort(np.where(np.isnan(x), -np.inf, x))
    # -inf stands for the missing values
    at = np.array([-np.inf, *stored.points])
    share_below = np.searchsorted(ranked, at, side="right") / len(x)
    stored_share_below = stored.missing + (1 - stored.missing) * np.array([0.0, *stored.shares])
    distance = float(np.abs(share_below - stored_share_below).max())
    return DistributionDistance(
        distance, kolmogorov_p_value(distance, stored.size, intervals.effective_size(clusters))
    )


def kolmogorov_p_value(distance: float, first: float, second: float) -> float:
    """Return the probability of such a distance between two samples of one distribution.

    It is 2 sum_j (-1)^(j-1) exp(-2 j^2 l^2) with l = (r + 0.12 + 0.11 / r) D and r the root of the
    product of the sizes over their sum (Stephens 1970).

    Args:
        distance: D, 0 to 1.
        first, second: the sizes of the samples; not above 0 gives 1.
    """
    if first <= 0 or second <= 0:
        return 1.0
    root = math.sqrt(first * second / (first + second))
    scaled = (root + 0.12 + 0.11 / root) * distance
    if scaled < 0.2:  # the sum is 1 to many digits, and its terms hardly fall
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2 * j**2 * scaled**2) for j in range(1, KOLMOGOROV_TERMS))
    return min(1.0, max(0.0, 2 * math.fsum(terms)))


NORMAL_FLIP_SHARE = 0.01
"""The share of flipped verdicts that counts as normal when a judge is asked the same again."""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """The effect of a change on the scores and verdicts of ``flips.n`` answers."""

    shift: Estimate
    """The mean change of the score."""
    flips: Estimate
    """The share of verdicts that changed, 0 to 1."""
    p: float
    """The p-value of no effect."""
    ratio: Estimate | None = None
    """How far the change moves the scores, relative to a control (:func:`movement_ratios`)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        parts = {"shift": self.shift, "flips": self.flips, "ratio": self.ratio}
        return {"p": self.p} | {
            name: estimate and estimate.to_dict() for name, estimate in parts.items()
        }


def measure_change_effect(
    change: Floats,
    flipped: Bools,
    units: Places,
    width: float,
    rng: np.random.Generator,
    calm: Bools | None = None,
) -> ChangeEffect:
    """Measure the effect of a change on scores and verdicts of n answers, 1 or more.

    p is twice the smaller p-value of two tests: that the scores do not shift, by sign flips over
    units; and that verdicts flip no more often than those of ``calm``, by McNemar's exact test of
    units with more flips against units with fewer. Both tests are exact for a judge that draws each
    reply independently. Without ``calm`` the second is the binomial test that at most 1 % flip.

    Args:
        change: of the scores, shape (n,), NaN where one is missing.
        flipped: whether the verdict changed, shape (n,).
        units: the unit of each answer, shape (n,).
        width: of the range of scores; may be infinite.
        calm: whether the verdict also changed when nothing was changed, shape (n,).
    """
    place = intervals.unit_places(units, len(flipped))
    has_both, flips = ~np.isnan(change), flipped.astype(np.float64)
    mean = intervals.unit_mean(flips, place)
    reason = intervals.reason_too_few(
        "questions (of equal size)", math.floor(mean.units + 1e-9), MIN_UNITS
    )
    share = Estimate.of(mean.mean, len(flips), reason or intervals.mean_interval(*mean))
    by_unit = np.bincount(place, flips if calm is None else flips - calm)
    more, fewer, count = int((by_unit > 0).sum()), int((by_unit < 0).sum()), len(by_unit)
    if calm is not None:
        ps = [share_rise_p(more, fewer, count)]
    else:
        # A unit with several answers may flip in any of them, so its probability is raised
        # accordingly.
        allowed = 1 - (1 - NORMAL_FLIP_SHARE) ** (len(flips) / count)
        ps = [incomplete_beta(more, count - more + 1, allowed) if more else 1.0]
    shift = Estimate(None, 0, None, "no answer has both scores")
    if has_both.any():
        value, ends, reason = mean_of_differences(change[has_both], width, place[has_both])
        shift = Estimate(value, int(has_both.sum()), ends, reason or "")
        # Flips of whole units: answers of one unit do not move independently.
        ps.append(sign_flip_p(np.bincount(place[has_both], change[has_both]), rng))
    return ChangeEffect(shift, share, min(1.0, len(ps) * min(ps)))


def movement_ratios(changes: Floats, units: Places, rng: np.random.Generator) -> Sequence[Estimate]:
    """Return how far changes move the scores, relative to the last of them, a control.

    A movement is the mean of the absolute changes, so a judge's random variation counts: a ratio of
    1 means that a change moves the scores as far as the control. Intervals are bootstrapped over
    units, with all movements of a unit drawn together.

    Args:
        changes: of the scores, shape (2 or more, n), NaN where there is none; each row has a
            number, and the last row a number other than 0.
        units: the unit of each answer, shape (n,).
    """
    place = intervals.unit_places(units, changes.shape[1])
    tables = np.nan_to_num(np.abs(changes)), (~np.isnan(changes)).astype(np.float64)
    sums, sizes = (np.stack([np.bincount(place, row) for row in table]) for table in tables)

    def ratios(weights: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (weights @ sums.T) / (weights @ sizes.T)
            parts = means[:, :-1] / means[:, -1:]
        # A draw in which the control did not move at all has no ratio.
        return np.where(np.isfinite(parts), parts, np.nan)

    count, n = sums.shape[1], int(sizes[-1].sum())
    drawn = np.concatenate([ratios(weights) for weights in draw_counts(count, rng)])
    pairs = zip(ratios(np.ones((1, count)))[0].tolist(), drawn.T, strict=True)
    return [Estimate.of(value, n, resample_interval(column, count)) for value, column in pairs]
