"""One statement on its way to a verdict: near passages are judged, then what they say together."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import Entailment, Models
from trustassay.metrics.faithfulness.claims import Claim
from trustassay.metrics.faithfulness.maths import Verdict, contradicting, supporting
from trustassay.metrics.faithfulness.options import FaithfulnessOptions
from trustassay.metrics.faithfulness.passages import Piece, joined, nearest, parts, pieces
from trustassay.sample import Document, Sample
from trustassay.together import all_of
from trustassay.words import content_words

__all__ = ["Judged", "Judging"]

QUOTED = 400
"""Characters of a passage's sentence that the evidence quotes."""
SHORTEST = 4
"""Letters of a word that may be the beginning of another form of it."""
_WRITTEN = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement and its verdict; ``row`` is its evidence.

    entailment: the largest probability that a passage, or several, entail it; ``None`` if it
    claims nothing. contradiction: the largest that a near passage contradicts it.
    """

    verdict: Verdict
    entailment: float | None
    contradiction: float | None
    row: Mapping[str, Any]


class Judging:
    """Judges the statements of one answer by its passages."""

    def __init__(self, options: FaithfulnessOptions, sample: Sample, models: Models) -> None:
        self._options, self._models = options, models
        self._documents: Sequence[Document] = sample.documents or ()
        self._pieces = pieces(self._documents, options.split)
        self._parts = parts(self._documents, self._pieces)
        held = {word for piece in self._pieces for word in piece.words}
        titles = (document.title or "" for document in self._documents)
        self._held = sorted(held.union(*map(content_words, titles)))

    async def verdict(self, claim: Claim) -> Judged:
        """Judge one statement.

        Raises:
            BackendError: the entailer failed.
        """
        if claim.hypothesis is None:
            row = _row(claim, "no claim", why=claim.why)
            return Judged("no claim", None, None, row)
        options = self._options
        near = nearest(claim.hypothesis, self._parts, options.passages)
        rows = await all_of(self._asked(part.premise, claim) for part, _ in near)
        numbers = [part.passage for part, _ in near]
        place = supporting(rows, options.threshold)
        if place is not None:
            return self._supported(claim, [numbers[place]], rows[place])
        together: Entailment | None = None
        used: list[Piece] = []
        if options.joined:
            used = joined(claim.hypothesis, [p for p in self._pieces if p.passage in numbers])
            if len(used) > 1:
                together = await self._asked("\n".join(piece.text for piece in used), claim)
        if together is not None and together.entailment >= options.threshold:
            return self._supported(claim, sorted({p.passage for p in used}), together, used)
        best = max((row.entailment for row in rows), default=0.0)
        against = contradicting(
            rows, [share for _, share in near], options.contradiction, options.near
        )
        if against is not None:
            return self._contradicted(claim, numbers[against], rows[against], best)
        closest = numbers[0] if near and near[0][1] > 0 else None
        return self._not_found(claim, closest, rows, best)

    async def _asked(self, text: str, claim: Claim) -> Entailment:
        found = await self._models.entail(text, claim.hypothesis or "")
        if claim.denies:
            return Entailment(found.contradiction, found.neutral, found.entailment)
        return found

    def _supported(
        self, claim: Claim, numbers: Sequence[int], found: Entailment, used: Sequence[Piece] = ()
    ) -> Judged:
        quote = (
            " ".join(p.text for p in used) if used else self._nearest_sentence(claim, numbers[0])
        )
        names = " and ".join(f"[{number + 1}]" for number in numbers)
        why = f"{'passages' if len(numbers) > 1 else 'passage'} {names} support"
        why += f"{'' if len(numbers) > 1 else 's'} it ({found.entailment:.2f})"
        if used and len(numbers) == 1:
            why = f"sentences of passage {names} together support it ({found.entailment:.2f})"
        row = _row(
            claim,
            "supported",
            why=why,
            passages=[number + 1 for number in numbers],
            quote=quote,
            entailment=found.entailment,
            contradiction=found.contradiction,
        )
        return Judged("supported", found.entailment, found.contradiction, row)

    def _contradicted(self, claim: Claim, number: int, found: Entailment, best: float) -> Judged:
        row = _row(
            claim,
            "contradicted",
            why=f"passage [{number + 1}] says otherwise ({found.contradiction:.2f})",
            passages=[number + 1],
            quote=self._nearest_sentence(claim, number),
            entailment=best,
            contradiction=found.contradiction,
        )
        return Judged("contradicted", best, found.contradiction, row)

    def _not_found(
        self,
        claim: Claim,
        closest: int | None,
        rows: Sequence[Entailment],
        best: float,
    ) -> Judged:
        """Say what no passage holds: words, if some are nowhere, else the statement itself."""
        missing = self._missing(claim)
        why = "no passage says this"
        if not self._documents:
            why = "there is no passage"
        elif missing:
            why = f"no passage says this; not in any of them: {', '.join(missing[:6])}"
        row = _row(
            claim,
            "not found",
            why=why,
            passages=[] if closest is None else [closest + 1],
            quote="" if closest is None else self._nearest_sentence(claim, closest),
            missing=missing,
            entailment=best,
            contradiction=max((row.contradiction for row in rows), default=0.0),
        )
        return Judged("not found", best, row["contradiction"], row)

    def _nearest_sentence(self, claim: Claim, number: int) -> str:
        """Return the sentence of a passage that holds most words of a statement."""
        wanted = set(content_words(claim.hypothesis or claim.text))
        own = [piece for piece in self._pieces if piece.passage == number]
        if not own:
            return ""
        return max(own, key=lambda piece: len(piece.words & wanted)).text[:QUOTED]

    def _missing(self, claim: Claim) -> list[str]:
        """Return the words of a statement, as written, that no passage holds."""
        text = claim.text
        if claim.hypothesis and claim.hypothesis.casefold() in text.casefold():
            text = claim.hypothesis  # "Yes, ..." without its first word
        found: dict[str, None] = {}
        for written in _WRITTEN.findall(text):
            stems = content_words(written)
            if stems and not any(map(self._holds, stems)):
                found[written] = None
        return list(found)

    def _holds(self, stem: str) -> bool:
        """Whether a passage has the word, or one that begins with it: "cancel", "cancelled"."""
        place = bisect_left(self._held, stem)
        if place == len(self._held):
            return False
        word = self._held[place]
        return word == stem or (len(stem) >= SHORTEST and word.startswith(stem))


def _row(claim: Claim, verdict: Verdict, **others: Any) -> dict[str, Any]:
    """Return the evidence of a statement, with what is judged where that is not its text."""
    shown = f"not: {claim.hypothesis}" if claim.denies else claim.hypothesis
    judged = {} if shown in (None, claim.text) else {"hypothesis": shown}
    rounded = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in others.items()
    }
    return {"kind": "statement", "text": claim.text, "verdict": verdict, **judged, **rounded}
