"""Every model call and its reply, in a SQLite file that any tool can read.

Each run has one, ``calls.sqlite``. Replies of endpoints are also in a shared one, which other runs
use, with marks for calls in progress, so that two processes pay once. The tables are in
``store.sql``, and ``keys.py`` computes the keys.
"""

import asyncio
import os
import platform
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.files import (
    DiskFullError,
    create_private,
    has_no_room,
    is_disk_full,
    make_private_folder,
    tighten,
)
from trustassay.errors import BackendError

SCHEMA_VERSION = 3
SCHEMA = files(__package__).joinpath("store.sql").read_text(encoding="utf-8")


KEYS_PER_SELECT = 500
"""Keys in one SELECT; SQLite's oldest default limit of parameters is 999."""
PATIENCE_S = 60
"""Seconds to wait for another process that is writing into the same file."""
CACHE_FILE = "calls.sqlite"


class StoredCall(NamedTuple):
    """One row of the table ``calls``; ``store.sql`` describes the columns."""

    key: bytes
    capability: str
    backend: str
    request: str
    reply: str
    seconds: float
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cached: int = 0


class CallUsage(NamedTuple):
    """The tokens and the time of a stored call."""

    key: bytes
    request: str
    seconds: float
    prompt_tokens: int | None
    reply_tokens: int | None


class ClaimedCalls(NamedTuple):
    """The result of looking for some calls."""

    replies: Mapping[bytes, str]
    """Stored replies by key."""
    from_shared_count: int = 0
    """How many of them have just come from the shared file."""
    elsewhere: frozenset[bytes] = frozenset()
    """Keys of calls that another process is making."""


class Usage(NamedTuple):
    """The usage of one backend by a run."""

    calls: int = 0
    """Calls that were paid for."""
    prompt_tokens: int = 0
    """Tokens of their prompts."""
    reply_tokens: int = 0
    """Tokens of their replies."""
    uncounted: int = 0
    """Paid calls whose tokens the backend did not report."""
    cached: int = 0
    """Calls that came from the shared file or another run."""
    seconds: float = 0.0
    """Time that the paid calls took."""


def default_cache() -> Path | None:
    """Return the folder of the shared file: ``TRUSTASSAY_CACHE``, or one in the user's cache.

    ``None`` if the variable is ``off``: no file is shared.
    """
    if folder := os.environ.get("TRUSTASSAY_CACHE"):
        return None if folder == "off" else Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trustassay"


def open_cache(folder: Path) -> "CallStore":
    """Open the file that runs share, and create its folder if there is none."""
    make_private_folder(folder)
    return CallStore(folder / CACHE_FILE)


def build_read_only_uri(path: Path) -> str:
    """Return the URI by which SQLite opens a file for reading, whatever characters its name has."""
    return f"{path.absolute().as_uri()}?mode=ro"


