"""The options, and one statement on its way to a verdict: near passages are judged, then what they
say together."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from trustassay.capabilities import Entailment
from trustassay.errors import UsageError, check_choices, check_least
from trustassay.event_loop import all_of
from trustassay.metric import Context, Metric
from trustassay.metrics.faithfulness.claims import Claim
from trustassay.metrics.faithfulness.evidence import Statement, Verdict
from trustassay.metrics.grounding.refusal import Detector, detector
from trustassay.metrics.grounding.sentences import Splitter, splitter
from trustassay.metrics.grounding.text import without_citations
from trustassay.prompts import shipped_for
from trustassay.sample import Document
from trustassay.second_reader import Window, windows
from trustassay.tables import as_prose, holds_data
from trustassay.texts import TextWork, content_words


def supporting(rows: Sequence[Entailment], threshold: float) -> int | None:
    """Return the place of the passage that entails a statement most, if one does.

    ``rows`` are the passages' probabilities; of equal ones the first counts.
    """
    if not rows:
        return None
    best = max(range(len(rows)), key=lambda place: rows[place].entailment)
    return best if rows[best].entailment >= threshold else None


def contradicting(
    rows: Sequence[Entailment], nearness: Sequence[float], threshold: float, near: float
) -> int | None:
    """Return the place of the passage that contradicts a statement most, if one does.

    Only passages count that speak of what the statement speaks of: whose ``nearness``, 0 to 1, is
    ``near`` or more.
    """
    places = [place for place in range(len(rows)) if nearness[place] >= near]
    if not places:
        return None
    most = max(places, key=lambda place: rows[place].contradiction)
    return most if rows[most].contradiction >= threshold else None


BORDERLINE = 0.1
"""Probability above the threshold up to which a supported statement is borderline."""
NEUTRAL = 0.1
"""What the probability of "neither" weighs against that of contradiction."""
DETAIL = 0.5
"""By what a missing number or name is multiplied."""


def standing(found: Entailment, *, detail_missing: bool) -> float:
    """Return what puts statements in order, 0 to 1: e / (e + c + n / 10), for the probabilities of
    entailment, contradiction and neither; halved where a number or a name is missing.

    What a passage contradicts stands below what none says: chat around the facts is not said,
    either. 0 where all are 0. Measured by ``benchmarks/ordering.py``.
    """
    against = found.contradiction + NEUTRAL * found.neutral
    total = found.entailment + against
    value = found.entailment / total if total else 0.0
    return round(DETAIL * value if detail_missing else value, 6)


def is_borderline(entailment: float, threshold: float, *, detail_missing: bool) -> bool:
    """Whether a supported statement is near the line: in doubt, and shown so."""
    return detail_missing or entailment < min(1.0, threshold + BORDERLINE)


Claims = Literal["sentences", "model"]


@dataclass(frozen=True)
class FaithfulnessOptions(Metric):
    """The options; see :class:`~trustassay.metrics.faithfulness.metric.Faithfulness`."""

    claims: Claims = "sentences"
    passages: int = 3
    threshold: float = 0.5
    contradiction: float = 0.5
    near: float = 0.5
    joined: bool = True
    splitter: str = "sentencex"
    refusal: str = "phrases"
    prompt: str | None = None
    max_tokens: int = 1024

    def __post_init__(self) -> None:
        check_least(self, passages=1, max_tokens=1)
        check_choices(self, claims=Claims)
        for option in ("threshold", "contradiction"):
            if not 0 < getattr(self, option) <= 1:
                raise UsageError(f"{option}: expected a number above 0 and up to 1")
        if not 0 <= self.near <= 1:
            raise UsageError("near: expected a number from 0 to 1")
        _ = self.split, self.refuses, self.claims_prompt  # may be unknown, or faulty

    @cached_property
    def split(self) -> Splitter:
        """The splitter of sentences."""
        return splitter(self.splitter)

    @cached_property
    def refuses(self) -> Detector:
        """The detector of refusals."""
        return detector(self.refusal)

    claims_prompt = shipped_for(__package__, "claims")
    """The template by which a model is asked for an answer's claims."""


LONGEST = 400
"""Words of a passage up to which it is put to the entailer as a whole, and of its parts."""

JOINED_WORDS = 80
"""Words of joined evidence: what the embedded entailer reads at once."""
JOINED_PIECES = 4


_WRITTEN = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")


class Piece(NamedTuple):
    """A sentence of a passage; ``passage`` counts from 0."""

    passage: int
    place: int
    text: str
    words: frozenset[str]


