"""Reads a table of answers as a study reads the answers of a run: one answer a row."""

import math
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.json_form import flatten
from trustassay.core.labels import is_missing, parse_number, parse_percent
from trustassay.core.sample import LONGEST_LINE_MIB, question_key
from trustassay.errors import UsageError
from trustassay.input.answer_tables import AnswerTable, TableRow, read_answer_table
from trustassay.input.ratings import RATING_FIELDS
from trustassay.input.records import InputError, raise_faults
from trustassay.people.study.answers import (
    ScoreColumn,
    StudyAnswer,
    StudyAnswers,
    as_list,
    may_be_label,
    read_answers,
)
from trustassay.text.numbers import amount

MAX_CELL_SHOWN = 40
"""Characters of a cell that a message quotes."""
MIN_NUMBERS = 0.8
"""Share of the filled cells of a column that are numbers, if it is a score that nobody named."""
NO_SCORES = frozenset({"id", "item", "repeat"})
"""Columns of numbers that are no scores."""


def read_source(
    source: Any,
    fields: Sequence[str],
    *,
    scores: Collection[str] = (),
    people: Collection[str] = (),
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
) -> StudyAnswers:
    """Read the answers of finished runs or of a table.

    Args:
        source: folders of runs, or one table as
            :func:`~trustassay.input.answer_tables.read_answer_table` reads it.
        fields: the fields of the answers to keep, such as labels; dots descend into objects.
        scores: the columns of a table that are scores. Default: all columns with numbers that are
            not among ``fields``.
        people: those of ``fields`` that people gave, if a judge in a trace has the same name.
        sheet: the sheet of a workbook.
        longest_line: MiB of the longest record of a table.

    Raises:
        RunFolderError, InputError: it cannot be read, or lacks one of ``scores`` or ``people``.
        UsageError: runs are mixed with files.
    """
    paths = [os.fspath(path) for path in as_list(source)] if _are_paths(source) else []
    if paths and all(Path(path).is_dir() for path in paths):
        if sheet:
            raise UsageError(
                f"--sheet {sheet}: only a workbook has sheets, and {paths[0]} is a run"
            )
        return read_answers([Path(path) for path in paths], fields)
    if len(paths) > 1:
        raise UsageError(f"{paths[1]}: expected folders of runs, or one file")
    table = read_answer_table(
        paths[0] if paths else source, {*fields, *scores}, sheet, longest_line
    )
    return build_table_answers(table, fields, scores=scores, people=people)


def _are_paths(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(path, str | os.PathLike) for path in source)
    return isinstance(source, str | os.PathLike)


def build_table_answers(
    table: AnswerTable,
    fields: Sequence[str],
    *,
    scores: Collection[str] = (),
    people: Collection[str] = (),
) -> StudyAnswers:
    """Return the answers of a table; the arguments are those of :func:`read_source`.

    Where a table has a column ``rater`` and several rows of an answer, these rows are one answer,
    and each of its ``people`` fields is a mapping from the rater to the value.
    """
    for name in set(scores).intersection(people):
        if not table.has_two_raters(name):
            raise InputError(
                f"{table.name}: {name} is named as the score and as the label; expected two "
                "columns, or scores of this name by people and by a judge"
            )
    label_fields = _list_label_fields(table)
    # Without labels of people, rows of an answer are not merged.
    rater = _find_rater_column(table) if people else ""
    wanted = {
        name: table.column(name, by_person=name in people)
        for name in fields
        if name in label_fields or name in table.names
    }
    groups = _group_rows(table, rater)
    rows = []
    for places in groups:
        row = table.rows[places[0]]
        values = {name: column[places[0]] for name, column in wanted.items()}
        if rater:
            values |= {
                name: _collect_raters(table, places, rater, column) or None
                for name, column in wanted.items()
                if name in people
            }
        values = {name: value for name, value in values.items() if value is not None}
        # Without a question, an answer is a question by itself; rows with one id are one.
        question = question_key(row.question) or row.id or f"row {places[0]}"
        words = len(row.response.split())
        rows.append(StudyAnswer(row.id, row.model, question, words, "", values))
    names = scores or _find_score_columns(table, set(fields))
    columns = [_build_score_column(table, name, groups, strict=bool(scores)) for name in names]
    notes = []
    if rater:
        notes.append(
            f"{amount(len(table.rows), 'row')} with {amount(len(rows), 'answer')}: the column "
            f"{rater} names several raters per answer"
        )
    places_by_run = {table.name: range(len(rows))}
    return StudyAnswers(
        rows,
        columns,
        (),
        {table.name: label_fields},
        places_by_run,
        notes,
        people if rater else (),
        lambda _: (pair for row in table.rows for pair in _flatten_row(row)),
    )


