"""Intervals and tests of AUROCs, held against the definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from trustassay.statistics.auroc import (
    MIN_UNITS_OF_CLASS,
    _compute_placements,
    auroc_difference,
    auroc_interval,
    mean_auroc_interval,
)
from trustassay.statistics.correlation import auroc

Z = 1.959964


def drawn(n: int = 40, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(float)
    first = np.round(rng.normal(size=n) + labels, 1)
    return first, np.round(first + rng.normal(size=n), 1), labels


def test_the_variance_is_delongs() -> None:
    """Placement values by comparing every pair; S10 / m + S01 / n (DeLong et al. 1988)."""
    x, other, y = drawn()
    both = []
    for scores in (x, other):
        kernel = (scores[y > 0][:, None] > scores[y == 0]) + 0.5 * (
            scores[y > 0][:, None] == scores[y == 0]
        )
        both.append((kernel.mean(axis=1), kernel.mean(axis=0)))
    expected = sum(np.cov(a, b)[0, 1] / len(a) for a, b in zip(both[0], both[1], strict=True))
    one, two = _compute_placements(x, y, None), _compute_placements(other, y, None)
    assert one.value == pytest.approx(auroc(x, y))
    assert one.covariance(two) == pytest.approx(expected)


@pytest.mark.parametrize(("m", "n"), [(5, 5), (10, 30)])
def test_the_interval_of_a_perfect_order_is_newcombes(m: int, n: int) -> None:
    found = auroc_interval(np.arange(m + n), np.arange(m + n) >= n)
    assert isinstance(found, tuple)
    t, size = found[0], (m + n) / 2
    variance = t * (1 - t) * (1 + (size - 1) * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n)
    assert 1 - t == pytest.approx(Z * math.sqrt(variance), rel=1e-5)
    assert found[1] == 1
    mirrored = auroc_interval(-np.arange(m + n), np.arange(m + n) >= n)
    assert mirrored == pytest.approx((0, 1 - t))


def test_answers_of_one_unit_count_as_one() -> None:
    x, _, y = drawn()
    single = auroc_interval(x, y)
    repeated = np.repeat(x, 3), np.repeat(y, 3)
    units = np.repeat(np.arange(len(x)), 3)
    assert auroc_interval(*repeated, units) == pytest.approx(single)
    assert auroc_interval(x, y, np.full(len(x), -1)) == single
    narrow = auroc_interval(*repeated)
    assert isinstance(narrow, tuple) and isinstance(single, tuple)
    assert narrow[1] - narrow[0] < 0.7 * (single[1] - single[0])


def test_few_units_of_a_class_have_no_interval() -> None:
    n = 2 * MIN_UNITS_OF_CLASS
    scores, labels = np.arange(n), np.arange(n) % 2
    units = np.where(labels > 0, 0, -1)
    words = "too few independent answers of one kind: 1; at least 5 are needed"
    assert auroc_interval(scores, labels, units) == words
    assert auroc_interval(scores, np.ones(n)) == words.replace("1;", "0;")
    told = auroc_difference(scores, -scores, labels, units)
    assert (told.interval, told.p, told.without) == (None, None, words)
    with pytest.raises(ValueError, match="of the same length"):
        auroc_interval([1, 2], [1])


def test_the_mean_of_one_score_against_two_raters_lies_between() -> None:
    x, other, y = drawn(80)
    units = np.arange(80)
    each = [auroc_interval(one, y) for one in (x, other)]
    both = mean_auroc_interval([(x, y, units), (other, y, units)])
    assert isinstance(both, tuple)
    assert sorted([each[0], both, each[1]]) in ([each[0], both, each[1]], [each[1], both, each[0]])


def test_p_is_below_5_percent_where_the_interval_leaves_0_out() -> None:
    sides = set()
    for seed, n in itertools.product(range(15), (20, 60)):
        x, other, y = drawn(n, seed)
        other = np.random.default_rng(seed).normal(size=n) + other / 5
        told = auroc_difference(x, other, y)
        assert told.interval is not None and told.p is not None
        assert told.value == pytest.approx((auroc(x, y) or 0) - (auroc(other, y) or 0))
        low, high = told.interval
        assert low <= told.value <= high
        assert (told.p < 0.05) == (not low <= 0 <= high)
        sides.add(told.p < 0.05)
    assert sides == {True, False}


def test_scores_that_order_these_answers_alike_may_differ_on_others() -> None:
    x, _, y = drawn()
    same = auroc_difference(x, np.exp(x), y)
    assert (same.value, same.p) == (0, 1)
    assert same.interval is not None and 0.02 < same.interval[1] < 0.15
    perfect = auroc_difference(y + 0.1 * x, y + 0.1 * x**2, y)  # another order within classes
    assert perfect.value == 0 and perfect.p == 1
    assert perfect.interval is not None and perfect.interval[1] > 0.1
