"""Curves and matrices of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from trustassay.show.charts import box_svg, interval_svg, ticks
from trustassay.show.document import Row
from trustassay.show.page import write_template
from trustassay.show.text import finalized, number

Points = Sequence[tuple[float, float]]
MOST_CURVES = 6
"""Scores that are drawn in one picture: more colours cannot be told apart."""
WIDTH, HEIGHT = 300.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 38.0, 8.0, 10.0, 36.0
CELL, NAMES = 64.0, 150.0
LONGEST_NAME = 24


class Line(NamedTuple):
    """A curve by its name, and the place of its colour; ``dots`` marks the points."""

    name: str
    points: Points
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
        """The picture."""
        return plot_svg(self)


class Spread(NamedTuple):
    """The scores of the answers with one label: how many, and least, quartiles and largest as
    shares of the axis."""

    label: str
    n: int
    five: tuple[float, float, float, float, float]
    median: float

    @property
    def drawing(self) -> Markup:
        """The picture."""
        return box_svg(self.five, f"{self.label}: median {number(self.median, 3)}")


class Example(NamedTuple):
    """An answer; ``link`` may be empty. scores: what is said of it, as text."""

    name: str
    link: str
    scores: str


class Parting(NamedTuple):
    """Answers about which one score is right and another wrong."""

    first: str
    second: str
    found: int
    wrong: int
    examples: Sequence[Example]


@dataclass(frozen=True)
class StudySection:
    """What the page shows of one label.

    ranked: name, value and interval of the headline figure, best first. tables: title, first
    column, columns, rows, and a note. names: the scores that curves show, in the order of their
    colours. spreads: by score. why: figures that are missing, with their reasons.
    """

    title: str
    headline: str
    figure: str
    ranked: Sequence[tuple[str, float, tuple[float, float] | None]]
    tables: Sequence[tuple[str, str, Sequence[str], Sequence[Row], str]]
    names: Sequence[str]
    plots: Sequence[Plot]
    spreads: Mapping[str, Sequence[Spread]] = field(default_factory=dict)
    parting: Sequence[Parting] = ()
    why: Sequence[str] = ()

    @property
    def axis(self) -> tuple[float, float]:
        """Round numbers between which all headline figures lie."""
        ends = [end for _, value, interval in self.ranked for end in (value, *(interval or ()))]
        marks = ticks(min(ends), max(ends))
        return marks[0], marks[-1]

    @property
    def drawn(self) -> list[tuple[str, str, Markup]]:
        """Each score with its figure in words, drawn on the axis that all share."""
        if not self.ranked:
            return []
        low, high = self.axis

        def at(value: float) -> float:
            return (value - low) / (high - low)

        found = []
        for name, value, interval in self.ranked:
            words = number(value, 3)
            ends = (value, value)
            if interval:
                words += f" ({number(interval[0], 3)} to {number(interval[1], 3)})"
                ends = interval
            drawing = interval_svg((at(ends[0]), at(ends[1])), at(value), f"{name}: {words}")
            found.append((name, words, drawing))
        return found

    @property
    def heat(self) -> Markup | None:
        """Which scores are right where others are wrong."""
        return heat_svg(self.parting) if self.parting else None


@dataclass(frozen=True)
class StudyPage:
    """What the page shows; ``costs`` as a table of :class:`StudySection`."""

    title: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    sections: Sequence[StudySection]
    cost_columns: Sequence[str]
    costs: Sequence[Row]


def plot_svg(plot: Plot) -> Markup:
    """Draw curves between axes with ticks; y grows upwards from the first of ``span``."""
    marks = ticks(*plot.span)
    low, high = marks[0], marks[-1]

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    content = [
        Markup(
            '<path class="grid" d="M{:.1f} {:.1f}H{:.1f}"/>'
            '<text x="{:.1f}" y="{:.1f}" dy="0.36em" class="end">{:g}</text>'
        ).format(LEFT, y(mark), WIDTH - RIGHT, LEFT - 5, y(mark), round(mark, 9))
        for mark in marks
    ]
    content += [
        Markup('<text x="{:.1f}" y="{:.1f}" class="middle">{:g}</text>').format(
            x(mark), HEIGHT - BOTTOM + 14, mark
        )
        for mark in (0, 0.25, 0.5, 0.75, 1)
    ]
    content.append(
        Markup('<text x="{:.1f}" y="{:.1f}" class="middle">{}</text>').format(
            x(0.5), HEIGHT - 5, plot.x
        )
    )
    if plot.diagonal:
        content.append(
            Markup('<path class="bound" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(
                x(0), y(0), x(1), y(1)
            )
        )
    for line in plot.lines:
        path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in line.points)
        title = Markup("<title>{}</title>").format(finalized(line.name))
        content.append(Markup('<g class="s{}">{}<path d="M{}"/>').format(line.colour, title, path))
        if line.dots:
            content += [
                Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2.6"/>').format(x(a), y(b))
                for a, b in line.points
            ]
        content.append(Markup("</g>"))
    label = f"{plot.title}: {plot.y} by {plot.x} of {', '.join(one.name for one in plot.lines)}"
    return Markup(
        '<svg class="xy" viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, finalized(label), Markup("").join(content))


def heat_svg(parting: Sequence[Parting]) -> Markup:
    """Draw a matrix: of the answers about which the score above is wrong, the share about which
    that on the left is right."""
    names = list(dict.fromkeys(one.first for one in parting))
    names += [one.second for one in parting if one.second not in names]
    names = list(dict.fromkeys(names))
    place = {name: at for at, name in enumerate(names)}
    width = NAMES + CELL * len(names)
    top = 24.0
    content = [
        Markup('<text x="{:.0f}" y="{:.0f}" class="end" dy="0.36em">{} {}</text>').format(
            NAMES - 8, top + CELL / 2 * (at + 0.5), at + 1, finalized(_cut(name))
        )
        for name, at in place.items()
    ]
    content += [
        Markup('<text x="{:.0f}" y="14" class="middle">{}</text>').format(
            NAMES + CELL * (at + 0.5), at + 1
        )
        for at in place.values()
    ]
    for one in parting:
        share = one.found / one.wrong if one.wrong else 0.0
        left, above = NAMES + CELL * place[one.second], top + CELL / 2 * place[one.first]
        words = f"{one.first} right where {one.second} is wrong: {one.found:,} of {one.wrong:,}"
        content.append(
            Markup(
                '<g><title>{}</title><rect x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}"'
                ' fill-opacity="{:.2f}"/><text x="{:.0f}" y="{:.0f}" class="middle" dy="0.36em">'
                "{}</text></g>"
            ).format(
                finalized(words),
                left + 1,
                above + 1,
                CELL - 2,
                CELL / 2 - 2,
                0.06 + 0.5 * share,
                left + CELL / 2,
                above + CELL / 4,
                f"{one.found:,}",
            )
        )
    return Markup(
        '<svg class="heat" viewBox="0 0 {:g} {:g}" width="{:g}" role="img" aria-label="{}">{}</svg>'
    ).format(
        width,
        top + CELL / 2 * len(names) + 2,
        width,
        "Answers about which the score of the row is right and that of the column wrong",
        Markup("").join(content),
    )


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def write_study_page(page: StudyPage, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_template("study.html.jinja", path, page=page)


def write_calibration_page(page: StudyPage, path: Path) -> None:
    """Write the page of a calibration, which has the same parts."""
    write_template("calibration.html.jinja", path, page=page)
