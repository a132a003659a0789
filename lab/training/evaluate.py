"""All figures: ``python -m lab.training.evaluate OUT --plain DIR --seeds DIR ...``.

OUT holds the shipped files; ``--plain`` an export of the encoder fine-tuned without augmentation,
``--seeds`` exports of further seeds. Readings are cached in DIR/cache, so that a test file is
scored once. Writes figures.json and figures.md to OUT.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.training.agreement import auc, best_balanced_accuracy, interval, resamples
from lab.training.combine import WINDOWS, apply, encoder, items, readings
from lab.training.infer import Reading
from trustassay.backends import lexical
from trustassay.statistics.calibration import balanced_accuracy, calibration_error

__all__ = ["main"]

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
NLI = ("snli", "mnli", "vitaminc", "fever_symmetric", "sick", "anli")
DEV = ("begin_wow_dev", "begin_cmu_dev", "begin_tc_dev", "wice_oracle_dev", "wice_dev",
       "healthver_dev")  # fmt: skip
TEST = ("begin_wow_test", "wice_oracle_test", "wice_test", "healthver_test")
SEEDED = ("vitaminc", "fever_symmetric", *DEV[:4], "healthver_dev", *TEST[:2], "healthver_test")
"""What the other seeds are scored on."""


def cosine(folder: Path, name: str) -> Floats:
    """Return the cosine of premise and hypothesis, both cut at 256 tokens."""
    path = folder / "cache" / f"{name}.cosine.npy"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        pairs = items(name).pairs
        texts = list(dict.fromkeys(t for pair in pairs for t in pair))
        place = {text: i for i, text in enumerate(texts)}
        vectors = encoder(folder).embed(texts)
        np.save(path, [vectors[place[p]] @ vectors[place[h]] for p, h in pairs])
    return np.asarray(np.load(path))


def chance(made: Sequence[Reading]) -> Floats:
    """Return P(entailment) of each pair's best window."""
    return np.array([1 / (1 + np.exp(-r.odds())) for r in made])


def scores(out: Path, plain: Path, combination: dict[str, Any], name: str) -> dict[str, Floats]:
    """Return every scorer's figure for each pair of a set."""
    pairs = items(name).pairs
    windowed = readings(out, name, WINDOWS)
    logits = [lexical.compute_log_odds(lexical.compute_overlap(*pair)) for pair in pairs]
    return {
        "word containment": np.array(
            [lexical.compute_overlap(*pair).containment for pair in pairs]
        ),
        "lexical": 1 / (1 + np.exp(-np.array(logits))),
        "cosine": cosine(out, name),
        "plain encoder": chance(readings(plain, name, None)),
        "encoder, windows": chance(windowed),
        "shipped": apply(combination, windowed, name),
    }


def accuracies(out: Path, plain: Path, combination: dict[str, Any], name: str) -> dict[str, float]:
    """Return three-way accuracy; two-way (entailment or not) stands in the other columns."""
    labels = items(name).labels
    windowed = readings(out, name, WINDOWS)
    one = np.array([r.logits[0] for r in readings(plain, name, None)])
    best = np.array([r.logits[r.logits[:, 0].argmax()] for r in windowed])
    denied = json.loads((out / "entailer.json").read_text())["contradiction"]
    share = apply(denied, windowed, name)
    entailed = apply(combination, windowed, name)
    three = np.column_stack([entailed, (1 - entailed) * (1 - share), (1 - entailed) * share])
    return {
        "plain encoder": float((one.argmax(1) == labels).mean()),
        "encoder, windows": float((best.argmax(1) == labels).mean()),
        "shipped": float((three.argmax(1) == labels).mean()),
    }


def figures(out: Path, plain: Path, combination: dict[str, Any], name: str) -> dict[str, Any]:
    """Return all figures of one set."""
    found = items(name)
    picks = resamples(found.claims, name)
    made: dict[str, Any] = {"n": len(found.supported), "supported": int(found.supported.sum())}
    every = scores(out, plain, combination, name)
    for scorer, values in every.items():
        made[scorer] = {
            "auc": interval(auc, values, found.supported, picks),
            "balanced_accuracy": interval(balanced_accuracy, values, found.supported, picks),
            "best_balanced_accuracy": round(best_balanced_accuracy(values, found.supported), 4),
        }
        if scorer not in {"word containment", "cosine"}:
            made[scorer]["ece"] = round(calibration_error(values, found.supported) or 0.0, 4)
    for other in ("word containment", "cosine", "plain encoder"):
        base = every[other]
        gaps = [
            auc(every["shipped"][p], found.supported[p]) - auc(base[p], found.supported[p])
            for p in picks
        ]
        made["shipped"][f"above {other}"] = [
            round(float(v), 4) for v in np.quantile(gaps, [0.025, 0.975])
        ]
    if found.labels is not None:
        for scorer, value in accuracies(out, plain, combination, name).items():
            made[scorer]["accuracy"] = round(value, 4)
    return made


