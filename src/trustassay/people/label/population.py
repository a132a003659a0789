"""The population of a label plan: its answers, units, features and labels, and estimated figures.

Also estimates how many more labels a goal needs.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trustassay.core.json_form import JsonForm, fields_as_json
from trustassay.errors import did_you_mean
from trustassay.input.journal import is_journal, read_journal
from trustassay.input.labels import UnreadLabels
from trustassay.input.records import InputError
from trustassay.people.label.plan import AnswerKey
from trustassay.people.study.answers import ScoreColumn, StudyAnswers, read_answers
from trustassay.people.study.labels import LabelSource, check_two_classes, read_answer_labels
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.active import (
    ActiveEstimate,
    FigureTarget,
    Labels,
    auroc_target,
    mean_target,
)
from trustassay.statistics.correlation import ranks
from trustassay.statistics.distributions import normal_quantile
from trustassay.statistics.intervals import (
    MIN_UNITS,
    Interval,
    mean_interval,
    reason_too_few,
    t_interval,
)
from trustassay.text.numbers import amount

Unit = Literal["question", "answer"]


@dataclass(frozen=True)
class Population:
    """All answers that the estimates are about."""

    answers: StudyAnswers
    unit: Unit
    """What a unit is."""
    remarks: Sequence[str] = ()
    """Messages for the user."""

    @cached_property
    def units(self) -> Places:
        """The number of each answer's question, or of the answer itself, shape (N,)."""
        # With "answer" as the unit, every answer is its own unit.
        each = np.arange(len(self.answers.rows))
        return self.answers.questions if self.unit == "question" else each

    @property
    def keys(self) -> list[AnswerKey]:
        """The key of each answer in plans and ratings."""
        return [(row.id, row.model) for row in self.answers.rows]

    @property
    def models(self) -> list[str]:
        """The models that wrote answers, in the order of the runs."""
        return list(dict.fromkeys(row.model for row in self.answers.rows if row.model))

    @property
    def clustered(self) -> bool:
        """Whether a question has several answers."""
        return len(np.unique(self.answers.questions)) < len(self.answers.rows)

    @property
    def digest(self) -> str:
        """A digest that changes with the answers."""
        # Sorted, so that the order of runs does not matter; the number of words notices edited
        # answers.
        rows = sorted((row.id, row.model, row.question, row.words) for row in self.answers.rows)
        return hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def of_model(self, name: str) -> Bools:
        """Which answers were written by a model, shape (N,)."""
        return np.array([row.model == name for row in self.answers.rows])

    def column(self, name: str) -> ScoreColumn:
        """Return a score by its name; raises InputError if the runs have none of that name."""
        by_name = {column.name: column for column in self.answers.columns}
        if name not in by_name:
            raise InputError(did_you_mean("score", name, by_name))
        return by_name[name]

    def features(self, names: Sequence[str]) -> Floats:
        """Return the normal scores of the ranks of k scores, shape (N, k); 0 where one is
        missing."""
        columns = [_compute_normal_scores(self.column(name).values) for name in names]
        empty = np.empty((len(self.answers.rows), 0))
        return np.stack(columns, axis=1) if columns else empty


def read_population(
    runs: Sequence[Path], source: LabelSource, unit: Unit, models: Sequence[str]
) -> Population:
    """Read the answers of runs.

    Args:
        runs: folders of finished runs.
        source: where the labels are.
        unit: what is drawn together.
        models: if any, keep only their answers, to questions that all of them answered.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: there is no answer, two cannot be distinguished, or a model has none.
    """
    population = Population(read_answers(runs, source.fields), unit)
    if not population.answers.rows:
        raise InputError(f"{', '.join(map(str, runs))}: has no answers")
    if models:
        population = keep_questions_of_all(population, models)
    check_distinct(population.keys)
    return population


