"""``lexical``: entailment estimated from shared words, numbers and negation, without a model.

It ignores meaning: it rates a paraphrase as unsupported, and the same words in a wrong order as
supported. ``docs/models/entailers.md`` reports its agreement with human labels.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trustassay.core.capabilities import BatchLimits, Probabilities
from trustassay.text.words import content_words, is_negation, plain_words

STEEPNESS = 7.3
HALFWAY = 0.63
MISSING_NUMBER_WEIGHT = 1.4
NEGATION_WEIGHT = 0.6
"""Weights of the logistic function, as ``python -m lab.benchmarks.entailers --fit`` gives them."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class WordOverlap(NamedTuple):
    """The features of a premise and a hypothesis."""

    containment: float
    """Share of the hypothesis's content words that are in the premise, 0..1; 1 if it has
    none.
    """
    missing_number: bool
    """Whether the hypothesis has a number that the premise lacks."""
    negation_differs: bool
    """Whether only one of the hypothesis and the nearest sentence is negated."""


class _SentenceWords(NamedTuple):
    """The words of one sentence."""

    content: frozenset[str]
    """Its content words."""
    numbers: frozenset[str]
    """Those of them that begin with a digit."""
    negated: bool
    """Whether it has an odd number of negations."""


class LexicalEntailer:
    """Word containment with numbers and negation, on a logistic scale; needs no model.

    Probability of entailment: 1 / (1 + exp(-z)) with z = 7.3 (containment - 0.63), less for a
    missing number and for a negation that differs. The remainder is neutral, or half of it
    contradiction if a number is missing or a negation differs.
    """

    name = "lexical"
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        rows = np.empty((len(pairs), 3))
        for row, (premise, hypothesis) in zip(rows, pairs, strict=True):
            result = compute_overlap(premise, hypothesis)
            entailment = 1 / (1 + math.exp(-compute_log_odds(result)))
            # Without meaning it is open whether they contradict, so half is given to each.
            suspicious = result.missing_number or result.negation_differs
            contradiction = (1 - entailment) / 2 if suspicious else 0.0
            row[:] = entailment, 1 - entailment - contradiction, contradiction
        return rows


def compute_log_odds(features: WordOverlap) -> float:
    """Return the log-odds of entailment."""
    return (
        STEEPNESS * (features.containment - HALFWAY)
        - MISSING_NUMBER_WEIGHT * features.missing_number
        - NEGATION_WEIGHT * features.negation_differs
    )


def compute_overlap(premise: str, hypothesis: str) -> WordOverlap:
    """Compare a premise and a hypothesis word by word."""
    sentences = _split_sentences(premise)
    wanted = _split_words(hypothesis)
    # Words and numbers may come from any sentence of the premise.
    content = frozenset().union(*(s.content for s in sentences))
    numbers = frozenset().union(*(s.numbers for s in sentences))
    # The sentence with the most shared words is the one whose negation is compared.
    nearest = max(sentences, key=lambda s: len(s.content & wanted.content), default=None)
    return WordOverlap(
        containment=(
            len(wanted.content & content) / len(wanted.content) if wanted.content else 1.0
        ),
        missing_number=not wanted.numbers <= numbers,
        negation_differs=nearest is not None and nearest.negated != wanted.negated,
    )


@lru_cache(maxsize=1024)
def _split_sentences(text: str) -> tuple[_SentenceWords, ...]:
    """Return the words of each sentence."""
    return tuple(_split_words(sentence) for sentence in _SENTENCE.split(text) if sentence)


@lru_cache(maxsize=1024)
def _split_words(text: str) -> _SentenceWords:
    """Return the words of one sentence."""
    content = frozenset(content_words(text))
    numbers = frozenset(word for word in content if word[0].isdigit())
    # Two negations cancel each other.
    return _SentenceWords(content, numbers, sum(map(is_negation, plain_words(text))) % 2 == 1)
