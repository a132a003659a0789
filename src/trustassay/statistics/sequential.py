"""Means of values that come one after another: whether they reach a line, known before the last
one, and an interval that holds however often one looks.

Notation of the line: x_1, ..., x_N from 0 to 1, of which any order is as likely as any other, as of
replies to one question; b is the line. If the mean of all N is b, the next value is on average

    C_i = (N b - x_1 - ... - x_{i-1}) / (N - i + 1)

so that a bet on its being below or above C_i gains nothing on average, and its capital, 1 at first,
ever reaches 1 / alpha with a probability of alpha at most, however often one looks (Ville's
inequality; Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting",
on sampling without replacement). With another mean on the far side of b the same bets lose.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places

STAKES = np.array([0.5, 1.0])
"""Shares of the largest bet that cannot end below 0; each has half of the capital. Any choice keeps
the promise; these need few values where nearly all agree (``benchmarks.uncertainty_auto``)."""
ROUNDING = 1e-9
"""A sum this near to N b counts as neither below nor above it."""


def decisions(values: ArrayLike, line: float, total: int, confidence: float) -> Places:
    """Return, after each value, on which side of the line the mean of all N is: -1 below, 1 on it
    or above, 0 where it is open; shape (..., t).

    A side is told where the values left cannot change it, or a bet on it has made 1 / (1 -
    confidence) of 1, and the mean so far is on that side. That the first side told is not that of
    all N values has a probability of 1 - confidence at most, whatever the values are.

    Args:
        values: x_1 to x_t, shape (..., t), t from 0 to N. line: b, 0 to 1. total: N.
        confidence: 0 to 1; with 1 only what cannot change is told.
    """
    x = np.asarray(values, dtype=np.float64)
    whole = total * line
    enough = 1 / (1 - confidence) if confidence < 1 else np.inf
    below = np.ones((*x.shape[:-1], len(STAKES)))
    above, known = below.copy(), np.zeros(x.shape[:-1])
    result = np.zeros(x.shape, dtype=np.int64)
    for i in range(x.shape[-1]):
        now, left = x[..., i], total - i - 1
        expected: Floats = (whole - known) / (total - i)
        open_ = (expected > 0) & (expected < 1)  # beyond, the side is certain
        c = np.where(open_, expected, 0.5)
        gain = np.where(open_, now - c, 0.0)
        below = below * (1 - STAKES * (gain / (1 - c))[..., None])
        above = above * (1 + STAKES * (gain / c)[..., None])
        known = known + now
        short = known < (i + 1) * line
        surely_below = known + left < whole - ROUNDING
        surely_above = known >= whole + ROUNDING
        is_below = surely_below | (short & ~surely_above & (below.mean(axis=-1) >= enough))
        is_above = surely_above | (~short & ~surely_below & (above.mean(axis=-1) >= enough))
        result[..., i] = is_above.astype(np.int64) - is_below
    return result


def fewest_more(values: ArrayLike, line: float, total: int, confidence: float) -> int:
    """Return after how many further values at the least the side may be known, 1 to N - t.

    That many can be asked for at once, and none is one too many. values: shape (t,), t < N.
    """
    known = np.asarray(values, dtype=np.float64)
    left = total - len(known)
    same = [np.append(known, np.full(left, value)) for value in (0.0, 1.0)]
    told = np.any(decisions(same, line, total, confidence)[:, len(known) :], axis=0)
    return int(told.argmax()) + 1 if told.any() else left


def mean_interval_at_any_n(s: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of the mean of n > 0 independent values from 0 to 1, of the sum s, that
    holds at all n together with this probability: all p against which the mean over q, by Jeffreys'
    prior, of (q/p)^s ((1-q)/(1-p))^(n-s) is below 1 / (1 - level) (Robbins 1970), to 1e-4.
    """
    p = np.linspace(0, 1, 10_001)[1:-1]
    made = math.lgamma(s + 0.5) + math.lgamma(n - s + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    inside = np.flatnonzero(made - s * np.log(p) - (n - s) * np.log1p(-p) < -math.log(1 - level))
    ends = [
        p[inside[0] - 1] if inside[0] else 0.0,
        p[inside[-1] + 1] if inside[-1] + 1 < len(p) else 1.0,
    ]
    return float(ends[0]), float(ends[1])
