"""The share of right answers, estimated from a judge's verdicts and a few labels by people.

**Prediction-powered** (PPI++, Angelopoulos, Duchi and Zrnic 2023): the labels are a random sample
of the answers. For any function f of the judge's output, the estimate is
mean(y) + lambda (mean(f of all) - mean(f of the labelled)). With the lambda that minimises its
variance, and an f with one value for each stratum of verdicts or scores, it is the mean over strata
of their shares of right answers, weighted by all answers. The judge may be of any quality.

**Rogan and Gladen** (1978): the labels are of any answers on which the judge errs as often as here;
the share p solves q = p se + (1 - p) (1 - sp).

Intervals are quantiles of the posterior of independent binomials with small priors. With 50 labels,
and near 0 and 1, they hold where normal intervals do not (``lab/benchmarks/corrected.py``). Answers
of one unit are not independent: counts are divided by the design effect of the estimate.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.correlation import ranks
from trustassay.statistics.distributions import normal_quantile, student_t_quantile
from trustassay.statistics.intervals import (
    Interval,
    Term,
    effective_size,
    sum_interval,
    unit_places,
)

POSTERIOR_DRAWS = 4000
"""Draws from a posterior: a bound is off by about a fiftieth of half the interval."""
PRIOR_LABELS, JEFFREYS_PRIOR = 0.8, 0.5
"""Prior numbers of right answers, and of wrong ones: of all strata together, and of each of the
shares that describe a judge's errors."""
INTERVAL_ENDS = 0.025, 0.975
"""The quantiles at the ends of a 95 % interval."""
MAX_STRATA = 3
"""The number of equal parts into which scores without a verdict are divided."""


class LabelCorrectedShare(NamedTuple):
    """A corrected share of right answers."""

    value: float
    """The share, 0 to 1; NaN if the judge is no better than chance."""
    interval: Interval | None
    """Its 95 % interval; ``None`` if no share explains the judge's verdicts."""
    influence: Floats
    """How far each answer moves the share, shape (n,)."""
    units: Places
    """The unit of each answer, shape (n,)."""


def assign_strata(scores: ArrayLike) -> Places:
    """Return the stratum of each score, from 0 without gaps, shape (n,).

    Up to three different values have a stratum each; otherwise the strata are tertiles.
    """
    x = np.asarray(scores, dtype=np.float64)
    values = np.unique(x)
    cuts = values[:-1] if len(values) <= MAX_STRATA else np.quantile(x, (1 / 3, 2 / 3))
    # With many ties a tertile may be empty, so the numbers are made gapless.
    return np.unique(np.searchsorted(cuts, x), return_inverse=True)[1].astype(np.int64)


def prediction_powered(
    strata: Places, labels: Floats, units: Places, rng: np.random.Generator
) -> LabelCorrectedShare:
    """Return the share of right answers if the labelled answers are a random sample of all.

    Args:
        strata: as :func:`assign_strata` returns them, shape (n,).
        labels: 1 right, 0 wrong, NaN not labelled, shape (n,); at least one label.
        units: the number of the independent unit of each answer, shape (n,).
        rng: draws from the posterior.

    A stratum without a label gets the share of all labels. The interval is for questions like
    these.
    """
    has_label, size = ~np.isnan(labels), int(strata.max()) + 1
    at, y = strata[has_label], labels[has_label]
    all_, n = np.bincount(strata, minlength=size), np.bincount(at, minlength=size)
    right, share = np.bincount(at, y, size), all_ / len(strata)
    rate = np.where(n > 0, right / np.maximum(n, 1), y.mean())
    value = float(share @ rate)
    # An answer moves the share by its stratum's rate, and a labelled one by its residual as well.
    influence = (rate[strata] - value) / len(strata)
    influence[has_label] += (share / np.maximum(n, 1))[at] * (y - rate[at])
    effect = design_effect(influence, units, has_label)
    low, high = strata_bounds(all_ / effect, right / effect, n / effect, rng).tolist()
    # With few labels the posterior's prior may put the value itself outside of the interval.
    return LabelCorrectedShare(value, (min(low, value), max(high, value)), influence, units)


def strata_bounds(all_: Floats, right: Floats, n: Floats, rng: np.random.Generator) -> Floats:
    """Return the bounds of the share of right answers, shape (2, ...).

    Args:
        all_, right, n: the numbers of answers, of labels that mean right, and of labels, by
            stratum, shape (..., K).
    """
    shape, prior = (POSTERIOR_DRAWS, *np.shape(n)), PRIOR_LABELS / np.shape(n)[-1]
    rates = rng.beta(right + prior, n - right + prior, shape)
    # Normalised gamma draws are a Dirichlet draw: the sizes of strata are uncertain, too.
    weights = rng.gamma(all_ + JEFFREYS_PRIOR, size=shape)
    drawn = (weights * rates).sum(axis=-1) / weights.sum(axis=-1)
    return np.asarray(np.quantile(drawn, INTERVAL_ENDS, axis=0))


