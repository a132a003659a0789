"""Standard input as a file: it is read once, and kept until the process ends.

Input is read more than once, to choose a metric, to check it, to score it; so what comes through a
pipe is copied to a temporary file, which also says what kind of file it is.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from trustassay.data.raw import InputError, opened
from trustassay.data.signatures import PARQUET, ZIP

__all__ = ["NAME", "STANDARD_INPUT", "Kept", "is_standard_input", "kept_input"]

STANDARD_INPUT = "-"
"""The name by which a user asks for standard input."""
NAME = "standard input"
_PIECE = 2**20


class Kept(NamedTuple):
    """The copy of standard input: where it is, its kind as a suffix, and its digest."""

    path: Path
    kind: str
    digest: str


def is_standard_input(source: Any) -> bool:
    """Return whether an input is named ``-``."""
    return isinstance(source, str | os.PathLike) and os.fspath(source) == STANDARD_INPUT


def kept_input() -> Kept:
    """Return the copy of what stands on standard input.

    Raises:
        InputError: it is a terminal, or cannot be read.
    """
    return _kept(sys.stdin)


@lru_cache(maxsize=1)
def _kept(stdin: TextIO) -> Kept:
    if stdin is None or stdin.closed:
        raise InputError(f"{NAME}: is closed; expected a file, as in trustassay score - < log.csv")
    if stdin.isatty():
        raise InputError(
            f"{NAME}: is a terminal; expected a file, as in trustassay score - < log.csv"
        )
    folder = Path(tempfile.mkdtemp(prefix="trustassay-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, digest = folder / "input", hashlib.sha256()
    try:
        with path.open("wb") as file:
            while piece := stdin.buffer.read(_PIECE):
                digest.update(piece)
                file.write(piece)
    except OSError as error:
        raise InputError(f"{NAME}: cannot be read ({error.strerror or error})") from error
    return Kept(path, _kind_of(path), digest.hexdigest())


def _kind_of(path: Path) -> str:
    """Return the suffix that a file of this content has: JSON begins with a bracket."""
    with path.open("rb") as file:
        start = file.read(len(PARQUET))
    if start == PARQUET:
        return ".parquet"
    if start == ZIP:
        return ".xlsx"
    with opened(path, NAME) as stream:
        first = next((line for line in stream if not line.isspace()), b"")
    first = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ".json" if first.startswith((b"{", b"[")) else ".csv"
