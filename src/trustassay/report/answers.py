"""One answer of the list: the sample, what each metric said of it, and how the two connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trustassay.metric import Assessment
from trustassay.report.perturbed import Perturbed
from trustassay.report.text import cut
from trustassay.report.trace import Citation, Gold, Sentence, Trace
from trustassay.sample import Document, Sample

__all__ = ["Answer", "Citing", "Passage", "Result", "answer_of"]

LONGEST_QUESTION = 180
TRACED = "evidence/grounding.html.jinja"  # its evidence holds sentences and citations
PERTURBED = frozenset(
    f"evidence/{name}.html.jinja" for name in ("harmonicity", "semantic_harmonicity")
)


class Citing(NamedTuple):
    """A sentence that cites a passage; ``result`` is the place of the metric that read it."""

    result: int
    sentence: Sentence
    citation: Citation


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of the sample with what the metrics found out about it.

    The two ``known`` tell "none" from "nobody looked".
    """

    number: int
    document: Document
    supports: Sequence[str]
    supports_known: bool
    computed: bool
    citing: Sequence[Citing]
    citing_known: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What one metric said; ``place`` counts from 0 in the answer, ``metric`` in the run.

    ``metric`` is ``None`` for a metric that the run does not list. ``answers_of`` is the title of
    an earlier metric that read the very same answers.
    """

    place: int
    metric: int | None
    name: str
    title: str
    range: tuple[float, float]
    assessment: Assessment
    trace: Trace
    template: str
    perturbed: Perturbed | None = None
    answers_of: str = ""


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

    @property
    def question_fits(self) -> bool:
        """Whether the first line holds the whole question."""
        return self.question == self.sample.question.strip()


class Column(NamedTuple):
    """What the list needs to know of a metric of the run."""

    place: int
    title: str
    range: tuple[float, float]


def answer_of(
    position: int,
    sample: Sample,
    assessments: Sequence[Assessment],
    columns: Mapping[str, Column],
    templates: Mapping[str, str],
) -> Answer:
    """Bring a sample and its assessments into the form that the template shows.

    ``templates`` maps a metric's name to the template of its evidence; ``""`` is any other's.
    """
    documents = sample.documents or ()
    results: list[Result] = []
    for place, assessment in enumerate(assessments):
        column = columns.get(assessment.metric)
        template = templates.get(assessment.metric, templates[""])
        traced = assessment.evidence if template == TRACED else ()
        perturbed = None
        if template in PERTURBED:
            perturbed = Perturbed.read(assessment.evidence, sample.question)
        results.append(
            Result(
                place=place,
                metric=column.place if column else None,
                name=assessment.metric,
                title=column.title if column else assessment.metric,
                range=column.range if column else (0.0, 1.0),
                assessment=assessment,
                trace=Trace.read(traced, len(documents)),
                template=template,
                perturbed=perturbed,
                answers_of=_seen(perturbed, results),
            )
        )
    judged = any(result.trace.golds for result in results)
    return Answer(
        position=position,
        sample=sample,
        question=cut(sample.question, LONGEST_QUESTION),
        results=results,
        passages=_passages(sample, documents, results),
        golds=() if judged else _golds(sample),
        problem=any(map(_problem, results)),
        response_apart=not any(_holds_response(result, sample) for result in results),
    )


def _seen(perturbed: Perturbed | None, results: Sequence[Result]) -> str:
    """Return the title of the result that shows these answers already, if one does."""
    if perturbed is None or not perturbed.answers:
        return ""
    return next((result.title for result in results if result.perturbed == perturbed), "")


def _problem(result: Result) -> bool:
    """Whether a reader should look: a failure, a wrong refusal, a faulty sentence of an answer, one
    that does not stay put.
    """
    if result.assessment.error is not None:
        return True
    if result.perturbed is not None:
        return result.assessment.verdict == "unstable"
    if result.assessment.verdict == "refused":
        return result.assessment.score == result.range[0]
    return result.trace.problem


def _passages(
    sample: Sample, documents: Sequence[Document], results: Sequence[Result]
) -> list[Passage]:
    citing: dict[int, list[Citing]] = {}
    for result in results:
        for sentence in result.trace.sentences:
            for citation in sentence.citations:
                entry = Citing(result.place, sentence, citation)
                citing.setdefault(citation.document, []).append(entry)
    coverage = {
        number: found for result in results for number, found in result.trace.coverage.items()
    }
    passages = []
    for number, document in enumerate(documents, start=1):
        found = coverage.get(number)
        flags: Sequence[Any] | None = found.supports if found else document.supports
        names = _gold_names(sample, results, len(flags or ()))
        passages.append(
            Passage(
                number=number,
                document=document,
                supports=[name for name, flag in zip(names, flags or (), strict=True) if flag],
                supports_known=bool(flags),
                computed=bool(found and found.computed),
                citing=citing.get(number, ()),
                citing_known=any(result.trace.sentences for result in results),
            )
        )
    return passages


def _gold_names(sample: Sample, results: Sequence[Result], count: int) -> Sequence[str]:
    """Return names for so many gold answers; their numbers where no list of golds fits."""
    candidates: list[Sequence[str]] = [
        [gold.text for gold in result.trace.golds] for result in results
    ]
    candidates += [[aliases[0] for aliases in sample.answers if aliases], sample.claims]
    numbers = [f"gold answer {number}" for number in range(1, count + 1)]
    return next((names for names in candidates if len(names) == count), numbers)


def _golds(sample: Sample) -> list[Gold]:
    """Return the gold answers of a sample whose metrics did not judge them."""
    answers = [Gold(a[0], a[1:], None, None, None) for a in sample.answers if a]
    return answers + [Gold(claim, (), None, None, None) for claim in sample.claims]


def _holds_response(result: Result, sample: Sample) -> bool:
    """Whether a result shows the whole response: as its sentences, or as the original answer."""
    if result.perturbed is not None:
        original = result.perturbed.original
        return original is not None and sample.response in (None, original)
    text = "".join(sentence.text for sentence in result.trace.sentences)
    return bool(text) and "".join(text.split()) == "".join((sample.response or "").split())