def rogan_gladen(
    good: Bools, units: Places, labelled: tuple[Bools, Bools, Places], rng: np.random.Generator
) -> LabelCorrectedShare:
    """Return the share of right answers from a judge's verdicts and its measured errors.

    Args:
        good: whether the judge calls each answer good, shape (n,).
        units: the unit of each answer, shape (n,).
        labelled: for labelled answers, these or others: whether the judge calls them good, whether
            they are right, and their units, shapes (m,).
        rng: draws from the posterior.
    """
    called, right, theirs = labelled
    calls_by_label = called[right], called[~right]
    q, (se, fp) = good.mean(), (calls.mean() if len(calls) else 0.5 for calls in calls_by_label)
    lean = float(se - fp)
    p = min(max(float(q - fp) / lean, 0.0), 1.0) if lean > 0 else math.nan
    # the influence of a labelled answer on se (right ones) and on fp (wrong ones)
    weight = np.where(right, p / max(right.sum(), 1), (1 - p) / max((~right).sum(), 1))
    errors = np.nan_to_num(weight) * (called - np.where(right, se, fp))
    judged_influence = (good - q) / len(good)
    judged_effect, labelled_effect = (
        design_effect(judged_influence, units),
        design_effect(errors, theirs),
    )
    parts = [(good, judged_effect), *((calls, labelled_effect) for calls in calls_by_label)]
    counts = np.array([(calls.sum() / effect, (~calls).sum() / effect) for calls, effect in parts])
    interval = error_bounds(counts, rng)
    if interval and lean > 0:
        interval = min(interval[0], p), max(interval[1], p)
    influence = np.concatenate([judged_influence, -errors]) / (lean if lean > 0 else 1.0)
    return LabelCorrectedShare(p, interval, influence, np.concatenate([units, theirs]))


def error_bounds(counts: Floats, rng: np.random.Generator) -> Interval | None:
    """Return the bounds of the share of right answers, given the errors of a judge.

    Args:
        counts: answers called good and not called good, shape (3, 2); rows: all answers, those
            labelled right, those labelled wrong.

    A share p is inside unless q - fp - p (se - fp) is on one side of 0 with 97.5 % of the
    posterior. So the bounds are 0 and 1 where the judge may be no better than chance. If this
    leaves no p, the bounds are quantiles of the draws with a p from 0 to 1; ``None`` if there are
    none: the judge errs differently on these answers.
    """
    yes, no = counts.T[..., None] + JEFFREYS_PRIOR
    q, se, fp = rng.beta(yes, no, (3, POSTERIOR_DRAWS))
    solved, better = (q - fp) / (se - fp), se > fp
    # For each p of the grid, the share of draws whose solution lies below it. Where the judge is
    # worse than chance (se < fp), the inequality turns round, so those draws are counted from
    # above.
    grid = np.linspace(0, 1, 1001)
    below, above = (
        np.searchsorted(np.sort(solved[is_side]), grid) for is_side in (better, ~better)
    )
    share = (better.sum() - below + above) / POSTERIOR_DRAWS
    possible = grid[(share >= INTERVAL_ENDS[0]) & (share <= INTERVAL_ENDS[1])]
    if not len(possible):
        possible = solved[better & (solved >= 0) & (solved <= 1)]
        possible = np.quantile(possible, INTERVAL_ENDS) if len(possible) else possible
    return (float(possible[0]), float(possible[-1])) if len(possible) else None


def design_effect(influence: Floats, units: Places, has_label: Bools | None = None) -> float:
    """Return the factor by which shared units raise the variance of an estimate, at least 1.

    It is the sum over units of the squared sums of influences, over the sum of squared influences;
    with U units times (t / z)^2 U / (U - 1), because the variance is an estimate. Where no answer
    has any influence, it is the number of answers over the number of units of equal size.

    Args:
        influence: how far each answer moves the estimate, shape (n,).
        units: the unit of each answer, shape (n,).
        has_label: which answers have labels; only their units are counted. All if not given.
    """
    counted = units if has_label is None else units[has_label]
    count, independent_square = len(np.unique(counted)), float(influence @ influence)
    # independent answers, or a single unit, whose effect cannot be estimated
    if len(np.unique(units)) == len(units) or count < 2:
        return 1.0
    if not independent_square:
        return len(counted) / effective_size(counted)
    together = np.bincount(unit_places(units, len(units)), influence)
    wider = student_t_quantile(INTERVAL_ENDS[1], count - 1) / normal_quantile(INTERVAL_ENDS[1])
    return max(
        1.0, float(together @ together) / independent_square * wider**2 * count / (count - 1)
    )


def rank_sum_z(first: Floats, second: Floats) -> float:
    """Return how many standard errors the values of one sample rank above those of another.

    The rank-sum test of Wilcoxon (1945) with average ranks of ties and their correction; 0 where
    all values are equal.
    """
    together = np.concatenate([first, second])
    n, m = len(first), len(second)
    total = n + m
    # the usual correction of the variance for ties
    counts = np.unique(together, return_counts=True)[1]
    ties = float((counts.astype(np.float64) ** 3 - counts).sum())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 0.0
    return float((ranks(together)[:n].sum() - n * (total + 1) / 2) / math.sqrt(variance))


def difference_of_rates(
    first: LabelCorrectedShare, second: LabelCorrectedShare
) -> tuple[float, Interval | None]:
    """Return second minus first, with its interval (Zou and Donner 2008).

    Each share has its own errors; units that both share are paired.
    """
    value = second.value - first.value
    if first.interval is None or second.interval is None or math.isnan(value):
        return value, None
    units = np.unique(np.concatenate([first.units, second.units]), return_inverse=True)[1]
    split, size = len(first.units), int(units.max()) + 1
    first_influence = np.bincount(units[:split], first.influence, size)
    second_influence = np.bincount(units[split:], second.influence, size)
    scale = math.sqrt(
        float(first_influence @ first_influence) * float(second_influence @ second_influence)
    )
    # correlation of the two shares through the units that both have
    r = float(first_influence @ second_influence) / scale if scale > 0 else 0.0
    terms = Term(first.value, first.interval, -1.0), Term(second.value, second.interval, 1.0)
    low, high = sum_interval(terms, np.array([[1.0, r], [r, 1.0]]))
    return value, (max(-1.0, low), min(1.0, high))
