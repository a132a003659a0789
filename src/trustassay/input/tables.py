"""Reads tables that people and tools write, CSV and workbooks: headers, encodings and cells."""

import csv
import io
import re
import shlex
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, zip_longest
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from xml.parsers import expat

from trustassay.core.progress import tell_once
from trustassay.core.sample import LONGEST_LINE_MIB, Problem, write_number
from trustassay.errors import did_you_mean, install_command
from trustassay.input.bounds import (
    MIB_BYTES,
    BoundedRows,
    describe_excess,
    describe_many_fields,
)
from trustassay.input.layouts import explain_missing
from trustassay.input.places import InputFile, open_text
from trustassay.input.proposals import find_unknown_fields
from trustassay.input.recognising import find_columns, has_question, recognise
from trustassay.input.records import (
    InputError,
    RawRecord,
    UnknownFields,
    UnknownFieldsError,
    build_missing_source_error,
    split_names,
    to_json_types,
)

MAX_HEADER_ROWS = 20
"""Rows at the start of a table that are searched for its header."""


def find_header(
    rows: Sequence[Sequence[str]], is_known: Callable[[Sequence[str]], bool]
) -> int | None:
    """Return the index of the header among the first rows of a table, or ``None``.

    Args:
        rows: the cells of the rows.
        is_known: whether cells are a known header. The header also has more cells with text than
            each row above it; these are titles.
    """
    most = 0
    for place, row in enumerate(rows):
        # Titles above the header fill fewer cells than the header does.
        filled = sum(map(bool, row))
        if filled > most and is_known(row):
            return place
        most = max(most, filled)
    return None


def check_header(
    header: Sequence[str],
    name: str,
    fields: Mapping[str, str],
    layout: str,
    rows: Iterable[Sequence[Any]] = (),
    wanted: Collection[str] = (),
) -> list[str]:
    """Return the names of columns; an empty cell names no column.

    Args:
        header: the cells of the header.
        name: the name of the input, for messages.
        fields: the user's names of columns, by canonical field.
        layout: how columns are separated or which sheet it is, for messages, after a comma.
        rows: the rows below the header; the first one is read if the header is unknown.
        wanted: the columns by which the header is known; without any, by that of a question.

    Raises:
        UnknownFieldsError: no column is known to contain the question, and none is wanted.
        InputError: as :func:`check_columns`.
    """
    present = [cell for cell in header if cell]
    # Without a question nothing can be scored; the error lists what the header has instead.
    if not wanted and not has_question(present, fields):
        unknown_fields = _find_unknown_fields(header, fields, next(iter(rows), ()))
        if unknown_fields is None:
            reason = explain_missing("question", dict.fromkeys(present))
            raise InputError(f"{name}: has no question column ({reason})")
        raise UnknownFieldsError(
            f"{name}: expected a column named question, or --field question=COLUMN{layout}; the "
            f"header is {', '.join(present)[:80]!r}",
            unknown_fields,
        )
    check_columns(present, name, fields)
    return list(header)


def _is_header(fields: Mapping[str, str], wanted: Collection[str], cells: Sequence[str]) -> bool:
    """Whether cells have a wanted column, or without any a question column."""
    if wanted:
        return not set(cells).isdisjoint(wanted)
    return has_question(cells, fields)


def _find_unknown_fields(
    header: Sequence[str], fields: Mapping[str, str], row: Sequence[Any]
) -> UnknownFields | None:
    record = {name: cell for name, cell in zip_longest(header, row[: len(header)]) if name}
    missing = Problem("question", "is missing")
    return find_unknown_fields(recognise(record, fields), [missing])


def check_columns(columns: Sequence[str], name: str, fields: Mapping[str, str]) -> None:
    """Raise :class:`InputError` if columns have the same name or are too many, or a column of
    ``--field`` is missing."""
    if message := describe_many_fields(len(columns)):
        raise InputError(f"{name}: the header {message}")
    twice = sorted(column for column, count in Counter(columns).items() if count > 1)
    if twice:
        raise InputError(
            f"{name}: the header has {', '.join(twice)} more than once; expected a different name "
            "for each column"
        )
    for canonical, joined in fields.items():
        for theirs in split_names(joined):
            if theirs not in columns and theirs.partition(".")[0] not in columns:
                raise build_missing_source_error(name, canonical, theirs, columns)


