"""Correlations against scipy, against their definitions, and worked by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.correlation import (
    MEASURES,
    auroc,
    bootstrap_interval,
    kendall_tau_b,
    pearson,
    pearson_p,
    ranks,
    spearman,
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
        assert pearson_p(found, n) == pytest.approx(stats.pearsonr(x, y).pvalue, rel=1e-9)


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
        with pytest.raises(ValueError, match="two samples of one length"):
            measure([1, 2], [1, 2, 3])
    assert pearson([0.1 + 0.2, 0.3 + 0.0], [0, 1]) is not None
    assert pearson([0, 0, 0], [0, 1, 1]) is None
    assert auroc([0, 0, 0], [0, 1, 1]) == 0.5
    assert pearson_p(0.7, 2) == 1
    assert pearson_p(1.0, 10) == 0
    assert pearson_p(0.0, 10) == 1


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


def test_a_bootstrap_interval_holds_the_value_and_follows_its_seed() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = x + rng.normal(size=300)
    first, again = (
        bootstrap_interval(pearson, x, y, np.random.default_rng(1), 300) for _ in range(2)
    )
    assert first == again
    assert first is not None
    low, high = first
    r = pearson(x, y)
    assert r is not None
    assert low < r < high
    # Fisher's z: the standard error of atanh(r) is 1 / sqrt(n - 3).
    half = 1.96 / math.sqrt(297)
    assert low == pytest.approx(math.tanh(math.atanh(r) - half), abs=0.02)
    assert high == pytest.approx(math.tanh(math.atanh(r) + half), abs=0.02)
    assert bootstrap_interval(pearson, [1, 1], [0, 1], rng, 10) is None
    assert bootstrap_interval(pearson, [], [], rng, 10) is None
