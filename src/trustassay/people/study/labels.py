"""Reads labels of answers from fields of the samples, from ratings, or from a table keyed by id."""

import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from trustassay.core.labels import is_about_wrong
from trustassay.errors import did_you_mean
from trustassay.input.answer_tables import read_answer_table
from trustassay.input.journal import is_journal
from trustassay.input.labels import LabelKind, LabelValues, UnreadLabels, read_labels
from trustassay.input.ratings import RATING_FIELDS, read_ratings
from trustassay.input.recognising import ABSENT, reach
from trustassay.input.records import InputError
from trustassay.people.study.answers import TEXT_FIELDS, ScoreColumn, StudyAnswers
from trustassay.statistics import Bools, Floats
from trustassay.text.numbers import amount

RATING_LABEL = "rating"
"""The name of the label that is pooled from the ratings of people."""
DEFAULT_LABEL = "label"
"""The field of the samples that is the label where the user names none."""
MAX_FIELDS_LISTED = 30
MAX_RATERS_LISTED = 8
MAX_SPELLINGS = 100
"""Different values of a field up to which it may be a label of right and wrong."""
KEY_COLUMNS = {*RATING_FIELDS["item"], *RATING_FIELDS["rater"], "model", "repeat", "note"}
"""Columns of a table that are no labels."""


@dataclass(frozen=True)
class LabelSource:
    """Where labels are, and which of them mean right."""

    ratings: Sequence[Path] = ()
    """Files of ratings as ``agree`` reads them, or tables keyed by id."""
    fields: Sequence[str] = ()
    """The labels: fields of the samples, or columns of a table."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of the columns of ratings by what they are (``{"item": "question_id"}``)."""
    machines: Collection[str] = ()
    """Raters that are judges."""
    positive: Sequence[str] = ()
    """The words that mean right, as for :func:`~trustassay.input.labels.read_labels`."""
    at_least: float | None = None
    """The smallest number that means right."""
    levels: Sequence[str] = ()
    """The words of an ordinal scale, the lowest first."""
    weighted: bool = False
    """Whether ratings may be of answers that ``label`` chose with unequal probabilities."""

    def parse_labels(
        self,
        name: str,
        labels: Sequence[Any],
        ids: Sequence[str],
        scale: Sequence[Any] = (),
        levels: Sequence[str] = (),
    ) -> LabelValues:
        """Read labels as this source says; ``levels`` where the user names none."""
        return read_labels(
            name,
            labels,
            ids=ids,
            scale=scale,
            positive=self.positive,
            at_least=self.at_least,
            levels=self.levels or levels,
        )


@dataclass(frozen=True)
class Label:
    """One label of all answers."""

    name: str
    kind: LabelKind
    values: Floats
    """Shape (n,), NaN where an answer has no label."""
    words: Sequence[str] = ()
    """The words of the levels, where labels are words."""
    raters: Mapping[str, Floats] = field(default_factory=dict)
    """The ratings of each person whose ratings are pooled, shape (n,)."""
    without_rater: Mapping[str, Floats] = field(default_factory=dict)
    """For each of these people, the label pooled from everybody else."""
    notes: Sequence[str] = ()
    """Remarks for the reader."""
    opposite: str = ""
    """The options that read it the other way round, if there are any."""
    unread: UnreadLabels | None = None
    """The labels that cannot be read, if there are any."""
    uses_positive: bool = False
    """Whether the words that the user named for right occur."""
    tied: Bools | None = None
    """The answers on which raters are divided equally, shape (n,); ``None`` without raters."""
    undecided: Bools | None = None
    """The answers that somebody rated without a readable verdict, such as "cannot tell", a skipped
    or an unreadable rating, shape (n,). Others may have judged them: with ``raters``, an answer is
    wrong if it is undecided, or wrong by any of them."""

    @property
    def n(self) -> int:
        """The number of labelled answers."""
        return int((~np.isnan(self.values)).sum())


