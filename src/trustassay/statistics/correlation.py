"""How well scores agree with labels: AUROC, correlations and others, of one sample or of resamples.

Everywhere two samples of equal length n stand side by side. A measure of them (:func:`pearson`) is
``None`` where it is not defined: one class only, a constant score, nothing there.

A weighted measure (:func:`weighted_pearson`) returns a figure of weights: of how often each answer
counts, whole numbers of shape (B, n), to the measure of each row, shape (B,), NaN where the row
does not define it. A row counts an answer as if it stood there so many times, so a row of ones
gives the measure of the answers as they are, and rows of :mod:`trustassay.statistics.resampling`
give resamples. What depends on the scores alone, as their order, is computed once.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.calibration import BINS, places_in_bins

Measure = Callable[[ArrayLike, ArrayLike], float | None]
Figure = Callable[[Floats], Floats]
WeightedMeasure = Callable[[ArrayLike, ArrayLike], Figure]

FEW_LABELS = 8
MOST_FOR_MATRIX = 4000
"""Different labels above which, and answers up to which, tau-b takes a matrix of all pairs."""
NOTHING = 1e-12
"""Share of a sum of squares below which a variance is rounding."""


def value_of(measure: WeightedMeasure, scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return a measure of the answers as they are; ``None`` where it is not defined."""
    x, _ = _pair(scores, labels)
    value = float(measure(scores, labels)(np.ones((1, len(x))))[0])
    return None if math.isnan(value) else value


def ranks(values: ArrayLike) -> Floats:
    """Return the ranks from 1 of the values, ties having the mean of theirs; shape (n,)."""
    array = np.asarray(values, dtype=np.float64)
    _, places, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)


