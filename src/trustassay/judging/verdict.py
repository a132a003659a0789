"""The verdict on one claim by the passages of its answer: supported, contradicted or not found.

In this order:

1. A short sentence that stands among the sentences of the passages is supported; a claim of which a
   passage says the opposite in the same words is contradicted. No reader is needed to see that.
2. The near excerpts are read one by one. A title may complete what a text says and supports nothing
   by itself.
3. What says that the documents do not speak of something is contradicted where one does.
4. Where no excerpt supports a claim, sentences of all passages that hold its words are read
   together, and then windows around its words.
5. With a number, date or name that no passage has, a claim is not supported, whoever says so.
6. A near excerpt on the same subject may contradict it. Everything else is not found.

A second reader may change what the first one decided (:meth:`ClaimVerifier.again`), and not what a
rule did.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from trustassay.capabilities import Entailment, Models
from trustassay.event_loop import all_of
from trustassay.judging.claims import Claim
from trustassay.judging.details import KnownDetails
from trustassay.judging.evidence import ClaimSpan, Statement, Verdict
from trustassay.judging.passages import Excerpt, Passages, PassageSentence, Window, read
from trustassay.judging.second_reader import SecondReader
from trustassay.judging.short_replies import complete_reply, sentence_of
from trustassay.sample import Document
from trustassay.text.citations import without_citations
from trustassay.text.grammar import WH_WORDS, is_common_word
from trustassay.text.limits import TextWork
from trustassay.text.refusals import declines
from trustassay.text.sentences import Splitter
from trustassay.text.tables import as_prose
from trustassay.text.unicode import folded
from trustassay.text.words import NUMERALS, content_words, is_negation, plain_words

BORDERLINE = 0.1
"""Probability above the threshold up to which a supported claim is borderline."""
NEUTRAL = 0.1
"""How much the probability of neither counts against a claim, beside that of contradiction.
Measured by ``benchmarks/ordering.py``, as is :data:`DETAIL`."""
DETAIL = 0.5
"""What is left of the support of a claim with a detail that no passage has."""
QUOTED = 400
"""Characters of a passage's sentence that the evidence quotes."""
MANY_SENTENCES = 500
"""Sentences of passages from which one claim is a long work."""
SHORTEST_STEM = 4
"""Letters of a word that may be the beginning of another form of it."""


class Finding(NamedTuple):
    """The verdict on a claim."""

    row: Statement
    entailment: float | None = None
    """The probability that the claim is supported, 0 to 1; ``None`` if it claims nothing."""
    standing: float | None = None
    """What puts claims in order, 0 to 1 (:func:`standing`)."""
    read: bool = True
    """Whether a reader decided, and not a rule that needs none."""


@dataclass(frozen=True, slots=True)
class VerdictOptions:
    """How claims are judged."""

    passages: int = 3
    """How many excerpts a claim is read against."""
    threshold: float = 0.5
    """Probability from which a passage supports."""
    contradiction: float = 0.5
    """Probability from which a passage contradicts."""
    near: float = 0.5
    """Share of a claim's words that a passage must hold to contradict it."""
    joined: bool = True
    """Whether sentences of several passages are tried together."""


# Rules on probabilities -------------------------------------------------------------------------


def supporting(rows: Sequence[Entailment], threshold: float) -> int | None:
    """Return the place of the passage that entails a claim most, if one does; of equal ones the
    first. ``rows`` are the passages' probabilities.
    """
    if not rows:
        return None
    best = max(range(len(rows)), key=lambda place: rows[place].entailment)
    return best if rows[best].entailment >= threshold else None


def contradicting(
    rows: Sequence[Entailment], nearness: Sequence[float], threshold: float, near: float
) -> int | None:
    """Return the place of the passage that contradicts a claim most, if one does.

    Only passages count that speak of what the claim speaks of: whose ``nearness``, 0 to 1, is
    ``near`` or more.
    """
    places = [place for place in range(len(rows)) if nearness[place] >= near]
    if not places:
        return None
    most = max(places, key=lambda place: rows[place].contradiction)
    return most if rows[most].contradiction >= threshold else None


