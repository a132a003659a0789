"""What a metric returns: assessments of samples, and the figures of a data set."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, Protocol, Self

import numpy as np

from trustassay.statistics import Bools, Floats, Places, intervals
from trustassay.statistics.intervals import Interval

Direction = Literal["higher", "lower", ""]
"""Which end of a number is better; neither of a count, a length or a setting."""

_OPTIONAL_FIELDS = frozenset({"usage", "fault", "unit"})
"""Fields of an assessment that a stored line need not have."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of one metric for one sample.

    Either ``error`` is ``None`` and ``score`` is in the metric's range, or ``error`` says why
    there is no score. A score of ``None`` without an error means that the method gives no score
    for this sample alone (``reason`` says why), while its ``parts``, the numbers from which score
    and summary are computed, still count. ``calls`` counts the requests to each capability, and
    ``usage`` for each chat model the calls and their tokens, including those paid for by other
    runs. ``fault`` is the kind of failure, if it is known: that of a
    :class:`~trustassay.capabilities.CallError`. ``unit`` is the number of what its sample belongs
    to together with others of the run, as answers to one question do, for the intervals of a
    summary; it is set where assessments are read to be summarised, and is not stored.
    """

    id: str
    metric: str
    score: float | None
    verdict: str | None = None
    reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: Sequence[Mapping[str, Any]] = ()
    calls: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    error: str | None = None
    fault: str | None = None
    unit: int | None = field(default=None, compare=False)

    @classmethod
    def failed(
        cls, sample_id: str, metric: str, error: str, fault: str | None = None
    ) -> Assessment:
        """Return the assessment of a sample that could not be scored."""
        return cls(sample_id, metric, None, error=error, fault=fault)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, one line of ``assessments.jsonl``; usage and fault only if set."""
        values = {f: getattr(self, f) for f in self.__slots__ if f != "unit"}
        return {f: value for f, value in values.items() if value or f not in _OPTIONAL_FIELDS}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Assessment:
        """Return the object from the output of :meth:`to_dict`."""
        return cls(**{f: raw[f] for f in cls.__slots__ if f in raw or f not in _OPTIONAL_FIELDS})


