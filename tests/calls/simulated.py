"""Endpoints on a clock that jumps, each with faults and limits of its own, and a plain loop.

A server is made of rules. A rule is told the tokens of a call when it arrives, and returns the
failure that the call meets, or ``None``; the first failure counts. Complaints (429) come after
``refused_s``, everything else after the latency.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.virtual_time import now
from trustassay.calls.retry import Endpoint
from trustassay.errors import CallError, CallFault

Rule = Callable[[int], CallError | None]
Length = Callable[[], float]
"""Returns the seconds that one call takes a server by itself."""


@dataclass
class Server:
    """Answers calls; ``latency_s`` is a number, or a function that draws one."""

    rules: Sequence[Rule] = ()
    latency_s: float | Callable[[], float] = 0.1
    refused_s: float = 0.005
    active: int = 0
    most: int = 0
    came: Counter[str] = field(default_factory=Counter)
    sent_at: list[float] = field(default_factory=list)

    async def __call__(self, tokens: int = 0) -> str:
        self.sent_at.append(now())
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            error = next((found for rule in self.rules if (found := rule(tokens))), None)
            self.came[error.kind if error else "answered"] += 1
            late = self.latency_s if isinstance(self.latency_s, int | float) else self.latency_s()
            await asyncio.sleep(self.refused_s if error and error.kind == "limited" else late)
        finally:
            self.active -= 1
        if error:
            raise error
        return "ok"

    @property
    def complaints(self) -> float:
        """Complaints for each call that was answered."""
        return self.came["limited"] / self.came["answered"]


def limited(retry_after_s: float | None = None) -> CallError:
    return CallError("429", "limited", retry_after_s)


def noise(
    seed: int = 0, retry_after_s: float | None = None, **shares: float
) -> Callable[[int], CallError | None]:
    """Fail shares of the calls at random: ``limited=0.05`` and so on."""
    drawn = random.Random(seed)

    def rule(_: int) -> CallError | None:
        at = drawn.random()
        for kind, share in shares.items():
            at -= share
            if at < 0:
                after = retry_after_s if kind == "limited" else None
                return CallError(kind, kind, after)  # type: ignore[arg-type]
        return None

    return rule


def usual_noise(seed: int, retry_after_s: float | None) -> Rule:
    return noise(seed, retry_after_s, limited=0.05, server=0.02, malformed=0.01, connection=0.01)


def during(kind: CallFault, begin_s: float, seconds: float) -> Rule:
    """Fail all calls that arrive in a span of time."""

    def rule(_: int) -> CallError | None:
        return CallError(kind, kind) if begin_s <= now() < begin_s + seconds else None

    return rule


def bucket(
    per_s: Callable[[], float] | float,
    burst: float,
    retry_after_s: float | None = None,
    *,
    of_tokens: bool = False,
) -> Rule:
    """Let in so much a second, and ``burst`` of it at once after a rest."""
    level, at = burst, 0.0

    def rule(tokens: int) -> CallError | None:
        nonlocal level, at
        rate = per_s if isinstance(per_s, int | float) else per_s()
        level, at = min(burst, level + (now() - at) * rate), now()
        amount = tokens if of_tokens else 1
        if level < amount:
            return limited(retry_after_s)
        level -= amount
        return None

    return rule


def sliding_window(calls: int, window_s: float, retry_after_s: float | None = None) -> Rule:
    """Let in so many calls in any span of ``window_s``; a call that was refused counts not."""
    taken: deque[float] = deque()

    def rule(_: int) -> CallError | None:
        while taken and taken[0] <= now() - window_s:
            taken.popleft()
        if len(taken) >= calls:
            return limited(retry_after_s)
        taken.append(now())
        return None

    return rule


def fixed_window(calls: int, window_s: float, tells: bool) -> Rule:
    """Let in so many calls in each span of the clock; ``tells`` how long the rest of it is."""
    taken: Counter[int] = Counter()

    def rule(_: int) -> CallError | None:
        number = int(now() / window_s)
        if taken[number] >= calls:
            return limited((number + 1) * window_s - now() if tells else None)
        taken[number] += 1
        return None

    return rule


def at_once(server: Callable[[], Server], most: int, retry_after_s: float | None = None) -> Rule:
    """Let in a call while fewer than ``most`` are being answered."""
    return lambda _: limited(retry_after_s) if server().active > most else None


class Queue:
    """Answers so many calls at once, and the others after them, as llama.cpp does."""

    def __init__(self, slots: int, length_s: Length) -> None:
        self._slots, self._length_s = asyncio.Semaphore(slots), length_s

    async def __call__(self) -> None:
        async with self._slots:
            await asyncio.sleep(self._length_s())


class Shared:
    """Answers all calls at once, each the slower the more there are: a batch in one processor.

    Up to ``slots`` calls do not slow each other down.
    """

    def __init__(self, slots: int, length_s: Length) -> None:
        self._slots, self._length_s = slots, length_s
        self._left: dict[asyncio.Future[None], float] = {}
        self._at = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    async def __call__(self) -> None:
        self._work()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._left[done] = self._length_s()
        self._plan()
        await done

    @property
    def _speed(self) -> float:
        return min(1.0, self._slots / max(1, len(self._left)))

    def _work(self) -> None:
        for call in self._left:
            self._left[call] -= (now() - self._at) * self._speed
        self._at = now()

    def _plan(self) -> None:
        if self._alarm:
            self._alarm.cancel()
        if self._left:
            wait_s = max(0.0, min(self._left.values())) / self._speed
            self._alarm = asyncio.get_running_loop().call_later(wait_s, self._finish)

    def _finish(self) -> None:
        self._work()
        for call in [call for call, left_s in self._left.items() if left_s <= 1e-9]:
            del self._left[call]
            call.set_result(None)
        self._plan()


async def ask_all(
    place: Endpoint, server: Server, sizes: Sequence[int]
) -> tuple[list[object], float]:
    """Return what came of each call, and the seconds that all took."""
    began = now()

    def work(tokens: int) -> Callable[[], Awaitable[str]]:
        return lambda: server(tokens)

    calls = (place.call(work(tokens), tokens) for tokens in sizes)
    found: list[object] = list(await asyncio.gather(*calls, return_exceptions=True))
    return found, now() - began


async def plain_loop(server: Server, sizes: Sequence[int], concurrency: int) -> float:
    """Ask as most people's first program would; return the seconds."""
    began = now()
    places = asyncio.Semaphore(concurrency)

    async def one(tokens: int) -> None:
        async with places:
            for tried in range(1000):
                try:
                    await server(tokens)
                    return
                except CallError as error:
                    backoff: float = min(20.0, 0.5 * 2**tried) * random.random()
                    await asyncio.sleep(error.retry_after_s or backoff)

    await asyncio.gather(*map(one, sizes))
    return now() - began
