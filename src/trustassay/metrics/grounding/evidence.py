"""Evidence of the grounding metric, and its view: sentences, citations, gold answers, passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trustassay.metric import Assessment
from trustassay.sample import Sample
from trustassay.views import EvidenceRow, Mark, PassageNote, Tie

SUPPORTED = Mark("good", "✓", "supported")
PARTLY = Mark("fair", "✓", "supported, but a citation is not needed or incorrect")
UNSUPPORTED = Mark("bad", "✕", "not supported")
UNCITED = Mark("bad", "✕", "not supported: no citation")
NOT_JUDGED = Mark("none", "○", "not judged")

GOOD_VERDICTS = frozenset({"supports alone", "needed", "covered"})
VERDICT_MARKS = {
    **dict.fromkeys(GOOD_VERDICTS, ("good", "✓")),
    **dict.fromkeys(("redundant", "duplicate"), ("fair", "≈")),
    **dict.fromkeys(("unsupported", "invalid"), ("bad", "✕")),
}


@dataclass(frozen=True, slots=True)
class Cited(EvidenceRow):
    """One citation of a sentence; ``document`` counts from 1, and is 0 where none is meant."""

    document: int
    verdict: str | None
    entailment: float | None
    why: str

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        verdict = self.verdict or "not judged"
        return Mark(*VERDICT_MARKS.get(verdict, ("none", "○")), verdict)

    @property
    def good(self) -> bool:
        """Whether the citation does what a citation is for."""
        return self.verdict in GOOD_VERDICTS


@dataclass(frozen=True, slots=True)
class Sentence(EvidenceRow, told_by=("kind", "text")):
    """One sentence or list item of the response, with its citations.

    first: the first reader's probability of entailment, where a second one read it, too.
    """

    kind: Literal["sentence", "list item"]
    text: str
    supported: bool | None
    entailment: float | None
    why: str
    citations: Sequence[Cited]
    first: float | None = None

    @property
    def mark(self) -> Mark:
        """Whether it is supported, for the report."""
        if self.supported is None:
            return NOT_JUDGED
        if self.supported:
            return SUPPORTED if all(citation.good for citation in self.citations) else PARTLY
        return UNSUPPORTED if self.citations else UNCITED


@dataclass(frozen=True, slots=True)
class Gold(EvidenceRow, row_kind="gold", told_by=("text",)):
    """A gold answer: is it in the response, and does a passage support it?"""

    text: str
    aliases: Sequence[str]
    correct: bool | None
    supported: bool | None
    entailment: float | None


@dataclass(frozen=True, slots=True)
class Coverage(EvidenceRow, row_kind="coverage", told_by=("document", "supports")):
    """Which gold answers one document supports, and whether an entailment model said so."""

    document: int
    supports: Sequence[Any]
    computed: bool


@dataclass(frozen=True, slots=True)
class Refusal(EvidenceRow, row_kind="refusal", told_by=("text",)):
    """The phrase by which a response was taken for a refusal."""

    text: str
    detector: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """All evidence of one assessment, sorted by kind; ``rest`` is what no kind here fits."""

    sentences: Sequence[Sentence]
    golds: Sequence[Gold]
    coverage: Mapping[int, Coverage]
    refusals: Sequence[Refusal]
    rest: Sequence[Mapping[str, Any]]
    documents: int


def judgement_of(assessment: Assessment, problem: str | None) -> Mark | None:
    """Return the judgement of an answer that was not refused, which its verdict does not tell."""
    if assessment.error is not None or assessment.verdict != "answered":
        return None
    parts = assessment.parts
    if parts.get("blank"):
        return Mark("bad", "✕", "blank")
    statements, supported = (parts.get(n, 0.0) for n in ("statements", "supported_statements"))
    if supported < statements:
        return Mark("bad", "✕", "partly supported" if supported else "not supported")
    return Mark("fair", "≈", "citations to check") if problem else SUPPORTED


def note_on(number: int, told: Sequence[int] | None, sample: Sample, trace: Trace) -> PassageNote:
    """Return what is known of a passage: by coverage, else by the sample's own flags."""
    coverage = trace.coverage.get(number)
    flags = coverage.supports if coverage else told
    names = _gold_names(sample, trace, len(flags or ()))
    ties = [
        Tie(f"s{place}", f"sentence {place}: {citation.mark.word}", citation.mark)
        for place, one in enumerate(trace.sentences, 1)
        for citation in one.citations
        if citation.document == number
    ]
    return PassageNote(
        [name for name, flag in zip(names, flags, strict=True) if flag] if flags else None,
        bool(coverage and coverage.computed),
        ties if trace.sentences else None,
    )


def _gold_names(sample: Sample, trace: Trace, count: int) -> Sequence[str]:
    """Return names for so many gold answers; their numbers where no list of golds fits."""
    candidates: list[Sequence[str]] = [
        [gold.text for gold in trace.golds],
        [aliases[0] for aliases in sample.answers if aliases],
        sample.claims,
    ]
    numbers = [f"gold answer {number}" for number in range(1, count + 1)]
    return next((names for names in candidates if len(names) == count), numbers)
