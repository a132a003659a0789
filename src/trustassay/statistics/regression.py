"""Regression: least-squares lines, and rising functions (isotonic regression)."""

import math
from dataclasses import dataclass, field

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


def sigmoid(log_odds: ArrayLike) -> Floats:
    """Return the probabilities 1 / (1 + exp(-z)) of log odds z, of the same shape.

    Large log odds of either sign do not overflow.
    """
    z = np.asarray(log_odds, dtype=np.float64)
    # exp of a negative number only, so it never overflows
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))


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
            f"expected scores and labels of the same length, 1 or more, got shapes {x.shape} and "
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
