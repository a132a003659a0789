"""How many labels `label` saves against labels drawn at random, and how often its intervals hold.

    TRUSTASSAY_SHARED=... python -m lab.benchmarks.labelling        # the tables of
    docs/people/label.md python -m lab.benchmarks.labelling --only coverage --part 0.2
    TRUSTASSAY_SHARED=... python -m lab.benchmarks.labelling --only sets --runs FOLDER

``sets``: three public sets whose answers people labelled, scored by cheap metrics (the runs are
made in FOLDER, or found there). From each, labels are revealed in the order in which they are
proposed, again and again from other seeds, and compared with labels of units drawn at random.
``coverage``: the same of made-up answers, where more draws are affordable.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trustassay import score
from trustassay.people.label.population import (
    WantedFigure,
    interval_at,
    read_labels,
    read_population,
)
from trustassay.people.study.labels import LabelSource
from trustassay.statistics.active import (
    ActiveEstimate,
    FigureTarget,
    Labels,
    UnitDraw,
    auroc_target,
    draw_units,
    exploration_share,
    mean_target,
)

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
BATCH = 50
MILESTONES = (50, 100, 200, 400)
"""Labels at which intervals are compared; of the larger ones few sets are left over."""


@dataclass(frozen=True)
class Task:
    """Answers with their features, units and labels, and a figure of labels of some of them."""

    name: str
    features: Floats
    units: Places
    labels: Floats
    figure: WantedFigure
    target: Callable[[Floats, Places], FigureTarget | None]

    @property
    def truth(self) -> float:
        found = self.target(self.labels, np.arange(len(self.labels)))
        assert found is not None
        return found.value

    @property
    def of_unit(self) -> float:
        """Answers of a unit."""
        return len(self.units) / (int(self.units.max()) + 1)


class Seen(NamedTuple):
    """An estimate, its interval for these answers, and that for questions like these."""

    value: float
    here: tuple[float, float]
    beyond: tuple[float, float]


def chosen(
    task: Task, milestones: Sequence[int], seed: int, *, even: bool = False
) -> Iterator[Seen]:
    """Yield what `label` says at each milestone, in answers, as its plan grows by 50 at a time;
    ``even``: with `--random`.
    """
    draws: list[UnitDraw] = []
    every = np.arange(len(task.labels))
    for milestone in milestones:
        until = round(milestone / task.of_unit)
        while len(draws) < until:
            labels = Labels(task.features, task.units, draws, task.labels)
            expected = labels.predictions.copy()
            told = np.isin(task.units, [draw.unit for draw in draws])
            expected[told] = task.labels[told]
            target = task.target(expected, every)
            left = labels.left
            spread = np.ones(len(left)) if target is None else labels.spread(target.slope)[left]
            number = min(round(BATCH / task.of_unit), until - len(draws))
            rng = np.random.default_rng([seed, len(draws)])
            explored = 1.0 if even else exploration_share(int(told.sum()))
            found = draw_units(spread, number, rng, explored)
            draws += [UnitDraw(int(left[place]), q) for place, q in found]
        labels = Labels(task.features, task.units, draws, task.labels)
        target = task.target(labels.estimates, every)
        one = None if target is None else labels.estimate(target)
        yield seen(task, one)


def at_random(task: Task, milestones: Sequence[int], seed: int) -> Iterator[Seen]:
    """Yield the plain figure of the labels of units drawn at random, at each milestone."""
    count = int(task.units.max()) + 1
    order = np.random.default_rng(seed).permutation(count)
    for milestone in milestones:
        n = min(count, round(milestone / task.of_unit))
        places = np.flatnonzero(np.isin(task.units, order[:n]))
        found = task.target(task.labels[places], places)
        if found is None:
            yield seen(task, None)
            continue
        influence = found.slope * task.labels[places] + found.offset
        of_unit = np.bincount(task.units[places], influence, count)[order[:n]]
        square = float((of_unit**2).sum() / (n - 1))
        one = ActiveEstimate(
            found.value, n * square * (1 - n / count), n * n / count * square, n, n, count - n, 0.0
        )
        yield seen(task, one)


def seen(task: Task, one: ActiveEstimate | None) -> Seen:
    """Return an estimate's value and intervals; NaN where there is none."""
    if one is None:
        return Seen(math.nan, (math.nan, math.nan), (math.nan, math.nan))
    here = interval_at(task.figure, one, one.variance, one.effective)
    beyond = interval_at(task.figure, one, one.variance + one.between, one.effective)
    return Seen(one.value, here, beyond)


