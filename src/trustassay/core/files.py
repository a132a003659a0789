"""Files that are written completely or not at all, and errors that name their file.

Files hold what people asked and what models answered, so only their owner can read them, whatever
the umask is. Outputs that a user names are the exception: they may be meant for other programs.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from trustassay.errors import UsageError

# No space, quota reached, file larger than the file system or `ulimit -f` allows.
DISK_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MIN_FREE_BYTES = 64 * 1024
"""A disk with less free space than this counts as full."""
OWNER_ONLY_MODE = 0o600
OWNER_ONLY_FOLDER_MODE = 0o700
OTHERS_BITS = 0o077
"""The permissions of everybody but the owner."""
RUN_FILE = "run.json"
"""The file by which the folder of a run is recognised."""


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


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents, for their owner only.

    A folder that exists keeps its permissions: its owner may share it on purpose.
    """
    # Path.mkdir(parents=True) would give its mode to the last folder alone.
    if not path.parent.exists():
        make_private_folder(path.parent)
    path.mkdir(OWNER_ONLY_FOLDER_MODE, exist_ok=True)


def open_unlinked(path: Path, flags: int, *, private: bool = True) -> int:
    """Open a file for writing, and return its descriptor; no symbolic link is followed.

    Args:
        path: the file. flags: as of :func:`os.open`.
        private: whether only the owner can read it, also if it exists and others could so far.

    Raises:
        OSError: it is a symbolic link or a pipe, or cannot be opened.
    """
    private = private or is_run_folder(path.parent)
    # O_NONBLOCK: a pipe in place of the file must not keep us waiting for its reader.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, OWNER_ONLY_MODE if private else 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            message = "is a symbolic link, which is not followed; replace it with a file"
            raise OSError(errno.ELOOP, message, str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a file; replace it with a file", str(path))
    if private:
        tighten(descriptor)
    return descriptor


def open_new(path: Path) -> IO[bytes]:
    """Open a file for writing from its beginning, as :func:`open_unlinked` does."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.fdopen(open_unlinked(path, flags), "wb")


def tighten(file: int | Path) -> None:
    """Take a file's permissions from everybody but its owner; other kinds of files stay."""
    status = os.stat(file)  # noqa: PTH116 - also of a descriptor
    # Some file systems have no permissions, and another user's file cannot be changed.
    if stat.S_ISREG(status.st_mode) and status.st_mode & OTHERS_BITS:
        with suppress(OSError):
            os.chmod(file, OWNER_ONLY_MODE)  # noqa: PTH101


def is_foreign(path: Path) -> bool:
    """Whether another user owns a file or folder; False if there is none."""
    try:
        return path.stat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def is_run_folder(folder: Path) -> bool:
    """Whether a folder is that of a run."""
    return (folder / RUN_FILE).exists()


def resolve_output(path: Path) -> Path:
    """Return the file to write where a user named ``path``, which may be a link of theirs.

    A link in a run's folder stays, and is refused when it is opened: the folder may have been sent.
    """
    return path.resolve() if path.is_symlink() and not is_run_folder(path.parent) else path


def create_private(path: Path) -> None:
    """Create an empty file for its owner only, or tighten the one that is there.

    For libraries that open a file by its name, and would create it for everybody to read.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY_MODE))
    except FileExistsError:
        if path.is_file():
            tighten(path)


@contextmanager
def open_atomic(path: Path, suffix: str = ".part", *, private: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that becomes ``path`` at the end of the block, or is removed if the block raises.

    Until then it is ``.NAME.part`` in the same folder, or has another suffix. The rest of a killed
    process is overwritten; of two processes one waits for the other.

    Args:
        path: the file. suffix: of its temporary name.
        private: False for an output that the user named: outside of a run's folder it is readable
            as the umask says.
    """
    # In the same folder, since a rename is atomic only within one file system.
    temporary = path.with_name(f".{path.name}{suffix}")
    with name_in_errors(path, temporary):
        file = open_locked(temporary, private=private)
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


def write_atomic(path: Path, content: bytes, *, private: bool = True) -> None:
    """Write a file completely or not at all; create its folder if necessary.

    ``private`` is that of :func:`open_atomic`.
    """
    if private:
        make_private_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path, private=private) as file:
        file.write(content)


def open_locked(part: Path, *, wait: bool = True, private: bool = True) -> IO[bytes]:
    """Open a file for appending, and lock it for this process.

    Args:
        part: the file. wait: whether to wait for another process that holds the lock.
        private: as of :func:`open_atomic`.

    Raises:
        BlockingIOError: another process holds the lock, and ``wait`` is False.
        OSError: it is a symbolic link, or cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    while True:
        file = os.fdopen(open_unlinked(part, flags, private=private), "a+b")
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
    make_private_folder(path.parent)
    try:
        return open_locked(path.with_name(f".{path.name}.lock"), wait=False)
    except BlockingIOError:
        raise UsageError(f"{path}: another process is using it; try again when it ends") from None


class Appender:
    """Appends lines to a file; a line is on disk in full when :meth:`append` returns."""

    def __init__(self, path: Path, *, private: bool = True) -> None:
        """Open a file; ``private``: False for one that the user named, which may be a link."""
        self._path = path
        # Unbuffered in append mode: one write call a line, which the system appends in one piece.
        if private:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.fdopen(open_unlinked(path, flags), "ab", buffering=0)
        else:
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
    with os.fdopen(open_unlinked(path, os.O_RDWR), "r+b") as file:
        complete_bytes = 0
        for line in file:
            # Only the last line can lack its end; what it was about is scored again.
            if not line.endswith(b"\n"):
                file.truncate(complete_bytes)
                return
            complete_bytes += len(line)
