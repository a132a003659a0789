"""Every model call and its reply in a SQLite file that any tool can read.

A run has such a file, ``calls.sqlite``; replies of endpoints are also in a shared one, which
other runs use. Its tables: ``store.sql``.
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

from trustassay.errors import BackendError
from trustassay.files import DiskFullError, has_no_room

VERSION = 3
SCHEMA = files(__package__).joinpath("store.sql").read_text(encoding="utf-8")


class Keys:
    """Makes the keys of the calls to one backend: digests of capability, backend and request."""

    def __init__(self, capability: str, backend: str) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        _update(self._digest, (capability, backend))

    def of(self, parts: Sequence[str]) -> bytes:
        """Return the 16 bytes by which a call is known; each part counts with its length."""
        digest = self._digest.copy()
        _update(digest, parts)
        return digest.digest()


def _update(digest: hashlib.blake2b, parts: Sequence[str]) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)


LOOKUP = 500
"""Keys in one SELECT; SQLite's oldest default limit of parameters is 999."""
PATIENCE_S = 60
"""How long to wait for another process that is writing into the same file."""
CACHE_FILE = "calls.sqlite"


class StoredCall(NamedTuple):
    """One row of ``calls``."""

    key: bytes
    capability: str
    backend: str
    request: str
    reply: str
    seconds: float
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cached: int = 0


class CallTaken(NamedTuple):
    """What a stored call took."""

    key: bytes
    request: str
    seconds: float
    prompt_tokens: int | None
    reply_tokens: int | None


class Claimed(NamedTuple):
    """Some calls: stored replies, how many of them the shared file gave just now,
    and the keys of those that another process is making."""

    found: Mapping[bytes, str]
    taken: int = 0
    elsewhere: frozenset[bytes] = frozenset()


class Usage(NamedTuple):
    """The usage of one backend: calls and tokens paid for, and calls taken from elsewhere.

    ``uncounted`` is the number of paid calls whose tokens the backend did not report.
    """

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    uncounted: int = 0
    cached: int = 0
    seconds: float = 0.0


