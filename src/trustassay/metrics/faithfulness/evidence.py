"""Evidence of faithfulness, read into views: each sentence, its verdict, and what decides.

Every reader is total: what has the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.metric import Assessment
from trustassay.sample import Sample
from trustassay.views import Judged, Mark, PassageNote, Tie, View, as_data, number_in, text_in

_MARKS = {
    "supported": Mark("good", "✓", "supported"),
    "not found": Mark("bad", "✕", "not found in the passages"),
    "contradicted": Mark("bad", "✕", "contradicted"),
    "no claim": Mark("none", "○", "claims nothing"),
}
_NOT_JUDGED = Mark("none", "○", "not judged")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence or claim; ``passages`` are the numbers, from 1, of those that decide."""

    number: int
    text: str
    verdict: str
    mark: Mark
    hypothesis: str
    why: str
    passages: Sequence[int]
    quote: str
    entailment: float | None
    contradiction: float | None

    @property
    def problem(self) -> bool:
        """Whether a reader should look."""
        return self.mark.tone == "bad"


@dataclass(frozen=True, slots=True)
class Trace:
    """All evidence of one assessment; ``rest`` is evidence of any other kind."""

    statements: Sequence[Statement]
    refusal: str
    rest: Sequence[Mapping[str, Any]]

    @classmethod
    def read(cls, evidence: Iterable[Any], documents: int = 0) -> Trace:
        """Sort the evidence of a sample that has so many documents."""
        statements: list[Statement] = []
        rest: list[Mapping[str, Any]] = []
        refusal = ""
        for item in evidence:
            match item:
                case {"kind": "statement", "text": str()}:
                    statements.append(_statement(item, len(statements) + 1, documents))
                case {"kind": "refusal", "text": str(text)}:
                    refusal = text
                case _:
                    rest.append(as_data(item))
        return cls(statements, refusal, rest)


def problem_in(assessment: Assessment) -> str | None:
    """Return what is wrong with an answer: sentences contradicted, or not found."""
    if assessment.verdict not in ("contradicted", "not found"):
        return None
    parts = assessment.parts
    judged, supported, contradicted = (
        int(parts.get(name, 0)) for name in ("statements", "supported", "contradicted")
    )
    words = [
        f"{count} of {judged} {'sentence' if judged == 1 else 'sentences'} {said}"
        for count, said in (
            (contradicted, "contradicted by a passage"),
            (judged - supported - contradicted, "not found in the passages"),
        )
        if count
    ]
    return "; ".join(words) or assessment.verdict


def view_of(sample: Sample, assessment: Assessment) -> View:
    """Return what the report needs to know of the evidence of one answer."""
    documents = sample.documents or ()
    trace = Trace.read(assessment.evidence, len(documents))
    near = [one.mark for one in trace.statements if one.mark.tone == "fair"]
    text = "".join(one.text for one in trace.statements)
    told = "".join(text.split()) == "".join((sample.response or "").split())
    ties: dict[int, list[Tie]] = {number: [] for number in range(1, len(documents) + 1)}
    for one in trace.statements:
        for number in one.passages:
            if one.verdict != "not found":
                label = f"sentence {one.number}: {one.mark.word}"
                ties[number].append(Tie(f"s{one.number}", label, one.mark))
    return View(
        data=trace,
        tells_response=bool(text) and told,
        judged=[Judged(one.text, one.mark, _reason(one)) for one in trace.statements],
        passages={
            number: PassageNote(citing=found if trace.statements else None, tied_by="used by")
            for number, found in ties.items()
        },
        mark=min(near, key=lambda mark: mark.word)
        if near and assessment.verdict == "supported"
        else None,
    )


def _reason(one: Statement) -> str:
    """Return what decides: the words of the passage that contradicts, or those that are missing."""
    if one.verdict == "contradicted" and one.quote and one.passages:
        return f"Passage [{one.passages[0]}] says: “{one.quote}”"
    return one.why


def _mark(item: Mapping[str, Any], verdict: str) -> Mark:
    support = number_in(item, "entailment")
    if verdict == "supported" and item.get("borderline") is True and support is not None:
        return Mark("fair", "≈", f"borderline ({support:.2f})")
    return _MARKS.get(verdict, _NOT_JUDGED)


def _statement(item: Mapping[str, Any], number: int, documents: int) -> Statement:
    verdict = text_in(item, "verdict")
    raw = item.get("passages")
    numbers = raw if isinstance(raw, list | tuple) else ()
    return Statement(
        number,
        item["text"],
        verdict,
        _mark(item, verdict),
        text_in(item, "hypothesis"),
        text_in(item, "why"),
        [
            one
            for one in numbers
            if isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= documents
        ],
        text_in(item, "quote"),
        number_in(item, "entailment"),
        number_in(item, "contradiction"),
    )
