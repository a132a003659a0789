"""Confidence intervals of shares, means and quantiles that also hold for few samples.

All of them are computed from sums, without resampling: they are fast and depend on no seed.
``python -m lab.benchmarks.coverage`` measures how often they contain the true value.
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

MIN_UNITS = 20
"""Samples that a figure needs to get an interval."""
MIN_UNITS_FOR_MEANS = 40
"""Samples that a mean of scores of any size needs: if a tenth of the samples makes up most of the
mean, one set of 20 in eight contains none of that tenth (docs/intervals.md)."""
UNSEEN_EVENTS = 1.0
"""Events of the largest possible size that :func:`mean_interval` adds to the observed ones."""
NO_DESIGN_EFFECT = 1e-12
"""Design effects up to here are rounding errors: all numbers are the same."""
MIN_COUNT_FOR_WILSON = 1000
"""Successes and failures (each) from which Wilson's interval replaces the mid-P one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval, or with the reason why one of them is missing."""

    value: float | None
    """``None`` where the figure is not defined."""
    n: int
    """The number of answers or items that it is computed from."""
    interval: Interval | None = None
    """The 95 % interval; ``None`` where there is none."""
    without: str = ""
    """Why the value or the interval is missing."""

    @classmethod
    def of(cls, value: float | None, n: int, interval: Interval | str) -> "Estimate":
        """Return a figure with its interval, or with the reason why it has none."""
        return cls(value, n, *((None, interval) if isinstance(interval, str) else (interval,)))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


UNIT_ADVICE = "; score with --unit answer to take each answer as a unit"
"""The end of a reason, for commands that have the option."""


def reason_too_few(what: str, count: int, needed: int) -> str | None:
    """Return the reason why a figure has no interval; ``None`` if there are enough samples."""
    return f"too few {what}: {count:,}; at least {needed:,} are needed" if count < needed else None


def reason_too_few_units(
    samples: int, units: int, worth: float, needed: int, what: str = "samples"
) -> str | None:
    """Return the reason why a figure has no interval; ``None`` if there are enough samples.

    Args:
        samples: the number of samples.
        units: the number of units that they belong to.
        worth: how many units of equal size these units are worth (:class:`UnitMean`).
        needed: the samples, or units of equal size, that the figure needs.
    """
    if units == samples:
        return reason_too_few(what, samples, needed)
    reason = reason_too_few("independent units (of equal size)", math.floor(worth + 1e-9), needed)
    return reason and f"{reason}{UNIT_ADVICE}"


class RowSums:
    """Sums of rows and products of the sums of units, collected in one pass.

    A unit is independent of all other units: a single row, or several rows such as all answers to a
    question. ``n`` counts the rows, ``total`` is their sum, shape (width,), and
    ``single_rows_total`` is the sum of the rows that are units by themselves. The products of the
    units' sums give the variance of any smooth function of the sums. Memory holds the sums of the
    units of several rows, and one matrix for all other rows.
    """

    def __init__(self, width: int) -> None:
        self.n = 0
        self.total: Floats = np.zeros(width)
        self.single_rows_total: Floats = np.zeros(width)
        self._single_count = 0
        self._products: Floats = np.zeros((width, width))
        self._grouped_sums: dict[int, Floats] = {}

    def add(self, rows: Floats, units: Places | None = None) -> None:
        """Add rows, shape (m, width).

        Args:
            units: the number of each row's unit, below 0 for a row by itself, shape (m,);
                ``None`` if all are.
        """
        self.n += len(rows)
        self.total += rows.sum(axis=0)
        single_rows = rows if units is None else rows[units < 0]
        self.single_rows_total += single_rows.sum(axis=0)
        self._single_count += len(single_rows)
        # A unit of one row needs no place of its own: its square goes into the common matrix at
        # once.
        self._products += single_rows.T @ single_rows
        if units is None or len(single_rows) == len(rows):
            return
        is_grouped = units >= 0
        numbers, unit_place = np.unique(units[is_grouped], return_inverse=True)
        sums = np.zeros((len(numbers), len(self.total)))
        np.add.at(sums, unit_place, rows[is_grouped])
        for number, row in zip(numbers.tolist(), sums, strict=True):
            earlier_sum = self._grouped_sums.get(number)
            # Rows of one unit may come in several calls, so its sum stays open until the end.
            self._grouped_sums[number] = row if earlier_sum is None else earlier_sum + row

    @property
    def units(self) -> int:
        """The number of units."""
        return self._single_count + len(self._grouped_sums)

    @property
    def several(self) -> Floats:
        """The sums of the units of several rows, shape (units of several rows, width)."""
        return np.array(list(self._grouped_sums.values())).reshape(-1, len(self.total))

    def covariance(self, gradients: Floats) -> Floats:
        """Return the covariances of figures, shape (f, f); 0 where there are no rows.

        Args:
            gradients: the derivative of each figure with respect to each sum, shape (f, width).

        The infinitesimal jackknife (Efron and Tibshirani 1993, sec. 21): a unit with the sum r
        moves a figure by g r, and the figure's variance is the sum of the squares of these moves
        about their mean. This is the variance under draws with replacement, with n, not n - 1.
        """
        if not self.n:
            return np.zeros((len(gradients), len(gradients)))
        moved = gradients @ self.total
        several = self.several
        products = self._products + several.T @ several
        result: Floats = gradients @ products @ gradients.T - np.outer(moved, moved) / self.units
        return result

    def ratio(self, above: Floats, below: Floats) -> "UnitMean":
        """Return the ratio of two sums, with the variance of its linear form.

        The source is Cochran 1977, sec. 6.3. The size of a unit is its own sum in the denominator.

        Args:
            above, below: the weights of the columns in numerator and denominator, shape (width,);
                the denominator must not be 0.
        """
        denominator = float(below @ self.total)
        ratio = float(above @ self.total) / denominator
        gradient = (above - ratio * below) / denominator
        # Rounding may leave a variance slightly below 0 where all units have the same ratio.
        variance = max(float(self.covariance(gradient[None])[0, 0]), 0.0)
        squares = float(((self.several @ below) ** 2).sum() + below @ self._products @ below)
        return UnitMean(ratio, variance, denominator**2 / squares)


