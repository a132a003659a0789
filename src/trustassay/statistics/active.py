"""Active evaluation: which answers to label next, and what the labels say about all answers.

Units (questions, with all their answers) are drawn one after another without replacement. The
probability of each draw is known; it depends on scores and on earlier labels. Before draw t every
answer has a prediction f_t, made only from the labels of earlier draws. With y the labels, known
for the units K_t that were drawn before, any sum S = sum_i a_i y_i over the answers has the
estimate

    S_t = sum_{i in K_t} a_i y_i + sum_{i not in K_t} a_i f_t(i)
          + sum_{i in u_t} a_i (y_i - f_t(i)) / q_t(u_t)

which is unbiased given everything before the draw, however bad the predictions are: u_t is the unit
drawn and q_t its probability among the remaining units (Des Raj 1956; with predictions Zrnic and
Candes 2024, eq. 2). A mean of all S_t with weights fixed beforehand is unbiased, too, and the S_t
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

EVEN_SHARE = 0.3
"""Share of the probability that is spread evenly: no weight is above 1 / 0.3 of the even one."""
MIN_LABELS_TO_CHOOSE = 20
"""Labels below which all units are equally likely, since no link of scores and labels is known."""
PRIOR_PRECISION = 1.0
"""Prior precision of a slope of the logistic predictions; of the intercept a tenth."""
DRAWS_BEFORE_SPARSE_FITS = 20
"""Up to this many draws predictions are refitted for each draw; later after 5 % more draws."""
MIN_UNCERTAINTY = 0.02
"""Predictions are clipped to this distance from 0 and 1 where they decide which unit is drawn."""
LARGEST_WEIGHT = 0.45
"""The weight of one draw above which the variance formula is close to its pole at a half."""
MIN_NEWTON_STEP = 1e-4
"""The Newton step at which a fit stops; it may be coarse, as any predictions give no bias."""


class UnitDraw(NamedTuple):
    """A unit that was labelled."""

    unit: int
    """Its number."""
    probability: float | None
    """Its probability among the units left at its draw; ``None`` where it was not drawn: its labels
    came from elsewhere, before the next draw."""


def draw_probabilities(spread: ArrayLike, explored: float = EVEN_SHARE) -> Floats:
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


def exploration_share(labels: int) -> float:
    """Return the share of the probability that is spread evenly, given the number of labels."""
    return EVEN_SHARE if labels >= MIN_LABELS_TO_CHOOSE else 1.0


def draw_units(
    spread: ArrayLike, number: int, rng: np.random.Generator, explored: float = EVEN_SHARE
) -> list[tuple[int, float]]:
    """Draw ``number`` units one after another without replacement, all if there are fewer.

    Returns the place of each in ``spread`` and its probability among those left at its draw.
    """
    s = np.asarray(spread, dtype=np.float64)
    remaining = np.arange(len(s))
    result: list[tuple[int, float]] = []
    while len(result) < number and len(remaining):
        q = draw_probabilities(s[remaining], explored)
        # The probabilities are renewed for each draw, since they are among the remaining units.
        place = int(rng.choice(len(remaining), p=q))
        result.append((int(remaining[place]), float(q[place])))
        remaining = np.delete(remaining, place)
    return result


@dataclass(frozen=True)
class FigureTarget:
    """A figure of all N answers, as a linear function of their labels.

    ``slope * label + beside`` is the influence of an answer in a sample of questions; the
    influences sum to 0.
    """

    value: float
    """The figure itself."""
    slope: Floats
    """Its derivative with respect to each answer's label, shape (N,)."""
    offset: Floats
    """How much each answer moves the figure apart from its label, shape (N,)."""

    def __sub__(self, other: "FigureTarget") -> "FigureTarget":
        beside = self.offset - other.offset
        return FigureTarget(self.value - other.value, self.slope - other.slope, beside)


