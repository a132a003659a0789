"""Every model call of a run and its reply, in one SQLite file that any tool can read.

Schema, version 1 (``PRAGMA user_version``):

    calls(key        BLOB PRIMARY KEY  -- 16 bytes, see request_key
          capability TEXT              -- entailment, chat, embedding, ...
          backend    TEXT              -- the backend's name
          request    TEXT              -- JSON
          reply      TEXT              -- JSON
          seconds    REAL)             -- this call's share of its batch's time
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["CallStore", "StoredCall", "copy_calls", "request_key"]

VERSION = 1
SCHEMA = """
CREATE TABLE calls (
    key BLOB PRIMARY KEY,
    capability TEXT NOT NULL,
    backend TEXT NOT NULL,
    request TEXT NOT NULL,
    reply TEXT NOT NULL,
    seconds REAL NOT NULL
) STRICT
"""
LOOKUP = 500
"""Keys in one SELECT; SQLite's oldest default limit of parameters is 999."""


class StoredCall(NamedTuple):
    """One row of ``calls``."""

    key: bytes
    capability: str
    backend: str
    request: str
    reply: str
    seconds: float


def request_key(capability: str, backend: str, parts: Sequence[str]) -> bytes:
    """Return the 16 bytes by which a call is known; each part counts with its length."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (capability, backend, *parts):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


class CallStore:
    """The store of one run; safe to use from several threads.

    Raises:
        OSError: the file is no call store, or one of a later version.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)
        try:
            self._open(path)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise OSError(f"{path}: not a store of model calls ({error})") from None
        except OSError:
            self._connection.close()
            raise

    def _open(self, path: Path) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version not in {0, VERSION}:
            raise OSError(f"{path}: made by a later version of trustassay (schema {version})")
        # A killed process loses nothing that was committed, even without syncing to the disk.
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        if version == 0:
            self._connection.executescript(
                f"BEGIN; {SCHEMA}; PRAGMA user_version = {VERSION}; COMMIT;"
            )

    def find(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the stored replies among ``keys``."""
        found: dict[bytes, str] = {}
        with self._lock:
            for start in range(0, len(keys), LOOKUP):
                some = keys[start : start + LOOKUP]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, reply FROM calls WHERE key IN ({marks})"
                found.update(self._connection.execute(query, some))
        return found

    def add(self, calls: Iterable[StoredCall]) -> None:
        """Write calls and commit; one that is there already stays as it is."""
        with self._lock, self._connection:
            self._connection.executemany(
                "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?)", calls
            )

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of stored calls for each (capability, backend)."""
        query = "SELECT capability, backend, COUNT(*) FROM calls GROUP BY 1, 2"
        with self._lock:
            return {(c, b): n for c, b, n in self._connection.execute(query)}

    def close(self) -> None:
        """Fold the journal into the file and close it."""
        with self._lock:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()


def copy_calls(source: Path, target: Path) -> None:
    """Copy a store whole or not at all, with what a killed process left in its journal.

    Raises:
        OSError: ``source`` is no call store.
    """
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    read, write = sqlite3.connect(source), sqlite3.connect(part)
    try:
        read.backup(write)
        write.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.DatabaseError as error:
        part.unlink()
        raise OSError(f"{source}: not a store of model calls ({error})") from None
    finally:
        read.close()
        write.close()
    part.replace(target)
