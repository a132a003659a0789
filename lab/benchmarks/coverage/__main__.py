"""How often the 95 % intervals that a command prints hold the true value, by simulation.

    python -m lab.benchmarks.coverage                       # every group, an hour or so on one core
    python -m lab.benchmarks.coverage --draws 200 --only grounding
    python -m lab.benchmarks.coverage --below               # what intervals of fewer samples would
    be
    python -m lab.benchmarks.coverage --write               # into lab/results/
    python -m lab.benchmarks.coverage --summary             # the table of docs/intervals.md

Each population is a made-up data set of 50,000 units, whose figures are the true ones. Samples
of n are drawn from it again and again, summed up as a run would be, and each headline figure's
interval is looked at: does it hold the true figure? A cell says how often, in per cent of the
draws that have an interval; the percentage of draws without one, if any, is in brackets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

from lab.benchmarks.coverage.comparing import comparison
from lab.benchmarks.coverage.counting import Study, counted
from lab.benchmarks.coverage.models import JUDGED, MOVED, balanced, directions
from lab.benchmarks.coverage.ratings import (
    AGREEING,
    RATED,
    agreement,
    other_raters,
    severity,
    variance,
)
from lab.benchmarks.coverage.scores import (
    LABELLED,
    SCORED,
    labelled,
    separated,
)
from lab.benchmarks.coverage.summaries import grounding, harmonicity
from lab.benchmarks.coverage.units import POPULATIONS, WON, declared, ranked, won
from lab.benchmarks.populations import ANSWERS, CHANGES, SCORES
from lab.results import read_result, write_result
from trustassay.core import assessment as declared_figures
from trustassay.metrics.grounding import summary as grounding_intervals
from trustassay.statistics import comparison as comparison_of_runs
from trustassay.statistics import intervals

SIZES = (10, 20, 40, 150)
BELOW = (5, 10, 15, 20, 30)


def _grounding() -> list[Study]:
    studies = [grounding(name, "em") for name in ANSWERS]
    return [*studies, grounding("middling", "em5"), grounding("good", "em", "paper")]


def _semantic() -> list[Study]:
    return [harmonicity(name, semantic=True) for name in ("two kinds", "a tenth erratic")]


def _ranked() -> list[Study]:
    return [ranked(0.7), ranked(0.95), ranked(0.7, 0.1)]


def _severity() -> list[Study]:
    return [severity(name) for name in AGREEING if name.startswith("3 raters")]


def _other_raters() -> list[Study]:
    return [other_raters("agree somewhat", raters) for raters in (3, 10)]


GROUPS: Mapping[str, tuple[str, Callable[[], list[Study]]]] = {
    "grounding": ("Grounding", _grounding),
    "harmonicity": ("Harmonicity", lambda: list(map(harmonicity, SCORES))),
    "semantic": ("Semantic harmonicity", _semantic),
    "units": ("Declared figures of questions", lambda: list(map(declared, POPULATIONS))),
    "rank": ("Rank: means of models, and their differences", _ranked),
    "pairwise": ("Pairwise: a judge's choices", lambda: list(map(won, WON))),
    "auroc": ("AUROC and the difference of two", lambda: list(map(separated, SCORED))),
    "label": ("Label: these answers, from n labels", lambda: list(map(labelled, LABELLED))),
    "agreement": ("Agree: figures of agreement", lambda: list(map(agreement, AGREEING))),
    "variance": ("Agree: parts of the variance of ratings", lambda: list(map(variance, RATED))),
    "raters": ("Agree: parts of the variance, of other raters", _other_raters),
    "judge": ("Judge: severity beside other judges", _severity),
    "isotropy": ("Isotropy: where texts move", lambda: list(map(directions, MOVED))),
    "entailers": ("Entailers: balanced accuracy", lambda: list(map(balanced, JUDGED))),
    "compare": ("Compare: second run minus first", lambda: list(map(comparison, CHANGES))),
}
"""What a command prints, by a short name: a title, and its populations."""


@contextmanager
def fewest(number: int) -> Iterator[None]:
    """Give intervals from this number of samples on."""
    with ExitStack() as stack:
        for module in (intervals, grounding_intervals, declared_figures, comparison_of_runs):
            for name in ("MIN_UNITS", "MIN_UNITS_FOR_MEANS"):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, number))
        yield


def summary() -> None:
    """Print a row for each group from the kept counts: where the cells lie, and the lowest."""
    print("| command | cells | 93 to 97.5 | above | below | lowest |\n| --- |" + " --- |" * 5)
    for name, (title, _) in GROUPS.items():
        try:
            kept = read_result(f"coverage-{name}")
        except FileNotFoundError:  # never counted
            continue
        cells = [
            (100 * row[key][0] / row[key][1], f"`{row['figure']}`, {row['population']}, {key}")
            for row in kept["rows"]
            for key in row
            if key.startswith("n=") and row[key][1] >= kept["draws"] / 2
        ]
        below = sum(rate < 93 for rate, _ in cells)
        above = sum(rate > 97.5 for rate, _ in cells)
        lowest, where = min(cells)
        within = len(cells) - below - above
        print(f"| {title} | {len(cells)} | {within} | {above} | {below} | {lowest:.1f} ({where}) |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--below", action="store_true", help="as if two samples were enough")
    parser.add_argument("--write", action="store_true", help="keep the counts in lab/results")
    parser.add_argument("--summary", action="store_true", help="of the kept counts; draws nothing")
    args = parser.parse_args()
    if args.summary:
        summary()
        return
    sizes = BELOW if args.below else SIZES
    for name in args.only or GROUPS:
        title, studies = GROUPS[name]
        print(f"\n**{title}**\n")
        with fewest(2) if args.below else nullcontext():
            rows = counted(studies(), sizes, args.draws)
        if args.write:
            own = f"coverage-{name}{'-below' if args.below else ''}"
            write_result(
                own,
                f"python -m lab.benchmarks.coverage --only {name} --draws {args.draws}",
                "simulated populations (lab/benchmarks/populations.py)",
                {"draws": args.draws, "rows": rows},
            )


if __name__ == "__main__":
    main()
