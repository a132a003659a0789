"""``compare``: the changes between two runs in outcomes, figures and answers, and their page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trustassay.compare.changes import (
    AnswerChanges,
    FigureChange,
    OutcomeChange,
    compare_figures,
    compare_outcomes,
    describe_main_change,
    explain_missing_figure,
    find_answer_changes,
)
from trustassay.compare.corrected import CorrectedShares, LabelFiles, correct
from trustassay.compare.pairing import RunPairing, describe_differences
from trustassay.compare.run_scores import (
    RunScores,
    choose_headline_figures,
    choose_metric,
    describe_changed_settings,
    describe_copies,
    read_finished_run,
    read_pairs,
)
from trustassay.core.json_form import as_json, fields_as_json
from trustassay.core.metric import MetricInfo
from trustassay.core.outcome import PASSED
from trustassay.report import document
from trustassay.statistics.comparison import Difference
from trustassay.text.numbers import ends_text, format_figure, p_text


@dataclass(frozen=True)
class RunComparison:
    """The changes from the first run to the second."""

    metric: MetricInfo
    scores: tuple[RunScores, RunScores] = field(repr=False)
    """The scores of all samples of each run."""
    pairing: RunPairing
    """Which answers belong together."""
    outcomes: Sequence[OutcomeChange]
    """The changes of the shares of all questions."""
    figures: Mapping[str, FigureChange]
    """The changes of the headline figures, over pairs that count in both runs."""
    not_compared: Mapping[str, str]
    """Why other headline figures are not compared, by name."""
    answers: AnswerChanges
    """The changed answers."""
    notes: Sequence[str]
    """Settings, passages and lengths that differ, and answers that are copies."""
    corrected: CorrectedShares | None = None
    """The corrected shares of right answers, if there are labels."""

    @property
    def headline(self) -> str:
        """A sentence on the most important change.

        It is about all questions; where the metric has no line and no more questions than before
        lack a score, it is about the first figure.
        """
        questions = self.pairing.question_count
        has_line = PASSED in self.scores[1].outcomes.shares
        # Without a line, lost scores are bad news that a mean over the remaining ones would hide.
        scores_lost = any(
            outcome.is_unwanted and outcome.verdict == "worse" for outcome in self.outcomes
        )
        if has_line or scores_lost or not self.figures:
            return describe_main_change(self.outcomes, questions)
        return next(iter(self.figures.values())).in_words()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        sides = {
            name: {"run": str(side.path), **side.outcomes.to_dict()}
            for name, side in zip(("first", "second"), self.scores, strict=True)
        }
        return {
            "metric": self.metric.name,
            "headline": self.headline,
            **sides,
            "pairing": self.pairing.to_dict(),
            "outcomes": {outcome.kind: outcome.to_dict() for outcome in self.outcomes},
            "figures": as_json(self.figures),
            **fields_as_json(self, "not_compared", "answers", "notes"),
            **({"corrected": self.corrected.to_dict()} if self.corrected else {}),
        }


def compare(
    first: Path,
    second: Path,
    *,
    metric: str | None = None,
    labels: LabelFiles | None = None,
    seed: int = 0,
) -> RunComparison:
    """Compare the results of a metric in two finished runs; with labels also the right answers.

    Raises:
        RunFolderError: one is not a finished run, or lacks the metric.
        UsageError: the runs share several metrics, and none is named.
    """
    # Files of answers can be compared too, but only by a judge.
    otherwise = ", or --judge to compare files of answers"
    runs = (read_finished_run(first, otherwise), read_finished_run(second, otherwise))
    name = choose_metric((first, second), runs, metric)
    paired = read_pairs((first, second), runs, [name])
    pairing, scores = paired.pairing, paired.scores[name]
    # A figure may be missing since a summary lacks it, or since the pairs cannot give it.
    keys, not_compared = choose_headline_figures(scores)
    figures = compare_figures(*scores, pairing, keys, seed)
    # Figures that are in both summaries but not among the changes get one common reason.
    reason = explain_missing_figure(pairing, *scores)
    not_compared |= {key: reason for key in keys if key not in figures}
    corrected = correct([first, second], labels, [name], seed=seed)[name] if labels else None
    return RunComparison(
        # Both runs hold the same metric, so the info of either would do.
        metric=scores[0].info,
        scores=scores,
        pairing=pairing,
        outcomes=compare_outcomes(*scores, pairing),
        figures=figures,
        not_compared=not_compared,
        answers=find_answer_changes(*scores, pairing),
        notes=[
            *describe_changed_settings(*runs, [name]),
            *describe_differences(pairing, *paired.keys),
            *describe_copies([first, second]),
        ],
        corrected=corrected,
    )


MAX_CHANGES_ON_PAGE = 200
"""Longest list of changed answers of each kind on the page."""
OUTCOME_COLUMNS = ("first, %", "second, %", "change, points", "95 % interval", "p (rise)", "")
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
        counts = f"rose in {change.risen:,} and fell in {change.fallen:,} of {change.units:,}"
        explanation = f"{counts} common questions"
        rows.append(
            document.DocumentRow(
                change.word, [*cells, p, change.verdict], explanation if change.units else ""
            )
        )
    return document.Table("Shares of the common questions", OUTCOME_COLUMNS, rows)


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
    return document.Table("Figures over pairs scored in both runs", FIGURE_COLUMNS, rows)


def build_document(comparison: RunComparison) -> document.PageDocument:
    """Build the page of a comparison."""
    # The folder's name may be empty, as for ".".
    paths = [side.path for side in comparison.scores]
    names = [path.name or str(path) for path in paths]
    note = (
        "All questions that both runs asked, including those that were not answered; p is the "
        "one-sided p-value of a rise."
    )
    sections = [
        document.Section(
            f"{comparison.metric.title}: outcomes",
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
        sections.insert(0, document.Section("Right answers by human labels", lines))
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
            for answer in changes[:MAX_CHANGES_ON_PAGE]
        ]
        if listed:
            yield document.ChangedAnswers(
                # Only regressions are open when the page is shown.
                title,
                listed,
                answers.counts[kind],
                folded=kind != "worse",
            )
