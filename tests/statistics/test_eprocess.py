"""E-processes: hand-computed bets, promises by exact enumeration and simulation, changes found."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.statistics import eprocess
from trustassay.statistics.eprocess import (
    answers_evidence,
    change_day,
    probe_evidence,
    starts_evidence,
)


def test_a_bet_against_a_line_by_hand() -> None:
    """One day, 3 bad of 4 against 1/2: the mean over lifts of e^(3 l) / ((1 + e^l) / 2)^4 / 365."""
    lifts = eprocess.LIFTS
    by_hand = np.mean(np.exp(3 * lifts) / ((1 + np.exp(lifts)) / 2) ** 4) / 365
    assert answers_evidence([3], [4], line=0.5) == pytest.approx([math.log(by_hand)])
    # a second day joins the bet of the first and begins its own
    first = np.exp(3 * lifts) / ((1 + np.exp(lifts)) / 2) ** 4
    second = np.exp(1 * lifts) / ((1 + np.exp(lifts)) / 2) ** 2
    both = np.mean((first + 1) * second) / 365
    assert answers_evidence([3, 1], [4, 2], line=0.5)[-1] == pytest.approx(math.log(both))


def test_the_mean_against_a_line_grows_by_a_365th_a_day_whatever_the_values_are() -> None:
    """Values of the mean .3; the mean of E is t / 365 for 0 and 1 alone, and at most for others."""
    for values, chances in (([0.0, 1.0], [0.7, 0.3]), ([0.0, 0.5, 1.0], [0.5, 0.4, 0.1])):
        means = np.zeros(3)
        for days in itertools.product(range(len(values)), repeat=3):
            logs = answers_evidence([values[i] for i in days], [1, 1, 1], line=0.3)
            means += math.prod(chances[i] for i in days) * np.exp(logs)
        assert (means <= np.arange(1, 4) / 365 + 1e-12).all()
        if len(values) == 2:
            assert means == pytest.approx(np.arange(1, 4) / 365)


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5])
def test_the_error_of_the_baseline_is_inside_of_the_promise(p: float) -> None:
    """The mean over all outcomes of a baseline of 8 answers and two days of 4."""
    total, chances = (
        0.0,
        [[math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)] for n in (8, 4)],
    )
    s = np.array(list(itertools.product(range(9), range(5), range(5))), dtype=float)
    logs = answers_evidence(s, np.broadcast_to([8.0, 4, 4], s.shape), 1)
    weights = np.array(
        [chances[0][int(a)] * chances[1][int(b)] * chances[1][int(c)] for a, b, c in s]
    )
    total = float((weights * np.exp(logs[:, -1])).sum())
    assert total <= 2 / 365


def test_changes_are_found_and_dated() -> None:
    rng = np.random.default_rng(1)
    levels = np.where(np.arange(60) < 45, 0.2, 0.27) + np.where(np.arange(60) % 7 == 3, 0.04, 0)
    n = np.full(60, 1000.0)
    s = rng.binomial(1000, levels).astype(float)
    logs = answers_evidence(s, n, 28)
    assert logs[:16].max() < math.log(100) < logs[-8]
    starts = starts_evidence(s, n, np.arange(60) % 7, 28)
    assert np.logaddexp.reduce(starts) + eprocess.LOG_DAY_SHARE > math.log(100)
    likely, low, high = change_day(starts)
    assert low <= 45 - 28 <= high <= low + 4
    assert abs(likely - 17) <= 1
    fallen = starts_evidence(n - s, n, np.arange(60) % 7, 28)
    assert fallen[17] == -np.inf


def test_days_that_differ_by_themselves_are_no_rise() -> None:
    rng = np.random.default_rng(2)
    odds = rng.normal(-2.0, 0.2, (20, 80))
    n = np.full(odds.shape, 1000.0)
    s = rng.binomial(1000, 1 / (1 + np.exp(-odds))).astype(float)
    assert (answers_evidence(s, n, 28) > math.log(100)).any(axis=-1).mean() > 0.5
    starts = starts_evidence(s, n, np.arange(80) % 7, 28)
    assert not (np.logaddexp.reduce(starts, axis=-1) + eprocess.LOG_DAY_SHARE > math.log(100)).any()


def test_one_odd_day_is_no_alarm_and_two_are() -> None:
    n = np.full(40, 1000.0)
    s = np.random.default_rng(4).binomial(1000, 0.1, 40).astype(float)
    s[-1] = 900
    weekdays = np.zeros(40)
    alone = np.logaddexp.reduce(starts_evidence(s, n, weekdays, 28)) + eprocess.LOG_DAY_SHARE
    s[-3:] = 900
    three = np.logaddexp.reduce(starts_evidence(s, n, weekdays, 28)) + eprocess.LOG_DAY_SHARE
    assert alone < math.log(100) < three


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=9, max_size=20))
def test_any_days_give_numbers(days: list[tuple[int, int]]) -> None:
    s = np.array([min(a, b) for a, b in days], dtype=float)
    n = np.array([b for _, b in days], dtype=float)
    logs = answers_evidence(s, n, 5)
    assert logs.shape == (len(days) - 5,)
    assert np.isfinite(logs).all()
    assert (logs <= eprocess.MAX_LOG_EVIDENCE).all()
    starts = starts_evidence(s, n, np.arange(len(s)) % 3, 5)
    assert not np.isnan(starts).any()
    assert not (starts == np.inf).any()
    likely, low, high = change_day(starts)
    assert 0 <= low <= likely <= high < len(starts)


def test_probes_by_hand_and_by_all_signs() -> None:
    stakes = eprocess.STAKES
    assert probe_evidence([-1.0, -0.5]) == pytest.approx(
        math.log(np.mean((1 - stakes) * (1 - stakes / 2)))
    )
    assert probe_evidence([]) == 0
    moved = np.array([1.0, 0.5, 0.25, 1.0])
    signs = itertools.product([-1, 1], repeat=4)
    means = [math.exp(probe_evidence(moved * one)) for one in signs]
    assert np.mean(means) == pytest.approx(1)
