"""Tasks of which only so many are in progress at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["TaskLimiter"]


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
