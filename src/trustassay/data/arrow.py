"""Batches of Arrow as raw records, of files and of tables in memory alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from trustassay.data.cells import check_columns, with_lists
from trustassay.data.raw import Raw
from trustassay.data.values import from_arrow, is_nan
from trustassay.sample import Problem

__all__ = ["batch_records", "in_slices", "of_arrow"]

MOST_ROWS = 1024
"""Rows of an Arrow batch that are turned into Python objects at a time."""


def batch_records(batches: Iterable[Any], name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Return the rows of batches that have the same columns.

    Raises:
        InputError: while iterating: columns of one name, or one of ``fields`` that is no column.
    """
    number = 0
    for batch in batches:
        columns = batch.column_names
        if number == 0:
            check_columns(columns, name, fields)
        for row in zip(*map(_cells, batch.columns), strict=True):
            number += 1
            cells = dict(zip(columns, row, strict=True))
            yield _arrow_record(cells, f"{name}: row {number}", fields)


def in_slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Return batches in slices of no more than :data:`MOST_ROWS` rows."""
    for batch in batches:
        for start in range(0, batch.num_rows, MOST_ROWS):
            yield batch.slice(start, min(MOST_ROWS, batch.num_rows - start))


def of_arrow(error: BaseException) -> bool:
    """Return whether arro3 raised it: its panics are no ``Exception``, and known by name alone."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


class _Unreadable(NamedTuple):
    reason: str


def _cells(column: Any) -> list[Any]:
    try:
        return cast("list[Any]", column.to_pylist())
    except BaseException as error:  # one value that Python cannot hold, as a date in 148108
        if not of_arrow(error):
            raise
        return [_cell(scalar) for scalar in column]


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except BaseException as error:
        if not of_arrow(error):
            raise
        return _Unreadable(str(error))


def _arrow_record(cells: Mapping[str, Any], where: str, fields: Mapping[str, str]) -> Raw:
    record: dict[str, Any] = {}
    problems = []
    for column, value in cells.items():
        if isinstance(value, _Unreadable):
            record[column] = None
            problems.append(Problem(column, f"cannot be read ({value.reason})"))
        else:
            record[column] = None if is_nan(value) else from_arrow(value)
    raw = with_lists(record, where, fields)
    return raw._replace(problems=(*problems, *raw.problems)) if problems else raw
