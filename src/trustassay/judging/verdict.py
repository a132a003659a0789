"""Judges one claim by the passages of its answer: supported, contradicted or not found.

The steps, in this order:

1. Rules that need no reader. A short sentence that is one of the passages' sentences is supported;
   a claim is contradicted where a passage says the opposite in the same words. A comparison is
   judged by the numbers of a table (:mod:`trustassay.judging.table_checks`).
2. A reader reads the window of all passages with most of the claim's words, and sentences of all
   passages that have its words together (:meth:`Passages.choose_evidence`). The mean of the
   log-odds counts. A title may complete its text and supports nothing by itself.
3. A claim that the documents do not cover a topic is contradicted where a sentence covers it.
4. A claim about data counts as supported by the mean of a reader's probability and the share of
   its words that the rows it is about have, since readers are trained on prose.
5. A claim with a number, date or name that no passage has, or that data have only in other rows
   than those of the claim's dates, is not supported, whatever a reader says.
6. A passage on the same subject may contradict the claim, by itself. Otherwise it is not found.

A second reader may change the verdict of the first one (:meth:`ClaimVerifier.judge_again`), but not
the verdict of a rule.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from trustassay.core.capabilities import Entailment, Models
from trustassay.core.event_loop import gather_all
from trustassay.core.sample import Document
from trustassay.judging.claims import Claim
from trustassay.judging.completion import complete_reply, make_sentence
from trustassay.judging.data_details import DataDetails, has_swapped_numbers
from trustassay.judging.details import KnownDetails
from trustassay.judging.evidence import ClaimSpan, ClaimVerdict, JudgedClaim
from trustassay.judging.passages import (
    Evidence,
    Passages,
    PassageSentence,
    PassageWindow,
    ask_reader,
)
from trustassay.judging.readings import average_readings
from trustassay.judging.second_reader import SecondReader
from trustassay.judging.table_checks import check_comparisons, find_comparison
from trustassay.text.citations import strip_citations
from trustassay.text.cleaning import fold_text
from trustassay.text.grammar import THIRD_PERSON, WH_WORDS, is_common_word
from trustassay.text.limits import TextWork
from trustassay.text.numbers import percent_text
from trustassay.text.quantities import MONTH_NUMBERS, MONTHS, WEEKDAYS
from trustassay.text.refusals import find_refusal_words
from trustassay.text.sentences import Splitter
from trustassay.text.tables import read_data, select_rows, spell_data
from trustassay.text.words import (
    NUMERALS,
    content_words,
    has_form,
    is_negation,
    list_quoted,
    plain_words,
)

BORDERLINE_MARGIN = 0.1
"""Probability above the threshold up to which a supported claim is borderline."""
NEUTRAL_WEIGHT = 0.1
"""Weight of the neutral probability against a claim, where contradiction has weight 1. Measured by
``lab/benchmarks/ordering.py``, as is :data:`MISSING_DETAIL_FACTOR`."""
MISSING_DETAIL_FACTOR = 0.5
"""Factor on the support of a claim with a detail that no passage has."""
MAX_QUOTE_CHARACTERS = 400
"""Characters of a passage's sentence that the evidence quotes."""
MIN_COMPARED_SHARE = 0.5
"""Share of a claim that comparisons must take up for a table to support all of it."""
MANY_SENTENCES = 500
"""Sentences of all passages above which the work on one claim is done in a thread."""


class ClaimFinding(NamedTuple):
    """The verdict on a claim."""

    row: JudgedClaim
    """The claim with its verdict, for the evidence."""
    entailment: float | None = None
    """The probability that the claim is supported, 0 to 1; ``None`` if it claims nothing."""
    standing: float | None = None
    """The number by which claims are ranked, 0 to 1 (:func:`compute_standing`)."""
    read: bool = True
    """Whether a reader decided, and not a rule."""


@dataclass(frozen=True, slots=True)
class VerdictOptions:
    """How claims are judged."""

    threshold: float = 0.5
    """Probability from which a passage supports."""
    contradiction: float = 0.5
    """Probability from which a passage contradicts."""
    near: float = 0.5
    """Share of a claim's words that a passage must have to contradict it."""


# Rules on probabilities -------------------------------------------------------------------------


