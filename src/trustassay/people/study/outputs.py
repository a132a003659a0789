"""A study as text and table cells, as a table in a file, and as a page."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from trustassay.people.study.answers import MetricCost, ScoreColumn
from trustassay.people.study.command import (
    EstimatesByColumn,
    LabelStudy,
    PartingCase,
    Study,
)
from trustassay.people.study.figures import (
    ASSOCIATIONS,
    CHANCE_ROW,
    CLASS_FIGURES,
    ScoreTest,
    find_p_value,
)
from trustassay.people.study.labels import Label
from trustassay.report import document
from trustassay.report.charts import MAX_CURVES, NamedCurve, Plot, RescueCount, box_svg, heat_svg
from trustassay.statistics import Floats
from trustassay.statistics.correlation import roc_curve
from trustassay.statistics.intervals import Estimate
from trustassay.text.numbers import amount, ends_text, number, p_text

FIGURE_TITLES: Mapping[str, str] = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "prr": "PRR",
    "kendall": "tau-b",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "brier": "Brier",
    "ece": "ECE",
}
# Both depend on the ranking alone, as the headline figures do.
SHOWN_FIGURES = ("auprc", "prr")
"""Figures that are shown beside the headline. The others answer questions that few people ask, and
would distract from the main one; ``--table`` and the JSON form have all of them."""
TEST_COLUMNS = ("difference", "95 % interval", "p", "corrected p")
COVARIATE_COLUMNS = ("n", "tau-b", "95 % interval", "Spearman", "Pearson", "p of Pearson")
COST_COLUMNS = ("samples", "requests", "chat calls", "tokens", "USD")
ABSENT_CELL = "–"
SIGNIFICANCE_LEVEL = 0.05
TEST_VERDICTS = (
    "Significantly higher than",
    "No significant difference (5 % level) from",
    "On the answers that both have, significantly lower than",
    "Not compared with",
)
"""The possible results of a test of the best score, in the order in which they are listed."""


def choose_figures(study_of_label: LabelStudy) -> list[str]:
    """Return the figures to show for this kind of label, the headline first."""
    binary = study_of_label.label.kind == "binary"
    return [
        study_of_label.headline,
        *(name for name in SHOWN_FIGURES if binary or name not in CLASS_FIGURES),
    ]


def rank_rows(study_of_label: LabelStudy) -> list[str]:
    """Return the names of the rows, the best by the headline figure first, chance last."""

    def key(name: str) -> tuple[bool, bool, float]:
        value = study_of_label.figures[name][study_of_label.headline].value
        # False sorts before True: rows with a value, then rows without, then chance.
        return name == CHANCE_ROW, value is None, -(value or 0.0)

    return sorted(study_of_label.figures, key=key)


def format_cell(result: Estimate) -> str:
    """Write a figure, or a dash where there is none."""
    return ABSENT_CELL if result.value is None else f"{result.value:.3f}".replace("-", "−")


def format_with_interval(result: Estimate) -> str:
    """Write a figure with its interval, if it has one."""
    ends = ends_text(result.interval)
    return f"{format_cell(result)} ({ends})" if ends else format_cell(result)


def build_score_rows(
    study_of_label: LabelStudy, names: Sequence[str]
) -> list[document.DocumentRow]:
    """Build a row for each score, the best first; the first figure has its interval."""
    return _build_rows(
        study_of_label,
        {name: study_of_label.figures[name] for name in rank_rows(study_of_label)},
        names,
    )


def build_covariate_rows(study_of_label: LabelStudy) -> list[document.DocumentRow]:
    """Build a row of correlations for each part without a better direction."""
    rows = _build_rows(study_of_label, study_of_label.covariates, list(ASSOCIATIONS))
    p_values = [
        find_p_value(name, "pearson", figures["pearson"])
        for name, figures in study_of_label.covariates.items()
    ]
    return [
        row._replace(cells=[*row.cells, ABSENT_CELL if p is None else p_text(p)])
        for row, p in zip(rows, p_values, strict=True)
    ]


def _build_rows(
    study_of_label: LabelStudy, figures_by_row: EstimatesByColumn, names: Sequence[str]
) -> list[document.DocumentRow]:
    about = {column.name: column.description for column in study_of_label.columns}
    return [
        document.DocumentRow(name, build_figure_cells(figures, names), about.get(name, ""))
        for name, figures in figures_by_row.items()
    ]


def build_figure_cells(figures: Mapping[str, Estimate], names: Sequence[str]) -> list[str]:
    """Build the cells of a row: the number of answers, the first figure with interval, the
    others."""
    first = figures[names[0]]
    other_cells = [format_cell(figures[name]) for name in names[1:]]
    return [f"{first.n:,}", format_cell(first), ends_text(first.interval), *other_cells]


def build_group_rows(
    study_of_label: LabelStudy, by: str, names: Sequence[str]
) -> list[document.DocumentRow]:
    """Build the rows of scores and baselines within each value of a field."""
    kinds = study_of_label.kinds
    return [
        document.DocumentRow(f"{value or 'none'}: {name}", build_figure_cells(figures, names))
        for value, group in study_of_label.groups[by].items()
        for name, figures in group.items()
        # Parts would make the table of groups too long.
        if kinds.get(name) in ("metric", "judge", "baseline")
    ]


def describe_label(study_of_label: LabelStudy) -> str:
    """Describe a label: its name, kind, number of answers and mean."""
    label = study_of_label.label
    # NaN is the only value that does not equal itself.
    known_labels = label.values[label.values == label.values]
    missing_ = len(label.values) - label.n
    article = "an" if label.kind == "ordinal" else "a"
    message = f"{label.name}: {amount(label.n, 'answer')} with {article} {label.kind} label"
    message += f", mean {number(float(known_labels.mean()), 3)}" if label.n else ""
    return message + (f"; {amount(missing_, 'answer')} without a label" if missing_ else "")


def headline(study_of_label: LabelStudy) -> str:
    """Write which row and which score is highest, and from which others it differs
    significantly."""
    name = FIGURE_TITLES[study_of_label.headline]
    # Baselines, people and chance are rows of the table but no scores.
    scores = {
        score for score, kind in study_of_label.kinds.items() if kind in ("metric", "part", "judge")
    }
    defined = [
        row
        for row in rank_rows(study_of_label)
        if study_of_label.figures[row][study_of_label.headline].value is not None
    ]
    rows = [row for row in defined if row != CHANCE_ROW]
    score_names = [row for row in rows if row in scores]
    if not score_names:
        reasons = {
            study_of_label.figures[score][study_of_label.headline].without for score in scores
        }
        return f"No score has an {name}: {'; '.join(sorted(reasons)) or 'the input has no scores'}."
    best = score_names[0]

    def format_row(row: str) -> str:
        return f"{row} {format_with_interval(study_of_label.figures[row][study_of_label.headline])}"

    message = f"Highest {name}: "
    # A baseline that beats every score is the most important finding.
    if rows[0] != best:
        message += f"{format_row(rows[0])}, which is not a score; among the scores, "
    message += f"{format_row(best)}."
    names_by_verdict: dict[str, list[str]] = {verdict: [] for verdict in TEST_VERDICTS}
    for test in study_of_label.tests:
        if best in (test.first, test.second):
            other = test.first if test.second == best else test.second
            names_by_verdict[_describe_test(test, best)].append(other)
    return message + "".join(
        f" {verdict} {', '.join(names)}." for verdict, names in names_by_verdict.items() if names
    )


def _describe_test(test: ScoreTest, best: str) -> str:
    """Return the verdict of a test on the score ``best``."""
    higher, unclear, lower, not_compared = TEST_VERDICTS
    if test.corrected is None:
        return not_compared
    # "Higher" is a claim, so it rests on the p-value that is corrected for all tests.
    if test.corrected >= SIGNIFICANCE_LEVEL:
        return unclear
    difference = test.difference or 0.0
    # On the answers that both have, a score that ranks lower can still be higher.
    return lower if (-difference if test.second == best else difference) < 0 else higher


def build_test_rows(study_of_label: LabelStudy) -> list[document.DocumentRow]:
    """Build a row for each test of a label."""
    rows = []
    for test in study_of_label.tests:
        cells = ["", "", ""]
        if test.p is not None and test.corrected is not None:
            cells = [ends_text(test.interval, "+"), p_text(test.p), p_text(test.corrected)]
        value = (
            ABSENT_CELL if test.difference is None else f"{test.difference:+.3f}".replace("-", "−")
        )
        rows.append(document.DocumentRow(f"{test.first} – {test.second}", [value, *cells]))
    return rows


def build_cost_row(cost: MetricCost) -> list[str]:
    """Build the cells of a metric's cost for one sample."""
    requests = ", ".join(f"{name} {count:.3g}" for name, count in cost.requests.items())
    # 0 is written without decimals: local models are free, not cheap.
    usd = "price unknown" if cost.usd is None else f"{cost.usd:.6f}" if cost.usd else "0"
    return [f"{cost.samples:,}", requests or "none", f"{cost.calls:.3g}", f"{cost.tokens:.4g}", usd]


