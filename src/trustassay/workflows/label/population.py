"""The answers of which a figure is wanted: their units, what predicts their labels, and the labels
that people gave so far."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trustassay.data.journal import Journal, is_journal, read_journal
from trustassay.data.records import InputError
from trustassay.errors import did_you_mean
from trustassay.statistics.correlation import ranks
from trustassay.statistics.distributions import normal_quantile
from trustassay.workflows.label.plan import AnswerKey
from trustassay.workflows.study.answers import Answers, Column, read_answers
from trustassay.workflows.study.labels import Label, LabelOptions, labelled, pooled

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Unit = Literal["question", "answer"]


@dataclass(frozen=True)
class LabelSource:
    """Where labels are: files of ratings, or a field of the samples; and which of them mean right.

    at_least: the number from which on a label means right. Others as of ``study``.
    """

    ratings: Sequence[Path] = ()
    field: str = ""
    at_least: float | None = None
    positive: Sequence[str] = ()
    columns: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Population:
    """All answers that are asked about.

    units: the number of each answer's question, or its own. models: whose answers, in order; empty
    names where samples name none. remarks: for the user.
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
        """The models that wrote the answers, in the order of the runs."""
        return list(dict.fromkeys(row.model for row in self.answers.rows))

    @property
    def clustered(self) -> bool:
        """Whether a question has several answers."""
        return len(np.unique(self.answers.questions)) < len(self.answers.rows)

    @property
    def digest(self) -> str:
        """What changes with the answers."""
        rows = sorted((row.id, row.model, row.question, row.words) for row in self.answers.rows)
        return hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def of_model(self, name: str) -> NDArray[np.bool_]:
        """Which answers are a model's."""
        return np.array([row.model == name for row in self.answers.rows])

    def column(self, name: str) -> Column:
        """Return a score by its name.

        Raises:
            InputError: the runs have none of that name.
        """
        by_name = {column.name: column for column in self.answers.columns}
        if name not in by_name:
            raise InputError(did_you_mean("score", name, by_name))
        return by_name[name]

    def features(self, names: Sequence[str]) -> Floats:
        """Return the scores as normal scores of their ranks, shape (N, k): they have no scale then,
        and a missing one stands in the middle.
        """
        columns = [_normal_scores(self.column(name).values) for name in names]
        empty = np.empty((len(self.answers.rows), 0))
        return np.stack(columns, axis=1) if columns else empty


def read_population(
    runs: Sequence[Path], source: LabelSource, unit: Unit, models: Sequence[str]
) -> Population:
    """Read the answers of runs; ``models``: only those of these, to questions that all answered.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: there is no answer, two cannot be told apart, or a model has none.
    """
    answers = read_answers(runs, [source.field] if source.field else [])
    if not answers.rows:
        raise InputError(f"{', '.join(map(str, runs))}: no answer is in it")
    remarks = []
    if models:
        known = {row.model for row in answers.rows}
        for name in models:
            if name not in known:
                raise InputError(did_you_mean("model", name, known))
        kept = _answered_by_all(answers, models)
        if not kept:
            raise InputError(f"no question was answered by {' and '.join(models)}")
        if left := sum(row.model in models for row in answers.rows) - len(kept):
            remarks.append(f"left out, since only one of the models answered: {left:,}")
        answers = _only(answers, kept)
    seen: set[AnswerKey] = set()
    for row in answers.rows:
        if (row.id, row.model) in seen:
            raise InputError(
                f"two answers have the id {row.id[:40]!r} and the same model, so ratings cannot "
                "tell them apart; give samples a `model`, or name one run"
            )
        seen.add((row.id, row.model))
    each = np.arange(len(answers.rows))
    return Population(answers, answers.questions if unit == "question" else each, unit, remarks)


