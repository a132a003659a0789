"""Where an input is, and how its files are opened: paths, patterns, URLs, queries, standard input.

An entry point of the group ``trustassay.inputs`` gets a source that is not a local path as the user
wrote it and returns an :class:`InputPlace`. Its name is a scheme; ``url`` serves each ``SCHEME://``
without its own one.

Text files may be compressed, and a file that is not text is recognised by its first bytes. An input
is read more than once (to choose a metric, to check it, to score it), so standard input is copied
to a temporary file.
"""

import atexit
import glob
import gzip
import hashlib
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from io import BufferedReader
from itertools import chain
from pathlib import Path, PurePath
from typing import IO, Any, Literal, NamedTuple, Protocol, TextIO, cast
from urllib.parse import unquote

from trustassay.core.progress import tell_once
from trustassay.core.sample import clean
from trustassay.errors import install_command
from trustassay.input.records import InputError

ENTRY_POINT_GROUP, URL = "trustassay.inputs", "url"
PACKAGES_OF_SCHEMES = {
    "delta": "deltalake",
    "duckdb": "duckdb pyarrow",
    "iceberg": "'pyiceberg[pyarrow]'",
}
"""Schemes without slashes ("delta:..."), and the packages that each of them needs."""
_SCHEME = re.compile(
    rf"({'|'.join(PACKAGES_OF_SCHEMES)})(?=:)|[a-z][a-z0-9+.-]*(?=://)", re.IGNORECASE
)
_PATTERN = re.compile(r"[*?\[]")
KNOWN_KINDS = (
    ".jsonl, .ndjson, .json, .csv, .tsv, .pb (each also with .gz or .zst), .xlsx, .parquet, "
    "a folder of such files or of Hugging Face datasets, a pattern, a URL, or - for standard input"
)
CONVERSIONS = {
    ".eval": "is a binary log of inspect_ai; convert it to JSON: inspect log dump {name} > "
    "log.json",
    ".xls": "is an old Excel workbook; save it as .xlsx or CSV UTF-8",
    ".ods": "is a LibreOffice workbook; save it as .xlsx or CSV UTF-8",
    ".yaml": "is YAML; write promptfoo results as JSON: promptfoo eval --output results.json",
    ".html": "is a web page; write promptfoo results as JSON: promptfoo eval --output results.json",
}
"""By suffix, what to do with a file that is not read."""
OTLP_SUFFIXES = (".binpb", ".pb", ".otlp")
"""Suffixes of OTLP in protobuf."""
TEXT_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", *OTLP_SUFFIXES})
"""Suffixes of files that may also be compressed."""
COMPRESSION_SUFFIXES = frozenset({".gz", ".zst"})