def check_distinct(keys: Sequence[AnswerKey]) -> None:
    """Raise InputError if ratings, which name answers by these keys, could mean several."""
    for (name, _), count in Counter(keys).items():
        if count > 1:
            raise InputError(
                f"two answers have the id {name[:40]!r} and the same model, so ratings cannot "
                "distinguish them; give samples a `model`, or name one run"
            )


def keep_questions_of_all(population: Population, models: Sequence[str]) -> Population:
    """Keep only the answers of these models, to questions that all of them answered.

    Raises:
        InputError: a model has no answer, or the models share no question.
    """
    answers = population.answers
    models_of_answers = {row.model for row in answers.rows}
    for name in models:
        if name not in models_of_answers:
            raise InputError(did_you_mean("model", name, models_of_answers))
    # A comparison of models is fair only on questions that all of them answered.
    pairs = {(row.question, row.model) for row in answers.rows}
    places_kept = [
        place
        for place, row in enumerate(answers.rows)
        if row.model in models and all((row.question, model) in pairs for model in models)
    ]
    if not places_kept:
        raise InputError(f"no question was answered by both {' and '.join(models)}")
    # Places change, since rows are removed.
    new = {old: place for place, old in enumerate(places_kept)}
    of_run = {
        run: [new[place] for place in places if place in new]
        for run, places in answers.places_by_run.items()
    }
    columns = [replace(column, values=column.values[places_kept]) for column in answers.columns]
    rows = [answers.rows[at] for at in places_kept]
    every = sum(row.model in models for row in answers.rows)
    remarks = []
    if left_out := every - len(rows):
        remarks.append(f"left out, because only one model answered: {amount(left_out, 'answer')}")
    answers = replace(answers, rows=rows, columns=columns, places_by_run=of_run)
    return Population(answers, population.unit, remarks)


