"""How well an entailer agrees with people: AUC and balanced accuracy on attribution data.

    python -m lab.benchmarks.entailers                      # lexical, on the test files
    python -m lab.benchmarks.entailers --entailer hf:PATH
    python -m lab.benchmarks.entailers --fit                # the weights of lexical, from the dev
    files

The data is found by TRUSTASSAY_SHARED, else ../shared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import lexical
from trustassay.backends.resolve import entailer
from trustassay.statistics.resampling import generator

Floats = NDArray[np.float64]
SHARED = Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data" / "attribution"
DEV = ("begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev")
TEST = ("begin_wow_test", "wice_oracle_test", "healthver_test")


def load(name: str) -> tuple[list[tuple[str, str]], NDArray[np.bool_]]:
    with gzip.open(SHARED / f"{name}.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    pairs = [(row["premise"], row["hypothesis"]) for row in rows]
    return pairs, np.array([row["label"] == 1 for row in rows])


def auc(scores: Floats, labels: NDArray[np.bool_]) -> float:
    """Return the probability that a supported pair outscores another; ties count half."""
    order = np.unique(scores, return_inverse=True)[1]
    counts = np.bincount(order)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[order]
    positive = int(labels.sum())
    wins = float(ranks[labels].sum()) - positive * (positive + 1) / 2
    return wins / (positive * (len(labels) - positive))


def balanced_accuracy(scores: Floats, labels: NDArray[np.bool_]) -> float:
    said = scores >= 0.5
    return float((said[labels].mean() + (~said[~labels]).mean()) / 2)


def interval(
    statistic: Callable[[Floats, NDArray[np.bool_]], float],
    scores: Floats,
    labels: NDArray[np.bool_],
    name: str,
) -> tuple[float, float]:
    rng = generator(0, "bootstrap", name)
    picks = rng.integers(0, len(labels), (1000, len(labels)))
    values = [statistic(scores[p], labels[p]) for p in picks]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def features(names: Sequence[str]) -> tuple[Floats, NDArray[np.bool_], Floats]:
    rows, labels, weights = [], [], []
    for name in names:
        pairs, truth = load(name)
        rows += [lexical.compute_overlap(*pair) for pair in pairs]
        labels.append(truth)
        share = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum())
        weights.append(share)
    return np.array(rows, dtype=float), np.concatenate(labels), np.concatenate(weights)


def fit() -> None:
    """Fit the logistic weights; every data set, and within it every class, weighs the same."""
    rows, labels, weights = features(DEV)
    design = np.column_stack([np.ones(len(rows)), rows])
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weights * (labels - p))
        hessian = (design * (weights * p * (1 - p))[:, None]).T @ design
        beta += np.linalg.solve(hessian, gradient)
    print(f"STEEPNESS = {beta[1]:.2f}\nHALFWAY = {-beta[0] / beta[1]:.3f}")
    print(f"MISSING_NUMBER = {-beta[2]:.2f}\nNEGATION_DIFFERS = {-beta[3]:.2f}")


def report(uri: str, names: Sequence[str]) -> None:
    model = entailer(uri)
    print(f"entailer: {model.name}\n")
    print("| set | n (supported) | AUC | balanced accuracy at 0.5 |")
    print("| --- | --- | --- | --- |")
    for name in names:
        pairs, labels = load(name)
        scores = model.scores(pairs)[:, 0]
        cells = []
        for statistic in (auc, balanced_accuracy):
            low, high = interval(statistic, scores, labels, name)
            cells.append(f"{statistic(scores, labels):.3f} [{low:.3f}, {high:.3f}]")
        print(f"| {name} | {len(labels)} ({labels.sum()}) | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entailer", default="lexical")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--dev", action="store_true", help="report the dev files")
    args = parser.parse_args()
    if not SHARED.exists():
        print(f"no data at {SHARED}; set TRUSTASSAY_SHARED", file=sys.stderr)
        return 2
    if args.fit:
        fit()
    else:
        report(args.entailer, DEV if args.dev else TEST)
    return 0


if __name__ == "__main__":
    sys.exit(main())
