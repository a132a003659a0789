"""Probabilities that an answer is right: measures of their quality, and fits from scores.

A fitted probability is never 0 or 1: no number of labels proves that an answer cannot be wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places, intervals, regression

RELIABILITY_BINS = 15
"""Bins of equal width, as in Guo et al. 2017."""


def assign_bins(chances: ArrayLike, bins: int = RELIABILITY_BINS) -> Places:
    """Return the bin of each probability, from 0; of equal width, and 1 belongs to the last."""
    probabilities = np.asarray(chances, dtype=np.float64)
    return np.minimum((probabilities * bins).astype(np.int64), bins - 1)


def calibration_error(
    chances: ArrayLike, truth: ArrayLike, bins: int = RELIABILITY_BINS
) -> float | None:
    """Return the expected calibration error, 0 to 1 (Guo et al. 2017, eq. 3).

    It is the mean over bins of equal width of the distance between the mean probability and the
    share that is true, weighted by the number of values in the bin; ``None`` without data.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
        bins: of equal width from 0 to 1; 1 belongs to the last.
    """
    probabilities, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if not len(probabilities):
        return None
    place = assign_bins(probabilities, bins)
    # Sums instead of means: the weights by the bins' sizes cancel against the means' denominators.
    gaps = np.abs(np.bincount(place, probabilities, bins) - np.bincount(place, true, bins))
    return float(gaps.sum() / len(probabilities))


class ReliabilityBin(NamedTuple):
    """Probabilities of similar size."""

    n: int
    """How many they are."""
    chance: float
    """Their mean."""
    true: float
    """The share that is true."""


def reliability_bins(chances: ArrayLike, truth: ArrayLike) -> list[ReliabilityBin]:
    """Return the non-empty bins of :func:`calibration_error`, the lowest first.

    Args:
        chances: probabilities, shape (n,). truth: whether each is true, shape (n,).
    """
    probabilities, true = np.asarray(chances, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    place = assign_bins(probabilities)
    n = np.bincount(place, minlength=RELIABILITY_BINS)
    means = [
        np.bincount(place, values, RELIABILITY_BINS) / np.maximum(n, 1)
        for values in (probabilities, true)
    ]
    columns = zip(n.tolist(), *(values.tolist() for values in means), strict=True)
    return [ReliabilityBin(*column) for column in columns if column[0]]


def balanced_accuracy(chances: ArrayLike, truth: ArrayLike, threshold: float = 0.5) -> float | None:
    """Return the mean of the accuracies in both classes; ``None`` where a class is missing.

    Probabilities from the threshold on count as a prediction of true.
    """
    is_called_true = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    if not true.any() or true.all():
        return None
    return float((is_called_true[true].mean() + (~is_called_true[~true]).mean()) / 2)


def balanced_accuracy_interval(
    chances: ArrayLike, truth: ArrayLike, units: Places, threshold: float = 0.5
) -> intervals.Interval | None:
    """Return the interval of :func:`balanced_accuracy`.

    It is combined from the intervals of both accuracies (Zou and Donner 2008).

    Args:
        units: the unit number of each pair, below 0 for a pair by itself, shape (n,).

    ``None`` where a class has pairs of fewer than 20 units of equal size.
    """
    is_called_true = np.asarray(chances, dtype=np.float64) >= threshold
    true = np.asarray(truth, dtype=np.float64) > 0
    # columns: size and hits of the true class, size and hits of the false class
    rows = np.column_stack([true, true & is_called_true, ~true, ~true & ~is_called_true]).astype(
        np.float64
    )
    sums = intervals.RowSums(4)
    sums.add(rows, units)
    if not sums.total[[0, 2]].all():
        return None
    columns = np.eye(4)
    means = [sums.ratio(columns[at + 1], columns[at]) for at in (0, 2)]
    if min(mean.units for mean in means) < intervals.MIN_UNITS - 1e-9:
        return None
    shares = np.array([[mean.mean] for mean in means])
    # Units with pairs of both classes make the accuracies covary; a ratio's gradient is (y - r x) /
    # X.
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
    # Combined intervals may end slightly outside the range.
    return max(low, 0.0), min(high, 1.0)


Predict = Callable[[Floats], Floats]
"""Takes a table of m rows; returns m numbers."""
Fit = Callable[[Floats, Floats, Places], Predict]
"""Takes a table, and the label and the cluster of each row; returns a predictor."""


def fold_numbers(
    clusters: ArrayLike, labels: ArrayLike, folds: int, rng: np.random.Generator
) -> Places:
    """Return the fold of each sample, 0 to folds - 1, shape (n,).

    All samples of a cluster are in one fold, and each fold has about the same share of either
    class: clusters are assigned in random order, the largest first, and each goes to the fold that
    has least of the classes that it contains.

    Args:
        clusters: number of each sample's cluster, shape (n,); any whole numbers.
        labels: of two classes, above 0 or not, shape (n,).

    Raises:
        ValueError: there are fewer than two folds, or fewer clusters of either class than folds.
    """
    cluster_of_sample, y = (
        np.asarray(clusters, dtype=np.int64),
        np.asarray(labels, dtype=np.float64) > 0,
    )
    if cluster_of_sample.ndim != 1 or cluster_of_sample.shape != y.shape:
        raise ValueError(
            f"expected n clusters and n labels, got shapes {cluster_of_sample.shape} and {y.shape}"
        )
    names, place = np.unique(cluster_of_sample, return_inverse=True)
    counts = np.stack([np.bincount(place[y == kind], minlength=len(names)) for kind in (0, 1)])
    # Every fold needs a cluster of either class, or its training set may lack a class.
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
    """Return a prediction for each sample, fitted on all folds but its own, shape (n,).

    Every choice that depends on labels (a method, a strength, a direction) has to be made inside
    ``fit``, which gets the clusters for that purpose.

    Args:
        fit: fits a predictor.
        table: shape (n, d), or (n,).
        labels, clusters: shape (n,).
        folds: the fold of each sample, as :func:`fold_numbers` returns them.
    """
    x, y = np.asarray(table, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    cluster_of_sample, fold = np.asarray(clusters, dtype=np.int64), np.asarray(folds)
    result = np.full(len(y), np.nan)
    for number in np.unique(fold):
        mine = fold == number
        result[mine] = fit(x[~mine], y[~mine], cluster_of_sample[~mine])(x[mine])
    return result


Method = Literal["isotonic", "logistic"]
PENALTY = 1.0
"""The L2 penalty of a coefficient: a normal prior of variance 1."""
INNER_FOLDS = 5
"""Folds by which :func:`choose_method` compares the methods."""


@dataclass(frozen=True, slots=True)
class LogOddsTerm:
    """The contribution of one score to the log odds."""

    centre: float
    """The mean of the score in the fit."""
    scale: float
    """The standard deviation of the score in the fit."""
    coefficient: float
    """The log odds added for each ``scale`` that a score lies above ``centre``."""
    missing: float | None = None
    """The log odds added where there is no score; ``None`` if every answer of the fit had one."""


@dataclass(frozen=True, slots=True)
class Combination:
    """The log odds of being right as the sum of an intercept and a term for each score."""

    intercept: float
    """The log odds where each score is at its centre."""
    terms: tuple[LogOddsTerm, ...]
    """One term for each score, in the order of the table's columns."""

    def probabilities(self, table: ArrayLike) -> Floats:
        """Return the probability of being right for each row of scores, shape (n,).

        NaN where a score is missing that every answer of the fit had, and where all are missing.

        Args:
            table: scores, shape (n, d) or (n,).
        """
        return regression.sigmoid(self.log_odds(table))

    def log_odds(self, table: ArrayLike) -> Floats:
        """Return the log odds of each row."""
        x = _as_table(table)
        if x.shape[1] != len(self.terms):
            raise ValueError(f"expected {len(self.terms)} scores, got {x.shape[1]}")
        result = np.full(len(x), self.intercept)
        for column, term in zip(x.T, self.terms, strict=True):
            # No answer of the fit lacked this score, so nothing is known about answers that do.
            without = np.nan if term.missing is None else term.missing
            contribution = term.coefficient * ((column - term.centre) / term.scale)
            result += np.where(np.isnan(column), without, contribution)
        return np.where(np.isnan(x).all(axis=1), np.nan, result)


