"""What a metric returns: the assessment of a sample, and the figures of a data set with
intervals."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol, Self

import numpy as np

from trustassay.core.asked import Asked
from trustassay.statistics import Bools, Floats, Places, intervals
from trustassay.statistics.intervals import Interval

Direction = Literal["higher", "lower", ""]
"""Which end of a number is better; empty for a count, a length or a setting."""

_OPTIONAL_FIELDS = frozenset({"usage", "asked", "fault", "unit"})
"""Fields that a stored assessment may lack."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of one metric for one sample: a score, no score for a reason, or an error.

    Either ``error`` is ``None`` and ``score`` is in the metric's range, or ``error`` says why there
    is no score. A score of ``None`` without an error means that the method gives no score for this
    sample (``reason`` says why); its ``parts`` still count.
    """

    id: str
    """The sample's id."""
    metric: str
    """The metric's name."""
    score: float | None
    """In the metric's range; ``None`` if there is none."""
    verdict: str | None = None
    """One of the metric's verdicts."""
    reason: str = ""
    """Why the score is as it is, or why there is none, in a phrase."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The numbers from which score and summary are computed."""
    evidence: Sequence[Mapping[str, Any]] = ()
    """Rows of JSON values that show how the score came about."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Requests to each capability."""
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each chat model its calls and tokens, including those paid for by other runs."""
    asked: Asked = field(default_factory=dict)
    """The outcomes of its requests; of a failed one each kind of failure once."""
    error: str | None = None
    """Why the sample could not be scored; ``None`` if it was."""
    fault: str | None = None
    """The kind of failure, if known: that of a :class:`~trustassay.errors.CallError`."""
    unit: int | None = field(default=None, compare=False)
    """Number of the unit that the sample shares with others, such as answers to one question; set
    when assessments are summarised, and not stored."""

    @classmethod
    def for_failure(
        cls,
        sample_id: str,
        metric: str,
        error: str,
        fault: str | None = None,
        asked: Asked | None = None,
    ) -> Assessment:
        """Return the assessment of a sample that could not be scored."""
        return cls(sample_id, metric, None, error=error, fault=fault, asked=asked or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, one line of ``assessments.jsonl``; some fields only if set."""
        values = {f: getattr(self, f) for f in self.__slots__ if f != "unit"}
        return {f: value for f, value in values.items() if value or f not in _OPTIONAL_FIELDS}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Assessment:
        """Return the object from the output of :meth:`to_dict`."""
        return cls(**{f: raw[f] for f in cls.__slots__ if f in raw or f not in _OPTIONAL_FIELDS})


