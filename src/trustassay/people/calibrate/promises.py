"""Finds the thresholds of a calibrator, or says why there is none."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from trustassay.people.calibrate.answers import ScoredAnswers
from trustassay.runs.calibrator import ReliabilityBand, ThresholdPromise
from trustassay.statistics import Bools, Floats
from trustassay.statistics.distributions import bisection, incomplete_beta
from trustassay.statistics.intervals import binomial_interval, mean_interval, unit_mean
from trustassay.statistics.regression import Isotonic, isotonic_regression
from trustassay.statistics.resampling import generator
from trustassay.statistics.warranty import (
    AcceptanceThreshold,
    draw_one_each,
    estimate_labels_needed,
    evenly_rated_above,
    fewest_labels,
    find_grouped_threshold,
    walk,
)

RELIABILITY_BANDS = 5


@dataclass(frozen=True)
class PromiseTerms:
    """What is promised, and on which labels the promise rests."""

    at_most: float
    """The largest share of accepted answers that is wrong."""
    confidence: float
    """How often the promise holds."""
    delta: float
    """How often this test may fail; not above 1 - confidence."""
    exact: bool
    """Whether one answer is drawn of each group, so that the test is exact."""
    look: int = 1
    """The number of the look, from 1."""
    looks: int = 1
    """How many looks are planned."""
    not_below: float = -math.inf
    """The score at or below which nothing may be accepted."""
    seed: int = 0
    """Of the draws of ``exact``."""


def find_promise(answers: ScoredAnswers, used: Bools, terms: PromiseTerms) -> ThresholdPromise:
    """Find the lowest threshold that keeps a promise.

    Args:
        answers: all answers.
        used: those whose labels count, with a label and a score, shape (n,).
        terms: what is promised.
    """
    alpha, delta = terms.at_most, terms.delta
    promise = ThresholdPromise(
        alpha, terms.confidence, look=terms.look, looks=terms.looks, delta=delta
    )
    if answers.missed is not None:
        # Of the wrong answers at least 1 - f are labelled so; the bound of f takes half of delta.
        delta = delta / 2
        promise = replace(promise, missed=_compute_missed_bound(*answers.missed, delta))
        alpha *= 1 - promise.missed
    places = np.flatnonzero(used & (answers.scores > terms.not_below))
    is_grouped = bool(answers.group)
    if is_grouped and terms.exact:
        rng = generator(terms.seed, "calibrate", "exact")
        largest = _count_largest(answers, -math.inf)
        places = places[draw_one_each(answers.groups[places], largest, rng)]
        is_grouped = False
    scores, wrong, groups = answers.scores[places], answers.wrong[places], answers.groups[places]
    fewest = fewest_labels(alpha, delta)
    if len(places) < fewest:
        reason = (
            f"too few labels: {len(places):,}; {100 * alpha:.3g} % needs at least {fewest:,}, even "
            "if none is wrong"
        )
        return replace(promise, without=reason, needed=fewest)
    if is_grouped:
        result = find_grouped_threshold(
            scores,
            wrong,
            groups,
            alpha=alpha,
            delta=delta,
            count_largest=partial(_count_largest, answers),
        )
    else:
        result = walk(scores, wrong, alpha=alpha, delta=delta)
    promise = replace(promise, exact=not is_grouped)
    if result is None:
        # How many labels a test over groups needs depends on how alike their answers are.
        needed = None
        if not is_grouped:
            needed = estimate_labels_needed(scores, wrong, alpha=alpha, delta=delta)
        best = find_best_part(scores, wrong, fewest)
        reason = _explain_none(best, alpha, len(places), needed, is_grouped=is_grouped)
        return replace(promise, without=reason, needed=needed)
    above = max(result.above, terms.not_below)
    return replace(
        promise,
        above=None if above == -math.inf else above,
        share=float((answers.scores > above).mean()),
        accepted=result.accepted,
        wrong=result.wrong,
    )


def _compute_missed_bound(missed: int, n: int, delta: float) -> float:
    """Return the upper bound, wrong with probability ``delta``, of the share of ``n`` missed."""
    # Clopper and Pearson 1934: the p at which so few missed ones have a probability of delta.
    low, high = bisection(lambda p: incomplete_beta(n - missed, missed + 1, 1 - p) >= delta, 0, 1)
    return (low + high) / 2


def _count_largest(answers: ScoredAnswers, above: float) -> int:
    """Return how many answers above a score one group has at most, labelled or not."""
    return int(np.bincount(answers.groups[answers.scores > above]).max(initial=1))


def _explain_none(
    best: AcceptanceThreshold, alpha: float, n: int, needed: int | None, *, is_grouped: bool
) -> str:
    """Return why there is no threshold.

    Args:
        best: the part with the least share of wrong answers. alpha: the share that may be wrong.
        n: how many labels there are. needed: about how many would do.
        is_grouped: whether answers depend on each other.
    """
    if needed is not None:
        return f"too few labels: {n:,}; about {needed:,} are needed at this share of errors"
    share = best.wrong / best.accepted
    best_part = (
        f"{100 * share:.0f} % of the {best.accepted:,} answers with the best scores are wrong"
    )
    if share >= alpha:
        return f"{best_part}; more labels will not help"
    if is_grouped:
        return f"{best_part}, but too few of them are independent for a promise"
    return f"{best_part}, too close to {100 * alpha:.3g} %; more labels will hardly help"


def find_best_part(scores: Floats, wrong: Floats, fewest: int) -> AcceptanceThreshold:
    """Return the best-scored part, of ``fewest`` answers or more, with the least share wrong."""
    order = np.argsort(-scores, kind="stable")
    ranked, errors = scores[order], np.cumsum(wrong[order])
    ends = np.flatnonzero(np.diff(ranked, append=-np.inf))
    ends = ends[(ends + 1 >= fewest) | (ends == ends[-1])]
    place = int(ends[np.argmin(errors[ends] / (ends + 1))])
    return AcceptanceThreshold(float(ranked[place]), place + 1, int(errors[place]))


def find_evenly_rated(answers: ScoredAnswers) -> float:
    """Return the score above which labels do not depend on it; minus infinity for all."""
    has_score = ~np.isnan(answers.scores)
    rated = ~np.isnan(answers.wrong)
    return evenly_rated_above(answers.scores[has_score], rated[has_score])


def measure_reliability(answers: ScoredAnswers) -> list[ReliabilityBand]:
    """Divide the labelled answers into bands by score, and count the right ones in each."""
    used = answers.labelled
    raw, right = answers.score.sign * answers.scores[used], 1 - answers.wrong[used]
    groups = answers.groups[used]
    inner = np.quantile(raw, np.arange(1, RELIABILITY_BANDS) / RELIABILITY_BANDS)
    # Equal scores stay together: an edge belongs to the band below.
    band = np.searchsorted(np.unique(inner), raw, "left")
    result = []
    for number in np.unique(band):
        here = band == number
        n, count = int(here.sum()), int(right[here].sum())
        interval = binomial_interval(count, n)
        if answers.group:
            mean = unit_mean(right[here], groups[here])
            interval = mean_interval(*mean) if mean.units > 1 else (0.0, 1.0)
        low, high, stated = (float(f(raw[here])) for f in (np.min, np.max, np.mean))
        result.append(ReliabilityBand(low, high, stated, n, count, interval))
    return result


def fit_curve(scores: Floats, wrong: Floats) -> Isotonic:
    """Fit the probability of being right as a function that never falls with the score.

    A right answer is added at the lowest score and a wrong one at the highest, so that k right
    answers alone give 1 - 1 / (k + 1) and not 1 (the two labels that inductive Venn-Abers
    predictors add; Vovk and Petej 2014).
    """
    ends = [scores.min(), scores.max()]
    return isotonic_regression(np.append(scores, ends), np.append(1 - wrong, [1.0, 0.0]))


def check_terms(at_most: Sequence[float], confidence: float) -> str:
    """Return what is wrong with the shares or the confidence; empty if nothing is."""
    for share in at_most:
        if not 0 < share < 1:
            return f"--at-most: expected a share between 0 and 1, such as 0.1 or 10%, got {share:g}"
    # Below one half a promise would be broken more often than kept.
    if not 0.5 <= confidence < 1:
        return f"--confidence: expected 0.5 or more and below 1, got {confidence:g}"
    return ""
