"""Whether values from 0 (good) to 1 (bad) rose, looked at every day: bets on daily sums.

E_t is the sum, over the days on which a rise may have begun, of 1 / 365 of what a bet placed on
that day has made (Shiryaev 1963, Roberts 1966). If nothing rose no bet gains on average, so the
average of E_t is t / 365, and within a year of daily looks it reaches 1 / a with a probability of a
at most (Doob's inequality; Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid
inference"). Each of K that reach K / a keeps the promise for all. Results are natural logarithms.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats

EACH = -math.log(365)
"""The part of its bet that each day has, which makes the promise one for a year of days."""
LIFTS, SPREADS = np.array([0.06, 0.12, 0.25, 0.5, 1.0, 2.0]), np.array([0.3, 30.0])
"""Rises that are bet on, all with the same part: of the log-odds; variances, in those of a day."""
LEVELS = np.arange(-7, 21) * 0.4
"""Levels that are tried, in standard errors of the baseline's log-odds from its own; below them E
is no less, and beyond 8 errors no level is."""
FALLS = np.array([0.0, 1.0, 2.0, 4.0])
"""Of the baseline below such a level, in standard errors, that are bet on against that level."""
MOST, FAR, STAKES = 25.0, 4.0, np.array([0.25, 0.5, 0.9, -0.25, -0.5, -0.9])


def answers_evidence(
    totals: ArrayLike, counts: ArrayLike, baseline: int = 0, line: float | None = None
) -> Floats:
    """Return log E after each day behind the baseline, with answers as units.

    Against a line p, for a rise l of the log-odds: the product over days of exp(l s_t) / (1 +
    p (e^l - 1))^n_t, 1 at most on average if a day's answers are independent with means of p or
    less on average (exp is convex, log concave); they need not be alike. Without a line p is
    unknown: E_t is the least over p of that product times the same of the baseline with negative
    lifts, as p has to explain both (Wasserman, Ramdas and Balakrishnan 2020, "Universal
    inference"). So the baseline's own error is inside of the promise.

    Args:
        totals, counts: s and n, sum and number of the values of each day, shape (..., t); n may
            be 0. baseline: its days, the first ones; 0 with a line. line: p, 0 to 1.

    Returns:
        Shape (..., t - baseline), at most :data:`MOST`.
    """
    s: Floats = np.asarray(totals, dtype=np.float64)[..., None, None]
    n: Floats = np.asarray(counts, dtype=np.float64)[..., None, None]
    p = np.full((*s.shape[:-3], 1), line or 0.0)
    before = np.zeros(p.shape)
    if line is None:
        first = s[..., :baseline, :, 0].sum(axis=-2)
        p, before = _levels(first, n[..., :baseline, :, 0].sum(axis=-2))
        s, n = s[..., baseline:, :, :], n[..., baseline:, :, :]
    rates = np.log1p(p[..., None] * np.expm1(LIFTS))
    result: Floats = np.empty(s.shape[:-2])
    made: Floats = np.full(rates.shape, -np.inf)
    for i in range(result.shape[-1]):
        made = np.logaddexp(made, EACH) + s[..., i, :, :] * LIFTS - n[..., i, :, :] * rates
        result[..., i] = (before + _mean(made, -1)).min(axis=-1)
    return np.minimum(result, MOST)


def _mean(logs: Floats, axis: int) -> Floats:
    result: Floats = np.logaddexp.reduce(logs, axis=axis) - math.log(logs.shape[axis])
    return result


def _levels(s: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return levels about that of a baseline, and the bet on it against each, shape (..., P)."""
    odds = np.log((s + 0.5) / (n - s + 0.5))
    odds = odds + LEVELS * np.sqrt(1 / (s + 0.5) + 1 / (n - s + 0.5))
    p = 1 / (1 + np.exp(-odds))
    lifts = -FALLS / np.sqrt(np.maximum(n, 1) * p * (1 - p))[..., None]
    rates = np.log1p(p[..., None] * np.expm1(lifts))
    return p, _mean(s[..., None] * lifts - n[..., None] * rates, -1)


def starts_evidence(
    totals: ArrayLike, counts: ArrayLike, weekdays: ArrayLike, baseline: int
) -> Floats:
    """Return for each day behind the baseline log E of a rise that began with it, seen from the
    last day, with days as units; shape (..., t - baseline). 1 / 365 of the sum of E is E_t.

    y_t = arcsin sqrt((s + 3/8) / (n + 3/4)) (Anscombe 1948) is a level of its weekday, plus the
    rise, plus a normal error of variance c (v + 1 / 4n): v is what the baseline's days differ by
    beyond chance, c unknown. No y counts as more than :data:`FAR` such errors from the baseline, so
    that one odd day is no alarm. With the right Haar prior of levels and c, a rise of variance g c,
    A the part of it that weekdays leave, b its product with y, R the squares of y about the
    weekdays' means and f = t - weekdays, E is (1 + g A)^(-1/2) (1 - g b^2 / ((1 + g A) R))^(-f/2)
    (Lindon et al. 2022, "Anytime-valid linear models"), here the mean over :data:`SPREADS`. It is
    two-sided; where the level fell, the logarithm is that of 0.

    Args:
        totals, counts: as of :func:`answers_evidence`. weekdays: numbers, shape (t,); all the same
            without a weekly season. baseline: days, more than there are weekdays.
    """
    s, n = np.asarray(totals, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    own = np.equal.outer(np.asarray(weekdays), np.unique(weekdays)).astype(np.float64)
    y, noise, there = np.arcsin(np.sqrt((s + 0.375) / (n + 0.75))), 0.25 / np.maximum(n, 1), n > 0
    first = np.where(there & (np.arange(len(own)) < baseline), 1.0, 0.0)
    days = np.maximum(first.sum(axis=-1), 1)
    free = np.maximum(days - own[:baseline].any(axis=0).sum(), 1)
    apart = y - _fitted(y, first, own)
    spread = (first * apart**2).sum(axis=-1) / free - (noise * first).sum(axis=-1) / days
    noise = noise + np.maximum(spread, 0.0)[..., None]
    far = np.where(first @ own @ own.T > 0, FAR * np.sqrt(noise), np.inf)
    y = y - apart + np.clip(apart, -far, far)
    weights = np.where(there, 1 / noise, 0.0)
    weights = weights * (days / np.maximum((weights * first).sum(axis=-1), 1e-9))[..., None]
    squares = (weights * (y - _fitted(y, weights, own)) ** 2).sum(axis=-1, keepdims=True)
    parts = [one[..., None] * own for one in (weights, weights * y)]
    size, sums = (one[..., ::-1, :].cumsum(axis=-2)[..., ::-1, :] for one in parts)
    whole = np.maximum(size[..., :1, :], 1e-9)
    a = (size * (1 - size / whole)).sum(axis=-1)[..., baseline:]
    b = (sums - size * sums[..., :1, :] / whole).sum(axis=-1)[..., baseline:]
    part = np.divide(b * b, squares, out=np.zeros(b.shape), where=squares > 1e-12)
    f = np.maximum(there.sum(axis=-1) - own.shape[1], 0)[..., None, None]
    g, a, part = SPREADS[:, None], a[..., None, :], part[..., None, :]
    left = np.log1p(-np.minimum(g * part / (1 + g * a), 1 - 1e-12))
    return np.where(b > 0, _mean(-0.5 * np.log1p(g * a) - 0.5 * f * left, -2), -np.inf)


def _fitted(y: Floats, weights: Floats, own: Floats) -> Floats:
    """Return the weighted mean of each day's weekday, shape (..., t)."""
    result: Floats = ((weights * y) @ own / np.maximum(weights @ own, 1e-9)) @ own.T
    return result


def change_day(starts: Floats, level: float = 0.95) -> tuple[int, int, int]:
    """Return where a rise most probably began, and the first and the last of the fewest places
    that hold it with this probability, if before all were equally likely; starts: shape (t,).
    """
    chances = np.exp(starts - starts.max()) if starts.max() > -np.inf else np.ones(len(starts))
    order = np.argsort(-chances, kind="stable")
    kept = order[: np.searchsorted(chances[order].cumsum(), level * chances.sum()) + 1]
    return int(order[0]), int(kept.min()), int(kept.max())


def paired_evidence(differences: ArrayLike) -> float:
    """Return log E of one day of probes asked again: today less the first day, -1 to 1, shape (m,).

    If a probe's value today might as well have come on the first day, d is as likely as -d, and the
    product of 1 + c d is 1 on average; E is its mean over :data:`STAKES` c, of both signs. However
    days depend on each other by the first one, 1 / 365 of their sum keeps the year's promise.
    """
    rows = 1 + STAKES[:, None] * np.asarray(differences, dtype=np.float64)
    return float(_mean(np.log(rows).sum(axis=-1), 0))
