"""Drawings as SVG, by the macros of ``drawings.html.jinja``.

Drawings of scores are stretched to fill their place. Those with axes and numbers keep their
proportions, so that dots stay round and text stays readable.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trustassay.report.distributions import (
    BINS,
    SHOWN_BINS,
    Histogram,
    ScoreGroup,
    ScoreGroups,
    Series,
)
from trustassay.report.text import cut, spell_out_hidden
from trustassay.statistics.regression import RegressionLine as FittedLine
from trustassay.text.numbers import NO_BREAK, amount, number, score_text, with_error, with_interval

MIN_HEIGHT = 1.5  # one answer among a million stays visible


@cache
def _load_drawings() -> Any:
    # An environment of its own: that of the page calls the functions of this module.
    environment = Environment(
        loader=PackageLoader("trustassay.report"),
        autoescape=True,
        finalize=spell_out_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    # Macros of a module take no context, so what they call has to be global.
    for function in (score_text, with_error, amount):
        environment.globals[function.__name__] = function
    return environment.get_template("drawings.html.jinja").module


def draw_macro(macro: str, **context: Any) -> Markup:
    """Draw by a macro of ``drawings.html.jinja``."""
    result: Markup = getattr(_load_drawings(), macro)(**context)
    return result


def histogram_svg(histogram: Histogram) -> Markup:
    """Draw the distribution as stacked bars, with a colour for each verdict."""
    series, label = Series.all_of(histogram), histogram_text(histogram)
    return draw_macro(
        "histogram", label=label, histogram=histogram, series=series, least=MIN_HEIGHT
    )


def histogram_text(histogram: Histogram) -> str:
    """Describe the drawing of a histogram in words."""
    scope = f"{score_text(histogram.low)} to {score_text(histogram.high)}"
    if not histogram.n:
        return f"No scores in the range {scope}."
    counts = histogram.counts
    # The description names the largest bin: a list of all twenty would be tiring to listen to.
    fullest = max(range(BINS), key=counts.__getitem__)
    low, high = histogram.edges(fullest)
    verdicts = ", ".join(f"{series.name} {series.total:,}" for series in Series.all_of(histogram))
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
        # An interval may go beyond the scale; the label has its true ends.
        band = [min(100.0, max(0.0, bound)) for bound in interval]
        label += f", interval {number(float(interval[0]))} to {number(float(interval[1]))}"
    return draw_macro("percent", label=label, value=value, band=band)


def meter_svg(score: float, low: float, high: float) -> Markup:
    """Draw one score as a short bar; the number is next to it."""
    return draw_macro("meter", share=min(1.0, max(0.0, (score - low) / (high - low))))


def interval_text(interval: tuple[float, float], digits: int = 1) -> str:
    """Format an interval: ``55.2 – 66.9``."""
    low, high = (number(float(bound), digits) for bound in interval)
    return f"{low}{NO_BREAK}–{NO_BREAK}{high}"


WIDTH, HEIGHT = 400.0, 100.0
"""The size of a stretched drawing, in its own units."""
MIN_FINE_SCORES = 1500
"""Scores below which bins are drawn twice as wide."""
MIN_PEAK_SCORES = 10
"""Scores below which a group does not influence the height of the rows: one score fills a bin."""


class ChartMark(NamedTuple):
    """A vertical line across a drawing."""

    kind: str
    """Its CSS class."""
    at: float
    """Its place, as a share of the width."""


class Curve(NamedTuple):
    """A line through points."""

    kind: str
    """Its CSS class."""
    points: Sequence[tuple[float, float]]
    """(x, y), as shares of the width and the height."""


Box = tuple[float, float, float, float, str]
"""Left, right, top, height and title of a box, which is visible however narrow it is."""


def _draw(
    kind: str,
    label: str,
    boxes: Sequence[Box] = (),
    marks: Sequence[ChartMark] = (),
    curves: Sequence[Curve] = (),
) -> Markup:
    size = {"width": WIDTH, "height": HEIGHT}
    return draw_macro(
        "drawing", kind=kind, label=label, **size, boxes=boxes, marks=marks, curves=curves
    )


def bars_svg(
    shares: Sequence[float],
    peak: float,
    label: str,
    marks: Sequence[ChartMark] = (),
    kind: str = "ridge",
    titles: Sequence[str] = (),
) -> Markup:
    """Draw bars whose heights are shares of ``peak``, and marks across them."""
    width = WIDTH / len(shares)
    boxes = []
    for place, share in enumerate(shares):
        if share > 0:
            height = min(HEIGHT, max(HEIGHT * share / peak, MIN_HEIGHT))
            title = titles[place] if titles else ""
            # A gap of 12 % between bars.
            ends = width * (place + 0.06), width * (place + 0.94)
            boxes.append((*ends, HEIGHT - height, height, title))
    return _draw(kind, label, boxes, marks)


def interval_svg(interval: tuple[float, float] | None, at: float, label: str) -> Markup:
    """Draw an interval as a bar and its estimate as a line; all are shares of the width."""
    low, high = (WIDTH * min(1.0, max(0.0, end)) for end in interval or (0.0, 0.0))
    # Half as high as the drawing, so that the line of the estimate stands out.
    boxes = [(low, high, HEIGHT / 4, HEIGHT / 2, "")] if interval is not None else []
    return _draw("ridge", label, boxes, [ChartMark("mean", at)])


def box_svg(five: Sequence[float], label: str) -> Markup:
    """Draw a box plot: a line from least to largest, a box of quartiles, the median as a mark.

    All five are shares of the width, in rising order.
    """
    least, low, middle, high, largest = (WIDTH * min(1.0, max(0.0, share)) for share in five)
    # A box 4 high serves as the line: strokes would be stretched with the drawing.
    whiskers = (least, largest, HEIGHT / 2 - 2, 4.0, "")
    box = (low, high, HEIGHT / 5, 3 * HEIGHT / 5, "")
    return _draw("ridge", label, [whiskers, box], [ChartMark("mean", middle / WIDTH)])


def curves_svg(curves: Sequence[Curve], label: str, marks: Sequence[ChartMark] = ()) -> Markup:
    """Draw curves in one picture; their classes differ in colour and dashes."""
    return _draw("curves", label, marks=marks, curves=curves)


class Ridges(NamedTuple):
    """The common scale of the rows of one figure."""

    axis: int
    """Fine bins on the axis."""
    step: int
    """Fine bins in a bar."""
    peak: float
    """The share of scores that a bar of full height stands for."""
    cut: bool = False
    """Whether a bar of a small group is higher than that, and cut off."""


def ridges_of(groups: ScoreGroups) -> Ridges:
    """Choose the axis, the bins and the height for the rows of a metric's groups."""
    axis = groups.axis()
    step = axis // SHOWN_BINS
    groups_drawn = groups.shown().values()
    # The median size: with few scores narrow bins show noise.
    if sorted(group.n for group in groups_drawn)[len(groups_drawn) // 2] < MIN_FINE_SCORES:
        # 20 bars instead of 40; the axis has 40 k fine bins, so that 2 k divide it evenly.
        step *= 2
    ridges = Ridges(axis, step, 1.0)
    tallest = [(group.n, float(_compute_shares(ridges, group).max())) for group in groups_drawn]
    most = max(share for _, share in tallest)
    # Small groups may be cut off; without any large group the highest bar sets the scale.
    peak = max((share for n, share in tallest if n >= MIN_PEAK_SCORES and share), default=most)
    return ridges._replace(peak=peak, cut=most > peak)


def _compute_shares(ridges: Ridges, group: ScoreGroup) -> np.ndarray:
    counts = group.counts[: ridges.axis].reshape(-1, ridges.step).sum(axis=1)
    return np.asarray(counts / max(group.n, 1))


def beyond(ridges: Ridges, group: ScoreGroup) -> int:
    """Return the number of scores beyond the axis."""
    return int(group.counts[ridges.axis :].sum())


def ridge_svg(groups: ScoreGroups, group: ScoreGroup, ridges: Ridges) -> Markup:
    """Draw one group's row: the share of scores in each bin, the mean, the bound of stability."""
    shares = _compute_shares(ridges, group)
    top = groups.value(ridges.axis)

    def at(score: float) -> float:
        return (score - groups.low) / (top - groups.low)

    marks = [ChartMark("mean", at(group.scores.mean))]
    # A bound beyond a shortened axis is not drawn.
    if groups.stable_below is not None and groups.stable_below < top:
        marks.insert(0, ChartMark("bound", at(groups.stable_below)))
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
    """Return round numbers that span a range, in steps of 1, 2 or 5 times a power of ten."""
    # A single value gets a range around it as large as itself.
    span = high - low if high > low else abs(high) or 1.0
    rough = span / most
    # The largest power of ten that is no larger than the step needed.
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    # The small term keeps a range that ends on a tick from getting one more.
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * place for place in range(first, max(last, first + 1) + 1)]


