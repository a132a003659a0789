"""Limits of endpoints that hold for all workers together: blocks of calls are leased.

:class:`LeaseService` is one object in the cluster, with one pace, and one meter of requests and one
of tokens, for each address. A worker asks for a block of calls and is told when each may start. It
reports replies and complaints, so that a 429 that one worker receives slows all of them down.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trustassay.calls.rate_limit import Pace, RateMeters
from trustassay.core.capabilities import EndpointLimits

BLOCK_S = 0.1
"""Seconds' worth of calls that are leased at once, where a rate is known."""
AHEAD_S = 0.5
"""Seconds ahead that calls are leased; one whose turn is later is not leased yet."""
STALE_S = 1.0
"""Seconds after its turn at which a leased call may still start; later it has lapsed."""
REPORT_S = 0.05
"""Seconds for which complaints are gathered before they are reported."""
LATE_S = 0.1
"""Seconds that a complaint may reach the service late, beyond the call's latency."""
AGAIN_S = 0.5
"""Seconds after which a worker asks again if the service does not answer."""


@dataclass(slots=True)
class LeaseRequest:
    """A worker's request for calls, with its report on earlier ones.

    Replies and complaints are pairs of a call's number and its latency in seconds.
    """

    worker: str
    """Name of the worker."""
    wanted: int = 0
    """Calls that the worker can start now."""
    waiting: int = 0
    """Calls that wait in the worker."""
    tokens: float = 0.0
    """Tokens that calls took since the last report."""
    replied: list[tuple[int, float]] = field(default_factory=list)
    """Calls that were answered."""
    complained: list[tuple[int, float]] = field(default_factory=list)
    """Calls that were refused with a complaint (429)."""
    stopped: bool = False
    """Whether the worker's endpoint refused everything for a while, and answers again."""


class LeaseGrant(NamedTuple):
    """Calls that a worker may start."""

    paced: bool
    """Whether there is a rate; if not, the calls may start at full speed."""
    calls: Sequence[tuple[float, int]] = ()
    """Seconds from now until each call may start, and the call's number."""
    again_s: float = 0.0
    """Seconds after which to ask again, if there are no calls."""


class _AddressLimits:
    """The limits of one address, shared by all workers."""

    def __init__(self, limits: EndpointLimits, now: float) -> None:
        self.pace = Pace(limits.concurrency, now)
        self.meters = RateMeters(limits, now)
        self.waiting: dict[str, int] = {}
        self.leased, self._spent = 0, 0.0

    @property
    def rate(self) -> float | None:
        """Calls a second that all limits allow, as far as is known; ``None`` at full speed."""
        rates = [] if self.pace.rate is None else [self.pace.rate]
        if self.meters.requests:
            rates.append(self.meters.requests.rate)
        if self.meters.tokens:
            # Before any tokens are reported, the cost of a call is unknown: then lease one at a
            # time.
            each = self._spent / self.leased if self._spent > 0 else math.inf
            rates.append(self.meters.tokens.rate / each)
        return min(rates, default=None)

    def grant(self, ask: LeaseRequest, now: float) -> LeaseGrant:
        """Record a worker's report, and lease it calls."""
        self._record_report(ask, now)
        paced = (rate := self.rate) is not None
        wanted = ask.wanted if rate is None else min(ask.wanted, max(1, math.ceil(rate * BLOCK_S)))
        calls: list[tuple[float, int]] = []
        at = now
        # Walk through time from turn to turn, as the worker will, until the block is complete.
        while len(calls) < wanted:
            at += max(0.0, self.pace.wait_s(0, at), self.meters.wait_s(at))
            if at - now > AHEAD_S:
                # Limits may change before then. Half of the lead is left when the worker asks
                # again.
                return LeaseGrant(paced, calls, max(BLOCK_S, at - now - AHEAD_S / 2))
            turn = self.pace.take(sum(self.waiting.values()), at)
            self.meters.take_request(at)
            calls.append((at - now, turn))
            self.leased += 1
        return LeaseGrant(paced, calls)

    def _record_report(self, ask: LeaseRequest, now: float) -> None:
        """Record replies, complaints and tokens of a worker."""
        self.waiting[ask.worker] = ask.waiting
        for turn, latency_s in ask.replied:
            self.pace.record_reply(turn, latency_s)
        for turn, latency_s in ask.complained:
            # The call started up to AHEAD_S after it was leased, so count the latency from the
            # lease.
            self.pace.record_complaint(turn, latency_s + AHEAD_S + LATE_S)
        if ask.stopped:
            self.pace.end_standstill()
        self.meters.take_tokens(ask.tokens, now)
        self._spent += ask.tokens


