"""Inputs that are no path of this machine: URLs, queries, tables, and patterns of paths.

An entry point of the group ``trustassay.inputs`` gets the source as the user wrote it and returns a
:class:`Place`. Its name is a scheme; ``url`` is for each ``SCHEME://`` that has none of its own.
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

from trustassay.data.records import InputError
from trustassay.progress import tell
from trustassay.sample import clean

ENTRY_POINT_GROUP, URL = "trustassay.inputs", "url"
NEEDED = {"delta": "deltalake", "duckdb": "duckdb pyarrow", "iceberg": "'pyiceberg[pyarrow]'"}
"""Schemes that no slashes follow, and the packages that they need."""
_SCHEME = re.compile(rf"({'|'.join(NEEDED)})(?=:)|[a-z][a-z0-9+.-]*(?=://)", re.IGNORECASE)
_PATTERN = re.compile(r"[*?\[]")
KNOWN_KINDS = (
    ".jsonl, .ndjson, .json, .csv, .tsv, .pb (each also with .gz or .zst), .xlsx, .parquet, "
    "a folder of such files or of Hugging Face datasets, a pattern, a URL, or - for standard input"
)
OTLP = (".binpb", ".pb", ".otlp")
"""Kinds of protobuf."""
TEXTS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", *OTLP})
"""Kinds that may be compressed."""
PACKED = frozenset({".gz", ".zst"})
_announced: set[str] = set()
"""Folders of which it was told what is left out; an input is read more than once."""


class File(Protocol):
    """A file that can be read, here or elsewhere: what readers use of a path."""

    @property
    def name(self) -> str:
        """Its name, without folders; the suffix says what it is."""

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open it at its beginning; raises :class:`OSError`."""


@dataclass(frozen=True)
class Place:
    """What a source names: ``files`` by their paths below it, empty of one that is the source
    itself; or a ``table``, which is opened as batches of Arrow. ``state`` returns what changes with
    the content.
    """

    state: Callable[[], Sequence[str]]
    files: Mapping[str, File]
    table: Callable[[], Any] | None = None


def place_of(source: str) -> Place | None:
    """Return the place that a source names, ``None`` where it is a path of this machine.

    Raises:
        InputError: what reads it is not installed, or as that says.
    """
    if not (scheme := scheme_of(source)):
        return _by_pattern(source) if _PATTERN.search(source) else None
    entries = {one.name: one for one in entry_points(group=ENTRY_POINT_GROUP)}
    if (entry := entries.get(scheme) or entries.get(URL)) is None:
        install = f"./cluster, and pip install {NEEDED.get(scheme, 'fsspec')}"
        message = "needs trustassay-cluster; in a clone of trustassay: pip install --no-deps"
        raise InputError(f"{scheme}: {message} {install}")
    place: Place = entry.load()(source)
    return place


def scheme_of(source: str) -> str:
    """Return the scheme of a source in small letters, empty for a path."""
    match = _SCHEME.match(source)
    return match[0].lower() if match else ""


def name_of(source: str) -> str:
    """Return a short name of a source, for titles and folders: of a query its scheme."""
    scheme = scheme_of(source)
    return scheme if scheme in NEEDED else PurePath(source).name


def _by_pattern(pattern: str) -> Place | None:
    """Return the files whose paths match, and those in folders that do; ``None`` if the characters
    are those of a file's own name."""
    with suppress(OSError, ValueError):
        if Path(pattern).exists():
            return None
    root, found = Path(re.split(_PATTERN, pattern)[0] + "*").parent, dict[str, Path]()
    for match in glob.glob(pattern, recursive=True):  # noqa: PTH207 - of any root
        found |= files_below(Path(match), root)
    stats = ((path, one.stat()) for path, one in sorted(found.items()))
    return Place(lambda: [f"{path} {one.st_size} {one.st_mtime_ns}" for path, one in stats], found)


def files_below(path: Path, root: Path | None = None) -> dict[str, Path]:
    """Return the files below a folder, or a file, by their paths below ``root`` or the folder."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return {str(one.relative_to(root or path)): one for one in paths if one.is_file()}


def checked_kind(file: File, name: str) -> str:
    """Return the suffix that tells how a file is read, without that of its compression.

    Raises:
        InputError: it is of no known kind.
    """
    if not (kind := _kind_of(path := PurePath(file.name))):
        suffixes = path.suffixes[-2 if path.suffix.lower() in PACKED else -1 :]
        shown = "".join(suffixes).lower() or "(none)"
        raise InputError(f"{name}: unknown kind of file, suffix {shown}; expected {KNOWN_KINDS}")
    return kind


def _kind_of(path: PurePath) -> str:
    """Return the suffix of a known kind; empty for another one."""
    packed = path.suffix.lower() in PACKED
    kind = (path.with_suffix("") if packed else path).suffix.lower()
    return kind if kind in TEXTS or (kind in {".parquet", ".xlsx"} and not packed) else ""


def record_files(found: Collection[str], name: str) -> list[str]:
    """Return the files below a folder that hold records, in order; tell of others.

    What is hidden, or begins with an underscore, is no file of records.

    Raises:
        InputError: there is none.
    """
    parts = sorted(map(PurePath, found))
    shown = [one for one in parts if not any(part.startswith((".", "_")) for part in one.parts)]
    files = [str(one) for one in shown if _kind_of(one)]
    if not files:
        raise InputError(
            f"{name}: is a folder without files of records (one of Hugging Face datasets has a "
            f"state.json); expected {KNOWN_KINDS}"
        )
    others = [one for one in shown if not _kind_of(one)]
    if others and name not in _announced:
        _announced.add(name)
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        tell(f"{name}: left out, files of other kinds: {clean(str(others[0]))}{more}")
    return files


def keys_of(path: str) -> dict[str, str]:
    """Return the fields that folders ``KEY=VALUE`` of a file's path below its source tell."""
    pairs = (part.partition("=") for part in PurePath(path).parts[:-1])
    return {key: unquote(value) for key, equals, value in pairs if equals and value}
