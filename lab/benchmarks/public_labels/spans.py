"""Character precision, recall and F1 of marked spans beside spans by people.

Counts are kept by row, so that a caller can resample rows or clusters of rows: the figures of any
selection are those of its summed counts (micro average), not a mean over rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics.token_matching import harmonic_mean

Span = tuple[int, int]
"""Offsets of the first character and behind the last one."""


class SpanCounts(NamedTuple):
    """Characters of one row, or of several."""

    both: float
    """Characters that are marked, and that people marked."""
    marked: float
    """Characters that are marked."""
    by_people: float
    """Characters that people marked."""


class SpanScores(NamedTuple):
    """Figures of counts; each is 0 where it is not defined."""

    precision: float
    """The share of the marked characters that people marked, too."""
    recall: float
    """The share of the characters that people marked that are marked."""
    f1: float
    """Their harmonic mean."""


def list_characters(spans: Iterable[Span], length: int) -> frozenset[int]:
    """Return the offsets of all characters in spans; each counts once where spans overlap."""
    return frozenset(
        place for start, end in spans for place in range(max(0, start), min(end, length))
    )


def count_characters(marked: Iterable[Span], by_people: Iterable[Span], length: int) -> SpanCounts:
    """Return the counts of one text.

    Args:
        marked: the spans to assess.
        by_people: the spans of the label.
        length: the characters of the text; what a span has beyond it does not count.
    """
    ours, theirs = list_characters(marked, length), list_characters(by_people, length)
    return SpanCounts(len(ours & theirs), len(ours), len(theirs))


def sum_counts(counts: Sequence[SpanCounts], weights: ArrayLike | None = None) -> SpanCounts:
    """Return the counts of several rows as those of one.

    Args:
        counts: the counts of each row.
        weights: how often each row counts, shape (n,), as a resample of clusters has it; ``None``
            for once.
    """
    rows = np.array(counts, dtype=np.float64).reshape(-1, len(SpanCounts._fields))
    times = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    return SpanCounts(*(times @ rows).tolist())


def score_spans(counts: SpanCounts) -> SpanScores:
    """Return precision, recall and F1 of counts."""
    precision = counts.both / counts.marked if counts.marked else 0.0
    recall = counts.both / counts.by_people if counts.by_people else 0.0
    return SpanScores(precision, recall, harmonic_mean(precision, recall))
