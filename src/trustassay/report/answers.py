"""The card of one answer: excerpt, results of metrics, passages, ratings, probability."""

import inspect
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple
from urllib.parse import quote

from trustassay.core.evidence import EvidenceLink, JudgedPiece, Mark, PassageNote, View
from trustassay.core.metric import Assessment, Metric
from trustassay.core.sample import Document, Sample
from trustassay.report.columns import read_fields
from trustassay.report.markdown import RenderedText, TextMark, read_beginning, render_text
from trustassay.report.review import problem_of
from trustassay.report.text import cut, cut_between_words
from trustassay.text.numbers import amount, number

MAX_UNKNOWN_IDS = 5
"""Ids without an answer that the message lists."""


@dataclass(frozen=True, slots=True)
class RaterRatings:
    """All ratings of one answer by one rater."""

    name: str
    """The name of the rater."""
    words: Sequence[str]
    """The ratings as text, in the order of the repeats."""
    values: Sequence[float] = ()
    """The ratings as numbers; empty where they are words."""
    notes: Sequence[str] = ()
    """The rater's notes."""

    @property
    def said(self) -> str:
        """The ratings as one text, in the order of the repeats."""
        return ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class AnswerRatings:
    """The ratings of one answer; each rater counts once, with the mean of their ratings."""

    raters: Sequence[RaterRatings]
    """The raters of the answer."""

    @property
    def means(self) -> list[float]:
        """The mean of each rater's numbers."""
        return [fmean(rater.values) for rater in self.raters if rater.values]

    @property
    def mean(self) -> float | None:
        """The mean over raters; ``None`` for words, and for numbers whose sum overflows."""
        # fmean returns infinity instead of raising where the sum overflows.
        result = fmean(self.means) if self.means else None
        return result if result is None or math.isfinite(result) else None

    @property
    def sd(self) -> float | None:
        """The standard deviation (n - 1) between raters; ``None`` for fewer than two."""
        return None if self.mean is None or len(self.means) < 2 else stdev(self.means)

    @property
    def short(self) -> str:
        """The mean, or the count of each word."""
        if self.mean is not None:
            return number(self.mean, 2)
        # Words have no mean: show how often each was given, the most frequent first.
        counts = Counter(word for rater in self.raters for word in rater.words)
        return ", ".join(f"{word} {times}" for word, times in counts.most_common())


@dataclass(frozen=True, slots=True)
class RatingsSummary:
    """A summary of the ratings that were joined to the answers of a run."""

    source: str
    """The name of the file."""
    numbers: bool
    """Whether ratings are numbers, and so have means."""
    raters: int
    """The number of raters."""
    ratings: int
    """The number of ratings."""
    rated: int
    """The number of answers with a rating."""
    answers: int
    """The number of answers of the run."""
    unknown: dict[str, int] = field(default_factory=dict)
    """The number of ratings by each id that no answer has."""

    @property
    def in_words(self) -> str:
        """A sentence on the ratings that were joined, and on those that were not."""
        message = (
            f"{amount(self.ratings, 'rating')} by {amount(self.raters, 'rater')} of "
            f"{self.rated:,} of {amount(self.answers, 'answer')}; "
            f"{amount(self.answers - self.rated, 'answer')} without a rating"
        )
        if not self.unknown:
            return f"{message}."
        # Ids come from a file of the user: shortened, and only the first few.
        ids = ", ".join(unknown_id[:40] for unknown_id in list(self.unknown)[:MAX_UNKNOWN_IDS])
        more = len(self.unknown) - MAX_UNKNOWN_IDS
        ids += f" and {more:,} more" if more > 0 else ""
        unmatched = amount(sum(self.unknown.values()), "rating")
        return f"{message}. {unmatched} for ids or models that are not in the run: {ids}."


@dataclass(frozen=True, slots=True)
class AnswerChance:
    """The probability that an answer is right, by a calibrator."""

    probability: float | None
    """0 to 1; ``None`` where there is none."""
    accepted: bool | None
    """Whether the first promise with a threshold accepts the answer; ``None`` without one."""

    @property
    def in_words(self) -> str:
        """The probability and the decision, in short."""
        if self.probability is None:
            return "no probability"
        message = f"right with probability {self.probability:.2f}"
        if self.accepted is None:
            return message
        return f"{message}, {'accepted' if self.accepted else 'not accepted'}"


