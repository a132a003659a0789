"""Printing to standard output and standard error, which may be closed or full.

Messages for people may be lost without an effect on the exit status. Output for programs
(``--json``) is written in full, or the exit status is 1. On a terminal lines are wrapped between
words. With ``--quiet`` only faults, and a command's last line, are printed.
"""

import errno
import io
import json
import os
import re
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from typer import Exit

from trustassay.core.sample import clean

if TYPE_CHECKING:
    from trustassay.report.document import DocumentRow

# File descriptors of standard output and standard error.
OUTPUT, ERRORS = 1, 2
BAD_INPUT = 2
"""Exit status after bad input or arguments: nothing was started."""
INTERNAL = 70
"""Exit status after an internal error, EX_SOFTWARE of sysexits.h."""
FAILED = 1
"""Exit status if standard output could not be written."""
INTERRUPTED = 128 + signal.SIGINT
"""Exit status after SIGINT."""


def prepare_streams() -> None:
    """Make standard error drop text that it cannot write, and open streams that are closed.

    Otherwise a file that is opened later would get the descriptor of a closed stream, and a
    library's prints would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened for reading only, so that printing results raises an error.
            mode = os.O_RDONLY if number < ERRORS else os.O_WRONLY
            os.open(os.devnull, mode)  # takes the lowest free number: this one
    # Python sets it to None at start where the descriptor is closed.
    if sys.stdout is None:
        sys.stdout = open(OUTPUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    # Not where a test or a notebook has replaced it.
    if sys.stderr is sys.__stderr__:
        encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
        raw = io.BufferedWriter(_LossyStream())
        sys.stderr = io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=True)


class _LossyStream(io.RawIOBase):
    """Standard error that loses text which cannot be written."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(ERRORS)

    def fileno(self) -> int:
        return ERRORS

    def write(self, data: Any) -> int:
        try:
            return os.write(ERRORS, data)
        except OSError:  # closed, full, or no longer read
            return len(data)


def print_json(content: Mapping[str, Any]) -> None:
    """Print an object on standard output; ends the process if that cannot be written."""
    try:
        # A label, a group or a rating may have half a character in it.
        print(clean(json.dumps(content, indent=2, ensure_ascii=False)), flush=True)
    except OSError as error:
        exit_output_failed(error)


def exit_output_failed(error: OSError) -> NoReturn:
    """Print a message that standard output could not be written, and exit with status 1.

    If the reader has closed the pipe, as ``head`` does, nothing is printed.
    """
    with suppress(OSError):  # Python would write the buffer again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), OUTPUT)
    if not isinstance(error, BrokenPipeError):
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        print(f"trustassay: standard output cannot be written ({reason})", file=sys.stderr)
    sys.exit(FAILED)


def visible(text: str) -> str:
    """Return ``text`` with control characters spelled out, so that none reaches the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)


_last_line: list[str] | None = None
"""With ``--quiet``, the last line so far, or an empty list; ``None`` without ``--quiet``."""


@contextmanager
def only_last_line(quiet: bool = True) -> Iterator[None]:
    """Print only the last line that :func:`say` gets in the block, at the end of the block.

    Nothing is printed if the block ends with an error in the command line or in the input.
    """
    global _last_line
    if not quiet:
        yield
        return
    before, _last_line = _last_line, []
    succeeded = False
    try:
        yield
        succeeded = True
    except Exit as exit_error:
        # A failed gate or an alarm has a result to print.
        succeeded = exit_error.exit_code not in (BAD_INPUT, INTERNAL, INTERRUPTED)
        raise
    finally:
        # Restored before printing: blocks may be nested.
        last_lines, _last_line = _last_line, before
        if succeeded and last_lines:
            complain(last_lines[0])


_says_on_output = False
"""Whether :func:`say` prints on standard output, as a command's result."""


@contextmanager
def results_on_output(on: bool = True) -> Iterator[None]:
    """Send :func:`say` to standard output in the block; exits if that cannot be written.

    on: False where standard output is for JSON; people then read results on standard error.
    """
    global _says_on_output  # noqa: PLW0603 - one stream for the process
    before, _says_on_output = _says_on_output, on
    try:
        yield
        if on:
            # Flush inside of the block, where an error is still reported.
            sys.stdout.flush()
    except OSError as error:
        exit_output_failed(error)
    finally:
        _says_on_output = before


def say(text: str) -> None:
    """Print a line for people, on standard error, with control characters made visible."""
    if _last_line is None:
        complain(text)
    elif text.strip():
        _last_line[:] = [text]


def advise(text: str) -> None:
    """Print a line like :func:`say`, unfolded; with ``--quiet`` not even as the last one."""
    if _last_line is None:
        complain(text, fold=False)


def complain(text: str, *, fold: bool = True) -> None:
    """Print like :func:`say`, but also with ``--quiet``: what failed, and what to do about it.

    fold: wrap long lines between words; False for a command that the user is to copy.
    """
    text, width = visible(text), terminal_width() if fold else None
    lines = text.split("\n") if width is None else wrap_lines(text, width)
    print("\n".join(lines), file=sys.stdout if _says_on_output else sys.stderr)