def fit_combination(
    table: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY
) -> Combination:
    """Fit a logistic regression on several scores, some of which may be missing (NaN).

    Nothing is imputed: a score that some answers lack has one more coefficient, which is added to
    the log odds of exactly those answers (a missing-indicator). So an answer without a score gets
    its probability from its other scores and from the share of right answers that lack it as well.
    Answers without any score are left out.

    Scores are divided by their standard deviation before the penalty is applied. The default of 1
    is a normal prior with variance 1 for each coefficient.

    Args:
        table: shape (n, d) or (n,). labels: 0 or 1, shape (n,).

    Raises:
        ValueError: labels are of one class, or a score is infinite or has no value.
    """
    x, y = _as_table(table), np.asarray(labels, dtype=np.float64)
    if len(x) != len(y):
        raise ValueError(f"expected a label for each of {len(x)} answers, got {len(y)}")
    if np.isinf(x).any():
        raise ValueError("expected finite scores, or NaN where there is none")
    has_score = ~np.isnan(x).all(axis=1)
    x, y = x[has_score], y[has_score]
    missing = np.isnan(x)
    if missing.all(axis=0).any():
        raise ValueError("expected a value of each score")
    centre = np.nanmean(x, axis=0) if len(x) else np.zeros(x.shape[1])
    spread = np.nanstd(x, axis=0) if len(x) else np.ones(x.shape[1])
    # A constant score has no scale; its coefficient stays 0 whatever the divisor.
    scale = np.where(spread > 0, spread, 1.0)
    lacking = np.flatnonzero(missing.any(axis=0))
    # A missing score counts as the mean, and its indicator takes up the difference.
    design = [np.where(missing, 0.0, (x - centre) / scale), missing[:, lacking].astype(np.float64)]
    fit = regression.logistic_regression(np.concatenate(design, axis=1), y, penalty=penalty)
    slopes, of_missing = np.split(fit.coefficients, [x.shape[1]])
    adding = dict(zip(lacking.tolist(), of_missing.tolist(), strict=True))
    terms = tuple(
        LogOddsTerm(float(centre[i]), float(scale[i]), float(slopes[i]), adding.get(i))
        for i in range(x.shape[1])
    )
    return Combination(fit.intercept, terms)


