"""Thresholds with a guarantee: by hand, p-values against scipy, and that the promise holds.

``python -m lab.benchmarks.calibrating`` has the simulation at full size.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.conformal import (
    binomial_p_value,
    fewest_questions,
    fewest_questions_of_expected,
    questions_needed,
    risk_control_threshold,
    selective_threshold,
)
from trustassay.statistics.conformal import choose_test_counts as counts_of
from trustassay.statistics.regression import sigmoid

NAN = np.nan
stats = needed("scipy.stats")


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.floats(0.001, 0.999))
def test_binomial_as_scipy(wrong: int, accepted: int, alpha: float) -> None:
    reference = stats.binom.cdf(wrong, accepted, alpha)
    assert binomial_p_value(wrong, accepted, alpha) == pytest.approx(reference, rel=1e-6, abs=1e-12)


def test_how_many_questions_are_needed() -> None:
    # 0.95^58 = 0.0510 and 0.95^59 = 0.0485
    assert fewest_questions(0.05, 0.05) == 59
    assert fewest_questions(0.5, 0.5) == 1
    assert fewest_questions_of_expected(0.05) == 19
    assert counts_of(58, 0.05, 0.05) == []
    assert counts_of(60, 0.05, 0.05) == [59]
    counts = counts_of(1000, 0.05, 0.05)
    assert counts[0] == fewest_questions(0.05, 0.05 / len(counts)) and counts[-1] == 1000


def test_selective_threshold_by_hand() -> None:
    # of 100 questions two thresholds are tested, with 72 accepted and with 100
    assert counts_of(100, 0.05, 0.05) == [72, 100]
    scores = np.arange(100.0)
    wrong = (scores < 20).astype(float)
    found = selective_threshold(scores, wrong, range(100), alpha=0.05, delta=0.05)
    assert found is not None
    assert (found.above, found.questions, found.answers, found.wrong) == (27, 72, 72, 0)
    assert found.p == pytest.approx(0.95**72)
    wrong[50] = 1  # one wrong answer among the best 72 is too many
    assert selective_threshold(scores, wrong, range(100), alpha=0.05, delta=0.05) is None
    every = selective_threshold(scores, np.zeros(100), range(100), alpha=0.05, delta=0.05)
    assert every is not None and every.above == -math.inf and every.answers == 100


def test_ties_and_missing_scores() -> None:
    # 80 of 100 share the highest score: all or none of them are accepted
    scores = np.array([1.0] * 80 + [0.0] * 10 + [NAN] * 10)
    wrong = np.array([0.0] * 80 + [1.0] * 20)
    found = selective_threshold(scores, wrong, range(100), alpha=0.05, delta=0.05)
    assert found is None  # of 72 none lies above the 73rd; of 100, ten are wrong
    more = selective_threshold(
        np.tile(scores, 2), np.tile(wrong, 2), range(200), alpha=0.05, delta=0.05
    )
    assert more is not None and more.above == 0 and more.answers == 160


def test_answers_without_a_score_are_never_accepted() -> None:
    scores = np.array([NAN] * 50 + [1.0] * 100)
    wrong = np.array([1.0] * 50 + [0.0] * 100)
    found = selective_threshold(scores, wrong, range(150), alpha=0.05, delta=0.05)
    assert found is not None and found.above == -math.inf and found.answers == 100


def test_questions_with_several_answers_are_one_unit() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    wrong = (scores < 0.3).astype(float)
    alone = selective_threshold(scores, wrong, range(300), alpha=0.1, delta=0.1)
    doubled = selective_threshold(
        np.repeat(scores, 2), np.repeat(wrong, 2), np.repeat(range(300), 2), alpha=0.1, delta=0.1
    )
    assert alone is not None and doubled is not None
    # the same answers twice say nothing new
    assert doubled.above == alone.above
    assert (doubled.questions, doubled.answers) == (alone.questions, 2 * alone.answers)
    assert doubled.p == alone.p


def test_accepted_and_wrong_by_hand() -> None:
    # n = 39 and alpha = 0.1: at most 3 may be lost, (3 + 1) / 40
    scores = np.arange(39.0)
    wrong = np.isin(scores, (35, 30, 25, 20, 15)).astype(float)
    found = risk_control_threshold(scores, wrong, range(39), alpha=0.1)
    assert found is not None and found.above == 20 and found.wrong == 3
    assert risk_control_threshold(scores[:8], wrong[:8], range(8), alpha=0.1) is None
    every = risk_control_threshold(scores, 0 * wrong, range(39), alpha=0.1)
    assert every is not None and every.above == -math.inf and every.answers == 39


def test_how_many_labels_would_do() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(120)
    wrong = (rng.random(120) < 0.3 * (1 - scores) ** 3).astype(float)
    assert selective_threshold(scores, wrong, range(120), alpha=0.05, delta=0.05) is None
    needed = questions_needed(scores, wrong, range(120), alpha=0.05, delta=0.05)
    assert needed is not None and 150 < needed < 1000
    assert questions_needed(scores, np.ones(120), range(120), alpha=0.05, delta=0.05) is None


def draw(rng: np.random.Generator, n: int, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and wrong answers, in which the very best scores are wrong more often."""
    scores = rng.normal(size=n) + rng.normal(size=(answers, n)) / 2
    chance = np.where(scores > 1.5, 0.08, sigmoid(-3 * scores - 2))
    shared = rng.random(n)
    return scores, shared < chance


@pytest.mark.parametrize("answers", [1, 2])
def test_the_promise_about_accepted_answers_holds(answers: int) -> None:
    rng = np.random.default_rng(7)
    population = draw(rng, 100_000, answers)
    broken = passed = 0
    for _ in range(300):
        scores, wrong = draw(rng, 200, answers)
        found = selective_threshold(
            scores.ravel(),
            wrong.ravel(),
            np.tile(range(200), answers),
            alpha=0.1,
            delta=0.1,
            rng=rng,
        )
        if found:
            passed += 1
            taken = population[0] > found.above
            any_taken = taken.any(axis=0)
            shares = (population[1] & taken).sum(axis=0)[any_taken] / taken.sum(axis=0)[any_taken]
            broken += shares.mean() > 0.1
    assert passed > 60
    assert broken <= 300 * 0.1 + 3 * math.sqrt(300 * 0.1 * 0.9)


def test_the_promise_about_all_answers_holds() -> None:
    rng = np.random.default_rng(8)
    scores, wrong = draw(rng, 200_000, 2)
    losses = []
    for _ in range(400):
        few, bad = draw(rng, 60, 2)
        found = risk_control_threshold(few.ravel(), bad.ravel(), np.tile(range(60), 2), alpha=0.1)
        assert found
        losses.append((wrong & (scores > found.above)).mean())
    error = float(np.std(losses)) / 20
    assert 0.1 - 0.03 < np.mean(losses) <= 0.1 + 3 * error


def test_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        selective_threshold([1], [0], [0], alpha=1, delta=0.1)
    with pytest.raises(ValueError, match="else 0"):
        selective_threshold([1], [0.5], [0], alpha=0.1, delta=0.1)
    with pytest.raises(ValueError, match="of each answer"):
        risk_control_threshold([1, 2], [0], [0], alpha=0.1)