def read_answer_labels(
    answers: StudyAnswers, source: LabelSource
) -> tuple[list[Label], list[ScoreColumn]]:
    """Read the labels of a source that has one file of ratings at most.

    A field refers to a column of that file if there is one, else to a field of the samples. The
    label of the ratings comes last.

    Returns:
        The labels, and a column of scores for each rater that is a judge.

    Raises:
        InputError: a run has no such field (the message lists its fields), or labels cannot be
            read.
    """
    # A table has its own label columns; a file of ratings has raters.
    table = _LabelTable(answers, source) if source.ratings else None
    # Options without a file they refer to are a mistake.
    if table is None and (source.machines or source.columns):
        raise InputError("--machine and --field apply to a file of ratings; name it with --ratings")
    columns = [name for name in source.fields if table and table.has_label(name)]
    result = [
        table.label(name)
        if table and name in columns
        else _read_field_label(answers, name, source, table.label_columns if table else ())
        for name in dict.fromkeys(source.fields)
    ]
    # A file that was used as a table of labels holds no ratings to pool.
    if table is None or columns:
        return result, []
    pooled, judges = table.ratings()
    return [*result, pooled], judges


def _read_field_label(
    answers: StudyAnswers, name: str, source: LabelSource, columns: Collection[str]
) -> Label:
    """Read a field of the samples as a label.

    Args:
        answers: the answers.
        name: the field.
        source: where the labels are.
        columns: the columns of its table that may be labels, for messages.

    Raises:
        InputError: a run has no such field, or its values cannot be read.
    """
    values = answers.field(name)
    # A field that one run lacks would silently shrink the study to the others.
    for run, places in answers.places_by_run.items():
        if all(values[place] is None for place in places):
            fields = sorted({*columns, *answers.label_fields[run]} - TEXT_FIELDS)
            options = find_label_options(answers.read_fields(run), fields)
            raise InputError(_describe_missing_field(run, name, fields, options))
    if name in answers.rated_fields:
        return _build_rated_label(name, values, source, answers)
    return _build_label(name, values, source, answers)


def _build_rated_label(
    name: str,
    values: Sequence[Mapping[str, Any] | None],
    source: LabelSource,
    answers: StudyAnswers,
) -> Label:
    """Pool a field whose values are mappings from the rater to the label."""
    rated = [
        (place, rater, label)
        for place, by_rater in enumerate(values)
        for rater, label in (by_rater or {}).items()
    ]
    ids = [answers.rows[place].id for place, *_ in rated]
    read = source.parse_labels(name, [label for *_, label in rated], ids)
    numbers = [(*pair[:2], value) for pair, value in zip(rated, read.values, strict=True)]
    undecided = np.zeros(len(values), dtype=bool)
    undecided[[rated[at][0] for at in read.undecided]] = True
    return _build_pooled_label(name, _average_by_rater(numbers, len(values)), read, undecided)


def _average_by_rater(
    rated: Sequence[tuple[int, str, float]], n: int, raters: Iterable[str] = ()
) -> dict[str, Floats]:
    """Average each rater's ratings of each of n answers.

    Args:
        rated: the place of the answer, the rater and the rating.
        n: the number of answers.
        raters: raters that count also without a rating.
    """
    cells: dict[tuple[str, int], list[float]] = {}
    for place, rater, value in rated:
        cells.setdefault((rater, place), []).append(value)
    result = {name: np.full(n, math.nan) for name in (*raters, *(rater for rater, _ in cells))}
    for (rater, place), values in cells.items():
        result[rater][place] = fmean(values)
    return result


def _describe_missing_field(
    run: str, name: str, fields: Sequence[str], options: Sequence[str]
) -> str:
    message = f"{run}: no answer has the label {name}; "
    nearest = did_you_mean("field", name, fields).partition("; ")[2]
    if name != DEFAULT_LABEL and nearest.startswith("did you mean"):
        message += f"{nearest} "
    message += "use --label FIELD, or --ratings FILE"
    if options:
        message += f". Fields that say right or wrong: {', '.join(options[:MAX_FIELDS_LISTED])}"
    listed = ", ".join(fields[:MAX_FIELDS_LISTED]) or "none"
    return f"{message}. All fields with numbers or short texts: {listed}"


