"""Decisions before the last value: by hand, and by counting every order of small sets of values."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.statistics import Bools
from trustassay.statistics.sequential import (
    decide_sides,
    mean_interval_at_any_n,
    min_further_values,
)

FULL = bool(os.environ.get("FULL_TESTS"))


def test_the_capital_of_both_bets_by_hand() -> None:
    # N = 10, b = 1/2, all values 0: C is 5/10, 5/9, 5/8, 5/7, and the bets that values lie below it
    # make 1 + C / (1 - C) with all and 1 + C / (2 (1 - C)) with half of what may be bet
    all_in = 2 * 2.25 * (8 / 3) * 3.5  # 42
    half = 1.5 * 1.625 * (1 + 5 / 6) * 2.25  # 10.05
    capital = (all_in + half) / 2  # 26.03
    zeros = np.zeros(4)
    assert decide_sides(zeros, 0.5, 10, 1 - 1 / (capital - 0.01)).tolist() == [0, 0, 0, -1]
    assert decide_sides(zeros, 0.5, 10, 1 - 1 / (capital + 0.01)).tolist() == [0, 0, 0, 0]
    assert decide_sides(1 - zeros, 0.5, 10, 1 - 1 / (capital - 0.01)).tolist() == [0, 0, 0, 1]


def test_with_certainty_only_what_cannot_change_is_told() -> None:
    # after six of ten zeros four ones give .4; after five .5, which is on the line
    assert decide_sides(np.zeros(7), 0.5, 10, 1.0).tolist() == [0] * 5 + [-1] * 2
    assert decide_sides(np.ones(7), 0.5, 10, 1.0).tolist() == [0] * 5 + [1] * 2


def wrongly_told(values: np.ndarray, line: float, confidence: float) -> Bools:
    """Return for each row whether the first side that is told is not that of all values."""
    told = decide_sides(values, line, values.shape[1], confidence)
    first = told[np.arange(len(told)), (told != 0).argmax(axis=1)]
    truth = np.where(values.mean(axis=1) >= line - 1e-9, 1, -1)
    wrong: Bools = (first != 0) & (first != truth)
    return wrong


@pytest.mark.parametrize("line", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.95])
@pytest.mark.parametrize(("n", "levels"), [(12, (0, 1)), (8, (0, 0.4, 1)), (6, (0, 0.1, 0.6, 1))])
def test_the_promise_over_all_orders_of_any_values(
    n: int, levels: tuple[float, ...], line: float, confidence: float
) -> None:
    """Every set of n values, in each of its orders: exact, nothing is simulated."""
    values = np.array(list(product(levels, repeat=n)), dtype=float)
    share = defaultdict[tuple[float, ...], list[bool]](list)
    for row, wrong in zip(values, wrongly_told(values, line, confidence), strict=True):
        share[tuple(sorted(row))].append(bool(wrong))
    assert max(np.mean(one) for one in share.values()) <= 1 - confidence + 1e-12


@pytest.mark.parametrize("mean", [0.2, 0.45, 0.5, 0.55])
def test_the_promise_for_independent_replies(mean: float) -> None:
    values = (np.random.default_rng(1).random((4000, 20)) < mean).astype(float)
    wrong, told = wrongly_told(values, 0.5, 0.95), decide_sides(values, 0.5, 20, 0.95)
    assert wrong.mean() <= 0.05
    asked = np.where((told != 0).any(axis=1), (told != 0).argmax(axis=1) + 1, 20).mean()
    assert asked < (11 if mean == 0.2 else 18)  # and it does spare some


@given(
    st.lists(st.sampled_from([0, 0.2, 0.5, 0.9, 1]), min_size=1, max_size=9),
    st.sampled_from([0.25, 0.5, 0.8]),
    st.sampled_from([0.8, 0.95, 1.0]),
)
def test_what_is_certain_holds_whatever_follows(
    values: list[float], line: float, confidence: float
) -> None:
    side = decide_sides(values, line, 10, 1.0)[-1]
    left = 10 - len(values)
    for rest in (0.0, 1.0):
        mean = (sum(values) + left * rest) / 10
        assert not (side == -1 and mean >= line)
        assert not (side == 1 and mean < line - 1e-9)
    told = decide_sides(values, line, 10, confidence)[-1]
    assert told == 0 or (told == 1) == (np.mean(values) >= line)


@pytest.mark.parametrize("line", [0.3, 0.5])
def test_so_many_can_be_asked_at_once_and_none_is_too_many(line: float) -> None:
    n = 9
    every = np.array(list(product((0, 0.3, 1), repeat=n)), dtype=float)
    told = decide_sides(every, line, n, 0.9) != 0
    for known in ([], [0.0], [1.0, 0.0], [0.3, 1.0, 0.0]):
        t = len(known)
        begun = np.all(every[:, :t] == known, axis=1) & ~told[:, :t].any(axis=1)
        first = np.where(told.any(axis=1), told.argmax(axis=1) + 1, n)[begun].min()
        assert min_further_values(known, line, n, 0.9) == first - t


def test_an_interval_for_all_sizes_holds_at_all_of_them() -> None:
    low, high = mean_interval_at_any_n(0, 100)
    assert low == 0
    # by hand: B(1/2, 100.5) / pi (1 - p)^-100 = 20
    held = math.exp(math.lgamma(0.5) + math.lgamma(100.5) - math.lgamma(101)) / math.pi
    assert (1 - high) ** -100 * held == pytest.approx(20, rel=0.02)
    assert mean_interval_at_any_n(100, 100) == pytest.approx((1 - high, 1.0))
    rng = np.random.default_rng(3)
    missed, runs = 0, 2000 if FULL else 30
    for _ in range(runs):
        sums = rng.binomial(1, 0.1, 300).cumsum()
        looks = range(20, 300, 20)
        held_all = [mean_interval_at_any_n(float(sums[n - 1]), n) for n in looks]
        missed += any(not a <= 0.1 <= b for a, b in held_all)
    assert missed / runs <= 0.05
