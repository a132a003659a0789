"""Distribution functions and quantiles for intervals, on plain numbers."""

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

MAX_FRACTION_TERMS = 20_000
"""The most terms of the continued fraction; it takes about the root of the larger parameter."""


@cache
def normal_quantile(p: float) -> float:
    """Return the p-quantile of the standard normal distribution, 0 < p < 1."""
    return NormalDist().inv_cdf(p)


@cache
def student_t_quantile(p: float, freedom: int) -> float:
    """Return the p-quantile of Student's t, 0 < p < 1, with 1 or more degrees of freedom.

    It is found by bisection of the distribution function, to the last digits.
    """
    if not 0 < p < 1 or freedom < 1:
        raise ValueError("expected 0 < p < 1 and one degree of freedom or more")
    if p < 0.5:
        return -student_t_quantile(1 - p, freedom)

    def below_quantile(t: float) -> bool:  # P(T > t) = I_x(v/2, 1/2) / 2, x = v / (v + t^2)
        return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2 > 1 - p

    # Doubling brackets the quantile: with one degree of freedom it can be very large.
    low, high = 0.0, 1.0
    while below_quantile(high):
        low, high = high, 2 * high
    return sum(bisection(below_quantile, low, high)) / 2


def bisection(
    holds: Callable[[float], bool], inside: float, outside: float, steps: int = 200
) -> tuple[float, float]:
    """Return the two ends of a small interval in which a condition ceases to hold.

    Args:
        holds: the condition, which holds at ``inside`` and not at ``outside``.
        inside, outside: any order.
        steps: how often the interval is halved, unless no number is left between its ends.
    """
    for _ in range(steps):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside


def f_quantile(p: float, above: float, below: float) -> float:
    """Return the p-quantile of F, 0 < p < 1, with degrees of freedom above 0, whole or not.

    P(F <= x) = I_y(above / 2, below / 2) with y = above x / (above x + below), solved by bisection.
    """
    if not 0 < p < 1 or min(above, below) <= 0:
        raise ValueError("expected 0 < p < 1 and degrees of freedom above 0")
    low, _ = bisection(lambda y: incomplete_beta(above / 2, below / 2, y) <= p, 0.0, 1.0)
    return below * low / (above * (1 - low))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), a and b above 0."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # The continued fraction converges fast only below this point; beyond it the mirror image does.
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(logarithm + a * math.log(x) + b * math.log1p(-x)) / a / _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (Abramowitz 26.5.8).

    It is evaluated by Lentz's method.
    """
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, MAX_FRACTION_TERMS):
        m, odd = divmod(step, 2)
        if odd:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        # Lentz replaces a denominator of 0 by a tiny number, which cancels in the next step.
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
