"""Columns of the input by which answers are filtered and grouped: session, thumbs, latency, model.

A column is a field with short values. Few different values are groups as they are; numbers and
dates with many are cut into four ranges with the same number of answers. Fields of long texts,
lists, or ids that no two answers share are left out.
"""

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from trustassay.core.asked import ASKED_FIELD
from trustassay.core.outcome import OutcomeKind, OutcomeShare
from trustassay.core.sample import CANONICAL_FIELDS
from trustassay.statistics import Floats, Places

MAX_VALUES = 20
"""Different values of a column; a text with more is no group."""
MAX_SINGLE_NUMBERS = 8
"""Different numbers that are groups by themselves; more are cut into ranges."""
MAX_VALUE_CHARACTERS = 60
"""Characters of the longest value of a column."""
MAX_COLUMNS = 16
"""Columns on a page."""
MAX_FIELDS = 24
"""Fields that are counted; each takes memory for every answer."""
NO_VALUE = -1
"""The place of an answer without a value."""
NO_VALUE_LABEL = "no value"

_CANONICAL_COLUMNS = ("model", "label")
_NOT_COLUMNS = frozenset((*CANONICAL_FIELDS, ASKED_FIELD)) - frozenset(_CANONICAL_COLUMNS)
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.{0,20})?")


@dataclass(frozen=True)
class FileColumn:
    """A column of the input with the group of each answer."""

    name: str
    """The name of the field."""
    labels: Sequence[str]
    """The values, or the ranges of numbers, in their order."""
    places: Places
    """For each answer in input order the place of its label, or -1 for no value, shape (n,)."""

    @property
    def groups(self) -> Iterator[tuple[int, str]]:
        """The places and labels that occur, the answers without a value last."""
        yield from enumerate(self.labels)
        if (self.places == NO_VALUE).any():
            yield NO_VALUE, NO_VALUE_LABEL


class GroupOutcomes(NamedTuple):
    """The outcomes of the answers with one value of a column."""

    place: int
    """The place of the value in the column, or -1."""
    label: str
    """The value."""
    answers: int
    """The number of answers."""
    questions: int
    """The number of questions: the weight of all answers together."""
    shares: Mapping[str, Mapping[OutcomeKind, OutcomeShare]]
    """By metric, the share of each outcome among the questions."""


class ColumnOutcomes(NamedTuple):
    """A column with the outcomes of each of its values."""

    column: FileColumn
    """The column."""
    groups: Sequence[GroupOutcomes]
    """Its groups in the order of the values."""