def mean_target(labels: Floats, among: Bools) -> FigureTarget:
    """Return the mean label of the answers for which ``among`` is true, at least one."""
    share = among / among.sum()
    value = float(share @ labels)
    return FigureTarget(value, share, -value * share)


def auroc_target(labels: Floats, scores: ArrayLike) -> FigureTarget | None:
    """Return the AUROC of scores; a score is NaN where an answer has none.

    It is the share of pairs of a right and a wrong answer in which the right one scores higher,
    ties counting half. ``labels`` need not be 0 and 1: the estimates of :attr:`Labels.estimates`
    may lie outside. An answer makes no pair with itself. ``None`` where no pairs are expected.
    """
    x = np.asarray(scores, dtype=np.float64)
    has_score = ~np.isnan(x)
    y, wrong = labels[has_score], 1 - labels[has_score]
    _, rank = np.unique(x[has_score], return_inverse=True)
    size = int(rank.max(initial=-1)) + 1
    of_right, of_wrong = np.bincount(rank, y, size), np.bincount(rank, wrong, size)
    # Labels may be fractions, so an answer is partly right and partly wrong: its pair with itself,
    # which lies in its own rank and counts half, is subtracted.
    below = (np.cumsum(of_wrong) - of_wrong / 2)[rank] - wrong / 2
    above = (of_right.sum() - np.cumsum(of_right) + of_right / 2)[rank] - y / 2
    positives, negatives = y.sum(), wrong.sum()
    pairs = positives * negatives - y @ wrong
    # Estimated labels may sum to less than 0: then no AUROC exists.
    if positives <= 0 or negatives <= 0 or pairs <= 0:
        return None
    value = float(y @ below / pairs)
    right = (below - value * (negatives - wrong)) / pairs
    otherwise = (above - value * (positives - y)) / pairs
    slope, beside = np.zeros(len(x)), np.zeros(len(x))
    slope[has_score], beside[has_score] = right - otherwise, otherwise
    return FigureTarget(value, slope, beside)


@dataclass(frozen=True)
class ActiveEstimate:
    """A figure with its variance, and how further draws would change the variance."""

    value: float
    """The estimate of the figure."""
    variance: float
    """The variance about the figure that all labels of these answers would give."""
    between: float
    """The variance to be added for other questions like these, of which these are a sample."""
    draws: int
    """How many units were drawn."""
    effective: float
    """How many draws of equal weight these are worth."""
    units_left: int
    """How many units can still be drawn."""
    even: float
    """The variance of a single draw with equal probabilities and without predictions."""

    def variance_at(self, draws: int, *, evenly: bool = False) -> float:
        """Return the variance that a total of ``draws`` draws would have; 0 if these are all units.

        It is c (1/n - 1/m), as for a simple random sample of n of m units, with c from the draws so
        far. ``evenly``: the same for draws with equal probabilities and without predictions.
        """
        units = self.draws + self.units_left
        of_one = self.even
        if not evenly:
            so_far = 1 / self.draws - 1 / units
            of_one = self.variance / so_far if so_far > 0 else 0.0
        return of_one * max(1 / draws - 1 / units, 0.0)

    def draws_for(self, enough: Callable[[float, float], bool], *, evenly: bool = False) -> int:
        """Return the smallest total number of draws for which ``enough`` holds.

        ``enough`` gets the variance and the number of effective draws. Where it never holds, the
        result is larger than the number of units.
        """
        share = 1 if evenly else self.effective / self.draws
        numbers = range(1, self.draws + self.units_left + 1)
        return 1 + bisect_left(
            numbers, True, key=lambda n: enough(self.variance_at(n, evenly=evenly), n * share)
        )


