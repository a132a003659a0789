"""Standard output and standard error, which may be closed or full: no result is lost then.

Messages for people may be lost; they do not change the exit status. Output for programs,
``--json``, is written in full, or the exit status is 1. On a terminal lines are folded between
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

if TYPE_CHECKING:
    from trustassay.show.document import Row

OUTPUT, ERRORS = 1, 2
BAD_INPUT = 2
"""Exit status of a command that started nothing."""
INTERNAL = 70
"""Exit status of a fault of the program itself, as EX_SOFTWARE of sysexits.h."""
FAILED = 1
"""Exit status if standard output could not be written."""
INTERRUPTED = 128 + signal.SIGINT
"""Exit status after SIGINT."""


def prepare_streams() -> None:
    """Make standard error drop what it cannot write, and open the streams that are closed.

    Otherwise a file opened later would get the number of the closed stream, and whatever a
    library prints there would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened for reading only, so that printing to it raises an error.
            mode = os.O_RDONLY if number < ERRORS else os.O_WRONLY
            os.open(os.devnull, mode)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = open(OUTPUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is sys.__stderr__:
        encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
        raw = io.BufferedWriter(_Lossy())
        sys.stderr = io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=True)


class _Lossy(io.RawIOBase):
    """Standard error; what cannot be written is lost."""

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
        print(json.dumps(content, indent=2, ensure_ascii=False), flush=True)
    except OSError as error:
        output_failed(error)


def output_failed(error: OSError) -> NoReturn:
    """Print that standard output could not be written, and exit with status 1.

    If the reader has closed the pipe, as ``head`` does, nothing is printed.
    """
    with suppress(OSError):  # what is still buffered would be tried again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), OUTPUT)
    if not isinstance(error, BrokenPipeError):
        why = "it is closed" if error.errno == errno.EBADF else error.strerror
        print(f"trustassay: standard output cannot be written ({why})", file=sys.stderr)
    sys.exit(FAILED)


def visible(text: str) -> str:
    """Return ``text`` with its control characters made visible."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)


_held: list[str] | None = None
"""With ``--quiet``: the last line that was to be printed."""


@contextmanager
def only_last_line(quiet: bool = True) -> Iterator[None]:
    """Print, of all that :func:`say` is given in the block, the last line alone, at its end.

    Nothing of it is printed if the block ends with a fault of the command line or of its input.
    """
    global _held
    if not quiet:
        yield
        return
    before, _held = _held, []
    done = False
    try:
        yield
        done = True
    except Exit as leaving:
        done = leaving.exit_code not in (BAD_INPUT, INTERNAL, INTERRUPTED)
        raise
    finally:
        last, _held = _held, before
        if done and last:
            complain(last[0])


_on_output = False
"""Whether what is said now is a command's result, which goes to standard output."""


@contextmanager
def results_on_output(on: bool = True) -> Iterator[None]:
    """Print what is said in the block on standard output; ends the process if that is not possible.

    on: False where standard output is for JSON, so that people read results beside it.
    """
    global _on_output  # noqa: PLW0603 - one stream for the process
    before, _on_output = _on_output, on
    try:
        yield
        if on:
            sys.stdout.flush()
    except OSError as error:
        output_failed(error)
    finally:
        _on_output = before


def say(text: str) -> None:
    """Print a line for people, on standard error, with control characters made visible."""
    if _held is None:
        complain(text)
    elif text.strip():
        _held[:] = [text]


def complain(text: str, *, fold: bool = True) -> None:
    """Print as :func:`say`, also with ``--quiet``: what failed, and what to do about it.

    fold: cut long lines between words; not those of a command that is to be copied.
    """
    text, width = visible(text), terminal_width() if fold else None
    lines = text.split("\n") if width is None else folded(text, width)
    print("\n".join(lines), file=sys.stdout if _on_output else sys.stderr)


