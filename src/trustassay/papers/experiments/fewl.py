"""FEWL's comparisons of right and wrong answers and its rankings, by all variants of the score.

Wei et al. 2024, Tables 1 to 5 and 8 to 12. Length and chance are shown for comparison.

1. Measure the answers once (:mod:`~trustassay.papers.experiments.measuring`).
2. Compare the answers of each question under every variant: right ones with wrong ones, the best
   one with all others, those of two models.
3. Tabulate the shares that are won; models are also ranked by their means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.core.event_loop import gather_all
from trustassay.core.labels import read_single_label
from trustassay.core.metric import Assessment, Context, Metric, Need
from trustassay.core.sample import Problem, Sample, is_blank
from trustassay.input.records import InputError
from trustassay.papers.experiments.answers import (
    LabelledAnswer,
    RecordSelection,
    collect_answers,
    read_records,
)
from trustassay.papers.experiments.measuring import (
    FewlSetup,
    MeasuredAnswers,
    errors_of,
    execute_run,
    measure,
    scores_of,
    variants_of,
)
from trustassay.papers.experiments.results import (
    Cell,
    ExperimentResult,
    ExperimentRow,
    build_share_cells,
    note_left_out,
)
from trustassay.runs.folder import RunFolder
from trustassay.statistics import Floats
from trustassay.statistics.ranking import RankedModels, rank_models
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount, verb

LENGTH_RULE = "length: the shorter"
INTERVALS_NOTE = "Intervals: 95 %, over questions. A tie does not count as a win."
PAIRS_TABLES = (1, 2, 8, 10, 11, 12)
BEST_TABLES = (3, 9)
RANK_TABLES = (4,)
SAMPLES_TABLES = (5,)
"""The paper's tables that each experiment reproduces."""
MAX_KIND_COLUMNS = 6
"""Maximum number of kinds of wrong answers with a column each; more share one column."""
MAX_PAIR_COLUMNS = 10
"""Maximum number of pairs of models with a column each; more share one column."""


@dataclass(frozen=True)
class QuestionComparisons:
    """The comparisons of one question's answers, which are named by their indices."""

    first: NDArray[np.int64]
    """Answers that should score higher, shape (n,)."""
    second: NDArray[np.int64]
    """The answers that they are compared with, shape (n,)."""
    together: bool = False
    """Whether all comparisons must hold; else the share that holds counts."""
    number: int = -1
    """The number of the question if a column has several units of it; else -1."""

    @classmethod
    def pairs(cls, right: Sequence[int], wrong: Sequence[int], number: int = -1) -> Self:
        """Compare every right answer with every wrong one."""
        # All pairs at once: outcomes are then one subtraction for each rule.
        grid = np.array([(i, j) for i in right for j in wrong], dtype=np.int64)
        return cls(grid[:, 0], grid[:, 1], number=number)

    @classmethod
    def highest(cls, best: int, rivals: Sequence[int]) -> Self:
        """Compare one answer with all its rivals; it must beat every one."""
        return cls(np.full(len(rivals), best), np.array(rivals), together=True)

    def outcome(self, scores: Floats) -> tuple[float, float]:
        """Return the shares of comparisons that are won and that are tied, from 0 to 1."""
        differences = scores[self.first] - scores[self.second]
        # The smallest difference decides whether the best answer beats all rivals.
        if self.together:
            smallest = differences.min()
            return float(smallest > 0), float(smallest == 0)
        return float((differences > 0).mean()), float((differences == 0).mean())


@dataclass(frozen=True)
class RuleScores:
    """The scores of n answers under one rule."""

    name: str
    scores: Floats
    """Shape (n,)."""
    about: Mapping[str, Any]
    """What the rule is, in JSON."""
    tables: tuple[int, ...] = ()
    """The paper's tables that have the rule."""


def score_all_variants(
    measured: MeasuredAnswers, samples: Sequence[Sample], tables: Sequence[int]
) -> list[RuleScores]:
    """Return the rule of length, and every variant with every similarity.

    Args:
        tables: the paper's tables that the experiment reproduces.
    """
    # A trivial rule to compare with: the shorter answer wins.
    lengths = np.array([-float(len(sample.response or "")) for sample in samples])
    rules = [RuleScores(LENGTH_RULE, lengths, {"rule": "length"})]
    # The name of the similarity is only needed if there are several.
    has_several = len(measured.numbers) > 1
    for similarity, numbers in measured.numbers.items():
        # Answers may be fewer than the measured ones, and in another order.
        index_of_id = {name: index for index, name in enumerate(numbers.ids)}
        indices = [index_of_id[sample.id] for sample in samples]
        for variant in variants_of(numbers):
            name = f"{similarity}: {variant.name}" if has_several else variant.name
            about = {"similarity": similarity, **variant._asdict()}
            tables_here = tuple(table for table in variant.tables if table in tables)
            scores = scores_of(variant, numbers)[indices]
            rules.append(RuleScores(name, scores, about, tables_here))
    return rules


