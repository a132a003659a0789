"""From single requests to batches: made unique, gathered, sorted, run in a thread, stored.

If the backend is an endpoint, the batches (of one, for text) run concurrently instead.
"""

import asyncio
import math
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from trustassay.calls.store import Calls, CallStoreError, Keys, StoredCall
from trustassay.capabilities import BatchLimits
from trustassay.errors import BackendError
from trustassay.files import DiskFullError

Item = TypeVar("Item")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class Codec(Generic[Item, Reply]):
    """How a capability's requests and replies are identified, stored and counted.

    parts: the texts of a request.
    as_stored: a reply as its JSON will be read back, where that is known without reading it.
    """

    reply_to_json: Callable[[Reply], str]
    reply_from_json: Callable[[str], Reply]
    parts: Callable[[Item], Sequence[str]] = lambda text: (str(text),)
    as_stored: Callable[[Reply, str], Reply | None] = lambda _, __: None
    tokens: Callable[[Reply], tuple[int | None, int | None]] = lambda _: (None, None)


CHARACTERS_PER_TOKEN = 4
TURN = 32
"""Replies that are handed out before other work of the event loop has its turn."""
PILE = 256
"""Calls to an endpoint that are begun together; the first of many need not wait for the last."""
TOGETHER_S = 0.05
"""So long what an endpoint cannot take yet may wait to be looked up with what comes after it."""
LOOK_EVERY_S = 0.1
"""How often it is looked for the replies to what other processes ask."""
REMEMBERED = 65_536
"""Replies kept in memory; with a store, older ones are read from there."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the engine does to be fast; each can be switched off to see what it is worth."""

    once: bool = True
    together: bool = True
    sort: bool = True


@dataclass(slots=True)
class Counts:
    """What happened to the requests of one backend in this process.

    ``from_cache`` of those ``from_store`` came from the file that runs share.
    """

    requested: int = 0
    repeated: int = 0
    from_store: int = 0
    from_cache: int = 0
    computed: int = 0
    batches: int = 0
    seconds: float = 0.0


class _Waiting(NamedTuple, Generic[Item, Reply]):
    key: bytes
    item: Item
    parts: Sequence[str]
    length: int
    futures: list[asyncio.Future[Reply]]


Batch: TypeAlias = Sequence[_Waiting[Item, Reply]]
Outcome: TypeAlias = list[Reply | BaseException]
Compute: TypeAlias = (
    Callable[[list[Item]], Sequence[Reply]]
    | Callable[[list[Item]], Awaitable[tuple[Sequence[Reply], float]]]
)


