"""Histograms and drawings."""

from __future__ import annotations

import pytest

from trustassay.report.charts import histogram_svg, histogram_text, percent_svg
from trustassay.report.distributions import Histogram, Series


def test_histogram_counts_bins_and_verdicts() -> None:
    histogram = Histogram()
    for score, verdict in [(0.0, "a"), (0.049, "a"), (0.05, "b"), (1.0, "b"), (1.0, None)]:
        histogram.add(score, verdict)
    histogram.add(None, "a")
    assert histogram.counts == [2, 1, *[0] * 17, 2]
    assert histogram.verdicts == {"a": 2, "b": 2, "no verdict": 1}
    assert (histogram.n, histogram.without_score) == (5, 1)
    assert histogram.edges(19) == pytest.approx((0.95, 1.0))


def test_histogram_clamps_to_its_range_and_refuses_nan() -> None:
    histogram = Histogram(-1.0, 1.0)
    histogram.add(-5.0, "a")
    histogram.add(5.0, "a")
    assert (histogram.counts[0], histogram.counts[-1]) == (1, 1)
    with pytest.raises(ValueError, match="finite"):
        histogram.add(float("nan"), "a")
    with pytest.raises(ValueError, match="range"):
        Histogram(1.0, 1.0)


def test_histogram_memory_is_bounded() -> None:
    histogram = Histogram()
    for index in range(1000):
        histogram.add(0.5, f"verdict {index}")
    assert len(histogram.rows) == 51
    assert histogram.n == 1000
    series = Series.all_of(histogram)
    assert len(series) == 6
    assert sum(one.total for one in series) == 1000


def test_histogram_drawing_has_a_text_alternative() -> None:
    histogram = Histogram()
    for _ in range(999_999):
        histogram.rows.setdefault("answered", [0] * 20)[19] += 1
    histogram.add(0.5, "refused")
    assert histogram_text(histogram) == (
        "Distribution of 1,000,000 scores from 0.00 to 1.00: the largest of 20 bins is 0.95 to "
        "1.00 with 999,999. By verdict: answered 999,999, refused 1."
    )
    drawing = histogram_svg(histogram)
    assert 'role="img"' in drawing
    assert 'height="1.50"' in drawing  # a single one stays visible
    assert histogram_text(Histogram()) == "No scores in the range 0.00 to 1.00."


def test_interval_drawing_stays_on_its_scale() -> None:
    drawing = percent_svg(-3.0, (-10.0, 120.0))
    assert 'x="0.00" y="3" width="100.00"' in drawing
    assert "-3.0 on a scale from 0 to 100, interval -10.0 to 120.0" in drawing


def test_declared_verdicts_keep_their_colours() -> None:
    histogram = Histogram(verdicts=("stable", "unstable"))
    for verdict in ["odd", "odd", "unstable"]:
        histogram.add(0.5, verdict)
    assert histogram.verdicts == {"stable": 0, "unstable": 1, "odd": 2}
    assert [one.name for one in Series.all_of(histogram)] == ["stable", "unstable", "odd"]
    assert 'class="v0"' not in histogram_svg(histogram)
    assert 'class="v1"' in histogram_svg(histogram)
