"""Models ranked by mean score: order, intervals, probabilities of ranks, agreement with truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lazily import needed
from tests.support import repeats
from trustassay.statistics.ranking import (
    count_concordant_pairs,
    rank_models,
)

stats = needed("scipy.stats")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_order_and_means_by_hand() -> None:
    scores: list[Any] = [[0, 0, 1], [1, 1, 1], [0.5, 0.5, 0.2]]
    found = rank_models(scores, rng())
    assert found.order == (1, 2, 0)
    assert found.means == pytest.approx([1, 0.4, 1 / 3])
    assert [(d.better, d.worse) for d in found.differences] == [(0, 1), (0, 2), (1, 2)]
    assert found.differences[0].value == pytest.approx(0.6)
    lower = rank_models(scores, rng(), lower_is_better=True)
    assert lower.order == (0, 2, 1)


def test_what_models_share_cancels_out() -> None:
    """Questions differ widely, the models by 0.01 everywhere: the means are unsure, the order not.

    And where the difference is as often one way as the other nothing can be told.
    """
    hard = rng().random(200)
    found = rank_models([hard, hard + 0.01], rng())
    assert found.order == (1, 0)
    (difference,) = found.differences
    assert difference.interval is not None
    assert difference.interval[0] <= 0.01 <= difference.interval[1]
    assert difference.p == pytest.approx(1e-4)
    assert difference.apart
    assert found.intervals[0] is not None
    low, high = found.intervals[0]
    assert high - low > 0.05
    assert found.probabilities is not None
    assert found.probabilities.tolist() == [[1, 0], [0, 1]]
    noise = np.where(np.arange(200) % 2, 0.1, -0.1)
    unclear = rank_models([hard, hard + noise], rng()).differences[0]
    assert not unclear.apart
    assert unclear.interval is not None
    assert unclear.interval[0] < 0 < unclear.interval[1]


@pytest.mark.parametrize(("n", "apart"), [(1, False), (19, False), (20, True), (40, True)])
def test_few_questions_tell_no_models_apart(n: int, apart: bool) -> None:
    """Five right answers of five are no "1.000 (1.000 to 1.000)"."""
    found = rank_models([[1.0] * n, [0.0] * n], rng(), bounds=(0.0, 1.0))
    (difference,) = found.differences
    assert difference.apart is apart
    assert (found.probabilities is None) == (n < 20)
    if n < 40:
        assert found.intervals == (None, None)
        assert difference.interval is None
        assert difference.without == f"too few pairs: {n}; at least 40 are needed"
    else:
        assert found.intervals[0] is not None
        assert found.intervals[0][0] < 0.95
        assert found.intervals[0][1] == 1


@pytest.mark.slow
def test_equal_models_are_rarely_told_apart_however_many_there_are() -> None:
    """Of four equal models some pair was told apart in 17 to 38 of 100 sets without correction."""
    alarms, draws = 0, repeats(200)
    for draw in range(draws):
        generator = np.random.default_rng(draw)
        scores = (generator.random((4, 40)) < 0.7).astype(float)
        found = rank_models(scores, generator, bounds=(0.0, 1.0))
        alarms += any(one.apart for one in found.differences)
    expected = 0.05 * draws  # at most: without the correction 8 of 66 and 29 of 200 are found
    assert alarms <= expected + np.sqrt(expected)


@pytest.mark.slow
def test_fifty_models_can_be_told_apart() -> None:
    """The smallest p-value that sign flips can give has to pass the correction for 1,225 pairs."""
    scores = np.linspace(0, 1, 50)[:, None] + rng().normal(0, 0.001, (50, 60))
    found = rank_models(scores, rng())
    assert all(one.apart for one in found.differences)


def test_the_interval_of_a_difference_is_that_of_a_paired_mean() -> None:
    """The normal approximation of the mean difference of 400 questions, within its own error."""
    scores = rng().normal(size=(2, 400))
    scores[0] += 0.1
    (difference,) = rank_models(scores, rng()).differences
    differences = scores[0] - scores[1]
    sign = 1 if differences.mean() > 0 else -1
    expected = stats.norm.interval(
        0.95, sign * differences.mean(), differences.std() / np.sqrt(len(differences))
    )
    assert difference.interval == pytest.approx(expected, abs=0.01)


def test_rank_probabilities_sum_to_one_both_ways() -> None:
    found = rank_models(rng().random((5, 30)), rng())
    assert found.probabilities is not None
    assert found.probabilities.sum(axis=0) == pytest.approx(np.ones(5))
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(5))
    assert found.probabilities[0, 0] > found.probabilities[4, 0]


def test_equal_models_share_their_ranks() -> None:
    found = rank_models([[0.5, 0.1] * 10, [0.5, 0.1] * 10, [0.0, 0.0] * 10], rng())
    assert found.order == (0, 1, 2)
    assert found.probabilities == pytest.approx(np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]))
    assert not found.differences[0].apart


def test_agreement_with_truth_as_scipy_has_it() -> None:
    generator = rng()
    truth = (generator.random((6, 300)) < np.linspace(0.2, 0.9, 6)[:, None]).astype(float)
    scores = truth + generator.normal(0, 3, size=truth.shape)
    found = rank_models(scores, rng(), truth=truth)
    assert found.agreement is not None
    assert found.truth is not None
    means, true_means = scores.mean(axis=1), truth.mean(axis=1)
    assert found.agreement.kendall == pytest.approx(stats.kendalltau(means, true_means).statistic)
    assert found.agreement.spearman == pytest.approx(stats.spearmanr(means, true_means).statistic)
    assert found.truth == pytest.approx(true_means[list(found.order)])


def test_a_lower_score_that_is_better_agrees_with_truth() -> None:
    truth = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    found = rank_models(1.0 - truth, rng(), lower_is_better=True, truth=truth)
    assert found.order == (0, 1, 2)
    assert found.agreement and found.agreement.kendall == pytest.approx(1)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_and_many_questions_take_little_memory() -> None:
    scores = rng().random((3, 50))
    assert rank_models(scores, rng()).intervals == rank_models(scores, rng()).intervals
    many = rank_models(rng().random((2, 10_000)), rng())
    assert many.intervals[0] is not None
    assert many.intervals[0][1] - many.intervals[0][0] < 0.02


def test_bad_shapes_are_refused() -> None:
    bad: list[Any] = [[], [[]], [1.0, 2.0]]
    for scores in bad:
        with pytest.raises(ValueError, match="expected scores"):
            rank_models(scores, rng())
    with pytest.raises(ValueError, match="expected truth of shape"):
        rank_models([[1.0, 2.0]], rng(), truth=[[1.0]])


def test_pairs_ordered_alike_by_hand() -> None:
    """Question 1: alike; 2: a tie of scores is a miss; 3: equal truths do not count."""
    assert count_concordant_pairs([[1, 5, 3], [0, 5, 9]], [[1, 1, 1], [0, 0, 1]]) == (1, 2)
    assert count_concordant_pairs([[1], [0], [2]], [[1], [0], [0]]) == (1, 2)
    assert count_concordant_pairs([[1, 2]], [[1, 2]]) == (0, 0)
