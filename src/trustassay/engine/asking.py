"""One model behind an endpoint, as the engine calls it: limited, tried again, paid for."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from trustassay.capabilities import (
    BackendError,
    CallError,
    ChatModel,
    ChatRequest,
    EndpointLimits,
    Reply,
    Vectors,
)
from trustassay.engine.limits import Endpoint
from trustassay.engine.replies import Keep, allowed, empty_reply
from trustassay.engine.tally import Counted, Tally
from trustassay.engine.usage import CHARACTERS_PER_TOKEN, Purse, Tokens, estimated_tokens

__all__ = ["AsyncEmbedder", "ChatCaller", "EmbeddingCaller", "Endpoints"]

T = TypeVar("T")
EMPTY_TRIES = 2
"""Tries for a reply that is empty by chance; one that was cut before it began is no such case."""


class AsyncEmbedder(Protocol):
    """An embedding model behind an endpoint."""

    name: str
    endpoint_limits: EndpointLimits

    async def avectors(self, texts: Sequence[str]) -> Vectors:
        """Return shape (n, d) for n texts; raises :class:`CallError`."""
        ...


class Endpoints:
    """The endpoints of a run, one for each address."""

    def __init__(self, concurrency: int | None = None) -> None:
        """Make none yet; ``concurrency`` replaces what the backends' own limits say of it."""
        self._concurrency = concurrency
        self._found: dict[str, Endpoint] = {}

    def of(self, backend: Any, limits: EndpointLimits) -> Endpoint:
        """Return the endpoint that a backend speaks to.

        Raises:
            BackendError: another backend gave it other limits.
        """
        if self._concurrency:
            limits = replace(limits, concurrency=self._concurrency)
        address = getattr(backend, "endpoint", backend.name)
        endpoint = self._found.setdefault(address, Endpoint(limits))
        if limits != endpoint.limits:
            raise BackendError(f"{address}: is given two kinds of limits in one run")
        return endpoint

    def all(self) -> dict[str, Endpoint]:
        """Return all by their address."""
        return dict(self._found)


class _Caller:
    """What calls for text and calls for vectors have in common."""

    def __init__(self, name: str, endpoint: Endpoint, purse: Purse) -> None:
        self._name, self._endpoint, self._purse = name, endpoint, purse
        self._closed: str | None = None
        self._estimated = self._counted = 0

    async def _called(
        self,
        work: Callable[[], Awaitable[T]],
        tokens: Tokens,
        taken: Callable[[T], Tokens],
        counted: Counted | None = None,
    ) -> tuple[T, float]:
        """Return what ``work`` gave, and the seconds that its last try took."""
        self._check()
        estimated, tokens = tokens.prompt, self._corrected(tokens)
        reserved = await self._purse.reserve(self._name, tokens)
        paid: Tokens | None = None
        began = 0.0

        def check() -> None:
            self._check()
            if counted:
                counted.admit()

        async def timed() -> T:
            nonlocal began
            began = time.perf_counter()
            return await work()

        try:
            failed = counted.failed if counted else lambda _: None
            found = await self._endpoint.call(timed, sum(tokens), check, failed)
            seconds = time.perf_counter() - began
            paid = taken(found)
            self._estimated += estimated
            self._counted += paid.prompt
        except CallError as error:
            if error.kind == "closed":
                self._closed = str(error)
            if error.kind == "timeout" and self._name not in str(error):
                words = f"{self._name}: {error}"
                raise CallError(words, error.kind, error.retry_after_s) from None
            raise
        finally:
            await self._purse.settle(reserved, self._name, paid)
        self._endpoint.took(sum(paid) - sum(tokens))
        return found, seconds

    def _corrected(self, tokens: Tokens) -> Tokens:
        """Return an estimate with more tokens for a prompt, where so far it took more than thought.

        Never with fewer: what is set aside for a call should be enough for it.
        """
        ratio = max(1.0, self._counted / self._estimated) if self._estimated else 1.0
        return Tokens(math.ceil(tokens.prompt * ratio), tokens.reply)

    def _check(self) -> None:
        """Let no call out to a model that said that it answers none."""
        if self._closed is not None:
            raise CallError(self._closed, "closed")


class ChatCaller(_Caller):
    """Asks a chat model; ``keep`` stores what it replied without a word."""

    def __init__(
        self,
        model: ChatModel,
        endpoint: Endpoint,
        purse: Purse,
        keep: Keep,
        tally: Tally | None = None,
    ) -> None:
        super().__init__(model.name, endpoint, purse)
        self._model, self._keep, self._tally = model, keep, tally

    async def __call__(self, requests: Sequence[ChatRequest]) -> tuple[list[Reply], float]:
        """Answer the one request, and say how long the endpoint took.

        Raises:
            BackendError: it is not answered: the last try's failure, or the budget is reached.
        """
        (request,) = requests
        counted = self._tally.of(self._name, request) if self._tally else None
        if counted:
            counted.check()
        tries = 0
        while True:
            reply, seconds = await self._replied(request, counted)
            error = empty_reply(self._name, request, reply)
            if error is None:
                return [allowed(request, reply)], seconds
            self._keep(request, reply, seconds)
            self._endpoint.failures[error.kind] += 1
            tries += 1
            again = tries < EMPTY_TRIES and reply.finish != "length"
            if counted:
                counted.failed(error, again=again)
            if not again:
                raise error if tries == 1 else CallError(f"{error} (after {tries} tries)", "empty")

    async def _replied(self, request: ChatRequest, counted: Counted | None) -> tuple[Reply, float]:
        """Return what the endpoint replied to one request, and how long it took."""
        expected = estimated_tokens(request)

        async def work() -> Reply:
            if counted is None:
                return await replied()
            with counted.sending():
                return await replied()

        async def replied() -> Reply:
            reply = await self._model.reply(request)
            if not isinstance(reply, Reply):
                raise BackendError(f"{self._name} returned {reply!r:.60} in place of a Reply")
            return reply

        def taken(reply: Reply) -> Tokens:
            told = (reply.prompt_tokens, reply.reply_tokens)
            return Tokens(*(e if t is None else t for t, e in zip(told, expected, strict=True)))

        return await self._called(work, expected, taken, counted)


class EmbeddingCaller(_Caller):
    """Asks an embedding model for the vectors of a batch."""

    def __init__(self, embedder: AsyncEmbedder, endpoint: Endpoint, purse: Purse) -> None:
        super().__init__(embedder.name, endpoint, purse)
        self._embedder = embedder

    async def __call__(self, texts: Sequence[str]) -> tuple[list[Any], float]:
        """Return a vector for each text, and how long the endpoint took.

        Raises:
            BackendError: as :class:`ChatCaller`.
        """
        tokens = Tokens(sum(len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts), 0)
        found, seconds = await self._called(
            lambda: self._embedder.avectors(texts), tokens, lambda _: tokens
        )
        vectors = np.asarray(found, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise BackendError(f"{self._name} did not return a vector for each text")
        return list(vectors), seconds