class Batcher(Generic[Item, Reply]):
    """Stands between a metric's single requests and a backend that works on batches.

    A request that equals one in progress or a remembered one is not made again. Each caller still
    has its own future, so that cancelling it does not affect others. The other requests are
    collected until no sample can continue without a reply, looked up in the store, sorted by
    length, cut into batches and computed in a thread.

    If a batch fails, its requests are tried one by one, so that only the faulty ones fail.

    ``compute`` is a plain function of a batch, or where ``remote`` a coroutine function that also
    returns the seconds that the endpoint took.
    """

    def __init__(  # noqa: PLR0913 - one maker calls it
        self,
        capability: str,
        backend: str,
        compute: Compute[Item, Reply],
        codec: Codec[Item, Reply],
        *,
        limits: BatchLimits,
        store: Calls | None,
        policy: Policy,
        remote: bool = False,
    ) -> None:
        self.counts = Counts()
        self.backend = backend
        self._capability, self._keys = capability, Keys(capability, backend)
        self._compute, self._codec, self._store = compute, codec, store
        self._remote = remote
        self._under_way: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._enough: Callable[[], int] = getattr(compute, "enough", lambda: sys.maxsize)
        self._elsewhere: dict[bytes, _Waiting[Item, Reply]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._unsaved: list[tuple[Batch[Item, Reply], Outcome[Reply], list[StoredCall]]] = []
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
        parts = self._codec.parts(item)
        key = self._keys.of(parts)
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
        length = sum(map(len, parts)) // CHARACTERS_PER_TOKEN + 1
        waiting = _Waiting(key, item, parts, length, [future])
        self._waiting[key] = waiting
        self._pile.append(waiting)
        self._wake.set()
        return future

    def look_up(self, item: Item, calls: Calls) -> tuple[bytes, Reply | None]:
        """Return the key of a request, and the reply to it among ``calls``; asks nothing."""
        key = self._keys.of(self._codec.parts(item))
        stored = calls.peek(key)
        return key, None if stored is None else self._reply_in(stored)

    async def close(self) -> None:
        """Stop working; a batch in progress is let finish, who still waits is told to give up.

        A call to an endpoint is also given up; replies received so far are stored.
        """
        ending = [self._pump, *self._under_way, *filter(None, (self._watching,))]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._save()
        self._thread.shutdown(cancel_futures=True)
        for waiting in self._waiting.values():
            for future in waiting.futures:
                future.cancel()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            if self._limits.items > 1:
                await self._quiet()
            if len(self._under_way) > self._enough():
                await self._until_room()
            most = PILE if self._remote else len(self._pile)
            pile, self._pile = self._pile[:most], self._pile[most:]
            if not self._pile:
                self._wake.clear()
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

    async def _until_room(self) -> None:
        """Wait until the endpoint can take more, for a moment at most.

        What is asked for meanwhile is looked up together.
        """
        self._room.clear()
        alarm = self._loop.call_later(TOGETHER_S, self._room.set)
        await self._room.wait()
        alarm.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not self._room.is_set() and len(self._under_way) <= self._enough():
            self._room.set()

    async def _answer(self, pile: list[_Waiting[Item, Reply]]) -> None:
        if self._store and self._policy.once:
            pile = await self._answer_from_store(pile)
        if self._policy.sort:
            pile.sort(key=attrgetter("parts" if self._limits.order == "text" else "length"))
        for batch in batches(pile, self._limits):
            if self._remote:
                task = asyncio.create_task(self._called(batch))
                self._under_way.add(task)
                task.add_done_callback(self._ended)
            else:
                replies = await self._loop.run_in_executor(self._thread, self._computed, batch)
                for start in range(0, len(batch), TURN):
                    turn = slice(start, start + TURN)
                    self._hand_out(batch[turn], replies[turn])
                    await asyncio.sleep(0)

    async def _answer_from_store(
        self, pile: list[_Waiting[Item, Reply]]
    ) -> list[_Waiting[Item, Reply]]:
        assert self._store
        keys = [waiting.key for waiting in pile]
        if self._remote:  # few at a time, and a thread would wait for this one
            known = self._store.claim(keys)
        else:
            known = await self._loop.run_in_executor(self._thread, self._store.claim, keys)
        missing = []
        for waiting in pile:
            text = known.found.get(waiting.key)
            if waiting.key in known.elsewhere:
                self._elsewhere[waiting.key] = waiting
            elif text is None or not self._read(waiting, text):
                missing.append(waiting)
        if self._elsewhere and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(self._store))
        self.counts.from_cache += known.taken
        return missing

    async def _watch(self, store: Calls) -> None:
        """Look for what another process is asking until it has come, or is free to be asked."""
        while self._elsewhere:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                result, _, elsewhere = store.look(list(self._elsewhere))
            except Exception:  # whoever asks for it again meets it and tells
                result, elsewhere = {}, frozenset()
            for key in [key for key in self._elsewhere if key not in elsewhere]:
                waiting, text = self._elsewhere.pop(key), result.get(key)
                if text is not None and self._read(waiting, text):
                    self.counts.from_cache += 1
                else:
                    self._pile.append(waiting)
                    self._wake.set()

    def _read(self, waiting: _Waiting[Item, Reply], text: str) -> bool:
        """Hand out a stored reply; say whether it was sound."""
        assert self._store
        if (reply := self._reply_in(text)) is None:
            self._store.remove({waiting.key: text})  # for what is replied now to take its place
            return False
        self.counts.from_store += 1
        self._deliver(waiting, reply)
        return True

    def _computed(self, batch: Batch[Item, Reply]) -> Outcome[Reply]:
        """Compute and store one batch; runs in the thread."""
        started = time.perf_counter()
        replies = self._tried([waiting.item for waiting in batch])
        results, rows = self._noted(batch, replies, time.perf_counter() - started)
        if self._store and rows:
            self._store.add(rows)
        return results

    def _tried(self, items: list[Item]) -> Sequence[Reply | BaseException]:
        try:
            return self._counted(self._compute(items), items)
        except BaseException as error:  # a panic of Rust code is no Exception; no signal comes here
            if len(items) == 1:
                return [error]
            return [reply for item in items for reply in self._tried([item])]

    async def _called(self, batch: Batch[Item, Reply]) -> None:
        """Send one batch to an endpoint; its replies are stored before they are returned.

        All that comes in one round of the event loop is stored in one transaction.
        """
        replies, seconds = await self._asked([waiting.item for waiting in batch])
        try:
            results, rows = self._noted(batch, replies, seconds)
        except Exception as error:  # what came back cannot be written down
            results, rows = [error] * len(batch), []
        self._unsaved.append((batch, results, rows))
        if len(self._unsaved) == 1:
            self._loop.call_soon(self._save)

    async def _asked(self, items: list[Item]) -> tuple[Sequence[Reply | BaseException], float]:
        try:
            replies, seconds = await self._compute(items)  # type: ignore[misc]
            return self._counted(replies, items), seconds
        except Exception as error:
            if len(items) == 1:
                return [error], 0.0
            parts = await asyncio.gather(*(self._asked([item]) for item in items))
            return [reply for part, _ in parts for reply in part], sum(s for _, s in parts)

    def _counted(self, replies: Any, items: list[Item]) -> Sequence[Reply]:
        if len(replies) != len(items):
            raise BackendError(
                f"{self.backend} returned {len(replies)} replies to {len(items)} requests"
            )
        return replies  # type: ignore[no-any-return]

    def _save(self) -> None:
        unsaved, self._unsaved = self._unsaved, []
        failures = self._stored([rows for *_, rows in unsaved])
        if self._store:
            self._store.end([waiting.key for batch, *_ in unsaved for waiting in batch])
        for (batch, results, _), failure in zip(unsaved, failures, strict=True):
            self._hand_out(batch, [failure or result for result in results])
        if full := next((f for f in failures if isinstance(f, DiskFullError)), None):
            self._give_up(full)

    def _give_up(self, error: DiskFullError) -> None:
        """Fail all that waits: what would be replied could not be kept."""
        self._pile.clear()
        for task in self._under_way:
            task.cancel()
        for waiting in [*self._waiting.values()]:
            self._fail(waiting, error)

    def _noted(
        self, batch: Batch[Item, Reply], replies: Sequence[Reply | BaseException], seconds: float
    ) -> tuple[Outcome[Reply], list[StoredCall]]:
        """Count a batch; return its replies as they will be read back, and the rows to store."""
        self.counts.computed += len(batch)
        self.counts.batches += 1
        self.counts.seconds += seconds
        results: Outcome[Reply] = []
        rows: list[StoredCall] = []
        for waiting, reply in zip(batch, replies, strict=True):
            if isinstance(reply, BaseException):
                results.append(reply)
                continue
            stored, row = self._written(waiting, reply, seconds / len(batch))
            results.append(stored)
            rows += row
        return results, rows

    def _reply_in(self, text: str) -> Reply | None:
        """Return a stored reply; ``None`` if it is damaged."""
        try:
            return self._codec.reply_from_json(text)
        except Exception:
            return None

    def _written(
        self, waiting: _Waiting[Item, Reply], reply: Reply, seconds: float
    ) -> tuple[Reply, list[StoredCall]]:
        """Return a reply as it will be read back, as one from a store is, and its row."""
        text = self._codec.reply_to_json(reply)
        stored = self._codec.as_stored(reply, text)
        if stored is None:
            stored = self._codec.reply_from_json(text)
        if not self._store:
            return stored, []
        request = f"[{', '.join(map(encode_basestring, waiting.parts))}]"
        tokens = self._codec.tokens(reply)
        row = (waiting.key, self._capability, self.backend, request, text, seconds, *tokens)
        return stored, [StoredCall(*row)]

    def _stored(self, parts: Sequence[list[StoredCall]]) -> list[Exception | None]:
        """Store the calls of several batches; return what came of each.

        All in one transaction; where one batch cannot be stored, the others still are.
        """
        try:
            if self._store and any(parts):
                self._store.add([row for rows in parts for row in rows])
            return [None] * len(parts)
        except (CallStoreError, DiskFullError) as error:  # the file is at fault, and not a call
            return [error] * len(parts)
        except Exception as error:
            if len(parts) == 1:
                return [BackendError(f"a reply could not be stored ({error})")]
            return [failure for rows in parts for failure in self._stored([rows])]

    def _hand_out(self, batch: Batch[Item, Reply], results: Sequence[Any]) -> None:
        for waiting, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                self._fail(waiting, result)
            else:
                self._deliver(waiting, result)

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
        if not isinstance(error, BackendError | DiskFullError):
            error = BackendError(f"{self.backend} failed: {type(error).__name__}: {error}")
        for future in waiting.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # now it counts as seen, also where nobody awaits it any more


def batches(
    pile: Sequence[_Waiting[Item, Reply]], limits: BatchLimits
) -> Iterator[Sequence[_Waiting[Item, Reply]]]:
    """Cut a pile, in its order, into batches within the limits; a batch holds at least one."""
    start, longest = 0, 0
    most = math.inf if limits.tokens is None else limits.tokens
    for index, waiting in enumerate(pile):
        longest = max(longest, waiting.length)
        size = index - start + 1
        if size > 1 and (size > limits.items or longest * size > most):
            yield pile[start:index]
            start, longest = index, waiting.length
    if pile:
        yield pile[start:]