def _answered_by_all(answers: Answers, models: Sequence[str]) -> list[int]:
    by_question: dict[str, set[str]] = {}
    for row in answers.rows:
        by_question.setdefault(row.question, set()).add(row.model)
    wanted = set(models)
    return [
        place
        for place, row in enumerate(answers.rows)
        if row.model in wanted and wanted <= by_question[row.question]
    ]


def _only(answers: Answers, kept: Sequence[int]) -> Answers:
    places = list(kept)
    new = {old: place for place, old in enumerate(places)}
    return replace(
        answers,
        rows=[answers.rows[place] for place in places],
        columns=[replace(one, values=one.values[places]) for one in answers.columns],
        of_run={
            run: [new[place] for place in own if place in new]
            for run, own in answers.of_run.items()
        },
    )


def _normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the values' ranks, ties at the mean of theirs; 0 for NaN."""
    result = np.zeros(len(values))
    there = ~np.isnan(values)
    n = int(there.sum())
    if n:
        shares = ranks(values[there]) / (n + 1)
        result[there] = [normal_quantile(share) for share in shares.tolist()]
    return result


def read_labels(population: Population, source: LabelSource) -> Floats:
    """Return the labels, 1 for right and 0 for wrong, NaN where there is none, shape (N,).

    Several raters make up one label, what most of them say; NaN where they are divided.

    Raises:
        InputError: labels cannot be read as right and wrong, or files disagree.
    """
    result = np.full(len(population.answers.rows), math.nan)
    options = LabelOptions(None, {}, (), source.positive, (), weighted=True)
    made = []
    if source.field:
        made += [(source.field, labelled(population.answers, [source.field], options).labels[-1])]
    for path in source.ratings:
        if _has_ratings(path, source):
            own = replace(options, ratings=path, columns=dict(source.columns or {}))
            made.append((str(path), labelled(population.answers, [], own).labels[-1]))
            _check_levels(path, source)
    for name, label in made:
        values = _right(name, label, source.at_least)
        both = ~np.isnan(values) & ~np.isnan(result)
        if (values[both] != result[both]).any():
            place = int(np.flatnonzero(both)[values[both] != result[both]][0])
            raise InputError(
                f"{name}: {population.answers.rows[place].id[:40]!r} has another label elsewhere"
            )
        result = np.where(np.isnan(values), result, values)
    return result


def _journal(path: Path, source: LabelSource) -> Journal:
    return read_journal(path).of_rubric((source.columns or {}).get("rating"))


def _has_ratings(path: Path, source: LabelSource) -> bool:
    """Whether a file has ratings: one that ``annotate`` has begun may have none yet."""
    if not is_journal(path):
        return True
    return any(line.get("rating") is not None for _, line in _journal(path, source).last_states())


def _check_levels(path: Path, source: LabelSource) -> None:
    """Refuse a scale of several levels without a threshold, also where two of them were used."""
    if source.at_least is None and is_journal(path):
        choices = _journal(path, source).start.get("choices")
        if isinstance(choices, list) and len(choices) > 2 and not source.positive:
            raise InputError(f"{path}: has the levels {', '.join(map(str, choices))}; {WANTED}")


WANTED = (
    "--at-least NUMBER says from which on an answer is right, --positive WORD which words mean it"
)


def _right(name: str, label: Label, at_least: float | None) -> Floats:
    numbers = [_number(word) for word in label.words]
    if at_least is None:
        if label.kind != "binary" or (label.words and None not in numbers):
            raise InputError(f"{name}: its labels are numbers other than 0 and 1; {WANTED}")
        return label.values

    def right(values: Floats) -> Floats:
        told = values
        if label.kind == "binary" and label.words and None not in numbers:
            low, high = (math.nan if one is None else one for one in numbers)
            told = np.where(values == 1, high, np.where(values == 0, low, values))
        return np.where(np.isnan(values), math.nan, (told >= at_least).astype(float))

    if label.raters:
        return pooled([right(values) for values in label.raters.values()], binary=True)
    return right(label.values)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