def describe_missing(study_of_label: LabelStudy) -> list[str]:
    """Describe which figures and intervals are missing, and why."""
    result: dict[tuple[str, str, str], list[str]] = {}
    for name, figures in study_of_label.figures.items():
        names_by_reason: dict[tuple[str, str], list[str]] = {}
        # Figures with the same reason share one line, then rows with the same figures do.
        for figure in choose_figures(study_of_label):
            estimate = figures[figure]
            if estimate.without and name != CHANCE_ROW:
                what = "no " if estimate.value is None else "no interval for "
                names_by_reason.setdefault((what, estimate.without), []).append(
                    FIGURE_TITLES[figure]
                )
        for (what, reason), names in names_by_reason.items():
            result.setdefault((what, ", ".join(names), reason), []).append(name)
    words = [
        f"{what}{figures}: {reason} ({', '.join(names)})"
        for (what, figures, reason), names in result.items()
    ]
    tests: dict[str, list[str]] = {}
    for test in study_of_label.tests:
        if test.without:
            tests.setdefault(test.without, []).append(f"{test.first} – {test.second}")
    return words + [f"no test: {reason} ({', '.join(names)})" for reason, names in tests.items()]


TABLE_COLUMNS = (
    "label", "by", "group", "score", "kind", "figure", "value", "low", "high", "n", "p", "without"
)  # fmt: skip
MAX_CURVE_POINTS = 200
"""Most points that are drawn of a curve."""
MAX_LEVELS = 11
THIRDS = ("lowest third", "middle third", "highest third")


