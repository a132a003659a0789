"""The difference of a figure between two runs that answered the same questions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.bootstrap import DRAWN_AT_ONCE, expanded_interval
from trustassay.statistics.comparison import Difference
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.intervals import FEWEST, too_few

__all__ = [
    "FEWEST_CHANGED",
    "REPLICATES",
    "drawn_counts",
    "paired_difference",
    "share_rise_p",
    "with_few_changes",
]

Floats = NDArray[np.float64]

REPLICATES, LEAST_REPLICATES = 2000, 200
DRAWS = 20_000_000
"""Units drawn in all, from which on there are fewer replicates."""
FEWEST_CHANGED = 6
"""Questions with a change below which no difference is told from 0: if rises and falls are equally
likely, five of five go the same way one time in sixteen, six of six one time in 32."""


def drawn_counts(
    units: int, rng: np.random.Generator, replicates: int | None = None
) -> Iterator[Floats]:
    """Yield how often each unit is drawn, in bootstrap samples of as many units (Efron 1979).

    Args:
        units: 1 or more. replicates: 2,000; fewer, but 200 at least, of more than 10,000 units.

    Yields arrays of shape (b, units); those of all together are the replicates.
    """
    if replicates is None:
        replicates = max(LEAST_REPLICATES, min(REPLICATES, DRAWS // units))
    at_once = max(1, DRAWN_AT_ONCE // units)
    for start in range(0, replicates, at_once):
        size = min(at_once, replicates - start)
        yield rng.multinomial(units, np.full(units, 1 / units), size=size).astype(np.float64)


def paired_difference(
    value: float, drawn: Floats, units: int, changed: int, fewest: int = FEWEST
) -> Difference:
    """Return a difference, second less first, with its interval from paired resamples.

    Args:
        value: the difference over all units. drawn: the same over units drawn with replacement,
            both runs' together, shape (B,); NaN where one of the figures is undefined.
        units: that were drawn from. changed: those in which what the figure is made of changed.
        fewest: units below which there is no interval.

    The interval is the expanded percentile interval (Hesterberg 2015). Without any change it is
    (0, 0); with fewer than :data:`FEWEST_CHANGED` changes it is made wide enough to hold 0.
    """
    if reason := too_few("questions", units, fewest):
        return Difference(value, None, reason)
    defined = drawn[~np.isnan(drawn)]
    if changed and len(defined) < 0.9 * len(drawn):
        return Difference(value, None, "too few answers make up the figure")
    interval = expanded_interval(defined, units) if changed else (0.0, 0.0)
    return with_few_changes(Difference(value, interval), changed)


def with_few_changes(difference: Difference, changed: int) -> Difference:
    """Return a difference without change as 0 to 0; of fewer than :data:`FEWEST_CHANGED` changes
    with an interval wide enough to hold 0.
    """
    if difference.interval is None or changed >= FEWEST_CHANGED:
        return difference
    low, high = difference.interval if changed else (0.0, 0.0)
    return Difference(difference.value, (min(low, 0.0), max(high, 0.0)))


def share_rise_p(risen: int, fallen: int, n: int, margin: float = 0.0) -> float:
    """Return the one-sided p-value that a share did not rise, in n pairs, by more than a margin.

    Args:
        risen: pairs that have the property in the second run alone. fallen: in the first alone.
        margin: from 0 to 1. Below 0 it asks whether the share fell by less than so much.

    Without a margin this is the exact test of McNemar (1947): of all pairs that changed, risen is
    binomial with 1/2. With one it is the score test of Tango (1998): of the difference
    d = (risen - fallen) / n about the margin m, over its standard error at the shares that are
    likeliest where the difference is m.

    Raises:
        ValueError: the counts are no counts of n pairs.
    """
    if risen < 0 or fallen < 0 or risen + fallen > n or n < 1:
        raise ValueError(f"expected counts among n pairs, got {risen} and {fallen} of {n}")
    if not margin:
        changed = risen + fallen
        return incomplete_beta(risen, changed - risen + 1, 0.5) if risen else 1.0
    if margin < 0:  # the same with rises and falls exchanged
        return 1 - share_rise_p(fallen, risen, n, -margin)
    a, c = 2 * n, -fallen * margin * (1 - margin)
    b = (2 * n - risen + fallen) * margin - (risen + fallen)
    fall = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)  # the likeliest share of falls
    error = math.sqrt(n * (2 * fall + margin * (1 - margin)))
    return 1 - NormalDist().cdf((risen - fallen - n * margin) / error)