class Part(NamedTuple):
    """What is put to the entailer: a passage, or sentences in a row of a long one."""

    passage: int
    premise: str
    words: frozenset[str]


def parts(number: int, document: Document, found: Sequence[Piece]) -> list[Part]:
    """Return a passage, or parts of up to 400 words of a long one; ``found`` are its sentences.

    Each has the title before it, if there is one. A passage without a text is none.
    """
    texts = [] if document.blank else [document.text]
    if len(document.text.split()) > LONGEST:
        rows: list[list[str]] = [[]]
        sentences = [piece.text.split() for piece in found]
        for start, sentence in ((i, w) for w in sentences for i in range(0, len(w), LONGEST)):
            words = sentence[start : start + LONGEST]
            if rows[-1] and len(rows[-1]) + len(words) > LONGEST:
                rows.append([])
            rows[-1] += words
        texts = [" ".join(row) for row in rows]
    title = f"Title: {document.title}\n" if document.title else ""
    return [Part(number, title + text, _words(title + as_prose(text))) for text in texts]


def pieces(documents: Sequence[Document], split: Splitter) -> list[Piece]:
    """Return the sentences of all passages, of data in them those that say the same."""
    return [
        Piece(number, place, sentence.strip(), _words(sentence))
        for number, document in enumerate(documents)
        for place, sentence in enumerate(split(as_prose(document.text)))
        if sentence.strip()
    ]


def nearest(statement: str, rows: Sequence[Part], most: int) -> list[tuple[Part, float]]:
    """Return the parts that hold the largest share of a statement's content words.

    Each with that share, 0 to 1; the first of equal ones, and no more than ``most``.
    """
    wanted = _words(statement)
    shares = [len(wanted & row.words) / max(1, len(wanted)) for row in rows]
    order = sorted(range(len(rows)), key=lambda place: -shares[place])
    return [(rows[place], shares[place]) for place in order[:most]]


def shared(statement: str, own: Sequence[Piece]) -> float:
    """Return the largest share of a statement's content words, 0 to 1, that two neighbouring
    sentences of a passage hold; ``own`` are its sentences.
    """
    wanted = _words(statement)
    pairs = zip(own, own[1:] or own, strict=False)
    held = (len(wanted & (one.words | other.words)) for one, other in pairs)
    return max(held, default=0) / max(1, len(wanted))


