"""Chooses the parts of an answer's passages that a statement is read against.

Passages are folded and split into sentences once. A reader gets two short texts for a statement
(:meth:`Passages.choose_evidence`): the window of all passages with most of its words, and sentences
of all passages that have its words together. A second reader gets windows
(:meth:`Passages.choose_windows`). Evidence is chosen nowhere else.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from trustassay.core.capabilities import Entailment, Models
from trustassay.core.fair_queue import run_in_turn
from trustassay.core.sample import Document
from trustassay.text.cleaning import fold, fold_text, strip_html
from trustassay.text.mapped import MappedText
from trustassay.text.quantities import spell_dates
from trustassay.text.sentences import Splitter
from trustassay.text.tables import holds_data, spell_data
from trustassay.text.words import content_words

MAX_EVIDENCE_WORDS = 100
"""Words of the window that a reader gets, unless its one sentence has more; ``embedded`` reads as
many at once. Measured by ``lab/benchmarks/reading.py``, as are the limits of joined sentences."""
MAX_SENTENCE_WORDS = 2 * MAX_EVIDENCE_WORDS
"""Words of a sentence from which it is cut into pieces of :data:`MAX_EVIDENCE_WORDS`."""
MAX_JOINED_WORDS = 120
"""Words of joined sentences, unless the first one has more."""
MAX_JOINED_SENTENCES = 6
MIN_WORDS_MORE = 2
"""Words of a statement that one of both has and the other lacks, from which it is read alone."""
MAX_WINDOWS = 3
MAX_WINDOW_WORDS = 60
"""Words of a second reader's window, unless its one sentence has more."""


class PassageSentence(NamedTuple):
    """A sentence of a passage."""

    passage: int
    """Index of its passage, from 0."""
    place: int
    """Index in the passage, from 0."""
    text: str
    """The sentence."""
    words: frozenset[str]
    """Its content words."""


class PassageWindow(NamedTuple):
    """Consecutive sentences of a passage."""

    passage: int
    """Index of its passage, from 0."""
    start: int
    """Index of its first sentence."""
    end: int
    """Index behind its last sentence."""
    words: frozenset[str]
    """Its content words, and those of its passage's title where a reader gets that as well."""
    text: str
    """Its text."""

    def overlaps(self, other: "PassageWindow") -> bool:
        """Whether both windows have a sentence in common."""
        same = self.passage == other.passage
        return same and self.start < other.end and other.start < self.end


class Evidence(NamedTuple):
    """A text that a reader gets for a statement."""

    parts: Sequence[PassageSentence | PassageWindow]
    """A window, or sentences of one or several passages in reading order."""
    titles: Sequence[str]
    """The title of the passage of each part, "" where it has none."""

    @property
    def text(self) -> str:
        """The text without the titles."""
        return "\n".join(part.text for part in self.parts)

    @property
    def title(self) -> str:
        """The titles without the text."""
        return "\n".join(filter(None, dict.fromkeys(self.titles)))

    @property
    def premise(self) -> str:
        """The text of each passage below its title, if it has one."""
        text_by_passage: dict[int, str] = {}
        for part, title in zip(self.parts, self.titles, strict=True):
            before = text_by_passage.get(part.passage)
            text_by_passage[part.passage] = (
                f"{before}\n{part.text}" if before else add_title(part.text, title)
            )
        return "\n".join(text_by_passage.values())

    @property
    def words(self) -> frozenset[str]:
        """The content words of all parts."""
        return frozenset().union(*(part.words for part in self.parts))

    @property
    def passages(self) -> list[int]:
        """The indices of its passages, ascending."""
        return sorted({part.passage for part in self.parts})


def add_title(text: str, title: str) -> str:
    """Return a text below its title, in the form that readers get."""
    return f"Title: {title}\n{text}" if title else text


async def ask_reader(models: Models, premise: str, claim: str, role: str = "") -> Entailment:
    """Ask an entailment model whether a premise supports a claim; dates in both get one form."""
    texts = await run_in_turn(
        lambda: (spell_dates(premise), spell_dates(claim)), len(premise) + len(claim) + 1
    )
    return await models.entail(*texts, role=role)


_NUMBER = re.compile(r"\s*\[\d{1,3}\]\s+(?=\S)")
"""The number by which an answer cites a passage, where it is a part of the passage's text: it would
make another sentence of the first one."""


def read_passage_text(document: Document) -> str:
    """Return the text of a passage as it is read: its excerpt, if any, folded, without HTML and
    without the number that it is cited by.
    """
    text = document.text if document.excerpt is None else document.excerpt
    folded = fold(strip_html(MappedText.of(text))).text
    number = _NUMBER.match(folded)
    return folded[number.end() :] if number else folded


