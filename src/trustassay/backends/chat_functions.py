"""A Python function as a chat model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from trustassay.backends.functions import function_name
from trustassay.backends.layout import plain
from trustassay.capabilities import ChatRequest, EndpointLimits, Reply
from trustassay.errors import BackendError

__all__ = ["FunctionChat"]


class FunctionChat:
    """Wraps ``function(prompt)``, plain or async, which returns a text or a :class:`Reply`.

    It receives the text of the chat (:func:`~trustassay.backends.layout.plain`), or, if its
    first parameter is called ``request`` or annotated as :class:`ChatRequest`, the whole request
    with temperature, seed and the other parameters. It is called once for each of ``n`` replies,
    unless it returns them all in one :class:`Reply`. A plain function is called in threads,
    several at a time.
    """

    shared = False  # what it calls may change under its name
    limits = EndpointLimits(concurrency=64, timeout_s=600, deadline_s=1800)

    def __init__(self, function: Callable[[Any], Any], name: str | None = None) -> None:
        if not callable(function) or isinstance(function, type):
            raise BackendError(
                f"expected a chat model (an object or a function), got {function!r:.60}"
            )
        self._function = function
        self._whole = _wants_request(function)
        called = function if inspect.isroutine(function) else function.__call__  # type: ignore[operator]
        self._waits = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._threads: ThreadPoolExecutor | None = None
        self.name = name or function_name(function)

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request.

        Raises:
            BackendError: the function raised an exception, or returned a wrong type. A
                :class:`CallError` that it raises is passed on.
        """
        first = await self._called(request)
        given = 1 + len(first.others)
        if given >= request.n:
            return first
        if given > 1:
            raise BackendError(f"{self.name} returned {given} replies instead of {request.n}")
        others = await asyncio.gather(*(self._called(request) for _ in range(request.n - 1)))
        return replace(first, others=tuple(other.text for other in others))

    async def close(self) -> None:
        """Release the threads; calls in progress continue, but their results are not used."""
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = None

    async def _called(self, request: ChatRequest) -> Reply:
        given = request if self._whole else plain(request.messages)
        try:
            if self._waits:
                found = await self._function(given)
            else:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._pool(), _carried, self._function, given)
                if inspect.isawaitable(found):
                    found = await found
        except BackendError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")
            raise BackendError(f"{self.name} failed: {reason}") from error
        if isinstance(found, str):
            return Reply(found)
        if not isinstance(found, Reply):
            raise BackendError(f"{self.name} returned {found!r:.60}; expected a text or a Reply")
        return found

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.limits.concurrency, "trustassay-function")
        return self._threads


def _carried(function: Callable[[Any], Any], given: Any) -> Any:
    """Call a function in a thread; no future can carry a StopIteration, before Python 3.12."""
    try:
        return function(given)
    except StopIteration as error:
        raise RuntimeError(f"StopIteration {error}".strip()) from error


def _wants_request(function: Callable[[Any], Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions do not tell
        return False
    if not parameters:
        return False
    note = parameters[0].annotation
    annotated = note is ChatRequest or str(note).rpartition(".")[2] == "ChatRequest"
    return annotated or parameters[0].name == "request"