def write_figures(study: Study, path: Path) -> None:
    """Write all figures, one a row; raises the errors of ``document.write_table``."""
    document.write_table(TABLE_COLUMNS, list(_list_table_rows(study)), path)


def _list_table_rows(study: Study) -> Iterator[tuple[object, ...]]:
    for study_of_label in study.labels:
        kinds = study_of_label.kinds
        # The whole data first, with no field and no group, then each group.
        places: list[tuple[str, str, EstimatesByColumn]] = [
            ("", "", {**study_of_label.figures, **study_of_label.covariates})
        ]
        places += [
            (by, value, of)
            for by, group in study_of_label.groups.items()
            for value, of in group.items()
        ]
        for by, value, figures in places:
            for score, estimates_of_score in figures.items():
                for name, result in estimates_of_score.items():
                    # Empty cells where there is no interval.
                    low, high = result.interval or (None, None)
                    yield (
                        study_of_label.label.name, by, value, score, kinds.get(score, score),
                        FIGURE_TITLES[name], result.value, low, high, result.n,
                        find_p_value(score, name, result), result.without,
                    )  # fmt: skip


def build_document(study: Study, folder: Path | None = None) -> document.PageDocument:
    """Build the page; if it is written to a ``folder``, examples link to the reports of runs."""
    sections = [
        document.Section(
            f"Label {describe_label(study_of_label)}", _build_label_blocks(study_of_label, folder)
        )
        for study_of_label in study.labels
    ]
    if study.costs:
        rows = [
            document.DocumentRow(f"{cost.metric} ({Path(cost.run).name})", build_cost_row(cost))
            for cost in study.costs
        ]
        sections.append(
            document.Section("Cost per sample", [document.Table("Metric", COST_COLUMNS, rows)])
        )
    return document.PageDocument(
        "study",
        "Scores compared with labels: " + ", ".join(Path(run).name for run in study.runs),
        {
            "runs": ", ".join(study.runs),
            "answers": f"{study.answers:,}",
            "questions": f"{study.questions:,}",
            "resamples": f"{study.resamples:,}, seed {study.seed}",
        },
        "How well each score separates right answers from wrong ones.",
        study.notes,
        sections,
    )