def find_label_options(fields: Iterable[tuple[str, Any]], names: Iterable[str]) -> list[str]:
    """Return the options that read a field as right and wrong, the field's name sorted.

    Args:
        fields: the names and values of all fields of some answers.
        names: the fields that are tried. Those with another value than words for right and wrong,
            or with values of one class only, are left out.
    """
    values: dict[str, set[Any]] = {name: set() for name in sorted(names)}
    for name, value in fields:
        if name not in values or value is None:
            continue
        if not isinstance(value, list):
            values[name].add(value)
        if isinstance(value, list) or len(values[name]) > MAX_SPELLINGS:
            del values[name]
    result = []
    for name, labels in values.items():
        # Words such as yes in a field about what is wrong mean that the answer is not right.
        positive = ["no"] if is_about_wrong(name) else []
        try:
            read = read_labels(name, list(labels), positive=positive)
        except InputError:
            continue
        # Who cannot tell leaves a label one; other words show that it is something else.
        is_read = read.unread is None or read.unread.count == read.unread.undecided
        if read.kind == "binary" and is_read and {0.0, 1.0} <= set(read.values):
            words = [word for text in positive for word in ("--positive", text)]
            result.append(shlex.join(["--label", name, *words]))
    return result


def _build_label(
    name: str, values: Sequence[Any], source: LabelSource, answers: StudyAnswers
) -> Label:
    read = source.parse_labels(name, values, [row.id for row in answers.rows])
    undecided = np.zeros(len(values), dtype=bool)
    undecided[list(read.undecided)] = True
    return Label(
        name,
        read.kind,
        np.array(read.values),
        read.words,
        notes=[read.unread.describe(f"labels {name}")] if read.unread else [],
        opposite=read.opposite,
        unread=read.unread,
        uses_positive=read.uses_positive,
        undecided=undecided,
    )


