"""Similarities of two texts, on top of the other capabilities; two of them know the question.

Two answers to one question share the question's words whatever they say. What tells them apart is
what they add. ``docs/methods/fewl.md`` says what else was tried.
"""

import asyncio
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.lexical import overlap
from trustassay.backends.openai import OpenAIEmbedder
from trustassay.backends.resolve import blocking
from trustassay.capabilities import (
    BatchLimits,
    Embedder,
    Entailer,
    TokenEmbedder,
    TokenVectors,
    Vectors,
)
from trustassay.errors import BackendError
from trustassay.text.words import content_words, plain_words
from trustassay.token_matching import greedy_match

Pairs = Sequence[tuple[str, str]]
Scores = NDArray[np.float64]
V = TypeVar("V")
REMEMBERED = 16_384
"""Vectors that a cosine similarity keeps; 25 MB of the embedded embedder's."""
REMEMBERED_TOKENS = 1024
"""Texts whose tokens' vectors BERTScore keeps; 60 MB of texts of 20 tokens by a base model."""


def _read(
    texts: Iterable[str],
    remembered: OrderedDict[str, V],
    read: Callable[[list[str]], Iterable[V]],
    most: int,
) -> dict[str, V]:
    """Return what was read of each text; the latest ``most`` are remembered."""
    values = {text: remembered.pop(text) for text in texts if text in remembered}
    if new := [text for text in texts if text not in values]:
        values |= zip(new, read(new), strict=True)
    remembered.update(values)
    while len(remembered) > most:
        remembered.popitem(last=False)
    return values


class CosineSimilarity:
    """Cosine of the texts' vectors, -1..1; symmetric.

    The vectors of the latest :data:`REMEMBERED` texts are kept, since a text is mostly compared
    with many. The engine asks an embedding model behind an endpoint itself, with ``ascores``:
    limited, stored and tried again like every other call to that endpoint.
    """

    def __init__(self, embedder: Embedder | OpenAIEmbedder) -> None:
        self.endpoint_embedder = None if isinstance(embedder, Embedder) else embedder
        self._embedder = blocking(embedder)
        self._remembered: OrderedDict[str, Vectors] = OrderedDict()
        self.name = f"cosine:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is embedded once."""
        if not pairs:
            return np.zeros(0)
        texts = dict.fromkeys(text for pair in pairs for text in pair)
        vectors = _read(texts, self._remembered, self._embedder.vectors, REMEMBERED)
        firsts, seconds = (np.stack([vectors[pair[side]] for pair in pairs]) for side in (0, 1))
        return _cosines(firsts, seconds)

    async def ascores(
        self, pairs: Pairs, embed: Callable[[str], Awaitable[NDArray[np.float32]]]
    ) -> Scores:
        """Return shape (n,) for n (text, reference), by the vectors that ``embed`` gives."""
        vectors = await asyncio.gather(*(embed(text) for pair in pairs for text in pair))
        return _cosines(np.stack(vectors[::2]), np.stack(vectors[1::2]))


def _cosines(firsts: Vectors, seconds: Vectors) -> Scores:
    """Return the dot products of unit vectors, shape (n,), of two times (n, d)."""
    scores: Scores = np.einsum("nd,nd->n", firsts.astype(float), seconds.astype(float))
    return scores


class BertScoreSimilarity:
    """BERTScore's F, 0..1, of the text against the reference; symmetric (Zhang et al. 2020).

    A text is read with a space before it, as by the metric ``reference``: models with byte-level
    tokenizers learnt to read a word so. A text without tokens has 0. The vectors of the latest
    :data:`REMEMBERED_TOKENS` texts are kept.
    """

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder = embedder
        self._remembered: OrderedDict[str, TokenVectors] = OrderedDict()
        self.name = f"bertscore:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is read once."""
        read = (f" {text.strip()}" for pair in pairs for text in pair)
        texts = [text for text in dict.fromkeys(read) if text.strip()]
        result = _read(texts, self._remembered, self._embedder.token_vectors, REMEMBERED_TOKENS)
        return np.array([self._score(*(result.get(f" {t.strip()}") for t in p)) for p in pairs])

    def _score(self, one: TokenVectors | None, other: TokenVectors | None) -> float:
        if one is None or other is None:
            return 0.0
        return greedy_match(one.vectors, other.vectors, one.special, other.special).f1


class ConsistencySimilarity:
    """Probability that the reference (premise) entails the text, 0..1; not symmetric."""

    def __init__(self, entailer: Entailer) -> None:
        self.entailer = entailer
        self.name = f"consistency:{entailer.name}"
        self.limits: BatchLimits = getattr(entailer, "limits", BatchLimits())
        self.languages: tuple[str, ...] = getattr(entailer, "languages", ())
        self.stored: bool = getattr(entailer, "stored", True)

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference)."""
        return self.entailer.scores([(reference, text) for text, reference in pairs])[:, 0]


class LexicalSimilarity:
    """F1 of the content words that the texts hold of each other, 0..1; symmetric."""

    name = "lexical"
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); 0 where they share no content word."""
        both = np.array(
            [(overlap(b, a).containment, overlap(a, b).containment) for a, b in pairs]
        ).reshape(-1, 2)
        total = both.sum(axis=1)
        scores: Scores = np.zeros(len(both))
        np.divide(2 * both.prod(axis=1), total, out=scores, where=total > 0)
        return scores


Triples = Sequence[tuple[str, str, str]]
SAME_WORD = 0.5
"""Likeness from which two words may be spellings of one (Kotliarevskyi, Kotlyarevsky)."""
MOST_SPELLED = 200
"""Words of an answer that are looked at for other spellings; of the others equal ones count."""
LONGEST_WORD = 40
"""Letters of a word that may be spelt in another way."""


