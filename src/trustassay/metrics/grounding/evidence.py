"""Evidence of the grounding metric, and its view: sentences, citations, gold answers, passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from trustassay.core.evidence import EvidenceLink, EvidenceRow, Mark, PassageNote
from trustassay.core.metric import Assessment
from trustassay.core.sample import Document, Sample
from trustassay.judging.evidence import NOT_JUDGED
from trustassay.judging.passages import Passages
from trustassay.judging.verdict import MAX_QUOTE_CHARACTERS
from trustassay.text.citations import strip_citations
from trustassay.text.sentences import Splitter

SUPPORTED = Mark("good", "✓", "supported")
PARTLY = Mark("fair", "✓", "supported, but a citation is not needed or incorrect")
UNSUPPORTED = Mark("bad", "✕", "not supported")
UNCITED = Mark("bad", "✕", "not supported: no citation")

GOOD_VERDICTS = frozenset({"supports alone", "needed", "covered"})
VERDICT_MARKS = {
    **dict.fromkeys(GOOD_VERDICTS, ("good", "✓")),
    **dict.fromkeys(("redundant", "duplicate"), ("fair", "≈")),
    **dict.fromkeys(("unsupported", "invalid"), ("bad", "✕")),
}


@dataclass(frozen=True, slots=True)
class CitationRow(EvidenceRow):
    """One citation of a sentence."""

    document: int
    """The number as written, from 1; 0 or a number beyond the documents is invalid."""
    verdict: str | None
    """A key of :data:`~trustassay.metrics.grounding.maths.VERDICT_REASONS`; ``None`` if it was not
    judged."""
    entailment: float | None
    """Probability that this passage alone entails the sentence, if it was asked for."""
    why: str
    """The reason for the verdict."""

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        verdict = self.verdict or "not judged"
        return Mark(*VERDICT_MARKS.get(verdict, ("none", "○")), verdict)

    @property
    def good(self) -> bool:
        """Whether the citation supports its sentence and is needed for it."""
        return self.verdict in GOOD_VERDICTS


@dataclass(frozen=True, slots=True)
class CitedSentence(EvidenceRow, required=("kind", "text")):
    """One sentence or list item of the response, with its citations."""

    kind: Literal["sentence", "list item"]
    """Whether the response was read as sentences or as a list."""
    text: str
    """The sentence as written."""
    supported: bool | None
    """Whether its cited passages together entail it; ``None`` where it needs no support."""
    entailment: float | None
    """Probability that they do, if it was asked for."""
    why: str
    """The reason for the verdict."""
    citations: Sequence[CitationRow]
    """Its citations, in order."""
    first: float | None = None
    """The first reader's probability of entailment, where a second one read it, too."""

    @property
    def mark(self) -> Mark:
        """Whether it is supported, for the report."""
        if self.supported is None:
            return NOT_JUDGED
        if self.supported:
            return SUPPORTED if all(citation.good for citation in self.citations) else PARTLY
        return UNSUPPORTED if self.citations else UNCITED


@dataclass(frozen=True, slots=True)
class GoldAnswerRow(EvidenceRow, row_kind="gold", required=("text",)):
    """A gold answer: is it in the response, and does a passage support it?"""

    text: str
    """The first alias."""
    aliases: Sequence[str]
    """The other aliases."""
    correct: bool | None
    """Whether the response gives it."""
    supported: bool | None
    """Whether a document supports it; ``None`` where that is unknown."""
    entailment: float | None
    """Probability that the response entails it, with ``correctness=cm``."""


@dataclass(frozen=True, slots=True)
class Coverage(EvidenceRow, row_kind="coverage", required=("document", "supports")):
    """Which gold answers one document supports."""

    document: int
    """The number of the document, from 1."""
    supports: Sequence[Any]
    """1 or 0 for each gold answer."""
    computed: bool
    """Whether an entailment model said so; else the sample did."""


@dataclass(frozen=True, slots=True)
class Refusal(EvidenceRow, row_kind="refusal", required=("text",)):
    """The phrase by which a response was taken for a refusal."""

    text: str
    """The phrase."""
    detector: str = ""
    """The name of the detector."""


