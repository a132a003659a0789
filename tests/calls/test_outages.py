"""Outages on a clock that jumps: nothing is lost, nobody is asked in vain, and all ends in time."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from tests.calls.simulated import Server, ask_all, during, limited, noise, usual_noise
from tests.virtual_time import now, run
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import CallError, CallFault

OK = "ok"


def endpoint(concurrency: int = 50, **limits: float) -> Endpoint:
    return Endpoint(EndpointLimits(concurrency, **limits))  # type: ignore[arg-type]


def calls_during(server: Server, begin_s: float, seconds: float) -> list[float]:
    """Return when those calls left that met the outage, without those under way as it began."""
    return [at for at in server.sent_at if begin_s + 0.1 < at < begin_s + seconds]


@pytest.mark.parametrize("kind", ["connection", "server", "timeout"])
@pytest.mark.parametrize("seconds", [5, 12, 15, 20, 30, 50])
def test_an_outage_loses_nothing_and_is_over_soon_after_its_end(
    kind: CallFault, seconds: float
) -> None:
    async def work() -> None:
        random.seed(1)
        server, place = Server([during(kind, 0.5, seconds)]), endpoint()
        found, took = await ask_all(place, server, [0] * 600)
        assert found == [OK] * 600
        # 600 calls of 0.1 s at 50 at a time take 1.2 s, and three rounds with fewer 0.3 s more;
        # probes are at most 2 s apart.
        assert took <= 1.5 + seconds + 2.5

    run(work)


def test_in_an_outage_one_call_at_a_time_probes_at_growing_distances() -> None:
    async def work() -> None:
        server, place = Server([during("connection", 0.5, 30)]), endpoint()
        await ask_all(place, server, [0] * 600)
        probes = calls_during(server, 0.5, 30)
        distances = [after - before for before, after in itertools.pairwise(probes)]
        assert distances == pytest.approx(sorted(distances))
        assert 0.2 <= distances[0] <= 0.5
        assert 1.9 <= distances[-1] <= 2.2
        assert len(probes) < 25

    run(work)


def test_a_hang_loses_nothing() -> None:
    """Connections are taken and nothing comes for 12 s; calls are given up after 3."""

    async def work() -> None:
        hanging = Server()

        async def call() -> str:
            if 0.5 <= now() < 12.5:
                hanging.active += 1
                hanging.most = max(hanging.most, hanging.active)
                try:
                    await asyncio.sleep(1000)
                finally:
                    hanging.active -= 1
            return await hanging()

        place = endpoint(timeout_s=3)
        found = await asyncio.gather(*(place.call(call) for _ in range(600)))
        assert found == [OK] * 600
        assert hanging.most <= 50
        assert now() <= 12.5 + 3 + 3

    run(work)


def test_calls_resume_without_all_starting_at_once() -> None:
    async def work() -> None:
        server, place = Server([during("server", 0.5, 10)], latency_s=0.1), endpoint(200)
        await ask_all(place, server, [0] * 4000)
        over = [at for at in server.sent_at if at >= 10.5]
        assert len([at for at in over if at <= over[0] + 0.11]) <= 1 + 52
        assert sum(at <= over[0] + 0.6 for at in over) > 500  # and soon as fast as before

    run(work)


@pytest.mark.parametrize("latency_s", [0.02, 2.0])
@pytest.mark.parametrize("kind", ["connection", "server"])
def test_replies_that_were_under_way_do_not_end_an_outage(
    kind: CallFault, latency_s: float
) -> None:
    """Refused at once, while what was under way before is still answered one by one."""

    async def work() -> None:
        draw = random.Random(2)

        async def call() -> str:
            late = draw.uniform(0.5, 2) * latency_s
            if 1 <= now() < 31:
                sent.append(now())
                raise CallError("no", kind)
            await asyncio.sleep(late)
            return OK

        sent: list[float] = []
        place = endpoint()
        found = await asyncio.gather(*(place.call(call) for _ in range(6000)))
        assert found == [OK] * 6000
        assert len(sent) < 50 + 30

    run(work)


def test_outages_that_follow_one_another_lose_nothing() -> None:
    async def work() -> None:
        rules = [during("connection", 1 + 20 * i, 15) for i in range(8)]
        server, place = Server(rules, latency_s=1.0), endpoint(10)
        found, _ = await ask_all(place, server, [0] * 500)
        assert found == [OK] * 500

    run(work)


def test_an_outage_counts_for_no_deadline() -> None:
    async def work() -> None:
        server, place = Server([during("server", 0.5, 50)]), endpoint(deadline_s=20)
        found, took = await ask_all(place, server, [0] * 600)
        assert found == [OK] * 600
        assert took > 50

    run(work)


def test_an_outage_among_noise_loses_nothing() -> None:
    async def work() -> None:
        random.seed(3)
        server = Server([during("connection", 0.5, 30), usual_noise(3, 1)])
        found, _ = await ask_all(endpoint(), server, [0] * 600)
        assert found == [OK] * 600

    run(work)


def test_failures_now_and_then_are_no_outage() -> None:
    """One connection in ten drops; a pause for all of them would take seconds."""

    async def work() -> None:
        random.seed(1)
        server, place = Server([noise(1, connection=0.1)]), endpoint()
        found, _ = await ask_all(place, server, [0] * 2000)
        assert found == [OK] * 2000
        pauses = [b - a for a, b in itertools.pairwise(server.sent_at[:2000])]
        assert max(pauses) < 0.15

    run(work)


# ---- calls that are at fault themselves ----

POISON = 7


def poisonous(tokens: int) -> CallError | None:
    return CallError("boom", "server") if tokens == POISON else None


@pytest.mark.slow
def test_a_call_that_always_fails_fails_alone_and_stalls_nobody() -> None:
    async def work() -> None:
        random.seed(1)
        server, place = Server([poisonous]), endpoint()
        sizes = [POISON if i % 100 == 0 else 1 for i in range(20_000)]
        good: list[float] = []

        async def one(tokens: int) -> None:
            await place.call(lambda: server(tokens))
            good.append(now())

        found = await asyncio.gather(*map(one, sizes), return_exceptions=True)
        failed = [str(error) for error in found if error is not None]
        assert len(failed) == 200
        assert sum("(after 8 tries)" in error for error in failed) > 40
        assert max(good) <= 1.2 * 40

    run(work)


@pytest.mark.parametrize(("many", "concurrency"), [(1, 50), (3, 50), (20, 50), (3, 1), (20, 1)])
def test_when_only_such_calls_are_left_patience_bounds_the_run(many: int, concurrency: int) -> None:
    async def work() -> None:
        random.seed(1)
        server, place = Server([poisonous]), endpoint(concurrency)
        found, took = await ask_all(place, server, [1] * 200 + [POISON] * many)
        assert found[:200] == [OK] * 200
        assert all(isinstance(error, CallError) for error in found[200:])
        assert took <= 21 + 60 + 4
        # The endpoint is not gone for those who come later, whom another stage of a run may send.
        assert await place.call(server) == OK

    run(work)


def test_a_call_that_failed_before_while_others_were_answered_is_not_waited_for() -> None:
    """It has failed three times among replies: then its own tries are enough."""

    async def work() -> None:
        random.seed(1)
        server, place = Server([poisonous], latency_s=0.1), endpoint(2)
        bad = asyncio.create_task(place.call(lambda: server(POISON)))
        await ask_all(place, server, [1] * 120)
        with pytest.raises(CallError, match=r"boom \(after 8 tries\)"):
            await bad

    run(work)


# ---- complaints and nothing else ----


@pytest.mark.parametrize("after_s", [None, 1, 20])
def test_nothing_but_complaints_for_a_minute_loses_nothing(after_s: float | None) -> None:
    """A quota of a minute that somebody else has used up."""

    async def work() -> None:
        random.seed(1)
        server = Server([lambda _: limited(after_s) if now() < 59 else None])
        found, took = await ask_all(endpoint(), server, [1] * 600)
        assert found == [OK] * 600
        assert server.came["limited"] < 150
        assert took < 59 + 25

    run(work)


@pytest.mark.parametrize("after_s", [None, 30])
def test_an_endpoint_that_only_complains_counts_as_gone_in_the_end(after_s: float | None) -> None:
    async def work() -> None:
        server = Server([lambda _: limited(after_s)])
        found, took = await ask_all(endpoint(deadline_s=300), server, [1] * 600)
        assert all(isinstance(error, CallError) for error in found)
        assert "so no more requests are sent" in str(found[-1])
        assert took <= 2 * 60 + 300 + 31
        assert server.came["limited"] < 250

    run(work)


def test_one_complaint_among_failures_is_waited_for_no_longer_than_a_failure() -> None:
    async def work() -> None:
        rules = [noise(1, 5.0, limited=0.1, server=0.9)]
        server = Server(rules)
        found, took = await ask_all(endpoint(), server, [1] * 600)
        assert all(isinstance(error, CallError) for error in found)
        assert 60 <= took <= 60 + 10 * 5

    run(work)
