"""Simulates the three procedures on populations whose risks are known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from lab.benchmarks.warranty.populations import GENERATORS, HOSTILE, make_population
from lab.benchmarks.warranty.procedures import (
    PROCEDURES,
    choose_thresholds,
    judge_looks,
    judge_thresholds,
)
from trustassay.statistics.resampling import generator

Json = dict[str, Any]
ALPHAS = (0.05, 0.1, 0.2)
LABELS = (50, 100, 200, 500, 1000)
LEVELS = (0, 7, 21)
LOOKS, LOOKS_ALPHA = 5, 0.1
DRAWS = 2000


def simulate(
    names: Sequence[str] = (*GENERATORS, *HOSTILE),
    levels: Sequence[int] = LEVELS,
    labels: Sequence[int] = LABELS,
    draws: int = DRAWS,
) -> Json:
    """Return the accepted share and the share of broken promises of each cell.

    Args:
        names: of generators and hostile curves. levels: of the scores, 0 for continuous ones.
        labels: numbers of labels. draws: samples a cell.
    """
    cells = [
        simulate_cell(name, of, alpha, labels, draws)
        for name in names
        for of in levels
        for alpha in ALPHAS
    ]
    looks = [simulate_looks(name, of, draws) for name in names for of in levels]
    return {"draws": draws, "labels": list(labels), "cells": cells, "looks": looks}


def simulate_cell(name: str, levels: int, alpha: float, labels: Sequence[int], draws: int) -> Json:
    """Return the figures of one population and one alpha, for each number of labels."""
    population = make_population(name, alpha, levels)
    rng = generator(0, "warranty", name, str(levels), str(alpha))
    row: Json = {
        "population": name,
        "levels": levels,
        "alpha": alpha,
        "limit": round(population.limit(alpha), 4),
    }
    for procedure in PROCEDURES:
        row[procedure] = {"accepted": [], "broken": []}
    for n in labels:
        samples = population.draw((draws, n), rng)
        for procedure in PROCEDURES:
            thresholds = choose_thresholds(procedure, samples, population, alpha, rng)
            outcome = judge_thresholds(thresholds, population, alpha)
            row[procedure]["accepted"].append(round(outcome.accepted, 4))
            row[procedure]["broken"].append(round(outcome.broken, 4))
    print(row, file=sys.stderr, flush=True)
    return row


def simulate_looks(name: str, levels: int, draws: int) -> Json:
    """Return the figures of a population whose labels are looked at several times."""
    population = make_population(name, LOOKS_ALPHA, levels)
    row: Json = {"population": name, "levels": levels, "alpha": LOOKS_ALPHA}
    for procedure in ("walk", "plan"):
        rng = generator(0, "warranty, looks", name, str(levels))
        numbers, outcome = judge_looks(procedure, population, LOOKS_ALPHA, LOOKS, draws, rng)
        row[procedure] = {
            "looks": numbers,
            "accepted": round(outcome.accepted, 4),
            "broken": round(outcome.broken, 4),
        }
    return row