def stacked_svg(parts: Sequence[tuple[str, float]], names: Sequence[str], label: str) -> Markup:
    """Draw shares in percent as pieces of one bar; a colour is given by the place in ``names``."""
    at, pieces = 0.0, []
    for name, share in parts:
        width = WIDTH * share / 100
        pieces.append((names.index(name), at, width, f"{name}: {number(share, 1)} %"))
        at += width
    shares_text = ", ".join(f"{name} {number(share, 1)} %" for name, share in parts)
    return draw_macro(
        "stacked", label=f"{label}: {shares_text}", pieces=pieces, width=WIDTH, height=HEIGHT
    )


Scale = Callable[[float], float]
LEFT, RIGHT, TOP, BOTTOM = 34.0, 10.0, 22.0, 38.0
"""Margins around the drawing of ratings by score."""
RATINGS_SIZE = (300.0, 212.0)
"""Width and height of the drawing of ratings by score."""
CURVES_SIZE = (300.0, 260.0)
"""Width and height of a drawing of curves."""
CURVES_ROOM = (38.0, 8.0, 10.0, 36.0)
"""Margins around curves: left, right, top, bottom."""
PLANE_SIZE = (480.0, 320.0)
"""Width and height of a drawing of dots in a plane."""
PLANE_ROOM = (10.0, 10.0, 10.0, 10.0)
"""Margins around such dots, so that those at the ends are whole."""
MAX_CURVES = 6
"""Curves in one picture: more colours cannot be told apart."""
CELL_WIDTH, NAMES_WIDTH = 64.0, 150.0
"""Width of a cell of a matrix, and of the names on its left."""
MAX_NAME_CHARACTERS = 24
"""Characters of a name beside a matrix."""


