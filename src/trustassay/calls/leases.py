"""Limits of endpoints that hold for all workers together: blocks of calls are leased.

:class:`LeaseService` is one object in the cluster, with one pace and one meter of requests and
of tokens for each address. A worker asks for a block of calls, is told when each may start, and
reports replies and complaints, so that what one worker is told by a 429 slows all of them down.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from trustassay.calls.rate_limit import Meter, Pace
from trustassay.capabilities import EndpointLimits

BLOCK_S = 0.1
"""So many seconds' worth of calls is leased at once, where there is a rate."""
AHEAD_S = 0.5
"""A call whose turn is later than this is not leased yet."""
STALE_S = 1.0
"""So long after its turn a leased call may still start."""
REPORT_S = 0.05
"""So long complaints are gathered before they are reported."""
LATE_S = 0.1
"""How much later than by its latency a complaint may be known to the service."""
AGAIN_S = 0.5
"""How long a worker waits to ask again where the service does not answer."""


class Ask(NamedTuple):
    """What a worker asks, and what it reports: numbers of calls with their latency in seconds."""

    worker: str
    wanted: int
    waiting: int
    tokens: float = 0.0
    replied: Sequence[tuple[int, float]] = ()
    complained: Sequence[tuple[int, float]] = ()
    stopped: bool = False


class Grant(NamedTuple):
    """Calls that may start: seconds from now, and number. ``paced``: there is a rate.

    again_s: when to ask again, if there are none.
    """

    paced: bool
    calls: Sequence[tuple[float, int]] = ()
    again_s: float = 0.0


class _Limit:
    """The limits of one address."""

    def __init__(self, limits: EndpointLimits, now: float) -> None:
        self.pace = Pace(limits.concurrency, now)
        rates = (limits.requests_per_minute, limits.tokens_per_minute)
        self.requests, self.tokens = (Meter(rate, now) if rate else None for rate in rates)
        self.waiting: dict[str, int] = {}
        self.leased, self._spent = 0, 0.0

    @property
    def rate(self) -> float | None:
        """Calls a second that all limits allow, as far as is known; ``None`` at full speed."""
        known = [] if self.pace.rate is None else [self.pace.rate]
        if self.requests:
            known.append(self.requests.rate)
        if self.tokens:
            each = self._spent / self.leased if self._spent > 0 else math.inf
            known.append(self.tokens.rate / each)
        return min(known, default=None)

    def grant(self, ask: Ask, now: float) -> Grant:
        self._learn(ask, now)
        paced = (rate := self.rate) is not None
        wanted = ask.wanted if rate is None else min(ask.wanted, max(1, math.ceil(rate * BLOCK_S)))
        calls: list[tuple[float, int]] = []
        at = now
        while len(calls) < wanted:
            meters = filter(None, (self.requests, self.tokens))
            waits = (self.pace.wait_s(0, at), *(meter.wait_s(at) for meter in meters))
            at += max(0.0, *waits)
            if at - now > AHEAD_S:
                return Grant(paced, calls, max(BLOCK_S, at - now - AHEAD_S / 2))
            turn = self.pace.take(sum(self.waiting.values()), at)
            if self.requests:
                self.requests.take(1, at)
            calls.append((at - now, turn))
            self.leased += 1
        return Grant(paced, calls)

    def _learn(self, ask: Ask, now: float) -> None:
        self.waiting[ask.worker] = ask.waiting
        for turn, latency_s in ask.replied:
            self.pace.replied(turn, latency_s)
        for turn, latency_s in ask.complained:
            self.pace.complained(turn, latency_s + AHEAD_S + LATE_S)
        if ask.stopped:
            self.pace.stopped()
        if self.tokens:
            self.tokens.take(ask.tokens, now)
            self._spent += ask.tokens