def _find_rater_column(table: AnswerTable) -> str:
    """Return the column that names raters, if ids repeat; else an empty text."""
    ids = {(row.id, row.model) for row in table.rows}
    columns = [name for name in RATING_FIELDS["rater"] if name in table.names]
    if not columns or len(ids) < len(table.rows):
        return columns[0] if columns else ""
    # Ids that the table does not have are of the whole row, so raters of an answer seem to be of
    # two. A judge is mostly a model, and its column no matter of people.
    answers = {(row.question, row.response, row.model) for row in table.rows}
    raters = {str(value) for value in table.column(columns[0]) if value is not None}
    has_people = columns[0] != "judge" and len(raters) > 1
    if has_people and "id" not in table.names and len(answers) < len(table.rows):
        raise InputError(
            f"{table.name}: {columns[0]} names {len(raters)} raters, but without a column id "
            "rows cannot be matched to answers; add this column"
        )
    return ""


def _group_rows(table: AnswerTable, rater: str) -> list[list[int]]:
    """Return the rows of each answer: one, or those of all its raters."""
    if not rater:
        return [[place] for place in range(len(table.rows))]
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(table.rows):
        groups.setdefault((row.id, row.model), []).append(place)
    return list(groups.values())


def _collect_raters(
    table: AnswerTable, places: Sequence[int], rater: str, column: Sequence[Any]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for place in places:
        row = table.rows[place]
        name = str(row.record.get(rater) or "")
        if name in result:
            raise InputError(
                f"{row.where}: {rater} {name[:MAX_CELL_SHOWN]!r} rated {row.id[:MAX_CELL_SHOWN]!r} "
                "twice; expected one row per rater and answer"
            )
        if column[place] is not None:
            result[name] = column[place]
    return result


def _build_score_column(
    table: AnswerTable, name: str, groups: Sequence[Sequence[int]], *, strict: bool
) -> ScoreColumn:
    """Return a column of a table as a score.

    Args:
        table: the table. name: of the column. groups: the rows of each answer.
        strict: whether every filled cell has to be a number; else other cells have no score.

    Raises:
        InputError: a cell is no number, or the rows of an answer have different scores.
    """
    cells = table.column(name)
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    percents = [parse_percent(text) for text in texts]
    filled = [not is_missing(text) for text in texts]
    # 95 % is .95, if all scores are written so.
    are_percents = all(p is not None for p, here in zip(percents, filled, strict=True) if here)
    faults: list[str] = []
    values = np.full(len(cells), math.nan)
    for place, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        if not filled[place]:
            continue
        number = parse_number(text) if not isinstance(cell, bool) else float(cell)
        number = (percents[place] or 0.0) / 100 if are_percents else number
        if number is None and strict:
            where = table.rows[place].where
            faults.append(f"{where}: {name}: expected a number, got {text[:MAX_CELL_SHOWN]!r}")
        values[place] = math.nan if number is None else number
    raise_faults(faults)
    result = np.full(len(groups), math.nan)
    for at, places in enumerate(groups):
        scores = {values[place] for place in places if not math.isnan(values[place])}
        if len(scores) > 1:
            row = table.rows[places[-1]]
            raise InputError(
                f"{row.where}: {name}: the rows of {row.id[:MAX_CELL_SHOWN]!r} have "
                f"{len(scores)} scores; expected the same in all of them"
            )
        result[at] = next(iter(scores), math.nan)
    known = result[~np.isnan(result)]
    is_probability = bool(len(known) and known.min() >= 0 and known.max() <= 1)
    missing = {"without a score": int(np.isnan(result).sum())} if np.isnan(result).any() else {}
    return ScoreColumn(name, "metric", result, is_probability, missing_by_reason=missing)


def _find_score_columns(table: AnswerTable, left_out: Collection[str]) -> list[str]:
    """Return the columns of numbers that nobody named as something else."""
    result = []
    for name in table.names:
        if name in left_out or name.casefold() in NO_SCORES:
            continue
        texts = [
            str(cell)
            for cell in table.column(name)
            if isinstance(cell, str | int | float) and not is_missing(str(cell))
        ]
        numbers = [t for t in texts if parse_number(t) is not None or parse_percent(t) is not None]
        if texts and len(numbers) >= MIN_NUMBERS * len(texts) and len(set(numbers)) > 1:
            result.append(name)
    return result


def _list_label_fields(table: AnswerTable) -> list[str]:
    """Return the names of fields with numbers or short texts, which may be labels."""
    pairs = (pair for row in table.rows for pair in _flatten_row(row))
    return sorted({name for name, value in pairs if may_be_label(name, value)})


def _flatten_row(row: TableRow) -> Iterable[tuple[str, Any]]:
    yield from flatten(row.record)
    yield from ((score.name, score.value) for score in row.scores)