def read_fields(sample: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a stored sample that may be columns, no name twice; objects are opened
    once."""
    fields: dict[str, Any] = {}
    for name, value in sample.items():
        if name in _NOT_COLUMNS:
            continue
        if not isinstance(value, Mapping):
            fields[name] = value
            continue
        for inner, inner_value in value.items():
            # Fields under ``metadata`` have their short name, unless the sample has one of it.
            is_short = name == "metadata" and inner not in sample
            fields[inner if is_short else f"{name}.{inner}"] = inner_value
    # A column without a name could not be chosen.
    yield from ((name, value) for name, value in fields.items() if name.strip())


class ColumnCounter:
    """Collects the values of a run's samples, one sample after the other in input order."""

    def __init__(self) -> None:
        self._fields: dict[str, _FieldValues | None] = {}
        """By name; ``None`` for a field that is no column."""
        self._count = 0

    def add(self, sample: Mapping[str, Any]) -> None:
        """Add a stored sample."""
        for name, value in read_fields(sample):
            if name not in self._fields and len(self._fields) < MAX_FIELDS:
                self._fields[name] = _FieldValues()
            field = self._fields.get(name)
            if field is not None and not field.add(self._count, value):
                self._fields[name] = None
        self._count += 1

    def columns(self) -> list[FileColumn]:
        """Return the fields that are columns, in the order in which they first occur."""
        columns = (
            field.build_column(name, self._count) for name, field in self._fields.items() if field
        )
        return [column for column in columns if column is not None][:MAX_COLUMNS]


class _FieldValues:
    """The values of one field."""

    def __init__(self) -> None:
        self.labels: dict[str, int] | None = {}
        """The different values, and the place of each; ``None`` if there are too many."""
        self.label_places = array("b")
        self.numbers: array[float] | None = array("d")
        """The values as numbers, dates as seconds; ``None`` if one is a text."""
        self.kinds: set[str] = set()

    def add(self, number: int, value: Any) -> bool:
        """Store the value of an answer; return whether the field may still be a column."""
        if isinstance(value, float) and not math.isfinite(value):
            return True
        if value is None or (isinstance(value, str) and not value.strip()):
            return True
        if not isinstance(value, str | int | float) or len(str(value)) > MAX_VALUE_CHARACTERS:
            return False
        label = _write_label(value)
        kind, as_number = _read_number(label) if not isinstance(value, bool) else ("text", 0.0)
        self.kinds.add(kind)
        if kind == "text" or len(self.kinds) > 1:
            self.numbers = None
        if self.numbers is not None:
            _pad(self.numbers, number, math.nan)
            self.numbers.append(as_number)
        if self.labels is not None:
            if label not in self.labels and len(self.labels) >= MAX_VALUES:
                self.labels = None
            else:
                _pad(self.label_places, number, NO_VALUE)
                self.label_places.append(self.labels.setdefault(label, len(self.labels)))
        return self.labels is not None or self.numbers is not None

    def build_column(self, name: str, count: int) -> FileColumn | None:
        """Return the column, or ``None`` if its values make no groups.

        Args:
            name: of the field.
            count: the number of answers.
        """
        if self.numbers is not None:
            _pad(self.numbers, count, math.nan)
            most = MAX_VALUES if self.kinds == {"date"} else MAX_SINGLE_NUMBERS
            if self.labels is None or len(self.labels) > most:
                return _cut_into_ranges(name, np.array(self.numbers), self.kinds == {"date"})
        if self.labels is None:
            return None
        _pad(self.label_places, count, NO_VALUE)
        places = np.array(self.label_places, dtype=np.int64)
        filled = places[places != NO_VALUE]
        is_single = len(self.labels) + (len(filled) < count) < 2
        # Of ids each occurs once.
        if is_single or len(self.labels) == len(filled) > 1:
            return None
        order = sorted(self.labels, key=_sort_key)
        # The last place is that of no value, -1.
        new_places = [order.index(label) for label in self.labels]
        places = np.array([*new_places, NO_VALUE])[places]
        return FileColumn(name, order, places)


def _pad(values: "array[Any]", count: int, filler: float) -> None:
    """Fill up the values of answers that had none, up to ``count`` answers."""
    missing = count - len(values)
    if missing > 0:
        values.extend(array(values.typecode, [filler]) * missing)


def _write_label(value: str | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else " ".join(str(value).split())


def _read_number(label: str) -> tuple[str, float]:
    """Return the kind of a value, and its number; a date is its second."""
    if _NUMBER.fullmatch(label):
        return "number", float(label)
    if _DATE.fullmatch(label):
        try:
            moment = datetime.fromisoformat(label)
            # A time without a zone is taken as UTC: only the order matters.
            zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            # Whole seconds: the last microsecond of the year 9999 would be rounded to 10000.
            return "date", zoned.astimezone(UTC).replace(microsecond=0).timestamp()
        except (ValueError, OverflowError):
            return "text", 0.0
    return "text", 0.0


def _sort_key(label: str) -> tuple[float, str]:
    kind, number = _read_number(label)
    return (math.inf if kind == "text" else number), label.casefold()


def _cut_into_ranges(name: str, numbers: Floats, are_dates: bool) -> FileColumn | None:
    """Return a column of four ranges with the same number of answers, as far as values allow."""
    is_known = ~np.isnan(numbers)
    known = numbers[is_known]
    edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75]))
    edges = edges[edges > known.min()]
    # Where most values are the lowest one, all others are one range.
    if not len(edges):
        edges = np.unique(known)[1:2]
    ranges, of_known = np.unique(np.searchsorted(edges, known, side="right"), return_inverse=True)
    if len(ranges) < 2:
        return None
    labels = [
        _write_range(known[of_known == at].min(), known[of_known == at].max(), are_dates)
        for at in range(len(ranges))
    ]
    places = np.full(len(numbers), NO_VALUE, dtype=np.int64)
    places[is_known] = of_known
    return FileColumn(name, labels, places)


def _write_range(low: float, high: float, are_dates: bool) -> str:
    if are_dates:
        ends = [datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M") for end in (low, high)]
        # Days suffice where the ends are different days.
        if ends[0][:10] != ends[1][:10]:
            ends = [end[:10] for end in ends]
    else:
        # Thousands separators only where no year can be meant.
        ends = [f"{end:,.6g}" if abs(end) >= 10_000 else f"{end:.6g}" for end in (low, high)]
    return " to ".join(dict.fromkeys(ends))
