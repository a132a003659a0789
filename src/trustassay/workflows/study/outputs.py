"""A study as text and cells, as a table in a file, and as a page."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from trustassay.show import document
from trustassay.show.charts import MOST_CURVES, Line, Parting, Plot, box_svg, heat_svg
from trustassay.show.text import ends_text, number, p_text
from trustassay.statistics import Floats
from trustassay.statistics.calibration import reliability_bins
from trustassay.statistics.correlation import kept_means, roc_curve
from trustassay.statistics.intervals import Estimate
from trustassay.text.words import amount
from trustassay.workflows.study.answers import Column, Cost
from trustassay.workflows.study.command import CHANCE_ROW, Case, Figures, LabelStudy, Study
from trustassay.workflows.study.figures import ASSOCIATIONS, OF_CLASSES, Test
from trustassay.workflows.study.labels import Label

FIGURES: Mapping[str, str] = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "prr": "PRR",
    "kendall": "tau-b",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "brier": "Brier",
    "ece": "ECE",
}
SHOWN = ("auprc", "prr")
"""Figures that are printed, and are on the page, beside the headline. The others answer questions
that few ask, and in a table that is read from left to right they hide the one that most ask; all
are in the table of ``--table`` and in the JSON form."""
TEST_COLUMNS = ("difference", "95 % interval", "p", "p corrected")
COVARIATE_COLUMNS = ("n", "tau-b", "95 % interval", "Spearman", "Pearson")
COST_COLUMNS = ("samples", "requests", "calls", "tokens", "USD")
ABSENT = "–"
LEVEL = 0.05


def shown_figures(one: LabelStudy) -> list[str]:
    """Return the figures that are shown of this kind of label, the headline first."""
    binary = one.label.kind == "binary"
    return [one.headline, *(name for name in SHOWN if binary or name not in OF_CLASSES)]


def ranked(one: LabelStudy) -> list[str]:
    """Return the names of the rows, the best by the headline first, chance last."""

    def key(name: str) -> tuple[bool, bool, float]:
        value = one.figures[name][one.headline].value
        return name == CHANCE_ROW, value is None, -(value or 0.0)

    return sorted(one.figures, key=key)


def cell(result: Estimate) -> str:
    """Return a figure as text, and a dash where there is none."""
    return ABSENT if result.value is None else f"{result.value:.3f}".replace("-", "−")


def with_interval(result: Estimate) -> str:
    """Return a figure as text with its interval, if it has one."""
    ends = ends_text(result.interval)
    return f"{cell(result)} ({ends})" if ends else cell(result)


def score_rows(one: LabelStudy, names: Sequence[str]) -> list[document.Row]:
    """Return the figures of each score, the best first, the first figure with its interval."""
    return _rows(one, {name: one.figures[name] for name in ranked(one)}, names)


def covariate_rows(one: LabelStudy) -> list[document.Row]:
    """Return the correlations of the parts of which neither end is better."""
    return _rows(one, one.covariates, list(ASSOCIATIONS))


def _rows(one: LabelStudy, found: Figures, names: Sequence[str]) -> list[document.Row]:
    about = {column.name: column.about for column in one.columns}
    return [
        document.Row(name, figure_cells(figures, names), about.get(name, ""))
        for name, figures in found.items()
    ]


def figure_cells(figures: Mapping[str, Estimate], names: Sequence[str]) -> list[str]:
    """Return the cells of a row: answers, the first figure with its interval, the others."""
    first = figures[names[0]]
    rest = [cell(figures[name]) for name in names[1:]]
    return [f"{first.n:,}", cell(first), ends_text(first.interval), *rest]


def group_rows(one: LabelStudy, by: str, names: Sequence[str]) -> list[document.Row]:
    """Return the figures of scores and baselines within each value of a field."""
    kinds = one.kinds
    return [
        document.Row(f"{value or 'none'}: {name}", figure_cells(figures, names))
        for value, group in one.groups[by].items()
        for name, figures in group.items()
        if kinds.get(name) in ("metric", "judge", "baseline")
    ]


def label_title(one: LabelStudy) -> str:
    """Say what the label is."""
    label = one.label
    told = label.values[label.values == label.values]
    missing_ = len(label.values) - label.n
    message = f"{label.name}: {amount(label.n, 'answer')} with a {label.kind} label"
    message += f", mean {number(float(told.mean()), 3)}" if label.n else ""
    return message + (f"; {missing_:,} without" if missing_ else "")


def headline(one: LabelStudy) -> str:
    """Say what is highest in the table, which score is, and what does not follow from that."""
    name = FIGURES[one.headline]
    scores = {score for score, kind in one.kinds.items() if kind in ("metric", "part", "judge")}
    defined = [row for row in ranked(one) if one.figures[row][one.headline].value is not None]
    rows = [row for row in defined if row != CHANCE_ROW]
    there = [row for row in rows if row in scores]
    if not there:
        reasons = {one.figures[score][one.headline].without for score in scores}
        return f"No score has an {name}: {'; '.join(sorted(reasons)) or 'the runs hold none'}."
    best = there[0]

    def named(row: str) -> str:
        return f"{row} {with_interval(one.figures[row][one.headline])}"

    message = f"Highest {name}: "
    if rows[0] != best:
        message += f"{named(rows[0])}, which is not a score; of the scores "
    message += f"{named(best)}."
    tests = [test for test in one.tests if best in (test.first, test.second)]
    higher, unclear = "Higher than", "No significant difference at 5 %:"
    others: dict[str, list[str]] = {higher: [], unclear: []}
    for test in tests:
        what = higher if (test.corrected or 0.0) < LEVEL else unclear
        what = "Not compared with" if test.corrected is None else what
        others.setdefault(what, []).append(_other(test, best))
    return message + "".join(f" {what} {', '.join(some)}." for what, some in others.items() if some)


def _other(test: Test, name: str) -> str:
    other, difference = test.second, test.difference
    if test.second == name:
        other, difference = test.first, None if difference is None else -difference
    below = test.corrected is not None and test.corrected < LEVEL and (difference or 0.0) < 0
    return f"{other} (which is higher)" if below else other


def test_rows(one: LabelStudy) -> list[document.Row]:
    """Return the tests of a label."""
    rows = []
    for test in one.tests:
        told = ["", "", ""]
        if test.p is not None and test.corrected is not None:
            told = [ends_text(test.interval, "+"), p_text(test.p), p_text(test.corrected)]
        value = ABSENT if test.difference is None else f"{test.difference:+.3f}".replace("-", "−")
        rows.append(document.Row(f"{test.first} – {test.second}", [value, *told]))
    return rows


def cost_row(cost: Cost) -> list[str]:
    """Return the cells of a metric's cost a sample."""
    requests = ", ".join(f"{name} {count:.3g}" for name, count in cost.requests.items())
    usd = "price unknown" if cost.usd is None else f"{cost.usd:.6f}" if cost.usd else "0"
    return [f"{cost.samples:,}", requests or "none", f"{cost.calls:.3g}", f"{cost.tokens:.4g}", usd]


