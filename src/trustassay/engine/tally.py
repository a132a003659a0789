"""How many requests to chat models have left, failed ones too, and the most that may.

What was replied stands in the folder's ``calls.sqlite``; what failed in its ``failures.jsonl``, a
line a try: ``request`` (its key), ``kind``, ``error``. So a search that goes on after it was killed
counts as one that was not. Replies taken from the shared file count nothing. A request that was
under way when the process ended is asked again, and counts once.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trustassay.backends.http import on_sending
from trustassay.capabilities import CallError, ChatRequest, Reply
from trustassay.engine.cache import CallStore, request_key
from trustassay.engine.folder import RunFolderError
from trustassay.engine.usage import BudgetReachedError
from trustassay.files import named

__all__ = ["Counted", "Tally", "chat_parts", "fields_of"]

PARAMETER = "parameter"
"""The kind of a try that was refused for a parameter, and sent again without it."""
FORGOTTEN = "forgotten"


def fields_of(value: ChatRequest | Reply) -> dict[str, Any]:
    """Return the fields as JSON values; without the copies that ``asdict`` makes."""
    return {name: getattr(value, name) for name in value.__slots__}


def chat_parts(request: ChatRequest) -> tuple[str]:
    """Return what makes up the key of a request to a chat model."""
    return (json.dumps(fields_of(request)),)


class Tally:
    """Counts the requests to chat models that belong to a folder.

    Args:
        own: the folder's calls.
        path: its file of failed tries.
        most: the most requests that may leave; ``None`` for no such limit.
    """

    def __init__(self, own: CallStore, path: Path, most: int | None = None) -> None:
        self._own, self._path, self._most = own, path, most
        self._failed: Counter[bytes] = Counter()
        self._refused: dict[bytes, str] = {}
        self._asked: dict[bytes, None] = {}
        self._read()
        replied = sum(usage.calls for usage in own.usage("chat").values())
        self._left = replied + self._failed.total()

    def of(self, backend: str, request: ChatRequest) -> Counted:
        """Return the tally's view of one request."""
        return Counted(self, request_key("chat", backend, chat_parts(request)))

    @property
    def used(self) -> int:
        """The requests that left for what was asked so far in this process, by it or before it."""
        return self._own.paid(list(self._asked)) + self.failed

    @property
    def failed(self) -> int:
        """Those of them that failed."""
        return sum(self._failed[key] for key in self._asked)

    def ask(self, key: bytes) -> None:
        """Say that a request belongs to what is counted."""
        self._asked[key] = None

    def check(self, key: bytes) -> None:
        """Raise :class:`CallError` where the endpoint has refused a request before."""
        if key in self._refused:
            raise CallError(self._refused[key], "refused")

    def admit(self) -> None:
        """Count a request that is about to leave.

        Raises:
            BudgetReachedError: no more may leave.
        """
        if self._most is not None and self._left >= self._most:
            raise BudgetReachedError(
                f"the budget of {self._most:,} calls is reached; the same command with a larger "
                "one goes on"
            )
        self._left += 1

    def fail(self, key: bytes, kind: str, error: str) -> None:
        """Write down that a request failed that had been let out."""
        self._failed[key] += 1
        if kind == "refused":
            self._refused[key] = error
        self._write({"request": key.hex(), "kind": kind, "error": error})

    def forget_refusals(self) -> None:
        """Let what was refused be asked again; it stays counted."""
        if self._refused:
            self._refused.clear()
            self._write({"kind": FORGOTTEN})

    def _write(self, row: dict[str, str]) -> None:
        with named(self._path), self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(row).encode() + b"\n")

    def _read(self) -> None:
        """Read what failed before; a line that a killed process left unfinished is cut off."""
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        sound = content[: content.rfind(b"\n") + 1]
        if sound != content:
            with self._path.open("r+b") as file:
                file.truncate(len(sound))
        for number, line in enumerate(sound.splitlines(), 1):
            try:
                row = json.loads(line)
                if row["kind"] == FORGOTTEN:
                    self._refused.clear()
                    continue
                key = bytes.fromhex(row["request"])
                self._failed[key] += 1
                if row["kind"] == "refused":
                    self._refused[key] = str(row["error"])
            except (ValueError, KeyError, TypeError):
                raise RunFolderError(f"{self._path}:{number}: damaged (delete the line)") from None


class Counted:
    """One request, each try of which is counted."""

    def __init__(self, tally: Tally, key: bytes) -> None:
        self._tally, self.key = tally, key

    def check(self) -> None:
        """Raise :class:`CallError` where the endpoint has refused it before."""
        self._tally.check(self.key)

    def admit(self) -> None:
        """Count a try that is about to leave; raise where no more may."""
        self._tally.admit()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count every further request that leaves on behalf of a try that was admitted.

        What :class:`CallError` ends is counted by :meth:`failed`, which also hears of timeouts.
        """
        first = True

        def leaves() -> None:
            nonlocal first
            if not first:
                self._tally.fail(self.key, PARAMETER, "a parameter was refused")
                self._tally.admit()
            first = False

        token = on_sending.set(leaves)
        try:
            yield
        except (CallError, asyncio.CancelledError):
            raise
        except BudgetReachedError:  # of a further request: those before it are counted
            raise
        except Exception as error:
            self._tally.fail(self.key, "error", str(error))
            raise
        finally:
            on_sending.reset(token)

    def failed(self, error: CallError) -> None:
        """Count a try that failed."""
        self._tally.fail(self.key, error.kind, str(error))
