"""One statement on its way to a verdict: near passages are judged, then what they say together."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trustassay.capabilities import Entailment
from trustassay.metric import Context
from trustassay.metrics.faithfulness.claims import Claim
from trustassay.metrics.faithfulness.maths import (
    Verdict,
    contradicting,
    is_borderline,
    standing,
    supporting,
)
from trustassay.metrics.faithfulness.options import FaithfulnessOptions
from trustassay.metrics.faithfulness.passages import (
    Piece,
    joined,
    names,
    nearest,
    parts,
    pieces,
    shared,
    written,
)
from trustassay.sample import Document
from trustassay.texts import TextWork
from trustassay.together import all_of
from trustassay.words import content_words

__all__ = ["Judged", "Judging"]

_ASSENT = re.compile(r"(?:yes|no)\b[\s,.!]*", re.IGNORECASE)
_PRONOUNS = frozenset("it he she they this that these those its his her their".split())
QUOTED = 400
"""Characters of a passage's sentence that the evidence quotes."""
MANY = 500
"""Sentences of passages from which one statement is a long work."""
SHORTEST = 4
"""Letters of a word that may be the beginning of another form of it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement and its verdict; ``row`` is its evidence.

    entailment: the largest probability that a passage, or several, entail it; ``None`` if it
    claims nothing. contradiction: the largest that a near passage contradicts it. standing: what
    puts statements in order (:func:`~trustassay.metrics.faithfulness.maths.standing`).
    """

    verdict: Verdict
    entailment: float | None
    contradiction: float | None
    row: Mapping[str, Any]
    standing: float | None = None