def terminal_width() -> int | None:
    """Return the columns of the terminal that is printed on, or ``None`` if it is none."""
    stream, number = (sys.stdout, OUTPUT) if _on_output else (sys.stderr, ERRORS)
    with suppress(OSError, ValueError, AttributeError):
        if stream.isatty():
            return int(os.environ.get("COLUMNS") or os.get_terminal_size(number).columns) or None
    return None


WIDE = re.compile("([\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef])")
"""Scripts that write no spaces between words; a line may end behind any of their characters."""


def folded(text: str, width: int, later: str | None = None) -> list[str]:
    """Return text as lines of at most ``width`` cells, cut between words.

    A word that alone is longer, a path or a URI, has a line of its own. What comes after a
    line's first is indented as the line is, or begins with ``later``.
    """
    from rich.cells import cell_len

    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        rest = indent if later is None else later
        now, used, empty = indent, cell_len(indent), True
        for gap, word in re.findall(r"(\s*)(\S+)", line[len(indent) :]):
            for number, piece in enumerate(filter(None, WIDE.split(word))):
                between = gap if number == 0 and not empty else ""
                size = cell_len(between) + cell_len(piece)
                if not empty and used + size > width:
                    lines.append(now)
                    now, used = rest + piece, cell_len(rest) + cell_len(piece)
                else:
                    now, used = now + between + piece, used + size
                empty = False
        lines.append(now)
    return lines


def one_line(text: str) -> str:
    """Return ``text`` with its line breaks made visible, so that input cannot forge a line."""
    return "\u23ce".join(text.splitlines()) if len(text.splitlines()) > 1 else text


GAP = 2
LEAST_TEXT = 16
"""Least width of a column of text, which is also that of its longest word; if there is less room,
each row is written as a list."""
OF_LOGS = 160
"""Width of wide tables if the output is not a terminal."""


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[str],
    *,
    wide: bool = False,
) -> None:
    """Print a table; if it is too wide for the terminal, each row as a list of its cells.

    Only the columns named in ``texts`` are folded. They and the first column, which names the row,
    are left-aligned. No word is cut. With ``--quiet`` nothing is printed.
    ``wide``: without a terminal the width is :data:`OF_LOGS`.
    """
    if _held is not None:
        return
    from rich.console import Console

    rows = [[visible(one_line(cell)) for cell in row] for row in rows]
    console = Console(stderr=not _on_output, highlight=False, markup=False, emoji=False)
    if wide and not console.is_terminal:
        console.width = OF_LOGS
    if _width(headings, rows, texts) > console.width:
        for line in _listed(headings, rows, console.width):
            console.print(line, soft_wrap=True)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        if heading in texts:
            least = _least([heading, *(row[place] for row in rows)])
            table.add_column(heading, overflow="fold", min_width=least)
        else:
            table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def show_rows(
    first: str,
    columns: Sequence[str],
    rows: "Iterable[Row]",
    texts: Collection[str] = (),
    *,
    wide: bool = False,
) -> None:
    """Print rows of a document's table under ``columns``, as :func:`show_table`; ``first`` heads
    their names."""
    shown = [(row.name, *row.cells) for row in rows]
    show_table((first, *columns), shown, texts, wide=wide)


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str]) -> int:
    from rich.cells import cell_len

    total = GAP * len(headings)  # the last column has one, too
    for place, heading in enumerate(headings):
        cells = [*heading.split("\n"), *(row[place] for row in rows)]
        longest = max(map(cell_len, cells))
        total += _least(cells) if heading in texts else longest
    return total


def _least(cells: Sequence[str]) -> int:
    """Return the least width of a column of text: its longest word, or some words' room."""
    from rich.cells import cell_len

    words = [cell_len(word) for cell in cells for word in cell.split()]
    return max([min(max(map(cell_len, cells)), LEAST_TEXT), *words])


def _listed(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return lines: the first cell of each row, below it its other cells, folded at spaces."""
    lines = []
    for name, *cells in rows:
        lines.append(name or "–")
        for heading, cell in zip(headings[1:], cells, strict=True):
            if cell:
                label = " ".join(heading.split())
                lines += folded(f"  {label}: {' '.join(cell.split())}", width, "    ")
    return lines
