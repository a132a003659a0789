"""Variance components of ratings: of the answer, the rater, their interaction, and the repeat.

Two-way crossed random effects with interaction (Searle, Casella & McCulloch 1992, section 5.3):

    y_ijk = mu + a_i + b_j + (ab)_ij + e_ijk

with i an answer, j a rater, k a repeat; a cell (i, j) may contain any number of ratings, or none.
The variances of a, b, ab and e are estimated by Henderson's method I (Henderson 1953): sums of
squares are set equal to their expected values. This is unbiased whatever is missing, needs no
iteration and no normal distribution, and on balanced data it equals the analysis of variance.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places

ANSWER, RATER, BOTH, REPEAT = COMPONENTS = ("answer", "rater", "answer x rater", "repeat")
UNSEPARATED = "answer x rater and repeat"
"""The last two components together, where no rater rated an answer twice."""
MAX_WEIGHTS = 1 << 20
"""Entries of one matrix of weights of answers."""
MAX_LEFT_OUT_GROUPS = 1000
"""Units that the jackknife leaves out in turn; more units are put into this many groups."""
MAX_CONDITION = 1e10
"""The condition number beyond which the equations do not separate the components."""


class NotEstimableError(ValueError):
    """The ratings do not separate the components; the message says what is missing."""


@dataclass(frozen=True)
class RatingCells:
    """Sums over the ratings of each answer (row) by each rater (column)."""

    counts: Floats
    """The number of ratings in each cell, shape (answers, raters)."""
    sums: Floats
    """The sum of the ratings of each cell minus their overall mean, shape (answers, raters)."""
    squares: Floats
    """The sum of the squared ratings of each answer, shape (answers,)."""
    rows: Places
    """The places of these answers among all that were passed in, shape (answers,)."""
    names: tuple[str, ...]
    """The components that these ratings can separate."""

    def components(self, weights: ArrayLike | None = None) -> Floats:
        """Estimate the variance components, shape (draws, components); they may lie below 0.

        Args:
            weights: how often each answer counts in each draw, shape (draws, answers); by default a
                single draw in which each counts once.

        A draw that does not separate the components is NaN.

        Raises:
            NotEstimableError: the ratings without weights do not separate them.
        """
        all_once = np.ones((1, len(self.counts)))
        w = all_once if weights is None else np.asarray(weights, dtype=float)
        matrix, squares = self._equations(w)
        indices = [COMPONENTS.index(BOTH if name == UNSEPARATED else name) for name in self.names]
        # Components that the ratings cannot separate are dropped from the equations.
        matrix, squares = matrix[:, indices][:, :, indices], squares[:, indices]
        result = np.full(squares.shape, np.nan)
        is_solvable = (w.sum(axis=1) > 0) & (_condition(matrix) < MAX_CONDITION)
        result[is_solvable] = np.linalg.solve(matrix[is_solvable], squares[is_solvable][..., None])[
            ..., 0
        ]
        if weights is None and not is_solvable[0]:
            raise NotEstimableError(
                "too few answers were rated by two raters to separate the effects of both"
            )
        return result

    def _equations(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the equations of Henderson's method I.

        These are the coefficients of the four variances in the expected sums of squares of answer,
        rater, interaction and repeat, shape (draws, 4, 4), and the sums of squares, shape (draws,
        4).
        """
        n, s = self.counts, self.sums
        of_answer, sum_of_answer = n.sum(axis=1), s.sum(axis=1)
        filled = np.maximum(n, 1.0)  # an empty cell has a sum of 0
        total = np.maximum(w @ of_answer, 1.0)  # a draw without any answer has sums of 0
        by_rater, sum_by_rater = w @ n, w @ s
        has_ratings = by_rater > 0
        by_rater = np.where(has_ratings, by_rater, 1.0)
        # Uncorrected sums of squares, T in Searle et al.
        t_cell = w @ (s**2 / filled).sum(axis=1)
        t_answer = w @ (sum_of_answer**2 / of_answer)
        t_rater = (sum_by_rater**2 / by_rater).sum(axis=1)
        t_mean = (w @ sum_of_answer) ** 2 / total
        # Their coefficients: of the variances of answers, raters and cells, N in their own.
        in_answer = w @ ((n**2).sum(axis=1) / of_answer)
        in_rater = ((w @ n**2) / by_rater).sum(axis=1)
        answers_in_mean = w @ of_answer**2 / total
        raters_in_mean = np.where(has_ratings, by_rater**2, 0.0).sum(axis=1) / total
        cells_in_mean = w @ (n**2).sum(axis=1) / total
        answers, raters, cells_ = w.sum(axis=1), has_ratings.sum(axis=1), w @ (n > 0).sum(axis=1)
        zero = np.zeros(len(w))
        t = np.stack([t_mean, t_answer, t_rater, t_cell, w @ self.squares])
        of_a = np.stack([answers_in_mean, total, in_rater, total, total])
        of_b = np.stack([raters_in_mean, in_answer, total, total, total])
        of_ab = np.stack([cells_in_mean, in_answer, in_rater, total, total])
        of_e = np.stack([zero + 1, answers, raters, cells_, total])
        # The corrected sums of squares as differences of the uncorrected ones: rows are answer,
        # rater, interaction and repeat; columns are the mean, answers, raters, cells and single
        # ratings.
        contrasts = np.array(
            [[-1, 1, 0, 0, 0], [-1, 0, 1, 0, 0], [1, -1, -1, 1, 0], [0, 0, 0, -1, 1]], dtype=float
        )
        matrix = np.stack(
            [contrasts @ coefficients for coefficients in (of_a, of_b, of_ab, of_e)], axis=1
        )
        return matrix.transpose(2, 0, 1), (contrasts @ t).T


