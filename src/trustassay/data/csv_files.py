"""CSV, with commas, semicolons or tabs, as a stream of raw records."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from trustassay.data.cells import MOST_ABOVE, checked_header, header_place, table_record
from trustassay.data.raw import InputError, Raw, opened
from trustassay.data.recognising import tells_question
from trustassay.progress import tell
from trustassay.sample import Problem

__all__ = ["LARGEST_CELL", "SAVE_AS_UTF8", "Decoder", "Header", "csv_records", "header_of"]
__all__ += ["not_utf8"]

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


def header_of(path: Path, name: str, usual: str, known: Callable[[Sequence[str]], bool]) -> Header:
    """Return the header of a table: a ``known`` one by any delimiter and encoding, else its first
    line with most cells. The ``usual`` delimiter has precedence.
    """
    with opened(path, name) as stream:
        start = stream.read(_LOOKED_AT).decode("utf-8-sig", "surrogateescape")
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    rows = {mark: list(_first_rows(start, mark)) for mark in dict.fromkeys((usual, *_PARTED_BY))}
    found = [
        Header(decoded[place], shown[place][0], mark, encoding)
        for mark, shown in rows.items()
        for encoding in ("", *_ENCODINGS)
        for decoded in [[_decoded(row, encoding) for _, row in shown]]
        if (place := header_place(decoded, known)) is not None
    ]
    first = [Header(row, line, mark) for mark, shown in rows.items() for line, row in shown[:1]]
    fallback = Header((), 0, usual)
    return max(found or first or [fallback], key=lambda one: (not one.encoding, len(one.cells)))


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


class Decoder:
    """Reads the rows of a table in the one encoding that it has.

    The header tells it by names that are known. Else the first row beyond ASCII does: it is UTF-8,
    or Windows-1252 if that makes it a text of a western European language.
    """

    def __init__(self, name: str, encoding: str = "") -> None:
        self._name, self._encoding = name, ""
        self._settle(encoding)

    def read(self, row: list[str]) -> list[str]:
        """Return the row; bytes that cannot be read stay as lone surrogates."""
        if all(map(str.isascii, row)):
            return row
        if not self._encoding:
            western = _decoded(row, _WESTERN)
            if not not_utf8(row):
                self._settle("utf-8")
            elif all(map(_is_western, western)):
                self._settle(_WESTERN)
        return _decoded(row, self._encoding) if self._encoding in _ENCODINGS else row

    def _settle(self, encoding: str) -> None:
        self._encoding = encoding
        if encoding in _ENCODINGS and self._name not in _announced:
            _announced.add(self._name)
            known = _ENCODINGS[encoding]
            tell(
                f"{self._name}: is not UTF-8, read as {known}; where letters are wrong, "
                f"{SAVE_AS_UTF8}"
            )


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
    path: Path,
    name: str,
    fields: Mapping[str, str],
    delimiter: str,
    header: list[str] | None = None,
) -> Iterator[Raw]:
    """Return the records of a table; ``header`` names its columns where no line of it does.

    Without one the ``delimiter`` is only the usual one of such files, and what is above the header,
    a title for instance, is not read.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    decoder, above = Decoder(name), 0
    if header is None:
        found = header_of(path, name, delimiter, lambda cells: tells_question(cells, fields))
        decoder, above, delimiter = Decoder(name, found.encoding), found.line, found.delimiter
    with opened(path, name) as stream:
        # Bytes that are not UTF-8 survive as lone surrogates, to be decoded, or reported.
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            where = f"{name}:{rows.line_num + 1}"
            try:
                row = decoder.read(next(rows))
            except StopIteration:
                return
            except csv.Error as error:
                if header is None:
                    raise InputError(f"{where}: the header is not CSV ({error})") from error
                open_quote = "unexpected end" in str(error)
                reason = "a quoted cell is never closed" if open_quote else str(error)
                yield Raw(where, None, (Problem("record", f"is not CSV ({reason})"),))
                continue
            if not any(row) or rows.line_num < above:
                continue
            if header is None:
                cells = [cell.strip() for cell in row]
                if not_utf8(cells):
                    raise InputError(f"{name}: the first line is not UTF-8; {SAVE_AS_UTF8}")
                header = checked_header(cells, name, fields, _PARTED_BY[delimiter])
            else:
                yield _csv_record(row, where, header, fields)


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