class InputFile(Protocol):
    """A local or remote file: the part of :class:`~pathlib.Path` that readers use."""

    @property
    def name(self) -> str:
        """Its name without folders; the suffix determines how it is read."""

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open it at its beginning; raises :class:`OSError`."""


@dataclass(frozen=True)
class InputPlace:
    """The files or the table that a source names."""

    state: Callable[[], Sequence[str]]
    """Returns texts that change with the content, such as sizes and times."""
    files: Mapping[str, InputFile]
    """Files by their paths below the source; the path is empty for a source that is a file."""
    table: Callable[[], Any] | None = None
    """Opens the table as batches of Arrow; ``None`` for files."""


def find_place(source: str) -> InputPlace | None:
    """Return the place that a source names; ``None`` for a local path.

    Raises:
        InputError: the package that reads it is not installed, or reports an error.
    """
    if not (scheme := scheme_of(source)):
        return _match_pattern(source) if _PATTERN.search(source) else None
    entries = {
        entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINT_GROUP)
    }
    # A scheme of its own wins over the general one for URLs.
    if (entry := entries.get(scheme) or entries.get(URL)) is None:
        raise InputError(f"{scheme}: no installed package reads this scheme")
    place: InputPlace = entry.load()(source)
    return place


def scheme_of(source: str) -> str:
    """Return the scheme of a source in small letters, empty for a path."""
    match = _SCHEME.match(source)
    return match[0].lower() if match else ""


def name_of(source: str) -> str:
    """Return a short name of a source, for titles and folders; for a query it is the scheme."""
    scheme = scheme_of(source)
    return scheme if scheme in PACKAGES_OF_SCHEMES else PurePath(source).name


def _match_pattern(pattern: str) -> InputPlace | None:
    """Return the files that match a pattern, and those in folders that match.

    ``None`` if a file has exactly this name, with the characters of a pattern in it.
    """
    # A name that is too long, or has a zero byte, raises an error here and is no file.
    with suppress(OSError, ValueError):
        if Path(pattern).exists():
            return None
    # The folder before the first special character; the added star is cut off by ``parent``.
    root, files = Path(re.split(_PATTERN, pattern)[0] + "*").parent, dict[str, Path]()
    for match in glob.glob(pattern, recursive=True):  # noqa: PTH207 - of any root
        files |= list_files(Path(match), root)
    stats = ((path, stat.stat()) for path, stat in sorted(files.items()))
    return InputPlace(
        lambda: [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats], files
    )


def list_files(path: Path, root: Path | None = None) -> dict[str, Path]:
    """Return the files below a folder, or a single file, by their paths relative to ``root``.

    Without ``root`` the paths are relative to the folder.
    """
    paths = path.rglob("*") if path.is_dir() else [path]
    return {str(file.relative_to(root or path)): file for file in paths if file.is_file()}


def determine_kind(file: InputFile, name: str) -> str:
    """Return the suffix that determines how a file is read, without that of its compression.

    Raises:
        InputError: the suffix is not known.
    """
    if not (kind := _find_kind(path := PurePath(file.name))):
        suffixes = path.suffixes[-2 if path.suffix.lower() in COMPRESSION_SUFFIXES else -1 :]
        suffix_text = "".join(suffixes).lower() or "(none)"
        if suffix_text in CONVERSIONS:
            raise InputError(f"{name}: {CONVERSIONS[suffix_text].format(name=name)}")
        raise InputError(
            f"{name}: unknown kind of file, suffix {suffix_text}; expected {KNOWN_KINDS}"
        )
    return kind


def _find_kind(path: PurePath) -> str:
    """Return the suffix if it is known, without that of a compression; else an empty text."""
    packed = path.suffix.lower() in COMPRESSION_SUFFIXES
    kind = (path.with_suffix("") if packed else path).suffix.lower()
    # Parquet and workbooks have their own compression; packed again they are not read.
    return kind if kind in TEXT_SUFFIXES or (kind in {".parquet", ".xlsx"} and not packed) else ""


def list_record_files(file_paths: Collection[str], name: str) -> list[str]:
    """Return the files below a folder that contain records, in order, and report other files once.

    Hidden files and folders, and those that begin with an underscore, are ignored silently.

    Raises:
        InputError: there is no file with records.
    """
    parts = sorted(map(PurePath, file_paths))
    visible = [
        path for path in parts if not any(part.startswith((".", "_")) for part in path.parts)
    ]
    files = [str(path) for path in visible if _find_kind(path)]
    if not files:
        raise InputError(
            f"{name}: has no file that can be read (a folder of Hugging Face datasets has a "
            f"state.json); expected {KNOWN_KINDS}"
        )
    other_files = [path for path in visible if not _find_kind(path)]
    # The user may not expect that files of other kinds are ignored.
    if other_files:
        more = f" and {len(other_files) - 1:,} more" if len(other_files) > 1 else ""
        tell_once(
            f"{name}: kinds",
            f"{name}: left out files of other kinds: {clean(str(other_files[0]))}{more}",
        )
    return files


def read_folder_keys(path: str) -> dict[str, str]:
    """Return the fields in the folders ``KEY=VALUE`` of a file's path below its source."""
    pairs = (part.partition("=") for part in PurePath(path).parts[:-1])
    return {key: unquote(value) for key, equals, value in pairs if equals and value}


# ---- text files ----

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
    ZIP: "a zip archive or a workbook; rename a workbook to .xlsx, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an old or encrypted Excel workbook; save it as .xlsx or CSV",
    b"PAR1\x15": "a Parquet file; rename it to .parquet",
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
PIECE_BYTES = 2**20
"""Bytes of a file that are read at a time where it has no lines."""


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
            f"{STANDARD_INPUT_NAME}: is {state}; expected a file, for example trustassay score - < "
            "log.csv"
        )
    folder = Path(tempfile.mkdtemp(prefix="trustassay-"))
    # Registered before anything is written, so that an error leaves no folder behind.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, digest = folder / "input", hashlib.sha256()
    try:
        with path.open("wb") as file:
            while piece := stdin.buffer.read(PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
    except OSError as error:
        raise InputError(
            f"{STANDARD_INPUT_NAME}: cannot be read ({error.strerror or error})"
        ) from error
    return StoredInput(path, _determine_kind_by_content(path), digest.hexdigest())


def _determine_kind_by_content(path: Path) -> str:
    """Return the suffix for a file with this content: JSON begins with a bracket."""
    with path.open("rb") as file:
        start = file.read(len(PARQUET))
    if start == PARQUET:
        return ".parquet"
    if start == ZIP:
        return ".xlsx"
    with open_text(path, STANDARD_INPUT_NAME) as stream:
        # In pieces, as a line may have any length.
        first = stream.read(PIECE_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
        while not first and (piece := stream.read(PIECE_BYTES)):
            first = piece.lstrip()
    return ".json" if first.startswith((b"{", b"[")) else ".csv"
