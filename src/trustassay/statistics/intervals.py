"""Confidence intervals that hold for few samples: of shares, of means and of quantiles.

All are computed from sums, without resampling, so they take no time and depend on no seed.
``python -m benchmarks.coverage`` measures how often they hold the true value.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.distributions import (
    bisection,
    incomplete_beta,
    normal_quantile,
    student_t_quantile,
)

Interval = tuple[float, float]

FEWEST = 20
"""Samples below which no figure is to be given an interval."""
FEWEST_FOR_MEANS = 40
"""The same of means of scores of any size: of 20 samples, one time in eight none belongs to the
tenth that makes up most of the mean (docs/intervals.md)."""
UNSEEN = 1.0
"""Events of the largest possible size that :func:`mean_interval` adds to those that were seen."""
SAME = 1e-12
"""A design effect that is rounding: all numbers are the same."""
MANY = 1000
"""Successes and failures from which on Wilson's interval stands for the exact one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure of ``n`` answers or items, ``None`` where it is not defined, with its interval;
    ``without`` says why one of them is missing."""

    value: float | None
    n: int
    interval: Interval | None = None
    without: str = ""

    @classmethod
    def of(cls, value: float | None, n: int, interval: Interval | str) -> "Estimate":
        """Return a figure with its interval, or with the reason why it has none."""
        return cls(value, n, *((None, interval) if isinstance(interval, str) else (interval,)))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


def too_few(what: str, there: int, needed: int) -> str | None:
    """Return why a figure has no interval, or ``None`` if there are enough samples."""
    return f"too few {what}: {there:,}; at least {needed:,} are needed" if there < needed else None


def too_few_units(
    samples: int, units: int, worth: float, needed: int, what: str = "samples"
) -> str | None:
    """Return why a figure has no interval, or ``None`` if there are enough samples; of those that
    share units, enough units of equal size that they are worth (:class:`UnitMean`).
    """
    if units == samples:
        return too_few(what, samples, needed)
    return too_few("independent units (of equal size)", math.floor(worth + 1e-9), needed)


class RowSums:
    """Sums of rows, and of the products of units, in one pass.

    A unit is what is independent of all others: a row by itself, or several rows together, as all
    answers to a question. ``n`` counts rows, ``total`` is their sum, shape (width,), and ``alone``
    the sum of those that are a unit by themselves. With the products of the units' own sums it
    gives the variance of any smooth function of the sums. Only the sums of units of several rows
    are held; the others take the memory of one matrix.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.total: Floats = np.zeros(width)
        self.alone: Floats = np.zeros(width)
        self._rows_alone = 0
        self._products: Floats = np.zeros((width, width))
        self._held: dict[int, Floats] = {}

    def add(self, rows: Floats, units: Places | None = None) -> None:
        """Count in more rows, shape (m, width).

        Args:
            units: the number of each row's unit, below 0 for a row by itself, shape (m,);
                ``None`` if all are.
        """
        self.n += len(rows)
        self.total += rows.sum(axis=0)
        alone = rows if units is None else rows[units < 0]
        self.alone += alone.sum(axis=0)
        self._rows_alone += len(alone)
        self._products += alone.T @ alone
        if units is None or len(alone) == len(rows):
            return
        together = units >= 0
        numbers, place = np.unique(units[together], return_inverse=True)
        sums = np.zeros((len(numbers), len(self.total)))
        np.add.at(sums, place, rows[together])
        for number, row in zip(numbers.tolist(), sums, strict=True):
            known = self._held.get(number)
            self._held[number] = row if known is None else known + row

    @property
    def units(self) -> int:
        """The number of units."""
        return self._rows_alone + len(self._held)

    @property
    def several(self) -> Floats:
        """The sums of the units of several rows, shape (units of several rows, width)."""
        return np.array(list(self._held.values())).reshape(-1, len(self.total))

    def covariance(self, gradients: Floats) -> Floats:
        """Return the covariances of figures with these gradients by the sums, shape (f, f).

        Args:
            gradients: derivative of each figure by each sum, shape (f, width).

        The infinitesimal jackknife (Efron and Tibshirani 1993, sec. 21): a unit with the sum r
        moves a figure by g r, and the figure's variance is the sum of the squares of these about
        their mean. It is that of draws with replacement, with n and not n - 1. Of no row at all it
        is 0.
        """
        if not self.n:
            return np.zeros((len(gradients), len(gradients)))
        moved = gradients @ self.total
        several = self.several
        products = self._products + several.T @ several
        result: Floats = gradients @ products @ gradients.T - np.outer(moved, moved) / self.units
        return result

    def ratio(self, above: Floats, below: Floats) -> "UnitMean":
        """Return the ratio of two sums, with the variance of its linear form (Cochran 1977, sec.
        6.3); a unit's size is its own sum below.

        Args:
            above, below: how often each column counts in the sum, shape (width,); the sum below
                must not be 0.
        """
        whole = float(below @ self.total)
        ratio = float(above @ self.total) / whole
        gradient = (above - ratio * below) / whole
        variance = max(float(self.covariance(gradient[None])[0, 0]), 0.0)
        squares = float(((self.several @ below) ** 2).sum() + below @ self._products @ below)
        return UnitMean(ratio, variance, whole**2 / squares)


