"""The FEWL paper's rankings: of models by their mean score, and of two models' single answers.

Wei et al. 2024, section 4.2: Tables 4 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.data.records import InputError
from trustassay.event_loop import all_of
from trustassay.metric import Assessment, Context, Metric, Need
from trustassay.runs.folder import RunFolder
from trustassay.sample import Problem, Sample, is_blank
from trustassay.statistics.ranking import RankedModels, rank_models
from trustassay.statistics.resampling import generator
from trustassay_papers.experiments.answers import Records, read_records
from trustassay_papers.experiments.fewl import (
    INTERVALS,
    Unit,
    outcome_rows,
    result_of,
    scored_variants,
)
from trustassay_papers.experiments.measuring import Setup, execute_run, measure
from trustassay_papers.experiments.results import Cell, Result, Row

Floats = NDArray[np.float64]
RANK, SAMPLES = (4,), (5,)
MOST_PAIRS = 10
"""Pairs of models that have a column of their own."""


async def rank(source: Path, out: Path, setup: Setup, records: Records) -> Result:
    """Rank models by their mean score over the questions that all of them have a score for.

    Where all answers have a label, the order is compared with true accuracy, the share of labels
    above 0.

    Raises:
        InputError: fewer than two models share a question with scores.
        As :func:`~trustassay_papers.experiments.fewl.pairs`.
    """
    read = _of_models(read_records(source, records), records)
    with records.placing(read):
        measured = await measure(read, setup, out)
    kept = [one for one in read if one.id not in measured.left_out]
    table = _Table.of(kept)
    labels = [one.label for one in kept]
    truth = None
    if all(label is not None for label in labels):
        truth = table.means(np.array([float((label or 0) > 0) for label in labels]))
    rows = []
    if truth is not None:
        rows.append(_accuracy(truth))
    for rule in scored_variants(measured, kept, RANK):
        rng = generator(setup.options.seed, "experiment", "rank")
        scores = table.means(rule.scores)
        found = rank_models(scores, rng, truth=truth)
        cells = _model_cells(found) + _agreement_cells(found, table.models)
        rows.append(Row(rule.name, cells, rule.about, rule.tables))
    ways = math.factorial(len(table.models))
    notes = [
        f"{len(table.questions):,} questions that all {len(table.models)} models answered. By "
        f"chance the order is the true one once in {ways:,} times.",
        INTERVALS,
    ]
    if lost := sorted({one.model or "" for one in read} - set(table.models)):
        notes.append(f"No answer has a score of: {', '.join(lost)}.")
    if truth is None:
        notes.append("No true accuracy: not all answers have a label.")
    columns = [*table.models, "order", "Kendall's tau", "Spearman's rho"]
    title = "Mean scores of models, and their order against true accuracy"
    return result_of("fewl-rank", title, columns, rows, measured, setup, notes)


async def samples(source: Path, out: Path, setup: Setup, records: Records) -> Result:
    """Count how often the score orders two models' answers to a question as TruthfulQA's does.

    TruthfulQA's metric is the likeness to the nearest right answer less that to the nearest wrong
    one, by the same similarity as the score. Questions on which it does not differ do not count;
    a tie of the scores counts as a miss.

    Raises:
        InputError: no two models share a question.
        BadInputError: a sample lacks right or wrong answers.
        As :func:`rank`.
    """
    read = _of_models(read_records(source, records), records)
    _refuse(read, ("answers", "incorrect_answers"), records)
    read = [one for one in read if one.answers and one.incorrect_answers]
    with records.placing(read):
        measured = await measure(read, setup, out)
    rows: list[Row] = []
    columns: list[str] = []
    for place, (similarity, numbers) in enumerate(measured.numbers.items(), 1):
        base = RunFolder(measured.runs[similarity])
        options = replace(setup.options, calls_from=base.calls_path)
        kept = [one for one in read if one.id not in measured.left_out]
        folder = RunFolder(out / f"{place}-truth")
        found = await execute_run(kept, Truth(), {"similarity": similarity}, folder, options)
        failed = {name: one.error for name, one in found.items() if one.error is not None}
        kept = [one for one in kept if one.id not in failed]
        measured = replace(measured, left_out={**measured.left_out, **failed})
        truths = np.array([found[one.id].score for one in kept])
        units = _ordered(kept, truths)
        columns = columns or list(units)
        block = replace(measured, numbers={similarity: numbers})
        chance = [Cell("50.0", {"value": 50.0}) for _ in columns]
        shown = {name: units.get(name, []) for name in columns}
        for row in outcome_rows(block, kept, shown, SAMPLES, chance):
            name = f"{similarity}: {row.name}" if len(measured.numbers) > 1 else row.name
            rows.append(replace(row, name=name))
    title = "Pairs of two models' answers that the score orders as the TQA metric does, in %"
    notes = ["Questions whose answers have the same TQA metric do not count.", INTERVALS]
    return result_of("fewl-samples", title, columns, rows, measured, setup, notes)


@dataclass(frozen=True)
class Truth(Metric):
    """Likeness to the nearest right answer less that to the nearest wrong one (Lin et al. 2022)."""

    name: ClassVar[str] = "tqa"
    title: ClassVar[str] = "TruthfulQA's metric"

    @property
    def score_range(self) -> tuple[float, float]:
        """Of similarities from -1.1 to 1.1."""
        return -2.2, 2.2

    def needs(self) -> Sequence[Need]:
        """A similarity."""
        return [Need("compare")]

    async def assess(self, context: Context) -> Assessment:
        """Compare; a blank answer is like nothing."""
        sample, models = context.sample, context.models
        right = [alias for aliases in sample.answers for alias in aliases]
        if sample.response is None or is_blank(sample.response):
            return Assessment(sample.id, self.name, 0.0)
        texts = (*right, *sample.incorrect_answers)
        found = await all_of(
            models.compare(sample.response, text, sample.question) for text in texts
        )
        score = truth_of(found[: len(right)], found[len(right) :])
        return Assessment(sample.id, self.name, score)


def _of_models(read: Sequence[Sample], records: Records) -> list[Sample]:
    """Return the samples of named models; raises InputError where there are fewer than two."""
    _refuse(read, ("response", "model"), records)
    found = [one for one in read if one.response is not None and one.model is not None]
    models = {one.model for one in found if one.model is not None}
    if len(models) < 2:
        raise InputError(
            "expected answers of two models or more, identified by the field `model`; found "
            f"{', '.join(sorted(models)) or 'none'}"
        )
    return found


def _refuse(read: Sequence[Sample], fields: Sequence[str], records: Records) -> None:
    faults = []
    for sample in read:
        problems = [
            Problem(name, "is missing")
            for name in fields
            if getattr(sample, name) is None or getattr(sample, name) == ()
        ]
        if problems:
            faults.append(records.fault(sample, problems))
    records.refuse(faults)


@dataclass(frozen=True)
class _Table:
    """The places of answers by model and question, of the questions that all models share."""

    models: Sequence[str]
    questions: Sequence[str]
    places: Mapping[tuple[str, str], Sequence[int]]

    @classmethod
    def of(cls, kept: Sequence[Sample]) -> _Table:
        places: dict[tuple[str, str], list[int]] = {}
        for place, one in enumerate(kept):
            places.setdefault((one.model or "", one.question.strip()), []).append(place)
        models = list(dict.fromkeys(model for model, _ in places))
        questions = list(dict.fromkeys(question for _, question in places))
        shared = [q for q in questions if all((model, q) in places for model in models)]
        if len(models) < 2 or not shared:
            raise InputError("no question has a score for the answers of two models or more")
        return cls(models, shared, places)

    def means(self, values: Floats) -> Floats:
        """Return the mean value of each model's answers, shape (models, questions)."""
        return np.array(
            [
                [float(values[list(self.places[model, q])].mean()) for q in self.questions]
                for model in self.models
            ]
        )


