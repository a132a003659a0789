"""Moments and lines: by hand, against scipy, and in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.regression import LineSums, Moments, student_t_quantile

stats = needed("scipy.stats")

numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def moments(values: list[float]) -> Moments:
    found = Moments()
    for value in values:
        found.add(value)
    return found


def line_sums(x: list[float], y: list[float]) -> LineSums:
    found = LineSums()
    for one, other in zip(x, y, strict=True):
        found.add(one, other)
    return found


def test_moments_by_hand() -> None:
    found = moments([2.0, 4.0, 6.0])
    assert (found.n, found.mean, found.squares) == (3, 4.0, 8.0)
    assert found.error == pytest.approx((4 / 3) ** 0.5)  # s = 2, over sqrt(3)
    assert moments([5.0]).error is None
    assert moments([]).error is None
    assert moments([5.0, 5.0]).error == 0.0
    assert Moments() + Moments() == Moments()


def test_moments_of_large_values_do_not_cancel_out() -> None:
    assert moments([1e9 + 1, 1e9 + 2, 1e9 + 3]).squares == pytest.approx(2.0)


@given(numbers, st.integers(0, 30))
def test_moments_are_those_of_numpy_whole_or_in_pieces(values: list[float], cut: int) -> None:
    whole = moments(values)
    pieces = moments(values[:cut]) + moments(values[cut:])
    for found in (whole, pieces):
        assert found.n == len(values)
        assert found.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
        assert found.error == pytest.approx(
            np.std(values, ddof=1) / len(values) ** 0.5, rel=1e-6, abs=1e-6
        )


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 30, 98, 1000, 1_000_000])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.995, 0.025])
def test_quantiles_of_students_t(p: float, freedom: int) -> None:
    assert student_t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8)


@pytest.mark.parametrize(("p", "freedom"), [(0.0, 3), (1.0, 3), (0.5, 0)])
def test_there_is_no_quantile_elsewhere(p: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        student_t_quantile(p, freedom)


def test_a_line_by_hand() -> None:
    # About the means 1 and 3: xx = 1 + 0 + 1, xy = (-1)(-2) + 0 + (1)(3), slope 5/2.
    line = line_sums([0.0, 1.0, 2.0], [1.0, 2.0, 6.0]).line()
    assert line
    assert [line.n, line.slope, line.intercept] == pytest.approx([3, 2.5, 0.5])
    assert line.at(2.0) == pytest.approx(5.5)


@pytest.mark.parametrize("seed", range(5))
def test_a_line_is_that_of_scipy_whole_or_in_pieces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 200))
    x = rng.gamma(2, 0.05, n)
    y = 4.5 - 6 * x + rng.normal(0, 1, n)
    expected = stats.linregress(x, y)
    t = stats.t.ppf(0.975, n - 2)
    cut = int(rng.integers(0, n))
    pieces = line_sums(x[:cut].tolist(), y[:cut].tolist())
    for sums in (
        line_sums(x.tolist(), y.tolist()),
        pieces + line_sums(x[cut:].tolist(), y[cut:].tolist()),
    ):
        line = sums.line()
        assert line
        assert line.slope_interval
        assert line.intercept_interval
        assert line.slope == pytest.approx(expected.slope, rel=1e-9)
        assert line.intercept == pytest.approx(expected.intercept, rel=1e-9)
        assert line.slope_interval[1] - line.slope == pytest.approx(t * expected.stderr)
        assert line.intercept_interval[1] - line.intercept == pytest.approx(
            t * expected.intercept_stderr
        )


def test_where_there_is_no_line_or_no_interval() -> None:
    assert line_sums([], []).line() is None
    assert line_sums([1.0], [1.0]).line() is None
    assert line_sums([1.0, 1.0], [1.0, 2.0]).line() is None
    two = line_sums([0.0, 1.0], [1.0, 3.0]).line()
    assert two
    assert (two.slope, two.slope_interval, two.intercept_interval) == (2.0, None, None)
    assert LineSums() + LineSums() == LineSums()
