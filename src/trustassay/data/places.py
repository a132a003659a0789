"""Inputs that are no path of this machine: URLs, queries, tables, and patterns of paths.

An entry point of the group ``trustassay.inputs`` is a function that gets the source as the user
wrote it and returns a :class:`Place`. Its name is the scheme (``duckdb`` of ``duckdb:SELECT ...``);
the one named ``url`` is for each ``SCHEME://`` that has none of its own.
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

ENTRY_POINT_GROUP = "trustassay.inputs"
URL = "url"
NEEDED = {"delta": "deltalake", "duckdb": "duckdb pyarrow", "iceberg": "'pyiceberg[pyarrow]'"}
"""Schemes of trustassay-cluster without slashes, and the packages that they need."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_SECRET = re.compile(
    r"://[^/\s]*:[^/\s]*@|[?&][\w-]*(sig|signature|token|key|secret|password|credential)=",
    re.IGNORECASE,
)
_PATTERN = re.compile(r"[*?\[]")
KNOWN_KINDS = (
    ".jsonl, .ndjson, .json, .csv, .tsv (each also with .gz or .zst), .xlsx, .parquet, "
    "a folder of such files or of Hugging Face datasets, a pattern, a URL, or - for standard input"
)
TEXTS = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv"})
"""Kinds of text, which may be compressed."""
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
    """What a source names: files, or a table.

    state: returns what changes with its content, for the default folder of a run.
    files: by the path below the source; that of a source that is one file is empty.
    table: opens it as an Arrow stream; ``None`` where there are files.
    """

    state: Callable[[], Sequence[str]]
    files: Mapping[str, File]
    table: Callable[[], Any] | None = None


def place_of(source: str) -> Place | None:
    """Return the place that a source names, ``None`` where it is a path of this machine.

    Raises:
        InputError: there is none, what reads it is not installed, or a secret is in it.
    """
    scheme, is_url = scheme_of(source)
    if not scheme:
        return _by_pattern(source) if _PATTERN.search(source) else None
    refuse_secret(source)
    entries = {one.name: one for one in entry_points(group=ENTRY_POINT_GROUP)}
    entry = entries.get(scheme) or (entries.get(URL) if is_url else None)
    if entry is None:
        packages = NEEDED.get(scheme, "fsspec")
        install = f"pip install --no-deps ./cluster, and pip install {packages}"
        what = f"{scheme}: is read by the package trustassay-cluster, which is not installed"
        raise InputError(f"{what}; in a clone of trustassay: {install}")
    try:
        opened = entry.load()
    except ImportError as error:
        raise InputError(f"{scheme}: cannot be read ({error}); pip install {error.name}") from error
    place: Place = opened(source)
    return place


def refuse_secret(source: str) -> None:
    """Raise :class:`InputError` where a key or a password is in a source, which runs store."""
    if _SECRET.search(source):
        message = "holds a key or password, which would be stored; give it by the environment"
        raise InputError(f"{source.partition(':')[0]}: {message}")


def scheme_of(source: str) -> tuple[str, bool]:
    """Return the scheme of a source, empty for a path, and whether slashes follow it."""
    match = _SCHEME.match(source)
    if match and (match[2] or match[1].lower() in NEEDED or _is_added(match[1].lower())):
        return match[1].lower(), bool(match[2])
    return "", False


def _is_added(scheme: str) -> bool:
    return scheme != URL and bool(entry_points(group=ENTRY_POINT_GROUP, name=scheme))


def name_of(source: str) -> str:
    """Return a short name of a source, for titles and folders: of what is no path, its scheme."""
    scheme, is_url = scheme_of(source)
    return scheme if scheme and not is_url else PurePath(source).name


def _by_pattern(pattern: str) -> Place | None:
    """Return the files whose paths match, and those in folders that do; ``None`` for the path of a
    file whose own name has such characters."""
    with suppress(OSError, ValueError):
        if Path(pattern).exists():
            return None
    parts = PurePath(pattern).parts
    fixed = next(place for place, part in enumerate(parts) if _PATTERN.search(part))
    root = Path(*parts[:fixed])
    matches = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 - of any root
    files = {name: one for path in matches for name, one in files_below(path, root).items()}

    def state() -> list[str]:
        stats = ((str(one.resolve()), one.stat()) for _, one in sorted(files.items()))
        return [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]

    return Place(state, files)


def files_below(path: Path, root: Path | None = None) -> dict[str, Path]:
    """Return the files below a folder by their paths below ``root``, default the folder itself; of
    a file itself.
    """
    paths = path.rglob("*") if path.is_dir() else [path]
    return {str(one.relative_to(root or path)): one for one in paths if one.is_file()}


def checked_kind(file: File, name: str) -> str:
    """Return the suffix that tells how a file is read, without that of its compression.

    Raises:
        InputError: it is of no known kind.
    """
    if not (kind := _kind_of(path := PurePath(file.name))):
        suffixes = path.suffixes[-2:] if path.suffix.lower() in PACKED else path.suffixes[-1:]
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
