"""Standard output and standard error, which may be closed or full: no result is lost then.

Messages for people may be lost; they do not change the exit status. Output for programs,
``--json``, is written in full, or the exit status is 1.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

__all__ = ["one_line", "output_failed", "prepare_streams", "print_json", "say", "visible"]

OUTPUT, ERRORS = 1, 2
FAILED = 1
"""Exit status if standard output could not be written."""


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
        sys.stderr = _lossy(sys.stderr)


def _lossy(stream: io.TextIOWrapper | Any) -> io.TextIOWrapper:
    encoding = "utf-8" if stream is None else stream.encoding
    return io.TextIOWrapper(
        io.BufferedWriter(_Lossy()), encoding, errors="backslashreplace", line_buffering=True
    )


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


def say(text: str) -> None:
    """Print a line for people, on standard error, with control characters made visible."""
    print(visible(text), file=sys.stderr)


def one_line(text: str) -> str:
    """Return ``text`` with its line breaks made visible, so that input cannot forge a line."""
    return "\u23ce".join(text.splitlines()) if len(text.splitlines()) > 1 else text
