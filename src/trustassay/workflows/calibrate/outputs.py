"""What a calibration is worth, as tables and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from trustassay.runs.calibrator import Calibrator
from trustassay.runs.probabilities import promise_in_words
from trustassay.show import document
from trustassay.show.plots import Line, Plot
from trustassay.show.text import amount
from trustassay.statistics import Floats
from trustassay.workflows.calibrate.command import CALIBRATED, CHANCE, FIGURES, Calibration
from trustassay.workflows.study.outputs import (
    FEWEST_KEPT,
    kept_points,
    reliability_points,
    with_interval,
)

PROMISES = ("threshold", "accepted", "wrong among them")


def headline(result: Calibration) -> str:
    """Say what the calibrator is, and what it was made from."""
    made = result.calibrator
    names = " and ".join(one.name for one in made.inputs)
    return (
        f"{made.method} of {names}, from {amount(made.answers, 'labelled answer')} to "
        f"{amount(made.questions, 'question')}, {100 * made.right:.1f} % of them right"
    )


def figure_rows(result: Calibration) -> list[document.Row]:
    """Return the figures of each row as text, each with its interval."""
    return [
        document.Row(
            f"{row}, out of fold" if row == CALIBRATED else row,
            [with_interval(own[name]) for name in FIGURES],
        )
        for row, own in result.figures.items()
    ]


def promise_rows(made: Calibrator) -> list[document.Row]:
    """Return each promise with its threshold and the labelled answers that it accepts."""
    rows = []
    for one in made.promises:
        above = "all with a score" if one.above is None else f"{made.rank} > {one.above:.4g}"
        wrong = f"{one.wrong:,} ({100 * one.wrong / one.answers:.1f} %)" if one.answers else "–"
        cells = [above, f"{one.answers:,}", wrong]
        if one.without:
            cells = [f"none: {one.without}", "", ""]
        words = promise_in_words(one.kind, one.at_most, one.confidence)
        rows.append(document.Row(words, cells))
    return rows


def write_page(result: Calibration, path: Path) -> None:
    """Write the page, whole or not at all."""
    made = result.calibrator
    facts = {
        "runs": ", ".join(result.runs),
        "label": made.label,
        "labelled answers": f"{made.answers:,}",
        "questions": f"{made.questions:,}",
        "seed": str(result.seed),
    }
    rows, kept = figure_rows(result), promise_rows(made)
    note = (
        "95 % intervals over questions. Out of fold: of each answer the probability by a "
        "calibrator that was fitted without its question; such figures have no interval, since the "
        "folds share their answers."
    )
    tables = [
        document.Table(
            "Probability", list(FIGURES.values()), rows, "How good the probabilities are", note
        ),
        document.Table("Promise", PROMISES, kept, "What is accepted", "Of the labelled answers."),
    ]
    plots = document.curves([name for name, _ in _series(result)], list(_plots(result)))
    title = f"Probability of being right ({made.label})"
    document.Document(
        "calibrate",
        "Calibration: " + ", ".join(Path(run).name for run in result.runs),
        facts,
        "From scores to the probability that an answer is right.",
        result.notes,
        [document.Section(title, [document.Text(headline(result), "headline"), *plots, *tables])],
    ).write(path)


def _series(result: Calibration) -> list[tuple[str, Floats]]:
    series = [(f"{CALIBRATED}, out of fold", result.probabilities)]
    if result.scores is not None:
        (name,) = (row for row in result.figures if row not in (CALIBRATED, CHANCE))
        series.append((name, result.scores))
    return series


def _plots(result: Calibration) -> Iterator[Plot]:
    known = [
        (place, name, values[~np.isnan(values)], result.right[~np.isnan(values)])
        for place, (name, values) in enumerate(_series(result))
    ]
    lines = [
        Line(name, points, place, dots=True)
        for place, name, values, right in known
        if (points := reliability_points(values, right))
    ]
    yield Plot(
        "Reliability",
        "Of answers with about the same probability, 10 or more, the share that is right.",
        "mean probability",
        "right among them",
        lines,
        diagonal=True,
    )
    place, name, values, right = known[0]
    if len(right) > FEWEST_KEPT:
        points = kept_points(values, right, risk=True)
        yield Plot(
            "Risk and coverage",
            "From 10 answers on, accepted from the highest probability down: the share of wrong "
            "ones.",
            "share of answers accepted",
            "wrong among them",
            [Line(name, points, place)],
            (0.0, max(0.05, *(y for _, y in points))),
        )
