"""The card of one answer: the metrics' results, passages, ratings by people, its probability."""

import inspect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple
from urllib.parse import quote

from trustassay.metric import Assessment, Metric
from trustassay.sample import Document, Sample
from trustassay.show.first_card import Excerpt, excerpt_of, problem_of
from trustassay.show.text import cut, number
from trustassay.text.words import amount
from trustassay.views import Mark, PassageNote, Tie, View

UNKNOWN_TOLD = 5
"""Ids that no answer has which are named."""


@dataclass(frozen=True, slots=True)
class RaterSaid:
    """All ratings of one answer by one rater, as they are shown, with the rater's notes.

    values: the same as numbers; none where ratings are words.
    """

    name: str
    words: Sequence[str]
    values: Sequence[float] = ()
    notes: Sequence[str] = ()

    @property
    def said(self) -> str:
        """The ratings in the order of the repeats."""
        return ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class AnswerRatings:
    """The ratings of one answer; each rater counts once, with the mean of their own."""

    raters: Sequence[RaterSaid]

    @property
    def means(self) -> list[float]:
        """The mean of each rater's numbers."""
        return [fmean(one.values) for one in self.raters if one.values]

    @property
    def mean(self) -> float | None:
        """The mean over raters; ``None`` of words, and of numbers too large to be added up."""
        result = fmean(self.means) if self.means else None
        return result if result is None or math.isfinite(result) else None

    @property
    def sd(self) -> float | None:
        """The standard deviation between raters, n - 1; ``None`` of fewer than two."""
        return None if self.mean is None or len(self.means) < 2 else stdev(self.means)

    @property
    def short(self) -> str:
        """The mean, or how often each word was said."""
        if self.mean is not None:
            return number(self.mean, 2)
        counts = Counter(word for one in self.raters for word in one.words)
        return ", ".join(f"{word} {times}" for word, times in counts.most_common())


@dataclass(frozen=True, slots=True)
class RatingsTold:
    """What was joined to the answers of a run.

    source: the name of the file. numbers: whether ratings have means. answers: of the run, of which
    ``rated`` have ratings. unknown: ids of ratings that belong to no answer, with their numbers.
    """

    source: str
    numbers: bool
    raters: int
    ratings: int
    rated: int
    answers: int
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """Say what was joined, and what was not."""
        message = (
            f"{amount(self.ratings, 'rating')} by {amount(self.raters, 'rater')} of "
            f"{self.rated:,} of {amount(self.answers, 'answer')}; "
            f"{amount(self.answers - self.rated, 'answer')} without a rating"
        )
        if not self.unknown:
            return f"{message}."
        ids = ", ".join(one[:40] for one in list(self.unknown)[:UNKNOWN_TOLD])
        more = len(self.unknown) - UNKNOWN_TOLD
        ids += f" and {more:,} more" if more > 0 else ""
        left = amount(sum(self.unknown.values()), "rating")
        return f"{message}. {left} of no answer in the run, by id and model: {ids}."


@dataclass(frozen=True, slots=True)
class AnswerChance:
    """The probability that an answer is right, ``None`` where there is none; ``accepted``: whether
    the first promise that has a threshold accepts it, ``None`` where none has."""

    probability: float | None
    accepted: bool | None

    @property
    def in_words(self) -> str:
        """Say it in short."""
        if self.probability is None:
            return "no probability"
        message = f"right with probability {self.probability:.2f}"
        if self.accepted is None:
            return message
        return f"{message}, {'accepted' if self.accepted else 'not accepted'}"


@dataclass(frozen=True, slots=True)
class ChancesTold:
    """What a calibrator says of a run: sentences, and warnings that it may not be for this run."""

    sentences: Sequence[str]
    warnings: Sequence[str] = ()


LONGEST_QUESTION = 180
GENERIC = "evidence.html.jinja"
"""The template of evidence that no metric draws."""
OF_METRICS = "metric:"
"""Before the path of a template that a metric brings."""


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
    problem: str | None
    mark: Mark
    note: str
    shown_above: str

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
    counts from 0 where the page lists it. ``link`` is its id as a fragment of the page's address,
    to which the page of several runs adds ``&model=MODEL``, since their samples share ids.
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


def beside(metric: Metric, what: str) -> str:
    """Return the name of a template beside a metric's module; FileNotFoundError: there is none."""
    owner = next(cls for cls in type(metric).__mro__ if what in vars(cls))
    module = Path(inspect.getfile(owner))
    path = module.parent / getattr(metric, what)
    if not path.is_file():
        raise FileNotFoundError(f"{what}: there is no file {path.name} beside {module.name}")
    return f"{OF_METRICS}{path}"


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
    for at, assessment in enumerate(assessments):
        results.append(_result(at, sample, assessment, columns.get(assessment.metric), results))
    return Answer(
        position=position,
        place=place,
        sample=sample,
        link=f"id={quote(sample.id, safe='', errors='replace')}",
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
            view = column.metric.view(sample, assessment)
            if column.metric.evidence_template is not None:
                template = beside(column.metric, "evidence_template")
        except Exception as error:  # of another package's metric: its evidence is listed
            note = f"the evidence could not be shown: {type(error).__name__}: {error}"
    same = (one.title for one in before if one.view.shows == view.shows)
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
        shown_above="" if view.shows is None else next(same, ""),
    )


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


def _passages(sample: Sample, results: Sequence[Result]) -> list[Passage]:
    passages = []
    for index, document in enumerate(sample.documents or (), start=1):
        noted = [(result.place, result.view.passages.get(index)) for result in results]
        known = [(place, note) for place, note in noted if note is not None]
        told = [note for _, note in known if note.supports is not None]
        last = told[-1] if told else PassageNote(_supported(sample, document))
        citing = [(place, note) for place, note in known if note.citing is not None]
        passages.append(
            Passage(
                number=index,
                document=document,
                supports=last.supports or (),
                supports_known=last.supports is not None,
                computed=last.computed,
                citing=[Citing(place, tie) for place, note in citing for tie in note.citing or ()],
                citing_known=bool(citing),
                tied_by=citing[0][1].tied_by if citing else "cited by",
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
    answers = [Gold(aliases[0], aliases[1:]) for aliases in sample.answers if aliases]
    return answers + [Gold(claim, ()) for claim in sample.claims]
