"""Sequential tests of whether values from 0 (good) to 1 (bad) have risen, by bets on daily sums.

E_t is the sum, over the days on which a rise may have begun, of 1 / 365 of the capital of a bet
placed on that day (Shiryaev 1963, Roberts 1966). If nothing rose, no bet gains on average, so the
average of E_t is t / 365, and within a year of daily looks it reaches 1 / a with a probability of
at most a (Doob's inequality; Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid
inference"). With K such tests, alarms at K / a keep the promise for all of them together. Results
are natural logarithms.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats

LOG_DAY_SHARE = -math.log(365)
"""The log of the share of the stake that each day has: the promise is for a year of days."""
LIFTS, SPREADS = np.array([0.06, 0.12, 0.25, 0.5, 1.0, 2.0]), np.array([0.3, 30.0])
"""Rises that are bet on with equal stakes: rises of the log-odds; and for days as units, variances
of the rise as multiples of a day's variance."""
LEVELS = np.arange(-7, 21) * 0.4
"""True levels that are tried, as distances from the baseline's log-odds in standard errors. Lower
levels give no smaller E, and levels beyond 8 errors are ruled out by the baseline."""
FALLS = np.array([0.0, 1.0, 2.0, 4.0])
"""Distances, in standard errors, by which the baseline may lie below a level: bets against it."""
MAX_LOG_EVIDENCE, MAX_DEVIATION, STAKES = 25.0, 4.0, np.array([0.25, 0.5, 0.9, -0.25, -0.5, -0.9])
"""The largest log E that is returned; the largest deviation of a day in standard errors; the stakes
of the bets on probes."""


def answers_evidence(
    totals: ArrayLike, counts: ArrayLike, baseline: int = 0, line: float | None = None
) -> Floats:
    """Return log E after each day since the baseline, with answers as units.

    Against a line p, a bet on a rise l of the log-odds has the capital: product over days of
    exp(l s_t) / (1 + p (e^l - 1))^n_t. Its mean is at most 1 if a day's answers are independent
    with means of p or less on average (exp is convex, log concave); they need not be alike. Without
    a line p is unknown: E_t is the minimum over p of that product times the same for the baseline
    with negative lifts, since p has to explain both (Wasserman, Ramdas and Balakrishnan 2020,
    "Universal inference"). So the promise covers the uncertainty of the baseline.

    Args:
        totals, counts: s and n, the sum and the number of the values of each day, shape (..., t);
            n may be 0.
        baseline: how many of the first days are the baseline; 0 with a line.
        line: p, 0 to 1.

    Returns:
        Shape (..., t - baseline), at most :data:`MAX_LOG_EVIDENCE`.
    """
    s: Floats = np.asarray(totals, dtype=np.float64)[..., None, None]
    n: Floats = np.asarray(counts, dtype=np.float64)[..., None, None]
    p = np.full((*s.shape[:-3], 1), line or 0.0)
    before = np.zeros(p.shape)
    if line is None:
        first = s[..., :baseline, :, 0].sum(axis=-2)
        p, before = _candidate_levels(first, n[..., :baseline, :, 0].sum(axis=-2))
        s, n = s[..., baseline:, :, :], n[..., baseline:, :, :]
    rates = np.log1p(p[..., None] * np.expm1(LIFTS))
    result: Floats = np.empty(s.shape[:-2])
    capital: Floats = np.full(rates.shape, -np.inf)
    for i in range(result.shape[-1]):
        # Each day opens a new bet (logaddexp with its stake) and then all open bets take the day's
        # result.
        capital = (
            np.logaddexp(capital, LOG_DAY_SHARE) + s[..., i, :, :] * LIFTS - n[..., i, :, :] * rates
        )
        result[..., i] = (before + _log_mean(capital, -1)).min(axis=-1)
    # A cap keeps exp() finite, and is far above any evidence that is needed.
    return np.minimum(result, MAX_LOG_EVIDENCE)


def _log_mean(logs: Floats, axis: int) -> Floats:
    """Return the log of the mean of numbers that are given by their logs."""
    result: Floats = np.logaddexp.reduce(logs, axis=axis) - math.log(logs.shape[axis])
    return result


