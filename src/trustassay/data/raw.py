"""What every kind of file has in common: raw records, opening, and the errors of a whole file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from trustassay.data.signatures import GZIP, LONGEST, ZSTD, other_than_text
from trustassay.errors import UsageError, did_you_mean
from trustassay.sample import Problem

__all__ = ["InputError", "Raw", "missing_source", "opened"]


class InputError(UsageError):
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
    """Open a plain text for reading, or one that gzip or zstd compressed, whatever its name.

    Raises:
        InputError: it cannot be read, is not UTF-8 text, or its compression is damaged.
    """
    packing = ""
    try:
        with path.open("rb") as file:
            packing = _packing(file.peek(LONGEST), path)
            with _unpacked(file, packing, name) as stream:
                if found := other_than_text(stream.peek(LONGEST)):
                    raise InputError(f"{name}: {found}")
                yield cast("IO[bytes]", stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: is not a complete {packing} file ({error})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # its module differs by Python's version
            raise
        raise InputError(f"{name}: is not a complete {packing} file ({error})") from error


def _packing(start: bytes, path: Path) -> str:
    if path.suffix.lower() == ".gz" or start.startswith(GZIP):
        return "gzip"
    return "zstd" if start.startswith(ZSTD) else ""


def _unpacked(file: BufferedReader, packing: str, name: str) -> AbstractContextManager[Any]:
    if packing == "gzip":
        return gzip.open(file, "rb")
    return _zstd(name)(file) if packing == "zstd" else nullcontext(file)


def _zstd(name: str) -> Callable[[BufferedReader], AbstractContextManager[Any]]:
    """Return the class that reads zstd: Python's own from 3.14 on, else a package's."""
    for module in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return cast("Callable[[BufferedReader], Any]", import_module(module).ZstdFile)
    raise InputError(
        f"{name}: is compressed with zstd; install what reads it (pip install 'trustassay[zstd]'), "
        "or decompress it first (zstd -d)"
    )