def compute_standing(probabilities: Entailment, *, detail_missing: bool) -> float:
    """Return the number by which claims are ranked, 0 to 1; higher is better supported.

    It is e / (e + c + n / 10) for the probabilities of entailment, contradiction and neutral, and 0
    where all are 0. Contradicted claims rank below unsupported ones, because chat around the facts
    is unsupported as well.

    Args:
        probabilities: the probabilities of a reader.
        detail_missing: whether a number, date or name of the claim is in no passage; this halves
            the result.
    """
    against = probabilities.contradiction + NEUTRAL_WEIGHT * probabilities.neutral
    total = probabilities.entailment + against
    value = probabilities.entailment / total if total else 0.0
    return round(MISSING_DETAIL_FACTOR * value if detail_missing else value, 6)


def is_borderline(entailment: float, threshold: float) -> bool:
    """Whether a supported claim is within 0.1 above the threshold, and reported as doubtful."""
    return entailment < min(1.0, threshold + BORDERLINE_MARGIN)


def _add_neutral(best: float, against: float) -> Entailment:
    return Entailment(best, max(0.0, 1 - best - against), against)


# Rules on words ---------------------------------------------------------------------------------

_EDGES = " \t.,;:!\"'()*-•"
MAX_ADDITIONAL_WORDS = 3
"""Content words that a sentence may have in addition to those of the claim that it contradicts."""
_TWISTS = re.compile(
    r"\bnot (?:only|just|merely|all|every|always|necessarily)\b|\bno (?:later|earlier|less"
    r"|more|fewer) than\b"
    r"|\b(?:if|unless|whether|except|but not|until|without|neither|nor)\b|\bor (?:\w+ )?not\b"
    r"|\b(?:some|most|many|few|several|certain|half|both|another|other)\b"
    r"|\b(?:could|may|might|would|should|possibly|perhaps|allegedly|reportedly)\b|\?\s*$",
    re.IGNORECASE,
)
"""Words by which a negation does not simply reverse a sentence: conditions, quantifiers,
possibilities, questions."""
# Words by which a claim compares rows: the same words make the opposite comparison.
_COMPARES = re.compile(
    r"\b(?:than|second|third|fourth|fifth|\d+(?:st|nd|rd|th) place)\b", re.IGNORECASE
)
_OPENS_CLAUSE = frozenset(("to", "that"))


# At least two words, a capital at the start and a full stop at the end.
_IS_SENTENCE = re.compile(r"[A-Z]\S* \S.*[.!]\s*$")


def _normalise_sentence(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).strip(_EDGES)


def _is_negated(words: Sequence[str]) -> bool:
    return sum(map(is_negation, words)) % 2 == 1


def _is_denial(sentence: str) -> bool:
    """Whether a sentence of a passage is itself a denial: "The price is not specified"."""
    return find_refusal_words(sentence) is not None or _is_negated(list(plain_words(sentence)))


def find_opposite(claim: str, sentences: Sequence[PassageSentence]) -> PassageSentence | None:
    """Return the sentence of the passages that says the opposite of a claim, or ``None``.

    Such a sentence has all content words of the claim in the same order, at most three others
    between them, and exactly one of both is negated. ``None`` also where another sentence says the
    same as the claim.

    Sentences with a negation elsewhere or with a condition are left out, and so are sentences with
    the words of the claim in a subordinate clause: "He failed to pay", "She pretended that it
    rained".
    """
    in_order = list(dict.fromkeys(content_words(claim)))
    wanted = frozenset(in_order)
    words_of_claim = list(plain_words(claim))
    # Step 1: claims for which the rule cannot decide.
    if len(wanted) < 2 or _TWISTS.search(claim) or words_of_claim[0] in THIRD_PERSON:
        return None
    negated = _is_negated(words_of_claim)
    clauses = _OPENS_CLAUSE.intersection(words_of_claim)
    opposite = None
    for sentence in sentences:
        # Step 2: the sentence has all words of the claim, and nothing that twists its meaning.
        if not wanted <= sentence.words or _TWISTS.search(sentence.text):
            continue
        # Step 3: the part of the sentence with the claim's words, and up to two words before it,
        # where its "no" or "not" may stand. A negation outside of this part negates something else.
        words = list(plain_words(sentence.text))
        stems = [content_words(word) for word in words]
        places = [n for n, stem in enumerate(stems) if stem and stem[0] in wanted]
        first, last = max(0, places[0] - 2), places[-1] + 1
        if any(map(is_negation, (*words[:first], *words[last:]))):
            continue
        # The passages say the same as the claim somewhere: no contradiction by this rule.
        if _is_negated(words[first:last]) == negated:
            return None
        # Step 4: no "to" or "that" that the claim does not have: it opens a subordinate clause.
        if not clauses.issuperset(_OPENS_CLAUSE.intersection(words[max(0, first - 2) : last])):
            continue
        # Step 5: the same order of words.
        inner = [stem[0] for stem in stems[first:last] if stem]
        if [stem for stem in dict.fromkeys(inner) if stem in wanted] != in_order:
            continue
        # "The museum is not open on Mondays" is not the opposite of "The museum is open".
        restricted = not negated and any((*stems[: places[0]], *stems[last:]))
        # Step 6: few additional words, and for a claim without negation none outside of the part.
        # The first such sentence is kept, but the search goes on for one that says the same.
        few_more = len(set(inner) - wanted) <= MAX_ADDITIONAL_WORDS
        if few_more and not restricted and opposite is None:
            opposite = sentence
    return opposite


