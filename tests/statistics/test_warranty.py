"""Thresholds with a promise: the boundary by its check values and by brute force, the promise by
simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.warranty import (
    AUDIT_ALARM,
    AuditEvidence,
    choose_looks,
    compute_boundary,
    draw_one_each,
    estimate_labels_needed,
    evenly_rated_above,
    fewest_labels,
    find_grouped_threshold,
    passes_upper_half,
    walk,
)


@pytest.mark.parametrize(
    ("n", "alpha", "level", "first", "last"),
    [
        (100, 0.1, 0.0225, {0: 37, 1: 55, 2: 71}, 3),
        (200, 0.05, 0.0221, {0: 75, 1: 112, 2: 146}, 3),
        (200, 0.1, 0.0135, {0: 41, 1: 61, 2: 78, 5: 123, 10: 191}, 10),
        (1000, 0.2, 0.0048, {0: 24, 1: 34, 2: 43, 5: 67, 10: 102}, 167),
    ],
)
def test_the_boundary_has_the_published_check_values(
    n: int, alpha: float, level: float, first: dict[int, int], last: int
) -> None:
    boundary = compute_boundary(n, alpha, 0.05)
    assert boundary.level == pytest.approx(level, abs=0.00006)
    tolerated = boundary.at_each(n)
    assert {c: int(np.argmax(tolerated >= c)) + 1 for c in first} == first
    assert tolerated[-1] == last


@pytest.mark.parametrize(("n", "alpha", "delta"), [(12, 0.3, 0.1), (14, 0.2, 0.2), (10, 0.5, 0.05)])
def test_the_boundary_is_crossed_as_often_as_delta_allows(
    n: int, alpha: float, delta: float
) -> None:
    def crossing(tolerated: list[int]) -> float:
        total = 0.0
        for draws in itertools.product((0, 1), repeat=n):
            sums = itertools.accumulate(draws)
            if any(s <= c for s, c in zip(sums, tolerated, strict=True)):
                total += alpha ** sum(draws) * (1 - alpha) ** (n - sum(draws))
        return total

    boundary = compute_boundary(n, alpha, delta)
    tolerated = boundary.at_each(n).tolist()
    assert 0 < crossing(tolerated) <= delta
    # The next larger level would cross more often, or the level is delta itself.
    binom = needed("scipy.stats").binom

    larger = [int(binom.ppf(boundary.level * 1.5, k, alpha)) for k in range(1, n + 1)]
    larger = [
        c if binom.cdf(c, k, alpha) <= boundary.level * 1.5 else c - 1
        for k, c in enumerate(larger, 1)
    ]
    assert larger == tolerated or crossing(larger) > delta


def test_many_labels_are_tested_at_some_counts_alone() -> None:
    boundary = compute_boundary(20_000, 0.1, 0.05)
    assert len(boundary.counts) < 600
    assert boundary.counts[-1] == 20_000
    assert boundary.tolerated[-1] / 20_000 == pytest.approx(0.1, abs=0.007)


def test_fewest_labels_by_hand() -> None:
    assert [fewest_labels(alpha, 0.05) for alpha in (0.05, 0.1, 0.2)] == [59, 29, 14]
    with pytest.raises(ValueError, match="between 0 and 1"):
        fewest_labels(0.0, 0.05)


def test_the_walk_accepts_the_longest_part_that_passes() -> None:
    scores = np.arange(100, 0, -1) / 100
    wrong = np.zeros(100)
    assert walk(scores, wrong, alpha=0.1, delta=0.05) == (-math.inf, 100, 0)
    wrong[60:] = 1
    result = walk(scores, wrong, alpha=0.1, delta=0.05)
    assert result is not None
    tolerated = compute_boundary(100, 0.1, 0.05).at_each(100)
    errors = np.cumsum(wrong)
    longest = max(k for k in range(1, 101) if errors[k - 1] <= tolerated[k - 1])
    assert (result.accepted, result.wrong) == (longest, int(errors[longest - 1]))
    # The threshold is the score of the next answer, so the accepted ones lie above it.
    assert result.above == scores[longest]
    assert walk(scores, np.ones(100), alpha=0.1, delta=0.05) is None
    assert walk([], [], alpha=0.1, delta=0.05) is None


def test_equal_scores_are_accepted_together_or_not_at_all() -> None:
    scores = np.repeat([0.9, 0.5], 50)
    wrong = np.zeros(100)
    wrong[90:] = 1
    result = walk(scores, wrong, alpha=0.1, delta=0.05)
    assert result == (0.5, 50, 0)


@pytest.mark.parametrize(
    ("scores", "wrong", "message"),
    [
        ([0.5, math.nan], [0, 1], "finite score"),
        ([0.5], [0, 1], "for each answer"),
        ([0.5], [2], "1 where an answer is wrong"),
    ],
)
def test_the_walk_refuses(scores: list[float], wrong: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        walk(scores, wrong, alpha=0.1, delta=0.05)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.7, 0.9]), st.booleans()), max_size=80))
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_labels_does_not_matter(rows: list[tuple[float, bool]]) -> None:
    scores, wrong = ([row[at] for row in rows] for at in (0, 1))
    assert walk(scores, wrong, alpha=0.2, delta=0.1) == walk(
        scores[::-1], wrong[::-1], alpha=0.2, delta=0.1
    )


@pytest.mark.parametrize("levels", [0, 7])
@pytest.mark.parametrize("curve", ["flat", "bad top", "saw"])
def test_promises_are_broken_as_seldom_as_promised(curve: str, levels: int) -> None:
    curves: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "flat": lambda u: np.full_like(u, 0.102),
        "bad top": lambda u: np.where(u > 0.97, 0.5, 0.09),
        "saw": lambda u: 0.05 + 0.12 * ((u * 8) % 1),
    }
    rng = np.random.default_rng(5)
    population = rng.random(200_000)
    if levels:
        population = np.ceil(population * levels) / levels
    risk = curves[curve](population)
    order = np.argsort(-population, kind="stable")
    mean_above = np.cumsum(risk[order]) / np.arange(1, len(risk) + 1)
    ranked = -population[order]
    broken = 0
    draws = 600
    for _ in range(draws):
        chosen = rng.integers(0, len(population), 150)
        wrong = rng.random(150) < risk[chosen]
        result = walk(population[chosen], wrong, alpha=0.1, delta=0.05)
        if result is not None:
            count = int(np.searchsorted(ranked, -result.above, "left"))
            broken += bool(mean_above[count - 1] > 0.1)
    # 5 % and three standard errors.
    assert broken / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def test_groups_that_depend_are_one_unit() -> None:
    rng = np.random.default_rng(0)
    groups, scores = np.repeat(np.arange(60), 5), rng.random(300)

    def accept(scores: Any, wrong: Any, groups: Any, largest: Callable[[float], int]) -> Any:
        return find_grouped_threshold(
            scores, wrong, groups, alpha=0.1, delta=0.05, count_largest=largest
        )

    def largest(above: float) -> int:
        return int(np.bincount(groups[scores > above]).max())

    assert accept(scores, np.zeros(300), groups, largest) == (-math.inf, 300, 0)
    # Ten answers to each of ten questions, all of one question wrong: too few questions to tell.
    wrong = np.repeat(np.eye(1, 10)[0], 10)
    assert accept(rng.random(100), wrong, np.repeat(np.arange(10), 10), lambda _: 10) is None
    assert accept([0.9, 0.8], [0, 0], [1, 1], lambda _: 2) is None


@pytest.mark.parametrize("law", ["alike", "rare and large"])
def test_groups_keep_their_promise_about_as_often_as_said(law: str) -> None:
    rng = np.random.default_rng(3)
    broken = 0
    for _ in range(400):
        if law == "alike":
            # Questions are easy or hard: their answers are wrong together.
            groups = np.repeat(np.arange(60), 4)
            risk = np.repeat(rng.beta(0.22, 1.93, 60), 4)
        else:
            # One question in 90 has ten answers, all of them wrong.
            large = rng.random(100) < 1 / 90
            sizes = np.where(large, 10, 1)
            groups, risk = np.repeat(np.arange(100), sizes), np.repeat(large.astype(float), sizes)
        wrong = (rng.random(len(groups)) < risk).astype(float)
        result = find_grouped_threshold(
            rng.random(len(groups)),
            wrong,
            groups,
            alpha=0.1,
            delta=0.05,
            count_largest=lambda _: 4 if law == "alike" else 10,
        )
        broken += result is not None
    assert broken / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_shares_that_could_not_pass_do_not_end_the_search() -> None:
    rng = np.random.default_rng(0)
    # One of 400 questions has 12 answers: a third of the answers says too little against it.
    groups = np.concatenate([np.arange(399), np.full(12, 399)])
    scores = rng.random(len(groups))
    result = find_grouped_threshold(
        scores, np.zeros(len(groups)), groups, alpha=0.1, delta=0.05, count_largest=lambda _: 12
    )
    assert result == (-math.inf, 411, 0)


def test_looks_that_cannot_accept_are_left_out() -> None:
    assert choose_looks(0.2, 0.05, 5) == [50, 100, 200, 400, 800]
    assert choose_looks(0.1, 0.05, 5, walks=2) == [100, 200, 400, 800]
    assert choose_looks(0.05, 0.05, 5) == [100, 200, 400, 800]
    assert choose_looks(0.001, 0.05, 3) == [200]


def test_one_answer_of_each_group_is_drawn_in_proportion_to_its_size() -> None:
    groups = [0, 0, 0, 0, 1]
    counts = np.zeros(5)
    rng = np.random.default_rng(1)
    for _ in range(4000):
        counts[draw_one_each(groups, 4, rng)] += 1
    assert counts / 4000 == pytest.approx(0.25, abs=0.03)


def test_labels_chosen_by_the_score_are_noticed() -> None:
    rng = np.random.default_rng(2)
    scores = rng.random(1000)
    assert evenly_rated_above(scores, np.ones(1000, bool)) == -math.inf
    assert evenly_rated_above(scores, rng.random(1000) < 0.2) == -math.inf
    # The lower half is rated more: only the upper bands are even.
    rated = rng.random(1000) < np.where(scores < 0.35, 0.5, 0.1)
    assert evenly_rated_above(scores, rated) == pytest.approx(np.quantile(scores, 0.4), abs=0.001)
    # Only the top is rated.
    assert evenly_rated_above(scores, scores > 0.9) == pytest.approx(0.8, abs=0.02)


def test_the_labels_needed_give_a_threshold_four_times_in_five() -> None:
    rng = np.random.default_rng(7)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        scores = rng.random(n)
        return scores, (rng.random(n) < 0.22 - 0.2 * scores).astype(float)

    assert walk(*draw(60), alpha=0.1, delta=0.05) is None
    needed = estimate_labels_needed(*draw(3000), alpha=0.1, delta=0.05)
    assert needed is not None
    passed = sum(walk(*draw(needed), alpha=0.1, delta=0.05) is not None for _ in range(200))
    # The walk passes at some count at least as often as at the best one: 80 % or more.
    assert 0.75 <= passed / 200 <= 1
    always_wrong = np.ones(200)
    assert estimate_labels_needed(rng.random(200), always_wrong, alpha=0.1, delta=0.05) is None


def test_a_plan_goes_on_below_where_the_upper_half_is_good() -> None:
    assert passes_upper_half(0, 100, 0.1, 0.05)
    assert passes_upper_half(2, 100, 0.1, 0.05)
    assert not passes_upper_half(8, 100, 0.1, 0.05)
    # With few labels even none wrong proves nothing.
    assert not passes_upper_half(0, 20, 0.1, 0.05)


def test_an_audit_alarms_on_a_rise_and_seldom_without_one() -> None:
    rng = np.random.default_rng(11)

    def days_to_alarm(risk: float) -> int | None:
        evidence = AuditEvidence()
        for day in range(365):
            evidence = evidence.add_day(10, int(rng.binomial(10, risk)), 0.1)
            if evidence.log_mean >= AUDIT_ALARM:
                return day
        return None

    quiet = [days_to_alarm(0.1) for _ in range(300)]
    assert sum(day is not None for day in quiet) / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    bad = [days_to_alarm(0.3) for _ in range(50)]
    assert np.median([365 if day is None else day for day in bad]) < 25
    assert AuditEvidence().log_mean == -math.inf