def missing(one: LabelStudy) -> list[str]:
    """Say which figures and intervals are missing, and why."""
    result: dict[tuple[str, str, str], list[str]] = {}
    for name, figures in one.figures.items():
        own: dict[tuple[str, str], list[str]] = {}
        for figure in shown_figures(one):
            told = figures[figure]
            if told.without and name != CHANCE_ROW:
                what = "no " if told.value is None else "no interval of "
                own.setdefault((what, told.without), []).append(FIGURES[figure])
        for (what, reason), names in own.items():
            result.setdefault((what, ", ".join(names), reason), []).append(name)
    words = [
        f"{what}{figures}: {reason} ({', '.join(names)})"
        for (what, figures, reason), names in result.items()
    ]
    tests: dict[str, list[str]] = {}
    for test in one.tests:
        if test.without:
            tests.setdefault(test.without, []).append(f"{test.first} – {test.second}")
    return words + [f"no test: {reason} ({', '.join(names)})" for reason, names in tests.items()]


TABLE_COLUMNS = (
    "label", "by", "group", "score", "kind", "figure", "value", "low", "high", "n", "without"
)  # fmt: skip
POINTS = 200
"""Points of a curve that are drawn."""
FEWEST_KEPT = 10
"""Answers below which a point of a curve is left out: one of them would move it by a tenth."""
MOST_LEVELS = 11
THIRDS = ("lowest third", "middle third", "highest third")


def write_figures(study: Study, path: Path) -> None:
    """Write all figures, a row a figure; errors as of ``document.write_table``."""
    document.write_table(TABLE_COLUMNS, list(_table_rows(study)), path)


