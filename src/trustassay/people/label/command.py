"""``label``: chooses the answers to rate next, and estimates figures of all answers so far."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.json_form import fields_as_json
from trustassay.core.outcome import Outcomes
from trustassay.errors import UsageError, did_you_mean, trim_traceback
from trustassay.input.journal import UNEQUAL
from trustassay.input.records import InputError
from trustassay.people.label.plan import (
    AnswerKey,
    LabelPlan,
    PlanBatch,
    PlannedDraw,
    append_lines,
    read_plan,
)
from trustassay.people.label.population import (
    LabelFigure,
    LabelNeed,
    Population,
    RightLabels,
    Unit,
    WantedFigure,
    count_needed_labels,
    estimate_figure,
    keep_questions_of_all,
    read_labels,
    read_population,
)
from trustassay.people.study.answers import as_list, as_paths
from trustassay.people.study.labels import LabelSource
from trustassay.runs.counts import read_outcomes
from trustassay.runs.folder import RunFolder, load_metrics
from trustassay.statistics import Floats
from trustassay.statistics.active import Labels, UnitDraw, draw_units, exploration_share
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount

DEFAULT_PROPOSED_ANSWERS = 50
DEFAULT_WIDTH = 0.05
MAX_MODELS_WITH_SHARE = 10
"""With more models than this, shares of single models are left out."""


@dataclass(frozen=True)
class Labelling:
    """The result of ``label``; ``trustassay.label`` returns it."""

    plan: Path
    """The file of the plan."""
    answers: int
    """The number of answers that the figures are about."""
    units: int
    """The number of their units."""
    unit: Unit
    drawn: int
    """The number of answers in the plan."""
    rated: int
    """The number of these that have a label."""
    used: int
    """The number of labels that count in the figures."""
    unread: int = 0
    """The number of labels that cannot be read."""
    proposed: Sequence[AnswerKey] = ()
    """The answers that this call added, as (id, model)."""
    figures: Sequence[LabelFigure] = ()
    """The estimates, the wanted one first."""
    needs: Sequence[LabelNeed] = ()
    """How many more labels each goal needs."""
    notes: Sequence[str] = ()
    scores: Sequence[str] = ()
    """The scores that predict labels."""
    equal: bool = False
    """Whether all units are drawn with equal probability."""
    outcomes: Mapping[str, Mapping[str, Outcomes]] = field(default_factory=dict)
    """The outcomes of all questions, by the path of the run and by metric."""

    @property
    def outcome_lines(self) -> list[str]:
        """The lines on the outcomes of the runs; with several runs, each line names its run."""
        return [
            f"{run}: {line}" if len(self.outcomes) > 1 else line
            for run, by_metric in self.outcomes.items()
            for outcomes in by_metric.values()
            for line in outcomes.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = "plan answers units unit drawn rated used unread equal scores".split()
        return {
            **fields_as_json(self, *names),
            "proposed": [{"id": sample, "model": model} for sample, model in self.proposed],
            **fields_as_json(self, "figures", "needs", "notes"),
            "outcomes": {
                run: {metric: outcomes.to_dict() for metric, outcomes in by_metric.items()}
                for run, by_metric in self.outcomes.items()
            },
        }


# Beside the run and not in it: a plan may cover several runs, and outlives a run that is scored
# again.
def default_plan(run: Path) -> Path:
    """Return the default file of a run's plan, beside its folder: ``runs/one.label.jsonl``."""
    return run.parent / f"{run.name}.label.jsonl"


@dataclass(frozen=True)
class PlanOptions:
    """The options of a plan and of the wanted figure; as for :func:`label`."""

    scores: Sequence[str] = ()
    compare: tuple[str, str] | None = None
    auroc: str = ""
    unit: Unit = "question"
    equal: bool = False
    seed: int = 0


