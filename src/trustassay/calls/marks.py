"""Marks for calls in progress, in the file that runs share.

Before a process makes calls, it looks into the file once more and marks them, both in one
transaction. Another process that finds a mark waits for the reply and uses it. A mark lasts for
some seconds and is renewed while its call is in progress, so that another process soon makes the
calls that a killed one has marked; on the same machine at once. While the file cannot be
written, calls are sent unmarked: at worst two processes then pay for the same reply.
"""

import asyncio
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trustassay.calls.store import Calls, CallStore, Claimed, StoredCall, rows_of

MARK_S = 8.0
"""How long a mark lasts if it is not renewed."""
RENEW_EVERY_S = 2.0
TICK_S = 0.25
"""How often marks are removed whose calls have ended."""
LOCKED_S = 0.5
"""How long a mark waits for another process that is writing into the file."""
UNUSABLE_S = 5.0
"""So long no mark is tried after one that could not be written."""


class Marks:
    """The marks of one run in the file that runs share; used in one event loop.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.owner = f"{_place()}:{os.getpid()}:{os.urandom(4).hex()}"
        try:
            self._connection = sqlite3.connect(
                path, timeout=LOCKED_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous = OFF")
        except sqlite3.Error as error:
            raise OSError(f"{path}: cannot be opened ({error})") from None
        self._held: set[bytes] = set()
        self._ended: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._renewed = self._usable_at = 0.0

    def claim(self, keys: Sequence[bytes]) -> tuple[list[StoredCall], set[bytes]]:
        """Mark those of ``keys`` that are neither replied to nor in progress elsewhere.

        Return the calls that are replied to, and the keys that are in progress elsewhere.
        """
        if time.monotonic() < self._usable_at:
            return self.look(keys)
        try:
            with self._transaction():
                calls, elsewhere = self.look(keys)
                replied = {call.key for call in calls}
                mine = [key for key in keys if key not in replied and key not in elsewhere]
                expires = time.time() + MARK_S
                self._connection.executemany(
                    "INSERT OR REPLACE INTO under_way VALUES (?, ?, ?)",
                    [(key, self.owner, expires) for key in mine],
                )
        except sqlite3.Error:
            self._usable_at = time.monotonic() + UNUSABLE_S
            return self.look(keys)
        self._held.update(mine)
        self._tick_later()
        return calls, elsewhere

    def look(self, keys: Sequence[bytes]) -> tuple[list[StoredCall], set[bytes]]:
        """Return the same as :meth:`claim`; marks nothing."""
        now = time.time()
        query = f"SELECT {', '.join(StoredCall._fields)} FROM calls WHERE"
        calls = [StoredCall(*row) for row in rows_of(self._connection, query, keys)]
        # A mark that lasts longer than any can was made before the clock was set back.
        query = (
            "SELECT key, owner FROM under_way WHERE owner != ? AND expires > ? AND expires <= ? AND"
        )
        marked = list(rows_of(self._connection, query, keys, self.owner, now, now + MARK_S))
        alive = {owner for owner in {owner for _, owner in marked} if _may_live(owner)}
        elsewhere = {key for key, owner in marked if owner in alive}
        return calls, elsewhere - {call.key for call in calls}

    def end(self, keys: Sequence[bytes]) -> None:
        """Say that calls are no longer in progress; their marks go with the next transaction."""
        ended = self._held.intersection(keys)
        self._held -= ended
        self._ended.extend(ended)

    def close(self) -> None:
        """Remove all marks and close the file."""
        if self._timer:
            self._timer.cancel()
        try:
            if self._held or self._ended:
                self._connection.execute("DELETE FROM under_way WHERE owner = ?", [self.owner])
        except sqlite3.Error:
            pass  # they expire
        finally:
            self._connection.close()

    def _tick_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        """Remove the marks of calls that ended, and renew the others when it is time to."""
        self._timer = None
        now = time.monotonic()
        due = self._held and now - self._renewed >= RENEW_EVERY_S
        try:
            if (self._ended or due) and now >= self._usable_at:
                with self._transaction():
                    if due:
                        self._connection.execute(
                            "UPDATE under_way SET expires = ? WHERE owner = ?",
                            [time.time() + MARK_S, self.owner],
                        )
                        self._renewed = now
        except sqlite3.Error:
            self._usable_at = now + UNUSABLE_S
        if self._held or self._ended:
            self._tick_later()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write marks, and remove those of calls that have ended."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(
                "DELETE FROM under_way WHERE key = ? AND owner = ?",
                [(key, self.owner) for key in self._ended],
            )
            yield
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        self._ended.clear()


def _place() -> str:
    """Return where process ids have a meaning: this machine, or this container on it."""
    try:
        return f"{platform.node()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _may_live(owner: str) -> bool:
    """Whether an owner's process may be there; only one of the same place can be known to be gone.

    Asking Windows about a process in this way would end it.
    """
    place, process, _ = owner.rsplit(":", 2)
    if os.name != "posix" or place != _place():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        pass
    return True


class MarkedCalls(Calls):
    """A run's own calls and the shared ones, where what is in progress is marked."""

    def __init__(self, own: CallStore | None, shared: CallStore, marks: Marks) -> None:
        super().__init__(own, shared)
        self._marks = marks

    def claim(self, keys: Sequence[bytes]) -> Claimed:
        """Return the stored replies, and mark the calls to be made; see :class:`Marks`."""
        return self._found(keys, self._marks.claim, fetch=True)

    def look(self, keys: Sequence[bytes]) -> Claimed:
        """Return the same; marks nothing."""
        return self._found(keys, self._marks.look)

    def end(self, keys: Sequence[bytes]) -> None:
        """Say that calls are no longer in progress."""
        self._marks.end(keys)
