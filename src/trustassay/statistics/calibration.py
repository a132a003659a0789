"""Probabilities that an answer is right: how good they are, and how they are fitted to scores.

A fitted probability is never 0 or 1: no number of labels says that an answer cannot be wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places, intervals, regression

BINS = 15


def places_in_bins(chances: ArrayLike, bins: int = BINS) -> Places:
    """Return the bin of each probability, from 0; of equal width, and 1 belongs to the last."""
    given = np.asarray(chances, dtype=np.float64)
    return np.minimum((given * bins).astype(np.int64), bins - 1)


def calibration_error(chances: ArrayLike, truth: ArrayLike, bins: int = BINS) -> float | None:
    """Return the expected calibration error, 0 to 1 (Guo et al. 2017, eq. 3).

    The mean over bins of equal width of the distance between the mean probability and the share
    that is true, weighed by how many fall into the bin; ``None`` without data.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
        bins: of equal width from 0 to 1; 1 belongs to the last.
    """
    given, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if not len(given):
        return None
    place = places_in_bins(given, bins)
    gaps = np.abs(np.bincount(place, given, bins) - np.bincount(place, true, bins))
    return float(gaps.sum() / len(given))


class ReliabilityBin(NamedTuple):
    """Probabilities that lie together: how many, their mean, and the share that is true."""

    n: int
    chance: float
    true: float


def reliability_bins(chances: ArrayLike, truth: ArrayLike) -> list[ReliabilityBin]:
    """Return the bins of :func:`calibration_error` that hold anything, the lowest first.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
    """
    given, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    place = places_in_bins(given)
    n = np.bincount(place, minlength=BINS)
    means = [np.bincount(place, one, BINS) / np.maximum(n, 1) for one in (given, true)]
    columns = zip(n.tolist(), *(one.tolist() for one in means), strict=True)
    return [ReliabilityBin(*column) for column in columns if column[0]]


def balanced_accuracy(chances: ArrayLike, truth: ArrayLike, threshold: float = 0.5) -> float | None:
    """Return the mean of both classes' accuracy when what reaches the threshold counts as true.

    ``None`` where one of the classes is missing.
    """
    said = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    if not true.any() or true.all():
        return None
    return float((said[true].mean() + (~said[~true]).mean()) / 2)


def balanced_accuracy_interval(
    chances: ArrayLike, truth: ArrayLike, units: Places, threshold: float = 0.5
) -> intervals.Interval | None:
    """Return the interval of :func:`balanced_accuracy`, of both accuracies' own intervals (Zou and
    Donner 2008).

    Args:
        units: the number of each pair's unit, below 0 for one by itself, shape (n,).

    ``None`` where pairs of one of the classes are of fewer than 20 units of equal size.
    """
    said = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    rows = np.column_stack([true, true & said, ~true, ~true & ~said]).astype(np.float64)
    sums = intervals.RowSums(4)
    sums.add(rows, units)
    if not sums.total[[0, 2]].all():
        return None
    columns = np.eye(4)
    means = [sums.ratio(columns[at + 1], columns[at]) for at in (0, 2)]
    if min(mean.units for mean in means) < intervals.FEWEST - 1e-9:
        return None
    shares = np.array([[mean.mean] for mean in means])
    gradients = (columns[[1, 3]] - shares * columns[[0, 2]]) / sums.total[[0, 2], None]
    covariance = sums.covariance(gradients)
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))  # rounding may leave one below 0
    scale = np.outer(errors, errors)
    correlation = np.divide(covariance, scale, out=np.zeros((2, 2)), where=scale > 0)
    np.fill_diagonal(correlation, 1.0)
    low, high = intervals.sum_interval(
        [intervals.Term(mean.mean, intervals.mean_interval(*mean), 0.5) for mean in means],
        correlation,
    )
    return max(low, 0.0), min(high, 1.0)


Predict = Callable[[Floats], Floats]
"""Of a table of m rows to m numbers."""
Fit = Callable[[Floats, Floats, Places], Predict]
"""Of a table, the labels and the cluster of each row, to what predicts."""


def fold_numbers(
    clusters: ArrayLike, labels: ArrayLike, folds: int, rng: np.random.Generator
) -> Places:
    """Return the fold of each sample, 0 to folds - 1, shape (n,).

    All samples of a cluster are in one fold, and each fold has about the same share of either
    class: clusters are taken in random order, those with most samples first, and each goes to the
    fold that has least of what it brings.

    Args:
        clusters: number of each sample's cluster, shape (n,); any whole numbers.
        labels: of two classes, above 0 or not, shape (n,).

    Raises:
        ValueError: there are fewer than two folds, or fewer clusters of either class than folds.
    """
    of, y = np.asarray(clusters, dtype=np.int64), np.asarray(labels, dtype=np.float64) > 0
    if of.ndim != 1 or of.shape != y.shape:
        raise ValueError(f"expected n clusters and n labels, got shapes {of.shape} and {y.shape}")
    names, place = np.unique(of, return_inverse=True)
    counts = np.stack([np.bincount(place[y == kind], minlength=len(names)) for kind in (0, 1)])
    fewest = int((counts > 0).sum(axis=1).min(initial=len(names)))
    if not 2 <= folds <= fewest:
        raise ValueError(
            f"expected 2 to {fewest} folds (the clusters with the rarer class), got {folds}"
        )
    shares = counts / counts.sum(axis=1, keepdims=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(-counts.sum(axis=0)[order], kind="stable")]
    filled = np.zeros((2, folds))
    fold = np.empty(len(names), dtype=np.int64)
    for cluster in order.tolist():
        # The sum of squares of shares grows least where least of these classes is.
        fold[cluster] = int(np.argmin(shares[:, cluster] @ filled))
        filled[:, fold[cluster]] += shares[:, cluster]
    return np.asarray(fold[place])


def out_of_fold(
    fit: Fit, table: ArrayLike, labels: ArrayLike, clusters: ArrayLike, folds: Sequence[int]
) -> Floats:
    """Return a prediction for each sample by the fit on all folds but its own, shape (n,).

    Whatever is chosen by the labels (a method, a strength, a direction) has to be chosen inside
    ``fit``, which gets the clusters for that.

    Args:
        table: shape (n, d), or (n,). labels, clusters: shape (n,). folds: of each sample, as
            :func:`fold_numbers` returns them.
    """
    x, y = np.asarray(table, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    of, fold = np.asarray(clusters, dtype=np.int64), np.asarray(folds)
    result = np.full(len(y), np.nan)
    for number in np.unique(fold):
        mine = fold == number
        result[mine] = fit(x[~mine], y[~mine], of[~mine])(x[mine])
    return result


Method = Literal["isotonic", "logistic"]
PENALTY = 1.0
INNER_FOLDS = 5


@dataclass(frozen=True, slots=True)
class LogOddsTerm:
    """What one score adds to the log odds.

    coefficient: for each ``scale`` that the score lies above ``centre``. missing: what is added
    where there is no score; ``None`` where no answer of the fit was without one.
    """

    centre: float
    scale: float
    coefficient: float
    missing: float | None = None


@dataclass(frozen=True, slots=True)
class Combination:
    """The log odds of being right as the sum of an intercept and a term for each score."""

    intercept: float
    terms: tuple[LogOddsTerm, ...]

    def probabilities(self, table: ArrayLike) -> Floats:
        """Return the probability of each row, shape (n,), of scores, shape (n, d) or (n,).

        NaN where a score is missing that no answer of the fit was without, and where all are.
        """
        return regression.sigmoid(self.log_odds(table))

    def log_odds(self, table: ArrayLike) -> Floats:
        """Return the log odds of each row."""
        x = _table(table)
        if x.shape[1] != len(self.terms):
            raise ValueError(f"expected {len(self.terms)} scores, got {x.shape[1]}")
        result = np.full(len(x), self.intercept)
        for column, term in zip(x.T, self.terms, strict=True):
            without = np.nan if term.missing is None else term.missing
            there = term.coefficient * ((column - term.centre) / term.scale)
            result += np.where(np.isnan(column), without, there)
        return np.where(np.isnan(x).all(axis=1), np.nan, result)


def fit_combination(
    table: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY
) -> Combination:
    """Fit a logistic regression on several scores, some of which may be missing (NaN).

    Nothing is imputed: a score that some answers lack has one more coefficient, which is added to
    the log odds of exactly those (a missing-indicator). So an answer without a score gets its
    probability from the others and from the share of right ones among those without it. Answers
    without any score are left out.

    Scores are divided by their standard deviation before the penalty (1 by default, which is that
    of a normal prior with variance 1 for each coefficient) is applied.

    Args:
        table: shape (n, d) or (n,). labels: 0 or 1, shape (n,).

    Raises:
        ValueError: labels are of one class, or a score is infinite or has no value.
    """
    x, y = _table(table), np.asarray(labels, dtype=np.float64)
    if len(x) != len(y):
        raise ValueError(f"expected a label for each of {len(x)} answers, got {len(y)}")
    if np.isinf(x).any():
        raise ValueError("expected finite scores, or NaN where there is none")
    known = ~np.isnan(x).all(axis=1)
    x, y = x[known], y[known]
    missing = np.isnan(x)
    if missing.all(axis=0).any():
        raise ValueError("expected a value of each score")
    centre = np.nanmean(x, axis=0) if len(x) else np.zeros(x.shape[1])
    spread = np.nanstd(x, axis=0) if len(x) else np.ones(x.shape[1])
    scale = np.where(spread > 0, spread, 1.0)
    lacking = np.flatnonzero(missing.any(axis=0))
    design = [np.where(missing, 0.0, (x - centre) / scale), missing[:, lacking].astype(np.float64)]
    fit = regression.logistic_regression(np.concatenate(design, axis=1), y, penalty=penalty)
    own, of_missing = np.split(fit.coefficients, [x.shape[1]])
    adding = dict(zip(lacking.tolist(), of_missing.tolist(), strict=True))
    terms = tuple(
        LogOddsTerm(float(centre[i]), float(scale[i]), float(own[i]), adding.get(i))
        for i in range(x.shape[1])
    )
    return Combination(fit.intercept, terms)


def fit_logistic(scores: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY) -> Combination:
    """Fit the probability of one score of which higher is better, as a logistic curve (Platt 1999).

    The curve does not fall: where it would, it is the share of right answers. Scores are finite.
    """
    fit = fit_combination(scores, labels, penalty=penalty)
    if fit.terms[0].coefficient >= 0:
        return fit
    share = float(np.asarray(labels, dtype=np.float64).mean())
    term = fit.terms[0]
    flat = LogOddsTerm(term.centre, term.scale, 0.0)
    return Combination(float(np.log(share / (1 - share))), (flat,))


def fit_isotonic(scores: ArrayLike, labels: ArrayLike) -> regression.Isotonic:
    """Fit the probability of one score of which higher is better, as any rising function.

    One more right answer is counted at the lowest score and one more wrong one at the highest.
    So the k answers of the lowest pool, all wrong, have a probability of 1 / (k + 1) and not 0
    (these two are the labels that inductive Venn-Abers predictors add to a new answer; Vovk and
    Petej 2014).

    Raises:
        ValueError: labels are of one class, or a number is not finite.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if set(y.tolist()) != {0.0, 1.0}:
        raise ValueError("expected labels of 0 and 1, of both classes")
    ends = [x.min(), x.max()]
    return regression.isotonic_regression(
        np.concatenate([x, ends]), np.concatenate([y, [1.0, 0.0]])
    )


