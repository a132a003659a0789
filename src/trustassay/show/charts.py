"""Drawings as SVG, by ``drawings.html.jinja``: of scores, which fill their place; and with axes and
numbers, which keep their proportions, so that dots stay round and text stays readable."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trustassay.show.distributions import BINS, SHOWN_BINS, Group, Groups, Histogram, Series
from trustassay.show.text import NO_BREAK, finalized, number, score_text, with_error, with_interval
from trustassay.statistics.regression import Line as FittedLine
from trustassay.text.words import amount

LEAST_HEIGHT = 1.5  # one answer among a million stays visible


@cache
def _drawings() -> Any:
    environment = Environment(
        loader=PackageLoader("trustassay.show"),
        autoescape=True,
        finalize=finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    for function in (score_text, with_error, amount):
        environment.globals[function.__name__] = function
    return environment.get_template("drawings.html.jinja").module


def drawn(macro: str, **context: Any) -> Markup:
    """Return what a macro of ``drawings.html.jinja`` draws."""
    result: Markup = getattr(_drawings(), macro)(**context)
    return result


def histogram_svg(histogram: Histogram) -> Markup:
    """Draw the distribution as stacked bars, one colour a verdict."""
    series, label = Series.all_of(histogram), histogram_text(histogram)
    return drawn("histogram", label=label, histogram=histogram, series=series, least=LEAST_HEIGHT)


def histogram_text(histogram: Histogram) -> str:
    """Return a sentence on what the drawing shows."""
    scope = f"{score_text(histogram.low)} to {score_text(histogram.high)}"
    if not histogram.n:
        return f"No scores in the range {scope}."
    counts = histogram.counts
    fullest = max(range(BINS), key=counts.__getitem__)
    low, high = histogram.edges(fullest)
    verdicts = ", ".join(f"{one.name} {one.total:,}" for one in Series.all_of(histogram))
    return (
        f"Distribution of {amount(histogram.n, 'score')} from {scope}: the largest of {BINS} bins "
        f"is {score_text(low)} to {score_text(high)} with {counts[fullest]:,}. By verdict: "
        f"{verdicts}."
    )


def percent_svg(value: float, interval: tuple[float, float] | None) -> Markup:
    """Draw a value and its interval on the scale from 0 to 100."""
    label = f"{number(float(value))} on a scale from 0 to 100"
    band = None
    if interval is not None:
        band = [min(100.0, max(0.0, bound)) for bound in interval]
        label += f", interval {number(float(interval[0]))} to {number(float(interval[1]))}"
    return drawn("percent", label=label, value=value, band=band)


def meter_svg(score: float, low: float, high: float) -> Markup:
    """Draw one score as a short bar; the number is next to it."""
    return drawn("meter", share=min(1.0, max(0.0, (score - low) / (high - low))))


def interval_text(interval: tuple[float, float], digits: int = 1) -> str:
    """Write an interval: ``55.2 – 66.9``."""
    low, high = (number(float(bound), digits) for bound in interval)
    return f"{low}{NO_BREAK}–{NO_BREAK}{high}"


WIDTH, HEIGHT = 400.0, 100.0
FEW = 1500
"""Scores below which twice as broad bins are drawn."""
TOO_FEW = 10
"""Scores below which a group has no say in the height of the rows: one score fills its bin."""


class Mark(NamedTuple):
    """A line across a drawing, at a share of its width; ``kind`` is its class."""

    kind: str
    at: float


class Curve(NamedTuple):
    """A line through points, each a share of the drawing's width and height."""

    kind: str
    points: Sequence[tuple[float, float]]


Box = tuple[float, float, float, float, str]
"""Left, right, top and height of a box that is seen however narrow it is, and its title."""


def _drawing(
    kind: str,
    label: str,
    boxes: Sequence[Box] = (),
    marks: Sequence[Mark] = (),
    curves: Sequence[Curve] = (),
) -> Markup:
    size = {"width": WIDTH, "height": HEIGHT}
    return drawn("drawing", kind=kind, label=label, **size, boxes=boxes, marks=marks, curves=curves)


def bars_svg(
    shares: Sequence[float],
    peak: float,
    label: str,
    marks: Sequence[Mark] = (),
    kind: str = "ridge",
    titles: Sequence[str] = (),
) -> Markup:
    """Draw bars whose heights are shares of ``peak``, and marks across them."""
    width = WIDTH / len(shares)
    boxes = []
    for place, share in enumerate(shares):
        if share > 0:
            height = min(HEIGHT, max(HEIGHT * share / peak, LEAST_HEIGHT))
            title = titles[place] if titles else ""
            ends = width * (place + 0.06), width * (place + 0.94)
            boxes.append((*ends, HEIGHT - height, height, title))
    return _drawing(kind, label, boxes, marks)