# Words for a topic, and patterns of text that covers the topic without these words: an amount
# covers a price, a name covers "who". The other words of the topic must stand near the match.
_ANSWERS = [
    (
        r"prices?|costs?|fees?|fares?|charges?|rates?|how much|expensive|pay",
        r"[$€£]\s?\d|\d\s?(?:(?i:euros?|dollars?|pounds?|usd|eur|gbp|cents?|pence))\b"
        r"|\d\s?[$€£]|\b(?i:costs?|priced?|fees?|fares?|(?:is|are) free)\b",
    ),
    (
        r"when|(?:what|which) (?:year|date|day|month)|dates?|years?",
        rf"\b[12]\d{{3}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?i:{'|'.join(MONTH_NUMBERS)})"
        rf"|\b(?:{'|'.join(name.title() for name in (*WEEKDAYS, *MONTHS))})"
        r"|\b(?i:noon|midnight|daily|every (?:day|week|month|year))\b",
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
    (re.compile(rf"\b(?:{topic_words})\b", re.IGNORECASE), re.compile(answer))
    for topic_words, answer in _ANSWERS
]


def find_covering_sentence(
    topic: str, sentences: Sequence[PassageSentence]
) -> PassageSentence | None:
    """Return a sentence that covers a topic, or ``None``.

    A sentence covers it if it has all content words of the topic, together with the sentence
    before it. Prices, dates and times are also covered by an amount, a date or a time of day. A
    topic that is a question ("who built it") is covered only by something that may answer it.
    """
    for topic_pattern, answer in _ANSWERING:
        if (match := topic_pattern.search(topic)) is None:
            continue
        other_words = frozenset(content_words(topic_pattern.sub(" ", topic)))
        # "who" by itself names no subject: any name in any passage would cover it.
        if other_words or match[0].lower() not in WH_WORDS:
            for place, sentence in enumerate(sentences):
                # The first word has a capital anyway, and is no name because of it.
                text = _FIRST_WORD.sub(_lower_unless_name, sentence.text)
                if answer.search(text) and other_words <= _stems_near(sentences, place):
                    return sentence
        # A question whose answer no sentence has is not covered, although its words may occur.
        if match.start() == 0 and match[0].split()[0].lower() in WH_WORDS:
            return None
    wanted = frozenset(content_words(topic)) - {"whether"}
    for place, sentence in enumerate(sentences):
        if wanted and wanted & sentence.words and wanted <= _stems_near(sentences, place):
            return sentence
    return None


_FIRST_WORD = re.compile(r"^\W*[A-Z]\w*")


def _lower_unless_name(first: re.Match[str]) -> str:
    """Return the first word of a sentence in small letters, unless it is a name."""
    return first[0].lower() if is_common_word(first[0].strip("\"'( ")) else first[0]


def _stems_near(sentences: Sequence[PassageSentence], place: int) -> frozenset[str]:
    """Return the content words of a sentence and of the one before it in its passage."""
    sentence, before = sentences[place], sentences[max(0, place - 1)]
    return sentence.words | (before.words if before.passage == sentence.passage else frozenset())


_WRITTEN_WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")


def split_written_words(sentence: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the words and numbers of a sentence as written, each with its content words.

    A function word has no content words; a hyphenated word may have several.
    """
    return [(word, content_words(word)) for word in _WRITTEN_WORD.findall(sentence)]


def find_inner_names(sentence: str) -> list[str]:
    """Return the words of a sentence that begin with a capital letter, except the first word."""
    return [
        word for word, stems in split_written_words(sentence)[1:] if word[0].isupper() and stems
    ]


async def correct_for_title(
    models: Models, claim: str, text: str, title: str, row: Entailment, threshold: float
) -> Entailment:
    """Return the probabilities of a passage for a claim, corrected for support by its title alone.

    Title and text are read separately only where the text lacks at least half of the claim's words
    and the title has some of these; other passages cost no further call.

    Args:
        models: the models of the run.
        claim: the claim.
        text: the text of the passage.
        title: its title.
        row: the probabilities of title and text together.
        threshold: the probability from which a passage supports a claim.
    """
    # Nothing to correct: the passage does not support the claim even with its title.
    if not title or row.entailment < threshold:
        return row
    wanted = frozenset(content_words(claim))
    lacks = wanted - frozenset(content_words(spell_data(text)))
    if not lacks & frozenset(content_words(title)) or 2 * len(lacks) < len(wanted):
        return row
    by_title, by_text = await gather_all(
        ask_reader(models, premise, claim) for premise in (title, text)
    )
    # Support comes from the title alone, or the text has no word of the claim at all.
    only_by_title = by_title.entailment >= threshold > by_text.entailment
    return by_text if only_by_title or lacks == wanted else row


# The verdict ------------------------------------------------------------------------------------

# The verdict on a denial by that on the statement that it denies; "not found" stays.
_REVERSED_VERDICTS: Mapping[str, ClaimVerdict] = {
    "supported": "contradicted",
    "contradicted": "supported",
}
_REASONS_OF_BOTH: Mapping[ClaimVerdict, str] = {
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
        self._all_sentences = [
            sentence for sentences in self.passages.sentences for sentence in sentences
        ]
        self._work = TextWork(
            sum(map(len, self._all_sentences)), long=len(self._all_sentences) > MANY_SENTENCES
        )
        self._topic = find_inner_names(question)
        self._asked, self._question = question, fold_text(question)

    @property
    def sentence_count(self) -> int:
        """The number of sentences of all passages."""
        return len(self._all_sentences)

    @cached_property
    def _details(self) -> KnownDetails:
        # Data as sentences: in "2021-03-05,66.88" or "period3" the numbers cannot be read.
        spelled = [spell_data(text) for text in self.passages.texts]
        # As written too: the names of columns lose marks and capitals as sentences.
        written = [self.passages.texts[number] for number in sorted(self.passages.data)]
        return KnownDetails([*spelled, *written], self.passages.titles, self._question)

    @cached_property
    def _data_details(self) -> DataDetails:
        return DataDetails(self.passages.texts, self.passages.titles, self._question)

    @cached_property
    def _sentences_by_text(self) -> dict[str, PassageSentence]:
        """All sentences of the passages by their text in small letters without outer marks."""
        # Reversed, so that of equal sentences the first one stays.
        return {
            _normalise_sentence(sentence.text): sentence
            for sentence in reversed(self._all_sentences)
        }

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        """The content words of each passage and its title."""
        pairs = zip(self.passages.titles, self.passages.sentences, strict=True)
        return [
            frozenset(content_words(title)).union(*(sentence.words for sentence in sentences))
            for title, sentences in pairs
        ]

    @cached_property
    def _all_words(self) -> list[str]:
        return sorted(frozenset().union(*self._words))

    async def judge(self, claim: Claim) -> ClaimFinding:
        """Judge one claim; the module's docstring lists the steps."""
        if claim.hypothesis is None:
            return ClaimFinding(JudgedClaim(claim.text, "no claim", why=claim.reason))
        # Entailment models are bad at "It is not true that ...": the inner statement is judged, and
        # the verdict reversed.
        if claim.denies is not None:
            return self._reverse(claim, await self.judge(self._build_inner_claim(claim)))
        if finding := await self._work(self._judge_by_rules, claim, claim.hypothesis):
            return finding
        return await self._judge_by_reading(claim, claim.hypothesis)

    @staticmethod
    def _build_inner_claim(claim: Claim) -> Claim:
        """Return a claim that states what the given claim denies."""
        return replace(claim, hypothesis=claim.denies, denies=None)

    def _reverse(self, claim: Claim, other: ClaimFinding) -> ClaimFinding:
        """Return the verdict on a claim from the verdict on the statement that it denies."""
        row = other.row
        verdict = _REVERSED_VERDICTS.get(row.verdict, "not found")
        reason = row.why if verdict == "not found" else f"about the statement it denies: {row.why}"
        # The two probabilities change places, since support of the statement contradicts its
        # denial.
        entailment, contradiction = row.contradiction, row.entailment
        probabilities = _add_neutral(entailment or 0.0, contradiction or 0.0)
        row = replace(
            row,
            verdict=verdict,
            hypothesis=claim.hypothesis,
            why=reason,
            entailment=entailment,
            contradiction=contradiction,
            borderline=False,
        )
        return ClaimFinding(
            _add_spans(row, claim),
            probabilities.entailment,
            compute_standing(probabilities, detail_missing=False),
            other.read,
        )

    def _judge_by_rules(self, claim: Claim, text: str) -> ClaimFinding | None:
        """Return the verdict by a rule that needs no reader, or ``None``."""
        written = self._find_written_sentence(claim, text)
        same = self._sentences_by_text.get(_normalise_sentence(written))
        if same is not None and same.passage not in self.passages.data:
            # Readers are unsure about very short sentences ("Dogs bark."), and reliable about
            # longer ones that stand in a passage word for word.
            if len(written.split()) < 4:
                reason = f"passage [{same.passage + 1}] says so, word for word"
                return self._build_rule_finding(claim, "supported", 1.0, same, reason)
            return None
        if opposite := find_opposite(text, self._all_sentences):
            reason = f"passage [{opposite.passage + 1}] says the opposite"
            return self._build_rule_finding(claim, "contradicted", 0.0, opposite, reason)
        return self._judge_by_tables(claim, text)

    def _judge_by_tables(self, claim: Claim, text: str) -> ClaimFinding | None:
        """Return the verdict on a comparison by the numbers of a table, or ``None``."""
        for number in sorted(self.passages.data):
            data = read_data(self.passages.texts[number])
            result = check_comparisons(text, data.grids if data else ())
            if result is None:
                continue
            sentence = PassageSentence(number, 0, result.quote, frozenset())
            reason = f"passage [{number + 1}]: {result.reason}"
            if not result.agrees:
                return self._build_rule_finding(claim, "contradicted", 0.0, sentence, reason)
            # The rest of the claim may say more than the comparison: a reader judges that.
            if result.share >= MIN_COMPARED_SHARE and not self._has_values_of_other_rows(
                text, number
            ):
                quote = result.quote[:MAX_QUOTE_CHARACTERS]
                return self._build_unless_detail_missing(
                    claim, Entailment(1.0, 0.0, 0.0), [number], reason, quote=quote
                )._replace(read=False)
        return None

    def _has_values_of_other_rows(self, text: str, number: int) -> bool:
        """Whether a comparison has numbers that data have, but not in the rows that it is about.

        Each side of the word of comparison is about the rows that it names: in "A costs 20 and is
        cheaper than B", 20 must be in the row of A.
        """
        word = find_comparison(text)
        sides = [text[: word.start()], text[word.end() :]] if word else []
        passage, titles = self.passages.texts[number], [self.passages.titles[number]]
        misplaced = any(
            KnownDetails([spell_data(passage, part)], titles, self._question).find_missing_values(
                part
            )
            for part in (text, *sides)
        )
        return misplaced and not self._details.find_missing_values(text)

    def _find_written_sentence(self, claim: Claim, text: str) -> str:
        """Return a short sentence as it was written, without the question that completed it.

        Any other text is returned as it is judged: a mere "30 days" may stand in a list of
        something else.
        """
        written = fold_text(strip_citations(claim.text))
        completed = complete_reply(self._asked, written), make_sentence(f"{self._asked} {written}")
        return written if _IS_SENTENCE.match(written) and text in completed else text

    def _build_rule_finding(
        self,
        claim: Claim,
        verdict: ClaimVerdict,
        support: float,
        sentence: PassageSentence | None,
        reason: str,
    ) -> ClaimFinding:
        numbers = [sentence.passage] if sentence else []
        quote = sentence.text[:MAX_QUOTE_CHARACTERS] if sentence else ""
        probabilities = Entailment(support, 0.0, 1.0 - support)
        return self._build_finding(
            claim, verdict, probabilities, numbers, reason, quote=quote
        )._replace(read=False)

    async def _judge_by_reading(self, claim: Claim, text: str) -> ClaimFinding:
        """Judge a claim by what a reader says of the evidence for it."""
        options, work = self._options, self._work
        # Step 2 of the module's docstring.
        evidence = await work(self.passages.choose_evidence, text)
        rows = await gather_all(
            self._read(text, part.text, part.title, part.premise) for part in evidence
        )
        # The first text is of one passage, unless only sentences of several are read: it says
        # better what is contradicted.
        both = average_readings(rows, rows[0]) if rows else Entailment(0.0, 1.0, 0.0)
        supports = both.entailment >= options.threshold
        # Step 3: a denial is judged by whether a sentence covers its topic. A reader's support
        # counts unless such a sentence exists and is not itself a denial.
        if claim.topic is not None:
            sentence = await work(
                find_covering_sentence, fold_text(claim.topic), self._all_sentences
            )
            if not supports or (sentence is not None and not _is_denial(sentence.text)):
                return await work(self._judge_denial, claim, claim.topic, sentence)
        if supports:
            best = max(range(len(rows)), key=lambda place: rows[place].entailment)
            return await work(self._build_supported, claim, evidence[best], both)
        if not evidence:
            return await work(self._build_not_found, claim, None, both)
        first = evidence[0].parts[0]
        if not isinstance(first, PassageWindow):
            # Sentences alone were read: the nearest window is quoted, and may be of data.
            first = (await work(self.passages.find_nearest, text, 1))[0].parts[0]
        number = first.passage
        # Step 4: what a reader half supports may be decided by the words of the data.
        if number in self.passages.data and (
            finding := await work(self._judge_by_data, claim, text, number, both)
        ):
            return finding
        # Step 6: a contradiction needs a passage that says it by itself, on the same subject.
        if both.contradiction >= options.contradiction:
            against = await self._find_contradicting(text, evidence[0].passages)
            if against is not None:
                return await work(self._build_contradicted, claim, against, both)
        return await work(self._build_not_found, claim, number, both)

    async def _find_contradicting(self, text: str, read: Sequence[int]) -> int | None:
        """Return the passage on a claim's subject that contradicts it, or ``None``.

        Args:
            text: the claim.
            read: the passages of a text that contradicts the claim. Of several, the nearest window
                of each is read alone, since they may contradict it only together.
        """
        options = self._options
        near = [n for n in read if self._compute_nearness(text, n) >= options.near]
        if len(read) == 1 or not near:
            return next(iter(near), None)
        nearest = await self._work(self.passages.find_nearest, text, len(self.passages.texts))
        windows = [window for window in nearest if window.passages[0] in near]
        rows = await gather_all(ask_reader(self._models, one.premise, text) for one in windows)
        most = max(range(len(rows)), key=lambda place: rows[place].contradiction)
        contradicts = rows[most].contradiction >= options.contradiction
        return windows[most].passages[0] if contradicts else None

    async def _read(self, claim: str, text: str, title: str, premise: str) -> Entailment:
        """Return a reader's probabilities for a claim and a text below its title."""
        row = await ask_reader(self._models, premise, claim)
        return await correct_for_title(
            self._models, claim, text, title, row, self._options.threshold
        )

    def _judge_by_data(
        self, claim: Claim, text: str, number: int, read: Entailment
    ) -> ClaimFinding | None:
        """Return a claim as supported if its words and values are in the rows that it is about.

        ``None`` where they are not, and where words say little: of denials and comparisons.

        Args:
            claim: the claim.
            text: its hypothesis.
            number: the passage whose rows a reader read.
            read: the reader's probabilities.
        """
        compares = find_comparison(text) or _COMPARES.search(text)
        if compares or _is_negated(list(plain_words(text))):
            return None
        title = self.passages.titles[number]
        spelled = spell_data(self.passages.texts[number], text)
        wanted = frozenset(content_words(text))
        share = len(wanted & frozenset(content_words(f"{title} {spelled}"))) / max(1, len(wanted))
        mean = (read.entailment + share) / 2
        if mean < self._options.threshold or read.contradiction >= self._options.contradiction:
            return None
        # Names and numbers must be in these rows, not in others, and in the right columns.
        data = read_data(self.passages.texts[number])
        assert data  # The passage is one of those with data.
        if has_swapped_numbers(text, select_rows(data.rows, text)):
            return None
        if KnownDetails([spelled], [title], self._question).find_missing(text):
            return None
        reason = (
            f"passage [{number + 1}] has its values and {percent_text(share)} of its words"
            f" (entailment {read.entailment:.2f}, mean of both {mean:.2f})"
        )
        return self._build_unless_detail_missing(
            claim,
            _add_neutral(mean, min(read.contradiction, 1 - mean)),
            [number],
            reason,
            quote=self._quote_closest(claim, number),
        )

    def _judge_denial(
        self, claim: Claim, topic: str, sentence: PassageSentence | None
    ) -> ClaimFinding:
        """Judge a claim that no passage covers a topic, by the sentence that covers it, if any."""
        if sentence is not None:
            reason = f"passage [{sentence.passage + 1}] mentions “{topic}”"
            return self._build_rule_finding(claim, "contradicted", 0.0, sentence, reason)
        return self._build_rule_finding(
            claim, "supported", 1.0, None, f"no passage mentions “{topic}”"
        )

    # A second reader

    async def judge_again(self, claim: Claim, before: ClaimFinding) -> ClaimFinding:
        """Judge a claim once more, by both readers; the verdict of a rule stays.

        Args:
            claim: the claim.
            before: the first reader's finding.
        """
        if not before.read or claim.hypothesis is None:
            return before
        if claim.denies is not None:
            # Reversed twice: to the finding on the inner statement, and back after the second
            # reading.
            denied = self._build_inner_claim(claim)
            return self._reverse(
                claim, await self.judge_again(denied, self._reverse(denied, before))
            )
        windows = await self._work(self.passages.choose_windows, claim.hypothesis)
        row = before.row
        first = _add_neutral(row.entailment or 0.0, row.contradiction or 0.0)
        # Only metrics with a second reader call this method.
        assert self._second
        result = await self._second.judge(self._models, windows, claim.hypothesis, first)
        return await self._work(
            self._build_second_finding, claim, windows, first.entailment, result
        )

    def _build_second_finding(
        self, claim: Claim, windows: Sequence[PassageWindow], first: float, both: Entailment
    ) -> ClaimFinding:
        numbers = _find_passage_numbers(windows)
        verdict: ClaimVerdict = "not found"
        if both.entailment >= self._options.threshold:
            verdict = "supported"
        elif both.contradiction >= self._options.contradiction:
            verdict = "contradicted"
        reason = (
            f"{_REASONS_OF_BOTH[verdict]} "
            f"(entailment {both.entailment:.2f}, first reader {first:.2f})"
        )
        row_fields: dict[str, Any] = {"first": first}
        if numbers:
            row_fields["quote"] = self._quote_closest(claim, numbers[0])
        if verdict == "supported":
            return self._build_unless_detail_missing(claim, both, numbers, reason, **row_fields)
        if absent := self._find_absent_words(claim):
            row_fields["missing"] = absent
            reason += f"; missing from all passages: {list_quoted(absent)}"
        return self._build_finding(claim, verdict, both, numbers, reason, **row_fields)

    # The rows

    def _compute_nearness(self, text: str, number: int) -> float:
        """Return how near a passage is to a claim, 0 to 1 (:meth:`Passages.largest_share`).

        It is 0 for a passage without any name of the claim; where the claim begins with a pronoun
        and has no name, the names of the question count.
        """
        pronoun = THIRD_PERSON.intersection(text.casefold().split()[:1])
        names = find_inner_names(text) or (self._topic if pronoun else [])
        stems = {stem for word in names for stem in content_words(word)}
        if stems and stems.isdisjoint(self._words[number]):
            return 0.0
        return self.passages.largest_share(text, number)

    def _build_supported(self, claim: Claim, evidence: Evidence, row: Entailment) -> ClaimFinding:
        """Return a claim as supported by the evidence that supports it most."""
        numbers = evidence.passages
        places = " and ".join(f"[{number + 1}]" for number in numbers)
        reason = f"passage {places} supports it"
        quote = self._quote_closest(claim, numbers[0])
        if len(evidence.parts) > 1:
            several = f"passages {places}", f"sentences of passage {places} together"
            reason = f"{several[len(numbers) == 1]} support it"
            quote = " ".join(part.text for part in evidence.parts)[:MAX_QUOTE_CHARACTERS]
        reason += f" (entailment {row.entailment:.2f})"
        return self._build_unless_detail_missing(claim, row, numbers, reason, quote=quote)

    def _build_unless_detail_missing(
        self, claim: Claim, row: Entailment, numbers: Sequence[int], reason: str, **row_fields: Any
    ) -> ClaimFinding:
        """Return a claim as supported, or as not found if it has a detail that no passage has."""
        absent, without = self._find_missing_details(claim), "no passage contains"
        if not absent:
            absent = self._find_misplaced_details(claim)
            without = "the rows for its dates do not contain"
        if absent:
            reason = f"{without} {list_quoted(absent)}"
            return self._build_finding(
                claim, "not found", row, numbers, reason, missing=absent, **row_fields
            )
        near = is_borderline(row.entailment, self._options.threshold)
        return self._build_finding(
            claim, "supported", row, numbers, reason, borderline=near, **row_fields
        )

    def _build_contradicted(self, claim: Claim, number: int, row: Entailment) -> ClaimFinding:
        reason = f"passage [{number + 1}] says otherwise (contradiction {row.contradiction:.2f})"
        quote = self._quote_closest(claim, number)
        return self._build_finding(claim, "contradicted", row, [number], reason, quote=quote)

    def _build_not_found(self, claim: Claim, nearest: int | None, row: Entailment) -> ClaimFinding:
        """Return a claim as not found, with its words that no passage has, if any."""
        absent = self._find_absent_words(claim)
        reason = "no passage says this"
        if absent:
            reason += f"; missing from all passages: {list_quoted(absent)}"
        # A passage that shares no word with the claim is not worth quoting.
        wanted = frozenset(content_words(claim.hypothesis or ""))
        numbers = [] if nearest is None or not wanted & self._words[nearest] else [nearest]
        quote = "".join(self._quote_closest(claim, number) for number in numbers)
        return self._build_finding(
            claim, "not found", row, numbers, reason, quote=quote, missing=absent
        )

    def _build_finding(
        self,
        claim: Claim,
        verdict: ClaimVerdict,
        probabilities: Entailment,
        numbers: Sequence[int],
        reason: str,
        **row_fields: Any,
    ) -> ClaimFinding:
        # A reader supports the claim, but a detail is missing: half of its support counts.
        blocked = verdict == "not found" and probabilities.entailment >= self._options.threshold
        lacks = verdict != "supported" and bool(
            self._find_missing_details(claim) or self._find_misplaced_details(claim)
        )
        row = JudgedClaim(
            claim.text,
            verdict,
            None if claim.hypothesis == claim.text else claim.hypothesis,
            round(probabilities.entailment, 4),
            round(probabilities.contradiction, 4),
            why=reason,
            passages=[number + 1 for number in numbers],
            **row_fields,
        )
        support = (
            MISSING_DETAIL_FACTOR * probabilities.entailment
            if blocked
            else probabilities.entailment
        )
        return ClaimFinding(
            _add_spans(row, claim), support, compute_standing(probabilities, detail_missing=lacks)
        )

    def _find_missing_details(self, claim: Claim) -> list[str]:
        """Return the details of a claim that no passage has.

        In another language than English these are only numbers, dates and codes, because the rules
        for names are English.
        """
        text = claim.hypothesis or ""
        return (
            self._details.find_missing(text)
            if claim.in_english
            else self._details.find_missing_values(text)
        )

    def _find_misplaced_details(self, claim: Claim) -> list[str]:
        """Return the values of a claim that data have only in other rows than those it is about."""
        if not self.passages.data:
            return []
        return self._data_details.find_misplaced(claim.hypothesis or "")

    def _quote_closest(self, claim: Claim, number: int) -> str:
        return self.passages.find_closest_sentence(claim.hypothesis or claim.text, number)[
            :MAX_QUOTE_CHARACTERS
        ]

    def _find_absent_words(self, claim: Claim) -> list[str]:
        """Return the words of a claim, as written, that neither a passage nor the question has."""
        question_stems = frozenset(content_words(self._question))
        pairs = split_written_words(claim.hypothesis or claim.text)
        absent = (
            word
            for word, stems in pairs
            if stems
            and not any(has_form(self._all_words, stem) for stem in stems)
            and not question_stems.issuperset(stems)
        )
        return list(dict.fromkeys(absent))


def _find_passage_numbers(used: Sequence[PassageSentence | PassageWindow]) -> list[int]:
    return sorted({sentence.passage for sentence in used})


def _add_spans(row: JudgedClaim, claim: Claim) -> JudgedClaim:
    """Return a row with its spans in the answer: the claim, and its words that no passage has.

    A row that is supported, or is not in the answer word for word, gets no spans.
    """
    if row.verdict not in ("contradicted", "not found") or claim.end <= claim.start:
        return row
    words = "|".join(map(re.escape, row.missing or ()))
    within = re.finditer(rf"(?<!\w)(?:{words})(?!\w)", claim.text) if words else ()
    places = [(0, len(claim.text)), *(match.span() for match in within)]
    doubt = round(1 - (row.entailment or 0.0), 4)
    spans = [ClaimSpan(claim.start + start, claim.start + end, doubt) for start, end in places]
    return replace(row, spans=spans)