class NovelWordsSimilarity:
    """Share of the words that an answer adds to the question and the other answer adds, too, 0..1.

    The share is that of the answer which adds less, so that an answer in more words agrees with a
    short one; symmetric. See :func:`novel_agreement`.
    """

    name = "novel"
    reads_question = True
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, triples: Triples) -> Scores:
        """Return shape (n,) for n (text, reference, question)."""
        return np.array([novel_agreement(*one) for one in triples], dtype=float)


class AgreementSimilarity:
    """The mean of what words and what entailment say of two answers to a question, 0..1; symmetric.

    Entailment reads each answer behind the question, in both directions: the stronger entailment e
    and the weaker contradiction c give (e + 1 - c) / 2. Words: :class:`NovelWordsSimilarity`.
    """

    reads_question = True

    def __init__(self, entailer: Entailer) -> None:
        """Wrap an entailer; raises :class:`BackendError` for one that asks a chat model."""
        if hasattr(entailer, "chat_model"):
            name = entailer.name
            raise BackendError(f"agreement: {name} is a chat model; expected a local entailer")
        self._entailer = entailer
        self.name = f"agreement:{entailer.name}"
        self.limits: BatchLimits = getattr(entailer, "limits", BatchLimits())
        self.languages: tuple[str, ...] = getattr(entailer, "languages", ())

    def scores(self, triples: Triples) -> Scores:
        """Return shape (n,) for n (text, reference, question)."""
        if not triples:
            return np.zeros(0)
        answers = [(f"{q} {a}".strip(), f"{q} {b}".strip()) for a, b, q in triples]
        asked = (pair for a, b in answers for pair in ((a, b), (b, a)) if a != b)
        both = {pair: place for place, pair in enumerate(dict.fromkeys(asked))}
        result = self._entailer.scores(list(both)) if both else np.zeros((0, 3))
        return np.array(
            [
                (novel_agreement(*triple) + self._entailed(a, b, both, result)) / 2
                for triple, (a, b) in zip(triples, answers, strict=True)
            ]
        )

    def _entailed(
        self, a: str, b: str, places: Mapping[tuple[str, str], int], found: NDArray[np.float64]
    ) -> float:
        if a == b:
            return 1.0
        there, back = found[places[a, b]], found[places[b, a]]
        return float(max(there[0], back[0]) + 1 - min(there[2], back[2])) / 2


def novel_agreement(text: str, reference: str, question: str = "") -> float:
    """Return how much of what two answers add to a question is the same, 0..1.

    An answer's novel words are its content words that are not in the question. Of each answer's
    novel words the share is taken that the other one has, a word counting as much as it is like
    the nearest word there (:func:`word_likeness`); the larger of the two shares is returned.

    Where both answers add nothing (a choice between things that the question names), all their
    content words are held against each other: the shared ones over all. Where one alone adds
    nothing, or an answer has no words, they do not agree: 0. Where an answer has no content words
    ("No") plain words are taken of both. Equal answers agree: 1.

    Of long answers :data:`MOST_SPELLED` words each are looked at for other spellings of a word.
    """
    if (folded := _folded(text)) and folded == _folded(reference):
        return 1.0
    asked = frozenset(content_words(question))
    words = [content_words(one) for one in (text, reference)]
    if not all(words):
        asked = frozenset(word for word in plain_words(question) if content_words(word))
        words = [tuple(dict.fromkeys(plain_words(one))) for one in (text, reference)]
    novel = [[word for word in one if word not in asked] for one in words]
    if not any(novel):
        first, second = map(set, words)
        return len(first & second) / len(first | second) if first and second else 0.0
    first_novel, second_novel = novel
    if not (first_novel and second_novel):
        return 0.0
    return max(_share(first_novel, second_novel), _share(second_novel, first_novel))


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _share(words: Sequence[str], others: Sequence[str]) -> float:
    """Return the mean of how much each word is like the nearest one of the others."""
    known = frozenset(others)
    odd = [word for word in words if word not in known][:MOST_SPELLED]
    by_pair: dict[str, list[str]] = {}
    for other in others[:MOST_SPELLED] if odd else ():
        for pair in _letter_pairs(other):
            by_pair.setdefault(pair, []).append(other)
    result = float(len(words) - sum(word not in known for word in words))
    for word in odd:
        near = set().union(*(by_pair.get(pair, ()) for pair in _letter_pairs(word)))
        result += max((word_likeness(word, other) for other in near), default=0.0)
    return result / len(words)


@lru_cache(maxsize=65_536)
def word_likeness(first: str, second: str) -> float:
    """Return 1 for equal words, the share of pairs of letters in common for two spellings, else 0.

    Dice's coefficient of the words' pairs of neighbouring letters, ends included, where it is 0.5
    or more. A word with a digit is like itself alone: 1994 is not 1995. So is one of more than
    :data:`LONGEST_WORD` letters.
    """
    if first == second:
        return 1.0
    a, b = _letter_pairs(first), _letter_pairs(second)
    if 3 * min(len(a), len(b)) < max(len(a), len(b)):  # the coefficient is below 0.5
        return 0.0
    dice = 2 * len(a & b) / (len(a) + len(b)) if a else 0.0
    return dice if dice >= SAME_WORD else 0.0


@lru_cache(maxsize=16_384)
def _letter_pairs(word: str) -> frozenset[str]:
    """Return the pairs of letters of a word; none where it is like itself alone."""
    if len(word) > LONGEST_WORD or any(character.isdigit() for character in word):
        return frozenset()
    ended = f"^{word}$"
    return frozenset(ended[i : i + 2] for i in range(len(ended) - 1))
