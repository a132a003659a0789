"""Headers and cells of tables that people and tools write: CSV and spreadsheets."""

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from trustassay.data import layouts
from trustassay.data.places import File
from trustassay.data.recognising import columns_of, tells_question
from trustassay.data.records import InputError, Raw, Untold, UntoldError, missing_source, plain
from trustassay.data.source_files import opened
from trustassay.errors import install
from trustassay.progress import tell
from trustassay.sample import Problem

MOST_ABOVE = 20
"""Rows of a table among which its header is looked for."""


def header_place(
    rows: Sequence[Sequence[str]], known: Callable[[Sequence[str]], bool]
) -> int | None:
    """Return the place of the first ``known`` header that has more cells with text than each row
    above it, which are titles; ``None`` where there is none.
    """
    most = 0
    for place, row in enumerate(rows):
        filled = sum(map(bool, row))
        if filled > most and known(row):
            return place
        most = max(most, filled)
    return None


def checked_header(
    header: Sequence[str], name: str, fields: Mapping[str, str], parted_by: str
) -> list[str]:
    """Return the names of columns; a cell without text names none.

    Raises:
        UntoldError: no column is known to hold the question. InputError: as of `check_columns`.
    """
    present = [cell for cell in header if cell]
    if not tells_question(present, fields):
        raise UntoldError(
            f"{name}: the first line is not a header with a question column; expected question "
            f"or --field question=COLUMN, columns separated by {parted_by}; it reads "
            f"{', '.join(present)[:80]!r}",
            _untold(present, fields),
        )
    check_columns(present, name, fields)
    return list(header)


def _untold(header: Sequence[str], fields: Mapping[str, str]) -> Untold:
    columns = columns_of(header, fields)
    known = {
        k: v
        for k, v in columns.items()
        if not layouts.AMBIGUOUS.issuperset(map(layouts.known_name, v))
    }
    taken = tuple(column for names in known.values() for column in names)
    guessed = {k: v for k, v in layouts.guesses(tuple(header), taken).items() if k not in known}
    whole = {"question", "response", "documents"} <= {*guessed, *known}
    return Untold(tuple(header), {"question": ""} | guessed, whole)


def check_columns(columns: Sequence[str], name: str, fields: Mapping[str, str]) -> None:
    """Refuse columns of one name, and names of ``--field`` that no column has."""
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"{name}: the header names {', '.join(twice)} more than once")
    for canonical, theirs in fields.items():
        if theirs not in columns and theirs.partition(".")[0] not in columns:
            raise missing_source(name, canonical, theirs, columns)


def table_record(cells: dict[str, Any], where: str, fields: Mapping[str, str]) -> Raw:
    """Return the record of a row whose empty cells may be blank texts or missing ones.

    An empty cell of the response is a blank response, as JSON's ``""`` is; in a table without such
    a column the response is missing.
    """
    names = columns_of(tuple(cells), fields).get("response", ())
    there = [name for name in names if name in cells]
    if there and not any(cells[name] for name in there):
        cells[there[0]] = ""
    return Raw(where, cells, of_table=True)


LARGEST_CELL = 2**31 - 1
SAVE_AS_UTF8 = "save the table as CSV UTF-8 (in Excel: Save As)"
_LOOKED_AT = 2**16
"""Bytes of a table in which its header is looked for."""
_PARTED_BY = {",": "commas", ";": "semicolons", "\t": "tabs"}
_WESTERN = "cp1252"
_ENCODINGS = {_WESTERN: "Windows-1252", "cp932": "Shift JIS", "gb18030": "GB 18030"}
"""In what Excel writes CSV in western Europe, Japan and China where it does not write UTF-8."""
_SIGNS = frozenset("’‘‚“”„«»‹›–—…•·°§€£¥©®™×±²³½¼¾¿¡\xa0\xad´")
"""What texts in western European languages have beside letters."""
_SIGNS_IN_WORDS = frozenset("’‘·\xad´")
_announced: set[str] = set()


class Header(NamedTuple):
    """The header of a table: its cells, the line where it ends, what separates the cells, and the
    encoding that makes its names known ones, empty if that is UTF-8.
    """

    cells: Sequence[str]
    line: int
    delimiter: str
    encoding: str = ""


def header_of(path: File, name: str, usual: str, known: Callable[[Sequence[str]], bool]) -> Header:
    """Return the header of a table: a ``known`` one by any delimiter and encoding, else its first
    line with most cells. The ``usual`` delimiter has precedence.
    """
    with opened(path, name) as stream:
        start = stream.read(_LOOKED_AT).decode("utf-8-sig", "surrogateescape")
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    rows = {mark: list(_first_rows(start, mark)) for mark in dict.fromkeys((usual, *_PARTED_BY))}
    result = [
        Header(decoded[place], shown[place][0], mark, encoding)
        for mark, shown in rows.items()
        for encoding in ("", *_ENCODINGS)
        for decoded in [[_decoded(row, encoding) for _, row in shown]]
        if (place := header_place(decoded, known)) is not None
    ]
    first = [Header(row, line, mark) for mark, shown in rows.items() for line, row in shown[:1]]
    fallback = Header((), 0, usual)
    return max(result or first or [fallback], key=lambda one: (not one.encoding, len(one.cells)))


def _first_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first rows that have text, each with the line where it ends."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    with suppress(csv.Error):
        for row in islice(rows, MOST_ABOVE):
            if any(row):
                yield rows.line_num, [cell.strip() for cell in row]


def _decoded(row: Sequence[str], encoding: str) -> list[str]:
    """Return cells whose bytes are read in an encoding; as they are where that cannot be."""
    if not encoding:
        return list(row)
    try:
        return [cell.encode("utf-8", "surrogateescape").decode(encoding) for cell in row]
    except UnicodeError:
        return list(row)


