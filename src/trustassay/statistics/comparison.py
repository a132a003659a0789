"""Matched pairs compared: differences of means and shares, and sign flips; and how far scores and
verdicts move when one thing is changed, and nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats, Places, intervals
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.intervals import FEWEST, Estimate, Term
from trustassay.statistics.resampling import drawn_counts, expanded_interval, interval_of

FLIPPED_AT_ONCE = 4_000_000
"""Signs of the largest matrix that is held."""


class Difference(NamedTuple):
    """A difference, second minus first, with its 95 % interval, or why it has none."""

    value: float
    interval: intervals.Interval | None
    without: str | None = None


def _term(mean: intervals.UnitMean, bounds: tuple[float, float], weight: float) -> Term:
    ends = intervals.bounded_interval(mean, bounds)
    assert ends
    return Term(mean.mean, ends, weight)


def mean_of_differences(
    differences: ArrayLike,
    largest: float = 1.0,
    units: Places | None = None,
    fewest: int = intervals.FEWEST_FOR_MEANS,
) -> Difference:
    """Return the mean of paired differences, second minus first.

    Where the skewness g of n units is harmless, n > 25 g^2 (Cochran 1977, sec. 2.15), the interval
    is that of a mean of numbers from -``largest`` to ``largest``, which is nearly Student's. Else,
    as where few samples changed, it is put together from those of the mean rise and the mean fall,
    which are skewed as they are.

    Args:
        units: of the pairs, as for :func:`~trustassay.statistics.intervals.unit_mean`.
        fewest: units below which there is no interval.

    Raises:
        ValueError: there is none.
    """
    sample = _sample(differences)
    mean = intervals.unit_mean(sample, units)
    value, n = mean.mean, mean.units
    what = "pairs" if n == len(sample) else "questions (of equal size)"
    if reason := intervals.too_few(what, math.floor(n + 1e-9), fewest):
        return Difference(value, None, reason)
    place = intervals.unit_places(units, len(sample))
    moved = np.bincount(place, sample - sample.mean())
    # n > 25 g^2 with g = m3 / m2^(3/2), without dividing: all may be the same.
    if n * float(np.mean(moved**2)) ** 3 > 25 * float(np.mean(moved**3)) ** 2:
        return Difference(value, intervals.bounded_interval(mean, (-largest, largest)))
    sides = [np.maximum(sample, 0.0), np.maximum(-sample, 0.0)]
    rise, fall = (np.bincount(place, side - side.mean()) for side in sides)
    scatter = float(rise.std() * fall.std())
    together = float(np.mean(rise * fall)) / scatter if scatter else 0.0
    terms = [
        _term(intervals.unit_mean(side, units), (0.0, largest), weight)
        for side, weight in zip(sides, (1.0, -1.0), strict=True)
    ]
    correlation = np.array([[1.0, together], [together, 1.0]])
    return Difference(value, intervals.sum_interval(terms, np.clip(correlation, -1.0, 1.0)))


def _sample(values: ArrayLike) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("expected one value or more")
    return sample


def sign_flip_p(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> float:
    """Return the two-sided p-value that the mean of paired differences is 0.

    Under the hypothesis each difference could as well have the other sign: p is
    (1 + flips with a mean as far from 0) / (1 + flips). Differences of 0 say nothing; without any
    other, p is 1.
    """
    return float(sign_flip_ps(_sample(differences)[None], rng, permutations)[0])


def sign_flip_ps(
    differences: ArrayLike, rng: np.random.Generator, permutations: int = 1999
) -> Floats:
    """Return :func:`sign_flip_p` of several rows, with the same flips for all, shape (r,).

    Args:
        differences: shape (r, n), of the same n units; n may be 0.
    """
    rows = np.asarray(differences, dtype=np.float64)
    observed = np.abs(rows.sum(axis=1))
    slack = 1e-12 * np.abs(rows).sum(axis=1)
    some = np.flatnonzero(rows.any(axis=0))
    reached = np.zeros(len(rows))
    at_once = max(1, FLIPPED_AT_ONCE // max(len(some), 1))
    for start in range(0, permutations, at_once):
        size = (min(at_once, permutations - start), len(some))
        signs = 2.0 * rng.integers(0, 2, size=size, dtype=np.int8) - 1.0
        reached += (np.abs(rows[:, some] @ signs.T) >= (observed - slack)[:, None]).sum(axis=1)
    return np.asarray((1 + reached) / (1 + permutations))


FEWEST_CHANGED = 6
"""Questions with a change below which no difference is significant: if rises and falls are equally
likely, five of five go the same way one time in sixteen, six of six one time in 32."""


def paired_difference(
    value: float, drawn: Floats, units: int, changed: int, fewest: int = intervals.FEWEST
) -> Difference:
    """Return a difference, second less first, with its interval from paired resamples.

    Args:
        value: the difference over all units. drawn: the same over units drawn with replacement,
            both runs' together, shape (B,); NaN where one of the figures is undefined.
        units: that were drawn from. changed: those in which what the figure is made of changed.
        fewest: units below which there is no interval.

    The interval is the expanded percentile interval (Hesterberg 2015). Without any change it is
    (0, 0); with fewer than :data:`FEWEST_CHANGED` changes it is made wide enough to hold 0.
    """
    if reason := intervals.too_few("questions", units, fewest):
        return Difference(value, None, reason)
    defined = drawn[~np.isnan(drawn)]
    if changed and len(defined) < 0.9 * len(drawn):
        return Difference(value, None, "too few answers make up the figure")
    interval = expanded_interval(defined, units) if changed else (0.0, 0.0)
    return with_few_changes(Difference(value, interval), changed)


def with_few_changes(difference: Difference, changed: int) -> Difference:
    """Return a difference without change as 0 to 0; of fewer than :data:`FEWEST_CHANGED` changes
    with an interval wide enough to hold 0.
    """
    if difference.interval is None or changed >= FEWEST_CHANGED:
        return difference
    low, high = difference.interval if changed else (0.0, 0.0)
    return Difference(difference.value, (min(low, 0.0), max(high, 0.0)))


def share_rise_p(risen: int, fallen: int, n: int, margin: float = 0.0) -> float:
    """Return the one-sided p-value that a share did not rise, in n pairs, by more than a margin.

    Args:
        risen: pairs that have the property in the second run alone. fallen: in the first alone.
        margin: from 0 to 1. Below 0 it asks whether the share fell by less than so much.

    Without a margin this is the exact test of McNemar (1947): of all pairs that changed, risen is
    binomial with 1/2. With one it is the score test of Tango (1998): of the difference
    d = (risen - fallen) / n about the margin m, over its standard error at the shares that are
    likeliest where the difference is m.

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
        result = np.quantile(there, np.linspace(0, 1, POINTS), method="inverted_cdf")
        points = sorted({float(f"{point:.{DIGITS}g}") for point in result.tolist()})
    shares = [float((there <= point).mean()) for point in points]
    return Spread(
        intervals.effective_size(clusters), float(np.isnan(x).mean()), tuple(points), tuple(shares)
    )


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
    return Unlike(
        distance, kolmogorov_p_value(distance, kept.size, intervals.effective_size(clusters))
    )


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


