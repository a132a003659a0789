"""Similarities that know the question: do two answers to it say the same?

Two answers to one question share the question's words whatever they say. What tells them apart is
what they add. ``docs/fewl.md`` says what else was tried.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import BatchLimits, Entailer
from trustassay.words import content_words, plain_words

__all__ = ["AgreementSimilarity", "NovelWordsSimilarity", "novel_agreement", "word_likeness"]

Triples = Sequence[tuple[str, str, str]]
Scores = NDArray[np.float64]
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
        found = self._entailer.scores(list(both)) if both else np.zeros((0, 3))
        return np.array(
            [
                (novel_agreement(*triple) + self._entailed(a, b, both, found)) / 2
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
    found = float(len(words) - sum(word not in known for word in words))
    for word in odd:
        near = set().union(*(by_pair.get(pair, ()) for pair in _letter_pairs(word)))
        found += max((word_likeness(word, other) for other in near), default=0.0)
    return found / len(words)


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
