"""The pages of results other than a run's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from trustassay.show.charts import Curve, Mark, bars_svg, curves_svg, interval_svg, ticks
from trustassay.show.distributions import Groups
from trustassay.show.page import write_template
from trustassay.show.text import amount, number
from trustassay.statistics.isotropy import Isotropy
from trustassay.views import Piece, word_differences

ANGLE_BINS = 40
PAPERS_CONE = 11.0
"""Degrees within which all means of perturbed texts lay in the paper (footnote 3)."""


class Row(NamedTuple):
    """A line of a table of figures; every cell is text already."""

    name: str
    cells: Sequence[str]
    explanation: str = ""


class ChangedAnswer(NamedTuple):
    """One answer of two runs: how its judgement changed in words, both reasons, both texts."""

    question: str
    id: str
    change: str
    reasons: tuple[str, str]
    responses: tuple[str, str]

    @property
    def pieces(self) -> list[Piece] | None:
        """The later response in pieces, with what it lacks of the earlier one."""
        return word_differences(*self.responses)


class AnswerLists(NamedTuple):
    """The changed answers: in words, some of each kind (worse, better, other), and all counts."""

    headline: str
    shown: Mapping[str, Sequence[ChangedAnswer]]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class ComparisonPage:
    """What the page of two runs shows.

    ``outcomes`` say what became of the answers; ``figures`` are those over pairs of answers,
    ``not_compared`` why others are not among them;
    ``answers`` are the changed ones, ``None`` where nothing could be paired.
    ``groups`` holds the scores of both runs, as two models; ``apart`` is where their distribution
    functions lie furthest apart, and how far.
    """

    title: str
    metric: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Row]
    outcomes: Sequence[Row]
    outcome_columns: Sequence[str]
    figures: Sequence[Row]
    figure_columns: Sequence[str]
    not_compared: Mapping[str, str]
    answers: AnswerLists | None
    groups: Groups
    apart: tuple[float, float]

    @property
    def curves(self) -> Markup:
        """The distribution functions of both runs, and where they lie furthest apart."""
        axis = self.groups.axis()
        curves = []
        for kind, group in zip(("first", "second"), self.groups.cells.values(), strict=True):
            shares = np.cumsum(group.counts)[:axis] / max(group.n, 1)
            points = [(0.0, 0.0)]
            for place, share in enumerate(shares.tolist()):
                points += [(place / axis, share), ((place + 1) / axis, share)]
            curves.append(Curve(kind, points))
        at, far = self.apart
        top = self.groups.value(axis)
        marks = [Mark("bound", (at - self.groups.low) / (top - self.groups.low))]
        label = f"Share of answers up to a score: the runs are {number(far, 3)} apart at {at:.3g}"
        return curves_svg(curves, label, marks if at <= top else ())


@dataclass(frozen=True)
class IsotropyPage:
    """What the page of an embedder shows: an overview if there are several perturbations."""

    title: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Row]
    perturbations: Sequence[PerturbationSection]


@dataclass(frozen=True)
class PerturbationSection:
    """What the page of an embedder shows of one perturbation."""

    name: str
    headline: str
    rows: Sequence[Row]
    found: Isotropy

    @property
    def widest(self) -> float:
        """Where the axis of angles ends, in degrees: a round number beyond the largest."""
        largest = float(self.found.angles.max(initial=0.0))
        return next((m for m in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90) if m >= largest), 180)

    @property
    def histograms(self) -> list[tuple[str, str, Markup]]:
        """The angles of single perturbed texts, and of the mean of each text's."""
        found = []
        for name, angles in (
            ("each perturbed text", self.found.angles),
            ("the mean of a text’s perturbed versions (its cone)", self.found.cones),
        ):
            counts, edges = np.histogram(angles, bins=ANGLE_BINS, range=(0, self.widest))
            titles = [
                f"{a:.3g} to {b:.3g}°: {n:,}"
                for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
            ]
            marks = [Mark("mean", float(angles.mean()) / self.widest)]
            if self.widest > PAPERS_CONE:
                marks.append(Mark("bound", PAPERS_CONE / self.widest))
            label = f"{amount(len(angles), 'angle')}, mean {angles.mean():.3g}°"
            shares = (counts / max(counts.max(), 1)).tolist()
            drawing = bars_svg(shares, 1.0, label, marks, "ridge tall", titles)
            found.append((name, f"mean {angles.mean():.3g}°, largest {angles.max():.3g}°", drawing))
        return found

    @property
    def curve(self) -> Markup | None:
        """The cumulative shares of the eigenvalues next to those of an isotropic cloud."""
        if self.found.shape is None or self.found.expected is None:
            return None
        curves = []
        for kind, shape in (("second", self.found.expected), ("first", self.found.shape)):
            shares = np.cumsum(shape.spectrum.shares)
            reached = np.concatenate([[0.0], shares])
            places = np.linspace(0, 1, len(reached))
            curves.append(Curve(kind, list(zip(places.tolist(), reached.tolist(), strict=True))))
        half = int(np.searchsorted(np.cumsum(self.found.shape.spectrum.shares), 0.5)) + 1
        label = (
            f"{amount(half, 'direction')} of {self.eigenvalues:,} contain half of the displacement"
        )
        return curves_svg(curves, label)

    @property
    def eigenvalues(self) -> int:
        """The number of eigenvalues."""
        return len(self.found.shape.spectrum.shares) if self.found.shape else 0


