"""Measure ``fewl`` on public sets, against its paper's specification, and its seconds.

    python -m lab.benchmarks.fewl tables trustscore --work FOLDER

The sets are found by TRUSTASSAY_SHARED, else ../shared. What was scored is kept in ``--work``: a
second start goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from lab.benchmarks.fewl import choosing, reproducing, speed, tables, tried
from lab.benchmarks.fewl.sets import SETS, SHARED


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.fewl", description=__doc__)
    parser.add_argument("--work", type=Path, help="folder of the runs; default: a temporary one")
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("tables", help="all variants on one set, side by side")
    one.add_argument("set", choices=SETS)
    one.add_argument("--limit", type=int, help="take the first N questions alone")
    commands.add_parser("against", help="the recommended form against no penalty, on all sets")
    half = commands.add_parser("choose", help="choose a form on half of a set and the others")
    for command in (one, half):
        command.add_argument("--similarities", default=",".join(tables.SIMILARITIES))
    commands.add_parser("specification", help="figures of the specification beside ours")
    commands.add_parser("tried", help="other ways to weigh references, on TrustScore's set")
    seconds = commands.add_parser("speed", help="seconds of made-up questions")
    seconds.add_argument("--questions", type=int, default=1000)
    near = commands.add_parser("neighbours", help="seconds and memory of made-up neighbours")
    near.add_argument("--questions", type=int, default=100_000)
    near.add_argument("--queries", type=int, help="look for the first N questions alone")
    given = parser.parse_args()
    if given.what == "speed":
        return speed.speed(given.questions)
    if given.what == "neighbours":
        return speed.neighbours(given.questions, given.queries)
    if not SHARED.is_dir():
        sys.exit(f"no data at {SHARED}; set TRUSTASSAY_SHARED")
    with tempfile.TemporaryDirectory() as folder:
        work = given.work or Path(folder)
        match given.what:
            case "tables":
                tables.show(given.set, given.similarities.split(","), given.limit, work)
            case "against":
                tables.against(work)
            case "choose":
                choosing.choose(given.similarities.split(","), work)
            case "specification":
                reproducing.show()
            case "tried":
                tried.show(work)
    return None


if __name__ == "__main__":
    main()
