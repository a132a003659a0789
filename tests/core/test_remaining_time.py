"""Estimates of the remaining time against the true one, on a simulated clock."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

import pytest

from trustassay.core.remaining_time import (
    RemainingTime,
    describe_rate,
    describe_seconds_left,
)

TICK_S = 0.05
"""How often a person looks."""


def flow(start_s: float, per_second: float, steps: int) -> list[float]:
    """Return the times of steps at a constant rate."""
    return [start_s + n / per_second for n in range(steps)]


def rounds(latency_s: float, at_once: int, steps: int, jitter_s: float = 0.02) -> list[float]:
    """Return the times of calls that start and return together, spread over a little time."""
    each = jitter_s / at_once
    return [latency_s * (n // at_once + 1) + (n % at_once) * each for n in range(steps)]


def ramp(latency_s: float, factor: int, steps: int) -> list[float]:
    """Return the times of calls of which 4 start at once, and more in each round, up to 64."""
    result: list[float] = []
    at, at_once = 0.0, 4
    while len(result) < steps:
        at += latency_s
        result += [at + 0.001 * n for n in range(at_once)]
        at_once = min(64, factor * at_once)
    return result[:steps]


def pool(at_once: int, steps: int, seed: int) -> list[float]:
    """Return the times of calls of random length, with so many in progress at once."""
    drawn = random.Random(seed)
    ends = sorted(drawn.lognormvariate(1.0, 0.6) for _ in range(at_once))
    result: list[float] = []
    while len(result) < steps:
        result.append(ends[0])
        heapq.heapreplace(ends, ends[0] + drawn.lognormvariate(1.0, 0.6))
    return result


def estimates(steps_at: Sequence[float], done_before: int = 0) -> list[tuple[float, float, float]]:
    """Return time, estimate and true rest, in seconds, at each look that has an estimate."""
    remaining, result = RemainingTime(0.0, done_before), []
    total, done, at = done_before + len(steps_at), done_before, 0.0
    while at < steps_at[-1]:
        at += TICK_S
        while done < total and steps_at[done - done_before] <= at:
            done += 1
            remaining.record(done, steps_at[done - done_before - 1])
        seconds = remaining.seconds_left(total, at)
        if seconds is not None:
            result.append((at, seconds, max(0.0, steps_at[-1] - at)))
    return result


SCENARIOS = {
    # By name: the times of the steps, the latest first estimate, and the largest overestimate.
    "constant rate": (flow(0.05, 20, 2400), 2.2, 1.1),
    "a model that loads for 20 s": (flow(20, 10, 1000), 22.3, 1.1),
    "four slow steps": ([4, 8, 12, 16, *flow(16.1, 10, 1000)], 18.5, 1.1),
    "bursts of 64 each 8 s": (rounds(8, 64, 640), 10.1, 2.5),
    "bursts of 64 each 8 s, spread over 2 s": (rounds(8, 64, 640, 2.0), 18.0, 2.3),
    "bursts of 64 each 32 s": (rounds(32, 64, 640), 34.1, 2.5),
    "two slots of 2 s": (rounds(2, 2, 300), 8.1, 1.6),
    "a ramp, 4 times as many each second": (ramp(1, 4, 10_000), 5.5, 1.6),
    "a ramp, 4 times as many each 2 s": (ramp(2, 4, 5_000), 10.5, 1.6),
    "a ramp, twice as many each second": (ramp(1, 2, 10_000), 8.0, 1.6),
    "a ramp, twice as many each 4 s": (ramp(4, 2, 5_000), 28.3, 1.6),
    "calls of random length": (pool(64, 3_000, 1), 3.5, 1.3),
    "one slow step after another": (flow(10, 0.1, 60), 40.1, 1.6),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_estimate_is_near_the_true_rest_from_early_on(scenario: str) -> None:
    steps_at, latest_s, most = SCENARIOS[scenario]
    seen = estimates(steps_at)
    assert seen[0][0] <= latest_s
    # It does not come and go.
    assert len(seen) == round((seen[-1][0] - seen[0][0]) / TICK_S) + 1
    # Below a minute only "less than a minute" is shown.
    over = [seconds / max(rest, 1e-9) for _, seconds, rest in seen if seconds >= 60]
    assert max(over) <= most
    # Nor is it much too short, until the last calls, which no others follow.
    under = min(seconds / rest for _, seconds, rest in seen if rest > 0.2 * steps_at[-1])
    assert under >= 1 / 4


@pytest.mark.parametrize("steps_at", [flow(0.5, 1, 100), rounds(8, 64, 256), flow(20, 1, 100)])
def test_steps_that_were_done_before_are_no_rate(steps_at: list[float]) -> None:
    with_them, without = estimates(steps_at, done_before=900), estimates(steps_at)
    assert with_them == without


def test_a_slowdown_is_noticed_within_half_a_minute() -> None:
    steps_at = [*flow(0.05, 20, 1200), *flow(61, 1, 300)]
    late = [(seconds, rest) for at, seconds, rest in estimates(steps_at) if at > 92]
    assert all(0.8 * rest <= seconds <= 1.25 * rest for seconds, rest in late if rest > 5)


def test_there_is_no_estimate_before_there_is_evidence() -> None:
    remaining = RemainingTime(0.0)
    assert remaining.seconds_left(100, 60.0) is None
    for number in range(1, 8):
        remaining.record(number, 60.0 + number)
        assert remaining.rate(60.0 + number) is None
    remaining.record(8, 68.0)
    assert remaining.rate(68.0) == pytest.approx(1.0)


def test_the_records_of_a_long_run_do_not_pile_up() -> None:
    remaining = RemainingTime(0.0)
    for number in range(1, 20_000):
        remaining.record(number, number * 0.3)
    assert len(remaining._records) < 120


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute left"),
        (59.9, "less than a minute left"),
        (60, "about 1 min left"),
        (95, "about 2 min left"),
        (60 * 89, "about 89 min left"),
        (60 * 100, "about 2 h left"),
    ],
)
def test_remaining_time_in_words(seconds: float, words: str) -> None:
    assert describe_seconds_left(seconds) == words


def test_a_slow_rate_is_per_minute() -> None:
    assert [describe_rate(rate) for rate in (12.34, 0.1, 0.05)] == ["12.3/s", "0.1/s", "3.0/min"]