def written(sentence: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the words and numbers of a sentence as they are written, each with its content words:
    none of one that says nothing by itself.
    """
    return [(word, content_words(word)) for word in _WRITTEN.findall(sentence)]


def names(sentence: str) -> list[str]:
    """Return the words of a sentence that begin with a capital letter, but for its first word."""
    return [word for word, own in written(sentence)[1:] if word[0].isupper() and own]


def joined(statement: str, candidates: Sequence[Piece]) -> list[Piece]:
    """Return sentences that together hold the statement's words, in reading order.

    One after the other that which adds most words, until none adds any, or they are four, or have
    80 words.
    """
    missing = set(_words(statement))
    left, chosen, length = list(candidates), list[Piece](), 0
    while left and missing and len(chosen) < JOINED_PIECES:
        best = max(left, key=lambda piece: len(piece.words & missing))
        gained = best.words & missing
        size = len(best.text.split())
        if not gained:
            break
        left.remove(best)
        if length + size > JOINED_WORDS and chosen:
            continue
        chosen.append(best)
        missing -= gained
        length += size
    return sorted(chosen)


def _words(text: str) -> frozenset[str]:
    return frozenset(content_words(text))


_ASSENT = re.compile(r"(?:yes|no)\b[\s,.!]*", re.IGNORECASE)
_PRONOUNS = frozenset("it he she they this that these those its his her their".split())
QUOTED = 400
"""Characters of a passage's sentence that the evidence quotes."""
MANY = 500
"""Sentences of passages from which one statement is a long work."""
_BY_BOTH: Mapping[Verdict, str] = {
    "supported": "the second reader finds it in the passages",
    "contradicted": "the second reader says that a passage contradicts it",
    "not found": "the second reader does not find it in the passages",
}
SHORTEST = 4
"""Letters of a word that may be the beginning of another form of it."""


class Finding(NamedTuple):
    """A statement with its verdict, as it stands in the evidence.

    entailment: the largest probability that a passage, or several, entail it; ``None`` if it
    claims nothing. standing: what puts statements in order
    (:func:`~trustassay.metrics.faithfulness.judging.standing`).
    """

    row: Statement
    entailment: float | None = None
    standing: float | None = None


class Judging:
    """Judges the statements of one answer by its passages."""

    def __init__(
        self, options: FaithfulnessOptions, context: Context, claims: Sequence[Claim]
    ) -> None:
        self._options, self._models, self._second = options, context.models, context.second
        self._documents: Sequence[Document] = context.sample.documents or ()
        result = pieces(self._documents, options.split)
        self._data = {n for n, one in enumerate(self._documents) if holds_data(one.text)}
        context.limits.count("sentences of its passages", len(result))
        self._work = TextWork(long=len(result) > MANY)
        self._words = [set(content_words(document.title or "")) for document in self._documents]
        self._pieces: list[list[Piece]] = [[] for _ in self._documents]
        for piece in result:
            self._words[piece.passage] |= piece.words
            self._pieces[piece.passage].append(piece)
        self._held = sorted(set().union(*self._words))
        self._topic = names(context.sample.question)
        passages = enumerate(zip(self._documents, self._pieces, strict=True))
        every = [part for number, given in passages for part in parts(number, *given)]
        self._near = {
            text: nearest(text, every, options.passages)
            for text in {claim.hypothesis for claim in claims if claim.hypothesis is not None}
        }

    async def verdict(self, claim: Claim) -> Finding:
        """Judge one statement."""
        text = claim.hypothesis
        if text is None:
            return Finding(Statement(claim.text, "no claim", why=claim.why))
        options, work, near = self._options, self._work, self._near[text]
        entail = self._models.entail
        rows = await all_of(entail(part.premise, text) for part, _ in near)
        numbers = [part.passage for part, _ in near]
        place = supporting(rows, options.threshold)
        if place is not None:
            return await work(self._supported, claim, [numbers[place]], rows[place])
        if options.joined:
            prose = sorted({*numbers} - self._data)  # rows together would lend each other values
            candidates = [piece for number in prose for piece in self._pieces[number]]
            used = await work(joined, text, candidates)
            if len(used) > 1:
                together = await entail("\n".join(piece.text for piece in used), text)
                if together.entailment >= options.threshold:
                    named = sorted({piece.passage for piece in used})
                    return await work(self._supported, claim, named, together, used)
        best = max((row.entailment for row in rows), default=0.0)
        about = [self._about(claim, number) for number in numbers]
        against = contradicting(rows, about, options.contradiction, options.near)
        if against is not None:
            return await work(self._contradicted, claim, numbers[against], rows[against], best)
        closest = numbers[:1] if near and near[0][1] > 0 else []
        return await work(self._not_found, claim, closest, rows, best)

    def near(self, claim: Claim) -> list[Part]:
        """Return what a statement is put to."""
        return [part for part, _ in self._near.get(claim.hypothesis or "", ())]

    async def again(self, claim: Claim, before: Finding) -> Finding:
        """Judge a statement that claims something once more, by both readers."""
        text = claim.hypothesis or claim.text
        sentences = [[piece.text for piece in own] for own in self._pieces]
        shown = await self._work(windows, text, sentences)
        row = before.row
        first = _beside(row.entailment or 0.0, row.contradiction or 0.0)
        assert self._second
        result = await self._second.verdict(self._models, shown, text, first)
        return await self._work(self._read_twice, claim, shown, first.entailment, result)

    def _read_twice(
        self, claim: Claim, shown: Sequence[Window], first: float, found: Entailment
    ) -> Finding:
        numbers = sorted({one.passage for one in shown})
        verdict: Verdict = "not found"
        if found.entailment >= self._options.threshold:
            verdict = "supported"
        elif found.contradiction >= self._options.contradiction:
            verdict = "contradicted"
        why = f"{_BY_BOTH[verdict]} ({found.entailment:.2f}; the first reader {first:.2f})"
        others: dict[str, Any] = {"first": first}
        if numbers:
            others["quote"] = self._nearest_sentence(claim, numbers[0])
        if verdict != "supported" and (missing := self._missing(claim)):
            others["missing"] = missing
            why += f"; not in any passage: {', '.join(missing[:6])}"
        return self._judged(claim, verdict, found, numbers, why, **others)

    def _about(self, claim: Claim, number: int) -> float:
        """Return how near a passage is to a statement (:func:`shared`): 0 with none of its names,
        or of those of the question where it begins with a pronoun.
        """
        text = claim.hypothesis or claim.text
        pronoun = _PRONOUNS.intersection(text.casefold().split()[:1])
        named = names(text) or (self._topic if pronoun else [])
        stems = {stem for word in named for stem in content_words(word)}
        if stems and stems.isdisjoint(self._words[number]):
            return 0.0
        return shared(text, self._pieces[number])

    def _supported(
        self, claim: Claim, numbers: Sequence[int], found: Entailment, used: Sequence[Piece] = ()
    ) -> Finding:
        places = " and ".join(f"[{number + 1}]" for number in numbers)
        why = f"passage {places} supports it"
        if used:
            several = f"passages {places}", f"sentences of passage {places} together"
            why = f"{several[len(numbers) == 1]} support it"
        why += f" ({found.entailment:.2f})"
        quote = " ".join(p.text for p in used) or self._nearest_sentence(claim, numbers[0])
        return self._judged(claim, "supported", found, numbers, why, quote=quote)

    def _contradicted(self, claim: Claim, number: int, found: Entailment, best: float) -> Finding:
        why = f"passage [{number + 1}] says otherwise ({found.contradiction:.2f})"
        both, quote = _beside(best, found.contradiction), self._nearest_sentence(claim, number)
        return self._judged(claim, "contradicted", both, [number], why, quote=quote)

    def _not_found(
        self, claim: Claim, closest: Sequence[int], rows: Sequence[Entailment], best: float
    ) -> Finding:
        """Say what no passage holds: words, if some are nowhere, else the statement itself."""
        missing = self._missing(claim)
        why = "no passage says this"
        if missing:
            why += f"; not in any of them: {', '.join(missing[:6])}"
        both = _beside(best, max((row.contradiction for row in rows), default=0.0))
        quote = "".join(self._nearest_sentence(claim, number) for number in closest)
        return self._judged(claim, "not found", both, closest, why, quote=quote, missing=missing)

    def _judged(
        self,
        claim: Claim,
        verdict: Verdict,
        found: Entailment,
        numbers: Sequence[int],
        why: str,
        **others: Any,
    ) -> Finding:
        """Return a statement with its verdict; one that is supported with the details it lacks."""
        lacks = self._details(claim, numbers)
        if verdict == "supported":
            threshold = self._options.threshold
            near = is_borderline(found.entailment, threshold, detail_missing=bool(lacks))
            others |= {"missing": lacks or None, "borderline": near}
            why += f", without {', '.join(lacks[:6])}" if lacks else ""
        row = Statement(
            claim.text,
            verdict,
            None if claim.hypothesis == claim.text else claim.hypothesis,
            round(found.entailment, 4),
            round(found.contradiction, 4),
            why=why,
            passages=[number + 1 for number in numbers],
            **others,
        )
        return Finding(row, found.entailment, standing(found, detail_missing=bool(lacks)))

    def _nearest_sentence(self, claim: Claim, number: int) -> str:
        """Return the sentence of a passage that holds most words of a statement."""
        wanted = _words(claim.hypothesis or claim.text)
        held = [(len(piece.words & wanted), piece.text) for piece in self._pieces[number]]
        return max(held, key=lambda one: one[0], default=(0, ""))[1][:QUOTED]

    def _details(self, claim: Claim, numbers: Sequence[int]) -> list[str]:
        """Return the numbers, in digits or as words but for "one", that are not in the passages
        ``numbers``, and the names in none.
        """
        near = set().union(*(self._words[number] for number in numbers))
        said, missing = _said(claim), set(self._missing(claim))
        numbered = ((word, own) for word, own in written(said) if own and own[0][0].isdigit())
        result = [w for w, own in numbered if w.casefold() != "one" and not near.issuperset(own)]
        return result + [word for word in names(said) if word in missing and word not in result]

    def _missing(self, claim: Claim) -> list[str]:
        """Return the words of a statement, as written, that no passage holds."""
        pairs = written(_said(claim))
        result = (word for word, own in pairs if own and not any(map(self._holds, own)))
        return list(dict.fromkeys(result))

    def _holds(self, stem: str) -> bool:
        """Whether a passage has the word, or one that begins with it: "cancel", "cancelled"."""
        place = bisect_left(self._held, stem)
        word = self._held[place] if place < len(self._held) else ""
        return word == stem or (len(stem) >= SHORTEST and word.startswith(stem))


def _beside(best: float, against: float) -> Entailment:
    return Entailment(best, max(0.0, 1 - best - against), against)


def _said(claim: Claim) -> str:
    """Return what a statement says itself: without citations, the question, and a "Yes,"."""
    if claim.hypothesis and claim.hypothesis.casefold() in claim.text.casefold():
        return claim.hypothesis
    return _ASSENT.sub("", without_citations(claim.text))