def build_premise(document: Document) -> str:
    """Return a whole passage in the form that a reader gets, with its title."""
    return add_title(read_passage_text(document), fold_text(document.title))


class Passages:
    """The passages of one answer, prepared once for all of its claims."""

    def __init__(self, documents: Sequence[Document], split: Splitter) -> None:
        """
        Args:
            documents: the passages in their order; one without a text is never read.
            split: splits a text into sentences.
        """
        self.texts = [
            "" if document.blank else read_passage_text(document) for document in documents
        ]
        self.titles = [fold_text(document.title) for document in documents]
        self._split = split
        self.sentences = [
            list(_split_passage(number, text, split)) for number, text in enumerate(self.texts)
        ]
        self.data = {number for number, text in enumerate(self.texts) if holds_data(text)}
        """Indices of the passages that contain rows of data."""

    def choose_evidence(self, statement: str) -> list[Evidence]:
        """Return the texts that a statement is read against: two at most, none without passages.

        One is the window of all passages that has most words of the statement, the other the
        sentences of all passages that have its words together. If one of them has several words
        more, it is read alone; if each has some, as data and prose may, they are read as one text.
        Rows of data are in no sentences, because one row would lend its values to another.
        """
        evidence = self.find_nearest(statement, 1)
        if sentences := _choose_joint_sentences(statement, list(self._prose)):
            evidence.append(self._build_evidence(sentences))
        if len({part.text for part in evidence}) < 2:
            return evidence[:1]
        window, joint = evidence
        wanted = frozenset(content_words(statement))
        window_has_more = len(wanted & window.words - joint.words) >= MIN_WORDS_MORE
        if len(wanted & joint.words - window.words) < MIN_WORDS_MORE:
            return [window] if window_has_more else evidence
        if not window_has_more:
            return [joint]
        others = [sentence for sentence in sentences if sentence.text not in window.text]
        return [self._build_evidence([*window.parts, *others])]

    def find_nearest(self, statement: str, most: int) -> list[Evidence]:
        """Return the window with most words of a statement of each of the nearest passages.

        Args:
            statement: the statement.
            most: how many passages to return at most.

        Returns:
            One window a passage, those with most of the statement's words first; of equal ones
            those with fewest other words, then in the order of the passages.
        """
        wanted = frozenset(content_words(statement))
        best = [
            max(windows, key=lambda window: len(window.words & wanted))
            for number in range(len(self.texts))
            if (windows := self._find_windows(number, statement))
        ]
        # Sorting is stable: equal ones keep the order of the passages.
        best.sort(key=lambda one: (-len(one.words & wanted), len(one.words - wanted)))
        return [self._build_evidence([window]) for window in best[:most]]

    def _build_evidence(self, parts: Sequence[PassageSentence | PassageWindow]) -> Evidence:
        return Evidence(parts, [self.titles[part.passage] for part in parts])

    def _find_windows(self, number: int, statement: str) -> list[PassageWindow]:
        """Return the windows of a passage; of data only those of rows that a statement is about."""
        if number not in self.data:
            return self._windows_of_prose[number]
        rows = _split_text(spell_data(self.texts[number], statement), self._split)
        return self._cut_titled_windows(number, list(rows))

    @cached_property
    def _windows_of_prose(self) -> list[list[PassageWindow]]:
        """The windows of each passage; none of data."""
        return [
            []
            if number in self.data
            else self._cut_titled_windows(number, [sentence.text for sentence in sentences])
            for number, sentences in enumerate(self.sentences)
        ]

    def _cut_titled_windows(self, number: int, sentences: Sequence[str]) -> list[PassageWindow]:
        title_words = frozenset(content_words(self.titles[number]))
        return [
            window._replace(words=window.words | title_words)
            for window in _cut_windows(number, sentences, MAX_EVIDENCE_WORDS)
        ]

    @cached_property
    def _prose(self) -> list[PassageSentence]:
        """The sentences of all passages without data, with the words of their passage's title."""
        return [
            sentence._replace(words=sentence.words.union(content_words(self.titles[number])))
            for number, sentences in enumerate(self.sentences)
            if number not in self.data
            for sentence in sentences
        ]

    def choose_windows(self, statement: str) -> list[PassageWindow]:
        """Return the windows of the passages that a second reader gets."""
        texts = [[sentence.text for sentence in sentences] for sentences in self.sentences]
        return choose_windows(statement, texts)

    def largest_share(self, statement: str, passage: int) -> float:
        """Return the largest share of a statement's content words, 0 to 1, that two neighbouring
        sentences of a passage have together.
        """
        wanted, sentences = frozenset(content_words(statement)), self.sentences[passage]
        # A passage of one sentence is paired with itself.
        pairs = zip(sentences, sentences[1:] or sentences, strict=False)
        counts = (len(wanted & (sentence.words | following.words)) for sentence, following in pairs)
        return max(counts, default=0) / max(1, len(wanted))

    def find_closest_sentence(self, statement: str, passage: int) -> str:
        """Return the sentence of a passage that shares most words with a statement.

        Of equal ones it is the shortest; "" for a passage without sentences.
        """
        wanted = frozenset(content_words(statement))
        best = max(
            self.sentences[passage],
            key=lambda sentence: (len(sentence.words & wanted), -len(sentence.words)),
            default=None,
        )
        return best.text if best is not None else ""


