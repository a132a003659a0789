"""Active evaluation: which answers to label next, and what the labels say of all answers.

Units (questions, with all their answers) are drawn one after another without replacement, each with
a known probability that depends on scores and on labels seen before it. Before draw t every answer
has a prediction f_t, made from labels of earlier draws alone. With y the labels, known for the
units K_t that were drawn before, any sum S = sum_i a_i y_i over the answers has the estimate

    S_t = sum_{i in K_t} a_i y_i + sum_{i not in K_t} a_i f_t(i)
          + sum_{i in u_t} a_i (y_i - f_t(i)) / q_t(u_t)

which is right on average whatever was seen before, however bad the predictions are: u_t is the
unit drawn and q_t the probability that it had among the units left (Des Raj 1956; with predictions
Zrnic and Candes 2024, eq. 2). So is a mean of all S_t with weights fixed beforehand, and the S_t
are uncorrelated, which gives the variance. The weights are those of Farquhar, Gal and Rainforth
2021 (LURE): with equal probabilities and constant predictions the estimate is the plain mean, and
with everything labelled it is the truth.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trustassay.statistics import Bools, Floats, Places
from trustassay.statistics.regression import sigmoid

EXPLORED = 0.3
"""Share of the probability that is spread evenly: no weight is above 1 / 0.3 of the even one."""
FEWEST_TO_CHOOSE = 20
"""Labels below which all units are equally likely: how scores and labels go together is unknown."""
STIFFNESS = 1.0
"""Prior precision of a slope of the logistic predictions; of the intercept a tenth."""
EVERY_FIT = 20
"""Draws up to which predictions are made anew for each; later for every twentieth part more."""
SURE = 0.02
"""Predictions are kept this far from 0 and 1 where they decide what is drawn."""
LARGEST_WEIGHT = 0.45
NEAR = 1e-4
"""The last of Newton's steps: estimates are right on average with any predictions."""


class Draw(NamedTuple):
    """A unit that was labelled, and the probability that it had among those left; ``None`` where
    its labels came from elsewhere, before the next draw."""

    unit: int
    probability: float | None


def chances(spread: ArrayLike, explored: float = EXPLORED) -> Floats:
    """Return the probabilities with which units are drawn, shape (m,), summing to 1.

    (1 - explored) s / sum(s) + explored / m. Those proportional to the spread s, the standard
    deviation that a label is expected to have about its prediction over the root of what it costs,
    make the variance smallest (Neyman 1934; Zrnic and Candes 2024, eq. 5); the even part bounds the
    weights, for where the predictions are too sure.

    Args:
        spread: of the units left, 0 or more, shape (m,), m at least 1.
    """
    s = np.asarray(spread, dtype=np.float64)
    total = s.sum()
    share = s / total if total > 0 else np.full(len(s), 1 / len(s))
    return np.asarray((1 - explored) * share + explored / len(s))


def explored_with(labels: int) -> float:
    """Return the even share of the probability, with so many labels at hand."""
    return EXPLORED if labels >= FEWEST_TO_CHOOSE else 1.0


def draw_units(
    spread: ArrayLike, number: int, rng: np.random.Generator, explored: float = EXPLORED
) -> list[tuple[int, float]]:
    """Draw ``number`` units one after another without replacement, all if there are fewer.

    Returns the place of each in ``spread`` and its probability among those left at its draw.
    """
    s = np.asarray(spread, dtype=np.float64)
    left = np.arange(len(s))
    result: list[tuple[int, float]] = []
    while len(result) < number and len(left):
        q = chances(s[left], explored)
        place = int(rng.choice(len(left), p=q))
        result.append((int(left[place]), float(q[place])))
        left = np.delete(left, place)
    return result


@dataclass(frozen=True)
class Target:
    """A figure of all N answers: its value, its slope by each answer's label (shape (N,)), and what
    an answer moves it by beside its label. ``slope * label + beside`` is the influence of an answer
    in a sample of questions; its sum is 0.
    """

    value: float
    slope: Floats
    beside: Floats

    def __sub__(self, other: "Target") -> "Target":
        beside = self.beside - other.beside
        return Target(self.value - other.value, self.slope - other.slope, beside)


