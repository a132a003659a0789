"""Characters of spans are counted once each, and figures are those of summed counts."""

import numpy as np
import pytest

from lab.benchmarks.public_labels.spans import (
    SpanCounts,
    SpanScores,
    count_characters,
    score_spans,
    sum_counts,
)


def test_counts_of_a_text_by_hand() -> None:
    # Characters 2 to 4 are marked, 4 to 7 by people: the fourth alone is in both.
    assert count_characters([(2, 5)], [(4, 8)], 10) == SpanCounts(1, 3, 4)
    assert count_characters([], [], 10) == SpanCounts(0, 0, 0)


def test_overlapping_spans_count_once_and_nothing_counts_beyond_the_text() -> None:
    assert count_characters([(0, 4), (2, 6), (8, 99)], [(0, 10)], 10) == SpanCounts(8, 8, 10)


def test_the_figures_of_rows_are_those_of_their_sum() -> None:
    counts = [SpanCounts(1, 2, 4), SpanCounts(3, 6, 4)]
    assert sum_counts(counts) == SpanCounts(4, 8, 8)
    assert score_spans(sum_counts(counts)) == SpanScores(0.5, 0.5, 0.5)
    # A resample that draws the second row twice and the first one not at all.
    assert sum_counts(counts, np.array([0.0, 2.0])) == SpanCounts(6, 12, 8)
    assert score_spans(SpanCounts(6, 12, 8)) == pytest.approx((0.5, 0.75, 0.6))


def test_figures_that_are_not_defined_are_zero() -> None:
    assert sum_counts([]) == SpanCounts(0, 0, 0)
    assert score_spans(SpanCounts(0, 0, 5)) == SpanScores(0, 0, 0)
    assert score_spans(SpanCounts(0, 5, 0)) == SpanScores(0, 0, 0)
