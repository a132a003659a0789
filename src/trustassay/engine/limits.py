"""What stands between the engine and an endpoint: how many calls at once, how fast, tried again.

All metrics and models of a run that speak to one address share one :class:`Endpoint`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trustassay.capabilities import CallError, EndpointLimits

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
    ``patience_s`` counts as gone: its calls fail at once until the run is started again.
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
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cut_at = self._paused_until = self._failing_since = now
        self._complaints = self._failed = 0
        self._gone: CallError | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._requests = _meter(limits.requests_per_minute, now)
        self._tokens = _meter(limits.tokens_per_minute, now)

    @property
    def allowed(self) -> int:
        """How many calls may be under way at once just now."""
        return max(1, int(self._allowed))

    async def call(self, work: Callable[[], Awaitable[T]], tokens: int = 0) -> T:
        """Do ``work`` when the endpoint may be asked, and again while its failures may pass.

        Raises:
            CallError: the last failure, with the number of tries.
        """
        deadline = self._loop.time() + self.limits.deadline_s
        tries = 0
        while True:
            await self._admitted(tokens, first=tries > 0)
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
                self._active -= 1
                self._admit_more()
            delay = self._delay(error, tries)
            last = tries >= self.limits.tries or self._loop.time() + delay > deadline
            if error.kind not in PASSING or self._gone or last:
                raise self._final(error, tries)
            await asyncio.sleep(delay)

    def took(self, more: int) -> None:
        """Say that a call took so many tokens more than was thought (or fewer)."""
        if self._tokens:
            self._tokens.take(more, self._loop.time())

    async def _admitted(self, tokens: int, *, first: bool) -> None:
        """Wait for a free place; who comes again stands first in the queue."""
        if self._gone:
            raise self._gone
        place: asyncio.Future[None] = self._loop.create_future()
        self._waiting.appendleft(place) if first else self._waiting.append(place)
        self._admit_more()
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled() and not place.exception():
                self._active -= 1
                self._admit_more()
            raise
        if self._tokens:
            self._tokens.take(tokens, self._loop.time())

    def _admit_more(self) -> None:
        while self._waiting and self._active < self.allowed:
            place = self._waiting[0]
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
            self._waiting.popleft()
            self._active += 1
            place.set_result(None)

    def _wake(self) -> None:
        self._alarm = None
        self._admit_more()

    def _good(self) -> None:
        self._complaints = self._failed = 0
        if self._adaptive and self._active >= self.allowed:
            more = GROWTH if self._growing else REGROWTH
            self._allowed = min(self._allowed + more, float(self.limits.concurrency))

    def _bad(self, error: CallError, began: float) -> None:
        """Take a failure into account; several from one round of calls halve only once."""
        self.failures[error.kind] += 1
        now = self._loop.time()
        if error.kind == "limited":
            self._growing = False
            if self._adaptive and began >= self._cut_at:
                self._cut_at = now
                self._allowed = max(1.0, self._allowed / 2)
            self._complaints += 1
            all_over = self._complaints >= max(IN_A_ROW, self.allowed // 4)
            if all_over and error.retry_after_s:
                self._paused_until = max(self._paused_until, now + error.retry_after_s)
        elif error.kind in PASSING and error.kind != "malformed":
            if self._failed == 0:
                self._failing_since = began
            self._failed += 1
            if self._failed >= GONE and now - self._failing_since >= self.limits.patience_s:
                self._give_up(error)

    def _give_up(self, error: CallError) -> None:
        words = f"{error}; nothing else came for {self.limits.patience_s:g} s, so it counts as gone"
        self._gone = CallError(words, error.kind)
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_exception(self._gone)

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


def _meter(per_minute: float | None, now: float) -> Meter | None:
    return Meter(per_minute, now) if per_minute else None