def default_cache() -> Path:
    """Return the folder of the shared file: ``TRUSTASSAY_CACHE``, or one in the user's cache."""
    if named := os.environ.get("TRUSTASSAY_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trustassay"


def open_cache(folder: Path) -> "CallStore":
    """Open the file that runs share, and make its folder if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    return CallStore(folder / CACHE_FILE)


def rows_of(
    connection: sqlite3.Connection, query: str, keys: Sequence[bytes], *given: Any
) -> Iterator[Any]:
    """Yield the rows of a query, which takes ``given``, that have one of these keys."""
    for start in range(0, len(keys), LOOKUP):
        some = keys[start : start + LOOKUP]
        places = ",".join("?" * len(some))
        yield from connection.execute(f"{query} key IN ({places})", [*given, *some])


class CallStoreError(BackendError):
    """A file of calls that cannot be read or written any more: damaged, full, or locked."""


def _is_full(error: sqlite3.Error, path: Path) -> bool:
    """Whether the disk is full: SQLite may call it an error of reading and writing."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF
    return kind == sqlite3.SQLITE_FULL or (
        kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and has_no_room(path.parent)
    )


def _no_store(path: Path, error: sqlite3.Error) -> OSError:
    message = "remove it; its calls are then made again"
    return OSError(f"{path}: not a store of model calls ({error}); {message}")


class CallStore:
    """One file of calls; safe to use from several threads, and from several processes.

    Raises:
        OSError: the file is not a call store, or one of another version.
        CallStoreError: by all methods, when the file cannot be used any more; DiskFullError.
    """

    tells_payer = False
    """Whether ``cached`` says, as of the run that reads it, who paid for a call."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self.path = path
        try:
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
            raise _no_store(path, error) from None
        except OSError:
            self._connection.close()
            raise

    def _open(self, path: Path) -> None:
        version = self._version()
        if version not in (0, VERSION):  # 0: a file that SQLite has just made
            raise OSError(f"{path}: made by another version of trustassay (schema {version})")
        # A killed process loses nothing that was committed, even without syncing to the disk.
        self._begin_journal()
        self._connection.execute("PRAGMA synchronous = OFF")
        if version != VERSION:
            self._connection.execute("BEGIN IMMEDIATE")  # another process may be doing the same
            if self._version() != VERSION:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.commit()

    def _begin_journal(self) -> None:
        """Turn to SQLite's write-ahead journal, for which it does not wait by itself."""
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
        """Hold the file; an error that is the file's names it."""
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
        """Return the stored replies among ``keys``."""
        return dict(self._rows("key, reply", keys))

    def fetch(self, keys: Sequence[bytes]) -> None:
        """Bring calls into the file that are kept elsewhere; of this kind there are none."""

    def find_calls(self, keys: Sequence[bytes]) -> list[StoredCall]:
        """Return the stored calls among ``keys``, whole."""
        return [StoredCall(*row) for row in self._rows(", ".join(StoredCall._fields), keys)]

    def _rows(self, columns: str, keys: Sequence[bytes]) -> list[Any]:
        with self.in_use():
            return list(rows_of(self._connection, f"SELECT {columns} FROM calls WHERE", keys))

    def _all(self, query: str, *given: Any) -> list[Any]:
        with self.in_use():
            return self._connection.execute(query, given).fetchall()

    def add(self, calls: Iterable[StoredCall]) -> None:
        """Write calls and commit; one that is there already stays as it is."""
        with self.in_use(), self._connection:
            self._connection.executemany(
                "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", calls
            )

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove the calls with these keys, those alone that still hold these replies."""
        with self.in_use(), self._connection:
            self._connection.executemany(
                "DELETE FROM calls WHERE key = ? AND reply = ?", replies.items()
            )

    def paid(self, keys: Sequence[bytes]) -> int:
        """Return how many of ``keys`` were asked for here, and not taken from elsewhere."""
        return sum(not cached for (cached,) in self._rows("cached", keys))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of stored calls for each (capability, backend)."""
        query = "SELECT capability, backend, COUNT(*) FROM calls GROUP BY 1, 2"
        return {(c, b): n for c, b, n in self._all(query)}

    def size(self, capability: str, backend: str) -> tuple[int, int]:
        """Return how many calls to a backend are stored, and the characters of their requests."""
        query = """
            SELECT COUNT(*), COALESCE(SUM(LENGTH(request)), 0) FROM calls
            WHERE capability = ? AND backend = ?
            """
        ((calls, characters),) = self._all(query, capability, backend)
        return calls, characters

    def latest(self, capability: str, backend: str, most: int) -> list[CallTaken]:
        """Return what the latest calls to a backend took, at most so many of them."""
        columns = ", ".join(CallTaken._fields)
        query = f"""
            SELECT {columns} FROM calls WHERE capability = ? AND backend = ?
            ORDER BY rowid DESC LIMIT ?
            """
        return [CallTaken(*row) for row in self._all(query, capability, backend, most)]

    def usage(self, capability: str) -> dict[str, Usage]:
        """Return what was asked of each backend of a capability."""
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
        return {backend: Usage(*numbers) for backend, *numbers in self._all(query, capability)}

    def close(self, *, alone: bool = True) -> None:
        """Close the file; ``alone`` also folds the journal into it, as no other process reads."""
        with self._lock:
            try:
                if alone:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.Error:
                pass  # damaged, or read by another after all: then the journal stays next to it
            finally:
                self._connection.close()


class Calls:
    """A run's own file of calls, and behind it the shared one, if there is any."""

    def __init__(self, own: CallStore | None, shared: CallStore | None = None) -> None:
        self.own, self.shared = own, shared

    def look(self, keys: Sequence[bytes]) -> Claimed:
        """Return the stored replies; those of the shared file are written into the run's own one,
        marked as taken.
        """
        return self._found(keys)

    def _found(
        self, keys: Sequence[bytes], look: Callable[..., Any] | None = None, *, fetch: bool = False
    ) -> Claimed:
        """Return the replies; ``look`` also gives the keys of calls that are made elsewhere."""
        result = self.own.find(keys) if self.own else {}
        missing = [key for key in keys if key not in result]
        if not (self.shared and missing):
            return Claimed(result)
        if fetch:
            self.shared.fetch(missing)
        if look is None:
            calls, elsewhere = self.shared.find_calls(missing), set()
        else:
            with self.shared.in_use():  # an error of the file names it
                calls, elsewhere = look(missing)
        if self.own and calls:
            told = self.shared.tells_payer
            self.own.add(calls if told else [call._replace(cached=1) for call in calls])
        replies = {call.key: call.reply for call in calls}
        return Claimed(result | replies, len(calls), frozenset(elsewhere))

    def claim(self, keys: Sequence[bytes]) -> Claimed:
        """Return the stored replies; the caller is going to request the rest."""
        return self.look(keys)

    def end(self, keys: Sequence[bytes]) -> None:
        """Say that calls are no longer in progress."""

    def peek(self, key: bytes) -> str | None:
        """Return the stored reply, if any; writes nothing."""
        for store in filter(None, (self.own, self.shared)):
            if result := store.find([key]):
                return result[key]
        return None

    def add(self, calls: Sequence[StoredCall]) -> None:
        """Write calls into both."""
        for store in (self.own, self.shared):
            if store:
                store.add(calls)

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove the calls with these keys and replies from both."""
        for store in (self.own, self.shared):
            if store:
                store.remove(replies)


def copy_calls(source: Path, target: Path) -> None:
    """Copy a store whole or not at all, with what a killed process left in its journal.

    In the copy every call counts as taken from elsewhere.

    Raises:
        OSError: ``source`` is not a call store, or the disk of ``target`` is full.
    """
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(part)) as write:
            read.backup(write)
            write.execute("PRAGMA journal_mode = DELETE")
            write.execute("UPDATE calls SET cached = 1")
            write.commit()
    except sqlite3.Error as error:
        for left in part.parent.glob(f"{part.name}*"):  # the copy and its journal
            left.unlink()
        if _is_full(error, target):
            raise DiskFullError(target) from None
        raise _no_store(source, error) from None
    part.replace(target)
