"""Bootstrap sums against theory, numpy, and their own promises."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trustassay.statistics import bootstrap
from trustassay.statistics.bootstrap import BootstrapSums, percentile_interval

Floats = NDArray[np.float64]


def resample(rows: Floats, *, seed: int = 0, replicates: int = 1000, piece: int = 0) -> Any:
    sums = BootstrapSums(
        len(rows), rows.shape[1], np.random.default_rng(seed), replicates=replicates
    )
    for start in range(0, len(rows), piece or len(rows) or 1):
        sums.add(rows[start : start + (piece or len(rows))])
    sums.finish()
    return sums


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bootstrap, "CHUNK", 16)
    return 16


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
def test_the_total_is_the_plain_sum(small_blocks: int, n: int) -> None:
    rows = np.random.default_rng(1).normal(size=(n, 3))
    assert resample(rows, replicates=10).total == pytest.approx(rows.sum(axis=0))


@pytest.mark.parametrize("n", [1, 16, 50])
def test_each_resample_draws_n_rows_and_none_else(small_blocks: int, n: int) -> None:
    counts = resample(np.eye(n), replicates=200).resampled
    assert np.all(counts.sum(axis=1) == n)
    assert np.all(counts >= 0)
    assert np.all(counts == np.round(counts))


def test_counts_are_multinomial_over_many_blocks(small_blocks: int) -> None:
    """Counts have mean 1, variance 1 - 1/n, and covariance -1/n, inside and across blocks."""
    n, replicates = 40, 10_000
    counts = resample(np.eye(n), replicates=replicates).resampled
    error = 5 / np.sqrt(replicates)
    assert counts.mean(axis=0) == pytest.approx(np.ones(n), abs=error)
    covariance = np.cov(counts, rowvar=False)
    expected = np.eye(n) - 1 / n
    assert np.abs(covariance - expected).max() < 2.5 * error


def test_counts_follow_the_binomial_law_to_its_tail(small_blocks: int) -> None:
    """One row's count is Binomial(n, 1/n): P(0) = (1 - 1/n)^n, P(1) = (1 - 1/n)^(n-1), ..."""
    n = 40
    counts = resample(np.eye(n), replicates=20_000).resampled
    share = [float(np.mean(counts == k)) for k in range(4)]
    p0 = (1 - 1 / n) ** n
    p1 = p0 / (1 - 1 / n)
    p2 = p1 * (n - 1) / 2 / (n - 1)
    p3 = p2 * (n - 2) / 3 / (n - 1)
    assert share == pytest.approx([p0, p1, p2, p3], abs=0.003)


def test_mean_and_variance_of_resampled_sums_match_theory(small_blocks: int) -> None:
    """E = sum, Var = n * population variance (Efron 1979)."""
    rows = np.random.default_rng(2).exponential(size=(200, 1))
    sums = resample(rows, replicates=8_000).resampled[:, 0]
    sigma = float(np.sqrt(len(rows) * rows.var()))
    assert sums.mean() == pytest.approx(rows.sum(), abs=5 * sigma / np.sqrt(8_000))
    assert sums.std() == pytest.approx(sigma, rel=0.03)


@given(n=st.integers(0, 70), piece=st.integers(1, 70), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_the_pieces_in_which_rows_arrive_do_not_matter(n: int, piece: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "CHUNK", 16)
        rows = np.random.default_rng(3).normal(size=(n, 2))
        whole = resample(rows, seed=seed, replicates=5)
        pieces = resample(rows, seed=seed, replicates=5, piece=piece)
    assert np.array_equal(whole.resampled, pieces.resampled)
    assert np.array_equal(whole.total, pieces.total)


def test_columns_are_resampled_together() -> None:
    rows = np.repeat(np.random.default_rng(4).normal(size=(50, 1)), 2, axis=1)
    sums = resample(rows, replicates=20).resampled
    assert np.array_equal(sums[:, 0], sums[:, 1])


def test_nothing_at_all_has_sums_of_zero() -> None:
    sums = resample(np.empty((0, 2)), replicates=3)
    assert np.array_equal(sums.resampled, np.zeros((3, 2)))


def test_more_or_fewer_rows_than_announced_are_an_error() -> None:
    sums = BootstrapSums(3, 1, np.random.default_rng(0), replicates=2)
    sums.add(np.ones((2, 1)))
    with pytest.raises(ValueError, match="fewer rows"):
        sums.finish()
    with pytest.raises(ValueError, match="more rows"):
        sums.add(np.ones((2, 1)))
    sums.add(np.ones((1, 1)))
    sums.finish()
    with pytest.raises(ValueError, match="more rows"):
        sums.add(np.ones((1, 1)))


def test_a_buffer_may_be_used_again_after_it_was_added() -> None:
    sums = BootstrapSums(4, 1, np.random.default_rng(0), replicates=2)
    buffer = np.ones((2, 1))
    sums.add(buffer)
    buffer[:] = 5
    sums.add(buffer)
    sums.finish()
    assert sums.total.tolist() == [12.0]


def test_memory_does_not_grow_with_the_number_of_rows(small_blocks: int) -> None:
    def peak(n: int) -> int:
        rows = np.ones((100, 2))
        sums = BootstrapSums(n, 2, np.random.default_rng(0), replicates=200)
        tracemalloc.start()
        for _ in range(n // 100):
            sums.add(rows)
        sums.finish()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(1600) < 1.5 * peak(200)


@example([0.0, 0.0, -2252.0, -2252.0], 1 / 3)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1),
    st.floats(0.01, 0.99),
)
def test_percentile_intervals_are_numpys_quantiles(values: list[float], level: float) -> None:
    found = percentile_interval(values, level)
    defined = [v for v in values if not math.isnan(v)]
    if not defined:
        assert found is None
        return
    low, high = (1 - level) / 2 * 100, (1 + level) / 2 * 100
    rounding = 1e-12 * max(1.0, *map(abs, defined))
    assert found == pytest.approx(tuple(np.percentile(defined, [low, high])), abs=rounding)
    assert found is not None and min(defined) <= found[0] <= found[1] <= max(defined)


def test_no_replicates_no_interval() -> None:
    assert percentile_interval([]) is None


def test_intervals_of_a_normal_mean_cover_it_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    hits, trials, n = 0, 300, 60
    for trial in range(trials):
        rows = rng.normal(3.0, 2.0, size=(n, 1))
        means = resample(rows, seed=trial, replicates=300).resampled[:, 0] / n
        interval = percentile_interval(means)
        assert interval is not None
        hits += interval[0] <= 3.0 <= interval[1]
    assert 0.90 <= hits / trials <= 0.98
