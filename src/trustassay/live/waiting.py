"""What waits in a service, in a file of JSON lines that survives a killed process.

A line is ``[key, item]``. A line ``[key]`` says that no earlier item of this key waits any more.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trustassay.core.files import (
    Appender,
    DiskFullError,
    create_private,
    cut_unfinished,
    is_disk_full,
    open_atomic,
)
from trustassay.errors import RunFolderError

WAITING_SPANS, WAITING_EVENTS = "waiting-spans.jsonl", "waiting-events.jsonl"
"""The files in a run's folder: spans whose trace has no scores yet, and events that the collector
has not taken."""
MIN_STALE_BYTES = 1024**2
"""Bytes of lines that wait no more from which on the file is written anew."""


def encode_line(key: str, *item: Any) -> bytes:
    """Return the line of an item, or without one the line that ends its key."""
    return json.dumps([key, *item], separators=(",", ":")).encode() + b"\n"


class WaitingJournal:
    """Keeps items in a file until their key is dropped.

    The file has at most about twice the bytes of what waits, and :data:`MIN_STALE_BYTES`.
    """

    def __init__(self, path: Path) -> None:
        """Open the file with what an earlier process left; only its owner may read it.

        Raises:
            RunFolderError: a line is damaged.
            OSError: it cannot be opened.
        """
        self.path = path
        create_private(path)
        # A killed process may have left half a line, whose sender got no reply.
        cut_unfinished(path)
        waiting = self._read_lines()
        self._sizes = {key: sum(map(len, lines)) for key, lines in waiting.items()}
        self.size = sum(self._sizes.values())
        """Bytes of the items that wait."""
        self._stale_bytes = path.stat().st_size - self.size
        self._file = Appender(path)

    def read(self) -> dict[str, list[Any]]:
        """Return the items that wait, by their keys."""
        return {
            key: [json.loads(line)[1] for line in lines]
            for key, lines in self._read_lines().items()
        }

    def add(self, lines: Sequence[tuple[str, bytes]]) -> None:
        """Keep the lines (:func:`encode_line`) of items with their keys, all or none.

        Raises:
            DiskFullError: none was kept.
        """
        self._file.append(b"".join(line for _, line in lines))
        for key, line in lines:
            self._sizes[key] = self._sizes.get(key, 0) + len(line)
            self.size += len(line)

    def drop(self, key: str) -> None:
        """Forget the items of a key; do nothing if there are none."""
        size = self._sizes.pop(key, None)
        if size is None:
            return
        line = encode_line(key)
        # On a full disk the next start finds them again, as it may after a kill.
        with suppress(DiskFullError):
            self._file.append(line)
        self.size -= size
        self._stale_bytes += size + len(line)
        if self._stale_bytes > max(self.size, MIN_STALE_BYTES):
            self._rewrite()

    def close(self) -> None:
        """Close the file, and remove it if nothing waits."""
        self._file.close()
        if not self._sizes:
            self.path.unlink(missing_ok=True)

    def _read_lines(self) -> dict[str, list[bytes]]:
        """Return the lines that wait, by their keys."""
        result: dict[str, list[bytes]] = {}
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    content = json.loads(line)
                except ValueError:
                    content = None
                match content:
                    case [str(key), *item] if len(item) <= 1:
                        pass
                    case _:
                        message = "is damaged (expected [key, item]); remove this line"
                        raise RunFolderError(f"{self.path}:{number}: {message}")
                if item:
                    result.setdefault(key, []).append(line)
                else:
                    result.pop(key, None)
        return result

    def _rewrite(self) -> None:
        """Write the file anew, without what waits no more."""
        waiting = self._read_lines()
        try:
            with open_atomic(self.path) as file:
                file.writelines(line for key in self._sizes for line in waiting.get(key, ()))
        except OSError as error:
            # The file goes on growing; the next key that is dropped tries again.
            if not is_disk_full(error):
                raise
            return
        self._file.close()
        self._file, self._stale_bytes = Appender(self.path), 0
