"""The tables and the page of a comparison of two runs."""

from collections.abc import Iterator

from trustassay.compare.two_runs import RunComparison
from trustassay.report import document
from trustassay.report.text import ends_text, format_figure, p_text
from trustassay.statistics.comparison import Difference

MAX_LISTED_CHANGES = 200
"""Longest list of changed answers of each kind on the page."""
OUTCOME_COLUMNS = ("first, %", "second, %", "change, points", "95 % interval", "p of a rise", "")
FIGURE_COLUMNS = ("first", "second", "change", "95 % interval", "questions", "")


def _format_change_cells(change: Difference, digits: int) -> list[str]:
    value = f"{change.value:+.{digits}f}".replace("-", "−")
    return [value, ends_text(change.interval, "+", digits) or "too few"]


def build_outcomes_table(comparison: RunComparison) -> document.Table:
    """Build the table of the shares of all questions in both runs, and their changes."""
    rows = []
    for change in comparison.outcomes:
        cells = [f"{change.first:.1f}", f"{change.second:.1f}"]
        # Without common questions there is no change to show, only two separate shares.
        cells += _format_change_cells(change.change, 1) if change.units else ["", ""]
        p = "" if change.rise_p is None else p_text(change.rise_p)
        counts = f"more in {change.risen:,}, fewer in {change.fallen:,} of {change.units:,}"
        explanation = f"{counts} questions of both"
        rows.append(
            document.DocumentRow(
                change.word, [*cells, p, change.verdict], explanation if change.units else ""
            )
        )
    return document.Table("Share of the questions of both runs", OUTCOME_COLUMNS, rows)


def build_figures_table(comparison: RunComparison) -> document.Table:
    """Build the table of the headline figures, over pairs that count in both runs."""
    rows = []
    for key, figure_change in comparison.figures.items():
        unit = figure_change.figure.unit
        sides = [
            format_figure(value, unit).replace("-", "−")
            for value in (figure_change.first, figure_change.second)
        ]
        # Percentages and angles need one decimal; scores from 0 to 1 need three.
        change = _format_change_cells(figure_change.difference, 1 if unit in ("%", "°") else 3)
        cells = [*sides, *change, f"{figure_change.questions:,}", figure_change.verdict]
        rows.append(document.DocumentRow(key, cells, figure_change.figure.explanation))
    return document.Table("Figures of the pairs", FIGURE_COLUMNS, rows)


def build_document(comparison: RunComparison) -> document.PageDocument:
    """Build the page of a comparison."""
    # The folder's name may be empty, as for ".".
    paths = [side.path for side in comparison.scores]
    names = [path.name or str(path) for path in paths]
    note = (
        "Of the questions that both runs asked, whatever became of the answers; p is "
        "one-sided, that the share did not rise."
    )
    sections = [
        document.Section(
            f"{comparison.metric.title}: what became of the questions",
            [build_outcomes_table(comparison), document.Text(note, "note")],
        )
    ]
    if len(comparison.pairing.first):
        sections.append(
            document.Section("Answers to the same questions", [*_build_answer_blocks(comparison)])
        )
    if comparison.corrected:
        lines = list(map(document.Text, comparison.corrected.in_words()))
        # Human labels outrank every metric, so their section comes first.
        sections.insert(0, document.Section("Right answers, by labels", lines))
    return document.PageDocument(
        "compare",
        f"{names[0]} → {names[1]}",
        {
            "first run": str(paths[0]),
            "second run": str(paths[1]),
            "paired": comparison.pairing.in_words(),
        },
        # A no-break space keeps the number and its sign on one line.
        comparison.headline.replace("95 %", "95\xa0%"),
        comparison.notes,
        sections,
    )


def _build_answer_blocks(comparison: RunComparison) -> Iterator[document.Block]:
    """Yield the table of figures, and lists of the answers that changed."""
    if comparison.figures:
        yield build_figures_table(comparison)
    for key, reason in comparison.not_compared.items():
        yield document.Text(f"{key} is not compared: {reason}", "note")
    answers = comparison.answers
    yield document.Text(f"{answers.in_words()}.")
    for kind, title, changes in (
        ("worse", "Worse", answers.worse),
        ("better", "Better", answers.better),
        ("other", "Changed in another way", answers.other),
    ):
        listed = [
            document.ChangedAnswer(
                # The id in the second run, whose answers are the ones to look at.
                answer.question,
                answer.ids[1],
                answer.in_words(),
                answer.reasons,
                answer.responses,
            )
            for answer in changes[:MAX_LISTED_CHANGES]
        ]
        if listed:
            yield document.ChangedAnswers(
                # Only regressions are open when the page is shown.
                title,
                listed,
                answers.counts[kind],
                folded=kind != "worse",
            )