@dataclass(frozen=True, slots=True)
class Figure:
    """The meaning of one key of a summary, for the report, the documentation and the terminal."""

    key: str
    """The key in the summary."""
    explanation: str
    """What the figure says, in a sentence."""
    unit: str = "%"
    """Of its value; a percentage by default."""
    group: str = ""
    """Heading under which it is listed."""
    headline: bool = False
    """Whether it is among the few figures that are shown first."""
    statistic: Statistic | None = None
    """How it is computed from the assessments; ``None`` if :meth:`Metric.summarise` does it."""
    better: Direction = ""
    """Which end is better, where the statistic does not say it; empty where neither is."""
    name: str = ""
    """A few words for readers who do not know the key; without it the explanation is shown."""
    range: tuple[float, float] | None = None
    """Least and largest value, where unit and statistic do not determine them
    (:meth:`value_range`)."""

    def value_range(self, score_range: tuple[float, float]) -> tuple[float, float] | None:
        """Return the least and the largest possible value; ``None`` if there are no such bounds.

        A percentage lies between 0 and 100, a mean or a quantile of scores within ``score_range``.
        """
        if self.range is not None:
            return self.range
        if self.unit == "%":
            return 0.0, 100.0
        result = None
        if isinstance(self.statistic, Mean | Quantile) and self.statistic.of == "score":
            result = score_range
        elif isinstance(self.statistic, Mean):
            result = self.statistic.bounds
        # An open end (a score without an upper bound) is of no use for an axis or an interval.
        return result if result is not None and all(map(math.isfinite, result)) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the fields that are shown; ``range`` only if there is one."""
        # `statistic` and `better` are left out: they are code of the metric, not part of what is
        # shown.
        names = ("key", "explanation", "unit", "group", "headline", "name")
        result = {name: getattr(self, name) for name in names}
        return result if self.range is None else {**result, "range": list(self.range)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Figure:
        """Return the object from the output of :meth:`to_dict`."""
        bounds = raw.get("range")
        return cls(**{**raw, "range": bounds and tuple(bounds)})


def index_figures(*figures: Figure, group: str = "") -> dict[str, Figure]:
    """Return figures by key, in the order in which they are shown, all under one heading."""
    return {figure.key: dataclasses.replace(figure, group=group) for figure in figures}


INCOMPLETE = "incomplete"
"""The key of :attr:`Summary.details` under which a metric counts the samples that it scored without
someone who was asked for them and did not answer."""
REMARKS = "remarks"
"""The key of :attr:`Summary.details` under which sentences are."""


@dataclass(frozen=True)
class Summary:
    """The figures of one metric over a data set."""

    values: dict[str, float | int | None]
    """By key; ``None`` for a figure that does not apply."""
    n: int
    """Number of assessments."""
    failed: int
    """Assessments with an error, which no figure counts."""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """95 % confidence intervals by key."""
    support: dict[str, int] = field(default_factory=dict)
    """Number of samples behind each figure."""
    not_applicable: dict[str, str] = field(default_factory=dict)
    """Why a figure has no value."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The metric's options."""
    without_interval: dict[str, str] = field(default_factory=dict)
    """Why a figure has no interval, usually because there are too few samples."""
    error: str | None = None
    """Why there are no figures at all, if the metric failed to compute them."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """A few JSON values for the metric's own ``summary_template``; under :data:`REMARKS` sentences
    that qualify the figures, which every report shows."""
    units: dict[str, int] = field(default_factory=dict)
    """Independent units behind a figure, such as questions, where these are fewer than samples."""

    def add_figure(
        self,
        key: str,
        value: float | int | None,
        n: int,
        interval: Interval | str | None = None,
        *,
        units: int | None = None,
        reason: str = "",
    ) -> None:
        """Add a figure.

        Args:
            key: its key. value: ``None`` if it does not apply. n: samples behind it.
            interval: the interval, or why there is none. units: independent units among the
                samples.
            reason: why there is no value.
        """
        self.values[key], self.support[key] = value, n
        # Equal numbers say nothing that `support` does not say.
        if units is not None and units < n:
            self.units[key] = units
        if value is None:
            self.not_applicable[key] = reason
        elif isinstance(interval, str):
            self.without_interval[key] = interval
        elif interval is not None:
            self.intervals[key] = interval

    def with_settings(
        self, settings: Mapping[str, Any], keys: Iterable[str] | None = None
    ) -> Summary:
        """Return a copy with the metric's settings, and its values in the order of ``keys`` if
        given."""
        values = self.values if keys is None else {key: self.values[key] for key in keys}
        return dataclasses.replace(self, values=values, settings=settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``error``, ``details`` and ``units`` only if there are any."""
        items = vars(self).items()
        return {k: v for k, v in items if v or k not in ("error", "details", "units")}


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of the scores, or of a part.

    ``bounds`` are the smallest and largest possible value of a part; those of the score are the
    metric's. Without bounds the interval is Student's.
    """

    of: str = "score"
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The percentage of a verdict among the scored answers."""

    verdict: str


