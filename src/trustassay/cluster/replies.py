"""Replies of endpoints that all workers share: one object for each call, by its key.

In front stands a SQLite file on each machine, in which its workers mark what they are asking. An
object never changes, so it needs no lock, and a store with slow listings is no worse.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trustassay.calls.store import CACHE_FILE, CallStore, StoredCall
from trustassay.cluster.keeping import Store

__all__ = ["SharedReplies"]


class SharedReplies(CallStore):
    """The calls of a run's workers: a file of this machine, and behind it objects in a store.

    A call is written to the file at once and to the store a moment later, by a thread; an object
    that cannot be written or read costs a repeated call at worst. ``cached`` says whether another
    run paid for a call.

    Raises:
        OSError: as :class:`~trustassay.calls.store.CallStore`.
    """

    tells_payer = True

    def __init__(self, folder: Path, store: Store, home: str, run: str) -> None:
        """``home`` is the folder of the objects in the store, ``run`` names who pays."""
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / CACHE_FILE)
        self._store, self._home, self._run = store, home, run
        self._new: queue.SimpleQueue[StoredCall | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, daemon=True)
        self._writer.start()

    def add(self, calls: Iterable[StoredCall]) -> None:
        """Write calls into the file, and then into the store."""
        rows = list(calls)
        super().add(rows)
        for row in rows:
            self._new.put(row)

    def fetch(self, keys: Sequence[bytes]) -> None:
        """Bring those of the calls into the file that are in the store alone."""
        known = self.find(keys)
        names = [self._name(key) for key in keys if key not in known]
        if not names:
            return
        with suppress(OSError):
            found = self._store.read_all(names)
            super().add(row for content in found.values() if (row := self._read(content)))

    def remove(self, replies: Mapping[bytes, str]) -> None:
        """Remove calls from the file and from the store."""
        super().remove(replies)
        for key in replies:
            with suppress(OSError):
                self._store.remove(self._name(key))

    def close(self, *, alone: bool = True) -> None:
        """Write what is still to be written, and close the file."""
        self._new.put(None)
        self._writer.join()
        super().close(alone=alone)

    def _name(self, key: bytes) -> str:
        return f"{self._home}/{key.hex()[:2]}/{key.hex()}.json"

    def _write_all(self) -> None:
        while (row := self._new.get()) is not None:
            fields = row._asdict() | {"key": row.key.hex(), "run": self._run}
            del fields["cached"]
            with suppress(OSError):
                self._store.write(self._name(row.key), json.dumps(fields).encode())

    def _read(self, content: bytes) -> StoredCall | None:
        """Return a call; ``None`` if the object is damaged."""
        try:
            fields = json.loads(content)
            run, key = fields.pop("run"), bytes.fromhex(fields.pop("key"))
            return StoredCall(key=key, cached=int(run != self._run), **fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
