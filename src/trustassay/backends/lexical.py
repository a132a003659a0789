"""``lexical``: entailment guessed from shared words, numbers and negation, without a model.

It does not use meaning: it rates a paraphrase as unsupported, and the same words in a wrong order
as supported. ``docs/models/entailers.md`` reports its agreement with human labels.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trustassay.capabilities import BatchLimits, Probabilities
from trustassay.text.words import content_words, is_negation, plain_words

STEEPNESS = 7.3
HALFWAY = 0.63
MISSING_NUMBER = 1.4
NEGATION_DIFFERS = 0.6
"""Weights of the logistic function, as ``python -m benchmarks.entailers --fit`` gives them."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")


class Overlap(NamedTuple):
    """The features of a premise and a hypothesis.

    containment: share of the hypothesis's content words that are in the premise, 0..1; 1 for a
        hypothesis without any.
    missing_number: the hypothesis has a number that the premise lacks.
    negation_differs: only one of the hypothesis and the premise's nearest sentence is negated.
    """

    containment: float
    missing_number: bool
    negation_differs: bool


class _Words(NamedTuple):
    content: frozenset[str]
    numbers: frozenset[str]
    negated: bool


class LexicalEntailer:
    """Word containment with numbers and negation, on a logistic scale; needs nothing.

    Probability of entailment: 1 / (1 + exp(-z)) with z = 7.3 (containment - 0.63), less for a
    missing number and for a negation that differs. The remainder is neutral, or half of it
    contradiction where a number is missing or a negation differs.
    """

    name = "lexical"
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis)."""
        rows = np.empty((len(pairs), 3))
        for row, (premise, hypothesis) in zip(rows, pairs, strict=True):
            result = overlap(premise, hypothesis)
            entailment = 1 / (1 + math.exp(-logit(result)))
            suspicious = result.missing_number or result.negation_differs
            contradiction = (1 - entailment) / 2 if suspicious else 0.0
            row[:] = entailment, 1 - entailment - contradiction, contradiction
        return rows


def logit(found: Overlap) -> float:
    """Return the log-odds of entailment."""
    return (
        STEEPNESS * (found.containment - HALFWAY)
        - MISSING_NUMBER * found.missing_number
        - NEGATION_DIFFERS * found.negation_differs
    )


def overlap(premise: str, hypothesis: str) -> Overlap:
    """Compare a premise and a hypothesis word by word."""
    sentences = _sentences(premise)
    wanted = _words(hypothesis)
    content = frozenset().union(*(s.content for s in sentences))
    numbers = frozenset().union(*(s.numbers for s in sentences))
    nearest = max(sentences, key=lambda s: len(s.content & wanted.content), default=None)
    return Overlap(
        containment=(
            len(wanted.content & content) / len(wanted.content) if wanted.content else 1.0
        ),
        missing_number=not wanted.numbers <= numbers,
        negation_differs=nearest is not None and nearest.negated != wanted.negated,
    )


@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[_Words, ...]:
    return tuple(_words(sentence) for sentence in _SENTENCE.split(text) if sentence)


@lru_cache(maxsize=1024)
def _words(text: str) -> _Words:
    content = frozenset(content_words(text))
    numbers = frozenset(word for word in content if word[0].isdigit())
    return _Words(content, numbers, sum(map(is_negation, plain_words(text))) % 2 == 1)