def _split_passage(number: int, text: str, split: Splitter) -> Iterable[PassageSentence]:
    """Yield the sentences of a passage, with its data spelled as sentences."""
    for place, sentence in enumerate(_split_text(spell_data(text), split)):
        yield PassageSentence(number, place, sentence, frozenset(content_words(sentence)))


def _split_text(text: str, split: Splitter) -> Iterable[str]:
    """Yield the sentences of a text; very long ones, as of transcripts, in pieces."""
    for sentence in filter(None, map(str.strip, split(text))):
        words = sentence.split()
        if len(words) <= MAX_SENTENCE_WORDS:
            yield sentence
            continue
        for start in range(0, len(words), MAX_EVIDENCE_WORDS):
            yield " ".join(words[start : start + MAX_EVIDENCE_WORDS])


def _choose_joint_sentences(
    statement: str, candidates: list[PassageSentence]
) -> list[PassageSentence]:
    """Return sentences that together share a statement's words, in reading order.

    Greedy choice: add the sentence with most words that are still missing, until none adds any.
    At most :data:`MAX_JOINED_SENTENCES` of :data:`MAX_JOINED_WORDS` words, unless the first one has
    more, are chosen.
    """
    missing = set(content_words(statement))
    chosen: list[PassageSentence] = []
    length = 0
    while candidates and missing and len(chosen) < MAX_JOINED_SENTENCES:
        best = max(candidates, key=lambda sentence: len(sentence.words & missing))
        gained, size = best.words & missing, len(best.text.split())
        if not gained:
            break
        # A sentence that is too long is dropped, and a shorter one may still fit.
        candidates.remove(best)
        if length + size <= MAX_JOINED_WORDS or not chosen:
            chosen.append(best)
            # Later sentences only count for the words that are still missing.
            missing -= gained
            length += size
    return sorted(chosen)


def choose_windows(
    statement: str,
    passages: Sequence[Sequence[str]],
    most: int = MAX_WINDOWS,
    longest: int = MAX_WINDOW_WORDS,
) -> list[PassageWindow]:
    """Return windows of passages to judge a statement by, in reading order.

    Greedy choice: add the window with most content words of the statement that are not covered yet;
    of equal ones the one with most of its words, then the first one. No two windows have a sentence
    in common. Where no window shares a word, the first window is returned.

    Args:
        statement: the statement to judge.
        passages: the sentences of each passage.
        most: how many windows to return at most.
        longest: words of a window, unless its single sentence has more.
    """
    wanted = frozenset(content_words(statement))
    candidates = [
        window
        for number, sentences in enumerate(passages)
        for window in _cut_windows(number, sentences, longest)
    ]
    chosen: list[PassageWindow] = []
    covered: frozenset[str] = frozenset()
    while candidates and len(chosen) < most:
        best = max(
            candidates,
            key=lambda window: (len(window.words & wanted - covered), len(window.words & wanted)),
        )
        if chosen and not best.words & wanted:
            break
        chosen.append(best)
        # Later windows only count for words that no window has so far.
        covered |= best.words & wanted
        candidates = [window for window in candidates if not window.overlaps(best)]
    return sorted(chosen)


def _cut_windows(number: int, sentences: Sequence[str], longest: int) -> Iterable[PassageWindow]:
    """Yield the windows of one passage: from each sentence on, as many sentences as fit."""
    lengths = [len(sentence.split()) for sentence in sentences]
    words = [frozenset(content_words(sentence)) for sentence in sentences]
    end = 0
    for start in range(len(sentences)):
        # ``end`` never moves back, since a window that starts later ends no earlier.
        end = max(end, start + 1)
        while end < len(sentences) and sum(lengths[start : end + 1]) <= longest:
            end += 1
        content = frozenset().union(*words[start:end])
        yield PassageWindow(number, start, end, content, " ".join(sentences[start:end]))
        # Every later window would be a part of this one.
        if end == len(sentences):
            return