class UnitMean(NamedTuple):
    """A mean of numbers, its variance, and how many units of equal size their units are worth:
    (sum of the sizes)^2 / sum of their squares (Kish 1965), which is their number if all are equal.
    """

    mean: float
    variance: float
    units: float


def unit_mean(values: Floats, units: Places | None = None) -> UnitMean:
    """Return the mean of n numbers, 1 or more, and its variance over their units.

    Args:
        values: shape (n,). units: as for :meth:`RowSums.add`, shape (n,).

    The mean is that of the numbers, so a unit of several counts as often. Its variance is the sum
    over units of (sum of the unit's numbers less their mean)^2 over n^2 (Cochran 1977, sec. 9A.3),
    which for numbers by themselves is their mean square about the mean over n.
    """
    mean, n = float(values.mean()), len(values)
    apart = values - mean
    if units is None or not (units >= 0).any():
        return UnitMean(mean, float((apart**2).mean()) / n, n)
    place = unit_places(units, n)
    sums = np.bincount(place, apart)
    return UnitMean(mean, float((sums**2).sum()) / n**2, effective_size(place))


def unit_numbers(units: ArrayLike | None, n: int) -> Places:
    """Return the number of each of n rows' unit, 0 or more; rows by themselves have one each.

    ``units`` are as for :meth:`RowSums.add`.
    """
    of = np.full(n, -1) if units is None else np.array(units, dtype=np.int64)
    alone = np.flatnonzero(of < 0)
    of[alone] = of.max(initial=-1) + 1 + np.arange(len(alone))
    return of


def unit_places(units: ArrayLike | None, n: int) -> Places:
    """Return :func:`unit_numbers` without gaps, from 0."""
    return np.unique(unit_numbers(units, n), return_inverse=True)[1]


def units_in(units: Places) -> int:
    """Return the number of different units; each row below 0 is one by itself."""
    together = units[units >= 0]
    return len(units) - len(together) + len(np.unique(together))


