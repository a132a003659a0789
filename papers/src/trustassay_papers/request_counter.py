"""How many requests to chat models left for a folder, and the most that may.

The number of requests sent to chat models, failed ones included, is counted in a folder. Replies
are in the folder's ``calls.sqlite``; failures in its ``failures.jsonl``, one line per
try: ``request`` (its key), ``kind``, ``error``. So a search that was killed and resumed has the
same count as one that was not. Replies from the shared file do not count. A request that was
in progress when the process ended is sent again, and counts once. An empty reply is in both.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trustassay.calls.prices import BudgetReachedError
from trustassay.calls.replies import chat_parts
from trustassay.calls.store import CallStore, Keys
from trustassay.capabilities import ChatRequest, on_sending
from trustassay.errors import CallError, CallFault, RunFolderError
from trustassay.files import cut_unfinished, named

PARAMETER = "parameter"
"""The kind of a try that was refused for a parameter, and sent again without it."""
EMPTY_ONCE = "empty once"
"""The kind of a try whose reply was empty, and that was sent again."""
STORED_TOO = frozenset({"empty", EMPTY_ONCE})
"""Kinds of failures whose replies stand among the folder's calls."""
FINAL: tuple[CallFault, ...] = ("refused", "empty")
"""Kinds of failures with which the same request would meet again."""
FORGOTTEN = "forgotten"


class RequestCounter:
    """Counts the requests to chat models that belong to a folder.

    Args:
        own: the folder's calls.
        path: its file of failed tries.
        most: the maximum number of requests; ``None`` for no limit.
    """

    def __init__(self, own: CallStore, path: Path, most: int | None = None) -> None:
        self._own, self._path, self._most = own, path, most
        self._failed: Counter[bytes] = Counter()
        self.refused: dict[bytes, CallError] = {}
        """What was refused before, or answered by nothing."""
        self._asked: dict[bytes, None] = {}
        stored_too = self._read()
        replied = sum(usage.calls for usage in own.usage("chat").values())
        self._left = replied + self._failed.total() - stored_too

    def of(self, backend: str, request: ChatRequest) -> Counted:
        """Return the counter's view of one request."""
        return Counted(self, Keys("chat", backend).of(chat_parts(request)))

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

    def admit(self) -> None:
        """Count a request that is about to leave.

        Raises:
            BudgetReachedError: no more may leave.
        """
        if self._most is not None and self._left >= self._most:
            raise BudgetReachedError(
                f"the budget of {self._most:,} calls is reached; to continue, run the same command "
                "with a larger one"
            )
        self._left += 1

    def fail(self, key: bytes, kind: str, error: str) -> None:
        """Write down that a request failed that had been let out."""
        self._failed[key] += 1
        self._remember(key, kind, error)
        self._write({"request": key.hex(), "kind": kind, "error": error})

    def _remember(self, key: bytes, kind: str, error: str) -> None:
        for final in FINAL:
            if kind == final:
                self.refused[key] = CallError(error, final)

    def forget_refusals(self) -> None:
        """Let what was refused be asked again; it stays counted."""
        if self.refused:
            self.refused.clear()
            self._write({"kind": FORGOTTEN})

    def _write(self, row: dict[str, str]) -> None:
        with named(self._path), self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(row).encode() + b"\n")

    def _read(self) -> int:
        """Read what failed before, and return how much of it is stored as a call besides.

        A line that a killed process left unfinished is cut off.
        """
        stored_too = 0
        cut_unfinished(self._path)
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                if row["kind"] == FORGOTTEN:
                    self.refused.clear()
                    continue
                key = bytes.fromhex(row["request"])
                self._failed[key] += 1
                stored_too += row["kind"] in STORED_TOO
                self._remember(key, row["kind"], str(row["error"]))
            except (ValueError, KeyError, TypeError):
                raise RunFolderError(f"{self._path}:{number}: damaged (delete the line)") from None
        return stored_too


class Counted:
    """One request, each try of which is counted."""

    def __init__(self, counter: RequestCounter, key: bytes) -> None:
        self._counter, self.key = counter, key

    def check(self) -> None:
        """Raise :class:`CallError` where it was refused, or answered by nothing, before."""
        if error := self._counter.refused.get(self.key):
            raise CallError(str(error), error.kind)

    def admit(self) -> None:
        """Count a try that is about to leave; raise where no more may."""
        self._counter.admit()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count every further request that leaves on behalf of a try that was admitted.

        What :class:`CallError` ends is counted by :meth:`failed`, which also counts timeouts.
        """
        first = True

        def leaves() -> None:
            nonlocal first
            if not first:
                self._counter.fail(self.key, PARAMETER, "a parameter was refused")
                self._counter.admit()
            first = False

        token = on_sending.set(leaves)
        try:
            yield
        except (CallError, asyncio.CancelledError):
            raise
        except BudgetReachedError:  # of a further request: those before it are counted
            raise
        except Exception as error:
            self._counter.fail(self.key, "error", str(error))
            raise
        finally:
            on_sending.reset(token)

    def failed(self, error: CallError, *, again: bool = False) -> None:
        """Count a try that failed; ``again`` where it was empty and is sent once more."""
        self._counter.fail(self.key, EMPTY_ONCE if again else error.kind, str(error))
