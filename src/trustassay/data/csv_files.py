"""CSV and tables with tabs as a stream of raw records."""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trustassay.data.layouts import PROSE_NAMES, STRUCTURED_FIELDS, TEXT_FIELDS
from trustassay.data.raw import InputError, Raw, missing_source, opened
from trustassay.data.recognising import layout_of, sources_of
from trustassay.sample import Problem

__all__ = ["LARGEST_CELL", "check_columns", "csv_records", "not_utf8"]

LARGEST_CELL = 2**31 - 1


def csv_records(
    path: Path,
    name: str,
    fields: Mapping[str, str],
    delimiter: str,
    header: list[str] | None = None,
) -> Iterator[Raw]:
    """Return the records of a table; ``header`` names its columns where its first line does not."""
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    with opened(path, name) as stream:
        # Bytes that are not UTF-8 survive as lone surrogates, to be reported with their row.
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            where = f"{name}:{rows.line_num + 1}"
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                if header is None:
                    raise InputError(f"{where}: the header is not CSV ({error})") from error
                open_quote = "unexpected end" in str(error)
                reason = "a quoted cell is never closed" if open_quote else str(error)
                yield Raw(where, None, (Problem("record", f"is not CSV ({reason})"),))
                continue
            if not any(row):
                continue
            if header is None:
                header = _header(row, name, fields, "tabs" if delimiter == "\t" else "commas")
            else:
                yield _csv_record(row, where, header, fields)


def _header(row: list[str], name: str, fields: Mapping[str, str], parted: str) -> list[str]:
    header = [cell.strip() for cell in row]
    if not_utf8(header):
        raise InputError(f"{name}: the first line is not UTF-8")
    present = dict.fromkeys(filter(None, header), "")
    sources = sources_of(present, layout_of(present, fields), fields)
    if "question" not in present and "question" not in sources:
        shown = ", ".join(present)
        raise InputError(
            f"{name}: the first line is not a header with a question column; expected question "
            f"or --field question=COLUMN, columns separated by {parted}; it reads {shown[:80]!r}"
        )
    check_columns([cell for cell in header if cell], name, fields)
    return header


def check_columns(columns: Sequence[str], name: str, fields: Mapping[str, str]) -> None:
    """Refuse columns of one name, and names of ``--field`` that no column has."""
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"{name}: the header names {', '.join(twice)} more than once")
    for canonical, theirs in fields.items():
        if theirs not in columns and theirs.partition(".")[0] not in columns:
            raise missing_source(name, canonical, theirs, columns)


def _csv_record(row: list[str], where: str, header: list[str], fields: Mapping[str, str]) -> Raw:
    if len(row) > len(header):
        message = f"has {len(row)} cells, but the header has {len(header)}"
        return Raw(where, None, (Problem("record", message),))
    cells = {k: v or None for k, v in zip_longest(header, row) if k}
    _fill_response(cells, fields)
    if not_utf8(row):
        bad = [Problem(k, "is not UTF-8") for k, v in cells.items() if v and not_utf8([v])]
        return Raw(where, None, tuple(bad))
    if not any(_like_json(cell) for cell in row):
        return Raw(where, cells, of_table=True)
    return _with_json_cells(cells, where, fields)


def _fill_response(cells: dict[str, str | None], fields: Mapping[str, str]) -> None:
    """Read an empty cell of the response as a blank response, as JSON's ``""`` is read.

    In a table without such a column the response is missing.
    """
    if cells.get("response"):
        return
    if "response" in fields:
        names: Sequence[str] = (fields["response"],)
    else:
        names = ("response", *layout_of(cells, fields).fields.get("response", ()))
    there = [name for name in names if name in cells]
    if there and not any(cells[name] for name in there):
        cells[there[0]] = ""


def _with_json_cells(cells: dict[str, str | None], where: str, fields: Mapping[str, str]) -> Raw:
    """Read cells that look like lists, except those of texts: an answer may be ``[1]`` alone."""
    sources = sources_of(cells, layout_of(cells, fields), fields)
    texts = {sources.get(field, field) for field in TEXT_FIELDS}
    structured = {sources.get(field, field) for field in STRUCTURED_FIELDS} - PROSE_NAMES
    record: dict[str, Any] = {}
    problems = []
    for column, cell in cells.items():
        record[column] = cell
        if cell and _like_json(cell) and column not in texts:
            read = _value_of(cell)
            if read is not None:
                record[column] = read
            elif column in structured:
                message = 'is not a list; write one in a cell as ["one", "two"]'
                problems.append(Problem(column, message))
    return Raw(where, record, tuple(problems), of_table=True)


def _value_of(cell: str) -> Any:
    """Return the list or object of a cell, as JSON or as Python writes it; ``None`` if neither.

    Nothing is run: Python's form is read as literals alone.
    """
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(json.dumps(ast.literal_eval(cell)))  # a set, say, has no place here
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _like_json(cell: str) -> bool:
    return cell.startswith(("[", "{"))


def not_utf8(texts: Iterable[str]) -> bool:
    """Whether one of these texts, read with ``surrogateescape``, holds bytes that are not UTF-8."""
    text = "".join(texts)
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)
