"""Complaints on a clock that jumps: by chance they cost nothing, a limit is found and kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from tests.calls.simulated import (
    Rule,
    Server,
    ask_all,
    at_once,
    bucket,
    fixed_window,
    noise,
    plain_loop,
    sliding_window,
    usual_noise,
)
from tests.support import crossed, repeats
from tests.virtual_time import now, run
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits

pytestmark = pytest.mark.slow

OK = "ok"
AFTER = [None, 1.0]
"""With a ``Retry-After`` and without."""
SEEDS = range(1, 1 + repeats(3))


def asked(
    server: Server, sizes: Sequence[int], concurrency: int = 50, seed: int = 1
) -> tuple[list[object], float]:
    """Return what came of the calls, and the seconds that they took."""

    async def work() -> tuple[list[object], float]:
        random.seed(seed)
        return await ask_all(Endpoint(EndpointLimits(concurrency)), server, sizes)

    return run(work)


def seconds(server: Server, sizes: Sequence[int], concurrency: int = 50, seed: int = 1) -> float:
    """Return the seconds that the calls took, none of which may be lost."""
    found, took = asked(server, sizes, concurrency, seed)
    assert found == [OK] * len(sizes)
    return took


def loop_seconds(server: Server, sizes: Sequence[int], concurrency: int = 50) -> float:
    async def work() -> float:
        random.seed(1)
        return await plain_loop(server, sizes, concurrency)

    return run(work)


# ---- by chance ----


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("after_s", "calls"), crossed(AFTER, [(0.1, 50), (0.02, 10), (2.0, 50)]))
def test_noise_costs_no_more_than_in_a_plain_loop(
    after_s: float | None, seed: int, calls: tuple[float, int]
) -> None:
    latency_s, concurrency = calls

    def server() -> Server:
        return Server([usual_noise(seed, after_s)], latency_s=latency_s)

    took = seconds(server(), [0] * 2000, concurrency, seed)
    assert took <= 1.1 * loop_seconds(server(), [0] * 2000, concurrency)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_much_noise_is_no_limit_either(share: float) -> None:
    """Slowing down in vain is found out, and not gone on with. A plain loop would take as long."""
    for seed in SEEDS:
        found, took = asked(Server([noise(seed, 1.0, limited=share)]), [0] * 2000, 50, seed)
        assert found.count(OK) >= 1998  # in 2,000 calls, 0.13 fail eight times at 0.3
        loop = loop_seconds(Server([noise(seed, 1.0, limited=share)]), [0] * 2000)
        assert took <= 1.3 * loop


def test_the_retry_after_of_one_call_does_not_hold_back_the_others() -> None:
    server = Server([noise(1, 100.0, limited=0.01)])

    async def work() -> None:
        random.seed(1)
        await ask_all(Endpoint(EndpointLimits(50)), server, [0] * 2000)

    run(work)
    assert sum(at < 10 for at in server.sent_at) >= 2000


# ---- a limit ----


LIMITS: dict[str, Callable[[float | None], Rule]] = {
    "bucket of 10": lambda after_s: bucket(100, 10, after_s),
    "bucket of 100": lambda after_s: bucket(100, 100, after_s),
    "sliding window": lambda after_s: sliding_window(100, 1, after_s),
}
CALLS = [
    (10, 0.02, 0.005, 0.25),
    (50, 0.02, 0.02, 0.25),
    (50, 0.1, 0.005, 0.25),
    (50, 0.1, 0.1, 0.25),
    (500, 0.1, 0.005, 0.7),  # of 500 that start at once most are refused
]
"""How many at once, seconds that an answer and a refusal take, and the most refusals a call."""


@pytest.mark.parametrize(("after_s", "limit", "calls"), crossed(AFTER, [*LIMITS], CALLS))
def test_a_limit_of_requests_is_reached_and_few_are_refused(
    after_s: float | None, limit: str, calls: tuple[int, float, float, float]
) -> None:
    concurrency, latency_s, refused_s, complaints = calls
    server = Server([LIMITS[limit](after_s)], latency_s, refused_s)
    took = seconds(server, [0] * 2000, concurrency)
    assert took <= 1.1 * 20 + latency_s
    assert server.complaints <= complaints


@pytest.mark.parametrize("after_s", AFTER)
def test_a_limit_of_less_than_one_call_at_a_time_is_kept(after_s: float | None) -> None:
    server = Server([bucket(2, 2, after_s)], latency_s=0.02)
    took = seconds(server, [0] * 200)
    assert took <= 1.25 * 100
    assert server.complaints <= 0.9  # most of them before the limit is found


@pytest.mark.parametrize("tells", [True, False])
def test_a_quota_for_each_minute_is_used_and_loses_nothing(tells: bool) -> None:
    server = Server([fixed_window(600, 60, tells)])
    took = seconds(server, [0] * 2000)
    assert took <= 180 + 10  # the fourth minute's calls take some seconds
    assert server.complaints <= 0.15


@pytest.mark.parametrize(("after_s", "latency_s"), [(None, 0.1), (1.0, 0.02)])
@pytest.mark.parametrize(
    ("before", "after", "calls", "ideal"),
    [(200, 100, 2000, 15.0), (300, 100, 4000, 30.0), (100, 200, 4000, 22.5)],
)
def test_a_quota_that_changes_midway_is_followed(
    after_s: float | None, latency_s: float, before: int, after: int, calls: int, ideal: float
) -> None:
    """It changes after five seconds."""

    def quota() -> float:
        return before if now() < 5 else after

    server = Server([bucket(quota, 20, after_s)], latency_s)
    took = seconds(server, [0] * calls)
    assert took <= 1.1 * ideal + (1.1 if after_s else 0.5)  # and the last Retry-After
    assert server.complaints <= 0.3


@pytest.mark.parametrize("after_s", AFTER)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_limit_of_tokens_is_reached_with_calls_of_many_sizes(
    after_s: float | None, seed: int
) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([100, 300, 500, 1000, 2000]) for _ in range(1000)]
    per_s = sum(sizes) / 20
    server = Server([bucket(per_s, per_s / 4, after_s, of_tokens=True)])
    took = seconds(server, sizes, seed=seed)
    assert took <= 1.1 * 20 + (1.1 if after_s else 0.1)
    assert server.complaints <= 0.35


@pytest.mark.parametrize(
    ("after_s", "concurrency", "latency"),
    crossed(AFTER, [50, 500], [lambda: 1.0, lambda: random.uniform(2, 8)]),
)
def test_a_limit_of_calls_at_once_is_kept(
    after_s: float | None, concurrency: int, latency: Callable[[], float]
) -> None:
    server = Server(latency_s=latency)
    server.rules = [at_once(lambda: server, 20, after_s)]
    took = seconds(server, [0] * 600, concurrency)
    mean_s = 1.0 if latency() == 1.0 else 5.0
    assert took <= 1.3 * 30 * mean_s + 8
    assert server.complaints <= 0.4 + concurrency / 600


def test_a_limit_among_noise() -> None:
    for seed in SEEDS:
        server = Server([bucket(100, 10), usual_noise(seed, None)])
        took = seconds(server, [0] * 2000, seed=seed)
        assert took <= 1.15 * 20 / 0.91  # nine calls in a hundred come to nothing