class LeaseService:
    """Leases calls to endpoints; one object for all workers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limits_by_address: dict[tuple[str, EndpointLimits], _AddressLimits] = {}

    def lease(self, address: str, limits: EndpointLimits, ask: LeaseRequest) -> LeaseGrant:
        """Record a worker's report, and lease it as many calls as the limits allow."""
        now = self._clock()
        limit = self._limits_by_address.get((address, limits))
        if limit is None:
            limit = self._limits_by_address[address, limits] = _AddressLimits(limits, now)
        return limit.grant(ask, now)

    def count_leased(self) -> int:
        """Return the number of calls that were leased so far."""
        return sum(limit.leased for limit in self._limits_by_address.values())


Lease = Callable[[str, EndpointLimits, LeaseRequest], Awaitable[LeaseGrant]]


class Leases:
    """How a worker shares the limits of endpoints with the others.

    Rates are leased from the service; calls at once are divided equally among the workers.
    """

    def __init__(self, lease: Lease, worker: str, workers: int) -> None:
        self._lease, self._worker, self._workers = lease, worker, workers

    def part(self, limits: EndpointLimits) -> EndpointLimits:
        """Return limits with this worker's share of the calls at once."""
        return replace(limits, concurrency=max(1, limits.concurrency // self._workers))

    def pace(self, address: str, limits: EndpointLimits) -> "LeasedPace":
        """Return the pace of an address, whose ``limits`` hold for all workers together."""
        max_at_once = self.part(limits).concurrency
        return LeasedPace(lambda ask: self._lease(address, limits, ask), self._worker, max_at_once)


class LeasedPace:
    """The pace of one endpoint in one worker: calls start when they are leased to.

    Used in one event loop, in place of :class:`~trustassay.calls.rate_limit.Pace`.
    """

    def __init__(
        self, lease: Callable[[LeaseRequest], Awaitable[LeaseGrant]], worker: str, max_at_once: int
    ) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._lease, self._max_at_once = lease, max_at_once
        self._calls: deque[tuple[float, int]] = deque()
        self._next_request = LeaseRequest(worker)  # gathers what is reported until it is sent
        self._paced = False
        self._waiting = 0
        self._request_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wait_s(self, refused: int, now: float) -> float:  # noqa: ARG002 - as of Pace
        """Return the seconds until the first leased call may start; without one, request calls."""
        # A lapsed call is not used: the rate has moved on, and others have been leased its place.
        while self._calls and self._calls[0][0] < now - STALE_S:
            self._calls.popleft()
        if self._calls:
            return self._calls[0][0] - now
        self._ask(min(self._max_at_once, self._waiting + 1))
        return math.inf

    def take(self, waiting: int, now: float) -> int:  # noqa: ARG002
        """Start a leased call, while ``waiting`` others wait; return its number."""
        self._waiting = waiting
        _, turn = self._calls.popleft()
        # Ask ahead of need, so that the next call finds a lease.
        if waiting and not self._calls:
            self._ask(min(self._max_at_once, waiting))
        return turn

    def record_reply(self, turn: int, latency_s: float) -> None:
        """Report a reply, with the next request for calls."""
        self._next_request.replied.append((turn, latency_s))

    def record_complaint(self, turn: int, latency_s: float) -> None:
        """Report a complaint within :data:`REPORT_S`."""
        self._next_request.complained.append((turn, latency_s))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(REPORT_S, self._report)

    def end_standstill(self) -> None:
        """Report that everything was refused for a while, and that this is over."""
        self._next_request.stopped = True

    def record_tokens(self, tokens: float) -> None:
        """Report tokens, with the next request for calls."""
        self._next_request.tokens += tokens

    def _report(self) -> None:
        self._timer = None
        if self._next_request.complained:  # else they went along with a question
            self._ask(0)

    def _ask(self, wanted: int) -> None:
        # One request at a time; reports that come meanwhile go with the next.
        if self._request_task is None:
            self._request_task = asyncio.ensure_future(self._request_calls(wanted))

    async def _request_calls(self, wanted: int) -> None:
        """Send a report and a request for calls to the service, and take over what it grants."""
        ask = replace(self._next_request, wanted=wanted, waiting=self._waiting)
        # Begun anew before the first await, or what is reported meanwhile would be lost.
        self._next_request = LeaseRequest(ask.worker)
        try:
            grant = await self._lease(ask)
            if grant.paced and not self._paced:
                self._calls.clear()  # leased before there was a rate
            self._paced = grant.paced
            now = asyncio.get_running_loop().time()
            self._calls.extend((now + delay_s, turn) for delay_s, turn in grant.calls)
            # Block further requests until the service expects to have calls.
            if wanted and not grant.calls:
                await asyncio.sleep(grant.again_s)
        except Exception:  # the service is being started again
            await asyncio.sleep(AGAIN_S)
        finally:
            self._request_task = None
        # The endpoint looks at its queue again, with or without new calls.
        self.wake()
