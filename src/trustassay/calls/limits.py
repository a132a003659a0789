"""What stands between the engine and an endpoint: how many calls at once, how fast, tried again.

All metrics and models of a run that speak to one address share one :class:`Endpoint`.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trustassay.capabilities import EndpointLimits
from trustassay.errors import CallError, CallFault

__all__ = ["Endpoint", "Meter"]

T = TypeVar("T")
START = 32
GROWTH = 2.0
"""Calls at once to begin with; so many more with each reply until the first complaint."""
REGROWTH = 0.5
"""So many more with each reply after a complaint: one that came by chance is soon made up for."""
IN_A_ROW = 3
BACKOFF_S = 0.5
BACKOFF_MOST_S = 20.0
UNSEEN_S = 10.0
"""Patience with an address at which nobody has answered yet: likely a wrong one."""
GONE = 5
"""Failures in a row, without one reply, from which an endpoint can count as gone."""

PASSING = frozenset({"limited", "server", "connection", "timeout", "malformed"})


class Meter:
    """So much a minute: a level that fills up and may be overdrawn by what comes last.

    At most a second's worth is saved up, so that the first minute is as even as the others.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60
        self._most = max(self._rate, 1.0)
        self._level, self._at = self._most, now

    def wait_s(self, now: float) -> float:
        """Return the seconds until the level is above zero."""
        self._fill(now)
        return 0.0 if self._level >= 1e-9 else (1e-9 - self._level) / self._rate + 1e-6

    def take(self, amount: float, now: float) -> None:
        """Take ``amount``; a negative one gives back."""
        self._fill(now)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now


