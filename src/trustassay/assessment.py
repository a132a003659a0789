"""What a metric returns: assessments of samples, and the figures of a data set."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from trustassay.summaries import Mean, Quantile, Share, Statistic, Summarised, Total

Direction = Literal["higher", "lower", ""]
"""Which end of a number is better; neither of a count, a length or a setting."""

_OPTIONAL = frozenset({"usage", "fault", "unit"})
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
        named = {f: getattr(self, f) for f in self.__slots__ if f != "unit"}
        return {f: value for f, value in named.items() if value or f not in _OPTIONAL}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Assessment:
        """Return the object from the output of :meth:`to_dict`."""
        return cls(**{f: raw[f] for f in cls.__slots__ if f in raw or f not in _OPTIONAL})


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
        found = None
        if isinstance(self.statistic, Mean | Quantile) and self.statistic.of == "score":
            found = score_range
        elif isinstance(self.statistic, Mean):
            found = self.statistic.bounds
        return found if found is not None and all(map(math.isfinite, found)) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of the fields that are shown; ``range`` only if there is one."""
        names = ("key", "explanation", "unit", "group", "headline", "name")
        found = {name: getattr(self, name) for name in names}
        return found if self.range is None else {**found, "range": list(self.range)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Figure:
        """Return the object from the output of :meth:`to_dict`."""
        return cls(
            **{**raw, "range": raw["range"] and tuple(raw["range"])} if "range" in raw else raw
        )


@cache
def read_figures(package: str | None, name: str = "figures") -> Mapping[str, Figure]:
    """Return figures by their keys from a table beside a metric's module, ``NAME.csv``.

    The statistic is written as ``mean PART``, ``mean PART LEAST LARGEST``, ``share VERDICT``,
    ``quantile PART Q`` or ``total PART``, where ``score`` stands for the score; empty for none.
    """
    table = files(package or __name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return {
        row["key"]: Figure(
            row["key"],
            row["explanation"],
            row["unit"],
            row["group"],
            row["headline"] == "yes",
            _statistic(*row["statistic"].split(" ", 1)) if row["statistic"] else None,
            cast("Direction", row["better"]),
            row["name"],
        )
        for row in csv.DictReader(io.StringIO(table))
    }


def _statistic(kind: str, of: str) -> Statistic:
    if kind == "share":
        return Share(of)
    part, *numbers = of.split()
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

    values: Mapping[str, float | int | None]
    n: int
    failed: int
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    support: Mapping[str, int] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    without_interval: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, found: Summarised, settings: Mapping[str, Any], keys: Iterable[str] | None = None
    ) -> Summary:
        """Return figures as a summary; ``keys`` gives their order, if not that of ``found``."""
        return cls(
            found.values if keys is None else {key: found.values[key] for key in keys},
            found.n,
            found.failed,
            found.intervals,
            found.support,
            found.not_applicable,
            settings,
            found.without_interval,
            units=found.units,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``error``, ``details`` and ``units`` only if there are any."""
        named = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in named.items() if v or k not in ("error", "details", "units")}
