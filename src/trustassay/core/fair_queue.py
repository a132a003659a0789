"""A queue that serves several callers in turn, by the work that each brings.

Whatever many callers share takes its work from such a queue: the event loop for short texts, the
thread for long ones, and each model.
It is start-time fair queueing (Goyal, Vin and Cheng 1997, "Start-time Fair Queueing", IEEE/ACM
Transactions on Networking 5(5)) on two levels, callers and the requests of a caller:

1. Work that comes gets a start time: the end of the earlier work of its caller, or the virtual time
   of the queue, whichever is later.
2. The work with the earliest start time is served, and is the virtual time of the queue from then
   on.
3. Its caller's end time advances by the cost of the work, divided by the caller's weight.

So a caller who was idle is served next, whatever others have waiting. Who sends much, in one
request or in many, waits for their own work alone.
"""

import asyncio
import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
KeyT = TypeVar("KeyT", bound=Hashable)

VERDICT_WEIGHT = 8.0
"""How many times the share of a caller's samples the verdicts get for which an answer waits."""
MAX_REMEMBERED_ENDS = 4096
"""The most end times of callers without work; one who is forgotten is served an item too early."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Whose work it is: that of a caller, and of one of the caller's requests."""

    caller: str = ""
    """Who sends it; the empty one stands for this process itself."""
    request: int = 0
    """Tells the requests of a caller apart."""
    is_verdict: bool = False
    """Whether somebody waits for an answer that must be judged first."""

    @property
    def account(self) -> tuple[str, bool]:
        """What the work is charged to: a caller's verdicts do not wait for their samples."""
        return self.caller, self.is_verdict

    def as_verdict(self) -> "Flow":
        """Return the same flow for work that holds up an answer."""
        return replace(self, is_verdict=True)


_OF_THIS_PROCESS = Flow()
CURRENT_FLOW: ContextVar[Flow] = ContextVar("trustassay_flow", default=_OF_THIS_PROCESS)
"""The flow of the current task; tasks that it starts inherit it."""


@contextmanager
def in_flow(flow: Flow) -> Iterator[None]:
    """Do the work of the block, and what it starts, in another flow."""
    token = CURRENT_FLOW.set(flow)
    try:
        yield
    finally:
        CURRENT_FLOW.reset(token)


class _Turns(Generic[KeyT]):
    """Decides whose turn it is among keys that have work."""

    def __init__(self) -> None:
        # Each active key is in the heap once. The number keeps the order of arrival among equals.
        self._starts: list[tuple[float, int, KeyT]] = []
        self._arrivals = itertools.count()
        self._now = self._latest_end = 0.0
        # A key that has no work for a moment must not start anew before its earlier work is due.
        self._ends: dict[KeyT, float] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, key: KeyT) -> None:
        """Add a key that has work again."""
        start = max(self._now, self._ends.pop(key, 0.0))
        heapq.heappush(self._starts, (start, next(self._arrivals), key))

    def peek(self) -> KeyT:
        """Return the key whose turn it is."""
        return self._starts[0][2]

    def end_turn(self, cost: float, *, has_more: bool) -> None:
        """Charge the key whose turn it was; ``has_more``: it still has work."""
        self._now, _, key = heapq.heappop(self._starts)
        end = self._now + cost
        self._latest_end = max(self._latest_end, end)
        if has_more:
            heapq.heappush(self._starts, (end, next(self._arrivals), key))
            return
        self._ends[key] = end
        # All work was served, so nobody owes anybody a turn.
        if not self._starts:
            self._now = self._latest_end
            self._ends.clear()
        if len(self._ends) > MAX_REMEMBERED_ENDS:
            self._ends = {key: end for key, end in self._ends.items() if end > self._now}
            # At least half must go, or each further caller would cost a pass over all.
            if len(self._ends) > MAX_REMEMBERED_ENDS // 2:
                self._ends.clear()


