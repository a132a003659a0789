"""One model behind an endpoint, as the engine calls it: limited, tried again, paid for."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from trustassay.calls.leases import Leases
from trustassay.calls.prices import BudgetLedger, Counted, RequestCounter, Tokens, estimated_tokens
from trustassay.calls.replies import allowed, empty_reply, keep_empty
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import Calls
from trustassay.capabilities import ChatModel, ChatRequest, EndpointLimits, Reply, limits_of
from trustassay.errors import BackendError, CallError

T = TypeVar("T")
EMPTY_TRIES = 2
"""Tries for a reply that is empty by chance; one that was cut before it began is no such case."""


def calls_at_once(backends: Iterable[Any]) -> int:
    """Return the most calls that any of these endpoints takes at once."""
    return max((limits_of(backend).concurrency for backend in backends), default=0)


def samples_at_once(asked_for: int | None, usual: int, backends: Iterable[Any]) -> int:
    """Return how many samples to have in flight: as asked for, else enough for every endpoint.

    Twice as many as there are calls at once, since a sample also waits for other models.
    """
    return asked_for or max(usual, 2 * calls_at_once(backends))


def held_back(option: str, asked_for: int | None, backends: Iterable[Any]) -> list[str]:
    """Return the endpoints whose own word on calls at once is larger than the option's."""
    usual = EndpointLimits().concurrency
    result = {backend.name: limits_of(backend).concurrency for backend in backends}
    return [
        f"{option} {asked_for} limits {name} to less than its own concurrency={own}"
        for name, own in result.items()
        if asked_for and own not in (usual, asked_for) and own > asked_for
    ]


class Endpoints:
    """The endpoints of a run, one for each address."""

    def __init__(
        self,
        concurrency: int | None = None,
        again_after_s: float | None = None,
        sharing: Leases | None = None,
    ) -> None:
        """Make none yet; ``concurrency`` replaces what the backends' own limits say of it.

        One that was given up is asked again after ``again_after_s``; ``None``: never. ``sharing``
        says how the limits are kept together with other processes.
        """
        self._concurrency, self._sharing = concurrency, sharing
        self._again_after_s = math.inf if again_after_s is None else again_after_s
        self._found: dict[str, Endpoint] = {}

    def of(self, backend: Any, limits: EndpointLimits) -> Endpoint:
        """Return the endpoint that a backend speaks to.

        Raises:
            BackendError: another backend gave it other limits.
        """
        if self._concurrency:
            limits = replace(limits, concurrency=self._concurrency)
        address = getattr(backend, "endpoint", backend.name)
        sharing, whole = self._sharing, limits
        if sharing:
            limits = sharing.part(whole)
        endpoint = self._found.get(address)
        if endpoint is None:
            shared = sharing.pace(address, whole) if sharing else None
            endpoint = self._found[address] = Endpoint(
                limits, name=address, again_after_s=self._again_after_s, shared=shared
            )
        if limits != endpoint.limits:
            raise BackendError(f"{address}: has two different sets of limits in one run")
        return endpoint

    def all(self) -> dict[str, Endpoint]:
        """Return all by their address."""
        return dict(self._found)


