"""Drawings with axes and numbers: ratings by score, curves of a study, which scores differ.

They keep their proportions, so that dots stay round and text stays readable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from trustassay.show.charts import ticks
from trustassay.show.distributions import Group, Groups, RatedBin
from trustassay.show.text import amount, finalized, score_text, with_error, with_interval
from trustassay.statistics.regression import Line as FittedLine

Scale = Callable[[float], float]
LEFT, RIGHT, TOP, BOTTOM = 34.0, 10.0, 22.0, 26.0
"""Room around the ratings by score."""
RATINGS = (300.0, 200.0)
CURVES = (300.0, 260.0)
CURVES_LEFT, CURVES_RIGHT, CURVES_TOP, CURVES_BOTTOM = 38.0, 8.0, 10.0, 36.0
MOST_CURVES = 6
"""Scores that are drawn in one picture: more colours cannot be told apart."""
CELL, NAMES = 64.0, 150.0
LONGEST_NAME = 24


def grid(marks: Sequence[float], y: Scale, left: float, right: float) -> list[Markup]:
    """Draw a line across for each mark of the y axis, and the mark before it."""
    line = Markup(
        '<path class="grid" d="M{:.1f} {:.1f}H{:.1f}"/>'
        '<text x="{:.1f}" y="{:.1f}" dy="0.36em" class="end">{:g}</text>'
    )
    return [line.format(left, y(m), right, left - 5, y(m), round(m, 9)) for m in marks]


def label_at(x: float, y: float, text: object, anchor: str = "middle") -> Markup:
    """Write a text into a drawing."""
    mark = Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>')
    return mark.format(x, y, anchor, finalized(text))


def whole_svg(
    kind: str, size: tuple[float, float], label: str, content: Sequence[Markup]
) -> Markup:
    """Return a drawing of its parts; ``label`` says what it shows to who does not see it."""
    return Markup(
        '<svg class="{}" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>'
    ).format(kind, *size, finalized(label), Markup("").join(content))


class Ratings(NamedTuple):
    """What the plots of ratings share: the axis of scores, and that of ratings."""

    low: float
    high: float
    least: float
    most: float


def ratings_of(groups: Groups) -> Ratings:
    """Choose axes on which the ratings of all shown groups have room."""
    reached = []
    for group in [groups.whole, *groups.shown().values()]:
        for one in groups.rated_bins(group):
            error = one.error or 0.0
            reached += [one.mean - error, one.mean + error]
    marks = ticks(min(reached), max(reached))
    return Ratings(groups.low, groups.value(groups.axis()), marks[0], marks[-1])


def rating_svg(groups: Groups, group: Group, axes: Ratings) -> Markup:
    """Draw mean ratings by score with their standard errors, and the least-squares line."""
    width, height = RATINGS
    bins, line = groups.rated_bins(group), group.line

    def x(score: float) -> float:
        return LEFT + (width - LEFT - RIGHT) * (score - axes.low) / (axes.high - axes.low)

    def y(rating: float) -> float:
        share = (rating - axes.least) / (axes.most - axes.least)
        return height - BOTTOM - (height - TOP - BOTTOM) * share

    marks = [
        rating
        for rating in ticks(axes.least, axes.most)
        if axes.least - 1e-9 <= rating <= axes.most + 1e-9
    ]
    content = grid(marks, y, LEFT, width - RIGHT)
    content += [
        label_at(x(score), height - 8, f"{score:.4g}", "end" if score == axes.high else "middle")
        for score in (axes.low, (axes.low + axes.high) / 2, axes.high)
    ]
    content.append(label_at(LEFT + 4, 9, "rating", "end"))
    content.append(label_at(x(axes.low + 0.75 * (axes.high - axes.low)), height - 8, "score"))
    if groups.stable_below is not None and groups.stable_below < axes.high:
        content.append(
            Markup('<path class="bound" d="M{:.1f} {:.1f}V{:.1f}"/>').format(
                x(groups.stable_below), TOP, height - BOTTOM
            )
        )
    if line is not None:
        content.append(_fit(line, axes, x, y))
    content += [_dot(one, x, y) for one in bins]
    label = "No ratings."
    if bins:
        means = ", ".join(
            f"{score_text(b.low)} to {score_text(b.high)} {with_error(b.mean, b.error, 2)}"
            for b in bins
        )
        label = f"Mean ratings by score: {means}." + (f" {line_text(line)}" if line else "")
    return whole_svg("ratings", RATINGS, label, content)


def _fit(line: FittedLine, axes: Ratings, x: Scale, y: Scale) -> Markup:
    """Draw the line as far as it stays on the axes."""
    low, high = axes.low, axes.high
    if line.slope:
        ends = sorted((bound - line.intercept) / line.slope for bound in (axes.least, axes.most))
        low, high = max(low, ends[0]), min(high, ends[1])
    if low >= high:
        return Markup("")
    return Markup('<path class="fit" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(
        x(low), y(line.at(low)), x(high), y(line.at(high))
    )


def _dot(one: RatedBin, x: Scale, y: Scale) -> Markup:
    middle = x((one.low + one.high) / 2)
    title = (
        f"{score_text(one.low)} to {score_text(one.high)}: "
        f"{with_error(one.mean, one.error, 2)} of {amount(one.n, 'rating')}"
    )
    whisker = ""
    if one.error:
        whisker = Markup('<path class="whisker" d="M{:.1f} {:.1f}V{:.1f}"/>').format(
            middle, y(one.mean - one.error), y(one.mean + one.error)
        )
    kind = "dot" if one.n > 1 else "dot single"
    return Markup(
        '<g><title>{}</title>{}<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3.6"/></g>'
    ).format(title, whisker, kind, middle, y(one.mean))


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
        width, height = CURVES
        marks = ticks(*self.span)
        low, high = marks[0], marks[-1]

        def x(value: float) -> float:
            return CURVES_LEFT + (width - CURVES_LEFT - CURVES_RIGHT) * value

        def y(value: float) -> float:
            share = (value - low) / (high - low)
            return height - CURVES_BOTTOM - (height - CURVES_TOP - CURVES_BOTTOM) * share

        content = grid(marks, y, CURVES_LEFT, width - CURVES_RIGHT)
        content += [
            label_at(x(mark), height - CURVES_BOTTOM + 14, f"{mark:g}")
            for mark in (0, 0.25, 0.5, 0.75, 1)
        ]
        content.append(label_at(x(0.5), height - 5, self.x))
        if self.diagonal:
            bound = Markup('<path class="bound" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>')
            content.append(bound.format(x(0), y(0), x(1), y(1)))
        for line in self.lines:
            path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in line.points)
            dots = [
                Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.6"/>').format(x(a), y(b))
                for a, b in (line.points if line.dots else ())
            ]
            content.append(
                Markup('<g class="s{}"><title>{}</title><path d="M{}"/>{}</g>').format(
                    line.colour, finalized(line.name), path, Markup("").join(dots)
                )
            )
        names = ", ".join(one.name for one in self.lines)
        return whole_svg("xy", CURVES, f"{self.title}: {self.y} by {self.x} of {names}", content)


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
    place = {name: at for at, name in enumerate(names)}
    top = 24.0
    size = NAMES + CELL * len(names), top + CELL / 2 * len(names) + 2
    content = []
    for name, at in place.items():
        short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        content.append(
            Markup('<text x="{:.0f}" y="{:.0f}" class="end" dy="0.36em">{} {}</text>').format(
                NAMES - 8, top + CELL / 2 * (at + 0.5), at + 1, finalized(short)
            )
        )
    content += [label_at(NAMES + CELL * (at + 0.5), 14, at + 1) for at in place.values()]
    for one in parting:
        share = one.right / one.wrong if one.wrong else 0.0
        left, above = NAMES + CELL * place[one.second], top + CELL / 2 * place[one.first]
        title = f"{one.first} right where {one.second} is wrong: {one.right:,} of {one.wrong:,}"
        box = (left + 1, above + 1, CELL - 2, CELL / 2 - 2, 0.06 + 0.5 * share)
        content.append(
            Markup(
                '<g><title>{}</title><rect x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}"'
                ' fill-opacity="{:.2f}"/><text x="{:.0f}" y="{:.0f}" class="middle" dy="0.36em">'
                "{:,}</text></g>"
            ).format(finalized(title), *box, left + CELL / 2, above + CELL / 4, one.right)
        )
    label = "Answers about which the score of the row is right and that of the column wrong"
    return Markup(
        '<svg class="heat" viewBox="0 0 {:g} {:g}" width="{:g}" role="img" aria-label="{}">{}</svg>'
    ).format(*size, size[0], label, Markup("").join(content))
