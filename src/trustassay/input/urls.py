"""Inputs at URLs of any file system that fsspec knows: ``s3://``, ``gs://``, ``az://``, ``hf://``.

trustassay finds ``url`` by an entry point. Files are read in blocks.
"""

import io
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

import fsspec

from trustassay.core.sample import clean
from trustassay.errors import UsageError, install_command
from trustassay.input.places import InputPlace
from trustassay.input.records import InputError

T = TypeVar("T")
BLOCK_BYTES = 2**21
"""Bytes that one request reads."""
MAX_CACHED_BLOCKS = 32
"""Blocks of a Parquet file kept in memory, since its columns are read in turns."""
BUFFER_BYTES = 2**16
"""Bytes of the buffer for reading lines."""
_CHANGE_FIELDS = (
    *("ETag", "etag", "md5Hash", "content_md5", "blob_id", "mtime", "LastModified"),
    *("last_modified", "created"),
)
"""Fields of a file's information that change with its content; the first one present counts."""
_PATTERN = re.compile(r"[*?\[]")
_EXTRAS = {"s3": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure"}
"""The extras of trustassay whose packages fsspec needs, by scheme."""
# `s3://KEY:SECRET@bucket` and `?X-Amz-Signature=...`.
_SECRET = re.compile(
    r"://[^/\s]*:[^/\s]*@|[?&][\w-]*(sig|signature|token|key|secret|password|credential)=",
    re.IGNORECASE,
)


def refuse_secret(source: str) -> None:
    """Raise :class:`InputError` if a source holds a key or a password, since runs store it."""
    if _SECRET.search(source):
        message = "contains a key or password, which the run would store; use the environment"
        raise InputError(f"{source.partition(':')[0]}: {message}")


def file_system(url: str, error: type[UsageError] = InputError) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UsageError: as the class ``error``: the scheme is unknown, or needs a package.
    """
    try:
        files, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as cause:
        scheme = url.partition(":")[0].lower()
        is_extra = isinstance(cause, ImportError) and scheme in _EXTRAS
        advice = f"; {install_command(_EXTRAS[scheme])}" if is_extra else ""
        raise error(f"{url}: cannot be opened: {cause}{advice}") from None
    except Exception as cause:  # each file system has its own errors, as for lacking credentials
        raise error(f"{url}: cannot be opened: {describe_error(cause)}") from cause
    return files, path.rstrip("/")


def describe_error(error: BaseException) -> str:
    """Return an error in one line: its class, and its text if it has one."""
    text = clean(" ".join(str(error).split())[:300])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def url(source: str) -> InputPlace:
    """Return the files of a URL: a single file, all below a folder, or all that match a pattern.

    Raises:
        InputError: the file system cannot be used, or the files cannot be listed.
    """
    refuse_secret(source)
    files, path = file_system(source)
    # fsspec remembers listings; a second run must see new files.
    files.invalidate_cache()
    try:
        infos = _list_files(files, path)
    except Exception as error:
        raise InputError(f"{source}: cannot be listed: {describe_error(error)}") from error
    remote_files = {
        name: RemoteFile(files, info["name"], files.unstrip_protocol(info["name"]), info)
        for name, info in infos.items()
    }
    return InputPlace(
        lambda: [file.state for _, file in sorted(remote_files.items())], remote_files
    )


def _list_files(files: Any, path: str) -> dict[str, Mapping[str, Any]]:
    """Return information on files, by their paths below the part of ``path`` without patterns."""
    if not _PATTERN.search(path) or path.startswith("http"):  # where a query follows its "?"
        with suppress(FileNotFoundError):
            # A single file has the empty path: it has no folders below the URL.
            if (info := files.info(path))["type"] != "directory":
                return {"": info}
            return _list_below(files, path, path)
        return {}
    parts = path.split("/")
    # For `logs/day=*/part.json` the paths start behind `logs`, so `day=...` stays in them.
    fixed = next(index for index, part in enumerate(parts) if _PATTERN.search(part))
    root = "/".join(parts[:fixed])
    result: dict[str, Mapping[str, Any]] = {}
    # A pattern may match folders as well as files.
    for match, info in files.glob(path, detail=True).items():
        folder = info["type"] == "directory"
        result |= _list_below(files, match, root) if folder else {_relative_path(match, root): info}
    return result


def _list_below(files: Any, folder: str, root: str) -> dict[str, Mapping[str, Any]]:
    infos = files.find(folder, detail=True)
    return {_relative_path(path, root): info for path, info in infos.items()}


def _relative_path(path: str, root: str) -> str:
    return path.lstrip("/").removeprefix(root.lstrip("/")).lstrip("/")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote file system."""

    files: Any
    path: str
    url: str
    info: Mapping[str, Any]
    """The information of the file system: size, ETag and others."""

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """Its name, without folders."""
        path = self.path.partition("?")[0] if self.path.startswith("http") else self.path
        return PurePosixPath(path).name

    @property
    def state(self) -> str:
        """URL, size, and the field that changes with the content."""
        # Without any of these fields only the size tells.
        change = next((self.info[name] for name in _CHANGE_FIELDS if self.info.get(name)), "")
        return f"{self.url} {self.info.get('size')} {change}"

    def open(self, mode: Literal["rb"]) -> io.BufferedReader:
        """Open the file; raises :class:`OSError` for every error of the file system."""
        options: dict[str, Any] = {"block_size": BLOCK_BYTES, "cache_type": "readahead"}
        if self.name.endswith(".parquet"):
            # Parquet is read from the end and by columns; lines are read ahead.
            options |= {
                "cache_type": "blockcache",
                "cache_options": {"maxblocks": MAX_CACHED_BLOCKS},
            }
        stream = _RemoteStream(_convert_errors(lambda: self.files.open(self.path, mode, **options)))
        return io.BufferedReader(stream, BUFFER_BYTES)


def _convert_errors(work: Callable[[], T]) -> T:
    """Call ``work`` and turn its errors into :class:`OSError`, which readers report with a path."""
    try:
        return work()
    except OSError:
        raise
    except Exception as error:
        raise OSError(describe_error(error)) from error


class _RemoteStream(io.RawIOBase):
    """Reads a file of fsspec."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether the file can be read from any position."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        return int(_convert_errors(lambda: self._file.seek(offset, whence)))

    def tell(self) -> int:
        """Return the position."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        content = _convert_errors(lambda: self._file.read(len(buffer)))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()
