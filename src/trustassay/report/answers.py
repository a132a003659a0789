"""One answer of the list: the sample, the metrics' results, and the links between them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from trustassay.metric import Assessment, Metric
from trustassay.report.chances import AnswerChance
from trustassay.report.look import problem_of
from trustassay.report.marking import Excerpt, excerpt_of
from trustassay.report.ratings import AnswerRatings
from trustassay.report.text import cut
from trustassay.sample import Document, Sample
from trustassay.views import Mark, PassageNote, Tie, View

__all__ = [
    "OF_METRICS",
    "Answer",
    "Column",
    "Gold",
    "Passage",
    "Result",
    "answer_of",
    "beside",
    "link_of",
    "template_of",
]

LONGEST_QUESTION = 180
GENERIC = "evidence.html.jinja"
"""The template of evidence that no metric draws."""
OF_METRICS = "metric:"
"""Before the path of a template that a metric brings."""
UNJUDGED = Mark("none", "○", "")


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
    should look at, ``mark`` the judgement in a word. ``note`` says why there is no evidence.
    ``shown_above`` is the title of an earlier metric that shows the same.
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
    mark: Mark = UNJUDGED
    note: str = ""
    shown_above: str = ""

    @property
    def why(self) -> str:
        """The reason in one line: what the problem is, and what decides its first bad piece, or
        what the metric says of the whole answer.
        """
        reason = self.assessment.reason.strip()
        if not self.problem or self.assessment.error is not None:
            return _sentence(self.problem or reason)
        if self.view.why:
            return self.view.why
        judged = self.view.judged
        more = reason if not judged else next((o.why for o in judged if o.mark.tone == "bad"), "")
        if len(judged) == 1 and more:
            return _sentence(more)
        problem = _sentence(self.problem)
        return f"{problem}. {_sentence(more)}" if more and more != self.problem else problem


@dataclass(frozen=True, slots=True)
class Answer:
    """What the list shows of one sample.

    ``position`` is its number among the samples of the run, from 1, and makes its ids; ``place``
    counts from 0 where the page lists it. ``link`` is its id as a fragment of the page's address.
    """

    position: int
    place: int
    sample: Sample
    question: str
    link: str
    results: Sequence[Result]
    passages: Sequence[Passage]
    golds: Sequence[Gold]
    problem: bool
    response_apart: bool
    ratings: AnswerRatings | None = None
    chance: AnswerChance | None = None

    @property
    def worst(self) -> Result | None:
        """The result that a reader should see first: one with a problem, or else the first."""
        found = [result for result in self.results if result.problem]
        return next(iter([*found, *self.results]), None)

    @property
    def excerpt(self) -> Excerpt:
        """The response in short, with what is bad in it marked."""
        judged = self.worst.view.judged if self.worst else ()
        return excerpt_of(self.sample.response or "", judged)

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


def template_of(metric: Metric | None) -> str:
    """Return the template of a metric's evidence: its own, a file next to its module, or ours."""
    if metric is None or metric.evidence_template is None:
        return GENERIC
    return beside(metric, "evidence_template")


def beside(metric: Metric, what: str) -> str:
    """Return the name of a template that stands beside a metric's module."""
    owner = next(cls for cls in type(metric).__mro__ if what in vars(cls))
    return f"{OF_METRICS}{Path(inspect.getfile(owner)).parent / getattr(metric, what)}"


def answer_of(
    position: int,
    place: int,
    sample: Sample,
    assessments: Sequence[Assessment],
    columns: Mapping[str, Column],
    ratings: AnswerRatings | None = None,
    chance: AnswerChance | None = None,
) -> Answer:
    """Bring a sample and its assessments into the form that the template shows."""
    results: list[Result] = []
    for number, assessment in enumerate(assessments):
        results.append(_result(number, sample, assessment, columns.get(assessment.metric), results))
    return Answer(
        position=position,
        place=place,
        sample=sample,
        link=link_of(sample),
        question=cut(sample.question, LONGEST_QUESTION),
        results=results,
        passages=_passages(sample, results),
        golds=() if any(result.view.tells_golds for result in results) else _golds(sample),
        problem=any(result.problem for result in results),
        response_apart=not any(result.view.tells_response for result in results),
        ratings=ratings,
        chance=chance,
    )


def _result(
    place: int,
    sample: Sample,
    assessment: Assessment,
    column: Column | None,
    before: Sequence[Result],
) -> Result:
    column = column or Column(-1, assessment.metric, (0.0, 1.0))
    view, template, note = View(), GENERIC, ""
    if column.metric:
        try:
            view, template = column.metric.view(sample, assessment), column.template
        except Exception as error:  # of another package's metric: its evidence is listed
            note = f"the evidence could not be shown: {type(error).__name__}: {error}"
    problem = problem_of(column.metric, assessment)
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
        mark=_mark(view, assessment, problem, column),
        note=note,
        shown_above=_shown_above(view, before),
    )


def link_of(sample: Sample) -> str:
    """Return ``id=ID``, percent-encoded: the fragment that finds a sample's answer on the page.

    The page of several runs adds ``&model=MODEL``, since their samples share ids.
    """
    return f"id={quote(sample.id, safe='', errors='replace')}"


def _mark(view: View, assessment: Assessment, problem: str | None, column: Column) -> Mark:
    """Return the judgement of an answer: the metric's own, or its verdict with a colour."""
    if assessment.error is not None:
        return Mark("bad", "✕", "not scored")
    if view.mark is not None:
        return view.mark
    if problem is not None:
        return Mark("bad", "✕", assessment.verdict or "needs a look")
    word = assessment.verdict or ""
    judged = assessment.score is not None and column.metric is not None and column.metric.line
    return Mark("good", "✓", word or "no problem") if judged else Mark("none", "○", word)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


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