# public sets


def shared() -> Path:
    return Path(os.environ.get("TRUSTASSAY_SHARED", "../shared")) / "data"


def halueval() -> Iterator[dict[str, Any]]:
    """Right and hallucinated answers to 500 questions, with the knowledge they are written from."""
    with (shared() / "halueval/qa_data_first1000.json").open(encoding="utf-8") as file:
        for number, row in zip(range(500), map(json.loads, file), strict=False):
            for name, right in (("right_answer", 1), ("hallucinated_answer", 0)):
                yield {
                    "id": f"h{number}-{right}",
                    "question": row["question"],
                    "response": row[name],
                    "documents": [row["knowledge"]],
                    "label": right,
                }


def truthfulqa() -> Iterator[dict[str, Any]]:
    """Answers of four GPT-3 models to TruthfulQA, labelled by a person."""
    with (shared() / "truthfulqa/TruthfulQA_817_original.csv").open(encoding="utf-8") as file:
        golds = [row["Correct Answers"].split(";") for row in csv.DictReader(file)]
    path = shared() / "truthfulqa-gpt3-answers/gpt3_base_answers_annotated.csv"
    with path.open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            said = row["Truthfulness"].strip().lower()
            answer = row["model_answer"].strip().removeprefix("A:").strip()
            right = said.startswith(("true", "mostly true"))
            if answer and (right or said.startswith(("false", "mostly untrue"))):
                yield {
                    "id": f"t{number}",
                    "question": row["question"],
                    "response": answer,
                    "answers": [one.strip() for one in golds[int(row["row"])] if one.strip()],
                    "model": row["model"],
                    "label": int(right),
                }


def begin() -> Iterator[dict[str, Any]]:
    """The first 1,000 rows of BEGIN's test set (Wizard of Wikipedia)."""
    path = shared() / "attribution/begin_wow_test.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, row in zip(range(1000), map(json.loads, file), strict=False):
            yield {
                "id": f"b{number}",
                "question": row["message"],
                "response": row["hypothesis"],
                "documents": [row["premise"]],
                "label": int(row["label"]),
            }


SETS: Mapping[str, tuple[Callable[[], Iterator[dict[str, Any]]], str, str]] = {
    "begin": (begin, "faithfulness", "embedded"),
    "truthfulqa": (truthfulqa, "reference", "lexical"),
    "halueval": (halueval, "faithfulness", "lexical"),
}
"""The samples of each set, the metric by which they are scored, and the entailer."""
TASKS: Sequence[tuple[str, str, str, WantedFigure]] = (
    ("begin", "question", "faithfulness", WantedFigure()),
    ("truthfulqa", "answer", "reference", WantedFigure()),
    ("halueval", "answer", "faithfulness", WantedFigure()),
    ("begin", "question", "faithfulness.support", WantedFigure()),
    ("truthfulqa", "question", "reference", WantedFigure("difference", ("davinci", "babbage"))),
    ("truthfulqa", "answer", "reference", WantedFigure("auroc", ("reference",))),
    ("begin", "question", "faithfulness", WantedFigure("auroc", ("faithfulness",))),
    ("halueval", "answer", "faithfulness", WantedFigure("auroc", ("faithfulness",))),
)
"""Sets, what is drawn, the score that predicts, and what is estimated."""


