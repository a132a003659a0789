"""Ranking of models by their mean score over the same questions, with its uncertainty.

Models are compared question by question, so that whatever their answers to a question have in
common cancels out.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats
from trustassay.statistics.comparison import mean_of_differences, sign_flip_ps
from trustassay.statistics.correlation import kendall_tau_b, spearman
from trustassay.statistics.intervals import (
    MIN_UNITS,
    MIN_UNITS_FOR_MEANS,
    Interval,
    interval_within_bounds,
    reason_too_few,
    unit_mean,
)
from trustassay.statistics.resampling import REPLICATES, draw_counts, holm

MIN_FLIPS = 9_999
"""Sign flips of the tests of pairs of models."""
MIN_FLIPS_A_PAIR = 100
"""Sign flips for each pair of models, if there are more than 100 pairs: with fewer flips no p-value
would be small enough for that number of tests."""
SIGNIFICANCE_LEVEL = 0.05
"""The level of significance, for all pairs of models together."""


@dataclass(frozen=True)
class PairDifference:
    """The difference of two models."""

    better: int
    """The place of the better model in the ranking, from 0."""
    worse: int
    """The place of the worse model."""
    value: float
    """The mean of the paired differences, better minus worse."""
    interval: Interval | None
    """Its 95 % interval; ``None`` where there is none."""
    without: str | None
    """Why there is no interval."""
    p: float
    """The two-sided p-value that both are equal, by sign flips over questions, corrected for the
    number of pairs (Holm 1979). With fewer than ``intervals.MIN_UNITS`` questions it is 1."""

    @property
    def apart(self) -> bool:
        """Whether the two differ significantly, at 5 % over all pairs of models together."""
        return self.p <= SIGNIFICANCE_LEVEL


@dataclass(frozen=True)
class OrderAgreement:
    """The agreement of the order by score with the order by truth; ``None`` if not defined."""

    kendall: float | None
    """Kendall's tau-b of the means."""
    spearman: float | None
    """Spearman's rho of the means."""


@dataclass(frozen=True)
class RankedModels:
    """M models, best first."""

    order: tuple[int, ...]
    """The places of the models in the input."""
    means: Floats
    """The mean score of each model, in the new order, shape (M,)."""
    intervals: tuple[Interval | None, ...]
    """The interval of each mean; ``None`` where there are too few questions."""
    without: str | None
    """Why there are no intervals."""
    probabilities: Floats | None
    """The probability of model m having rank r in resamples of the questions, shape (M, M); rows
    and columns sum to 1. ``None`` with fewer than ``intervals.MIN_UNITS`` questions."""
    differences: tuple[PairDifference, ...]
    """The difference of every two models."""
    truth: Floats | None = None
    """The mean truth of each model, where it is known, shape (M,)."""
    agreement: OrderAgreement | None = None
    """The agreement of means and truth, where truth is known."""


