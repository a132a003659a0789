"""Where a line changes its level: by hand, and by how often a line without a step has one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.statistics.intervals import Term, sum_interval
from trustassay.statistics.levels import (
    MAX_SIDE_FIGURES,
    LevelEstimate,
    combine_estimates,
    find_level_steps,
)


def estimate(right: int, n: int) -> LevelEstimate:
    """A share with its interval by Wilson's score."""
    z, p = 1.959964, right / n
    middle, scale = (p + z * z / (2 * n)) / (1 + z * z / n), 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    return LevelEstimate(p, middle - half, middle + half, n)


def line(*rights: int, n: int = 150) -> list[LevelEstimate]:
    return [estimate(right, n) for right in rights]


def test_figures_are_put_together_by_their_answers() -> None:
    # 0.5 of 100 and 0.8 of 300: 0.725; down: hypot(0.25 * 0.1, 0.75 * 0.04) = 0.03905
    made = combine_estimates(
        [LevelEstimate(0.5, 0.4, 0.61, 100), LevelEstimate(0.8, 0.76, 0.83, 300)]
    )
    assert made.value == pytest.approx(0.725)
    assert made.low == pytest.approx(0.725 - math.hypot(0.025, 0.03))
    assert made.high == pytest.approx(0.725 + math.hypot(0.0275, 0.0225))
    assert made.n == 400
    terms = [Term(0.5, (0.4, 0.61), 0.25), Term(0.8, (0.76, 0.83), 0.75)]
    assert (made.low, made.high) == pytest.approx(sum_interval(terms, np.eye(2)))


def test_two_figures_by_hand() -> None:
    # 0.9 (0.86 to ...) and 0.8 (... to 0.85): z = 1.96 * 0.1 / hypot(0.04, 0.05) = 3.0609
    one, other = LevelEstimate(0.9, 0.86, 0.93, 1), LevelEstimate(0.8, 0.74, 0.85, 1)
    (step,) = find_level_steps([one, other])
    assert (step.at, step.before, step.after, step.counts) == (1, one, other, (1, 1))
    assert step.p == pytest.approx(0.0022, abs=0.0001)
    assert step.rise < 0
    # among figures that do not differ it is one of many tests
    same = [one._replace(n=1)] * 3
    assert find_level_steps([*same, other])[0].p > step.p


def test_a_level_that_stays_is_one_step_and_a_single_figure_apart_two() -> None:
    stays = line(*[137] * 12, *[118] * 12)
    (step,) = find_level_steps(stays)
    assert (step.at, step.counts) == (12, (MAX_SIDE_FIGURES, MAX_SIDE_FIGURES))
    assert step.before.value == pytest.approx(137 / 150)
    single = line(*[137] * 12, 105, *[137] * 12)
    fall, rise = find_level_steps(single)
    assert (fall.at, rise.at) == (12, 13)
    assert fall.rise < 0 < rise.rise


def test_nothing_is_compared_over_a_broken_place() -> None:
    both = line(*[137] * 12, *[118] * 12)
    assert not find_level_steps(both, [12])
    assert find_level_steps(both, [6])[0].at == 12
    assert find_level_steps(both, [0, 24])[0].at == 12


@pytest.mark.parametrize("ends", [[], [1], [1, 2]])
def test_short_lines_and_equal_figures_have_none(ends: list[int]) -> None:
    assert not find_level_steps(line(*[140 for _ in ends]))
    assert not find_level_steps([LevelEstimate(1.0, 1.0, 1.0, 5)] * 4)


def test_a_line_without_a_step_rarely_has_one() -> None:
    rng = np.random.default_rng(3)
    found = sum(
        bool(find_level_steps(line(*rng.binomial(150, 0.9, 30).tolist()))) for _ in range(150)
    )
    assert found <= 0.05 * 150 + 5


def test_runs_of_the_same_questions_have_fewer_false_steps() -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(100):
        hard = rng.beta(1.2, 0.2, 150)  # a question's own chance of a right answer
        rights = (rng.random((30, 150)) < hard).sum(axis=1).tolist()
        found += bool(find_level_steps(line(*rights)))
    assert found <= 2


@given(st.lists(st.integers(0, 40), min_size=2, max_size=25), st.sets(st.integers(0, 25)))
def test_steps_are_in_order_apart_and_clear(rights: list[int], broken: set[int]) -> None:
    found = find_level_steps(line(*rights, n=40), broken)
    assert [one.at for one in found] == sorted({one.at for one in found})
    assert all(0 < one.at < len(rights) and one.at not in broken for one in found)
    assert all(one.p < 0.05 for one in found)
    for one in found:
        near = [other for other in found if 0 < abs(other.at - one.at) < MAX_SIDE_FIGURES]
        assert all((other.rise > 0) != (one.rise > 0) for other in near)