def standing(probabilities: Entailment, *, detail_missing: bool) -> float:
    """Return what puts claims in order, 0 to 1: e / (e + c + n / 10), for the probabilities of
    entailment, contradiction and neither; halved where a number or a name is missing.

    Contradicted claims rank below those that no passage says: chat around the facts is in no
    passage, either. 0 where all are 0.
    """
    against = probabilities.contradiction + NEUTRAL * probabilities.neutral
    total = probabilities.entailment + against
    value = probabilities.entailment / total if total else 0.0
    return round(DETAIL * value if detail_missing else value, 6)


def is_borderline(entailment: float, threshold: float) -> bool:
    """Whether a supported claim is near the line: in doubt, and shown so."""
    return entailment < min(1.0, threshold + BORDERLINE)


def _with_neutral_rest(best: float, against: float) -> Entailment:
    return Entailment(best, max(0.0, 1 - best - against), against)


# Rules on words ---------------------------------------------------------------------------------

_EDGES = " \t.,;:!\"'()*-•"
MOST_MORE_WORDS = 3
"""Content words that a sentence may have more than a claim whose opposite it says."""
_TWISTS = re.compile(
    r"\bnot (?:only|just|merely|all|every|always|necessarily)\b|\bno (?:later|earlier|less"
    r"|more|fewer) than\b"
    r"|\b(?:if|unless|whether|except|but not|until|without|neither|nor)\b|\bor (?:\w+ )?not\b"
    r"|\b(?:some|most|many|few|several|certain|half|both|another|other)\b"
    r"|\b(?:could|may|might|would|should|possibly|perhaps|allegedly|reportedly)\b|\?\s*$",
    re.IGNORECASE,
)
"""What a negation does not just turn around: conditions, quantifiers, possibilities, questions."""
_OPENS_CLAUSE = frozenset(("to", "that"))
_PRONOUNS = frozenset("it he she they this that these those its his her their".split())


_IS_SENTENCE = re.compile(r"[A-Z]\S* \S.*[.!]\s*$")


def _bare(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).strip(_EDGES)


def _is_negated(words: Sequence[str]) -> bool:
    return sum(map(is_negation, words)) % 2 == 1


def _denies(sentence: str) -> bool:
    """Whether a sentence of a passage denies something itself: "The price is not specified"."""
    return declines(sentence) is not None or _is_negated(list(plain_words(sentence)))


def opposite_of(claim: str, sentences: Sequence[PassageSentence]) -> PassageSentence | None:
    """Return the sentence that says the opposite of a claim: it has all content words of the claim
    in the same order, hardly any other between them, and only one of both is negated. ``None``
    where another sentence says the same.

    A sentence with a negation elsewhere says neither, nor does one with a condition, or with the
    words of the claim in a clause of its own: "He failed to pay", "She pretended that it rained".
    """
    in_order = list(dict.fromkeys(content_words(claim)))
    wanted = frozenset(in_order)
    words_of_claim = list(plain_words(claim))
    if len(wanted) < 2 or _TWISTS.search(claim) or words_of_claim[0] in _PRONOUNS:
        return None
    negated = _is_negated(words_of_claim)
    clauses = _OPENS_CLAUSE.intersection(words_of_claim)
    opposite = None
    for sentence in sentences:
        if not wanted <= sentence.words or _TWISTS.search(sentence.text):
            continue
        words = list(plain_words(sentence.text))
        stems = [content_words(word) for word in words]
        places = [n for n, stem in enumerate(stems) if stem and stem[0] in wanted]
        first, last = max(0, places[0] - 2), places[-1] + 1
        if any(map(is_negation, (*words[:first], *words[last:]))):
            continue
        if _is_negated(words[first:last]) == negated:
            return None
        if not clauses.issuperset(_OPENS_CLAUSE.intersection(words[max(0, first - 2) : last])):
            continue
        inner = [stem[0] for stem in stems[first:last] if stem]
        if [stem for stem in dict.fromkeys(inner) if stem in wanted] != in_order:
            continue
        # "The museum is not open on Mondays" is not the opposite of "The museum is open".
        restricted = not negated and any((*stems[: places[0]], *stems[last:]))
        few_more = len(set(inner) - wanted) <= MOST_MORE_WORDS
        if few_more and not restricted and opposite is None:
            opposite = sentence
    return opposite


