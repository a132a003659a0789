"""Intervals and tests of AUROCs, for few answers, values near 1, and answers that share units.

``python -m lab.benchmarks.coverage --only auroc`` measures how often they contain the true value.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats
from trustassay.statistics.correlation import ranks
from trustassay.statistics.distributions import bisection, normal_quantile
from trustassay.statistics.intervals import (
    Interval,
    Term,
    reason_too_few,
    sum_interval,
    unit_numbers,
)
from trustassay.statistics.resampling import PairedTest

MIN_UNITS_OF_CLASS = 5
"""Units of each class that an AUROC needs to get an interval; with fewer the interval would be
wider than half of the possible range."""
UNSEEN_UNITS = 1.0
"""Wrongly ordered units, as of independent answers, that are added to the observed ones."""
UNSEEN_PAIRED_UNITS = 0.25
"""The same for the correlation of two AUROCs: scores that order these answers alike may order
other answers differently."""
BISECTION_STEPS = 40
"""Halvings of a bisection."""
MAX_STANDARD_ERRORS = 40.0
"""Standard errors from which on a p-value is 0."""


def auroc_interval(
    scores: ArrayLike, labels: ArrayLike, units: ArrayLike | None = None, level: float = 0.95
) -> Interval | str:
    """Return the interval of an AUROC, or the reason why there is none.

    Args:
        scores: shape (n,).
        labels: above 0 for a positive, shape (n,).
        units: the unit number of each answer (such as its question), below 0 for an answer by
            itself, shape (n,); ``None`` if all answers are independent.

    It is Newcombe's method 5 (2006, part 2): all t that lie no farther than z standard errors from
    the observed AUROC A, (A - t)^2 <= z^2 d V(t), with the variance of Hanley and McNeil (1982)
    for m units with a positive and n with a negative,

        V(t) = t (1 - t) (1 + (N - 1) ((1 - t) / (2 - t) + t / (1 + t))) / (m n),  N = (m + n) / 2.

    Ties, other distributions of scores and shared units change the variance by the factor d: the
    variance of DeLong's placement values (1988), summed over units (Obuchowski 1997), over V(A).
    Near 0 and 1 few wrong orders were seen and d is uncertain, so with k = min(A, 1 - A) min(m, n)
    it is taken to be (k d + 1) / (k + 1).

    Raises:
        ValueError: the samples differ in length.
    """
    return mean_auroc_interval([(scores, labels, units)], level)


def mean_auroc_interval(
    samples: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike | None]], level: float = 0.95
) -> Interval | str:
    """Return the interval of the mean of AUROCs, such as of each rater against the others.

    Args:
        samples: one or more, as for :func:`auroc_interval`; a unit has one number in all of them.
    """
    aurocs = [_compute_placements(*sample) for sample in samples]
    rarer = min(min(auroc.positives, auroc.negatives) for auroc in aurocs)
    if reason := reason_too_few("independent answers of one kind", rarer, MIN_UNITS_OF_CLASS):
        return reason
    return _auroc_interval(_average_aurocs(aurocs), normal_quantile((1 + level) / 2))


def auroc_difference(
    first: ArrayLike,
    second: ArrayLike,
    labels: ArrayLike,
    units: ArrayLike | None = None,
    level: float = 0.95,
) -> PairedTest:
    """Test whether two scores of the same answers have the same AUROC; the value is first - second.

    Args:
        first, second: scores, shape (n,). labels, units: as for :func:`auroc_interval`, of both
            classes.

    The interval is combined from those of both AUROCs with their correlation (Zou and Donner 2008).
    The correlation is that of their placement values by units (DeLong 1988; Obuchowski 1997), times
    k / (k + 1/4) with the smaller k of both. p is 1 minus the level of the interval that ends at 0.
    """
    a, b = _compute_placements(first, labels, units), _compute_placements(second, labels, units)
    value = a.value - b.value
    if reason := reason_too_few(
        "independent answers of one kind", min(a.positives, a.negatives), MIN_UNITS_OF_CLASS
    ):
        return PairedTest(value, None, None, reason)
    correlation = _correlation(a, b)

    def interval(z: float) -> Interval:
        terms = [
            Term(a.value, _auroc_interval(a, z), 1.0),
            Term(b.value, _auroc_interval(b, z), -1.0),
        ]
        return sum_interval(terms, correlation)

    def apart(z: float) -> bool:
        low, high = interval(z)
        return not low <= 0 <= high

    # The interval widens with z: the z at which it first contains 0 gives the p-value.
    _, far = bisection(apart, 0.0, MAX_STANDARD_ERRORS, BISECTION_STEPS)
    p = 2 * NormalDist().cdf(-far) if value else 1.0
    return PairedTest(value, interval(normal_quantile((1 + level) / 2)), p)


class _PlacementValues(NamedTuple):
    """An AUROC with its placement values, summed by unit."""

    value: float
    """The AUROC; NaN where a class is missing."""
    of_positives: Floats
    """How far the positives of each unit move the AUROC, shape (units,)."""
    of_negatives: Floats
    """How far the negatives of each unit move it, shape (units,)."""
    positives: int
    """How many units have a positive."""
    negatives: int
    """How many units have a negative."""

    @property
    def events(self) -> float:
        """About how many units of the rarer class are ordered wrongly (rightly, below 0.5)."""
        return min(self.value, 1 - self.value) * min(self.positives, self.negatives)

    def covariance(self, other: "_PlacementValues") -> float:
        """Return the covariance with another AUROC of the same units; with itself the variance."""
        result = 0.0
        for mine, its, count in (
            (self.of_positives, other.of_positives, min(self.positives, other.positives)),
            (self.of_negatives, other.of_negatives, min(self.negatives, other.negatives)),
        ):
            # n / (n - 1) corrects the bias of a variance, for each class by its own number of units
            result += count / (count - 1) * float(mine @ its)
        n = len(self.of_positives)
        # A unit with answers of both classes moves the AUROC with both, so these covary.
        across = self.of_positives @ other.of_negatives + self.of_negatives @ other.of_positives
        return result + n / (n - 1) * float(across)


def _compute_placements(
    scores: ArrayLike, labels: ArrayLike, units: ArrayLike | None
) -> _PlacementValues:
    x, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels) > 0
    if x.ndim != 1 or x.shape != positive.shape:
        raise ValueError(
            f"expected two samples of the same length, got {x.shape} and {positive.shape}"
        )
    of = unit_numbers(units, len(x))
    # counts of answers; the numbers of units follow at the end
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return _PlacementValues(math.nan, np.zeros(0), np.zeros(0), 0, 0)
    rank = ranks(x)
    # Placement values: for each positive the share of negatives below it, for each negative the
    # share of positives above it. Ranks among all answers minus ranks within the class count both.
    above = (rank[positive] - ranks(x[positive])) / n
    below = 1 - (rank[~positive] - ranks(x[~positive])) / m
    value = float(above.mean())
    width = int(of.max()) + 1
    sums = (
        np.bincount(of[positive], above - value, width) / m,
        np.bincount(of[~positive], below - value, width) / n,
    )
    return _PlacementValues(
        value, *sums, len(np.unique(of[positive])), len(np.unique(of[~positive]))
    )


def _average_aurocs(aurocs: Sequence[_PlacementValues]) -> _PlacementValues:
    # Unit numbers are the same in all samples; a sample that lacks the last units is filled with 0.
    width = max(len(auroc.of_positives) for auroc in aurocs)
    sums = [
        np.mean([np.pad(values, (0, width - len(values))) for values in several], axis=0)
        for several in zip(
            *((auroc.of_positives, auroc.of_negatives) for auroc in aurocs), strict=True
        )
    ]
    return _PlacementValues(
        float(np.mean([auroc.value for auroc in aurocs])),
        sums[0],
        sums[1],
        min(auroc.positives for auroc in aurocs),
        min(auroc.negatives for auroc in aurocs),
    )


def _auroc_interval(auroc: _PlacementValues, z: float) -> Interval:
    """Return the interval of all true AUROCs within z standard errors of the observed one."""
    m, n, result = auroc.positives, auroc.negatives, auroc.value
    independent_variance = _variance(result, m, n)
    effect = (
        max(auroc.covariance(auroc), 0.0) / independent_variance
        if independent_variance > 0
        else 0.0
    )
    # pulls the design effect towards 1 where few wrong orders were seen
    effect = (auroc.events * effect + UNSEEN_UNITS) / (auroc.events + UNSEEN_UNITS)

    def near(t: float) -> bool:
        return (result - t) ** 2 <= z * z * effect * _variance(t, m, n)

    low, high = (bisection(near, result, bound, BISECTION_STEPS)[0] for bound in (0.0, 1.0))
    return low, high


def _variance(t: float, m: int, n: int) -> float:
    """Return the variance of an AUROC of independent answers whose true value is t (Hanley and
    McNeil 1982), by the mean of both classes' sizes (Newcombe 2006)."""
    size = (m + n) / 2
    return t * (1 - t) * (1 + (size - 1) * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n)


def _correlation(a: _PlacementValues, b: _PlacementValues) -> Floats:
    """Return the correlation matrix of two AUROCs; few wrong orders make the correlation small."""
    scale = math.sqrt(max(a.covariance(a), 0.0) * max(b.covariance(b), 0.0))
    r = min(max(a.covariance(b) / scale, -1.0), 1.0) if scale > 0 else 0.0
    events = min(a.events, b.events)
    # Few events say little about how the scores order other answers, so r shrinks towards 0.
    r *= events / (events + UNSEEN_PAIRED_UNITS)
    return np.array([[1.0, r], [r, 1.0]])
