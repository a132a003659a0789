"""Calls to one endpoint: how many at once, when each may start, and when it is tried again.

All metrics and models of a run that use one address share one :class:`Endpoint`. Its
:class:`Outage` detects that the endpoint is down, as opposed to single calls that fail, and paces
the probes.
"""

import asyncio
import math
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from trustassay.calls.leases import LeasedPace
from trustassay.calls.ramp import Ramp
from trustassay.calls.rate_limit import Pace, RateMeters
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import CallError, CallFault

OUTAGE_FAILURES = 5
"""Failures without a reply between them that open an outage.

Also the number of different calls that must have failed in it before the endpoint counts as gone.
"""
SUSPECT_FAILURES = 2
"""Failures of a call, while others were answered, from which on the call itself may be at fault."""
PROBE_S, PROBE_RISE, PROBE_MAX_S = 0.2, 1.3, 2.0
"""Seconds until the first probe, their factor from probe to probe, and their maximum."""
OBEYED_RETRY_AFTER_S = 1.0
"""Seconds of a ``Retry-After`` from which on all calls obey it.

A shorter one is often the endpoint's rounding up to a second.
"""
UNSEEN_PATIENCE_S = 10.0
"""Seconds of patience with an address that has never answered: it is probably wrong."""
COMPLAINTS_PATIENCE_FACTOR = 2
"""Factor of the patience with complaints (429): many limits are for a minute."""


@dataclass(eq=False, slots=True)
class PendingCall:
    """The state of a call while it waits or is tried."""

    tokens: int
    """Estimated tokens."""
    tries: int = 0
    """Failed tries that count; those in an outage do not."""
    refused: int = 0
    """Complaints (429) that it received."""
    turn: int = 0
    """Its number among all calls that left."""
    round: int = 0
    """The round of the ramp in which it last left."""
    streak: int = -1
    """Number of the streak of failures during which it last left."""

    @property
    def tried(self) -> bool:
        """Whether the call has left at least once."""
        return self.deadline < math.inf

    deadline: float = math.inf
    """When to stop trying, on :meth:`Outage.clock`."""
    began: float = 0.0
    """When its last try began."""