class UnitMean(NamedTuple):
    """A mean over units of different sizes."""

    mean: float
    """The mean of the numbers."""
    variance: float
    """The variance of the mean."""
    units: float
    """How many units of equal size these units are worth: (sum of the sizes)^2 / sum of their
    squares (Kish 1965), which is their number if all have one size."""


def unit_mean(
    values: Floats, units: Places | None = None, weights: Floats | None = None
) -> UnitMean:
    """Return the mean of n numbers, 1 or more, and its variance over their units.

    Args:
        values: shape (n,). units: as for :meth:`RowSums.add`, shape (n,).
        weights: above 0, shape (n,); by default each number counts once in the mean.

    The variance is the sum over units of (weighted sum of the unit's deviations from the mean)^2
    over the squared sum of weights (Cochran 1977, sec. 9A.3); without shared units and weights it
    is the mean square deviation over n.
    """
    if weights is not None:
        # Measured from the first value, so that equal values have no variance by rounding.
        total, first = float(weights.sum()), float(values[0])
        mean = first + float(weights @ (values - first)) / total
        place = unit_places(units, len(values))
        sums, sizes = np.bincount(place, weights * (values - mean)), np.bincount(place, weights)
        return UnitMean(mean, float((sums**2).sum()) / total**2, total**2 / float(sizes @ sizes))
    mean, n = float(values.mean()), len(values)
    apart = values - mean
    if units is None or not (units >= 0).any():
        return UnitMean(mean, float((apart**2).mean()) / n, n)
    place = unit_places(units, n)
    sums = np.bincount(place, apart)
    return UnitMean(mean, float((sums**2).sum()) / n**2, effective_size(place))


def unit_numbers(units: ArrayLike | None, n: int) -> Places:
    """Return a unit number, 0 or more, for each of n rows; single rows get a number of their own.

    ``units`` are as for :meth:`RowSums.add`.
    """
    numbers = np.full(n, -1) if units is None else np.array(units, dtype=np.int64)
    single_places = np.flatnonzero(numbers < 0)
    numbers[single_places] = numbers.max(initial=-1) + 1 + np.arange(len(single_places))
    return numbers


def unit_places(units: ArrayLike | None, n: int) -> Places:
    """Return :func:`unit_numbers` without gaps, from 0."""
    return np.unique(unit_numbers(units, n), return_inverse=True)[1]


def count_units(units: Places) -> int:
    """Return the number of different units; each row below 0 is a unit by itself."""
    together = units[units >= 0]
    return len(units) - len(together) + len(np.unique(together))


