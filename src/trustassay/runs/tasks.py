"""Tasks of which only so many are in progress at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from trustassay.progress import Progress

T = TypeVar("T")

COUNTED_AT_ONCE = 16
SHOWN_AFTER_S = 1.0


class StoppedError(Exception):
    """Raised by a step of work that was asked to stop."""


class Steps:
    """Shows the steps that take longer than a second, on standard error, if ``shown``.

    Once ``stop`` is set, every step ends with a :class:`StoppedError`.
    """

    def __init__(self, *, shown: bool | None = False, stop: threading.Event | None = None) -> None:
        self._shown, self._stop = shown, stop or threading.Event()

    @contextmanager
    def begin(self, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Begin a step, and return the function to call for each of the ``total`` items."""
        self._go_on()
        waiting = 0
        with Progress(what, total, shown=self._shown, after_s=SHOWN_AFTER_S) as progress:

            def step() -> None:
                nonlocal waiting
                waiting += 1
                if waiting == COUNTED_AT_ONCE:
                    self._go_on()
                    progress.step(waiting)
                    waiting = 0

            yield step
            if progress.done:
                progress.step(waiting)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise StoppedError


async def run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run ``work`` in a thread; when this task is cancelled, ask it to stop, and wait for its end.

    ``work`` receives the event that is then set.

    Raises:
        asyncio.CancelledError: cancelled, even if the work was finished meanwhile.
    """
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        with suppress(Exception):  # a library may have put an error of its own around StoppedError
            await running
        raise


class TaskLimiter:
    """At most ``size`` tasks at once; the first unexpected error stops the intake of more."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None

    async def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start ``work`` as soon as there is room for it."""
        try:
            await self._free.acquire()
            if self._error:
                raise self._error
        except BaseException:
            work.close()
            raise
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()
        if not task.cancelled() and task.exception():
            self._error = self._error or task.exception()

    async def drain(self) -> None:
        """Wait for all tasks, or for the first unexpected error."""
        while self._tasks and not self._error:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
