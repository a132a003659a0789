"""An event loop whose clock jumps: an hour of waiting takes no time and is exact."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("nothing will ever happen: a task waits that nobody will wake")
        found = super().select(0)
        if not found:
            self.now += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = _Selector()
        super().__init__(self.clock)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.clock.now


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end; a deadlock is an error, and delays are repeatable."""
    random.seed(0)
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work())


def now() -> float:
    return asyncio.get_running_loop().time()
