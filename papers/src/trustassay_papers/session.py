"""Work with models that is stored in a folder of its own: every call, and how many there were."""

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
    check_keys,
    open_calls,
    shared_file,
)
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import CallStore
from trustassay.capabilities import ChatRequest, LocalChatModel, Reply
from trustassay.errors import BackendError
from trustassay.runs.folder import RunFolder, as_stored, check_settings
from trustassay_papers.request_counter import RequestCounter

T = TypeVar("T")


@dataclass(frozen=True)
class SessionOptions:
    """How models are asked; ``most``: requests to chat models at most, failed ones included."""

    calls: CallOptions = field(default_factory=CallOptions)
    most: int | None = None


@dataclass(frozen=True)
class Session:
    """The calls made in a folder, and how its endpoints behaved.

    ``requests`` counts the requests sent to chat models, before interruptions too, and ``failed``
    those of them that failed. ``replies`` counts the replies, stored ones included, and ``cut``
    those of them that were cut at ``max_tokens``.
    """

    endpoints: Mapping[str, Endpoint]
    requests: int
    failed: int
    replies: int
    cut: int


class CountedModels(SampleModels):
    """The models, with a count of the requests sent to chat models."""

    def __init__(self, client: Client, counter: RequestCounter) -> None:
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
        key = self._counter.of(model.name, request).key
        self._counter.ask(key)
        if isinstance(model, LocalChatModel):  # the others count their tries themselves
            future.add_done_callback(partial(self._note, key))
        return future

    def _note(self, key: bytes, future: asyncio.Future[Reply]) -> None:
        if not future.cancelled() and (error := future.exception()):
            self._counter.fail(key, getattr(error, "kind", "error"), str(error))


async def in_session(
    path: Path,
    settings: Mapping[str, Any],
    backends: Backends,
    options: SessionOptions,
    work: Callable[[CountedModels], Awaitable[T]],
) -> tuple[T, Session]:
    """Do ``work`` with the models, and keep every call in the folder ``path``.

    A call with the same settings continues an interrupted session: replies and refusals are
    stored.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
        BackendError: a key is needed and not set.
    """
    folder = RunFolder(path)
    check_keys(backends.endpoints(), [folder.calls_path, shared_file(options.calls.cache)])
    with folder.claimed():
        wanted = as_stored({**settings, "backends": backends.names()})
        if (before := folder.read_json("session")) is not None:
            check_settings(folder.path, before, wanted, "another session")
        else:
            folder.check_empty("session")
            folder.write_json("session", wanted)

        def count(own: CallStore) -> RequestCounter:
            return RequestCounter(own, path / "failures.jsonl", options.most)

        async with open_calls(backends, options.calls, folder.calls_path, count) as client:
            counter = client.counter
            assert isinstance(counter, RequestCounter)
            models = CountedModels(client, counter)
            try:
                found = await work(models)
            except BackendError:
                counter.forget_refusals()  # nothing was found; the cause may be mended by next time
                raise
            used: Counter[str] = sum(models.usage.values(), Counter())
            counts = (counter.used, counter.failed, used["calls"], used["cut"])
        return found, Session(client.endpoints.all(), *counts)
