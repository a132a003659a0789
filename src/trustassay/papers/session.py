"""Run work with models in a folder that stores every call and counts the requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
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
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import ChatRequest, LocalChatModel, Reply
from trustassay.errors import BackendError
from trustassay.papers.request_counter import FolderRequestCounter
from trustassay.runs.folder import RunFolder, check_settings, to_stored

T = TypeVar("T")


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
        self._counter = counter

    @property
    def used(self) -> int:
        """The number of requests sent, failed ones included; those in progress are not counted."""
        return self._counter.used

    def request(
        self, request: ChatRequest, role: str = "model", name: str = ""
    ) -> asyncio.Future[Reply]:
        """Send a request to a chat model."""
        future = super().request(request, role, name)
        model = self._client.backends.find("chat", role, name)
        assert model is not None
        # Counted when it is requested, also if the reply is stored.
        request_key = self._counter.of(model.name, request).key
        self._counter.ask(request_key)
        if isinstance(model, LocalChatModel):  # endpoints count their tries themselves
            future.add_done_callback(partial(self._count_failure, request_key))
        return future

    def _count_failure(self, key: bytes, future: asyncio.Future[Reply]) -> None:
        # A cancelled request was not answered with an error.
        if not future.cancelled() and (error := future.exception()):
            self._counter.fail(key, getattr(error, "kind", "error"), str(error))


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