class Outage:
    """Failures without a reply between them: first a streak, from the fifth on an outage.

    During an outage one call at a time probes, and failures use up no tries; the tries of the
    streak are given back. Another call makes the next probe, so that a call which always fails
    cannot keep the others waiting. A reply to a call that began in the outage ends it.

    A streak opens no outage if all its calls had failed twice before while others were answered:
    they may be at fault themselves. Complaints (429) also form a streak, except those of calls that
    were already in progress when the first complaint came. If there are only complaints, probes do
    not wait for each other, since a reply may take long.
    """

    def __init__(self, patience_s: float, deadline_s: float) -> None:
        """Start without failures.

        Args:
            patience_s: seconds for which an outage is waited out.
            deadline_s: seconds, in all, by which an outage may be longer because the endpoint asks
                for it.
        """
        self._patience_s, self._deadline_s = patience_s, deadline_s
        self._granted_delay_s = 0.0
        self._streak: Counter[PendingCall] = Counter()
        self._failed: set[PendingCall] = set()
        self._failures_in_streak = self._pending_in_streak = self._streak_number = 0
        self._began = self._first_at = 0.0
        self._opened_at: float | None = None
        self._last = self._last_before = 0
        self._interval_s = PROBE_S
        self._next = 0.0
        self._probe: PendingCall | None = None
        self.complaints_only = True
        """Whether the endpoint answers, but only with complaints."""
        self._past_s = 0.0
        self._has_answered = False

    @property
    def open(self) -> bool:
        """Whether there is an outage."""
        return self._opened_at is not None

    def clock(self, now: float) -> float:
        """Return the time without the time of outages."""
        running_s = 0.0 if self._opened_at is None else now - self._opened_at
        return now - self._past_s - running_s

    def wait_s(self, now: float) -> float:
        """Return the seconds until a call may leave; infinite while a probe is on its way."""
        if not self.open:
            return 0.0
        if self._probe and not self.complaints_only:
            return math.inf
        return max(0.0, self._next - now)

    def record_start(self, call: PendingCall, now: float) -> None:
        """Record that a call leaves."""
        call.streak = self._streak_number
        self._last = call.turn
        self._pending_in_streak += 1
        if self.open:
            self._probe = call
            self._next = now + self._interval_s

    def record_end(self, call: PendingCall) -> None:
        """Record that a call has ended, with a reply or without."""
        if self._probe is call:
            self._probe = None
        # Only calls of this streak count: one that left before it says nothing about it.
        self._pending_in_streak -= call.streak == self._streak_number

    def record_reply(self, call: PendingCall, now: float) -> None:
        """Record a reply; one that refuses the request counts, too."""
        self._has_answered = True
        # A late reply to a call from before the outage does not end it. Complaints are different:
        # there the endpoint works.
        if self._opened_at is None or self._is_probe(call) or self.complaints_only:
            if self._opened_at is not None:
                self._past_s += now - self._opened_at
            self._opened_at = self._probe = None
            self._streak.clear()
            self._failed.clear()
            self._failures_in_streak = 0
        else:
            # It answered something, so patience starts anew.
            self._began = now

    def record_failure(self, call: PendingCall, error: CallError, now: float) -> None:
        """Record a temporary failure."""
        complaint = error.kind == "limited"
        # Any response shows that the address exists.
        self._has_answered |= error.kind not in ("connection", "timeout")
        # The first failure of a streak.
        if not self._failed:
            self._began, self._first_at = call.began, now
            self.complaints_only = True
            self._streak_number, self._pending_in_streak = self._streak_number + 1, 0
        self._failed.add(call)
        self.complaints_only &= complaint
        if self.open:
            if self._is_probe(call):
                self._interval_s = min(PROBE_MAX_S, self._interval_s * PROBE_RISE)
                self._delay_probe(error, now)
            return
        call.tries += 1
        self._streak[call] += 1
        # Calls sent before the first complaint could not know of the limit.
        self._failures_in_streak += not complaint or call.began >= self._first_at
        # With complaints only, most calls in progress may still succeed: wait for their results.
        waited_for = self._pending_in_streak if self.complaints_only else 0
        # The streak must outnumber the calls that may still be answered.
        outnumbers = self._failures_in_streak >= max(
            OUTAGE_FAILURES, OUTAGE_FAILURES * (waited_for - 1)
        )
        # Failures before this streak: those in it may all be the endpoint's fault.
        suspects = all(
            member.tries - failed >= SUSPECT_FAILURES for member, failed in self._streak.items()
        )
        if outnumbers and not suspects:
            self._start_outage(error, now)

    def is_patience_over(self, call: PendingCall, error: CallError, now: float) -> bool:
        """Whether patience with the outage ends with the failure of this call."""
        if not self._is_probe(call):
            return False
        return now - self._began >= self.patience_s(error)

    def patience_s(self, error: CallError) -> float:
        """Return for how many seconds failures of this kind are waited out."""
        if error.kind == "connection" and not self._has_answered:
            return min(self._patience_s, UNSEEN_PATIENCE_S)
        return self._patience_s * (COMPLAINTS_PATIENCE_FACTOR if self.complaints_only else 1)

    @property
    def is_shared_by_many(self) -> bool:
        """Whether so many calls have failed that none of them can be the cause."""
        return len(self._failed) >= OUTAGE_FAILURES

    def _is_probe(self, call: PendingCall) -> bool:
        """Whether a call left during the outage, and not before it."""
        return self.open and call.turn > self._last_before

    def _start_outage(self, error: CallError, now: float) -> None:
        """Start an outage; give back the tries that its streak has cost."""
        self._opened_at, self._interval_s, self._granted_delay_s = now, PROBE_S, 0.0
        self._last_before = self._last
        for call, failed in self._streak.items():
            call.tries -= failed
        # From here on failures cost no tries, see record_failure().
        self._streak.clear()
        self._delay_probe(error, now)

    def _delay_probe(self, error: CallError, now: float) -> None:
        """Delay the next probe, for longer if the endpoint asks for it."""
        wait_s = self._interval_s
        after_s = error.retry_after_s or 0.0
        if after_s > OBEYED_RETRY_AFTER_S:
            wait_s = after_s
            asked_s = min(after_s, self._deadline_s - self._granted_delay_s)
            self._granted_delay_s += asked_s
            self._began += asked_s  # a wait that the endpoint asks for does not use up patience
        self._next = max(self._next, now + wait_s)


T = TypeVar("T")
Turn = tuple[PendingCall, asyncio.Future[None]]
FIRST_CALL_ALONE_S = 0.1
"""Seconds for which the first call is alone, unless it ends before."""
RESUMED_CALLS, RESUMED_SHARE = 8, 4
"""Calls at once after an outage, and the part of the usual number; the larger of the two counts."""
BACKOFF_S = 0.5
"""Seconds of the first delay between two tries; later ones double."""
BACKOFF_MAX_S = 20.0
"""Maximum of the delay, in seconds."""
COMPLAINT_BACKOFF_MAX_S = 2.0
"""Maximum of the delay after a complaint; limits are kept by the pace, not by single calls."""

