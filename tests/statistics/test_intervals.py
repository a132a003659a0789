"""Intervals by hand, against scipy, as properties, and how often they hold the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.lazily import needed
from trustassay.statistics.intervals import (
    MIN_UNITS,
    RowSums,
    Term,
    binomial_interval,
    fewest_for_quantile,
    jackknife_interval,
    mean_interval,
    quantile_interval,
    reason_too_few,
    sum_interval,
    t_interval,
    unit_mean,
    unit_quantile_interval,
    wilson_interval,
)

stats = needed("scipy.stats")

Floats = NDArray[np.float64]


def mean_of(values: Floats) -> tuple[float, float]:
    return mean_interval(float(values.mean()), float(values.var()) / len(values), len(values))


# Shares


@pytest.mark.parametrize("n", [1, 2, 20, 150, 4000])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.5, 1.0])
def test_wilson_is_that_of_scipy(n: int, share: float) -> None:
    x = round(share * n)
    theirs = stats.binomtest(x, n).proportion_ci(method="wilson")
    assert wilson_interval(x, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_a_share_by_hand() -> None:
    # None of 20: (1 - p)^20 / 2 = 0.025, so p = 1 - 0.05^(1/20).
    assert binomial_interval(0, 20) == pytest.approx((0, 1 - 0.05**0.05))
    assert binomial_interval(20, 20) == pytest.approx((0.05**0.05, 1))
    # 1 of 1: p / 2 = 0.025.
    assert binomial_interval(1, 1) == pytest.approx((0.05, 1))
    # 1 of 2: (1 - p)^2 + p (1 - p) = 1 - p = 0.025.
    assert binomial_interval(1, 2) == pytest.approx((0.025, 0.975))


@pytest.mark.parametrize(("x", "n"), [(1, 20), (3, 20), (17, 20), (75, 150), (999, 5000), (3, 1e6)])
def test_the_bounds_of_a_share_leave_the_tails_that_scipy_finds(x: int, n: float) -> None:
    low, high = binomial_interval(x, n)
    size = int(n)
    below = stats.binom.cdf(x - 1, size, high) + stats.binom.pmf(x, size, high) / 2
    above = stats.binom.sf(x, size, low) + stats.binom.pmf(x, size, low) / 2
    assert (below, above) == pytest.approx((0.025, 0.025), rel=1e-6)


def test_many_successes_have_wilsons_interval_which_is_the_same() -> None:
    exact, score = binomial_interval(999, 2500), wilson_interval(999, 2500)
    assert binomial_interval(1000, 2500) == wilson_interval(1000, 2500)
    assert exact == pytest.approx(score, abs=2e-4)


@given(st.floats(0, 1), st.floats(0.5, 1e7), st.floats(0.5, 0.999))
@example(1e-12, 20.0, 0.95)
@example(1.0, 0.5, 0.95)
def test_a_share_lies_in_its_interval_and_its_mirror_image_in_the_others(
    share: float, n: float, level: float
) -> None:
    low, high = binomial_interval(share * n, n, level)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1
    mirrored = binomial_interval(n - share * n, n, level)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-7)


@pytest.mark.parametrize(("x", "n"), [(-1, 5), (6, 5), (0, 0), (math.nan, 5)])
def test_what_is_no_share_is_refused(x: float, n: float) -> None:
    with pytest.raises(ValueError, match="expected 0 <= successes <= n"):
        binomial_interval(x, n)


def coverage(share: float, intervals: Sequence[tuple[float, float]]) -> float:
    """Return how often the interval of n draws, given for 0 to n hits, holds the share, exactly."""
    held = [x for x, interval in enumerate(intervals) if _holds(interval, share)]
    return float(stats.binom.pmf(held, len(intervals) - 1, share).sum())


def _holds(interval: tuple[float, float], value: float) -> bool:
    return interval[0] - 1e-12 <= value <= interval[1] + 1e-12


@pytest.mark.parametrize("n", [20, 50, 150])
def test_the_interval_of_a_share_holds_any_share(n: int) -> None:
    intervals = [binomial_interval(x, n) for x in range(n + 1)]
    found = [coverage(share, intervals) for share in np.linspace(0.002, 0.998, 250)]
    assert min(found) > 0.915
    assert np.mean(np.array(found) < 0.93) < 0.03
    assert np.mean(found) < 0.97


# Means


def test_numbers_of_0_and_1_have_the_interval_of_their_share() -> None:
    values = np.array([1.0] * 3 + [0.0] * 17)
    assert mean_of(values) == pytest.approx(binomial_interval(3, 20))


def test_a_mean_by_hand() -> None:
    """Of 40 numbers half are 1/4, half 3/4: m = 1/2, variance 1/16, d = 1/4, k = 20/d = 80.

    One more event of size 1: d = (20 + 1)/81 = 7/27. n/d = 1080/7, less by 1 + (20/27)(f - 1), f
    being (t/z)^2 40/39 with t = 2.0227 for 39 degrees of freedom.
    """
    values = np.array([0.25, 0.75] * 20)
    f = (2.0226909 / 1.9599640) ** 2 * 40 / 39
    told = 1080 / 7 / (1 + 20 / 27 * (f - 1))
    assert mean_of(values) == pytest.approx(binomial_interval(told / 2, told), abs=1e-7)


def test_equal_numbers_leave_room_for_what_was_not_seen() -> None:
    unseen = 1 - 0.05 ** (1 / 20)
    assert mean_interval(0.0, 0.0, 20) == pytest.approx((0, unseen))
    assert mean_interval(1.0, 0.0, 20) == pytest.approx((1 - unseen, 1))
    assert mean_interval(0.4, 0.0, 20) == pytest.approx((0.4 - 0.4 * unseen, 0.4 + 0.6 * unseen))
    assert mean_interval(0.4, 0.0, 1) == (0, 1)


@pytest.mark.parametrize(("mean", "n"), [(-0.1, 5), (1.1, 5), (0.5, 0), (math.nan, 5)])
def test_what_is_no_mean_is_refused(mean: float, n: int) -> None:
    with pytest.raises(ValueError, match="expected n of 1 or more"):
        mean_interval(mean, 0.01, n)


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), min_size=2, max_size=60))
def test_a_mean_lies_in_its_interval_and_its_mirror_image_in_the_others(
    values: list[float],
) -> None:
    numbers = np.array(values)
    low, high = mean_of(numbers)
    assert -1e-9 <= low <= numbers.mean() + 1e-9
    assert numbers.mean() - 1e-9 <= high <= 1 + 1e-9
    assert high - low > 0
    mirrored = mean_of(1 - numbers)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-4)


def test_for_many_numbers_it_is_students_interval_and_scipys_bca() -> None:
    values = np.random.default_rng(0).beta(2, 5, 3000)
    error = values.std(ddof=1) / math.sqrt(len(values))
    student = stats.t.interval(0.95, len(values) - 1, values.mean(), error)
    bca = stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=4000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert mean_of(values) == pytest.approx(student, abs=0.03 * error)
    assert mean_of(values) == pytest.approx((bca.low, bca.high), abs=0.15 * error)


@pytest.mark.parametrize(
    "population",
    [
        lambda rng, n: rng.beta(1, 19, n),
        lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.beta(3, 5, n)),
        lambda rng, n: rng.beta(2, 2, n),
        lambda rng, n: np.round(rng.beta(9, 1, n) * 3) / 3,
    ],
    ids=["skewed", "mostly zero", "middle", "shares of three"],
)
def test_a_mean_of_few_numbers_is_held(population) -> None:  # type: ignore[no-untyped-def]
    """Student's interval of 20 numbers that are mostly zero holds their mean 80 times in 100."""
    rng = np.random.default_rng(3)
    true = population(rng, 400_000).mean()
    hits = sum(_holds(mean_of(population(rng, MIN_UNITS)), true) for _ in range(800))
    assert hits / 800 > 0.93


