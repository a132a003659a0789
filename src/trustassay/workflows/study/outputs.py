"""A study as a page and as a table in a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from trustassay.data.records import InputError
from trustassay.files import whole
from trustassay.report.pages import Row
from trustassay.report.study import (
    MOST_CURVES,
    Example,
    Line,
    Parting,
    Plot,
    Spread,
    StudyPage,
    StudySection,
    write_study_page,
)
from trustassay.report.text import number
from trustassay.statistics.calibration import reliability_bins
from trustassay.statistics.correlation import kept_means, roc_curve
from trustassay.workflows.annotate.sheets import defused
from trustassay.workflows.study.answers import Column
from trustassay.workflows.study.disagreement import Case
from trustassay.workflows.study.labelling import Label
from trustassay.workflows.study.studying import Figures, LabelStudy, Study
from trustassay.workflows.study.wording import (
    COST_COLUMNS,
    COVARIATE_COLUMNS,
    FIGURES,
    TEST_COLUMNS,
    cost_row,
    covariate_rows,
    figure_cells,
    headline,
    label_title,
    missing,
    ranked,
    shown_figures,
    test_row,
)

__all__ = ["TABLE_COLUMNS", "write_page", "write_table"]

Floats = NDArray[np.float64]
TABLE_COLUMNS = (
    "label", "by", "group", "score", "kind", "figure", "value", "low", "high", "n", "without"
)  # fmt: skip
POINTS = 200
"""Points of a curve that are drawn."""
FEWEST_KEPT = 10
"""Answers below which a point of a curve is left out: one of them would move it by a tenth."""
MOST_LEVELS = 11
THIRDS = ("lowest third", "middle third", "highest third")


def write_table(study: Study, path: Path) -> None:
    """Write all figures, a row a figure, as ``.csv``, ``.tsv`` or ``.md``.

    Raises:
        InputError: the name of the file ends otherwise.
        OSError: it cannot be written.
    """
    rows = list(_table_rows(study))
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",")
        writer.writerows([TABLE_COLUMNS, *([_cell(value) for value in row] for row in rows)])
        content = text.getvalue()
    elif suffix == ".md":
        lines = [TABLE_COLUMNS, tuple("---" for _ in TABLE_COLUMNS), *rows]
        content = "".join(f"| {' | '.join(map(_markdown, line))} |\n" for line in lines)
    else:
        raise InputError(f"{path}: expected a name that ends with .csv, .tsv or .md")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        file.write(content.encode())


def _table_rows(study: Study) -> Iterator[tuple[object, ...]]:
    for one in study.labels:
        kinds = {column.name: column.kind for column in one.columns}
        places: list[tuple[str, str, Figures]] = [("", "", {**one.figures, **one.covariates})]
        places += [
            (by, value, of) for by, group in one.groups.items() for value, of in group.items()
        ]
        for by, value, figures in places:
            for score, own in figures.items():
                for name, found in own.items():
                    low, high = found.interval or (None, None)
                    yield (
                        one.label.name, by, value, score, kinds.get(score, score), FIGURES[name],
                        found.value, low, high, found.n, found.without,
                    )  # fmt: skip


def _cell(value: object) -> object:
    if isinstance(value, str):
        return defused(value)
    return "" if value is None else value


def _markdown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    text = "" if value is None else " ".join(str(value).split())
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def write_page(study: Study, path: Path) -> None:
    """Write the page, whole or not at all."""
    facts = {
        "runs": ", ".join(study.runs),
        "answers": f"{study.answers:,}",
        "questions": f"{study.questions:,}",
        "resamples": f"{study.resamples:,}, seed {study.seed}",
    }
    page = StudyPage(
        "Scores against labels: " + ", ".join(Path(run).name for run in study.runs),
        facts,
        "Which score tells right answers from wrong ones, and how surely.",
        study.notes,
        [_section(one, path.parent) for one in study.labels],
        COST_COLUMNS,
        [Row(f"{cost.metric} ({Path(cost.run).name})", cost_row(cost)) for cost in study.costs],
    )
    write_study_page(page, path)


def _section(one: LabelStudy, folder: Path) -> StudySection:
    order = ranked(one)
    scores = [column for column in one.columns if column.kind in ("metric", "judge")]
    scores.sort(key=lambda column: order.index(column.name))
    drawn = [column for column in scores if len(_both(column, one.label)[0]) > 1][:MOST_CURVES]
    named = [(name, one.figures[name][one.headline]) for name in order]
    return StudySection(
        f"Label {label_title(one)}",
        headline(one),
        FIGURES[one.headline],
        [(name, found.value, found.interval) for name, found in named if found.value is not None],
        list(_tables(one)),
        [column.name for column in drawn],
        list(_plots(drawn, one.label)),
        {column.name: spreads for column in drawn if (spreads := _spreads(column, one.label))},
        [
            Parting(
                each.first,
                each.second,
                each.count,
                each.wrong,
                [_example(case, each.first, each.second, folder) for case in each.cases],
            )
            for each in one.parting
        ],
        missing(one),
    )


def _example(case: Case, first: str, second: str, folder: Path) -> Example:
    link = ""
    if case.link:
        path, _, anchor = case.link.rpartition("#")
        link = f"./{quote(os.path.relpath(path, folder))}#{anchor}"
    name = f"{case.id} ({case.model})" if case.model else case.id
    truth = "right" if case.label else "wrong"
    words = f"labelled {truth}; {first} {number(case.first, 3)}, {second} {number(case.second, 3)}"
    return Example(name, link, words)


def _tables(
    one: LabelStudy,
) -> Iterator[tuple[str, str, Sequence[str], Sequence[Row], str]]:
    shown = shown_figures(one)
    columns = ["n", FIGURES[shown[0]], "95 % interval", *(FIGURES[name] for name in shown[1:])]
    about = {column.name: column.about for column in one.columns}
    kinds = {column.name: column.kind for column in one.columns}
    rows = [
        Row(name, figure_cells(one.figures[name], shown), about.get(name, ""))
        for name in ranked(one)
    ]
    yield "In numbers", "Score", columns, rows, ""
    if one.tests:
        note = "On the answers that both have; p-values corrected for their number (Holm)."
        title = f"Differences in {FIGURES[one.headline]}"
        tested = [Row(f"{test.first} – {test.second}", test_row(test)) for test in one.tests]
        yield title, "Scores", TEST_COLUMNS, tested, note
    if one.covariates:
        about_covariates = "Parts of which neither end is better; in no test, and in no correction."
        rows = [Row(name, cells, about.get(name, "")) for name, cells in covariate_rows(one)]
        yield "Covariates", "Part", COVARIATE_COLUMNS, rows, about_covariates
    for by, group in one.groups.items():
        rows = [
            Row(f"{value or 'none'}: {name}", figure_cells(own, shown))
            for value, figures in group.items()
            for name, own in figures.items()
            if kinds.get(name) in ("metric", "judge", "baseline")
        ]
        yield f"By {by}", "Group and score", columns, rows, ""


def _both(column: Column, label: Label) -> tuple[Floats, Floats]:
    there = ~(np.isnan(column.values) | np.isnan(label.values))
    return column.values[there], label.values[there]


def _plots(columns: Sequence[Column], label: Label) -> Iterator[Plot]:
    pairs = [(at, column, *_both(column, label)) for at, column in enumerate(columns)]
    if label.kind == "binary":
        two = [one for one in pairs if 0 < one[3].sum() < len(one[3])]
        lines = [Line(column.name, _thinned(*roc_curve(x, y)), at) for at, column, x, y in two]
        if lines:
            yield Plot(
                "ROC",
                "Share of right answers accepted by share of wrong ones, as the threshold falls.",
                "wrong answers accepted",
                "right answers accepted",
                lines,
                diagonal=True,
            )
    lines = [
        Line(column.name, _thinned(*_kept(x, y, label)), at)
        for at, column, x, y in pairs
        if len(y) > FEWEST_KEPT
    ]
    if lines:
        heights = [y for line in lines for _, y in line.points]
        risk = label.kind == "binary"
        yield Plot(
            "Risk and coverage" if risk else "Mean label of what is kept",
            f"From {FEWEST_KEPT} answers on, kept from the highest score down: "
            + ("the share of wrong ones among them." if risk else "the mean of their labels."),
            "share of answers kept",
            "wrong among them" if risk else "mean label",
            lines,
            (min(heights), max(heights)),
        )
    if label.kind == "binary":
        reliable = [
            Line(column.name, points, at, dots=True)
            for at, column, x, y in pairs
            if column.probability and (points := _reliability(x, y))
        ]
        if reliable:
            yield Plot(
                "Reliability",
                "The score read as a probability: of answers with about the same score, "
                f"{FEWEST_KEPT} or more, the share that is right.",
                "mean score",
                "right among them",
                reliable,
                diagonal=True,
            )


def _kept(x: Floats, y: Floats, label: Label) -> tuple[Floats, Floats]:
    """Return the shares of answers kept, and the risk or the mean label among them."""
    kept = kept_means(x, y)
    shares = np.arange(1, len(y) + 1) / len(y)
    risk = 1 - kept if label.kind == "binary" else kept
    return shares[FEWEST_KEPT - 1 :], risk[FEWEST_KEPT - 1 :]


def _reliability(x: Floats, y: Floats) -> list[tuple[float, float]]:
    return [(one.chance, one.true) for one in reliability_bins(x, y) if one.n >= FEWEST_KEPT]


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Return at most 200 points of a curve, both ends among them."""
    places = np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(int))
    return list(zip(x[places].tolist(), y[places].tolist(), strict=True))


def _spreads(column: Column, label: Label) -> list[Spread]:
    """Return the scores by label, or by thirds of the labels where there are many."""
    x, y = _both(column, label)
    low, high = float(x.min()), float(x.max())
    if low == high:
        return []
    levels = np.unique(y)
    if len(levels) <= MOST_LEVELS:
        groups = [(_level(label, value), x[y == value]) for value in levels.tolist()]
    else:
        place = np.argsort(np.argsort(y, kind="stable"), kind="stable") * 3 // len(y)
        groups = [(name, x[place == third]) for third, name in enumerate(THIRDS)]
    found = []
    for name, own in groups:
        if len(own):
            five = np.quantile(own, (0, 0.25, 0.5, 0.75, 1))
            a, b, c, d, e = ((five - low) / (high - low)).tolist()
            found.append(Spread(name, len(own), (a, b, c, d, e), float(five[2])))
    return found


def _level(label: Label, value: float) -> str:
    if label.words and value == int(value):
        return label.words[int(value)]
    if label.kind == "binary":
        return "right (1)" if value else "wrong (0)"
    return f"{value:g}"
