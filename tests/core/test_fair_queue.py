"""Several callers are served in turn, by the work that each brings."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.core.fair_queue import (
    CURRENT_FLOW,
    MAX_REMEMBERED_ENDS,
    VERDICT_WEIGHT,
    FairQueue,
    FairThread,
    Flow,
    run_in_turn,
)

LONG, SHORT = Flow("long"), Flow("short")


def fill(queue: FairQueue[str], flow: Flow, items: int, cost: float = 1.0) -> None:
    for number in range(items):
        queue.push(f"{flow.caller}{flow.request}-{number}", cost, flow)


def pop_all(queue: FairQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


def test_a_newcomer_is_served_next_whatever_others_have_waiting() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, LONG, 1000)
    for _ in range(10):
        queue.pop()
    queue.push("newcomer", 1.0, SHORT)
    assert "newcomer" in [queue.pop(), queue.pop()]


def test_many_small_items_gain_nothing_over_few_large_ones() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, Flow("small"), 1000, cost=1.0)
    fill(queue, Flow("large"), 10, cost=100.0)
    costs: Counter[str] = Counter()
    for _ in range(505):
        item = queue.pop()
        costs["small" if item.startswith("small") else "large"] += (
            1 if item.startswith("small") else 100
        )
    assert abs(costs["small"] - costs["large"]) <= 100


def test_who_sends_one_item_at_a_time_gets_no_more_than_a_share() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, Flow("small"), 1000, cost=1.0)
    work: Counter[str] = Counter()
    queue.push("large", 100.0, Flow("large"))
    for _ in range(400):
        item = queue.pop()
        if item == "large":
            work["large"] += 100
            # it comes again only now, when the queue had none of its items
            queue.push("large", 100.0, Flow("large"))
        else:
            work["small"] += 1
    assert work["large"] <= work["small"] + 200


def test_many_requests_of_one_caller_gain_nothing_over_one_list() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(200):
        fill(queue, Flow("many", number), 1)
    fill(queue, Flow("list"), 200)
    served = Counter(queue.pop().rstrip("0123456789-") for _ in range(200))
    assert abs(served["many"] - served["list"]) <= 1


def test_a_callers_single_request_need_not_wait_for_his_own_list() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, Flow("one", 1), 500)
    queue.pop()
    queue.push("single", 1.0, Flow("one", 2))
    assert "single" in [queue.pop(), queue.pop()]


def test_verdicts_have_a_larger_share_and_samples_still_get_theirs() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, Flow("list"), 900)
    fill(queue, Flow("chat", is_verdict=True), 900)
    served = Counter(queue.pop()[:4] for _ in range(900))
    assert served["chat"] / served["list"] == pytest.approx(VERDICT_WEIGHT, rel=0.02)


def test_the_verdicts_of_a_caller_do_not_wait_for_his_samples() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, Flow("one", 1), 500)
    for _ in range(100):
        queue.pop()
    queue.push("verdict", 1.0, Flow("one", 2).as_verdict())
    assert "verdict" in [queue.pop(), queue.pop()]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(1, 50)), max_size=60)
)
def test_every_item_is_served_once_and_those_of_a_request_in_order(
    entries: Sequence[tuple[str, int, int]],
) -> None:
    queue: FairQueue[int] = FairQueue()
    for number, (caller, request, cost) in enumerate(entries):
        queue.push(number, cost, Flow(caller, request))
    served = [queue.pop() for _ in range(len(entries))]
    assert sorted(served) == list(range(len(entries)))
    for flow in {entry[:2] for entry in entries}:
        numbers = [number for number in served if entries[number][:2] == flow]
        assert numbers == sorted(numbers)
    assert len(queue) == 0
    with pytest.raises(IndexError):
        queue.pop()


def test_taking_all_leaves_a_queue_that_works() -> None:
    queue: FairQueue[str] = FairQueue()
    fill(queue, LONG, 3)
    assert queue.only_flow == LONG
    assert queue.take_all() == ["long0-0", "long0-1", "long0-2"]
    fill(queue, SHORT, 1)
    fill(queue, LONG, 1)
    assert queue.only_flow is None
    assert sorted(pop_all(queue)) == ["long0-0", "short0-0"]


def test_callers_who_are_gone_are_forgotten() -> None:
    for backlog in (0, 100_000):
        queue: FairQueue[str] = FairQueue()
        fill(queue, LONG, backlog)
        for number in range(3 * MAX_REMEMBERED_ENDS):
            queue.push("x", 1.0, Flow(str(number)))
            queue.pop()
        assert len(queue._accounts._ends) <= MAX_REMEMBERED_ENDS


def test_a_thread_serves_its_callers_in_turn() -> None:
    thread, order = FairThread("test-fair-thread"), list[str]()
    gate = threading.Event()

    async def ask(caller: str, work: int) -> None:
        CURRENT_FLOW.set(Flow(caller))
        await asyncio.gather(*(thread.run(lambda: order.append(caller), 10.0) for _ in range(work)))

    async def run() -> None:
        blocking = asyncio.create_task(thread.run(gate.wait, 1.0))
        asking = [asyncio.create_task(ask("long", 50)), asyncio.create_task(ask("short", 2))]
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.gather(blocking, *asking)

    asyncio.run(asyncio.wait_for(run(), 10))
    assert len(order) == 52
    assert max(place for place, caller in enumerate(order) if caller == "short") <= 4


def test_an_error_in_the_thread_reaches_its_caller_alone() -> None:
    thread = FairThread("test-fair-thread")

    async def run() -> tuple[object, object]:
        return await asyncio.gather(
            thread.run(lambda: 1 // 0, 1.0), thread.run(lambda: 7, 1.0), return_exceptions=True
        )

    error, value = asyncio.run(asyncio.wait_for(run(), 10))
    assert isinstance(error, ZeroDivisionError)
    assert value == 7


def test_work_that_nobody_waits_for_any_more_is_not_done() -> None:
    thread, done = FairThread("test-fair-thread"), list[str]()
    gate = threading.Event()

    async def run() -> None:
        blocking = asyncio.create_task(thread.run(gate.wait, 1.0))
        await asyncio.sleep(0.05)
        leaving = asyncio.create_task(thread.run(lambda: done.append("left"), 1.0))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        gate.set()
        await blocking
        await thread.run(lambda: done.append("stayed"), 1.0)

    asyncio.run(asyncio.wait_for(run(), 10))
    assert done == ["stayed"]


async def take_turns(caller: str, order: list[str], functions: int) -> None:
    def work() -> None:
        time.sleep(0.002)
        order.append(caller)

    CURRENT_FLOW.set(Flow(caller))
    await asyncio.gather(*(run_in_turn(work, 10.0) for _ in range(functions)))


def test_the_loop_serves_callers_in_turn_and_other_tasks_in_between() -> None:
    async def run() -> tuple[list[str], int]:
        order = list[str]()
        waiting = asyncio.create_task(take_turns("long", order, 100))
        iterations = 0
        while len(order) < 50:
            await asyncio.sleep(0)
            iterations += 1
        earlier = len(order)
        await take_turns("short", order, 2)
        await waiting
        return order[earlier:], iterations

    later, iterations = asyncio.run(asyncio.wait_for(run(), 10))
    assert later.count("short") == 2
    assert max(place for place, caller in enumerate(later) if caller == "short") <= 10
    assert iterations >= 10


def test_an_error_in_the_loop_reaches_its_caller_alone() -> None:
    async def run() -> tuple[object, object, object, object]:
        CURRENT_FLOW.set(Flow("one"))
        errors = run_in_turn(lambda: 1 // 0, 1.0), run_in_turn(lambda: 1 // 0, 1.0)
        # The first is called at once, the others after it has taken the time of this iteration.
        first, last = run_in_turn(lambda: time.sleep(0.006), 1.0), run_in_turn(lambda: 7, 1.0)
        return await asyncio.gather(first, *errors, last, return_exceptions=True)

    _, *errors, value = asyncio.run(asyncio.wait_for(run(), 10))
    assert [type(error) for error in errors] == [ZeroDivisionError] * 2
    assert value == 7


def test_work_in_the_loop_that_nobody_waits_for_any_more_is_not_done() -> None:
    async def run() -> list[str]:
        done, order = list[str](), list[str]()
        blocking = asyncio.create_task(take_turns("one", order, 20))
        await asyncio.sleep(0)
        CURRENT_FLOW.set(Flow("one"))
        leaving = asyncio.create_task(run_in_turn(lambda: done.append("left"), 1.0))
        await asyncio.sleep(0)
        leaving.cancel()
        await blocking
        await run_in_turn(lambda: done.append("stayed"), 1.0)
        return done

    assert asyncio.run(asyncio.wait_for(run(), 10)) == ["stayed"]


def test_work_of_this_process_is_done_at_once() -> None:
    async def run() -> list[str]:
        order = list[str]()
        waiting = asyncio.create_task(take_turns("one", order, 20))
        await asyncio.sleep(0)
        await run_in_turn(lambda: order.append("here"), 1.0)
        at_once = [*order]
        await waiting
        return at_once

    assert asyncio.run(asyncio.wait_for(run(), 10))[-1] == "here"
