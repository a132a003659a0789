"""The answers of which a figure is wanted: their units, what predicts their labels, the labels that
people gave so far, figures of all answers, and how many labels more these need."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trustassay.data.journal import is_journal, read_journal
from trustassay.data.records import InputError
from trustassay.errors import did_you_mean
from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.active import Estimate, Labels, Target, auroc_target, mean_target
from trustassay.statistics.correlation import ranks
from trustassay.statistics.distributions import normal_quantile
from trustassay.statistics.intervals import FEWEST, Interval, mean_interval, t_interval, too_few
from trustassay.workflows.json_form import JsonForm, fields_as_json
from trustassay.workflows.label.plan import AnswerKey
from trustassay.workflows.study.answers import Answers, Column, read_answers
from trustassay.workflows.study.labels import LabelOptions, check_two_classes, labelled

Unit = Literal["question", "answer"]


@dataclass(frozen=True)
class LabelSource:
    """Where labels are: files of ratings, or a field of the samples; and which of them mean right.

    at_least: the number from which on a label means right. weighted: whether they may be of answers
    that ``label`` chose with unequal probabilities. Others as of ``study``.
    """

    ratings: Sequence[Path] = ()
    field: str = ""
    at_least: float | None = None
    positive: Sequence[str] = ()
    columns: Mapping[str, str] | None = None
    weighted: bool = True


@dataclass(frozen=True)
class Population:
    """All answers that are asked about.

    units: the number of each answer's question, or its own. remarks: for the user.
    """

    answers: Answers
    units: Places
    unit: Unit
    remarks: Sequence[str] = ()

    @property
    def keys(self) -> list[AnswerKey]:
        """How each answer is named in plans and ratings."""
        return [(row.id, row.model) for row in self.answers.rows]

    @property
    def models(self) -> list[str]:
        """The models that are named for answers, in the order of the runs."""
        return list(dict.fromkeys(row.model for row in self.answers.rows if row.model))

    @property
    def clustered(self) -> bool:
        """Whether a question has several answers."""
        return len(np.unique(self.answers.questions)) < len(self.answers.rows)

    @property
    def digest(self) -> str:
        """What changes with the answers."""
        rows = sorted((row.id, row.model, row.question, row.words) for row in self.answers.rows)
        return hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def of_model(self, name: str) -> Bools:
        """Which answers are a model's."""
        return np.array([row.model == name for row in self.answers.rows])

    def column(self, name: str) -> Column:
        """Return a score by its name; InputError: the runs have none of that name."""
        by_name = {column.name: column for column in self.answers.columns}
        if name not in by_name:
            raise InputError(did_you_mean("score", name, by_name))
        return by_name[name]

    def features(self, names: Sequence[str]) -> Floats:
        """Return normal scores of ranks, shape (N, k), which have no scale; 0 if missing."""
        columns = [_compute_normal_scores(self.column(name).values) for name in names]
        empty = np.empty((len(self.answers.rows), 0))
        return np.stack(columns, axis=1) if columns else empty


def read_population(
    runs: Sequence[Path], source: LabelSource, unit: Unit, models: Sequence[str]
) -> Population:
    """Read the answers of runs; ``models``: only those of these, to questions that all answered.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: there is no answer, two cannot be distinguished, or a model has none.
    """
    answers = read_answers(runs, [source.field] if source.field else [])
    if not answers.rows:
        raise InputError(f"{', '.join(map(str, runs))}: no answer is in it")
    remarks = []
    if models:
        every = sum(row.model in models for row in answers.rows)
        answers = _keep_answered_by_all(answers, models)
        if left_out := every - len(answers.rows):
            remarks.append(f"left out, since only one of the models answered: {left_out:,}")
    counts = Counter((row.id, row.model) for row in answers.rows)
    for (name, _), count in counts.items():
        if count > 1:
            raise InputError(
                f"two answers have the id {name[:40]!r} and the same model, so ratings cannot "
                "distinguish them; give samples a `model`, or name one run"
            )
    each = np.arange(len(answers.rows))
    return Population(answers, answers.questions if unit == "question" else each, unit, remarks)


