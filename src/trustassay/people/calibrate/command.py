"""``calibrate``: fits probabilities of being right and thresholds from labelled runs."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from trustassay.core.json_form import JsonForm
from trustassay.errors import UnknownNameError, UsageError, did_you_mean, trim_traceback
from trustassay.input.labels import UnreadLabels
from trustassay.input.records import InputError
from trustassay.people.calibrate.fitting import LabelledScores, find_promises, fit
from trustassay.people.study import outputs
from trustassay.people.study.answers import (
    ScoreColumn,
    StudyAnswers,
    as_list,
    as_paths,
    read_answers,
)
from trustassay.people.study.figures import Resampling, estimate_figures
from trustassay.people.study.labels import (
    DEFAULT_LABEL,
    Label,
    LabelSource,
    check_positive,
    check_two_classes,
    read_answer_labels,
)
from trustassay.report import document
from trustassay.report.charts import NamedCurve, Plot
from trustassay.runs.calibrator import (
    Calibrator,
    CalibratorInput,
    describe_promise,
    write_calibrator,
)
from trustassay.runs.needs import list_needed_backends
from trustassay.statistics import Bools, Floats, correlation
from trustassay.statistics.auroc import auroc_difference
from trustassay.statistics.calibration import Method
from trustassay.statistics.comparison import summarise_distribution
from trustassay.statistics.conformal import fewest_questions
from trustassay.statistics.intervals import MIN_UNITS, Estimate
from trustassay.statistics.resampling import MIN_SAMPLES_OF_CLASS, generator, holm
from trustassay.text.words import amount

DEFAULT_AT_MOST = (0.05, 0.1, 0.2)
CONFIDENCE = 0.95
RESAMPLES = 2000
TEST_LEVEL = 0.05
FIGURE_TITLES = {"auroc": "AUROC", "log_loss": "log loss", "brier": "Brier", "ece": "ECE"}
"""The titles of the figures, by name."""
CALIBRATED_ROW, CHANCE = "calibrated", "share of right answers"
CALIBRATION_MEASURES: Mapping[str, correlation.WeightedMeasure] = {
    "auroc": correlation.weighted_auroc,
    "log_loss": correlation.weighted_log_loss,
    "brier": correlation.weighted_brier_score,
    "ece": correlation.weighted_calibration_error,
}


@dataclass(frozen=True)
class Calibration(JsonForm):
    """A calibrator and how good it is; ``trustassay.calibrate`` returns it. Arrays have shape
    (n,)."""

    json_names = ("runs", "figures", "unread", "notes", "seed", "calibrator")
    calibrator: Calibrator
    runs: Sequence[str]
    """The folders of the runs."""
    figures: Mapping[str, Mapping[str, Estimate]]
    """The figures by row and name. Rows are ``calibrated`` (out of fold), the score itself where it
    is a probability, and the share of right answers, predicted for every answer."""
    probabilities: Floats
    """Out-of-fold probabilities of the labelled answers; NaN without a score."""
    scores: Floats | None
    """The only score as it is, where it is a probability."""
    right: Floats
    """The labels: 1 for right, 0 for wrong."""
    notes: Sequence[str]
    """Remarks on the input and on figures that are missing."""
    seed: int
    unread: UnreadLabels | None = None
    """The labels that cannot be read, if there are any."""

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the calibrator as a small JSON file, and return its path."""
        write_calibrator(self.calibrator, Path(path))
        return Path(path)


