"""Intervals and tests of AUROCs that hold for few answers, near 1, and where answers share units.

``python -m benchmarks.coverage --only auroc`` measures how often they hold the true value.
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
from trustassay.statistics.intervals import Interval, Term, sum_interval, too_few, unit_numbers
from trustassay.statistics.resampling import Tested

FEWEST_OF_CLASS = 5
"""Units with an answer of a class below which an AUROC has no interval: it would be wider than half
of all that is possible."""
UNSEEN = 1.0
"""Wrongly ordered units that are added, as of independent answers, to those that were seen."""
UNSEEN_APART = 0.25
"""The same for the correlation of two AUROCs: scores that order these answers alike need not order
others alike."""
STEPS = 40
FARTHEST = 40.0
"""Standard errors from which on a p-value is 0."""


def auroc_interval(
    scores: ArrayLike, labels: ArrayLike, units: ArrayLike | None = None, level: float = 0.95
) -> Interval | str:
    """Return the interval of an AUROC, or why there is none.

    Args:
        scores: shape (n,). labels: above 0 for a positive, shape (n,).
        units: the number of each answer's unit, as a question, below 0 for an answer by itself,
            shape (n,); ``None`` if all are.

    It is Newcombe's method 5 (2006, part 2): all t from which the AUROC found, A, is no farther
    than z standard errors, (A - t)^2 <= z^2 d V(t), with the variance of Hanley and McNeil (1982)
    for m units with a positive and n with a negative,

        V(t) = t (1 - t) (1 + (N - 1) ((1 - t) / (2 - t) + t / (1 + t))) / (m n),  N = (m + n) / 2.

    Ties, scores of another shape and answers that share a unit change the variance by the factor d:
    that of DeLong's placement values (1988), summed over units (Obuchowski 1997), over V(A). Near 0
    and 1 few wrong orders were seen and d is uncertain, so with k = min(A, 1 - A) min(m, n) it is
    taken to be (k d + 1) / (k + 1).

    Raises:
        ValueError: the samples differ in length.
    """
    return mean_auroc_interval([(scores, labels, units)], level)


def mean_auroc_interval(
    samples: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike | None]], level: float = 0.95
) -> Interval | str:
    """Return the interval of the mean of AUROCs, as of each rater against the others.

    Args:
        samples: one or more, as for :func:`auroc_interval`; a unit has one number in all of them.
    """
    placed = [_placed(*sample) for sample in samples]
    rarer = min(min(one.positives, one.negatives) for one in placed)
    if reason := too_few("independent answers of one kind", rarer, FEWEST_OF_CLASS):
        return reason
    return _interval(_mean(placed), normal_quantile((1 + level) / 2))


def auroc_difference(
    first: ArrayLike,
    second: ArrayLike,
    labels: ArrayLike,
    units: ArrayLike | None = None,
    level: float = 0.95,
) -> Tested:
    """Test whether two scores of the same answers have the same AUROC; the value is that of the
    first less that of the second.

    Args:
        first, second: scores, shape (n,). labels, units: as for :func:`auroc_interval`, of both
            classes.

    The interval is put together from those of both AUROCs with their correlation (Zou and Donner
    2008), which is that of their placement values by units (DeLong 1988; Obuchowski 1997), times
    k / (k + 1/4) with the smaller k of both. p is 1 less the level of the interval that ends at 0.
    """
    a, b = _placed(first, labels, units), _placed(second, labels, units)
    value = a.value - b.value
    if reason := too_few(
        "independent answers of one kind", min(a.positives, a.negatives), FEWEST_OF_CLASS
    ):
        return Tested(value, None, None, reason)
    correlation = _correlation(a, b)

    def interval(z: float) -> Interval:
        terms = [Term(a.value, _interval(a, z), 1.0), Term(b.value, _interval(b, z), -1.0)]
        return sum_interval(terms, correlation)

    def apart(z: float) -> bool:
        low, high = interval(z)
        return not low <= 0 <= high

    _, far = bisection(apart, 0.0, FARTHEST, STEPS)
    p = 2 * NormalDist().cdf(-far) if value else 1.0
    return Tested(value, interval(normal_quantile((1 + level) / 2)), p)


class _Placed(NamedTuple):
    """An AUROC, by how much each unit's positives and negatives move it, shape (units,) each, and
    how many units have a positive and a negative."""

    value: float
    of_positives: Floats
    of_negatives: Floats
    positives: int
    negatives: int

    @property
    def events(self) -> float:
        """About how many units of the rarer class are in the wrong order, or in the right one."""
        return min(self.value, 1 - self.value) * min(self.positives, self.negatives)

    def covariance(self, other: "_Placed") -> float:
        """Return the covariance with another AUROC of the same units; with itself the variance."""
        result = 0.0
        for mine, its, count in (
            (self.of_positives, other.of_positives, min(self.positives, other.positives)),
            (self.of_negatives, other.of_negatives, min(self.negatives, other.negatives)),
        ):
            result += count / (count - 1) * float(mine @ its)
        n = len(self.of_positives)
        across = self.of_positives @ other.of_negatives + self.of_negatives @ other.of_positives
        return result + n / (n - 1) * float(across)


def _placed(scores: ArrayLike, labels: ArrayLike, units: ArrayLike | None) -> _Placed:
    x, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels) > 0
    if x.ndim != 1 or x.shape != positive.shape:
        raise ValueError(f"expected two samples of one length, got {x.shape} and {positive.shape}")
    of = unit_numbers(units, len(x))
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return _Placed(math.nan, np.zeros(0), np.zeros(0), 0, 0)
    rank = ranks(x)
    # Of each positive the share of negatives below it; of each negative that of positives above it.
    above = (rank[positive] - ranks(x[positive])) / n
    below = 1 - (rank[~positive] - ranks(x[~positive])) / m
    value = float(above.mean())
    width = int(of.max()) + 1
    sums = (
        np.bincount(of[positive], above - value, width) / m,
        np.bincount(of[~positive], below - value, width) / n,
    )
    return _Placed(value, *sums, len(np.unique(of[positive])), len(np.unique(of[~positive])))


def _mean(placed: Sequence[_Placed]) -> _Placed:
    width = max(len(one.of_positives) for one in placed)
    sums = [
        np.mean([np.pad(values, (0, width - len(values))) for values in several], axis=0)
        for several in zip(*((one.of_positives, one.of_negatives) for one in placed), strict=True)
    ]
    return _Placed(
        float(np.mean([one.value for one in placed])),
        sums[0],
        sums[1],
        min(one.positives for one in placed),
        min(one.negatives for one in placed),
    )


def _interval(one: _Placed, z: float) -> Interval:
    """Return the AUROCs from which ``one`` is no farther than z standard errors."""
    m, n, result = one.positives, one.negatives, one.value
    alone = _variance(result, m, n)
    effect = max(one.covariance(one), 0.0) / alone if alone > 0 else 0.0
    effect = (one.events * effect + UNSEEN) / (one.events + UNSEEN)

    def near(t: float) -> bool:
        return (result - t) ** 2 <= z * z * effect * _variance(t, m, n)

    low, high = (bisection(near, result, bound, STEPS)[0] for bound in (0.0, 1.0))
    return low, high


def _variance(t: float, m: int, n: int) -> float:
    """Return the variance of an AUROC of independent answers whose true value is t (Hanley and
    McNeil 1982), by the mean of both classes' sizes (Newcombe 2006)."""
    size = (m + n) / 2
    return t * (1 - t) * (1 + (size - 1) * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n)


def _correlation(a: _Placed, b: _Placed) -> Floats:
    """Return the correlation of two AUROCs, shape (2, 2); the smaller the fewer wrong orders there
    are."""
    scale = math.sqrt(max(a.covariance(a), 0.0) * max(b.covariance(b), 0.0))
    r = min(max(a.covariance(b) / scale, -1.0), 1.0) if scale > 0 else 0.0
    events = min(a.events, b.events)
    r *= events / (events + UNSEEN_APART)
    return np.array([[1.0, r], [r, 1.0]])
