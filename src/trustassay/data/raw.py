"""What every kind of file has in common: raw records, opening, and the errors of a whole file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from trustassay.data.signatures import GZIP, LONGEST, other_than_text
from trustassay.errors import did_you_mean
from trustassay.sample import Problem

__all__ = ["InputError", "Raw", "missing_source", "opened"]


class InputError(ValueError):
    """The input as a whole cannot be read; the message names it and says what was expected."""


class Raw(NamedTuple):
    """A record as read; with ``problems`` and no ``record`` if it was unreadable.

    A record ``of_table`` has every column of its table, ``None`` if its cell is empty.
    """

    where: str
    record: Any
    problems: tuple[Problem, ...] = ()
    of_table: bool = False


def missing_source(name: str, canonical: str, theirs: str, known: Iterable[str]) -> InputError:
    """Return the error of a ``--field`` whose source no record has."""
    hint = did_you_mean("field", theirs, known)
    return InputError(f"{name}: no record has {theirs} (--field {canonical}={theirs}): {hint}")


@contextmanager
def opened(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a plain or gzipped text for reading, whatever its name.

    Raises:
        InputError: it cannot be read, is not UTF-8 text, or its compression is damaged.
    """
    try:
        with path.open("rb") as file:
            packed = path.suffix.lower() == ".gz" or file.peek(2).startswith(GZIP)
            with gzip.open(file, "rb") if packed else file as stream:
                if found := other_than_text(stream.peek(LONGEST)):
                    raise InputError(f"{name}: {found}")
                yield cast("IO[bytes]", stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: is not a complete gzip file ({error})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