@dataclass(frozen=True, slots=True)
class ChancesSummary:
    """The findings of a calibrator on a run."""

    sentences: Sequence[str]
    """The findings."""
    warnings: Sequence[str] = ()
    """Reasons why the calibrator may not apply to this run."""


MAX_EXCERPT_CHARACTERS = 420
"""Characters of the response in an excerpt, and of a single bad piece."""
MAX_CONTEXT = 110
"""Characters before and after a bad piece of a longer response."""
GAP_MARK = " … "
"""The mark of a gap."""
MAX_BEGINNING_CHARACTERS = (170, 72)
"""Characters of the response in the list of answers: two lines on a wide page and on a phone."""
MAX_ANSWER_CHARACTERS = 6000
"""Characters of a response up to which it is shown without folding."""
MAX_FACTS = 24
"""Fields of the input below an answer."""
MAX_FACT_CHARACTERS = 200
"""Characters of a field that is shown below an answer; a longer one is left out."""
DOUBTED_TONES = ("bad", "fair")
"""The tones of pieces that are marked in a response."""


class ExcerptPiece(NamedTuple):
    """A piece of the response."""

    text: str
    """Its text."""
    word: str = ""
    """What is wrong with it; empty if nothing is."""


class ResponseExcerpt(NamedTuple):
    """An excerpt of a response."""

    pieces: Sequence[ExcerptPiece]
    """Its pieces, in the order of the response."""
    marked: bool
    """Whether any piece is bad."""


def excerpt_of(response: str, judged: Sequence[JudgedPiece]) -> ResponseExcerpt:
    """Return the response with its bad pieces marked; a long one is cut to these and their context.

    Pieces without a place (:func:`find_marks`) are not marked.
    """
    pieces = list(_split_pieces(response, judged))
    marked = any(piece.word for piece in pieces)
    if len(response) <= MAX_EXCERPT_CHARACTERS:
        return ResponseExcerpt(pieces, marked)
    if not marked:
        return ResponseExcerpt(
            [ExcerptPiece(cut_between_words(response, MAX_EXCERPT_CHARACTERS))], marked=False
        )
    return ResponseExcerpt(list(_shorten_pieces(pieces)), marked)


def find_marks(response: str, judged: Sequence[JudgedPiece]) -> Iterator[TextMark]:
    """Yield the places of doubted pieces in a response, in order and without overlap.

    A judged text that is not in the response word for word, such as a claim that a model wrote, has
    no place.
    """
    position = 0
    for item in judged:
        text = item.text.strip()
        # Searched from the last doubted piece on, so that a repeated sentence is found at its own
        # place. Good pieces do not move the start: a model's claims may be out of order.
        start = response.find(text, position) if text else -1
        if item.mark.tone in DOUBTED_TONES and start >= 0:
            position = start + len(text)
            yield TextMark(start, position, item.mark.tone, item.mark.word)


def _split_pieces(response: str, judged: Sequence[JudgedPiece]) -> Iterator[ExcerptPiece]:
    position = 0
    for mark in find_marks(response, [item for item in judged if item.mark.tone == "bad"]):
        if mark.start > position:
            yield ExcerptPiece(response[position : mark.start])
        position = mark.end
        yield ExcerptPiece(response[mark.start : mark.end], mark.word)
    if position < len(response):
        yield ExcerptPiece(response[position:])


def _shorten_pieces(pieces: Sequence[ExcerptPiece]) -> Iterator[ExcerptPiece]:
    """Shorten the text between bad pieces, and stop when the excerpt is long enough."""
    length = 0
    for place, piece in enumerate(pieces):
        if length >= MAX_EXCERPT_CHARACTERS:
            yield ExcerptPiece(GAP_MARK)
            return
        text = piece.text
        # A bad piece is shown up to the same length as a whole excerpt.
        if piece.word:
            text = cut_between_words(text, MAX_EXCERPT_CHARACTERS)
        else:
            first, last = place == 0, place == len(pieces) - 1
            # At the ends of the response only the side next to a bad piece matters.
            text = _cut_middle(text, 0 if first else MAX_CONTEXT, 0 if last else MAX_CONTEXT)
        length += len(text)
        yield ExcerptPiece(text, piece.word)


