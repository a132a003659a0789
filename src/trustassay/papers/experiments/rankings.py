"""The FEWL paper's rankings: models by mean score, and single answers of two models.

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

from trustassay.core.event_loop import gather_all
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.core.sample import Problem, Sample, is_blank
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import RecordSelection, read_records
from trustassay.papers.experiments.fewl import (
    INTERVALS_NOTE,
    QuestionComparisons,
    build_outcome_rows,
    build_result,
    score_all_variants,
)
from trustassay.papers.experiments.measuring import FewlSetup, execute_run, measure
from trustassay.papers.experiments.results import Cell, ExperimentResult, ExperimentRow
from trustassay.runs.folder import RunFolder
from trustassay.statistics.ranking import RankedModels, rank_models
from trustassay.statistics.resampling import generator

Floats = NDArray[np.float64]
RANK_TABLES, SAMPLES_TABLES = (4,), (5,)
MAX_PAIR_COLUMNS = 10
"""Maximum number of pairs of models with a column each; more share one column."""


async def rank_models_by_score(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Rank models by their mean score over the questions for which all of them have a score.

    If all answers have a label, the order is compared with true accuracy, the share of labels above
    0.

    Raises:
        InputError: fewer than two models share a question with scores.
        As :func:`~trustassay.papers.experiments.fewl.compare_pairs`.
    """
    answers = _require_models(read_records(source, records), records)
    with records.report_positions(answers):
        measured = await measure(answers, setup, out)
    scored_samples = [sample for sample in answers if sample.id not in measured.left_out]
    # Only questions that all models answered: otherwise easy questions would favour some models.
    table = _AnswerTable.of(scored_samples)
    labels = [sample.label for sample in scored_samples]
    truth = None
    if all(label is not None for label in labels):
        # Right is a label above 0, as everywhere in these experiments.
        truth = table.means(np.array([float((label or 0) > 0) for label in labels]))
    rows = []
    if truth is not None:
        rows.append(_build_accuracy_row(truth))
    for rule in score_all_variants(measured, scored_samples, RANK_TABLES):
        # The same numbers for every rule, so that equal scores get equal intervals.
        rng = generator(setup.options.seed, "experiment", "rank")
        scores = table.means(rule.scores)
        ranking = rank_models(scores, rng, truth=truth)
        cells = _build_model_cells(ranking) + _build_agreement_cells(ranking, table.models)
        rows.append(ExperimentRow(rule.name, cells, rule.about, rule.tables))
    # The chance of the true order, to read the agreement by.
    order_count = math.factorial(len(table.models))
    notes = [
        f"{len(table.questions):,} questions that all {len(table.models)} models answered. By "
        f"chance the order is the true one once in {order_count:,} times.",
        INTERVALS_NOTE,
    ]
    # A model without any score would silently vanish from the table.
    if unscored_models := sorted({sample.model or "" for sample in answers} - set(table.models)):
        notes.append(f"No answer has a score of: {', '.join(unscored_models)}.")
    if truth is None:
        notes.append("No true accuracy: not all answers have a label.")
    columns = [*table.models, "order", "Kendall's tau", "Spearman's rho"]
    title = "Mean scores of models, and their order against true accuracy"
    return build_result("fewl-rank", title, columns, rows, measured, setup, notes)


