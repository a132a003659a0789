"""The formulas: overlap of words, mean log-probability. Matched vectors: ``token_matching``.

Tokens are words after SQuAD's normalisation (Rajpurkar et al. 2016) unless said otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from trustassay.token_matching import Overlap, harmonic_mean

Aggregate = Literal["best", "first", "mean"]


def token_overlap(answer: Sequence[str], gold: Sequence[str]) -> Overlap:
    """Return the overlap of two lists of tokens, each counted as often as both have it (SQuAD).

    All three are 1 where both lists are empty, and 0 where one is.
    """
    if not answer or not gold:
        same = float(len(answer) == len(gold))
        return Overlap(same, same, same)
    common = (Counter(answer) & Counter(gold)).total()
    precision, recall = common / len(answer), common / len(gold)
    return Overlap(precision, recall, harmonic_mean(precision, recall))


def contains(answer: Sequence[str], gold: Sequence[str]) -> bool:
    """Whether the gold tokens stand in the answer's, in a row; no tokens stand nowhere."""
    n = len(gold)
    return n > 0 and any(answer[i : i + n] == gold for i in range(len(answer) - n + 1))


def novel(answer: Sequence[str], question: Collection[str]) -> Sequence[str]:
    """Return the answer's tokens that the question lacks; all of them where none is left."""
    return [token for token in answer if token not in question] or answer


def mean_log_probability(tokens: Sequence[float]) -> float:
    """Return the mean of tokens' natural log-probabilities, log p(y | x) / |y|.

    This is BARTScore (Yuan et al. 2021, eq. 2) and GPTScore (Fu et al. 2023, eq. 1) with the same
    weight 1 / |y| for each token. Without a token it raises ValueError.
    """
    if not tokens:
        raise ValueError("a text without tokens has no mean log-probability")
    return math.fsum(tokens) / len(tokens)


def aggregated(values: Sequence[float], how: Aggregate) -> float:
    """Return one number from those of the gold answers, of which there is at least one."""
    if how == "first":
        return values[0]
    return max(values) if how == "best" else math.fsum(values) / len(values)
