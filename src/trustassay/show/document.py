"""Results other than a run's answers: text, tables, drawings, lists; written as a page, and tables
also as CSV and Markdown. A terminal shows the same tables
(:func:`~trustassay.show.terminal.show_rows`).

A text is a plain string, which may be foreign, or markup of this package, as the sign of a legend.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from trustassay.files import write_whole
from trustassay.show.charts import Plot, interval_svg, ticks
from trustassay.show.page import write_template
from trustassay.show.text import with_interval
from trustassay.views import Piece, word_differences

MEAN = Markup('<span class="sign mean"></span> ')
"""The sign of a mean in a drawing."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


class Row(NamedTuple):
    """A line of a table of figures; every cell is text already."""

    name: str
    cells: Sequence[str]
    explanation: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; ``style`` is ``note``, ``headline``, ``empty`` or none."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of figures under ``columns``; ``first`` heads their names."""

    first: str
    columns: Sequence[str]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""


class Bar(NamedTuple):
    """One drawing in a column of drawings: whose it is, its figure, and how many are behind it.

    ``style`` is ``one`` or ``two`` for colours that other drawings share; ``after`` stands below.
    """

    name: str
    figure: str
    drawing: Markup
    n: int | None = None
    style: str = ""
    after: str = ""


@dataclass(frozen=True)
class Bars:
    """Drawings below each other on one axis with labels from its low to its high end.

    ``style`` is ``thin`` for low ones, ``pair`` for two high ones.
    """

    bars: Sequence[Bar]
    axis: Sequence[str] = ()
    style: str = ""


@dataclass(frozen=True)
class Legend:
    """Names in the order of their colours, of lines or of areas."""

    names: Sequence[str]
    lines: bool = False


@dataclass(frozen=True)
class Drawing:
    """A drawing by itself, above an axis.

    ``frame``: ``scroll`` for a wide one, ``percent`` for one from 0 to 100 %.
    """

    drawing: Markup
    frame: str = ""
    axis: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """A figure with a title, a note, and what is drawn."""

    title: str
    note: str
    parts: "Sequence[Block]"


@dataclass(frozen=True)
class Panels:
    """Charts side by side, as the width allows; each with its title and note."""

    charts: Sequence[Chart]


class Item(NamedTuple):
    """A line of a list; ``link`` may be empty, ``figures`` stand behind it."""

    text: str
    link: str = ""
    figures: str = ""


@dataclass(frozen=True)
class Folded:
    """A list that a reader opens."""

    title: str
    items: Sequence[Item]


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


@dataclass(frozen=True)
class ChangedAnswers:
    """Answers that changed in one way, of which ``count`` are in the runs; a reader opens folded
    ones."""

    title: str
    answers: Sequence[ChangedAnswer]
    count: int
    folded: bool = True


Block = Text | Table | Bars | Legend | Drawing | Chart | Panels | Folded | ChangedAnswers


@dataclass(frozen=True)
class Section:
    """A part of a page; without a title it has no heading."""

    title: str
    parts: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """What a page shows, from the top; ``command`` is the one that made it."""

    command: str
    title: str
    facts: Mapping[str, str]
    headline: str
    warnings: Sequence[str]
    sections: Sequence[Section]

    def write(self, path: Path) -> None:
        """Write the page, whole or not at all."""
        write_template("document.html.jinja", path, page=self)


def curves(names: Sequence[str], plots: Sequence[Plot]) -> list[Block]:
    """Return a legend and the plots beside each other; nothing where there is no plot."""
    if not plots:
        return []
    charts = [Chart(plot.title, plot.note, [Drawing(plot.drawing)]) for plot in plots]
    return [Legend(names, lines=True), Panels(charts)]


def interval_bars(
    estimates: Sequence[tuple[str, float, tuple[float, float] | None]],
    figure: Callable[[float], str] | None = None,
    style: str = "",
) -> Bars:
    """Draw estimates and their intervals on the axis that all share, between round numbers.

    ``figure`` writes what stands beside each, if that is not the estimate with its interval.
    """
    ends = [end for _, value, interval in estimates for end in (value, *(interval or ()))]
    low, high = min(ends), max(ends)
    marks = ticks(low, high)
    low, high = marks[0], marks[-1]

    def at(value: float) -> float:
        return (value - low) / (high - low)

    bars = []
    for name, value, interval in estimates:
        between = interval and (at(interval[0]), at(interval[1]))
        text = with_interval(value, interval)
        drawing = interval_svg(between, at(value), f"{name}: {text}")
        bars.append(Bar(name, figure(value) if figure else text, drawing))
    return Bars(bars, (f"{low:g}", f"{high:g}"), style)


def defused(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip(" \n").startswith(FORMULAS) else text


def write_table(columns: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
    """Write a table of texts and numbers as ``.csv``, ``.tsv`` or ``.md``, whole or not at all.

    Raises:
        ValueError: the name of the file ends otherwise.
        OSError: it cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",")
        cells = ([defused(one) if isinstance(one, str) else one for one in row] for row in rows)
        writer.writerows([columns, *cells])
        content = text.getvalue()
    elif suffix == ".md":
        lines = [columns, ["---"] * len(columns), *rows]
        content = "".join(f"| {' | '.join(map(_markdown, line))} |\n" for line in lines)
    else:
        raise ValueError(f"{path}: expected a name that ends with .csv, .tsv or .md")
    write_whole(path, content.encode())


def _markdown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    text = "" if value is None else " ".join(str(value).split())
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