class Labels:
    """Labels of drawn units, in the order of the draws, and what they say about all answers.

    Args:
        features: predictors of the labels, shape (N, k); higher values mean right. Their mean
            should be about 0 and their variance about 1. A constant or nothing (k = 0) will do.
        units: the unit of each answer, from 0 without gaps, shape (N,).
        draws: in their order; a probability of ``None`` where labels were not drawn.
        labels: of all answers, from 0 to 1, shape (N,); only those of drawn units are read. NaN
            where nobody could decide: it is replaced by the prediction made before the draw.
    """

    def __init__(
        self, features: ArrayLike, units: ArrayLike, draws: Sequence[UnitDraw], labels: ArrayLike
    ) -> None:
        x = np.asarray(features, dtype=np.float64)
        # a column of ones for the intercept
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
        """Fit the predictions before each draw, and replace missing labels by predictions."""
        # The prior mean shares a total slope of 1 evenly among the features: scores mean something.
        prior = np.append(0.0, np.full(self._x.shape[1] - 1, 1 / max(self._x.shape[1] - 1, 1)))
        coefficients, next_fit = prior, 0
        labelled_members: list[Places] = []
        self._fits: list[tuple[int, Floats]] = [(0, prior)]
        for place, (unit, _) in enumerate(self._draws):
            # A prediction may use only labels of earlier draws: otherwise the estimates are biased.
            if labelled_members and place >= next_fit:
                labelled = np.concatenate(labelled_members)
                coefficients = _fit_logistic(
                    self._x[labelled], self._y[labelled], prior, coefficients
                )
                self._fits.append((place, coefficients))
                # A refit costs more as labels accumulate, and changes less.
                next_fit = place + 1 + place // DRAWS_BEFORE_SPARSE_FITS
            members = self._members[unit]
            has_label = ~np.isnan(self._y[members])
            labelled_members.append(members[has_label])
            blank = members[~has_label]
            self._y[blank] = sigmoid(self._x[blank] @ coefficients)
        labelled = np.concatenate([np.empty(0, np.int64), *labelled_members])
        if len(labelled):
            coefficients = _fit_logistic(self._x[labelled], self._y[labelled], prior, coefficients)
        self._last = coefficients

    @cached_property
    def predictions(self) -> Floats:
        """The predicted probability that each answer is right; labelled answers keep theirs."""
        return sigmoid(self._x @ self._last)

    def spread(self, slope: Floats) -> Floats:
        """Return the spread of each unit for :func:`draw_units`, shape (U,).

        It is the expected error of the prediction of the unit's sum of labels times ``slope``, over
        the root of the number of its answers. Answers to a question count as independent given the
        predictions.
        """
        p = np.clip(self.predictions, MIN_UNCERTAINTY, 1 - MIN_UNCERTAINTY)
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

    def _estimate_sums(self, slope: Floats) -> Floats:
        """Return S_t (see the module) of each unit that was drawn."""
        labelled_sum, result = 0.0, list[float]()
        open_ = np.ones(len(self._units), dtype=bool)
        for start, end, f in self._iter_predictions():
            expected = slope * f
            predicted_rest = float(expected[open_].sum())
            for unit, q in self._draws[start:end]:
                members = self._members[unit]
                label = float(slope[members] @ self._y[members])
                guess = float(expected[members].sum())
                # Units that were not drawn give no estimate of their own, but count as known from
                # here on.
                if q is not None:
                    result.append(labelled_sum + predicted_rest + (label - guess) / q)
                labelled_sum += label
                predicted_rest -= guess
                open_[members] = False
        return np.array(result)

    def _iter_predictions(self) -> Iterator[tuple[int, int, Floats]]:
        """Yield the start and end of each run of draws that share a fit, with its predictions."""
        ends = [*(place for place, _ in self._fits[1:]), len(self._draws)]
        for (start, coefficients), end in zip(self._fits, ends, strict=True):
            yield start, end, sigmoid(self._x @ coefficients)

    @cached_property
    def estimates(self) -> Floats:
        """An unbiased estimate of each answer's label, shape (N,).

        Sums of these estimates are the estimates of sums of labels. A single one may lie far
        outside 0 to 1.
        """
        n = len(self._draws)
        if not n:
            return self.predictions.copy()
        # An answer of a unit that was never labelled gets the entry n, whose weight is 0.
        weights = np.append(self._weights, 0.0)
        upto = np.concatenate([[0.0], np.cumsum(weights)])  # of the entries before one
        entry = np.full(self._count, n)
        entry[[draw.unit for draw in self._draws]] = np.arange(n)
        entered = entry[self._units]
        result = np.zeros(len(self._units))
        at = np.zeros(len(self._units))
        for start, end, f in self._iter_predictions():
            stop = np.clip(entered + 1, start, end)  # the draw of the answer itself counts f, too
            result += f * (upto[stop] - upto[start])
            is_predicted_here = (entered >= start) & (entered < end)
            at[is_predicted_here] = f[is_predicted_here]
        for place, (unit, q) in enumerate(self._draws):
            members = self._members[unit]
            # After its draw an answer counts with its label, so with the weight of all later
            # entries.
            result[members] += self._y[members] * (1 - upto[place + 1])
            if q is not None:
                result[members] += weights[place] * (self._y[members] - at[members]) / q
        return result

    def estimate(self, target: FigureTarget) -> ActiveEstimate | None:
        """Return the estimate of a figure with its variances; ``None`` for fewer than two draws."""
        drawn = [draw.probability is not None for draw in self._draws]
        if sum(drawn) < 2:
            return None
        weights = self._weights[drawn]
        sums = self._estimate_sums(target.slope)
        # With every unit labelled the figure is exact.
        variance = _variance_of_mean(sums, weights) if len(self.left) else 0.0
        influence = target.slope * np.nan_to_num(self._y) + target.offset
        of_unit = np.bincount(self._units, influence, self._count)[[d.unit for d in self._draws]]
        # The second variance comes from how the influences of the drawn units scatter. Each drawn
        # unit stands for several units; on average these numbers sum to the number of all units.
        q = np.array([draw.probability or np.inf for draw in self._draws])
        stands = 1 - np.cumsum(self._weights) + self._weights / q
        square_mean = float(stands @ of_unit**2 / stands.sum())
        m = sum(drawn) + len(self.left)
        effective, between = 1 / float(weights @ weights), self._count * square_mean
        numbers = sum(drawn), effective, len(self.left), m**2 * square_mean
        return ActiveEstimate(target.value, variance, between, *numbers)