def _accuracy(truth: Floats) -> Row:
    accuracies = 100 * truth.mean(axis=1)
    cells = [Cell(f"{one:.1f} %", {"value": float(one)}) for one in accuracies]
    return Row("true accuracy", [*cells, *(Cell("", {}) for _ in range(3))], {"rule": "truth"})


def _model_cells(found: RankedModels) -> list[Cell]:
    """Return the mean of each model with its interval, in the order of the input."""
    cells = {}
    for rank, place in enumerate(found.order):
        mean, interval = float(found.means[rank]), found.intervals[rank]
        text = f"{mean:.4f}" + (f" ({interval[0]:.4f} to {interval[1]:.4f})" if interval else "")
        values = {"mean": mean, "interval": interval and list(interval), "rank": rank + 1}
        cells[place] = Cell(text, values)
    return [cells[place] for place in sorted(cells)]


def _agreement_cells(found: RankedModels, models: Sequence[str]) -> list[Cell]:
    """Return the order and, where there is a truth, how far it is the true one."""
    order = [models[place] for place in found.order]
    unclear = sum(not one.apart for one in found.differences)
    note = f" ({unclear} pairs do not differ significantly)" if unclear else ""
    cells = [Cell(" > ".join(order) + note, {"order": order, "pairs_not_told_apart": unclear})]
    for name in ("kendall", "spearman"):
        value: Any = getattr(found.agreement, name, None)
        cells.append(Cell("–" if value is None else f"{value:.2f}", {"value": value}))
    return cells


def _ordered(kept: Sequence[Sample], truths: Floats) -> dict[str, list[Unit]]:
    """Return, for every two models, the questions on which the truth of their answers differs."""
    table = _Table.of(kept)
    first = {key: places[0] for key, places in table.places.items()}
    pairs = list(combinations(table.models, 2))
    found: dict[str, list[Unit]] = {}
    for one, other in pairs:
        name = f"{one} v. {other}" if len(pairs) <= MOST_PAIRS else "all pairs of models"
        units = found.setdefault(name, [])
        questions = dict.fromkeys(question for _, question in first)
        for number, question in enumerate(questions):
            places = [first[key] for key in ((one, question), (other, question)) if key in first]
            places.sort(key=lambda place: float(truths[place]))
            if len(places) == 2 and truths[places[0]] != truths[places[1]]:
                units.append(Unit.pairs(places[1:], places[:1], number))
    return found


def truth_of(to_right: ArrayLike, to_wrong: ArrayLike) -> float:
    """Return how much nearer an answer is to the nearest right answer than to a wrong one.

    Lin et al. 2022 (TruthfulQA), as Wei et al. 2024 use it for the ranking of samples.

    Args:
        to_right, to_wrong: similarities to the right and the wrong answers; at least one of each.

    Raises:
        ValueError: there is none of a kind.
    """
    right, wrong = np.asarray(to_right, dtype=float), np.asarray(to_wrong, dtype=float)
    if not (right.size and wrong.size):
        raise ValueError("expected a right and a wrong answer at least")
    return float(right.max() - wrong.max())
