"""Entailers side by side on development files: ``python -m lab.training.measure embedded DIR ...``.

An argument is an entailer's URI, a folder of weights, or one of the two baselines: ``words`` (the
share of the statement's content words that the premise has) and ``cosine`` (of the two vectors).
The first one is what the others are compared with. AUC, balanced accuracy at 0.5 and calibration
error with 95 % intervals, resampled by document. ``--rows`` takes part of each set; ``--test``
reads the test files, which the chosen model reads once, instead of the development files.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.training import data, sets, written
from lab.training.agreement import auc, interval, resamples
from lab.training.probes import entailer
from trustassay.backends import lexical
from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.statistics.calibration import balanced_accuracy, calibration_error

__all__ = ["BASELINES", "SETS", "TESTS", "items", "measured"]

Scores = NDArray[np.float64]
Pairs = Sequence[tuple[str, str]]

NLI = ("vitaminc", "fever_symmetric", "snli", "mnli")
ATTRIBUTION = ("begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev", "healthver_dev")
HELD = tuple(f"{name}_held" for name, source in sets.SOURCES.items() if source.held_out)
SETS = (*sets.DEV, *HELD, "written_held", *NLI, *ATTRIBUTION)
TESTS = {path.split("/", 1)[1] if path.startswith("attribution/") else path.replace("/", "_"): path
         for path in sets.TEST}  # fmt: skip
"""Test files by name."""


def items(name: str, rows: int) -> list[sets.Item]:
    """Return up to ``rows`` pairs of a development set, drawn by the set's name (0: all)."""
    if name in NLI:
        found = [sets.Item(*row[:3], f"{name} {i}") for i, row in enumerate(data.nli(name))]
    elif name in ATTRIBUTION or TESTS.get(name, "").startswith("attribution/"):
        found = [
            sets.Item(row.premise, row.hypothesis, 0 if row.supported else 1, row.claim)
            for row in data.attribution(name)
        ]
    elif name == "written_held":
        found = [sets.Item(*row[:3], row.premise) for row in written.held_out()]
    else:
        found = list(sets.test(TESTS[name]) if name in TESTS else sets.dev(name))
    order = np.random.default_rng([0, 9, *name.encode()]).permutation(len(found))
    return [found[i] for i in order[: rows or len(found)]]


def containment(pairs: Pairs) -> Scores:
    """Return the share of each statement's content words that are in its premise."""
    return np.array([lexical.compute_overlap(*pair).containment for pair in pairs])


def cosine(pairs: Pairs) -> Scores:
    """Return the cosine of each pair's two vectors by the built-in embedder."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    vectors = EmbeddedEmbedder().vectors(texts).astype(float)
    place = {text: vectors[number] for number, text in enumerate(texts)}
    return np.array([place[premise] @ place[statement] for premise, statement in pairs])


BASELINES = {"words": containment, "cosine": cosine}
"""What needs no entailer, by name."""


def scorer(choice: str) -> Callable[[Pairs], Scores]:
    """Return what gives P(entailment) of pairs, or a baseline's score."""
    if choice in BASELINES:
        return BASELINES[choice]
    reader = entailer(choice)
    return lambda pairs: np.asarray(reader.scores(pairs)[:, 0], dtype=float)


def measured(name: str, every: dict[str, Scores], found: Sequence[sets.Item]) -> dict[str, Any]:
    """Return each entailer's figures, and its AUC less the first one's."""
    truth = np.array([item.label == 0 for item in found])
    picks = [p for p in resamples([i.document for i in found], name) if 0 < truth[p].sum() < len(p)]
    base = next(iter(every.values()))
    made: dict[str, Any] = {"n": len(found), "supported": int(truth.sum())}
    for who, scores in every.items():
        gaps = [auc(scores[p], truth[p]) - auc(base[p], truth[p]) for p in picks]
        made[who] = {
            "auc": interval(auc, scores, truth, picks),
            "balanced_accuracy": interval(balanced_accuracy, scores, truth, picks),
            "calibration_error": round(calibration_error(np.clip(scores, 0, 1), truth) or 0.0, 4),
            "true_passed": round(float((scores[truth] >= 0.5).mean()), 4),
            "false_passed": round(float((scores[~truth] >= 0.5).mean()), 4),
            "above_first": [round(float(v), 4) for v in np.quantile(gaps, [0.025, 0.975])],
        }
    return made


def row(name: str, made: dict[str, Any], names: Sequence[str]) -> str:
    """Return one line of the table."""
    cells = []
    for who in names:
        one = made[who]
        gap = "" if who == names[0] else " ({:+.3f} {:+.3f})".format(*one["above_first"])
        rest = f"{one['balanced_accuracy'][0]:.2f} {one['calibration_error']:.2f}"
        cells.append(f"{one['auc'][0]:.3f}{gap} {rest}")
    return f"| {name} | {made['n']} ({made['supported']}) | {' | '.join(cells)} |"


def main() -> None:
    """Score, print a line for each set, and write all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entailer", nargs="+", help="a URI, a folder of weights, words or cosine")
    parser.add_argument("--test", action="store_true", help="the test files")
    parser.add_argument("--rows", type=int, default=0, help="rows of each set; 0: all")
    parser.add_argument("--sets", help="names with commas; default: all development files")
    parser.add_argument("--out", type=Path, help="JSON file for all figures")
    args = parser.parse_args()
    readers = {name: scorer(name) for name in args.entailer}
    names = args.sets.split(",") if args.sets else TESTS if args.test else SETS
    print("Each cell: AUC (95 % of the difference), balanced accuracy, calibration error\n")
    print(
        f"| set | n (supported) | {' | '.join(readers)} |\n| --- | --- |{' --- |' * len(readers)}"
    )
    every: dict[str, Any] = {}
    for name in names:
        found = items(name, args.rows)
        pairs = [(item.premise, item.hypothesis) for item in found]
        scores, seconds = {}, {}
        for who, reader in readers.items():
            begun = time.monotonic()
            scores[who] = reader(pairs)
            seconds[who] = round(time.monotonic() - begun, 1)
        every[name] = measured(name, scores, found) | {"seconds": seconds}
        print(row(name, every[name], list(readers)), flush=True)
    if args.out:
        args.out.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