def effective_size(clusters: ArrayLike) -> float:
    """Return how many clusters of equal size n samples are worth; 0 for no samples.

    It is n^2 over the sum of the squared sizes of the clusters (Kish 1965). All samples of a
    cluster count as one, however little they have in common.
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
    """Return the mid-P interval of a share of independent yes-or-no outcomes (Lancaster 1961).

    The bounds are the shares p at which P(X < x) + P(X = x) / 2 is (1 - level) / 2, and likewise
    for P(X > x). Clopper and Pearson (1934) count P(X = x) fully, which makes their interval too
    wide by about one success. Wilson's interval is nearly the same in the middle, but near 0 and 1
    it contains the true share as seldom as 84 times in a hundred.

    ``successes`` and ``n`` may be fractions: the incomplete beta function continues the binomial.
    0 of n gives (0, 1 - (1 - level)^(1/n)), and n of n the mirror image. From 1,000 successes and
    1,000 failures on, where both agree, Wilson's interval is returned.

    Raises:
        ValueError: n is not above 0, or successes are not between 0 and n.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"expected 0 <= successes <= n and n above 0, got {successes} of {n}")
    if min(successes, n - successes) >= MIN_COUNT_FOR_WILSON:
        return wilson_interval(successes, n, level)
    # Wilson's bounds are only the first guesses of Newton's method below.
    low, high = wilson_interval(successes, n, level)
    tail = (1 - level) / 2
    return (
        1 - _upper_bound(n - successes, n, tail, 1 - low),
        _upper_bound(successes, n, tail, high),
    )


def _upper_bound(x: float, n: float, tail: float, guess: float) -> float:
    """Return the p at which P(X < x) + P(X = x) / 2 = tail, by Newton's steps in a bracket."""
    # All are successes: nothing bounds the share from above.
    if n - x <= 1e-9 * n:
        return 1.0
    # log of the binomial coefficient, also for fractions
    ways = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
    low, high = x / n, 1.0
    p = guess if low < guess < high else (low + high) / 2
    for _ in range(100):
        if p >= 1:
            return 1.0
        equal = math.exp(ways + x * math.log(p) + (n - x) * math.log1p(-p))
        surplus = 1 - incomplete_beta(x + 1, n - x, p) - equal / 2 - tail
        # The bracket shrinks with every step, so a step that leaves it falls back to bisection.
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
        mean: from 0 to 1; any other figure between 0 and 1 that is computed from n samples works
            as well.
        variance: the variance of the mean: the mean square deviation of the numbers over n.
        n: how many numbers, 1 or more; with units, how many equal ones they are worth
            (:class:`UnitMean`).

    Numbers that are all 0 or 1 have the variance m (1 - m) / n. Others have a share d of that, the
    design effect, and carry as much information as n / d zeros and ones (Korn and Graubard 1998).
    So the interval is :func:`binomial_interval` of m n / d successes out of n / d, which is skewed
    like the mean. Two corrections are added, which vanish where all numbers are 0 or 1:

    - The sample shows k = min(m, 1 - m) n / d events of the size d, but larger events may exist:
      d is computed as if one event of the largest size had been seen, too: (k d + 1) / (k + 1).
    - The variance is an estimate: it is raised by (t / z)^2 n / (n - 1), times 1 - d.

    Where all numbers are the same, up to a share u = 1 - (1 - level)^(1/n) of other numbers may
    have gone unseen, so the interval is (m - u m, m + u (1 - m)). For a single number, which says
    nothing about the scatter, it is (0, 1).

    Raises:
        ValueError: n is below 1, or the mean is not between 0 and 1.
    """
    if n < 1 or not 0 <= mean <= 1:
        raise ValueError(f"expected n of 1 or more and a mean from 0 to 1, got {n} and {mean}")
    if n < 2:
        return (0.0, 1.0)
    binary_variance = mean * (1 - mean)
    # the design effect d of the docstring
    effect = max(variance, 0.0) * n / binary_variance if binary_variance > 0 else 0.0
    # no scatter at all: only the number of samples bounds what was not seen
    if effect <= NO_DESIGN_EFFECT:
        unseen = 1 - (1 - level) ** (1 / n)
        return mean - unseen * mean, mean + unseen * (1 - mean)
    events = min(mean, 1 - mean) * n / effect
    # one unseen event of the largest size
    effect = (events * effect + UNSEEN_EVENTS) / (events + UNSEEN_EVENTS)
    p = (1 + level) / 2
    estimated = (student_t_quantile(p, n - 1) / normal_quantile(p)) ** 2 * n / (n - 1)
    effective_n = n / effect / (1 + max(1 - effect, 0.0) * (estimated - 1))
    return binomial_interval(mean * effective_n, effective_n, level)


def t_interval(mean: float, variance: float, n: float, level: float = 0.95) -> Interval | None:
    """Return Student's interval of a mean of n numbers that have no bounds.

    ``variance`` is as in :func:`mean_interval`. ``None`` for a single number, and where all are
    the same: their scatter is unknown.
    """
    if n < 2 or variance <= 0:
        return None
    reach = student_t_quantile((1 + level) / 2, n - 1) * math.sqrt(variance * n / (n - 1))
    return mean - reach, mean + reach


def interval_within_bounds(mean: UnitMean, bounds: Interval | None) -> Interval | None:
    """Return the interval of a mean of numbers that lie between bounds.

    The mean is scaled to 0 to 1 for :func:`mean_interval`; without finite bounds the interval is
    :func:`t_interval`.
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
    """Return the jackknife interval of a figure (Tukey 1958; Miller 1974).

    Args:
        value: the figure of all units.
        without: the figure without each unit in turn, or without each group of units, shape
            (units,).
        transform: the scale on which the figure scatters symmetrically: Fisher's for figures
            between -1 and 1, the logarithm for figures above 0, the logit for figures from 0 to 1.

    The variance on that scale is (n - 1) / n times the sum of squares of ``without`` about its
    mean, and the quantile is Student's with n - 1 degrees of freedom. ``None`` for fewer than two
    units, where leaving out a unit changes nothing, and where a value lies at an end of the scale
    or beyond it.
    """
    forth, back = TRANSFORMS[transform]
    values_without = np.asarray(without, dtype=np.float64)
    n = len(values_without)
    # A value at the end of its scale becomes infinite here and is refused below.
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, moved = float(forth(np.array([value]))[0]), forth(values_without)
    if n < 2 or not math.isfinite(middle) or not np.isfinite(moved).all():
        return None
    error = math.sqrt((n - 1) * float(moved.var()))
    if error <= NO_DESIGN_EFFECT:
        return None
    reach = student_t_quantile((1 + level) / 2, n - 1) * error
    return back(middle - reach), back(middle + reach)