def _table_rows(study: Study) -> Iterator[tuple[object, ...]]:
    for one in study.labels:
        kinds = one.kinds
        places: list[tuple[str, str, Figures]] = [("", "", {**one.figures, **one.covariates})]
        places += [
            (by, value, of) for by, group in one.groups.items() for value, of in group.items()
        ]
        for by, value, figures in places:
            for score, own in figures.items():
                for name, result in own.items():
                    low, high = result.interval or (None, None)
                    yield (
                        one.label.name, by, value, score, kinds.get(score, score), FIGURES[name],
                        result.value, low, high, result.n, result.without,
                    )  # fmt: skip


def write_page(study: Study, path: Path) -> None:
    """Write the page, whole or not at all."""
    document_of(study, path.parent).write(path)


def document_of(study: Study, folder: Path | None = None) -> document.Document:
    """Return the page; of one in a ``folder`` the examples have links to the reports of runs."""
    sections = [
        document.Section(f"Label {label_title(one)}", _parts(one, folder)) for one in study.labels
    ]
    if study.costs:
        rows = [
            document.Row(f"{cost.metric} ({Path(cost.run).name})", cost_row(cost))
            for cost in study.costs
        ]
        sections.append(
            document.Section("What a sample takes", [document.Table("Metric", COST_COLUMNS, rows)])
        )
    return document.Document(
        "study",
        "Scores against labels: " + ", ".join(Path(run).name for run in study.runs),
        {
            "runs": ", ".join(study.runs),
            "answers": f"{study.answers:,}",
            "questions": f"{study.questions:,}",
            "resamples": f"{study.resamples:,}, seed {study.seed}",
        },
        "Which score distinguishes right answers from wrong ones, and how reliably.",
        study.notes,
        sections,
    )


def _parts(one: LabelStudy, folder: Path | None) -> list[document.Block]:
    """Return what the page shows of one label: drawings, examples, tables, what is missing."""
    order = ranked(one)
    scores = [column for column in one.columns if column.kind in ("metric", "judge")]
    scores.sort(key=lambda column: order.index(column.name))
    drawn = [column for column in scores if len(_both(column, one.label)[0]) > 1][:MOST_CURVES]
    parts: list[document.Block] = [document.Text(headline(one), "headline")]
    ends = [
        (name, result.value, result.interval)
        for name in order
        if (result := one.figures[name][one.headline]).value is not None
    ]
    if ends:
        note = Markup("Bar: 95 % interval from resampled questions; {}the figure.").format(
            document.MEAN
        )
        title = f"{FIGURES[one.headline]} of each score"
        parts.append(document.Chart(title, note, [document.interval_bars(ends, style="thin")]))
    parts += document.curves([column.name for column in drawn], list(_plots(drawn, one.label)))
    if spreads := [spread for column in drawn if (spread := _spreads(column, one.label))]:
        note = Markup(
            "Line: from the least to the largest score; box: the middle half; {}median. The axis "
            "is that of each score, from its least to its largest."
        ).format(document.MEAN)
        parts.append(document.Chart("Score by label", note, [document.Panels(spreads)]))
    if one.parting:
        counts = [Parting(each.first, each.second, each.count, each.wrong) for each in one.parting]
        examples = [
            document.Folded(
                f"{each.first} right, {each.second} wrong: {each.count:,} of {each.wrong:,}",
                [_example(case, each.first, each.second, folder) for case in each.cases],
            )
            for each in one.parting
            if each.cases
        ]
        about = (
            "A score is taken to accept as many answers as are right by their labels. A cell "
            "counts answers about which the score of its row is right and that of its column "
            "wrong; the stronger its colour, the more of the column’s errors."
        )
        heat = document.Drawing(heat_svg(counts), "scroll")
        parts.append(
            document.Chart(
                "Which scores are right where others are wrong", about, [heat, *examples]
            )
        )
    parts += _tables(one)
    if reasons := missing(one):
        parts.append(
            document.Folded(
                "Figures that are missing, and why", [document.Item(why) for why in reasons]
            )
        )
    return parts


def _example(case: Case, first: str, second: str, folder: Path | None) -> document.Item:
    link = ""
    if case.link and folder is not None:
        path, _, anchor = case.link.rpartition("#")
        link = f"./{quote(os.path.relpath(path, folder))}#{anchor}"
    name = f"{case.id} ({case.model})" if case.model else case.id
    truth = "right" if case.label else "wrong"
    scores = f"{first} {number(case.first, 3)}, {second} {number(case.second, 3)}"
    return document.Item(name, link, f"labelled {truth}; {scores}")


