"""Files that are written completely or not at all, and errors that name their file."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from trustassay.errors import UsageError

# No space, quota reached, file larger than the file system or `ulimit -f` allows.
DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MIN_FREE_BYTES = 64 * 1024
"""A disk with less free space than this counts as full."""


class DiskFullError(OSError):
    """A file cannot grow since the disk is full; no more calls should be made."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def __reduce__(self) -> "tuple[type[DiskFullError], tuple[Path]]":
        # OSError pickles its own arguments, which `__init__` does not take; a worker's error has to
        # reach the main process.
        return type(self), (Path(self.filename),)


def is_disk_full(error: OSError) -> bool:
    """Whether a full disk, the quota or the maximum file size is the reason of an error."""
    return error.errno in DISK_FULL_ERRORS


def has_no_room(path: Path) -> bool:
    """Whether the disk of an existing file or folder is full."""
    disk = os.statvfs(path)
    # f_bavail, not f_bfree: the blocks that are reserved for root do not help us.
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


@contextmanager
def name_in_errors(path: Path, part: Path | None = None) -> Iterator[None]:
    """Add the file's name to system errors in the block; errors of writing lack it.

    Args:
        path: the name to report. part: the file's temporary name, which is replaced by ``path``.
    """
    try:
        yield
    except OSError as error:
        # Errors about any other file keep the name that they have.
        if error.errno is not None and error.filename in (None, str(part)):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def open_atomic(path: Path, suffix: str = ".part") -> Iterator[IO[bytes]]:
    """Open a file that becomes ``path`` at the end of the block, or is removed if the block raises.

    Until then it is ``.NAME.part`` in the same folder, or has another suffix. The rest of a killed
    process is overwritten; of two processes one waits for the other.
    """
    # In the same folder, since a rename is atomic only within one file system.
    temporary = path.with_name(f".{path.name}{suffix}")
    with name_in_errors(path, temporary):
        file = open_locked(temporary)
        try:
            with file:
                # Only now: before the lock is held, another process may still be writing.
                file.truncate(0)
                yield file
                file.flush()
                # While the lock is held, so that a waiting process sees that the file was moved.
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; create its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path) as file:
        file.write(content)


def open_locked(part: Path, *, wait: bool = True) -> IO[bytes]:
    """Open a file for appending, and lock it for this process.

    Args:
        part: the file. wait: whether to wait for another process that holds the lock.

    Raises:
        BlockingIOError: another process holds the lock, and ``wait`` is False.
    """
    while True:
        file = part.open("a+b")
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The lock belongs to the open file, not to its name. If the previous owner renamed the file
        # while we waited, we hold the lock of a finished file and have to start again.
        with suppress(FileNotFoundError):
            if os.path.samestat(part.stat(), os.fstat(file.fileno())):
                return file
        file.close()


def lock_beside(path: Path) -> IO[bytes]:
    """Lock a file that is replaced as a whole, by a hidden file beside it.

    Raises:
        UsageError: another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return open_locked(path.with_name(f".{path.name}.lock"), wait=False)
    except BlockingIOError:
        raise UsageError(f"{path}: another process is using it; try again when it ends") from None


class Appender:
    """Appends lines to a file; a line is on disk in full when :meth:`append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered in append mode: one write call a line, which the system appends in one piece.
        self._file = path.open("ab", buffering=0)

    def append(self, line: bytes) -> None:
        """Write one line with one system call: a kill can cut it short, but never mix it with
        another.

        Raises:
            DiskFullError: the line could not be written; no part of it is left.
        """
        with name_in_errors(self._path):
            try:
                written_bytes = self._file.write(line)
            except OSError as error:
                # A disk that was full before this line raises in place of writing a part of it.
                if is_disk_full(error):
                    raise DiskFullError(self._path) from None
                raise
            # A short write without an error is how a disk reports that it has just become full.
            if written_bytes != len(line):
                size = os.fstat(self._file.fileno()).st_size
                os.ftruncate(self._file.fileno(), size - written_bytes)
                raise DiskFullError(self._path)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def cut_unfinished(path: Path) -> None:
    """Remove a last line that a killed process left without its end."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        complete_bytes = 0
        for line in file:
            # Only the last line can lack its end; what it was about is scored again.
            if not line.endswith(b"\n"):
                file.truncate(complete_bytes)
                return
            complete_bytes += len(line)
