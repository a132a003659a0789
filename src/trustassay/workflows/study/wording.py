"""A study in words and cells: what the terminal, the page and the tables show alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trustassay.show.text import amount, number
from trustassay.workflows.study.answers import Cost
from trustassay.workflows.study.figures import ASSOCIATIONS, HEADLINE, Estimate, Test
from trustassay.workflows.study.studying import CHANCE_ROW, LabelStudy

__all__ = [
    "COST_COLUMNS",
    "COVARIATE_COLUMNS",
    "FIGURES",
    "TEST_COLUMNS",
    "cost_row",
    "covariate_rows",
    "figure_cells",
    "headline",
    "interval_text",
    "label_title",
    "missing",
    "ranked",
    "shown_figures",
    "test_row",
]

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
TEST_COLUMNS = ("difference", "95 % interval", "p", "p corrected")
COVARIATE_COLUMNS = ("n", "tau-b", "95 % interval", "Spearman", "Pearson")
COST_COLUMNS = ("samples", "requests", "calls", "tokens", "USD")
ABSENT = "–"
LEVEL = 0.05


def shown_figures(one: LabelStudy) -> list[str]:
    """Return the figures that apply to the kind of label, the headline first."""
    every = list(FIGURES)
    if one.label.kind != "binary":
        every = [name for name in every if name not in ("auroc", "auprc", "brier", "ece")]
    first = HEADLINE[one.label.kind]
    return [first, *(name for name in every if name != first)]


def ranked(one: LabelStudy) -> list[str]:
    """Return the names of the rows, the best by the headline first, chance last."""

    def key(name: str) -> tuple[bool, bool, float]:
        value = one.figures[name][one.headline].value
        return name == CHANCE_ROW, value is None, -(value or 0.0)

    return sorted(one.figures, key=key)


def cell(found: Estimate) -> str:
    """Return a figure as text, and a dash where there is none."""
    return ABSENT if found.value is None else f"{found.value:.3f}".replace("-", "−")


def interval_text(interval: tuple[float, float] | None, sign: str = "") -> str:
    """Return an interval as text; empty where there is none."""
    if interval is None:
        return ""
    return " to ".join(f"{end:{sign}.3f}" for end in interval).replace("-", "−")


def figure_cells(figures: Mapping[str, Estimate], names: Sequence[str]) -> list[str]:
    """Return the cells of a row: answers, the first figure with its interval, the others."""
    first = figures[names[0]]
    rest = [cell(figures[name]) for name in names[1:]]
    return [f"{first.n:,}", cell(first), interval_text(first.interval), *rest]


def covariate_rows(one: LabelStudy) -> list[tuple[str, list[str]]]:
    """Return the correlations of the parts of which neither end is better."""
    return [
        (name, figure_cells(figures, list(ASSOCIATIONS)))
        for name, figures in one.covariates.items()
    ]


def label_title(one: LabelStudy) -> str:
    """Say what the label is."""
    label = one.label
    told = label.values[label.values == label.values]
    missing_ = len(label.values) - label.n
    words = f"{label.name}: {amount(label.n, 'answer')} with a {label.kind} label"
    words += f", mean {number(float(told.mean()), 3)}" if label.n else ""
    return words + (f"; {missing_:,} without" if missing_ else "")


def headline(one: LabelStudy) -> str:
    """Say what is highest in the table, which score is, and what cannot be told from that."""
    name = FIGURES[one.headline]
    kinds = {column.name: column.kind for column in one.columns}
    scores = {score for score, kind in kinds.items() if kind in ("metric", "part", "judge")}
    rows = [
        row
        for row in ranked(one)
        if row != CHANCE_ROW and one.figures[row][one.headline].value is not None
    ]
    there = [row for row in rows if row in scores]
    if not there:
        reasons = {one.figures[score][one.headline].without for score in scores}
        return f"No score has an {name}: {'; '.join(sorted(reasons)) or 'the runs hold none'}."
    best = there[0]
    words = f"Highest {name}: "
    if rows[0] != best:
        words += f"{_with_interval(one, rows[0])}, which is no score; of the scores "
    words += f"{_with_interval(one, best)}."
    tests = [test for test in one.tests if best in (test.first, test.second)]
    open_ = [_other(test, best) for test in tests if test.corrected is None]
    alike = [_other(test, best) for test in tests if (test.corrected or 0.0) >= LEVEL]
    better = [
        _other(test, best)
        for test in tests
        if test.corrected is not None and test.corrected < LEVEL
    ]
    if better:
        words += f" Higher than {_listed(better)}."
    if alike:
        words += f" Not told apart at 5 %: {_listed(alike)}."
    if open_:
        words += f" Not compared with {_listed(open_)}."
    return words


def _with_interval(one: LabelStudy, row: str) -> str:
    found = one.figures[row][one.headline]
    return f"{row} {cell(found)}" + (
        f" ({interval_text(found.interval)})" if found.interval else ""
    )


def _other(test: Test, name: str) -> str:
    other, difference = test.second, test.difference
    if test.second == name:
        other, difference = test.first, None if difference is None else -difference
    below = test.corrected is not None and test.corrected < LEVEL and (difference or 0.0) < 0
    return f"{other} (which is higher)" if below else other


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def test_row(test: Test) -> list[str]:
    """Return the cells of a test after its name."""
    if test.difference is None:
        return [ABSENT, "", "", ""]
    value = f"{test.difference:+.3f}".replace("-", "−")
    if test.p is None or test.corrected is None:
        return [value, "", "", ""]
    return [value, interval_text(test.interval, "+"), _p(test.p), _p(test.corrected)]


def _p(value: float) -> str:
    if value < 0.0001:
        return "<0.0001"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def cost_row(cost: Cost) -> list[str]:
    """Return the cells of a metric's cost a sample."""
    requests = ", ".join(f"{name} {count:.3g}" for name, count in cost.requests.items())
    usd = "price unknown" if cost.usd is None else f"{cost.usd:.6f}" if cost.usd else "0"
    return [f"{cost.samples:,}", requests or "none", f"{cost.calls:.3g}", f"{cost.tokens:.4g}", usd]


def missing(one: LabelStudy) -> list[str]:
    """Say which figures and intervals are missing, and why."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, figures in one.figures.items():
        own: dict[tuple[str, str], list[str]] = {}
        for figure in shown_figures(one):
            told = figures[figure]
            if told.without and name != CHANCE_ROW:
                what = "no " if told.value is None else "no interval of "
                own.setdefault((what, told.without), []).append(FIGURES[figure])
        for (what, reason), names in own.items():
            found.setdefault((what, ", ".join(names), reason), []).append(name)
    words = [
        f"{what}{figures}: {reason} ({', '.join(names)})"
        for (what, figures, reason), names in found.items()
    ]
    tests: dict[str, list[str]] = {}
    for test in one.tests:
        if test.without:
            tests.setdefault(test.without, []).append(f"{test.first} – {test.second}")
    return words + [f"no test: {reason} ({', '.join(names)})" for reason, names in tests.items()]
