"""How entailers do on the hand-written probes: ``python -m lab.training.probes embedded lexical``.

300 minimal pairs over twenty kinds, in ``lab/training/probes/pairs.jsonl``: a passage, a statement
that it supports, and a near copy that it does not. An argument is an entailer's URI, or a folder of
weights. Printed by kind: how many true statements passed 0.5, and how many false ones.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import trustassay
from trustassay.backends.embedded import EmbeddedEntailer
from trustassay.core.capabilities import Entailer

__all__ = ["PROBES", "Probe", "passed", "probes", "table"]

PROBES = Path(__file__).parent / "probes" / "pairs.jsonl"
THRESHOLD = 0.5


class Probe(NamedTuple):
    """A pair of a kind and its label: entailment, neutral or contradiction."""

    kind: str
    premise: str
    hypothesis: str
    label: str


def probes(path: Path = PROBES) -> list[Probe]:
    """Return the probes in the file's order."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Probe(r["kind"], r["premise"], r["hypothesis"], r["label"]) for r in rows]


def passed(rows: Sequence[Probe], chances: Iterable[float]) -> dict[str, tuple[float, float]]:
    """Return by kind, and for "all", the share of true and of false statements that passed."""
    counts: dict[str, list[list[bool]]] = defaultdict(lambda: [[], []])
    for row, chance in zip(rows, chances, strict=True):
        for kind in (row.kind, "all"):
            counts[kind][row.label != "entailment"].append(chance >= THRESHOLD)
    return {
        kind: (sum(true) / len(true), sum(false) / len(false))
        for kind, (true, false) in counts.items()
    }


def entailer(choice: str) -> Entailer:
    """Return the entailer of a URI or of a folder of weights."""
    if Path(choice).is_dir():
        return EmbeddedEntailer(folder=Path(choice))
    return trustassay.entailer(choice)


def table(found: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Return a Markdown table: kinds by entailers, "true passed / false passed"."""
    names = list(found)
    kinds = sorted(found[names[0]], key=lambda kind: kind == "all")
    lines = [f"| kind | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    for kind in kinds:
        cells = [f"{true:.2f} / {false:.2f}" for true, false in (found[n][kind] for n in names)]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Score the probes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("entailer", nargs="+", help="a URI, or a folder of weights")
    args = parser.parse_args()
    rows = probes()
    pairs = [(row.premise, row.hypothesis) for row in rows]
    print(table({n: passed(rows, entailer(n).scores(pairs)[:, 0]) for n in args.entailer}))


if __name__ == "__main__":
    main()
