"""The evidence of ``faithfulness``: statements with their verdicts, and where they stand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trustassay.views import EvidenceRow, Mark

Verdict: TypeAlias = Literal["supported", "not found", "contradicted", "no claim"]

_MARKS = {
    "supported": Mark("good", "✓", "supported"),
    "not found": Mark("bad", "✕", "not found in the passages"),
    "contradicted": Mark("bad", "✕", "contradicted"),
    "no claim": Mark("none", "○", "claims nothing"),
}
_NOT_JUDGED = Mark("none", "○", "not judged")


@dataclass(frozen=True, slots=True)
class Span(EvidenceRow, told_by=("start", "end")):
    """Characters ``start`` to ``end`` (without it) of an answer, and the probability that no
    passage entails their statement."""

    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class Statement(EvidenceRow, row_kind="statement", told_by=("text",)):
    """One sentence or claim.

    passages: the numbers, from 1, of those that decide; quote: their words. hypothesis: what was
    judged, if not the text. missing: words that no passage holds, or those that decide lack. first:
    the first reader's probability of entailment, where a second one read the statement, too. spans:
    where it stands in the answer (:func:`with_spans`), if it is not supported.
    """

    text: str
    verdict: str
    hypothesis: str | None = None
    entailment: float | None = None
    contradiction: float | None = None
    why: str = ""
    passages: Sequence[int] | None = None
    quote: str | None = None
    missing: Sequence[str] | None = None
    borderline: bool = False
    first: float | None = None
    spans: Sequence[Span] | None = None

    @property
    def mark(self) -> Mark:
        """The verdict, for the report."""
        if self.verdict == "supported" and self.borderline and self.entailment is not None:
            return Mark("fair", "≈", f"borderline ({self.entailment:.2f})")
        return _MARKS.get(self.verdict, _NOT_JUDGED)


def with_spans(rows: Sequence[Statement], response: str) -> list[Statement]:
    """Return statements, those that are no supported ones with their places in the answer.

    The first span is the statement, the others are words of it that no passage holds. One that does
    not stand in the answer as it is, as a claim that a model lists, has none.
    """
    result, at = list(rows), 0
    for place, row in enumerate(rows):
        if (start := response.find(row.text, at)) < 0:
            continue
        at = start + len(row.text)
        if row.verdict in ("contradicted", "not found"):
            words = "|".join(map(re.escape, row.missing or ()))
            held = re.finditer(rf"(?<!\w)(?:{words})(?!\w)", row.text) if words else ()
            places = [(0, len(row.text)), *(one.span() for one in held)]
            doubt = round(1 - (row.entailment or 0.0), 4)
            found = [Span(start + own, start + end, doubt) for own, end in places]
            result[place] = replace(row, spans=found)
    return result
