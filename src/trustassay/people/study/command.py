"""``study``: compares the scores of runs with labels, to learn which of them can be trusted."""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from trustassay.core.json_form import JsonForm, as_json
from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.errors import UsageError, did_you_mean, trim_traceback
from trustassay.input.records import InputError
from trustassay.people.study.answers import (
    MetricCost,
    ScoreColumn,
    StudyAnswers,
    as_list,
    as_paths,
)
from trustassay.people.study.figures import (
    ASSOCIATIONS,
    CEILING_ROW,
    CHANCE_ROW,
    HEADLINE_FIGURES,
    Resampling,
    ScoreTest,
    build_length_columns,
    build_source_columns,
    estimate_ceiling,
    estimate_chance,
    estimate_figures,
    find_p_value,
    read_group_values,
    run_paired_tests,
)
from trustassay.people.study.labels import (
    DEFAULT_LABEL,
    Label,
    LabelSource,
    check_positive,
    read_answer_labels,
)
from trustassay.people.study.tables import read_source
from trustassay.statistics import Bools, Floats
from trustassay.statistics.correlation import ranks
from trustassay.statistics.intervals import Estimate
from trustassay.statistics.resampling import generator
from trustassay.text.numbers import amount

MAX_EXAMPLES = 5
MAX_INVERTED_AUROC = 0.4
"""AUROC of a judge up to which, if its interval is below 0.5 as well, labels may be inverted."""


@dataclass(frozen=True, slots=True)
class PartingCase(JsonForm):
    """An answer on which two scores disagree."""

    id: str
    model: str
    link: str
    """Its address in a run's report."""
    label: float
    """1 where it is right, else 0."""
    first: float
    """The first score."""
    second: float
    """The second score."""


@dataclass(frozen=True, slots=True)
class RightWhereWrong(JsonForm):
    """The answers that a first score judges rightly and a second one wrongly."""

    first: str
    second: str
    n: int
    """Answers that have both scores."""
    wrong: int
    """Answers of these that the second score judges wrongly."""
    count: int
    """Answers of these that the first score judges rightly."""
    cases: Sequence[PartingCase]
    """The answers on which the two scores differ most."""


def accept_as_many(scores: Floats, labels: Floats) -> Bools:
    """Accept the best answers by a score, about as many as are right; return a mask, shape (n,).

    The threshold is the score at which the number of accepted answers is closest to the number of
    right ones; of two equally close ones, the higher. It needs no scale, and is not chosen by which
    answers it gets right.
    """
    values, counts = np.unique(scores, return_counts=True)
    # The number of answers with at least each value.
    above = np.cumsum(counts[::-1])[::-1]
    apart = np.abs(above - labels.sum())[::-1]
    # argmin takes the first minimum, which is the higher score, as values are in descending order.
    threshold = values[::-1][int(apart.argmin())]
    return np.asarray(scores >= threshold)


def find_right_where_wrong(
    answers: StudyAnswers, columns: Sequence[ScoreColumn], labels: Floats
) -> list[RightWhereWrong]:
    """Compare each ordered pair of columns, on the answers that have both and a label of 0 or 1."""
    result = []
    for first, second in itertools.permutations(columns, 2):
        has_both = ~(np.isnan(first.values) | np.isnan(second.values) | np.isnan(labels))
        places = np.flatnonzero(has_both)
        y = labels[places]
        # With labels of one class every score accepts all answers or none, and so is right on all.
        if not len(places) or (y == y[0]).all():
            continue
        x = [column.values[places] for column in (first, second)]
        right = [accept_as_many(scores, y) == (y > 0) for scores in x]
        # The order of the pair matters: what the first gets right and the second wrong.
        parting = np.flatnonzero(right[0] & ~right[1])
        apart = np.abs(ranks(x[0]) - ranks(x[1]))
        # Ranks make scores of different scales comparable.
        farthest = parting[np.argsort(-apart[parting], kind="stable")][:MAX_EXAMPLES]
        cases = []
        for at in farthest:
            row, numbers = answers.rows[places[at]], (y[at], x[0][at], x[1][at])
            cases.append(PartingCase(row.id, row.model, row.link, *map(float, numbers)))
        wrong = int((~right[1]).sum())
        result.append(
            RightWhereWrong(first.name, second.name, len(places), wrong, len(parting), cases)
        )
    return result


