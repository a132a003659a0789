"""Generators, the bootstrap of samples and of clusters, and the tests that use it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.statistics import resampling as module
from trustassay.statistics.resampling import (
    bootstrap_test,
    cluster_numbers,
    cluster_weights,
    draw_counts,
    generator,
    holm,
    percentile_interval,
    resample_interval,
)


def draws(seed: int, *purpose: str) -> list[float]:
    return [float(x) for x in generator(seed, *purpose).random(4)]


def test_the_same_purpose_gives_the_same_numbers_in_any_order() -> None:
    first = {name: draws(7, name) for name in ("a", "b", "c")}
    assert first == {name: draws(7, name) for name in ("c", "a", "b")}


def test_seed_and_every_part_of_the_purpose_count() -> None:
    different = [
        draws(0, "q1", "bootstrap"),
        draws(1, "q1", "bootstrap"),
        draws(0, "q2", "bootstrap"),
        draws(0, "q1", "shuffle"),
        draws(0, "bootstrap", "q1"),
        draws(0, "q1"),
        draws(0),
        draws(0, ""),
    ]
    assert len({tuple(d) for d in different[:-1]}) == len(different) - 1


def test_purposes_do_not_overlap() -> None:
    a, b = generator(0, "a").random(2000), generator(0, "b").random(2000)
    assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.08


def test_the_numbers_are_those_of_ever() -> None:
    """A change here changes every interval that anyone has published."""
    assert generator(0, "bootstrap", "grounding").integers(0, 1000, 5).tolist() == [
        266,
        536,
        584,
        141,
        123,
    ]


@given(st.integers(0, 2**70), st.text(alphabet=st.characters()))
def test_any_seed_and_any_text_will_do(seed: int, purpose: str) -> None:
    assert draws(seed, purpose) == draws(seed, purpose)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "x")


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
        values = rng.normal(3.0, 2.0, size=n)
        drawn = draw_counts(n, np.random.default_rng(trial), 300)
        interval = percentile_interval(np.concatenate([counts @ values / n for counts in drawn]))
        assert interval is not None
        hits += interval[0] <= 3.0 <= interval[1]
    assert 0.90 <= hits / trials <= 0.98


multitest = needed("statsmodels.stats.multitest")
stats = needed("scipy.stats")


def weights(numbers: list[int], replicates: int = 500, seed: int = 0) -> np.ndarray:
    drawn = cluster_weights(numbers, np.random.default_rng(seed), replicates)
    return np.concatenate(list(drawn))


def test_samples_of_a_cluster_are_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WEIGHTS_AT_ONCE", 64)
    numbers = cluster_numbers(["a", "b", "a", "c", "b", "a"])
    assert numbers.tolist() == [0, 1, 0, 2, 1, 0]
    drawn = weights(numbers.tolist())
    assert drawn.shape == (500, 6)
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert (drawn[:, 0] == drawn[:, 5]).all()
    assert (drawn[:, 1] == drawn[:, 4]).all()
    assert (drawn[:, [0, 1, 3]].sum(axis=1) == 3).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(6), abs=0.15)
    assert list(cluster_weights([], np.random.default_rng(0), 10)) == []


def test_the_interval_of_a_mean_is_students() -> None:
    values = np.random.default_rng(1).normal(size=200)
    drawn = weights(list(range(200)), 4000) @ values / 200
    found = resample_interval(drawn, 200)
    assert isinstance(found, tuple)
    reach = stats.t.ppf(0.975, 199) * values.std(ddof=1) / math.sqrt(200)
    assert found == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.012)


def test_there_is_no_interval_of_too_little() -> None:
    assert resample_interval([0.1, 0.2], 19) == "too few questions: 19; at least 20 are needed"
    rare = resample_interval([0.1, 0.2], 60, rarer=9)
    assert rare == "too few answers of one kind: 9; at least 10 are needed"
    nan = math.nan
    assert "undefined in more than a tenth" in str(resample_interval([0.1] * 8 + [nan] * 2, 50))
    assert "the same in every resample" in str(resample_interval([1.0] * 10, 50))
    assert "at least 1,000 are needed" in str(
        resample_interval([0.1, 0.2], 999, biased=0.1)
    ).replace("1000", "1,000")


def test_a_biased_figure_is_shifted_down_by_twice_its_bias() -> None:
    drawn = np.linspace(0.2, 0.4, 1001)
    plain, shifted, low = (resample_interval(drawn, 1000, biased=one) for one in (None, 0.25, 0.0))
    assert isinstance(plain, tuple)
    assert shifted == pytest.approx((plain[0] - 0.1, plain[1] - 0.1))
    assert isinstance(low, tuple)
    assert low[0] == 0


def test_a_difference_of_means_has_the_p_value_of_the_paired_t() -> None:
    rng = np.random.default_rng(2)
    differences = rng.normal(0.2, 1, 120)
    drawn = weights(list(range(120)), 8000) @ differences / 120
    told = bootstrap_test(float(differences.mean()), drawn, 120)
    expected = stats.ttest_1samp(differences, 0)
    assert told.p == pytest.approx(expected.pvalue, rel=0.15)
    assert told.interval == pytest.approx(tuple(expected.confidence_interval()), abs=0.01)


def test_tests_that_say_nothing() -> None:
    assert bootstrap_test(0.0, np.zeros(100), 40).p == 1
    assert bootstrap_test(0.1, np.full(100, 0.1), 40).p is None
    assert "too few questions" in bootstrap_test(0.1, np.zeros(100), 10).without
    assert "undefined" in bootstrap_test(0.1, np.full(100, np.nan), 40).without


@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_holm_is_statsmodels(m: int) -> None:
    p_values = np.random.default_rng(m).random(m) ** 3
    p_values[m // 2 :] = p_values[0]
    expected = multitest.multipletests(p_values, method="holm")[1]
    assert holm(p_values.tolist()) == pytest.approx(expected.tolist())


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