def build_table_record(cells: dict[str, Any], where: str, fields: Mapping[str, str]) -> RawRecord:
    """Return the record of a row, with ``None`` for empty cells.

    An empty cell of the response is a blank response, as ``""`` in JSON; in a table without such a
    column the response is missing.
    """
    columns = find_columns(tuple(cells), fields)
    write_numbers(cells, columns.get("question", ()))
    columns_present = [name for name in columns.get("response", ()) if name in cells]
    # The first of the columns counts as the response where all of them are empty.
    if columns_present and all(cells[name] in (None, "") for name in columns_present):
        cells[columns_present[0]] = ""
    return RawRecord(where, cells, of_table=True)


def write_numbers(cells: dict[str, Any], columns: Iterable[str]) -> None:
    """Write the numbers in columns of a table as texts.

    Args:
        cells: the cells of a row by column, which are changed.
        columns: the columns of the question; in JSON, a number there is a mistake.
    """
    for column in columns:
        if isinstance(value := cells.get(column), int | float):
            cells[column] = write_number(value)


MAX_CELL_CHARACTERS = 2**31 - 1
"""Characters of a cell for ``csv``, whose own limit of 131,072 is too few for long passages. The
longest row is limited by :class:`~trustassay.input.bounds.BoundedRows`."""
SAVE_AS_UTF8 = "save the table as CSV UTF-8 (in Excel: Save As)"
_MAX_START_BYTES = 2**16
"""Bytes at the start of a table that are searched for its header."""
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_WESTERN = "cp1252"
_ENCODINGS = {_WESTERN: "Windows-1252", "cp932": "Shift JIS", "gb18030": "GB 18030"}
"""Encodings in which Excel writes CSV in western Europe, Japan and China, instead of UTF-8."""
_SIGNS = frozenset("’‘‚“”„«»‹›–—…•·°§€£¥©®™×±²³½¼¾¿¡\xa0\xad´")
"""Characters, besides letters, in texts of western European languages."""
_SIGNS_IN_WORDS = frozenset("’‘·\xad´")


class TableHeader(NamedTuple):
    """The header of a table."""

    cells: Sequence[str]
    """Its cells."""
    line: int
    """The number of the line in which it ends."""
    delimiter: str
    """The character between cells."""
    encoding: str = ""
    """The encoding in which its names are known; empty for UTF-8."""


def read_header(
    path: InputFile, name: str, usual: str, is_known: Callable[[Sequence[str]], bool]
) -> TableHeader:
    """Return the header of a table.

    Every delimiter and encoding is tried. Where no header is known, it is the first line, with the
    delimiter that gives most cells.

    Args:
        path: the file.
        name: the name of the input, for messages.
        usual: the usual delimiter of such files, which is tried first.
        is_known: whether cells are a known header.
    """
    with open_text(path, name) as stream:
        # ``surrogateescape`` keeps bytes that are not UTF-8, so that other encodings can be tried
        # on them.
        start = stream.read(_MAX_START_BYTES).decode("utf-8-sig", "surrogateescape")
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    rows = {
        mark: list(_read_first_rows(start, mark))
        for mark in dict.fromkeys((usual, *_SEPARATOR_NAMES))
    }
    result = [
        TableHeader(decoded[place], first_rows[place][0], mark, encoding)
        for mark, first_rows in rows.items()
        for encoding in ("", *_ENCODINGS)
        for decoded in [[_decode_cells(row, encoding) for _, row in first_rows]]
        if (place := find_header(decoded, is_known)) is not None
    ]
    first = [
        TableHeader(row, line, mark)
        for mark, first_rows in rows.items()
        for line, row in first_rows[:1]
    ]
    fallback = TableHeader((), 0, usual)
    # UTF-8 wins over other encodings, then most cells; of equal ones the usual delimiter.
    return max(
        result or first or [fallback], key=lambda header: (not header.encoding, len(header.cells))
    )