def build_cells(
    answers: Sequence[int], raters: Sequence[int], values: ArrayLike, size: tuple[int, int]
) -> RatingCells:
    """Sum ratings by answer and rater.

    Args:
        answers, raters: the place of the answer and of the rater of each rating, shape (ratings,).
        values: the ratings, shape (ratings,).
        size: the numbers of answers and raters; answers without a rating do not count.

    Raises:
        NotEstimableError: there are fewer than two answers, or one rating of each answer.
    """
    y = np.asarray(values, dtype=float)
    # Variances do not depend on the mean, and small numbers keep the squares exact.
    y = y - y.mean() if len(y) else y
    i, j = np.asarray(answers, dtype=int), np.asarray(raters, dtype=int)
    counts, sums, squares = np.zeros(size), np.zeros(size), np.zeros(size[0])
    np.add.at(counts, (i, j), 1.0)
    np.add.at(sums, (i, j), y)
    # An overflow is reported in words below.
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
        names = (ANSWER, RATER, UNSEPARATED)
    return RatingCells(counts[rows], sums[rows], squares[rows], rows, names)


def percent_shares(components: ArrayLike) -> Floats:
    """Return each component as a percentage of their sum, of the same shape, components last.

    Components below 0 count as 0; if all are 0 (all ratings are the same), the result is NaN.
    """
    clipped: Floats = np.maximum(np.asarray(components, dtype=float), 0.0)
    total: Floats = clipped.sum(axis=-1, keepdims=True)
    result: Floats = np.full(clipped.shape, np.nan)
    np.divide(100.0 * clipped, total, out=result, where=total > 0)
    return result


def leave_one_out_weights(units: Places, groups: int = MAX_LEFT_OUT_GROUPS) -> Iterator[Floats]:
    """Yield weights of answers that leave out each unit in turn, in pieces of shape (b, n).

    Args:
        units: the unit of each answer, from 0 without gaps, shape (n,).
        groups: the most units that are left out; more units are put into this many groups.
    """
    group_of_answer = np.asarray(units, dtype=np.int64) % groups
    count = int(group_of_answer.max(initial=-1)) + 1
    at_once = max(1, MAX_WEIGHTS // max(len(group_of_answer), 1))
    for start in range(0, count, at_once):
        left_out = np.arange(start, min(start + at_once, count))
        yield (group_of_answer != left_out[:, None]).astype(np.float64)


def _condition(matrix: Floats) -> Floats:
    """Return the condition numbers of equations after scaling their rows to the same size."""
    largest = np.abs(matrix).max(axis=2, keepdims=True)
    scaled = np.divide(matrix, largest, out=np.zeros_like(matrix), where=largest > 0)
    return np.asarray(np.linalg.cond(scaled), dtype=np.float64)
