"""Bootstrap means and intervals against theory and numpy."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trustassay.statistics.resampling import percentile_interval, resampled_means


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
        rows = rng.normal(3.0, 2.0, size=(1, n))
        drawn = resampled_means(rows, np.random.default_rng(trial), 300)
        interval = percentile_interval(np.concatenate(list(drawn))[:, 0])
        assert interval is not None
        hits += interval[0] <= 3.0 <= interval[1]
    assert 0.90 <= hits / trials <= 0.98