def _read_first_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first rows with text, each with the number of the line in which it ends."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    with suppress(csv.Error):
        for row in islice(rows, MAX_HEADER_ROWS):
            if any(row):
                yield rows.line_num, [cell.strip() for cell in row]


def _decode_cells(row: Sequence[str], encoding: str) -> list[str]:
    """Return cells decoded in an encoding; as they are where that is not possible."""
    if not encoding:
        return list(row)
    try:
        return [cell.encode("utf-8", "surrogateescape").decode(encoding) for cell in row]
    except UnicodeError:
        return list(row)


def _detect_encoding(row: list[str]) -> str:
    """Return the encoding of a row that is not ASCII: UTF-8, or Windows-1252 if that makes it a
    text of a western European language; empty where neither is certain."""
    if not has_invalid_utf8(row):
        return "utf-8"
    return _WESTERN if all(map(_is_western, _decode_cells(row, _WESTERN))) else ""


def _report_encoding(name: str, encoding: str) -> None:
    """Print once that a table is read in another encoding than UTF-8."""
    if encoding in _ENCODINGS:
        message = f"is not UTF-8 and is read as {_ENCODINGS[encoding]}; if letters are wrong"
        tell_once(f"{name}: encoding", f"{name}: {message}, {SAVE_AS_UTF8}")


def _is_western(text: str) -> bool:
    """Whether a text may be in a western European language: at most three accented characters in a
    row, and no sign inside a word.
    """
    run = 0
    for place, character in enumerate(text):
        run = 0 if character.isascii() else run + 1
        if not run:
            continue
        # Letters that only appear when bytes of another encoding are read as Windows-1252.
        letter = character.isalpha() and character not in "ªºÿƒ"
        # The characters before and behind this one.
        inside = text[max(0, place - 1) : place + 2 : 2]
        in_word = len(inside) == 2 and inside.isalpha() and character not in _SIGNS_IN_WORDS
        if run > 3 or not (letter or (character in _SIGNS and not in_word)):
            return False
    return True


def read_csv_records(
    path: InputFile,
    name: str,
    fields: Mapping[str, str],
    delimiter: str,
    header: list[str] | None = None,
    wanted: Collection[str] = (),
    longest_line: int = LONGEST_LINE_MIB,
) -> Iterator[RawRecord]:
    """Yield the records of a table.

    Args:
        path: the file.
        name: the name of the input, for messages.
        fields: the user's names of columns, by canonical field.
        delimiter: the usual delimiter of such files, or the only one if there is a ``header``.
        header: the names of the columns, for a file without a header. Otherwise the header is
            found in the file, and lines above it, such as a title, are not read.
        wanted: the columns by which the header is known; without any, by that of a question.
        longest_line: MiB of the longest row; a longer one raises :class:`InputError`.
    """
    result = TableHeader(header or (), 0, delimiter)
    if header is None:
        result = read_header(path, name, delimiter, partial(_is_header, fields, wanted))
    rows = read_csv_rows(path, name, result, longest_line)
    for where, row in rows:
        if isinstance(row, csv.Error):
            if header is None:
                raise InputError(f"{where}: the header is not CSV ({row})") from row
            open_quote = "unexpected end" in str(row)
            reason = "a quoted cell is never closed" if open_quote else str(row)
            yield RawRecord(where, None, (Problem("record", f"is not CSV ({reason})"),))
        elif header is None:
            cells = [cell.strip() for cell in row]
            if has_invalid_utf8(cells):
                raise InputError(f"{name}: the first line is not UTF-8; {SAVE_AS_UTF8}")
            below = (cells for _, cells in rows if not isinstance(cells, csv.Error))
            layout = f" (columns are separated by {_SEPARATOR_NAMES[result.delimiter]})"
            header = check_header(cells, name, fields, layout, below, wanted)
        else:
            yield _build_csv_record(row, where, header, fields)


