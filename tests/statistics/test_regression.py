"""Lines, logistic curves and isotonic regression against scikit-learn and worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics.distributions import student_t_quantile
from trustassay.statistics.regression import (
    LineSums,
    Moments,
    isotonic_regression,
    sigmoid,
)

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


def test_sigmoid_does_not_overflow() -> None:
    assert sigmoid([-1e4, 0, 1e4]).tolist() == [0, 0.5, 1]


ROWS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), min_size=1, max_size=60)


def test_by_hand() -> None:
    # 0.2 -> 0; 0.4 -> 1 and 0.5 -> 0 fall and are pooled to 0.5; 0.9 twice: mean of 1 and 0.5
    found = isotonic_regression([0.4, 0.2, 0.5, 0.9, 0.9], [1, 0, 0, 1, 0.5])
    assert found.knots == (0.2, 0.4, 0.5, 0.9)
    assert found.values == (0, 0.5, 0.5, 0.75)
    assert found.at([0.1, 0.3, 0.45, 0.7, 2]).tolist() == pytest.approx([0, 0.25, 0.5, 0.625, 0.75])
    assert np.isnan(found.at([np.nan])[0])


def test_long_flat_pools_keep_only_their_ends() -> None:
    found = isotonic_regression(range(10), [0] * 4 + [1] * 6)
    assert found.knots == (0, 3, 4, 9)


@settings(deadline=None)
@given(ROWS)
def test_isotonic_as_scikit_learn(rows: list[tuple[int, int]]) -> None:
    from sklearn.isotonic import IsotonicRegression

    x, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = isotonic_regression(x, y)
    reference = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    at = np.linspace(-1, 9, 101)
    assert found.at(at) == pytest.approx(reference.predict(at), abs=1e-9)
    assert np.all(np.diff(found.values) >= 0)
    # the mean stays, as of any projection on a cone that holds the constants
    assert found.at(x).sum() == pytest.approx(y.sum())


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([], [], "1 or more"),
        ([1, 2], [1], "of the same length"),
        ([1, np.nan], [1, 0], "finite"),
    ],
)
def test_isotonic_refused(scores: list[float], labels: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        isotonic_regression(scores, labels)