@trim_traceback
def calibrate(  # noqa: PLR0913 - one argument an option
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    label: str = "",
    metrics: str | Sequence[str] = (),
    lower: str | Sequence[str] = (),
    at_most: float | Sequence[float] = (),
    confidence: float = CONFIDENCE,
    method: str = "auto",
    ratings: str | os.PathLike[str] | None = None,
    positive: str | Sequence[str] = (),
    at_least: float | None = None,
    machines: Collection[str] = (),
    fields: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Calibration:
    """Make a calibrator from labelled runs; nothing is written until :meth:`Calibration.write`.

    Args:
        runs: folders of finished runs, as for :func:`trustassay.study`.
        label: a field of the samples, or a column of ``ratings``, that says which answers are
            right. Default, without ratings: ``label``.
        metrics: names of scores: a metric, or a part of one (``faithfulness.support``). Several are
            combined. Not needed where the runs have one metric.
        lower: those parts of which lower is better where their metric does not say so.
        at_most: shares of wrong answers for which thresholds are promised; 5, 10 and 20 % if none
            is named. confidence: of the promises about accepted answers.
        method: ``isotonic``, ``logistic``, or ``auto``, by the log loss out of fold; of one score.
        ratings, positive, at_least, machines, fields: as for :func:`trustassay.study`.
        seed: of folds and resamples. resamples: for intervals.

    Raises:
        RunFolderError: a folder holds no finished run.
        InputError: the label is missing or not of two classes, or labels are too few; the message
            says how many would do.
        UnknownNameError: no such score. ValueError: a number is out of its range.
    """
    # 1. Options, answers and labels.
    risks = [at_most] if isinstance(at_most, int | float) else list(at_most)
    _check_options(risks, confidence, method, resamples)
    paths = as_paths(runs)
    # Without another source, the labels that came with the samples count.
    names = [label] if label else [] if ratings else [DEFAULT_LABEL]
    source = LabelSource(
        as_paths(ratings), names, fields or {}, machines, as_list(positive), at_least
    )
    answers = read_answers(paths, names)
    result = read_answer_labels(answers, source)[0][0]
    check_positive(source, [result])
    check_two_classes(result)
    # 2. The scores, turned so that higher is better.
    columns = _choose_columns(answers, as_list(metrics))
    inputs = [_build_input(column, as_list(lower)) for column in columns]
    # 3. The labelled answers that could be scored. An answer without a score that did not fail
    # stays: it is never accepted.
    is_used = ~np.isnan(result.values)
    failed = np.zeros(len(is_used), dtype=bool)
    for column in columns:
        failed[list(column.failed)] = True
    table = np.stack(
        [
            input_of_column.sign * column.as_given
            for input_of_column, column in zip(inputs, columns, strict=True)
        ],
        axis=1,
    )
    # A failure is no low score, so failed answers are neither fitted nor tested.
    is_used &= ~failed
    rows = LabelledScores(table, result.values, answers.questions).of(is_used)
    _check_enough(rows, result.name, risks, confidence)
    # 4. Fit, find thresholds, and evaluate out of fold.
    fitted = fit(rows, cast(Method, method) if method != "auto" else None, seed)
    kept_promises = find_promises(fitted, risks or DEFAULT_AT_MOST, confidence, seed)
    # Only then can the raw score be compared with its calibrated form.
    is_probability = len(columns) == 1 and columns[0].probability and inputs[0].sign > 0
    score = rows.scores[:, 0] if is_probability else None
    figures = _estimate_figures(rows, fitted.out_of_fold, inputs[0].name, score, seed, resamples)
    # 5. What is written to the file.
    calibrator = Calibrator(
        result.name,
        len(rows.right),
        len(np.unique(rows.questions)),
        float(rows.right.mean()),
        inputs,
        fitted.model,
        kept_promises,
        _measure_spreads(answers, columns, is_used),
        {
            # Out-of-fold figures have no interval: see _estimate_figures.
            name: {"value": estimate.value, "low": None, "high": None, "n": estimate.n}
            for name, estimate in figures[CALIBRATED_ROW].items()
        },
        f"trustassay {version('trustassay')}",
    )
    notes = [
        # 6. Notes, and the command that calibrates a better score of the same metric.
        *answers.notes,
        *_describe_inputs(result, columns, inputs, rows, failed),
        *_describe_missing(figures),
    ]
    if len(columns) == 1:
        repeat = _build_command(paths, result.name if label else "", source)
        notes += _find_better_scores(answers, columns[0], inputs[0], result.values, repeat)
    run_names = [str(path) for path in paths]
    chances = fitted.out_of_fold
    return Calibration(
        calibrator, run_names, figures, chances, score, rows.right, notes, seed, result.unread
    )


def _check_options(risks: Sequence[float], confidence: float, method: str, resamples: int) -> None:
    for risk in risks:
        if not 0 < risk < 1:
            raise UsageError(f"at most: expected a share between 0 and 1, got {risk:g}")
    # Below 0.5 a promise would be broken more often than kept.
    if not 0.5 <= confidence < 1:
        raise UsageError(f"confidence: expected 0.5 or more and below 1, got {confidence:g}")
    if method not in ("auto", *get_args(Method)):
        raise UnknownNameError(did_you_mean("method", method, ["auto", *get_args(Method)]))
    # Fewer resamples give intervals that are mostly noise.
    if resamples < 100:
        raise UsageError(f"resamples: expected 100 or more, got {resamples}")


def _choose_columns(answers: StudyAnswers, names: Sequence[str]) -> list[ScoreColumn]:
    columns_by_name = {column.name: column for column in answers.columns}
    if not names:
        # Parts have to be named: there are too many to choose from.
        scores = [column for column in answers.columns if column.kind == "metric"]
        if len(scores) != 1:
            names_of_scores = ", ".join(column.name for column in scores) or "none"
            raise InputError(
                f"--metric: name the scores to be calibrated; the runs have {names_of_scores}"
            )
        return scores
    for name in names:
        if name not in columns_by_name:
            raise UnknownNameError(did_you_mean("score of the runs", name, columns_by_name))
    return [columns_by_name[name] for name in dict.fromkeys(names)]


def _build_input(column: ScoreColumn, lower: Sequence[str]) -> CalibratorInput:
    options, backends = json.loads(column.settings)
    # --lower is for parts, whose direction a metric may not declare.
    if column.name in lower and not column.part:
        raise UsageError(f"lower: {column.name} is a metric, which knows that itself")
    # The sign is stored, so that the calibrator can be applied to raw scores later.
    turned = column.turned or column.name in lower
    # Only backends that the metric uses: others may change without invalidating the calibrator.
    needed = list_needed_backends(column.metric, options, backends)
    judging_backends = {name: value for name, value in backends.items() if name in needed}
    return CalibratorInput(
        column.metric, column.part, options, judging_backends, -1 if turned else 1
    )


def _check_enough(
    rows: LabelledScores, label: str, risks: Sequence[float], confidence: float
) -> None:
    """Raise InputError if labels are too few for probabilities or for the requested thresholds."""
    scored_rows = rows.of(rows.has_score)
    right, wrong = (
        len(np.unique(scored_rows.questions[scored_rows.right == kind])) for kind in (1, 0)
    )
    questions = len(np.unique(scored_rows.questions))
    # A combination uses half of the questions to fit and half to test.
    parts = 1 if rows.scores.shape[1] == 1 else 2
    if questions < MIN_UNITS * parts or min(right, wrong) < MIN_SAMPLES_OF_CLASS * parts:
        raise InputError(
            f"label {label}: too few for probabilities: {amount(len(scored_rows.right), 'answer')} "
            f"with a label and a score to {amount(questions, 'question')}, {right:,} with a right "
            f"and {wrong:,} with a wrong answer; at least {MIN_UNITS * parts} questions are "
            "needed, "
            f"{MIN_SAMPLES_OF_CLASS * parts} with a right and {MIN_SAMPLES_OF_CLASS * parts} "
            "with a wrong one"
        )
    for risk in risks:
        fewest = parts * fewest_questions(risk, round(1 - confidence, 12))
        if len(np.unique(rows.questions)) < fewest:
            # Fail now: without enough questions no threshold could keep the promise.
            of = describe_promise("among accepted", risk, confidence)
            half = ", half of which fit the combination" if parts > 1 else ""
            raise InputError(
                f"label {label}: too few for {of}: {questions:,} labelled questions; at least "
                f"{fewest:,} are needed{half}, and more if any accepted answer is wrong"
            )


def _measure_spreads(
    answers: StudyAnswers, columns: Sequence[ScoreColumn], used: Bools
) -> dict[str, Any]:
    """Return the distributions of the scores and of all parts of their metrics, by name."""
    # Distributions let a later run notice that its scores look different.
    settings = {(column.metric, column.settings) for column in columns}
    result = {}
    for column in answers.columns:
        if (column.metric, column.settings) in settings:
            name = f"{column.metric}.{column.part}" if column.part else column.metric
            result[name] = summarise_distribution(column.as_given[used], answers.questions[used])
    return result


def _estimate_figures(
    rows: LabelledScores,
    chances: Floats,
    name: str,
    score: Floats | None,
    seed: int,
    resamples: int,
) -> dict[str, Mapping[str, Estimate]]:
    columns = [ScoreColumn(CALIBRATED_ROW, "metric", chances, probability=True)]
    if score is not None:
        # The score itself, to show what calibration gains.
        columns.append(ScoreColumn(name, "metric", score, probability=True))
    # The baseline predicts the share of right answers for every scored answer.
    share = np.where(np.isnan(chances), np.nan, rows.right[~np.isnan(chances)].mean())
    columns.append(ScoreColumn(CHANCE, "baseline", share, probability=True))
    # Answers to one question are resampled together.
    resampling = Resampling(generator(seed, "calibrate", "figures"), resamples)
    _, questions = np.unique(rows.questions, return_inverse=True)
    result = dict(
        estimate_figures(columns, rows.right, "binary", questions, resampling, CALIBRATION_MEASURES)
    )
    # Each fold's curve is fitted on other answers of the same set, and so none is independent of
    # the rest: intervals of 40 to 150 questions held in 81 to 93 of 100 simulated sets.
    bare = {
        name: replace(estimate, interval=None) for name, estimate in result[CALIBRATED_ROW].items()
    }
    return {**result, CALIBRATED_ROW: bare}


def _describe_missing(figures: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    """Describe which figures are missing, and why; a constant never has an AUROC, so skip it."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row, estimates_of_row in figures.items():
        for name, estimate in estimates_of_row.items():
            if estimate.value is None and row != CHANCE:
                reasons.setdefault((row, estimate.without), []).append(FIGURE_TITLES[name])
    return [f"{row}: no {', '.join(names)}: {reason}" for (row, reason), names in reasons.items()]


def _find_better_scores(
    answers: StudyAnswers,
    column: ScoreColumn,
    used: CalibratorInput,
    labels: Floats,
    repeat: Sequence[str],
) -> list[str]:
    """Describe which other scores of the metric order the answers better (5 % level over all
    tests).
    """
    other_columns = [
        column_compared
        for column_compared in answers.columns
        if column_compared.settings == column.settings
        and column_compared.metric == column.metric
        and column_compared.kind in ("metric", "part")
        # A part that equals the score would only make the correction stricter.
        and not np.array_equal(column_compared.values, column.values, equal_nan=True)
    ]
    # In the direction in which the calibrator uses the score.
    scores = used.sign * column.as_given
    tests = []
    for column_compared in other_columns:
        # A sum is NaN where any of its terms is.
        has_all = ~np.isnan(column_compared.values + scores + labels)
        tests.append(
            auroc_difference(
                column_compared.values[has_all],
                scores[has_all],
                labels[has_all],
                answers.questions[has_all],
            )
        )
    corrected = holm([test.p for test in tests])
    number_of_tests = amount(len(corrected) - corrected.count(None), "test")
    result = []
    for column_compared, test, p in zip(other_columns, tests, corrected, strict=True):
        # Better only if significant after Holm's correction, and in the right direction.
        if p is None or p >= TEST_LEVEL or test.value <= 0 or test.interval is None:
            continue
        low, high = test.interval
        command = shlex.join([*repeat, "--metric", column_compared.name])
        result.append(
            f"{column_compared.name} orders the answers better than {column.name}: its AUROC is "
            f"higher by {test.value:.3f} ({low:.3f} to {high:.3f}, p {p:.2g}, corrected for "
            f"{number_of_tests}). To calibrate it: {command}"
        )
    return result


def _build_command(runs: Sequence[Path], label: str, source: LabelSource) -> list[str]:
    """Build the command that reads the same labels of the same runs."""
    options_of_command = [
        ("--label", [label] if label else []),
        ("--ratings", [str(path) for path in source.ratings]),
        ("--positive", source.positive),
        ("--at-least", [] if source.at_least is None else [f"{source.at_least:g}"]),
        ("--machine", sorted(source.machines)),
        ("--field", [f"{name}={column}" for name, column in source.columns.items()]),
    ]
    words = [
        word
        for option, values in options_of_command
        for value in values
        for word in (option, value)
    ]
    return ["trustassay", "calibrate", *map(str, runs), *words]


def _describe_inputs(
    label: Label,
    columns: Sequence[ScoreColumn],
    inputs: Sequence[CalibratorInput],
    rows: LabelledScores,
    failed: Bools,
) -> list[str]:
    result = list(label.notes)
    labels = ~np.isnan(label.values)
    if count := int((labels & failed).sum()):
        result.append(f"{amount(count, 'labelled answer')} could not be scored and is left out")
    if count := int((~rows.has_score).sum()):
        result.append(f"{amount(count, 'labelled answer')} without a score: never accepted")
    for place, (column, input_of_column) in enumerate(zip(columns, inputs, strict=True)):
        has_score = ~np.isnan(rows.scores[:, place])
        auroc = correlation.auroc(rows.scores[has_score, place], rows.right[has_score])
        # In a combination the fit turns a score round by itself.
        if auroc is not None and auroc < 0.5 and len(inputs) == 1:
            hint = (
                f"; --lower {column.name} reverses it"
                if input_of_column.part and input_of_column.sign > 0
                else ""
            )
            opposite = f"; if the labels mean the opposite: {label.opposite}"
            result.append(
                f"{column.name}: right answers score lower than wrong ones (AUROC {auroc:.3f}), so "
                f"that it does not help here{hint}{opposite if label.opposite else ''}"
            )
    return result


PROMISE_COLUMNS = ("threshold", "accepted", "wrong among them")


def headline(result: Calibration) -> str:
    """Write what the calibrator is, and the data that it was fitted to."""
    calibrator = result.calibrator
    names = " and ".join(input_of_calibrator.name for input_of_calibrator in calibrator.inputs)
    return (
        f"{calibrator.method} of {names}, from {amount(calibrator.answers, 'labelled answer')} to "
        f"{amount(calibrator.questions, 'question')}, {100 * calibrator.right:.1f} % of them right"
    )


def build_figure_rows(result: Calibration) -> list[document.DocumentRow]:
    """Build the rows of figures, each with its interval."""
    return [
        document.DocumentRow(
            f"{row}, out of fold" if row == CALIBRATED_ROW else row,
            [outputs.format_with_interval(estimates_of_row[name]) for name in FIGURE_TITLES],
        )
        for row, estimates_of_row in result.figures.items()
    ]


def build_promise_rows(calibrator: Calibrator) -> list[document.DocumentRow]:
    """Build a row for each promise: its threshold and the labelled answers that it accepts."""
    rows = []
    for promise in calibrator.promises:
        above = (
            "all with a score"
            if promise.above is None
            else f"{calibrator.rank} > {promise.above:.4g}"
        )
        wrong = (
            f"{promise.wrong:,} ({100 * promise.wrong / promise.answers:.1f} %)"
            if promise.answers
            else "–"
        )
        cells = [above, f"{promise.answers:,}", wrong]
        if promise.without:
            # The reason takes the place of the threshold.
            cells = [f"none: {promise.without}", "", ""]
        words = describe_promise(promise.kind, promise.at_most, promise.confidence)
        rows.append(document.DocumentRow(words, cells))
    return rows


def build_document(result: Calibration) -> document.PageDocument:
    """Build the page of a calibration."""
    calibrator = result.calibrator
    facts = {
        "runs": ", ".join(result.runs),
        "label": calibrator.label,
        "labelled answers": f"{calibrator.answers:,}",
        "questions": f"{calibrator.questions:,}",
        "seed": str(result.seed),
    }
    rows, promises_in_rows = build_figure_rows(result), build_promise_rows(calibrator)
    note = (
        "95 % intervals over questions. Out of fold: of each answer the probability by a "
        "calibrator that was fitted without its question; such figures have no interval, since the "
        "folds share their answers."
    )
    tables = [
        document.Table(
            "Probability",
            list(FIGURE_TITLES.values()),
            rows,
            "How good the probabilities are",
            note,
        ),
        document.Table(
            "Promise",
            PROMISE_COLUMNS,
            promises_in_rows,
            "What is accepted",
            "Of the labelled answers.",
        ),
    ]
    plots = document.curves([name for name, _ in _list_series(result)], list(_build_plots(result)))
    title = f"Probability of being right ({calibrator.label})"
    return document.PageDocument(
        "calibrate",
        "Calibration: " + ", ".join(Path(run).name for run in result.runs),
        facts,
        "From scores to the probability that an answer is right.",
        result.notes,
        [document.Section(title, [document.Text(headline(result), "headline"), *plots, *tables])],
    )


def _list_series(result: Calibration) -> list[tuple[str, Floats]]:
    series = [(f"{CALIBRATED_ROW}, out of fold", result.probabilities)]
    if result.scores is not None:
        # The only row that is neither the calibrated one nor the baseline.
        (name,) = (row for row in result.figures if row not in (CALIBRATED_ROW, CHANCE))
        series.append((name, result.scores))
    return series


def _build_plots(result: Calibration) -> Iterator[Plot]:
    scored_series = [
        (place, name, values[~np.isnan(values)], result.right[~np.isnan(values)])
        for place, (name, values) in enumerate(_list_series(result))
    ]
    lines = [
        NamedCurve(name, points, place, dots=True)
        for place, name, values, right in scored_series
        if (points := outputs.build_reliability_points(values, right))
    ]
    yield Plot(
        "Reliability",
        "Of answers with about the same probability, 10 or more, the share that is right.",
        "mean probability",
        "right among them",
        lines,
        diagonal=True,
    )
    place, name, values, right = scored_series[0]
    # Risk and coverage are drawn for the calibrated probability only, which is the first series.
    if len(right) > outputs.MIN_ANSWERS_OF_POINT:
        points = outputs.build_coverage_points(values, right, risk=True)
        yield Plot(
            "Risk and coverage",
            "From 10 answers on, accepted from the highest probability down: the share of wrong "
            "ones.",
            "share of answers accepted",
            "wrong among them",
            [NamedCurve(name, points, place)],
            # From 0, so that small risks look small; at least 5 % high, so that 0 is no flat line
            # at the top.
            (0.0, max(0.05, *(y for _, y in points))),
        )
