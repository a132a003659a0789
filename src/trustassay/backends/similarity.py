"""Similarities of two texts, computed with other capabilities; two of them also read the question.

Two answers to one question share the question's words whatever they say. What distinguishes them is
what they add. ``docs/methods/fewl.md`` reports what else was tried.
"""

import asyncio
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.lexical import compute_overlap
from trustassay.backends.openai import OpenAIEmbedder
from trustassay.backends.resolve import make_blocking
from trustassay.backends.vectors import scale_to_unit
from trustassay.core.capabilities import (
    BatchLimits,
    Embedder,
    Entailer,
    TokenEmbedder,
    TokenVectors,
    Vectors,
)
from trustassay.errors import BackendError
from trustassay.statistics.token_matching import greedy_match
from trustassay.text.words import content_words, plain_words

Pairs = Sequence[tuple[str, str]]
Scores = NDArray[np.float64]
V = TypeVar("V")
MAX_REMEMBERED_VECTORS = 16_384
"""Vectors that a cosine similarity keeps; 25 MB with the embedded embedder."""
MAX_REMEMBERED_TOKEN_TEXTS = 1024
"""Texts whose token vectors BERTScore keeps; 60 MB for texts of 20 tokens with a base model."""


def _read_remembered(
    texts: Iterable[str],
    remembered: OrderedDict[str, V],
    read: Callable[[list[str]], Iterable[V]],
    max_remembered: int,
) -> dict[str, V]:
    """Return a value for each text; the latest ``max_remembered`` texts are remembered.

    Args:
        texts: different texts.
        remembered: values of earlier texts, the latest last; updated.
        read: computes the values of texts that are not remembered.
        max_remembered: maximum number of remembered texts.
    """
    # Removed and added again below, so that texts in use come last and are kept.
    values = {text: remembered.pop(text) for text in texts if text in remembered}
    if new := [text for text in texts if text not in values]:
        values |= zip(new, read(new), strict=True)
    remembered.update(values)
    while len(remembered) > max_remembered:
        remembered.popitem(last=False)
    return values


class CosineSimilarity:
    """Cosine of the texts' vectors, -1..1; symmetric.

    The vectors of the latest :data:`MAX_REMEMBERED_VECTORS` texts are kept, since a text is usually
    compared with many. For an embedding model behind an endpoint the engine calls ``ascores``, so
    that its calls are limited, stored and retried like all others.
    """

    def __init__(self, embedder: Embedder | OpenAIEmbedder) -> None:
        self.endpoint_embedder = None if isinstance(embedder, Embedder) else embedder
        self._embedder = make_blocking(embedder)
        self._remembered_values: OrderedDict[str, Vectors] = OrderedDict()
        self.name = f"cosine:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is embedded once."""
        if not pairs:
            return np.zeros(0)
        texts = dict.fromkeys(text for pair in pairs for text in pair)
        vectors = _read_remembered(
            texts, self._remembered_values, self._embed, MAX_REMEMBERED_VECTORS
        )
        firsts, seconds = (np.stack([vectors[pair[side]] for pair in pairs]) for side in (0, 1))
        return _cosines(firsts, seconds)

    def _embed(self, texts: list[str]) -> Vectors:
        return scale_to_unit(self._embedder.name, texts, self._embedder.vectors(texts))

    async def ascores(
        self, pairs: Pairs, embed: Callable[[str], Awaitable[NDArray[np.float32]]]
    ) -> Scores:
        """Return shape (n,) for n (text, reference), with vectors from ``embed``."""
        vectors = await asyncio.gather(*(embed(text) for pair in pairs for text in pair))
        return _cosines(np.stack(vectors[::2]), np.stack(vectors[1::2]))


def _cosines(firsts: Vectors, seconds: Vectors) -> Scores:
    """Return the dot products of two arrays of unit vectors, each (n, d), as shape (n,)."""
    scores: Scores = np.einsum("nd,nd->n", firsts.astype(float), seconds.astype(float))
    return scores