class FairQueue(Generic[T]):
    """Items of several flows; :meth:`pop` returns the one whose turn it is."""

    def __init__(self) -> None:
        self._accounts: _Turns[tuple[str, bool]] = _Turns()
        self._requests: dict[tuple[str, bool], _Turns[Flow]] = {}
        self._items: dict[Flow, deque[tuple[T, float]]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def only_flow(self) -> Flow | None:
        """The flow of all items, if they have the same one and nobody waits for anybody else."""
        return next(iter(self._items)) if len(self._items) == 1 else None

    def push(self, item: T, cost: float, flow: Flow) -> None:
        """Add an item.

        Args:
            item: the item.
            cost: its work, in any unit that is the same for all items of the queue, above 0.
            flow: whose it is.
        """
        self._length += 1
        if flow in self._items:
            self._items[flow].append((item, cost))
            return
        self._items[flow] = deque([(item, cost)])
        if flow.account not in self._requests:
            self._requests[flow.account] = _Turns()
            self._accounts.add(flow.account)
        self._requests[flow.account].add(flow)

    def pop(self) -> T:
        """Remove and return the item whose turn it is, and charge its caller.

        Raises:
            IndexError: the queue is empty.
        """
        account = self._accounts.peek()
        requests = self._requests[account]
        flow = requests.peek()
        item, cost = self._items[flow].popleft()
        self._length -= 1
        has_more = bool(self._items[flow])
        if not has_more:
            del self._items[flow]
        requests.end_turn(cost, has_more=has_more)
        if not requests:
            del self._requests[account]
        weight = VERDICT_WEIGHT if flow.is_verdict else 1.0
        self._accounts.end_turn(cost / weight, has_more=account in self._requests)
        return item

    def take_all(self) -> list[T]:
        """Remove and return all items; nobody is charged, since nobody waited for another."""
        result = [item for items in self._items.values() for item, _ in items]
        self._items.clear()
        self._requests.clear()
        # Start times are relative to each other only, so an empty queue may begin anew.
        self._accounts = _Turns()
        self._length = 0
        return result


LOOP_TURN_S = 0.005
"""Seconds of callers' work in an iteration of the event loop; what is begun then is finished."""


class _LoopTurns:
    """Calls short functions in one event loop: a few milliseconds of them at each iteration."""

    def __init__(self) -> None:
        self._queue: FairQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = FairQueue()
        self._spent_s = 0.0
        self._is_scheduled = False

    def has_time(self) -> bool:
        """Whether nobody waits and this iteration may still do work."""
        return not self._queue and self._spent_s < LOOP_TURN_S

    def call(self, work: Callable[[], T]) -> T:
        """Call a function in this iteration."""
        self._schedule()
        began = time.perf_counter()
        try:
            return work()
        finally:
            self._spent_s += time.perf_counter() - began

    def push(
        self, future: asyncio.Future[T], work: Callable[[], T], cost: float, flow: Flow
    ) -> None:
        """Call a function when it is its turn, and set its result."""
        self._queue.push((future, work), cost, flow)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            # The loop is not kept: it is the weak key under which this object is found.
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._is_scheduled, self._spent_s = False, 0.0
        while self._queue and self._spent_s < LOOP_TURN_S:
            future, work = self._queue.pop()
            # Its caller has gone: nobody needs the result.
            if future.done():
                continue
            try:
                future.set_result(self.call(work))
            except Exception as error:
                future.set_exception(error)
        if self._queue:
            self._schedule()


_turns_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopTurns] = WeakKeyDictionary()


async def run_in_turn(work: Callable[[], T], cost: float) -> T:
    """Call a function of a few milliseconds in the event loop, and return its result.

    Callers share the loop in fair turns, with other tasks in between: thousands of short functions
    that one caller brings would block it as a long one does. Work of this process itself is done
    at once.

    Args:
        work: the function.
        cost: how much work it is, as of :meth:`FairQueue.push`.
    """
    flow = CURRENT_FLOW.get()
    if not flow.caller:
        return work()
    loop = asyncio.get_running_loop()
    turns = _turns_by_loop.get(loop)
    if turns is None:
        turns = _turns_by_loop[loop] = _LoopTurns()
    if turns.has_time():
        return turns.call(work)
    future: asyncio.Future[T] = loop.create_future()
    turns.push(future, work, cost, flow)
    return await future


class FairThread:
    """One thread that calls functions for the event loops of the process, in fair turns."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: FairQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = FairQueue()
        self._has_work = threading.Condition()
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], T], cost: float) -> T:
        """Call ``work`` in the thread and return its result.

        Args:
            work: the function.
            cost: how much work it is, as of :meth:`FairQueue.push`.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._has_work:
            self._queue.push((future, work), cost, CURRENT_FLOW.get())
            # A forked process has no thread, but the object of its parent.
            if self._thread is None or not self._thread.is_alive():
                # A daemon: nothing that it works on needs an end when the process ends.
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._has_work.notify()
        return await future

    def _serve(self) -> None:
        while True:
            # A function of its own, so that nothing of the last work stays in memory meanwhile.
            self._serve_next()

    def _serve_next(self) -> None:
        with self._has_work:
            self._has_work.wait_for(lambda: len(self._queue))
            future, work = self._queue.pop()
        # Its caller has gone: nobody needs the result.
        if future.cancelled():
            return
        try:
            result, error = work(), None
        except BaseException as raised:
            result, error = None, raised
        _hand_over(future, result, error)


def _hand_over(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Set the result of a future from another thread."""

    def finish() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    try:
        future.get_loop().call_soon_threadsafe(finish)
    except RuntimeError:
        # The loop was closed, so nobody waits any more.
        return
