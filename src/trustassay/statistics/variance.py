"""How much of the variance of ratings is the answer's, the rater's, both together, or the repeat's.

Two-way crossed random effects with interaction (Searle, Casella & McCulloch 1992, section 5.3):

    y_ijk = mu + a_i + b_j + (ab)_ij + e_ijk

with i an answer, j a rater, k a repeat; any cell (i, j) may be empty or hold any number of ratings.
The variances of a, b, ab and e are those that Henderson's method I gives (Henderson 1953): sums of
squares are set equal to their expected values. That is unbiased whatever is missing, needs no
iteration and no normal distribution, and on balanced data it is the analysis of variance.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places

ANSWER, RATER, BOTH, REPEAT = COMPONENTS = ("answer", "rater", "answer x rater", "repeat")
REST = "answer x rater and repeat"
"""The last two together, where no rater rated an answer twice."""
WEIGHTS_AT_ONCE = 1 << 20
"""Weights of answers that are held at once."""
MOST_LEFT_OUT = 1000
"""Units that are left out in turn at most."""
SINGULAR = 1e10
"""Condition of the equations beyond which they do not tell the components apart."""


class NotEstimableError(ValueError):
    """The ratings do not tell the components apart; the text says what is missing."""


@dataclass(frozen=True)
class Cells:
    """What the estimate needs of ratings, an answer a row.

    counts, sums: shape (answers, raters), of the ratings of each cell, less their overall mean.
    squares: shape (answers,), the sum of the squared ratings of each answer.
    rows: shape (answers,), the places of these answers among those that were given.
    names: of the components that these ratings can tell apart.
    """

    counts: Floats
    sums: Floats
    squares: Floats
    rows: Places
    names: tuple[str, ...]

    def components(self, weights: ArrayLike | None = None) -> Floats:
        """Return the components, shape (draws, components); they may lie below 0.

        Args:
            weights: shape (draws, answers), how often each answer counts; without it each once, as
                a single draw.

        A draw that does not tell the components apart is NaN.

        Raises:
            NotEstimableError: ratings as they are do not.
        """
        whole = np.ones((1, len(self.counts)))
        w = whole if weights is None else np.asarray(weights, dtype=float)
        matrix, squares = self._equations(w)
        kept = [COMPONENTS.index(BOTH if name == REST else name) for name in self.names]
        matrix, squares = matrix[:, kept][:, :, kept], squares[:, kept]
        result = np.full(squares.shape, np.nan)
        told = (w.sum(axis=1) > 0) & (_condition(matrix) < SINGULAR)
        result[told] = np.linalg.solve(matrix[told], squares[told][..., None])[..., 0]
        if weights is None and not told[0]:
            raise NotEstimableError(
                "too few answers were rated by two raters to separate the effects of both"
            )
        return result

    def _equations(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients of the four variances in the expected sums of squares of answer,
        rater, interaction and rest, shape (draws, 4, 4), and those sums, shape (draws, 4).
        """
        n, s = self.counts, self.sums
        of_answer, sum_of_answer = n.sum(axis=1), s.sum(axis=1)
        filled = np.maximum(n, 1.0)  # an empty cell has a sum of 0
        total = np.maximum(w @ of_answer, 1.0)  # a draw without any answer has sums of 0
        by_rater, sum_by_rater = w @ n, w @ s
        seen = by_rater > 0
        by_rater = np.where(seen, by_rater, 1.0)
        # Uncorrected sums of squares, T in Searle et al.
        t_cell = w @ (s**2 / filled).sum(axis=1)
        t_answer = w @ (sum_of_answer**2 / of_answer)
        t_rater = (sum_by_rater**2 / by_rater).sum(axis=1)
        t_mean = (w @ sum_of_answer) ** 2 / total
        # Their coefficients: of the variances of answers, raters and cells, N in their own.
        in_answer = w @ ((n**2).sum(axis=1) / of_answer)
        in_rater = ((w @ n**2) / by_rater).sum(axis=1)
        answers_in_mean = w @ of_answer**2 / total
        raters_in_mean = np.where(seen, by_rater**2, 0.0).sum(axis=1) / total
        cells_in_mean = w @ (n**2).sum(axis=1) / total
        answers, raters, cells_ = w.sum(axis=1), seen.sum(axis=1), w @ (n > 0).sum(axis=1)
        zero = np.zeros(len(w))
        t = np.stack([t_mean, t_answer, t_rater, t_cell, w @ self.squares])
        of_a = np.stack([answers_in_mean, total, in_rater, total, total])
        of_b = np.stack([raters_in_mean, in_answer, total, total, total])
        of_ab = np.stack([cells_in_mean, in_answer, in_rater, total, total])
        of_e = np.stack([zero + 1, answers, raters, cells_, total])
        contrasts = np.array(
            [[-1, 1, 0, 0, 0], [-1, 0, 1, 0, 0], [1, -1, -1, 1, 0], [0, 0, 0, -1, 1]], dtype=float
        )
        matrix = np.stack([contrasts @ one for one in (of_a, of_b, of_ab, of_e)], axis=1)
        return matrix.transpose(2, 0, 1), (contrasts @ t).T