async def order_samples(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Count how often the score orders two models' answers as TruthfulQA's metric does.

    TruthfulQA's metric is the similarity to the nearest right answer less that to the nearest wrong
    one. Questions for which it is equal do not count; a tie of the scores counts as a miss.

    Raises:
        InputError: no two models share a question.
        BadInputError: a sample lacks right or wrong answers.
        As :func:`rank_models_by_score`.
    """
    answers = _require_models(read_records(source, records), records)
    _refuse_incomplete(answers, ("answers", "incorrect_answers"), records)
    answers = [sample for sample in answers if sample.answers and sample.incorrect_answers]
    with records.report_positions(answers):
        measured = await measure(answers, setup, out)
    rows: list[ExperimentRow] = []
    columns: list[str] = []
    for number, (similarity, numbers) in enumerate(measured.numbers.items(), 1):
        base = RunFolder(measured.runs[similarity])
        # Many of these similarities were already asked for by the run of the score.
        options = replace(setup.options, calls_from=base.calls_path)
        scored_samples = [sample for sample in answers if sample.id not in measured.left_out]
        # TruthfulQA's metric is a run like any other: stored, and continued after an interruption.
        folder = RunFolder(out / f"{number}-truth")
        assessments = await execute_run(
            scored_samples, TruthfulQAScore(), {"similarity": similarity}, folder, options
        )
        failed = {
            key: assessment.error
            for key, assessment in assessments.items()
            if assessment.error is not None
        }
        scored_samples = [sample for sample in scored_samples if sample.id not in failed]
        # A sample whose truth is unknown is left out of the following similarities too.
        measured = replace(measured, left_out={**measured.left_out, **failed})
        truths = np.array([assessments[sample.id].score for sample in scored_samples])
        units = _build_units(scored_samples, truths)
        # Later similarities may lack a pair; the columns are those of the first.
        columns = columns or list(units)
        block = replace(measured, numbers={similarity: numbers})
        chance = [Cell("50.0", {"value": 50.0}) for _ in columns]
        units_of_column = {name: units.get(name, []) for name in columns}
        for row in build_outcome_rows(
            block, scored_samples, units_of_column, SAMPLES_TABLES, chance
        ):
            name = f"{similarity}: {row.name}" if len(measured.numbers) > 1 else row.name
            rows.append(replace(row, name=name))
    title = "Pairs of two models' answers that the score orders as the TQA metric does, in %"
    notes = ["Questions whose answers have the same TQA metric do not count.", INTERVALS_NOTE]
    return build_result("fewl-samples", title, columns, rows, measured, setup, notes)


@dataclass(frozen=True)
class TruthfulQAScore(Metric):
    """Similarity to the nearest right answer less that to a wrong one (Lin et al. 2022)."""

    name: ClassVar[str] = "tqa"
    title: ClassVar[str] = "TruthfulQA's metric"

    @property
    def score_range(self) -> tuple[float, float]:
        """Differences of similarities from -1.1 to 1.1."""
        return -2.2, 2.2

    def needs(self) -> Sequence[Need]:
        """A similarity."""
        return [Need("compare")]

    async def assess(self, context: Context) -> Assessment:
        """Compare with all right and wrong answers; a blank answer scores 0."""
        sample, models = context.sample, context.models
        right = [alias for aliases in sample.answers for alias in aliases]
        if sample.response is None or is_blank(sample.response):
            return Assessment(sample.id, self.name, 0.0)
        texts = (*right, *sample.incorrect_answers)
        # Right and wrong answers in one gather, split below.
        similarities = await gather_all(
            models.compare(sample.response, text, sample.question) for text in texts
        )
        score = truthfulqa_score(similarities[: len(right)], similarities[len(right) :])
        return Assessment(sample.id, self.name, score)


def _require_models(samples: Sequence[Sample], records: RecordSelection) -> list[Sample]:
    """Return the samples with a response and a model; raise InputError below two models."""
    _refuse_incomplete(samples, ("response", "model"), records)
    answers = [
        answer for answer in samples if answer.response is not None and answer.model is not None
    ]
    models = {answer.model for answer in answers if answer.model is not None}
    if len(models) < 2:
        raise InputError(
            "expected answers of two models or more, identified by the field `model`; found "
            f"{', '.join(sorted(models)) or 'none'}"
        )
    return answers


def _refuse_incomplete(
    samples: Sequence[Sample], fields: Sequence[str], records: RecordSelection
) -> None:
    faults = []
    for sample in samples:
        problems = [
            Problem(name, "is missing")
            for name in fields
            if getattr(sample, name) is None or getattr(sample, name) == ()
        ]
        if problems:
            faults.append(records.fault(sample, problems))
    records.refuse(faults)


@dataclass(frozen=True)
class _AnswerTable:
    """The indices of answers by model and question, for the questions that all models share."""

    models: Sequence[str]
    questions: Sequence[str]
    places: Mapping[tuple[str, str], Sequence[int]]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _AnswerTable:
        indices_of: dict[tuple[str, str], list[int]] = {}
        for index, sample in enumerate(samples):
            indices_of.setdefault((sample.model or "", sample.question.strip()), []).append(index)
        # In the order of the input.
        models = list(dict.fromkeys(model for model, _ in indices_of))
        questions = list(dict.fromkeys(question for _, question in indices_of))
        shared = [q for q in questions if all((model, q) in indices_of for model in models)]
        if len(models) < 2 or not shared:
            raise InputError("no question has a score for the answers of two models or more")
        return cls(models, shared, indices_of)

    def means(self, values: Floats) -> Floats:
        """Return the mean of ``values`` over a model's answers, shape (models, questions)."""
        return np.array(
            [
                [float(values[list(self.places[model, q])].mean()) for q in self.questions]
                for model in self.models
            ]
        )


def _build_accuracy_row(truth: Floats) -> ExperimentRow:
    accuracies = 100 * truth.mean(axis=1)
    cells = [Cell(f"{accuracy:.1f} %", {"value": float(accuracy)}) for accuracy in accuracies]
    return ExperimentRow(
        "true accuracy", [*cells, *(Cell("", {}) for _ in range(3))], {"rule": "truth"}
    )


def _build_model_cells(ranking: RankedModels) -> list[Cell]:
    """Return the mean of each model with its interval, in the order of the input."""
    cells = {}
    for rank, model_index in enumerate(ranking.order):
        mean, interval = float(ranking.means[rank]), ranking.intervals[rank]
        text = f"{mean:.4f}" + (f" ({interval[0]:.4f} to {interval[1]:.4f})" if interval else "")
        values = {"mean": mean, "interval": interval and list(interval), "rank": rank + 1}
        # `order` is by score; the columns of the table are in the order of the input.
        cells[model_index] = Cell(text, values)
    return [cells[model_index] for model_index in sorted(cells)]


def _build_agreement_cells(ranking: RankedModels, models: Sequence[str]) -> list[Cell]:
    """Return the order, and its agreement with the true order if that is known."""
    order = [models[index] for index in ranking.order]
    unclear = sum(not difference.apart for difference in ranking.differences)
    note = f" ({unclear} pairs do not differ significantly)" if unclear else ""
    cells = [Cell(" > ".join(order) + note, {"order": order, "pairs_not_told_apart": unclear})]
    # Without labels there is no agreement, and both cells are empty.
    for name in ("kendall", "spearman"):
        value: Any = getattr(ranking.agreement, name, None)
        cells.append(Cell("–" if value is None else f"{value:.2f}", {"value": value}))
    return cells


def _build_units(samples: Sequence[Sample], truths: Floats) -> dict[str, list[QuestionComparisons]]:
    """Return for every two models the questions for which the truth of their answers differs."""
    table = _AnswerTable.of(samples)
    first = {key: indices[0] for key, indices in table.places.items()}
    pairs = list(combinations(table.models, 2))
    units_of_pair: dict[str, list[QuestionComparisons]] = {}
    for first_model, second_model in pairs:
        name = (
            f"{first_model} v. {second_model}"
            if len(pairs) <= MAX_PAIR_COLUMNS
            else "all pairs of models"
        )
        units = units_of_pair.setdefault(name, [])
        questions = dict.fromkeys(question for _, question in first)
        for number, question in enumerate(questions):
            indices = [
                first[key]
                for key in ((first_model, question), (second_model, question))
                if key in first
            ]
            indices.sort(key=lambda index: float(truths[index]))
            if len(indices) == 2 and truths[indices[0]] != truths[indices[1]]:
                units.append(QuestionComparisons.pairs(indices[1:], indices[:1], number))
    return units_of_pair


def truthfulqa_score(to_right: ArrayLike, to_wrong: ArrayLike) -> float:
    """Return how much nearer an answer is to its nearest right than to its nearest wrong answer.

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