def _cut_middle(text: str, head: int, tail: int) -> str:
    """Cut the middle out, and leave ``head`` characters before it and ``tail`` after it."""
    # Cutting must not make the text longer.
    if len(text) <= head + tail + len(GAP_MARK):
        return text
    before = cut_between_words(text, head)[:-1] if head else ""
    # Begin after the first space, so that no word is cut.
    after = text[-tail:].partition(" ")[2] or text[-tail:] if tail else ""
    return f"{before}{GAP_MARK}{after}"


MAX_QUESTION_CHARACTERS = 180
"""Characters of a question in the list of answers."""
GENERIC_TEMPLATE = "evidence.html.jinja"
"""The template of evidence that no metric draws."""
METRIC_TEMPLATE_PREFIX = "metric:"
"""The prefix of names of templates that belong to a metric; the path follows."""


class Citing(NamedTuple):
    """A place in the evidence that cites a passage."""

    result: int
    """The place of the result, from 0, whose evidence it is."""
    tie: EvidenceLink
    """The link to the place."""


class UnshownGold(NamedTuple):
    """A gold answer that no metric shows."""

    text: str
    """The first alias, or a gold claim."""
    aliases: Sequence[str]
    """The other aliases."""


@dataclass(frozen=True, slots=True)
class PassageCard:
    """A document of the sample with the findings of the metrics on it."""

    number: int
    """Its number, from 1."""
    document: Document
    """The document."""
    supports: Sequence[str]
    """The gold answers that it supports."""
    supports_known: bool
    """Whether that was checked, so that an empty list means "none"."""
    computed: bool
    """Whether an entailment model decided it; else the sample said so."""
    citing: Sequence[Citing]
    """The places that cite it."""
    citing_known: bool
    """Whether any metric reads citations, so that an empty list means "none"."""
    tied_by: str
    """The word for these places: "cited by", "used by", ..."""


