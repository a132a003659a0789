"""Models ranked by their mean score over the same questions, and how sure that is.

Whole questions are compared, those of all models together: what is common to the answers of a
question cancels out.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats
from trustassay.statistics.comparison import mean_of_differences, sign_flip_ps
from trustassay.statistics.correlation import kendall_tau_b, spearman
from trustassay.statistics.intervals import (
    FEWEST,
    FEWEST_FOR_MEANS,
    Interval,
    bounded_interval,
    too_few,
    unit_mean,
)
from trustassay.statistics.resampling import REPLICATES, drawn_counts, holm

FLIPS = 9_999
FLIPS_A_PAIR = 100
"""Sign flips for each pair of models, where there are more than a hundred: with too few, no p-value
would be small enough for so many tests."""
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class PairDifference:
    """Two models by their places in the ranking, the better one first, and their difference.

    interval: that of the mean of paired differences, ``None`` with the reason in ``without``.
    p: two-sided, that the two are equal, by sign flips over questions; corrected for the number of
    pairs of models (Holm 1979). Below :data:`~trustassay.statistics.intervals.FEWEST` questions it
    is 1.
    """

    better: int
    worse: int
    value: float
    interval: Interval | None
    without: str | None
    p: float

    @property
    def apart(self) -> bool:
        """Whether the two differ significantly, at 5 % over all pairs of models together."""
        return self.p <= SIGNIFICANT


@dataclass(frozen=True)
class Agreement:
    """How far the order by score is that by truth; ``None`` where it is not defined."""

    kendall: float | None
    spearman: float | None


@dataclass(frozen=True)
class RankedModels:
    """M models, best first.

    order: their places in the input. means and intervals: of each, in the new order; an interval is
    ``None`` where there are too few questions, for the reason ``without``.
    probabilities: shape (M, M), of model m having rank r in resamples of the questions; rows sum to
    1, and so do columns. ``None`` below :data:`~trustassay.statistics.intervals.FEWEST` questions.
    differences: of every two models.
    truth: the mean truth of each, where it is known; agreement: of means and truth.
    """

    order: tuple[int, ...]
    means: Floats
    intervals: tuple[Interval | None, ...]
    without: str | None
    probabilities: Floats | None
    differences: tuple[PairDifference, ...]
    truth: Floats | None = None
    agreement: Agreement | None = None


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
        truth: what is true of the same answers, as the share of right ones; higher is better.
        bounds: between which all scores lie; ``None`` where they have none.

    The interval of a mean is that of a run's summary
    (:func:`~trustassay.statistics.intervals.mean_interval`), that of a difference that of a paired
    mean (:func:`~trustassay.statistics.comparison.mean_of_differences`).

    Equal means keep the order of the input, and share their ranks in the probabilities.

    Raises:
        ValueError: no model or no question, or the shapes differ.
    """
    s = np.asarray(scores, dtype=float)
    if s.ndim != 2 or 0 in s.shape:
        raise ValueError(f"expected scores of models for questions, got shape {s.shape}")
    t = None if truth is None else np.asarray(truth, dtype=float)
    if t is not None and t.shape != s.shape:
        raise ValueError(f"expected truth of shape {s.shape}, got {t.shape}")
    sign = -1.0 if lower_is_better else 1.0
    order = np.argsort(-sign * s.mean(axis=1), kind="stable")
    s = s[order]
    n = s.shape[1]
    without = too_few("questions", n, FEWEST_FOR_MEANS)
    probabilities = None
    if n >= FEWEST:
        drawn = np.concatenate([counts @ s.T / n for counts in drawn_counts(n, rng, REPLICATES)])
        probabilities = _rank_probabilities(sign * drawn)
    means = s.mean(axis=1)
    true_means = None if t is None else t[order].mean(axis=1)
    agreement = None
    if true_means is not None:
        agreement = Agreement(
            kendall_tau_b(sign * means, true_means), spearman(sign * means, true_means)
        )
    return RankedModels(
        tuple(order.tolist()),
        means,
        tuple(None if without else bounded_interval(unit_mean(row), bounds) for row in s),
        without,
        probabilities,
        tuple(_differences(s, rng, bounds)),
        true_means,
        agreement,
    )


def _differences(
    s: Floats, rng: np.random.Generator, bounds: tuple[float, float] | None
) -> list[PairDifference]:
    m, n = s.shape
    pairs = list(combinations(range(m), 2))
    if not pairs:
        return []
    apart = np.array([s[i] - s[j] for i, j in pairs])
    largest = float(np.abs(apart).max()) or 1.0 if bounds is None else bounds[1] - bounds[0]
    p = [1.0] * len(pairs)
    if n >= FEWEST:
        p = holm(sign_flip_ps(apart, rng, max(FLIPS, FLIPS_A_PAIR * len(pairs))).tolist())
    changes = [mean_of_differences(one, largest) for one in apart]
    return [
        PairDifference(i, j, one.value, one.interval, one.without, own)
        for (i, j), one, own in zip(pairs, changes, p, strict=True)
    ]


def _rank_probabilities(drawn: Floats) -> Floats:
    """Return how often each model has each rank, shape (M, M); equal means share their ranks."""
    b, m = drawn.shape
    above = (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)  # models that are better
    equal = (drawn[:, None, :] == drawn[:, :, None]).sum(axis=2)  # with itself
    result = np.zeros((m, m))
    for rank in range(m):
        held = (above <= rank) & (rank < above + equal)
        result[:, rank] = (held / equal).sum(axis=0) / b
    return result


def ordered_alike(scores: ArrayLike, truth: ArrayLike) -> tuple[int, int]:
    """Return how many pairs of models the scores order as the truth does, question by question.

    Args:
        scores, truth: shape (M, n); higher is better in both.

    Returns:
        Pairs that are ordered alike, and all pairs of models and questions whose truths differ. A
        tie of the scores counts among all: it orders nothing.
    """
    s, t = np.asarray(scores, dtype=float), np.asarray(truth, dtype=float)
    alike = total = 0
    for first, second in combinations(range(len(s)), 2):
        true_order = np.sign(t[first] - t[second])
        differ = true_order != 0
        total += int(differ.sum())
        alike += int((np.sign(s[first] - s[second]) == true_order)[differ].sum())
    return alike, total