class Axes(NamedTuple):
    """The axes of a drawing, which map values to places."""

    low: float
    """The value at the left end."""
    high: float
    """The value at the right end."""
    least: float
    """The value at the bottom."""
    most: float
    """The value at the top."""
    size: tuple[float, float] = RATINGS_SIZE
    """Width and height of the drawing."""
    room: tuple[float, float, float, float] = (LEFT, RIGHT, TOP, BOTTOM)
    """The margins: left, right, top, bottom."""

    def x(self, value: float) -> float:
        """Return the distance of a value from the left."""
        left_margin, right, _, _ = self.room
        return left_margin + (self.size[0] - left_margin - right) * (value - self.low) / (
            self.high - self.low
        )

    def y(self, value: float) -> float:
        """Return the distance of a value from the top."""
        _, _, top, bottom = self.room
        share = (value - self.least) / (self.most - self.least)
        return self.size[1] - bottom - (self.size[1] - top - bottom) * share

    @property
    def marks(self) -> list[float]:
        """The round numbers on the vertical axis."""
        marks = ticks(self.least, self.most)
        return [mark for mark in marks if self.least - 1e-9 <= mark <= self.most + 1e-9]


def ratings_of(groups: ScoreGroups) -> Axes:
    """Choose axes that hold the ratings of all drawn groups with their errors."""
    ends = []
    for group in [groups.whole, *groups.shown().values()]:
        for rated_bin in groups.rated_bins(group):
            error = rated_bin.error or 0.0
            ends += [rated_bin.mean - error, rated_bin.mean + error]
    # From tick to tick, so that no error bar touches the border.
    marks = ticks(min(ends), max(ends))
    return Axes(groups.low, groups.value(groups.axis()), marks[0], marks[-1])


def rating_svg(
    groups: ScoreGroups, group: ScoreGroup, axes: Axes, score_name: str = "score"
) -> Markup:
    """Draw mean ratings by score with their standard errors, and the least-squares line.

    score_name: the label of the horizontal axis.
    """
    bins, line, bound = groups.rated_bins(group), group.line, groups.stable_below
    label = "No ratings."
    if bins:
        means = ", ".join(
            f"{score_text(b.low)} to {score_text(b.high)} {with_error(b.mean, b.error, 2)}"
            for b in bins
        )
        label = f"Mean ratings by {score_name}: {means}." + (f" {line_text(line)}" if line else "")
    fit = None if line is None else _clip_line(line, axes)
    bound = None if bound is None or bound >= axes.high else bound
    return draw_macro(
        "ratings",
        label=label,
        axes=axes,
        bins=bins,
        line=line,
        fit=fit,
        bound=bound,
        score_name=score_name,
    )


