"""From single requests to batches: asked once, gathered, sorted by length, run in a thread."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from trustassay.capabilities import BackendError, BatchLimits
from trustassay.engine.cache import CallStore, StoredCall, request_key

__all__ = ["Codec", "Counts", "Gatherer", "Policy", "batches"]

Item = TypeVar("Item")
Reply = TypeVar("Reply")

CHARACTERS_PER_TOKEN = 4
REMEMBERED = 65_536
"""Replies kept in memory; with a store, older ones are read from there."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[Item, Reply]):
    """How a capability's requests and replies are identified, stored and measured."""

    parts: Callable[[Item], Sequence[str]]
    reply_to_json: Callable[[Reply], str]
    reply_from_json: Callable[[str], Reply]

    def length(self, item: Item) -> int:
        """Return the estimated number of tokens of a request."""
        return sum(map(len, self.parts(item))) // CHARACTERS_PER_TOKEN + 1


@dataclass(frozen=True, slots=True)
class Policy:
    """What the engine does to be fast; each can be switched off to see what it is worth."""

    once: bool = True
    together: bool = True
    sort: bool = True


@dataclass(slots=True)
class Counts:
    """What happened to the requests of one backend in this process."""

    requested: int = 0
    repeated: int = 0
    from_store: int = 0
    computed: int = 0
    batches: int = 0
    seconds: float = 0.0


class _Waiting(NamedTuple, Generic[Item, Reply]):
    key: bytes
    item: Item
    length: int
    futures: list[asyncio.Future[Reply]]


