"""The two doors of a scorer: ``async with`` in an event loop, ``with`` for threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Any

from trustassay.sample import Sample
from trustassay.workflows.scorer import Assay, Scorer, ScorerClosedError

__all__ = ["OpenScorer", "ThreadScorer"]


class OpenScorer:
    """Opens a scorer once: ``async with`` gives a :class:`Scorer`, ``with`` a
    :class:`ThreadScorer`.
    """

    def __init__(self, door: Callable[[], AbstractAsyncContextManager[Scorer]]) -> None:
        self._door = door
        self._inside: AbstractAsyncContextManager[Scorer] | None = None
        self._threads: ThreadScorer | None = None

    async def __aenter__(self) -> Scorer:
        self._inside = self._door()
        return await self._inside.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        assert self._inside
        return await self._inside.__aexit__(kind, error, trace)

    def __enter__(self) -> ThreadScorer:
        self._threads = ThreadScorer(self._door)
        return self._threads

    def __exit__(self, *_: object) -> None:
        assert self._threads
        self._threads.close()


class ThreadScorer:
    """A scorer in an event loop of its own, whose :meth:`score` any number of threads may call."""

    def __init__(self, door: Callable[[], AbstractAsyncContextManager[Scorer]]) -> None:
        """Open the scorer; raises what opening it raises."""
        ready: Future[Scorer] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(door, ready), name="trustassay-scorer", daemon=True
        )
        self._thread.start()
        self._scorer = ready.result()

    def score(self, sample: Sample | Mapping[str, Any]) -> Assay:
        """Wait for the result; as :meth:`Scorer.score`, with the same errors."""
        future = self.submit(sample)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # of an interruption; a finished one stays as it is
            raise

    def submit(self, sample: Sample | Mapping[str, Any]) -> Future[Assay]:
        """Return a future of what :meth:`score` returns, without waiting.

        Raises:
            ScorerClosedError: the scorer is closed.
        """
        work = self._scorer.score(sample)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise ScorerClosedError("this scorer is closed; open another one") from None

    def close(self) -> None:
        """Finish what was accepted, and close; raises what closing raises."""
        self.stop()
        self._ended.result()

    def stop(self) -> None:
        """Begin to close, and do not wait for it."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._close.set)

    def _run(
        self, door: Callable[[], AbstractAsyncContextManager[Scorer]], ready: Future[Scorer]
    ) -> None:
        try:
            asyncio.run(self._serve(door, ready))
        except BaseException as error:
            (self._ended if ready.done() else ready).set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(
        self, door: Callable[[], AbstractAsyncContextManager[Scorer]], ready: Future[Scorer]
    ) -> None:
        self._loop, self._close = asyncio.get_running_loop(), asyncio.Event()
        async with door() as scorer:
            ready.set_result(scorer)
            await self._close.wait()
