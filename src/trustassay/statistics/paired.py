"""The difference of a figure between two runs that answered the same questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trustassay.statistics.bootstrap import DRAWN_AT_ONCE, expanded_interval
from trustassay.statistics.comparison import Difference
from trustassay.statistics.intervals import FEWEST, too_few

__all__ = ["FEWEST_CHANGED", "REPLICATES", "drawn_counts", "paired_difference"]

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
    if not changed:
        return Difference(value, (0.0, 0.0))
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < 0.9 * len(drawn):
        return Difference(value, None, "too few answers make up the figure")
    low, high = expanded_interval(defined, units)
    if changed < FEWEST_CHANGED:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(value, (low, high))
