"""Drawings with axes and numbers: ratings by score, curves of a study, which scores differ.

They keep their proportions, so that dots stay round and text stays readable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from trustassay.show.charts import drawn, ticks
from trustassay.show.distributions import Group, Groups
from trustassay.show.text import score_text, with_error, with_interval
from trustassay.statistics.regression import Line as FittedLine

Scale = Callable[[float], float]
LEFT, RIGHT, TOP, BOTTOM = 34.0, 10.0, 22.0, 26.0
"""Room around the ratings by score."""
RATINGS = (300.0, 200.0)
CURVES = (300.0, 260.0)
ROOM = (38.0, 8.0, 10.0, 36.0)
"""Room around the curves: left, right, top, bottom."""
MOST_CURVES = 6
"""Scores that are drawn in one picture: more colours cannot be told apart."""
CELL, NAMES = 64.0, 150.0
LONGEST_NAME = 24


class Axes(NamedTuple):
    """Where values lie in a drawing: ``low`` to ``high`` across, ``least`` to ``most`` upwards.

    size: width and height. room: left, right, top and bottom of the axes.
    """

    low: float
    high: float
    least: float
    most: float
    size: tuple[float, float] = RATINGS
    room: tuple[float, float, float, float] = (LEFT, RIGHT, TOP, BOTTOM)

    def x(self, value: float) -> float:
        """Return how far from the left a value is."""
        left, right, _, _ = self.room
        return left + (self.size[0] - left - right) * (value - self.low) / (self.high - self.low)

    def y(self, value: float) -> float:
        """Return how far from the top a value is."""
        _, _, top, bottom = self.room
        share = (value - self.least) / (self.most - self.least)
        return self.size[1] - bottom - (self.size[1] - top - bottom) * share

    @property
    def marks(self) -> list[float]:
        """Round numbers on the axis that goes upwards."""
        marks = ticks(self.least, self.most)
        return [one for one in marks if self.least - 1e-9 <= one <= self.most + 1e-9]


def ratings_of(groups: Groups) -> Axes:
    """Choose axes on which the ratings of all shown groups have room."""
    reached = []
    for group in [groups.whole, *groups.shown().values()]:
        for one in groups.rated_bins(group):
            error = one.error or 0.0
            reached += [one.mean - error, one.mean + error]
    marks = ticks(min(reached), max(reached))
    return Axes(groups.low, groups.value(groups.axis()), marks[0], marks[-1])


def rating_svg(groups: Groups, group: Group, axes: Axes) -> Markup:
    """Draw mean ratings by score with their standard errors, and the least-squares line."""
    bins, line, bound = groups.rated_bins(group), group.line, groups.stable_below
    label = "No ratings."
    if bins:
        means = ", ".join(
            f"{score_text(b.low)} to {score_text(b.high)} {with_error(b.mean, b.error, 2)}"
            for b in bins
        )
        label = f"Mean ratings by score: {means}." + (f" {line_text(line)}" if line else "")
    fit = None if line is None else _fit(line, axes)
    bound = None if bound is None or bound >= axes.high else bound
    return drawn("ratings", label=label, axes=axes, bins=bins, line=line, fit=fit, bound=bound)


def _fit(line: FittedLine, axes: Axes) -> tuple[float, float] | None:
    """Return between which scores the line stays on the axes."""
    low, high = axes.low, axes.high
    if line.slope:
        ends = sorted((bound - line.intercept) / line.slope for bound in (axes.least, axes.most))
        low, high = max(low, ends[0]), min(high, ends[1])
    return (low, high) if low < high else None


def line_text(line: FittedLine) -> str:
    """Say slope and intercept with their intervals: ``m = -6.1 (-8.0 to -4.2), b = ...``."""
    slope = with_interval(line.slope, line.slope_interval, 2)
    intercept = with_interval(line.intercept, line.intercept_interval, 2)
    return f"m = {slope}, b = {intercept}".replace("-", "−")


class Line(NamedTuple):
    """A curve by its name, and the place of its colour; ``dots`` marks the points."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    dots: bool = False


@dataclass(frozen=True)
class Plot:
    """Curves over each other between two axes; x and y as they are."""

    title: str
    note: str
    x: str
    y: str
    lines: Sequence[Line]
    span: tuple[float, float] = (0.0, 1.0)
    diagonal: bool = False

    @property
    def drawing(self) -> Markup:
        """Curves between axes with ticks; y grows upwards from the first of ``span``."""
        marks = ticks(*self.span)
        names = ", ".join(one.name for one in self.lines)
        label = f"{self.title}: {self.y} by {self.x} of {names}"
        axes = Axes(0.0, 1.0, marks[0], marks[-1], CURVES, ROOM)
        return drawn("xy", label=label, axes=axes, plot=self)


class Parting(NamedTuple):
    """Of how many answers about which one score is wrong another is right."""

    first: str
    second: str
    right: int
    wrong: int


def heat_svg(parting: Sequence[Parting]) -> Markup:
    """Draw a matrix: of the answers about which the score above is wrong, the share about which
    that on the left is right."""
    names = list(dict.fromkeys([one.first for one in parting] + [one.second for one in parting]))
    size = {"cell": CELL, "left": NAMES, "top": 24.0, "longest": LONGEST_NAME}
    return drawn("heat", parting=parting, names=names, **size)
