"""Opens text files, compressed or not, and standard input.

An input is read more than once (to choose a metric, to check it, to score it), so standard input is
copied to a temporary file. A file that is not text is recognised by its first bytes.
"""

import atexit
import gzip
import hashlib
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO, cast

from trustassay.errors import install_command
from trustassay.input.places import InputFile
from trustassay.input.records import InputError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"
START_BYTES = 16
"""The number of bytes at the start of a file that are checked."""

# First bytes of files that users pass by mistake, with what to do about each.
_OTHER_FORMATS = {
    **dict.fromkeys(
        (b"BZh%d1AY&SY" % level for level in range(1, 10)),
        "compressed with bzip2; decompress it first (bzip2 -d)",
    ),
    b"\xfd7zXZ\x00": "compressed with xz; decompress it first (xz -d)",
    ZIP: "a zip archive, for instance a spreadsheet (.xlsx); name it .xlsx, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted workbook of Excel; save it as .xlsx or CSV",
    b"PAR1\x15": "a Parquet file; name it .parquet",
    b"ARROW1\x00\x00": "an Arrow file; save it as Parquet",
    b"SQLite format 3\x00": "a SQLite database; export its records as JSON Lines or CSV",
    b"%PDF-": "a PDF; expected text",
}
_BYTE_ORDER_MARKS = {  # UTF-32 first, because its mark begins with that of UTF-16
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_ZEROS = {
    # Positions of zero bytes in a text that begins with two ASCII characters.
    (1, 3, 5, 7): "UTF-16LE",
    (0, 2, 4, 6): "UTF-16BE",
    (1, 2, 3, 5, 6, 7): "UTF-32LE",
    (0, 1, 2, 4, 5, 6): "UTF-32BE",
}


@contextmanager
def open_text(path: InputFile, name: str) -> Iterator[IO[bytes]]:
    """Open a text file for reading, also one compressed by gzip or zstd, whatever its name.

    Raises:
        InputError: the file cannot be read, is not UTF-8 text, or its compression is damaged.
    """
    packing = ""
    try:
        with path.open("rb") as file, ExitStack() as stack:
            # ``peek`` does not consume the bytes, so the stream still starts at the beginning.
            start = file.peek(START_BYTES)
            stream: Any = file
            if path.name.lower().endswith(".gz") or start.startswith(GZIP):
                packing = "gzip"
                stream = stack.enter_context(gzip.open(file, "rb"))
            elif start.startswith(ZSTD):
                packing = "zstd"
                stream = stack.enter_context(_load_zstd_class(name)(file))
            # Checked after decompression, since a packed file may contain a workbook or a PDF.
            if kind := describe_non_text(stream.peek(START_BYTES)):
                raise InputError(f"{name}: {kind}")
            yield stream
    # Damage shows only while the caller reads, so these are caught around the ``yield``.
    # BadGzipFile is an OSError and must come first.
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: is not a complete {packing} file ({error})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    except Exception as error:
        # By name, since the module of the class depends on the version of Python.
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{name}: is not a complete {packing} file ({error})") from error


def _load_zstd_class(name: str) -> Callable[[BufferedReader], AbstractContextManager[Any]]:
    """Return the class that reads zstd: Python's own from 3.14 on, or that of a package."""
    for module in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return cast("Callable[[BufferedReader], Any]", import_module(module).ZstdFile)
    raise InputError(
        f"{name}: is compressed with zstd; install a package for it ({install_command('zstd')}), "
        "or decompress it first (zstd -d)"
    )


def describe_non_text(start: bytes) -> str | None:
    """Return what a file is and what to do about it; ``None`` if it may be text in UTF-8.

    Args:
        start: its first bytes, at least :data:`START_BYTES` unless the file is shorter.
    """
    if kind := next(
        (kind for mark, kind in _OTHER_FORMATS.items() if start.startswith(mark)), None
    ):
        return f"is {kind}"
    marked = (name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark))
    # Without a byte order mark, UTF-16 and UTF-32 show by their zero bytes.
    zeros = [place for place, byte in enumerate(start[:8]) if byte == 0]
    by_zeros = (
        name
        for places, name in _ZEROS.items()
        if zeros and zeros == [place for place in places if place < len(start)]
    )
    encoding = next(chain(marked, by_zeros), None)
    return encoding and (
        f"is {encoding}, expected UTF-8 (convert it with iconv -f {encoding} -t UTF-8, or in Excel "
        "save it as CSV UTF-8)"
    )


# ---- standard input: copied to a file once, which is deleted when the process ends ----


STANDARD_INPUT = "-"
"""The name by which a user asks for standard input."""
STANDARD_INPUT_NAME = "standard input"
_PIECE = 2**20


class StoredInput(NamedTuple):
    """The copy of standard input."""

    path: Path
    """The file."""
    kind: str
    """Its kind, as a suffix."""
    digest: str
    """SHA-256 of its content, in hexadecimal digits."""


def is_standard_input(source: Any) -> bool:
    """Whether an input is named ``-``."""
    return isinstance(source, str | os.PathLike) and os.fspath(source) == STANDARD_INPUT


def store_standard_input() -> StoredInput:
    """Return the copy of standard input; it is read on the first call only.

    Raises:
        InputError: standard input is a terminal, is closed, or cannot be read.
    """
    return _copy_to_file(sys.stdin)


# Cached by the stream: tests, and programs that replace ``sys.stdin``, get a new copy.
@lru_cache(maxsize=1)
def _copy_to_file(stdin: TextIO) -> StoredInput:
    # ``sys.stdin`` is ``None`` in a process without a console.
    closed = stdin is None or stdin.closed
    if closed or stdin.isatty():
        state = "closed" if closed else "a terminal"
        raise InputError(
            f"{STANDARD_INPUT_NAME}: is {state}; expected a file, as in trustassay score - < "
            "log.csv"
        )
    folder = Path(tempfile.mkdtemp(prefix="trustassay-"))
    # Registered before anything is written, so that an error leaves no folder behind.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, digest = folder / "input", hashlib.sha256()
    try:
        with path.open("wb") as file:
            while piece := stdin.buffer.read(_PIECE):
                digest.update(piece)
                file.write(piece)
    except OSError as error:
        raise InputError(
            f"{STANDARD_INPUT_NAME}: cannot be read ({error.strerror or error})"
        ) from error
    return StoredInput(path, _determine_kind(path), digest.hexdigest())


def _determine_kind(path: Path) -> str:
    """Return the suffix for a file with this content: JSON begins with a bracket."""
    with path.open("rb") as file:
        start = file.read(len(PARQUET))
    if start == PARQUET:
        return ".parquet"
    if start == ZIP:
        return ".xlsx"
    with open_text(path, STANDARD_INPUT_NAME) as stream:
        first = next((line for line in stream if not line.isspace()), b"")
    first = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    return ".json" if first.startswith((b"{", b"[")) else ".csv"