def terminal_width() -> int | None:
    """Return the width of the terminal in columns, or ``None`` without a terminal."""
    stream, number = (sys.stdout, OUTPUT) if _says_on_output else (sys.stderr, ERRORS)
    with suppress(OSError, ValueError, AttributeError):
        if stream.isatty():
            # A width of 0, which some terminals report, counts as unknown.
            return int(os.environ.get("COLUMNS") or os.get_terminal_size(number).columns) or None
    return None


WIDE_CHARACTER = re.compile("([\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef])")
"""Characters of scripts without spaces; a line may break after each of them."""


def wrap_lines(text: str, width: int, later: str | None = None) -> list[str]:
    """Wrap text into lines of at most ``width`` cells, between words.

    A longer word, such as a path or a URI, gets a line of its own. Continuation lines have the
    indentation of their line, or begin with ``later``.
    """
    from rich.cells import cell_len

    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        continuation = indent if later is None else later
        current, used, empty = indent, cell_len(indent), True
        for gap, word in re.findall(r"(\s*)(\S+)", line[len(indent) :]):
            # split keeps the captured characters: each one of a wide script is a piece of its own.
            for number, piece in enumerate(filter(None, WIDE_CHARACTER.split(word))):
                between = gap if number == 0 and not empty else ""
                size = cell_len(between) + cell_len(piece)
                if not empty and used + size > width:
                    lines.append(current)
                    current, used = continuation + piece, cell_len(continuation) + cell_len(piece)
                else:
                    current, used = current + between + piece, used + size
                empty = False
        lines.append(current)
    return lines


def one_line(text: str) -> str:
    """Return ``text`` with visible marks for line breaks, so that input cannot forge a line."""
    return "\u23ce".join(text.splitlines()) if len(text.splitlines()) > 1 else text


COLUMN_GAP = 2
"""Cells between two columns."""
MIN_TEXT_WIDTH = 16
"""Smallest width of a text column, unless its longest word is wider. With less room each row is
printed as a list."""
LOG_WIDTH = 160
"""Width of wide tables where the output is no terminal, such as a log."""


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[str],
    *,
    wide: bool = False,
) -> None:
    """Print a table or, if it is too wide for the terminal, each row as a list of its cells.

    No word is cut. With ``--quiet`` nothing is printed.

    Args:
        headings: of the columns; the first column names the row.
        rows: cells as text.
        texts: headings of the columns that are wrapped. They and the first are left-aligned.
        wide: without a terminal the width is :data:`LOG_WIDTH`.
    """
    if _last_line is not None:
        return
    from rich.console import Console

    # Cells may come from input: markup and emoji codes are switched off below for that reason.
    rows = [[visible(one_line(cell)) for cell in row] for row in rows]
    console = Console(stderr=not _says_on_output, highlight=False, markup=False, emoji=False)
    if wide and not console.is_terminal:
        console.width = LOG_WIDTH
    if _compute_width(headings, rows, texts) > console.width:
        # rich would cut words rather than print a table wider than the terminal.
        for line in _format_as_list(headings, rows, console.width):
            console.print(line, soft_wrap=True)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        if heading in texts:
            min_width = _compute_min_width([heading, *(row[place] for row in rows)])
            table.add_column(heading, overflow="fold", min_width=min_width)
        else:
            table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def console_width() -> int:
    """Return the width of tables in columns; also without a terminal, where it is assumed."""
    from rich.console import Console

    return Console(stderr=not _says_on_output).width


def show_rows(
    first: str,
    columns: Sequence[str],
    rows: "Iterable[DocumentRow]",
    texts: Collection[str] = (),
    *,
    wide: bool = False,
) -> None:
    """Print rows of a document's table under ``columns``, like :func:`show_table`; ``first`` heads
    their names."""
    cells = [(row.name, *row.cells) for row in rows]
    show_table((first, *columns), cells, texts, wide=wide)


def _compute_width(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str]
) -> int:
    from rich.cells import cell_len

    total = COLUMN_GAP * len(headings)  # the last column has one, too
    for place, heading in enumerate(headings):
        cells = [*heading.split("\n"), *(row[place] for row in rows)]
        longest = max(map(cell_len, cells))
        total += _compute_min_width(cells) if heading in texts else longest
    return total


def _compute_min_width(cells: Sequence[str]) -> int:
    """Return the smallest width of a text column: its longest word, or room for a few words."""
    from rich.cells import cell_len

    words = [cell_len(word) for cell in cells for word in cell.split()]
    return max([min(max(map(cell_len, cells)), MIN_TEXT_WIDTH), *words])


def _format_as_list(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[str]:
    """Return rows as lists: the first cell, and below it the others with their headings."""
    lines = []
    for name, *cells in rows:
        lines.append(name or "–")
        for heading, cell in zip(headings[1:], cells, strict=True):
            if cell:
                label = " ".join(heading.split())
                lines += wrap_lines(f"  {label}: {' '.join(cell.split())}", width, "    ")
    return lines