def cells(
    answers: Sequence[int], raters: Sequence[int], values: ArrayLike, size: tuple[int, int]
) -> Cells:
    """Gather ratings, given as places of answers and raters and the numbers, shape (ratings,).

    Args:
        size: how many answers and raters there are; answers without a rating do not count.

    Raises:
        NotEstimableError: there are no two answers, or nothing that differs within an answer.
    """
    y = np.asarray(values, dtype=float)
    y = y - y.mean() if len(y) else y
    i, j = np.asarray(answers, dtype=int), np.asarray(raters, dtype=int)
    counts, sums, squares = np.zeros(size), np.zeros(size), np.zeros(size[0])
    np.add.at(counts, (i, j), 1.0)
    np.add.at(sums, (i, j), y)
    with np.errstate(over="ignore"):
        np.add.at(squares, i, y**2)
    rows = np.flatnonzero(counts.sum(axis=1) > 0)
    if len(rows) < 2:
        raise NotEstimableError("fewer than two answers were rated")
    if not math.isfinite(float(squares.sum())):
        raise NotEstimableError("the ratings are too large to be squared")
    several, repeated = (counts.sum(axis=0) > 0).sum() > 1, bool((counts > 1).any())
    names: tuple[str, ...] = COMPONENTS
    if not (several or repeated):
        raise NotEstimableError("one rater rated each answer once")
    if not several:
        names = (ANSWER, REPEAT)
    elif not repeated:
        names = (ANSWER, RATER, REST)
    return Cells(counts[rows], sums[rows], squares[rows], rows, names)


def shares(components: ArrayLike) -> Floats:
    """Return what part of their sum each component is, in %, shape as given, components last.

    Components below 0 count as 0; all of them 0 (ratings that are all the same) gives NaN.
    """
    kept: Floats = np.maximum(np.asarray(components, dtype=float), 0.0)
    total: Floats = kept.sum(axis=-1, keepdims=True)
    result: Floats = np.full(kept.shape, np.nan)
    np.divide(100.0 * kept, total, out=result, where=total > 0)
    return result


def weights_without(units: Places, groups: int = MOST_LEFT_OUT) -> Iterator[Floats]:
    """Yield weights of answers, shape (some, n): 0 for those of one unit, else 1, for each unit.

    Args:
        units: the number of each answer's unit, from 0 without gaps, shape (n,); of more units than
            ``groups`` as many groups of units are left out in turn.
    """
    own = np.asarray(units, dtype=np.int64) % groups
    count = int(own.max(initial=-1)) + 1
    at_once = max(1, WEIGHTS_AT_ONCE // max(len(own), 1))
    for start in range(0, count, at_once):
        left_out = np.arange(start, min(start + at_once, count))
        yield (own != left_out[:, None]).astype(np.float64)


def _condition(matrix: Floats) -> Floats:
    """Return the condition numbers of equations whose rows are brought to the same size."""
    largest = np.abs(matrix).max(axis=2, keepdims=True)
    scaled = np.divide(matrix, largest, out=np.zeros_like(matrix), where=largest > 0)
    return np.asarray(np.linalg.cond(scaled), dtype=np.float64)