EstimatesByColumn = Mapping[str, Mapping[str, Estimate]]
"""Estimates by the name of the column and of the figure."""

RESAMPLES = 2000
MAX_GROUPS = 20
"""The largest groups of a field have figures, up to this number."""
MAX_COMPARED_SCORES = 12
"""Scores that are compared pairwise for answers that one judges rightly and another wrongly."""


@dataclass(frozen=True)
class LabelStudy:
    """All scores compared with one label."""

    label: Label
    columns: Sequence[ScoreColumn]
    """Scores, parts, baselines and covariates."""
    figures: EstimatesByColumn
    """The figures of all columns but covariates, and of the rows ``people`` and ``chance``."""
    covariates: EstimatesByColumn = field(default_factory=dict)
    """Correlations of the parts without a better direction."""
    groups: Mapping[str, Mapping[str, EstimatesByColumn]] = field(default_factory=dict)
    """Figures within groups, by field and value."""
    tests: Sequence[ScoreTest] = ()
    """Tests of all pairs of scores, of scores with baselines, and of parts with their score."""
    parting: Sequence[RightWhereWrong] = ()
    """Which scores are right where others are wrong, for labels of two classes."""

    @property
    def headline(self) -> str:
        """The figure by which columns are compared."""
        return HEADLINE_FIGURES[self.label.kind]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column, by its name."""
        return {column.name: column.kind for column in self.columns}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        known_labels = self.label.values[~np.isnan(self.label.values)]
        kinds = self.kinds
        return {
            "label": self.label.name,
            "kind": self.label.kind,
            "n": self.label.n,
            "missing": len(self.label.values) - self.label.n,
            "unread": as_json(self.label.unread),
            "mean": float(known_labels.mean()) if len(known_labels) else None,
            "words": list(self.label.words),
            "raters": list(self.label.raters),
            "headline": self.headline,
            "scores": [
                {
                    "name": name,
                    # Rows that are no columns: chance is a baseline, people are the ceiling.
                    "kind": kinds.get(name, "baseline" if name == CHANCE_ROW else "ceiling"),
                    "figures": _figures_as_json(name, figures),
                }
                for name, figures in self.figures.items()
            ],
            "covariates": [
                {"name": name, "figures": _figures_as_json(name, figures)}
                for name, figures in self.covariates.items()
            ],
            "groups": {
                field: {
                    value: {name: _figures_as_json(name, row) for name, row in rows.items()}
                    for value, rows in rows_of_value.items()
                }
                for field, rows_of_value in self.groups.items()
            },
            "tests": as_json(self.tests),
            "right_where_wrong": as_json(self.parting),
        }


def _figures_as_json(row: str, figures: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return the figures of a row, Pearson's r with its p-value."""
    result: dict[str, Any] = as_json(figures)
    if "pearson" in result:
        result["pearson"]["p"] = find_p_value(row, "pearson", figures["pearson"])
    return result


@dataclass(frozen=True)
class Study(JsonForm):
    """The comparison of scores with labels; ``trustassay.study`` returns it."""

    json_names = ("runs", "answers", "questions", "notes", "seed", "resamples", "labels", "costs")
    runs: Sequence[str]
    """The folders of the runs, or the name of the table."""
    answers: int
    questions: int
    labels: Sequence[LabelStudy]
    costs: Sequence[MetricCost]
    notes: Sequence[str]
    seed: int
    resamples: int