def _variance_of_mean(sums: Floats, weights: Floats) -> float:
    """Return the variance V of the weighted mean of uncorrelated S_t.

    The expected value of (S_t - S)^2 is (1 - 2 w_t) V_t + V. Where a weight is near a half, with
    one unit left, V_t is taken to be proportional to 1 / w_t.
    """
    distance = (sums - weights @ sums) ** 2
    if weights.max() > LARGEST_WEIGHT:
        return float((weights * distance).sum() / (len(sums) - 1))
    share = weights**2 / (1 - 2 * weights)
    return float(share @ distance / (1 + share.sum()))


def _fit_logistic(x: Floats, y: Floats, prior: Floats, start: Floats) -> Floats:
    """Return logistic coefficients for labels from 0 to 1, with a normal prior about ``prior``.

    The posterior is maximised by Newton's steps, which are halved where they overshoot.
    """
    stiff = np.full(x.shape[1], PRIOR_PRECISION)
    # The base rate of right answers is less predictable than that scores point the right way.
    stiff[0] = PRIOR_PRECISION / 10

    def loss(b: Floats) -> float:
        eta = x @ b
        return float((np.logaddexp(0, eta) - y * eta).sum() + (stiff * (b - prior) ** 2).sum() / 2)

    b, current_loss = start, loss(start)
    for _ in range(25):
        p = sigmoid(x @ b)
        gradient = x.T @ (y - p) - stiff * (b - prior)
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + np.diag(stiff), gradient)
        if np.abs(step).max() < MIN_NEWTON_STEP:
            break
        size = 1.0
        while (next_loss := loss(b + size * step)) > current_loss and size > 1e-3:
            size /= 2
        b, current_loss = b + size * step, next_loss
    return np.asarray(b)
