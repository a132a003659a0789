"""Run work with models in a folder that stores every call, and count and limit its requests.

Failed requests count too. Replies are in the folder's ``calls.sqlite``, failures in its
``failures.jsonl``, one line per try: ``request`` (its key), ``kind``, ``error``. So a search that
was killed and resumed has the same count as one that was not. Replies from the shared cache do not
count. A request that was in progress when the process ended is sent again, and counts once. An
empty reply is in both files.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trustassay.calls.backends import Backends
from trustassay.calls.client import (
    CallOptions,
    Client,
    SampleModels,
    build_cache_path,
    check_keys,
    open_calls,
)
from trustassay.calls.keys import Keys, chat_parts
from trustassay.calls.prices import BudgetReachedError
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import ChatRequest, LocalChatModel, Reply, on_sending
from trustassay.core.files import Appender, cut_unfinished, name_in_errors
from trustassay.errors import BackendError, CallError, CallFault, RunFolderError
from trustassay.runs.folder import RunFolder, check_settings, to_stored
from trustassay.text.numbers import amount

T = TypeVar("T")

PARAMETER = "parameter"
"""Kind of a try that the endpoint rejected for a parameter; it is sent again without it."""
EMPTY_ONCE = "empty once"
"""Kind of a try whose reply was empty; it is sent again."""
KINDS_WITH_REPLY = frozenset({"empty", EMPTY_ONCE})
"""Kinds of failures whose replies are also among the folder's calls."""
FINAL: tuple[CallFault, ...] = ("refused", "empty")
"""Kinds of failures that the same request would meet again."""
FORGOTTEN = "forgotten"
"""Kind of a line that takes back the refusals before it."""


