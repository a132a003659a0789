"""Turns single requests into batches: deduplicates, looks up, sorts, computes and stores them.

1. Requests are collected until no sample can continue without a reply.
2. Replies that are stored, or that another process is computing, are not computed again.
3. The others wait in a queue, which serves several callers in turn.
4. A round of them is sorted, cut into batches, and computed in a thread. For an endpoint the
   batches (of one request, for text) are sent concurrently instead.
5. Replies are stored before they are returned.
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
from typing import Any, Generic, TypeAlias, TypeVar

from trustassay.calls.keys import Keys
from trustassay.calls.prices import CHARACTERS_PER_TOKEN
from trustassay.calls.store import Calls, CallStoreError, StoredCall
from trustassay.core.capabilities import BatchLimits
from trustassay.core.fair_queue import CURRENT_FLOW, FairQueue, Flow
from trustassay.core.files import DiskFullError
from trustassay.errors import BackendError

ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True, slots=True)
class Codec(Generic[ItemT, ReplyT]):
    """How the requests and replies of a capability are identified, stored and counted."""

    reply_to_json: Callable[[ReplyT], str]
    """Returns the stored text of a reply."""
    reply_from_json: Callable[[str], ReplyT]
    """Reads a stored reply; raises where it is damaged."""
    parts: Callable[[ItemT], Sequence[str]] = lambda text: (str(text),)
    """Returns the texts of a request, from which its key is computed."""
    tokens: Callable[[ReplyT], tuple[int | None, int | None]] = lambda _: (None, None)
    """Returns the tokens of prompt and reply; ``None`` where the backend does not report them."""


REPLIES_PER_TURN = 32
"""Replies that are handed out before other tasks of the event loop get to run."""
MAX_CALLS_PER_PILE = 256
"""Requests to an endpoint that are started together; the first need not wait for the last."""
LOOKUP_WAIT_S = 0.05
"""Seconds to wait for a free place at an endpoint, so that cache lookups can be batched."""
POLL_INTERVAL_S = 0.1
"""Seconds between two looks for replies that another process is requesting."""
BATCHES_PER_ROUND = 2
"""Batches of a local model that are computed before the next caller's turn is looked for, where
several callers wait. More are sorted better, and let a newcomer wait longer."""
MAX_REMEMBERED_REPLIES = 65_536
"""Most replies kept in memory; older ones are read from the store again, where there is one."""


@dataclass(frozen=True, slots=True)
class BatchingPolicy:
    """The optimisations of the engine; each can be switched off to measure its effect."""

    deduplicate: bool = True
    """Answer equal requests once, and use stored replies."""
    collect: bool = True
    """Collect requests into batches; off, each is computed alone."""
    sort: bool = True
    """Sort requests by length or text before they are cut into batches."""


@dataclass(slots=True)
class RequestCounts:
    """What happened to the requests of one backend in this process."""

    requested: int = 0
    """Requests by all callers."""
    repeated: int = 0
    """Requests that equal one in progress, or one whose reply is in memory."""
    from_store: int = 0
    """Requests whose reply was in a file of calls."""
    from_cache: int = 0
    """Those of ``from_store`` whose reply came from the file that runs share."""
    computed: int = 0
    """Requests that the backend answered, or failed to."""
    batches: int = 0
    """Batches that were computed."""
    seconds: float = 0.0
    """Time that the batches took; those of an endpoint are added up."""


@dataclass(slots=True, eq=False)
class _PendingRequest(Generic[ItemT, ReplyT]):
    """A request that has no reply yet, with the future of each caller that wants it."""

    key: bytes
    item: ItemT
    parts: Sequence[str]
    length: int
    futures: list[asyncio.Future[ReplyT]]
    flow: Flow
    """Whose request it is; of several callers, the one that was served last."""
    is_missing: bool = False
    """Whether it was looked up, and no store has its reply."""
    has_started: bool = False
    """Whether its reply is being computed, so that a second entry of the queue is skipped."""


Batch: TypeAlias = Sequence[_PendingRequest[ItemT, ReplyT]]
BatchReplies: TypeAlias = list[ReplyT | BaseException]
Compute: TypeAlias = (
    Callable[[list[ItemT]], Sequence[ReplyT]]
    | Callable[[list[ItemT]], Awaitable[tuple[Sequence[ReplyT], float]]]
)


class Batcher(Generic[ItemT, ReplyT]):
    """Stands between a metric's single requests and a backend that works on batches.

    A request that equals one in progress, or one whose reply is in memory, is not computed again.
    Each caller still has its own future, so that cancelling it does not affect other callers.

    If a batch fails, its requests are tried one by one, so that only the faulty ones fail.

    ``compute`` is a plain function of a batch. If ``remote``, it is a coroutine function that also
    returns the seconds that the endpoint took.
    """

    def __init__(  # noqa: PLR0913 - one maker calls it
        self,
        capability: str,
        backend: str,
        compute: Compute[ItemT, ReplyT],
        codec: Codec[ItemT, ReplyT],
        *,
        limits: BatchLimits,
        store: Calls | None,
        policy: BatchingPolicy,
        remote: bool = False,
    ) -> None:
        self.counts = RequestCounts()
        self.backend = backend
        self._capability, self._keys = capability, Keys(capability, backend)
        self._compute, self._codec, self._store = compute, codec, store
        self._remote = remote
        self._running_calls: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._calls_to_keep_busy: Callable[[], int] = getattr(
            compute, "count_calls_to_keep_busy", lambda: sys.maxsize
        )
        self._computed_elsewhere: dict[bytes, _PendingRequest[ItemT, ReplyT]] = {}
        self._watch_task: asyncio.Task[None] | None = None
        self._unsaved: list[
            tuple[Batch[ItemT, ReplyT], BatchReplies[ReplyT], list[StoredCall]]
        ] = []
        self._limits = limits if policy.collect else BatchLimits(items=1, tokens=None)
        self._policy = policy
        self._remembered: OrderedDict[bytes, ReplyT] = OrderedDict()
        self._pending_by_key: dict[bytes, _PendingRequest[ItemT, ReplyT]] = {}
        # Requests that are not looked up yet, and those that are missing.
        self._pile: FairQueue[_PendingRequest[ItemT, ReplyT]] = FairQueue()
        self._queue: FairQueue[_PendingRequest[ItemT, ReplyT]] = FairQueue()
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # One thread: a local model computes one batch at a time anyway.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"trustassay-{capability}")
        self._pump = asyncio.create_task(self._run())

    def ask(self, item: ItemT) -> asyncio.Future[ReplyT]:
        """Return a future of the reply; raises :class:`BackendError` when awaited."""
        self.counts.requested += 1
        parts = self._codec.parts(item)
        key = self._keys.of(parts)
        future: asyncio.Future[ReplyT] = self._loop.create_future()
        # The batcher is closed: nobody would ever set a result.
        if self._pump.done():
            future.cancel()
            return future
        if self._policy.deduplicate:
            if key in self._remembered:
                self.counts.repeated += 1
                self._remembered.move_to_end(key)
                future.set_result(self._remembered[key])
                return future
            if key in self._pending_by_key:
                self.counts.repeated += 1
                self._join(self._pending_by_key[key], future)
                return future
        # A rough count of tokens is enough to sort by and to limit batches.
        length = sum(map(len, parts)) // CHARACTERS_PER_TOKEN + 1
        pending = _PendingRequest(key, item, parts, length, [future], CURRENT_FLOW.get())
        self._pending_by_key[key] = pending
        self._pile.push(pending, length, pending.flow)
        self._wake.set()
        return future

    def _join(
        self, pending: _PendingRequest[ItemT, ReplyT], future: asyncio.Future[ReplyT]
    ) -> None:
        """Let another caller wait for a request that has no reply yet."""
        pending.futures.append(future)
        flow = CURRENT_FLOW.get()
        # It may be the last of somebody's long list: the caller's own turn may come earlier.
        if flow != pending.flow and not pending.has_started:
            pending.flow = flow
            waiting = self._queue if pending.is_missing else self._pile
            waiting.push(pending, pending.length, flow)
            self._wake.set()

    def look_up(self, item: ItemT, calls: Calls) -> tuple[bytes, ReplyT | None]:
        """Return the key of a request, and its reply among ``calls`` if it is there."""
        key = self._keys.of(self._codec.parts(item))
        stored = calls.peek(key)
        return key, None if stored is None else self._parse_stored(stored)

    async def close(self) -> None:
        """Finish the current batch, then cancel the callers that are still waiting.

        A call to an endpoint is cancelled as well; replies that have arrived are stored.
        """
        # The end of a call must not begin the next one.
        self._queue.take_all()
        # Cancelling the pump does not stop the thread: shutdown() below waits for its batch.
        ending = [self._pump, *self._running_calls, *filter(None, (self._watch_task,))]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._save()
        self._thread.shutdown(cancel_futures=True)
        for pending in self._pending_by_key.values():
            for future in pending.futures:
                future.cancel()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            # A batch of one gains nothing from waiting for more requests.
            if self._limits.items > 1:
                await self._wait_until_quiet()
            # Enough calls are in progress to keep the endpoint busy, so there is time to collect
            # more.
            if not self._has_room():
                await self._wait_for_room()
            # A local backend gets all requests at once: sorted together, they need the least
            # padding.
            size = min(MAX_CALLS_PER_PILE, len(self._pile))
            pile = (
                [self._pile.pop() for _ in range(size)] if self._remote else self._pile.take_all()
            )
            try:
                await self._queue_missing(pile)
            except Exception as error:
                for pending in pile:
                    # The pump must survive whatever fails here, or all later requests would hang.
                    self._fail(pending, error)
            await self._serve_round()
            # Where an endpoint has no room, the end of a call goes on with the queue.
            if not self._pile and (self._remote or not self._queue):
                self._wake.clear()

    async def _wait_until_quiet(self) -> None:
        """Wait until the samples in progress have made all requests that they can make for now."""
        # sleep(0) lets every ready task run once. When that adds no request, all samples wait.
        size = -1
        while size != len(self._pile):
            size = len(self._pile)
            await asyncio.sleep(0)

    async def _wait_for_room(self) -> None:
        """Wait until the endpoint can take more calls, at most for :data:`LOOKUP_WAIT_S`.

        Requests that arrive meanwhile are looked up in the store together.
        """
        self._room.clear()
        alarm = self._loop.call_later(LOOKUP_WAIT_S, self._room.set)
        await self._room.wait()
        alarm.cancel()

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._running_calls.discard(task)
        if self._has_room():
            self._room.set()
            self._send_waiting()

    def _has_room(self) -> bool:
        """Whether more calls keep the endpoint busier; a local model always takes more."""
        return len(self._running_calls) <= self._calls_to_keep_busy()

    async def _queue_missing(self, pile: list[_PendingRequest[ItemT, ReplyT]]) -> None:
        """Answer what is stored, and queue the rest for its caller's turn."""
        # One that several callers wait for comes once for each of them: only the first time counts.
        if self._policy.deduplicate:
            pile = [
                pending
                for pending in dict.fromkeys(pile)
                if self._pending_by_key.get(pending.key) is pending
                and not pending.is_missing
                and pending.key not in self._computed_elsewhere
            ]
            pile = await self._answer_from_store(pile) if self._store else pile
        for pending in pile:
            pending.is_missing = True
            self._queue.push(pending, pending.length, pending.flow)

    async def _serve_round(self) -> None:
        """Compute the requests whose turn it is; send those for which an endpoint has room."""
        if self._remote:
            self._send_waiting()
            return
        only_flow = self._queue.only_flow
        for batch in self._cut_round(BATCHES_PER_ROUND * self._limits.items):
            # Nobody else waited when this round was cut; the rest of it now shares turns again.
            if only_flow and self._has_newcomer(only_flow):
                for pending in batch:
                    self._queue.push(pending, pending.length, only_flow)
                continue
            for pending in batch:
                pending.has_started = True
            try:
                replies = await self._loop.run_in_executor(
                    self._thread, self._compute_and_store, batch
                )
            except DiskFullError as error:
                self._give_up(error)
                return
            except Exception as error:  # the file of calls is at fault
                replies = [error] * len(batch)
            # Each reply wakes a sample. In between, others get a turn, so that timers are not late.
            for start in range(0, len(batch), REPLIES_PER_TURN):
                turn = slice(start, start + REPLIES_PER_TURN)
                self._hand_out(batch[turn], replies[turn])
                await asyncio.sleep(0)

    def _has_newcomer(self, flow: Flow) -> bool:
        """Whether a request of another flow has come since all of this one were taken."""
        return bool(self._queue) or (bool(self._pile) and self._pile.only_flow != flow)

    def _send_waiting(self) -> None:
        """Send waiting requests while the endpoint has room."""
        while self._queue and self._has_room():
            room = self._calls_to_keep_busy() + 1 - len(self._running_calls)
            for batch in self._cut_round(room * self._limits.items):
                for pending in batch:
                    pending.has_started = True
                task = asyncio.create_task(self._send_batch(batch))
                self._running_calls.add(task)
                task.add_done_callback(self._on_task_end)

    def _cut_round(self, most: int) -> Iterator[Batch[ItemT, ReplyT]]:
        """Take up to ``most`` requests from the queue, in turn of their callers, and cut batches.

        A local model gets all of them if there is one caller: sorted together they need the least
        padding.
        """
        if self._queue.only_flow and not self._remote:
            taken = self._queue.take_all()
        else:
            taken = [self._queue.pop() for _ in range(min(most, len(self._queue)))]
        pile = []
        # One that several callers wait for is in the queue for each of them.
        for pending in dict.fromkeys(taken):
            if pending.has_started:
                continue
            # All its callers have gone.
            if all(future.done() for future in pending.futures):
                self._forget(pending)
                # Another process need not wait for it.
                if self._store:
                    self._store.end([pending.key])
                continue
            pile.append(pending)
        if self._policy.sort:
            # By length there is little padding; by text, prompts with a common beginning are
            # neighbours.
            pile.sort(key=attrgetter("parts" if self._limits.order == "text" else "length"))
        return batches(pile, self._limits)

    async def _answer_from_store(
        self, pile: list[_PendingRequest[ItemT, ReplyT]]
    ) -> list[_PendingRequest[ItemT, ReplyT]]:
        assert self._store
        keys = [pending.key for pending in pile]
        if self._remote:  # few at a time, and a thread would wait for this one
            claimed = self._store.claim(keys)
        else:
            claimed = await self._loop.run_in_executor(self._thread, self._store.claim, keys)
        missing = []
        for pending in pile:
            text = claimed.replies.get(pending.key)
            # Another process is paying for this reply right now: wait for it instead of paying
            # again.
            if pending.key in claimed.elsewhere:
                self._computed_elsewhere[pending.key] = pending
            elif text is None or not self._deliver_stored(pending, text):
                missing.append(pending)
        if self._computed_elsewhere and (self._watch_task is None or self._watch_task.done()):
            self._watch_task = asyncio.create_task(self._watch(self._store))
        self.counts.from_cache += claimed.from_shared_count
        return missing

    async def _watch(self, store: Calls) -> None:
        """Poll for replies that other processes request, until none is outstanding."""
        while self._computed_elsewhere:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                # Marks nothing: whatever is free goes back to the pile, where claim() marks it.
                result, _, elsewhere = store.look(list(self._computed_elsewhere))
            except Exception:  # whoever asks for it again meets it and tells
                result, elsewhere = {}, frozenset()
            for key in [key for key in self._computed_elsewhere if key not in elsewhere]:
                pending, text = self._computed_elsewhere.pop(key), result.get(key)
                if text is not None and self._deliver_stored(pending, text):
                    self.counts.from_cache += 1
                else:
                    self._pile.push(pending, pending.length, pending.flow)
                    self._wake.set()

    def _deliver_stored(self, pending: _PendingRequest[ItemT, ReplyT], text: str) -> bool:
        """Hand out a stored reply; return ``False`` if it is damaged."""
        assert self._store
        if (reply := self._parse_stored(text)) is None:
            self._store.remove({pending.key: text})  # for what is replied now to take its place
            return False
        self.counts.from_store += 1
        self._deliver(pending, reply)
        return True

    def _compute_and_store(self, batch: Batch[ItemT, ReplyT]) -> BatchReplies[ReplyT]:
        """Compute and store one batch; runs in the thread."""
        started = time.perf_counter()
        replies = self._compute_or_split([pending.item for pending in batch])
        results, rows = self._record_batch(batch, replies, time.perf_counter() - started)
        if self._store and rows:
            self._store.add(rows)
        return results

    def _compute_or_split(self, items: list[ItemT]) -> Sequence[ReplyT | BaseException]:
        """Compute the replies; if the batch fails, compute each request by itself."""
        try:
            return self._check_reply_count(self._compute(items), items)
        # Split until the faulty request is alone, so that only its caller sees the error.
        except BaseException as error:  # a panic of Rust code is no Exception; no signal comes here
            if len(items) == 1:
                return [error]
            return [reply for item in items for reply in self._compute_or_split([item])]

    async def _send_batch(self, batch: Batch[ItemT, ReplyT]) -> None:
        """Send one batch to an endpoint; its replies are stored before they are returned.

        Replies that arrive in one iteration of the event loop are stored in one transaction.
        """
        replies, seconds = await self._call_or_split([pending.item for pending in batch])
        try:
            results, rows = self._record_batch(batch, replies, seconds)
        except Exception as error:  # what came back cannot be written down
            results, rows = [error] * len(batch), []
        # The first reply of this iteration schedules the transaction; later ones join it.
        self._unsaved.append((batch, results, rows))
        if len(self._unsaved) == 1:
            self._loop.call_soon(self._save)

    async def _call_or_split(
        self, items: list[ItemT]
    ) -> tuple[Sequence[ReplyT | BaseException], float]:
        """Do the same as :meth:`_compute_or_split` for an endpoint."""
        try:
            replies, seconds = await self._compute(items)  # type: ignore[misc]
            return self._check_reply_count(replies, items), seconds
        except Exception as error:
            if len(items) == 1:
                return [error], 0.0
            parts = await asyncio.gather(*(self._call_or_split([item]) for item in items))
            return [reply for part, _ in parts for reply in part], sum(s for _, s in parts)

    def _check_reply_count(self, replies: Any, items: list[ItemT]) -> Sequence[ReplyT]:
        if len(replies) != len(items):
            raise BackendError(
                f"{self.backend} returned {len(replies)} replies to {len(items)} requests"
            )
        return replies  # type: ignore[no-any-return]

    def _save(self) -> None:
        """Store the replies that have arrived, then hand them out."""
        unsaved, self._unsaved = self._unsaved, []
        # Store first: after a crash, a reply that a caller has seen is never paid for again.
        failures = self._store_rows([rows for *_, rows in unsaved])
        if self._store:
            self._store.end([pending.key for batch, *_ in unsaved for pending in batch])
        for (batch, results, _), failure in zip(unsaved, failures, strict=True):
            self._hand_out(batch, [failure or result for result in results])
        if full := next((f for f in failures if isinstance(f, DiskFullError)), None):
            self._give_up(full)

    def _give_up(self, error: DiskFullError) -> None:
        """Fail all callers when the disk is full: further replies would be paid for and lost."""
        self._pile.take_all()
        self._queue.take_all()
        for task in self._running_calls:
            task.cancel()
        # Loop over a copy: _fail() removes entries.
        for pending in [*self._pending_by_key.values()]:
            self._fail(pending, error)

    def _record_batch(
        self, batch: Batch[ItemT, ReplyT], replies: Sequence[ReplyT | BaseException], seconds: float
    ) -> tuple[BatchReplies[ReplyT], list[StoredCall]]:
        """Count a batch; return its replies as they will be read back, and the rows to store."""
        self.counts.computed += len(batch)
        self.counts.batches += 1
        self.counts.seconds += seconds
        results: BatchReplies[ReplyT] = []
        rows: list[StoredCall] = []
        for pending, reply in zip(batch, replies, strict=True):
            if isinstance(reply, BaseException):
                results.append(reply)
                continue
            stored, row = self._serialise_reply(pending, reply, seconds / len(batch))
            results.append(stored)
            rows += row
        return results, rows

    def _parse_stored(self, text: str) -> ReplyT | None:
        """Return a stored reply; ``None`` if it is damaged."""
        try:
            return self._codec.reply_from_json(text)
        except Exception:
            return None

    def _serialise_reply(
        self, pending: _PendingRequest[ItemT, ReplyT], reply: ReplyT, seconds: float
    ) -> tuple[ReplyT, list[StoredCall]]:
        """Return a reply as it will be read back from the store, and its row."""
        # Callers get the reply as a later run would read it, so that both runs give equal results.
        text = self._codec.reply_to_json(reply)
        stored = self._codec.reply_from_json(text)
        if not self._store:
            return stored, []
        # The same text as json.dumps(parts, ensure_ascii=False), at a fraction of its time.
        request = f"[{', '.join(map(encode_basestring, pending.parts))}]"
        tokens = self._codec.tokens(reply)
        row = (pending.key, self._capability, self.backend, request, text, seconds, *tokens)
        return stored, [StoredCall(*row)]

    def _store_rows(self, parts: Sequence[list[StoredCall]]) -> list[Exception | None]:
        """Store the calls of several batches; return the failure of each, ``None`` for success.

        All go into one transaction. If one batch cannot be stored, the others still are.
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
            return [failure for rows in parts for failure in self._store_rows([rows])]

    def _hand_out(self, batch: Batch[ItemT, ReplyT], results: Sequence[Any]) -> None:
        for pending, result in zip(batch, results, strict=True):
            if isinstance(result, BaseException):
                self._fail(pending, result)
            else:
                self._deliver(pending, result)

    def _forget(self, pending: _PendingRequest[ItemT, ReplyT]) -> None:
        """Let an equal request begin anew."""
        # Where equal requests are not joined, another one may have taken the place of this.
        if self._pending_by_key.get(pending.key) is pending:
            del self._pending_by_key[pending.key]

    def _deliver(self, pending: _PendingRequest[ItemT, ReplyT], reply: ReplyT) -> None:
        self._forget(pending)
        if self._policy.deduplicate:
            self._remembered[pending.key] = reply
            # Drop the reply that was used least recently.
            if len(self._remembered) > MAX_REMEMBERED_REPLIES:
                self._remembered.popitem(last=False)
        for future in pending.futures:
            # A caller may have been cancelled while it waited.
            if not future.done():
                future.set_result(reply)

    def _fail(self, pending: _PendingRequest[ItemT, ReplyT], error: BaseException) -> None:
        self._forget(pending)
        if not isinstance(error, BackendError | DiskFullError):
            error = BackendError(f"{self.backend} failed: {type(error).__name__}: {error}")
        for future in pending.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # now it counts as seen, also where nobody awaits it any more


def batches(
    pile: Sequence[_PendingRequest[ItemT, ReplyT]], limits: BatchLimits
) -> Iterator[Sequence[_PendingRequest[ItemT, ReplyT]]]:
    """Cut requests, in their order, into batches within the limits; a batch has at least one.

    A batch also ends before a request with another first text, if the limits want it.

    The size of a batch in tokens is that after padding: its longest request times its length.
    """
    start, longest = 0, 0
    max_tokens = math.inf if limits.tokens is None else limits.tokens
    for index, pending in enumerate(pile):
        longest = max(longest, pending.length)
        # This request may be the longest so far, and then pads all others of the batch.
        size = index - start + 1
        differs = limits.alike and pending.parts[0] != pile[start].parts[0]
        if size > 1 and (differs or size > limits.items or longest * size > max_tokens):
            yield pile[start:index]
            start, longest = index, pending.length
    if pile:
        yield pile[start:]
