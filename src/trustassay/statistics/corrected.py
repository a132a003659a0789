"""The share of right answers behind a judge's share of good ones, from a few labels by people.

**Prediction-powered** (PPI++, Angelopoulos, Duchi and Zrnic 2023): the labels are a random sample
of the answers. For any function f of what the judge says, the estimate is
mean(y) + lambda (mean(f of all) - mean(f of the labelled)). With the lambda that makes its variance
smallest, and an f with a value for each stratum of verdicts or scores, that is the mean over strata
of their shares of right answers, weighted by all answers. Nothing is asked of the judge.

**Rogan and Gladen** (1978): the labels are of any answers on which the judge errs as often as here;
p is what solves q = p se + (1 - p) (1 - sp).

Intervals are quantiles of the posterior of independent binomials with small priors: of 50 labels,
and near 0 and 1, they hold where normal ones do not (``benchmarks/corrected.py``). Answers of one
unit are not independent: counts are divided by the design effect of the estimate.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.distributions import normal_quantile, student_t_quantile
from trustassay.statistics.intervals import (
    Interval,
    Term,
    effective_size,
    sum_interval,
    unit_places,
)

DRAWS = 4000
"""Draws from a posterior: a bound is off by about a fiftieth of half the interval."""
PRIOR, JEFFREYS = 0.8, 0.5
"""Right answers, and wrong ones, that all strata together have before any label; and those of each
share that the errors of a judge are made of."""
ENDS = 0.025, 0.975
STRATA = 3
"""Into so many parts of equal size scores without a verdict are divided."""


class Rate(NamedTuple):
    """A corrected share, NaN if the judge is no better than chance, with its interval, ``None`` if
    no share explains what the judge says.

    influence: what each answer moves it by, shape (n,). units: whose they are, shape (n,).
    """

    value: float
    interval: Interval | None
    influence: Floats
    units: Places


def strata_of(scores: ArrayLike) -> Places:
    """Return the stratum of each score, from 0 without gaps, shape (n,): of up to three values one
    each, else tertiles."""
    x = np.asarray(scores, dtype=np.float64)
    values = np.unique(x)
    cuts = values[:-1] if len(values) <= STRATA else np.quantile(x, (1 / 3, 2 / 3))
    return np.unique(np.searchsorted(cuts, x), return_inverse=True)[1].astype(np.int64)


def prediction_powered(
    strata: Places, labels: Floats, units: Places, rng: np.random.Generator
) -> Rate:
    """Return the share of right answers, of which those with a label are a random sample.

    Args:
        strata: as of :func:`strata_of`. labels: 1 right, 0 wrong, NaN unknown, at least one known.
        units: what is independent, a number each; all of shape (n,).

    A stratum without a label has the share of all. The interval is for questions like these.
    """
    known, size = ~np.isnan(labels), int(strata.max()) + 1
    at, y = strata[known], labels[known]
    all_, n = np.bincount(strata, minlength=size), np.bincount(at, minlength=size)
    right, share = np.bincount(at, y, size), all_ / len(strata)
    rate = np.where(n > 0, right / np.maximum(n, 1), y.mean())
    value = float(share @ rate)
    influence = (rate[strata] - value) / len(strata)
    influence[known] += (share / np.maximum(n, 1))[at] * (y - rate[at])
    effect = design_effect(influence, units, known)
    low, high = strata_bounds(all_ / effect, right / effect, n / effect, rng).tolist()
    return Rate(value, (min(low, value), max(high, value)), influence, units)


def strata_bounds(all_: Floats, right: Floats, n: Floats, rng: np.random.Generator) -> Floats:
    """Return the bounds of the share of right answers, shape (2, ...).

    Args:
        all_, right, n: by stratum, all answers, labels that mean right, labels; shape (..., K).
    """
    shape, prior = (DRAWS, *np.shape(n)), PRIOR / np.shape(n)[-1]
    rates = rng.beta(right + prior, n - right + prior, shape)
    weights = rng.gamma(all_ + JEFFREYS, size=shape)
    drawn = (weights * rates).sum(axis=-1) / weights.sum(axis=-1)
    return np.asarray(np.quantile(drawn, ENDS, axis=0))


def rogan_gladen(
    good: Bools, units: Places, known: tuple[Bools, Bools, Places], rng: np.random.Generator
) -> Rate:
    """Return the share of right answers of which a judge calls these good, from its errors.

    Args:
        good: what the judge says, shape (n,). units: shape (n,).
        known: of labelled answers, these or others: what the judge says, whether they are right,
            and their units, shapes (m,).
    """
    called, right, theirs = known
    said = called[right], called[~right]
    q, (se, fp) = good.mean(), (one.mean() if len(one) else 0.5 for one in said)
    lean = float(se - fp)
    p = min(max(float(q - fp) / lean, 0.0), 1.0) if lean > 0 else math.nan
    weight = np.where(right, p / max(right.sum(), 1), (1 - p) / max((~right).sum(), 1))
    errors = np.nan_to_num(weight) * (called - np.where(right, se, fp))
    own = (good - q) / len(good)
    here, there = design_effect(own, units), design_effect(errors, theirs)
    parts = [(good, here), *((one, there) for one in said)]
    counts = np.array([(one.sum() / effect, (~one).sum() / effect) for one, effect in parts])
    interval = error_bounds(counts, rng)
    if interval and lean > 0:
        interval = min(interval[0], p), max(interval[1], p)
    influence = np.concatenate([own, -errors]) / (lean if lean > 0 else 1.0)
    return Rate(p, interval, influence, np.concatenate([units, theirs]))


def error_bounds(counts: Floats, rng: np.random.Generator) -> Interval | None:
    """Return the bounds of the share of right answers by the errors of a judge.

    Args:
        counts: answers called good and not: all, labelled right, labelled wrong; shape (3, 2).

    A share p is between them unless q - fp - p (se - fp) is on one side of 0 with 97.5 % of the
    posterior; so they are 0 and 1 where the judge may be no better than chance. If no p is, they
    are of those p that are possible at all; ``None``: there is none, the judge errs otherwise here.
    """
    yes, no = counts.T[..., None] + JEFFREYS
    q, se, fp = rng.beta(yes, no, (3, DRAWS))
    solved, better = (q - fp) / (se - fp), se > fp
    grid = np.linspace(0, 1, 1001)
    below, above = (np.searchsorted(np.sort(solved[one]), grid) for one in (better, ~better))
    share = (better.sum() - below + above) / DRAWS
    held = grid[(share >= ENDS[0]) & (share <= ENDS[1])]
    if not len(held):
        held = solved[better & (solved >= 0) & (solved <= 1)]
        held = np.quantile(held, ENDS) if len(held) else held
    return (float(held[0]), float(held[-1])) if len(held) else None


def design_effect(influence: Floats, units: Places, known: Bools | None = None) -> float:
    """Return how many times the variance of an estimate is that of independent answers, at least 1.

    The square sum over units of what their answers move it by, over that over answers; with U units
    times (t / z)^2 U / (U - 1), as the variance is an estimate. Where no answer moves it, answers
    over units of equal size. ``known``: the answers with labels, whose units count; else all.
    """
    counted = units if known is None else units[known]
    count, alone = len(np.unique(counted)), float(influence @ influence)
    if len(np.unique(units)) == len(units) or count < 2:
        return 1.0
    if not alone:
        return len(counted) / effective_size(counted)
    together = np.bincount(unit_places(units, len(units)), influence)
    wider = student_t_quantile(ENDS[1], count - 1) / normal_quantile(ENDS[1])
    return max(1.0, float(together @ together) / alone * wider**2 * count / (count - 1))


def rank_sum_z(first: Floats, second: Floats) -> float:
    """Return by how many standard errors values of one sample rank above those of another.

    The rank-sum test of Wilcoxon (1945) with average ranks of ties and their correction; 0 where
    all values are equal.
    """
    together = np.concatenate([first, second])
    n, m = len(first), len(second)
    _, place, counts = np.unique(together, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place]
    total = n + m
    ties = float((counts.astype(np.float64) ** 3 - counts).sum())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 0.0
    return float((ranks[:n].sum() - n * (total + 1) / 2) / math.sqrt(variance))


def difference_of_rates(first: Rate, second: Rate) -> tuple[float, Interval | None]:
    """Return second less first, with its interval (Zou and Donner 2008): each has its own errors,
    and units that both have are paired."""
    value = second.value - first.value
    if first.interval is None or second.interval is None or math.isnan(value):
        return value, None
    units = np.unique(np.concatenate([first.units, second.units]), return_inverse=True)[1]
    split, size = len(first.units), int(units.max()) + 1
    one = np.bincount(units[:split], first.influence, size)
    other = np.bincount(units[split:], second.influence, size)
    scale = math.sqrt(float(one @ one) * float(other @ other))
    r = float(one @ other) / scale if scale > 0 else 0.0
    terms = Term(first.value, first.interval, -1.0), Term(second.value, second.interval, 1.0)
    low, high = sum_interval(terms, np.array([[1.0, r], [r, 1.0]]))
    return value, (max(-1.0, low), min(1.0, high))