class BertScoreSimilarity:
    """BERTScore's F, 0..1, of the text against the reference; symmetric (Zhang et al. 2020).

    A text is read with a space before it, as by the metric ``reference``: models with byte-level
    tokenizers learnt to read words with one. A text without tokens has 0. The vectors of the latest
    :data:`MAX_REMEMBERED_TOKEN_TEXTS` texts are kept.
    """

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder = embedder
        self._remembered_values: OrderedDict[str, TokenVectors] = OrderedDict()
        self.name = f"bertscore:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is read once."""
        read = (f" {text.strip()}" for pair in pairs for text in pair)
        # Empty texts are left out, and get 0 below.
        texts = [text for text in dict.fromkeys(read) if text.strip()]
        result = _read_remembered(
            texts, self._remembered_values, self._embedder.token_vectors, MAX_REMEMBERED_TOKEN_TEXTS
        )
        return np.array([self._score(*(result.get(f" {t.strip()}") for t in p)) for p in pairs])

    def _score(self, first: TokenVectors | None, second: TokenVectors | None) -> float:
        """Return F of two texts, 0 if one of them is empty."""
        if first is None or second is None:
            return 0.0
        return greedy_match(first.vectors, second.vectors, first.special, second.special).f1


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
    """F1 of the content words that each text has of the other, 0..1; symmetric."""

    name = "lexical"
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); 0 if they share no content word."""
        both = np.array(
            [
                (compute_overlap(b, a).containment, compute_overlap(a, b).containment)
                for a, b in pairs
            ]
        ).reshape(-1, 2)
        total = both.sum(axis=1)
        scores: Scores = np.zeros(len(both))
        np.divide(2 * both.prod(axis=1), total, out=scores, where=total > 0)
        return scores


Triples = Sequence[tuple[str, str, str]]
MIN_WORD_LIKENESS = 0.5
"""Likeness from which two words may be spellings of one word (Kotliarevskyi, Kotlyarevsky)."""
MAX_SPELLED_WORDS = 200
"""Words of an answer that are compared for other spellings; the others count only if equal."""
MAX_WORD_LETTERS = 40
"""Letters of the longest word that may have another spelling."""


class NovelWordsSimilarity:
    """Share of the words that both answers add to the question, 0..1; symmetric.

    It is the share in the answer that adds less, so that a long answer agrees with a short one. See
    :func:`compute_novel_agreement`.
    """

    name = "novel"
    reads_question = True
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, triples: Triples) -> Scores:
        """Return shape (n,) for n (text, reference, question)."""
        return np.array([compute_novel_agreement(*triple) for triple in triples], dtype=float)


class AgreementSimilarity:
    """Mean of word agreement and entailment of two answers to a question, 0..1; symmetric.

    Entailment reads each answer after the question, in both directions: the stronger entailment e
    and the weaker contradiction c give (e + 1 - c) / 2. Words: :class:`NovelWordsSimilarity`.
    """

    reads_question = True

    def __init__(self, entailer: Entailer) -> None:
        """Wrap an entailer; raises :class:`BackendError` for one that asks a chat model."""
        for kind in ("chat", "decision"):
            if hasattr(entailer, f"{kind}_model"):
                message = f"{entailer.name} is a {kind} model; expected a local entailer"
                raise BackendError(f"agreement: {message}")
        self._entailer = entailer
        self.name = f"agreement:{entailer.name}"
        self.limits: BatchLimits = getattr(entailer, "limits", BatchLimits())
        self.languages: tuple[str, ...] = getattr(entailer, "languages", ())

    def scores(self, triples: Triples) -> Scores:
        """Return shape (n,) for n (text, reference, question)."""
        if not triples:
            return np.zeros(0)
        answers = [(f"{q} {a}".strip(), f"{q} {b}".strip()) for a, b, q in triples]
        # Equal answers need no entailment.
        pairs = (pair for a, b in answers for pair in ((a, b), (b, a)) if a != b)
        index_of_pair = {pair: index for index, pair in enumerate(dict.fromkeys(pairs))}
        result = self._entailer.scores(list(index_of_pair)) if index_of_pair else np.zeros((0, 3))
        return np.array(
            [
                (
                    compute_novel_agreement(*triple)
                    + self._score_entailment(a, b, index_of_pair, result)
                )
                / 2
                for triple, (a, b) in zip(triples, answers, strict=True)
            ]
        )

    def _score_entailment(
        self,
        a: str,
        b: str,
        index_of_pair: Mapping[tuple[str, str], int],
        entailments: NDArray[np.float64],
    ) -> float:
        """Return (e + 1 - c) / 2 of two answers, 1 for equal ones."""
        if a == b:
            return 1.0
        forward, backward = entailments[index_of_pair[a, b]], entailments[index_of_pair[b, a]]
        return float(max(forward[0], backward[0]) + 1 - min(forward[2], backward[2])) / 2


def compute_novel_agreement(text: str, reference: str, question: str = "") -> float:
    """Return how much of what two answers add to a question is the same, 0..1.

    An answer's novel words are its content words that are not in the question. For each answer, the
    share of its novel words that the other one has is computed; a word counts by its likeness to
    the most similar word there (:func:`compute_word_likeness`). The larger of the two shares is
    returned.

    * If neither answer adds anything (a choice between things that the question names), all content
      words are compared: the shared ones over all.
    * If only one adds nothing, or an answer has no words, they do not agree: 0.
    * If an answer has no content words ("No"), plain words are compared for both.
    * Equal answers agree: 1.

    At most :data:`MAX_SPELLED_WORDS` words of a long answer are compared for other spellings.
    """
    # 1. Equal answers; two empty ones do not agree.
    if (folded := _fold(text)) and folded == _fold(reference):
        return 1.0
    # 2. Choose the words to compare: content words, or all words if an answer has no others.
    question_words = frozenset(content_words(question))
    words_of_answers = [content_words(answer) for answer in (text, reference)]
    if not all(words_of_answers):
        question_words = frozenset(word for word in plain_words(question) if content_words(word))
        words_of_answers = [
            tuple(dict.fromkeys(plain_words(answer))) for answer in (text, reference)
        ]
    # 3. Leave out the words of the question.
    novel = [[word for word in answer if word not in question_words] for answer in words_of_answers]
    if not any(novel):
        first, second = map(set, words_of_answers)
        return len(first & second) / len(first | second) if first and second else 0.0
    first_novel, second_novel = novel
    if not (first_novel and second_novel):
        return 0.0
    # 4. Compare the rest in both directions.
    return max(_share(first_novel, second_novel), _share(second_novel, first_novel))


def _fold(text: str) -> str:
    """Return a text without differences of case, spaces and Unicode forms."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _share(words: Sequence[str], other_words: Sequence[str]) -> float:
    """Return the mean of each word's likeness to the most similar one of the others."""
    other_set = frozenset(other_words)
    unmatched = [word for word in words if word not in other_set][:MAX_SPELLED_WORDS]
    by_pair: dict[str, list[str]] = {}
    for other in other_words[:MAX_SPELLED_WORDS] if unmatched else ():
        # An index by letter pairs: only words with a common pair can be alike.
        for pair in _letter_pairs(other):
            by_pair.setdefault(pair, []).append(other)
    result = float(len(words) - sum(word not in other_set for word in words))
    for word in unmatched:
        near = set().union(*(by_pair.get(pair, ()) for pair in _letter_pairs(word)))
        result += max((compute_word_likeness(word, other) for other in near), default=0.0)
    return result / len(words)


@lru_cache(maxsize=65_536)
def compute_word_likeness(first: str, second: str) -> float:
    """Return 1 for equal words, the share of common letter pairs for two spellings, else 0.

    This is Dice's coefficient of the words' pairs of neighbouring letters, ends included, if it is
    0.5 or more. A word with a digit only equals itself: 1994 is not 1995. So does a word of more
    than :data:`MAX_WORD_LETTERS` letters.
    """
    if first == second:
        return 1.0
    a, b = _letter_pairs(first), _letter_pairs(second)
    if 3 * min(len(a), len(b)) < max(len(a), len(b)):  # the coefficient is below 0.5
        return 0.0
    dice = 2 * len(a & b) / (len(a) + len(b)) if a else 0.0
    return dice if dice >= MIN_WORD_LIKENESS else 0.0


@lru_cache(maxsize=16_384)
def _letter_pairs(word: str) -> frozenset[str]:
    """Return the pairs of letters of a word; none if it only equals itself."""
    if len(word) > MAX_WORD_LETTERS or any(character.isdigit() for character in word):
        return frozenset()
    # Marks at both ends, so that the first and the last letter count like the others.
    ended = f"^{word}$"
    return frozenset(ended[i : i + 2] for i in range(len(ended) - 1))
