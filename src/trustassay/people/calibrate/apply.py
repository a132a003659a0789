"""Applies a calibrator to the rows of a table: a decision and a probability for each."""

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.core.files import write_atomic
from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.errors import UsageError
from trustassay.input.answer_tables import AnswerTable, read_answer_table
from trustassay.input.records import InputError
from trustassay.people.study.tables import build_table_answers
from trustassay.report.document import defuse_formula
from trustassay.runs.calibrator import (
    ACCEPT,
    ASK,
    FALSE_ALARM_RATE,
    Calibrator,
    describe_promise,
    read_calibrator,
)
from trustassay.statistics import Bools, Floats
from trustassay.statistics.comparison import compare_distribution
from trustassay.text.numbers import amount, p_equation

DECISION, PROBABILITY = "decision", "probability"
"""The columns that are added."""
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class AppliedCalibrator:
    """The decisions on the rows of a table; arrays have shape (n,)."""

    table: AnswerTable
    calibrator: Calibrator
    accepted: Bools
    probabilities: Floats
    """NaN without a score."""
    warnings: Sequence[str]
    """Why the promise may not hold here."""

    @property
    def promises(self) -> list[str]:
        """What is promised about the accepted ones, or why there is no promise."""
        promises = self.calibrator.promises
        return [
            f"{promise.of + ': ' if promise.of else ''}"
            + (f"no threshold: {promise.without}" if promise.without else describe_promise(promise))
            for promise in promises
        ]

    @property
    def decisions(self) -> list[str]:
        """``accept`` or ``ask``, for each row."""
        return [ACCEPT if accepted else ASK for accepted in self.accepted.tolist()]

    def write(self, path: Path) -> None:
        """Write the rows with both columns as ``.csv``, ``.tsv`` or ``.jsonl``.

        Raises:
            UsageError: the name has another ending.
        """
        chances = [None if np.isnan(p) else round(float(p), 4) for p in self.probabilities]
        added = [
            {DECISION: decision, PROBABILITY: chance}
            for decision, chance in zip(self.decisions, chances, strict=True)
        ]
        rows = [
            {**row.record, **columns} for row, columns in zip(self.table.rows, added, strict=True)
        ]
        if path.suffix == ".jsonl":
            lines = [json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows]
            write_atomic(path, "".join(lines).encode("utf-8", "surrogatepass"), private=False)
            return
        if path.suffix not in DELIMITERS:
            raise UsageError(f"{path}: expected a name that ends with .csv, .tsv or .jsonl")
        columns = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=DELIMITERS[path.suffix])
        writer.writerow([defuse_formula(name) for name in columns])
        writer.writerows([_write_cell(row.get(name)) for name in columns] for row in rows)
        write_atomic(path, text.getvalue().encode("utf-8", "surrogatepass"), private=False)


def _write_cell(value: Any) -> Any:
    if isinstance(value, str):
        return defuse_formula(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def apply_to_table(
    path: str | os.PathLike[str],
    source: Any,
    *,
    score: str = "",
    sheet: str = "",
    longest_line: int = LONGEST_LINE_MIB,
) -> AppliedCalibrator:
    """Decide on the rows of a table.

    A row without a score is never accepted. If a column that names the judge has a value that the
    labelled rows did not have, nothing is accepted, since the promise is about another judge.

    Args:
        path: the calibrator's file.
        source: the table, as for :func:`trustassay.calibrate`.
        score: the column of the score, if it has another name here.
        sheet: the sheet of a workbook. longest_line: MiB of the longest record.

    Raises:
        InputError: the calibrator or the table cannot be read, or lacks a column.
    """
    calibrator = read_calibrator(Path(path))
    name = score or calibrator.score.name
    judges = calibrator.score.source.judges
    fields = [*([calibrator.by] if calibrator.by else []), *judges]
    table = read_answer_table(source, {name, *fields}, sheet, longest_line)
    answers = build_table_answers(table, fields, scores=[name])
    (column,) = answers.columns
    of = [str(row.fields.get(calibrator.by) or "") for row in answers.rows]
    accepted = calibrator.accepts(column.values, of)
    warnings = []
    if calibrator.audit is not None and not calibrator.is_valid:
        audit = calibrator.audit
        warnings.append(
            f"the promise has been {audit.status} since {audit.day}, so nothing is accepted: "
            f"{audit.reason}"
        )
    for judge, known in judges.items():
        values = {str(row.fields.get(judge) or "").strip() for row in answers.rows}
        if strange := sorted(values - set(known)):
            accepted = np.zeros_like(accepted)
            warnings.append(
                f"{judge} is {strange[0][:60]!r}, which no labelled row had, so nothing is "
                "accepted; calibrate with labels of this judge"
            )
    _check_scale(name, column.values, calibrator)
    if count := int(calibrator.is_other_scale(column.values).sum()):
        warnings.append(
            f"{name}: {amount(count, 'score')} not accepted: outside 0 to 1, the range of the "
            "calibration"
        )
    test = compare_distribution(calibrator.spread, column.values, answers.questions)
    if test.p < FALSE_ALARM_RATE:
        warnings.append(
            f"{name}: the scores are distributed differently from those of the calibration "
            f"(largest distance {test.distance:.2f}, {p_equation(test.p)}); the promise may not "
            "hold here"
        )
    chances = calibrator.probabilities(column.values)
    return AppliedCalibrator(table, calibrator, accepted, chances, warnings)


def _check_scale(name: str, scores: Floats, calibrator: Calibrator) -> None:
    """Raise InputError if most scores are far outside of those of the calibration."""
    known = scores[~np.isnan(scores)]
    points = calibrator.spread.points
    if not len(known) or not points:
        return
    low, high = points[0], points[-1]
    margin = high - low
    if ((known < low - margin) | (known > high + margin)).mean() > 0.5:
        raise InputError(
            f"{name}: scores from {known.min():.4g} to {known.max():.4g}, but from {low:.4g} to "
            f"{high:.4g} in the calibration; use the same scale. Nothing was written"
        )
