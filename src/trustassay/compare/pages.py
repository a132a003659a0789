"""A comparison of two runs: its tables and its page."""

from collections.abc import Iterator

from trustassay.compare.two_runs import Comparison
from trustassay.show import document
from trustassay.show.text import ends_text, p_text, rounded
from trustassay.statistics.comparison import Difference

MAX_LISTED = 200
"""Changed answers of a kind on the page."""
OUTCOME_COLUMNS = ("first, %", "second, %", "change, points", "95 % interval", "p of a rise", "")
FIGURE_COLUMNS = ("first", "second", "change", "95 % interval", "questions", "")


def _change_cells(change: Difference, digits: int) -> list[str]:
    value = f"{change.value:+.{digits}f}".replace("-", "−")
    return [value, ends_text(change.interval, "+", digits) or "too few"]


def outcomes_table(comparison: Comparison) -> document.Table:
    """Return the shares of all questions in both runs, and how they changed."""
    rows = []
    for one in comparison.outcomes:
        cells = [f"{one.first:.1f}", f"{one.second:.1f}"]
        cells += _change_cells(one.change, 1) if one.units else ["", ""]
        p = "" if one.rise_p is None else p_text(one.rise_p)
        why = f"more in {one.risen:,}, fewer in {one.fallen:,} of {one.units:,} questions of both"
        rows.append(document.Row(one.word, [*cells, p, one.verdict], why if one.units else ""))
    return document.Table("Share of the questions of both runs", OUTCOME_COLUMNS, rows)


def figures_table(comparison: Comparison) -> document.Table:
    """Return the headline figures over the pairs that are behind them in both runs."""
    rows = []
    for key, one in comparison.figures.items():
        unit = one.figure.unit
        sides = [rounded(value, unit).replace("-", "−") for value in (one.first, one.second)]
        change = _change_cells(one.difference, 1 if unit in ("%", "°") else 3)
        cells = [*sides, *change, f"{one.questions:,}", one.verdict]
        rows.append(document.Row(key, cells, one.figure.explanation))
    return document.Table("Figures of the pairs", FIGURE_COLUMNS, rows)


def document_of(comparison: Comparison) -> document.Document:
    """Return the page of a comparison."""
    paths = [side.path for side in comparison.scores]
    names = [path.name or str(path) for path in paths]
    note = (
        "Of the questions that both runs asked, whatever became of the answers; p is "
        "one-sided, that the share did not rise."
    )
    sections = [
        document.Section(
            f"{comparison.metric.title}: what became of the questions",
            [outcomes_table(comparison), document.Text(note, "note")],
        )
    ]
    if len(comparison.pairing.first):
        sections.append(document.Section("Answers to the same questions", [*_parts(comparison)]))
    if comparison.corrected:
        lines = list(map(document.Text, comparison.corrected.in_words()))
        sections.insert(0, document.Section("Right answers, by labels", lines))
    return document.Document(
        "compare",
        f"{names[0]} → {names[1]}",
        {
            "first run": str(paths[0]),
            "second run": str(paths[1]),
            "paired": comparison.pairing.in_words(),
        },
        comparison.headline.replace("95 %", "95\xa0%"),
        comparison.notes,
        sections,
    )


def _parts(comparison: Comparison) -> Iterator[document.Block]:
    """Yield the figures over pairs of answers, and the answers that changed, some of each kind."""
    if comparison.figures:
        yield figures_table(comparison)
    for key, why in comparison.not_compared.items():
        yield document.Text(f"{key} is not compared: {why}", "note")
    answers = comparison.answers
    yield document.Text(f"{answers.in_words()}.")
    for kind, title, changes in (
        ("worse", "Worse", answers.worse),
        ("better", "Better", answers.better),
        ("other", "Changed in another way", answers.other),
    ):
        listed = [
            document.ChangedAnswer(
                one.question, one.ids[1], one.in_words(), one.reasons, one.responses
            )
            for one in changes[:MAX_LISTED]
        ]
        if listed:
            yield document.ChangedAnswers(
                title, listed, answers.counts[kind], folded=kind != "worse"
            )