def create_private_database(path: Path) -> None:
    """Create a file for SQLite that only its owner can read, or tighten the one that is there.

    SQLite gives the mode of the database to the files that it puts beside it.

    Raises:
        OSError: it cannot be created.
        DiskFullError: the disk is full.
    """
    try:
        create_private(path)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(path) from None
        raise OSError(f"{path}: cannot be opened ({error.strerror})") from None
    # Of a killed process.
    for side_file in (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")):
        with suppress(FileNotFoundError):
            tighten(side_file)


def select_rows_by_key(
    connection: sqlite3.Connection, query: str, keys: Sequence[bytes], *parameters: Any
) -> Iterator[Any]:
    """Yield the rows that have one of ``keys``.

    ``query`` ends where the condition on the key follows; ``parameters`` are its earlier ones.
    """

    for start in range(0, len(keys), KEYS_PER_SELECT):
        some = keys[start : start + KEYS_PER_SELECT]
        places = ",".join("?" * len(some))
        yield from connection.execute(f"{query} key IN ({places})", [*parameters, *some])


class CallStoreError(BackendError):
    """A file of calls that cannot be read or written any more: damaged, full, or locked."""


def _is_full(error: sqlite3.Error, path: Path) -> bool:
    """Whether the disk is full, which SQLite may report as a general error of input or output."""
    code = getattr(error, "sqlite_errorcode", None)
    # Extended codes, such as SQLITE_IOERR_WRITE, have the primary code in their last byte.
    kind = None if code is None else code & 0xFF
    return kind == sqlite3.SQLITE_FULL or (
        kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and has_no_room(path.parent)
    )


def _not_a_store_error(path: Path, error: sqlite3.Error) -> OSError:
    """Return the error for a file that is not a store of calls."""
    message = "remove it, and its calls are made again"
    return OSError(f"{path}: is not a store of model calls ({error}); {message}")


class CallStore:
    """One file of calls; safe to use from several threads and processes.

    Raises:
        OSError: the file is not a call store, or one of another version.
        CallStoreError: by all methods, when the file cannot be used any more.
        DiskFullError: by all methods, when the disk is full.
    """

    tells_payer = False
    """Whether the column ``cached`` is already from the point of view of the run that reads it."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self.path = path
        create_private_database(path)
        try:
            # The lock below serialises the threads, so SQLite need not check which one it is in.
            self._connection = sqlite3.connect(path, timeout=PATIENCE_S, check_same_thread=False)
        except sqlite3.Error as error:
            raise OSError(f"{path}: cannot be opened ({error})") from None
        try:
            self._open(path)
        except sqlite3.OperationalError as error:
            self._connection.close()
            if _is_full(error, path):
                raise DiskFullError(path) from None
            raise OSError(f"{path}: cannot be used ({error})") from None
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise _not_a_store_error(path, error) from None
        # Another version: see _open().
        except OSError:
            self._connection.close()
            raise

    def _open(self, path: Path) -> None:
        """Check the version, and create the tables in a new file."""
        version = self._version()
        if version not in (0, SCHEMA_VERSION):  # 0: a file that SQLite has just made
            raise OSError(
                f"{path}: was made by another version of trustassay (schema {version}, expected "
                f"{SCHEMA_VERSION}); use that version, or remove the file"
            )
        # A killed process loses nothing that was committed, even without syncing to the disk.
        self._enable_journal()
        self._connection.execute("PRAGMA synchronous = OFF")
        if version != SCHEMA_VERSION:
            self._connection.execute("BEGIN IMMEDIATE")  # another process may be doing the same
            if self._version() != SCHEMA_VERSION:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._connection.commit()

    def _enable_journal(self) -> None:
        """Switch to SQLite's write-ahead journal, retrying while another process holds the file."""
        # The connection's timeout does not apply to this switch, so wait in a loop.
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Lock the file for this thread; turn errors of the file into errors that name it."""
        with self._lock:
            try:
                yield
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError):
                    raise  # the row to be written is at fault, not the file
                if _is_full(error, self.path):
                    raise DiskFullError(self.path) from None
                message = f"{self.path}: the stored calls cannot be used ({error})"
                raise CallStoreError(message) from None

    def find(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the stored replies for ``keys``."""
        return dict(self._select_rows("key, reply", keys))

    def fetch(self, keys: Sequence[bytes]) -> None:
        """Copy calls into the file from where else they are stored; for this class, nowhere."""

    def find_calls(self, keys: Sequence[bytes]) -> list[StoredCall]:
        """Return the stored calls for ``keys``, with all columns."""
        return [StoredCall(*row) for row in self._select_rows(", ".join(StoredCall._fields), keys)]

    def _select_rows(self, columns: str, keys: Sequence[bytes]) -> list[Any]:
        with self.in_use():
            return list(
                select_rows_by_key(self._connection, f"SELECT {columns} FROM calls WHERE", keys)
            )

    def _select_all(self, query: str, *parameters: Any) -> list[Any]:
        with self.in_use():
            return self._connection.execute(query, parameters).fetchall()

    def add(self, calls: Iterable[StoredCall]) -> None:
        """Write calls and commit; calls that are there already are left as they are."""
        # The connection as a context commits, or rolls back.
        with self.in_use(), self._connection:
            self._connection.executemany(
                # The first reply wins, so that all runs see the same one.
                "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                calls,
            )

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove the calls with these keys, if they still have these replies."""
        with self.in_use(), self._connection:
            self._connection.executemany(
                "DELETE FROM calls WHERE key = ? AND reply = ?", replies.items()
            )

    def count_paid(self, keys: Sequence[bytes]) -> int:
        """Return how many of ``keys`` this run paid for, rather than taking them from elsewhere."""
        return sum(not cached for (cached,) in self._select_rows("cached", keys))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of stored calls for each (capability, backend)."""
        query = "SELECT capability, backend, COUNT(*) FROM calls GROUP BY 1, 2"
        return {(c, b): n for c, b, n in self._select_all(query)}

    def size(self, capability: str, backend: str) -> tuple[int, int]:
        """Return the number of stored calls to a backend, and the characters of their requests."""
        query = """
            SELECT COUNT(*), COALESCE(SUM(LENGTH(request)), 0) FROM calls
            WHERE capability = ? AND backend = ?
            """
        ((calls, characters),) = self._select_all(query, capability, backend)
        return calls, characters

    def latest(self, capability: str, backend: str, limit: int) -> list[CallUsage]:
        """Return the latest calls to a backend, at most ``limit`` of them."""
        columns = ", ".join(CallUsage._fields)
        query = f"""
            SELECT {columns} FROM calls WHERE capability = ? AND backend = ?
            ORDER BY rowid DESC LIMIT ?
            """
        return [CallUsage(*row) for row in self._select_all(query, capability, backend, limit)]

    def usage(self, capability: str) -> dict[str, Usage]:
        """Return the usage of each backend of a capability."""
        query = """
            SELECT backend,
                SUM(1 - cached),
                SUM((1 - cached) * COALESCE(prompt_tokens, 0)),
                SUM((1 - cached) * COALESCE(reply_tokens, 0)),
                SUM(NOT cached AND (prompt_tokens IS NULL OR reply_tokens IS NULL)),
                SUM(cached),
                SUM((1 - cached) * seconds)
            FROM calls WHERE capability = ? GROUP BY backend ORDER BY backend
            """
        return {
            backend: Usage(*numbers) for backend, *numbers in self._select_all(query, capability)
        }

    def count_answering_models(self, capability: str) -> dict[str, dict[str, int]]:
        """Return, by backend, the calls of each model that answered, as stored replies name it."""
        query = """
            SELECT backend, json_extract(reply, '$.model'), COUNT(*) FROM calls
            WHERE capability = ? AND json_valid(reply) GROUP BY 1, 2 ORDER BY 1, 2
            """
        result: dict[str, dict[str, int]] = {}
        for backend, model, count in self._select_all(query, capability):
            if model:
                result.setdefault(backend, {})[str(model)] = count
        return result

    def close(self, *, is_last_user: bool = True) -> None:
        """Close the file.

        ``is_last_user``: no other process uses it, so that its journal can be merged into it.
        """
        with self._lock:
            try:
                if is_last_user:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.Error:
                pass  # damaged, or read by another after all: then the journal stays next to it
            finally:
                self._connection.close()


MARK_S = 8.0
"""Seconds that a mark lasts if it is not renewed."""
RENEW_EVERY_S = 2.0
TICK_S = 0.25
"""Seconds between two removals of marks whose calls have ended."""
LOCKED_S = 0.5
"""Seconds that a mark waits for another process that is writing into the file."""


class CallMarks:
    """The marks of one run for calls in progress, in the file that runs share.

    Before a process makes calls, it looks into the file once more and marks them, in one
    transaction. Another process that finds a mark waits for the reply and uses it.

    A mark lasts for some seconds and is renewed while its call is in progress. So when a process is
    killed, others soon make its calls; on the same machine, at once. While the file cannot be
    written, calls are made without marks: at worst two processes then pay for the same reply.

    Used in one event loop.

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
        self._renewed_at = 0.0

    def claim(self, keys: Sequence[bytes]) -> tuple[list[StoredCall], set[bytes]]:
        """Mark those of ``keys`` that have no reply and are not in progress elsewhere.

        Return the calls that have a reply, and the keys that are in progress elsewhere.
        """
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
            if self._ended or due:
                with self._transaction():
                    if due:
                        self._connection.execute(
                            "UPDATE under_way SET expires = ? WHERE owner = ?",
                            [time.time() + MARK_S, self.owner],
                        )
                        self._renewed_at = now
        except sqlite3.Error:
            pass  # tried again with the next tick
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


class Calls:
    """A run's own file of calls and, behind it, the shared one, if there is any.

    With ``marks``, calls that are claimed are marked, and calls of other processes are noticed.
    """

    def __init__(
        self,
        own_store: CallStore | None,
        shared_store: CallStore | None = None,
        marks: CallMarks | None = None,
    ) -> None:
        self.own, self.shared = own_store, shared_store
        self._marks = marks

    def look(self, keys: Sequence[bytes], *, claim: bool = False) -> ClaimedCalls:
        """Return the stored replies; ``claim``: as :meth:`claim`.

        Those of the shared file are copied into the run's own file, marked as taken.
        """
        result = self.own.find(keys) if self.own else {}
        # The shared file is only asked for what the run's own file lacks.
        missing = [key for key in keys if key not in result]
        if not (self.shared and missing):
            return ClaimedCalls(result)
        elsewhere: set[bytes] = set()
        if self._marks is None:
            calls = self.shared.find_calls(missing)
        else:
            if claim:
                self.shared.fetch(missing)
            find = self._marks.claim if claim else self._marks.look
            with self.shared.in_use():  # an error of the file names it
                calls, elsewhere = find(missing)
        # Copied, so that the run's folder is complete without the shared file.
        if self.own and calls:
            tells_payer = self.shared.tells_payer
            self.own.add(calls if tells_payer else [call._replace(cached=1) for call in calls])
        replies = {call.key: call.reply for call in calls}
        return ClaimedCalls(result | replies, len(calls), frozenset(elsewhere))

    def claim(self, keys: Sequence[bytes]) -> ClaimedCalls:
        """Return the stored replies; the caller is going to make the other calls."""
        return self.look(keys, claim=True)

    def end(self, keys: Sequence[bytes]) -> None:
        """Record that calls are no longer in progress."""
        if self._marks:
            self._marks.end(keys)

    def peek(self, key: bytes) -> str | None:
        """Return the stored reply, if any; nothing is written."""
        for store in filter(None, (self.own, self.shared)):
            if result := store.find([key]):
                return result[key]
        return None

    def add(self, calls: Sequence[StoredCall]) -> None:
        """Write calls into both files."""
        for store in (self.own, self.shared):
            if store:
                store.add(calls)

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove the calls with these keys and replies from both files."""
        for store in (self.own, self.shared):
            if store:
                store.remove(replies)


def copy_calls(source: Path, target: Path) -> None:
    """Copy a store completely or not at all, including the journal that a killed process left.

    In the copy every call counts as taken from elsewhere.

    Raises:
        OSError: ``source`` is not a call store, or the disk of ``target`` is full.
    """
    # Copy under another name, and rename at the end: a reader never sees half a file.
    partial_copy = target.with_name(f".{target.name}.part")
    partial_copy.unlink(missing_ok=True)
    create_private_database(partial_copy)
    try:
        with (
            closing(sqlite3.connect(source)) as read,
            closing(sqlite3.connect(partial_copy)) as write,
        ):
            # The backup also has what is only in the journal so far.
            read.backup(write)
            write.execute("PRAGMA journal_mode = DELETE")
            # The run that gets the copy has paid for none of them.
            write.execute("UPDATE calls SET cached = 1")
            write.commit()
    except sqlite3.Error as error:
        for leftover in partial_copy.parent.glob(
            f"{partial_copy.name}*"
        ):  # the copy and its journal
            leftover.unlink()
        if _is_full(error, target):
            raise DiskFullError(target) from None
        raise _not_a_store_error(source, error) from None
    partial_copy.replace(target)
