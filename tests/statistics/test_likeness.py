"""Whether two distributions are told apart: by hand, against scipy, and false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.comparison import (
    effective_size,
    kolmogorov_p_value,
    spread_of,
    unlikeness,
)

NAN = np.nan
stats = needed("scipy.stats")


def test_effective_size_by_hand() -> None:
    assert effective_size([0, 1, 2]) == 3
    assert effective_size([0, 0, 1, 1]) == 2
    assert effective_size([0, 0, 0, 1]) == pytest.approx(16 / 10)
    assert effective_size([]) == 0


def test_distance_by_hand() -> None:
    kept = spread_of([0.0, 0.0, 1.0, NAN], range(4))
    assert (kept.missing, kept.points) == (0.25, (0, 1))
    assert kept.shares == pytest.approx((2 / 3, 1))
    # at or below 0: 3 of 4 there (one missing), 1 of 2 here
    assert unlikeness(kept, [0.0, 1.0], range(2)).distance == pytest.approx(0.25)
    # missing: 1 of 4 there, all here
    assert unlikeness(kept, [NAN, NAN], range(2)).distance == pytest.approx(0.75)
    assert unlikeness(kept, [], []).p == 1


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(30, 400), st.integers(30, 400), st.floats(0, 0.8))
def test_as_scipy(seed: int, n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=n), rng.normal(size=m) + shift
    found = unlikeness(spread_of(first, range(n)), second, range(m))
    reference = stats.ks_2samp(first, second)
    # at 51 points instead of all: never farther, and hardly nearer
    assert (
        reference.statistic - 0.03 - 2 / min(n, m) <= found.distance <= reference.statistic + 1e-5
    )
    root = np.sqrt(n * m / (n + m))
    scaled = (root + 0.12 + 0.11 / root) * found.distance
    if scaled >= 0.2:
        assert found.p == pytest.approx(float(stats.kstwobign.sf(scaled)), abs=1e-9)


@pytest.mark.parametrize("levels", [0, 4])
def test_false_alarms(levels: int) -> None:
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(1000):
        first, second = rng.random(100), rng.random(300)
        if levels:
            first, second = (np.round(one * levels) / levels for one in (first, second))
        alarms += unlikeness(spread_of(first, range(100)), second, range(300)).p < 0.05
    assert alarms <= 50 + 3 * np.sqrt(1000 * 0.05 * 0.95)


def test_answers_to_one_question_are_one() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(50), rng.random(50)
    few = unlikeness(spread_of(first, range(50)), second, range(50))
    many = unlikeness(
        spread_of(np.repeat(first, 10), np.repeat(range(50), 10)),
        np.repeat(second, 10),
        np.repeat(range(50), 10),
    )
    assert many.p == pytest.approx(few.p, abs=1e-3)


def test_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        spread_of([], [])
    with pytest.raises(ValueError, match="finite"):
        spread_of([np.inf], [0])
    assert kolmogorov_p_value(0.5, 0, 10) == 1