def mean_target(labels: Floats, among: Bools) -> Target:
    """Return the mean label of the answers ``among`` all, at least one."""
    share = among / among.sum()
    value = float(share @ labels)
    return Target(value, share, -value * share)


def auroc_target(labels: Floats, scores: ArrayLike) -> Target | None:
    """Return the AUROC of scores, NaN where an answer has none: the share of pairs of different
    answers, one right and one wrong, in which the right one has the higher score, ties half.

    ``labels`` need not be 0 and 1: the estimates of :attr:`Labels.estimates` may lie beyond. An
    answer makes no pair with itself. ``None`` where no pairs are expected.
    """
    x = np.asarray(scores, dtype=np.float64)
    there = ~np.isnan(x)
    y, wrong = labels[there], 1 - labels[there]
    _, rank = np.unique(x[there], return_inverse=True)
    size = int(rank.max(initial=-1)) + 1
    of_right, of_wrong = np.bincount(rank, y, size), np.bincount(rank, wrong, size)
    below = (np.cumsum(of_wrong) - of_wrong / 2)[rank] - wrong / 2
    above = (of_right.sum() - np.cumsum(of_right) + of_right / 2)[rank] - y / 2
    positives, negatives = y.sum(), wrong.sum()
    pairs = positives * negatives - y @ wrong
    if positives <= 0 or negatives <= 0 or pairs <= 0:
        return None
    value = float(y @ below / pairs)
    right = (below - value * (negatives - wrong)) / pairs
    otherwise = (above - value * (positives - y)) / pairs
    slope, beside = np.zeros(len(x)), np.zeros(len(x))
    slope[there], beside[there] = right - otherwise, otherwise
    return Target(value, slope, beside)


@dataclass(frozen=True)
class Estimate:
    """A figure with its variance, and what further draws would make of it.

    variance: about the figure of all labels of these answers. between: what has to be added for
    questions like these, of which these are a sample. draws: units that were drawn, and
    ``effective`` as many as that of equal weight. left: units that can still be drawn. even: the
    variance that one draw of equal probability has, without predictions.
    """

    value: float
    variance: float
    between: float
    draws: int
    effective: float
    left: int
    even: float

    def variance_at(self, draws: int, *, evenly: bool = False) -> float:
        """Return the variance that ``draws`` draws in all would have, 1 or more; 0 of all units.

        c (1/n - 1/m) with m all units that could be drawn, as of a simple random sample; c from the
        draws so far. ``evenly``: the same of draws with equal probabilities, without predictions.
        """
        units = self.draws + self.left
        of_one = self.even
        if not evenly:
            so_far = 1 / self.draws - 1 / units
            of_one = self.variance / so_far if so_far > 0 else 0.0
        return of_one * max(1 / draws - 1 / units, 0.0)

    def draws_for(self, enough: Callable[[float, float], bool], *, evenly: bool = False) -> int:
        """Return the least number of draws in all for which ``enough(variance, effective draws)``
        holds; more than there are units where it never does.
        """
        share = 1 if evenly else self.effective / self.draws
        numbers = range(1, self.draws + self.left + 1)
        return 1 + bisect_left(
            numbers, True, key=lambda n: enough(self.variance_at(n, evenly=evenly), n * share)
        )


