"""How many calls are in progress at once, against simulated servers on a clock that jumps."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.calls.simulated import Length, Queue, Server, Shared, usual_noise
from tests.virtual_time import now, run
from trustassay.calls.ramp import FIRST_CALLS, FIRST_WAIT, MAX_WAIT, Ramp
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import CallError


def constant(seconds: float) -> Length:
    return lambda: seconds


def scattered(seconds: float) -> Length:
    """Return lengths with this mean, and a standard deviation of 0.53 of it."""
    return lambda: seconds * random.lognormvariate(-0.125, 0.5)


class Outcome:
    """When calls were answered, and how many were allowed at once at the times of replies."""

    def __init__(self) -> None:
        self.answered_at: list[float] = []
        self.allowed: list[int] = []

    @property
    def first_s(self) -> float:
        return min(self.answered_at)

    @property
    def all_s(self) -> float:
        return max(self.answered_at)


def ask(server: Callable[[], Callable[[], object]], calls: int, seed: int = 1) -> Outcome:
    """Ask a server, 64 calls at once at most."""

    async def work() -> Outcome:
        random.seed(seed)
        serve, result = server(), Outcome()
        place = Endpoint(EndpointLimits(64, timeout_s=1e6, deadline_s=1e6))

        async def one() -> None:
            await place.call(serve)  # type: ignore[arg-type]
            result.answered_at.append(now())
            result.allowed.append(place.allowed)

        await asyncio.gather(*(one() for _ in range(calls)))
        return result

    return run(work)


@pytest.mark.parametrize("slots", [1, 2, 4])
@pytest.mark.parametrize("kind", [Queue, Shared])
def test_a_small_server_gets_few_calls_at_once_and_works_as_fast_as_it_can(
    slots: int, kind: type[Queue] | type[Shared]
) -> None:
    outcome = ask(lambda: kind(slots, constant(1.0)), 200)
    # With 64 at once it takes 64 / slots seconds where calls share the server.
    assert outcome.first_s <= max(1.0, FIRST_CALLS / slots)
    assert outcome.all_s <= 200 / slots + 1.5
    assert max(outcome.allowed[:100]) <= 16
    # Where calls wait in a queue, four more of them do no harm.
    if kind is Shared:
        assert outcome.allowed.count(FIRST_CALLS) > 0.75 * 200


def test_a_server_with_room_for_eight_gets_sixteen() -> None:
    outcome = ask(lambda: Shared(8, constant(1.0)), 400)
    assert outcome.first_s == pytest.approx(1.0)
    assert outcome.all_s <= 400 / 8 + 2
    # 64 are tried now and then, and bring no more.
    assert outcome.allowed.count(16) > 0.6 * 400


@pytest.mark.parametrize(("latency_s", "full_s"), [(0.1, 0.5), (0.3, 0.9), (0.7, 1.7), (1.0, 2.2)])
def test_a_fast_endpoint_is_at_its_limit_after_two_rounds(latency_s: float, full_s: float) -> None:
    outcome = ask(lambda: Server(latency_s=latency_s), 2000)
    assert outcome.answered_at[outcome.allowed.index(64)] <= full_s
    # Two rounds with fewer calls, and the tenth of a second of the first one.
    assert outcome.all_s <= 2000 / 64 * latency_s + 2.5 * latency_s + 0.2


@pytest.mark.parametrize("seed", range(12))
def test_replies_of_different_length_do_not_hide_room(seed: int) -> None:
    outcome = ask(lambda: Shared(64, scattered(1.0)), 1000, seed)
    assert outcome.all_s <= 1.35 * 1000 / 64 + 3
    assert outcome.allowed[-1] == 64


@pytest.mark.parametrize("kind", [Queue, Shared])
def test_nor_do_they_pretend_room_for_long(kind: type[Queue] | type[Shared]) -> None:
    outcomes = [ask(lambda: kind(2, scattered(1.0)), 300, seed) for seed in range(12)]
    allowed = [number for outcome in outcomes for number in outcome.allowed]
    assert allowed.count(64) < 0.05 * len(allowed)
    assert allowed.count(FIRST_CALLS) > 0.5 * len(allowed)
    assert max(outcome.first_s for outcome in outcomes) < 4


def test_failures_and_complaints_do_not_stop_it_from_growing() -> None:
    outcome = ask(lambda: Server([usual_noise(1, 1.0)], latency_s=0.1), 2000)
    assert outcome.allowed.count(64) > 0.9 * 2000


def answer(ramp: Ramp, latency_s: Callable[[int], float], replies: int) -> list[int]:
    """Answer calls that wait for places, and return how many were allowed at each reply."""
    result = []
    for _ in range(replies):
        ramp.record_reply(ramp.round, latency_s(ramp.allowed))
        result.append(ramp.allowed)
    return result


def test_a_larger_number_in_vain_is_tried_again_and_less_often_each_time() -> None:
    ramp = Ramp(64)
    allowed = answer(ramp, lambda number: number / 2, 4000)
    starts = [n for n in range(1, len(allowed)) if allowed[n - 1] == 4 and allowed[n] == 16]
    waits = [(after - before) // 4 for before, after in itertools.pairwise(starts)]
    assert FIRST_WAIT <= waits[0] < waits[1] < waits[2] < waits[3]
    assert max(waits) <= MAX_WAIT + 8


def test_room_that_comes_later_is_found() -> None:
    ramp = Ramp(64)
    assert answer(ramp, lambda number: number / 2, 200).count(4) > 120
    assert answer(ramp, lambda number: 1.0, 400)[-1] == 64


def test_a_server_that_becomes_full_gets_few_calls_again() -> None:
    ramp = Ramp(64)
    assert answer(ramp, lambda number: 1.0, 4000)[-1] == 64
    assert answer(ramp, lambda number: number / 2, 400)[-1] == 4


def test_calls_that_come_one_by_one_say_nothing_of_more_at_once() -> None:
    async def work() -> int:
        place, server = Endpoint(EndpointLimits(64)), Server()
        for _ in range(200):
            await place.call(server)
        return place.allowed

    assert run(work) == FIRST_CALLS


def test_replies_to_calls_of_an_earlier_round_do_not_count() -> None:
    ramp = Ramp(64)
    early = ramp.round
    answer(ramp, lambda number: 1.0, 4)
    assert ramp.allowed == 16
    for _ in range(100):
        ramp.record_reply(early, 100.0)
    assert ramp.allowed == 16
    assert answer(ramp, lambda number: 1.0, 16)[-1] == 64


def test_after_an_outage_nothing_from_before_it_counts() -> None:
    ramp = Ramp(64)
    answer(ramp, lambda number: 1.0, 100)
    early = ramp.round
    ramp.restart(16)
    assert ramp.allowed == 16
    ramp.record_reply(early, 1.0)
    assert answer(ramp, lambda number: 1.0, 11)[-1] == 16
    assert answer(ramp, lambda number: 1.0, 1)[-1] == 64


def test_refusals_are_no_answers() -> None:
    """They come at once: beside them every answer would seem slow, and more calls to be in vain."""

    async def work() -> list[int]:
        place, allowed, calls = Endpoint(EndpointLimits(64)), list[int](), itertools.count()

        async def call() -> None:
            is_refused = next(calls) < 30
            await asyncio.sleep(0.01 if is_refused else 1.0)
            if is_refused:
                raise CallError("too long", "refused")

        async def one() -> None:
            with suppress(CallError):
                await place.call(call)
            allowed.append(place.allowed)

        await asyncio.gather(*(one() for _ in range(1000)))
        return allowed

    assert run(work).count(64) > 900


@pytest.mark.parametrize("most", [1, 3, 4, 5, 7, 8, 10, 16, 20, 31, 32, 50, 64, 70, 100, 300])
def test_the_limit_of_the_user_is_reached_and_kept(most: int) -> None:
    ramp = Ramp(most)
    allowed = answer(ramp, lambda number: 1.0, 2000)
    assert max(allowed) == allowed[-1] == most
    # No step is so small that its gain could be chance.
    steps = itertools.pairwise(sorted(set(allowed)))
    assert all(after >= 2 * before for before, after in steps)
