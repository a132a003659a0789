"""Models ranked by their mean score over the same questions, and how sure that is.

All resamples draw whole questions, so that every model is drawn with the same ones: what is common
to the answers of a question cancels out (the paired bootstrap, Efron 1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.bootstrap import percentile_interval, resampled_means
from trustassay.statistics.correlation import kendall_tau_b, spearman
from trustassay.statistics.intervals import FEWEST

__all__ = ["Agreement", "Difference", "RankedModels", "ordered_alike", "rank_models", "truth_of"]

Floats = NDArray[np.float64]
Interval = tuple[float, float]
REPLICATES = 2000


@dataclass(frozen=True)
class Difference:
    """Two models by their places in the ranking, the better one first, and how far apart they are.

    ``apart`` says whether the interval leaves out 0: whether they can be told apart. Of fewer than
    :data:`~trustassay.statistics.intervals.FEWEST` questions they never can: not ``enough``.
    """

    better: int
    worse: int
    value: float
    interval: Interval
    enough: bool = True

    @property
    def apart(self) -> bool:
        """Whether the two can be told apart at 95 %."""
        low, high = self.interval
        return self.enough and (low > 0 or high < 0)


@dataclass(frozen=True)
class Agreement:
    """How far the order by score is that by truth; ``None`` where it is not defined."""

    kendall: float | None
    spearman: float | None
    kendall_interval: Interval | None
    spearman_interval: Interval | None


@dataclass(frozen=True)
class RankedModels:
    """M models, best first.

    order: their places in the input. means and intervals: of each, in the new order.
    probabilities: shape (M, M), of model m having rank r; rows sum to 1, and so do columns.
    differences: of every two models.
    truth: the mean truth of each, where it is known; agreement: of means and truth.
    """

    order: tuple[int, ...]
    means: Floats
    intervals: tuple[Interval, ...]
    probabilities: Floats
    differences: tuple[Difference, ...]
    truth: Floats | None = None
    agreement: Agreement | None = None


def rank_models(
    scores: ArrayLike,
    rng: np.random.Generator,
    *,
    lower_is_better: bool = False,
    truth: ArrayLike | None = None,
    replicates: int = REPLICATES,
) -> RankedModels:
    """Rank models by their mean score.

    Args:
        scores: shape (M, n), of M models for the same n questions; finite.
        truth: what is true of the same answers, as the share of right ones; higher is better.
        replicates: bootstrap resamples, B.

    Equal means keep the order of the input, and share their ranks in the probabilities. A single
    question gives intervals without width.

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
    both = s if t is None else np.concatenate([s, t[order]])
    drawn = np.concatenate(list(resampled_means(both, rng, replicates)))
    m = len(s)
    means, drawn_means = s.mean(axis=1), drawn[:, :m]
    agreement = None
    true_means = None
    if t is not None:
        true_means = both[m:].mean(axis=1)
        agreement = _agreement(sign * means, true_means, sign * drawn_means, drawn[:, m:])
    return RankedModels(
        tuple(order.tolist()),
        means,
        tuple(_interval(column) for column in drawn_means.T),
        _rank_probabilities(sign * drawn_means),
        tuple(
            _difference(i, j, means, drawn_means, enough=s.shape[1] >= FEWEST)
            for i, j in combinations(range(m), 2)
        ),
        true_means,
        agreement,
    )


def _difference(i: int, j: int, means: Floats, drawn: Floats, *, enough: bool) -> Difference:
    interval = _interval(drawn[:, i] - drawn[:, j])
    return Difference(i, j, float(means[i] - means[j]), interval, enough)


def _interval(values: Floats) -> Interval:
    found = percentile_interval(values)
    assert found is not None  # of finite means
    return found


def _rank_probabilities(drawn: Floats) -> Floats:
    """Return how often each model has each rank, shape (M, M); equal means share their ranks."""
    b, m = drawn.shape
    above = (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)  # models that are better
    equal = (drawn[:, None, :] == drawn[:, :, None]).sum(axis=2)  # with itself
    found = np.zeros((m, m))
    for rank in range(m):
        held = (above <= rank) & (rank < above + equal)
        found[:, rank] = (held / equal).sum(axis=0) / b
    return found


def _agreement(means: Floats, truth: Floats, drawn: Floats, drawn_truth: Floats) -> Agreement:
    tau, rho = _rank_correlations(drawn, drawn_truth)
    return Agreement(
        kendall_tau_b(means, truth),
        spearman(means, truth),
        percentile_interval(tau),
        percentile_interval(rho),
    )


def _rank_correlations(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return Kendall's tau-b and Spearman's rho of each row of two samples, shape (B, M) each.

    As :func:`~trustassay.statistics.correlation.kendall_tau_b` and ``spearman``, for many small
    samples at once; NaN where they are not defined.
    """
    signs = [np.sign(one[:, :, None] - one[:, None, :]) for one in (x, y)]
    tau = _cosine(*(one.reshape(len(one), -1) for one in signs))
    ranks = [one.sum(axis=2) / 2 for one in signs]  # less their mean, and ties share theirs
    return tau, _cosine(ranks[0], ranks[1])


def _cosine(a: Floats, b: Floats) -> Floats:
    below = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    undefined = np.full(len(a), np.nan)
    return np.asarray(np.divide((a * b).sum(axis=1), below, out=undefined, where=below > 0))


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
    for first in range(len(s)):
        for second in range(first + 1, len(s)):
            true_order = np.sign(t[first] - t[second])
            differ = true_order != 0
            total += int(differ.sum())
            alike += int((np.sign(s[first] - s[second]) == true_order)[differ].sum())
    return alike, total


def truth_of(to_right: ArrayLike, to_wrong: ArrayLike) -> float:
    """Return how much nearer an answer is to the nearest right answer than to a wrong one.

    Lin et al. 2022 (TruthfulQA), as Wei et al. 2024 use it for the ranking of samples.

    Args:
        to_right, to_wrong: similarities to the right and the wrong answers; at least one of each.

    Raises:
        ValueError: there is none of a kind.
    """
    right, wrong = np.asarray(to_right, dtype=float), np.asarray(to_wrong, dtype=float)
    if not (right.size and wrong.size):
        raise ValueError("expected a right and a wrong answer at least")
    return float(right.max() - wrong.max())
