"""One answer of the list: the sample, the metrics' results, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trustassay.metric import Assessment, Metric
from trustassay.report.ratings import AnswerRatings
from trustassay.report.text import cut
from trustassay.sample import Document, Sample
from trustassay.views import PassageNote, Tie, View

__all__ = ["Answer", "Column", "Gold", "Passage", "Result", "answer_of"]

LONGEST_QUESTION = 180
GENERIC = "evidence.html.jinja"
"""The template of evidence that no metric draws."""


class Citing(NamedTuple):
    """A place in the evidence that cites a passage; ``result`` is that of the metric there."""

    result: int
    tie: Tie


class Gold(NamedTuple):
    """A gold answer that no metric shows."""

    text: str
    aliases: Sequence[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of the sample with what the metrics found out about it.

    The two ``known`` distinguish "none" from "not checked".
    """

    number: int
    document: Document
    supports: Sequence[str]
    supports_known: bool
    computed: bool
    citing: Sequence[Citing]
    citing_known: bool
    tied_by: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one metric; ``place`` counts from 0 in the answer, ``metric`` in the run.

    ``metric`` is ``None`` for a metric that the run does not list. ``problem`` is what a reader
    should look at. ``shown_above`` is the title of an earlier metric that shows the same.
    """

    place: int
    metric: int | None
    name: str
    title: str
    range: tuple[float, float]
    assessment: Assessment
    view: View
    template: str
    problem: str | None = None
    shown_above: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the list shows of one sample; ``position`` counts from 1 and makes its ids."""

    position: int
    sample: Sample
    question: str
    results: Sequence[Result]
    passages: Sequence[Passage]
    golds: Sequence[Gold]
    problem: bool
    response_apart: bool
    ratings: AnswerRatings | None = None

    @property
    def question_fits(self) -> bool:
        """Whether the first line holds the whole question."""
        return self.question == self.sample.question.strip()


class Column(NamedTuple):
    """What the list needs to know of a metric of the run."""

    place: int
    title: str
    range: tuple[float, float]
    metric: Metric | None = None
    """The metric itself, where it is here: it says what its evidence means."""
    template: str = GENERIC


def answer_of(
    position: int,
    sample: Sample,
    assessments: Sequence[Assessment],
    columns: Mapping[str, Column],
    ratings: AnswerRatings | None = None,
) -> Answer:
    """Bring a sample and its assessments into the form that the template shows."""
    results: list[Result] = []
    for place, assessment in enumerate(assessments):
        results.append(_result(place, sample, assessment, columns.get(assessment.metric), results))
    return Answer(
        position=position,
        sample=sample,
        question=cut(sample.question, LONGEST_QUESTION),
        results=results,
        passages=_passages(sample, results),
        golds=() if any(result.view.tells_golds for result in results) else _golds(sample),
        problem=any(result.problem for result in results),
        response_apart=not any(result.view.tells_response for result in results),
        ratings=ratings,
    )


def _result(
    place: int,
    sample: Sample,
    assessment: Assessment,
    column: Column | None,
    before: Sequence[Result],
) -> Result:
    column = column or Column(-1, assessment.metric, (0.0, 1.0))
    view, template, problem = View(), GENERIC, None
    if column.metric:
        try:
            view = column.metric.view(sample, assessment)
            problem = column.metric.problem(assessment)
            template = column.template
        except Exception as error:  # of another package's metric: its evidence is listed
            problem = f"the evidence could not be shown: {type(error).__name__}: {error}"
    if assessment.error is not None:
        problem = assessment.error
    return Result(
        place=place,
        metric=None if column.place < 0 else column.place,
        name=assessment.metric,
        title=column.title,
        range=column.range,
        assessment=assessment,
        view=view,
        template=template,
        problem=problem,
        shown_above=_shown_above(view, before),
    )


def _shown_above(view: View, before: Sequence[Result]) -> str:
    """Return the title of the result that shows the same already, if one does."""
    if view.shows is None:
        return ""
    return next((result.title for result in before if result.view.shows == view.shows), "")


def _passages(sample: Sample, results: Sequence[Result]) -> list[Passage]:
    passages = []
    for number, document in enumerate(sample.documents or (), start=1):
        notes = [(result.place, result.view.passages.get(number)) for result in results]
        known = [(place, note) for place, note in notes if note is not None]
        told = [note for _, note in known if note.supports is not None]
        last = told[-1] if told else PassageNote(_supported(sample, document))
        passages.append(
            Passage(
                number=number,
                document=document,
                supports=last.supports or (),
                supports_known=last.supports is not None,
                computed=last.computed,
                citing=[Citing(place, tie) for place, note in known for tie in note.citing or ()],
                citing_known=any(note.citing is not None for _, note in known),
                tied_by=next((n.tied_by for _, n in known if n.citing is not None), "cited by"),
            )
        )
    return passages


def _supported(sample: Sample, document: Document) -> Sequence[str] | None:
    """Return the gold answers that a sample says a document supports, if it says so."""
    flags = document.supports
    if not flags:
        return None
    golds: list[Sequence[str]] = [[one[0] for one in sample.answers if one], sample.claims]
    numbers = [f"gold answer {number}" for number in range(1, len(flags) + 1)]
    names = next((found for found in golds if len(found) == len(flags)), numbers)
    return [name for name, flag in zip(names, flags, strict=True) if flag]


def _golds(sample: Sample) -> list[Gold]:
    """Return the gold answers of a sample whose metrics do not show them."""
    answers = [Gold(aliases[0], aliases[1:]) for aliases in sample.answers if aliases]
    return answers + [Gold(claim, ()) for claim in sample.claims]
