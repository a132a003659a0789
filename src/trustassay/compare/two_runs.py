"""``compare``: the changes between two runs in outcomes, figures and single answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trustassay.compare.answer_changes import AnswerChanges, find_answer_changes
from trustassay.compare.corrected import CorrectedShares, LabelFiles, correct
from trustassay.compare.figure_changes import FigureChange, compare_figures, explain_missing_figure
from trustassay.compare.outcome_changes import OutcomeChange, compare_outcomes, headline
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
            return headline(self.outcomes, questions)
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
    otherwise = ", or --judge, which compares answers"
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
        scores[0].info,
        scores,
        pairing,
        compare_outcomes(*scores, pairing),
        figures,
        not_compared,
        find_answer_changes(*scores, pairing),
        [
            *describe_changed_settings(*runs, [name]),
            *describe_differences(pairing, *paired.keys),
            *describe_copies([first, second]),
        ],
        corrected,
    )
