"""How often the 95 % intervals of a summary hold the true value, by simulation.

    python -m benchmarks.coverage                       # all of docs/intervals.md, some minutes
    python -m benchmarks.coverage --draws 200 --only grounding
    python -m benchmarks.coverage --below               # what intervals of fewer samples would be

Each population is a made-up data set of 50,000 samples, whose figures are the true ones. Samples
of n are drawn from it again and again, summed up as a run would be, and each headline figure's
interval is looked at: does it hold the true figure? A cell says how often, in per cent of the
draws that have an interval; the percentage of draws without one, if any, is in brackets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Literal, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.populations import ANSWERS, CHANGES, SCORES
from trustassay.metrics import Grounding, Harmonicity, SemanticHarmonicity
from trustassay.metrics.grounding import intervals as grounding_intervals
from trustassay.metrics.grounding.keys import FIGURES
from trustassay.metrics.grounding.maths import PARTS
from trustassay.metrics.grounding.summary import Answers
from trustassay.metrics.harmonicity import summary as harmonicity_summary
from trustassay.metrics.harmonicity.summary import Scores
from trustassay.statistics import comparison as comparison_of_runs
from trustassay.statistics.comparison import (
    Difference,
    difference_of_means,
    difference_of_medians,
    difference_of_shares,
    mean_of_differences,
)

Floats = NDArray[np.float64]
Interval = tuple[float, float]
SIZES = (10, 20, 40, 50, 150, 1000)
BELOW = (5, 10, 15, 20, 30)
POPULATION = 50_000
ROUNDING = 1e-9
HEADLINES = [
    *(key for key, figure in FIGURES.items() if figure.headline),
    *("reject_f1", "answerable_f1", "answered_citation_rec", "answered_citation_prec"),
]


class Count(NamedTuple):
    """Draws whose interval holds the true figure, and draws that have one."""

    hits: int
    intervals: int

    def shown(self, draws: int) -> str:
        """Write the cell of a table."""
        if not self.intervals:
            return "none"
        missing = 100 * (draws - self.intervals) / draws
        without = f" ({missing:.0f})" if missing >= 0.5 else ""
        return f"{100 * self.hits / self.intervals:.1f}{without}"


Places = NDArray[np.int64]
Draw = Callable[[Places], Mapping[str, Interval | None]]
"""From the places of n samples in the population to the intervals of figures."""


def covered(
    truth: Mapping[str, float], draw: Draw, n: int, draws: int, rng: np.random.Generator
) -> dict[str, Count]:
    """Count for each figure the draws of n samples whose interval holds the truth."""
    hits, there = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for _ in range(draws):
        found = draw(rng.integers(0, POPULATION, n))
        for key, value in truth.items():
            if interval := found[key]:
                low, high = interval
                there[key] += 1
                hits[key] += low - ROUNDING <= value <= high + ROUNDING
    return {key: Count(hits[key], there[key]) for key in truth}


class Study(NamedTuple):
    """A population: the true figures, and how to draw from it."""

    name: str
    truth: Mapping[str, float]
    draw: Draw


Correctness = Literal["em", "em5", "cm"]


def grounding(name: str, correctness: Correctness, profile: str = "default") -> Study:
    """Return the study of a population of answers."""
    metric = Grounding(correctness=correctness, profile=profile, splitter="lines")
    parts = ANSWERS[name](np.random.default_rng(1), POPULATION)
    absent = np.full(POPULATION, np.nan)
    whole = Answers(metric)
    rows = whole.rows({part: parts.get(part, absent) for part in PARTS})
    whole.add(rows)
    figures = {key: float(value) for key, value in whole.figures().items()}
    truth = {key: figures[key] for key in HEADLINES if key in figures}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        answers = Answers(metric)
        answers.add(rows[places])
        found = answers.intervals(truth).found
        return {key: found.get(key) for key in truth}

    return Study(f"{name}, {correctness}, {profile}", truth, draw)


def harmonicity(name: str, *, semantic: bool = False) -> Study:
    """Return the study of a population of gammas, or of divergences."""
    metric = SemanticHarmonicity() if semantic else Harmonicity()
    scores = SCORES[name](np.random.default_rng(1), POPULATION)
    stable = scores < metric.stable_below
    figures = [key for key, one in metric.figures.items() if one.headline or key == "p90"]
    parts = {"angle_degrees": np.degrees(np.arcsin(scores))}

    def of(places: Places | slice) -> Scores:
        found = Scores.of(figures)
        own = {key: values[places] for key, values in parts.items()}
        found.add(scores[places], stable[places], own)
        return found

    def draw(places: Places) -> Mapping[str, Interval | None]:
        found = of(places)
        intervals = {key: found.interval(key) for key in figures}
        return {key: None if isinstance(one, str) else one for key, one in intervals.items()}

    whole = of(slice(None))
    return Study(name, {key: whole.value(key) for key in figures}, draw)


def comparison(name: str) -> Study:
    """Return the study of two runs: paired by sample, and as independent ones."""
    first, second = CHANGES[name](np.random.default_rng(1), POPULATION)
    median = float(np.median(second) - np.median(first))
    mean = float(second.mean() - first.mean())
    stable = 100 * float((second < 0.05).mean() - (first < 0.05).mean())
    truth = {"paired difference": mean, "mean": mean, "median": median, "stable share": stable}
    shift = np.random.default_rng(2).permutation(POPULATION)

    def draw(places: Places) -> Mapping[str, Interval | None]:
        a, b, other = first[places], second[places], second[shift[places]]
        found: Mapping[str, Difference] = {
            "paired difference": mean_of_differences(b - a),
            "mean": difference_of_means(a, other),
            "median": difference_of_medians(a, other),
            "stable share": difference_of_shares(a < 0.05, other < 0.05),
        }
        return {key: one.interval for key, one in found.items()}

    return Study(name, truth, draw)


@contextmanager
def fewest(number: int) -> Iterator[None]:
    """Give intervals from this number of samples on."""
    with ExitStack() as stack:
        for module in (grounding_intervals, harmonicity_summary, comparison_of_runs):
            for name in ("FEWEST", "FEWEST_FOR_MEANS", "FEWEST_BEHIND"):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, number))
        yield


def show(title: str, studies: Iterable[Study], sizes: Sequence[int], draws: int) -> None:
    """Print a table: a row for each population and figure, a column for each size."""
    print(f"\n**{title}**\n")
    print(f"| population | figure | true | {' | '.join(f'n = {n:,}' for n in sizes)} |")
    print(f"| --- | --- | --- |{' --- |' * len(sizes)}")
    for study in studies:
        counts = {
            n: covered(study.truth, study.draw, n, draws, np.random.default_rng([n, 7]))
            for n in sizes
        }
        for key, value in study.truth.items():
            cells = " | ".join(counts[n][key].shown(draws) for n in sizes)
            print(f"| {study.name} | `{key}` | {value:.3g} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", choices=["grounding", "harmonicity", "compare"])
    parser.add_argument("--below", action="store_true", help="as if two samples were enough")
    args = parser.parse_args()
    sizes = BELOW if args.below else SIZES
    with fewest(2) if args.below else nullcontext():
        if args.only in (None, "grounding"):
            studies = [grounding(name, "em") for name in ANSWERS]
            studies += [grounding("middling", "em5"), grounding("good", "em", "paper")]
            show("Grounding", studies, sizes, args.draws)
        if args.only in (None, "harmonicity"):
            show("Harmonicity", map(harmonicity, SCORES), sizes, args.draws)
            semantic = partial(harmonicity, semantic=True)
            names = ("two kinds", "a tenth erratic")
            show("Semantic harmonicity", map(semantic, names), sizes, args.draws)
        if args.only in (None, "compare"):
            title = "Compare: second run minus first"
            show(title, map(comparison, CHANGES), sizes, args.draws)


if __name__ == "__main__":
    main()
