"""Measures of how well scores agree with labels (AUROC, correlations, ...), also for resamples.

All functions take two samples of equal length n. A measure of them (:func:`pearson`) is ``None``
where it is not defined: only one class, a constant score, no answers.

A weighted measure (:func:`weighted_pearson`) returns a function of weights. The weights say how
often each answer counts, whole numbers of shape (B, n); the function returns the measure of each
row, shape (B,), NaN where a row does not define it. An answer of weight k counts like k equal
answers: a row of ones gives the measure of the answers as they are, and rows of
:mod:`trustassay.statistics.resampling` give resamples. Whatever depends only on the scores, such as
their order, is computed once.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.calibration import RELIABILITY_BINS, assign_bins
from trustassay.statistics.distributions import incomplete_beta

Measure = Callable[[ArrayLike, ArrayLike], float | None]
WeightedFigure = Callable[[Floats], Floats]
WeightedMeasure = Callable[[ArrayLike, ArrayLike], WeightedFigure]

MAX_LABELS_TO_SORT = 8
"""The most different labels with which tau-b sorts; with more it uses a matrix of all pairs."""
MAX_ANSWERS_FOR_MATRIX = 4000
"""The most answers for a matrix of all pairs; with more tau-b sorts."""
ROUNDING_SHARE = 1e-12
"""Variances below this share of the sum of squares are rounding errors."""


def value_of(measure: WeightedMeasure, scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return a measure of the answers as they are; ``None`` where it is not defined."""
    x, _ = _as_pair(scores, labels)
    value = float(measure(scores, labels)(np.ones((1, len(x))))[0])
    return None if math.isnan(value) else value


def ranks(values: ArrayLike) -> Floats:
    """Return the ranks of the values, from 1, shape (n,); ties get the mean of their ranks."""
    array = np.asarray(values, dtype=np.float64)
    _, places, counts = np.unique(array, return_inverse=True, return_counts=True)
    # The largest rank of each group of ties is the number of values up to it.
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)


def weighted_auroc(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """AUROC: the share of pairs of a positive and a negative in which the positive scores higher.

    Ties count half; labels above 0 are positive.
    """
    x, y = _as_pair(scores, labels)
    ties = _Ties(x)
    positive = (y > 0)[ties.order]

    def figure(weights: Floats) -> Floats:
        w = weights[:, ties.order]
        of_positives = ties.totals(w * positive)
        of_negatives = ties.totals(w * ~positive)
        # negatives below each group of equal scores, and half of those within it
        below = np.cumsum(of_negatives, axis=1) - of_negatives / 2
        p, n = of_positives.sum(axis=1), of_negatives.sum(axis=1)
        return _divide((of_positives * below).sum(axis=1), p * n)

    return figure


def weighted_average_precision(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Average precision: the area under the curve of precision by recall, as steps.

    It is sum (R_k - R_{k-1}) P_k over the different scores from the highest down, where R_k and P_k
    are recall and precision of all answers with this score or a higher one (Davis and Goadrich
    2006; without interpolation). Labels above 0 are positive.
    """
    x, y = _as_pair(scores, labels)
    ties = _Ties(-x)
    positive = (y > 0)[ties.order]

    def figure(weights: Floats) -> Floats:
        w = weights[:, ties.order]
        of_positives, of_all = ties.totals(w * positive), ties.totals(w)
        result = np.cumsum(of_positives, axis=1)
        precision = _divide(result, np.cumsum(of_all, axis=1), 0.0)
        p, every = result[:, -1:].sum(axis=1), of_all.sum(axis=1)
        # A resample that drew only one class has no such curve: its denominator becomes 0, hence
        # NaN.
        return _divide((of_positives * precision).sum(axis=1), np.where(p < every, p, 0.0))

    return figure


def weighted_prediction_rejection_ratio(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Prediction rejection ratio: the gain of rejecting by score over that of the best order.

    It is at most 1, and 0 for a random order (Malinin and Gales 2021; in the form of Vashurin et
    al. 2025). Answers are rejected from the lowest score up. With Q(k) the mean label of the k
    answers that remain, the area of an order is the sum of Q(k) - Q(n) over k = 1 ... n. The ratio
    is the area of the order by scores over that of the order by the labels themselves. Equal scores
    count with the mean over all their orders. Not defined where all labels are the same.
    """
    x, y = _as_pair(scores, labels)
    # Centring leaves the areas as they are, and keeps the differences of large sums exact.
    centred = y - y.mean() if len(y) else y
    by_scores, best = _RejectionOrder(-x, centred), _RejectionOrder(-y, centred)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n.max(initial=0) + 1))])
        mean = _divide(weights @ centred, n)
        total = by_scores.area(weights, harmonic) - n * mean
        # the area of the best order: labels themselves as scores
        most = best.area(weights, harmonic) - n * mean
        scale = weights @ np.abs(centred)
        return _divide(total, np.where(most > ROUNDING_SHARE * scale, most, 0.0))

    return figure


