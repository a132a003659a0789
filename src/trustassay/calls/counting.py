"""The number of requests sent to chat models, failed ones included, and its limit.

Replies are in the folder's ``calls.sqlite``; failures in its ``failures.jsonl``, one line per
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
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quoted
from operator import attrgetter
from pathlib import Path
from typing import Any

from trustassay.calls.spending import BudgetReachedError
from trustassay.calls.store import CallStore, request_key
from trustassay.capabilities import ChatRequest, Reply, on_sending
from trustassay.errors import CallError, CallFault, RunFolderError
from trustassay.files import named

__all__ = ["Counted", "RequestCounter", "chat_parts", "fields_of"]

PARAMETER = "parameter"
"""The kind of a try that was refused for a parameter, and sent again without it."""
EMPTY_ONCE = "empty once"
"""The kind of a try whose reply was empty, and that was sent again."""
STORED_TOO = frozenset({"empty", EMPTY_ONCE})
"""Kinds of failures whose replies stand among the folder's calls."""
FINAL: tuple[CallFault, ...] = ("refused", "empty")
"""Kinds of failures with which the same request would meet again."""
FORGOTTEN = "forgotten"


_IF_SET = frozenset({"may_be_empty", "schema"})
"""Fields of a request that count in its key only where they are set."""
_FIELDS = {kind: attrgetter(*kind.__slots__) for kind in (ChatRequest, Reply)}


def fields_of(value: ChatRequest | Reply) -> dict[str, Any]:
    """Return the fields as JSON values; without the copies that ``asdict`` makes."""
    kind = Reply if isinstance(value, Reply) else ChatRequest
    return dict(zip(kind.__slots__, _FIELDS[kind](value), strict=True))


def chat_parts(request: ChatRequest) -> tuple[str]:
    """Return what makes up the key of a request to a chat model: its fields as JSON.

    All but the messages are the same in many requests, and so is their JSON. Fields that came
    later count only where they are set: other keys are as they were without them.
    """
    try:
        messages, *others = _FIELDS[ChatRequest](request)
        turns = [f"[{_quoted(role)}, {_quoted(text)}]" for role, text in messages]
        rest = _as_json(*others)
    except TypeError:  # a list among the fields, or what is no text
        return (json.dumps(_told(fields_of(request))),)
    return (f'{{"messages": [{", ".join(turns)}], {rest}',)


@lru_cache(1024, typed=True)  # 1, 1.0 and True are equal, but not as JSON
def _as_json(*values: Any) -> str:
    """Return the JSON of a request's fields after the first, without the first brace."""
    fields = dict(zip(ChatRequest.__slots__[1:], values, strict=True))
    return json.dumps(_told(fields))[1:]


def _told(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are sent, those of ``_IF_SET`` only where they say something."""
    return {k: v for k, v in fields.items() if k != "stand_in" and (v or k not in _IF_SET)}


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
        self._refused: dict[bytes, CallError] = {}
        self._asked: dict[bytes, None] = {}
        stored_too = self._read()
        replied = sum(usage.calls for usage in own.usage("chat").values())
        self._left = replied + self._failed.total() - stored_too

    def of(self, backend: str, request: ChatRequest) -> Counted:
        """Return the counter's view of one request."""
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
        """Raise :class:`CallError` where a request was refused, or answered by nothing, before."""
        if error := self._refused.get(key):
            raise CallError(str(error), error.kind)

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
                self._refused[key] = CallError(error, final)

    def forget_refusals(self) -> None:
        """Let what was refused be asked again; it stays counted."""
        if self._refused:
            self._refused.clear()
            self._write({"kind": FORGOTTEN})

    def _write(self, row: dict[str, str]) -> None:
        with named(self._path), self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(row).encode() + b"\n")

    def _read(self) -> int:
        """Read what failed before, and return how much of it is stored as a call besides.

        A line that a killed process left unfinished is cut off.
        """
        stored_too = 0
        if not self._path.exists():
            return stored_too
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
        self._counter.check(self.key)

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