@dataclass(frozen=True, slots=True)
class GroundingTrace:
    """All evidence of one assessment, sorted by kind."""

    sentences: Sequence[CitedSentence]
    """The sentences of the response, in order."""
    golds: Sequence[GoldAnswerRow]
    """The gold answers."""
    coverage: Mapping[int, Coverage]
    """What each document supports, by its number from 1."""
    refusals: Sequence[Refusal]
    """The words of a refusal, if it is one."""
    other_items: Sequence[Mapping[str, Any]]
    """Evidence of any other kind, as it is stored."""
    documents: int
    """The number of documents of the sample."""
    nearest: Mapping[int, "NearestSentence"]
    """For each sentence that is not supported, by its place from 0, the nearest one of the passages
    that it cites, or of all."""


class NearestSentence(NamedTuple):
    """The sentence of a passage that shares most words with an unsupported one."""

    statement: str
    """The unsupported sentence without its citations."""
    passage: int
    """The number of the passage, from 1."""
    text: str
    """The sentence of the passage."""


def find_nearest(
    sentences: Sequence[CitedSentence], documents: Sequence[Document], split: Splitter
) -> dict[int, NearestSentence]:
    """Return the nearest sentence of the passages for each sentence that is not supported.

    Args:
        sentences: the sentences of the response.
        documents: the passages.
        split: splits a passage into sentences.
    """
    places = [place for place, sentence in enumerate(sentences) if sentence.supported is False]
    if not places or not documents:
        return {}
    passages = Passages(documents, split)
    result = {}
    for place in places:
        statement = strip_citations(sentences[place].text)
        cited = {citation.document - 1 for citation in sentences[place].citations}
        numbers = sorted(cited & set(range(len(documents)))) or range(len(documents))
        number = max(numbers, key=lambda at: passages.largest_share(statement, at))
        if text := passages.find_closest_sentence(statement, number):
            result[place] = NearestSentence(statement, number + 1, text[:MAX_QUOTE_CHARACTERS])
    return result


def judgement_of(assessment: Assessment, problem: str | None) -> Mark | None:
    """Return the judgement of an answer that was not refused: its verdict says only "answered"."""
    if assessment.error is not None or assessment.verdict != "answered":
        return None
    parts = assessment.parts
    if parts.get("blank"):
        return Mark("bad", "✕", "blank")
    statements, supported = (parts.get(n, 0.0) for n in ("statements", "supported_statements"))
    # Unsupported sentences weigh more than a redundant citation, which only makes the answer fair.
    if supported < statements:
        return Mark("bad", "✕", "partly supported" if supported else "not supported")
    return Mark("fair", "≈", "citations to check") if problem else SUPPORTED


def note_on(
    number: int, supports: Sequence[int] | None, sample: Sample, trace: GroundingTrace
) -> PassageNote:
    """Return the note on a passage: the gold answers it supports, and the sentences citing it."""
    coverage = trace.coverage.get(number)
    # Without gold answers there is no coverage in the evidence; the sample's flags may exist.
    flags = coverage.supports if coverage else supports
    names = _name_golds(sample, trace, len(flags or ()))
    ties = [
        EvidenceLink(f"s{place}", f"sentence {place}: {citation.mark.word}", citation.mark)
        for place, sentence in enumerate(trace.sentences, 1)
        for citation in sentence.citations
        if citation.document == number
    ]
    return PassageNote(
        [name for name, flag in zip(names, flags, strict=True) if flag] if flags else None,
        bool(coverage and coverage.computed),
        ties if trace.sentences else None,
    )


def _name_golds(sample: Sample, trace: GroundingTrace, count: int) -> Sequence[str]:
    """Return names for ``count`` gold answers; their numbers where no list of golds fits."""
    candidates: list[Sequence[str]] = [
        [gold.text for gold in trace.golds],
        [aliases[0] for aliases in sample.answers if aliases],
        sample.claims,
    ]
    numbers = [f"gold answer {number}" for number in range(1, count + 1)]
    return next((names for names in candidates if len(names) == count), numbers)