class Gatherer(Generic[Item, Reply]):
    """Stands between a metric's single requests and a backend that works on batches.

    A request that equals one under way or a remembered one is not asked again; who asked has a
    future of its own all the same, so that giving up on it takes no one along. The others are
    piled up until no sample can go on without a reply, looked up in the store, sorted by length,
    cut into batches and computed in a thread. Replies pass through their stored form, so that a
    reply from the store and a fresh one are the same to the last digit.

    Where a batch fails its requests are tried one by one, so that only the culprits fail.
    """

    def __init__(
        self,
        capability: str,
        backend: str,
        compute: Callable[[list[Item]], Sequence[Reply]],
        codec: Codec[Item, Reply],
        *,
        limits: BatchLimits,
        store: CallStore | None,
        policy: Policy,
    ) -> None:
        self.counts = Counts()
        self._capability, self._backend = capability, backend
        self._compute, self._codec, self._store = compute, codec, store
        self._limits = limits if policy.together else BatchLimits(items=1, tokens=None)
        self._policy = policy
        self._remembered: OrderedDict[bytes, Reply] = OrderedDict()
        self._waiting: dict[bytes, _Waiting[Item, Reply]] = {}
        self._pile: list[_Waiting[Item, Reply]] = []
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"trustassay-{capability}")
        self._pump = asyncio.create_task(self._run())

    def ask(self, item: Item) -> asyncio.Future[Reply]:
        """Return a future of the reply; raises :class:`BackendError` when awaited."""
        self.counts.requested += 1
        key = request_key(self._capability, self._backend, self._codec.parts(item))
        future: asyncio.Future[Reply] = self._loop.create_future()
        if self._pump.done():
            future.cancel()
            return future
        if self._policy.once:
            if key in self._remembered:
                self.counts.repeated += 1
                self._remembered.move_to_end(key)
                future.set_result(self._remembered[key])
                return future
            if key in self._waiting:
                self.counts.repeated += 1
                self._waiting[key].futures.append(future)
                return future
        waiting = _Waiting(key, item, self._codec.length(item), [future])
        self._waiting[key] = waiting
        self._pile.append(waiting)
        self._wake.set()
        return future

    async def close(self) -> None:
        """Stop working; a batch under way is let finish, who still waits is told to give up."""
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._thread.shutdown(cancel_futures=True)
        for waiting in self._waiting.values():
            for future in waiting.futures:
                future.cancel()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await self._quiet()
            self._wake.clear()
            pile, self._pile = self._pile, []
            try:
                await self._answer(pile)
            except Exception as error:
                for waiting in pile:
                    self._fail(waiting, error)

    async def _quiet(self) -> None:
        """Wait until the samples in flight have asked all that they can ask for now."""
        size = -1
        while size != len(self._pile):
            size = len(self._pile)
            await asyncio.sleep(0)

    async def _answer(self, pile: list[_Waiting[Item, Reply]]) -> None:
        if self._store and self._policy.once:
            pile = await self._answer_from_store(pile)
        if self._policy.sort:
            pile.sort(key=lambda waiting: waiting.length)
        for batch in batches(pile, self._limits):
            replies = await self._loop.run_in_executor(self._thread, self._computed, batch)
            for waiting, reply in zip(batch, replies, strict=True):
                if isinstance(reply, BaseException):
                    self._fail(waiting, reply)
                else:
                    self._deliver(waiting, reply)

    async def _answer_from_store(
        self, pile: list[_Waiting[Item, Reply]]
    ) -> list[_Waiting[Item, Reply]]:
        assert self._store
        keys = [waiting.key for waiting in pile]
        stored = await self._loop.run_in_executor(self._thread, self._store.find, keys)
        self.counts.from_store += len(stored)
        for waiting in pile:
            if waiting.key in stored:
                self._deliver(waiting, self._codec.reply_from_json(stored[waiting.key]))
        return [waiting for waiting in pile if waiting.key not in stored]

    def _computed(self, batch: Sequence[_Waiting[Item, Reply]]) -> list[Reply | BaseException]:
        """Compute and store one batch; runs in the thread."""
        started = time.perf_counter()
        replies = self._tried([waiting.item for waiting in batch])
        seconds = time.perf_counter() - started
        self.counts.computed += len(batch)
        self.counts.batches += 1
        self.counts.seconds += seconds
        results: list[Reply | BaseException] = []
        rows = []
        for waiting, reply in zip(batch, replies, strict=True):
            if isinstance(reply, BaseException):
                results.append(reply)
                continue
            text = self._codec.reply_to_json(reply)
            results.append(self._codec.reply_from_json(text))
            if self._store:
                request = json.dumps(list(self._codec.parts(waiting.item)), ensure_ascii=False)
                rows.append(
                    StoredCall(
                        waiting.key,
                        self._capability,
                        self._backend,
                        request,
                        text,
                        seconds / len(batch),
                    )
                )
        if self._store and rows:
            self._store.add(rows)
        return results

    def _tried(self, items: list[Item]) -> Sequence[Reply | BaseException]:
        try:
            replies = self._compute(items)
            if len(replies) != len(items):
                raise BackendError(
                    f"{self._backend} gave {len(replies)} replies to {len(items)} requests"
                )
            return replies
        except BaseException as error:  # a panic of Rust code is no Exception; no signal comes here
            if len(items) == 1:
                return [error]
            return [reply for item in items for reply in self._tried([item])]

    def _deliver(self, waiting: _Waiting[Item, Reply], reply: Reply) -> None:
        self._waiting.pop(waiting.key, None)
        if self._policy.once:
            self._remembered[waiting.key] = reply
            if len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        for future in waiting.futures:
            if not future.done():
                future.set_result(reply)

    def _fail(self, waiting: _Waiting[Item, Reply], error: BaseException) -> None:
        self._waiting.pop(waiting.key, None)
        if not isinstance(error, BackendError):
            error = BackendError(f"{self._backend} failed: {type(error).__name__}: {error}")
        for future in waiting.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # now it counts as seen, also where nobody awaits it any more


def batches(
    pile: Sequence[_Waiting[Item, Reply]], limits: BatchLimits
) -> Iterator[Sequence[_Waiting[Item, Reply]]]:
    """Cut a pile, in its order, into batches within the limits; a batch holds at least one."""
    start, longest = 0, 0
    for index, waiting in enumerate(pile):
        longest = max(longest, waiting.length)
        size = index - start + 1
        padded = longest * size
        if size > 1 and (
            size > limits.items or (limits.tokens is not None and padded > limits.tokens)
        ):
            yield pile[start:index]
            start, longest = index, waiting.length
    if pile:
        yield pile[start:]