def _clip_line(line: FittedLine, axes: Axes) -> tuple[float, float] | None:
    """Return the range of scores in which the line stays between the axes."""
    low, high = axes.low, axes.high
    if line.slope:
        # The scores at which the line meets the top and the bottom.
        ends = sorted((bound - line.intercept) / line.slope for bound in (axes.least, axes.most))
        # Only the part of the line that is inside of the axes is drawn.
        low, high = max(low, ends[0]), min(high, ends[1])
    return (low, high) if low < high else None


def line_text(line: FittedLine) -> str:
    """Format slope and intercept with intervals: ``m = -6.1 (-8.0 to -4.2), b = ...``."""
    slope = with_interval(line.slope, line.slope_interval, 2)
    intercept = with_interval(line.intercept, line.intercept_interval, 2)
    return f"m = {slope}, b = {intercept}".replace("-", "−")


class NamedCurve(NamedTuple):
    """A curve of a plot."""

    name: str
    """Its name in the legend."""
    points: Sequence[tuple[float, float]]
    """(x, y), as values on the axes."""
    colour: int
    """The place of its colour."""
    dots: bool = False
    """Whether its points are marked."""


@dataclass(frozen=True)
class Plot:
    """Curves between two axes."""

    title: str
    """The heading."""
    note: str
    """The note below the heading."""
    x: str
    """The label of the horizontal axis, which runs from 0 to 1."""
    y: str
    """The label of the vertical axis."""
    lines: Sequence[NamedCurve]
    """The curves."""
    span: tuple[float, float] = (0.0, 1.0)
    """The range of the vertical axis, which is extended to round numbers."""
    diagonal: bool = False
    """Whether to draw the diagonal."""

    @property
    def drawing(self) -> Markup:
        """The plot as SVG, with ticks."""
        marks = ticks(*self.span)
        names = ", ".join(line.name for line in self.lines)
        label = f"{self.title}: {self.y} by {self.x} of {names}"
        axes = Axes(0.0, 1.0, marks[0], marks[-1], CURVES_SIZE, CURVES_ROOM)
        return draw_macro("xy", label=label, axes=axes, plot=self)


class PlaneDot(NamedTuple):
    """A dot in a plane."""

    x: float
    """Its place across."""
    y: float
    """Its place upwards."""
    share: float
    """How full it is drawn, from 0 to 1."""
    title: str
    """What a reader sees who points at it."""


def dots_svg(
    dots: Sequence[PlaneDot], spans: tuple[tuple[float, float], tuple[float, float]], label: str
) -> Markup:
    """Draw dots in a plane without numbers on its axes; ``spans`` are the ends of both axes."""
    # A span of one value gets a width, so that its dots lie in the middle.
    (low, high), (least, most) = (
        (start, end) if end > start else (start - 1.0, end + 1.0) for start, end in spans
    )
    axes = Axes(low, high, least, most, PLANE_SIZE, PLANE_ROOM)
    return draw_macro("dots", label=label, axes=axes, dots=dots)


class RescueCount(NamedTuple):
    """How often one score is right where another one is wrong."""

    first: str
    """The score that may be right."""
    second: str
    """The score that is wrong."""
    right: int
    """Answers on which the second is wrong and the first is right."""
    wrong: int
    """Answers on which the second is wrong."""


def heat_svg(parting: Sequence[RescueCount]) -> Markup:
    """Draw a matrix: of the answers on which the score above is wrong, the share on which the score
    on the left is right.
    """
    names = list(
        dict.fromkeys([pair.first for pair in parting] + [pair.second for pair in parting])
    )
    size = {"cell": CELL_WIDTH, "left": NAMES_WIDTH, "top": 24.0, "longest": MAX_NAME_CHARACTERS}
    return draw_macro("heat", parting=parting, names=names, **size)


AnswerLevels = tuple[str, int | None, int | None, Sequence[int]]
"""An answer's id, the places of its expected and its judged level, and its votes by level."""
MAX_LEVEL_CHARACTERS = 6
"""Characters of a level's name beside a drawing."""


def level_pairs_svg(levels: Sequence[str], answers: Sequence[AnswerLevels]) -> Markup:
    """Draw the expected level of each answer as a ring, and the judged one as a dot in it.

    Args:
        levels: the names of the levels, from the lowest up.
        answers: from left to right.
    """
    names = [cut(level, MAX_LEVEL_CHARACTERS) for level in levels]
    return draw_macro("expected_levels", levels=names, answers=answers)


def level_votes_svg(levels: Sequence[str], answers: Sequence[AnswerLevels]) -> Markup:
    """Draw the votes on each answer: the area of a dot is the share of votes for the level."""
    names = [cut(level, MAX_LEVEL_CHARACTERS) for level in levels]
    return draw_macro("level_votes", levels=names, answers=answers)