class _LabelTable:
    """The file of ``--ratings``."""

    def __init__(self, answers: StudyAnswers, source: LabelSource) -> None:
        (self.path,) = source.ratings
        self.source, self.answers = source, answers
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.label_columns: set[str] = set()
        self.columns: set[str] = set()
        self.places_by_id: dict[str, list[int]] = {}
        for place, row in enumerate(answers.rows):
            self.places_by_id.setdefault(row.id, []).append(place)
        if not is_journal(self.path):
            wanted = {*source.fields, *source.columns.values(), *KEY_COLUMNS}
            self.rows = read_answer_table(self.path, wanted).list_records()
            self.columns = {key for _, cells in self.rows for key in cells}
            # A table without raters: every column that is no key may be a label.
            if not set(RATING_FIELDS["rater"]) & self.columns and "rater" not in source.columns:
                self.label_columns = self.columns - KEY_COLUMNS - set(source.columns.values())

    def has_label(self, name: str) -> bool:
        """Whether a column of the table, or a field of an object in one, may be a label."""
        column = name if name in self.label_columns else name.partition(".")[0]
        return column in self.label_columns and any(
            reach(row, name) not in (ABSENT, None) for _, row in self.rows
        )

    def label(self, name: str) -> Label:
        """Return a column of the table as a label, matched to the answers by id."""
        declared_column = self.source.columns.get("item")
        wanted = [declared_column] if declared_column else RATING_FIELDS["item"]
        id_columns = [column for column in wanted if column in self.columns]
        if not id_columns:
            raise InputError(
                f"{self.path}: expected a column item or id, or --field item=COLUMN; its columns "
                f"are {', '.join(sorted(self.columns))[:200]}"
            )
        by_id: dict[tuple[str, str], Any] = {}
        for where, row in self.rows:
            # Cells may be numbers, and may have spaces around them.
            key = str(row.get(id_columns[0]) or "").strip(), str(row.get("model") or "").strip()
            value = None if (cell := reach(row, name)) is ABSENT else cell
            # Repeating the same label is harmless, a contradiction is not.
            if key in by_id and value != by_id[key]:
                raise InputError(
                    f"{where}: {key[0][:40]!r} has another {name} in an earlier row; keep one"
                )
            by_id[key] = value
        values = [
            # A row without a model is the label of every answer with its id.
            by_id.get((row.id, row.model), by_id.get((row.id, "")))
            for row in self.answers.rows
        ]
        if not any(value not in (None, "") for value in values):
            raise self._foreign_ids_error(next(iter(by_id))[0])
        return _build_label(name, values, self.source, self.answers)

    def ratings(self) -> tuple[Label, list[ScoreColumn]]:
        """Return the label that is pooled from people, and the ratings of judges as columns."""
        ratings = read_ratings(
            self.path,
            fields=self.source.columns,
            raters=self._label_column(),
            levels=self.source.levels,
        )
        # A choice between two answers is no label of either.
        if ratings.pairs:
            raise InputError(
                f"{self.path}: holds choices between two answers (annotate --pairs); expected "
                "ratings of single answers"
            )
        # Figures over answers that were chosen for their scores would be biased.
        if ratings.has_unequal_chances and not self.source.weighted:
            raise InputError(
                f"{self.path}: `label` chose these answers with unequal probabilities, so they do "
                "not represent all answers; weight them with `trustassay label RUN --ratings "
                f"{self.path}`, or choose answers with `label --random`"
            )
        words = ratings.categories
        rater_names = {rating.rater for rating in ratings.ratings}
        for name in self.source.machines:
            if name not in rater_names:
                raise InputError(f"--machine: {did_you_mean('rater', name, rater_names)}")
        labels: list[str | float] = [
            words[int(rating.value)] if words else rating.value for rating in ratings.ratings
        ]
        # With the unused levels of the scale: if only two of five levels were used, that does not
        # make the label binary, with the higher level meaning right.
        read = self.source.parse_labels(
            RATING_LABEL,
            labels,
            [rating.item for rating in ratings.ratings],
            words or ratings.scale,
            words if words and ratings.ordered else (),
        )
        # Words among numbers were left out where the file was read.
        read = replace(read, unread=read.unread or ratings.unread)
        n = len(self.answers.rows)
        rated = [
            (place, rating.rater, value)
            for rating, value in zip(ratings.ratings, read.values, strict=True)
            for place in self._find_places(rating.item, rating.model)
        ]
        # Ids of another data set would otherwise give an empty study.
        if not rated:
            raise self._foreign_ids_error(ratings.ratings[0].item)
        by_rater = _average_by_rater(rated, n, (rating.rater for rating in ratings.ratings))
        people = {
            name: values for name, values in by_rater.items() if name not in self.source.machines
        }
        if not people:
            raise InputError(
                f"{self.path}: all raters are judges (--machine); expected ratings by people, too"
            )
        # Judges are scores to be studied, so their ratings do not enter the label.
        judges = [
            ScoreColumn(f"judge {name}", "judge", by_rater[name], _is_probability(by_rater[name]))
            for name in self.source.machines
        ]
        unread = [ratings.ratings[at] for at in read.undecided]
        unreadable = [(rating.item, rating.model, rating.rater) for rating in unread]
        undecided = np.zeros(n, dtype=bool)
        for item, model, rater in (*ratings.undecided, *unreadable):
            if rater not in self.source.machines:
                undecided[self._find_places(item, model)] = True
        return _build_pooled_label(RATING_LABEL, people, read, undecided), judges

    def _label_column(self) -> Sequence[str]:
        """Return the column of labels of a table without raters, which then counts as one rater.

        Empty if the table has raters, or a column for each.
        """
        if not self.label_columns:
            return ()
        declared_columns = (
            [self.source.columns[RATING_LABEL]] if RATING_LABEL in self.source.columns else []
        )
        usual_columns = [name for name in RATING_FIELDS[RATING_LABEL] if name in self.columns]
        return (declared_columns or usual_columns)[:1]

    def _find_places(self, item: str, model: str) -> list[int]:
        """Return the answers of an id; of several models those of one, if a rating names it."""
        rows = self.answers.rows
        places = self.places_by_id.get(item, ())
        return [at for at in places if not (model and rows[at].model) or model == rows[at].model]

    def _foreign_ids_error(self, identifier: str) -> InputError:
        return InputError(
            f"{self.path}: no id is that of an answer; the first ids are {identifier[:40]!r} here "
            f"and {self.answers.rows[0].id[:40]!r} in the answers"
        )


