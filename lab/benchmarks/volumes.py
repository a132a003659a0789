"""How often ``monitor`` takes a day for one with too few answers, and which falls it finds.

    python -m lab.benchmarks.volumes            # some three minutes; writes results/volumes.json

A year is 393 days. Numbers of answers are Poisson numbers of a mean that varies from day to day by
a share of itself (a gamma distribution), in some years with few answers at weekends. A year of a
weekly season begins on a Monday, so that its first weekends are counted apart: before two weeks are
over nobody can tell a weekend from a fall.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.results import write_result
from trustassay.live import volume

DAYS, YEARS, FALLS = 393, 200, 200
DAY = np.arange(DAYS)
WEEKDAYS = (DAY % 7).tolist()
MEANS, SPREADS = (10, 60, 1000), (0.0, 0.1, 0.25, 0.4)
WEEKEND = 0.1
"""Answers on a Saturday or Sunday, as a share of those of other days."""
HISTORIES, LEFT = (3, 4, 7, 14, 28), (0.02, 0.1, 0.25, 0.5)
"""Days before a fall, and the share of the answers that is left."""
Rng = np.random.Generator
Counts = NDArray[np.int64]


def draw_counts(rng: Rng, means: NDArray[np.float64], spread: float) -> Counts:
    """Return a number of answers for each mean."""
    if spread:
        means = means * rng.gamma(1 / spread**2, spread**2, len(means))
    return rng.poisson(means)


def low_days(counts: Counts) -> list[int]:
    """Return the days with too few answers."""
    tested = volume.compare_counts(counts.tolist(), WEEKDAYS[: len(counts)])
    return [day for day, one in enumerate(tested) if one and one[1] < volume.DAILY_LEVEL]


def false_alarms(mean: int, spread: float, *, weekly: bool) -> dict[str, Any]:
    """Return alarms in 10,000 days without a fall, after two weeks and before."""
    rng = np.random.default_rng([21, mean, int(100 * spread), weekly])
    means = np.where(weekly & (DAY % 7 >= 5), WEEKEND * mean, float(mean))
    early = late = 0
    for _ in range(YEARS):
        days = low_days(draw_counts(rng, means, spread))
        early += sum(day < volume.DAYS_FOR_WEEKDAYS for day in days)
        late += sum(day >= volume.DAYS_FOR_WEEKDAYS for day in days)
    after = late / YEARS / (DAYS - volume.DAYS_FOR_WEEKDAYS)
    return {
        "name": f"{mean} a day, {spread:.0%}{', weekly season' if weekly else ''}",
        "per_10000_days": round(1e4 * after, 2),
        "in_the_first_two_weeks": round(early / YEARS, 3),
    }


def found_falls(mean: int, history: int, left: float) -> dict[str, Any]:
    """Return the per cent of falls that are found on their first day, if days differ by 10 %."""
    rng = np.random.default_rng([22, mean, history, int(100 * left)])
    means = np.append(np.full(history, float(mean)), left * mean)
    found = sum(history in low_days(draw_counts(rng, means, 0.1)) for _ in range(FALLS))
    return {"name": f"{mean} a day, {history} days, {left:.0%} left", "found": 100 * found / FALLS}


def main() -> None:
    rates = [
        false_alarms(mean, spread, weekly=weekly)
        for weekly in (False, True)
        for mean in MEANS
        for spread in (SPREADS if not weekly else SPREADS[:2])
    ]
    falls = [
        found_falls(mean, history, left) for mean in MEANS for history in HISTORIES for left in LEFT
    ]
    rule = {
        "daily_level": volume.DAILY_LEVEL,
        "assumed_spread": volume.ASSUMED_SPREAD,
        "assumed_days": volume.ASSUMED_DAYS,
        "fewest_days": volume.MIN_DAYS,
    }
    highest = max(one["per_10000_days"] for one in rates)
    write_result(
        "volumes",
        "python -m lab.benchmarks.volumes",
        "simulated years of daily numbers of answers (lab/benchmarks/volumes.py)",
        {"rule": rule, "highest_rate": highest, "false_alarms": rates, "falls": falls},
    )


if __name__ == "__main__":
    main()
