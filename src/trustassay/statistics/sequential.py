"""Sequential decisions: on which side of a line a mean is, decided as early as possible.

Also: an interval of a mean that holds at all sample sizes together.

Notation: x_1, ..., x_N are values from 0 to 1 of which any order is equally likely, such as replies
to one question; b is the line. If the mean of all N is b, the next value is on average

    C_i = (N b - x_1 - ... - x_{i-1}) / (N - i + 1)

so a bet on a value below or above C_i gains nothing on average. Its capital, 1 at first, ever
reaches 1 / alpha with a probability of at most alpha, however often one looks (Ville's inequality;
Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", on sampling
without replacement). If the mean lies on the far side of b, the same bets lose.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places

STAKES = np.array([0.5, 1.0])
"""Stakes as shares of the largest bet that cannot lose everything; each has half of the capital.
Any choice keeps the promise; these decide early where nearly all values agree
(``lab.benchmarks.uncertainty_auto``)."""
SUM_TOLERANCE = 1e-9
"""A sum this close to N b counts as neither below nor above it."""


def decide_sides(values: ArrayLike, line: float, total: int, confidence: float) -> Places:
    """Decide after each value on which side of the line the mean of all N values is.

    A side is decided where the remaining values cannot change it, or where a bet on it has raised
    its capital to 1 / (1 - confidence) and the mean so far is on that side. The first decision is
    wrong with a probability of at most 1 - confidence, whatever the values are.

    Args:
        values: x_1 to x_t, shape (..., t), t from 0 to N.
        line: b, 0 to 1.
        total: N.
        confidence: 0 to 1; with 1 only certain sides are decided.

    Returns:
        -1 below, 1 on the line or above, 0 undecided, shape (..., t).
    """
    x = np.asarray(values, dtype=np.float64)
    line_sum = total * line
    enough = 1 / (1 - confidence) if confidence < 1 else np.inf
    below = np.ones((*x.shape[:-1], len(STAKES)))
    above, sum_so_far = below.copy(), np.zeros(x.shape[:-1])
    result = np.zeros(x.shape, dtype=np.int64)
    for i in range(x.shape[-1]):
        now, remaining = x[..., i], total - i - 1
        expected: Floats = (line_sum - sum_so_far) / (total - i)
        open_ = (expected > 0) & (expected < 1)  # beyond, the side is certain
        # Where the side is certain, C_i leaves the range: a harmless value, and a gain of 0 below.
        c = np.where(open_, expected, 0.5)
        gain = np.where(open_, now - c, 0.0)
        # Values below C_i win this bet; gain / (1 - c) is at most 1, so the capital never gets
        # negative.
        below = below * (1 - STAKES * (gain / (1 - c))[..., None])
        above = above * (1 + STAKES * (gain / c)[..., None])
        sum_so_far = sum_so_far + now
        short = sum_so_far < (i + 1) * line
        surely_below = sum_so_far + remaining < line_sum - SUM_TOLERANCE
        surely_above = sum_so_far >= line_sum + SUM_TOLERANCE
        is_below = surely_below | (short & ~surely_above & (below.mean(axis=-1) >= enough))
        is_above = surely_above | (~short & ~surely_below & (above.mean(axis=-1) >= enough))
        result[..., i] = is_above.astype(np.int64) - is_below
    return result


def min_further_values(values: ArrayLike, line: float, total: int, confidence: float) -> int:
    """Return the least number of further values after which the side may be decided, 1 to N - t.

    That many values can be requested at once, and none of them is superfluous.

    Args:
        values: x_1 to x_t, shape (t,), t < N.
        line, total, confidence: as for :func:`decide_sides`.
    """
    observed = np.asarray(values, dtype=np.float64)
    remaining = total - len(observed)
    # Nothing decides earlier than further values that are all 0 or all 1.
    same = [np.append(observed, np.full(remaining, value)) for value in (0.0, 1.0)]
    is_decided = np.any(decide_sides(same, line, total, confidence)[:, len(observed) :], axis=0)
    return int(is_decided.argmax()) + 1 if is_decided.any() else remaining


def mean_interval_at_any_n(s: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a mean that holds at all sample sizes together with this probability.

    It contains all p for which the mean of (q/p)^s ((1-q)/(1-p))^(n-s) over q, by Jeffreys' prior,
    is below 1 / (1 - level) (Robbins 1970); exact to 1e-4.

    Args:
        s: the sum of n independent values from 0 to 1.
        n: above 0.
        level: the probability.
    """
    p = np.linspace(0, 1, 10_001)[1:-1]
    log_normaliser = (
        math.lgamma(s + 0.5) + math.lgamma(n - s + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    )
    inside = np.flatnonzero(
        log_normaliser - s * np.log(p) - (n - s) * np.log1p(-p) < -math.log(1 - level)
    )
    # One grid point farther out on each side: the interval is never too narrow by the grid.
    ends = [
        p[inside[0] - 1] if inside[0] else 0.0,
        p[inside[-1] + 1] if inside[-1] + 1 < len(p) else 1.0,
    ]
    return float(ends[0]), float(ends[1])
