"""Run coroutines from synchronous code, even inside a running event loop; and run several at
once."""

import asyncio
import gc
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
# A signal that the system delivers to another thread does not end a wait of the main thread, which
# therefore waits in steps of this length.
POLL_INTERVAL_S = 0.5
GC_THRESHOLD = 10_000
"""Number of new objects after which Python collects cyclic garbage while calls are made; 700 by
default."""

_gc_lock = threading.Lock()
_active_runs = 0
_usual_gc_thresholds = gc.get_threshold()


def run_anywhere(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end, even if an event loop is already running.

    Inside a running loop (a notebook) the work gets a loop of its own in another thread, and the
    calling thread waits for it.
    """
    if not _is_in_event_loop():
        return _run(work)
    # Lists, so that the thread can hand over a value that may itself be None.
    result: list[T] = []
    errors: list[BaseException] = []
    stop: list[Callable[[], object]] = []
    interrupted, ended = threading.Event(), threading.Event()

    async def stoppable() -> T:
        task = asyncio.current_task()
        assert task
        stop.append(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        # Ctrl-C can arrive before `stop` holds the function to call; then nobody else would cancel.
        if interrupted.is_set():
            raise asyncio.CancelledError
        return await work()

    def in_thread() -> None:
        try:
            result.append(_run(stoppable))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=in_thread, name="trustassay-score").start()
    try:
        # Thread.join cannot be resumed after an interruption. The timeout lets the main thread run
        # the handler of a signal that the operating system delivered to another thread.
        while not ended.wait(POLL_INTERVAL_S):
            pass
    # Python raises KeyboardInterrupt in the main thread alone: pass it on to the loop, and wait
    # until running calls are stored.
    except BaseException:
        interrupted.set()
        # IndexError: nothing to stop yet. RuntimeError: the loop has just closed.
        with suppress(IndexError, RuntimeError):
            stop[0]()
        ended.wait()
        raise
    if errors:
        raise errors[0]
    return result[0]


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do as ``asyncio.run``, but do not report a second interruption, which may hit any task."""

    # Python 3.11 formats the result of the main task with repr for a debug message that nobody
    # reads; the repr of a run would read all its assessments.
    async def wrap_result() -> Callable[[], T]:
        result = await work()
        return lambda: result

    with _collect_garbage_less_often(), asyncio.Runner() as runner:
        loop = runner.get_loop()
        loop.set_exception_handler(_report_unless_interrupted)
        with _wake_on_signals(loop):
            return runner.run(wrap_result())()


@contextmanager
def _wake_on_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake the main thread's event loop for a signal that reached another thread.

    Also for one that came just before the loop went to sleep. On Windows asyncio does this itself.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or sys.platform == "win32":
        yield
        return
    # The interpreter writes the number of each signal into one socket; reading from the other wakes
    # the selector, and the pending handler runs.
    write_end, read_end = socket.socketpair()
    with write_end, read_end:
        # set_wakeup_fd demands it: a handler that blocks on a full socket would hang the process.
        write_end.setblocking(False)
        read_end.setblocking(False)
        loop.add_reader(read_end, read_end.recv, 4096)
        # A full buffer is no problem: one byte is enough to wake the loop.
        earlier_descriptor = signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier_descriptor)
            loop.remove_reader(read_end)


@contextmanager
def _collect_garbage_less_often() -> Iterator[None]:
    """Raise the threshold of Python's cyclic garbage collector while calls are made.

    A call makes many objects and few cycles. The old thresholds return with the last run that ends.
    """
    global _active_runs, _usual_gc_thresholds  # noqa: PLW0603 - as the threshold, one for the process
    with _gc_lock:
        # Counted, since several runs can be active in threads and the threshold belongs to the
        # whole process.
        if _active_runs == 0:
            _usual_gc_thresholds = gc.get_threshold()
            # 0 means that the user switched the collector off; a larger threshold is also the
            # user's own.
            if 0 < _usual_gc_thresholds[0] < GC_THRESHOLD:
                gc.set_threshold(GC_THRESHOLD, *_usual_gc_thresholds[1:])
        _active_runs += 1
    try:
        yield
    finally:
        with _gc_lock:
            _active_runs -= 1
            if _active_runs == 0:
                gc.set_threshold(*_usual_gc_thresholds)


def _report_unless_interrupted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error of the event loop as usual, but not a KeyboardInterrupt."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# Thousands of coroutines started in one go would delay replies that have already arrived.
STARTS_PER_TURN = 16
"""Number of coroutines that are started before other work of the event loop gets a turn."""


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Run awaitables at once and return their results in order.

    Waits for all of them, then raises the first failure by position. If this task is cancelled, all
    of them are.
    """
    futures: list[asyncio.Future[T]] = []
    try:
        for number, awaitable in enumerate(work, 1):
            futures.append(asyncio.ensure_future(awaitable))
            if number % STARTS_PER_TURN == 0:
                await asyncio.sleep(0)
        # Without `return_exceptions` gather would raise the first failure while others still run.
        await asyncio.gather(*futures, return_exceptions=True)
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [future.result() for future in futures]


async def run_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run ``work`` in a thread; when this task is cancelled, ask it to stop and wait for its end.

    Args:
        work: receives the event that is set when it is to stop.

    Raises:
        asyncio.CancelledError: cancelled, even if the work finished meanwhile.
    """
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        # A thread cannot be cancelled: without the shield the future would end while the thread
        # goes on writing files.
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        # The StoppedError of `work` itself, perhaps wrapped by a library, says nothing new.
        with suppress(Exception):
            await running
        raise


class TaskLimiter:
    """Runs at most ``size`` tasks at once; the first unexpected error stops the intake of more.

    Leaving the block waits for all tasks. An error in the block or in a task cancels the others,
    and the block ends when they have stored what they have.
    """

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._group = asyncio.TaskGroup()

    async def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start ``work`` as soon as there is room for it; cancelled if an earlier task failed."""
        try:
            await self._free.acquire()
            task = self._group.create_task(work)
        except BaseException:
            # A coroutine that never starts would warn "was never awaited".
            work.close()
            raise
        task.add_done_callback(lambda _: self._free.release())

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            # Callers want the first error itself; those that followed from it say nothing new.
            raise group.exceptions[0] from None
