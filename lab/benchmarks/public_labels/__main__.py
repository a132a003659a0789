"""Compare every metric that applies with labels of eight public sets that others wrote.

    python -m lab.benchmarks.local_models 1.5b              # for the second reader
    python -m lab.benchmarks.public_labels score --out FOLDER [--only quintd,scitab]
    python -m lab.benchmarks.public_labels score --out FOLDER --reader second --most 100
    python -m lab.benchmarks.public_labels show --out FOLDER [--before FOLDER] [--write]

``score`` continues where it was stopped; hours on two cores for all sets. PYTHONPATH decides which
version is measured. The rules of this version were chosen on the rows of the part ``choose``
(:mod:`lab.benchmarks.public_labels.rows`); the figures of the part ``report`` were looked at once.
``--write`` writes ``results/public-labels.json`` and ``results/public-labels.md``; figures that
the folders do not have stay as they were.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from lab.benchmarks.public_labels.scoring import METRICS, score_set
from lab.benchmarks.public_labels.tables import build_figures, build_page
from lab.results import FOLDER, write_result
from trustassay.errors import did_you_mean

READERS = sorted({reader for readers in METRICS.values() for reader in readers})
NAME = "public-labels"
COMMAND = "python -m lab.benchmarks.public_labels show --out FOLDER --before FOLDER --write"
DATA = (
    "quintd, attributionbench, tau-bench, scitab, who-and-when, tlm-simpleqa, multilingual-nli, "
    "pandalm: labels by people, but the reward of tau-bench (computed) and most labels of "
    "tlm-simpleqa (gold words)"
)


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.public_labels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["score", "show"])
    parser.add_argument("--out", type=Path, required=True, help="folder of the scores")
    parser.add_argument("--before", type=Path, help="scores of an earlier version, shown beside")
    parser.add_argument("--only", default=",".join(METRICS), help="names of sets, with commas")
    parser.add_argument("--reader", default="embedded", choices=READERS)
    parser.add_argument("--part", default="", choices=["", "choose", "report"])
    parser.add_argument("--most", type=int, default=0, help="rows to draw at random; 0 for all")
    parser.add_argument("--write", action="store_true", help="write the files in results/")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name in options.only:
        if name not in METRICS:
            parser.error(did_you_mean("set", name, METRICS))
    return options


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return figures in which new ones replace those of the same set, rows and reader."""
    result = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(key), dict)
        result[key] = merge(old[key], value) if both else value
    return result


def main() -> None:
    """Score or show."""
    options = read_options()
    if options.command == "score":
        for name in options.only:
            if options.reader in METRICS[name]:
                score_set(name, options.reader, options.out, options.most, options.part)
        return
    figures = build_figures(options.out, options.only)
    if options.before:
        figures = {"now": figures, "before": build_figures(options.before, options.only)}
    else:
        figures = {"now": figures}
    if options.write:
        stored = json.loads((FOLDER / f"{NAME}.json").read_text(encoding="utf-8"))["figures"]
        figures = merge(stored, figures)
    page = build_page(figures)
    if options.write:
        write_result(NAME, COMMAND, DATA, figures)
        (FOLDER / f"{NAME}.md").write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
