"""Columns with numbers that together are one field: Context 1, Quelle 2, contexts/0/text."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from trustassay.core.sample import write_number
from trustassay.input.layouts import (
    AMBIGUOUS,
    NAMES,
    SPELLINGS,
    normalise_name,
    translate_name,
)
from trustassay.input.passages import is_prose
from trustassay.input.records import is_missing, parse_value


class NumberedColumn(NamedTuple):
    """A column that has one of several values of a field."""

    name: str
    """Its name in the record."""
    number: int
    """Its number; -1 for the column of the same name without a number."""
    part: str = ""
    """The part of a passage that it has, such as "title"; empty for a whole value."""


class ColumnSeries(NamedTuple):
    """Columns that together have the values of a field."""

    canonical: str
    """The canonical field."""
    columns: Sequence[NumberedColumn]
    """The columns in the order of their numbers."""
    is_certain: bool
    """Whether the values need not be read to know that they are of this field."""


_NUMBERED = re.compile(
    rf"(.+?)(?:_(?:{'|'.join(NAMES['numbered']['signs'].split())}))?_?(\d{{1,3}})(?:_(\D+))?"
)
_NUMBERED_FIELDS: Mapping[str, str] = {
    name: canonical
    for canonical in ("documents", "claims", "answers", "incorrect_answers", "resamples")
    for name in (
        *(canonical, *SPELLINGS.get(canonical, ())),
        *NAMES["numbered"].get(canonical, "").split(),
    )
}
"""By name without the number, the canonical field."""
_TEXT_PARTS = frozenset(("", *NAMES["passages"]["texts"].split()))
_PARTS = _TEXT_PARTS.union(*(NAMES["passages"][kind].split() for kind in ("titles", "ids")))
"""Parts of a passage that have columns of their own."""


def find_column_series(
    names: Sequence[str], names_to_keep: Collection[str]
) -> Mapping[str, ColumnSeries]:
    """Return the series of numbered columns in a record, by the known name that stands for each.

    A column of the same name without a number comes first. Of several series for a field only one
    counts: the first; and "Source 1" only where no other name is used for the passages.

    Args:
        names: the names of a record, the known ones in their known form.
        names_to_keep: names that are not read so.
    """
    columns_by_name: dict[str, list[NumberedColumn]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(normalise_name(name)) if name not in names_to_keep else None
        stem, part = map(translate_name, (match[1], match[3] or "")) if match else ("", "")
        if match and stem in _NUMBERED_FIELDS and part in _PARTS:
            column = NumberedColumn(name, int(match[2]), part)
            columns_by_name.setdefault(stem, []).append(column)
    result: dict[str, ColumnSeries] = {}
    # The names that may mean something else come last.
    for stem in sorted(columns_by_name, key=AMBIGUOUS.__contains__):
        canonical, is_ambiguous = _NUMBERED_FIELDS[stem], stem in AMBIGUOUS
        names_of_field = {canonical, *SPELLINGS.get(canonical, ())} - AMBIGUOUS
        is_beside_others = is_ambiguous and not names_of_field.isdisjoint(names)
        if is_beside_others or canonical in {series.canonical for series in result.values()}:
            continue
        known_name = stem if stem in names_of_field else canonical
        unnumbered = [NumberedColumn(name, -1) for name in (stem, known_name) if name in names]
        columns = sorted(columns_by_name[stem], key=lambda column: column.number)
        has_text_parts = any(column.part in _TEXT_PARTS and column.part for column in columns)
        result[known_name] = ColumnSeries(
            canonical, [*unnumbered[:1], *columns], has_text_parts or not is_ambiguous
        )
    return result


def join_numbered(
    record: Mapping[str, Any], numbered: Mapping[str, ColumnSeries]
) -> Mapping[str, Any]:
    """Return a record in which columns with numbers are one field, with a list of their values.

    Empty ones are left out. A list in a column adds its elements.
    """
    for known_name, series in numbered.items():
        parts_by_number: dict[int, dict[str, Any]] = {}
        for column in series.columns:
            value = record[column.name]
            is_blank = isinstance(value, str) and not value.strip()
            if not is_blank and not is_missing(value):
                parts_by_number.setdefault(column.number, {})[column.part] = value
        values = [value for parts in parts_by_number.values() for value in _join_parts(parts)]
        # "Source 1" may be a link or a title.
        if values and not series.is_certain and not any(map(is_prose, values)):
            continue
        names = {column.name for column in series.columns}
        record = {k: v for k, v in record.items() if k not in names} | {known_name: values or None}
    return record


def _join_parts(parts: Mapping[str, Any]) -> Sequence[Any]:
    """Return the values in the columns of one number: a passage, or the elements of a list."""
    if parts.keys().isdisjoint(_TEXT_PARTS):
        return []  # a title without a text
    parts = {
        name: write_number(value) if isinstance(value, int | float) else value
        for name, value in parts.items()
    }
    if parts.keys() != {""}:
        return [{name or "text": value for name, value in parts.items()}]
    value = parts[""]
    parsed = parse_value(value) if isinstance(value, str) else value
    is_list = isinstance(parsed, list) and all(isinstance(each, str | Mapping) for each in parsed)
    return parsed if is_list else [value]
