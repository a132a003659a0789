"""Workbooks of Excel (``.xlsx``) as a stream of raw records; formulas are never computed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.data.cells import MOST_ABOVE, checked_header, header_place, table_record
from trustassay.data.raw import InputError, Raw
from trustassay.data.recognising import columns_of, tells_question
from trustassay.data.values import plain
from trustassay.sample import Problem

__all__ = ["workbook_records"]

LARGEST = 2**30
"""Bytes that a workbook may have unpacked."""
_FORMULA, _ERROR = "f", "e"


def workbook_records(path: Path, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Return the records of the sheet that has a question column; the first sheet may have none.

    Raises:
        InputError: openpyxl is not installed, the file is no workbook, or no sheet has a question
            column, or several have; while iterating: it is broken.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{name}: install what reads workbooks (pip install 'trustassay[excel]'), "
            "or save it as CSV"
        ) from error
    _check_size(path, name)
    try:
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=False, keep_links=False)
            yield from _records(book, name, fields)
    except InputError:
        raise
    except Exception as error:  # of zip, XML and values: the parser has no error of its own
        reason = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{name}: is not a readable workbook of Excel ({reason})") from error


def _check_size(path: Path, name: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{name}: is not a workbook of Excel ({error}); save it as .xlsx or CSV"
        ) from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    if size > LARGEST:
        raise InputError(f"{name}: has {size:,} bytes unpacked; save so large a table as CSV")


class _Sheet(NamedTuple):
    """A sheet by its title: the cells of its header, the header's row, and whether it is known."""

    title: str
    header: Sequence[str]
    row: int
    asks: bool


def _sheet(book: Any, name: str, fields: Mapping[str, str]) -> _Sheet:
    """Return the sheet that has a question column, else the first one with a text."""
    sheets = [_looked_at(sheet, fields) for sheet in book.worksheets]
    asking = [sheet for sheet in sheets if sheet.asks]
    if len(asking) > 1:
        titles = ", ".join(sheet.title for sheet in asking)
        raise InputError(
            f"{name}: the sheets {titles} have a question column each; save the one that is meant "
            "as a file of its own"
        )
    return next(iter([*asking, *(sheet for sheet in sheets if sheet.header), *sheets]))


def _looked_at(sheet: Any, fields: Mapping[str, str]) -> _Sheet:
    values = islice(sheet.iter_rows(values_only=True), MOST_ABOVE)
    rows = [["" if one is None else str(one).strip() for one in row] for row in values]
    place = header_place(rows, lambda cells: tells_question(cells, fields))
    first = next((number for number, row in enumerate(rows) if any(row)), None)
    at = first if place is None else place
    header = [] if at is None else rows[at]
    return _Sheet(str(sheet.title), header, 0 if at is None else at + 1, place is not None)


def _records(book: Any, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    sheet = _sheet(book, name, fields)
    if not sheet.header:
        return
    header = checked_header(sheet.header, name, fields, "cells")
    known = columns_of([column for column in header if column], fields)
    used = {column for columns in known.values() for column in columns}
    rows = book[sheet.title].iter_rows(min_row=sheet.row + 1)
    for number, row in enumerate(rows, sheet.row + 1):
        if all(cell.value is None for cell in row):
            continue
        cells: dict[str, Any] = dict.fromkeys(filter(None, header))
        problems = []
        for column, cell in zip(header, row, strict=False):
            if not column or cell.value is None:
                continue
            if cell.data_type in (_FORMULA, _ERROR):
                if column in used:
                    problems.append(Problem(column, _not_a_value(cell)))
                continue
            cells[column] = _value(cell.value)
        raw = table_record(cells, f"{name}: row {number}", fields)
        yield raw._replace(problems=(*problems, *raw.problems))


def _not_a_value(cell: Any) -> str:
    if cell.data_type == _ERROR:
        return f"holds the error {cell.value}"
    return "is a formula, and formulas are not computed; paste the column as values"


def _value(value: Any) -> Any:
    """Return a cell's value; a whole number that is written with a decimal point is whole."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    found = plain(value)
    return found if isinstance(found, str | int | float | bool) else str(found)
