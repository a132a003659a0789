"""Where a line of figures with intervals, one after another, changes its level."""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from trustassay.statistics.distributions import normal_quantile
from trustassay.statistics.resampling import holm

REACH = 5
"""Figures on each side of a step that are put together."""
LEVEL = 0.05
"""The chance of any step in a line without one."""


class Estimate(NamedTuple):
    """A figure, the ends of its 95 % interval, and how many answers it is of."""

    value: float
    low: float
    high: float
    n: int


class Step(NamedTuple):
    """A place where a line changed: ``at`` is the number of the first figure after it, from 0.

    before, after: the level on each side, put together of ``counts`` figures. p: two-sided,
    corrected for all tests of the line.
    """

    at: int
    before: Estimate
    after: Estimate
    counts: tuple[int, int]
    p: float

    @property
    def rise(self) -> float:
        """By how much the level rose; below 0, it fell."""
        return self.after.value - self.before.value


def steps(line: Sequence[Estimate], broken: Collection[int] = ()) -> list[Step]:
    """Return the places where a line of independent figures changed, in their order.

    Each place is tested three times: up to :data:`REACH` figures before it with as many after it,
    with the one after it, and the one before it with those after it; so a level that stays is
    found, and also a single figure apart. The p-values are corrected for their number (Holm 1979).
    Of places within :data:`REACH` of each other that rose, or fell, the clearest counts.

    Figures of the same questions move together, and a difference between them is surer than it is
    taken for here: then fewer steps are found, not more false ones.

    Args:
        broken: numbers of figures that cannot be compared with those before them; nothing is put
            together over such a place.
    """
    ends = [0, *sorted(one for one in broken if 0 < one < len(line)), len(line)]
    tested = [one for start, end in pairwise(ends) for one in _tests(line, start, end)]
    corrected = holm([one.p for _, one in tested])
    result: list[Step] = []
    for p, (_, one) in sorted(zip(corrected, tested, strict=True), key=lambda each: -each[1][0]):
        near = [other for other in result if abs(other.at - one.at) < REACH]
        if p < LEVEL and not any((other.rise > 0) == (one.rise > 0) for other in near):
            result.append(one._replace(p=p))
    return sorted(result)


def _tests(line: Sequence[Estimate], start: int, end: int) -> Iterator[tuple[float, Step]]:
    """Yield each test, and how many standard errors the two sides are apart."""
    for at in range(start + 1, end):
        back, forth = min(REACH, at - start), min(REACH, end - at)
        for counts in dict.fromkeys([(back, forth), (back, 1), (1, forth)]):
            before, after = together(line[at - counts[0] : at]), together(line[at : at + counts[1]])
            below, above = sorted((before, after))
            if reach := math.hypot(below.high - below.value, above.value - above.low):
                z = (above.value - below.value) / reach * normal_quantile(0.975)
                yield z, Step(at, before, after, counts, math.erfc(z / math.sqrt(2)))


def together(line: Sequence[Estimate]) -> Estimate:
    """Return the mean of one figure or more, each with the weight of its answers; its interval is
    put together from theirs (Zou and Donner 2008).
    """
    total = sum(max(one.n, 1) for one in line)
    weighted = [(max(one.n, 1) / total, one) for one in line]
    value = sum(weight * one.value for weight, one in weighted)
    down = math.hypot(*(weight * (one.value - one.low) for weight, one in weighted))
    up = math.hypot(*(weight * (one.high - one.value) for weight, one in weighted))
    return Estimate(value, value - down, value + up, sum(one.n for one in line))