def fit_logistic(scores: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY) -> Combination:
    """Fit a logistic curve to one score of which higher is better (Platt 1999).

    The curve never falls: where it would, it is constant at the share of right answers. Scores must
    be finite.
    """
    fit = fit_combination(scores, labels, penalty=penalty)
    if fit.terms[0].coefficient >= 0:
        return fit
    share = float(np.asarray(labels, dtype=np.float64).mean())
    term = fit.terms[0]
    flat = LogOddsTerm(term.centre, term.scale, 0.0)
    return Combination(float(np.log(share / (1 - share))), (flat,))


def fit_isotonic(scores: ArrayLike, labels: ArrayLike) -> regression.Isotonic:
    """Fit a rising function to one score of which higher is better.

    A right answer is added at the lowest score and a wrong one at the highest. So if the k answers
    of the lowest pool are all wrong, their probability is 1 / (k + 1) and not 0. (These are the two
    labels that inductive Venn-Abers predictors add to a new answer; Vovk and Petej 2014.)

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


class MethodChoice(NamedTuple):
    """The choice between the methods of fitting."""

    method: Method
    """The method whose out-of-fold probabilities have the lower log loss."""
    losses: Mapping[Method, float]
    """The log loss of each method; empty where there were too few clusters to compare."""


FITS: Mapping[Method, Fit] = {
    "logistic": lambda x, y, _: fit_logistic(x, y).probabilities,
    "isotonic": lambda x, y, _: fit_isotonic(x, y).at,
}


def choose_method(
    scores: ArrayLike, labels: ArrayLike, clusters: ArrayLike, rng: np.random.Generator
) -> MethodChoice:
    """Choose between a logistic and an isotonic curve by the log loss out of fold.

    There are fewer folds where few clusters contain the rarer class. With a single such cluster the
    logistic curve is chosen, which needs fewer answers.

    Args:
        scores, labels, clusters: shape (n,); scores finite, labels 0 or 1, both of them.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    cluster_of_sample = np.asarray(clusters, dtype=np.int64)
    rarer = min(len(np.unique(cluster_of_sample[y == kind])) for kind in (0, 1))
    if rarer < 2:
        return MethodChoice("logistic", {})
    fold = fold_numbers(cluster_of_sample, y, min(INNER_FOLDS, rarer), rng)
    losses = {
        name: mean_log_loss(out_of_fold(fit, x, y, cluster_of_sample, fold.tolist()), y)
        for name, fit in FITS.items()
    }
    # A tie goes to the logistic curve, which has fewer parameters.
    best: Method = "isotonic" if losses["isotonic"] < losses["logistic"] else "logistic"
    return MethodChoice(best, losses)


def mean_log_loss(chances: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of -log p of the true class, in nats; infinite if p = 0 for a true one."""
    p, y = np.asarray(chances, dtype=np.float64), np.asarray(labels, dtype=np.float64) > 0
    with np.errstate(divide="ignore"):
        return float(-np.log(np.where(y, p, 1 - p)).mean())


def _as_table(scores: ArrayLike) -> Floats:
    x = np.asarray(scores, dtype=np.float64)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or not x.shape[1]:
        raise ValueError(f"expected scores of shape (n, d) or (n,), got {x.shape}")
    return x