def read_csv_rows(
    path: InputFile, name: str, header: TableHeader, longest_line: int
) -> Iterator[tuple[str, list[str] | csv.Error]]:
    """Yield the rows with text from the header on, each with its place, or an error for a bad row.

    Bytes that are not UTF-8 become lone surrogates (:func:`has_invalid_utf8`), unless the header,
    or the first row that is not ASCII, shows another encoding.

    Args:
        path: the file.
        name: the name of the input, for messages.
        header: the header.
        longest_line: MiB of the longest row.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    encoding = header.encoding
    _report_encoding(name, encoding)
    with open_text(path, name) as stream:
        # ``newline=""`` leaves line ends inside quoted cells as they are.
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        lines = BoundedRows(text, longest_line)
        rows = csv.reader(lines, delimiter=header.delimiter, strict=True)
        while True:
            # Taken before the row is read: a quoted cell may span several lines.
            where = f"{name}:{rows.line_num + 1}"
            lines.begin_row(where)
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                # A damaged row is reported, and reading continues with the next one.
                yield where, error
                continue
            if not all(map(str.isascii, row)):
                # The first row that is not ASCII decides for the whole file.
                encoding = encoding or _detect_encoding(row)
                _report_encoding(name, encoding)
                row = _decode_cells(row, encoding) if encoding in _ENCODINGS else row
            if any(row) and rows.line_num >= header.line:
                yield where, row


def _build_csv_record(
    row: list[str], where: str, header: list[str], fields: Mapping[str, str]
) -> RawRecord:
    if len(row) > len(header):
        message = (
            f"has {len(row)} cells, but the header has {len(header)} (put quotes around a cell "
            "that contains the separator)"
        )
        return RawRecord(where, None, (Problem("record", message),))
    cells = {k: v or None for k, v in zip_longest(header, row) if k}
    if has_invalid_utf8(row):
        message = f"is not UTF-8; {SAVE_AS_UTF8}"
        # Each cell with such bytes is a problem of its own.
        bad = [Problem(k, message) for k, v in cells.items() if v and has_invalid_utf8([v])]
        return RawRecord(where, None, tuple(bad))
    return build_table_record(cells, where, fields)


def has_invalid_utf8(texts: Iterable[str]) -> bool:
    """Whether a text, read with ``surrogateescape``, contains bytes that are not UTF-8."""
    text = "".join(texts)
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)


MAX_WORKBOOK_BYTES = 2**30
"""Bytes of a workbook after unpacking; a small file may unpack to any size."""
MAX_WORKBOOK_ROWS = 2**23
"""Rows of a sheet, of which Excel allows 2**20, and distinct texts of a workbook."""
MAX_ROW_ELEMENTS = 2**18
"""Elements of XML in a row; the 16,384 cells that Excel allows have up to eight each."""
_ROW_DEPTH = 3
_SMALL_PART_BYTES = MIB_BYTES
"""Bytes of a part of a workbook that need no check: they hold 250,000 elements at most."""
_RELATIONS = r"xl/worksheets/_rels/([^/]+)\.rels"
"""The part of a workbook that lists what a sheet contains, with the sheet's file name."""
_FORMULA, _ERROR = "f", "e"
_FIELDS_OF_TEXTS = ("question", "response", "documents", "answers", "claims")
"""Fields in which a number is a text."""


def read_workbook_records(
    path: InputFile,
    name: str,
    fields: Mapping[str, str],
    sheet: str = "",
    wanted: Collection[str] = (),
    longest_line: int = LONGEST_LINE_MIB,
) -> Iterator[RawRecord]:
    """Yield the records of a sheet.

    Args:
        path: the file.
        name: the name of the input, for messages.
        fields: the user's names of columns, by canonical field.
        sheet: the title or the number of the sheet; empty for the one with a question column, which
            need not be the first.
        wanted: the columns by which a sheet is known; without any, by that of a question.
        longest_line: MiB of the longest cell.

    Raises:
        InputError: openpyxl is not installed, the file is not a workbook, no sheet or several are
            meant, or the one with a question column is hidden; while iterating, if the file is
            damaged.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{name}: is a workbook; to read it: {install_command('excel')}; or save it as CSV"
        ) from error
    # Checked before openpyxl unpacks anything.
    pivot_sheets = _check_archive(path, name, longest_line)
    try:
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=False, keep_links=False)
            is_header = partial(_is_header, fields, wanted)
            sheets = [_read_sheet_header(each, is_header, pivot_sheets) for each in book.worksheets]
            chosen = _choose_sheet(sheets, name, sheet)
            yield from _read_sheet(book, name, fields, chosen, wanted)
    except InputError:
        raise
    except Exception as error:
        # Errors of zip, XML and values: openpyxl has no class of its own for damaged files.
        reason = f"{type(error).__name__}: {error}"[:200]
        raise InputError(f"{name}: is not a readable Excel workbook ({reason})") from error


def _check_archive(path: InputFile, name: str, longest_line: int) -> Sequence[str]:
    """Refuse a workbook that is too large, or has a cell or row that is; return the file names of
    sheets with pivot tables."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MAX_WORKBOOK_BYTES:
                message = f"expected at most {MAX_WORKBOOK_BYTES:,} bytes unpacked, got {size:,}"
                raise InputError(f"{name}: {message}; save it as CSV")
            for member in archive.infolist():
                if member.file_size > _SMALL_PART_BYTES:
                    _check_part(archive, member, name, longest_line)
            parts = [re.fullmatch(_RELATIONS, part) for part in archive.namelist()]
            return [part[1] for part in parts if part and b"/pivotTable" in archive.read(part[0])]
    # Damaged, packed by an unknown method, or encrypted.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise InputError(
            f"{name}: is not an Excel workbook ({error}); save it as .xlsx or CSV"
        ) from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