def weighted_auroc(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The share of pairs of a positive and a negative in which the positive scores higher, ties
    counting half; labels above 0 are positive.
    """
    x, y = _pair(scores, labels)
    ties = _Ties(x)
    positive = (y > 0)[ties.order]

    def figure(weights: Floats) -> Floats:
        w = weights[:, ties.order]
        of_positives = ties.totals(w * positive)
        of_negatives = ties.totals(w * ~positive)
        below = np.cumsum(of_negatives, axis=1) - of_negatives / 2
        p, n = of_positives.sum(axis=1), of_negatives.sum(axis=1)
        return _over((of_positives * below).sum(axis=1), p * n)

    return figure


def weighted_average_precision(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The area under the curve of precision by recall, as steps: sum (R_k - R_{k-1}) P_k over the
    different scores from the highest, R_k and P_k being recall and precision of all from there up
    (Davis and Goadrich 2006; without interpolation). Labels above 0 are positive.
    """
    x, y = _pair(scores, labels)
    ties = _Ties(-x)
    positive = (y > 0)[ties.order]

    def figure(weights: Floats) -> Floats:
        w = weights[:, ties.order]
        of_positives, of_all = ties.totals(w * positive), ties.totals(w)
        result = np.cumsum(of_positives, axis=1)
        precision = _over(result, np.cumsum(of_all, axis=1), 0.0)
        p, every = result[:, -1:].sum(axis=1), of_all.sum(axis=1)
        return _over((of_positives * precision).sum(axis=1), np.where(p < every, p, 0.0))

    return figure


def weighted_prediction_rejection_ratio(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The prediction rejection ratio: how much of what the best order of rejection gives, the
    scores give; at most 1, and 0 for a random order (Malinin and Gales 2021; in the form of
    Vashurin et al. 2025).

    Answers are rejected from the lowest score on. With Q(k) the mean label of the k answers that
    are kept, the area of an order is the sum of Q(k) - Q(n) over k = 1 ... n, and the ratio is that
    of the order by scores over that of the order by the labels themselves. Of equal scores all
    orders count, with their mean. Not defined where all labels are the same.
    """
    x, y = _pair(scores, labels)
    centred = y - y.mean() if len(y) else y
    by_scores, best = _Kept(-x, centred), _Kept(-y, centred)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n.max(initial=0) + 1))])
        mean = _over(weights @ centred, n)
        total = by_scores.area(weights, harmonic) - n * mean
        most = best.area(weights, harmonic) - n * mean
        scale = weights @ np.abs(centred)
        return _over(total, np.where(most > NOTHING * scale, most, 0.0))

    return figure


def weighted_pearson(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """Pearson's r, the covariance of two samples over both standard deviations."""
    x, y = (_centred(one) for one in _pair(scores, labels))
    table = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)

    def figure(weights: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = (weights @ table).T
        return _correlation(n, (sx, sy), (sxx, syy), sxy)

    return figure


def weighted_spearman(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """Spearman's rho: Pearson's r of the ranks, ties having the mean of theirs."""
    x, y = _pair(scores, labels)
    of_x, of_y = _Ties(x), _Ties(y)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        a, b = of_x.ranks(weights, n), of_y.ranks(weights, n)
        counted_a, counted_b = weights * a, weights * b
        below = _products(counted_a, a) * _products(counted_b, b)
        return np.clip(_over(_products(counted_a, b), np.sqrt(below)), -1.0, 1.0)

    return figure


def weighted_kendall_tau_b(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """Kendall's tau-b: concordant less discordant pairs, over the root of the product of the pairs
    that differ in one and those that differ in the other (Kendall 1945).

    Of few different labels, or many answers, pairs are counted as a sort counts inversions, in
    n log2 of the number of labels steps; else by one product with the matrix of all pairs.
    """
    x, y = _pair(scores, labels)
    of_x, of_y = _Ties(x), _Ties(y)
    by_matrix = len(of_y.starts) > FEW_LABELS and len(x) <= MOST_FOR_MATRIX
    surplus = _surplus_by_matrix(x, y) if by_matrix else _surplus_by_sorting(x, y)

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        pairs = n * (n - 1) / 2
        differ = (pairs - of_x.tied_pairs(weights)) * (pairs - of_y.tied_pairs(weights))
        return _over(surplus(weights), np.sqrt(differ))

    return figure


def _surplus_by_matrix(x: Floats, y: Floats) -> Figure:
    """Return what counts concordant less discordant pairs, by the sign of every pair."""
    signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    signs = signs.astype(np.float32)  # sums of fewer than 2^24 signs are exact

    def figure(weights: Floats) -> Floats:
        return _products((weights.astype(np.float32) @ signs).astype(np.float64), weights) / 2

    return figure


def _surplus_by_sorting(x: Floats, y: Floats) -> Figure:
    """Return the same: all pairs less ties, less twice the inversions of the labels in the order of
    the scores (Knight 1966), one binary digit of the labels' ranks at a time.
    """
    codes, ranks = (np.unique(one, return_inverse=True)[1] for one in (x, y))
    order = np.lexsort((ranks, x))
    of_x, of_y = _Ties(x), _Ties(y)
    of_both = _Ties((codes * (len(y) + 1) + ranks).astype(np.float64))
    digits = int(ranks.max(initial=0)).bit_length()
    levels = [_inversions(ranks[order], digit) for digit in range(digits)]

    def figure(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        tied = of_x.tied_pairs(weights) + of_y.tied_pairs(weights) - of_both.tied_pairs(weights)
        w = weights[:, order]
        surplus = n * (n - 1) / 2 - tied
        for level in levels:
            surplus -= 2 * level(w)
        return np.asarray(surplus)

    return figure


def weighted_brier_score(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The mean squared distance of probabilities from labels of 0 and 1 (Brier 1950)."""
    x, y = _pair(scores, labels)
    squares = (x - y) ** 2
    return lambda weights: _over(weights @ squares, weights.sum(axis=1))


def weighted_log_loss(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The mean of -log p of what is true, in nats; infinite where a sure probability is wrong."""
    x, y = _pair(scores, labels)
    with np.errstate(divide="ignore"):
        losses = -np.log(np.where(y > 0, x, 1 - x))
    return lambda weights: _over(weights @ losses, weights.sum(axis=1))


def weighted_calibration_error(scores: ArrayLike, labels: ArrayLike) -> Figure:
    """The expected calibration error of probabilities, as
    :func:`~trustassay.statistics.calibration.calibration_error`.
    """
    x, y = _pair(scores, labels)
    gaps = np.zeros((len(x), BINS))
    gaps[np.arange(len(x)), places_in_bins(x, BINS)] = x - y
    return lambda weights: _over(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


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
"""They take two samples of one length, and return ``None`` where they are not defined."""
MEASURES: Mapping[str, Measure] = {
    "Pearson": pearson,
    "Spearman": spearman,
    "Kendall tau-b": kendall_tau_b,
    "AUROC": auroc,
}
"""The measures by the names that the field gives them."""
BIASED = frozenset({"ece"})
"""Those that are too large in small samples: what is chance adds to them."""
BY_CLASS = frozenset({"auroc", "auprc", "prr"})
"""Those that are as uncertain as the rarer of two classes is rare."""


class _Ties:
    """Values in order, equal ones together."""

    def __init__(self, values: Floats) -> None:
        self.order = np.argsort(values, kind="stable")
        in_order = values[self.order]
        starts = np.append(True, in_order[1:] != in_order[:-1]) if len(values) else np.array([])
        self.starts = np.flatnonzero(starts)
        self.group = np.empty(len(values), dtype=np.int64)
        self.group[self.order] = np.cumsum(starts).astype(np.int64) - 1

    def totals(self, in_order: Floats) -> Floats:
        """Return the sums over each group of columns that are in this order, shape (B, groups)."""
        if len(self.starts) == in_order.shape[1]:
            return in_order
        return np.asarray(np.add.reduceat(in_order, self.starts, axis=1))

    def tied_pairs(self, weights: Floats) -> Floats:
        """Return the pairs of answers of one group, the same answer drawn twice included."""
        size = self.totals(weights[:, self.order])
        return np.asarray((size * (size - 1)).sum(axis=1) / 2)

    def ranks(self, weights: Floats, n: Floats) -> Floats:
        """Return the ranks of all answers less their mean, shape (B, n)."""
        size = self.totals(weights[:, self.order])
        rank = np.cumsum(size, axis=1) - (size - 1) / 2 - (n[:, None] + 1) / 2
        return np.asarray(rank[:, self.group])


class _Kept:
    """Answers in an order of keeping, the first of which is kept longest."""

    def __init__(self, keys: Floats, labels: Floats) -> None:
        self._ties = _Ties(keys)
        self._labels = labels[self._ties.order]
        first = self._labels[self._ties.starts]
        groups = self._ties.group[self._ties.order]
        alike = len(labels) > 0 and bool((self._labels == first[groups]).all())
        self._means = first if alike else None

    def area(self, weights: Floats, harmonic: Floats) -> Floats:
        """Return the sum over k of the mean label of the first k answers, shape (B,).

        In a group of m equal keys, after K answers with the sum S, the mean of the first K + j is
        expected to be (S + j u) / (K + j) with u the group's mean, and summed over j that is
        m u + (S - K u) (H(K + m) - H(K)) with the harmonic numbers H.
        """
        w = weights[:, self._ties.order]
        size, label = self._ties.totals(w), self._ties.totals(w * self._labels)
        after = np.cumsum(size, axis=1)
        mean = _over(label, size, 0.0) if self._means is None else self._means
        steps = np.diff(harmonic[after.astype(np.int64)], axis=1, prepend=0.0)
        left = np.cumsum(label, axis=1) - label - (after - size) * mean
        return np.asarray(label.sum(axis=1) + _products(left, steps))


def _inversions(ranks: Places, digit: int) -> Figure:
    """Return what counts the inversions that a binary digit of the ranks decides: of those with
    the same higher digits, each with the digit 0 is inverted with any 1 before it."""
    order = np.argsort(ranks >> (digit + 1), kind="stable")
    block = (ranks >> (digit + 1))[order]
    one = ((ranks >> digit) & 1)[order].astype(bool)
    zeros = np.flatnonzero(~one)
    before_block = np.searchsorted(block, block[zeros], side="left")

    def figure(weights: Floats) -> Floats:
        w = weights[:, order]
        ones = np.cumsum(w * one, axis=1)
        # Those before the block are subtracted; a column of zeros stands before the first.
        padded = np.concatenate([np.zeros((len(w), 1)), ones], axis=1)
        return _products(w[:, zeros], ones[:, zeros] - padded[:, before_block])

    return figure


def _correlation(
    n: Floats, sums: tuple[Floats, Floats], squares: tuple[Floats, Floats], products: Floats
) -> Floats:
    left = []
    for total, square in zip(sums, squares, strict=True):
        about_mean = square - _over(total**2, n, 0.0)
        left.append(np.where(about_mean > NOTHING * square, about_mean, 0.0))
    together = products - _over(sums[0] * sums[1], n, 0.0)
    return np.clip(_over(together, np.sqrt(left[0] * left[1])), -1.0, 1.0)


def _products(a: Floats, b: Floats) -> Floats:
    """Return the scalar products of the rows."""
    return np.asarray(np.einsum("bi,bi->b", a, b))


def _centred(values: Floats) -> Floats:
    """Return the values less their mean, over a power of 2, so that squares keep the range."""
    if not len(values):
        return values
    exponent = np.frexp(np.abs(values).max())[1]
    scaled = np.ldexp(values, -exponent)
    return np.asarray(scaled - scaled.mean())


def _over(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Return a ratio, and ``otherwise`` where nothing is below."""
    out = np.full(np.broadcast_shapes(above.shape, below.shape), otherwise)
    return np.asarray(np.divide(above, below, out=out, where=below > 0))


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"expected two samples of one length, got shapes {a.shape} and {b.shape}")
    return a, b


def roc_curve(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return false and true positive rates as the threshold falls, each from 0 to 1.

    One point for each different score, after (0, 0). Labels above 0 are positive; both classes
    must be there.

    Raises:
        ValueError: one of the classes is missing.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64) > 0
    if not y.any() or y.all():
        raise ValueError("expected labels of both classes")
    order = np.argsort(-x, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(x[order])), len(x) - 1)
    result = []
    for of_class in (~y[order], y[order]):
        reached = np.cumsum(of_class)[ends] / of_class.sum()
        result.append(np.concatenate([[0.0], reached]))
    return result[0], result[1]


def kept_means(scores: ArrayLike, labels: ArrayLike) -> Floats:
    """Return the mean label of the k answers with the highest scores, for k = 1 ... n, shape (n,).

    Where the k-th has the score of others, the mean is that expected of a random choice among
    them. With labels of 0 and 1, one less it is the risk at a coverage of k / n (El-Yaniv and
    Wiener 2010).
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    order = np.argsort(-x, kind="stable")
    _, places, counts = np.unique(-x[order], return_inverse=True, return_counts=True)
    of_ties = np.bincount(places, y[order], len(counts)) / np.maximum(counts, 1)
    return np.asarray(np.cumsum(of_ties[places]) / np.arange(1, len(x) + 1))
