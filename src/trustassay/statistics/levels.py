"""Places where a sequence of figures with intervals changes its level."""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from trustassay.statistics.distributions import normal_quantile
from trustassay.statistics.resampling import holm

MAX_SIDE_FIGURES = 5
"""The most figures that are combined on each side of a step."""
STEP_SIGNIFICANCE = 0.05
"""The probability of finding any step in a line without one."""


class LevelEstimate(NamedTuple):
    """A figure of the line."""

    value: float
    """The figure."""
    low: float
    """The lower end of its 95 % interval."""
    high: float
    """The upper end of its 95 % interval."""
    n: int
    """How many answers it is computed from."""


class LevelStep(NamedTuple):
    """A place where a line changed its level."""

    at: int
    """The number of the first figure after the step, from 0."""
    before: LevelEstimate
    """The level before the step."""
    after: LevelEstimate
    """The level after the step."""
    counts: tuple[int, int]
    """How many figures the levels before and after are combined from."""
    p: float
    """The two-sided p-value, corrected for all tests of the line."""

    @property
    def rise(self) -> float:
        """By how much the level rose; below 0, it fell."""
        return self.after.value - self.before.value


def find_level_steps(
    line: Sequence[LevelEstimate], broken: Collection[int] = ()
) -> list[LevelStep]:
    """Return the places where a line of independent figures changed, in their order.

    Each place is tested three times: up to :data:`MAX_SIDE_FIGURES` figures before it against as
    many after it; the same figures before it against the single next one; and the single figure
    before it against those after it. So both a lasting change and a single outlier are found. The
    p-values are corrected for their number (Holm 1979). Among places within
    :data:`MAX_SIDE_FIGURES` of each other that rose, or that fell, only the clearest is returned.

    Figures of the same questions move together, so their difference is surer than assumed here:
    this may miss steps, but finds no more false ones.

    Args:
        line: the figures, in order.
        broken: numbers of figures that cannot be compared with those before them; no level is
            combined across such a place.
    """
    ends = [0, *sorted(candidate for candidate in broken if 0 < candidate < len(line)), len(line)]
    tested = [
        candidate for start, end in pairwise(ends) for candidate in _test_places(line, start, end)
    ]
    corrected = holm([candidate.p for _, candidate in tested])
    result: list[LevelStep] = []
    # clearest first, so that a weaker test of the same step finds it taken
    for p, (_, candidate) in sorted(
        zip(corrected, tested, strict=True), key=lambda each: -each[1][0]
    ):
        near = [other for other in result if abs(other.at - candidate.at) < MAX_SIDE_FIGURES]
        if p < STEP_SIGNIFICANCE and not any(
            (other.rise > 0) == (candidate.rise > 0) for other in near
        ):
            result.append(candidate._replace(p=p))
    return sorted(result)


def _test_places(
    line: Sequence[LevelEstimate], start: int, end: int
) -> Iterator[tuple[float, LevelStep]]:
    """Yield the distance of the two sides in standard errors, and the step, of each test."""
    for at in range(start + 1, end):
        back, forth = min(MAX_SIDE_FIGURES, at - start), min(MAX_SIDE_FIGURES, end - at)
        # Near an end two of the three comparisons may be the same; each counts as one test.
        for counts in dict.fromkeys([(back, forth), (back, 1), (1, forth)]):
            before, after = (
                combine_estimates(line[at - counts[0] : at]),
                combine_estimates(line[at : at + counts[1]]),
            )
            below, above = sorted((before, after))
            # Only the facing sides of the intervals matter: the upper one of the lower level, and
            # vice versa.
            if reach := math.hypot(below.high - below.value, above.value - above.low):
                z = (above.value - below.value) / reach * normal_quantile(0.975)
                yield z, LevelStep(at, before, after, counts, math.erfc(z / math.sqrt(2)))


def combine_estimates(line: Sequence[LevelEstimate]) -> LevelEstimate:
    """Return the mean of one or more figures, weighted by their numbers of answers.

    Its interval is combined from those of the figures (Zou and Donner 2008).
    """
    total = sum(max(figure.n, 1) for figure in line)
    weighted = [(max(figure.n, 1) / total, figure) for figure in line]
    value = sum(weight * figure.value for weight, figure in weighted)
    down = math.hypot(*(weight * (figure.value - figure.low) for weight, figure in weighted))
    up = math.hypot(*(weight * (figure.high - figure.value) for weight, figure in weighted))
    return LevelEstimate(value, value - down, value + up, sum(figure.n for figure in line))
