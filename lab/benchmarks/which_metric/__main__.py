"""Hold every metric that runs without a key against people: the tables of results/which-metric.md.

    python -m lab.benchmarks.which_metric --out FOLDER                    # prints all tables
    python -m lab.benchmarks.which_metric --out FOLDER --write            # puts them into the page
    python -m lab.benchmarks.which_metric --out FOLDER --answers 100 --only begin,wice

The sets are found by TRUSTASSAY_SHARED, else ../shared. Runs stay in ``--out``: a second start
goes on where the first stopped, and asks nothing again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import trustassay
from lab.benchmarks.which_metric.picture import picture
from lab.benchmarks.which_metric.sets import SETS, shared
from lab.benchmarks.which_metric.studying import studied
from lab.benchmarks.which_metric.tables import all_tables

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "lab" / "results" / "which-metric.md"
FIGURES = PAGE.with_suffix(".json")
IMAGE = ROOT / "docs" / "images" / "which-metric.svg"


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Return a page whose tables, each between ``<!-- table NAME -->`` and ``<!-- end -->``, are
    these.

    Raises:
        ValueError: the page has no place for one of them.
    """
    for name, table in tables.items():
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        if (found := page.count(begin)) != 1:
            raise ValueError(f"expected one place for the table {name}, found {found}")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{table}\n\n{end}{after}"
    return page


def figures(tables: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the AUROC of each score by set, as the tables of passages, gold and others say."""
    found: dict[str, dict[str, str]] = {}
    for name in ("passages", "gold"):
        rows = [line.strip("| ").split(" | ") for line in tables[name].splitlines()]
        head, rows = rows[0][1:], [row for row in rows[2:] if len(row) > 1]
        for first, *cells in rows:
            for other, cell in zip(head, cells, strict=False):
                of, score = (first, other) if name == "passages" else (other, first)
                if "PRR" in of or (not cell[:1].isdigit() and cell[:2] != "**"):
                    continue
                text = cell.replace("*", "").split(", n =")[0]
                found.setdefault(of.replace(", AUROC", ""), {})[score.replace("`", "")] = text
    for line in tables["others"].splitlines()[2:]:
        of, score, _, auroc, *_ = line.strip("| ").split(" | ")
        found.setdefault(of, {})[score.replace("`", "")] = auroc
    return found


def keep(path: Path, found: Mapping[str, Mapping[str, str]], resamples: int) -> None:
    """Put the figures of some sets into a file, beside those of others by the same entailer."""
    version = trustassay.entailer("embedded").name
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sets = stored["sets"] if stored.get("version") == version else {}
    record = {
        "name": "which-metric",
        "version": version,
        "date": datetime.date.today().isoformat(),
        "command": f"python -m lab.benchmarks.which_metric --resamples {resamples} --figures",
        "sets": {**sets, **found},
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    """Score, study and print."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.which_metric", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--answers", type=int, default=1000, help="of each set, at least")
    parser.add_argument("--only", default="", help="names of sets, with commas")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help="write the page and its picture")
    parser.add_argument(
        "--figures", action="store_true", help="keep AUROCs in results/which-metric.json"
    )
    given = parser.parse_args()
    if not shared().is_dir():
        print(f"no data at {shared()}; set TRUSTASSAY_SHARED", file=sys.stderr)
        return 2
    names = given.only.split(",") if given.only else [one.name for one in SETS]
    if unknown := set(names) - {one.name for one in SETS}:
        parser.error(f"--only: no set is called {', '.join(sorted(unknown))}")
    if given.write and given.only:
        parser.error("--write: the page shows all sets; leave out --only")
    out = given.out / str(given.answers)
    sets = [studied(one, given.answers, out, given.resamples) for one in SETS if one.name in names]
    tables = all_tables(sets, given.resamples)
    if given.figures:
        keep(FIGURES, figures(tables), given.resamples)
    if given.write:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
        IMAGE.write_text(picture(sets), encoding="utf-8")
        return 0
    for name, table in tables.items():
        print(f"\n## {name}\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
