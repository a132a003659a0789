"""The file of ratings: one process writes to it, and what it confirms is on disk."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trustassay.data.journal import BEGINNING, Journal, read_journal
from trustassay.data.records import InputError
from trustassay.files import DiskFullError, is_full, named

__all__ = ["RatingsFile"]

READABLE = 0o666
"""Permissions of a new file, less what the user's mask takes away."""
OTHERWISE = "choose another --out, or the options that it was made with"


class RatingsFile:
    """Appends lines to a file that this process alone holds, until it is closed.

    Lines that arrive while others are written are written together: one wait for the disk serves
    many raters.
    """

    def __init__(self, path: Path) -> None:
        """Open and claim a file, which is made if there is none.

        Raises:
            InputError: another process holds it.
            OSError: it cannot be opened for writing.
        """
        self.path = path
        with named(path):
            self._file = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, READABLE
            )
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InputError(
                f"{path}: another process writes to this file; end it, or choose another --out"
            ) from None
        self._size = os.fstat(self._file).st_size
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    def begin(self, start: Mapping[str, Any]) -> Journal:
        """Return what the file holds; a line that a killed process left unfinished is cut off. A
        new file gets its first line.

        Raises:
            InputError: it is another kind of file, damaged, or of another input or other options.
            OSError: it cannot be written.
        """
        with self.path.open("rb") as file:
            beginning = file.read(len(BEGINNING))
        if not BEGINNING.startswith(beginning):
            raise InputError(
                f"{self.path}: not a file that `annotate` wrote; nothing was changed; choose "
                "another --out"
            )
        journal = read_journal(self.path)
        if journal.start:
            self._check(journal.start, start)
        with named(self.path):
            if journal.sound < self._size:
                os.ftruncate(self._file, journal.sound)
                self._size = journal.sound
        if not journal.start:
            self.write(encoded(start))
            self._keep_name()
        return journal

    def _check(self, found: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        if found.get("input") != start["input"]:
            raise InputError(
                f"{self.path}: holds ratings of another input, or of an earlier state of it; "
                "choose another --out"
            )
        different = [
            f"{name} {found.get(name)!r}, now {start.get(name)!r}"
            for name in {**found, **start}
            if found.get(name) != start.get(name)
        ]
        if different:
            raise InputError(f"{self.path}: was made with {'; '.join(different)}; {OTHERWISE}")

    def _keep_name(self) -> None:
        """Let a new file's name survive a power cut, as its content does."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def write(self, lines: bytes) -> None:
        """Write whole lines, and return when they are on disk.

        Raises:
            DiskFullError: there is no room; no part of them is left.
            OSError: the file cannot be written, or is not the one that this process opened.
        """
        with named(self.path):
            self._check_place()
            try:
                if os.write(self._file, lines) != len(lines):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
            except OSError as error:
                os.ftruncate(self._file, self._size)
                if is_full(error):
                    raise DiskFullError(self.path) from None
                raise
        self._size += len(lines)

    def _check_place(self) -> None:
        """Raise an :class:`OSError` unless the file still stands under its name as it was written:
        lines would go into a file that nobody finds again.
        """
        own, there = os.fstat(self._file), self.path.stat()
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
            raise OSError(errno.ESTALE, "another file stands in its place; put it back", self.path)
        if own.st_size != self._size:
            raise OSError(
                errno.ESTALE,
                "something else changed it; end this process, look at it "
                "and run the same command again",
                self.path,
            )

    async def append(self, line: Mapping[str, Any]) -> None:
        """Store one line; it is on disk when this returns.

        Raises:
            OSError: it could not be stored.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((encoded(line), stored))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_waiting())
        await stored

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self.write, b"".join(line for line, _ in batch))
            except OSError as error:
                for _, stored in batch:
                    if not stored.done():
                        stored.set_exception(error)
            else:
                for _, stored in batch:
                    if not stored.done():
                        stored.set_result(None)

    async def drain(self) -> None:
        """Wait until everything that was appended is on disk."""
        if self._writing is not None:
            await self._writing

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)


def encoded(line: Mapping[str, Any]) -> bytes:
    """Return the line of a file of JSON Lines."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
