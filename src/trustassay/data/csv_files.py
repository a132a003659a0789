"""CSV, with commas, semicolons or tabs, as a stream of raw records."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from trustassay.data.cells import checked_header, table_record
from trustassay.data.raw import InputError, Raw, opened
from trustassay.data.recognising import tells_question
from trustassay.sample import Problem

__all__ = ["LARGEST_CELL", "csv_records", "delimiter_of", "not_utf8"]

LARGEST_CELL = 2**31 - 1
_LOOKED_AT = 2**16
"""Bytes of a table in which its first line is looked for."""
_PARTED_BY = {",": "commas", ";": "semicolons", "\t": "tabs"}


def delimiter_of(path: Path, name: str, usual: str, known: Callable[[Sequence[str]], bool]) -> str:
    """Return what separates the cells of a table: what makes its first line a ``known`` header,
    else what gives it most cells; the ``usual`` one where several do.
    """
    with opened(path, name) as stream:
        start = stream.read(_LOOKED_AT).decode("utf-8-sig", "surrogateescape")
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    headers = {mark: _first_row(start, mark) for mark in dict.fromkeys((usual, *_PARTED_BY))}
    fitting = [mark for mark, header in headers.items() if known(header)]
    return max(fitting or headers, key=lambda mark: len(headers[mark]))


def _first_row(text: str, delimiter: str) -> list[str]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return next(([cell.strip() for cell in row] for row in rows if any(row)), [])
    except csv.Error:
        return []


def csv_records(
    path: Path,
    name: str,
    fields: Mapping[str, str],
    delimiter: str,
    header: list[str] | None = None,
) -> Iterator[Raw]:
    """Return the records of a table; ``header`` names its columns where its first line does not.

    Without one the ``delimiter`` is only the usual one of such files.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    if header is None:
        delimiter = delimiter_of(path, name, delimiter, lambda cells: tells_question(cells, fields))
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
                cells = [cell.strip() for cell in row]
                if not_utf8(cells):
                    raise InputError(f"{name}: the first line is not UTF-8")
                header = checked_header(cells, name, fields, _PARTED_BY[delimiter])
            else:
                yield _csv_record(row, where, header, fields)


def _csv_record(row: list[str], where: str, header: list[str], fields: Mapping[str, str]) -> Raw:
    if len(row) > len(header):
        message = f"has {len(row)} cells, but the header has {len(header)}"
        return Raw(where, None, (Problem("record", message),))
    cells = {k: v or None for k, v in zip_longest(header, row) if k}
    if not_utf8(row):
        bad = [Problem(k, "is not UTF-8") for k, v in cells.items() if v and not_utf8([v])]
        return Raw(where, None, tuple(bad))
    return table_record(cells, where, fields)


def not_utf8(texts: Iterable[str]) -> bool:
    """Whether one of these texts, read with ``surrogateescape``, holds bytes that are not UTF-8."""
    text = "".join(texts)
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)