def _build_pooled_label(
    label: str, people: Mapping[str, Floats], read: LabelValues, undecided: Bools
) -> Label:
    binary = read.kind == "binary"
    values = pool_raters(list(people.values()), binary=binary)
    rated = ~np.isnan(np.stack(list(people.values()))).all(axis=0)
    names = list(people)[:MAX_RATERS_LISTED]
    more = ", …" if len(people) > len(names) else ""
    # With names: in a table without a column of ratings all columns of numbers are raters.
    notes = [
        f"{label}: {amount(len(people), 'rater')} ({', '.join(names)}{more}), "
        f"{amount(len(read.values), 'rating')} of {amount(rated.sum(), 'answer')}"
    ]
    if read.unread:
        notes.append(read.unread.describe(f"labels {label}"))
    tied = rated & np.isnan(values)
    if count := int(tied.sum()):
        notes.append(
            f"{label}: left out, because raters are split evenly: {amount(count, 'answer')}"
        )
    labels_without_rater = {
        name: pool_raters([v for other, v in people.items() if other != name], binary=binary)
        for name in people
        # With a single rater nobody is left to predict.
        if len(people) > 1
    }
    known_labels = values[~np.isnan(values)]
    are_levels = bool((known_labels == np.round(known_labels)).all())
    # A mean of ordinal ratings may lie between two levels, and is then a real number.
    kind: LabelKind = read.kind if binary or are_levels else "real"
    return Label(
        label,
        kind,
        values,
        read.words,
        people,
        labels_without_rater,
        notes,
        read.opposite,
        read.unread,
        read.uses_positive,
        tied,
        undecided,
    )


def check_positive(source: LabelSource, labels: Sequence[Label]) -> None:
    """Raise InputError if none of the words that mean right is in any label: it is misspelt."""
    if source.positive and not any(label.uses_positive for label in labels):
        names = ", ".join(label.name for label in labels)
        raise InputError(
            f"--positive {' '.join(source.positive)}: no answer has this value ({names})"
        )


def check_two_classes(label: Label) -> None:
    """Raise InputError unless a label has two classes, right and wrong."""
    if label.kind != "binary":
        values = np.unique(label.values[~np.isnan(label.values)])
        raters = f", by {', '.join(list(label.raters)[:MAX_RATERS_LISTED])}" if label.raters else ""
        raise InputError(
            f"label {label.name}: is {label.kind} ({amount(len(values), 'different value')}"
            f"{raters}); expected two classes, such as 0 and 1. Name the lowest right number with "
            "--at-least NUMBER, or the words for right with --positive WORD"
        )


def pool_raters(tables: Sequence[Floats], *, binary: bool) -> Floats:
    """Pool raters: their mean, or for two classes the majority, NaN where it is a tie."""
    table = np.stack(tables)
    has_rating = ~np.isnan(table)
    # np.nanmean would warn on answers without any rating.
    count = has_rating.sum(axis=0)
    total = np.where(has_rating, table, 0.0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(len(total), math.nan), where=count > 0)
    if not binary:
        return np.asarray(mean)
    return np.where(np.isnan(mean) | (mean == 0.5), math.nan, (mean > 0.5).astype(float))


def _is_probability(values: Floats) -> bool:
    known_values = values[~np.isnan(values)]
    return bool(len(known_values) and known_values.min() >= 0 and known_values.max() <= 1)
