"""Reads a growing file line by line, also where it is cut, replaced or read in several sittings."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

__all__ = ["POLL_S", "GrowingFile", "Place"]

POLL_S = 0.25


@dataclass(slots=True)
class Place:
    """How far a file was read: its inode, the number of the last line read, and its hash."""

    file: int = 0
    line: int = 0
    mark: str = ""

    @classmethod
    def of(cls, stored: Any) -> Place:
        """Read back what :func:`dataclasses.asdict` made; the beginning for anything else."""
        try:
            return cls(int(stored["file"]), int(stored["line"]), str(stored["mark"]))
        except (TypeError, KeyError, ValueError):
            return cls()

    def advance(self, line: bytes) -> None:
        """Go one line on."""
        self.line += 1
        self.mark = _hash(line)


class GrowingFile:
    """The lines of a file that something else appends to.

    place: how far it was read; may be set before :meth:`lines` to go on from there.
    reads_again: the file was cut or rewritten, so that lines may come that came before; the reader
    sets it to ``False`` at the first new one.
    """

    def __init__(
        self, path: Path, report: Callable[[str], None], *, once: bool, idle_s: float | None
    ) -> None:
        self.place = Place()
        self.reads_again = False
        self._path, self._report = path, report
        self._once, self._idle_s = once, idle_s
        self._stopped = False

    def stop(self) -> None:
        """End :meth:`lines` before the next line."""
        self._stopped = True

    def first(self, count: int) -> list[bytes]:
        """Return the first complete lines, at most ``count``."""
        with self._path.open("rb") as file:
            return list(islice(_complete_lines(file, ending=self._once), count))

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield each complete line after ``place``, and ``None`` whenever there is no new one.

        Ends with the file as it is now (``once``), or after ``idle_s`` without a line.
        """
        quiet_s = 0.0
        with ExitStack() as stack:
            file: IO[bytes] = self._path.open("rb")
            stack.callback(file.close)
            self._skip_read(file)
            while not self._stopped:
                replaced = self._is_replaced(file)  # what is in the old one is read first
                before = self.place.line
                for line in _complete_lines(file, ending=self._once):
                    self.place.advance(line)
                    yield line
                    if self._stopped:
                        return
                if replaced:
                    self._report(f"{self._path}: was replaced; read from its beginning")
                    file = self._path.open("rb")
                    stack.callback(file.close)
                    self.place = Place(os.fstat(file.fileno()).st_ino)
                    continue
                quiet_s = 0.0 if self.place.line > before else quiet_s + POLL_S
                if self._once or (self._idle_s is not None and quiet_s >= self._idle_s):
                    self._report_unread(file)
                    return
                yield None
                await asyncio.sleep(POLL_S)
                if os.fstat(file.fileno()).st_size < file.tell():
                    self._report(f"{self._path}: was cut; read from its beginning")
                    self._begin_again(file)

    def _report_unread(self, file: IO[bytes]) -> None:
        if file.tell() < os.fstat(file.fileno()).st_size:
            self._report(f"{self._path}:{self.place.line + 1}: has no line end yet and is not read")

    def _skip_read(self, file: IO[bytes]) -> None:
        """Go to the end of the last line that was read, if the file still has it there."""
        inode = os.fstat(file.fileno()).st_ino
        if self.place.file == inode:
            line = b""
            for _ in range(self.place.line):
                line = file.readline()
            if self.place.line and _hash(line) != self.place.mark:
                self._report(f"{self._path}: was cut or rewritten; read from its beginning")
                self._begin_again(file)
            return
        if self.place.file:
            self._report(f"{self._path}: is another file now; read from its beginning")
        self.place = Place(inode)

    def _begin_again(self, file: IO[bytes]) -> None:
        file.seek(0)
        self.place = Place(os.fstat(file.fileno()).st_ino)
        self.reads_again = True

    def _is_replaced(self, file: IO[bytes]) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False  # it is being replaced


def _hash(line: bytes) -> str:
    return hashlib.blake2b(line.rstrip(b"\r\n"), digest_size=8).hexdigest()


def _complete_lines(file: IO[bytes], *, ending: bool) -> Iterator[bytes]:
    """Yield the complete lines from here on; one without a line end is left for later.

    Where the file is ``ending``, a last line that is a whole record needs no line end.
    """
    while line := file.readline():
        if not line.endswith(b"\n") and not (ending and _is_record(line)):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