def _compute_normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks of values; ties share the mean rank; NaN gives 0."""
    result = np.zeros(len(values))
    is_defined = ~np.isnan(values)
    n = int(is_defined.sum())
    if n:
        # Division by n + 1 keeps the quantiles finite.
        shares = ranks(values[is_defined]) / (n + 1)
        result[is_defined] = [normal_quantile(share) for share in shares.tolist()]
    return result


@dataclass(frozen=True)
class RightLabels:
    """The labels of a population, as right and wrong."""

    values: Floats
    """1 for right, 0 for wrong, NaN where there is none, shape (N,)."""
    tied: Bools
    """The answers without a label since raters are divided equally, shape (N,)."""
    unread: Mapping[str, UnreadLabels]
    """The labels that cannot be read, by the field or file that has any."""

    @property
    def notes(self) -> list[str]:
        """What is left out of each field and file."""
        return [unread.describe(f"labels {name}") for name, unread in self.unread.items()]


def read_labels(population: Population, source: LabelSource) -> RightLabels:
    """Read the labels of all answers.

    Of several raters the majority decides; there is no label where they are divided equally.

    Raises:
        InputError: labels cannot be read as right and wrong, or files disagree.
    """
    result = np.full(len(population.answers.rows), math.nan)
    tied = np.zeros(len(result), dtype=bool)
    sources = [
        (name, replace(source, fields=[name], ratings=(), columns={})) for name in source.fields
    ]
    for path in source.ratings:
        # A journal without a single rating would be refused as empty, so it is skipped.
        journal = (
            read_journal(path).select_rubric(source.columns.get("rating"))
            if is_journal(path)
            else None
        )
        states = [] if journal is None else journal.last_states()
        if journal is None or any(line.get("rating") is not None for _, line in states):
            sources.append((str(path), replace(source, fields=(), ratings=[path])))
    labels_by_source = [
        (name, read_answer_labels(population.answers, part)[0][-1]) for name, part in sources
    ]
    for name, label in labels_by_source:
        check_two_classes(replace(label, name=name))
        values = label.values
        both = ~np.isnan(values) & ~np.isnan(result)
        # Two sources may label an answer only if they agree.
        if (values[both] != result[both]).any():
            place = int(np.flatnonzero(both)[values[both] != result[both]][0])
            raise InputError(
                f"{name}: {population.answers.rows[place].id[:40]!r} has a different label in "
                "another source"
            )
        result = np.where(np.isnan(values), result, values)
        if label.tied is not None:
            tied |= label.tied
    unread = {name: label.unread for name, label in labels_by_source if label.unread}
    return RightLabels(result, tied & np.isnan(result), unread)


FigureKind = Literal["share", "share of", "difference", "auroc", "auroc difference"]
MIN_LABELS_OF_CLASS = 10
DETECTION_POWER = 0.8
INTERVAL_LEVEL = 0.95


@dataclass(frozen=True)
class WantedFigure:
    """A figure of all answers that labels are to estimate."""

    kind: FigureKind = "share"
    names: tuple[str, ...] = ()
    """The model or score that it is about; two for a difference."""

    @property
    def title(self) -> str:
        """The name of the figure for people."""
        what = "AUROC" if "auroc" in self.kind else "right answers"
        return f"{what}: {' – '.join(self.names)}" if self.names else what

    @property
    def signed(self) -> bool:
        """Whether it is a difference, from -1 to 1, instead of a share, from 0 to 1."""
        return "difference" in self.kind

    def target(self, population: Population, labels: Floats) -> FigureTarget | None:
        """Return the figure of labels of all answers, known or expected; ``None`` if undefined."""
        result: list[FigureTarget | None]
        if "auroc" in self.kind:
            scores = [population.column(name).values for name in self.names]
            # Both scores are compared on the same answers.
            missing = np.isnan(np.stack(scores)).any(axis=0)
            result = [auroc_target(labels, np.where(missing, np.nan, each)) for each in scores]
        else:
            among = [population.of_model(name) for name in self.names]
            among = among or [np.ones(len(labels), dtype=bool)]
            result = [mean_target(labels, each) for each in among]
        defined_targets = [target for target in result if target is not None]
        if len(defined_targets) < len(result):
            return None
        return (
            defined_targets[0] - defined_targets[1]
            if len(defined_targets) == 2
            else defined_targets[0]
        )


@dataclass(frozen=True)
class LabelFigure:
    """The estimate of a figure from labels."""

    figure: WantedFigure
    value: float | None
    interval: Interval | None = None
    """The 95 % interval for the answers at hand."""
    beyond: Interval | None = None
    """The interval for questions like these, of which these are a sample."""
    evenly: Interval | None = None
    """The interval that equally many labels would give, drawn evenly and without scores."""
    without: str = ""
    """Why there is no interval."""
    estimate: ActiveEstimate | None = None
    """The estimate with its variances."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        numbers = fields_as_json(self, "value", "interval", "beyond", "evenly", "without")
        return {"figure": self.figure.kind, "of": list(self.figure.names), **numbers}


@dataclass(frozen=True)
class LabelNeed(JsonForm):
    """How many more labels a goal needs."""

    goal: str
    """The goal, in words."""
    more: int | None
    """0 where it is reached; ``None`` where all answers together would not reach it."""
    evenly: int | None
    """The same for answers drawn evenly, without scores."""