class Caller:
    """What calls for text, for vectors and to knowledge bases have in common.

    Called with a batch, each returns its replies, and how long the endpoint took.

    Raises:
        BackendError: by all calls: the last try's failure, or the budget is reached.
    """

    def __init__(self, name: str, endpoint: Endpoint, ledger: BudgetLedger) -> None:
        self._name, self._endpoint, self._ledger = name, endpoint, ledger
        self._closed: str | None = None
        self._closed_until = math.inf
        self._stopped = False
        self._estimated = self._counted = 0
        self._sent = 0
        self._idle = asyncio.Event()

    def enough(self) -> int:
        """Return how many calls need to be made for the endpoint never to wait for one."""
        allowed = self._endpoint.allowed
        return allowed + allowed // 4

    def stop(self) -> None:
        """Let no further request leave; who waits for one is given up."""
        self._stopped = True

    async def idle(self) -> None:
        """Return when no request is in progress any more; after :meth:`stop`."""
        if self._sent:
            await self._idle.wait()

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
        reserved = await self._ledger.reserve(self._name, tokens)
        paid: Tokens | None = None
        began, sent, thought = 0.0, 0, tokens.prompt + tokens.reply

        def check() -> None:
            self._check()
            if counted:
                counted.admit()

        async def timed() -> T:
            nonlocal began, sent
            began = time.perf_counter()
            sent = 1
            self._under_way(1)
            try:
                return await work()
            except BaseException:
                sent = 0
                self._under_way(-1)
                raise

        try:
            failed = counted.failed if counted else lambda _: None
            result = await self._endpoint.call(timed, thought, check, failed)
            seconds = time.perf_counter() - began
            paid = taken(result)
            self._estimated += estimated
            self._counted += paid.prompt
        except CallError as error:
            if error.kind == "closed":
                self._closed = str(error)
                self._closed_until = time.monotonic() + self._endpoint.again_after_s
            if error.kind == "timeout" and self._name not in str(error):
                message = f"{self._name}: {error}"
                raise CallError(message, error.kind, error.retry_after_s) from None
            raise
        finally:
            try:
                await self._ledger.settle(reserved, self._name, paid)
            finally:
                self._under_way(-sent)  # only now: whoever waits for it closes what is below
        self._endpoint.took(paid.prompt + paid.reply - thought)
        return result, seconds

    def _under_way(self, more: int) -> None:
        self._sent += more
        if self._stopped and not self._sent:
            self._idle.set()

    def _corrected(self, tokens: Tokens) -> Tokens:
        """Return an estimate with more tokens for a prompt, where so far it took more than thought.

        Never with fewer: what is set aside for a call should be enough for it.
        """
        if self._counted <= self._estimated:
            return tokens
        ratio = self._counted / self._estimated if self._estimated else 1.0
        return Tokens(math.ceil(tokens.prompt * ratio), tokens.reply)

    def _check(self) -> None:
        """Let no call out to a model that said that it answers none, nor when the work ends."""
        if self._stopped:
            raise asyncio.CancelledError
        if self._closed is not None and time.monotonic() < self._closed_until:
            raise CallError(self._closed, "closed")


class ChatCaller(Caller):
    """Asks a chat model; what it replied without a word is also among its ``calls``."""

    def __init__(
        self,
        model: ChatModel,
        endpoint: Endpoint,
        ledger: BudgetLedger,
        calls: Calls,
        counter: RequestCounter | None = None,
    ) -> None:
        super().__init__(model.name, endpoint, ledger)
        self._model, self._calls, self._counter = model, calls, counter

    async def __call__(self, requests: Sequence[ChatRequest]) -> tuple[list[Reply], float]:
        """Answer the one request."""
        (request,) = requests
        counted = self._counter.of(self._name, request) if self._counter else None
        if counted:
            counted.check()
        tries = 0
        while True:
            reply, seconds = await self._replied(request, counted)
            error = empty_reply(self._name, request, reply)
            if error is None:
                return [allowed(request, reply)], seconds
            keep_empty(self._name, self._calls, request, reply, seconds)
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
            with counted.sending() if counted else nullcontext():
                reply = await self._model.reply(request)
                if not isinstance(reply, Reply):
                    raise BackendError(f"{self._name} returned {reply!r:.60} instead of a Reply")
                return reply

        def taken(reply: Reply) -> Tokens:
            prompt, text = reply.prompt_tokens, reply.reply_tokens
            return Tokens(
                expected.prompt if prompt is None else prompt,
                expected.reply if text is None else text,
            )

        return await self._called(work, expected, taken, counted)


class BatchCaller(Caller):
    """Asks what is no chat model: an embedding model, or a service that costs no tokens.

    ask: for a batch, which takes so many ``tokens``; ``checked`` makes its replies of what came.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        ledger: BudgetLedger,
        ask: Callable[[list[Any]], Awaitable[Any]],
        checked: Callable[[list[Any], Any], list[Any]] = lambda _, found: found,
        tokens: Callable[[list[Any]], int] = lambda _: 0,
    ) -> None:
        super().__init__(name, endpoint, ledger)
        self._ask, self._checked, self._tokens = ask, checked, tokens

    async def __call__(self, items: list[Any]) -> tuple[list[Any], float]:
        """Return the replies to a batch."""
        tokens = Tokens(self._tokens(items), 0)
        result, seconds = await self._called(lambda: self._ask(items), tokens, lambda _: tokens)
        return self._checked(items, result), seconds
