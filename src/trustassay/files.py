"""Files that are written in full or not at all, and errors that name the file."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MIN_FREE_BYTES = 64 * 1024
"""A disk with less free space than this counts as full."""


class DiskFullError(OSError):
    """A file cannot grow since the disk is full; no more calls should be made."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def __reduce__(self) -> "tuple[type[DiskFullError], tuple[Path]]":
        return type(self), (Path(self.filename),)  # another process may raise it again


def is_full(error: OSError) -> bool:
    """Return whether the disk, the quota or the maximum file size is the reason."""
    return error.errno in DISK_FULL_ERRORS


def has_no_room(path: Path) -> bool:
    """Whether the disk of an existing file or folder is full."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


@contextmanager
def named(path: Path, part: Path | None = None) -> Iterator[None]:
    """Add the name of the file to system errors; those of writing lack it.

    ``part`` is the file's name until it is finished.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(part)):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def whole(path: Path, suffix: str = ".part") -> Iterator[IO[bytes]]:
    """Open a file that becomes ``path`` at the end of the block, or is removed if that raises.

    Until then it is ``.NAME.part`` next to it, or has another suffix. What a killed process left
    there is overwritten; of two processes one waits for the other.
    """
    part = path.with_name(f".{path.name}{suffix}")
    with named(path, part):
        file = alone(part)
        try:
            with file:
                file.truncate(0)
                yield file
                file.flush()
                part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; its folder is made if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(content)


def alone(part: Path, *, wait: bool = True) -> IO[bytes]:
    """Open a file for this process alone; one that is moved meanwhile is created again.

    Raises:
        BlockingIOError: another process has it, and this one is not to ``wait``.
    """
    while True:
        file = part.open("a+b")
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):  # moved while this one waited
            if os.path.samestat(part.stat(), os.fstat(file.fileno())):
                return file
        file.close()


class Appender:
    """Appends lines to a file; each is on disk, whole, when :meth:`append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    def append(self, line: bytes) -> None:
        """Write one line at once: a kill can cut it short, but never mix it with another.

        Raises:
            DiskFullError: the line could not be written; no part of it is left.
        """
        with named(self._path):
            written = self._file.write(line)
            if written != len(line):
                size = os.fstat(self._file.fileno()).st_size
                os.ftruncate(self._file.fileno(), size - written)
                raise DiskFullError(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def cut_unfinished(path: Path) -> None:
    """Cut off a last line that a killed process left without an end."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        complete_bytes = 0
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(complete_bytes)
                return
            complete_bytes += len(line)
