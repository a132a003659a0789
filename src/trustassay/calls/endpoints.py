"""One model behind an endpoint, as the engine calls it: limited, retried, counted and paid for."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from trustassay.calls.leases import Leases
from trustassay.calls.prices import (
    BudgetLedger,
    CountedRequest,
    RequestLimiter,
    TokenCounts,
    estimate_tokens,
)
from trustassay.calls.replies import find_empty_reply_error, mark_allowed_empty, store_empty_reply
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import Calls
from trustassay.core.capabilities import ChatModel, ChatRequest, EndpointLimits, Reply, find_limits
from trustassay.errors import BackendError, CallError

T = TypeVar("T")
EMPTY_TRIES = 2
"""Tries for a reply that is empty by chance.

One that was cut off before its text began is not tried again: it would be cut off again.
"""


def calls_at_once(backends: Iterable[Any]) -> int:
    """Return the largest number of calls at once that any of these endpoints takes."""
    return max((find_limits(backend).concurrency for backend in backends), default=0)


def samples_at_once(asked_for: int | None, usual: int, backends: Iterable[Any]) -> int:
    """Return how many samples to process at once: as asked for, else enough for every endpoint.

    That is twice the calls at once, since a sample also waits for other models.
    """
    return asked_for or max(usual, 2 * calls_at_once(backends))


def describe_limited_endpoints(
    option: str, asked_for: int | None, backends: Iterable[Any]
) -> list[str]:
    """Return a message for each endpoint whose own limit is larger than the option's.

    Endpoints whose URI does not set their concurrency are left out.
    """
    usual = EndpointLimits().concurrency
    result = {backend.name: find_limits(backend).concurrency for backend in backends}
    return [
        f"{option} {asked_for} overrides the larger concurrency={own_concurrency} of {name}"
        for name, own_concurrency in result.items()
        if asked_for and own_concurrency not in (usual, asked_for) and own_concurrency > asked_for
    ]


class Endpoints:
    """The endpoints of a run, one for each address."""

    def __init__(
        self,
        concurrency: int | None = None,
        again_after_s: float | None = None,
        sharing: Leases | None = None,
    ) -> None:
        """Start without endpoints.

        Args:
            concurrency: calls at once to each endpoint, in place of its backend's limit.
            again_after_s: seconds after which an endpoint that was given up is tried again;
                ``None``: never.
            sharing: keeps the limits together with other processes.
        """
        self._concurrency, self._sharing = concurrency, sharing
        self._again_after_s = math.inf if again_after_s is None else again_after_s
        self._endpoints_by_address: dict[str, Endpoint] = {}

    def of(self, backend: Any, limits: EndpointLimits) -> Endpoint:
        """Return the endpoint of a backend; backends with one address share it.

        Raises:
            BackendError: another backend with this address has different limits.
        """
        if self._concurrency:
            limits = replace(limits, concurrency=self._concurrency)
        address = getattr(backend, "endpoint", backend.name)
        sharing, undivided_limits = self._sharing, limits
        if sharing:
            # Calls at once are divided among the workers. Rates are leased as a whole, see below.
            limits = sharing.part(undivided_limits)
        endpoint = self._endpoints_by_address.get(address)
        if endpoint is None:
            shared = sharing.pace(address, undivided_limits) if sharing else None
            endpoint = self._endpoints_by_address[address] = Endpoint(
                limits, name=address, again_after_s=self._again_after_s, shared=shared
            )
        # Two URIs of one address must agree, or it would depend on their order which limits hold.
        if limits != endpoint.limits:
            raise BackendError(
                f"{address}: is used with two different sets of limits; use the same in each URI"
            )
        return endpoint

    def all(self) -> dict[str, Endpoint]:
        """Return all endpoints by their address."""
        return dict(self._endpoints_by_address)


class Caller:
    """What calls for text, for vectors and to knowledge bases have in common.

    A caller is called with a batch, and returns its replies and the seconds that the endpoint took.

    Raises:
        BackendError: by all calls: the last try's failure, or the budget is reached.
    """

    def __init__(self, name: str, endpoint: Endpoint, ledger: BudgetLedger) -> None:
        self._name, self._endpoint, self._ledger = name, endpoint, ledger
        self._closed_reason: str | None = None
        self._closed_until = math.inf
        self._stopped = False
        self._estimated_tokens = self._counted_tokens = 0
        self._in_progress = 0
        self._idle = asyncio.Event()

    def count_calls_to_keep_busy(self) -> int:
        """Return how many calls must be waiting for the endpoint never to run out of them."""
        allowed = self._endpoint.allowed
        # A quarter more, so that a place that becomes free is taken at once.
        return allowed + allowed // 4

    def stop(self) -> None:
        """Send no further request; cancel the callers that wait for one."""
        self._stopped = True

    async def wait_until_idle(self) -> None:
        """Return when no request is in progress any more; to be called after :meth:`stop`."""
        if self._in_progress:
            await self._idle.wait()

    async def _call(
        self,
        work: Callable[[], Awaitable[T]],
        tokens: TokenCounts,
        count_tokens: Callable[[T], TokenCounts],
        counted: CountedRequest | None = None,
    ) -> tuple[T, float]:
        """Return the result of ``work``, and the seconds that its last try took.

        Args:
            work: sends the request once.
            tokens: the estimate that is reserved in the budget and in the rate limit.
            count_tokens: returns the tokens that a result took.
            counted: counts the tries of this request.
        """
        self._check()
        # 1. Reserve the estimated tokens in the budget. This may wait for other calls to be
        # settled.
        estimated, tokens = tokens.prompt, self._correct_estimate(tokens)
        reserved = await self._ledger.reserve(self._name, tokens)
        paid: TokenCounts | None = None
        began, sent, thought = 0.0, 0, tokens.prompt + tokens.reply

        def check() -> None:
            self._check()
            if counted:
                counted.admit()

        async def call_and_time() -> T:
            nonlocal began, sent
            began = time.perf_counter()
            # Counted from here on, so that wait_until_idle() waits for it.
            sent = 1
            self._count_in_progress(1)
            try:
                return await work()
            except BaseException:
                sent = 0
                self._count_in_progress(-1)
                raise

        try:
            # 2. Send it when the endpoint has room, again after temporary failures.
            failed = counted.record_failure if counted else lambda _: None
            result = await self._endpoint.call(call_and_time, thought, check, failed)
            seconds = time.perf_counter() - began
            paid = count_tokens(result)
            self._estimated_tokens += estimated
            self._counted_tokens += paid.prompt
        except CallError as error:
            # Later calls fail without being sent: a wrong key or an empty account affects all.
            if error.kind == "closed":
                self._closed_reason = str(error)
                self._closed_until = time.monotonic() + self._endpoint.again_after_s
            # The timeout comes from asyncio, which does not know the model.
            if error.kind == "timeout" and self._name not in str(error):
                message = f"{self._name}: {error}"
                raise CallError(message, error.kind, error.retry_after_s) from None
            raise
        finally:
            try:
                # 3. Replace the reservation by what it took; nothing, if it failed or was
                # cancelled.
                await self._ledger.settle(reserved, self._name, paid)
            finally:
                self._count_in_progress(
                    -sent
                )  # only now: whoever waits for it closes what is below
        # 4. Correct the rate limit of tokens, which was charged with the estimate.
        self._endpoint.correct_tokens(paid.prompt + paid.reply - thought)
        return result, seconds

    def _count_in_progress(self, more: int) -> None:
        """Count a request that starts (1) or ends (-1)."""
        self._in_progress += more
        if self._stopped and not self._in_progress:
            self._idle.set()

    def _correct_estimate(self, tokens: TokenCounts) -> TokenCounts:
        """Return the estimate with more prompt tokens, if prompts so far took more than estimated.

        It is never lowered: the amount that is reserved for a call should be enough for it.
        """
        # Four characters a token is too few tokens for some languages and for code.
        if self._counted_tokens <= self._estimated_tokens:
            return tokens
        ratio = self._counted_tokens / self._estimated_tokens if self._estimated_tokens else 1.0
        return TokenCounts(math.ceil(tokens.prompt * ratio), tokens.reply)

    def _check(self) -> None:
        """Raise if no call may leave: the work is stopped, or the endpoint refuses all calls."""
        if self._stopped:
            raise asyncio.CancelledError
        if self._closed_reason is not None and time.monotonic() < self._closed_until:
            raise CallError(self._closed_reason, "closed")


class ChatCaller(Caller):
    """Calls a chat model; empty replies are also stored among its ``calls``."""

    def __init__(
        self,
        model: ChatModel,
        endpoint: Endpoint,
        ledger: BudgetLedger,
        calls: Calls,
        counter: RequestLimiter | None = None,
    ) -> None:
        super().__init__(model.name, endpoint, ledger)
        self._model, self._calls, self._counter = model, calls, counter

    async def __call__(self, requests: Sequence[ChatRequest]) -> tuple[list[Reply], float]:
        """Answer the one request of a batch.

        Raises:
            CallError: the reply is empty, also when tried again, or the call failed.
        """
        (request,) = requests
        counted = self._counter.of(self._name, request) if self._counter else None
        if counted:
            counted.check()
        tries = 0
        while True:
            reply, seconds = await self._get_reply(request, counted)
            error = find_empty_reply_error(self._name, request, reply)
            if error is None:
                return [mark_allowed_empty(request, reply)], seconds
            # Store it although it is a failure: it was paid for.
            store_empty_reply(self._name, self._calls, request, reply, seconds)
            self._endpoint.failures[error.kind] += 1
            tries += 1
            # A reply that was cut off at its token limit would be empty again.
            will_retry = tries < EMPTY_TRIES and reply.finish != "length"
            if counted:
                counted.record_failure(error, retry=will_retry)
            if not will_retry:
                raise error if tries == 1 else CallError(f"{error} (after {tries} tries)", "empty")

    async def _get_reply(
        self, request: ChatRequest, counted: CountedRequest | None
    ) -> tuple[Reply, float]:
        """Return the reply to one request, and the seconds that it took."""
        expected = estimate_tokens(request)

        async def work() -> Reply:
            with counted.sending() if counted else nullcontext():
                reply = await self._model.reply(request)
                if not isinstance(reply, Reply):
                    raise BackendError(f"{self._name} returned {reply!r:.60} instead of a Reply")
                return reply

        def count_tokens(reply: Reply) -> TokenCounts:
            prompt, text = reply.prompt_tokens, reply.reply_tokens
            return TokenCounts(
                expected.prompt if prompt is None else prompt,
                expected.reply if text is None else text,
            )

        return await self._call(work, expected, count_tokens, counted)


class BatchCaller(Caller):
    """Calls what is not a chat model: an embedding model, or a service that costs no tokens.

    Args:
        ask: sends a batch.
        checked: builds the replies from the batch and what came back; raises if it is malformed.
        tokens: estimates the tokens of a batch.
        count: returns the tokens that a batch took; ``None``: as estimated.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        ledger: BudgetLedger,
        ask: Callable[[list[Any]], Awaitable[Any]],
        checked: Callable[[list[Any], Any], list[Any]] = lambda _, replies: replies,
        tokens: Callable[[list[Any]], int] = lambda _: 0,
        count: Callable[[Any], TokenCounts | None] = lambda _: None,
    ) -> None:
        super().__init__(name, endpoint, ledger)
        self._ask, self._check_replies, self._tokens = ask, checked, tokens
        self._count = count

    async def __call__(self, items: list[Any]) -> tuple[list[Any], float]:
        """Return the replies to a batch."""
        tokens = TokenCounts(self._tokens(items), 0)
        result, seconds = await self._call(
            lambda: self._ask(items), tokens, lambda reply: self._count(reply) or tokens
        )
        return self._check_replies(items, result), seconds


class DecisionCaller(BatchCaller):
    """Calls a decision model with questions about one state."""

    async def __call__(self, items: list[Any]) -> tuple[list[Any], float]:
        """Return the answers; a failure that is not the questions' fault is that of each."""
        try:
            return await super().__call__(items)
        except CallError as error:
            # What is refused, or too large, together may be answered alone: the batcher tries.
            if error.kind in ("refused", "oversized"):
                raise
            return [error] * len(items), 0.0
