"""How often ``gate --no-worse-than`` raises a false alarm, and how often it misses a loss.

    python -m lab.benchmarks.gating            # 500 pairs of runs a cell, some minutes of one core
    python -m lab.benchmarks.gating --write    # into lab/results/

Two runs answer the same n questions (:mod:`lab.benchmarks.outcome_runs`) and are judged by one,
three or six metrics. A rise of *failed* and one of *not answered* are tested for each metric,
corrected for all of them together (Holm). The second run is as good as the first; or fails more
questions, by one of the metrics alone, which is hardest to find; or refuses a fifth of them; or
lacks a tenth.

The runs are compared in memory. That folders give the same is checked on twenty pairs first.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.outcome_runs import (
    Codes,
    Rng,
    System,
    compare_runs,
    refuse,
    result_of,
    write_run,
)
from lab.results import write_result
from trustassay.compare.gate import gate
from trustassay.compare.gate_rules import CHECK_RESULTS, EarlierRun, GateCheck

SIZES = (30, 60, 200)
METRIC_COUNTS = (1, 3, 6)
PAIRS_AS_FOLDERS = 20


class Scenario(NamedTuple):
    """What is different about the second run."""

    name: str
    points: float = 0.0
    """How many points more of the questions fail by the first metric."""
    refused: float = 0.0
    """The share of the questions that it refuses besides."""
    lost: float = 0.0
    """The share of the questions that it lacks."""


SCENARIOS = (
    Scenario("equal"),
    Scenario("5 points more fail", points=5),
    Scenario("10 points more fail", points=10),
    Scenario("15 points more fail", points=15),
    Scenario("30 points more fail", points=30),
    Scenario("refuses a fifth", refused=0.2),
    Scenario("a tenth of the rows gone", lost=0.1),
)


def make_pair(rng: Rng, scenario: Scenario, metrics: int, n: int) -> tuple[Codes, Codes]:
    """Return the outcomes of two runs, shapes (metrics, n) and (metrics, n or fewer)."""
    system = System.draw(rng, metrics, n)
    first = system.run(rng)
    second = system.worsen(rng, scenario.points).run(rng) if scenario.points else system.run(rng)
    if scenario.refused:
        second = refuse(rng, second, scenario.refused)
    return first, second[:, : n - round(scenario.lost * n)]


def count_results(scenario: Scenario, metrics: int, n: int, draws: int) -> dict[str, int]:
    """Return how often each result comes, and how often the rule of *failed* itself fails."""
    results: Counter[str] = Counter()
    for draw in range(draws):
        rng = np.random.default_rng([n, metrics, draw, 3])
        first, second = make_pair(rng, scenario, metrics, n)
        checks = compare_runs([first], second)
        results[result_of(checks)] += 1
        results["failed rose"] += checks[0].result == "fail"
    return {name: results[name] for name in (*CHECK_RESULTS, "failed rose")}


def check_folders(home: Path) -> int:
    """Compare pairs of runs in both ways and return how many; AssertionError: they differ."""
    for pair in range(PAIRS_AS_FOLDERS):
        rng = np.random.default_rng([pair, 4])
        scenario = SCENARIOS[pair % len(SCENARIOS)]
        metrics = METRIC_COUNTS[pair % len(METRIC_COUNTS)]
        first, second = make_pair(rng, scenario, metrics, SIZES[pair % 2])
        paths = write_run(home / f"{pair} first", first), write_run(home / f"{pair} second", second)
        result = gate(paths[1], earlier=EarlierRun(paths[0]))
        in_memory = compare_runs([first], second)
        assert [fields_of(one) for one in result.checks] == [fields_of(one) for one in in_memory]
        assert result.result == result_of(in_memory)
    return PAIRS_AS_FOLDERS


def fields_of(check: GateCheck) -> tuple[Any, ...]:
    """Return a check without the texts, which name paths.

    Sums over questions in another order differ in their last digits.
    """
    numbers = [check.value, check.line, check.fail_p, check.corrected_p]
    numbers += [*(check.interval or ()), *(check.before_after or ())]
    rounded = [None if one is None else round(one, 9) for one in numbers]
    return (check.name, check.result, *rounded)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        print(f"{check_folders(Path(home))} pairs of folders: the same checks as in memory")
    print(f"Per cent of {options.draws:,} pairs of runs: {' / '.join(CHECK_RESULTS)}\n")
    rows: list[dict[str, Any]] = []
    for scenario in SCENARIOS:
        for metrics in METRIC_COUNTS:
            counts = {f"n={n}": count_results(scenario, metrics, n, options.draws) for n in SIZES}
            rows.append({"second_run": scenario.name, "metrics": metrics, **counts})
            shares = [
                " / ".join(f"{100 * cell[result] / options.draws:.1f}" for result in CHECK_RESULTS)
                for cell in counts.values()
            ]
            print(f"| {scenario.name} | {metrics} | {' | '.join(shares)} |", flush=True)
    if options.write:
        command = "python -m lab.benchmarks.gating --write"
        if options.draws != parser.get_default("draws"):
            command += f" --draws {options.draws}"
        data = "simulated pairs of runs with 10 % churn (lab/benchmarks/outcome_runs.py)"
        figures = {"draws": options.draws, "pairs_as_folders": PAIRS_AS_FOLDERS, "rows": rows}
        write_result("gate", command, data, figures)


if __name__ == "__main__":
    main()