# Topics of which a denial says that no passage speaks, and what speaks of them in other words: a
# price by an amount, "who" by a name. Other words of the topic must stand near it.
_ANSWERS = [
    (
        r"prices?|costs?|fees?|fares?|charges?|rates?|how much|expensive|pay",
        r"[$€£]\s?\d|\d\s?(?:(?i:euros?|dollars?|pounds?|usd|eur|gbp|cents?|pence))\b"
        r"|\d\s?[$€£]|\b(?i:costs?|priced?|fees?|fares?|(?:is|are) free)\b",
    ),
    (
        r"when|(?:what|which) (?:year|date|day|month)|dates?|years?",
        r"\b[12]\d{3}\b|\b\d{1,2}(?:st|nd|rd|th)? (?i:jan|feb|mar|apr|may|jun|jul|aug|sep"
        r"|oct|nov|dec)"
        r"|\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April"
        r"|May|June|July|August"
        r"|September|October|November|December)|\b(?i:noon|midnight|daily|every (?:day"
        r"|week|month|year))\b",
    ),
    (
        r"what time|times?|hours?",
        r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?i:[ap]\.?m)\b|\b(?i:noon|midnight)\b",
    ),
    (
        r"how (?:many|long|old|far|tall|high|large|big)|the number of",
        rf"\d|\b(?i:{'|'.join(NUMERALS)}|dozens?|hundreds?|thousands?)\b",
    ),
    (r"where", r"(?<=[\w,;:] )[A-Z][a-z]+|\b(?:in|at|on|near|beside|behind|from|to) the\b"),
    (r"who|whom|whose", r"\b[A-Z][a-z]+"),
    (r"why", r"\b(?i:because|since|due to|owing to|so that|in order to|reason)\b"),
]
_ANSWERING = [
    (re.compile(rf"\b(?:{asked})\b", re.IGNORECASE), re.compile(answer))
    for asked, answer in _ANSWERS
]


def speaking_of(topic: str, sentences: Sequence[PassageSentence]) -> PassageSentence | None:
    """Return a sentence that speaks of a topic: with its neighbour it has all content words.

    Prices, dates and times are also spoken of by an amount, a date or a time of day; a topic that
    is a question ("who built it") only by what may answer it.
    """
    for asked, answer in _ANSWERING:
        if (match := asked.search(topic)) is None:
            continue
        rest = frozenset(content_words(asked.sub(" ", topic)))
        if rest or match[0].lower() not in WH_WORDS:
            for place, sentence in enumerate(sentences):
                text = _FIRST_WORD.sub(_unless_a_name, sentence.text)
                if answer.search(text) and rest <= _words_near(sentences, place):
                    return sentence
        if match.start() == 0 and match[0].split()[0].lower() in WH_WORDS:
            return None
    wanted = frozenset(content_words(topic)) - {"whether"}
    for place, sentence in enumerate(sentences):
        if wanted and wanted & sentence.words and wanted <= _words_near(sentences, place):
            return sentence
    return None


_FIRST_WORD = re.compile(r"^\W*[A-Z]\w*")


def _unless_a_name(first: re.Match[str]) -> str:
    """Return the first word of a sentence in small letters, unless it is a name."""
    return first[0].lower() if is_common_word(first[0].strip("\"'( ")) else first[0]