def test_students_interval_is_that_of_scipy() -> None:
    values = np.array([3.0, 5.0, 9.0, 4.0])
    theirs = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert t_interval(values.mean(), values.var() / 4, 4) == pytest.approx(theirs)
    assert t_interval(3.0, 0.0, 4) is None
    assert t_interval(3.0, 1.0, 1) is None


# Sums of figures


def test_a_sum_by_hand() -> None:
    # 0.5 - 0.25: below sqrt(0.3^2 + 0.4^2) = 0.5, above sqrt(0.12^2 + 0.05^2) = 0.13.
    terms = [Term(0.5, (0.2, 0.62), 1.0), Term(0.25, (0.2, 0.65), -1.0)]
    assert sum_interval(terms, np.eye(2)) == pytest.approx((0.25 - 0.5, 0.25 + 0.13))


def test_a_difference_of_shares_is_newcombes() -> None:
    """Newcombe 1998, table II, method 10: 56/70 - 48/80 has 0.0524 to 0.3339."""
    terms = [
        Term(x / n, wilson_interval(x, n), weight) for x, n, weight in ((56, 70, 1), (48, 80, -1))
    ]
    assert sum_interval(terms, np.eye(2)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_figure_split_into_correlated_halves_keeps_its_interval() -> None:
    halves = [Term(0.4, (0.1, 0.6), 0.5)] * 2
    assert sum_interval(halves, np.ones((2, 2))) == pytest.approx((0.1, 0.6))


# Sums of rows


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99))
def test_variances_of_functions_of_sums(n: int, cut: int, seed: int) -> None:
    """A ratio's delta method by its residuals, sum (y - r x)^2 / X^2; pieces do not matter."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.random(n) + 0.5, rng.random(n)], axis=1)
    sums = RowSums(2)
    sums.add(rows[:cut])
    sums.add(rows[cut:])
    x, y = sums.total
    assert (sums.n, x, y) == pytest.approx((n, *rows.sum(axis=0)))
    found = sums.covariance(np.array([[-y / x**2, 1 / x]]))
    expected = np.square(rows[:, 1] - y / x * rows[:, 0]).sum() / x**2
    assert found[0, 0] == pytest.approx(expected, abs=1e-12)


def test_no_row_has_no_variance() -> None:
    assert RowSums(2).covariance(np.eye(2)).tolist() == [[0, 0], [0, 0]]


# Quantiles


@pytest.mark.parametrize(("q", "n"), [(0.5, 6), (0.9, 36), (0.1, 36), (0.99, 368)])
def test_a_quantile_needs_so_many_values(q: float, n: int) -> None:
    assert fewest_for_quantile(q) == n
    assert quantile_interval(np.arange(float(n)), q) is not None
    assert quantile_interval(np.arange(n - 1.0), q) is None


def test_places_of_a_median_by_hand() -> None:
    """Of 20 values the 6th to the 15th hold the median with 0.9586; the bounds lie within."""
    interval = quantile_interval(np.arange(1.0, 21.0), 0.5)
    assert interval is not None
    low, high = interval
    assert 6 < low < 7
    assert (low + high) / 2 == pytest.approx(10.5)
    assert stats.beta.cdf(0.5, low, 21 - low) == pytest.approx(0.975, abs=1e-6)


@pytest.mark.parametrize(("q", "n"), [(0.5, 20), (0.5, 150), (0.9, 40), (0.9, 150)])
def test_quantiles_are_held(q: float, n: int) -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        interval = quantile_interval(np.sort(rng.gamma(1, 1, n)), q)
        assert interval is not None
        hits += _holds(interval, float(stats.gamma.ppf(q, 1)))
    assert 0.93 < hits / 1000 < 0.975


@given(st.lists(st.floats(-5, 5), min_size=36, max_size=80), st.floats(0.1, 0.9))
def test_a_quantile_lies_in_its_interval(values: list[float], q: float) -> None:
    ordered = np.sort(values)
    interval = quantile_interval(ordered, q)
    assert interval is not None
    assert ordered[0] <= interval[0] <= np.quantile(ordered, q) <= interval[1] <= ordered[-1]


def test_too_few_says_how_many_would_do() -> None:
    assert reason_too_few("samples", 12, 20) == "too few samples: 12; at least 20 are needed"
    assert reason_too_few("samples", 20, 20) is None


# Units of several rows


def clustered(seed: int, n: int = 60) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return values of units of 1 to 5 rows, in no order, and the number of each one's unit."""
    rng = np.random.default_rng(seed)
    units = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 6, n)))
    values = np.clip(rng.random(n)[units] + rng.normal(0, 0.1, len(units)), 0, 1)
    sizes = np.bincount(units)
    return values, np.where(sizes[units] > 1, units, -1)


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_over_units_is_that_of_a_regression_with_clustered_errors(seed: int) -> None:
    values, units = clustered(seed)
    labels = np.where(units < 0, 1000 + np.arange(len(units)), units)
    fitted = (
        needed("statsmodels.api")
        .OLS(values, np.ones(len(values)))
        .fit(cov_type="cluster", cov_kwds={"groups": labels, "use_correction": False})
    )
    mean, variance, worth = unit_mean(values, units)
    assert mean == pytest.approx(fitted.params[0])
    assert variance == pytest.approx(fitted.bse[0] ** 2)
    sizes = np.unique(labels, return_counts=True)[1]
    assert worth == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())


