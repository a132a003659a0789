"""Means and least-squares lines in one pass, with their standard errors and intervals.

Everything is held as sums about running means (Welford 1962; Chan, Golub and LeVeque 1979), so a
million values take no memory, pieces can be added together, and nothing cancels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from trustassay.statistics.distributions import student_t_quantile

__all__ = ["Line", "LineSums", "Moments", "student_t_quantile"]


@dataclass(slots=True)
class Moments:
    """Number, mean and sum of squared deviations of the values seen so far."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Count one more value."""
        self.n += 1
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)

    def __add__(self, other: Moments) -> Moments:
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
class Line:
    """The least-squares line y = slope x + intercept through n points.

    The intervals are those of Student's t with n - 2 degrees of freedom; ``None`` for fewer than
    three points.
    """

    n: int
    slope: float
    intercept: float
    slope_interval: tuple[float, float] | None
    intercept_interval: tuple[float, float] | None

    def at(self, x: float) -> float:
        """Return the line's height at ``x``."""
        return self.intercept + self.slope * x


@dataclass(slots=True)
class LineSums:
    """What a least-squares line needs to know of the points seen so far."""

    n: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Count one more point."""
        self.n += 1
        dx, dy = x - self.x, y - self.y
        self.x += dx / self.n
        self.y += dy / self.n
        self.xx += dx * (x - self.x)
        self.xy += dx * (y - self.y)
        self.yy += dy * (y - self.y)

    def __add__(self, other: LineSums) -> LineSums:
        n = self.n + other.n
        if not n:
            return LineSums()
        dx, dy = other.x - self.x, other.y - self.y
        weight = self.n * other.n / n
        return LineSums(
            n,
            self.x + dx * other.n / n,
            self.y + dy * other.n / n,
            self.xx + other.xx + dx * dx * weight,
            self.xy + other.xy + dx * dy * weight,
            self.yy + other.yy + dy * dy * weight,
        )

    def line(self, level: float = 0.95) -> Line | None:
        """Return the line; ``None`` for fewer than two points, or where all x are equal."""
        if self.n < 2 or self.xx <= 0:
            return None
        slope = self.xy / self.xx
        intercept = self.y - slope * self.x
        if self.n < 3:
            return Line(self.n, slope, intercept, None, None)
        residual = max(self.yy - slope * self.xy, 0.0) / (self.n - 2)
        t = student_t_quantile((1 + level) / 2, self.n - 2)
        by_slope = t * math.sqrt(residual / self.xx)
        by_intercept = t * math.sqrt(residual * (1 / self.n + self.x**2 / self.xx))
        return Line(
            self.n,
            slope,
            intercept,
            (slope - by_slope, slope + by_slope),
            (intercept - by_intercept, intercept + by_intercept),
        )