@trim_traceback
def label(  # noqa: PLR0913 - one argument an option
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    propose: int | None = None,
    plan: str | os.PathLike[str] | None = None,
    ratings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    field: str = "",
    at_least: float | None = None,
    positive: str | Sequence[str] = (),
    columns: dict[str, str] | None = None,
    scores: str | Sequence[str] = (),
    compare: tuple[str, str] | None = None,
    auroc: str = "",
    unit: Unit = "question",
    equal: bool = False,
    width: float = DEFAULT_WIDTH,
    beyond: bool = False,
    seed: int = 0,
) -> Labelling:
    """Choose the answers of runs that people should rate next, and estimate figures of all answers.

    Args:
        runs: folders of finished runs.
        propose: how many answers to add to the plan, about: whole units are drawn. Default: 50
            where there is no plan yet, else none.
        plan: its file; default: beside the first run.
        ratings: files of ratings as ``annotate`` writes them or ``agree`` reads them.
        field: a field of the samples that holds labels, in place of ratings or beside them.
        at_least: the number from which on a label means right, where it is neither 0 nor 1.
        positive: words that mean right; all others then mean wrong.
        columns: columns of ``ratings`` by what they are, ``{"item": "question_id"}``.
        scores: what predicts the labels; default: the metrics of the runs. Fixed with the plan.
        compare: two models, or two scores, whose difference is wanted.
        auroc: the score whose AUROC is wanted.
        unit: what is drawn: a question with all its answers, or each answer by itself.
        equal: draw all units with equal probability. Fixed with the plan, as ``unit`` is.
        width: of the interval that is wanted.
        beyond: count for the goals questions like these, of which these are a sample.
        seed: of a new plan.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: the plan is damaged or of other answers, labels cannot be read as right and
            wrong, or a model or score is not known.
        ValueError: an option is out of range, or is not that of the plan.
    """
    if propose is not None and propose < 1:
        raise UsageError(f"propose: expected 1 or more, got {propose}")
    if not 0 < width < 2:
        raise UsageError(f"width: expected above 0 and below 2, got {width:g}")
    if compare and auroc:
        raise UsageError("compare and auroc: expected only one of them")
    paths = as_paths(runs)
    # 1. Find the plan and the labels.
    path = Path(plan) if plan is not None else default_plan(paths[0])
    source = LabelSource(
        as_paths(ratings),
        [field] if field else [],
        columns or {},
        positive=as_list(positive),
        at_least=at_least,
        weighted=True,
    )
    options = PlanOptions(as_list(scores), compare, auroc, unit, equal, seed)
    # 2. Propose answers if asked to, or if there is no plan yet.
    work = open_work(paths, path, source, options)
    added: Sequence[AnswerKey] = ()
    if propose is not None or work.plan is None:
        added = work.propose(propose or DEFAULT_PROPOSED_ANSWERS)
    # 3. Estimate; outcomes of the metrics are shown above the estimates.
    return replace(work.summarise(added, width, beyond), outcomes=_read_outcomes_by_run(paths))


def _read_outcomes_by_run(paths: Sequence[Path]) -> dict[str, Mapping[str, Outcomes]]:
    """Read the outcomes of finished runs, by their paths."""
    result: dict[str, Mapping[str, Outcomes]] = {}
    for path in paths:
        folder = RunFolder(path)
        run, _ = folder.read_finished()
        result[str(path)] = read_outcomes(folder, load_metrics(run).values())
    return result


def open_work(
    paths: Sequence[Path], path: Path, source: LabelSource, options: PlanOptions
) -> LabelWork:
    """Read the answers of runs, their labels, and the plan at ``path`` if there is one.

    Raises the same errors as :func:`label`.
    """
    unit, compare = options.unit, options.compare
    # An empty file is what an interrupted first call may leave.
    stored_plan = read_plan(path) if path.exists() and path.stat().st_size else None
    planned_models: tuple[str, ...] = ()
    if stored_plan is not None:
        _check_options(path, stored_plan.start, options)
        unit = "answer" if stored_plan.start["unit"] == "answer" else "question"
        planned_models = tuple(map(str, stored_plan.start["models"]))
        # The models that the plan was made to compare.
        if len(planned_models) == 2 and not options.auroc:
            compare = compare or (planned_models[0], planned_models[1])
    population = read_population(paths, source, unit, planned_models)
    # A changed run would silently assign draws to other answers.
    if stored_plan is not None and population.digest != stored_plan.start["input"]:
        raise InputError(
            f"{path}: the plan was made for other answers, or for an earlier version of these; "
            "name the runs of the plan, or another --plan"
        )
    # Only now, since names of models and scores must be checked against the answers.
    figure = _choose_figure(population, compare, options.auroc)
    if stored_plan is not None:
        start = stored_plan.start
    else:
        models = figure.names if figure.kind == "difference" else ()
        # A comparison of two models concerns the questions that both answered.
        population = keep_questions_of_all(population, models) if models else population
        metrics = [column.name for column in population.answers.columns if column.kind == "metric"]
        start = {
            "runs": [str(run) for run in paths],
            "input": population.digest,
            "unit": unit,
            "chances": "equal" if options.equal else UNEQUAL,
            "scores": list(options.scores) or metrics,
            "models": list(models),
            "seed": options.seed,
        }
    labels = read_labels(population, source)
    return LabelWork(path, stored_plan, start, population, figure, labels)