def build_outcome_rows(
    measured: MeasuredAnswers,
    samples: Sequence[Sample],
    columns: Mapping[str, Sequence[QuestionComparisons]],
    tables: Sequence[int],
    chance: Sequence[Cell],
    *,
    count: bool = False,
) -> list[ExperimentRow]:
    """Return a row for chance and for each rule: the share of each column's units that it wins."""
    rules = score_all_variants(measured, samples, tables)
    cells: list[list[Cell]] = []
    for units in columns.values():
        # Won and tied; a column of two models that never differ has no units.
        outcomes = np.array(
            [[unit.outcome(rule.scores) for unit in units] for rule in rules], dtype=float
        ).reshape(len(rules), len(units), 2)
        numbers = np.array([unit.number for unit in units], dtype=np.int64)
        cells.append(build_share_cells(outcomes[..., 0], outcomes[..., 1], numbers, count=count))
    rows = [ExperimentRow("chance", chance, {"rule": "chance"})]
    for index, rule in enumerate(rules):
        rows.append(
            ExperimentRow(rule.name, [column[index] for column in cells], rule.about, rule.tables)
        )
    return rows


def build_result(
    experiment: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[ExperimentRow],
    measured: MeasuredAnswers,
    setup: FewlSetup,
    notes: Sequence[str],
) -> ExperimentResult:
    """Return the result with the notes and settings that all experiments of FEWL share."""
    first = next(iter(measured.numbers.values()))
    # The list can be long if each sample names its own references.
    names = ", ".join(first.names[:10]) + (" ..." if len(first.names) > 10 else "")
    all_notes = [
        *notes,
        f"References: {names}. `single` is {setup.single or 'the first reference that answered'}.",
        *measured.missing,
        *note_left_out(measured.left_out, "answer"),
    ]
    settings = {
        "similarities": list(setup.similarities),
        "single": setup.single,
        "seed": setup.options.seed,
        **{
            name: getattr(setup.metric, name)
            for name in ("temperature", "neighbours", "max_similarity", "pairs", "answers")
        },
    }
    return ExperimentResult(
        experiment, title, columns, rows, all_notes, measured.left_out, settings
    )


# right and wrong answers


