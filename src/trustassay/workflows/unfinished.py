"""A file of results that is written in full or not at all, and can be resumed."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, TypeVar

from trustassay.errors import UsageError
from trustassay.files import named, whole

__all__ = ["Failure", "UnfinishedError", "UnfinishedFile", "locked"]

T = TypeVar("T")

FINISHED = {"finished": True}
"""The last line if the file was written although some items had failed."""


class UnfinishedError(UsageError):
    """An earlier process left unfinished work with other settings, or is still working."""


class Failure(NamedTuple):
    """Why an item has no result."""

    id: str
    reason: str


class UnfinishedFile:
    """Results of items, in their order, in ``.NAME.part`` next to the file that they become.

    The first line holds the settings, each other line the place of an item and its record or its
    failure. Doing the same work again continues after the last line and tries the failed items
    again; the part file is kept as long as an item has failed. Use as a context manager.

    ``done`` is the number of items that have a record or have failed, ``failed`` holds the
    failures by place, and ``counts`` the sums of what was counted with the records.

    Raises:
        UnfinishedError: there are unfinished results with other settings, or another process is
            working on them.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}.part")
        self.done = 0
        self.failed: dict[int, Failure] = {}
        self.counts: Counter[str] = Counter()
        out.parent.mkdir(parents=True, exist_ok=True)
        self._file = locked(self.path)
        try:
            self._read(_line({"settings": dict(settings)}, sort_keys=True))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with named(self.path):
            self._file.close()

    @property
    def written(self) -> int:
        """The number of records."""
        return self.done - len(self.failed)

    def todo(self, items: Iterable[T]) -> Iterator[tuple[int, T]]:
        """Yield the items without a record, and their places: what failed, then all new ones."""
        done, failed = self.done, frozenset(self.failed)
        return ((i, item) for i, item in enumerate(items) if i >= done or i in failed)

    def add(self, place: int, record: Mapping[str, Any], **counts: int) -> None:
        """Append the record of an item; when this returns, a killed process does not lose it.

        New items come in their order.
        """
        self._write({"place": place, "record": record, "counts": counts})

    def fail(self, place: int, identifier: str, reason: str) -> None:
        """Append why an item has no record."""
        self._write({"place": place, "failed": identifier, "reason": reason})

    def finish(self) -> None:
        """Write all records to the file, in full or not at all."""
        late = {}  # the records of items that had failed before
        due = 0
        for content in self._results():
            if content["place"] == due:
                due += 1
            elif "record" in content:
                late[content["place"]] = content["record"]
        due = 0
        with whole(self.out, ".whole") as file:
            for content in self._results():
                if content["place"] == due:
                    record = content.get("record", late.get(due))
                    if record is not None:
                        file.write(_line(record))
                    due += 1
        if self.failed:
            self._append(_line(FINISHED))
        else:
            self.path.unlink()

    def _read(self, settings: bytes) -> None:
        """Read the existing results, up to the last line end."""
        self._file.seek(0)
        first, last, size = b"", b"", 0
        for line in self._file:
            if line.endswith(b"\n"):
                first, last, size = first or line, line, size + len(line)
        if first != settings:
            if first and last != _line(FINISHED):
                raise UnfinishedError(
                    f"{self.path}: holds unfinished work with another input or other settings; "
                    "continue with those, or remove it"
                )
            size = 0
        self._file.truncate(size)
        if not size:
            self._append(settings)
        try:
            for content in self._results():
                self._count(content)
        except (ValueError, KeyError, TypeError):
            raise UnfinishedError(f"{self.path}: damaged; remove it, and start again") from None

    def _results(self) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as lines:
            next(lines)
            for line in lines:
                if (content := json.loads(line)) != FINISHED:
                    yield content

    def _count(self, content: Mapping[str, Any]) -> None:
        place = content["place"]
        if place == self.done:
            self.done += 1
        elif self.failed.pop(place, None) is None:
            raise ValueError(f"item {place} is neither the next one nor one that failed")
        if "record" in content:
            self.counts.update(content["counts"])
        else:
            self.failed[place] = Failure(content["failed"], content["reason"])

    def _write(self, content: Mapping[str, Any]) -> None:
        self._count(content)
        self._append(_line(content))

    def _append(self, line: bytes) -> None:
        with named(self.path):
            self._file.write(line)
            self._file.flush()


def locked(path: Path) -> IO[bytes]:
    """Open a file for this process alone; one that is removed meanwhile is created again.

    Raises:
        UnfinishedError: another process has locked it.
    """
    while True:
        file = path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except BlockingIOError:
            file.close()
            raise UnfinishedError(f"{path}: another process is working on it") from None
        file.close()


def _line(content: Mapping[str, Any], *, sort_keys: bool = False) -> bytes:
    text = json.dumps(content, ensure_ascii=False, default=str, sort_keys=sort_keys)
    return text.encode() + b"\n"