def task_of(runs: Path, name: str, unit: str, predictor: str, figure: WantedFigure) -> Task:
    """Return a task of a set's run, which is made where it is not there."""
    samples, metric, entailer = SETS[name]
    folder = runs / name
    if not (folder / "summary.json").exists():
        backend = entailer if metric == "faithfulness" else None
        score(list(samples()), metrics=metric, entailer=backend, out=folder, report=False)
    source = LabelSource(fields=["label"])
    models = figure.names if figure.kind == "difference" else ()
    population = read_population(
        [folder], source, "answer" if unit == "answer" else "question", models
    )
    labels = read_labels(population, source).values

    def target(values: Floats, places: Places) -> FigureTarget | None:
        match figure.kind:
            case "share":
                return mean_target(values, np.ones(len(values), dtype=bool))
            case "auroc":
                return auroc_target(values, population.column(figure.names[0]).values[places])
        one, other = (
            mean_target(values, population.of_model(model)[places]) for model in figure.names
        )
        return one - other

    words = f"{name}, {figure.title}, {unit}s, by {predictor}"
    features = population.features([predictor])
    return Task(words, features, population.units, labels, figure, target)


def sets(runs: Path, part: float) -> None:
    """Print what labels that are chosen give beside random ones."""
    print(
        "| set, figure, unit, score | truth | labels | width: random | with scores | chosen | "
        "random labels for the same width | for the same error (95 %) | holds, % |\n|"
        + " --- |"
        * 9
    )
    repetitions = max(10, round(60 * part))
    for given in TASKS:
        task = task_of(runs, *given)
        rows = {
            "random": [list(at_random(task, MILESTONES, r)) for r in range(repetitions)],
            "scores": [list(chosen(task, MILESTONES, r, even=True)) for r in range(repetitions)],
            "chosen": [list(chosen(task, MILESTONES, r)) for r in range(repetitions)],
        }
        for place, milestone in enumerate(MILESTONES):
            own = {name: [one[place] for one in found] for name, found in rows.items()}
            print(_row(task, milestone, own), flush=True)


def _row(task: Task, labels: int, own: Mapping[str, Sequence[Seen]]) -> str:
    truth = task.truth
    width = {n: np.array([one.here[1] - one.here[0] for one in s]) for n, s in own.items()}
    error = {n: np.array([(one.value - truth) ** 2 for one in s]) for n, s in own.items()}
    holds = [one.here[0] - 1e-9 <= truth <= one.here[1] + 1e-9 for one in own["chosen"]]
    cells = [task.name, f"{truth:.3f}", f"{labels}"]
    cells += [f"{np.nanmean(width[name]):.3f}" for name in ("random", "scores", "chosen")]
    rng = np.random.default_rng(0)
    for each, power in ((width, 2), (error, 1)):
        one, other = each["random"], each["chosen"]
        drawn = rng.integers(0, len(one), (2, 2000, len(one)))
        ratio = _same(np.nanmean(other) / np.nanmean(one), power, labels, len(task.labels))
        ratios = np.nanmean(other[drawn[0]], axis=1) / np.nanmean(one[drawn[1]], axis=1)
        ends = [
            _same(float(end), power, labels, len(task.labels))
            for end in np.quantile(ratios, (0.975, 0.025))
        ]
        cells.append(f"{ratio:.0f} ({ends[0]:.0f} to {ends[1]:.0f})")
    cells.append(f"{100 * np.mean(holds):.0f}")
    return f"| {' | '.join(cells)} |"


def _same(ratio: float, power: int, labels: int, answers: int) -> float:
    """Return how many random labels give what ``labels`` chosen ones do: the square of an
    interval's width, as that of an error, goes with 1/n - 1/N.
    """
    return 1 / (ratio**power * (1 / labels - 1 / answers) + 1 / answers)


# made-up answers