def _check_part(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, longest_line: int
) -> None:
    bounds = _XmlBounds(longest_line)
    with archive.open(member) as stream:
        while piece := stream.read(_MAX_START_BYTES):
            if message := bounds.add(piece):
                raise InputError(f"{name}: {member.filename}: {message}")


class _XmlBounds:
    """Checks a part of a workbook before openpyxl, which holds a whole row in memory, reads it."""

    def __init__(self, longest_line: int) -> None:
        self._longest_line = longest_line
        self._text_bytes = self._depth = self._outer = self._inner = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def add(self, piece: bytes) -> str | None:
        """Read a further piece; return what is too long in it, or ``None``."""
        # No text and no attribute has the sign with which each tag begins.
        parts = piece.split(b"<")
        self._text_bytes = len(parts[-1]) + (self._text_bytes if len(parts) == 1 else 0)
        if self._text_bytes > self._longest_line * MIB_BYTES:
            return f"a cell {describe_excess(self._longest_line)}"
        # What is no XML is reported by openpyxl.
        with suppress(expat.ExpatError):
            self._parser.Parse(piece)
        is_long = self._outer > MAX_WORKBOOK_ROWS or self._inner > MAX_ROW_ELEMENTS
        message = "has more rows, or more cells in a row, than Excel allows; save it as CSV"
        return message if is_long else None

    def _start(self, _name: str, _attributes: Any) -> None:
        self._depth += 1
        # <worksheet><sheetData><row> and <sst><si><t>.
        self._outer += self._depth <= _ROW_DEPTH
        self._inner = self._inner + 1 if self._depth > _ROW_DEPTH else 0

    def _end(self, _name: str) -> None:
        self._depth -= 1


class _WorkbookSheet(NamedTuple):
    """A sheet of a workbook."""

    title: str
    """Its title."""
    header: Sequence[str]
    """The cells of its header."""
    row: int
    """The number of the header's row, from 1; 0 for an empty sheet."""
    asks: bool
    """Whether the header has a question column, or a wanted one."""
    aside: str
    """Why it is chosen only by name: it is hidden, or has a pivot table; empty for others."""


def _choose_sheet(sheets: Sequence[_WorkbookSheet], name: str, chosen: str) -> _WorkbookSheet:
    """Return the sheet that the user chose, by its title or number.

    By default, it is the one with a question column, or else the first one with a text.
    """
    titles = [sheet.title for sheet in sheets]
    if chosen:
        by_number = dict(zip(map(str, range(1, len(sheets) + 1)), sheets, strict=True))
        by_title = dict(zip(titles, sheets, strict=True))
        if chosen not in by_title | by_number:
            raise InputError(f"{name}: {did_you_mean('sheet', chosen, titles)}")
        return (by_number | by_title)[chosen]
    asking = [sheet for sheet in sheets if sheet.asks]
    usual = [sheet for sheet in asking if not sheet.aside]
    # Several sheets with questions are ambiguous; none of them is chosen silently.
    if asking and len(usual) != 1:
        parts = [
            f"{sheet.title} ({sheet.aside})" if sheet.aside else sheet.title for sheet in asking
        ]
        have = (
            "sheets {} each have a question column"
            if parts[1:]
            else "sheet {} has a question column"
        )
        message = have.format(", ".join(parts))
        option = f"--sheet {shlex.quote((usual or asking)[0].title)}"
        raise InputError(f"{name}: the {message}; choose one, for example {option}")
    return next(iter([*usual, *(sheet for sheet in sheets if sheet.header), *sheets]))