@given(st.integers(0, 50), st.integers(1, 200))
def test_sums_of_units_do_not_depend_on_order_or_pieces(seed: int, cut: int) -> None:
    values, units = clustered(seed)
    rows = np.stack([np.ones(len(values)), values], axis=1)
    whole, pieces = RowSums(2), RowSums(2)
    whole.add(rows, units)
    order = np.random.default_rng(seed).permutation(len(rows))
    for start in range(0, len(rows), cut):
        some = order[start : start + cut]
        pieces.add(rows[some], units[some])
    one, other = (sums.ratio(np.eye(2)[1], np.eye(2)[0]) for sums in (whole, pieces))
    assert tuple(one) == pytest.approx(tuple(other))
    assert tuple(one) == pytest.approx(tuple(unit_mean(values, units)))
    assert whole.units == pieces.units == len(np.unique(units[units >= 0])) + (units < 0).sum()


def test_ten_equal_answers_to_each_question_tell_no_more_than_one() -> None:
    values = (np.random.default_rng(0).random(50) < 0.7).astype(float)
    alone, ten = unit_mean(values), unit_mean(np.repeat(values, 10), np.repeat(np.arange(50), 10))
    assert tuple(ten) == pytest.approx(tuple(alone))


def test_the_median_of_units_by_themselves_has_its_own_interval() -> None:
    values = np.random.default_rng(0).random(45)
    alone = np.full(45, -1)
    assert unit_quantile_interval(values, alone, 0.5) == quantile_interval(np.sort(values), 0.5)
    low, high = unit_quantile_interval(np.repeat(values, 4), np.repeat(np.arange(45), 4), 0.5)  # type: ignore[misc]
    expected = quantile_interval(np.sort(values), 0.5)
    assert expected is not None
    assert (low, high) == pytest.approx(expected, abs=0.08)