class Choice(NamedTuple):
    """The method whose out-of-fold probabilities have the lower log loss, and both losses."""

    method: Method
    losses: Mapping[Method, float]


FITS: Mapping[Method, Fit] = {
    "logistic": lambda x, y, _: fit_logistic(x, y).probabilities,
    "isotonic": lambda x, y, _: fit_isotonic(x, y).at,
}


def choose_method(
    scores: ArrayLike, labels: ArrayLike, clusters: ArrayLike, rng: np.random.Generator
) -> Choice:
    """Choose between a logistic curve and an isotonic one, by the log loss out of fold.

    There are fewer folds where fewer clusters hold the rarer class; with only one there, it is
    logistic, which needs fewer answers.

    Args:
        scores, labels, clusters: shape (n,); scores finite, labels 0 or 1, both of them.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    of = np.asarray(clusters, dtype=np.int64)
    rarer = min(len(np.unique(of[y == kind])) for kind in (0, 1))
    if rarer < 2:
        return Choice("logistic", {})
    fold = fold_numbers(of, y, min(INNER_FOLDS, rarer), rng)
    losses = {
        name: mean_log_loss(out_of_fold(fit, x, y, of, fold.tolist()), y)
        for name, fit in FITS.items()
    }
    best: Method = "isotonic" if losses["isotonic"] < losses["logistic"] else "logistic"
    return Choice(best, losses)


def mean_log_loss(chances: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of -log p of what is true, in nats; infinite where a sure one is wrong."""
    p, y = np.asarray(chances, dtype=np.float64), np.asarray(labels, dtype=np.float64) > 0
    with np.errstate(divide="ignore"):
        return float(-np.log(np.where(y, p, 1 - p)).mean())


def _table(given: ArrayLike) -> Floats:
    x = np.asarray(given, dtype=np.float64)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or not x.shape[1]:
        raise ValueError(f"expected scores of shape (n, d) or (n,), got {x.shape}")
    return x
