"""Several workers and one endpoint: its limit is learnt and kept together."""

from __future__ import annotations

import asyncio

import pytest

from tests import virtual_time
from trustassay.calls.leases import LeaseGrant, LeaseRequest, Leases, LeaseService
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.errors import CallError

RATE = 100
LATENCY_S, TRIP_S = 0.1, 0.005


class Limited:
    """An endpoint that takes so many calls a second, of which it saves up a quarter of a second's
    worth, and refuses the others.
    """

    def __init__(self, per_second: float) -> None:
        self.per_second = self.level = per_second
        self.at = 0.0
        self.refused = self.answered = 0
        self.at_once = self.most = 0

    async def call(self) -> None:
        now = virtual_time.now()
        more = (now - self.at) * self.per_second
        self.level, self.at = min(self.per_second / 4, self.level + more), now
        if self.level < 1:
            self.refused += 1
            raise CallError("too many", "limited")
        self.level -= 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(LATENCY_S)
        self.at_once -= 1
        self.answered += 1


def endpoints(workers: int, limits: EndpointLimits) -> list[Endpoint]:
    """Return the endpoint as each of several workers sees it, with one service for all."""
    service = LeaseService(virtual_time.now)

    async def lease(address: str, limits: EndpointLimits, ask: LeaseRequest) -> LeaseGrant:
        await asyncio.sleep(TRIP_S)
        found = service.lease(address, limits, ask)
        await asyncio.sleep(TRIP_S)
        return found

    found = []
    for number in range(workers):
        leases = Leases(lease, f"w{number}", workers)
        pace = leases.pace("http://one", limits)
        found.append(Endpoint(leases.part(limits), shared=pace))
    return found


async def asked(places: list[Endpoint], limited: Limited, calls: int) -> float:
    """Ask so many calls, the same number of each worker; return the seconds."""
    began = virtual_time.now()
    share = calls // len(places)
    await asyncio.gather(*(place.call(limited.call) for place in places for _ in range(share)))
    return virtual_time.now() - began


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_keep_a_limit_together(workers: int) -> None:
    async def work() -> None:
        limited = Limited(RATE)
        seconds = await asked(endpoints(workers, EndpointLimits(64)), limited, 6000)
        assert limited.answered == 6000
        assert 6000 / seconds > 0.85 * RATE
        assert limited.refused < 0.16 * 6000

    virtual_time.run(work)


def test_without_a_limit_nothing_slows_down() -> None:
    async def work() -> None:
        limited = Limited(1e9)
        seconds = await asked(endpoints(4, EndpointLimits(64)), limited, 4000)
        assert limited.most <= 64
        assert 4000 / seconds > 0.85 * 64 / (LATENCY_S + 2 * TRIP_S)

    virtual_time.run(work)


def test_rates_that_are_known_hold_for_all_workers() -> None:
    async def work() -> None:
        limited = Limited(1e9)
        seconds = await asked(endpoints(4, EndpointLimits(64, 600)), limited, 120)
        assert 0.9 * 10 < 120 / seconds < 1.1 * 10
        await asked(endpoints(4, EndpointLimits(64)), limited, 40)

        async def tokens() -> float:
            began = virtual_time.now()
            places = endpoints(4, EndpointLimits(64, None, 6000))
            calls = (place.call(limited.call, 20) for place in places for _ in range(60))
            await asyncio.gather(*calls)
            return 240 * 20 / (virtual_time.now() - began)

        assert 0.8 * 100 < await tokens() < 1.25 * 100

    virtual_time.run(work)


def test_what_one_worker_is_told_slows_the_others_down() -> None:
    async def work() -> None:
        limited = Limited(RATE)
        first, second = endpoints(2, EndpointLimits(64))
        await asked([first], limited, 2000)
        before = limited.refused
        await asked([second], limited, 500)
        assert limited.refused - before < 0.2 * 500

    virtual_time.run(work)


def test_a_service_that_is_away_is_asked_again() -> None:
    async def work() -> None:
        service, limited = LeaseService(virtual_time.now), Limited(1e9)
        failures = 3

        async def lease(address: str, limits: EndpointLimits, ask: LeaseRequest) -> LeaseGrant:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise ConnectionError
            return service.lease(address, limits, ask)

        pace = Leases(lease, "w", 1).pace("http://one", EndpointLimits())
        place = Endpoint(EndpointLimits(), shared=pace)
        assert await asked([place], limited, 10) > 1.0
        assert limited.answered == 10

    virtual_time.run(work)
