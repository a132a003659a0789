"""The page of several runs: all groups with their margins, and answers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trustassay.entailer_quality import EntailerQuality
from trustassay.show.answers import Answer
from trustassay.show.distributions import Groups
from trustassay.show.first_card import Line, Looked
from trustassay.show.page import write_template
from trustassay.show.text import amount, with_error


class AskedQuestion(NamedTuple):
    """A question with the answers of several models, best first: model, run, answer.

    ``models`` answered it; the best and the worst score are those of the first metric.
    """

    question: str
    models: int
    answers: Sequence[tuple[str, str, Answer]]
    best: float
    worst: float


class PooledMetric(NamedTuple):
    """A metric that all runs have, with the scores of all of them."""

    name: str
    title: str
    groups: Groups


@dataclass(frozen=True)
class PooledPage:
    """What the page of several runs shows."""

    title: str
    facts: Mapping[str, str]
    looked: Looked
    lines: Sequence[Line]
    warnings: Sequence[str]
    metrics: Sequence[PooledMetric]
    questions: Sequence[AskedQuestion]
    judge: EntailerQuality | None = None
    apart: Mapping[tuple[str | None, str | None], bool] = field(default_factory=dict)
    """Whether a test tells two models apart by the first metric, the better one first."""

    @property
    def headline(self) -> str:
        """How many answers need a look."""
        sentence = self.looked.sentence
        return sentence if sentence.endswith(".") else f"{sentence}."

    @property
    def models(self) -> str:
        """Between which scores the models' means lie, and which is the best, if a test tells it
        from all others; empty for a single one.
        """
        groups = self.metrics[0].groups
        models = [(name.model, one) for name, one in groups.models().items()]
        if len(models) < 2:
            return ""
        ends = [
            f"{model or 'no model named'} with {with_error(one.scores.mean, one.scores.error)}"
            for model, one in (models[0], models[-1])
        ]
        domains = len({name.domain for name in groups.cells})
        over = amount(len({name.model for name in groups.cells}), "model")
        if groups.has_domains:
            over += f" in {amount(domains, 'domain')}"
        best = models[0][0]
        tied = [name for name, _ in models[1:] if not self.apart.get((best, name))]
        if not tied:
            return f"{over}; the best is {ends[0]}, the last {ends[1]}."
        return (
            f"{over}; mean scores from {ends[0]} to {ends[1]}. A paired test does not tell "
            f"{best or 'the first'} from {amount(len(tied), 'other model')}, so none is the best."
        )


def write_pooled_page(page: PooledPage, path: Path) -> None:
    """Write the page of several runs, whole or not at all."""
    write_template("pooled.html.jinja", path, page=page, run=NoRatings())


class NoRatings(NamedTuple):
    """What the drawing of groups asks of a run: the ratings here are the samples' own labels."""

    ratings: None = None