async def compare_pairs(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Compare the right answers to a question with its wrong ones, kind by kind.

    A question counts once in a column; with several pairs, by the share that the right answer wins.
    For a question without responses the best answer is compared with the first wrong one.

    Raises:
        InputError, BadInputError: the input cannot be read, or has no right and wrong answers.
        As :func:`~trustassay.papers.experiments.measuring.measure`.
    """
    measured, scored = await _measure_answers(source, out, setup, records, every=False)
    columns = pair_by_kind(scored)
    # A coin would win half of the comparisons.
    chance = [Cell("50.0", {"value": 50.0}) for _ in columns]
    rows = build_outcome_rows(
        measured, [answer.sample for answer in scored], columns, PAIRS_TABLES, chance
    )
    title = "Right answers that score strictly higher than wrong ones, in %"
    return build_result("fewl-pairs", title, list(columns), rows, measured, setup, [INTERVALS_NOTE])


async def count_best_answers(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection
) -> ExperimentResult:
    """Count the questions whose best answer scores strictly higher than all others.

    Raises:
        As :func:`compare_pairs`.
    """
    measured, scored = await _measure_answers(source, out, setup, records, every=True)
    units, chances = compare_best_answers(scored)
    share = 100 * float(np.mean(chances))
    chance = Cell(
        f"{sum(chances):.1f} of {len(units)} ({share:.1f} %)",
        {"value": share, "count": sum(chances), "n": len(units)},
    )
    columns = {"best answer highest": units}
    rows = build_outcome_rows(
        measured,
        [answer.sample for answer in scored],
        columns,
        BEST_TABLES,
        [chance],
        count=True,
    )
    title = "Questions whose best answer scores strictly highest"
    return build_result("fewl-best", title, list(columns), rows, measured, setup, [INTERVALS_NOTE])


async def _measure_answers(
    source: Path, out: Path, setup: FewlSetup, records: RecordSelection, *, every: bool
) -> tuple[MeasuredAnswers, list[LabelledAnswer]]:
    """Measure the answers of an input; return those that were measured with every similarity."""
    answers = collect_answers(read_records(source, records), records, every=every)
    samples = [answer.sample for answer in answers]
    # Faults are reported by their position in the input, not in the experiment's own samples.
    with records.report_positions(samples):
        measured = await measure(samples, setup, out)
    return measured, [answer for answer in answers if answer.sample.id not in measured.left_out]


def pair_by_kind(answers: Sequence[LabelledAnswer]) -> dict[str, list[QuestionComparisons]]:
    """Return by kind of wrong answer the questions that have right answers and those.

    Raises:
        InputError: there is no such question.
    """
    # In the order in which they occur in the input.
    kinds: Sequence[str | None] = list(
        dict.fromkeys(answer.kind for answer in answers if not answer.right)
    )
    if len(kinds) > MAX_KIND_COLUMNS:
        kinds = [None]
    columns = {
        f"right > {kind or 'wrong'}": units
        for kind in kinds
        if (units := _pair_right_and_wrong(answers, kind))
    }
    if not columns:
        raise InputError("no question has scores for both a right and a wrong answer")
    return columns


def compare_best_answers(
    answers: Sequence[LabelledAnswer],
) -> tuple[list[QuestionComparisons], list[float]]:
    """Return the questions with a best answer and others, and the chance that each is won.

    Raises:
        InputError: there is no such question.
    """
    units, chances = [], []
    for indices in _group_by_question(answers):
        best_indices = [index for index in indices if answers[index].best]
        rivals = [index for index in indices if not answers[index].best]
        if best_indices and rivals:
            # Questions with a best answer but no other one cannot be lost, so they are left out.
            units.append(QuestionComparisons.highest(best_indices[0], rivals))
            # By chance each of the answers is the highest equally often.
            chances.append(1 / len(indices))
    if not units:
        raise InputError("no question has scores for both its best answer and another one")
    return units, chances


def _group_by_question(answers: Sequence[LabelledAnswer]) -> list[list[int]]:
    indices_of_question: dict[int, list[int]] = {}
    for index, answer in enumerate(answers):
        indices_of_question.setdefault(answer.question, []).append(index)
    return list(indices_of_question.values())


def _pair_right_and_wrong(
    answers: Sequence[LabelledAnswer], kind: str | None
) -> list[QuestionComparisons]:
    """Return the questions with right answers and wrong ones of a kind (``None``: any kind)."""
    units = []
    for indices in _group_by_question(answers):
        right = [index for index in indices if answers[index].right]
        wrong = [
            index
            for index in indices
            if not answers[index].right and kind in (None, answers[index].kind)
        ]
        if right and wrong:
            units.append(QuestionComparisons.pairs(right, wrong))
    return units


# models


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
    labels = [read_single_label(sample.label) for sample in scored_samples]
    truth = None
    if all(label is not None for label in labels):
        # Right is a label above 0, as everywhere in these experiments.
        truth = table.means(np.array([float((label or 0) > 0) for label in labels]))
    rows = [] if truth is None else [_build_accuracy_row(truth)]
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
        f"{amount(len(table.questions), 'question')}, answered by all {len(table.models)} models. "
        f"A random order is the true one once in {order_count:,} times.",
        INTERVALS_NOTE,
    ]
    # A model without any score would silently vanish from the table.
    if unscored_models := sorted({sample.model or "" for sample in answers} - set(table.models)):
        notes.append(f"Models without a scored answer: {', '.join(unscored_models)}.")
    if truth is None:
        notes.append("True accuracy is not computed: not all answers have a label.")
    columns = [*table.models, "order", "Kendall's tau", "Spearman's rho"]
    title = "Mean scores of models, and their order compared with true accuracy"
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
        failed = errors_of(assessments.values())
        scored_samples = [sample for sample in scored_samples if sample.id not in failed]
        # A sample whose truth is unknown is left out of the following similarities too.
        measured = replace(measured, left_out={**measured.left_out, **failed})
        truths = np.array([assessments[sample.id].score for sample in scored_samples])
        units = _pair_models(scored_samples, truths)
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
    title = "Pairs of two models' answers that the score orders as TruthfulQA's metric does, in %"
    notes = ["Questions for which TruthfulQA's metric ties are not counted.", INTERVALS_NOTE]
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
            "expected answers by two or more models (field `model`); found "
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
            raise InputError("no question has scored answers by two or more models")
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
    do = verb(unclear, "does", "do")
    note = f" ({amount(unclear, 'pair')} {do} not differ significantly)" if unclear else ""
    cells = [Cell(" > ".join(order) + note, {"order": order, "pairs_not_told_apart": unclear})]
    # Without labels there is no agreement, and both cells are empty.
    for name in ("kendall", "spearman"):
        value: Any = getattr(ranking.agreement, name, None)
        cells.append(Cell("–" if value is None else f"{value:.2f}", {"value": value}))
    return cells


def _pair_models(samples: Sequence[Sample], truths: Floats) -> dict[str, list[QuestionComparisons]]:
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
        raise ValueError("expected at least one right and one wrong answer")
    return float(right.max() - wrong.max())
