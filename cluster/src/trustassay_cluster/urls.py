"""Inputs at URLs: every file system that fsspec knows, as ``s3://``, ``gs://``, ``az://``, ``hf://``.

``url`` is found by an entry point of trustassay. Files are read in blocks, never as a whole.
"""

import io
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

import fsspec

from trustassay.data.places import Place
from trustassay.data.records import InputError
from trustassay.errors import UsageError
from trustassay.sample import clean

T = TypeVar("T")
BLOCK = 2**21
"""Bytes of a request."""
BLOCKS = 32
"""Blocks of a file that are kept, since columns of a Parquet file are read in turns."""
BUFFER = 2**16
_CHANGES = (
    *("ETag", "etag", "md5Hash", "content_md5", "blob_id", "mtime", "LastModified"),
    *("last_modified", "created"),
)
"""What file systems say of a file that changes with its content; the first one counts."""
_PATTERN = re.compile(r"[*?\[]")
_SECRET = re.compile(
    r"://[^/\s]*:[^/\s]*@|[?&][\w-]*(sig|signature|token|key|secret|password|credential)=",
    re.IGNORECASE,
)


def refuse_secret(source: str) -> None:
    """Raise :class:`InputError` where a key or a password is in a source, which runs store."""
    if _SECRET.search(source):
        message = "holds a key or password, which would be stored; give it by the environment"
        raise InputError(f"{source.partition(':')[0]}: {message}")


def file_system(url: str, error: type[UsageError] = InputError) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UsageError: of the class ``error``: it is unknown, or needs a package.
    """
    try:
        files, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as why:
        raise error(f"{url}: cannot be opened: {why}") from None
    except Exception as why:  # each file system has errors of its own, as of lacking credentials
        raise error(f"{url}: cannot be opened: {reason(why)}") from why
    return files, path.rstrip("/")


def reason(error: BaseException) -> str:
    """Return an error in a line, with its class where it says nothing else."""
    text = clean(" ".join(str(error).split())[:300])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def url(source: str) -> Place:
    """Return the files of a URL: of one file, of all below a folder, or of those that match.

    Raises:
        InputError: the file system cannot be used, or what it says when it is listed.
    """
    refuse_secret(source)
    files, path = file_system(source)
    files.invalidate_cache()
    try:
        found = _found(files, path)
    except Exception as error:
        raise InputError(f"{source}: cannot be listed: {reason(error)}") from error
    places = {
        name: RemoteFile(files, one["name"], files.unstrip_protocol(one["name"]), one)
        for name, one in found.items()
    }
    return Place(lambda: [one.state for _, one in sorted(places.items())], places)


def _found(files: Any, path: str) -> dict[str, Mapping[str, Any]]:
    """Return what a file system says of files, by their paths below the fixed part of ``path``."""
    if not _PATTERN.search(path) or path.startswith("http"):  # where a query follows its "?"
        with suppress(FileNotFoundError):
            if (info := files.info(path))["type"] != "directory":
                return {"": info}
            return _below(files, path, path)
        return {}
    parts = path.split("/")
    fixed = next(place for place, part in enumerate(parts) if _PATTERN.search(part))
    root = "/".join(parts[:fixed])
    result: dict[str, Mapping[str, Any]] = {}
    for match, info in files.glob(path, detail=True).items():
        folder = info["type"] == "directory"
        result |= _below(files, match, root) if folder else {_relative(match, root): info}
    return result


def _below(files: Any, folder: str, root: str) -> dict[str, Mapping[str, Any]]:
    found = files.find(folder, detail=True)
    return {_relative(path, root): info for path, info in found.items()}


def _relative(path: str, root: str) -> str:
    return path.lstrip("/").removeprefix(root.lstrip("/")).lstrip("/")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a file system. info: what that says of it."""

    files: Any
    path: str
    url: str
    info: Mapping[str, Any]

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Its name, without folders."""
        path = self.path.partition("?")[0] if self.path.startswith("http") else self.path
        return PurePosixPath(path).name

    @property
    def state(self) -> str:
        """Its URL, its size, and what changes with its content."""
        change = next((self.info[one] for one in _CHANGES if self.info.get(one)), "")
        return f"{self.url} {self.info.get('size')} {change}"

    def open(self, mode: Literal["rb"]) -> io.BufferedReader:
        """Open it; raises :class:`OSError` for whatever the file system reports."""
        options: dict[str, Any] = {"block_size": BLOCK, "cache_type": "readahead"}
        if self.name.endswith(".parquet"):
            options |= {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS}}
        stream = _Stream(_told(lambda: self.files.open(self.path, mode, **options)))
        return io.BufferedReader(stream, BUFFER)


def _told(work: Callable[[], T]) -> T:
    """Turn every error of a file system into one of the system, which readers tell with a path."""
    try:
        return work()
    except OSError:
        raise
    except Exception as error:
        raise OSError(reason(error)) from error


class _Stream(io.RawIOBase):
    """Reads a file of fsspec."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether the file can be read from any place."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return int(_told(lambda: self._file.seek(offset, whence)))

    def tell(self) -> int:
        """Return the place."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        content = _told(lambda: self._file.read(len(buffer)))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()
