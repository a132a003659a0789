"""Paired differences and permutations: by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.lazily import needed
from trustassay.statistics.comparison import (
    MIN_CHANGED_QUESTIONS,
    compare_distribution,
    difference_from_resamples,
    kolmogorov_p_value,
    mean_of_differences,
    share_rise_p,
    sign_flip_p,
    sign_flip_ps,
    summarise_distribution,
)
from trustassay.statistics.intervals import effective_size
from trustassay.statistics.resampling import draw_counts

stats = needed("scipy.stats")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_by_hand() -> None:
    assert mean_of_differences([0.1, 0.3, -0.1]).value == pytest.approx(0.1)


def test_same_values_are_no_change() -> None:
    # Of 40 zeros a share of 1 - 0.05^(1/40) may be something else, in either run.
    unseen = 1 - 0.05 ** (1 / 40)
    assert mean_of_differences([0.0] * 40).interval == pytest.approx((-unseen, unseen))
    assert sign_flip_p([0.0] * 9, rng()) == 1.0


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="one value or more"):
        mean_of_differences([])


def test_few_samples_have_no_interval_and_it_is_said_how_many_would_do() -> None:
    few, enough = np.linspace(0, 1, 39), np.linspace(0, 1, 40)
    assert mean_of_differences(few).without == "too few pairs: 39; at least 40 are needed"
    assert mean_of_differences(enough).interval
    assert mean_of_differences(enough).without is None


def test_intervals_of_many_are_those_of_scipy() -> None:
    a, b = rng(5).beta(2, 5, 350), rng(6).beta(2, 4, 350)
    interval = mean_of_differences(b - a).interval
    theirs = stats.ttest_1samp(b - a, 0).confidence_interval()
    reach = theirs.high - theirs.low
    assert interval == pytest.approx((theirs.low, theirs.high), abs=0.04 * reach)


@pytest.mark.parametrize("n", [40, 150])
def test_few_changes_are_held_though_most_samples_are_the_same(n: int) -> None:
    """Of 3 % that changed Student's interval holds the mean 58 times in a hundred at n = 50."""
    draws = rng(2)

    def changes(size: int):  # type: ignore[no-untyped-def]
        return np.where(draws.random(size) < 0.03, draws.beta(8, 4, size), 0.0)

    true = changes(1_000_000).mean()
    hits = 0
    for _ in range(500):
        interval = mean_of_differences(changes(n)).interval
        assert interval
        hits += interval[0] <= true <= interval[1]
    assert hits / 500 > 0.93


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


def test_several_pairs_of_a_question_tell_no_more_than_one() -> None:
    rng = np.random.default_rng(0)
    for moved in (rng.normal(0.1, 0.3, 60).clip(-1, 1), (rng.random(60) < 0.1).astype(float)):
        questions = np.repeat(np.arange(60), 5)
        alone, five = (
            mean_of_differences(moved),
            mean_of_differences(np.repeat(moved, 5), 1.0, questions),
        )
        assert five.value == pytest.approx(alone.value)
        assert five.interval == pytest.approx(alone.interval)
    few = mean_of_differences(np.ones(100), 1.0, np.arange(100) // 5)
    assert few.without == "too few questions (of equal size): 20; at least 40 are needed"


def test_flips_of_several_rows_are_those_of_each() -> None:
    rows = np.random.default_rng(2).normal(0.2, 1, (3, 30))
    rows[1] = 0.0
    together = sign_flip_ps(rows, np.random.default_rng(0), 4000)
    for row, p in zip(rows, together, strict=True):
        assert p == pytest.approx(sign_flip_p(row, np.random.default_rng(1), 4000), abs=0.03)
    assert together[1] == 1.0


Floats = NDArray[np.float64]


def drawn(x: Floats, seed: int = 0, replicates: int = 4000) -> Floats:
    rng = np.random.default_rng(seed)
    return np.concatenate([c @ x / len(x) for c in draw_counts(len(x), rng, replicates)])


def test_counts_are_those_of_draws_with_replacement() -> None:
    counts = np.concatenate(list(draw_counts(5, np.random.default_rng(0), 3000)))
    assert counts.shape == (3000, 5)
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.06)
    assert counts.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.1)


@pytest.mark.parametrize(("units", "replicates"), [(50, 2000), (40_000, 500), (400_000, 200)])
def test_many_units_are_drawn_fewer_times(units: int, replicates: int) -> None:
    class Told:
        def multinomial(self, n: int, shares: Floats, size: int) -> Floats:
            return np.empty((size, 0))

    drawn = draw_counts(units, Told())  # type: ignore[arg-type]
    assert sum(len(one) for one in drawn) == replicates


def test_the_interval_is_about_students() -> None:
    x = np.random.default_rng(1).normal(0.1, 0.2, 60)
    found = difference_from_resamples(float(x.mean()), drawn(x), 60, 60)
    t = stats.t.interval(0.95, 59, x.mean(), stats.sem(x))
    assert found.interval == pytest.approx(t, abs=0.006)