class Term(NamedTuple):
    """A figure with its interval, and its weight in a sum."""

    value: float
    """The figure."""
    interval: Interval
    """Its own interval, which may be asymmetric."""
    weight: float
    """Its factor in the sum; below 0 for a figure that is subtracted."""


def sum_interval(terms: Sequence[Term], correlation: Floats) -> Interval:
    """Return the interval of a weighted sum of figures (Zou and Donner 2008, "MOVER").

    The distances from the sum to its bounds are combined like standard errors from those of the
    figures, each on the side that moves the sum in that direction. So asymmetric intervals stay
    asymmetric, and the interval of a figure of 0 or 100 % keeps its width.

    Args:
        terms: one or more. correlation: of the figures, shape (f, f).
    """
    weights = np.array([term.weight for term in terms])
    values = np.array([term.value for term in terms])
    reach = np.abs(np.array([term.interval for term in terms]).T - values)
    # A figure with a negative weight lowers the sum with its upper distance, so its sides swap.
    down, up = np.where(weights > 0, reach, reach[::-1]) * np.abs(weights)
    together = np.sign(np.outer(weights, weights)) * correlation
    total = float(weights @ values)
    # An estimated correlation matrix need not be positive semidefinite: no root of a negative sum.
    below, above = (math.sqrt(max(float(side @ together @ side), 0.0)) for side in (down, up))
    return total - below, total + above


def quantile_interval(ordered: Floats, q: float, level: float = 0.95) -> Interval | None:
    """Return the interval of the q-quantile, 0 < q < 1, from n sorted values.

    The value at place u of the sample (counted from 1, interpolated linearly) lies below the
    quantile with the probability I_q(u, n + 1 - u), whatever the distribution (Hutson 1999). The
    bounds are at the places where this is (1 + level) / 2 and (1 - level) / 2. With ties the
    interval contains the quantile more often than that.

    ``None`` if a place lies beyond the sample: a median needs 6 values, the 90 % quantile 36.
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
    bounds of the interval of this mean (Woodruff 1952). Where every value is its own unit, the
    result is :func:`quantile_interval`. ``None`` where a bound lies beyond the values.
    """
    mean, variance, worth = unit_mean((values <= np.quantile(values, q)).astype(np.float64), units)
    if worth == len(values):
        return quantile_interval(np.sort(values), q)
    if worth < fewest_for_quantile(q):
        return None
    ends = mean_interval(mean, variance, worth)
    # the sample does not reach as far as the bound
    if ends[1] >= 1 or ends[0] <= 0:
        return None
    low, high = np.quantile(values, ends)
    return float(low), float(high)


def fewest_for_quantile(q: float, level: float = 0.95) -> int:
    """Return the number of values from which :func:`quantile_interval` has bounds."""
    return math.ceil(math.log((1 - level) / 2) / math.log(max(q, 1 - q)))


@cache
def _place(n: int, q: float, probability: float) -> float:
    """Return the u from 1 to n with I_q(u, n + 1 - u) = probability; it falls as u rises."""
    ends = bisection(lambda u: incomplete_beta(u, n + 1 - u, q) > probability, 1.0, n, 30)
    return sum(ends) / 2