ALLOWED = 0.01
"""The share of flips above which a judge is said to differ from itself when it is asked anew."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a change did to ``flips.n`` answers: the mean change of the score, the share of other
    verdicts (0 to 1), p of no effect, and maybe the ratio of its movement to a control's."""

    shift: Estimate
    flips: Estimate
    p: float
    ratio: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        parts = {"shift": self.shift, "flips": self.flips, "ratio": self.ratio}
        return {"p": self.p} | {name: one and one.to_dict() for name, one in parts.items()}


def moved(
    change: Floats,
    flipped: Bools,
    units: Places,
    width: float,
    rng: np.random.Generator,
    calm: Bools | None = None,
) -> Moved:
    """Measure what a change does to scores and verdicts of n answers, 1 or more.

    Two tests, p is twice the smaller: by sign flips over units, that the scores do not shift; and
    that verdicts flip no oftener than those of ``calm``, by McNemar's exact test of the units with
    more flips against those with fewer. Both are exact for a judge that draws each reply anew,
    whatever it draws from. Without ``calm`` the second is the binomial test that at most 1 % flip.

    Args:
        change: of the scores, shape (n,), NaN where one is missing. flipped: whether the verdict
            changed, shape (n,). units: of the answers, shape (n,). width: of the range of scores;
            may be infinite. calm: whether the verdict changed without a change, shape (n,).
    """
    place = intervals.unit_places(units, len(flipped))
    there, flips = ~np.isnan(change), flipped.astype(np.float64)
    mean = intervals.unit_mean(flips, place)
    why = intervals.too_few("questions (of equal size)", math.floor(mean.units + 1e-9), FEWEST)
    share = Estimate.of(mean.mean, len(flips), why or intervals.mean_interval(*mean))
    by_unit = np.bincount(place, flips if calm is None else flips - calm)
    more, fewer, count = int((by_unit > 0).sum()), int((by_unit < 0).sum()), len(by_unit)
    if calm is not None:
        ps = [share_rise_p(more, fewer, count)]
    else:
        allowed = 1 - (1 - ALLOWED) ** (len(flips) / count)
        ps = [incomplete_beta(more, count - more + 1, allowed) if more else 1.0]
    shift = Estimate(None, 0, None, "no answer has both scores")
    if there.any():
        value, ends, why = mean_of_differences(change[there], width, place[there])
        shift = Estimate(value, int(there.sum()), ends, why or "")
        ps.append(sign_flip_p(np.bincount(place[there], change[there]), rng))
    return Moved(shift, share, min(1.0, len(ps) * min(ps)))


def movement_ratios(changes: Floats, units: Places, rng: np.random.Generator) -> Sequence[Estimate]:
    """Return how far changes move the scores as parts of how far the last of them, a control, does.

    A movement is the mean of changes without their signs, so what a judge does at random counts:
    at 1 a change moves it as far as the control. Intervals are bootstrapped over units, all
    movements of a unit drawn together.

    Args:
        changes: of the scores, shape (2 or more, n), NaN where there is none; each row has a
            number, and the last one a number other than 0. units: of the answers, shape (n,).
    """
    place = intervals.unit_places(units, changes.shape[1])
    tables = np.nan_to_num(np.abs(changes)), (~np.isnan(changes)).astype(np.float64)
    sums, sizes = (np.stack([np.bincount(place, row) for row in table]) for table in tables)

    def ratios(weights: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (weights @ sums.T) / (weights @ sizes.T)
            parts = means[:, :-1] / means[:, -1:]
        return np.where(np.isfinite(parts), parts, np.nan)

    count, n = sums.shape[1], int(sizes[-1].sum())
    drawn = np.concatenate([ratios(weights) for weights in drawn_counts(count, rng)])
    pairs = zip(ratios(np.ones((1, count)))[0].tolist(), drawn.T, strict=True)
    return [Estimate.of(value, n, interval_of(column, count)) for value, column in pairs]