def _check_options(path: Path, start: Mapping[str, Any], options: PlanOptions) -> None:
    """Raise UsageError for options that differ from the plan's; defaults adopt the plan's
    values."""
    if purpose := start.get("purpose"):
        raise UsageError(
            f"{path}: the plan was made with --for {purpose}; add it, or name another --plan"
        )
    # A default value cannot be told from an option that is not given, so it never conflicts.
    fixed = {
        f"the scores {', '.join(start['scores']) or 'none'}": options.scores
        and list(options.scores) != start["scores"],
        f"the unit {start['unit']}": options.unit == "answer" != start["unit"],
        "unequal probabilities": options.equal and start["chances"] == UNEQUAL,
        f"the seed {start['seed']}": options.seed and options.seed != start["seed"],
    }
    if different := [setting for setting, differs in fixed.items() if differs]:
        raise UsageError(
            f"{path}: the plan was made with {' and '.join(different)}; leave these options out, "
            "or name another --plan"
        )


@dataclass
class LabelWork:
    """A plan with its answers and labels."""

    path: Path
    plan: LabelPlan | None
    """``None`` before the first batch is drawn."""
    start: Mapping[str, Any]
    """The first line of the plan."""
    population: Population
    figure: WantedFigure
    """The wanted figure."""
    right: RightLabels
    """The labels."""

    @property
    def labels(self) -> Floats:
        """1 for right, 0 for wrong, NaN without a label, shape (N,)."""
        return self.right.values

    @cached_property
    def features(self) -> Floats:
        """The features that predict labels, shape (N, k)."""
        return self.population.features(self.start["scores"])

    @cached_property
    def places(self) -> dict[AnswerKey, int]:
        """The places of answers, by their keys."""
        return {key: place for place, key in enumerate(self.population.keys)}

    def _unit_of_keys(self, where: str, keys: Sequence[AnswerKey]) -> int:
        for sample, model in keys:
            if (sample, model) not in self.places:
                raise InputError(f"{self.path}: {where}: {sample[:40]!r} is not among the answers")
        units = {int(self.population.units[self.places[key]]) for key in keys}
        # All answers of a draw belong to one unit; anything else is another population.
        if len(units) > 1:
            raise InputError(f"{self.path}: {where}: names answers of several units")
        return units.pop()

    def _build_draws(self) -> list[UnitDraw]:
        """Convert the draws of the plan to the form of the statistics."""
        result: list[UnitDraw] = []
        for number, batch in enumerate(self.plan.batches if self.plan else (), 1):
            result += [
                UnitDraw(self._unit_of_keys(f"batch {number}", [key]), None)
                for key in batch.labelled_before
            ]
            result += [
                UnitDraw(self._unit_of_keys(f"batch {number}", draw.answers), draw.probability)
                for draw in batch.draws
            ]
        return result

    def propose(self, number: int) -> list[AnswerKey]:
        """Draw a batch of about ``number`` answers, add it to the plan, and return its answers."""
        # 1. Units that have all labels without having been drawn count as known from now on.
        draws, units = self._build_draws(), self.population.units
        unlabelled_answers = np.bincount(units, np.isnan(self.labels))
        drawn_units = {draw.unit for draw in draws}
        labelled_elsewhere = [
            unit
            for unit in np.flatnonzero(unlabelled_answers == 0).tolist()
            if unit not in drawn_units
        ]
        draws += [UnitDraw(unit, None) for unit in labelled_elsewhere]
        labels = Labels(self.features, units, draws, self.labels)
        units_left = labels.left
        if not len(units_left):
            if self.plan is None:
                raise InputError(
                    f"{', '.join(self.start['runs'])}: all answers have a label already; `study` "
                    "evaluates them"
                )
            return []
        # 2. Predict the missing labels, and how uncertain each unit leaves the wanted figure.
        expected = np.where(np.isnan(self.labels), labels.predictions, self.labels)
        slope = self.figure.target(self.population, expected)
        spread = (
            np.ones(len(units_left)) if slope is None else labels.spread(slope.slope)[units_left]
        )
        batches = len(self.plan.batches) if self.plan else 0
        # 3. Draw units: the more uncertain, the more likely, unless all are to be equally likely.
        rng = generator(self.start["seed"], "label", "batch", str(batches))
        # While labels are few, every draw is even (1.0); later a part of the draws stays even.
        is_equal = self.start["chances"] != UNEQUAL
        # Units hold several answers; convert the number of answers to units.
        wanted = max(1, round(number * len(units_left) / unlabelled_answers[units_left].sum()))
        label_count = int((~np.isnan(self.labels)).sum())
        drawn = draw_units(spread, wanted, rng, 1.0 if is_equal else exploration_share(label_count))
        keys = self.population.keys
        planned_draws = []
        for at, probability in drawn:
            unrated = (units == units_left[at]) & np.isnan(self.labels)
            answers = [keys[place] for place in np.flatnonzero(unrated)]
            planned_draws.append(PlannedDraw(answers, probability))
        # 4. Write the batch before any answer is shown, then read it back.
        first = [keys[int(np.flatnonzero(units == unit)[0])] for unit in labelled_elsewhere]
        append_lines(
            self.path,
            None if self.plan else self.start,
            PlanBatch(first, planned_draws),
            batches + 1,
        )
        # Reading it back makes sure that the file says what the estimates will use.
        self.plan = read_plan(self.path)
        return [key for draw in planned_draws for key in draw.answers]

    def summarise(self, added: Sequence[AnswerKey], width: float, beyond: bool) -> Labelling:
        """Estimate all figures from the labels of the plan."""
        assert self.plan
        draws = self._build_draws()
        units = self.population.units
        rated = [not np.isnan(self.labels[units == draw.unit]).any() for draw in draws]
        # Draws after the last complete one are not rated yet; gaps before it count as the scores
        # predict.
        last = max((place for place, is_rated in enumerate(rated) if is_rated), default=-1)
        draws = draws[: last + 1]
        # Labels of answers that the plan did not draw are not random, so they do not count.
        used = np.where(np.isin(units, [draw.unit for draw in draws]), self.labels, np.nan)
        count = int((~np.isnan(used)).sum())
        planned = [key for draw in self.plan.draws for key in draw.answers]
        rated_answers = sum(not np.isnan(self.labels[self.places[key]]) for key in planned)
        figures: list[LabelFigure] = []
        needed: list[LabelNeed] = []
        # Units that were not drawn at random cannot stand for the others.
        if drawn := [draw.unit for draw in draws if draw.probability is not None]:
            labels = Labels(self.features, units, draws, self.labels)
            wanted_figures, models = [self.figure, WantedFigure()], self.population.models
            if 1 < len(models) <= MAX_MODELS_WITH_SHARE:
                wanted_figures += [WantedFigure("share of", (name,)) for name in models]
            wanted_figures += [
                WantedFigure("auroc", (column.name,))
                for column in self.population.answers.columns
                if column.kind == "metric"
            ]
            figures = [
                estimate_figure(wanted_figure, self.population, labels, used)
                for wanted_figure in dict.fromkeys(wanted_figures)
            ]
            # Needs are counted in answers, draws in units.
            count_drawn = int(np.isin(units, drawn).sum())
            needed = count_needed_labels(figures[0], width, count_drawn, beyond=beyond)
        return Labelling(
            plan=self.path,
            answers=len(units),
            units=int(units.max()) + 1,
            unit=self.population.unit,
            drawn=len(planned),
            rated=rated_answers,
            used=count,
            proposed=added,
            figures=figures,
            needs=needed,
            unread=sum(unread.count for unread in self.right.unread.values()),
            notes=[
                *self.population.remarks,
                *self.right.notes,
                *self._describe_gaps(draws, count),
            ],
            scores=self.start["scores"],
            equal=self.plan.equal,
        )

    def _describe_gaps(self, draws: Sequence[UnitDraw], used: int) -> list[str]:
        notes = []
        counted = np.isin(self.population.units, [draw.unit for draw in draws])
        if blank := int((counted & np.isnan(self.labels)).sum()):
            notes.append(
                f"{amount(blank, 'answer')} of the plan without a label, before others with one; "
                "their labels are predicted from the scores until you rate them"
            )
        # Such labels are not lost: the next batch lists their units as labelled before.
        if waiting := int((~np.isnan(self.labels)).sum()) - used:
            notes.append(
                f"{amount(waiting, 'label')} not used yet: their answers are not drawn, or an "
                "earlier unit is not fully rated; the next batch uses them"
            )
        return notes


def _choose_figure(
    population: Population, compare: tuple[str, str] | None, auroc: str
) -> WantedFigure:
    """Choose the wanted figure by the options."""
    if auroc:
        # Raises InputError with a suggestion if there is no such score.
        population.column(auroc)
        return WantedFigure("auroc", (auroc,))
    if compare is None:
        return WantedFigure()
    models = population.models
    scores = [column.name for column in population.answers.columns]
    if compare[0] == compare[1]:
        raise UsageError(f"compare: expected two different names, got {compare[0]!r} twice")
    if all(name in models for name in compare):
        return WantedFigure("difference", compare)
    if all(name in scores for name in compare):
        return WantedFigure("auroc difference", compare)
    strange = next(name for name in compare if name not in models or name not in scores)
    known_names = [*models, *scores]
    hint = "expected two models, or two scores"
    # A name that exists is of the wrong kind; one that does not may be misspelt.
    if strange not in known_names:
        hint = did_you_mean("model or score", strange, known_names)
    names_in_words = f"models and scores here: {', '.join(known_names)}"
    raise InputError(f"compare {' '.join(compare)}: {hint}; {names_in_words}")