def seed_figures(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Any]:
    """Return mean and spread (standard deviation) of the AUC over seeds, each with its own fit."""
    made: dict[str, Any] = {}
    for name in names:
        truth = items(name).supported
        for kind in ("encoder, windows", "shipped"):
            values = []
            for folder in folders:
                read = readings(folder, name, WINDOWS)
                card = json.loads((folder / "entailer.json").read_text())
                values.append(
                    auc(apply(card["combination"], read, name), truth)
                    if kind == "shipped"
                    else auc(chance(read), truth)
                )
            made.setdefault(name, {})[kind] = {
                "values": [round(v, 4) for v in values],
                "mean": round(float(np.mean(values)), 4),
                "sd": round(float(np.std(values, ddof=1)), 4) if len(values) > 1 else 0.0,
            }
    return made


def cell(value: list[float] | float | None) -> str:
    """Return "0.937 [0.929, 0.944]", "0.937", or a dash."""
    if isinstance(value, list):
        return f"{value[0]:.3f} [{value[1]:.3f}, {value[2]:.3f}]"
    return "–" if value is None else f"{value:.3f}"


def table(made: dict[str, Any], names: Sequence[str], figure: str) -> list[str]:
    """Return one Markdown table: sets by scorers."""
    scorers = [k for k, v in made[names[0]].items() if isinstance(v, dict)]
    lines = [
        "| set | n (supported) | " + " | ".join(scorers) + " |",
        "| --- | --- |" + " --- |" * len(scorers),
    ]
    for name in names:
        row = made[name]
        cells = []
        for scorer in scorers:
            value = row[scorer].get(figure)
            cells.append(cell(value))
        lines.append(f"| {name} | {row['n']} ({row['supported']}) | {' | '.join(cells)} |")
    return lines


def markdown(made: dict[str, Any]) -> str:
    """Return the draft of the page."""
    sets = made["sets"]
    judged = [n for n in (*DEV, *TEST) if n in sets]
    nli = [n for n in NLI if n in sets]
    parts = [
        ("AUC, people's attribution labels", table(sets, judged, "auc")),
        ("Balanced accuracy at 0.5", table(sets, judged, "balanced_accuracy")),
        ("Balanced accuracy at the best threshold", table(sets, judged, "best_balanced_accuracy")),
        ("AUC, entailment against the rest", table(sets, nli, "auc")),
        ("Accuracy, three-way", table(sets, nli, "accuracy")),
        ("Calibration error (15 bins)", table(sets, [*judged, *nli], "ece")),
    ]
    text = [f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts]
    if "seeds" in made:
        lines = ["| set | encoder, windows | shipped |", "| --- | --- | --- |"]
        for name, row in made["seeds"].items():
            cells = [f"{v['mean']:.3f} ± {v['sd']:.3f} {v['values']}" for v in row.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        text.append("## Seeds, AUC\n\n" + "\n".join(lines) + "\n")
    return "\n".join(text)


def main() -> None:
    """Score, and write figures.json and figures.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--plain", type=Path, required=True)
    parser.add_argument("--seeds", type=Path, nargs="*", default=[])
    parser.add_argument("--dev", action="store_true", help="leave the test files closed")
    args = parser.parse_args()
    combination = json.loads((args.out / "entailer.json").read_text())["combination"]
    names = [*NLI, *DEV] + ([] if args.dev else list(TEST))
    made: dict[str, Any] = {
        "sets": {n: figures(args.out, args.plain, combination, n) for n in names}
    }
    if args.seeds:
        made["seeds"] = seed_figures([args.out, *args.seeds], [n for n in SEEDED if n in names])
    (args.out / "figures.json").write_text(json.dumps(made, indent=1) + "\n")
    (args.out / "figures.md").write_text(markdown(made))


if __name__ == "__main__":
    main()
