"""Corrected shares: by hand, beside the formulas of the papers, and how often intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.statistics.corrected import (
    LabelCorrectedShare,
    assign_strata,
    design_effect,
    difference_of_rates,
    error_bounds,
    prediction_powered,
    rogan_gladen,
    strata_bounds,
)

NAN = math.nan


def made(seed: int, share: float, se: float, sp: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    right = rng.random(n) < share
    return right, rng.random(n) < np.where(right, se, 1 - sp)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_share_by_hand() -> None:
    # Six of ten answers are called good. Of the good ones 2 of 3 labels are right, of the others
    # 1 of 2: 0.6 * 2/3 + 0.4 * 1/2 = 0.6.
    said = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    labels = np.array([1, 1, 0, NAN, NAN, NAN, 1, 0, NAN, NAN])
    found = prediction_powered(said, labels, np.arange(10), rng())
    assert found.value == pytest.approx(0.6)
    assert found.influence.sum() == pytest.approx(0, abs=1e-12)
    assert found.interval is not None
    assert found.interval[0] < 0.25
    assert found.interval[1] > 0.85


def test_of_two_verdicts_it_is_ppi_with_the_lambda_of_the_least_variance() -> None:
    right, good = made(1, 0.7, 0.8, 0.75, 900)
    n = 90
    y, f, others = right[:n].astype(float), good[:n].astype(float), good[n:].astype(float)
    # PPI++ (Angelopoulos, Duchi and Zrnic 2023): lambda = cov(y, f) / ((1 + n / N) var(f))
    tuned = np.cov(y, f)[0, 1] / ((1 + n / len(others)) * f.var(ddof=1))
    expected = y.mean() + tuned * (others.mean() - f.mean())
    labels = np.where(np.arange(900) < n, right, NAN)
    found = prediction_powered(assign_strata(good), labels, np.arange(900), rng())
    assert found.value == pytest.approx(expected)
    # its variance: that of y - lambda f over n, that of lambda f over N
    variance = (y - tuned * f).var() / n + tuned**2 * others.var() / len(others)
    assert float(found.influence @ found.influence) == pytest.approx(variance, rel=0.1)


def test_rogan_gladen_by_hand() -> None:
    # q = 0.6, se = 0.9, 1 - sp = 0.2: p = 0.4 / 0.7
    good = np.arange(1000) < 600
    right = np.arange(200) < 100
    called = np.concatenate([np.arange(100) < 90, np.arange(100) < 20])
    found = rogan_gladen(good, np.arange(1000), (called, right, 5000 + np.arange(200)), rng())
    assert found.value == pytest.approx(4 / 7)
    # the delta method (Rogan and Gladen 1978): q (1-q) / n + p^2 se (1-se) / n1 + ..., over J^2
    p = 4 / 7
    variance = (0.24 / 1000 + p**2 * 0.09 / 100 + (1 - p) ** 2 * 0.16 / 100) / 0.49
    assert float(found.influence @ found.influence) == pytest.approx(variance)
    assert found.interval is not None
    half = 1.96 * math.sqrt(variance)
    assert found.interval == pytest.approx((p - half, p + half), abs=0.02)


def test_a_judge_no_better_than_chance_tells_nothing() -> None:
    right, called = made(2, 0.5, 0.5, 0.5, 60)
    found = rogan_gladen(called, np.arange(60), (called, right, np.arange(60)), rng())
    assert found.interval is not None
    assert found.interval[1] - found.interval[0] > 0.9
    turned = rogan_gladen(called, np.arange(60), (called, ~called, np.arange(60)), rng())
    assert math.isnan(turned.value)
    assert difference_of_rates(found, turned)[1] is None


def test_errors_that_cannot_be_those_of_these_answers_give_no_interval() -> None:
    # all is called good, but of right answers only half were, of wrong ones none
    assert error_bounds(np.array([[5000, 0], [500, 500], [0, 1000]]), rng()) is None


def test_scores_are_parted_by_value_or_in_three() -> None:
    assert assign_strata([0.0, 1.0, 1.0]).tolist() == [0, 1, 1]
    assert assign_strata([2.0, 2.0]).tolist() == [0, 0]
    assert np.bincount(assign_strata(np.arange(90) / 90)).tolist() == [30, 30, 30]
    assert set(assign_strata([0.0] * 80 + [0.1, 0.2, 0.3, 0.4]).tolist()) == {0, 1}


def test_answers_of_a_unit_are_worth_less() -> None:
    alone = design_effect(np.array([1.0, 1, -1, -1]), np.arange(4))
    assert alone == 1.0
    moved = np.tile([1.0, 1, -1, -1], 200)
    assert design_effect(moved, np.repeat(np.arange(400), 2)) == pytest.approx(2, rel=0.01)
    assert design_effect(np.tile([1.0, -1], 200), np.repeat(np.arange(200), 2)) == 1.0
    assert design_effect(np.zeros(6), np.array([0, 0, 1, 1, 2, 2])) == pytest.approx(2)
    right, good = made(3, 0.6, 0.8, 0.8, 200)
    right, good = np.repeat(right, 3), np.repeat(good, 3)
    labels = np.where(np.arange(600) < 150, right, NAN)
    by_answer = prediction_powered(assign_strata(good), labels, np.arange(600), rng())
    by_question = prediction_powered(assign_strata(good), labels, np.arange(600) // 3, rng())
    assert by_answer.interval is not None
    assert by_question.interval is not None
    wider = np.diff(by_question.interval)[0] / np.diff(by_answer.interval)[0]
    assert wider == pytest.approx(math.sqrt(3), rel=0.1)


def test_a_difference_of_paired_runs_is_known_better() -> None:
    right, good = made(4, 0.7, 0.85, 0.8, 1000)
    labels = np.where(np.arange(1000) < 200, right, NAN)
    one = prediction_powered(assign_strata(good), labels, np.arange(1000), rng())
    other = one._replace(units=one.units + 1000)
    paired, apart = difference_of_rates(one, one), difference_of_rates(one, other)
    assert paired[0] == apart[0] == 0
    assert paired[1] is not None
    assert apart[1] is not None
    assert paired[1][1] - paired[1][0] < 0.01 < apart[1][1] - apart[1][0]
    known = LabelCorrectedShare(0.5, (0.4, 0.6), np.array([0.05, -0.05]), np.array([0, 1]))
    change = difference_of_rates(known, known._replace(value=0.7, interval=(0.6, 0.8)))
    assert change[0] == pytest.approx(0.2)
    assert change[1] == pytest.approx((0.2, 0.2))


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0.0, 1.0, NAN])), min_size=1, max_size=40
    ),
    st.integers(0, 9),
)
def test_the_value_is_within_its_interval(rows: list[tuple[int, float]], label: int) -> None:
    said, labels = (np.array(one) for one in zip(*rows, strict=True))
    labels[0] = float(label > 4)
    found = prediction_powered(assign_strata(said), labels, np.arange(len(rows)), rng())
    assert found.interval is not None
    assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1


@pytest.mark.parametrize(("share", "accuracy"), [(0.05, 0.6), (0.1, 0.95), (0.5, 0.8)])
def test_intervals_from_50_labels_hold(share: float, accuracy: float) -> None:
    """The whole table: lab/benchmarks/corrected.py."""
    draws, hits = 150, 0
    random = np.random.default_rng(5)
    cells = np.outer([share, 1 - share], [accuracy, 1 - accuracy]).ravel()[[0, 1, 3, 2]]
    counts = random.multinomial(50, cells, draws)  # right good, right not, wrong good, wrong not
    good = random.binomial(950, cells[0] + cells[2], draws) + counts[:, 0] + counts[:, 2]
    all_ = np.stack([1000 - good, good], axis=1).astype(float)
    right = counts[:, [1, 0]].astype(float)
    low, high = strata_bounds(all_, right, right + counts[:, [3, 2]], random)
    hits = int(((low <= share) & (share <= high)).sum())
    assert hits / draws > 0.89
