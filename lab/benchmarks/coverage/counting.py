"""How often intervals hold the true value: populations, draws, counts and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["POPULATION", "Count", "Draw", "Interval", "Places", "Study", "counted", "covered"]

Interval = tuple[float, float]
POPULATION = 50_000
ROUNDING = 1e-9


class Count(NamedTuple):
    """Draws whose interval holds the true figure, and draws that have one."""

    hits: int
    intervals: int

    def shown(self, draws: int) -> str:
        """Write the cell of a table."""
        if not self.intervals:
            return "none"
        missing = 100 * (draws - self.intervals) / draws
        without = f" ({missing:.0f})" if missing >= 0.5 else ""
        return f"{100 * self.hits / self.intervals:.1f}{without}"


Places = NDArray[np.int64]
Draw = Callable[[Places], Mapping[str, Interval | None]]
"""From the places of n samples in the population to the intervals of figures."""


def covered(
    truth: Mapping[str, float], draw: Draw, n: int, draws: int, rng: np.random.Generator
) -> dict[str, Count]:
    """Count for each figure the draws of n samples whose interval holds the truth."""
    hits, there = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for _ in range(draws):
        found = draw(rng.integers(0, POPULATION, n))
        for key, value in truth.items():
            if interval := found[key]:
                low, high = interval
                there[key] += 1
                hits[key] += low - ROUNDING <= value <= high + ROUNDING
    return {key: Count(hits[key], there[key]) for key in truth}


class Study(NamedTuple):
    """A population: the true figures, and how to draw from it."""

    name: str
    truth: Mapping[str, float]
    draw: Draw


def counted(studies: Iterable[Study], sizes: Sequence[int], draws: int) -> list[dict[str, Any]]:
    """Print a table, and return it: a row for each population and figure, a column for each size.

    A cell of what is returned has the draws whose interval holds the truth, and those with one.
    """
    print(f"| population | figure | true | {' | '.join(f'n = {n:,}' for n in sizes)} |")
    print(f"| --- | --- | --- |{' --- |' * len(sizes)}")
    rows = []
    for study in studies:
        counts = {
            n: covered(study.truth, study.draw, n, draws, np.random.default_rng([n, 7]))
            for n in sizes
        }
        for key, value in study.truth.items():
            cells = " | ".join(counts[n][key].shown(draws) for n in sizes)
            print(f"| {study.name} | `{key}` | {value:.3g} | {cells} |", flush=True)
            rows.append(
                {"population": study.name, "figure": key, "true": value}
                | {f"n={n}": list(counts[n][key]) for n in sizes}
            )
    return rows