def _keep_answered_by_all(answers: Answers, models: Sequence[str]) -> Answers:
    """Return only the answers of these models, to questions that all of them answered."""
    models_of_answers = {row.model for row in answers.rows}
    for name in models:
        if name not in models_of_answers:
            raise InputError(did_you_mean("model", name, models_of_answers))
    pairs = {(row.question, row.model) for row in answers.rows}
    places_kept = [
        place
        for place, row in enumerate(answers.rows)
        if row.model in models and all((row.question, model) in pairs for model in models)
    ]
    if not places_kept:
        raise InputError(f"no question was answered by {' and '.join(models)}")
    new = {old: place for place, old in enumerate(places_kept)}
    of_run = {
        run: [new[place] for place in places if place in new]
        for run, places in answers.of_run.items()
    }
    columns = [
        replace(column, values=column.values[list(places_kept)]) for column in answers.columns
    ]
    return replace(
        answers, rows=[answers.rows[at] for at in places_kept], columns=columns, of_run=of_run
    )


def _compute_normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the values' ranks, ties at the mean of theirs; 0 for NaN."""
    result = np.zeros(len(values))
    is_defined = ~np.isnan(values)
    n = int(is_defined.sum())
    if n:
        shares = ranks(values[is_defined]) / (n + 1)
        result[is_defined] = [normal_quantile(share) for share in shares.tolist()]
    return result


def read_labels(population: Population, source: LabelSource) -> Floats:
    """Return the labels, 1 for right and 0 for wrong, NaN where there is none, shape (N,).

    Several raters make up one label, what most of them say; NaN where they are divided.

    Raises:
        InputError: labels cannot be read as right and wrong, or files disagree.
    """
    result = np.full(len(population.answers.rows), math.nan)
    options = LabelOptions(
        positive=source.positive, weighted=source.weighted, at_least=source.at_least
    )
    labels_by_source = []
    if source.field:
        labels_by_source.append(
            (source.field, labelled(population.answers, [source.field], options)[0][-1])
        )
    columns = dict(source.columns or {})
    for path in source.ratings:
        journal = read_journal(path).of_rubric(columns.get("rating")) if is_journal(path) else None
        states = [] if journal is None else journal.last_states()
        if journal is None or any(line.get("rating") is not None for _, line in states):
            options_of_file = replace(options, ratings=path, columns=columns)
            labels_by_source.append(
                (str(path), labelled(population.answers, [], options_of_file)[0][-1])
            )
    for name, label in labels_by_source:
        check_two_classes(replace(label, name=name))
        values = label.values
        both = ~np.isnan(values) & ~np.isnan(result)
        if (values[both] != result[both]).any():
            place = int(np.flatnonzero(both)[values[both] != result[both]][0])
            raise InputError(
                f"{name}: {population.answers.rows[place].id[:40]!r} has another label elsewhere"
            )
        result = np.where(np.isnan(values), result, values)
    return result


FigureKind = Literal["share", "share of", "difference", "auroc", "auroc difference"]
FEWEST_OF_CLASS = 10
POWER = 0.8
LEVEL = 0.95


