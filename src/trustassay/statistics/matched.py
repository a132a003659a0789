"""Matched pairs: how far scores and verdicts move when one thing is changed, and nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trustassay.statistics import Bools, Floats, Places, comparison, intervals
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.intervals import FEWEST, Estimate
from trustassay.statistics.resampling import drawn_counts, interval_of

ALLOWED = 0.01
"""The share of flips above which a judge is said to differ from itself when it is asked anew."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a change did to ``flips.n`` answers: the mean change of the score, the share of other
    verdicts (0 to 1), p of no effect, and maybe the ratio of its movement to a control's."""

    shift: Estimate
    flips: Estimate
    p: float
    ratio: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        parts = {"shift": self.shift, "flips": self.flips, "ratio": self.ratio}
        return {"p": self.p} | {name: one and one.to_dict() for name, one in parts.items()}


def moved(
    change: Floats,
    flipped: Bools,
    units: Places,
    width: float,
    rng: np.random.Generator,
    calm: Bools | None = None,
) -> Moved:
    """Measure what a change does to scores and verdicts of n answers, 1 or more.

    Two tests, p is twice the smaller: by sign flips over units, that the scores do not shift; and
    that verdicts flip no oftener than those of ``calm``, by McNemar's exact test of the units with
    more flips against those with fewer. Both are exact for a judge that draws each reply anew,
    whatever it draws from. Without ``calm`` the second is the binomial test that at most 1 % flip.

    Args:
        change: of the scores, shape (n,), NaN where one is missing. flipped: whether the verdict
            changed, shape (n,). units: of the answers, shape (n,). width: of the range of scores;
            may be infinite. calm: whether the verdict changed without a change, shape (n,).
    """
    place = intervals.unit_places(units, len(flipped))
    there, flips = ~np.isnan(change), flipped.astype(np.float64)
    mean = intervals.unit_mean(flips, place)
    why = intervals.too_few("questions (of equal size)", math.floor(mean.units + 1e-9), FEWEST)
    share = Estimate.of(mean.mean, len(flips), why or intervals.mean_interval(*mean))
    by_unit = np.bincount(place, flips if calm is None else flips - calm)
    more, fewer, count = int((by_unit > 0).sum()), int((by_unit < 0).sum()), len(by_unit)
    if calm is not None:
        ps = [comparison.share_rise_p(more, fewer, count)]
    else:
        allowed = 1 - (1 - ALLOWED) ** (len(flips) / count)
        ps = [incomplete_beta(more, count - more + 1, allowed) if more else 1.0]
    shift = Estimate(None, 0, None, "no answer has both scores")
    if there.any():
        value, ends, why = comparison.mean_of_differences(change[there], width, place[there])
        shift = Estimate(value, int(there.sum()), ends, why or "")
        ps.append(comparison.sign_flip_p(np.bincount(place[there], change[there]), rng))
    return Moved(shift, share, min(1.0, len(ps) * min(ps)))


def movement_ratios(changes: Floats, units: Places, rng: np.random.Generator) -> Sequence[Estimate]:
    """Return how far changes move the scores as parts of how far the last of them, a control, does.

    A movement is the mean of changes without their signs, so what a judge does at random counts:
    at 1 a change moves it as far as the control. First comes the mean over all but the control,
    then each, with bootstrap intervals over units, all movements of a unit drawn together.

    Args:
        changes: of the scores, shape (2 or more, n), NaN where there is none; each row has a
            number, and the last one a number other than 0. units: of the answers, shape (n,).
    """
    place = intervals.unit_places(units, changes.shape[1])
    tables = np.nan_to_num(np.abs(changes)), (~np.isnan(changes)).astype(np.float64)
    sums, sizes = (np.stack([np.bincount(place, row) for row in table]) for table in tables)

    def ratios(weights: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (weights @ sums.T) / (weights @ sizes.T)
            own = means[:, :-1] / means[:, -1:]
        own = np.where(np.isfinite(own), own, np.nan)
        return np.column_stack([own.mean(axis=1), own])

    count, n = sums.shape[1], int(sizes[-1].sum())
    drawn = np.concatenate([ratios(weights) for weights in drawn_counts(count, rng)])
    pairs = zip(ratios(np.ones((1, count)))[0].tolist(), drawn.T, strict=True)
    return [Estimate.of(value, n, interval_of(column, count)) for value, column in pairs]
