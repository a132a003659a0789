"""How far scores tell right answers from wrong ones, with each question counted so many times.

Counts are what a bootstrap draws, a half of the questions, or one source: shape (R, questions).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.sets import SYSTEMS, Record
from trustassay.statistics.resampling import generator, percentile_interval

REPLICATES = 1000
Floats = NDArray[np.float64]


class Systems:
    """AUROC in % of each system's answers against people's labels, and their mean."""

    columns = (*SYSTEMS, "mean")

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.questions = len(records) // len(SYSTEMS)
        self.labels = np.array([one["label"] for one in records], dtype=bool)
        self.sources = np.array([one["source"] for one in records[:: len(SYSTEMS)]])

    def measure(self, scores: Floats, counts: Floats) -> Floats:
        """Return shape (R, columns)."""
        columns = [
            weighted_auroc(lowest(scores)[place :: len(SYSTEMS)], self._labels(place), counts)
            for place in range(len(SYSTEMS))
        ]
        return 100 * np.column_stack([*columns, np.mean(columns, axis=0)])

    def one_figure(self, scores: Floats, counts: Floats) -> Floats:
        """Return what forms are chosen by, shape (R,)."""
        return np.asarray(self.measure(scores, counts)[:, -1])

    def within(self, scores: Floats) -> Floats:
        """Return the mean over the sources of the figures within each, shape (columns,)."""
        counts = [self.sources == source for source in sorted(set(self.sources))]
        return np.asarray(self.measure(scores, np.array(counts, dtype=float)).mean(axis=0))

    def _labels(self, place: int) -> NDArray[np.bool_]:
        return self.labels[place :: len(SYSTEMS)]


class Pairs:
    """Share in % of questions whose right answer scores above a wrong one; a tie counts half."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        kinds = list(dict.fromkeys(one["kind"] for one in records))
        self.kinds = len(kinds)
        self.questions = len(records) // self.kinds
        self.columns = tuple(f"{kinds[0]} > {kind}" for kind in kinds[1:])

    def measure(self, scores: Floats, counts: Floats, tie: float = 0.5) -> Floats:
        """Return shape (R, columns); ``tie`` is what a tie counts."""
        rows = lowest(scores).reshape(-1, self.kinds)
        right, wrong = rows[:, :1], rows[:, 1:]
        won = (right > wrong) + tie * (right == wrong)
        return np.asarray(100 * (counts @ won) / counts.sum(axis=1, keepdims=True))

    def one_figure(self, scores: Floats, counts: Floats) -> Floats:
        """Return what forms are chosen by, shape (R,)."""
        return np.asarray(self.measure(scores, counts).mean(axis=1))


Judge = Systems | Pairs


def judge_of(records: Sequence[Record]) -> Judge:
    """Return what measures a set."""
    return Systems(records) if "source" in records[0] else Pairs(records)


def lowest(scores: Floats) -> Floats:
    """Return scores in which an answer without one comes last."""
    return np.asarray(np.where(np.isnan(scores), -np.inf, scores))


def weighted_auroc(scores: Floats, labels: NDArray[np.bool_], counts: Floats) -> Floats:
    """Return the AUROC of n scores, each counted so many times; shape (R,) for counts (R, n).

    Ties count half; 0.5 where all that count have the same label.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(
        np.r_[True, np.diff(np.unique(scores, return_inverse=True)[1][order]) > 0]
    )
    right = np.add.reduceat((counts * labels)[:, order], starts, axis=1)
    wrong = np.add.reduceat((counts * ~labels)[:, order], starts, axis=1)
    below = np.cumsum(wrong, axis=1) - wrong / 2
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    won = (right * below).sum(axis=1)
    return np.asarray(np.divide(won, pairs, out=np.full(len(counts), 0.5), where=pairs > 0))


def all_once(questions: int) -> Floats:
    """Return the counts of every question once."""
    return np.ones((1, questions))


def half(questions: int, rest: int) -> Floats:
    """Return the counts of the even (0) or the odd (1) questions."""
    return np.asarray(np.arange(questions) % 2 == rest, dtype=float)[None]


def drawn(questions: int, counts: Floats | None = None) -> Floats:
    """Return the counts of as many questions drawn anew, the same for all variants."""
    chosen = np.flatnonzero((all_once(questions) if counts is None else counts)[0])
    rng = generator(0, "questions drawn", str(len(chosen)))
    picks = chosen[rng.integers(len(chosen), size=(REPLICATES, len(chosen)))]
    return np.array([np.bincount(row, minlength=questions) for row in picks], dtype=float)


def with_interval(value: float, replicates: Floats) -> str:
    """Write a figure with its bootstrap interval of 95 %."""
    interval = percentile_interval(replicates)
    assert interval is not None
    return f"{value:.1f} ({interval[0]:.1f} to {interval[1]:.1f})"


def shorter(records: Sequence[Record]) -> Floats:
    """Return the scores of a rule that knows nothing: the shorter answer is right."""
    return -np.array([len(one["response"]) for one in records], dtype=float)
