"""Runs a coroutine to its end from plain code, also where an event loop is running already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

__all__ = ["run_anywhere"]

T = TypeVar("T")


def run_anywhere(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end, also where an event loop is already running."""
    if not _in_event_loop():
        return asyncio.run(work())
    result: list[T] = []
    errors: list[BaseException] = []
    stop: list[Callable[[], object]] = []
    ended = threading.Event()  # Thread.join does not survive an interruption

    async def stoppable() -> T:
        task = asyncio.current_task()
        assert task
        stop.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        return await work()

    def in_thread() -> None:
        try:
            result.append(asyncio.run(stoppable()))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=in_thread, name="trustassay-score").start()
    try:
        ended.wait()
    except BaseException:  # an interruption, which comes to the main thread alone
        with suppress(IndexError, RuntimeError):
            stop[0]()
        ended.wait()
        raise
    if errors:
        raise errors[0]
    return result[0]


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
