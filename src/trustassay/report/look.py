"""Which answers of a run need a look, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trustassay.metric import Assessment, Metric
from trustassay.report.text import amount, cut

__all__ = ["Line", "Looked", "lines_of", "problem_of"]


def problem_of(metric: Metric | None, assessment: Assessment) -> str | None:
    """Return why an answer needs a look: its failure, or what the metric says of it; else ``None``.

    A metric of another package that fails here flags the answer: nothing is hidden by an error.
    """
    if assessment.error is not None:
        return assessment.error
    if metric is None:
        return None
    try:
        return metric.problem(assessment)
    except Exception as error:  # of another package's metric
        return f"{assessment.metric} cannot say what is wrong: {type(error).__name__}: {error}"


LONGEST_WHY = 40
MOST_WHYS = 5
OTHER = "for other reasons"


@dataclass
class Looked:
    """How many answers of a run need a look, and how many have no score of any metric, and why.

    An answer of which a metric failed needs a look; ``failed`` counts these among ``flagged``.
    ``lines`` tells whether any metric draws a line.
    """

    lines: bool = True
    answers: int = 0
    flagged: int = 0
    failed: int = 0
    unscored: dict[str, int] = field(default_factory=dict)

    def add(self, assessments: Sequence[Assessment], flagged: Sequence[bool]) -> None:
        """Count one answer by what each metric says of it."""
        self.answers += 1
        failed = any(one.error is not None for one in assessments)
        self.failed += failed
        self.flagged += failed or any(flagged)
        if not failed and assessments and all(one.score is None for one in assessments):
            first = assessments[0]
            why = cut(first.verdict or first.reason.partition(":")[0], LONGEST_WHY) or "no reason"
            name = why if len(self.unscored) < MOST_WHYS or why in self.unscored else OTHER
            self.unscored[name] = self.unscored.get(name, 0) + 1

    @property
    def sentence(self) -> str:
        """The sentence with which a report opens."""
        n, flagged = self.answers, self.flagged
        if not n:
            return "There are no answers."
        if not self.lines and not flagged:
            return f"{amount(n, 'answer')}, the worst scores first"
        verb = "needs" if flagged == 1 else "need"
        if not flagged:
            return (
                "The answer needs no look" if n == 1 else f"None of the {n:,} answers needs a look"
            )
        return f"{flagged:,} of {amount(n, 'answer')} {verb} a look"

    @property
    def remarks(self) -> list[str]:
        """What the sentence does not say: failures, and answers without a score."""
        found = []
        if self.failed:
            found.append(f"{self.failed:,} of these could not be scored")
        if self.unscored:
            count = sum(self.unscored.values())
            whys = ", ".join(f"{n:,} {why}" for why, n in self.unscored.items())
            found.append(
                f"{amount(count, 'answer')} {'has' if count == 1 else 'have'} no score: {whys}"
            )
        return found


@dataclass(frozen=True)
class Line:
    """What needs a look by one metric; ``rule`` is empty if it draws no line."""

    title: str
    rule: str
    here: bool = True

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        if self.rule:
            return f"An answer needs a look if {self.rule}."
        if not self.here:
            return "The metric is not installed here, so its line is not known; sorted by score."
        return "The method draws no line between good and bad answers; sorted by score."


def lines_of(titles: Mapping[str, str], metrics: Mapping[str, Metric]) -> list[Line]:
    """Return the line of each metric of a run, by name and title; ``metrics`` are those here."""
    return [
        Line(title, metrics[name].line if name in metrics else "", name in metrics)
        for name, title in titles.items()
    ]