def _read_sheet_header(
    sheet: Any, is_header: Callable[[Sequence[str]], bool], pivot_sheets: Sequence[str]
) -> _WorkbookSheet:
    values = islice(sheet.iter_rows(values_only=True), MAX_HEADER_ROWS)
    rows = [["" if value is None else str(value).strip() for value in row] for row in values]
    place = find_header(rows, is_header)
    first = next((number for number, row in enumerate(rows, 1) if any(row)), 0)
    at = first if place is None else place + 1
    is_pivot = PurePosixPath(getattr(sheet, "_worksheet_path", "")).name in pivot_sheets
    aside = "with a pivot table" if is_pivot else ""
    aside = aside if sheet.sheet_state == "visible" else "hidden"
    header = rows[at - 1] if at else []
    return _WorkbookSheet(str(sheet.title), header, at, place is not None, aside)


def _read_sheet(
    book: Any,
    name: str,
    fields: Mapping[str, str],
    sheet: _WorkbookSheet,
    wanted: Collection[str],
) -> Iterator[RawRecord]:
    if not sheet.header:
        return
    below = book[sheet.title].iter_rows(min_row=sheet.row + 1, values_only=True)
    # The table may be on a sheet that was not chosen.
    others = ", ".join(title for title in book.sheetnames if title != sheet.title)
    layout = f" (in the sheet {sheet.title}; choose --sheet: {others[:80]})" if others else ""
    header = check_header(sheet.header, name, fields, layout, filter(any, below), wanted)
    columns_of_fields = find_columns([column for column in header if column], fields)
    used = {column for columns in columns_of_fields.values() for column in columns} | set(wanted)
    # Elsewhere, such as in a label, a percentage is a number.
    texts = {column for field in _FIELDS_OF_TEXTS for column in columns_of_fields.get(field, ())}
    rows = book[sheet.title].iter_rows(min_row=sheet.row + 1)
    for number, row in enumerate(rows, sheet.row + 1):
        # Formatted but empty rows below the data are common.
        if all(cell.value is None for cell in row):
            continue
        cells: dict[str, Any] = dict.fromkeys(filter(None, header))
        problems = []
        for column, cell in zip(header, row, strict=False):
            # "#N/A" is how a formula says that there is no value.
            if not column or cell.value is None or (cell.data_type, cell.value) == (_ERROR, "#N/A"):
                continue
            if cell.data_type not in (_FORMULA, _ERROR):
                value = _convert_value(cell.value)
                is_number = column in texts and isinstance(value, int | float)
                cells[column] = _write_as_shown(value, cell.number_format) if is_number else value
            # Formulas and errors in columns that are not read do not matter.
            elif column in used:
                message = "is a formula, which is not computed; paste the column as values"
                if cell.data_type == _ERROR:
                    message = f"contains the error {cell.value}"
                problems.append(Problem(column, message))
        raw = build_table_record(cells, f"{name}: row {number}", fields)
        yield raw._replace(problems=(*problems, *raw.problems))


def _write_as_shown(value: float, number_format: str) -> str:
    """Return a number as a text; with a format such as "0.0%" as a percentage."""
    if "%" not in number_format or isinstance(value, bool):
        return write_number(value)
    decimals = re.search(r"\.([0#?]+)", number_format)
    return f"{value:.{len(decimals[1]) if decimals else 0}%}"


def _convert_value(value: Any) -> Any:
    """Return a cell's value in JSON's types; 3.0 becomes 3, because Excel stores only floats."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    result = to_json_types(value)
    return result if isinstance(result, str | int | float | bool) else str(result)