def _words_near(sentences: Sequence[PassageSentence], place: int) -> frozenset[str]:
    """Return the content words of a sentence and of the one before it in its passage."""
    sentence, before = sentences[place], sentences[max(0, place - 1)]
    return sentence.words | (before.words if before.passage == sentence.passage else frozenset())


_WRITTEN = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")


def written_words(sentence: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the words and numbers of a sentence as they are written, each with its content words:
    none of one that says nothing by itself.
    """
    return [(word, content_words(word)) for word in _WRITTEN.findall(sentence)]


def inner_names(sentence: str) -> list[str]:
    """Return the words of a sentence that begin with a capital letter, but for its first word."""
    return [word for word, stems in written_words(sentence)[1:] if word[0].isupper() and stems]


async def supported_by_text(
    models: Models, claim: str, text: str, title: str, row: Entailment, threshold: float
) -> Entailment:
    """Return what a passage says of a claim by its text: a title supports nothing by itself.

    Only where the text lacks half of the claim's words, and the title has some of these, both are
    read apart. ``row`` is what was read of both together.
    """
    if not title or row.entailment < threshold:
        return row
    wanted = frozenset(content_words(claim))
    lacks = wanted - frozenset(content_words(as_prose(text)))
    if not lacks & frozenset(content_words(title)) or 2 * len(lacks) < len(wanted):
        return row
    by_title, by_text = await all_of(read(models, premise, claim) for premise in (title, text))
    alone = by_title.entailment >= threshold > by_text.entailment
    return by_text if alone or lacks == wanted else row


# The verdict ------------------------------------------------------------------------------------

_TURNED: Mapping[str, Verdict] = {"supported": "contradicted", "contradicted": "supported"}
_BY_BOTH: Mapping[Verdict, str] = {
    "supported": "the second reader finds it in the passages",
    "contradicted": "the second reader says that a passage contradicts it",
    "not found": "the second reader does not find it in the passages",
}


class ClaimVerifier:
    """Judges the claims of one answer by its passages."""

    def __init__(
        self,
        options: VerdictOptions,
        models: Models,
        question: str,
        documents: Sequence[Document],
        split: Splitter,
        second: SecondReader | None = None,
    ) -> None:
        self._options, self._models, self._second = options, models, second
        self.passages = Passages(documents, split)
        self._all_sentences = [one for sentences in self.passages.sentences for one in sentences]
        self._work = TextWork(long=len(self._all_sentences) > MANY_SENTENCES)
        self._topic = inner_names(question)
        self._asked, self._question = question, folded(question)

    @property
    def sentences(self) -> int:
        """How many sentences all passages have."""
        return len(self._all_sentences)

    @cached_property
    def _details(self) -> KnownDetails:
        return KnownDetails(self.passages.texts, self.passages.titles, self._question)

    @cached_property
    def _standing(self) -> dict[str, PassageSentence]:
        """All sentences of the passages without what is around them."""
        return {_bare(one.text): one for one in reversed(self._all_sentences)}

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        """The content words of each passage and its title."""
        pairs = zip(self.passages.titles, self.passages.sentences, strict=True)
        return [
            frozenset(content_words(title)).union(*(one.words for one in sentences))
            for title, sentences in pairs
        ]

    @cached_property
    def _all_words(self) -> list[str]:
        return sorted(frozenset().union(*self._words))

    def near(self, claim: Claim) -> list[Excerpt]:
        """Return the excerpts that a claim is read against."""
        if claim.hypothesis is None:
            return []
        return [one for one, _ in self.passages.nearest(claim.hypothesis, self._options.passages)]

    async def verdict(self, claim: Claim) -> Finding:
        """Judge one claim."""
        if claim.hypothesis is None:
            return Finding(Statement(claim.text, "no claim", why=claim.why))
        if claim.denies is not None:
            return self._reverse(claim, await self.verdict(self._denied_claim(claim)))
        if finding := await self._work(self._by_rules, claim, claim.hypothesis):
            return finding
        return await self._by_reading(claim, claim.hypothesis)

    @staticmethod
    def _denied_claim(claim: Claim) -> Claim:
        """Return the statement that a claim denies as a claim."""
        return replace(claim, hypothesis=claim.denies, denies=None)

    def _reverse(self, claim: Claim, other: Finding) -> Finding:
        """Return the verdict on a claim by that on the statement that it denies."""
        row = other.row
        verdict = _TURNED.get(row.verdict, "not found")
        why = row.why if verdict == "not found" else f"of what it denies: {row.why}"
        entailment, contradiction = row.contradiction, row.entailment
        both = _with_neutral_rest(entailment or 0.0, contradiction or 0.0)
        row = replace(
            row,
            verdict=verdict,
            hypothesis=claim.hypothesis,
            why=why,
            entailment=entailment,
            contradiction=contradiction,
            borderline=False,
        )
        return Finding(
            _with_spans(row, claim),
            both.entailment,
            standing(both, detail_missing=False),
            other.read,
        )

    def _by_rules(self, claim: Claim, text: str) -> Finding | None:
        """Return the verdict that needs no reader, if there is one."""
        written = self._as_written(claim, text)
        same = self._standing.get(_bare(written))
        if same is not None and same.passage not in self.passages.data:
            if len(written.split()) < 4:  # longer ones readers know themselves
                why = f"passage [{same.passage + 1}] says so, word for word"
                return self._finding_by_rule(claim, "supported", 1.0, same, why)
            return None
        if opposite := opposite_of(text, self._all_sentences):
            why = f"passage [{opposite.passage + 1}] says the opposite"
            return self._finding_by_rule(claim, "contradicted", 0.0, opposite, why)
        return None

    def _as_written(self, claim: Claim, text: str) -> str:
        """Return a short sentence without the question that was put before it: "Dogs bark."; of
        anything else the text to judge. A mere "30 days" may stand in a list of something else."""
        written = folded(without_citations(claim.text))
        completed = complete_reply(self._asked, written), sentence_of(f"{self._asked} {written}")
        return written if _IS_SENTENCE.match(written) and text in completed else text

    def _finding_by_rule(
        self,
        claim: Claim,
        verdict: Verdict,
        support: float,
        sentence: PassageSentence | None,
        why: str,
    ) -> Finding:
        numbers = [sentence.passage] if sentence else []
        quote = sentence.text[:QUOTED] if sentence else ""
        both = Entailment(support, 0.0, 1.0 - support)
        return self._finding(claim, verdict, both, numbers, why, quote=quote)._replace(read=False)

    async def _by_reading(self, claim: Claim, text: str) -> Finding:
        """Read the near excerpts, and then what they say together."""
        options, work = self._options, self._work
        near = await work(self.passages.nearest, text, options.passages)
        rows = await all_of(read(self._models, excerpt.premise, text) for excerpt, _ in near)
        rows = await all_of(
            supported_by_text(self._models, text, one.text, one.title, row, options.threshold)
            for (one, _), row in zip(near, rows, strict=True)
        )
        numbers = [excerpt.passage for excerpt, _ in near]
        place = supporting(rows, options.threshold)
        if claim.topic is not None:
            sentence = await work(speaking_of, folded(claim.topic), self._all_sentences)
            if place is None or (sentence is not None and not _denies(sentence.text)):
                return await work(self._denial, claim, claim.topic, sentence)
        best = max((row.entailment for row in rows), default=0.0)
        if place is not None:
            return await work(self._supported, claim, [numbers[place]], rows[place])
        for used in await work(self.passages.joined, text) if options.joined else ():
            together = await read(self._models, "\n".join(one.text for one in used), text)
            if together.entailment >= options.threshold:
                return await work(self._supported, claim, _passages_of(used), together, used)
        about = [self._nearness(text, number) for number in numbers]
        against = contradicting(rows, about, options.contradiction, options.near)
        if against is not None:
            return await work(self._contradicted, claim, numbers[against], rows[against], best)
        closest = numbers[:1] if near and near[0][1] > 0 else []
        return await work(self._not_found, claim, closest, rows, best)

    def _denial(self, claim: Claim, topic: str, sentence: PassageSentence | None) -> Finding:
        """Judge what says that no passage speaks of a topic, by a sentence that does."""
        if sentence is not None:
            why = f"passage [{sentence.passage + 1}] speaks of “{topic}”"
            return self._finding_by_rule(claim, "contradicted", 0.0, sentence, why)
        return self._finding_by_rule(
            claim, "supported", 1.0, None, f"no passage speaks of “{topic}”"
        )

    # A second reader

    async def again(self, claim: Claim, before: Finding) -> Finding:
        """Judge a claim once more, by both readers; what a rule decided stays."""
        if not before.read or claim.hypothesis is None:
            return before
        if claim.denies is not None:
            denied = self._denied_claim(claim)
            return self._reverse(claim, await self.again(denied, self._reverse(denied, before)))
        windows = await self._work(self.passages.windows, claim.hypothesis)
        row = before.row
        first = _with_neutral_rest(row.entailment or 0.0, row.contradiction or 0.0)
        assert self._second
        result = await self._second.verdict(self._models, windows, claim.hypothesis, first)
        return await self._work(self._read_twice, claim, windows, first.entailment, result)

    def _read_twice(
        self, claim: Claim, windows: Sequence[Window], first: float, both: Entailment
    ) -> Finding:
        numbers = _passages_of(windows)
        verdict: Verdict = "not found"
        if both.entailment >= self._options.threshold:
            verdict = "supported"
        elif both.contradiction >= self._options.contradiction:
            verdict = "contradicted"
        why = f"{_BY_BOTH[verdict]} ({both.entailment:.2f}; the first reader {first:.2f})"
        others: dict[str, Any] = {"first": first}
        if numbers:
            others["quote"] = self._closest(claim, numbers[0])
        if verdict == "supported":
            return self._unless_detail(claim, both, numbers, why, **others)
        if absent := self._absent_words(claim):
            others["missing"] = absent
            why += f"; not in any passage: {', '.join(absent[:6])}"
        return self._finding(claim, verdict, both, numbers, why, **others)

    # The rows

    def _nearness(self, text: str, number: int) -> float:
        """Return how near a passage is to a claim (:meth:`Passages.share`): 0 with none of its
        names, or of those of the question where it begins with a pronoun.
        """
        pronoun = _PRONOUNS.intersection(text.casefold().split()[:1])
        names = inner_names(text) or (self._topic if pronoun else [])
        stems = {stem for word in names for stem in content_words(word)}
        if stems and stems.isdisjoint(self._words[number]):
            return 0.0
        return self.passages.share(text, number)

    def _supported(
        self,
        claim: Claim,
        numbers: Sequence[int],
        row: Entailment,
        used: Sequence[PassageSentence | Window] = (),
    ) -> Finding:
        places = " and ".join(f"[{number + 1}]" for number in numbers)
        why = f"passage {places} supports it"
        if used:
            several = f"passages {places}", f"sentences of passage {places} together"
            why = f"{several[len(numbers) == 1]} support it"
        why += f" ({row.entailment:.2f})"
        quote = " ".join(one.text for one in used)[:QUOTED] or self._closest(claim, numbers[0])
        return self._unless_detail(claim, row, numbers, why, quote=quote)

    def _unless_detail(
        self, claim: Claim, row: Entailment, numbers: Sequence[int], why: str, **others: Any
    ) -> Finding:
        """Return a claim as supported, unless it has a detail that no passage has."""
        if absent := self._missing(claim):
            why = f"no passage has {', '.join(absent[:6])}"
            return self._finding(claim, "not found", row, numbers, why, missing=absent, **others)
        near = is_borderline(row.entailment, self._options.threshold)
        return self._finding(claim, "supported", row, numbers, why, borderline=near, **others)

    def _contradicted(self, claim: Claim, number: int, row: Entailment, best: float) -> Finding:
        why = f"passage [{number + 1}] says otherwise ({row.contradiction:.2f})"
        both, quote = _with_neutral_rest(best, row.contradiction), self._closest(claim, number)
        return self._finding(claim, "contradicted", both, [number], why, quote=quote)

    def _not_found(
        self, claim: Claim, closest: Sequence[int], rows: Sequence[Entailment], best: float
    ) -> Finding:
        """Say what no passage holds: words, if some are nowhere, else the claim itself."""
        absent = self._absent_words(claim)
        why = "no passage says this"
        if absent:
            why += f"; not in any of them: {', '.join(absent[:6])}"
        both = _with_neutral_rest(best, max((row.contradiction for row in rows), default=0.0))
        quote = "".join(self._closest(claim, number) for number in closest)
        return self._finding(claim, "not found", both, closest, why, quote=quote, missing=absent)

    def _finding(
        self,
        claim: Claim,
        verdict: Verdict,
        both: Entailment,
        numbers: Sequence[int],
        why: str,
        **others: Any,
    ) -> Finding:
        blocked = verdict == "not found" and both.entailment >= self._options.threshold
        lacks = verdict != "supported" and bool(self._missing(claim))
        row = Statement(
            claim.text,
            verdict,
            None if claim.hypothesis == claim.text else claim.hypothesis,
            round(both.entailment, 4),
            round(both.contradiction, 4),
            why=why,
            passages=[number + 1 for number in numbers],
            **others,
        )
        support = DETAIL * both.entailment if blocked else both.entailment
        return Finding(_with_spans(row, claim), support, standing(both, detail_missing=lacks))

    def _missing(self, claim: Claim) -> list[str]:
        """Return the details of a claim that no passage has; in another language its numbers."""
        text = claim.hypothesis or ""
        return (
            self._details.missing(text) if claim.in_english else self._details.missing_values(text)
        )

    def _closest(self, claim: Claim, number: int) -> str:
        return self.passages.closest_sentence(claim.hypothesis or claim.text, number)[:QUOTED]

    def _absent_words(self, claim: Claim) -> list[str]:
        """Return the words of a claim, as written, that no passage has; the question has some."""
        asked = frozenset(content_words(self._question))
        pairs = written_words(claim.hypothesis or claim.text)
        absent = (
            word
            for word, stems in pairs
            if stems and not any(map(self._holds, stems)) and not asked.issuperset(stems)
        )
        return list(dict.fromkeys(absent))

    def _holds(self, stem: str) -> bool:
        """Whether a passage has the word, or one that begins with it: "cancel", "cancelled"."""
        place = bisect_left(self._all_words, stem)
        word = self._all_words[place] if place < len(self._all_words) else ""
        return word == stem or (len(stem) >= SHORTEST_STEM and word.startswith(stem))


def _passages_of(used: Sequence[PassageSentence | Window]) -> list[int]:
    return sorted({one.passage for one in used})


def _with_spans(row: Statement, claim: Claim) -> Statement:
    """Return a row, if it is not supported and stands in the answer, with its places there: the
    claim, and words of it that no passage has.
    """
    if row.verdict not in ("contradicted", "not found") or claim.end <= claim.start:
        return row
    words = "|".join(map(re.escape, row.missing or ()))
    within = re.finditer(rf"(?<!\w)(?:{words})(?!\w)", claim.text) if words else ()
    places = [(0, len(claim.text)), *(one.span() for one in within)]
    doubt = round(1 - (row.entailment or 0.0), 4)
    spans = [ClaimSpan(claim.start + start, claim.start + end, doubt) for start, end in places]
    return replace(row, spans=spans)
