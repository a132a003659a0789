"""Greedy matching of two texts' tokens by their vectors: BERTScore (Zhang et al. 2020)."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class MatchScores(NamedTuple):
    """How well the tokens of an answer and a gold answer match."""

    precision: float
    """Of the answer's tokens."""
    recall: float
    """Of the gold answer's tokens."""
    f1: float
    """Their harmonic mean."""


def harmonic_mean(precision: float, recall: float) -> float:
    """Return 2 P R / (P + R); 0 if one of the two is not above 0, as a cosine may be."""
    if precision <= 0 or recall <= 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def greedy_match(
    answer: ArrayLike,
    gold: ArrayLike,
    answer_special: Collection[int] = (),
    gold_special: Collection[int] = (),
) -> MatchScores:
    """Return BERTScore's precision, recall and F of two texts, from the vectors of their tokens.

    Each token is matched with the token of the other text that has the largest cosine; precision is
    the mean over the answer's tokens, recall over the gold answer's (Zhang et al. 2020, section 3,
    without idf). As in the authors' program, special tokens can be matched with, but count in no
    mean.

    All three are 0 if a text has no token of its own. A zero vector has the cosine 0.

    Args:
        answer, gold: shapes (m, d) and (n, d).
        answer_special, gold_special: indices of their rows that are special tokens.
    """
    # Rounding can put the cosine of equal vectors a little above 1.
    cosines = np.clip(_scale_to_unit(answer) @ _scale_to_unit(gold).T, -1.0, 1.0)
    ours = [i for i in range(cosines.shape[0]) if i not in answer_special]
    theirs = [i for i in range(cosines.shape[1]) if i not in gold_special]
    if not ours or not theirs:
        return MatchScores(0.0, 0.0, 0.0)
    precision = float(cosines.max(axis=1)[ours].mean())
    recall = float(cosines.max(axis=0)[theirs].mean())
    return MatchScores(precision, recall, harmonic_mean(precision, recall))


def _scale_to_unit(rows: ArrayLike) -> NDArray[np.float64]:
    """Return the rows scaled to length 1; a zero row stays zero."""
    array = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array / np.where(lengths > 0, lengths, 1.0))
