"""How much of an input is read as one record, so that a small packed file cannot fill the memory.

A line of JSON or a row of a table may have ``longest_line`` MiB. A document that is loaded as a
whole (a ``.json`` file, a message of OTLP) may be as long as :data:`DOCUMENT_LINES` of them.
"""

from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple, TextIO

from trustassay.core.sample import Problem
from trustassay.input.records import InputError

DOCUMENT_LINES = 8
"""Longest lines in the longest document."""
MAX_FIELDS = 10_000
"""Fields of a record, and columns of a table; records of other tools have fewer than a hundred."""
MIB_BYTES = 2**20
_PIECE_BYTES = 2**16


def describe_excess(longest_line: int, lines: int = 1) -> str:
    """Return what is wrong with a record that is too long, and which option allows it.

    Args:
        longest_line: in MiB.
        lines: the most that it may have, in longest lines.
    """
    return (
        f"has more than {longest_line * lines:,} MiB; split it, or allow more in an INPUT with "
        f"--longest-line {2 * longest_line} (MiB, now {longest_line})"
    )


class BoundedLine(NamedTuple):
    """A line of a file."""

    content: bytes
    """The line with its end; of one that is too long, its beginning."""
    size: int
    """Bytes of the whole line."""
    is_long: bool
    """Whether it is too long."""
    has_end: bool
    """Whether it ends with a line end, and not with the file."""


def read_line(stream: IO[bytes], longest_line: int) -> BoundedLine | None:
    """Read the next line; ``None`` at the end of the file.

    Of a line of more than ``longest_line`` MiB no more than these are in memory.
    """
    max_bytes = longest_line * MIB_BYTES
    # One byte more, so that a line of exactly the limit comes with its end.
    content = stream.readline(max_bytes + 1)
    size, has_end = len(content), content.endswith(b"\n")
    is_long = is_beginning(content, longest_line)
    while is_long and not has_end and (piece := stream.readline(_PIECE_BYTES)):
        size += len(piece)
        has_end = piece.endswith(b"\n")
    return BoundedLine(content, size, is_long, has_end) if content else None


def is_beginning(content: bytes, longest_line: int) -> bool:
    """Whether :func:`read_line` read only the beginning of a line, which is too long."""
    return len(content) > longest_line * MIB_BYTES and not content.endswith(b"\n")


def iter_lines(stream: IO[bytes], longest_line: int) -> Iterator[bytes | None]:
    """Yield the lines of a file, with their ends; ``None`` for one of more than ``longest_line``
    MiB."""
    while line := read_line(stream, longest_line):
        yield None if line.is_long else line.content


def read_document(stream: IO[bytes], name: str, longest_line: int) -> bytes:
    """Return the content of a file that is loaded as a whole.

    Args:
        stream: the file, at its beginning.
        name: the name of the input, for messages.
        longest_line: in MiB.

    Raises:
        InputError: it has more than :data:`DOCUMENT_LINES` times ``longest_line`` MiB.
    """
    max_bytes = DOCUMENT_LINES * longest_line * MIB_BYTES
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        message = "is read as a whole (JSON Lines would be read by line), and"
        raise InputError(f"{name}: {message} {describe_excess(longest_line, DOCUMENT_LINES)}")
    return content


class BoundedRows:
    """The lines of a table for ``csv``, which joins several of them where a cell has line ends.

    Call :meth:`begin_row` before each row.
    """

    def __init__(self, text: TextIO, longest_line: int) -> None:
        self._text, self._longest_line = text, longest_line
        self._characters_left = 0
        self._where = ""

    def begin_row(self, where: str) -> None:
        """Count a new row, which begins at the place ``where``."""
        self._where, self._characters_left = where, self._longest_line * MIB_BYTES

    def __iter__(self) -> "BoundedRows":
        return self

    def __next__(self) -> str:
        """Return the next line.

        Raises:
            InputError: the row is too long. It is not skipped, since nobody knows where the next
                row begins if a cell was never closed.
        """
        line = self._text.readline(self._characters_left + 1)
        self._characters_left -= len(line)
        if self._characters_left < 0:
            raise InputError(f"{self._where}: the row {describe_excess(self._longest_line)}")
        if not line:
            raise StopIteration
        return line


def find_long_cells(cells: Mapping[str, Any], longest_line: int) -> dict[str, Problem]:
    """Return a problem for each cell with a text of more than ``longest_line`` MiB."""
    return {
        column: Problem(column, describe_excess(longest_line))
        for column, value in cells.items()
        if isinstance(value, str | bytes) and len(value) > longest_line * MIB_BYTES
    }


def describe_many_fields(count: int) -> str | None:
    """Return what is wrong with a record of too many fields; ``None`` for others."""
    if count <= MAX_FIELDS:
        return None
    return f"has {count:,} fields; expected at most {MAX_FIELDS:,}"
