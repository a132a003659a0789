"""The page on the variance of ratings: what comes from answers, raters and repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from trustassay.report.page import write_template
from trustassay.report.pages import Row
from trustassay.report.plots import interval_svg
from trustassay.report.text import number

__all__ = ["Bar", "VariancePage", "stacked_svg", "write_variance_page"]

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