@trim_traceback
def study(  # noqa: PLR0913 - one argument an option
    source: Any,
    *,
    labels: str | Sequence[str] = (),
    scores: str | Sequence[str] = (),
    lower: str | Sequence[str] = (),
    ratings: str | os.PathLike[str] | None = None,
    by: str | Sequence[str] = (),
    positive: str | Sequence[str] = (),
    at_least: float | None = None,
    levels: Sequence[str] = (),
    machines: Collection[str] = (),
    fields: Mapping[str, str] | None = None,
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Study:
    """Compare every score of runs, or of a table, with labels; with intervals, tests and baselines.

    Args:
        source: folders of finished runs, in which answers with the same id, model and response are
            the same answer; or a file (CSV, Excel, JSON Lines, Parquet, traces), frame or list of
            records with a column for each score.
        labels: fields of the samples, dots descending into objects; or columns of ``ratings``.
            Default, without ratings: ``label``.
        scores: the names of the scores to study. Default: all; of a table all columns of numbers.
        lower: the names of those of which lower is better, where no metric says so.
        ratings: a file of ratings as ``agree`` reads it, whose raters are pooled to one label; or
            a table keyed by id, whose columns ``labels`` name.
        by: fields by which all figures are given again for each value; ``model`` is the model.
        positive: words that mean right where they occur; all others then mean wrong.
        at_least: the number from which on a label means right.
        levels: words of an ordinal scale, the lowest first.
        machines: raters of ``ratings`` that are judges: they are scores to be studied.
        fields: columns of ``ratings`` by what they are, ``{"item": "question_id"}``.
        sheet: the sheet of a workbook. longest_line: MiB of the longest record.
        seed: of all resamples. resamples: how often questions are drawn anew.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: the table cannot be read; labels or scores are missing; or labels cannot be
            read as numbers, two classes or levels.
        ValueError: there are too few resamples.
    """
    # Fewer resamples give intervals that are mostly noise.
    if resamples < 100:
        raise UsageError(f"resamples: expected 100 or more, got {resamples}")
    # 1. Read the answers with every field that is needed, and the labels.
    names, groups = as_list(labels), as_list(by)
    # Without another source, the labels that came with the samples count.
    names = names or ([] if ratings else [DEFAULT_LABEL])
    # "source" feeds a baseline: does knowing where an answer comes from suffice?
    wanted = list(dict.fromkeys([*names, *groups, "source"]))
    chosen = as_list(scores)
    answers = read_source(
        source, wanted, scores=chosen, people=names, sheet=sheet, longest_line=longest_line
    )
    label_source = LabelSource(
        as_paths(ratings), names, fields or {}, machines, as_list(positive), at_least, levels
    )
    result, judges = read_answer_labels(answers, label_source)
    check_positive(label_source, result)
    for name in groups:
        # A misspelt field would otherwise put all answers into one empty group.
        if not any(read_group_values(answers, name)):
            fields_of_runs = dict.fromkeys(
                itertools.chain.from_iterable(answers.label_fields.values())
            )
            raise InputError(
                f"--by {name}: no sample has this field; fields with numbers or short texts: "
                f"{', '.join(fields_of_runs) or 'none'}"
            )
    # 2. Compare all scores with each label; raters that are judges count as scores.
    names_of_scores = [column.name for column in answers.columns]
    for name in chosen:
        if name not in names_of_scores:
            raise InputError(f"--score: {did_you_mean('score', name, names_of_scores)}")
    columns = turn_columns(answers.columns, as_list(lower))
    columns = [column for column in columns if not chosen or column.name in chosen]
    columns += judges
    studied = [_study_label(answers, columns, label, groups, seed, resamples) for label in result]
    return Study(
        runs=list(answers.places_by_run),
        answers=len(answers.rows),
        questions=len(np.unique(answers.questions)),
        labels=studied,
        costs=answers.costs,
        notes=[
            *answers.notes,
            *_describe_columns(columns),
            *(n for label in result for n in label.notes),
            *filter(None, map(_describe_inversion, studied)),
        ],
        seed=seed,
        resamples=resamples,
    )


def _study_label(
    answers: StudyAnswers,
    scores: Sequence[ScoreColumn],
    label: Label,
    by: Sequence[str],
    seed: int,
    resamples: int,
) -> LabelStudy:
    # Baselines that know nothing of the content: a score has to beat them.
    baselines = [
        *build_length_columns(answers, label.values),
        *build_source_columns(answers, label, by),
    ]
    covariates = [column for column in scores if column.kind == "covariate"]
    scores = [column for column in scores if column.kind != "covariate"]
    columns = [*scores, *baselines]
    questions = answers.questions

    def resampling(*purpose: str) -> Resampling:
        # A generator for each purpose, so that results do not depend on the order of computation.
        return Resampling(generator(seed, "study", label.name, *purpose), resamples)

    figures = estimate_figures(columns, label.values, label.kind, questions, resampling("all"))
    # Agreement among people limits what any score can reach.
    if people := estimate_ceiling(label, questions, resampling("people")):
        figures[CEILING_ROW] = people
    # Added last; the outputs sort chance to the end.
    figures[CHANCE_ROW] = estimate_chance(label.values, label.kind)
    # Parts agree with their score by construction, so they are left out here.
    main = [column for column in scores if column.kind != "part"]
    binary = label.kind == "binary"
    return LabelStudy(
        label=label,
        columns=[*columns, *covariates],
        figures=figures,
        covariates=estimate_figures(
            covariates, label.values, label.kind, questions, resampling("covariates"), ASSOCIATIONS
        ),
        groups={
            name: _estimate_by_group(answers, scores, label, name, partial(resampling, "by", name))
            for name in by
        },
        tests=run_paired_tests(columns, label.values, label.kind, questions, resampling("tests")),
        # Quadratic in the number of scores, hence the limit.
        parting=find_right_where_wrong(answers, main[:MAX_COMPARED_SCORES], label.values)
        if binary
        else (),
    )


def turn_columns(columns: Sequence[ScoreColumn], lower: Sequence[str]) -> list[ScoreColumn]:
    """Return scores with those named in ``lower`` negated, so that higher is better.

    Raises:
        InputError: there is no score of such a name, or it knows its direction itself.
    """
    for name in lower:
        if name not in {column.name for column in columns if not column.turned}:
            message = did_you_mean("score", name, [column.name for column in columns])
            raise InputError(f"--lower: {message}")
    return [
        replace(column, values=-column.values, raw=column.values, turned=True, probability=False)
        if column.name in lower
        else column
        for column in columns
    ]


def _describe_inversion(study_of_label: LabelStudy) -> str:
    """Say that labels may mean the opposite, where no metric agrees with them and one clearly
    disagrees.
    """
    label, kinds = study_of_label.label, study_of_label.kinds
    lowest: tuple[str, Estimate] | None = None
    for name, figures in study_of_label.figures.items():
        auroc = figures.get("auroc")
        if kinds.get(name) != "metric" or auroc is None or auroc.interval is None:
            continue
        # A judge that is better than chance shows that the labels are as they should be.
        if auroc.interval[0] > 0.5:
            return ""
        is_low = auroc.interval[1] < 0.5 and (auroc.value or 0.0) <= MAX_INVERTED_AUROC
        if is_low and (lowest is None or (auroc.value or 0.0) < (lowest[1].value or 0.0)):
            lowest = name, auroc
    if lowest is None or lowest[1].interval is None:
        return ""
    low, high = lowest[1].interval
    option = f" (then add {label.opposite})" if label.opposite else ""
    return (
        f"label {label.name}: {lowest[0]} gives right answers lower scores than wrong ones (AUROC "
        f"{lowest[1].value:.3f}, {low:.3f} to {high:.3f}); if lower is better, add --lower "
        f"{lowest[0]}; or the labels may mean the opposite{option}"
    )


def _estimate_by_group(
    answers: StudyAnswers,
    scores: Sequence[ScoreColumn],
    label: Label,
    name: str,
    resampling: Callable[[str], Resampling],
) -> dict[str, EstimatesByColumn]:
    """Estimate the figures within each value of a field, also of the length baseline."""
    values = np.array(read_group_values(answers, name))
    has_label = ~np.isnan(label.values)
    # Values without a labelled answer get a count of 0 and are listed last.
    counts = dict.fromkeys(values.tolist(), 0) | Counter(values[has_label].tolist())
    largest = sorted(counts, key=lambda value: -counts[value])[:MAX_GROUPS]
    result: dict[str, EstimatesByColumn] = {}
    for value in largest:
        places = np.flatnonzero(values == value)
        columns = [
            replace(column, values=column.values[places])
            for column in [*scores, *build_length_columns(answers, label.values)]
        ]
        # Numbers without gaps within the group, as resampling expects.
        _, questions = np.unique(answers.questions[places], return_inverse=True)
        labels = label.values[places]
        figures_of_value = estimate_figures(
            columns, labels, label.kind, questions, resampling(value)
        )
        result[value] = figures_of_value | {CHANCE_ROW: estimate_chance(labels, label.kind)}
    return result


def _describe_columns(columns: Sequence[ScoreColumn]) -> list[str]:
    turned = ", ".join(column.name for column in columns if column.turned)
    result = (
        [f"{turned}: lower is better; reversed here, so that higher is better"] if turned else []
    )
    for column in columns:
        # Parts are missing for the same reasons, and would only repeat them.
        if column.kind == "metric":
            result += [
                f"{column.name}: {amount(count, 'answer')} {reason}"
                for reason, count in column.missing_by_reason.items()
            ]
    return result