def interval_svg(interval: tuple[float, float] | None, at: float, label: str) -> Markup:
    """Draw an interval as a bar and its middle as a line; all are shares of the width."""
    low, high = (WIDTH * min(1.0, max(0.0, end)) for end in interval or (0.0, 0.0))
    boxes = [(low, high, HEIGHT / 4, HEIGHT / 2, "")] if interval is not None else []
    return _drawing("ridge", label, boxes, [Mark("mean", at)])


def box_svg(five: Sequence[float], label: str) -> Markup:
    """Draw least, quartiles and largest: a line, a box on it, and the median as a mark.

    All five are shares of the width, in rising order.
    """
    least, low, middle, high, largest = (WIDTH * min(1.0, max(0.0, one)) for one in five)
    whiskers = (least, largest, HEIGHT / 2 - 2, 4.0, "")
    box = (low, high, HEIGHT / 5, 3 * HEIGHT / 5, "")
    return _drawing("ridge", label, [whiskers, box], [Mark("mean", middle / WIDTH)])


def curves_svg(curves: Sequence[Curve], label: str, marks: Sequence[Mark] = ()) -> Markup:
    """Draw curves over each other; their classes tell them apart by colour and by dashes."""
    return _drawing("curves", label, marks=marks, curves=curves)


class Ridges(NamedTuple):
    """What the rows of one figure share: fine bins on the axis and in a bar, the largest share.

    ``cut`` says that a bar of a small group is larger and ends there.
    """

    axis: int
    step: int
    peak: float
    cut: bool = False


def ridges_of(groups: Groups) -> Ridges:
    """Choose the axis, the bins and the height for the rows of a metric's groups."""
    axis = groups.axis()
    step = axis // SHOWN_BINS
    shown = groups.shown().values()
    if sorted(group.n for group in shown)[len(shown) // 2] < FEW:
        step *= 2
    ridges = Ridges(axis, step, 1.0)
    tallest = [(group.n, float(_shares(ridges, group).max())) for group in shown]
    most = max(share for _, share in tallest)
    peak = max((share for n, share in tallest if n >= TOO_FEW and share), default=most)
    return ridges._replace(peak=peak, cut=most > peak)


def _shares(ridges: Ridges, group: Group) -> np.ndarray:
    counts = group.counts[: ridges.axis].reshape(-1, ridges.step).sum(axis=1)
    return np.asarray(counts / max(group.n, 1))


def beyond(ridges: Ridges, group: Group) -> int:
    """Return how many scores lie beyond the axis."""
    return int(group.counts[ridges.axis :].sum())


def ridge_svg(groups: Groups, group: Group, ridges: Ridges) -> Markup:
    """Draw one group's row: the share of its scores in each bin, its mean, the stable bound."""
    shares = _shares(ridges, group)
    top = groups.value(ridges.axis)

    def at(score: float) -> float:
        return (score - groups.low) / (top - groups.low)

    marks = [Mark("mean", at(group.scores.mean))]
    if groups.stable_below is not None and groups.stable_below < top:
        marks.insert(0, Mark("bound", at(groups.stable_below)))
    titles = [
        f"{score_text(groups.value(i * ridges.step))} to "
        f"{score_text(groups.value((i + 1) * ridges.step))}: {number(100 * share)} %"
        for i, share in enumerate(shares.tolist())
    ]
    label = (
        f"{amount(group.n, 'score')}, mean {with_error(group.scores.mean, group.scores.error)}; "
        f"largest bin: {titles[int(shares.argmax())]}"
    )
    return bars_svg(shares.tolist(), ridges.peak, label, marks, titles=titles)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers that span a range: steps of 1, 2 or 5 times a power of ten."""
    span = high - low if high > low else abs(high) or 1.0
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * place for place in range(first, max(last, first + 1) + 1)]


def stacked_svg(parts: Sequence[tuple[str, float]], names: Sequence[str], label: str) -> Markup:
    """Draw shares, in %, as pieces of one bar; a part's colour is its place in ``names``."""
    at, pieces = 0.0, []
    for name, share in parts:
        width = WIDTH * share / 100
        pieces.append((names.index(name), at, width, f"{name}: {number(share, 1)} %"))
        at += width
    said = ", ".join(f"{name} {number(share, 1)} %" for name, share in parts)
    return drawn("stacked", label=f"{label}: {said}", pieces=pieces, width=WIDTH, height=HEIGHT)


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