@dataclass(frozen=True, slots=True)
class MetricResult:
    """The result of one metric for an answer."""

    place: int
    """Its place among the results of the answer, from 0."""
    metric: int | None
    """The place of the metric in the run, from 0; ``None`` if the run does not list it."""
    name: str
    """The name of the metric."""
    title: str
    """The title of the metric."""
    range: tuple[float, float]
    """The least and the largest score."""
    assessment: Assessment
    """The result as it is stored."""
    view: View
    """What the metric shows of its evidence."""
    template: str
    """The name of the template that draws the evidence."""
    problem: str | None
    """Why a reader should look at the answer."""
    mark: Mark
    """The judgement in a word."""
    note: str
    """Why the evidence cannot be shown; empty if it can."""
    shown_above: str
    """The title of an earlier metric with the same evidence."""

    @property
    def why(self) -> str:
        """The reason in one line: the problem, with the reason for the first bad piece or, without
        pieces, the metric's reason for the whole answer.
        """
        reason = self.assessment.reason.strip()
        # Without a problem the metric's reason, after an error the error: both are complete.
        if not self.problem or self.assessment.error is not None:
            return _capitalise(self.problem or reason)
        # The metric's own reason for the whole answer.
        if self.view.reason:
            return self.view.reason
        judged = self.view.judged
        detail = (
            reason
            if not judged
            else next((piece.reason for piece in judged if piece.mark.tone == "bad"), "")
        )
        # The problem of a single piece is said by its reason.
        if len(judged) == 1 and detail:
            return _capitalise(detail)
        problem = _capitalise(self.problem)
        return f"{problem}. {_capitalise(detail)}" if detail and detail != self.problem else problem


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """The card of one answer."""

    position: int
    """Its number among the samples of the run, from 1, by which the page names its elements."""
    place: int
    """Its place on the page, from 0."""
    sample: Sample
    """The sample."""
    question: str
    """The question in one line, shortened."""
    link: str
    """Its id as a fragment of the page's address. The page of several runs adds ``&model=MODEL``,
    since their samples share ids."""
    results: Sequence[MetricResult]
    """The results of the metrics."""
    passages: Sequence[PassageCard]
    """The documents of the sample."""
    golds: Sequence[UnshownGold]
    """The gold answers, if no metric shows them."""
    problem: bool
    """Whether any metric has a problem with it."""
    ratings: AnswerRatings | None = None
    """The ratings by people, if there are any."""
    chance: AnswerChance | None = None
    """The probability that it is right, by a calibrator."""
    outcome: str = ""
    """The outcome of the question by the first metric, in its words."""
    groups: Sequence[int] = ()
    """For each column of the run the place of its value, or -1."""

    @property
    def beginnings(self) -> tuple[str, str]:
        """The beginning of the response without Markdown, for a wide page and for a phone."""
        wide, narrow = MAX_BEGINNING_CHARACTERS
        beginning = read_beginning(self.sample.response or "", wide)
        return beginning, read_beginning(beginning, narrow)

    @property
    def response(self) -> RenderedText:
        """The response as HTML, with the doubted pieces of all metrics marked."""
        text = self.sample.response or ""
        marks = sorted(
            mark for result in self.results for mark in find_marks(text, result.view.judged)
        )
        return render_text(text, tuple(marks), MAX_ANSWER_CHARACTERS)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The short fields of the input."""
        fields = read_fields(dict(self.sample.metadata))
        short = [
            (name, value if isinstance(value, str) else json.dumps(value))
            for name, value in fields
            if isinstance(value, str | int | float) and len(str(value)) <= MAX_FACT_CHARACTERS
        ]
        return short[:MAX_FACTS]

    @property
    def worst(self) -> MetricResult | None:
        """The result that a reader should see first: one with a problem, or else the first."""
        with_problem = [result for result in self.results if result.problem]
        return next(iter([*with_problem, *self.results]), None)

    @property
    def excerpt(self) -> ResponseExcerpt:
        """An excerpt of the response, with its bad pieces marked."""
        judged = self.worst.view.judged if self.worst else ()
        return excerpt_of(self.sample.response or "", judged)

    @property
    def question_fits(self) -> bool:
        """Whether the first line holds the whole question."""
        return self.question == self.sample.question.strip()


class MetricColumn(NamedTuple):
    """A metric of the run, as the list of answers needs it."""

    place: int
    """Its place in the run, from 0; -1 if the run does not list it."""
    title: str
    """Its title."""
    range: tuple[float, float]
    """The least and the largest score."""
    metric: Metric | None = None
    """The metric itself, which reads its evidence; ``None`` if it is not installed here."""


def find_template(metric: Metric, what: str) -> str:
    """Return the name of a template in the folder of a metric's module.

    Args:
        metric: the metric.
        what: the attribute with the file's name, such as ``evidence_template``.

    Raises:
        FileNotFoundError: there is no such file.
    """
    # The class that sets the attribute owns the file: a subclass elsewhere inherits both.
    owner = next(cls for cls in type(metric).__mro__ if what in vars(cls))
    module = Path(inspect.getfile(owner))
    path = module.parent / getattr(metric, what)
    if not path.is_file():
        raise FileNotFoundError(f"{what}: no file {path.name} beside {module.name}")
    return f"{METRIC_TEMPLATE_PREFIX}{path}"


def answer_of(
    position: int,
    place: int,
    sample: Sample,
    assessments: Sequence[Assessment],
    columns: Mapping[str, MetricColumn],
    ratings: AnswerRatings | None = None,
    chance: AnswerChance | None = None,
) -> AnswerCard:
    """Build the card of an answer from its sample and assessments."""
    results: list[MetricResult] = []
    # One after the other, as evidence that an earlier result shows is not shown again.
    for result_place, assessment in enumerate(assessments):
        results.append(
            _build_result(result_place, sample, assessment, columns.get(assessment.metric), results)
        )
    return AnswerCard(
        position=position,
        place=place,
        sample=sample,
        # errors="replace": an id may hold a lone surrogate, which has no percent encoding.
        link=f"id={quote(sample.id, safe='', errors='replace')}",
        question=cut(sample.question, MAX_QUESTION_CHARACTERS),
        results=results,
        passages=_build_passages(sample, results),
        golds=() if any(result.view.shows_golds for result in results) else _build_golds(sample),
        problem=any(result.problem for result in results),
        ratings=ratings,
        chance=chance,
    )


def _build_result(
    place: int,
    sample: Sample,
    assessment: Assessment,
    column: MetricColumn | None,
    earlier: Sequence[MetricResult],
) -> MetricResult:
    # A stored assessment of a metric that the run does not list is shown without one.
    column = column or MetricColumn(-1, assessment.metric, (0.0, 1.0))
    view, template, note = View(), GENERIC_TEMPLATE, ""
    if column.metric:
        try:
            view = column.metric.view(sample, assessment)
            if column.metric.evidence_template is not None:
                template = find_template(column.metric, "evidence_template")
        except Exception as error:  # of another package's metric: its evidence is listed
            note = f"the evidence could not be shown: {type(error).__name__}: {error}"
    same = (result.title for result in earlier if result.view.shared_key == view.shared_key)
    problem = problem_of(column.metric, assessment)
    return MetricResult(
        place=place,
        metric=None if column.place < 0 else column.place,
        name=assessment.metric,
        title=column.title,
        range=column.range,
        assessment=assessment,
        view=view,
        template=template,
        problem=problem,
        mark=_choose_mark(view, assessment, problem, column),
        note=note,
        shown_above="" if view.shared_key is None else next(same, ""),
    )


def _choose_mark(
    view: View, assessment: Assessment, problem: str | None, column: MetricColumn
) -> Mark:
    """Return the judgement of an answer: the metric's own mark, or its verdict with a colour."""
    if assessment.error is not None:
        return Mark("bad", "✕", "not scored")
    if view.mark is not None:
        return view.mark
    if problem is not None:
        return Mark("bad", "✕", assessment.verdict or "needs a look")
    word = assessment.verdict or ""
    # Green only where a rule was applied and found no problem.
    judged = assessment.score is not None and column.metric is not None and column.metric.line
    return Mark("good", "✓", word or "no problem") if judged else Mark("none", "○", word)


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _build_passages(sample: Sample, results: Sequence[MetricResult]) -> list[PassageCard]:
    passages = []
    for index, document in enumerate(sample.documents or (), start=1):
        # A passage may have notes of several metrics: the last one on its support counts, and all
        # places that cite it.
        notes_or_none = [(result.place, result.view.passages.get(index)) for result in results]
        notes = [(place, note) for place, note in notes_or_none if note is not None]
        support_notes = [note for _, note in notes if note.supports is not None]
        by_sample = PassageNote(_name_supported_golds(sample, document))
        last = [by_sample, *support_notes][-1]
        citing = [(place, note) for place, note in notes if note.citing is not None]
        passages.append(
            PassageCard(
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


def _name_supported_golds(sample: Sample, document: Document) -> Sequence[str] | None:
    """Return the gold answers that a document supports by the sample's own flags, if any."""
    flags = document.supports
    if not flags:
        return None
    golds: list[Sequence[str]] = [
        [aliases[0] for aliases in sample.answers if aliases],
        sample.claims,
    ]
    numbers = [f"gold answer {number}" for number in range(1, len(flags) + 1)]
    # Flags may belong to the answers or to the claims: the list of the same length is theirs.
    names = next((candidates for candidates in golds if len(candidates) == len(flags)), numbers)
    return [name for name, flag in zip(names, flags, strict=True) if flag]


def _build_golds(sample: Sample) -> list[UnshownGold]:
    # An answer without any alias has nothing to show.
    answers = [UnshownGold(aliases[0], aliases[1:]) for aliases in sample.answers if aliases]
    return answers + [UnshownGold(claim, ()) for claim in sample.claims]