@dataclass(frozen=True)
class Figure:
    """What is asked of the answers; ``names``: a model or a score, of a difference two."""

    kind: FigureKind = "share"
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is called."""
        what = "AUROC" if "auroc" in self.kind else "share right"
        return f"{what}: {' – '.join(self.names)}" if self.names else what

    @property
    def signed(self) -> bool:
        """Whether it is a difference, from -1 to 1, and not from 0 to 1."""
        return "difference" in self.kind

    def target(self, population: Population, labels: Floats) -> Target | None:
        """Return the figure of labels, known or expected, of all answers."""
        result: list[Target | None]
        if "auroc" in self.kind:
            scores = [population.column(name).values for name in self.names]
            missing = np.isnan(np.stack(scores)).any(axis=0)  # both of the same answers
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
    """A figure as labels tell it. ``beyond`` is the interval for questions like these, of which
    these are a sample; ``evenly`` what as many labels of answers drawn evenly would give without
    scores. ``without`` says why there is no interval.
    """

    figure: Figure
    value: float | None
    interval: Interval | None = None
    beyond: Interval | None = None
    evenly: Interval | None = None
    without: str = ""
    estimate: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        numbers = fields_as_json(self, "value", "interval", "beyond", "evenly", "without")
        return {"figure": self.figure.kind, "of": list(self.figure.names), **numbers}


@dataclass(frozen=True)
class Need(JsonForm):
    """How many labels more a goal takes: 0 where it is reached, ``None`` where all answers together
    do not reach it. ``evenly``: the same of answers drawn evenly, without scores.
    """

    goal: str
    more: int | None
    evenly: int | None


def measured(
    figure: Figure, population: Population, labels: Labels, labels_given: Floats
) -> LabelFigure:
    """Return a figure with its intervals. told: the labels that people gave, NaN where none."""
    target = figure.target(population, labels.estimates)
    if target is None:
        return LabelFigure(figure, None, without="too few labels of one kind")
    result = labels.estimate(target)
    value = float(np.clip(target.value, -1.0 if figure.signed else 0.0, 1.0))
    if result is None:
        return LabelFigure(figure, None, without="fewer than two drawn units have labels")
    known_labels = labels_given[~np.isnan(labels_given)]
    rarer = int(min(known_labels.sum(), len(known_labels) - known_labels.sum()))
    reason = too_few(f"rated {population.unit}s", result.draws, FEWEST)
    if "auroc" in figure.kind:
        reason = reason or too_few("labels of one kind", rarer, FEWEST_OF_CLASS)
    if reason:
        return LabelFigure(figure, value, without=reason, estimate=result)
    interval = interval_at(figure, result, result.variance, result.effective)
    beyond = None
    if population.unit == "question" or not population.clustered:
        beyond = interval_at(figure, result, result.variance + result.between, result.effective)
    even = interval_at(figure, result, result.variance_at(result.draws, evenly=True), result.draws)
    if figure.kind == "share":  # what the labels at hand leave possible
        right, wrong = (float((labels_given == kind).sum() / len(labels_given)) for kind in (1, 0))
        interval = max(interval[0], right), min(interval[1], 1 - wrong)
    return LabelFigure(figure, value, interval, beyond, even, "", result)


def interval_at(figure: Figure, result: Estimate, variance: float, draws: float) -> Interval:
    """Return the interval that a figure has with this variance, from so many draws."""
    n = max(2, int(draws))
    if figure.signed:
        low, high = t_interval(result.value, variance, n, LEVEL) or (result.value, result.value)
        return max(-1.0, low), min(1.0, high)
    return mean_interval(min(max(result.value, 0.0), 1.0), variance, n, LEVEL)


def needs(result: LabelFigure, width: float, labels: int, *, beyond: bool) -> list[Need]:
    """Return how many labels more make the interval no wider than ``width``; of a difference also
    how many show with a power of 80 % at 5 % that it is not 0, if it is the one that was seen.
    Nothing where the figure has no interval.

    Args:
        labels: so far. beyond: count for the interval of questions like these.
    """
    estimate, now = result.estimate, result.beyond if beyond else result.interval
    if estimate is None or result.without:
        return []
    added, each = estimate.between if beyond else 0.0, labels / estimate.draws
    reach = normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)

    def narrow(variance: float, draws: float) -> bool:
        low, high = interval_at(result.figure, estimate, variance, draws)
        return high - low <= width

    def apart(variance: float, _draws: float) -> bool:
        return abs(estimate.value) >= reach * math.sqrt(variance)

    def need(goal: str, reached: bool, enough: Callable[[float, float], bool]) -> Need:
        if reached:
            return Need(goal, 0, None)
        more: list[int | None] = []
        for evenly in (False, True):
            draws = estimate.draws_for(lambda var, n: enough(var + added, n), evenly=evenly)
            never = draws > estimate.draws + estimate.left
            more.append(None if never else max(0, round((draws - estimate.draws) * each)))
        return Need(goal, *more)

    label_needs = [
        need(f"an interval of {width:g}", bool(now and now[1] - now[0] <= width), narrow)
    ]
    if result.figure.signed:
        goal = f"detecting a difference of {abs(estimate.value):.3f} (power 80 %)"
        label_needs.append(need(goal, bool(now and not now[0] <= 0 <= now[1]), apart))
    return label_needs