def _encoding_of(row: list[str]) -> str:
    """Return the encoding that a row beyond ASCII tells: UTF-8, or Windows-1252 if that makes it a
    text of a western European language; empty where it tells neither."""
    if not not_utf8(row):
        return "utf-8"
    return _WESTERN if all(map(_is_western, _decoded(row, _WESTERN))) else ""


def _announce(name: str, encoding: str) -> None:
    """Tell once that a table is read in another encoding than UTF-8."""
    if encoding in _ENCODINGS and name not in _announced:
        _announced.add(name)
        known = _ENCODINGS[encoding]
        tell(f"{name}: is not UTF-8, read as {known}; where letters are wrong, {SAVE_AS_UTF8}")


def _is_western(text: str) -> bool:
    """Whether a text reads as one of a western European language: few letters with accents side by
    side, no sign inside of a word.
    """
    run = 0
    for place, character in enumerate(text):
        run = 0 if character.isascii() else run + 1
        if not run:
            continue
        letter = character.isalpha() and character not in "ªºÿƒ"
        inside = text[max(0, place - 1) : place + 2 : 2]
        in_word = len(inside) == 2 and inside.isalpha() and character not in _SIGNS_IN_WORDS
        if run > 3 or not (letter or (character in _SIGNS and not in_word)):
            return False
    return True


def csv_records(
    path: File,
    name: str,
    fields: Mapping[str, str],
    delimiter: str,
    header: list[str] | None = None,
) -> Iterator[Raw]:
    """Return the records of a table; ``header`` names its columns where no line of it does.

    Without one the ``delimiter`` is only the usual one of such files, and what is above the header,
    a title for instance, is not read.
    """
    result = Header(header or (), 0, delimiter)
    if header is None:
        result = header_of(path, name, delimiter, lambda cells: tells_question(cells, fields))
    for where, row in csv_rows(path, name, result):
        if isinstance(row, csv.Error):
            if header is None:
                raise InputError(f"{where}: the header is not CSV ({row})") from row
            open_quote = "unexpected end" in str(row)
            reason = "a quoted cell is never closed" if open_quote else str(row)
            yield Raw(where, None, (Problem("record", f"is not CSV ({reason})"),))
        elif header is None:
            cells = [cell.strip() for cell in row]
            if not_utf8(cells):
                raise InputError(f"{name}: the first line is not UTF-8; {SAVE_AS_UTF8}")
            header = checked_header(cells, name, fields, _PARTED_BY[result.delimiter])
        else:
            yield _csv_record(row, where, header, fields)


def csv_rows(path: File, name: str, found: Header) -> Iterator[tuple[str, list[str] | csv.Error]]:
    """Yield the rows from the header on that have a text, each with where it begins; an error in
    place of what is no row. Bytes that are not UTF-8 are lone surrogates (:func:`not_utf8`), unless
    the header, or the first row beyond ASCII, tells another encoding.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    encoding = found.encoding
    _announce(name, encoding)
    with opened(path, name) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        rows = csv.reader(text, delimiter=found.delimiter, strict=True)
        while True:
            where = f"{name}:{rows.line_num + 1}"
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield where, error
                continue
            if not all(map(str.isascii, row)):
                encoding = encoding or _encoding_of(row)
                _announce(name, encoding)
                row = _decoded(row, encoding) if encoding in _ENCODINGS else row
            if any(row) and rows.line_num >= found.line:
                yield where, row


def _csv_record(row: list[str], where: str, header: list[str], fields: Mapping[str, str]) -> Raw:
    if len(row) > len(header):
        message = f"has {len(row)} cells, but the header has {len(header)}"
        return Raw(where, None, (Problem("record", message),))
    cells = {k: v or None for k, v in zip_longest(header, row) if k}
    if not_utf8(row):
        message = f"is not UTF-8; {SAVE_AS_UTF8}"
        bad = [Problem(k, message) for k, v in cells.items() if v and not_utf8([v])]
        return Raw(where, None, tuple(bad))
    return table_record(cells, where, fields)


def not_utf8(texts: Iterable[str]) -> bool:
    """Whether one of these texts, read with ``surrogateescape``, holds bytes that are not UTF-8."""
    text = "".join(texts)
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)


LARGEST = 2**30
"""Bytes that a workbook may have unpacked."""
_FORMULA, _ERROR = "f", "e"


def workbook_records(path: File, name: str, fields: Mapping[str, str]) -> Iterator[Raw]:
    """Return the records of the sheet that has a question column; the first sheet may have none.

    Raises:
        InputError: openpyxl is not installed, the file is no workbook, or no sheet has a question
            column, or several have; while iterating: it is broken.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{name}: install a package for workbooks ({install('excel')}), or save it as CSV"
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


def _check_size(path: File, name: str) -> None:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
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
    first = next((number for number, row in enumerate(rows, 1) if any(row)), 0)
    at = first if place is None else place + 1
    return _Sheet(str(sheet.title), rows[at - 1] if at else [], at, place is not None)


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
            if cell.data_type not in (_FORMULA, _ERROR):
                cells[column] = _value(cell.value)
            elif column in used:
                words = "is a formula, and formulas are not computed; paste the column as values"
                words = f"holds the error {cell.value}" if cell.data_type == _ERROR else words
                problems.append(Problem(column, words))
        raw = table_record(cells, f"{name}: row {number}", fields)
        yield raw._replace(problems=(*problems, *raw.problems))


def _value(value: Any) -> Any:
    """Return a cell's value; a whole number that is written with a decimal point is whole."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    result = plain(value)
    return result if isinstance(result, str | int | float | bool) else str(result)
