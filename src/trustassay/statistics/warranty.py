"""Thresholds on a score above which at most a share of the answers is wrong, with a promise.

All functions take labelled answers with scores of which higher is better. :func:`walk` is the test
for independent answers, :func:`find_grouped_threshold` the one for several answers to a question,
:func:`evenly_rated_above` says where labels were drawn evenly, :func:`passes_upper_half` steers a
labelling plan, and :class:`AuditEvidence` watches a promise afterwards.

Why the promise of the walk holds
---------------------------------
The number n is fixed beforehand. The answers (score, wrong or right) are drawn independently from
one population. R(t) is the share wrong among scores above t: any function; scores may tie. N(t) and
W(t) count labelled answers, and wrong ones, with a score above t. The integers c_1, ..., c_n (-1:
never; c_0 = -1) are fixed beforehand so that P(some k: X_1 + ... + X_k <= c_k) <= delta for
independent X_i with P(X_i = 1) = alpha.

**Theorem.** P(some t with R(t) > alpha has W(t) <= c_N(t)) <= delta.

The walk accepts the first k for the largest k that ends a tie and has W_k <= c_k, and t is the next
score. Then N(t) = k and W(t) = W_k, so it breaks its promise with a probability of at most delta.
The theorem says more: all thresholds that pass keep the promise at once.

**1. Ranks.** Put u = P(S > s) + V P(S = s), V uniform and independent of all else. Then u is
uniform on (0, 1), small u means a high score, and ties are ordered at random. Let r(u) be the
probability that an answer at u is wrong, and A(x) the integral of r - alpha from 0 to x. For x =
P(S > t) > 0, R(t) > alpha exactly where A(x) > 0, and the labelled answers with u < x are (with
probability 1) those with a score above t. So the event of the theorem lies inside E: some x in (0,
1] with A(x) > 0 has W(x) <= c_N(x), where N and W now count labelled answers with u < x. A is
continuous, even where R jumps. Below, the points x of E stay those of the first A.

**2. Good stretches.** {A < 0} is a union of separate intervals. E looks only at points outside
them, so an interval lies wholly on one side of each such x. Redraw the u of each answer in an
interval uniformly there, independently of its label: E does not change. If the interval ends before
1, A is 0 at both ends, so the risk inside is now exactly alpha. If it reaches 1, E has no point in
or beyond it: give its answers new labels, wrong with probability alpha; E does not change. The new
population has max(A, 0) in place of A.

**3. A bad end.** Suppose A(1) > 0. A(x) - alpha (1 - x) is continuous, -alpha at 0 and positive at
1, so it is 0 at some x0. Call every answer with u > x0 right. W only falls, so E can only grow. Now
A(x) = A(x0) - alpha (x - x0) beyond x0, which is at least 0, and 0 at 1.

**4. Coupling.** Now A >= 0 and A(1) = 0. So labels are independent with P(wrong) = alpha, and given
the label u has the distribution function x + A(x) / alpha if wrong, and x - A(x) / (1 - alpha) if
right. Wrong answers lie higher. Draw the labels, then independent uniform V_i, and put u_i =
Q0(V_i) for right answers and Q1(V_i) <= Q0(V_i) for wrong ones, Q being the quantile functions. If
all used Q0, the order would be independent of the labels, and the wrong ones among the first k
would be Y_k, partial sums of independent variables like the X_i. Moving wrong answers up never
improves the rank of a right one, so W_k >= Y_k for all k together, and P(E) <= P(some k: Y_k <=
c_k) <= delta.

The coupling is made answer by answer, so it holds for nested samples together: with L looks at
fixed numbers of labels and delta / L each, all their promises hold together. A plan that rates the
upper half first (:mod:`trustassay.people.label.calibration_plan`) walks over one of two samples
that are fixed before any label, each independent draws, so each has half of the delta of its look.
Answers to one question are dependent and outside the theorem: with five answers a question, alike
in score and label, about half of the promises broke in a simulation.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Floats, Places
from trustassay.statistics.distributions import incomplete_beta, student_t_quantile

ALL_COUNTS_UP_TO = 5000
"""Labels up to which each number of accepted answers is tested; above, only some are."""
COUNT_RATIO = 1.02
"""The ratio of successive numbers of accepted answers that are tested among more labels."""
BISECTIONS = 16
NEEDED_POWER = 0.8
"""The probability with which the estimated number of labels gives a threshold."""
MAX_LABELS_NEEDED = 20_000
"""The most labels that are worth naming."""
GROUP_SHARES = (0.33, 0.43, 0.54, 0.66, 0.78, 0.9, 1.0)
"""The shares of the labelled answers that are tested in turn where questions have several."""
SCORE_BANDS = 5
"""Bands of scores, with equally many answers each, in which rated shares are compared."""
UNEVEN_P = 0.01
"""The p-value below which rated shares differ between bands."""
CHI_SQUARE_LIMITS = (6.635, 9.210, 11.345, 13.277)
"""The 99 % quantiles of chi-square with 1 to 4 degrees of freedom, for :data:`UNEVEN_P`."""
UPPER_SHARE_OF_ERRORS = 0.375
"""Wrong answers among the first half of a plan's n labels, as a share of alpha n, up to which the
lower scores are rated as well (chosen by simulation)."""
FIRST_LOOK = 50
"""Labels at the first of several looks; each later one has twice as many."""
AUDIT_RATIOS = (1.3, 1.7, 2.2, 3.0)
"""The rises of the share of wrong answers, as multiples of alpha, that an audit looks for."""
AUDIT_ALARM = math.log(20)
"""The log of the evidence from which an audit is an alarm: at most one false one in 20 years."""
AUDIT_DAYS = 365
"""Days for which the promise of an audit holds; then it begins anew."""


class AcceptanceThreshold(NamedTuple):
    """A threshold for accepting answers, and what it accepts of the labelled ones."""

    above: float
    """Answers with a higher score are accepted; minus infinity accepts all that have a score."""
    accepted: int
    """Labelled answers that are accepted."""
    wrong: int
    """How many of these are wrong."""


class Boundary(NamedTuple):
    """How many wrong answers a test tolerates among the accepted ones."""

    level: float
    """The largest p-value that passes at a single number of accepted answers."""
    counts: Places
    """The numbers of accepted answers that are tested, rising, shape (m,)."""
    tolerated: Places
    """The most wrong answers among each of these, -1 where none is few enough, shape (m,)."""

    def at_each(self, n: int) -> Places:
        """Return the tolerated number for 1 to n accepted answers, -1 where it is not tested."""
        result = np.full(n, -1, dtype=np.int64)
        result[self.counts - 1] = self.tolerated
        return result


def fewest_labels(alpha: float, delta: float) -> int:
    """Return how many labels, all right, are needed: the least k with (1 - alpha)^k <= delta.

    Raises:
        ValueError: alpha or delta is not between 0 and 1.
    """
    if not (0 < alpha < 1 and 0 < delta < 1):
        raise ValueError(f"expected alpha and delta between 0 and 1, got {alpha} and {delta}")
    # Without the slack, rounding could ask for one more than an exact power needs.
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


@cache
def compute_boundary(n: int, alpha: float, delta: float) -> Boundary:
    """Return the boundary of :func:`walk`.

    With X independent and wrong with the probability alpha, the sum of the first k is at or below
    the boundary at any tested k with a probability of at most delta. All k are tested at the same
    p-value, the largest that keeps this.

    Args:
        n: labelled answers, 1 or more.
        alpha: the share that may be wrong, between 0 and 1.
        delta: how often the promise may fail, between 0 and 1.
    """
    fewest_labels(alpha, delta)
    counts = _choose_counts(n)
    shares = _cumulative_shares(counts, alpha, delta)
    # The bisection runs over the logarithm of the level.
    low, high = math.log(delta / (2 * n)), math.log(delta)
    best = _count_tolerated(shares, math.exp(low))
    if _crossing_probability(counts, _count_tolerated(shares, delta), alpha) <= delta:
        return Boundary(delta, counts, _count_tolerated(shares, delta))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        tolerated = _count_tolerated(shares, math.exp(middle))
        if _crossing_probability(counts, tolerated, alpha) <= delta:
            low, best = middle, tolerated
        else:
            high = middle
    return Boundary(math.exp(low), counts, best)


def _choose_counts(n: int) -> Places:
    if n <= ALL_COUNTS_UP_TO:
        return np.arange(1, n + 1)
    steps = math.ceil(math.log(n) / math.log(COUNT_RATIO))
    return np.unique(np.geomspace(1, n, steps).round().astype(np.int64))


def _binomial_shares(draws: int, alpha: float, size: int) -> Floats:
    """Return P(X = 0), ..., P(X = size - 1) of a binomial X, by logarithms."""
    x = np.arange(min(size, draws + 1))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, draws + 1)))])
    logs = factorials[draws] - factorials[x] - factorials[draws - x]
    return np.asarray(np.exp(logs + x * math.log(alpha) + (draws - x) * math.log1p(-alpha)))


def _cumulative_shares(counts: Places, alpha: float, delta: float) -> list[Floats]:
    """Return P(X <= 0), P(X <= 1), ... of each count, up to the first above delta."""
    result, size = [], 2
    for count in counts.tolist():
        shares = np.cumsum(_binomial_shares(count, alpha, size))
        while shares[-1] <= delta and size <= count:
            size *= 2
            shares = np.cumsum(_binomial_shares(count, alpha, size))
        result.append(shares)
    return result


def _count_tolerated(shares: list[Floats], level: float) -> Places:
    return np.array([np.searchsorted(of_count, level, "right") - 1 for of_count in shares])


def _crossing_probability(counts: Places, tolerated: Places, alpha: float) -> float:
    """Return the probability that independent draws are at or below the boundary anywhere."""
    # More wrong ones than the last count tolerates never cross, so they need no place.
    size = int(tolerated[-1]) + 1
    chances, crossed, before = np.eye(1, max(size, 1))[0], 0.0, 0
    steps: dict[int, Floats] = {}
    for count, limit in zip(counts.tolist(), tolerated.tolist(), strict=True):
        draws = count - before
        if draws not in steps:
            steps[draws] = _binomial_shares(draws, alpha, len(chances))
        chances = np.convolve(chances, steps[draws])[: len(chances)]
        crossed += float(chances[: limit + 1].sum())
        chances[: limit + 1] = 0.0
        before = count
    return crossed


def walk(
    scores: ArrayLike, wrong: ArrayLike, *, alpha: float, delta: float
) -> AcceptanceThreshold | None:
    """Return the lowest threshold at which few enough labelled answers are wrong.

    The answers are ranked by score, and the most are accepted that end a group of equal scores and
    of which no more are wrong than :func:`compute_boundary` tolerates. Then, with a probability of
    at least 1 - delta, at most a share alpha of all answers above the threshold is wrong (proof:
    above; simulated: lab/results/warranty-simulated.json).

    Args:
        scores: of independent answers, higher is better, shape (n,), finite. They must not have
            been fitted on these labels.
        wrong: 1 where the answer is wrong, else 0, shape (n,).
        alpha: the largest share that may be wrong. delta: how often the promise may fail.

    Returns:
        ``None`` where no threshold passes.
    """
    ranked, errors, ends = _rank(scores, wrong)
    n = len(ranked)
    if not n:
        return None
    limits = compute_boundary(n, alpha, delta).at_each(n)
    passing = ends[errors[ends] <= limits[ends]]
    if not len(passing):
        return None
    return _accept(ranked, errors, int(passing[-1]))


def _rank(scores: ArrayLike, wrong: ArrayLike) -> tuple[Floats, Floats, Places]:
    """Return scores from the highest, the wrong answers so far, and where equal scores end."""
    values, is_wrong = np.asarray(scores, np.float64), np.asarray(wrong, np.float64)
    if values.ndim != 1 or values.shape != is_wrong.shape or not np.isfinite(values).all():
        raise ValueError("expected a finite score and a label for each answer")
    if not np.isin(is_wrong, (0.0, 1.0)).all():
        raise ValueError("expected 1 where an answer is wrong, else 0")
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    return ranked, np.cumsum(is_wrong[order]), np.flatnonzero(np.diff(ranked, append=-np.inf))


def _accept(ranked: Floats, errors: Floats, last: int) -> AcceptanceThreshold:
    """Return the threshold that accepts the ranked answers up to and with a place."""
    above = float(ranked[last + 1]) if last + 1 < len(ranked) else -math.inf
    return AcceptanceThreshold(above, last + 1, int(errors[last]))


def find_grouped_threshold(
    scores: ArrayLike,
    wrong: ArrayLike,
    groups: ArrayLike,
    *,
    alpha: float,
    delta: float,
    count_largest: Callable[[float], int],
) -> AcceptanceThreshold | None:
    """Return the lowest threshold where the answers of a group, such as a question, depend.

    For growing shares of the answers, a one-sided t-test over groups asks whether the sum of
    (wrong - alpha) over the accepted answers is below 0; it stops at the first share that fails.
    Shares that could not pass whatever the labels are left out. To the sum, the most that one group
    can add is added, so that a rare bad group cannot hide. The promise holds with a probability of
    about 1 - delta (simulated; not exact).

    Args:
        scores, wrong, alpha, delta: as for :func:`walk`.
        groups: the number of each answer's group, shape (n,).
        count_largest: returns how many answers above a threshold one group has at most, of all
            answers, labelled or not: a large group without labels may be the bad one.
    """
    ranked, errors, ends = _rank(scores, wrong)
    values, surplus = np.asarray(scores, np.float64), np.asarray(wrong, np.float64) - alpha
    place = np.unique(np.asarray(groups), return_inverse=True)[1]
    best = None
    for share in GROUP_SHARES:
        # The largest number of answers that ends a group of equal scores and is within the share.
        within = ends[ends < round(share * len(ranked))]
        if not len(within):
            continue
        threshold = _accept(ranked, errors, int(within[-1]))
        accepted = values > threshold.above
        sizes = np.bincount(place[accepted])
        sums: Floats = np.bincount(place[accepted], surplus[accepted])[sizes > 0].astype(np.float64)
        worst = (1 - alpha) * count_largest(threshold.above)
        if len(sums) < 2:
            continue
        # A share that could not pass with all answers right is left out: that depends on the scores
        # and not on the labels.
        all_right: Floats = -alpha * sizes[sizes > 0].astype(np.float64)
        if not _is_below_zero(all_right, worst, delta):
            continue
        if not _is_below_zero(sums, worst, delta):
            return best
        best = threshold
    return best


def _is_below_zero(sums: Floats, worst: float, delta: float) -> bool:
    """Whether a t-test over groups, with the worst that one may add, shows a sum below 0."""
    k = len(sums)
    spread = math.sqrt(k * float(sums.var(ddof=1)) + worst**2)
    return (float(sums.sum()) + worst) / spread <= -student_t_quantile(1 - delta, k - 1)


def draw_one_each(groups: ArrayLike, largest: int, rng: np.random.Generator) -> Places:
    """Return the places of independent answers: one of each group, kept in proportion to its size.

    A group of m answers is kept with the probability m / M, so that all answers are equally likely
    to be drawn.

    Args:
        groups: the number of each answer's group, shape (n,).
        largest: M, the most answers of one group, labelled or not.
        rng: draws the answers.
    """
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    order = rng.permutation(len(place))
    first = np.unique(place[order], return_index=True)[1]
    sizes = np.bincount(place)
    return np.sort(order[first][rng.random(len(names)) < sizes / largest])


def evenly_rated_above(scores: ArrayLike, rated: ArrayLike) -> float:
    """Return the score above which answers were chosen for rating independently of their score.

    The answers are divided into five bands by score. The lowest bands are dropped until the rated
    shares of the others do not differ (chi-square, p >= .01). Only a choice by this score can be
    seen.

    Args:
        scores: of all answers, finite, shape (n,).
        rated: whether each has a label, shape (n,).

    Returns:
        Minus infinity if all bands are rated alike.
    """
    values, is_rated = np.asarray(scores, np.float64), np.asarray(rated, bool)
    edges = np.unique(np.quantile(values, np.arange(1, SCORE_BANDS) / SCORE_BANDS))
    # An answer at an edge belongs to the band below, as a threshold accepts what is above it.
    band = np.searchsorted(edges, values, "left")
    sizes = np.bincount(band, minlength=len(edges) + 1)
    counts = np.bincount(band[is_rated], minlength=len(edges) + 1)
    for lowest in range(len(edges) + 1):
        if _are_rated_alike(sizes[lowest:], counts[lowest:]):
            return -math.inf if lowest == 0 else float(edges[lowest - 1])
    return float(edges[-1])


def _are_rated_alike(sizes: Places, counts: Places) -> bool:
    has_answers = sizes > 0
    sizes, counts = sizes[has_answers], counts[has_answers]
    share = counts.sum() / sizes.sum()
    if len(sizes) < 2 or share in (0.0, 1.0):
        return True
    statistic = ((counts - share * sizes) ** 2 / (sizes * share * (1 - share))).sum()
    return bool(statistic < CHI_SQUARE_LIMITS[len(sizes) - 2])


def choose_looks(alpha: float, delta: float, looks: int, walks: int = 1) -> list[int]:
    """Return the numbers of labels at which a promise is looked for: 50, 100, 200, ...

    Looks that could not accept anything, even with no wrong answer, are left out, so that the
    others get their part of delta.

    Args:
        alpha: the share that may be wrong. delta: how often any of the promises may fail.
        looks: how many are wanted. walks: how many tests a look may need.
    """
    numbers = [FIRST_LOOK * 2**number for number in range(looks)]
    while len(numbers) > 1 and (1 - alpha) ** numbers[0] > delta / (walks * len(numbers)):
        numbers = numbers[1:]
    return numbers


def passes_upper_half(wrong: int, labels: int, alpha: float, delta: float) -> bool:
    """Return whether the answers with the better scores are so good that the others are rated next.

    Args:
        wrong: wrong answers among the labels of the upper half. labels: their number, 1 or more.
        alpha: the share that may be wrong. delta: of the walk that the plan aims at.
    """
    few = 2 * UPPER_SHARE_OF_ERRORS * alpha * labels
    tolerated = compute_boundary(labels, alpha, delta).at_each(labels)[-1]
    return bool(wrong <= tolerated and wrong + 0.5 <= few)


def estimate_labels_needed(
    scores: ArrayLike, wrong: ArrayLike, *, alpha: float, delta: float
) -> int | None:
    """Estimate how many labels :func:`walk` needs to accept anything with a probability of 80 %.

    For each threshold, the share of accepted answers is taken as it is here, and the share of wrong
    ones with one wrong answer more. ``None`` where more labels will not help.
    """
    ranked, errors, ends = _rank(scores, wrong)
    n = len(ranked)
    shares, risks = (ends + 1) / n, (errors[ends] + 1) / (ends + 2)
    possible = risks < alpha
    if not possible.any():
        return None
    # The level falls slowly with the number of labels, so one of many labels stands for more.
    levels = {m: compute_boundary(m, alpha, delta).level for m in (200, 2000)}

    def is_enough(labels: int) -> bool:
        level = levels[200 if labels <= 200 else 2000]
        return any(
            _power(round(share * labels), risk, alpha, level) >= NEEDED_POWER
            for share, risk in zip(shares[possible], risks[possible], strict=True)
        )

    high = fewest_labels(alpha, delta)
    while not is_enough(high):
        if high > MAX_LABELS_NEEDED:
            return None
        high *= 2
    needed = bisect_left(range(high), True, high // 2, key=is_enough)
    # Two digits: more would claim a precision that the estimate does not have.
    return int(float(f"{needed:.2g}"))


def _binomial_below(most: int, draws: int, share: float) -> float:
    """Return P(X <= most) of a binomial X."""
    if most < 0 or most >= draws:
        return float(most >= draws)
    return incomplete_beta(draws - most, most + 1, 1 - share)


def _power(accepted: int, risk: float, alpha: float, level: float) -> float:
    """Return how probably so many accepted answers pass at a level if this share is wrong."""
    tolerated = bisect_left(
        range(accepted), True, key=lambda most: _binomial_below(most, accepted, alpha) > level
    )
    return _binomial_below(tolerated - 1, accepted, risk)


def audit_change_logs(rated: ArrayLike, wrong: ArrayLike, alpha: float) -> Floats:
    """Return how much more likely the days from each one on are with a higher share than promised.

    It is the log of the likelihood ratio of the best share at or above alpha to alpha; the day with
    the largest is the most likely beginning.

    Args:
        rated: accepted answers that were rated on each day, shape (t,). wrong: those that are
            wrong. alpha: the promised share.

    Returns:
        Shape (t,).
    """
    m, x = (np.cumsum(np.asarray(counts, np.float64)[::-1])[::-1] for counts in (rated, wrong))
    p = np.clip(x / np.maximum(m, 1), alpha, 1 - 1e-9)
    return np.asarray(x * np.log(p / alpha) + (m - x) * (np.log1p(-p) - math.log1p(-alpha)))


class AuditEvidence(NamedTuple):
    """The evidence that more accepted answers are wrong than promised; starts with all zeros."""

    days: int = 0
    """Days with rated answers so far."""
    logs: tuple[float, ...] = (-math.inf,) * len(AUDIT_RATIOS)
    """The log of the evidence for each of :data:`AUDIT_RATIOS`."""

    @property
    def log_mean(self) -> float:
        """The log of the mean evidence; an alarm from :data:`AUDIT_ALARM` on."""
        return float(np.logaddexp.reduce(self.logs) - math.log(len(self.logs)))

    def add_day(self, rated: int, wrong: int, alpha: float) -> "AuditEvidence":
        """Return the evidence after a day; see :mod:`trustassay.statistics.eprocess` for the bets.

        Args:
            rated: accepted answers that were rated on this day. wrong: those that are wrong.
            alpha: the promised share.
        """
        logs = []
        for log, ratio in zip(self.logs, AUDIT_RATIOS, strict=True):
            p = min(0.95, ratio * alpha)
            gain = (
                wrong * math.log(p / alpha)
                + (rated - wrong) * math.log1p(-p)
                - (rated - wrong) * math.log1p(-alpha)
            )
            logs.append(float(np.logaddexp(log, -math.log(AUDIT_DAYS))) + gain)
        return AuditEvidence(self.days + 1, tuple(logs))
