"""Marks for calls in progress, in the file that runs share.

Before a process makes calls, it looks into the file once more and marks them, in one transaction.
Another process that finds a mark waits for the reply and uses it.

A mark lasts for some seconds and is renewed while its call is in progress. So when a process is
killed, others soon make its calls; on the same machine, at once. While the file cannot be written,
calls are made without marks: at worst two processes then pay for the same reply.
"""

import asyncio
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trustassay.calls.store import Calls, CallStore, ClaimedCalls, StoredCall, select_rows_by_key

MARK_S = 8.0
"""Seconds that a mark lasts if it is not renewed."""
RENEW_EVERY_S = 2.0
TICK_S = 0.25
"""Seconds between two removals of marks whose calls have ended."""
LOCKED_S = 0.5
"""Seconds that a mark waits for another process that is writing into the file."""
UNUSABLE_S = 5.0
"""Seconds for which no mark is written after one that could not be."""


class CallMarks:
    """The marks of one run in the file that runs share; used in one event loop.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        # The random part tells runs in one process apart.
        self.owner = f"{_process_scope()}:{os.getpid()}:{os.urandom(4).hex()}"
        try:
            self._connection = sqlite3.connect(
                # Marks may be lost in a crash of the machine: then the calls are over, too.
                path,
                timeout=LOCKED_S,
                isolation_level=None,
                check_same_thread=False,
            )
            self._connection.execute("PRAGMA synchronous = OFF")
        except sqlite3.Error as error:
            raise OSError(f"{path}: cannot be opened ({error})") from None
        self._marked_keys: set[bytes] = set()
        self._ended: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._renewed_at = self._usable_at = 0.0

    def claim(self, keys: Sequence[bytes]) -> tuple[list[StoredCall], set[bytes]]:
        """Mark those of ``keys`` that have no reply and are not in progress elsewhere.

        Return the calls that have a reply, and the keys that are in progress elsewhere.
        """
        # The file could not be written a moment ago; do not let every call wait for its lock.
        if time.monotonic() < self._usable_at:
            return self.look(keys)
        try:
            with self._transaction():
                # Look inside the transaction: another process may have marked or stored them by
                # now.
                calls, elsewhere = self.look(keys)
                replied = {call.key for call in calls}
                mine = [key for key in keys if key not in replied and key not in elsewhere]
                expires = time.time() + MARK_S
                self._connection.executemany(
                    # Replaces marks that have expired, or whose process is gone.
                    "INSERT OR REPLACE INTO under_way VALUES (?, ?, ?)",
                    [(key, self.owner, expires) for key in mine],
                )
        except sqlite3.Error:
            self._usable_at = time.monotonic() + UNUSABLE_S
            return self.look(keys)
        self._marked_keys.update(mine)
        self._schedule_tick()
        return calls, elsewhere

    def look(self, keys: Sequence[bytes]) -> tuple[list[StoredCall], set[bytes]]:
        """Return the same as :meth:`claim`, without marking anything."""
        now = time.time()
        query = f"SELECT {', '.join(StoredCall._fields)} FROM calls WHERE"
        calls = [StoredCall(*row) for row in select_rows_by_key(self._connection, query, keys)]
        # A mark that lasts longer than any can was made before the clock was set back.
        query = (
            "SELECT key, owner FROM under_way WHERE owner != ? AND expires > ? AND expires <= ? AND"
        )
        marked = list(
            select_rows_by_key(self._connection, query, keys, self.owner, now, now + MARK_S)
        )
        alive = {owner for owner in {owner for _, owner in marked} if _may_live(owner)}
        elsewhere = {key for key, owner in marked if owner in alive}
        # A reply that was stored after the mark is already here.
        return calls, elsewhere - {call.key for call in calls}

    def end(self, keys: Sequence[bytes]) -> None:
        """Record that calls have ended; their marks are removed in the next transaction."""
        ended = self._marked_keys.intersection(keys)
        # Only remember them: a transaction for each reply would lock the file too often.
        self._marked_keys -= ended
        self._ended.extend(ended)

    def close(self) -> None:
        """Remove all marks and close the file."""
        if self._timer:
            self._timer.cancel()
        try:
            if self._marked_keys or self._ended:
                self._connection.execute("DELETE FROM under_way WHERE owner = ?", [self.owner])
        except sqlite3.Error:
            pass  # they expire
        finally:
            self._connection.close()

    def _schedule_tick(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        """Remove the marks of calls that have ended, and renew the others when it is time."""
        self._timer = None
        now = time.monotonic()
        # Well before marks expire, so that a late tick does not lose them.
        due = self._marked_keys and now - self._renewed_at >= RENEW_EVERY_S
        try:
            if (self._ended or due) and now >= self._usable_at:
                with self._transaction():
                    if due:
                        self._connection.execute(
                            "UPDATE under_way SET expires = ? WHERE owner = ?",
                            [time.time() + MARK_S, self.owner],
                        )
                        self._renewed_at = now
        except sqlite3.Error:
            self._usable_at = now + UNUSABLE_S
        if self._marked_keys or self._ended:
            self._schedule_tick()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one transaction, which also removes the marks of calls that have ended."""
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
        # Only after the commit, so that a failed transaction removes them later.
        self._ended.clear()


def _process_scope() -> str:
    """Return where process ids are valid: this machine, or this container on it."""
    try:
        return f"{platform.node()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _may_live(owner: str) -> bool:
    """Whether the process that owns a mark may still be running.

    Only a process of the same machine or container can be known to be gone. On Windows ``os.kill``
    would end the process instead of checking it.
    """
    scope, process, _ = owner.rsplit(":", 2)
    if os.name != "posix" or scope != _process_scope():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        pass
    return True


class MarkedCalls(Calls):
    """A run's own calls and the shared ones, with marks on those in progress."""

    def __init__(self, own_store: CallStore | None, shared: CallStore, marks: CallMarks) -> None:
        super().__init__(own_store, shared)
        self._marks = marks

    def claim(self, keys: Sequence[bytes]) -> ClaimedCalls:
        """Return the stored replies, and mark the calls to be made; see :class:`CallMarks`."""
        return self._look_up(keys, self._marks.claim, fetch=True)

    def look(self, keys: Sequence[bytes]) -> ClaimedCalls:
        """Return the stored replies; marks nothing."""
        return self._look_up(keys, self._marks.look)

    def end(self, keys: Sequence[bytes]) -> None:
        """Record that calls are no longer in progress."""
        self._marks.end(keys)