def _candidate_levels(s: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return candidate levels around a baseline's, and the log bet of the baseline against each.

    Both have the shape (..., P).
    """
    # half a count on each side keeps the log-odds of 0 and of n finite
    odds = np.log((s + 0.5) / (n - s + 0.5))
    odds = odds + LEVELS * np.sqrt(1 / (s + 0.5) + 1 / (n - s + 0.5))
    p = 1 / (1 + np.exp(-odds))
    lifts = -FALLS / np.sqrt(np.maximum(n, 1) * p * (1 - p))[..., None]
    rates = np.log1p(p[..., None] * np.expm1(lifts))
    return p, _log_mean(s[..., None] * lifts - n[..., None] * rates, -1)


def starts_evidence(
    totals: ArrayLike, counts: ArrayLike, weekdays: ArrayLike, baseline: int
) -> Floats:
    """Return log E, as of the last day, of a rise that began on each day, with days as units.

    The shape is (..., t - baseline). 1 / 365 of the sum of E is E_t.

    y_t = arcsin sqrt((s + 3/8) / (n + 3/4)) (Anscombe 1948) is modelled as the level of its
    weekday, plus the rise, plus a normal error of variance c (v + 1 / 4n). v is the variance of the
    baseline's days beyond chance, c is unknown. No y counts as more than :data:`MAX_DEVIATION` such
    errors from the baseline, so that a single odd day is no alarm. With the right Haar prior of
    levels and c, a rise of variance g c, A the part of the rise that weekdays leave, b its product
    with y, R the squares of y about the weekdays' means and f = t - weekdays, E is (1 + g A)^(-1/2)
    (1 - g b^2 / ((1 + g A) R))^(-f/2) (Lindon et al. 2022, "Anytime-valid linear models"), averaged
    over :data:`SPREADS`. The test is two-sided; where the level fell, log E is that of 0.

    Args:
        totals, counts: as for :func:`answers_evidence`.
        weekdays: the weekday of each day, shape (t,); all the same without a weekly season.
        baseline: the number of days, larger than the number of weekdays.
    """
    s, n = np.asarray(totals, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    # step 1: transformed values y, and an indicator column for each weekday
    weekday_columns = np.equal.outer(np.asarray(weekdays), np.unique(weekdays)).astype(np.float64)
    y, noise, has_answers = (
        np.arcsin(np.sqrt((s + 0.375) / (n + 0.75))),
        0.25 / np.maximum(n, 1),
        n > 0,
    )
    first = np.where(has_answers & (np.arange(len(weekday_columns)) < baseline), 1.0, 0.0)
    days = np.maximum(first.sum(axis=-1), 1)
    # step 2: the baseline's variance beyond chance, v (0 if the days differ no more than chance)
    free = np.maximum(days - weekday_columns[:baseline].any(axis=0).sum(), 1)
    apart = y - _weekday_means(y, first, weekday_columns)
    spread = (first * apart**2).sum(axis=-1) / free - (noise * first).sum(axis=-1) / days
    noise = noise + np.maximum(spread, 0.0)[..., None]
    # step 3: clip deviations; a weekday that the baseline lacks has no level to deviate from
    far = np.where(
        first @ weekday_columns @ weekday_columns.T > 0, MAX_DEVIATION * np.sqrt(noise), np.inf
    )
    y = y - apart + np.clip(apart, -far, far)
    weights = np.where(has_answers, 1 / noise, 0.0)
    # step 4: weights by precision, scaled so that the baseline's mean weight is 1
    weights = weights * (days / np.maximum((weights * first).sum(axis=-1), 1e-9))[..., None]
    squares = (weights * (y - _weekday_means(y, weights, weekday_columns)) ** 2).sum(
        axis=-1, keepdims=True
    )
    parts = [values[..., None] * weekday_columns for values in (weights, weights * y)]
    # step 5: sums from each possible start to the last day, by reversed cumulative sums
    size, sums = (values[..., ::-1, :].cumsum(axis=-2)[..., ::-1, :] for values in parts)
    weekday_sizes = np.maximum(size[..., :1, :], 1e-9)
    a = (size * (1 - size / weekday_sizes)).sum(axis=-1)[..., baseline:]
    b = (sums - size * sums[..., :1, :] / weekday_sizes).sum(axis=-1)[..., baseline:]
    # step 6: the Bayes factor of the docstring; without any scatter there is no evidence
    part = np.divide(b * b, squares, out=np.zeros(b.shape), where=squares > 1e-12)
    f = np.maximum(has_answers.sum(axis=-1) - weekday_columns.shape[1], 0)[..., None, None]
    g, a, part = SPREADS[:, None], a[..., None, :], part[..., None, :]
    log_residual = np.log1p(-np.minimum(g * part / (1 + g * a), 1 - 1e-12))
    return np.where(b > 0, _log_mean(-0.5 * np.log1p(g * a) - 0.5 * f * log_residual, -2), -np.inf)


def _weekday_means(y: Floats, weights: Floats, weekday_columns: Floats) -> Floats:
    """Return the weighted mean of each day's weekday, shape (..., t)."""
    result: Floats = (
        (weights * y) @ weekday_columns / np.maximum(weights @ weekday_columns, 1e-9)
    ) @ weekday_columns.T
    return result


def change_day(starts: Floats, level: float = 0.95) -> tuple[int, int, int]:
    """Return the day on which a rise most probably began, and its credible interval.

    The interval spans the fewest days that contain the start with this probability, if all days
    were equally likely before.

    Args:
        starts: log E of a rise that began on each day, shape (t,).
        level: the probability.
    """
    # without any evidence all days are equally likely
    weights = np.exp(starts - starts.max()) if starts.max() > -np.inf else np.ones(len(starts))
    order = np.argsort(-weights, kind="stable")
    interval_days = order[: np.searchsorted(weights[order].cumsum(), level * weights.sum()) + 1]
    return int(order[0]), int(interval_days.min()), int(interval_days.max())


def probe_evidence(differences: ArrayLike) -> float:
    """Return log E of one day of repeated probes.

    If a probe's value today might as well have come on the first day, d is as likely as -d, and the
    product of 1 + c d is 1 on average. E is the mean of these products over the stakes c, of both
    signs. Days depend on each other through the first day; still, 1 / 365 of the sum of their E
    keeps the promise for a year.

    Args:
        differences: d, each probe's value today minus that of the first day, -1 to 1, shape (m,).
    """
    rows = 1 + STAKES[:, None] * np.asarray(differences, dtype=np.float64)
    return float(_log_mean(np.log(rows).sum(axis=-1), 0))
