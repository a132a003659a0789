"""Measures against scipy and scikit-learn, their definitions, and worked by hand."""

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
from trustassay.statistics.correlation import (
    MEASURES,
    WEIGHTED_MEASURES,
    auroc,
    kendall_tau_b,
    pearson,
    pearson_p_value,
    ranks,
    roc_curve,
    spearman,
    value_of,
    weighted_auroc,
    weighted_average_precision,
    weighted_brier_score,
    weighted_calibration_error,
    weighted_kendall_tau_b,
    weighted_pearson,
    weighted_prediction_rejection_ratio,
    weighted_spearman,
)

stats = needed("scipy.stats")

CASES = [
    (seed, n, levels) for seed in range(3) for n, levels in ((2, 9), (7, 3), (60, 4), (200, 10**6))
]


def samples(seed: int, n: int, levels: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n).astype(float)
    return x, (x + rng.integers(0, levels, n)) // 2


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 5e307])
def test_pearson_does_not_depend_on_the_size_of_numbers(size: float) -> None:
    """r of (1, 2, 3) and (1, 3, 2) is 1/2."""
    x, y = np.array([1.0, 2, 3]), np.array([1.0, 3, 2])
    assert pearson(x * size, y) == pytest.approx(0.5, rel=1e-3)
    assert pearson(x * size, y * size) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(("seed", "n", "levels"), CASES)
def test_correlations_are_scipys(seed: int, n: int, levels: int) -> None:
    x, y = samples(seed, n, levels)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert pearson(x, y) is spearman(x, y) is kendall_tau_b(x, y) is None
        return
    found = pearson(x, y)
    assert found == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)
    assert ranks(x).tolist() == stats.rankdata(x).tolist()
    if n > 2:
        assert found is not None
        assert pearson_p_value(found, n) == pytest.approx(stats.pearsonr(x, y).pvalue, rel=1e-9)


@pytest.mark.parametrize(("seed", "n", "levels"), CASES)
def test_auroc_is_the_share_of_pairs_in_order(seed: int, n: int, levels: int) -> None:
    scores, other = samples(seed, n, levels)
    labels = (other > np.median(other)).astype(float)
    pairs = [
        (scores[i] > scores[j]) + (scores[i] == scores[j]) / 2
        for i in np.flatnonzero(labels)
        for j in np.flatnonzero(labels == 0)
    ]
    expected = pytest.approx(np.mean(pairs), abs=1e-12) if pairs else None
    assert auroc(scores, labels) == expected


def test_tau_b_by_hand() -> None:
    # Pairs in order: (1,2) x and y, (1,3) x alone, (2,3) against; ties: y of the first and third.
    assert kendall_tau_b([1, 2, 3], [1, 2, 1]) == pytest.approx((1 - 1) / math.sqrt(3 * 2))
    assert kendall_tau_b([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)


def test_what_is_not_defined_is_none_and_what_does_not_fit_is_refused() -> None:
    for measure in MEASURES.values():
        assert measure([], []) is None
        assert measure([1.0, 1.0, 1.0], [1, 1, 1]) is None
        with pytest.raises(ValueError, match="two samples of the same length"):
            measure([1, 2], [1, 2, 3])
    assert pearson([0.1 + 0.2, 0.3 + 0.0], [0, 1]) is not None
    assert pearson([0, 0, 0], [0, 1, 1]) is None
    assert auroc([0, 0, 0], [0, 1, 1]) == 0.5
    assert pearson_p_value(0.7, 2) == 1
    assert pearson_p_value(1.0, 10) == 0
    assert pearson_p_value(0.0, 10) == 1


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 1)), min_size=2, max_size=25))
def test_all_keep_their_bounds_and_turn_with_the_sign(pairs: list[tuple[int, int]]) -> None:
    x, y = map(list, zip(*pairs, strict=True))
    turned = [-value for value in x]
    for name, measure in MEASURES.items():
        value, other = measure(x, y), measure(turned, y)
        if value is None or other is None:
            assert value is other
            continue
        low, middle = (0, 0.5) if name == "AUROC" else (-1, 0)
        assert low <= value <= 1
        assert value + other == pytest.approx(2 * middle, abs=1e-9)


def test_spearman_pearson_and_tau_b_of_two_binary_samples_are_the_same() -> None:
    x, y = zip(*itertools.product((0, 1), (0, 1)), (1, 1), (0, 0), strict=True)
    assert pearson(x, y) == pytest.approx(spearman(x, y)) == pytest.approx(kendall_tau_b(x, y))


metrics = needed("sklearn.metrics")

GRADED_CASES = [
    (seed, n, levels) for seed in range(3) for n, levels in ((9, 3), (60, 5), (150, 10**6))
]


def made(seed: int, n: int, levels: int) -> tuple[Any, Any, Any]:
    """Return scores from 0 to 1 with ties, labels of two classes, and graded labels."""
    rng = np.random.default_rng([seed, n])
    scores = rng.integers(0, levels, n) / levels
    right = (scores + rng.random(n) > 1).astype(float)
    right[:2] = 0, 1
    return scores, right, np.round(3 * scores + 3 * rng.random(n))


