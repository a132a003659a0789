"""Chooses the parts of an answer's passages that a statement is read against.

Passages are folded and split into sentences once. A statement is read

1. against the excerpts that share most words with it (:meth:`Passages.find_nearest`),
2. against sentences and windows that share them together (:meth:`Passages.find_joint_evidence`),
3. by a second reader, against windows (:meth:`Passages.choose_windows`).

Evidence is chosen nowhere else.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from trustassay.core.capabilities import Entailment, Models
from trustassay.core.sample import Document
from trustassay.text.cleaning import fold, fold_text, strip_html
from trustassay.text.mapped import MappedText
from trustassay.text.quantities import spell_dates
from trustassay.text.sentences import Splitter, pack_sentences
from trustassay.text.tables import holds_data, spell_data
from trustassay.text.words import content_words

MAX_EXCERPT_WORDS = 400
"""Words of a passage up to which it is read in one piece, and of each excerpt of a longer one."""
MAX_JOINED_WORDS = 80
"""Words of joined sentences: as much as the embedded entailer reads at once."""
MAX_JOINED_SENTENCES = 4
MAX_WINDOWS = 3
MAX_WINDOW_WORDS = 60
"""Words of a window, unless its one sentence has more."""


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


class PassageExcerpt(NamedTuple):
    """The text that a reader gets: a passage, or consecutive sentences of a long one."""

    passage: int
    """Index of its passage, from 0."""
    text: str
    """The text."""
    title: str
    """The title of the passage; may be empty."""
    words: frozenset[str]
    """Content words of text and title, with data spelled as sentences."""

    @property
    def premise(self) -> str:
        """The text below its title, if there is one."""
        return add_title(self.text, self.title)


class PassageWindow(NamedTuple):
    """Consecutive sentences of a passage."""

    passage: int
    """Index of its passage, from 0."""
    start: int
    """Index of its first sentence."""
    end: int
    """Index behind its last sentence."""
    words: frozenset[str]
    """Its content words."""
    text: str
    """Its text."""

    def overlaps(self, other: "PassageWindow") -> bool:
        """Whether both windows have a sentence in common."""
        same = self.passage == other.passage
        return same and self.start < other.end and other.start < self.end


def add_title(text: str, title: str) -> str:
    """Return a text below its title, in the form that readers get."""
    return f"Title: {title}\n{text}" if title else text


async def ask_reader(models: Models, premise: str, claim: str, role: str = "") -> Entailment:
    """Ask an entailment model whether a premise supports a claim; dates in both get one form."""
    return await models.entail(spell_dates(premise), spell_dates(claim), role=role)


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

    @cached_property
    def excerpts(self) -> list[PassageExcerpt]:
        """All passages in excerpts of up to 400 words, cut at the ends of sentences."""
        return [
            excerpt for number in range(len(self.texts)) for excerpt in self._cut_excerpts(number)
        ]

    def _cut_excerpts(self, number: int, statement: str | None = None) -> list[PassageExcerpt]:
        """Return a passage in excerpts; of long data only the rows that a statement is about."""
        text, title = self.texts[number], self.titles[number]
        texts = [text] if text.strip() else []
        if len(text.split()) > MAX_EXCERPT_WORDS:
            sentences = (sentence.text.split() for sentence in self.sentences[number])
            if statement is not None:
                rows = self._split(spell_data(text, statement))
                sentences = (words for row in rows if (words := row.split()))
            # Excerpts of a long passage lose its line breaks.
            texts = [" ".join(words) for words in pack_sentences(sentences, MAX_EXCERPT_WORDS)]
        return [
            PassageExcerpt(
                number,
                excerpt_text,
                title,
                frozenset(content_words(f"{title} {spell_data(excerpt_text)}")),
            )
            for excerpt_text in texts
        ]

    def _find_excerpts(self, statement: str) -> list[PassageExcerpt]:
        """Return all excerpts that a statement may be read against."""
        # A reader must not take the values of other rows; a short passage reaches it whole, and
        # it selects the rows itself.
        data = {number: self._cut_excerpts(number, statement) for number in self.data}
        prose = [excerpt for excerpt in self.excerpts if excerpt.passage not in data]
        return sorted(chain(prose, *data.values()), key=lambda excerpt: excerpt.passage)

    def find_nearest(self, statement: str, most: int) -> list[tuple[PassageExcerpt, float]]:
        """Return the excerpts that share most content words with a statement.

        Args:
            statement: the statement.
            most: how many excerpts to return at most.

        Returns:
            Excerpts with their shares of the statement's words, 0 to 1, descending; of equal
            shares, in the order of the passages.
        """
        wanted = frozenset(content_words(statement))
        excerpts = self._find_excerpts(statement) if self.data else self.excerpts
        shares = [len(wanted & excerpt.words) / max(1, len(wanted)) for excerpt in excerpts]
        # Sorting is stable: equal shares keep the order of the passages.
        order = sorted(range(len(shares)), key=lambda place: -shares[place])
        return [(excerpts[place], shares[place]) for place in order[:most]]

    def find_joint_evidence(
        self, statement: str
    ) -> list[Sequence["PassageSentence | PassageWindow"]]:
        """Return the groups of sentences to read where no excerpt alone supports a statement.

        First come sentences of all passages that share its words between them, then windows around
        its words. Passages with rows of data are left out, because one row would lend its values
        to another.
        """
        prose = [
            [] if number in self.data else sentences
            for number, sentences in enumerate(self.sentences)
        ]
        # Sentences first, since they are shorter; windows only if they did not suffice.
        chosen = _choose_joint_sentences(statement, list(chain.from_iterable(prose)))
        around = choose_windows(
            statement, [[sentence.text for sentence in sentences] for sentences in prose]
        )
        # A single sentence was already read within its excerpt. Without any sentence that shares a
        # word the windows have none either.
        return [group for group in (chosen[1:] and chosen, chosen and around) if group]

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
    for place, sentence in enumerate(split(spell_data(text))):
        if bare := sentence.strip():
            yield PassageSentence(number, place, bare, frozenset(content_words(bare)))


def _choose_joint_sentences(
    statement: str, candidates: list[PassageSentence]
) -> list[PassageSentence]:
    """Return sentences that together share a statement's words, in reading order.

    Greedy choice: add the sentence with most words that are still missing, until none adds any.
    At most four sentences, and 80 words unless the first one has more, are chosen.
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
