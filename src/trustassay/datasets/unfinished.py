"""A file of results that is finished whole, and goes on where a killed process stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["UnfinishedError", "UnfinishedFile"]


class UnfinishedError(ValueError):
    """What an earlier process left was made with other settings."""


class UnfinishedFile:
    """One line a result, in order, in ``.NAME.part`` beside the file that they become.

    The first line holds the settings. ``done`` says how many results are there; a result without a
    record keeps its place with the reason of its failure, so that counting lines is enough to know
    where to go on. Use as a context manager; :meth:`finish` writes the file.

    Raises:
        UnfinishedError: the settings are not those of the results that are there.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}.part")
        self.done = 0
        self.failed: dict[str, str] = {}
        out.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._opened(json.dumps({"settings": dict(settings)}, sort_keys=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a result; it is out of this process when this returns."""
        self._write({"record": record})

    def fail(self, identifier: str, reason: str) -> None:
        """Append a failure in place of a result."""
        self.failed[identifier] = reason
        self._write({"failed": identifier, "reason": reason})

    def finish(self, flag: str) -> tuple[int, int]:
        """Write the results to the file, whole or not at all.

        Returns how many there are, and in how many of them the field ``flag`` is true.
        """
        whole = self.out.with_name(f".{self.out.name}.whole")
        written = flagged = 0
        with self.path.open(encoding="utf-8") as lines, whole.open("w", encoding="utf-8") as file:
            next(lines)
            for line in lines:
                if (record := json.loads(line).get("record")) is not None:
                    file.write(_line(record))
                    written += 1
                    flagged += bool(record.get(flag))
        whole.replace(self.out)
        self.path.unlink()
        return written, flagged

    def _opened(self, first: str) -> IO[str]:
        if not self.path.exists() or not self._cut_to_whole_lines():
            file = self.path.open("w", encoding="utf-8")
            file.write(first + "\n")
            file.flush()
            return file
        with self.path.open(encoding="utf-8") as lines:
            if next(lines).rstrip("\n") != first:
                raise UnfinishedError(
                    f"{self.path}: holds unfinished work with another input or other settings; "
                    "go on with those, or remove it"
                )
            for line in lines:
                self.done += 1
                content = json.loads(line)
                if "failed" in content:
                    self.failed[content["failed"]] = content["reason"]
        return self.path.open("a", encoding="utf-8")

    def _cut_to_whole_lines(self) -> int:
        """Drop what stands after the last line end; return how many bytes are left."""
        with self.path.open("rb+") as file:
            size = sum(len(line) for line in file if line.endswith(b"\n"))
            file.truncate(size)
        return size

    def _write(self, content: Mapping[str, Any]) -> None:
        self._file.write(_line(content))
        self._file.flush()
        self.done += 1


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, default=str) + "\n"