def _build_label_blocks(study_of_label: LabelStudy, folder: Path | None) -> list[document.Block]:
    """Build the blocks of one label: drawings, examples, tables, and what is missing."""
    order = rank_rows(study_of_label)
    scores = [column for column in study_of_label.columns if column.kind in ("metric", "judge")]
    # The best first, so that the colours of curves follow the table.
    scores.sort(key=lambda column: order.index(column.name))
    # 1. The best scores, as many as colours can be told apart.
    drawn = [column for column in scores if len(_select_both(column, study_of_label.label)[0]) > 1][
        :MAX_CURVES
    ]
    parts: list[document.Block] = [document.Text(headline(study_of_label), "headline")]
    # 2. The headline figure of each row, as bars.
    ends = [
        (name, result.value, result.interval)
        for name in order
        if (result := study_of_label.figures[name][study_of_label.headline]).value is not None
    ]
    if ends:
        note = Markup("Bar: 95 % interval from resampled questions; {}the figure.").format(
            document.MEAN
        )
        title = f"{FIGURE_TITLES[study_of_label.headline]} of each score"
        parts.append(document.Chart(title, note, [document.interval_bars(ends, style="thin")]))
    # 3. Curves of the scores.
    parts += document.curves(
        [column.name for column in drawn], list(_build_roc(drawn, study_of_label.label))
    )
    # 4. Distributions of the scores by label.
    if spreads := [
        spread for column in drawn if (spread := _build_spread_chart(column, study_of_label.label))
    ]:
        note = Markup(
            "Line: from the lowest to the highest score; box: the middle half of the scores; "
            "{}median. Each score has its own axis."
        ).format(document.MEAN)
        parts.append(document.Chart("Score by label", note, [document.Panels(spreads)]))
    # 5. Which scores are right where others are wrong, with examples.
    if study_of_label.parting:
        counts = [
            RescueCount(each.first, each.second, each.count, each.wrong)
            for each in study_of_label.parting
        ]
        examples = [
            document.FoldedBlock(
                f"{each.first} right, {each.second} wrong: {each.count:,} of {each.wrong:,} errors",
                [_build_example(case, each.first, each.second, folder) for case in each.cases],
            )
            for each in study_of_label.parting
            if each.cases
        ]
        about = (
            "Each score accepts as many answers, its best ones, as are labelled right. A cell "
            "counts the answers that the score of its row judges correctly and the score of its "
            "column does not; a stronger colour means a larger share of the column’s errors."
        )
        heat = document.DrawingBlock(heat_svg(counts), "scroll")
        parts.append(
            document.Chart(
                "Which scores are right where others are wrong", about, [heat, *examples]
            )
        )
    # 6. The numbers, and why some are missing.
    parts += _build_tables(study_of_label)
    if reasons := describe_missing(study_of_label):
        parts.append(
            document.FoldedBlock(
                "Missing figures, and the reasons",
                [document.LinkItem(reason) for reason in reasons],
            )
        )
    return parts


def _build_example(
    case: PartingCase, first: str, second: str, folder: Path | None
) -> document.LinkItem:
    link = ""
    if case.link and folder is not None:
        path, _, anchor = case.link.rpartition("#")
        # Relative, so that page and runs can be moved together.
        link = f"./{quote(os.path.relpath(path, folder))}#{anchor}"
    name = f"{case.id} ({case.model})" if case.model else case.id
    truth = "right" if case.label else "wrong"
    scores = f"{first} {number(case.first, 3)}, {second} {number(case.second, 3)}"
    return document.LinkItem(name, link, f"labelled {truth}; {scores}")