@pytest.mark.parametrize(("seed", "n", "levels"), GRADED_CASES)
def test_figures_are_those_of_scipy_and_scikit_learn(seed: int, n: int, levels: int) -> None:
    x, y, z = made(seed, n, levels)
    expected = {
        weighted_auroc: metrics.roc_auc_score(y, x),
        weighted_average_precision: metrics.average_precision_score(y, x),
        weighted_brier_score: metrics.brier_score_loss(y, x),
        weighted_kendall_tau_b: stats.kendalltau(x, y).statistic,
        weighted_spearman: stats.spearmanr(x, y).statistic,
        weighted_pearson: stats.pearsonr(x, y).statistic,
        weighted_calibration_error: calibration.calibration_error(x, y),
    }
    for measure, value in expected.items():
        assert value_of(measure, x, y) == pytest.approx(value, abs=1e-12)
    assert value_of(weighted_kendall_tau_b, x, z) == pytest.approx(stats.kendalltau(x, z).statistic)
    assert value_of(weighted_spearman, x, z) == pytest.approx(stats.spearmanr(x, z).statistic)


@pytest.mark.parametrize(("seed", "n", "levels"), GRADED_CASES)
@pytest.mark.parametrize("name", WEIGHTED_MEASURES)
def test_a_weight_counts_an_answer_so_many_times(name: str, seed: int, n: int, levels: int) -> None:
    x, right, graded = made(seed, n, levels)
    weights = np.random.default_rng(1).integers(0, 4, (8, n)).astype(float)
    weights[0] = 0
    weights[1, 1:] = 0
    for y in (right,) if name in ("auroc", "auprc", "brier", "ece") else (right, graded):
        found = WEIGHTED_MEASURES[name](x, y)(weights)
        for row, value in zip(weights, found, strict=True):
            repeated = np.repeat(np.arange(n), row.astype(int))
            alone = (
                value_of(WEIGHTED_MEASURES[name], x[repeated], y[repeated])
                if len(repeated)
                else None
            )
            expected = math.nan if alone is None else pytest.approx(alone, abs=1e-10)
            assert (math.isnan(value) and alone is None) or value == expected


def test_tau_b_by_the_matrix_is_tau_b_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, 80).astype(float), rng.integers(0, 30, 80).astype(float)
    weights = rng.integers(0, 3, (20, 80)).astype(float)
    by_matrix = weighted_kendall_tau_b(x, y)(weights)
    monkeypatch.setattr("trustassay.statistics.correlation.MAX_ANSWERS_FOR_MATRIX", 0)
    assert weighted_kendall_tau_b(x, y)(weights) == pytest.approx(by_matrix, abs=1e-12)
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

    found = value_of(weighted_prediction_rejection_ratio, scores, labels)
    random = area([0.0] * len(rows))
    if len(set(labels)) == 1:
        assert found is None
    else:
        expected = (area(scores) - random) / (area(labels) - random)
        assert found == pytest.approx(expected, abs=1e-9)


def test_prr_by_hand() -> None:
    # Kept from the highest score on: 1, 1/2, 2/3; at random 2/3 each; at best 1, 1, 2/3.
    # (1 + 1/2 + 2/3 - 2) / (1 + 1 + 2/3 - 2) = (1/6) / (2/3)
    assert value_of(weighted_prediction_rejection_ratio, [3, 2, 1], [1, 0, 1]) == pytest.approx(
        0.25
    )
    assert value_of(weighted_prediction_rejection_ratio, [3, 2, 1], [1, 1, 0]) == pytest.approx(1)
    assert value_of(weighted_prediction_rejection_ratio, [1, 1, 1], [1, 1, 0]) == pytest.approx(0)


def test_average_precision_by_hand() -> None:
    # Of three thresholds: recall 1/2 at precision 1, the same at 1/2, 1 at 2/3.
    assert value_of(weighted_average_precision, [3, 2, 1], [1, 0, 1]) == pytest.approx(
        0.5 + 0.5 * 2 / 3
    )


@pytest.mark.parametrize("name", WEIGHTED_MEASURES)
def test_what_is_not_defined_is_nothing(name: str) -> None:
    measure = WEIGHTED_MEASURES[name]
    one_class = value_of(measure, [0.1, 0.2, 0.3], [1.0, 1.0, 1.0])
    assert one_class is None if name not in ("brier", "ece") else one_class is not None
    assert value_of(measure, [], []) is None
    assert np.isnan(measure([0.1, 0.2], [0.0, 1.0])(np.zeros((1, 2)))).all()
    with pytest.raises(ValueError, match="two samples of the same length"):
        measure([1.0, 2.0], [1.0, 2.0, 3.0])


def test_a_constant_score_has_no_correlation() -> None:
    for measure in (weighted_pearson, weighted_spearman, weighted_kendall_tau_b):
        assert value_of(measure, [0.3] * 5, [0, 1, 0, 1, 1]) is None
    assert value_of(weighted_auroc, [0.3] * 5, [0, 1, 0, 1, 1]) == 0.5


def test_roc_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, 80).astype(float)
    labels = (scores + rng.normal(0, 3, 80) > 3).astype(float)
    found = roc_curve(scores, labels)
    expected = metrics.roc_curve(labels, scores, drop_intermediate=False)
    assert found[0] == pytest.approx(expected[0])
    assert found[1] == pytest.approx(expected[1])
    with pytest.raises(ValueError, match="both classes"):
        roc_curve([1, 2], [1, 1])
