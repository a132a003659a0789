"""Every model call and its reply, in a SQLite file that any tool can read.

Each run has one, ``calls.sqlite``. Replies of endpoints are also in a shared one, which other runs
use. The tables are in ``store.sql``.
"""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from trustassay.core.files import DiskFullError, has_no_room
from trustassay.errors import BackendError

SCHEMA_VERSION = 3
SCHEMA = files(__package__).joinpath("store.sql").read_text(encoding="utf-8")


class Keys:
    """Computes the keys of the calls to one backend: digests of capability, backend and request."""

    def __init__(self, capability: str, backend: str) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        _update(self._digest, (capability, backend))

    def of(self, parts: Sequence[str]) -> bytes:
        """Return the key of a request, 16 bytes.

        The length of each part is part of the digest, so that ("ab", "c") and ("a", "bc") differ.
        """
        digest = self._digest.copy()
        _update(digest, parts)
        return digest.digest()


def _update(digest: hashlib.blake2b, parts: Sequence[str]) -> None:
    for part in parts:
        # Lone surrogates occur in scraped text, and must not fail here.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)


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
    folder.mkdir(parents=True, exist_ok=True)
    return CallStore(folder / CACHE_FILE)


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
    message = "remove it; its calls are then made again"
    return OSError(f"{path}: not a store of model calls ({error}); {message}")


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
            raise OSError(f"{path}: made by another version of trustassay (schema {version})")
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
                    raise  # of what was to be written
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
        """Return the latest calls to a backend, at most ``most`` of them."""
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


class Calls:
    """A run's own file of calls and, behind it, the shared one, if there is any."""

    def __init__(self, own_store: CallStore | None, shared_store: CallStore | None = None) -> None:
        self.own, self.shared = own_store, shared_store

    def look(self, keys: Sequence[bytes]) -> ClaimedCalls:
        """Return the stored replies.

        Those of the shared file are copied into the run's own file, marked as taken.
        """
        return self._look_up(keys)

    def _look_up(
        self, keys: Sequence[bytes], look: Callable[..., Any] | None = None, *, fetch: bool = False
    ) -> ClaimedCalls:
        """Return the stored replies.

        Args:
            keys: keys of the calls.
            look: returns calls of the shared file, and the keys of those that are made elsewhere.
            fetch: first copy calls into the shared file from where else they are stored.
        """
        result = self.own.find(keys) if self.own else {}
        # The shared file is only asked for what the run's own file lacks.
        missing = [key for key in keys if key not in result]
        if not (self.shared and missing):
            return ClaimedCalls(result)
        if fetch:
            self.shared.fetch(missing)
        if look is None:
            calls, elsewhere = self.shared.find_calls(missing), set()
        else:
            with self.shared.in_use():  # an error of the file names it
                calls, elsewhere = look(missing)
        # Copied, so that the run's folder is complete without the shared file.
        if self.own and calls:
            tells_payer = self.shared.tells_payer
            self.own.add(calls if tells_payer else [call._replace(cached=1) for call in calls])
        replies = {call.key: call.reply for call in calls}
        return ClaimedCalls(result | replies, len(calls), frozenset(elsewhere))

    def claim(self, keys: Sequence[bytes]) -> ClaimedCalls:
        """Return the stored replies; the caller is going to make the other calls."""
        return self.look(keys)

    def end(self, keys: Sequence[bytes]) -> None:
        """Record that calls are no longer in progress."""

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
