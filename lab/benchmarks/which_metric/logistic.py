"""Logistic regression on several scores, some of which may be missing, and folds of questions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.regression import sigmoid

MAX_NEWTON_STEPS = 100
"""The most Newton steps of a fit; about ten are usual."""
MAX_HALVINGS = 60
"""The most halvings of a step; after these it is too small to change a coefficient."""
MAX_GRADIENT = 1e-10
"""The fit is complete when no derivative, over the number of rows, is larger than this."""


class LogisticFit(NamedTuple):
    """A fit of the log odds as ``intercept + table @ coefficients``."""

    intercept: float
    """The log odds where all columns are 0."""
    coefficients: Floats
    """The log odds per unit of each column, shape (d,)."""


def logistic_regression(
    table: ArrayLike, labels: ArrayLike, *, penalty: float = 1.0
) -> LogisticFit:
    """Fit a logistic regression with an L2 penalty: return the a and b that minimise

        sum_i (log(1 + exp(z_i)) - y_i z_i) + penalty / 2 |b|^2,   z_i = a + table_i b.

    The intercept a has no penalty. With a penalty above 0 there is exactly one minimum, even where
    the classes can be separated. Newton's steps (iteratively reweighted least squares; Hastie,
    Tibshirani and Friedman 2009, section 4.4.1) are halved until the sum falls.

    Args:
        table: shape (n, d), finite; its columns should be of similar size, since all have the same
            penalty.
        labels: 0 or 1, shape (n,), both of them.

    Raises:
        ValueError: shapes do not fit, a number is not finite, labels are of one class only, or the
            penalty is not above 0.
    """
    x, y = np.asarray(table, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    _check_input(x, y, penalty)
    design = np.column_stack([np.ones(len(y)), x])
    penalties = np.full(design.shape[1], float(penalty))
    penalties[0] = 0.0
    share = float(y.mean())
    b = np.zeros(design.shape[1])
    # Start at the best constant: from there few steps need halving.
    b[0] = np.log(share / (1 - share))
    loss = _loss(design, y, penalties, b)
    for _ in range(MAX_NEWTON_STEPS):
        chance = sigmoid(design @ b)
        slope = design.T @ (chance - y) + penalties * b
        if np.abs(slope).max() <= MAX_GRADIENT * len(y):
            break
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design
        # lstsq, not solve: the curvature is singular where the fit is nearly certain.
        step = np.linalg.lstsq(curvature + np.diag(penalties), slope, rcond=None)[0]
        for _ in range(MAX_HALVINGS):
            lower = _loss(design, y, penalties, b - step)
            if lower <= loss:
                break
            step = step / 2
        else:
            break  # nothing is lower: the rest is rounding
        b, loss = b - step, lower
    return LogisticFit(float(b[0]), b[1:])


def _loss(design: Floats, y: Floats, penalties: Floats, b: Floats) -> float:
    z = design @ b
    return float((np.logaddexp(0.0, z) - y * z).sum() + penalties @ b**2 / 2)


def _check_input(x: Floats, y: Floats, penalty: float) -> None:
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y):
        raise ValueError(
            f"expected a table of n rows and n labels, got shapes {x.shape} and {y.shape}"
        )
    if not np.isfinite(x).all():
        raise ValueError("expected finite numbers")
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("expected labels of 0 and 1")
    if len(set(y.tolist())) < 2:
        raise ValueError("expected labels of both classes")
    if not (np.isfinite(penalty) and penalty > 0):
        raise ValueError(f"penalty: expected a number above 0, got {penalty}")


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


PENALTY = 1.0
"""The L2 penalty of a coefficient: a normal prior of variance 1."""


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
        return sigmoid(self.log_odds(table))

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
    fit = logistic_regression(np.concatenate(design, axis=1), y, penalty=penalty)
    slopes, of_missing = np.split(fit.coefficients, [x.shape[1]])
    adding = dict(zip(lacking.tolist(), of_missing.tolist(), strict=True))
    terms = tuple(
        LogOddsTerm(float(centre[i]), float(scale[i]), float(slopes[i]), adding.get(i))
        for i in range(x.shape[1])
    )
    return Combination(fit.intercept, terms)


def _as_table(scores: ArrayLike) -> Floats:
    x = np.asarray(scores, dtype=np.float64)
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2 or not x.shape[1]:
        raise ValueError(f"expected scores of shape (n, d) or (n,), got {x.shape}")
    return x
