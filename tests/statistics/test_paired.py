"""The paired bootstrap: against scipy, by hand, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.lazily import needed
from trustassay.statistics.comparison import (
    FEWEST_CHANGED,
    drawn_counts,
    paired_difference,
    share_rise_p,
)

stats = needed("scipy.stats")

Floats = NDArray[np.float64]


def drawn(x: Floats, seed: int = 0, replicates: int = 4000) -> Floats:
    rng = np.random.default_rng(seed)
    return np.concatenate([c @ x / len(x) for c in drawn_counts(len(x), rng, replicates)])


def test_counts_are_those_of_draws_with_replacement() -> None:
    counts = np.concatenate(list(drawn_counts(5, np.random.default_rng(0), 3000)))
    assert counts.shape == (3000, 5)
    assert (counts.sum(axis=1) == 5).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.06)
    assert counts.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.1)


@pytest.mark.parametrize(("units", "replicates"), [(50, 2000), (40_000, 500), (400_000, 200)])
def test_many_units_are_drawn_fewer_times(units: int, replicates: int) -> None:
    class Told:
        def multinomial(self, n: int, shares: Floats, size: int) -> Floats:
            return np.empty((size, 0))

    drawn = drawn_counts(units, Told())  # type: ignore[arg-type]
    assert sum(len(one) for one in drawn) == replicates


def test_the_interval_is_about_students() -> None:
    x = np.random.default_rng(1).normal(0.1, 0.2, 60)
    found = paired_difference(float(x.mean()), drawn(x), 60, 60)
    t = stats.t.interval(0.95, 59, x.mean(), stats.sem(x))
    assert found.interval == pytest.approx(t, abs=0.006)


def test_without_any_change_the_interval_is_nothing() -> None:
    assert paired_difference(0.0, np.zeros(100), 30, 0).interval == (0.0, 0.0)


def test_few_changes_are_not_told_from_none() -> None:
    x = np.zeros(20)
    x[: FEWEST_CHANGED - 1] = -1.0
    one = paired_difference(float(x.mean()), drawn(x), 20, FEWEST_CHANGED - 1)
    assert one.interval is not None
    assert one.interval[0] < -0.4 and one.interval[1] == 0.0
    x[FEWEST_CHANGED - 1] = -1.0
    other = paired_difference(float(x.mean()), drawn(x), 20, FEWEST_CHANGED)
    assert other.interval is not None
    assert other.interval[1] < 0.0


def test_too_few_questions_have_no_interval() -> None:
    found = paired_difference(0.0, np.zeros(100), 1, 0)
    assert found == (0.0, None, "too few questions: 1; at least 20 are needed")


def test_a_figure_that_most_draws_leave_undefined_has_no_interval() -> None:
    values = np.where(np.arange(100) < 30, np.nan, 0.1)
    found = paired_difference(0.1, values, 40, 40)
    assert (found.interval, found.without) == (None, "too few answers make up the figure")


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
