"""Regression: least-squares lines, logistic curves, and rising functions (isotonic regression)."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.distributions import student_t_quantile


@dataclass(slots=True)
class Moments:
    """Running moments of values, updated value by value (Welford 1962)."""

    n: int = 0
    """How many values were added."""
    mean: float = 0.0
    """Their mean."""
    squares: float = 0.0
    """The sum of their squared deviations from the mean."""

    def add(self, value: float) -> None:
        """Count one more value."""
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        # The mean has moved: one factor is the distance from the old mean, one from the new mean.
        self.squares += step * (value - self.mean)

    def __add__(self, other: "Moments") -> "Moments":
        n = self.n + other.n
        if not n:
            return Moments()
        step = other.mean - self.mean
        mean = self.mean + step * other.n / n
        return Moments(n, mean, self.squares + other.squares + step**2 * self.n * other.n / n)

    @property
    def error(self) -> float | None:
        """The standard error of the mean, s / sqrt(n); ``None`` for fewer than two values."""
        if self.n < 2:
            return None
        return math.sqrt(max(self.squares, 0.0) / (self.n - 1) / self.n)


@dataclass(frozen=True, slots=True)
class RegressionLine:
    """The least-squares line y = slope x + intercept."""

    n: int
    """How many points it is fitted to."""
    slope: float
    """The rise of y per unit of x."""
    intercept: float
    """The height at x = 0."""
    slope_interval: tuple[float, float] | None
    """Student's interval with n - 2 degrees of freedom; ``None`` for fewer than three points."""
    intercept_interval: tuple[float, float] | None
    """The same for the intercept."""

    def at(self, x: float) -> float:
        """Return the line's height at ``x``."""
        return self.intercept + self.slope * x


@dataclass(slots=True)
class LineSums:
    """The sums that a least-squares line needs, updated point by point."""

    x: Moments = field(default_factory=Moments)
    """The moments of the x values."""
    y: Moments = field(default_factory=Moments)
    """The moments of the y values."""
    products: float = 0.0
    """The sum of the products of the deviations of x and y from their means."""

    def add(self, x: float, y: float) -> None:
        """Count one more point."""
        step = x - self.x.mean
        self.x.add(x)
        self.y.add(y)
        # as for the squares: x from its old mean, y from its new one
        self.products += step * (y - self.y.mean)

    def __add__(self, other: "LineSums") -> "LineSums":
        x, y = self.x + other.x, self.y + other.y
        steps = (other.x.mean - self.x.mean) * (other.y.mean - self.y.mean)
        between = steps * self.x.n * other.x.n / max(x.n, 1)
        return LineSums(x, y, self.products + other.products + between)

    def line(self, level: float = 0.95) -> RegressionLine | None:
        """Return the line; ``None`` for fewer than two points, or where all x are equal."""
        n, x = self.x.n, self.x
        if n < 2 or x.squares <= 0:
            return None
        slope = self.products / x.squares
        intercept = self.y.mean - slope * x.mean
        if n < 3:
            return RegressionLine(n, slope, intercept, None, None)
        # Rounding may leave the residual of points on one line slightly below 0.
        residual = max(self.y.squares - slope * self.products, 0.0) / (n - 2)
        t = student_t_quantile((1 + level) / 2, n - 2)
        by_slope = t * math.sqrt(residual / x.squares)
        by_intercept = t * math.sqrt(residual * (1 / n + x.mean**2 / x.squares))
        ends = (slope - by_slope, slope + by_slope)
        return RegressionLine(
            n, slope, intercept, ends, (intercept - by_intercept, intercept + by_intercept)
        )


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


def sigmoid(log_odds: ArrayLike) -> Floats:
    """Return the probabilities 1 / (1 + exp(-z)) of log odds z, of the same shape.

    Large log odds of either sign do not overflow.
    """
    z = np.asarray(log_odds, dtype=np.float64)
    # exp of a negative number only, so it never overflows
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))


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


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A function that never falls: straight lines between knots, and constant outside them."""

    knots: tuple[float, ...]
    """Scores, rising, one or more."""
    values: tuple[float, ...]
    """The function at the knots, never falling."""

    def at(self, scores: ArrayLike) -> Floats:
        """Return the value of the function at each score, of the same shape; NaN stays NaN."""
        x = np.asarray(scores, dtype=np.float64)
        result = np.interp(x, self.knots, self.values)
        return np.asarray(np.where(np.isnan(x), np.nan, result))


def isotonic_regression(scores: ArrayLike, labels: ArrayLike) -> Isotonic:
    """Return the rising function with the least sum of squared distances from the labels.

    It is found exactly by pooling adjacent violators (Ayer et al. 1955): equal scores first become
    one point with their mean label, then falling neighbours are replaced by their mean until none
    fall. Between the last score of one pool and the first of the next the function is linear.

    Args:
        scores, labels: shape (n,), n >= 1, finite.

    Raises:
        ValueError: shapes differ, nothing is given, or a number is not finite.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise ValueError(
            f"expected scores and labels of one length, 1 or more, got shapes {x.shape} and "
            f"{y.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("expected finite scores and labels")
    points, place = np.unique(x, return_inverse=True)
    count: Floats = np.bincount(place).astype(np.float64)
    values = np.repeat(*_pool_adjacent(np.bincount(place, y) / count, count))
    # Within a pool only the ends are needed for straight lines, so inner points are dropped.
    inside = np.zeros(len(points), dtype=bool)
    inside[1:-1] = (values[1:-1] == values[:-2]) & (values[1:-1] == values[2:])
    return Isotonic(tuple(points[~inside].tolist()), tuple(values[~inside].tolist()))


def _pool_adjacent(means: Floats, weights: Floats) -> tuple[Floats, Places]:
    """Pool adjacent violators; return the mean and the number of points of each pool."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, points
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        pool = (mean, weight, 1)
        # A merged pool may fall below the one before it, so merging goes on backwards.
        while pools and pools[-1][0] >= pool[0]:
            before, more, count = pools.pop()
            total = more + pool[1]
            pool = ((before * more + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    return np.array([pool[0] for pool in pools]), np.array([pool[2] for pool in pools])