def effective_size(clusters: ArrayLike) -> float:
    """Return how many clusters of one size n samples are worth: n^2 over the sum of the squares of
    the clusters' sizes (Kish 1965); 0 for none. Samples of a cluster count as one, however little
    they have in common.
    """
    sizes = np.unique(clusters, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(sizes) else 0.0


def wilson_interval(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return the score interval of a share (Wilson 1927); n above 0."""
    z2 = normal_quantile((1 + level) / 2) ** 2
    share = successes / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def binomial_interval(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return the mid-P interval of a share of independent yes and no (Lancaster 1961).

    The bounds are the shares p at which P(X < x) + P(X = x) / 2 is (1 - level) / 2, and the same
    of P(X > x). Clopper and Pearson (1934) count P(X = x) whole and are too wide by about one
    success; Wilson's interval is nearly the same in the middle, but holds a share near 0 or 1 as
    seldom as 84 times in a hundred.

    ``successes`` and ``n`` need not be whole: the binomial is continued by the incomplete beta
    function. None of n gives (0, 1 - (1 - level)^(1/n)), n of n the mirror image. From 1,000
    successes and failures on, where both agree, it is Wilson's.

    Raises:
        ValueError: n is not above 0, or successes are not between 0 and n.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"expected 0 <= successes <= n and n above 0, got {successes} of {n}")
    if min(successes, n - successes) >= MANY:
        return wilson_interval(successes, n, level)
    low, high = wilson_interval(successes, n, level)
    tail = (1 - level) / 2
    return (
        1 - _upper_bound(n - successes, n, tail, 1 - low),
        _upper_bound(successes, n, tail, high),
    )


def _upper_bound(x: float, n: float, tail: float, guess: float) -> float:
    """Return the p at which P(X < x) + P(X = x) / 2 = tail, by Newton's steps in a bracket."""
    if n - x <= 1e-9 * n:
        return 1.0
    ways = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
    low, high = x / n, 1.0
    p = guess if low < guess < high else (low + high) / 2
    for _ in range(100):
        if p >= 1:
            return 1.0
        equal = math.exp(ways + x * math.log(p) + (n - x) * math.log1p(-p))
        surplus = 1 - incomplete_beta(x + 1, n - x, p) - equal / 2 - tail
        low, high = (p, high) if surplus > 0 else (low, p)
        slope = equal / 2 * ((n - x) / (1 - p) + x / p)
        last, p = p, p + surplus / slope if slope else high
        if not low < p < high:
            p = (low + high) / 2
        if abs(p - last) <= 1e-8 * min(p, 1 - p):  # the error is about the square of the step
            break
    return p


def mean_interval(mean: float, variance: float, n: float, level: float = 0.95) -> Interval:
    """Return the interval of a mean of n independent numbers between 0 and 1.

    Args:
        mean: from 0 to 1. It may be another figure between 0 and 1 that n samples make up.
        variance: the variance of the mean, the n numbers' mean square about it over n.
        n: the numbers, 1 or more; those of units, what these are worth (:class:`UnitMean`).

    Numbers that are all 0 or 1 have the variance m (1 - m) / n; others have a share d of that,
    the design effect, and tell as much as n / d numbers of 0 and 1 do (Korn and Graubard 1998).
    So the interval is :func:`binomial_interval` of m n / d successes of n / d, which is as
    skewed as the mean is. Two things are added, which vanish where all are 0 or 1:

    - What was seen, k = min(m, 1 - m) n / d events of the size d, may not be all there is: d is
      taken as if one event more of the largest size had been seen, (k d + 1) / (k + 1).
    - The variance is an estimate: it is raised by (t / z)^2 n / (n - 1), times 1 - d.

    Where all numbers are the same, what was not seen may be a share of up to
    u = 1 - (1 - level)^(1/n), and of any size: (m - u m, m + u (1 - m)). A single number says
    nothing of how others scatter: (0, 1).

    Raises:
        ValueError: n is below 1, or the mean is not between 0 and 1.
    """
    if n < 1 or not 0 <= mean <= 1:
        raise ValueError(f"expected n of 1 or more and a mean from 0 to 1, got {n} and {mean}")
    if n < 2:
        return (0.0, 1.0)
    whole = mean * (1 - mean)
    effect = max(variance, 0.0) * n / whole if whole > 0 else 0.0
    if effect <= SAME:
        unseen = 1 - (1 - level) ** (1 / n)
        return mean - unseen * mean, mean + unseen * (1 - mean)
    events = min(mean, 1 - mean) * n / effect
    effect = (events * effect + UNSEEN) / (events + UNSEEN)
    p = (1 + level) / 2
    estimated = (student_t_quantile(p, n - 1) / normal_quantile(p)) ** 2 * n / (n - 1)
    told = n / effect / (1 + max(1 - effect, 0.0) * (estimated - 1))
    return binomial_interval(mean * told, told, level)


def t_interval(mean: float, variance: float, n: float, level: float = 0.95) -> Interval | None:
    """Return Student's interval of a mean of n numbers that have no bounds.

    ``variance`` is as in :func:`mean_interval`. ``None`` for a single number, and where all are
    the same: their scatter is unknown.
    """
    if n < 2 or variance <= 0:
        return None
    reach = student_t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance * n / (n - 1))
    return mean - reach, mean + reach


def bounded_interval(mean: UnitMean, bounds: Interval | None) -> Interval | None:
    """Return the interval of a mean of numbers between bounds, :func:`mean_interval` of where it
    lies between them; of numbers without finite bounds :func:`t_interval`.
    """
    if bounds is None or not all(map(math.isfinite, bounds)):
        return t_interval(*mean)
    least, width = bounds[0], bounds[1] - bounds[0]
    share = min(max((mean.mean - least) / width, 0.0), 1.0)
    low, high = mean_interval(share, mean.variance / width**2, mean.units)
    return least + width * low, least + width * high


Transform = Literal["none", "fisher", "log", "logit"]
TRANSFORMS: Mapping[Transform, tuple[Callable[[Floats], Floats], Callable[[float], float]]] = {
    "none": (lambda x: x, lambda x: x),
    "fisher": (np.arctanh, math.tanh),
    "log": (np.log, math.exp),
    "logit": (lambda x: np.log(x / (1 - x)), lambda x: 1 / (1 + math.exp(-x))),
}


def jackknife_interval(
    value: float, without: ArrayLike, transform: Transform = "none", level: float = 0.95
) -> Interval | None:
    """Return the interval of a figure from what it is without each unit (Tukey 1958; Miller 1974).

    Args:
        value: the figure of all units. without: that of all but one, shape (units,); or but one of
            as many groups of units.
        transform: the scale on which it is symmetric: Fisher's, of figures between -1 and 1, the
            logarithm, of figures above 0, or the logit, of figures between 0 and 1.

    The variance on that scale is (n - 1) / n times the sum of squares of ``without`` about its
    mean, and the quantile is Student's with n - 1 degrees of freedom. ``None`` of fewer than two
    units, where nothing changes without any unit, and where a value lies at an end of the scale or
    beyond.
    """
    forth, back = TRANSFORMS[transform]
    left = np.asarray(without, dtype=np.float64)
    n = len(left)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, moved = float(forth(np.array([value]))[0]), forth(left)
    if n < 2 or not math.isfinite(middle) or not np.isfinite(moved).all():
        return None
    error = math.sqrt((n - 1) * float(moved.var()))
    if error <= SAME:
        return None
    reach = student_t_quantile((1 + level) / 2, n - 1) * error
    return back(middle - reach), back(middle + reach)


class Term(NamedTuple):
    """A figure with its interval, and the weight with which it enters a sum."""

    value: float
    interval: Interval
    weight: float


def sum_interval(terms: Sequence[Term], correlation: Floats) -> Interval:
    """Return the interval of a weighted sum of figures (Zou and Donner 2008, "MOVER").

    The distances from the sum to its bounds are put together, as standard errors are, from those
    of each figure, on the side from which it moves the sum that way; so intervals that are not
    symmetric stay so, and that of a figure of 0 or 100 % has its width.

    Args:
        terms: one or more. correlation: of the figures, shape (f, f).
    """
    weights = np.array([term.weight for term in terms])
    values = np.array([term.value for term in terms])
    reach = np.abs(np.array([term.interval for term in terms]).T - values)
    down, up = np.where(weights > 0, reach, reach[::-1]) * np.abs(weights)
    together = np.sign(np.outer(weights, weights)) * correlation
    total = float(weights @ values)
    below, above = (math.sqrt(max(float(side @ together @ side), 0.0)) for side in (down, up))
    return total - below, total + above


def quantile_interval(ordered: Floats, q: float, level: float = 0.95) -> Interval | None:
    """Return the interval of the q-quantile, 0 < q < 1, from n sorted values.

    A value of the sample at place u (from 1 on, and between two places linearly) lies below the
    quantile with a probability of I_q(u, n + 1 - u), whatever the distribution (Hutson 1999);
    the bounds stand where that is (1 + level) / 2 and (1 - level) / 2. Among equal values it
    holds the quantile more often.

    ``None`` if the places lie beyond the sample: a median needs 6 values, the 90 % quantile 36.
    """
    n = len(ordered)
    if n < fewest_for_quantile(q, level):
        return None
    tail = (1 - level) / 2
    places = (_place(n, q, 1 - tail), _place(n, q, tail))
    low, high = np.interp(places, np.arange(1, n + 1), ordered)
    return float(low), float(high)


def unit_quantile_interval(values: Floats, units: Places | None, q: float) -> Interval | None:
    """Return the interval of the q-quantile, 0 < q < 1, of values that belong to units.

    Args:
        values: shape (n,). units: as for :meth:`RowSums.add`, shape (n,).

    The share of values up to the quantile is a mean over units; the bounds are the quantiles at the
    bounds of its interval (Woodruff 1952). Where every value is a unit by itself this is
    :func:`quantile_interval`. ``None`` where a bound lies beyond the values.
    """
    mean, variance, worth = unit_mean((values <= np.quantile(values, q)).astype(np.float64), units)
    if worth == len(values):
        return quantile_interval(np.sort(values), q)
    if worth < fewest_for_quantile(q):
        return None
    ends = mean_interval(mean, variance, worth)
    if ends[1] >= 1 or ends[0] <= 0:
        return None
    low, high = np.quantile(values, ends)
    return float(low), float(high)


def fewest_for_quantile(q: float, level: float = 0.95) -> int:
    """Return the number of values from which :func:`quantile_interval` has bounds."""
    return math.ceil(math.log((1 - level) / 2) / math.log(max(q, 1 - q)))


@cache
def _place(n: int, q: float, probability: float) -> float:
    """Return the u from 1 to n with I_q(u, n + 1 - u) = probability, which falls with u."""
    ends = bisection(lambda u: incomplete_beta(u, n + 1 - u, q) > probability, 1.0, n, 30)
    return sum(ends) / 2