@dataclass(frozen=True, slots=True)
class Figure:
    """The meaning of a key of a summary, for the report, the documentation and the terminal.

    ``statistic`` says how it is computed from the assessments; ``None`` if the metric's own
    :meth:`Metric.summarise` computes it. ``better`` says whether more of it is better, where the
    statistic does not: "higher", "lower", or "" where neither is.
    ``name`` is a plain name of a few words, for readers who do not know the key; without one the
    explanation takes its place. ``range`` are its least and its largest value, where its unit and
    statistic do not say them (:meth:`within`).
    """

    key: str
    explanation: str
    unit: str = "%"
    group: str = ""
    headline: bool = False
    statistic: Statistic | None = None
    better: Direction = ""
    name: str = ""
    range: tuple[float, float] | None = None

    def within(self, score_range: tuple[float, float]) -> tuple[float, float] | None:
        """Return the least and the largest value, ``None`` where it has no such bounds.

        That of a percentage is 0 to 100, that of a mean or a quantile of scores ``score_range``.
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
        return result if result is not None and all(map(math.isfinite, result)) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the fields that are shown; ``range`` only if there is one."""
        names = ("key", "explanation", "unit", "group", "headline", "name")
        result = {name: getattr(self, name) for name in names}
        return result if self.range is None else {**result, "range": list(self.range)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Figure:
        """Return the object from the output of :meth:`to_dict`."""
        ends = raw.get("range")
        return cls(**{**raw, "range": ends and tuple(ends)})


@cache
def read_figures(package: str | None, name: str = "figures") -> Mapping[str, Figure]:
    """Return figures by their keys from a table beside a metric's module, ``NAME.csv``.

    The statistic is written as ``mean PART``, ``mean PART LEAST LARGEST``, ``share VERDICT``,
    ``quantile PART Q`` or ``total PART``, where ``score`` stands for the score; empty for none.
    """
    table = files(package or __name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    result = {}
    for row in csv.DictReader(io.StringIO(table)):
        of, headline = row.pop("statistic"), row.pop("headline") == "yes"
        fields: dict[str, Any] = row | {
            "statistic": _parse_statistic(*of.split(" ", 1)) if of else None
        }
        result[row["key"]] = Figure(**fields, headline=headline)
    return result


def _parse_statistic(kind: str, operands: str) -> Statistic:
    if kind == "share":
        return Share(operands)
    part, *numbers = operands.split()
    if kind == "total":
        return Total(part)
    if kind == "quantile":
        return Quantile(float(numbers[0]), part)
    return Mean(part, (float(numbers[0]), float(numbers[1])) if numbers else None)


@dataclass(frozen=True)
class Summary:
    """The figures of one metric over a data set.

    ``values`` holds ``None`` for a figure that does not apply, with the reason in
    ``not_applicable``; ``intervals`` are 95 % confidence intervals, and ``without_interval`` says
    why a figure has none, usually because there are too few samples; ``support`` is the number of
    samples behind a figure, and ``units`` that of the independent units, as questions, to which
    they belong, where these are fewer; ``settings`` are the metric's options. ``error`` says why
    there are no figures if the metric failed to compute them. ``details`` are a few JSON values
    that the metric's own ``summary_template`` shows.
    """

    values: dict[str, float | int | None]
    n: int
    failed: int
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    support: dict[str, int] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    without_interval: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)

    def put(
        self,
        key: str,
        value: float | int | None,
        n: int,
        interval: Interval | str | None = None,
        *,
        units: int | None = None,
        why: str = "",
    ) -> None:
        """Add a figure over ``n`` answers of so many ``units``, with its interval, or why it has
        none; ``why`` says why it has no value.
        """
        self.values[key], self.support[key] = value, n
        if units is not None and units < n:
            self.units[key] = units
        if value is None:
            self.not_applicable[key] = why
        elif isinstance(interval, str):
            self.without_interval[key] = interval
        elif interval is not None:
            self.intervals[key] = interval

    def with_settings(
        self, settings: Mapping[str, Any], keys: Iterable[str] | None = None
    ) -> Summary:
        """Return it with the metric's settings; ``keys`` gives the order of its values, if not that
        in which they were put.
        """
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


CHUNK = 4096


def chunks(assessments: Iterable[Assessment]) -> Iterator[list[Assessment]]:
    """Yield assessments in lists of :data:`CHUNK`, so that few are held at once."""
    iterator = iter(assessments)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def units_of(assessments: Iterable[Any]) -> Places | None:
    """Return the unit of each assessment, -1 where it is one by itself; ``None`` if all are."""
    units = np.array(
        [-1 if assessment.unit is None else assessment.unit for assessment in assessments], np.int64
    )
    return units if (units >= 0).any() else None


def summarised(
    statistics: Mapping[str, Statistic],
    assessments: Iterable[Any],
    score_range: tuple[float, float] = (0.0, 1.0),
) -> Summary:
    """Return figures over assessments, which are read once.

    A figure counts the assessments without an error that have its score, verdict or part; if
    there are none, it does not apply. Assessments of one unit are not independent: intervals are
    over units, and so is the least number that they need.
    """
    units, failed = array("q"), array("b")

    def counted() -> Iterator[Any]:
        for assessment in assessments:
            failed.append(assessment.error is not None)
            units.append(-1 if assessment.unit is None else assessment.unit)
            yield assessment

    columns = _build_columns(statistics, counted())
    result = Summary({}, len(failed), sum(failed))
    unit_of_each = np.array(units, dtype=np.int64)
    for key, statistic in statistics.items():
        column = columns[key]
        has_value = ~np.isnan(column)
        numbers, units_with_value = column[has_value], unit_of_each[has_value]
        if not len(numbers):
            result.put(key, None, 0, why="no sample has it" if result.n else "no sample was scored")
            continue
        interval = interval_of(statistic, numbers, units_with_value, score_range)
        value = _compute_value(statistic, numbers)
        result.put(key, value, len(numbers), interval, units=intervals.units_in(units_with_value))
    return result


def _build_columns(
    statistics: Mapping[str, Statistic], assessments: Iterable[Any]
) -> dict[str, Floats]:
    """Return what each of n assessments contributes to each figure, shape (n,); NaN if nothing."""
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
    if isinstance(statistic, Total):
        return float(numbers.sum())
    if isinstance(statistic, Quantile):
        return float(np.quantile(numbers, statistic.q))
    return float(numbers.mean()) * (100 if isinstance(statistic, Share) else 1)


def interval_of(
    statistic: Statistic,
    numbers: Floats,
    units: Places,
    score_range: tuple[float, float],
    what: str = "samples",
) -> Interval | str | None:
    """Return the interval of a figure, why it has none, or ``None`` if it needs none.

    Args:
        numbers: what each answer contributes, shape (n,). units: the number of each one's unit, -1
            for one by itself, shape (n,). score_range: the bounds of the score. what: is counted.
    """
    if isinstance(statistic, Total):
        return None
    mean = intervals.unit_mean(numbers, units)
    fewest = intervals.FEWEST if isinstance(statistic, Share) else intervals.FEWEST_FOR_MEANS
    if isinstance(statistic, Quantile):
        fewest = max(intervals.FEWEST, intervals.fewest_for_quantile(statistic.q))
    if reason := intervals.too_few_units(
        len(numbers), intervals.units_in(units), mean.units, fewest, what
    ):
        return reason
    if isinstance(statistic, Quantile):
        if statistic.q != 0.5 and intervals.units_in(units) < len(numbers):
            return "samples of one unit are not independent; of them only a median has an interval"
        result = intervals.unit_quantile_interval(numbers, units, statistic.q)
        return result or "too few units for this quantile"
    if isinstance(statistic, Share):
        low, high = intervals.mean_interval(*mean)
        return 100 * low, 100 * high
    return intervals.bounded_interval(
        mean, score_range if statistic.of == "score" else statistic.bounds
    )


class Weighted(Protocol):
    """Figures over answers that count several times, or not at all: over resamples of a run.

    It holds n answers, in some order.
    """

    def at(self, places: Places, /) -> Self:
        """Return the same of the answers at these places."""

    def figures(self, weights: Floats, /) -> Mapping[str, Floats]:
        """Return the figures over data sets, shape (b,), in which each answer counts as often as
        ``weights``, shape (b, n), say. NaN where a figure is undefined.
        """

    def inputs(self, key: str, /) -> Floats:
        """Return what a figure takes of each answer, shape (n, c); NaN where it does not count."""

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""

    def counted(self, key: str, /) -> Bools:
        """Return whether each answer is among those that a figure is a mean of, shape (n,).

        A figure that itself says how answers fall into such groups, as an F1 of refusals, counts
        all that did not fail.
        """


@dataclass(frozen=True)
class WeightedColumns:
    """Declared figures as :class:`Weighted`; ``columns`` has shape (n,) for each of them."""

    statistics: Mapping[str, Statistic]
    columns: Mapping[str, Floats]

    @classmethod
    def of(cls, statistics: Mapping[str, Statistic], assessments: Iterable[Any]) -> WeightedColumns:
        """Read the assessments once; those that failed count for nothing."""
        return cls(statistics, _build_columns(statistics, assessments))

    def at(self, places: Places) -> WeightedColumns:
        """Return the same of the answers at these places."""
        return WeightedColumns(
            self.statistics, {key: column[places] for key, column in self.columns.items()}
        )

    def figures(self, weights: Floats) -> dict[str, Floats]:
        """Return the figures over data sets of these weights, shape (b,) each."""
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
                total = np.divide(total, size, out=np.full(len(size), np.nan), where=size > 0)
            result[key] = total * (100 if isinstance(statistic, Share) else 1)
        return result

    def inputs(self, key: str) -> Floats:
        """Return what a figure takes of each answer, shape (n, 1)."""
        return self.columns[key][:, None]

    def keys(self) -> Set[str]:
        """Return the keys of the figures."""
        return self.statistics.keys()

    def counted(self, key: str) -> Bools:
        """Return whether each answer has what the figure is made of, shape (n,)."""
        return ~np.isnan(self.columns[key])


def _compute_quantiles(values: Floats, weights: Floats, q: float) -> Floats:
    """Return the q-quantiles of values, shape (n,), that stand there as often as whole weights,
    shape (b, n), say, as ``numpy.quantile`` has them."""
    order = np.argsort(values)
    cumulative = weights[:, order].cumsum(axis=1)
    last = np.maximum(weights.sum(axis=1) - 1, 0)
    position = q * last
    below = np.floor(position)
    before = (cumulative <= np.minimum([below, below + 1], last)[..., None]).sum(axis=-1)
    low, high = np.append(values[order], np.nan)[before]
    part, gap = position - below, high - low
    result: Floats = np.where(part < 0.5, low + gap * part, high - gap * (1 - part))
    return result
