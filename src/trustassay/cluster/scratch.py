"""The folder of a job on a machine's own disk, in which its workers work: private, and not left.

Its workers hold a shared lock on it. The last that leaves removes it; that of killed processes,
which nobody holds, is removed at the next start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from trustassay.errors import RunFolderError

__all__ = ["Scratch", "remove_left"]

PREFIX = "trustassay-job-"


class Scratch:
    """A job's folder, from :meth:`enter` to :meth:`leave`.

    path: of the folder. All workers of the job on one machine share it.
    """

    def __init__(self, home: str | None, job: str) -> None:
        """``home`` is the folder for such folders; ``None`` for the temporary one."""
        self.path = _home(home) / f"{PREFIX}{job}"
        self._held: int | None = None

    def enter(self) -> None:
        """Make the folder, for this user alone, or share it with other workers.

        Raises:
            RunFolderError: another user owns it.
            OSError: it cannot be made.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._held is None:
            self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # removed by another process in between
                continue
            if os.fstat(held).st_uid != os.getuid():
                os.close(held)
                raise RunFolderError(
                    f"{self.path}: belongs to another user; give --scratch, a folder of your own"
                )
            os.fchmod(held, 0o700)
            fcntl.flock(held, fcntl.LOCK_SH)
            if self.path.exists() and os.path.samestat(os.fstat(held), self.path.stat()):
                self._held = held
            else:  # removed before the lock was held
                os.close(held)

    def leave(self) -> None:
        """Remove the folder, unless other workers use it."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
            _remove(self.path)


def remove_left(home: str | None) -> None:
    """Remove the folders of this user's killed processes."""
    for path in _home(home).glob(f"{PREFIX}*"):
        _remove(path)


def _home(home: str | None) -> Path:
    return Path(home or tempfile.gettempdir())


def _remove(path: Path) -> None:
    """Remove a folder of this user that no process holds."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(held).st_uid == os.getuid():
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # in use
        return
    finally:
        os.close(held)
