"""What is lost, asked again and wasted when an endpoint or a process fails.

    python -m lab.benchmarks.reliability                  # every row: about half an hour
    python -m lab.benchmarks.reliability noise kills      # some rows
    python -m lab.benchmarks.reliability --quick          # small sizes, to see that all works
    python -m lab.benchmarks.reliability --repeats 3      # the best seconds, the worst of the rest

Everything is counted by an endpoint in a process of its own. trustassay runs through its command
line; beside it, against an endpoint that fails in the same way, runs a plain aiohttp loop with as
many calls at once, exponential backoff and Retry-After: with 8 tries, and one that tries for ever.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.benchmarks.reliability import breaks, rows
from lab.benchmarks.reliability.rows import Outcome, Row

HEAD = (
    "| what happens | samples | lost | asked again | wasted | seconds | least | loop: lost "
    "| loop: wasted | loop: seconds | for ever: seconds | command |"
)


def line(row: Row | breaks.BrokenRow, outcomes: Sequence[Outcome]) -> str:
    """Return a row of the table."""
    ours, plain, *others = outcomes
    cells = [
        row.title,
        f"{row.calls:,}",
        ours.lost,
        ours.counts.asked_again,
        ours.counts.wasted,
        f"{ours.counts.seconds:.1f}",
        f"{row.least_s:.1f}",
        plain.lost,
        plain.counts.wasted,
        f"{plain.counts.seconds:.1f}",
        f"{others[0].counts.seconds:.1f}" if others else "",
        f"`python -m lab.benchmarks.reliability {row.name}`",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the best seconds of one contender, and the worst of everything else."""
    counts = [each.counts for each in outcomes]
    worst = max(counts, key=lambda each: each.wasted)
    again = max(each.asked_again for each in counts)
    seconds = min(each.seconds for each in counts)
    return replace(
        outcomes[0],
        lost=max(each.lost for each in outcomes),
        counts=replace(worst, asked_again=again, seconds=seconds),
    )


def tell(outcomes: Sequence[Outcome]) -> None:
    """Say on standard error what else is known of a row."""
    for each in outcomes:
        statuses = " ".join(map(str, each.statuses))
        counts = each.counts
        print(
            f"  {each.contender}: lost {each.lost}, {counts.received} requests for {counts.calls} "
            f"calls, {counts.asked_again} again, {counts.seconds:.1f} s, {counts.at_once} at once, "
            f"{counts.outcomes}, ended with {statuses}",
            file=sys.stderr,
            flush=True,
        )


def all_rows(quick: bool) -> list[Row | breaks.BrokenRow]:
    return [*rows.rows(quick), *breaks.rows(quick)]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [row.name for row in all_rows(quick=False)]
    parser.add_argument("row", nargs="*", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--repeats", type=int, default=1, help="how often each row is run")
    parser.add_argument("--keep", type=Path, help="a folder for what was written and said")
    args = parser.parse_args()
    if unknown := sorted(set(args.row) - set(names)):
        parser.error(f"no such row: {', '.join(unknown)}")
    # A shell has background commands ignore it, and what they start would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"{HEAD}\n|{' --- |' * (HEAD.count('|') - 1)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="reliability-") as place:
        for row in all_rows(args.quick):
            if args.row and row.name not in args.row:
                continue
            print(f"{row.name}: {row.title}", file=sys.stderr, flush=True)
            found = []
            for number in range(args.repeats):
                found.append(row.measure((args.keep or Path(place)) / row.name / str(number)))
                tell(found[-1])
            print(line(row, [merged(each) for each in zip(*found, strict=True)]), flush=True)


if __name__ == "__main__":
    main()
