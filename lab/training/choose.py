"""Candidates side by side on the development files: ``python -m lab.training.choose DIR DIR ...``.

An argument is a folder of exported files; the first one is what the others are compared with. Each
set is judged by a combination fitted on the others alone (leave one set out), so that what stands
there holds for text of which nothing was fitted; the columns differ in the encoder and, with
``--without``, in the inputs of the combination. Up to ``--rows`` rows of each set. Readings are
kept in the folder's ``cache``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.training import combine, measure, sets
from lab.training.infer import Encoder, Reading
from lab.training.probes import probes

__all__ = ["PLAIN", "falls", "main"]

Floats = NDArray[np.float64]
PLAIN = (
    "begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev", "healthver_dev", "fib_dev",
    "xsum_dev", "summedits_dev", "vitaminc", "fever_symmetric",
)  # fmt: skip
"""Sets of sentences and documents, none of which may fall beyond its interval by more than .02."""
WRITTEN_HERE = ("probes", "written_held")
"""Sets that choose nothing."""


def items(name: str, rows: int) -> list[sets.Item]:
    """Return up to ``rows`` pairs of a set, drawn by its name."""
    if name == "probes":
        return [
            sets.Item(p.premise, p.hypothesis, int(p.label != "entailment"), p.premise)
            for p in probes()
        ]
    if name in combine.HELD_OUT:
        found = [sets.Item(*row[:3], f"{name} {i}") for i, row in enumerate(combine.held_out(name))]
        order = np.random.default_rng([0, 9, *name.encode()]).permutation(len(found))
        return [found[i] for i in order[: rows or len(found)]]
    return measure.items(name, rows)


def readings(folder: Path, name: str, found: Sequence[sets.Item]) -> list[Reading]:
    """Return the encoder's reading of each pair, from the cache when it is there."""
    pairs = [(item.premise, item.hypothesis) for item in found]
    digest = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:12]
    return combine.kept(
        folder,
        f"{name}.{digest}",
        lambda: [Reading(x) for x in Encoder(folder).windowed(pairs, *combine.WINDOWS)],
    )


def design(read: Sequence[Reading], found: Sequence[sets.Item], features: Sequence[str]) -> Floats:
    """Return shape (n, features)."""
    rows = [r.inputs(item.premise, item.hypothesis) for r, item in zip(read, found, strict=True)]
    return np.array([[row[feature] for feature in features] for row in rows])


def judged(
    inputs: dict[str, Floats], truth: dict[str, NDArray[np.bool_]], balance: float = 0.5
) -> dict[str, Floats]:
    """Return P(entailment) of each set by the combination fitted on the other sets of the fit."""
    made = {}
    for name, x in inputs.items():
        others = [other for other in combine.FIT if other != name]
        beta = combine.logistic(
            np.concatenate([inputs[other] for other in others]),
            np.concatenate([truth[other] for other in others]),
            np.concatenate([combine.weigh(truth[other], balance) for other in others]),
        )
        made[name] = 1 / (1 + np.exp(-(beta[0] + x @ beta[1:])))
    return made


def falls(gap: Sequence[float]) -> bool:
    """Return whether an interval of differences lies below -.02 as a whole."""
    return gap[1] < -0.02


def main() -> None:
    """Read what is not read yet; print a line for each set, the means, and what falls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--rows", type=int, default=400, help="rows of each set; 0: all")
    parser.add_argument("--without", default="", help="inputs also tried without, with commas")
    args = parser.parse_args()
    names = ["probes", *dict.fromkeys((*combine.FIT, *measure.SETS))]
    found = {name: items(name, args.rows) for name in names}
    truth = {name: np.array([i.label == 0 for i in rows]) for name, rows in found.items()}
    choices: dict[str, Sequence[str]] = {"": combine.FEATURES}
    if args.without:
        left = set(args.without.split(","))
        choices[" without"] = tuple(f for f in combine.FEATURES if f not in left)
    scores: dict[str, dict[str, Floats]] = {}
    for folder in args.folder:
        read = {name: readings(folder, name, rows) for name, rows in found.items()}
        for tag, features in choices.items():
            inputs = {name: design(read[name], found[name], features) for name in names}
            scores[folder.name + tag] = judged(inputs, truth)
    print(f"| set | n (supported) | {' | '.join(scores)} |\n| --- | --- |{' --- |' * len(scores)}")
    every = {}
    for name in names:
        every[name] = measure.measured(name, {c: s[name] for c, s in scores.items()}, found[name])
        print(measure.row(name, every[name], list(scores)), flush=True)
    kept = [name for name in names if name not in WRITTEN_HERE]
    for column in scores:
        area = np.mean([every[name][column]["auc"][0] for name in kept])
        error = np.mean([every[name][column]["calibration_error"] for name in kept])
        below = [name for name in PLAIN if falls(every[name][column]["above_first"])]
        passed = "{true_passed:.2f} / {false_passed:.2f}".format(**every["probes"][column])
        print(
            f"{column}: mean AUC {area:.4f}, calibration error {error:.3f}, "
            f"probes passed {passed}, falls: {', '.join(below) or 'none'}"
        )


if __name__ == "__main__":
    main()