class Endpoint:
    """Admits calls to one address and tries again what may pass.

    Calls at once: they begin at 32 and grow by two with every reply; from the first complaint (429)
    on they are halved, once a round, and grow by half of one with every reply. A complaint's
    ``Retry-After`` holds its own call back; several in a row without a reply between them (three,
    or a quarter of the calls at once) hold back all. What else may pass is tried again after a
    random share of a delay that doubles. An endpoint that has given nothing but failures for
    ``patience_s`` (ten seconds where nobody has ever answered), or asks to be left alone for longer
    than ``deadline_s``, counts as gone: its calls fail at once until the run is started again.
    """

    def __init__(self, limits: EndpointLimits, *, adaptive: bool = True) -> None:
        self.limits = limits
        self.failures: Counter[str] = Counter()
        self.sent = 0
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._adaptive = adaptive
        self._allowed = float(min(START, limits.concurrency) if adaptive else limits.concurrency)
        self._growing = True
        self._active = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._cut_at = self._paused_until = self._failing_since = now
        self._complaints = self._failed = 0
        self._seen = False
        self._gone: tuple[str, CallFault] | None = None
        self._sleepers: set[asyncio.Future[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._requests = _meter(limits.requests_per_minute, now)
        self._tokens = _meter(limits.tokens_per_minute, now)

    @property
    def allowed(self) -> int:
        """How many calls may be under way at once just now."""
        return max(1, int(self._allowed))

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        tokens: int = 0,
        check: Callable[[], None] = lambda: None,
        failed: Callable[[CallError], None] = lambda _: None,
    ) -> T:
        """Do ``work`` when the endpoint may be asked, and again while its failures may pass.

        ``check`` may still call it off when its turn has come, by raising; ``failed`` is told of
        each try that failed. The deadline counts from the first try: how long the queue was says
        nothing about this call.

        Raises:
            CallError: the last failure, with the number of tries.
        """
        deadline = math.inf
        tries = 0
        while True:
            await self._admitted(tokens, first=tries > 0)
            try:
                check()
            except BaseException:
                self._leave()
                raise
            if tries == 0:
                deadline = self._loop.time() + self.limits.deadline_s
            tries += 1
            self.sent += 1
            began = self._loop.time()
            try:
                async with asyncio.timeout(self.limits.timeout_s):
                    result = await work()
                self._good()
                return result
            except TimeoutError:
                error = CallError(f"no reply within {self.limits.timeout_s:g} s", "timeout")
                self._bad(error, began)
            except CallError as failure:
                error = failure
                self._bad(error, began)
            finally:
                self._leave()
            failed(error)
            delay = self._delay(error, tries)
            last = tries >= self.limits.tries or self._loop.time() + delay > deadline
            if error.kind not in PASSING or self._gone or last:
                raise self._final(error, tries)
            await self._sleep(delay)

    def took(self, more: int) -> None:
        """Say that a call took so many tokens more than was thought (or fewer)."""
        if self._tokens:
            self._tokens.take(more, self._loop.time())

    async def _admitted(self, tokens: int, *, first: bool) -> None:
        """Wait for a free place; who comes again stands first in the queue."""
        if self._gone:
            raise CallError(*self._gone)
        place: asyncio.Future[None] = self._loop.create_future()
        turn = (place, tokens)
        self._waiting.appendleft(turn) if first else self._waiting.append(turn)
        self._admit_more()
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled() and not place.exception():
                self._leave()
            raise

    def _leave(self) -> None:
        self._active -= 1
        self._admit_more()

    def _admit_more(self) -> None:
        while self._waiting and self._active < self.allowed:
            place, tokens = self._waiting[0]
            if place.done():  # its task was cancelled
                self._waiting.popleft()
                continue
            now = self._loop.time()
            wait = self._paused_until - now
            for meter in (self._requests, self._tokens):
                wait = max(wait, meter.wait_s(now)) if meter else wait
            if wait > 0:
                if self._alarm is None:
                    self._alarm = self._loop.call_later(wait, self._wake)
                return
            if self._requests:
                self._requests.take(1, now)
            if self._tokens:
                self._tokens.take(tokens, now)
            self._waiting.popleft()
            self._active += 1
            place.set_result(None)

    def _wake(self) -> None:
        self._alarm = None
        self._admit_more()

    def _good(self) -> None:
        self._seen = True
        self._complaints = self._failed = 0
        if self._adaptive and self._active >= self.allowed:
            more = GROWTH if self._growing else REGROWTH
            self._allowed = min(self._allowed + more, float(self.limits.concurrency))

    def _bad(self, error: CallError, began: float) -> None:
        """Take a failure into account; several from one round of calls halve only once."""
        self.failures[error.kind] += 1
        self._seen |= error.kind not in ("connection", "timeout")
        now = self._loop.time()
        if error.kind == "limited":
            self._growing = False
            if self._adaptive and began >= self._cut_at:
                self._cut_at = now
                self._allowed = max(1.0, self._allowed / 2)
            self._complaints += 1
            all_over = self._complaints >= max(IN_A_ROW, self.allowed // 4)
            if all_over and (error.retry_after_s or 0) > self.limits.deadline_s:
                self._give_up(f"{error}; it asks to wait {error.retry_after_s:,.0f} s", error.kind)
            elif all_over and error.retry_after_s:
                self._paused_until = max(self._paused_until, now + error.retry_after_s)
        elif error.kind in PASSING and error.kind != "malformed":
            if self._failed == 0:
                self._failing_since = began
            self._failed += 1
            patience_s = self.limits.patience_s
            if error.kind == "connection" and not self._seen:
                patience_s = min(patience_s, UNSEEN_S)
            if self._failed >= GONE and now - self._failing_since >= patience_s:
                self._give_up(f"{error}; nothing else came for {patience_s:g} s", error.kind)

    def _give_up(self, words: str, kind: CallFault) -> None:
        """Let all fail that wait for their turn, or for another try."""
        self._gone = (f"{words}, so it counts as gone", kind)
        while self._waiting:
            place, _ = self._waiting.popleft()
            if not place.done():
                place.set_exception(CallError(*self._gone))
        for sleeper in self._sleepers:
            _wake_up(sleeper)

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
        backoff: float = min(BACKOFF_MOST_S, BACKOFF_S * 2 ** (tries - 1))
        jitter = backoff * random.random()
        if error.retry_after_s is not None:
            return error.retry_after_s + min(jitter, 0.1 * error.retry_after_s)
        return jitter

    def _final(self, error: CallError, tries: int) -> CallError:
        if tries == 1:
            return error
        return CallError(f"{error} (after {tries} tries)", error.kind, error.retry_after_s)


def _wake_up(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _meter(per_minute: float | None, now: float) -> Meter | None:
    return Meter(per_minute, now) if per_minute else None
