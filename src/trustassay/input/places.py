"""Inputs that are not a local path (URLs, queries, tables), patterns of paths, and kinds of files.

An entry point of the group ``trustassay.inputs`` gets the source as the user wrote it and returns
an :class:`InputPlace`. Its name is a scheme; ``url`` serves each ``SCHEME://`` without its own one.
"""

import glob
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol
from urllib.parse import unquote

from trustassay.core.progress import tell
from trustassay.core.sample import clean
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
OTLP_SUFFIXES = (".binpb", ".pb", ".otlp")
"""Suffixes of OTLP in protobuf."""
TEXT_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", *OTLP_SUFFIXES})
"""Suffixes of files that may also be compressed."""
COMPRESSION_SUFFIXES = frozenset({".gz", ".zst"})
_announced: set[str] = set()
"""Folders for which the message about ignored files was printed. An input is read more than once,
and the message should appear once."""


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
        raise InputError(f"{scheme}: no installed package reads it; trustassay has to be installed")
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
    for match in glob.glob(pattern, recursive=True):
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
            f"{name}: is a folder without files of records (one of Hugging Face datasets has a "
            f"state.json); expected {KNOWN_KINDS}"
        )
    other_files = [path for path in visible if not _find_kind(path)]
    # Files of other kinds are reported once; the user may not expect that they are ignored.
    if other_files and name not in _announced:
        _announced.add(name)
        more = f" and {len(other_files) - 1:,} more" if len(other_files) > 1 else ""
        tell(f"{name}: left out, files of other kinds: {clean(str(other_files[0]))}{more}")
    return files


def read_folder_keys(path: str) -> dict[str, str]:
    """Return the fields in the folders ``KEY=VALUE`` of a file's path below its source."""
    pairs = (part.partition("=") for part in PurePath(path).parts[:-1])
    return {key: unquote(value) for key, equals, value in pairs if equals and value}
