"""The formulas: overlap of words, greedy matching of vectors, mean log-probability.

Tokens are words after SQuAD's normalisation (Rajpurkar et al. 2016) unless said otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Aggregate",
    "Overlap",
    "aggregated",
    "contains",
    "greedy_match",
    "harmonic_mean",
    "mean_log_probability",
    "novel",
    "token_overlap",
]

Aggregate = Literal["best", "first", "mean"]


class Overlap(NamedTuple):
    """Precision (of the answer), recall (of the gold answer) and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def harmonic_mean(precision: float, recall: float) -> float:
    """Return 2 P R / (P + R); 0 where one of the two is not above 0, as a cosine may be."""
    if precision <= 0 or recall <= 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


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


def greedy_match(
    answer: ArrayLike,
    gold: ArrayLike,
    answer_special: Collection[int] = (),
    gold_special: Collection[int] = (),
) -> Overlap:
    """Return BERTScore's precision, recall and F of the vectors of two texts' tokens.

    Each token is matched with the one of the other text whose cosine is largest; precision is the
    mean over the answer's tokens, recall over the gold answer's (Zhang et al. 2020, section 3,
    without idf). Special tokens can be matched with, and count in no mean, as in the authors'
    program.

    Args:
        answer, gold: shapes (m, d) and (n, d). answer_special, gold_special: their rows that are
            special tokens.

    All three are 0 where a text has no token of its own. A zero vector has the cosine 0.
    """
    cosines = np.clip(_unit(answer) @ _unit(gold).T, -1.0, 1.0)
    ours = [i for i in range(cosines.shape[0]) if i not in answer_special]
    theirs = [i for i in range(cosines.shape[1]) if i not in gold_special]
    if not ours or not theirs:
        return Overlap(0.0, 0.0, 0.0)
    precision = float(cosines.max(axis=1)[ours].mean())
    recall = float(cosines.max(axis=0)[theirs].mean())
    return Overlap(precision, recall, harmonic_mean(precision, recall))


def _unit(rows: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array / np.where(lengths > 0, lengths, 1.0))


def mean_log_probability(tokens: Sequence[float]) -> float:
    """Return the mean of tokens' natural log-probabilities, log p(y | x) / |y|.

    This is BARTScore (Yuan et al. 2021, eq. 2) and GPTScore (Fu et al. 2023, eq. 1) with the same
    weight 1 / |y| for each token.

    Raises:
        ValueError: there is no token.
    """
    if not tokens:
        raise ValueError("a text without tokens has no mean log-probability")
    return math.fsum(tokens) / len(tokens)


def aggregated(values: Sequence[float], how: Aggregate) -> float:
    """Return one number from those of the gold answers, of which there is at least one."""
    if how == "first":
        return values[0]
    return max(values) if how == "best" else math.fsum(values) / len(values)