class LeaseService:
    """Leases calls to endpoints; one for all workers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[tuple[str, EndpointLimits], _Limit] = {}

    def lease(self, address: str, limits: EndpointLimits, ask: Ask) -> Grant:
        """Take a worker's report into account, and lease it as many calls as there are."""
        now = self._clock()
        limit = self._found.get((address, limits))
        if limit is None:
            limit = self._found[address, limits] = _Limit(limits, now)
        return limit.grant(ask, now)

    def leased(self) -> int:
        """Return how many calls were leased so far."""
        return sum(limit.leased for limit in self._found.values())


Lease = Callable[[str, EndpointLimits, Ask], Awaitable[Grant]]


class Leases:
    """How a worker shares the limits of endpoints: all rates are leased, and calls at once are
    divided equally.
    """

    def __init__(self, lease: Lease, worker: str, workers: int) -> None:
        self._lease, self._worker, self._workers = lease, worker, workers

    def part(self, limits: EndpointLimits) -> EndpointLimits:
        """Return the part of the calls at once that is this worker's."""
        return replace(limits, concurrency=max(1, limits.concurrency // self._workers))

    def pace(self, address: str, limits: EndpointLimits) -> "LeasedPace":
        """Return the pace of an address, by limits that all workers keep together."""
        most = self.part(limits).concurrency
        return LeasedPace(lambda ask: self._lease(address, limits, ask), self._worker, most)


class LeasedPace:
    """The pace of one endpoint in one worker, used in one event loop: calls start as leased."""

    def __init__(self, lease: Callable[[Ask], Awaitable[Grant]], worker: str, most: int) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._lease, self._worker, self._most = lease, worker, most
        self._calls: deque[tuple[float, int]] = deque()
        self._replied: list[tuple[int, float]] = []
        self._complained: list[tuple[int, float]] = []
        self._tokens = 0.0
        self._stopped = self._paced = False
        self._waiting = 0
        self._asking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait_s(self, refused: int, now: float) -> float:  # noqa: ARG002 - as of Pace
        """Return the seconds until the first leased call may start; without one, ask for some."""
        while self._calls and self._calls[0][0] < now - STALE_S:
            self._calls.popleft()
        if self._calls:
            return self._calls[0][0] - now
        self._ask(min(self._most, self._waiting + 1))
        return math.inf

    def take(self, waiting: int, now: float) -> int:  # noqa: ARG002
        """Start a leased call while so many others wait; return its number."""
        self._waiting = waiting
        _, turn = self._calls.popleft()
        if waiting and not self._calls:
            self._ask(min(self._most, waiting))
        return turn

    def replied(self, turn: int, latency_s: float) -> None:
        """Report a reply, with the next question."""
        self._replied.append((turn, latency_s))

    def complained(self, turn: int, latency_s: float) -> None:
        """Report a complaint, soon."""
        self._complained.append((turn, latency_s))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(REPORT_S, self._report)

    def stopped(self) -> None:
        """Report that all was refused for a while."""
        self._stopped = True

    def spent(self, tokens: float) -> None:
        """Report tokens, with the next question."""
        self._tokens += tokens

    def _report(self) -> None:
        self._timer = None
        if self._complained:  # else they went along with a question
            self._ask(0)

    def _ask(self, wanted: int) -> None:
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._asked(wanted))

    async def _asked(self, wanted: int) -> None:
        ask = Ask(
            self._worker,
            wanted,
            self._waiting,
            self._tokens,
            tuple(self._replied),
            tuple(self._complained),
            self._stopped,
        )
        self._replied, self._complained, self._tokens, self._stopped = [], [], 0.0, False
        try:
            grant = await self._lease(ask)
            if grant.paced and not self._paced:
                self._calls.clear()  # leased before there was a rate
            self._paced = grant.paced
            now = asyncio.get_running_loop().time()
            self._calls.extend((now + delay_s, turn) for delay_s, turn in grant.calls)
            if wanted and not grant.calls:
                await asyncio.sleep(grant.again_s)
        except Exception:  # the service is being started again
            await asyncio.sleep(AGAIN_S)
        finally:
            self._asking = None
        self.wake()
