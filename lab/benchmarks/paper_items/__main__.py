"""Run the items of the five papers, each with its command, and check the values that it gives.

    python -m lab.benchmarks.paper_items                       # all that need no torch
    python -m lab.benchmarks.paper_items --slow                # the others, too
    python -m lab.benchmarks.paper_items --paper wei --item wei-03
    python -m lab.benchmarks.paper_items --out items.json      # not into lab/results

Prints a Markdown table. Nothing outside 127.0.0.1 is reached.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.benchmarks.paper_items.papers import ALL_ITEMS, PAPERS
from lab.benchmarks.paper_items.running import OUTCOMES, ItemResult, PaperItem, run_item
from lab.results import write_result

COMMAND = "python -m lab.benchmarks.paper_items --slow"
DATA = "inputs that the script writes, bundled answers and the files of trustassay demo"
AT_ONCE = 2


def choose_items(options: argparse.Namespace) -> list[PaperItem]:
    return [
        item
        for item in ALL_ITEMS
        if options.paper in (None, item.paper)
        and (not options.item or item.id in options.item)
        and (options.slow or options.item or not item.slow)
    ]


def run_items(items: Sequence[PaperItem]) -> list[ItemResult]:
    """Run items, two at once; results are in the order of the items."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = []
        for result in pool.map(run_item, items):
            print(f"{result.item.id}: {result.outcome}", file=sys.stderr, flush=True)
            results.append(result)
    return results


def table_of(results: Sequence[ItemResult]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| item | place in the paper | what | outcome | reason |", "|---|---|---|---|---|"]
    for result in results:
        cells = (
            result.item.id, result.item.place, result.item.what, result.outcome, result.reason
        )  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--paper", choices=sorted(PAPERS))
    parser.add_argument("--item", action="append", metavar="ID")
    parser.add_argument("--slow", action="store_true", help="also what needs torch")
    parser.add_argument("--out", type=Path, help="a file in place of lab/results")
    options = parser.parse_args()
    results = run_items(choose_items(options))
    counts = Counter(result.outcome for result in results)
    print(table_of(results))
    print("\n" + ", ".join(f"{counts[name]} {name}" for name in OUTCOMES))
    figures = {
        "items": len(results),
        "outcomes": {name: counts[name] for name in OUTCOMES},
        "rows": [result.to_json() for result in sorted(results, key=lambda one: one.item.id)],
    }
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    elif options.paper or options.item:
        print("not written: a part of the items (--out writes it)", file=sys.stderr)
    else:
        write_result("paper-items", COMMAND, DATA, figures)


if __name__ == "__main__":
    main()
