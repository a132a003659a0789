"""Evidence of the grounding metric, read into views that a template can show without thinking.

Evidence comes from a file that may be older than this code or written by somebody else's metric,
so every reader here is total: a part of the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.metric import Assessment
from trustassay.sample import Sample
from trustassay.views import (
    Judged,
    Mark,
    PassageNote,
    Tie,
    View,
    as_data,
    number_in,
    text_in,
    truth_in,
)

Evidence = Mapping[str, Any]


SUPPORTED = Mark("good", "✓", "supported")
PARTLY = Mark("fair", "✓", "supported, but a citation is not needed or incorrect")
UNSUPPORTED = Mark("bad", "✕", "not supported")
UNCITED = Mark("bad", "✕", "not supported: no citation")
NOT_JUDGED = Mark("none", "○", "not judged")

GOOD_VERDICTS = frozenset({"supports alone", "needed", "covered"})
VERDICT_MARKS = {
    "supports alone": ("good", "✓"),
    "needed": ("good", "✓"),
    "covered": ("good", "✓"),
    "redundant": ("fair", "≈"),
    "duplicate": ("fair", "≈"),
    "unsupported": ("bad", "✕"),
    "invalid": ("bad", "✕"),
    "beyond limit": ("none", "○"),
}


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation of a sentence; ``document`` counts from 1 and is 0 where nothing can be meant.

    ``exists`` says whether the sample has that document, so that a link to it leads somewhere.
    """

    document: int
    exists: bool
    mark: Mark
    entailment: float | None
    why: str

    @property
    def good(self) -> bool:
        """Whether the citation does what a citation is for."""
        return self.mark.word in GOOD_VERDICTS


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence or list item of the response, with its citations."""

    number: int
    text: str
    mark: Mark
    entailment: float | None
    why: str
    citations: Sequence[Citation]

    @property
    def problem(self) -> bool:
        """Whether a reader should look: not supported, or a citation that is not good."""
        return self.mark.tone == "bad" or not all(citation.good for citation in self.citations)


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold answer: is it in the response, and does a passage support it?"""

    text: str
    aliases: Sequence[str]
    correct: bool | None
    supported: bool | None
    entailment: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which gold answers one document supports, and whether an entailment model said so."""

    document: int
    supports: Sequence[bool]
    computed: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """The phrase by which a response was taken for a refusal."""

    text: str
    detector: str


@dataclass(frozen=True, slots=True)
class Trace:
    """All evidence of one assessment, sorted by kind; ``rest`` is what no kind here fits."""

    sentences: Sequence[Sentence]
    golds: Sequence[Gold]
    coverage: Mapping[int, Coverage]
    refusals: Sequence[Refusal]
    rest: Sequence[Evidence]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int) -> Trace:
        """Sort the evidence of an assessment whose sample has so many documents."""
        sentences: list[Sentence] = []
        golds: list[Gold] = []
        coverage: dict[int, Coverage] = {}
        refusals: list[Refusal] = []
        rest: list[Evidence] = []
        for item in evidence:
            match item:
                case {"kind": "sentence" | "list item", "text": str()}:
                    sentences.append(_sentence(item, len(sentences) + 1, documents))
                case {"kind": "gold", "text": str()}:
                    golds.append(_gold(item))
                case {"kind": "coverage", "document": int(document), "supports": [*flags]}:
                    flags = [bool(flag) for flag in flags]
                    coverage[document] = Coverage(document, flags, item.get("computed") is True)
                case {"kind": "refusal", "text": str(text)}:
                    refusals.append(Refusal(text, text_in(item, "detector")))
                case _:
                    rest.append(as_data(item))
        return cls(sentences, golds, coverage, refusals, rest)

    @property
    def problem(self) -> bool:
        """Whether any sentence has a problem."""
        return any(sentence.problem for sentence in self.sentences)


def problem_in(assessment: Assessment, lowest: float) -> str | None:
    """Return what is wrong with an answer, in one sentence: a wrong refusal, or what its sentences
    or citations lack.
    """
    if assessment.score is None and assessment.verdict is None:
        return None
    if assessment.verdict == "refused":
        return "refused, though it could be answered" if assessment.score == lowest else None
    parts = assessment.parts
    if parts.get("blank"):
        return "the answer is blank"
    sentences, supported, citations, precise = (
        int(parts.get(name, 0))
        for name in ("statements", "supported_statements", "citations", "precise_citations")
    )
    found = []
    if sentences > supported:
        noun = "sentence" if sentences == 1 else "sentences"
        found.append(f"{sentences - supported} of {sentences} {noun} not supported")
    if citations > precise:
        noun = "citation" if citations == 1 else "citations"
        found.append(f"{citations - precise} of {citations} {noun} not needed or incorrect")
    return "; ".join(found) or None


def _judgement(assessment: Assessment, problem: str | None) -> Mark | None:
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


def view_of(sample: Sample, assessment: Assessment, lowest: float) -> View:
    """Return what the report needs to know of the evidence of one answer."""
    documents = sample.documents or ()
    trace = Trace.read(assessment.evidence, len(documents))
    text = "".join(sentence.text for sentence in trace.sentences)
    told = "".join(text.split()) == "".join((sample.response or "").split())
    return View(
        data=trace,
        tells_response=bool(text) and told,
        tells_golds=bool(trace.golds),
        judged=[Judged(one.text, one.mark, one.why) for one in trace.sentences],
        mark=_judgement(assessment, problem_in(assessment, lowest)),
        passages={
            number: _note(number, document.supports, sample, trace)
            for number, document in enumerate(documents, start=1)
        },
    )


def _note(number: int, told: Sequence[int] | None, sample: Sample, trace: Trace) -> PassageNote:
    """Return what is known of a passage: by coverage, else by the sample's own flags."""
    coverage = trace.coverage.get(number)
    flags = coverage.supports if coverage else told
    names = _gold_names(sample, trace, len(flags or ()))
    ties = [
        Tie(f"s{one.number}", f"sentence {one.number}: {citation.mark.word}", citation.mark)
        for one in trace.sentences
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


def _sentence(item: Evidence, number: int, documents: int) -> Sentence:
    raw = item.get("citations")
    citations = [
        _citation(one, documents)
        for one in (raw if isinstance(raw, Sequence) and not isinstance(raw, str) else ())
        if isinstance(one, Mapping)
    ]
    return Sentence(
        number=number,
        text=item["text"],
        mark=_sentence_mark(item.get("supported"), citations),
        entailment=number_in(item, "entailment"),
        why=text_in(item, "why"),
        citations=citations,
    )


def _sentence_mark(supported: Any, citations: Sequence[Citation]) -> Mark:
    if supported is True:
        return SUPPORTED if all(citation.good for citation in citations) else PARTLY
    if supported is False:
        return UNSUPPORTED if citations else UNCITED
    return NOT_JUDGED


def _citation(item: Evidence, documents: int) -> Citation:
    raw = item.get("document")
    document = raw if isinstance(raw, int) and not isinstance(raw, bool) else 0
    verdict = text_in(item, "verdict") or "not judged"
    tone, symbol = VERDICT_MARKS.get(verdict, ("none", "○"))
    return Citation(
        document=document,
        exists=1 <= document <= documents,
        mark=Mark(tone, symbol, verdict),
        entailment=number_in(item, "entailment"),
        why=text_in(item, "why"),
    )


def _gold(item: Evidence) -> Gold:
    aliases = item.get("aliases")
    return Gold(
        text=item["text"],
        aliases=[one for one in aliases if isinstance(one, str) and one != item["text"]]
        if isinstance(aliases, list | tuple)
        else (),
        correct=truth_in(item, "correct"),
        supported=truth_in(item, "supported"),
        entailment=number_in(item, "entailment"),
    )