class RankedRow(NamedTuple):
    """A model with its mean score and the interval of that."""

    name: str
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class RankingPage:
    """What the page of ranked models shows; ``models`` and ``rows`` stand best first."""

    title: str
    metric: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    notes: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Row]
    models: Sequence[RankedRow]

    @property
    def axis(self) -> tuple[float, float]:
        """Round numbers between which all intervals lie."""
        ends = [one.interval or (one.mean, one.mean) for one in self.models]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        marks = ticks(low, high if high > low else low + 1.0)
        return marks[0], marks[-1]

    @property
    def drawn(self) -> list[tuple[RankedRow, Markup]]:
        """Each model with its interval and mean drawn on the axis that all share."""
        low, high = self.axis

        def at(value: float) -> float:
            return (value - low) / (high - low)

        return [
            (
                one,
                interval_svg(
                    one.interval and (at(one.interval[0]), at(one.interval[1])),
                    at(one.mean),
                    f"mean {number(one.mean, 3)}"
                    + (
                        ", 95 % interval {} to {}".format(*(number(end, 3) for end in one.interval))
                        if one.interval
                        else ""
                    ),
                ),
            )
            for one in self.models
        ]


def write_ranking_page(page: RankingPage, path: Path) -> None:
    """Write the page of ranked models, whole or not at all."""
    write_template("rank.html.jinja", path, page=page)


def write_comparison_page(page: ComparisonPage, path: Path) -> None:
    """Write the page of two compared runs, whole or not at all."""
    write_template("compare.html.jinja", path, page=page)


def write_isotropy_page(page: IsotropyPage, path: Path) -> None:
    """Write the page of an isotropy, whole or not at all."""
    write_template("isotropy.html.jinja", path, page=page)


WIDTH, HEIGHT = 400.0, 100.0


class Part(NamedTuple):
    """One component's share of the variance, in %, and its interval, where they are known."""

    name: str
    share: float | None
    interval: tuple[float, float] | None


class Bar(NamedTuple):
    """The components of one group of raters."""

    group: str
    parts: Sequence[tuple[str, float | None, tuple[float, float] | None]]


@dataclass(frozen=True)
class VariancePage:
    """What the page shows; every cell of ``rows`` is text already, the row's name first."""

    title: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    bars: Sequence[Bar]

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [Row(name, cells) for name, *cells in self.cells]

    @property
    def names(self) -> list[str]:
        """The components of all groups; each keeps its colour."""
        return list(dict.fromkeys(name for bar in self.bars for name, *_ in bar.parts))

    @property
    def drawn(self) -> list[tuple[str, Markup]]:
        """Each group that can be drawn, as a stacked bar."""
        return [
            (bar.group, stacked_svg([Part(*part) for part in bar.parts], self.names, bar.group))
            for bar in self.bars
            if any(share is not None for _, share, _ in bar.parts)
        ]

    @property
    def intervals(self) -> list[tuple[str, list[tuple[str, str, Markup]]]]:
        """For each component the groups with an interval: name, figures, drawing."""
        found: dict[str, list[tuple[str, str, Markup]]] = {}
        for bar in self.bars:
            for name, share, interval in bar.parts:
                if share is not None and interval is not None:
                    low, high = interval
                    words = f"{number(share, 1)} % ({number(low, 1)} to {number(high, 1)})"
                    label = f"{bar.group}, {name}: {words}"
                    drawing = interval_svg((low / 100, high / 100), share / 100, label)
                    found.setdefault(name, []).append((bar.group, words, drawing))
        return list(found.items())


def stacked_svg(parts: Sequence[Part], names: Sequence[str], label: str) -> Markup:
    """Draw shares, in %, as pieces of one bar; a component's colour is its place in ``names``."""
    at, content = 0.0, []
    for name, share, _ in parts:
        width = WIDTH * (share or 0.0) / 100
        content.append(
            Markup(
                '<rect class="v{}" x="{:.2f}" y="0" width="{:.2f}" height="{:g}">'
                "<title>{}</title></rect>"
            ).format(names.index(name), at, width, HEIGHT, f"{name}: {number(share or 0.0, 1)} %")
        )
        at += width
    said = ", ".join(f"{name} {number(share or 0.0, 1)} %" for name, share, _ in parts)
    return Markup(
        '<svg class="stack" viewBox="0 0 {:g} {:g}" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, f"{label}: {said}", Markup("").join(content))


def write_variance_page(page: VariancePage, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_template("variance.html.jinja", path, page=page)