def rank_models(
    scores: ArrayLike,
    rng: np.random.Generator,
    *,
    lower_is_better: bool = False,
    truth: ArrayLike | None = None,
    bounds: tuple[float, float] | None = None,
) -> RankedModels:
    """Rank models by their mean score.

    Args:
        scores: shape (M, n), of M models for the same n questions; finite.
        rng: draws the resamples and the sign flips.
        lower_is_better: the model with the lowest mean ranks first.
        truth: the truth about the same answers, such as 1 for right ones; higher is better.
        bounds: the range of the scores; ``None`` where they have none.

    Means have the same intervals as in a run's summary
    (:func:`~trustassay.statistics.intervals.mean_interval`), differences those of paired means
    (:func:`~trustassay.statistics.comparison.mean_of_differences`). Equal means keep the order of
    the input, and share their ranks in the probabilities.

    Raises:
        ValueError: no model or no question, or the shapes differ.
    """
    s = np.asarray(scores, dtype=float)
    if s.ndim != 2 or 0 in s.shape:
        raise ValueError(f"expected scores of models for questions, got shape {s.shape}")
    t = None if truth is None else np.asarray(truth, dtype=float)
    if t is not None and t.shape != s.shape:
        raise ValueError(f"expected truth of shape {s.shape}, got {t.shape}")
    # From here on higher is better.
    sign = -1.0 if lower_is_better else 1.0
    order = np.argsort(-sign * s.mean(axis=1), kind="stable")
    s = s[order]
    n = s.shape[1]
    # Means need more questions than the ranks below, whose probabilities make no such promise.
    without = reason_too_few("questions", n, MIN_UNITS_FOR_MEANS)
    probabilities = None
    if n >= MIN_UNITS:
        # Questions are drawn, not answers, so that the models stay paired in each resample.
        drawn = np.concatenate([counts @ s.T / n for counts in draw_counts(n, rng, REPLICATES)])
        probabilities = _rank_probabilities(sign * drawn)
    means = s.mean(axis=1)
    true_means = None if t is None else t[order].mean(axis=1)
    agreement = None
    if true_means is not None:
        agreement = OrderAgreement(
            kendall_tau_b(sign * means, true_means), spearman(sign * means, true_means)
        )
    return RankedModels(
        tuple(order.tolist()),
        means,
        tuple(None if without else interval_within_bounds(unit_mean(row), bounds) for row in s),
        without,
        probabilities,
        tuple(_compare_pairs(s, rng, bounds)),
        true_means,
        agreement,
    )


def _compare_pairs(
    s: Floats, rng: np.random.Generator, bounds: tuple[float, float] | None
) -> list[PairDifference]:
    m, n = s.shape
    pairs = list(combinations(range(m), 2))
    if not pairs:
        return []
    apart = np.array([s[i] - s[j] for i, j in pairs])
    # Without bounds the largest difference that occurs stands for the range; 1 if all are equal.
    largest = float(np.abs(apart).max()) or 1.0 if bounds is None else bounds[1] - bounds[0]
    p = [1.0] * len(pairs)
    if n >= MIN_UNITS:
        p = holm(sign_flip_ps(apart, rng, max(MIN_FLIPS, MIN_FLIPS_A_PAIR * len(pairs))).tolist())
    changes = [mean_of_differences(difference, largest) for difference in apart]
    return [
        PairDifference(i, j, difference.value, difference.interval, difference.without, p_value)
        for (i, j), difference, p_value in zip(pairs, changes, p, strict=True)
    ]


def _rank_probabilities(drawn: Floats) -> Floats:
    """Return how often each model has each rank, shape (M, M); equal means share their ranks."""
    b, m = drawn.shape
    above = (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)  # models that are better
    equal = (drawn[:, None, :] == drawn[:, :, None]).sum(axis=2)  # with itself
    result = np.zeros((m, m))
    for rank in range(m):
        # Equal models occupy the ranks from `above` on together, each with the same share of each
        # rank.
        has_rank = (above <= rank) & (rank < above + equal)
        result[:, rank] = (has_rank / equal).sum(axis=0) / b
    return result


def count_concordant_pairs(scores: ArrayLike, truth: ArrayLike) -> tuple[int, int]:
    """Count the pairs of models that scores and truth order alike, question by question.

    Args:
        scores, truth: shape (M, n); higher is better in both.

    Returns:
        The number of pairs that are ordered alike, and the number of all pairs whose truths differ,
        over all questions. A tie of the scores counts only among all.
    """
    s, t = np.asarray(scores, dtype=float), np.asarray(truth, dtype=float)
    alike = total = 0
    for first, second in combinations(range(len(s)), 2):
        true_order = np.sign(t[first] - t[second])
        # Models with equal truth have no true order.
        differ = true_order != 0
        total += int(differ.sum())
        alike += int((np.sign(s[first] - s[second]) == true_order)[differ].sum())
    return alike, total