def test_leaving_out_one_value_of_a_mean_gives_the_interval_of_student() -> None:
    values = np.array([1.0, 4.0, 2.0, 8.0, 3.0])
    left = (values.sum() - values) / 4
    found = jackknife_interval(float(values.mean()), left)
    expected = t_interval(float(values.mean()), float(values.var()) / 5, 5)
    assert found == pytest.approx(expected)
    assert jackknife_interval(1.0, [1.0, 1.0, 1.0]) is None
    assert jackknife_interval(1.0, [1.0]) is None


@pytest.mark.parametrize(
    ("transform", "value", "left", "ends"),
    [("fisher", 0.9, [0.88, 0.93], (-1, 1)), ("logit", 0.9, [0.88, 0.93], (0, 1)),
     ("log", 0.9, [0.7, 1.2], (0, np.inf))],
)  # fmt: skip
def test_a_transformed_interval_stays_on_its_scale(
    transform: Any, value: float, left: list[float], ends: tuple[float, float]
) -> None:
    found = jackknife_interval(value, left * 10, transform)
    assert found is not None
    assert ends[0] < found[0] < value < found[1] < ends[1]
    assert jackknife_interval(float(ends[0]), left, transform) is None
    assert jackknife_interval(value, [*left, float(ends[0])], transform) is None
