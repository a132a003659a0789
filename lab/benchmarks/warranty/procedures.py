"""Three procedures that choose a threshold, for many samples at once.

``before``
    The test that ``calibrate`` had: at most 20 numbers of accepted answers, chosen beforehand, each
    tested at its part of delta (Bonferroni).
``walk``
    :func:`trustassay.statistics.warranty.walk` over all labels.
``plan``
    The labels are the first n of a random order of the file. Those in the upper half are rated
    first. If few of them are wrong (``passes_upper_half``), the others are rated, and the walk is
    over all n; else the next upper ones of the order, up to n, and the walk is over these. Each
    walk has half of delta. From alpha = .2 on it is the walk.

Samples are what :meth:`Population.draw` returns: twice the level, and one more if wrong. A
threshold is the level above which answers are accepted: -1 for all, the highest for none.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom  # type: ignore[import-untyped]

from lab.benchmarks.warranty.populations import Population
from trustassay.statistics import Bools, Places
from trustassay.statistics.warranty import (
    choose_looks,
    compute_boundary,
    fewest_labels,
    passes_upper_half,
)

DELTA = 0.05
UNSTEERED_FROM = 0.2
"""The alpha from which the plan does not rate the upper half first."""
MAX_TESTS_BEFORE = 20
MIN_COUNT_RATIO_BEFORE = 1.2
PROCEDURES = ("before", "walk", "plan")


class _Ranked(NamedTuple):
    """Samples from the highest score down, shapes (samples, n)."""

    levels: Places
    errors: Places
    """The wrong answers so far."""


def _rank(samples: Places) -> _Ranked:
    ranked = -np.sort(-samples, axis=1)
    return _Ranked(ranked >> 1, np.cumsum(ranked & 1, axis=1))


def walk_samples(samples: Places, alpha: float, delta: float, best: int, floor: int = -1) -> Places:
    """Return the threshold of the walk for each sample.

    Args:
        samples: shape (samples, n). alpha, delta: as for the walk.
        best: the highest level. floor: the level that all of the samples are above.
    """
    n = samples.shape[1]
    ranked = _rank(samples)
    following = np.full_like(ranked.levels, floor)
    following[:, :-1] = ranked.levels[:, 1:]
    limits = compute_boundary(n, alpha, delta).at_each(n)
    passing = (ranked.errors <= limits) & (following != ranked.levels)
    last = n - 1 - np.argmax(passing[:, ::-1], axis=1)
    threshold = following[np.arange(len(last)), last]
    return np.where(passing.any(axis=1), threshold, best)


def choose_counts_before(n: int, alpha: float, delta: float) -> list[int]:
    """Return the numbers of accepted answers that the procedure before tested."""
    tests = 0
    while (
        tests < MAX_TESTS_BEFORE
        and fewest_labels(alpha, delta / (tests + 1)) * MIN_COUNT_RATIO_BEFORE**tests <= n
    ):
        tests += 1
    if not tests:
        return []
    counts = np.geomspace(fewest_labels(alpha, delta / tests), n, tests)
    return sorted({round(count) for count in counts.tolist()})


def search_before(samples: Places, alpha: float, delta: float, best: int) -> Places:
    """Return the threshold of the procedure before for each sample."""
    rows, n = samples.shape
    ranked, at = _rank(samples), np.arange(rows)
    begins = np.full((rows, n), 0)
    begins[:, 1:] = np.where(np.diff(ranked.levels, axis=1) != 0, np.arange(1, n), 0)
    begins = np.maximum.accumulate(begins, axis=1)
    result = np.full(rows, best)
    counts = choose_counts_before(n, alpha, delta)
    for count in counts:
        threshold, accepted = np.full(rows, -1), np.full(rows, n)
        if count < n:
            # Answers that tie with the next one are not accepted.
            threshold, accepted = ranked.levels[:, count], begins[:, count]
        wrong = np.where(accepted > 0, ranked.errors[at, accepted - 1], 0)
        most = _count_tolerated_before(n, alpha, delta / len(counts))
        result = np.where(wrong <= most[accepted], threshold, result)
    return result


@cache
def _count_tolerated_before(n: int, alpha: float, level: float) -> Places:
    """Return the most wrong answers of 0 to n accepted ones whose p-value passes, -1 for none."""
    accepted = np.arange(n + 1)
    # The least count whose cumulative probability reaches the level is one too many.
    most = binom.ppf(level, accepted, alpha).astype(np.int64)
    most -= binom.cdf(most, accepted, alpha) > level
    most[0] = -1
    return np.asarray(most)


@cache
def _most_wrong_of_upper(labels: int, alpha: float, delta: float) -> int:
    """Return the most wrong answers with which the upper half passes, -1 for none."""
    return (
        bisect_left(
            range(labels),
            True,
            key=lambda wrong: not passes_upper_half(wrong, labels, alpha, delta),
        )
        - 1
    )


def _list_most_wrong(least: int, most: int, alpha: float, delta: float) -> dict[int, int]:
    """Return :func:`_most_wrong_of_upper` of each number of labels from the least to the most."""
    ends = [_most_wrong_of_upper(labels, alpha, delta) for labels in (least, most)]
    # The number rises with the labels, so equal ends need nothing in between: a boundary takes .1 s
    # or more.
    if most - least < 2 or ends[0] == ends[1]:
        return dict.fromkeys(range(least, most), ends[0]) | {most: ends[1]}
    middle = (least + most) // 2
    left = _list_most_wrong(least, middle, alpha, delta)
    return left | _list_most_wrong(middle, most, alpha, delta)


class _PlanSamples(NamedTuple):
    """The order of the file, and its upper answers in the same order."""

    all: Places
    upper: Places
    cut: int

    def passes(self, labels: int, alpha: float, delta: float) -> Bools:
        """Return whether the upper answers among the first ``labels`` are good enough."""
        first = self.all[:, :labels]
        is_upper = first >> 1 > self.cut
        sizes, wrong = is_upper.sum(axis=1), (is_upper & (first & 1 > 0)).sum(axis=1)
        most = _list_most_wrong(int(sizes.min()), int(sizes.max()), alpha, delta)
        return np.asarray(wrong <= np.array([most[size] for size in sizes.tolist()]))


def _draw_upper(samples: Places, population: Population, rng: np.random.Generator) -> _PlanSamples:
    """Return the upper answers of the samples in their order, continued to as many as these."""
    cut = population.upper_cut
    is_lower = samples >> 1 <= cut
    order = np.argsort(is_lower, axis=1, kind="stable")
    upper = np.take_along_axis(samples, order, axis=1)
    # What follows in the order of the file: further draws of the upper half.
    more = population.draw(samples.shape, rng, above=cut)
    is_more = np.take_along_axis(is_lower, order, axis=1)
    return _PlanSamples(samples, np.where(is_more, more, upper), cut)


def plan_looks(
    samples: Places,
    population: Population,
    alpha: float,
    delta: float,
    looks: Sequence[int],
    rng: np.random.Generator,
) -> list[Places]:
    """Return the thresholds of the plan at each look.

    Args:
        samples: shape (samples, labels of the last look). delta: of all looks together.
        looks: the numbers of labels, rising.
    """
    best, part = population.best_level, delta / len(looks)
    if alpha >= UNSTEERED_FROM or population.upper_cut < 0:
        return [walk_samples(samples[:, :n], alpha, part, best) for n in looks]
    drawn = _draw_upper(samples, population, rng)
    is_even, result = np.zeros(len(samples), bool), []
    for n in looks:
        # A sample that was representative at a look is so at all later ones.
        is_even |= drawn.passes(n, alpha, part / 2)
        of_all = walk_samples(samples[:, :n], alpha, part / 2, best)
        of_upper = walk_samples(drawn.upper[:, :n], alpha, part / 2, best, drawn.cut)
        result.append(np.where(is_even, of_all, of_upper))
    return result


def choose_thresholds(
    procedure: str,
    samples: Places,
    population: Population,
    alpha: float,
    rng: np.random.Generator,
) -> Places:
    """Return the threshold of one of :data:`PROCEDURES` for each sample, with one look."""
    n, best = samples.shape[1], population.best_level
    choices: Mapping[str, Callable[[], Places]] = {
        "before": lambda: search_before(samples, alpha, DELTA, best),
        "walk": lambda: walk_samples(samples, alpha, DELTA, best),
        "plan": lambda: plan_looks(samples, population, alpha, DELTA, [n], rng)[0],
    }
    return choices[procedure]()


class Outcome(NamedTuple):
    """What a procedure did with many samples."""

    accepted: float
    """The mean share of the population that is accepted."""
    broken: float
    """The share of samples whose threshold accepts more wrong answers than promised."""


def judge_thresholds(thresholds: Places, population: Population, alpha: float) -> Outcome:
    """Compare thresholds with the population."""
    shares, risks = population.shares[thresholds + 1], population.shares_wrong[thresholds + 1]
    # A share of exactly alpha keeps the promise; sums of many risks are rounded.
    return Outcome(float(shares.mean()), float((risks > alpha * (1 + 1e-9)).mean()))


def judge_looks(
    procedure: str,
    population: Population,
    alpha: float,
    looks: int,
    draws: int,
    rng: np.random.Generator,
) -> tuple[list[int], Outcome]:
    """Return the numbers of labels, and what the promises of all looks together are worth.

    A sample is broken if any of its promises is; the last one that was made decides what is
    accepted.
    """
    is_plan = procedure == "plan" and alpha < UNSTEERED_FROM and population.upper_cut >= 0
    numbers = choose_looks(alpha, DELTA, looks, 2 if is_plan else 1)
    samples = population.draw((draws, numbers[-1]), rng)
    best = population.best_level
    if procedure == "plan":
        of_looks = plan_looks(samples, population, alpha, DELTA, numbers, rng)
    else:
        part = DELTA / len(numbers)
        of_looks = [walk_samples(samples[:, :n], alpha, part, best) for n in numbers]
    last, broken = np.full(draws, best), np.zeros(draws, bool)
    for thresholds in of_looks:
        last = np.where(thresholds < best, thresholds, last)
        broken |= population.shares_wrong[thresholds + 1] > alpha * (1 + 1e-9)
    return numbers, Outcome(float(population.shares[last + 1].mean()), float(broken.mean()))


def standard_error(share: float, draws: int) -> float:
    """Return the standard error of a share of draws."""
    return math.sqrt(share * (1 - share) / draws)