def test_without_any_change_the_interval_is_nothing() -> None:
    assert difference_from_resamples(0.0, np.zeros(100), 30, 0).interval == (0.0, 0.0)


def test_few_changes_are_not_told_from_none() -> None:
    x = np.zeros(20)
    x[: MIN_CHANGED_QUESTIONS - 1] = -1.0
    one = difference_from_resamples(float(x.mean()), drawn(x), 20, MIN_CHANGED_QUESTIONS - 1)
    assert one.interval is not None
    assert one.interval[0] < -0.4 and one.interval[1] == 0.0
    x[MIN_CHANGED_QUESTIONS - 1] = -1.0
    other = difference_from_resamples(float(x.mean()), drawn(x), 20, MIN_CHANGED_QUESTIONS)
    assert other.interval is not None
    assert other.interval[1] < 0.0


def test_too_few_questions_have_no_interval() -> None:
    found = difference_from_resamples(0.0, np.zeros(100), 1, 0)
    assert found == (0.0, None, "too few questions: 1; at least 20 are needed")


def test_a_figure_that_most_draws_leave_undefined_has_no_interval() -> None:
    values = np.where(np.arange(100) < 30, np.nan, 0.1)
    found = difference_from_resamples(0.1, values, 40, 40)
    assert (found.interval, found.without) == (None, "the figure rests on too few answers")


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_rise_without_a_margin_is_the_exact_test_of_mcnemar(
    risen: int, fallen: int, same: int
) -> None:
    n = max(risen + fallen + same, 1)
    expected = stats.binomtest(risen, risen + fallen, alternative="greater").pvalue if risen else 1
    assert share_rise_p(risen, fallen, n) == pytest.approx(expected)


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.3, -0.05, -0.2])
@pytest.mark.parametrize("counts", [(8, 2, 40), (0, 0, 30), (2, 8, 40), (5, 0, 30), (12, 11, 25)])
def test_a_rise_beyond_a_margin_is_the_score_test(
    counts: tuple[int, int, int], margin: float
) -> None:
    """Against the likeliest shares found by search: P(risen) = q + margin, P(fallen) = q."""
    risen, fallen, n = counts
    q = np.linspace(max(0.0, -margin), (1 - margin) / 2, 100_001)[1:-1]
    with np.errstate(divide="ignore"):
        likely = risen * np.log(q + margin) + fallen * np.log(q)
        likely += (n - risen - fallen) * np.log(1 - 2 * q - margin)
    best = q[np.argmax(likely)]
    variance = n * (2 * best + margin - margin**2)
    expected = stats.norm.sf((risen - fallen - n * margin) / np.sqrt(variance))
    assert share_rise_p(risen, fallen, n, margin) == pytest.approx(expected, abs=2e-4)


def test_counts_of_no_pairs_are_refused() -> None:
    for counts in ((3, 3, 5), (-1, 0, 5), (0, 0, 0)):
        with pytest.raises(ValueError, match="expected counts among n pairs"):
            share_rise_p(*counts)


NAN = np.nan


def test_effective_size_by_hand() -> None:
    assert effective_size([0, 1, 2]) == 3
    assert effective_size([0, 0, 1, 1]) == 2
    assert effective_size([0, 0, 0, 1]) == pytest.approx(16 / 10)
    assert effective_size([]) == 0


def test_distance_by_hand() -> None:
    kept = summarise_distribution([0.0, 0.0, 1.0, NAN], range(4))
    assert (kept.missing, kept.points) == (0.25, (0, 1))
    assert kept.shares == pytest.approx((2 / 3, 1))
    # at or below 0: 3 of 4 there (one missing), 1 of 2 here
    assert compare_distribution(kept, [0.0, 1.0], range(2)).distance == pytest.approx(0.25)
    # missing: 1 of 4 there, all here
    assert compare_distribution(kept, [NAN, NAN], range(2)).distance == pytest.approx(0.75)
    assert compare_distribution(kept, [], []).p == 1


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(30, 400), st.integers(30, 400), st.floats(0, 0.8))
def test_as_scipy(seed: int, n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=n), rng.normal(size=m) + shift
    found = compare_distribution(summarise_distribution(first, range(n)), second, range(m))
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
        alarms += (
            compare_distribution(summarise_distribution(first, range(100)), second, range(300)).p
            < 0.05
        )
    assert alarms <= 50 + 3 * np.sqrt(1000 * 0.05 * 0.95)


def test_answers_to_one_question_are_one() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(50), rng.random(50)
    few = compare_distribution(summarise_distribution(first, range(50)), second, range(50))
    many = compare_distribution(
        summarise_distribution(np.repeat(first, 10), np.repeat(range(50), 10)),
        np.repeat(second, 10),
        np.repeat(range(50), 10),
    )
    assert many.p == pytest.approx(few.p, abs=1e-3)


def test_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        summarise_distribution([], [])
    with pytest.raises(ValueError, match="finite"):
        summarise_distribution([np.inf], [0])
    assert kolmogorov_p_value(0.5, 0, 10) == 1