@dataclass(frozen=True, slots=True)
class Quantile:
    """The q-quantile of the scores, or of a part, 0 < q < 1."""

    q: float
    of: str = "score"


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a part over the answers; it has no interval."""

    of: str


Statistic = Mean | Share | Quantile | Total


ASSESSMENTS_PER_CHUNK = 4096


def split_chunks(assessments: Iterable[Assessment]) -> Iterator[list[Assessment]]:
    """Yield assessments in lists of at most :data:`ASSESSMENTS_PER_CHUNK`, to bound the memory of
    large runs."""
    iterator = iter(assessments)
    while chunk := list(islice(iterator, ASSESSMENTS_PER_CHUNK)):
        yield chunk


def collect_units(assessments: Iterable[Any]) -> Places | None:
    """Return the unit of each assessment, -1 for one that is its own; ``None`` if all are."""
    units = np.array(
        [-1 if assessment.unit is None else assessment.unit for assessment in assessments], np.int64
    )
    return units if (units >= 0).any() else None


def compute_summary(
    statistics: Mapping[str, Statistic],
    assessments: Iterable[Any],
    score_range: tuple[float, float] = (0.0, 1.0),
) -> Summary:
    """Return the figures over assessments, which are iterated once.

    A figure counts the assessments without error that have its score, verdict or part; if there are
    none, it does not apply. Assessments of one unit are not independent, so intervals are over
    units, and so are the minimum numbers that they need.

    Args:
        statistics: the statistic of each figure, by key.
        assessments: of one metric, in any order. score_range: the bounds of the score.
    """
    # Compact arrays: a run may have a million assessments, of which only these numbers are kept.
    units, failed = array("q"), array("b")

    # Collects units and errors on the way, since the iterable can be read only once.
    def collect_while_reading() -> Iterator[Any]:
        for assessment in assessments:
            failed.append(assessment.error is not None)
            units.append(-1 if assessment.unit is None else assessment.unit)
            yield assessment

    columns = _build_columns(statistics, collect_while_reading())
    result = Summary({}, len(failed), sum(failed))
    unit_of_each = np.array(units, dtype=np.int64)
    for key, statistic in statistics.items():
        column = columns[key]
        has_value = ~np.isnan(column)
        numbers, units_with_value = column[has_value], unit_of_each[has_value]
        if not len(numbers):
            result.add_figure(
                key, None, 0, reason="no sample has a value" if result.n else "no sample was scored"
            )
            continue
        interval = compute_interval(statistic, numbers, units_with_value, score_range)
        value = _compute_value(statistic, numbers)
        result.add_figure(
            key, value, len(numbers), interval, units=intervals.count_units(units_with_value)
        )
    return result


def _build_columns(
    statistics: Mapping[str, Statistic], assessments: Iterable[Any]
) -> dict[str, Floats]:
    """Return the contribution of each of n assessments to each figure, shape (n,); NaN for none."""
    columns = {key: array("d") for key in statistics}
    for assessment in assessments:
        for key, statistic in statistics.items():
            if assessment.error is not None:
                value = None
            elif isinstance(statistic, Share):
                value = (
                    None if assessment.verdict is None else assessment.verdict == statistic.verdict
                )
            else:
                value = (
                    assessment.score
                    if statistic.of == "score"
                    else assessment.parts.get(statistic.of)
                )
            columns[key].append(math.nan if value is None else value)
    return {key: np.array(column) for key, column in columns.items()}


def _compute_value(statistic: Statistic, numbers: Any) -> float:
    """Return the value of a figure over the numbers of the answers that it counts."""
    if isinstance(statistic, Total):
        return float(numbers.sum())
    if isinstance(statistic, Quantile):
        return float(np.quantile(numbers, statistic.q))
    return float(numbers.mean()) * (100 if isinstance(statistic, Share) else 1)


def compute_interval(
    statistic: Statistic,
    numbers: Floats,
    units: Places,
    score_range: tuple[float, float],
    what: str = "samples",
    weights: Floats | None = None,
) -> Interval | str | None:
    """Return the interval of a figure, why it has none, or ``None`` if it needs none.

    Args:
        numbers: the contribution of each answer, shape (n,).
        units: the unit of each answer, -1 for one that is its own, shape (n,).
        score_range: the bounds of the score. what: the noun for what is counted, for messages.
        weights: how much each answer counts in a mean or a share, shape (n,); by default once.
    """
    if isinstance(statistic, Total):
        return None
    mean = intervals.unit_mean(numbers, units, weights)
    # Shares need fewer answers than means, whose spread has to be estimated as well; an extreme
    # quantile needs more, or its interval would end beyond the largest value.
    fewest = intervals.MIN_UNITS if isinstance(statistic, Share) else intervals.MIN_UNITS_FOR_MEANS
    if isinstance(statistic, Quantile):
        fewest = max(intervals.MIN_UNITS, intervals.fewest_for_quantile(statistic.q))
    if reason := intervals.reason_too_few_units(
        len(numbers), intervals.count_units(units), mean.units, fewest, what
    ):
        return reason
    if isinstance(statistic, Quantile):
        # For dependent answers there is an interval of the median only.
        if statistic.q != 0.5 and intervals.count_units(units) < len(numbers):
            return "samples of one unit are not independent, so that only a median has an interval"
        result = intervals.unit_quantile_interval(numbers, units, statistic.q)
        return result or "too few units for this quantile"
    if isinstance(statistic, Share):
        low, high = intervals.mean_interval(*mean)
        return 100 * low, 100 * high
    return intervals.interval_within_bounds(
        mean, score_range if statistic.of == "score" else statistic.bounds
    )


class WeightedFigures(Protocol):
    """Figures that can be computed over resamples of a run, in which answers count several times.

    It holds n answers in a fixed order.
    """

    def at(self, places: Places, /) -> Self:
        """Return the same figures over the answers at these positions, shape (k,)."""

    def figures(self, weights: Floats, /) -> Mapping[str, Floats]:
        """Return each figure over b data sets, shape (b,); NaN where it is undefined.

        Args:
            weights: how often each answer counts in each data set, shape (b, n).
        """

    def inputs(self, key: str, /) -> Floats:
        """Return the numbers that a figure takes from each answer, shape (n, c); NaN where it does
        not count."""

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""

    def is_counted(self, key: str, /) -> Bools:
        """Return whether each answer is among those that a figure is a mean of, shape (n,).

        A figure that itself sorts answers into such groups, like an F1 of refusals, counts all
        answers that did not fail.
        """


@dataclass(frozen=True)
class WeightedColumns:
    """Figures that are declared with a statistic, as :class:`WeightedFigures`."""

    statistics: Mapping[str, Statistic]
    """The statistic of each figure, by key."""
    columns: Mapping[str, Floats]
    """The contribution of each answer to each figure, shape (n,); NaN for none."""

    @classmethod
    def of(cls, statistics: Mapping[str, Statistic], assessments: Iterable[Any]) -> WeightedColumns:
        """Build it from assessments, which are iterated once; those that failed contribute
        nothing."""
        return cls(statistics, _build_columns(statistics, assessments))

    def at(self, places: Places) -> WeightedColumns:
        """Return the same figures over the answers at these positions."""
        return WeightedColumns(
            self.statistics, {key: column[places] for key, column in self.columns.items()}
        )

    def figures(self, weights: Floats) -> dict[str, Floats]:
        """Return each figure over the weighted data sets, shape (b,)."""
        result = {}
        for key, statistic in self.statistics.items():
            column = self.columns[key]
            has_value = ~np.isnan(column)
            weights_used, values = weights[:, has_value], column[has_value]
            if isinstance(statistic, Quantile):
                result[key] = _compute_quantiles(values, weights_used, statistic.q)
                continue
            total, size = weights_used @ values, weights_used.sum(axis=1)
            if not isinstance(statistic, Total):
                # A data set whose resample has no answer with this part has no mean: NaN, not an
                # error.
                total = np.divide(total, size, out=np.full(len(size), np.nan), where=size > 0)
            result[key] = total * (100 if isinstance(statistic, Share) else 1)
        return result

    def inputs(self, key: str) -> Floats:
        """Return the numbers that a figure takes from each answer, shape (n, 1)."""
        return self.columns[key][:, None]

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""
        return self.statistics.keys()

    def is_counted(self, key: str) -> Bools:
        """Return whether each answer contributes to a figure, shape (n,)."""
        return ~np.isnan(self.columns[key])


def _compute_quantiles(values: Floats, weights: Floats, q: float) -> Floats:
    """Return the q-quantiles of repeated values, as ``numpy.quantile`` computes them.

    Args:
        values: shape (n,). weights: how often each value occurs, whole numbers, shape (b, n).
        q: between 0 and 1.
    """
    order = np.argsort(values)
    # `cumulative[b, i]`: values up to the i-th smallest in data set b, with repetitions.
    cumulative = weights[:, order].cumsum(axis=1)
    last_position = np.maximum(weights.sum(axis=1) - 1, 0)
    # numpy's default: position q (n - 1) in the sorted list, interpolated between its neighbours.
    position = q * last_position
    below = np.floor(position)
    # Counting the ends at or before a position finds the value there without building the list.
    indices = (cumulative <= np.minimum([below, below + 1], last_position)[..., None]).sum(axis=-1)
    # The NaN is what an empty data set points at.
    low, high = np.append(values[order], np.nan)[indices]
    fraction, gap = position - below, high - low
    # numpy's `_lerp` does the same: from the nearer end, so that both ends are exact.
    result: Floats = np.where(fraction < 0.5, low + gap * fraction, high - gap * (1 - fraction))
    return result
