"""From scores to the probability that an answer is right: isotonic or logistic, or of several
scores at once.

A calibrator never gives 0 or 1: no number of labels says that an answer cannot be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.folds import Fit, fold_numbers, out_of_fold
from trustassay.statistics.isotonic import Isotonic, isotonic_regression
from trustassay.statistics.logistic import logistic_regression, sigmoid

__all__ = [
    "Choice",
    "Combination",
    "Method",
    "Term",
    "choose_method",
    "fit_combination",
    "fit_isotonic",
    "fit_logistic",
    "mean_log_loss",
]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Method = Literal["isotonic", "logistic"]
PENALTY = 1.0
INNER_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Term:
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
    terms: tuple[Term, ...]

    def probabilities(self, table: ArrayLike) -> Floats:
        """Return the probability of each row, shape (n,), of scores, shape (n, d) or (n,).

        NaN where a score is missing that no answer of the fit was without, and where all are.
        """
        return sigmoid(self.log_odds(table))

    def log_odds(self, table: ArrayLike) -> Floats:
        """Return the log odds of each row."""
        x = _table(table)
        if x.shape[1] != len(self.terms):
            raise ValueError(f"expected {len(self.terms)} scores, got {x.shape[1]}")
        found = np.full(len(x), self.intercept)
        for column, term in zip(x.T, self.terms, strict=True):
            without = np.nan if term.missing is None else term.missing
            there = term.coefficient * ((column - term.centre) / term.scale)
            found += np.where(np.isnan(column), without, there)
        return np.where(np.isnan(x).all(axis=1), np.nan, found)


def fit_combination(
    table: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY
) -> Combination:
    """Fit a logistic regression on several scores, some of which may be missing (NaN).

    Nothing is imputed: a score that some answers lack has one more coefficient, which is added to
    the log odds of exactly those (a missing-indicator). So an answer without a score is told by its
    other scores and by the share of right answers among those that lack this one. Answers without
    any score are left out.

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
    fit = logistic_regression(np.concatenate(design, axis=1), y, penalty=penalty)
    own, of_missing = np.split(fit.coefficients, [x.shape[1]])
    adding = dict(zip(lacking.tolist(), of_missing.tolist(), strict=True))
    terms = [
        Term(*numbers, adding.get(place))
        for place, numbers in enumerate(
            zip(centre.tolist(), scale.tolist(), own.tolist(), strict=True)
        )
    ]
    return Combination(fit.intercept, tuple(terms))


def fit_logistic(scores: ArrayLike, labels: ArrayLike, *, penalty: float = PENALTY) -> Combination:
    """Fit the probability of one score of which higher is better, as a logistic curve (Platt 1999).

    The curve does not fall: where it would, it is the share of right answers. Scores are finite.
    """
    fit = fit_combination(scores, labels, penalty=penalty)
    if fit.terms[0].coefficient >= 0:
        return fit
    share = float(np.asarray(labels, dtype=np.float64).mean())
    term = fit.terms[0]
    flat = Term(term.centre, term.scale, 0.0)
    return Combination(float(np.log(share / (1 - share))), (flat,))


def fit_isotonic(scores: ArrayLike, labels: ArrayLike) -> Isotonic:
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
    return isotonic_regression(np.concatenate([x, ends]), np.concatenate([y, [1.0, 0.0]]))


class Choice(NamedTuple):
    """The method whose out-of-fold probabilities have the lower log loss, and both losses."""

    method: Method
    losses: Mapping[Method, float]


FITS: Mapping[Method, Fit] = {
    "logistic": lambda x, y, _: fit_logistic(x, y).probabilities,
    "isotonic": lambda x, y, _: fit_isotonic(x, y).at,
}


def choose_method(
    scores: ArrayLike,
    labels: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    folds: int = INNER_FOLDS,
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
    fold = fold_numbers(of, y, min(folds, rarer), rng)
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
