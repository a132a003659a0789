"""How many changes for the worse merge, one after another, past ``gate``.

    python -m lab.benchmarks.ratchet            # 500 series of twelve changes, some minutes of one
    core
    python -m lab.benchmarks.ratchet --write    # into lab/results/

Twelve changes come one after another, each 3 points worse, or each as good; 200 questions, one
metric. For each change CI scores a run and calls ``gate new --no-worse-than last --no-worse-than
anchor --undecided pass``: only *fail* blocks. What is blocked is not applied, so the next change
starts from the system that merged last, and is compared with its run. The anchor is the run before
the first change. Beside this, without the anchor, and with a gate call for each of the two runs,
which then are not corrected for each other. Churn of 10 % comes beside it, in one of two ways:

* ``of each run``: two runs of one system differ, as where a model is asked at a temperature above
  0; what churns does not add up (:mod:`lab.benchmarks.outcome_runs`).
* ``that stays``: each change flips other answers for good, as a new prompt or model does. As many
  pass as fail by it, but the distance from the anchor grows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from lab.benchmarks.outcome_runs import (
    FAILED,
    PASSED,
    REFUSED,
    Codes,
    Rng,
    System,
    compare_runs,
    result_of,
)
from lab.results import write_result

CHANGES = 12
QUESTIONS = 200
POINTS = 3.0
"""How many points worse a change is."""
FEW = 3
"""Changes for the worse of which more must not merge."""
CHURN = 0.1
"""The share of questions that a change flips for good, half of them each way."""
REFUSAL_CHURN = 0.02


class Candidate(NamedTuple):
    """A system that a change leads to, and its run."""

    system: System
    run: Codes


NextCandidate = Callable[[Rng, Candidate, float], Candidate]
"""What a change makes of the system that merged last, so many points worse."""


def change_with_noise(rng: Rng, last: Candidate, points: float) -> Candidate:
    """Return a candidate whose run differs by chance from other runs of the same system."""
    system = last.system.worsen(rng, points) if points else last.system
    return Candidate(system, system.run(rng))


def change_for_good(rng: Rng, last: Candidate, points: float) -> Candidate:
    """Return a candidate whose answers are those of the last run, but for what the change flips."""
    run = swap_outcomes(rng, last.run, PASSED, FAILED, CHURN)
    run = swap_outcomes(rng, run, PASSED, REFUSED, REFUSAL_CHURN)
    passed = (run == PASSED).mean()
    loses = (run == PASSED) & (rng.random(run.shape) < points / 100 / max(passed, points / 100))
    return Candidate(last.system, np.where(loses, FAILED, run))


def swap_outcomes(rng: Rng, run: Codes, one: int, other: int, share: float) -> Codes:
    """Return outcomes of which a share is exchanged, on average as many one way as the other."""
    changed = run.copy()
    for start, end in ((one, other), (other, one)):
        there = run == start
        chance = min(1.0, share / 2 / max(there.mean(), share / 2))
        changed[there & (rng.random(run.shape) < chance)] = end
    return changed


CHURNS: dict[str, NextCandidate] = {
    "of each run": change_with_noise,
    "that stays": change_for_good,
}


GATE_CALLS = ("last and anchor", "last alone", "last, then anchor in a call by itself")
"""What a change is compared with."""


def merged_of_series(
    rng: Rng, next_candidate: NextCandidate, points: float, calls: str
) -> list[bool]:
    """Return for each change of a series whether it merges."""
    system = System.draw(rng, 1, QUESTIONS)
    last = Candidate(system, system.run(rng))
    anchor = last.run
    merged = []
    for _ in range(CHANGES):
        candidate = next_candidate(rng, last, points)
        earlier_by_call = {
            "last and anchor": [[last.run, anchor]],
            "last alone": [[last.run]],
            "last, then anchor in a call by itself": [[last.run], [anchor]],
        }[calls]
        results = [result_of(compare_runs(one, candidate.run)) for one in earlier_by_call]
        merged.append("fail" not in results)
        if merged[-1]:
            last = candidate
    return merged


def summarise(series: Sequence[Sequence[bool]]) -> dict[str, Any]:
    """Return how many changes merge."""
    counts = [sum(merged) for merged in series]
    distribution = Counter(counts)
    return {
        "mean": round(float(np.mean(counts)), 2),
        "share_merged": round(100 * float(np.mean(counts)) / CHANGES, 1),
        "at_most_three": round(100 * sum(count <= FEW for count in counts) / len(counts), 1),
        "distribution": [distribution[count] for count in range(CHANGES + 1)],
        "merged_by_place": [
            round(100 * float(np.mean(place)), 1) for place in np.transpose(series)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for churn, points, calls in product(CHURNS, (POINTS, 0.0), GATE_CALLS):
        series = [
            merged_of_series(np.random.default_rng([draw, 5]), CHURNS[churn], points, calls)
            for draw in range(options.draws)
        ]
        case = {"churn": churn, "points_worse": points, "compared_with": calls}
        rows.append({**case, **summarise(series)})
        print(rows[-1], flush=True)
    if options.write:
        command = "python -m lab.benchmarks.ratchet --write"
        if options.draws != parser.get_default("draws"):
            command += f" --draws {options.draws}"
        data = f"simulated series of {CHANGES} changes, {QUESTIONS} questions, 10 % churn"
        write_result("ratchet", command, data, {"draws": options.draws, "rows": rows})


if __name__ == "__main__":
    main()