class Judging:
    """Judges the statements of one answer by its passages."""

    def __init__(
        self, options: FaithfulnessOptions, context: Context, claims: Sequence[Claim]
    ) -> None:
        self._options, self._models = options, context.models
        self._documents: Sequence[Document] = context.sample.documents or ()
        found = pieces(self._documents, options.split)
        context.limits.count("sentences of its passages", len(found))
        self._work = TextWork(long=len(found) > MANY)
        self._parts = parts(self._documents, found)
        self._words = [set(content_words(document.title or "")) for document in self._documents]
        self._pieces: dict[int, list[Piece]] = {}
        for piece in found:
            self._words[piece.passage] |= piece.words
            self._pieces.setdefault(piece.passage, []).append(piece)
        self._held = sorted(set().union(*self._words))
        self._topic = names(context.sample.question)
        self._near = {
            text: nearest(text, self._parts, options.passages)
            for text in {claim.hypothesis for claim in claims if claim.hypothesis is not None}
        }

    async def verdict(self, claim: Claim) -> Judged:
        """Judge one statement.

        Raises:
            BackendError: the entailer failed.
        """
        if claim.hypothesis is None:
            row = _row(claim, "no claim", why=claim.why)
            return Judged("no claim", None, None, row)
        options = self._options
        work = self._work
        near = self._near[claim.hypothesis]
        rows = await all_of(self._asked(part.premise, claim) for part, _ in near)
        numbers = [part.passage for part, _ in near]
        place = supporting(rows, options.threshold)
        if place is not None:
            return await work(self._supported, claim, [numbers[place]], rows[place])
        together: Entailment | None = None
        used: list[Piece] = []
        if options.joined:
            candidates = [p for number in sorted({*numbers}) for p in self._pieces.get(number, ())]
            used = await work(joined, claim.hypothesis, candidates)
            if len(used) > 1:
                together = await self._asked("\n".join(piece.text for piece in used), claim)
        if together is not None and together.entailment >= options.threshold:
            named = sorted({p.passage for p in used})
            return await work(self._supported, claim, named, together, used)
        best = max((row.entailment for row in rows), default=0.0)
        about = [self._about(claim, number) for number in numbers]
        against = contradicting(rows, about, options.contradiction, options.near)
        if against is not None:
            return await work(self._contradicted, claim, numbers[against], rows[against], best)
        closest = numbers[0] if near and near[0][1] > 0 else None
        return await work(self._not_found, claim, closest, rows, best)

    def _about(self, claim: Claim, number: int) -> float:
        """Return how near a passage is to what a statement speaks of, 0 to 1.

        That is the share of its content words in two neighbouring sentences; 0 for a passage with
        none of its names, or of those of the question where it begins with a pronoun.
        """
        text = claim.hypothesis or claim.text
        pronoun = _PRONOUNS.intersection(text.casefold().split()[:1])
        named = names(text) or (self._topic if pronoun else [])
        stems = {stem for word in named for stem in content_words(word)}
        if stems and stems.isdisjoint(self._words[number]):
            return 0.0
        return shared(text, self._pieces.get(number, ()))

    async def _asked(self, text: str, claim: Claim) -> Entailment:
        return await self._models.entail(text, claim.hypothesis or "")

    def _supported(
        self, claim: Claim, numbers: Sequence[int], found: Entailment, used: Sequence[Piece] = ()
    ) -> Judged:
        quote = (
            " ".join(p.text for p in used) if used else self._nearest_sentence(claim, numbers[0])
        )
        places = " and ".join(f"[{number + 1}]" for number in numbers)
        why = f"{'passages' if len(numbers) > 1 else 'passage'} {places} support"
        why += f"{'' if len(numbers) > 1 else 's'} it ({found.entailment:.2f})"
        if used and len(numbers) == 1:
            why = f"sentences of passage {places} together support it ({found.entailment:.2f})"
        missing = self._details(claim, numbers)
        more: dict[str, Any] = {"missing": missing} if missing else {}
        if missing:
            why += f", without {', '.join(missing[:6])}"
        if is_borderline(found.entailment, self._options.threshold, detail_missing=bool(missing)):
            more["borderline"] = True
        return self._judged(
            claim,
            "supported",
            found,
            missing,
            why=why,
            passages=[number + 1 for number in numbers],
            quote=quote,
            **more,
        )

    def _contradicted(self, claim: Claim, number: int, found: Entailment, best: float) -> Judged:
        return self._judged(
            claim,
            "contradicted",
            Entailment(best, max(0.0, 1 - best - found.contradiction), found.contradiction),
            self._details(claim, [number]),
            why=f"passage [{number + 1}] says otherwise ({found.contradiction:.2f})",
            passages=[number + 1],
            quote=self._nearest_sentence(claim, number),
        )

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
        if missing:
            why = f"no passage says this; not in any of them: {', '.join(missing[:6])}"
        against = max((row.contradiction for row in rows), default=0.0)
        return self._judged(
            claim,
            "not found",
            Entailment(best, max(0.0, 1 - best - against), against),
            self._details(claim, [] if closest is None else [closest]),
            why=why,
            passages=[] if closest is None else [closest + 1],
            quote="" if closest is None else self._nearest_sentence(claim, closest),
            missing=missing,
        )

    def _judged(
        self,
        claim: Claim,
        verdict: Verdict,
        found: Entailment,
        details: Sequence[str],
        **others: Any,
    ) -> Judged:
        row = _row(
            claim,
            verdict,
            entailment=found.entailment,
            contradiction=found.contradiction,
            **others,
        )
        value = standing(found, detail_missing=bool(details))
        return Judged(verdict, found.entailment, found.contradiction, row, value)

    def _nearest_sentence(self, claim: Claim, number: int) -> str:
        """Return the sentence of a passage that holds most words of a statement."""
        wanted = set(content_words(claim.hypothesis or claim.text))
        own = self._pieces.get(number)
        if not own:
            return ""
        return max(own, key=lambda piece: len(piece.words & wanted)).text[:QUOTED]

    def _details(self, claim: Claim, numbers: Sequence[int]) -> list[str]:
        """Return the numbers that are not in the passages ``numbers``, and the names in none."""
        near = set().union(*(self._words[number] for number in numbers))
        said, missing = _said(claim), set(self._missing(claim))
        found = [word for word in written(said) if _is_number(word)]
        found = [word for word in found if not near.issuperset(content_words(word))]
        return found + [word for word in names(said) if word in missing and word not in found]

    def _missing(self, claim: Claim) -> list[str]:
        """Return the words of a statement, as written, that no passage holds."""
        found: dict[str, None] = {}
        for word in written(_said(claim)):
            stems = content_words(word)
            if stems and not any(map(self._holds, stems)):
                found[word] = None
        return list(found)

    def _holds(self, stem: str) -> bool:
        """Whether a passage has the word, or one that begins with it: "cancel", "cancelled"."""
        place = bisect_left(self._held, stem)
        if place == len(self._held):
            return False
        word = self._held[place]
        return word == stem or (len(stem) >= SHORTEST and word.startswith(stem))


def _is_number(word: str) -> bool:
    """Whether a word is a number, in digits or "two" to "twenty"; "one" is mostly none."""
    stems = content_words(word)
    return bool(stems) and stems[0][0].isdigit() and word.casefold() != "one"


def _said(claim: Claim) -> str:
    """Return what a statement says itself: without "Yes," before it, and without the question."""
    if claim.hypothesis and claim.hypothesis.casefold() in claim.text.casefold():
        return claim.hypothesis
    return _ASSENT.sub("", claim.text)


def _row(claim: Claim, verdict: Verdict, **others: Any) -> dict[str, Any]:
    """Return the evidence of a statement, with what is judged where that is not its text."""
    same = claim.hypothesis in (None, claim.text)
    judged = {} if same else {"hypothesis": claim.hypothesis}
    rounded = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in others.items()
    }
    return {"kind": "statement", "text": claim.text, "verdict": verdict, **judged, **rounded}