class Labels:
    """Labels of drawn units, in the order of the draws, and what they say of all answers.

    Args:
        features: what predicts the labels: larger means right, shape (N, k); any scale of mean
            about 0 and variance about 1. A constant or nothing (k = 0) will do.
        units: the unit of each answer, from 0 without gaps, shape (N,).
        draws: in their order; a probability of ``None`` where labels were not drawn.
        labels: of all answers, from 0 to 1, shape (N,); those of drawn units are read. NaN: nobody
            could tell; it then counts as what was predicted before its draw.
    """

    def __init__(
        self, features: ArrayLike, units: ArrayLike, draws: Sequence[Draw], labels: ArrayLike
    ) -> None:
        x = np.asarray(features, dtype=np.float64)
        self._x = np.column_stack([np.ones(len(x)), x])
        self._units = np.asarray(units, dtype=np.int64)
        self._count = int(self._units.max(initial=-1)) + 1
        self._draws = draws
        self._y = np.array(labels, dtype=np.float64)
        order = np.argsort(self._units, kind="stable")
        ends = np.cumsum(np.bincount(self._units, minlength=self._count))
        self._members = np.split(order, ends[:-1])
        self._fit()

    def _fit(self) -> None:
        """Fit the predictions before each draw, and fill labels that nobody could give."""
        prior = np.append(0.0, np.full(self._x.shape[1] - 1, 1 / max(self._x.shape[1] - 1, 1)))
        coefficients, next_fit = prior, 0
        seen: list[Places] = []
        self._fits: list[tuple[int, Floats]] = [(0, prior)]
        for place, (unit, _) in enumerate(self._draws):
            if seen and place >= next_fit:
                known = np.concatenate(seen)
                coefficients = _logistic(self._x[known], self._y[known], prior, coefficients)
                self._fits.append((place, coefficients))
                next_fit = place + 1 + place // EVERY_FIT
            members = self._members[unit]
            told = ~np.isnan(self._y[members])
            seen.append(members[told])
            blank = members[~told]
            self._y[blank] = sigmoid(self._x[blank] @ coefficients)
        known = np.concatenate([np.empty(0, np.int64), *seen])
        if len(known):
            coefficients = _logistic(self._x[known], self._y[known], prior, coefficients)
        self._last = coefficients

    @cached_property
    def predictions(self) -> Floats:
        """The chance that each answer is right, from all labels; the labels are not put in."""
        return sigmoid(self._x @ self._last)

    def spread(self, slope: Floats) -> Floats:
        """Return how far the sum of each unit's labels times ``slope`` is expected to be off its
        prediction, over the root of its answers, shape (U,): what :func:`draw_units` takes for the
        units that are left. Answers to a question count as independent given the predictions.
        """
        p = np.clip(self.predictions, SURE, 1 - SURE)
        noise = np.bincount(self._units, slope**2 * p * (1 - p), self._count)
        return np.asarray(np.sqrt(noise / np.bincount(self._units, minlength=self._count)))

    @cached_property
    def left(self) -> Places:
        """The units that were not drawn, ascending."""
        return np.setdiff1d(np.arange(self._count), [draw.unit for draw in self._draws])

    @cached_property
    def _weights(self) -> Floats:
        """The weight of each entry of ``draws``, 0 for labels that were not drawn; sum 1."""
        m = self._count - np.arange(len(self._draws))  # units left before the draw
        drawn = np.array([draw.probability is not None for draw in self._draws])
        last = drawn & (m == 1)
        if last.any():  # the last unit is drawn with certainty: nothing is open
            return np.asarray(last, dtype=np.float64)
        result = np.where(drawn, 1 / (m * np.maximum(m - 1, 1.0)), 0.0)
        return np.asarray(result / (result.sum() or 1.0))

    def _each(self, slope: Floats) -> Floats:
        """Return S_t of each unit that was drawn."""
        known, result = 0.0, list[float]()
        open_ = np.ones(len(self._units), dtype=bool)
        for start, end, f in self._predicted():
            expected = slope * f
            rest = float(expected[open_].sum())
            for unit, q in self._draws[start:end]:
                members = self._members[unit]
                label = float(slope[members] @ self._y[members])
                guess = float(expected[members].sum())
                if q is not None:
                    result.append(known + rest + (label - guess) / q)
                known += label
                rest -= guess
                open_[members] = False
        return np.array(result)

    def _predicted(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield stretches of draws, from and to, with the predictions before them."""
        ends = [*(place for place, _ in self._fits[1:]), len(self._draws)]
        for (start, coefficients), end in zip(self._fits, ends, strict=True):
            yield start, end, sigmoid(self._x @ coefficients)

    @cached_property
    def estimates(self) -> Floats:
        """An estimate of each answer's label that is right on average, shape (N,): sums over it
        are the estimates of sums. It may lie far beyond 0 and 1.
        """
        n = len(self._draws)
        if not n:
            return self.predictions.copy()
        weights = np.append(self._weights, 0.0)
        upto = np.concatenate([[0.0], np.cumsum(weights)])  # of the entries before one
        entry = np.full(self._count, n)
        entry[[draw.unit for draw in self._draws]] = np.arange(n)
        entered = entry[self._units]
        result = np.zeros(len(self._units))
        at = np.zeros(len(self._units))
        for start, end, f in self._predicted():
            stop = np.clip(entered + 1, start, end)  # the draw of the answer itself counts f, too
            result += f * (upto[stop] - upto[start])
            own = (entered >= start) & (entered < end)
            at[own] = f[own]
        for place, (unit, q) in enumerate(self._draws):
            members = self._members[unit]
            result[members] += self._y[members] * (1 - upto[place + 1])
            if q is not None:
                result[members] += weights[place] * (self._y[members] - at[members]) / q
        return result

    def estimate(self, target: Target) -> Estimate | None:
        """Return a figure with its variances; ``None`` for fewer than two draws."""
        drawn = [draw.probability is not None for draw in self._draws]
        if sum(drawn) < 2:
            return None
        weights = self._weights[drawn]
        sums = self._each(target.slope)
        variance = _variance(sums, weights) if len(self.left) else 0.0
        influence = target.slope * np.nan_to_num(self._y) + target.beside
        of_unit = np.bincount(self._units, influence, self._count)[[d.unit for d in self._draws]]
        # How many units each drawn unit stands for; their sum is that of all, on average.
        q = np.array([draw.probability or np.inf for draw in self._draws])
        stands = 1 - np.cumsum(self._weights) + self._weights / q
        square_mean = float(stands @ of_unit**2 / stands.sum())
        m = sum(drawn) + len(self.left)
        effective, between = 1 / float(weights @ weights), self._count * square_mean
        numbers = sum(drawn), effective, len(self.left), m**2 * square_mean
        return Estimate(target.value, variance, between, *numbers)


def _variance(sums: Floats, weights: Floats) -> float:
    """Return the variance V of the mean of uncorrelated S_t with these weights, w_t: the mean of
    (S_t - S)^2 is (1 - 2 w_t) V_t + V. Near a half, with one unit left, V_t goes with 1 / w_t."""
    distance = (sums - weights @ sums) ** 2
    if weights.max() > LARGEST_WEIGHT:
        return float((weights * distance).sum() / (len(sums) - 1))
    share = weights**2 / (1 - 2 * weights)
    return float(share @ distance / (1 + share.sum()))


def _logistic(x: Floats, y: Floats, prior: Floats, start: Floats) -> Floats:
    """Return the coefficients that maximise the likelihood of labels from 0 to 1 with a normal
    prior about ``prior``, by Newton's steps, halved where they go too far.
    """
    stiff = np.full(x.shape[1], STIFFNESS)
    stiff[0] = STIFFNESS / 10

    def loss(b: Floats) -> float:
        eta = x @ b
        return float((np.logaddexp(0, eta) - y * eta).sum() + (stiff * (b - prior) ** 2).sum() / 2)

    b, now = start, loss(start)
    for _ in range(25):
        p = sigmoid(x @ b)
        gradient = x.T @ (y - p) - stiff * (b - prior)
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + np.diag(stiff), gradient)
        if np.abs(step).max() < NEAR:
            break
        size = 1.0
        while (there := loss(b + size * step)) > now and size > 1e-3:
            size /= 2
        b, now = b + size * step, there
    return np.asarray(b)