TEMPORARY_FAILURES = frozenset({"limited", "server", "connection", "timeout", "malformed"})
"""Kinds of failures that may be temporary."""


class Endpoint:
    """Admits calls to one address and retries temporary failures.

    * The first call is sent alone for a moment, so that a missing key costs one call.
    * Then a few calls are in progress at once, and up to ``concurrency`` while more of them bring
      more (:class:`~trustassay.calls.ramp.Ramp`). Complaints (429) slow them down if they show a
      limit (:class:`~trustassay.calls.rate_limit.Pace`).
    * Temporary failures are tried again after a random share of a delay that doubles, or after the
      ``Retry-After`` of the failed call.
    * While there are only failures, one call at a time probes, and no tries are used up
      (:class:`Outage`).
    * An endpoint is given up after nothing but failures for ``patience_s`` (ten seconds if it never
      answered), or if it tells all calls to wait for longer than ``deadline_s``. Its calls then
      fail at once until the run is started again, or until one call probes again, ``again_after_s``
      seconds later.
    """

    def __init__(
        self,
        limits: EndpointLimits,
        *,
        name: str = "",
        again_after_s: float = math.inf,
        shared: LeasedPace | None = None,
    ) -> None:
        """Start without calls, inside the event loop.

        Args:
            limits: the endpoint's limits.
            name: its address, for messages.
            again_after_s: seconds after which an endpoint that was given up is probed again.
            shared: says when calls may start, if other processes also call the address.
        """
        self.limits, self.again_after_s = limits, again_after_s
        self.failures: Counter[str] = Counter()
        self.sent = 0
        self._name = f"{name}: " if name else ""
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        # The rate is kept either here or, together with other processes, by the service that
        # leases.
        self._pace: Pace | LeasedPace = shared or Pace(limits.concurrency, now)
        self._shared = shared
        if shared:
            shared.wake = self._wake
        self._outage = Outage(limits.patience_s, limits.deadline_s)
        self._ramp = Ramp(limits.concurrency)
        self._lead_is_over = False
        self._lead_until = now
        self._in_progress = 0
        self._waiting: deque[Turn] = deque()
        self._given_up: tuple[str, CallFault] | None = None
        self._given_up_until = math.inf
        self._end_of_patience = ""
        self._sleepers: set[asyncio.Future[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._meters = RateMeters(EndpointLimits() if shared else limits, now)

    @property
    def allowed(self) -> int:
        """The number of calls that may be in progress at once now."""
        return 1 if self._outage.open else self._ramp.allowed

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        tokens: int = 0,
        check: Callable[[], None] = lambda: None,
        on_failure: Callable[[CallError], None] = lambda _: None,
    ) -> T:
        """Do ``work`` when the endpoint may be called, and again while its failures are temporary.

        The deadline starts with the first try and excludes outages, since the length of the queue
        or of an outage does not depend on this call.

        Args:
            work: sends the request once.
            tokens: estimated tokens of the call.
            check: called when its turn comes; may still cancel the call by raising.
            on_failure: called for each failed try.

        Raises:
            CallError: the last failure, with the number of tries.
        """
        call = PendingCall(tokens)
        tries = 0
        goes_first = False
        while True:
            # 1. Wait for the turn.
            await self._wait_for_place(call, goes_first=goes_first)
            try:
                # 2. The turn has come: stop if the work has ended meanwhile.
                check()
                if not call.tried:
                    call.deadline = self._clock() + self.limits.deadline_s
                tries += 1
                # 3. Send it.
                result = await self._try_once(call, work)
            finally:
                self._leave(call)
            if not isinstance(result, CallError):
                return result
            on_failure(result)
            # 4. Decide whether and when to try again.
            delay = self._delay_before_next(call, result)
            if delay is None:
                raise self._name_end(result, tries)
            goes_first = delay > 0  # in an outage another call makes the next probe
            if delay > 0:
                await self._sleep(delay)

    def _name_end(self, error: CallError, tries: int) -> CallError:
        """Return a call's last failure with why it is not tried again.

        All calls that an outage ends say the same of it, however often each was tried.
        """
        if error.kind in TEMPORARY_FAILURES and (self._given_up or self._outage.open):
            reason = f"; {self._end_of_patience}"
        elif tries > 1:
            reason = f" (after {tries} tries)"
        else:
            return error
        return CallError(f"{error}{reason}", error.kind, error.retry_after_s)

    def correct_tokens(self, more: int) -> None:
        """Record that a call took more tokens than estimated (or fewer, if negative)."""
        self._meters.take_tokens(more, self._loop.time())
        if self._shared:
            self._shared.record_tokens(more)

    def _clock(self) -> float:
        """Return the time without that of outages."""
        return self._outage.clock(self._loop.time())

    async def _try_once(self, call: PendingCall, work: Callable[[], Awaitable[T]]) -> T | CallError:
        """Do the work once, within the timeout; a failure is returned, not raised."""
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
            # A reply shows that the key is right: the others may follow.
            self._lead_is_over = True
            self._record_reply(call, now)
            self._record_latency(call, now - call.began)
            return result
        self._record_failure(call, error)
        return error

    async def _wait_for_place(self, call: PendingCall, *, goes_first: bool) -> None:
        """Wait for a free place.

        A call that is tried again stands first in the queue, except in an outage.
        """
        if self._given_up and self._loop.time() < self._given_up_until:
            raise CallError(*self._given_up)
        self._given_up = None  # its outage goes on: one call probes
        place: asyncio.Future[None] = self._loop.create_future()
        turn: Turn = (call, place)
        goes_first = goes_first and not self._outage.open
        self._waiting.appendleft(turn) if goes_first else self._waiting.append(turn)
        self._admit_more()
        try:
            await place
        except BaseException:
            # Cancelled just after its turn came: pass the place on, or it would be lost.
            if place.done() and not place.cancelled() and not place.exception():
                self._leave(call)
            raise

    def _leave(self, call: PendingCall) -> None:
        """Free the place of a call."""
        self._in_progress -= 1
        self._outage.record_end(call)
        self._admit_more()

    def _admit_more(self) -> None:
        """Let out calls from the queue as long as all limits allow it."""
        while self._waiting and self._in_progress < self._ramp.allowed:
            call, place = self._waiting[0]
            if place.done():  # its task was cancelled
                self._waiting.popleft()
                continue
            now = self._loop.time()
            # Only the first call is asked: later ones must not overtake it.
            if (wait := self._wait_s(call, now)) > 0:
                self._schedule_wake(wait)
                return
            if self._outage.open:  # a call that was tried before may be at fault itself
                untried = (turn for turn in self._waiting if not (turn[0].tried or turn[1].done()))
                call, place = next(untried, self._waiting[0])
            self._waiting.remove((call, place))
            self._record_start(call, now)
            place.set_result(None)

    def _wait_s(self, call: PendingCall, now: float) -> float:
        """Return the seconds until a call may leave, as things are now."""
        pace_s = self._pace.wait_s(call.refused, now)
        wait = max(pace_s, self._outage.wait_s(now), self._meters.wait_s(now))
        if self._in_progress and not self._lead_is_over:
            wait = max(wait, self._lead_until - now)
        return wait

    def _record_start(self, call: PendingCall, now: float) -> None:
        """Record that a call leaves."""
        if self._in_progress:
            self._lead_is_over = True
        else:
            self._lead_until = now + FIRST_CALL_ALONE_S
        self._meters.take_request(now)
        self.correct_tokens(call.tokens)
        call.turn = self._pace.take(len(self._waiting), now)
        self._outage.record_start(call, now)
        self._in_progress += 1
        call.round = self._ramp.round

    def _schedule_wake(self, wait_s: float) -> None:
        """Look at the queue again after a wait; an infinite one is ended by the end of a probe."""
        if self._alarm:
            self._alarm.cancel()
        # A little later than necessary, as rounding would otherwise make it wake up too early.
        self._alarm = (
            None if wait_s == math.inf else self._loop.call_later(wait_s + 1e-6, self._wake)
        )

    def _wake(self) -> None:
        """Look at the queue again."""
        self._alarm = None
        self._admit_more()

    def _record_reply(self, call: PendingCall, now: float) -> None:
        """End an outage; the calls that waited in it do not start all at once."""
        was_open = self._outage.open
        self._outage.record_reply(call, now)
        if was_open and not self._outage.open:
            # The endpoint worked all along, only too slowly: limit the rate, not the number of
            # calls.
            if self._outage.complaints_only:
                self._pace.end_standstill()
            else:
                self._ramp.restart(max(RESUMED_CALLS, self.limits.concurrency // RESUMED_SHARE))

    def _record_latency(self, call: PendingCall, latency_s: float) -> None:
        """Record how long an answer took; what is refused at once would say nothing of answers."""
        self._pace.record_reply(call.turn, latency_s)
        # The number of calls is what limits them only while further ones wait for a place.
        if self._waiting and self._in_progress >= self._ramp.allowed:
            self._ramp.record_reply(call.round, latency_s)

    def _record_failure(self, call: PendingCall, error: CallError) -> None:
        """Record a failure; one that is not temporary counts as a reply."""
        self.failures[error.kind] += 1
        now = self._loop.time()
        self._lead_is_over |= error.kind != "closed"
        # A malformed reply is tried again, but the endpoint is not down.
        if error.kind not in TEMPORARY_FAILURES or error.kind == "malformed":
            call.tries += 1
            self._record_reply(call, now)
            return
        if error.kind == "limited":
            call.refused += 1
            # In an outage complaints are expected, and say nothing about the rate.
            if not self._outage.open:
                self._pace.record_complaint(call.turn, now - call.began)
        self._outage.record_failure(call, error, now)
        if not self._outage.open:
            return
        after_s = error.retry_after_s or 0.0
        # The wait ends after the deadline of any call, so give up at once.
        if error.kind == "limited" and after_s > self.limits.deadline_s:
            self._end_of_patience = f"the endpoint asks for a wait of {after_s:,.0f} s"
            self._give_up(error)
        elif self._outage.is_patience_over(call, error, now):
            patience_s = self._outage.patience_s(error)
            self._end_of_patience = f"no other reply came for {patience_s:g} s"
            self._lose_patience(error)

    def _lose_patience(self, error: CallError) -> None:
        """Fail all waiting calls; give the endpoint up if some of them have not been tried yet.

        If all have been tried, they may be at fault themselves, and later calls may still be tried.
        """
        waiting = [turn for turn in self._waiting if not turn[1].done()]
        if self._outage.is_shared_by_many and any(not call.tried for call, _ in waiting):
            self._give_up(error)
            return
        tried = [place for call, place in waiting if call.tried]
        for future in (*tried, *self._sleepers):
            if not future.done():
                message = f"{error}; {self._end_of_patience}"
                future.set_exception(CallError(message, error.kind))

    def _give_up(self, error: CallError) -> None:
        """Fail all calls that wait for their turn, and wake those that wait for another try."""
        self._end_of_patience += ", so no more requests are sent"
        self._given_up = (f"{error}; {self._end_of_patience}", error.kind)
        self._given_up_until = self._loop.time() + self.again_after_s
        while self._waiting:
            _, place = self._waiting.popleft()
            if not place.done():
                place.set_exception(CallError(*self._given_up))
        # They find the endpoint given up, and fail with their own errors.
        for sleeper in self._sleepers:
            _wake_up(sleeper)

    def _delay_before_next(self, call: PendingCall, error: CallError) -> float | None:
        """Return the seconds before a call's next try; ``None`` if it is not tried again."""
        if error.kind not in TEMPORARY_FAILURES or self._given_up:
            return None
        if self._outage.open:
            return None if self._outage.is_patience_over(call, error, self._loop.time()) else 0.0
        delay = self._compute_delay(error, call.tries)
        last = call.tries >= self.limits.tries or self._clock() + delay > call.deadline
        return None if last else delay

    async def _sleep(self, delay: float) -> None:
        """Wait before another try, at most until the endpoint is given up."""
        sleeper: asyncio.Future[None] = self._loop.create_future()
        alarm = self._loop.call_later(delay, _wake_up, sleeper)
        self._sleepers.add(sleeper)
        try:
            await sleeper
        finally:
            alarm.cancel()
            self._sleepers.discard(sleeper)

    def _compute_delay(self, error: CallError, tries: int) -> float:
        """Return the seconds before the next try: a random part of the backoff, or as asked for."""
        max_delay_s = COMPLAINT_BACKOFF_MAX_S if error.kind == "limited" else BACKOFF_MAX_S
        # Random, so that calls that failed together do not come back together.
        backoff: float = min(max_delay_s, BACKOFF_S * 2 ** max(0, tries - 1))
        jitter = backoff * random.random()
        # Up to a tenth more, for the same reason.
        if error.retry_after_s is not None:
            return error.retry_after_s + min(jitter, 0.1 * error.retry_after_s)
        return jitter


def _wake_up(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
