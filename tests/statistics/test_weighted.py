"""Weighted figures against scipy and scikit-learn, against repeated answers, and by enumeration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics import calibration
from trustassay.statistics.weighted import (
    MEASURES,
    auroc,
    average_precision,
    brier_score,
    calibration_error,
    kendall_tau_b,
    pearson,
    prediction_rejection_ratio,
    spearman,
    value_of,
)

stats = needed("scipy.stats")
metrics = needed("sklearn.metrics")

CASES = [(seed, n, levels) for seed in range(3) for n, levels in ((9, 3), (60, 5), (150, 10**6))]


def made(seed: int, n: int, levels: int) -> tuple[Any, Any, Any]:
    """Return scores from 0 to 1 with ties, labels of two classes, and graded labels."""
    rng = np.random.default_rng([seed, n])
    scores = rng.integers(0, levels, n) / levels
    right = (scores + rng.random(n) > 1).astype(float)
    right[:2] = 0, 1
    return scores, right, np.round(3 * scores + 3 * rng.random(n))


@pytest.mark.parametrize(("seed", "n", "levels"), CASES)
def test_figures_are_those_of_scipy_and_scikit_learn(seed: int, n: int, levels: int) -> None:
    x, y, z = made(seed, n, levels)
    expected = {
        auroc: metrics.roc_auc_score(y, x),
        average_precision: metrics.average_precision_score(y, x),
        brier_score: metrics.brier_score_loss(y, x),
        kendall_tau_b: stats.kendalltau(x, y).statistic,
        spearman: stats.spearmanr(x, y).statistic,
        pearson: stats.pearsonr(x, y).statistic,
        calibration_error: calibration.calibration_error(x, y),
    }
    for measure, value in expected.items():
        assert value_of(measure, x, y) == pytest.approx(value, abs=1e-12)
    assert value_of(kendall_tau_b, x, z) == pytest.approx(stats.kendalltau(x, z).statistic)
    assert value_of(spearman, x, z) == pytest.approx(stats.spearmanr(x, z).statistic)


@pytest.mark.parametrize(("seed", "n", "levels"), CASES)
@pytest.mark.parametrize("name", MEASURES)
def test_a_weight_counts_an_answer_so_many_times(name: str, seed: int, n: int, levels: int) -> None:
    x, right, graded = made(seed, n, levels)
    weights = np.random.default_rng(1).integers(0, 4, (8, n)).astype(float)
    weights[0] = 0
    weights[1, 1:] = 0
    for y in (right,) if name in ("auroc", "auprc", "brier", "ece") else (right, graded):
        found = MEASURES[name](x, y)(weights)
        for row, value in zip(weights, found, strict=True):
            repeated = np.repeat(np.arange(n), row.astype(int))
            alone = value_of(MEASURES[name], x[repeated], y[repeated]) if len(repeated) else None
            expected = math.nan if alone is None else pytest.approx(alone, abs=1e-10)
            assert (math.isnan(value) and alone is None) or value == expected


def test_tau_b_by_the_matrix_is_tau_b_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, 80).astype(float), rng.integers(0, 30, 80).astype(float)
    weights = rng.integers(0, 3, (20, 80)).astype(float)
    by_matrix = kendall_tau_b(x, y)(weights)
    monkeypatch.setattr("trustassay.statistics.weighted.MOST_FOR_MATRIX", 0)
    assert kendall_tau_b(x, y)(weights) == pytest.approx(by_matrix, abs=1e-12)
    assert by_matrix[0] != by_matrix[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0, 2.5])), min_size=2, max_size=6)
)
def test_prr_is_its_definition_by_enumeration(rows: list[tuple[int, float]]) -> None:
    """All orders of the answers that no higher score follows, each as likely."""
    scores, labels = [float(score) for score, _ in rows], [label for _, label in rows]

    def area(keys: list[float]) -> float:
        """The mean over orders of the sum of the mean labels of what is kept."""
        areas = []
        for order in itertools.permutations(range(len(rows))):
            if all(keys[a] >= keys[b] for a, b in itertools.pairwise(order)):
                kept = [labels[place] for place in order]
                areas.append(sum(sum(kept[:k]) / k for k in range(1, len(kept) + 1)))
        return sum(areas) / len(areas)

    found = value_of(prediction_rejection_ratio, scores, labels)
    random = area([0.0] * len(rows))
    if len(set(labels)) == 1:
        assert found is None
    else:
        expected = (area(scores) - random) / (area(labels) - random)
        assert found == pytest.approx(expected, abs=1e-9)


def test_prr_by_hand() -> None:
    # Kept from the highest score on: 1, 1/2, 2/3; at random 2/3 each; at best 1, 1, 2/3.
    # (1 + 1/2 + 2/3 - 2) / (1 + 1 + 2/3 - 2) = (1/6) / (2/3)
    assert value_of(prediction_rejection_ratio, [3, 2, 1], [1, 0, 1]) == pytest.approx(0.25)
    assert value_of(prediction_rejection_ratio, [3, 2, 1], [1, 1, 0]) == pytest.approx(1)
    assert value_of(prediction_rejection_ratio, [1, 1, 1], [1, 1, 0]) == pytest.approx(0)


def test_average_precision_by_hand() -> None:
    # Of three thresholds: recall 1/2 at precision 1, the same at 1/2, 1 at 2/3.
    assert value_of(average_precision, [3, 2, 1], [1, 0, 1]) == pytest.approx(0.5 + 0.5 * 2 / 3)


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_not_defined_is_nothing(name: str) -> None:
    measure = MEASURES[name]
    one_class = value_of(measure, [0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert one_class is None if name not in ("brier", "ece") else one_class is not None
    assert value_of(measure, [], []) is None
    assert np.isnan(measure([0.1, 0.2], [0.0, 1.0])(np.zeros((1, 2)))).all()
    with pytest.raises(ValueError, match="two samples of one length"):
        measure([1.0, 2.0], [1.0, 2.0, 3.0])


def test_a_constant_score_has_no_correlation() -> None:
    for measure in (pearson, spearman, kendall_tau_b):
        assert value_of(measure, [0.3] * 5, [0, 1, 0, 1, 1]) is None
    assert value_of(auroc, [0.3] * 5, [0, 1, 0, 1, 1]) == 0.5
