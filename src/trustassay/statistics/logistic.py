"""Logistic regression with a penalty on the coefficients, by Newton's method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LogisticFit", "logistic_regression", "sigmoid"]

Floats = NDArray[np.float64]
STEPS = 100
HALVINGS = 60
EXACT = 1e-10
"""The largest derivative, over the sum of weights, at which the fit is taken to be found."""


class LogisticFit(NamedTuple):
    """The log odds: ``intercept + table @ coefficients``."""

    intercept: float
    coefficients: Floats


def sigmoid(log_odds: ArrayLike) -> Floats:
    """Return probabilities of log odds, 1 / (1 + exp(-z)), of the same shape; nothing overflows."""
    z = np.asarray(log_odds, dtype=np.float64)
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))


def logistic_regression(
    table: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    penalty: float = 1.0,
) -> LogisticFit:
    """Return the coefficients b and the intercept a of the least

        sum_i w_i (log(1 + exp(z_i)) - y_i z_i) + penalty / 2 |b|^2,   z_i = a + table_i b.

    The intercept has no penalty. With a penalty above 0 there is exactly one minimum, also where
    the classes can be separated. Newton's steps (iteratively reweighted least squares; Hastie,
    Tibshirani and Friedman 2009, section 4.4.1) are halved until the sum falls.

    Args:
        table: shape (n, d), finite; its columns should be of similar size, since all have the same
            penalty.
        labels: 0 or 1, shape (n,), both of them.
        weights: above 0, shape (n,); ones if not given.

    Raises:
        ValueError: shapes do not fit, a number is not finite, labels are of one class only, or the
            penalty is not above 0.
    """
    x, y = np.asarray(table, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(x, y, w, penalty)
    design = np.column_stack([np.ones(len(y)), x])
    penalties = np.full(design.shape[1], float(penalty))
    penalties[0] = 0.0
    share = float(w @ y / w.sum())
    b = np.zeros(design.shape[1])
    b[0] = np.log(share / (1 - share))
    loss = _loss(design, y, w, penalties, b)
    for _ in range(STEPS):
        chance = sigmoid(design @ b)
        slope = design.T @ (w * (chance - y)) + penalties * b
        if np.abs(slope).max() <= EXACT * w.sum():
            break
        curvature = (design * (w * chance * (1 - chance))[:, None]).T @ design
        step = np.linalg.lstsq(curvature + np.diag(penalties), slope, rcond=None)[0]
        for _ in range(HALVINGS):
            lower = _loss(design, y, w, penalties, b - step)
            if lower <= loss:
                break
            step = step / 2
        else:
            break  # nothing is lower: the rest is rounding
        b, loss = b - step, lower
    return LogisticFit(float(b[0]), b[1:])


def _loss(design: Floats, y: Floats, w: Floats, penalties: Floats, b: Floats) -> float:
    z = design @ b
    return float(w @ (np.logaddexp(0.0, z) - y * z) + penalties @ b**2 / 2)


def _check(x: Floats, y: Floats, w: Floats, penalty: float) -> None:
    if x.ndim != 2 or y.ndim != 1 or not len(x) == len(y) == len(w):
        raise ValueError(
            f"expected a table of n rows, n labels and n weights, got shapes {x.shape}, {y.shape} "
            f"and {w.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(w).all()) or not (w > 0).all():
        raise ValueError("expected finite numbers, and weights above 0")
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("expected labels of 0 and 1")
    if len(set(y.tolist())) < 2:
        raise ValueError("expected labels of both classes")
    if not (np.isfinite(penalty) and penalty > 0):
        raise ValueError(f"penalty: expected a number above 0, got {penalty}")
