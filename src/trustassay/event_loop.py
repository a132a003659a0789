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
        return _run(work)
    result: list[T] = []
    errors: list[BaseException] = []
    stop: list[Callable[[], object]] = []
    interrupted, ended = threading.Event(), threading.Event()

    async def stoppable() -> T:
        task = asyncio.current_task()
        assert task
        stop.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        if interrupted.is_set():  # before there was anything to stop
            raise asyncio.CancelledError
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
        ended.wait()  # Thread.join does not survive an interruption
    except BaseException:  # an interruption, which comes to the main thread alone
        interrupted.set()
        with suppress(IndexError, RuntimeError):
            stop[0]()
        ended.wait()
        raise
    if errors:
        raise errors[0]
    return result[0]


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do as ``asyncio.run``; a second interruption, which may strike any task, is no report."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(_report)
        return runner.run(work())


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
