"""Calls to one endpoint: how many at once, when each may start, and when it is tried again.

All metrics and models of a run that use one address share one :class:`Endpoint`.
"""

import asyncio
import math
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trustassay.calls.leases import LeasedPace
from trustassay.calls.outage import Call, Outage
from trustassay.calls.rate_limit import Meter, Pace
from trustassay.capabilities import EndpointLimits
from trustassay.errors import CallError, CallFault

T = TypeVar("T")
Turn = tuple[Call, asyncio.Future[None]]
LEAD_S = 0.1
"""So long the first call is alone, unless it ends before."""
RESUMED, RESUMED_PART = 8, 4
"""Calls at once when an outage has ended, or a quarter of all; two more with each reply."""
BACKOFF_S = 0.5
BACKOFF_MOST_S = 20.0
COMPLAINT_BACKOFF_MOST_S = 2.0
"""It is the pace that keeps a limit, and not the waiting of single calls."""

PASSING = frozenset({"limited", "server", "connection", "timeout", "malformed"})


class Endpoint:
    """Admits calls to one address and retries temporary failures.

    The first call is sent alone for a moment, so that a missing key costs one call. Then
    ``concurrency`` calls are in progress at once; complaints (429) slow them down if they show a
    limit (:class:`~trustassay.calls.rate_limit.Pace`). Temporary failures are tried again after a
    random share of a delay that doubles, or after the ``Retry-After`` of the failed call. While
    there are only failures, one call at a time probes and no tries are used up
    (:class:`~trustassay.calls.outage.Outage`). An endpoint with nothing but failures for
    ``patience_s`` (ten seconds if it never answered), or one that tells all calls to wait for
    longer than ``deadline_s``, is given up: its calls fail at once until the run is started again,
    or until ``again_after_s`` seconds later one call probes once more.
    """

    def __init__(
        self,
        limits: EndpointLimits,
        *,
        name: str = "",
        again_after_s: float = math.inf,
        shared: LeasedPace | None = None,
    ) -> None:
        """``shared`` says when calls may start if other processes call the address, too."""
        self.limits, self.again_after_s = limits, again_after_s
        self.failures: Counter[str] = Counter()
        self.sent = 0
        self._name = f"{name}: " if name else ""
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._pace: Pace | LeasedPace = shared or Pace(limits.concurrency, now)
        self._shared = shared
        if shared:
            shared.wake = self._wake
        self._outage = Outage(limits.patience_s, limits.deadline_s)
        self._allowed = limits.concurrency
        self._led = False
        self._lead_until = now
        self._active = 0
        self._waiting: deque[Turn] = deque()
        self._gone: tuple[str, CallFault] | None = None
        self._gone_until = math.inf
        self._sleepers: set[asyncio.Future[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        rates = (limits.requests_per_minute, limits.tokens_per_minute)
        self._requests, self._tokens = (
            Meter(rate, now) if rate and not shared else None for rate in rates
        )

    @property
    def allowed(self) -> int:
        """The number of calls that may be in progress at once now."""
        return 1 if self._outage.open else self._allowed

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        tokens: int = 0,
        check: Callable[[], None] = lambda: None,
        failed: Callable[[CallError], None] = lambda _: None,
    ) -> T:
        """Do ``work`` when the endpoint may be called, and again while its failures are temporary.

        ``check`` may still cancel it when its turn comes, by raising; ``failed`` is called for each
        failed try. The deadline starts with the first try and excludes outages, since the length
        of the queue or of an outage does not depend on this call.

        Raises:
            CallError: the last failure, with the number of tries.
        """
        call = Call(tokens)
        tries = 0
        first = False
        while True:
            await self._admitted(call, first=first)
            try:
                check()
                if not call.tried:
                    call.deadline = self._clock() + self.limits.deadline_s
                tries += 1
                result = await self._tried(call, work)
            finally:
                self._leave(call)
            if not isinstance(result, CallError):
                return result
            failed(result)
            delay = self._before_next(call, result)
            if delay is None:
                if tries > 1:
                    message = f"{result} (after {tries} tries)"
                    result = CallError(message, result.kind, result.retry_after_s)
                raise result
            first = delay > 0  # in an outage another call makes the next probe
            if delay > 0:
                await self._sleep(delay)

    def took(self, more: int) -> None:
        """Record that a call took more tokens than estimated (or fewer, if negative)."""
        if self._tokens:
            self._tokens.take(more, self._loop.time())
        if self._shared:
            self._shared.spent(more)

    def _clock(self) -> float:
        return self._outage.clock(self._loop.time())

    async def _tried(self, call: Call, work: Callable[[], Awaitable[T]]) -> T | CallError:
        """Do the work once; a failure is returned."""
        self.sent += 1
        call.began = self._loop.time()
        try:
            async with asyncio.timeout(self.limits.timeout_s):
                result = await work()
        except TimeoutError:
            message = f"{self._name}no reply within {self.limits.timeout_s:g} s"
            error = CallError(message, "timeout")
        except CallError as failure:
            error = failure
        else:
            now = self._loop.time()
            self._led = True
            self._replied(call, now)
            self._pace.replied(call.turn, now - call.began)
            return result
        self._bad(call, error)
        return error

    async def _admitted(self, call: Call, *, first: bool) -> None:
        """Wait for a free place; who comes again stands first in the queue, save in an outage."""
        if self._gone and self._loop.time() < self._gone_until:
            raise CallError(*self._gone)
        self._gone = None  # its outage goes on: one call probes
        place: asyncio.Future[None] = self._loop.create_future()
        turn: Turn = (call, place)
        first = first and not self._outage.open
        self._waiting.appendleft(turn) if first else self._waiting.append(turn)
        self._admit_more()
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled() and not place.exception():
                self._leave(call)
            raise

    def _leave(self, call: Call) -> None:
        self._active -= 1
        self._outage.left(call)
        self._admit_more()

    def _admit_more(self) -> None:
        while self._waiting and self._active < self._allowed:
            call, place = self._waiting[0]
            if place.done():  # its task was cancelled
                self._waiting.popleft()
                continue
            now = self._loop.time()
            if (wait := self._wait_s(call, now)) > 0:
                self._wake_in(wait)
                return
            if self._outage.open:  # a call that was tried before may be at fault itself
                untried = (turn for turn in self._waiting if not (turn[0].tried or turn[1].done()))
                call, place = next(untried, self._waiting[0])
            self._waiting.remove((call, place))
            self._let_out(call, now)
            place.set_result(None)

    def _wait_s(self, call: Call, now: float) -> float:
        """Return the seconds until this call may go out, as things are."""
        wait = max(self._pace.wait_s(call.refused, now), self._outage.wait_s(now))
        for meter in (self._requests, self._tokens):
            wait = max(wait, meter.wait_s(now)) if meter else wait
        if self._active and not self._led:
            wait = max(wait, self._lead_until - now)
        return wait

    def _let_out(self, call: Call, now: float) -> None:
        if self._active:
            self._led = True
        else:
            self._lead_until = now + LEAD_S
        if self._requests:
            self._requests.take(1, now)
        self.took(call.tokens)
        call.turn = self._pace.take(len(self._waiting), now)
        self._outage.let_out(call, now)
        self._active += 1

    def _wake_in(self, wait: float) -> None:
        """Look again when the wait is over; without end it is a probe's end that calls again."""
        if self._alarm:
            self._alarm.cancel()
        self._alarm = None if wait == math.inf else self._loop.call_later(wait + 1e-6, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self._admit_more()

    def _replied(self, call: Call, now: float) -> None:
        """End an outage; those that waited in it do not start all at once."""
        was_open = self._outage.open
        self._outage.replied(call, now)
        if was_open and not self._outage.open:
            if self._outage.complaints_only:
                self._pace.stopped()
            else:
                self._allowed = max(RESUMED, self.limits.concurrency // RESUMED_PART)
        self._allowed = min(self._allowed + 2, self.limits.concurrency)

    def _bad(self, call: Call, error: CallError) -> None:
        """Take a failure into account; one that is not temporary counts as a reply."""
        self.failures[error.kind] += 1
        now = self._loop.time()
        self._led |= error.kind != "closed"
        if error.kind not in PASSING or error.kind == "malformed":
            call.tries += 1
            self._replied(call, now)
            return
        if error.kind == "limited":
            call.refused += 1
            if not self._outage.open:
                self._pace.complained(call.turn, now - call.began)
        self._outage.failed(call, error, now)
        if not self._outage.open:
            return
        after_s = error.retry_after_s or 0.0
        if error.kind == "limited" and after_s > self.limits.deadline_s:
            self._give_up(f"{error}; the endpoint asks to wait {after_s:,.0f} s", error.kind)
        elif self._outage.over(call, error, now):
            patience_s = self._outage.patience_s(error)
            self._lose_patience(f"{error}; no other reply came for {patience_s:g} s", error.kind)

    def _lose_patience(self, message: str, kind: CallFault) -> None:
        """Let all waiting calls fail; give the endpoint up if some of them were not tried yet.

        If all were tried, the fault may be theirs, and later calls may still be tried.
        """
        waiting = [turn for turn in self._waiting if not turn[1].done()]
        if self._outage.of_many and any(not call.tried for call, _ in waiting):
            self._give_up(message, kind)
            return
        tried = [place for call, place in waiting if call.tried]
        for future in (*tried, *self._sleepers):
            if not future.done():
                future.set_exception(CallError(message, kind))

    def _give_up(self, message: str, kind: CallFault) -> None:
        """Let all calls fail that wait for their turn, or for another try."""
        self._gone = (f"{message}, so no more requests are sent", kind)
        self._gone_until = self._loop.time() + self.again_after_s
        while self._waiting:
            _, place = self._waiting.popleft()
            if not place.done():
                place.set_exception(CallError(*self._gone))
        for sleeper in self._sleepers:
            _wake_up(sleeper)

    def _before_next(self, call: Call, error: CallError) -> float | None:
        """Return the seconds before a call's next try, ``None`` if there is to be none."""
        if error.kind not in PASSING or self._gone:
            return None
        if self._outage.open:
            return None if self._outage.over(call, error, self._loop.time()) else 0.0
        delay = self._delay(error, call.tries)
        last = call.tries >= self.limits.tries or self._clock() + delay > call.deadline
        return None if last else delay

    async def _sleep(self, delay: float) -> None:
        """Wait before another try; not longer than the endpoint is there."""
        sleeper: asyncio.Future[None] = self._loop.create_future()
        alarm = self._loop.call_later(delay, _wake_up, sleeper)
        self._sleepers.add(sleeper)
        try:
            await sleeper
        finally:
            alarm.cancel()
            self._sleepers.discard(sleeper)

    def _delay(self, error: CallError, tries: int) -> float:
        most = COMPLAINT_BACKOFF_MOST_S if error.kind == "limited" else BACKOFF_MOST_S
        backoff: float = min(most, BACKOFF_S * 2 ** max(0, tries - 1))
        jitter = backoff * random.random()
        if error.retry_after_s is not None:
            return error.retry_after_s + min(jitter, 0.1 * error.retry_after_s)
        return jitter


def _wake_up(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
