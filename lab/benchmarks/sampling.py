"""How often the 95 % intervals of a drawn part of an input hold the figure of the whole input.

    python -m lab.benchmarks.sampling                 # half an hour on one core
    python -m lab.benchmarks.sampling --draws 200
    python -m lab.benchmarks.sampling --write         # into lab/results/

The inputs are made up: 3,000 answers alone, or in conversations of 1 to 10, which are drawn whole.
Each is drawn by ``score --sample`` with one seed after the other; what a run would print as the
interval of a mean and of a share is looked at. It is that of an input without end, which is too
wide for half of an input, the last design.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import ROUNDING, Places
from lab.results import write_result
from trustassay.core.assessment import Mean, Share, Statistic, compute_interval
from trustassay.runs.drawing import HASH_COUNT, SampleDraw

Floats = NDArray[np.float64]
Rng = np.random.Generator
ANSWERS = 3000
MOST = 10
HALF = "half"
MODELS = (0.5, 0.7, 0.95)
"""Shares of right answers of three models, in strata."""


class Input(NamedTuple):
    """Of each answer its unit, its model and what it contributes to a mean; and statistics."""

    units: Places
    models: Places
    values: Floats
    statistics: Mapping[str, Statistic]


BOTH: Mapping[str, Statistic] = {"mean": Mean(), "share": Share("yes")}


def _alone(values: Floats, statistics: Mapping[str, Statistic] = BOTH) -> Input:
    units = np.arange(len(values))
    return Input(units, units % len(MODELS), values, statistics)


def _yes(rng: Rng, share: Any) -> Floats:
    right: Floats = (rng.random(ANSWERS) < share).astype(np.float64)
    return right


def _by_model(rng: Rng) -> Input:
    return _alone(_yes(rng, np.array(MODELS)[np.arange(ANSWERS) % len(MODELS)]))


def _chats(rng: Rng, *, related: bool) -> Input:
    """Return conversations whose answers correlate by a third, shorter where right if related."""
    own = rng.beta(2 * 0.7, 2 * 0.3, ANSWERS)
    most = MOST - (MOST - 1) * own if related else np.full(ANSWERS, MOST)
    sizes = 1 + np.floor(rng.random(ANSWERS) * most).astype(int)
    chats = np.repeat(np.arange(ANSWERS), sizes)[:ANSWERS]
    values = (rng.random(ANSWERS) < own[chats]).astype(np.float64)
    return Input(chats, chats % len(MODELS), values, BOTH)


INPUTS: Mapping[str, Callable[[Rng], Input]] = {
    "0/1, 70 %": lambda rng: _alone(_yes(rng, 0.7)),
    "0/1, 97 %": lambda rng: _alone(_yes(rng, 0.97)),
    "scores, skewed": lambda rng: _alone(rng.beta(1, 19, ANSWERS), {"mean": Mean()}),
    "0/1, three models of 50, 70 and 95 %": _by_model,
    "0/1, conversations": lambda rng: _chats(rng, related=False),
    "0/1, conversations, shorter where right": lambda rng: _chats(rng, related=True),
}
DESIGNS: Mapping[str, tuple[int | str, str]] = {
    "200": (200, ""),
    "10%": ("10%", ""),
    "300 by model": (300, "model"),
    HALF: (ANSWERS // 2, ""),
}


class Drawn(SampleDraw):
    """A drawing whose samples come all at once; a unit's hash is a random number of 64 bits."""

    def places(self, units: Places, models: Places, rng: Rng) -> Places:
        """Return the places of what is drawn, of units and strata by number."""
        keys = rng.integers(0, HASH_COUNT, ANSWERS, dtype=np.uint64)[units]
        taken = np.flatnonzero(keys < self._bound)
        self._of, self._names = len(keys), {f'["m{n}"]': n for n in range(len(MODELS))}
        self._keys.frombytes(keys[taken].tobytes())
        self._strata.frombytes(models[taken].astype(np.uint64).tobytes())
        drawn: Places = taken[self.select()]
        return drawn


def counts(name: str, design: str, draws: int) -> list[dict[str, Any]]:
    """Return a row for each figure: draws with an interval, those that hold the truth, and the mean
    of the figure over all draws beside the truth.
    """
    given = INPUTS[name](np.random.default_rng(1))
    size, by = DESIGNS[design]
    truth = float(given.values.mean())
    hits, there = dict.fromkeys(given.statistics, 0), dict.fromkeys(given.statistics, 0)
    means, sizes = [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        places = Drawn(size, by, seed=seed).places(given.units, given.models, rng)
        _, units, often = np.unique(given.units[places], return_inverse=True, return_counts=True)
        units = np.where(often[units] > 1, units, -1)
        values = given.values[places]
        means.append(float(values.mean()))
        sizes.append(len(places))
        for key, statistic in given.statistics.items():
            found = compute_interval(statistic, values, units, (0.0, 1.0))
            if isinstance(found, tuple):
                scale = 100 if key == "share" else 1
                there[key] += 1
                hits[key] += found[0] - ROUNDING <= scale * truth <= found[1] + ROUNDING
    shown = {"true": round(truth, 4), "mean_of_draws": round(float(np.mean(means)), 4)}
    shown |= {"answers": round(float(np.mean(sizes)), 1)}
    return [
        {"input": name, "design": design, "figure": key, **shown}
        | {"held": hits[key], "intervals": there[key]}
        for key in given.statistics
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="into lab/results")
    args = parser.parse_args()
    rows = []
    print("| input | drawn | figure | true | mean | held |\n|" + " --- |" * 6)
    for name in INPUTS:
        for design in DESIGNS:
            for row in counts(name, design, args.draws):
                rows.append(row)
                rate = f"{100 * row['held'] / row['intervals']:.1f}" if row["intervals"] else "none"
                cells = (name, design, row["figure"], row["true"], row["mean_of_draws"], rate)
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
    parts = [row for row in rows if row["intervals"] and row["design"] != HALF]
    rates = sorted(100 * row["held"] / row["intervals"] for row in parts)
    figures = {
        "draws": args.draws,
        "cells": len(rates),
        "within": sum(93 <= rate <= 97.5 for rate in rates),
        "lowest": round(rates[0], 1),
        "highest": round(rates[-1], 1),
        "half": [
            round(edge(100 * r["held"] / r["intervals"] for r in rows if r["design"] == HALF), 1)
            for edge in (min, max)
        ],
        "rows": rows,
    }
    print({key: value for key, value in figures.items() if key != "rows"})
    if args.write:
        command = f"python -m lab.benchmarks.sampling --draws {args.draws}"
        print(write_result("coverage-sample", command, "simulated inputs of 3,000", figures))


if __name__ == "__main__":
    main()
