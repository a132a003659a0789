"""Matched pairs: shifts, flips and ratios by hand, and how often nothing is taken for something."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import repeats
from trustassay.statistics.comparison import (
    mean_of_differences,
    measure_change_effect,
    movement_ratios,
    sign_flip_p,
)

NAN = np.nan


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_by_hand() -> None:
    # six of forty go up by one, and flip; none flips when nothing is changed
    change = np.array([1.0] * 6 + [0.0] * 34)
    found = measure_change_effect(
        change, change > 0, np.arange(40), 4.0, rng(), np.zeros(40, dtype=bool)
    )
    assert found.shift.value == pytest.approx(6 / 40)
    assert found.flips.value == pytest.approx(6 / 40)
    assert found.flips.interval is not None
    assert found.flips.interval[0] < 0.15 < found.flips.interval[1]
    # six risen, none fallen: 1 / 64, the smaller of two tests (signs: 2 / 64), doubled
    assert found.p == pytest.approx(2 / 64)
    own = mean_of_differences(change, 4.0, np.arange(40))
    assert found.shift.interval == own.interval


def test_asked_anew_one_flip_in_a_hundred_is_allowed() -> None:
    flipped = np.arange(200) < 2
    still = measure_change_effect(np.zeros(200), flipped, np.arange(200), 1.0, rng())
    assert still.p == 1
    noisy = measure_change_effect(np.zeros(200), np.arange(200) < 12, np.arange(200), 1.0, rng())
    assert noisy.p < 1e-4


def test_a_missing_score_is_in_no_shift_and_its_flip_counts() -> None:
    change, flipped = np.array([NAN, *[1.0] * 39]), np.array([True, *[False] * 39])
    found = measure_change_effect(
        change, flipped, np.arange(40), 1.0, rng(), np.zeros(40, dtype=bool)
    )
    assert found.shift.n == 39
    assert found.flips.value == pytest.approx(1 / 40)
    none = measure_change_effect(np.full(40, NAN), flipped, np.arange(40), 1.0, rng(), flipped)
    assert none.shift.value is None
    assert none.shift.without
    assert none.p == 1


def test_answers_to_a_question_are_one_unit() -> None:
    drawn = np.array(rng().normal(size=30).tolist())
    change, units = np.repeat(drawn, 4), np.repeat(np.arange(30), 4)
    found = measure_change_effect(
        change, change > 0, units, 10.0, rng(1), np.zeros(120, dtype=bool)
    )
    alone = np.bincount(units, change)
    assert found.p <= 2 * sign_flip_p(alone, rng(1)) + 1e-12
    assert found.flips.interval is not None
    wide = found.flips.interval[1] - found.flips.interval[0]
    one = measure_change_effect(
        change, change > 0, np.arange(120), 10.0, rng(1), np.zeros(120, dtype=bool)
    )
    assert one.flips.interval is not None
    assert wide > 1.5 * (one.flips.interval[1] - one.flips.interval[0])


def test_a_judge_that_draws_each_reply_is_moved_by_nothing() -> None:
    count, alarms = repeats(150), 0
    for seed in range(count):
        draw, n = rng(seed), 60
        chance = draw.random(n)  # of passing, of each answer
        before, again, after = (draw.random(n) < chance for _ in range(3))
        change, flipped = np.array((after * 1.0 - before).tolist()), after != before
        alarms += (
            measure_change_effect(change, flipped, np.arange(n), 1.0, draw, again != before).p
            < 0.05
        )
    assert alarms / count < 0.05 + 2 * np.sqrt(0.05 * 0.95 / count)


def test_ratios_by_hand() -> None:
    control = np.full(40, -2.0)
    changes = np.array([np.tile([1.0, -1.0], 20), np.zeros(40), control])
    first, second = movement_ratios(changes, np.arange(40), rng())
    assert first.value == pytest.approx(0.5)  # signs do not cancel
    assert second.value == 0
    changes[0, :30] = NAN  # of the ten that could be changed
    assert movement_ratios(changes, np.arange(40), rng())[0].value == pytest.approx(0.5)


def test_the_interval_of_a_ratio_holds_it() -> None:
    count, held = repeats(30), 0
    for seed in range(count):
        draw = rng(seed)
        changes = np.stack([draw.binomial(1, 0.3, 80) * 1.0, draw.binomial(2, 0.5, 80) * -1.0])
        (one,) = movement_ratios(changes, np.arange(80), draw)
        assert one.interval is not None
        held += one.interval[0] <= 0.3 <= one.interval[1]
    assert held / count > 0.85
