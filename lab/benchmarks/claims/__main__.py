"""Measure ``faithfulness`` as a user runs it, and compare two versions answer by answer.

    python -m lab.benchmarks.claims run labelled --split dev --rows 400 --out FILE.jsonl
    python -m lab.benchmarks.claims run empty --out FILE.jsonl        # also: planted, speed
    python -m lab.benchmarks.claims show FILE.jsonl
    python -m lab.benchmarks.claims compare BEFORE.jsonl AFTER.jsonl [--write]

The public data are found by TRUSTASSAY_SHARED, else ../shared. ``run`` skips what the file holds
already, so that it continues where it was stopped. Which version is measured is decided by
PYTHONPATH: ``PYTHONPATH=OTHER/src:. python -m lab.benchmarks.claims run ...`` measures another one.
``show`` and ``compare`` also take a pattern of several files, in quotes: ``'before-*.jsonl'``.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import trustassay
from lab.benchmarks.claims.empty_replies import read_empty_replies
from lab.benchmarks.claims.figures import COMPARISONS, MEASURES, RESAMPLES
from lab.benchmarks.claims.labelled import SPLITS, list_sets, read_set
from lab.benchmarks.claims.planted_errors import read_planted_answers
from lab.benchmarks.claims.scoring import MAX_PROCESSES, score_missing
from lab.benchmarks.claims.speed import SIZES, TEXT_KINDS, measure_text
from lab.benchmarks.claims.storage import RUN, append_rows, pair_rows, read_rows, rows_of
from lab.benchmarks.claims.tables import COMPARISON_TABLES, TABLES
from lab.benchmarks.which_metric.sets import shared
from lab.results import write_result

DATA = "public sets with human labels, empty replies, planted errors, generated long answers"


def find_commit(folder: Path) -> str:
    """Return the commit that a folder is at, "unknown" outside of git; "+" marks changed files."""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


def read_labelled(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the labelled answers that the options name."""
    sets = [one for one in list_sets() if options.split in (None, one.split)]
    names = options.only.split(",") if options.only else [one.name for one in sets]
    if unknown := sorted(set(names) - {one.name for one in sets}):
        known = ", ".join(one.name for one in sets)
        raise SystemExit(f"--only: no set is called {', '.join(unknown)}; sets: {known}")
    chosen = [one for one in sets if one.name in names]
    return [answer for one in chosen for answer in read_set(one, options.rows, options.seed)]


def run_speed(options: argparse.Namespace) -> int:
    """Measure the times of all long texts that the file lacks, and return how many."""
    rows = read_rows(options.out) if options.out.exists() else {}
    done = 0
    for kind in options.only.split(",") if options.only else TEXT_KINDS:
        for size in options.sizes:
            if ("speed", kind, str(size)) not in rows:
                row = measure_text(kind, size)
                append_rows(options.out, [row])
                print(row, file=sys.stderr, flush=True)
                done += 1
    return done


READERS: Mapping[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "labelled": read_labelled,
    "empty": lambda options: read_empty_replies(options.seed),
    "planted": lambda options: read_planted_answers(options.seed),
}


def run(options: argparse.Namespace) -> None:
    """Make one measurement, and store what was measured and how long it took."""
    source = Path(trustassay.__file__).parent
    print(f"measured: {source} at {find_commit(source)}", file=sys.stderr)
    if options.measure != "speed" and not shared().is_dir():
        raise SystemExit(f"no data at {shared()}; set TRUSTASSAY_SHARED")
    began = time.monotonic()
    if options.measure == "speed":
        done = run_speed(options)
    else:
        answers = READERS[options.measure](options)
        done = score_missing(answers, options.out, options.processes)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = {
        "measure": RUN,
        "set": options.measure,
        "id": now,
        "command": " ".join(["python -m lab.benchmarks.claims", *sys.argv[1:]]),
        "commit": find_commit(source),
        "entailer": trustassay.entailer("embedded").name,
        "processes": options.processes,
        "rows": done,
        "seconds": round(time.monotonic() - began, 1),
    }
    append_rows(options.out, [row])
    print(f"{done:,} rows in {row['seconds']:,.0f} s, {options.out}", file=sys.stderr)


def show(options: argparse.Namespace) -> None:
    """Print the figures of one version."""
    rows = read_rows(options.file)
    for measure, compute in MEASURES.items():
        rows_of_measure = rows_of(rows, measure)
        if rows_of_measure:
            figures = compute(rows_of_measure, options.resamples)
            print(f"\n## {measure}\n\n{TABLES[measure](figures)}")


def list_versions(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the commits, and the entailers, that rows about runs name."""
    versions = (f"{row['commit']} ({row['entailer']})" for row in rows)
    return list(dict.fromkeys(versions))


def compare(options: argparse.Namespace) -> None:
    """Print the differences of two versions, and with ``--write`` keep the figures."""
    before, after = read_rows(options.before), read_rows(options.after)
    figures: dict[str, Any] = {
        "before": list_versions(rows_of(before, RUN)),
        "after": list_versions(rows_of(after, RUN)),
    }
    print(f"before: {figures['before']}\nafter: {figures['after']}")
    for measure, comparison in COMPARISONS.items():
        pairs, left_out = pair_rows(before, after, measure)
        if pairs:
            figures[measure] = comparison(pairs, options.resamples)
            print(f"\n## {measure}\n\n{COMPARISON_TABLES[measure](figures[measure])}")
        if left_out:
            message = f"{measure}: {left_out:,} answers left out, in one file only or changed"
            print(message, file=sys.stderr)
    if options.write:
        names = (Path(options.before).name, Path(options.after).name)
        command = f"python -m lab.benchmarks.claims compare {' '.join(names)} --write"
        print(write_result("claims", command, DATA, figures))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.claims",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="measure, and append rows to a file")
    one.add_argument("measure", choices=tuple(MEASURES))
    one.add_argument("--out", type=Path, required=True, help="file of JSON lines")
    one.add_argument("--split", choices=SPLITS, help="of the labelled sets; all if left out")
    one.add_argument("--only", default="", help="names of sets, or of kinds of text, with commas")
    one.add_argument("--rows", type=int, help="answers drawn of each labelled set; all if left out")
    one.add_argument("--seed", type=int, default=0, help="of the answers that are drawn")
    one.add_argument("--processes", type=int, default=1, choices=range(1, MAX_PROCESSES + 1))
    one.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="characters, for speed")
    one.set_defaults(do=run)
    one = commands.add_parser("show", help="print the figures of a file")
    one.add_argument("file")
    one.add_argument("--resamples", type=int, default=RESAMPLES)
    one.set_defaults(do=show)
    one = commands.add_parser("compare", help="print the differences of two files")
    one.add_argument("before")
    one.add_argument("after")
    one.add_argument("--resamples", type=int, default=RESAMPLES)
    one.add_argument("--write", action="store_true", help="write lab/results/claims.json")
    one.set_defaults(do=compare)
    return parser


def main() -> int:
    """Run the command line."""
    options = make_parser().parse_args()
    options.do(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