@dataclass(frozen=True)
class Made:
    """Answers whose score has this slope in the log-odds of being right, and this intercept;
    ``together``: how much the answers to a question have in common.
    """

    slope: float
    intercept: float = 0.0
    questions: int = 800
    answers: int = 1
    together: float = 0.0

    def draw(self, rng: np.random.Generator, figure: str, name: str) -> Task:
        """Return answers with their labels."""
        shape = (self.questions, self.answers)
        scores = rng.normal(size=shape)
        common = self.together * rng.normal(size=(self.questions, 1))
        odds = self.intercept + self.slope * scores + common
        labels = (rng.random(shape) < 1 / (1 + np.exp(-odds))).astype(float).ravel()
        units = np.repeat(np.arange(self.questions), self.answers)
        x, second = scores.ravel(), np.tile([False, True], self.questions)

        def target(values: Floats, places: Places) -> FigureTarget | None:
            if figure == "share":
                return mean_target(values, np.ones(len(values), dtype=bool))
            if figure == "auroc":
                return auroc_target(values, x[places])
            return mean_target(values, second[places]) - mean_target(values, ~second[places])

        kinds = {"share": WantedFigure(), "auroc": WantedFigure("auroc", ("score",))}
        asked = kinds.get(figure, WantedFigure("difference", ("a", "b")))
        return Task(f"{name}, {figure}", x[:, None], units, labels, asked, target)


POPULATIONS: Mapping[str, tuple[Made, Sequence[str]]] = {
    "good score": (Made(1.5), ("share", "auroc")),
    "excellent score": (Made(4.0), ("share", "auroc")),
    "score says nothing": (Made(0.0), ("share", "auroc")),
    "score misleads": (Made(-1.5), ("share",)),
    "one in twenty is wrong": (Made(1.5, 3.8), ("share",)),
    "one in six is right": (Made(1.0, -2.0), ("share",)),
    "150 answers": (Made(1.5, questions=150), ("share",)),
    "two answers a question": (Made(1.5, answers=2, together=1.5), ("share", "difference")),
}


def coverage(part: float) -> None:
    """Print how often intervals hold the truth, of these answers and of the endless population from
    which they were drawn anew each time.
    """
    draws = max(20, round(600 * part))
    milestones = (50, 100)
    heads = " | ".join(f"these, {n} | beyond, {n} | width, {n}" for n in milestones)
    print(f"| answers, figure | truth | {heads} |\n|" + " --- |" * (2 + 3 * len(milestones)))
    for name, (made, figures) in POPULATIONS.items():
        for figure in figures:
            many = Made(made.slope, made.intercept, 200_000, made.answers, made.together)
            truth = many.draw(np.random.default_rng(0), figure, name).truth
            held: list[list[tuple[bool, bool, float]]] = [[] for _ in milestones]
            for seed in range(draws):
                task = made.draw(np.random.default_rng([1, seed]), figure, name)
                found = chosen(task, milestones, seed)
                for place, one in enumerate(found):
                    here = one.here[0] - 1e-9 <= task.truth <= one.here[1] + 1e-9
                    beyond = one.beyond[0] <= truth <= one.beyond[1]
                    held[place].append((here, beyond, one.here[1] - one.here[0]))
            cells = []
            for each in held:
                shares = [float(np.mean(column)) for column in zip(*each, strict=True)]
                cells += [f"{100 * one:.1f}" for one in shares[:2]] + [f"{shares[2]:.3f}"]
            print(f"| {name}, {figure} | {truth:.3f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", type=float, default=1.0, help="of the draws that are made")
    parser.add_argument("--only", choices=["sets", "coverage"])
    parser.add_argument("--runs", type=Path, help="where the runs of the sets are or will be")
    args = parser.parse_args()
    if args.only in (None, "coverage"):
        coverage(args.part)
    if args.only in (None, "sets"):
        with TemporaryDirectory() as folder:
            sets(args.runs or Path(folder), args.part)


if __name__ == "__main__":
    main()