def weighted_pearson(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Pearson's r: the covariance of two samples over both standard deviations."""
    x, y = (_centre(values) for values in _as_pair(scores, labels))
    # One product with the weights gives all sums that r needs, for all resamples at once.
    table = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)

    def figure(weights: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = (weights @ table).T
        return _correlation(n, (sx, sy), (sxx, syy), sxy)

    return figure


def weighted_spearman(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Spearman's rho: Pearson's r of the ranks; ties get the mean of their ranks."""
    x, y = _as_pair(scores, labels)
    of_x, of_y = _Ties(x), _Ties(y)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        a, b = of_x.ranks(weights, n), of_y.ranks(weights, n)
        # Ranks are centred, so sums of products are covariances.
        counted_a, counted_b = weights * a, weights * b
        below = _products(counted_a, a) * _products(counted_b, b)
        return np.clip(_divide(_products(counted_a, b), np.sqrt(below)), -1.0, 1.0)

    return figure


def weighted_kendall_tau_b(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Kendall's tau-b (Kendall 1945).

    It is concordant minus discordant pairs, over the root of the product of the number of pairs
    that differ in the scores and the number that differ in the labels. With few different labels,
    or many answers, pairs are counted like the inversions of a sort, in n log2(number of labels)
    steps; otherwise by one product with the matrix of all pairs.
    """
    x, y = _as_pair(scores, labels)
    of_x, of_y = _Ties(x), _Ties(y)
    by_matrix = len(of_y.starts) > MAX_LABELS_TO_SORT and len(x) <= MAX_ANSWERS_FOR_MATRIX
    surplus = _surplus_by_matrix(x, y) if by_matrix else _surplus_by_sorting(x, y)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        # an answer of weight k counts as k answers, which are tied with one another
        pairs = n * (n - 1) / 2
        differ = (pairs - of_x.count_tied_pairs(weights)) * (pairs - of_y.count_tied_pairs(weights))
        return _divide(surplus(weights), np.sqrt(differ))

    return figure


def _surplus_by_matrix(x: Floats, y: Floats) -> WeightedFigure:
    """Return a function that counts concordant minus discordant pairs, by the sign of each pair."""
    signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    signs = signs.astype(np.float32)  # sums of fewer than 2^24 signs are exact

    def figure(weights: Floats) -> Floats:
        return _products((weights.astype(np.float32) @ signs).astype(np.float64), weights) / 2

    return figure


def _surplus_by_sorting(x: Floats, y: Floats) -> WeightedFigure:
    """Return a function that counts concordant minus discordant pairs, by sorting (Knight 1966).

    It is all pairs minus ties, minus twice the inversions of the labels in the order of the scores,
    counted one binary digit of the labels' ranks at a time.
    """
    codes, ranks = (np.unique(values, return_inverse=True)[1] for values in (x, y))
    # Among equal scores the labels rise, so ties of the scores cause no inversions.
    order = np.lexsort((ranks, x))
    of_x, of_y = _Ties(x), _Ties(y)
    of_both = _Ties((codes * (len(y) + 1) + ranks).astype(np.float64))
    digits = int(ranks.max(initial=0)).bit_length()
    levels = [_inversion_counter(ranks[order], digit) for digit in range(digits)]

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        # Pairs that are tied in both were subtracted twice, so they are added again.
        tied = (
            of_x.count_tied_pairs(weights)
            + of_y.count_tied_pairs(weights)
            - of_both.count_tied_pairs(weights)
        )
        w = weights[:, order]
        surplus = n * (n - 1) / 2 - tied
        for level in levels:
            surplus -= 2 * level(w)
        return np.asarray(surplus)

    return figure


def weighted_brier_score(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Brier score: the mean squared distance of probabilities from labels of 0 and 1 (1950)."""
    x, y = _as_pair(scores, labels)
    squares = (x - y) ** 2
    return lambda weights: _divide(weights @ squares, weights.sum(axis=1))


def weighted_calibration_error(scores: ArrayLike, labels: ArrayLike) -> WeightedFigure:
    """Expected calibration error, see :func:`~.calibration.calibration_error`."""
    x, y = _as_pair(scores, labels)
    gaps = np.zeros((len(x), RELIABILITY_BINS))
    gaps[np.arange(len(x)), assign_bins(x, RELIABILITY_BINS)] = x - y
    return lambda weights: _divide(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


WEIGHTED_MEASURES: Mapping[str, WeightedMeasure] = {
    "auroc": weighted_auroc,
    "auprc": weighted_average_precision,
    "prr": weighted_prediction_rejection_ratio,
    "kendall": weighted_kendall_tau_b,
    "spearman": weighted_spearman,
    "pearson": weighted_pearson,
    "brier": weighted_brier_score,
    "ece": weighted_calibration_error,
}
"""The measures by their short names."""
pearson, spearman, kendall_tau_b, auroc = (
    partial(value_of, measure)
    for measure in (weighted_pearson, weighted_spearman, weighted_kendall_tau_b, weighted_auroc)
)
"""Measures of two samples of one length; ``None`` where they are not defined."""
MEASURES: Mapping[str, Measure] = {
    "Pearson": pearson,
    "Spearman": spearman,
    "Kendall tau-b": kendall_tau_b,
    "AUROC": auroc,
}
"""The measures by the names under which they are published."""
BIASED = frozenset({"ece"})
"""Measures that are too large in small samples, because chance adds to them."""
BY_CLASS = frozenset({"auroc", "auprc", "prr"})
"""Measures whose uncertainty depends on the number of samples of the rarer class."""


def pearson_p_value(r: float, n: int) -> float:
    """Return the two-sided p-value of Pearson's r of n pairs: of Student's t with n - 2 degrees.

    t^2 = r^2 (n - 2) / (1 - r^2), so p = I_{1 - r^2}((n - 2) / 2, 1 / 2). With 2 pairs it is 1.
    """
    return 1.0 if n < 3 else incomplete_beta((n - 2) / 2, 0.5, 1 - r * r)


class _Ties:
    """Values in rising order, with equal values grouped."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        in_order = values[self.order]
        # a group begins at each value that differs from the one before it
        starts = np.append(True, in_order[1:] != in_order[:-1]) if len(values) else np.array([])
        self.starts = np.flatnonzero(starts)
        self.group = np.empty(len(values), dtype=np.int64)
        self.group[self.order] = np.cumsum(starts).astype(np.int64) - 1

    def totals(self, in_order: Floats) -> Floats:
        """Return the sums over each group; columns must be in this order. Shape (B, groups)."""
        if len(self.starts) == in_order.shape[1]:
            return in_order
        return np.asarray(np.add.reduceat(in_order, self.starts, axis=1))

    def count_tied_pairs(self, weights: Floats) -> Floats:
        """Count the pairs within a group, including an answer that was drawn twice."""
        size = self.totals(weights[:, self.order])
        return np.asarray((size * (size - 1)).sum(axis=1) / 2)

    def ranks(self, weights: Floats, n: Floats) -> Floats:
        """Return the ranks of all answers minus their mean, shape (B, n)."""
        size = self.totals(weights[:, self.order])
        rank = np.cumsum(size, axis=1) - (size - 1) / 2 - (n[:, None] + 1) / 2
        return np.asarray(rank[:, self.group])


class _RejectionOrder:
    """Answers in the order in which they are kept: the first is rejected last."""

    def __init__(self, keys: Floats, labels: Floats) -> None:
        self._ties = _Ties(keys)
        self._labels = labels[self._ties.order]
        first = self._labels[self._ties.starts]
        groups = self._ties.group[self._ties.order]
        # Where equal keys always mean equal labels, a group's mean does not depend on the weights.
        alike = len(labels) > 0 and bool((self._labels == first[groups]).all())
        self._means = first if alike else None

    def area(self, weights: Floats, harmonic: Floats) -> Floats:
        """Return the sum over k of the mean label of the first k answers, shape (B,).

        In a group of m equal keys, after K answers with the sum S, the expected mean of the first
        K + j answers is (S + j u) / (K + j), where u is the group's mean. Summed over j this is
        m u + (S - K u) (H(K + m) - H(K)), with the harmonic numbers H.
        """
        w = weights[:, self._ties.order]
        size, label = self._ties.totals(w), self._ties.totals(w * self._labels)
        after = np.cumsum(size, axis=1)
        mean = _divide(label, size, 0.0) if self._means is None else self._means
        # H(K + m) - H(K) of each group
        steps = np.diff(harmonic[after.astype(np.int64)], axis=1, prepend=0.0)
        offset = np.cumsum(label, axis=1) - label - (after - size) * mean
        return np.asarray(label.sum(axis=1) + _products(offset, steps))


def _inversion_counter(ranks: Places, digit: int) -> WeightedFigure:
    """Return a function that counts the inversions that one binary digit of the ranks decides.

    Among ranks with the same higher digits, each 0 is inverted with every 1 before it.
    """
    order = np.argsort(ranks >> (digit + 1), kind="stable")
    block = (ranks >> (digit + 1))[order]
    is_one = ((ranks >> digit) & 1)[order].astype(bool)
    zeros = np.flatnonzero(~is_one)
    before_block = np.searchsorted(block, block[zeros], side="left")

    def figure(weights: Floats) -> Floats:
        w = weights[:, order]
        ones = np.cumsum(w * is_one, axis=1)
        # Ones before the block are subtracted; the column of zeros serves the first block.
        padded = np.concatenate([np.zeros((len(w), 1)), ones], axis=1)
        return _products(w[:, zeros], ones[:, zeros] - padded[:, before_block])

    return figure


def _correlation(
    n: Floats, sums: tuple[Floats, Floats], squares: tuple[Floats, Floats], products: Floats
) -> Floats:
    variances = []
    for total, square in zip(sums, squares, strict=True):
        # A difference of nearly equal sums: what is left of a constant sample is rounding, taken as
        # 0.
        about_mean = square - _divide(total**2, n, 0.0)
        variances.append(np.where(about_mean > ROUNDING_SHARE * square, about_mean, 0.0))
    together = products - _divide(sums[0] * sums[1], n, 0.0)
    return np.clip(_divide(together, np.sqrt(variances[0] * variances[1])), -1.0, 1.0)


def _products(a: Floats, b: Floats) -> Floats:
    """Return the scalar product of each row of ``a`` with that of ``b``."""
    return np.asarray(np.einsum("bi,bi->b", a, b))


def _centre(values: Floats) -> Floats:
    """Return the values minus their mean, scaled by a power of 2 so that squares stay in range."""
    if not len(values):
        return values
    # Division by a power of 2 is exact, so it changes no result.
    exponent = np.frexp(np.abs(values).max())[1]
    scaled = np.ldexp(values, -exponent)
    return np.asarray(scaled - scaled.mean())


def _divide(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Divide, and return ``otherwise`` where the denominator is not above 0."""
    out = np.full(np.broadcast_shapes(above.shape, below.shape), otherwise)
    return np.asarray(np.divide(above, below, out=out, where=below > 0))


def _as_pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"expected two samples of the same length, got shapes {a.shape} and {b.shape}"
        )
    return a, b


def roc_curve(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return false and true positive rates as the threshold falls, each from 0 to 1.

    There is one point for each different score, after (0, 0). Labels above 0 are positive.

    Raises:
        ValueError: one of the classes is missing.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64) > 0
    if not y.any() or y.all():
        raise ValueError("expected labels of both classes")
    order = np.argsort(-x, kind="stable")
    # Equal scores are passed together, so only the last of each group gives a point.
    ends = np.append(np.flatnonzero(np.diff(x[order])), len(x) - 1)
    result = []
    for of_class in (~y[order], y[order]):
        reached = np.cumsum(of_class)[ends] / of_class.sum()
        result.append(np.concatenate([[0.0], reached]))
    return result[0], result[1]