def _build_tables(study_of_label: LabelStudy) -> Iterator[document.Table]:
    figure_names = choose_figures(study_of_label)
    columns = [
        "n",
        FIGURE_TITLES[figure_names[0]],
        "95 % interval",
        *(FIGURE_TITLES[name] for name in figure_names[1:]),
    ]
    yield document.Table(
        "Score", columns, build_score_rows(study_of_label, figure_names), "All scores"
    )
    if study_of_label.tests:
        title = f"Differences in {FIGURE_TITLES[study_of_label.headline]}"
        note = "On the answers that have both scores; p-values corrected for their number (Holm)."
        yield document.Table("Scores", TEST_COLUMNS, build_test_rows(study_of_label), title, note)
    if study_of_label.covariates:
        note = "Parts without a better direction; they are not tested."
        yield document.Table(
            "Part", COVARIATE_COLUMNS, build_covariate_rows(study_of_label), "Covariates", note
        )
    for by in study_of_label.groups:
        yield document.Table(
            "Group and score",
            columns,
            build_group_rows(study_of_label, by, figure_names),
            f"By {by}",
        )


def _select_both(column: ScoreColumn, label: Label) -> tuple[Floats, Floats]:
    has_both = ~(np.isnan(column.values) | np.isnan(label.values))
    return column.values[has_both], label.values[has_both]


def _build_roc(columns: Sequence[ScoreColumn], label: Label) -> Iterator[Plot]:
    """Yield the ROC curves, if labels are of two classes; ``calibrate`` draws the others."""
    pairs = [(at, column.name, *_select_both(column, label)) for at, column in enumerate(columns)]
    lines = [
        NamedCurve(name, _thin_curve(*roc_curve(x, y)), at)
        for at, name, x, y in pairs
        # A ROC curve needs answers of both classes.
        if label.kind == "binary" and 0 < y.sum() < len(y)
    ]
    if lines:
        yield Plot(
            "ROC",
            "Share of right answers accepted against share of wrong answers accepted, for each "
            "threshold.",
            "wrong answers accepted",
            "right answers accepted",
            lines,
            diagonal=True,
        )


def _thin_curve(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Return at most :data:`MAX_CURVE_POINTS` points of a curve, including both ends."""
    places = np.unique(np.linspace(0, len(x) - 1, MAX_CURVE_POINTS).round().astype(int))
    return list(zip(x[places].tolist(), y[places].tolist(), strict=True))


def _build_spread_chart(column: ScoreColumn, label: Label) -> document.Chart | None:
    """Build the chart of scores by label, or by thirds of the labels if there are many."""
    x, y = _select_both(column, label)
    low, high = float(x.min()), float(x.max())
    # A constant score has no distribution to draw.
    if low == high:
        return None
    levels = np.unique(y)
    if len(levels) <= MAX_LEVELS:
        groups = [(_format_level(label, value), x[y == value]) for value in levels.tolist()]
    else:
        # Ranks divide the answers into three groups of equal size, ties by order.
        place = np.argsort(np.argsort(y, kind="stable"), kind="stable") * 3 // len(y)
        groups = [(name, x[place == third]) for third, name in enumerate(THIRDS)]
    bars = []
    for name, scores_of_group in groups:
        if len(scores_of_group):
            # The five numbers of a box plot.
            five = np.quantile(scores_of_group, (0, 0.25, 0.5, 0.75, 1))
            median = f"median {number(float(five[2]), 3)}"
            drawing = box_svg(((five - low) / (high - low)).tolist(), f"{name}: {median}")
            bars.append(document.Bar(name, median, drawing, len(scores_of_group)))
    return document.Chart(column.name, "", [document.Bars(bars, style="thin")])


def _format_level(label: Label, value: float) -> str:
    # Pooled ratings may lie between two words.
    if label.words and value == int(value):
        return label.words[int(value)]
    if label.kind == "binary":
        return "right (1)" if value else "wrong (0)"
    return f"{value:g}"