class FolderRequestCounter:
    """Counts the requests to chat models that belong to a folder.

    Args:
        calls: the folder's calls.
        failures_path: its file of failed tries.
        max_requests: the limit; ``None`` for no limit.
    """

    def __init__(
        self, calls: CallStore, failures_path: Path, max_requests: int | None = None
    ) -> None:
        self._calls, self._failures_path, self._max_requests = calls, failures_path, max_requests
        self._failed: Counter[bytes] = Counter()
        self.refused: dict[bytes, CallError] = {}
        """By request: its refusal or empty reply, from this process or an earlier one."""
        self._keys: dict[bytes, None] = {}
        stored_failures = self._read_failures()
        # An empty reply is stored as a call and as a failure, but was one request.
        replied = sum(usage.calls for usage in calls.usage("chat").values())
        self._sent = replied + self._failed.total() - stored_failures

    def of(self, backend: str, request: ChatRequest) -> CountedFolderRequest:
        """Return the counter's view of one request."""
        return CountedFolderRequest(self, Keys("chat", backend).of(chat_parts(request)))

    @property
    def used(self) -> int:
        """Requests sent for what this process has asked for so far, now or in earlier processes."""
        return self._calls.count_paid(list(self._keys)) + self.failed

    @property
    def failed(self) -> int:
        """How many of these requests failed."""
        return sum(self._failed[key] for key in self._keys)

    def ask(self, key: bytes) -> None:
        """Add a request to those that are counted."""
        self._keys[key] = None

    def admit(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetReachedError: the limit is reached.
        """
        # Checked before sending: the limit is never exceeded, not even by parallel requests.
        if self._max_requests is not None and self._sent >= self._max_requests:
            raise BudgetReachedError(
                f"the limit of {amount(self._max_requests, 'call')} is reached; to continue, run "
                "the same command with a higher limit"
            )
        self._sent += 1

    def fail(self, key: bytes, kind: str, error: str) -> None:
        """Record that a request failed after it was sent."""
        self._failed[key] += 1
        self._remember_refusal(key, kind, error)
        self._append({"request": key.hex(), "kind": kind, "error": error})

    def _remember_refusal(self, key: bytes, kind: str, error: str) -> None:
        # Only these are remembered: other failures may succeed when tried again.
        for final in FINAL:
            if kind == final:
                self.refused[key] = CallError(error, final)

    def forget_refusals(self) -> None:
        """Allow refused requests to be sent again; they stay counted."""
        if self.refused:
            self.refused.clear()
            self._append({"kind": FORGOTTEN})

    def _append(self, row: dict[str, str]) -> None:
        # Unbuffered: the line is in the file before the next request is sent.
        with (
            name_in_errors(self._failures_path),
            closing(Appender(self._failures_path)) as file,
        ):
            file.append(json.dumps(row).encode() + b"\n")

    def _read_failures(self) -> int:
        """Read earlier failures; return how many of them are also stored as calls.

        A line that a killed process left incomplete is cut off.
        """
        stored_failures = 0
        cut_unfinished(self._failures_path)
        lines = (
            self._failures_path.read_bytes().splitlines() if self._failures_path.exists() else []
        )
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                # Refusals before this line may be asked again.
                if row["kind"] == FORGOTTEN:
                    self.refused.clear()
                    continue
                key = bytes.fromhex(row["request"])
                self._failed[key] += 1
                stored_failures += row["kind"] in KINDS_WITH_REPLY
                self._remember_refusal(key, row["kind"], str(row["error"]))
            except (ValueError, KeyError, TypeError):
                raise RunFolderError(
                    f"{self._failures_path}:{number}: damaged; delete the line"
                ) from None
        return stored_failures


class CountedFolderRequest:
    """One request, whose tries are counted."""

    def __init__(self, counter: FolderRequestCounter, key: bytes) -> None:
        self._counter, self.key = counter, key

    def check(self) -> None:
        """Raise :class:`CallError` if it was refused before, or its reply was empty."""
        if error := self._counter.refused.get(self.key):
            raise CallError(str(error), error.kind)

    def admit(self) -> None:
        """Count a try that is about to be sent; raise if the limit is reached."""
        self._counter.admit()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count every further request that an admitted try sends.

        A try that ends with :class:`CallError` is counted by :meth:`record_failure`, as are
        timeouts.
        """
        first = True

        # A backend may send again without a parameter that the endpoint rejected: the try before
        # it failed, and the new one needs a place in the limit.
        def count_sending() -> None:
            nonlocal first
            if not first:
                self._counter.fail(self.key, PARAMETER, "a parameter was refused")
                self._counter.admit()
            first = False

        token = on_sending.set(count_sending)
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

    def record_failure(self, error: CallError, *, retry: bool = False) -> None:
        """Count a failed try; ``retry``: its reply was empty, and it is sent once more."""
        self._counter.fail(self.key, EMPTY_ONCE if retry else error.kind, str(error))


@dataclass(frozen=True)
class SessionOptions:
    """How models are asked.

    ``max_requests`` limits the requests to chat models, failed ones included.
    """

    calls: CallOptions = field(default_factory=CallOptions)
    max_requests: int | None = None


@dataclass(frozen=True)
class SessionSummary:
    """The calls made in a folder, and how its endpoints behaved."""

    endpoints: Mapping[str, Endpoint]
    requests: int
    """Requests sent to chat models, also those before interruptions."""
    failed: int
    """How many of the requests failed."""
    replies: int
    """Replies, stored ones included."""
    cut: int
    """How many of the replies were cut at ``max_tokens``."""


class CountedModels(SampleModels):
    """The models, with a count of the requests sent to chat models."""

    def __init__(self, client: Client, counter: FolderRequestCounter) -> None:
        super().__init__(client)
        self.counter = counter

    def request(
        self, request: ChatRequest, role: str = "model", name: str = ""
    ) -> asyncio.Future[Reply]:
        """Send a request to a chat model."""
        future = super().request(request, role, name)
        model = self._client.backends.find("chat", role, name)
        assert model is not None
        # Counted when it is requested, also if the reply is stored.
        request_key = self.counter.of(model.name, request).key
        self.counter.ask(request_key)
        if isinstance(model, LocalChatModel):  # endpoints count their tries themselves
            future.add_done_callback(partial(self._count_failure, request_key))
        return future

    def _count_failure(self, key: bytes, future: asyncio.Future[Reply]) -> None:
        # A cancelled request was not answered with an error.
        if not future.cancelled() and (error := future.exception()):
            self.counter.fail(key, getattr(error, "kind", "error"), str(error))


async def run_in_session(
    path: Path,
    settings: Mapping[str, Any],
    backends: Backends,
    options: SessionOptions,
    work: Callable[[CountedModels], Awaitable[T]],
) -> tuple[T, SessionSummary]:
    """Run ``work`` with the models, and store every call in the folder ``path``.

    A call with the same settings continues an interrupted session: replies and refusals are
    stored.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError: a key is needed and not set.
    """
    folder = RunFolder(path)
    # A key is only needed if some reply is stored nowhere.
    check_keys(backends.endpoints(), [folder.calls_path, build_cache_path(options.calls.cache)])
    with folder.claim():
        current_settings = to_stored({**settings, "backends": backends.names()})
        if (stored := folder.read_json("session")) is not None:
            # Replies depend on the settings, so a folder belongs to one set of them.
            check_settings(folder.path, stored, current_settings, "another session")
        else:
            folder.check_empty("session")
            folder.write_json("session", current_settings)

        def count(calls: CallStore) -> FolderRequestCounter:
            return FolderRequestCounter(calls, path / "failures.jsonl", options.max_requests)

        # Replies come from the folder, then from the shared cache, then from the model.
        async with open_calls(backends, options.calls, folder.calls_path, count) as client:
            counter = client.counter
            assert isinstance(counter, FolderRequestCounter)
            models = CountedModels(client, counter)
            try:
                result = await work(models)
            except BackendError:
                # There is no result yet, and the cause may be fixed before the next call.
                counter.forget_refusals()
                raise
            used: Counter[str] = sum(models.usage.values(), Counter())
            counts = (counter.used, counter.failed, used["calls"], used["cut"])
        return result, SessionSummary(client.endpoints.all(), *counts)