def estimate_figure(
    figure: WantedFigure, population: Population, labels: Labels, labels_given: Floats
) -> LabelFigure:
    """Estimate a figure with its intervals.

    Args:
        figure: what to estimate.
        population: the answers.
        labels: the labels with the predictions of the others.
        labels_given: the labels of people only, NaN where there is none, shape (N,).
    """
    target = figure.target(population, labels.estimates)
    if target is None:
        return LabelFigure(figure, None, without="too few labels of one kind")
    result = labels.estimate(target)
    # Weighted estimates can leave the range by a little.
    value = float(np.clip(target.value, -1.0 if figure.signed else 0.0, 1.0))
    if result is None:
        return LabelFigure(figure, None, without="fewer than two drawn units have labels")
    known_labels = labels_given[~np.isnan(labels_given)]
    # An AUROC depends on the rarer class.
    rarer = int(min(known_labels.sum(), len(known_labels) - known_labels.sum()))
    reason = reason_too_few(f"rated {population.unit}s", result.draws, MIN_UNITS)
    if "auroc" in figure.kind:
        reason = reason or reason_too_few("labels of one kind", rarer, MIN_LABELS_OF_CLASS)
    if reason:
        return LabelFigure(figure, value, without=reason, estimate=result)
    interval = interval_at(figure, result, result.variance, result.effective)
    beyond = None
    # Single answers as units say nothing about the variance between questions.
    if population.unit == "question" or not population.clustered:
        beyond = interval_at(figure, result, result.variance + result.between, result.effective)
    even = interval_at(figure, result, result.variance_at(result.draws, evenly=True), result.draws)
    # The labels at hand bound the share: known right and wrong answers stay what they are.
    if figure.kind == "share":
        right, wrong = (float((labels_given == kind).sum() / len(labels_given)) for kind in (1, 0))
        interval = max(interval[0], right), min(interval[1], 1 - wrong)
    return LabelFigure(figure, value, interval, beyond, even, "", result)


def interval_at(
    figure: WantedFigure, result: ActiveEstimate, variance: float, draws: float
) -> Interval:
    """Return the interval of a figure with this variance, estimated from this number of draws."""
    n = max(2, int(draws))
    if figure.signed:
        low, high = t_interval(result.value, variance, n, INTERVAL_LEVEL) or (
            result.value,
            result.value,
        )
        return max(-1.0, low), min(1.0, high)
    return mean_interval(min(max(result.value, 0.0), 1.0), variance, n, INTERVAL_LEVEL)


def count_needed_labels(
    result: LabelFigure, width: float, labels: int, *, beyond: bool
) -> list[LabelNeed]:
    """Estimate how many more labels make the interval no wider than ``width``.

    For a difference, also how many detect it with a power of 80 % at the 5 % level, if it is as
    large as its estimate. Empty where the figure has no interval.

    Args:
        result: the figure as estimated so far.
        width: the wanted width of the interval.
        labels: the number of labels so far.
        beyond: whether the interval for questions like these is meant.
    """
    estimate, now = result.estimate, result.beyond if beyond else result.interval
    if estimate is None or result.without:
        return []
    # A draw may hold several answers, so draws are converted to labels.
    added, each = estimate.between if beyond else 0.0, labels / estimate.draws
    # The usual sample size formula: z of the level plus z of the power, in standard errors.
    reach = normal_quantile((1 + INTERVAL_LEVEL) / 2) + normal_quantile(DETECTION_POWER)

    def is_narrow(variance: float, draws: float) -> bool:
        low, high = interval_at(result.figure, estimate, variance, draws)
        return high - low <= width

    def is_detected(variance: float, _draws: float) -> bool:
        return abs(estimate.value) >= reach * math.sqrt(variance)

    def estimate_need(
        goal: str, reached: bool, enough: Callable[[float, float], bool]
    ) -> LabelNeed:
        if reached:
            return LabelNeed(goal, 0, None)
        more: list[int | None] = []
        for evenly in (False, True):
            draws = estimate.draws_for(lambda var, n: enough(var + added, n), evenly=evenly)
            # More draws than there are units left.
            never = draws > estimate.draws + estimate.units_left
            more.append(None if never else max(0, round((draws - estimate.draws) * each)))
        return LabelNeed(goal, *more)

    label_needs = [
        estimate_need(
            f"interval of width {width:g}", bool(now and now[1] - now[0] <= width), is_narrow
        )
    ]
    if result.figure.signed:
        goal = f"detection of a difference of {abs(estimate.value):.3f} (power 80 %)"
        label_needs.append(
            estimate_need(goal, bool(now and not now[0] <= 0 <= now[1]), is_detected)
        )
    return label_needs