def _tables(one: LabelStudy) -> Iterator[document.Table]:
    shown = shown_figures(one)
    columns = ["n", FIGURES[shown[0]], "95 % interval", *(FIGURES[name] for name in shown[1:])]
    yield document.Table("Score", columns, score_rows(one, shown), "In numbers")
    if one.tests:
        title = f"Differences in {FIGURES[one.headline]}"
        note = "On the answers that both have; p-values corrected for their number (Holm)."
        yield document.Table("Scores", TEST_COLUMNS, test_rows(one), title, note)
    if one.covariates:
        note = "Parts of which neither end is better; in no test, and in no correction."
        yield document.Table("Part", COVARIATE_COLUMNS, covariate_rows(one), "Covariates", note)
    for by in one.groups:
        yield document.Table("Group and score", columns, group_rows(one, by, shown), f"By {by}")


def _both(column: Column, label: Label) -> tuple[Floats, Floats]:
    there = ~(np.isnan(column.values) | np.isnan(label.values))
    return column.values[there], label.values[there]


def _plots(columns: Sequence[Column], label: Label) -> Iterator[Plot]:
    pairs = [(at, column, *_both(column, label)) for at, column in enumerate(columns)]
    risk = label.kind == "binary"
    if risk:
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
        Line(column.name, kept_points(x, y, risk=risk), at)
        for at, column, x, y in pairs
        if len(y) > FEWEST_KEPT
    ]
    if lines:
        heights = [y for line in lines for _, y in line.points]
        yield Plot(
            "Risk and coverage" if risk else "Mean label of what is kept",
            f"From {FEWEST_KEPT} answers on, kept from the highest score down: "
            + ("the share of wrong ones among them." if risk else "the mean of their labels."),
            "share of answers kept",
            "wrong among them" if risk else "mean label",
            lines,
            (min(heights), max(heights)),
        )
    if risk:
        reliable = [
            Line(column.name, points, at, dots=True)
            for at, column, x, y in pairs
            if column.probability and (points := reliability_points(x, y))
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


def kept_points(scores: Floats, labels: Floats, *, risk: bool) -> list[tuple[float, float]]:
    """Return the mean label (``risk``: 1 less it) by the share of answers kept, from 10 on."""
    means = kept_means(scores, labels)
    shares = np.arange(1, len(labels) + 1) / len(labels)
    heights = 1 - means if risk else means
    return _thinned(shares[FEWEST_KEPT - 1 :], heights[FEWEST_KEPT - 1 :])


def reliability_points(chances: Floats, labels: Floats) -> list[tuple[float, float]]:
    """Return the mean probability and the share that is right of each bin of 10 answers or more."""
    bins = reliability_bins(chances, labels)
    return [(one.chance, one.true) for one in bins if one.n >= FEWEST_KEPT]


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """Return at most 200 points of a curve, both ends among them."""
    places = np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(int))
    return list(zip(x[places].tolist(), y[places].tolist(), strict=True))


def _spreads(column: Column, label: Label) -> document.Chart | None:
    """Return the scores by label, or by thirds of the labels where there are many."""
    x, y = _both(column, label)
    low, high = float(x.min()), float(x.max())
    if low == high:
        return None
    levels = np.unique(y)
    if len(levels) <= MOST_LEVELS:
        groups = [(_level(label, value), x[y == value]) for value in levels.tolist()]
    else:
        place = np.argsort(np.argsort(y, kind="stable"), kind="stable") * 3 // len(y)
        groups = [(name, x[place == third]) for third, name in enumerate(THIRDS)]
    bars = []
    for name, own in groups:
        if len(own):
            five = np.quantile(own, (0, 0.25, 0.5, 0.75, 1))
            median = f"median {number(float(five[2]), 3)}"
            drawing = box_svg(((five - low) / (high - low)).tolist(), f"{name}: {median}")
            bars.append(document.Bar(name, median, drawing, len(own)))
    return document.Chart(column.name, "", [document.Bars(bars, style="thin")])


def _level(label: Label, value: float) -> str:
    if label.words and value == int(value):
        return label.words[int(value)]
    if label.kind == "binary":
        return "right (1)" if value else "wrong (0)"
    return f"{value:g}"
