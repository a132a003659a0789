"""The figures of a data set: means, shares and quantiles of the scores."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from trustassay.metric import (
    Assessment,
    Figure,
    Metric,
    Quantile,
    Summary,
    read_figures,
)
from trustassay.statistics.intervals import (
    FEWEST,
    FEWEST_FOR_MEANS,
    Interval,
    RowSums,
    mean_interval,
    too_few_units,
)
from trustassay.summaries import Summarised, interval_of, units_of

Floats = NDArray[np.float64]

CHUNK = 4096


FIGURES: Mapping[str, Figure] = read_figures(__package__)
SEMANTIC_FIGURES: Mapping[str, Figure] = read_figures(__package__, "semantic")
_TOTALS = frozenset({"refused", "empty", "cut", "unseen"})
"""Figures that are sums, and not means."""
_COUNTED = _TOTALS | {"perturbations"}
"""Figures that say what was done, and so have no interval."""
_QUANTILES = {"median": 0.5, "p90": 0.9}
_LARGEST = {
    "stable_share": 100.0,
    "angle_degrees": 180.0,
    "gamma_length": 2.0,
    "pairwise_distance": 2.0,
}
"""The largest value of one sample, where that is not 1."""


@dataclass
class Scores:
    """What is kept of the scored samples: their scores, and sums of all that is averaged.

    A row of the sums is 1, whether the sample is stable, and a number for each of ``keys``; the
    number of ``stable_mean`` is 0 for a sample that is not stable.
    """

    keys: Sequence[str]
    sums: RowSums
    scores: array[float]
    units: array[int]

    @classmethod
    def of(cls, figures: Iterable[str]) -> Scores:
        """Return those of no sample yet, for these figures."""
        keys = [key for key in figures if key not in _QUANTILES]
        return cls(keys, RowSums(2 + len(keys)), array("d"), array("q"))

    def add(
        self,
        scores: Floats,
        stable: NDArray[np.bool_],
        parts: Mapping[str, Floats],
        units: NDArray[np.int64] | None = None,
    ) -> None:
        """Count in more samples; all shapes are (m,). units: as for :meth:`RowSums.add`."""
        own = {"mean": scores, "stable_mean": scores * stable, "stable_share": 100.0 * stable}
        columns = [np.ones(len(scores)), stable, *({**parts, **own}[key] for key in self.keys)]
        self.sums.add(np.stack(columns, axis=1, dtype=np.float64), units)
        self.scores.frombytes(scores.astype(np.float64).tobytes())
        known = np.full(len(scores), -1) if units is None else units
        self.units.frombytes(known.astype(np.int64).tobytes())

    def behind(self, key: str) -> int:
        """Return the number of samples that a figure is made of."""
        return int(self.sums.total[1]) if key == "stable_mean" else len(self.scores)

    def units_behind(self, key: str) -> int:
        """Return the number of units that a figure is made of."""
        if key != "stable_mean":
            return self.sums.units
        return int(self.sums.alone[1]) + int((self.sums.several[:, 1] > 0).sum())

    def value(self, key: str) -> float:
        """Return a figure, of which there is at least one sample."""
        if key in _QUANTILES:
            return float(np.quantile(self.scores, _QUANTILES[key]))
        return float(self.sums.total[2 + self.keys.index(key)]) / self.behind(key)

    def interval(self, key: str) -> Interval | str:
        """Return a figure's interval, or why it has none."""
        if key in _QUANTILES:
            q = Quantile(_QUANTILES[key])
            found = interval_of(q, np.array(self.scores), np.array(self.units), (0.0, 1.0))
            assert found is not None
            return found
        each = np.eye(len(self.sums.total))
        below = each[int(key == "stable_mean")]
        mean, variance, worth = self.sums.ratio(each[2 + self.keys.index(key)], below)
        fewest = FEWEST if key == "stable_share" else FEWEST_FOR_MEANS
        if reason := too_few_units(self.behind(key), self.units_behind(key), worth, fewest):
            return reason.replace("samples", "stable samples") if key == "stable_mean" else reason
        largest = _LARGEST.get(key, 1.0)
        share = min(max(mean / largest, 0.0), 1.0)
        low, high = mean_interval(share, variance / largest**2, worth)
        return low * largest, high * largest


def summarise(
    metric: Metric, assessments: Collection[Assessment], figures: Mapping[str, Figure]
) -> Summary:
    """Return the figures over the scored samples, read once and in order."""
    failed, scores = _collect(assessments, figures)
    found = Summarised(n=len(assessments), failed=failed)
    why = "no answer is stable" if scores.scores else "no sample was scored"
    for key in figures:
        n, value, interval = scores.behind(key), None, None
        if n:
            value = scores.value(key)
            value = round(value * len(scores.scores)) if key in _TOTALS else value
            interval = None if key in _COUNTED else scores.interval(key)
        found.put(key, value, n, interval, units=scores.units_behind(key), why=why)
    return Summary.of(found, metric.settings())


def _collect(assessments: Collection[Assessment], figures: Iterable[str]) -> tuple[int, Scores]:
    """Return how many samples failed, and what is kept of those with a score."""
    failed, found = 0, Scores.of(figures)
    averaged = [key for key in found.keys if key not in ("mean", "stable_mean", "stable_share")]
    iterator = iter(assessments)
    while chunk := list(islice(iterator, CHUNK)):
        failed += sum(one.error is not None for one in chunk)
        scored = [one for one in chunk if one.error is None and one.score is not None]
        if scored:
            found.add(
                np.array([one.score for one in scored], dtype=np.float64),
                np.array([one.verdict == "stable" for one in scored]),
                {key: np.array([one.parts.get(key, 0.0) for one in scored]) for key in averaged},
                units_of(scored),
            )
    return failed, found
