"""What is read of the passages of an answer: the only chooser of evidence.

Passages are folded and parted into sentences once. A statement is read against the excerpts that
hold most of its words (:meth:`Passages.nearest`), then against what holds them together
(:meth:`Passages.joined`), and by a second reader in windows (:meth:`Passages.windows`).
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from trustassay.capabilities import Entailment, Models
from trustassay.sample import Document
from trustassay.text.channels import without_html
from trustassay.text.mapped import MappedText
from trustassay.text.sentences import Splitter
from trustassay.text.tables import as_prose, holds_data
from trustassay.text.unicode import fold, folded
from trustassay.text.values import spell_dates
from trustassay.text.words import content_words

EXCERPT_WORDS = 400
"""Words of a passage up to which it is read as a whole, and of its excerpts."""
JOINED_WORDS = 80
"""Words of joined evidence: what the embedded entailer reads at once."""
JOINED_SENTENCES = 4
WINDOWS = 3
WINDOW_WORDS = 60
"""Words of a window, unless its one sentence has more."""


class PassageSentence(NamedTuple):
    """A sentence of a passage; ``passage`` and ``place`` count from 0."""

    passage: int
    place: int
    text: str
    words: frozenset[str]


class Excerpt(NamedTuple):
    """What is put to a reader: a passage, or sentences in a row of a long one."""

    passage: int
    text: str
    title: str
    words: frozenset[str]

    @property
    def premise(self) -> str:
        """The text below its title, if there is one."""
        return titled(self.text, self.title)


class Window(NamedTuple):
    """Sentences ``start`` to ``end`` (without it) of a passage, their content words, and their
    text; ``passage`` counts from 0.
    """

    passage: int
    start: int
    end: int
    words: frozenset[str]
    text: str

    def meets(self, other: "Window") -> bool:
        """Whether both have a sentence in common."""
        same = self.passage == other.passage
        return same and self.start < other.end and other.start < self.end


def titled(text: str, title: str) -> str:
    """Return a text below its title, as readers are shown it."""
    return f"Title: {title}\n{text}" if title else text


async def read(models: Models, premise: str, claim: str, role: str = "") -> Entailment:
    """Return what a reader says of a claim by a premise; of both, dates are spelled alike."""
    return await models.entail(spell_dates(premise), spell_dates(claim), role=role)


def passage_text(document: Document) -> str:
    """Return the text of a passage as it is read: its excerpt, if any, folded, without HTML."""
    text = document.text if document.excerpt is None else document.excerpt
    return fold(without_html(MappedText.of(text))).text


def passage_premise(document: Document) -> str:
    """Return a whole passage as a reader is shown it, with its title."""
    return titled(passage_text(document), folded(document.title))


class Passages:
    """The passages of one answer, read once for all of its claims."""

    def __init__(self, documents: Sequence[Document], split: Splitter) -> None:
        """
        Args:
            documents: in their order; one without a text is never read.
            split: parts a text into sentences.
        """
        self.texts = ["" if one.blank else passage_text(one) for one in documents]
        self.titles = [folded(document.title) for document in documents]
        self.sentences = [
            list(_sentences_of(number, text, split)) for number, text in enumerate(self.texts)
        ]
        self.data = {number for number, text in enumerate(self.texts) if holds_data(text)}
        """Places of the passages that hold rows of data, not prose."""

    @cached_property
    def excerpts(self) -> list[Excerpt]:
        """All passages in excerpts of up to 400 words, at the ends of sentences."""
        return [one for number in range(len(self.texts)) for one in self._excerpts_of(number)]

    def _excerpts_of(self, number: int) -> Iterable[Excerpt]:
        text, title = self.texts[number], self.titles[number]
        texts = [text] if text.strip() else []
        if len(text.split()) > EXCERPT_WORDS:
            rows: list[list[str]] = [[]]
            for sentence in self.sentences[number]:
                every = sentence.text.split()
                for start in range(0, len(every), EXCERPT_WORDS):
                    words = every[start : start + EXCERPT_WORDS]
                    if rows[-1] and len(rows[-1]) + len(words) > EXCERPT_WORDS:
                        rows.append([])
                    rows[-1] += words
            texts = [" ".join(row) for row in rows]
        for one in texts:
            yield Excerpt(number, one, title, frozenset(content_words(f"{title} {as_prose(one)}")))

    def nearest(self, statement: str, most: int) -> list[tuple[Excerpt, float]]:
        """Return up to ``most`` excerpts that hold the largest shares of a statement's content
        words, each with that share, 0 to 1; the first of equal ones.
        """
        wanted = frozenset(content_words(statement))
        shares = [len(wanted & one.words) / max(1, len(wanted)) for one in self.excerpts]
        order = sorted(range(len(shares)), key=lambda place: -shares[place])
        return [(self.excerpts[place], shares[place]) for place in order[:most]]

    def joined(self, statement: str) -> list[Sequence["PassageSentence | Window"]]:
        """Return what is read together of all passages, where none supports a statement alone:
        sentences that hold its words between them, then windows around its words.

        Rows of data are left out: together they would lend each other values.
        """
        prose = [
            [] if number in self.data else sentences
            for number, sentences in enumerate(self.sentences)
        ]
        chosen = _together(statement, list(chain.from_iterable(prose)))
        around = windows(statement, [[one.text for one in sentences] for sentences in prose])
        return [one for one in (chosen[1:] and chosen, chosen and around) if one]

    def windows(self, statement: str) -> list[Window]:
        """Return the windows of the passages that a second reader is shown."""
        texts = [[one.text for one in sentences] for sentences in self.sentences]
        return windows(statement, texts)

    def share(self, statement: str, passage: int) -> float:
        """Return the largest share of a statement's content words, 0 to 1, that two neighbouring
        sentences of a passage hold.
        """
        wanted, sentences = frozenset(content_words(statement)), self.sentences[passage]
        pairs = zip(sentences, sentences[1:] or sentences, strict=False)
        counts = (len(wanted & (one.words | other.words)) for one, other in pairs)
        return max(counts, default=0) / max(1, len(wanted))

    def closest_sentence(self, statement: str, passage: int) -> str:
        """Return the sentence of a passage with most words of a statement, of equal ones the
        shortest; "" of a passage without any.
        """
        wanted = frozenset(content_words(statement))
        best = max(
            self.sentences[passage],
            key=lambda one: (len(one.words & wanted), -len(one.words)),
            default=None,
        )
        return best.text if best is not None else ""


def _sentences_of(number: int, text: str, split: Splitter) -> Iterable[PassageSentence]:
    """Yield the sentences of a passage; of data in it those that say the same."""
    for place, sentence in enumerate(split(as_prose(text))):
        if bare := sentence.strip():
            yield PassageSentence(number, place, bare, frozenset(content_words(bare)))


def _together(statement: str, left: list[PassageSentence]) -> list[PassageSentence]:
    """Return sentences that together hold a statement's words, in reading order.

    The sentence that adds most words is taken, again and again, until none adds any, or they are
    four, or have 80 words.
    """
    missing = set(content_words(statement))
    chosen: list[PassageSentence] = []
    length = 0
    while left and missing and len(chosen) < JOINED_SENTENCES:
        best = max(left, key=lambda one: len(one.words & missing))
        gained, size = best.words & missing, len(best.text.split())
        if not gained:
            break
        left.remove(best)
        if length + size <= JOINED_WORDS or not chosen:
            chosen.append(best)
            missing -= gained
            length += size
    return sorted(chosen)


def windows(
    statement: str,
    passages: Sequence[Sequence[str]],
    most: int = WINDOWS,
    longest: int = WINDOW_WORDS,
) -> list[Window]:
    """Return up to ``most`` windows of passages to judge a statement by, in reading order.

    A window is one or more sentences in a row of one passage, of up to ``longest`` words together.
    The window that adds most content words of the statement is taken, again and again; of equal
    ones that with most of its words, then the first. No two have a sentence in common. Where no
    window has any, the first one is taken.

    Args:
        statement: what is judged.
        passages: the sentences of each passage.
    """
    wanted = frozenset(content_words(statement))
    left = [
        window
        for number, sentences in enumerate(passages)
        for window in _cut(number, sentences, longest)
    ]
    chosen: list[Window] = []
    covered: frozenset[str] = frozenset()
    while left and len(chosen) < most:
        best = max(
            left, key=lambda one: (len(one.words & wanted - covered), len(one.words & wanted))
        )
        if chosen and not best.words & wanted:
            break
        chosen.append(best)
        covered |= best.words & wanted
        left = [one for one in left if not one.meets(best)]
    return sorted(chosen)


def _cut(number: int, sentences: Sequence[str], longest: int) -> Iterable[Window]:
    """Yield the windows of one passage: from each sentence on as many as there is room for."""
    lengths = [len(one.split()) for one in sentences]
    words = [frozenset(content_words(one)) for one in sentences]
    end = 0
    for start in range(len(sentences)):
        end = max(end, start + 1)
        while end < len(sentences) and sum(lengths[start : end + 1]) <= longest:
            end += 1
        content = frozenset().union(*words[start:end])
        yield Window(number, start, end, content, " ".join(sentences[start:end]))
        if end == len(sentences):
            return
