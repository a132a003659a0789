"""Differences, Kolmogorov-Smirnov and permutations: by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest

from trustassay.statistics.comparison import (
    CELLS,
    difference_of_means,
    difference_of_medians,
    kolmogorov_smirnov,
    sign_flip_p,
)

stats = pytest.importorskip("scipy.stats")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_by_hand() -> None:
    # F1 steps at 1, 2, 3; F2 at 2, 3, 4: they are a third apart from 1 to 4.
    found = kolmogorov_smirnov([1, 2, 3], [2, 3, 4], rng())
    assert found.statistic == pytest.approx(1 / 3)
    assert found.at in (1.0, 2.0, 3.0)
    assert found.p == 1.0  # no permutation of so few comes below a third
    assert difference_of_means([1, 2, 3], [2, 3, 7], rng()).value == 2.0
    assert difference_of_medians([1, 2, 3], [2, 3, 7], rng()).value == 1.0


def test_same_values_are_no_change() -> None:
    found = kolmogorov_smirnov([0.0] * 50, [0.0] * 70, rng())
    assert (found.statistic, found.p) == (0.0, 1.0)
    assert difference_of_means([0.0] * 5, [0.0] * 7, rng()) == (0.0, (0.0, 0.0))
    assert difference_of_medians([0.0] * 5, [0.0] * 7, rng()) == (0.0, (0.0, 0.0))
    assert sign_flip_p([0.0] * 9, rng()) == 1.0


@pytest.mark.parametrize("test", [kolmogorov_smirnov, difference_of_means, difference_of_medians])
def test_an_empty_sample_is_refused(test) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="one value or more"):
        test([], [1.0], rng())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("digits", [1, 9])
def test_the_statistic_is_that_of_scipy(seed: int, digits: int) -> None:
    draws = rng(seed)
    a = draws.gamma(1, 0.1, 300).round(digits)
    b = draws.gamma(1, 0.12, 211).round(digits)
    found = kolmogorov_smirnov(a, b, draws)
    assert found.statistic == pytest.approx(stats.ks_2samp(a, b).statistic)


@pytest.mark.parametrize("shift", [0.0, 0.15, 0.3])
def test_p_of_continuous_values_is_near_the_exact_one(shift: float) -> None:
    draws = rng(1)
    a, b = draws.normal(0, 1, 150), draws.normal(shift, 1, 120)
    exact = stats.ks_2samp(a, b, method="exact").pvalue
    assert kolmogorov_smirnov(a, b, draws, 9999).p == pytest.approx(exact, abs=0.02)


def test_p_is_level_where_nothing_changed() -> None:
    found = [kolmogorov_smirnov(rng(i).random(40), rng(i + 999).random(30), rng(i), 199).p
             for i in range(300)]  # fmt: skip
    assert np.mean(np.array(found) <= 0.1) == pytest.approx(0.1, abs=0.05)


def test_large_samples_are_tested_at_fewer_places() -> None:
    draws = rng(3)
    a, b = draws.normal(0, 1, 2 * CELLS), draws.normal(0.03, 1, 3 * CELLS)
    found = kolmogorov_smirnov(a, b, draws)
    expected = stats.ks_2samp(a, b)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, abs=0.05)


def test_intervals_are_those_of_scipy() -> None:
    a, b = rng(5).normal(0, 1, 200), rng(6).normal(0.5, 2, 150)

    def apart(x, y, axis):  # type: ignore[no-untyped-def]
        return np.mean(y, axis=axis) - np.mean(x, axis=axis)

    theirs = stats.bootstrap(
        (a, b), apart, method="percentile", n_resamples=4000, rng=rng()
    ).confidence_interval
    ours = difference_of_means(a, b, rng(), 4000).interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.03)


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.2, -0.2])
def test_sign_flips_are_those_of_scipy(mean: float) -> None:
    differences = rng(7).normal(mean, 1, 120)
    theirs = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=9999, rng=rng()
    ).pvalue
    assert sign_flip_p(differences, rng(), 9999) == pytest.approx(theirs, abs=0.02)


def test_a_sign_flip_by_hand() -> None:
    # Of the 8 ways to sign 1, 1, 1 two are as far from 0 as the data: p near 1/4.
    assert sign_flip_p([1.0, 1.0, 0.0, 1.0], rng(), 9999) == pytest.approx(0.25, abs=0.02)


def test_a_million_values_are_compared() -> None:
    a = rng(8).random(200_000)
    b = a[:150_000] + 1e-4
    assert kolmogorov_smirnov(a, b, rng(), 499).statistic < 0.01
    assert difference_of_medians(a, b, rng()).value == pytest.approx(1e-4, abs=0.005)
