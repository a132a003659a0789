"""Documents of results other than a run's answers: text, tables, drawings and lists.

They are written as a page, and tables also as CSV and Markdown. A terminal shows the same tables
(:func:`~trustassay.report.terminal.show_rows`). A text is a plain string, which is escaped, or
markup of this package, such as the sign of a legend.
"""

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from trustassay.core.evidence import Piece, diff_words
from trustassay.core.files import write_atomic
from trustassay.report.charts import Plot, interval_svg, ticks
from trustassay.report.page import write_template
from trustassay.text.numbers import with_interval

MEAN = Markup('<span class="sign mean"></span> ')
"""The sign of a mean in a drawing."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet would take for a formula."""


class DocumentRow(NamedTuple):
    """A row of a table of figures."""

    name: str
    """The first cell."""
    cells: Sequence[str]
    """The other cells, as text."""
    explanation: str = ""
    """A line that explains the row."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    """Its text."""
    style: str = ""
    """``note``, ``headline``, ``empty`` or nothing."""


@dataclass(frozen=True)
class ListBlock:
    """Sentences in a list with bullets."""

    items: Sequence[str]
    """The sentences."""


@dataclass(frozen=True)
class Table:
    """A table of figures."""

    first: str
    """The heading of the rows' names."""
    columns: Sequence[str]
    """The headings of the other columns."""
    rows: Sequence[DocumentRow]
    """The rows."""
    title: str = ""
    """The heading above the table."""
    note: str = ""
    """A note on the table."""
    texts: Collection[str] = ()
    """The headings of columns that hold sentences, which are wrapped."""


class Bar(NamedTuple):
    """One drawing in a column of drawings."""

    name: str
    """Its label on the left."""
    figure: str
    """The figure beside it."""
    drawing: Markup
    """The drawing as SVG."""
    n: int | None = None
    """The number of answers behind it."""
    style: str = ""
    """``one`` or ``two`` for a colour that other drawings share."""
    after: str = ""
    """A text below it."""


@dataclass(frozen=True)
class Bars:
    """A column of drawings on one axis."""

    bars: Sequence[Bar]
    """The drawings, from the top."""
    axis: Sequence[str] = ()
    """The labels of the axis, from its low to its high end."""
    style: str = ""
    """``thin`` for low drawings, ``pair`` for two high ones."""


@dataclass(frozen=True)
class Legend:
    """The legend of a drawing."""

    names: Sequence[str]
    """Names in the order of their colours."""
    lines: bool = False
    """Whether the colours are those of lines; else of areas."""


@dataclass(frozen=True)
class DrawingBlock:
    """A single drawing above its axis."""

    drawing: Markup
    """The drawing as SVG."""
    frame: str = ""
    """``scroll`` for a wide drawing, ``percent`` for one from 0 to 100 %."""
    axis: Sequence[str] = ()
    """The labels of the axis, from its low to its high end."""


@dataclass(frozen=True)
class Chart:
    """A figure with a title and a note."""

    title: str
    """Its heading."""
    note: str
    """The note below the heading."""
    parts: "Sequence[Block]"
    """Its content, from the top."""


@dataclass(frozen=True)
class Panels:
    """Charts side by side, as the width allows."""

    charts: Sequence[Chart]
    """The charts, from the left."""


class LinkItem(NamedTuple):
    """A line of a list."""

    text: str
    """Its text."""
    link: str = ""
    """The address that it links to, or nothing."""
    figures: str = ""
    """Figures at its end."""


@dataclass(frozen=True)
class FoldedBlock:
    """A list that is closed until a reader opens it."""

    title: str
    """The line that is visible while it is closed."""
    items: Sequence[LinkItem]
    """Its lines."""


class ChangedAnswer(NamedTuple):
    """One answer in two runs."""

    question: str
    """The question."""
    id: str
    """The id of the sample."""
    change: str
    """The change of its judgement, in words."""
    reasons: tuple[str, str]
    """The reason in the earlier and in the later run."""
    responses: tuple[str, str]
    """The response in the earlier and in the later run."""

    @property
    def pieces(self) -> list[Piece] | None:
        """The differences of both responses in pieces; ``None`` if they are too long."""
        return diff_words(*self.responses)


@dataclass(frozen=True)
class ChangedAnswers:
    """Answers that changed in the same way."""

    title: str
    """The change."""
    answers: Sequence[ChangedAnswer]
    """The answers on the page."""
    count: int
    """The number of such answers in the runs."""
    folded: bool = True
    """Whether the list is closed until a reader opens it."""


Block = (
    Text
    | ListBlock
    | Table
    | Bars
    | Legend
    | DrawingBlock
    | Chart
    | Panels
    | FoldedBlock
    | ChangedAnswers
)


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    """The heading; empty for none."""
    parts: Sequence[Block]
    """The content, from the top."""


@dataclass(frozen=True)
class PageDocument:
    """The content of a page."""

    command: str
    """The command that wrote it."""
    title: str
    """The heading."""
    facts: Mapping[str, str]
    """What identifies the data."""
    headline: str
    """The main result, in one sentence."""
    warnings: Sequence[str]
    """Warnings that a reader must see."""
    sections: Sequence[Section]
    """The parts, from the top."""

    def write(self, path: Path) -> None:
        """Write the page completely, or not at all."""
        write_template("document.html.jinja", path, private=False, page=self)


def curves(names: Sequence[str], plots: Sequence[Plot]) -> list[Block]:
    """Return a legend and the plots side by side; an empty list without plots."""
    if not plots:
        return []
    charts = [Chart(plot.title, plot.note, [DrawingBlock(plot.drawing)]) for plot in plots]
    return [Legend(names, lines=True), Panels(charts)]


def interval_bars(
    estimates: Sequence[tuple[str, float, tuple[float, float] | None]],
    figure: Callable[[float], str] | None = None,
    style: str = "",
) -> Bars:
    """Draw estimates and their intervals on a common axis between round numbers.

    Args:
        estimates: (name, value, interval) of each.
        figure: formats the text beside each; by default the estimate with its interval.
        style: of the bars.
    """
    ends = [end for _, value, interval in estimates for end in (value, *(interval or ()))]
    low, high = min(ends), max(ends)
    marks = ticks(low, high)
    # From round number to round number, so that the labels are at the very ends.
    low, high = marks[0], marks[-1]

    def at(value: float) -> float:
        return (value - low) / (high - low)

    bars = []
    # An estimate without an interval is drawn as a line alone.
    for name, value, interval in estimates:
        between = interval and (at(interval[0]), at(interval[1]))
        text = with_interval(value, interval)
        drawing = interval_svg(between, at(value), f"{name}: {text}")
        bars.append(Bar(name, figure(value) if figure else text, drawing))
    return Bars(bars, (f"{low:g}", f"{high:g}"), style)


def defuse_formula(text: str) -> str:
    """Return a text as a cell that no spreadsheet evaluates as a formula."""
    # Spreadsheets skip leading spaces. The quote marks a text, and is hidden by most of them.
    return f"'{text}" if text.lstrip(" \n").startswith(FORMULA_STARTS) else text


def write_table(columns: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> None:
    """Write a table of texts and numbers as ``.csv``, ``.tsv`` or ``.md``.

    Raises:
        ValueError: the name of the file has another ending.
        OSError: it cannot be written; then nothing is.
    """
    suffix = path.suffix.lower()
    # newline="" leaves line ends to the csv module, as its documentation asks.
    if suffix in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",")
        # Only texts: a number may begin with a minus sign.
        cells = (
            [defuse_formula(cell) if isinstance(cell, str) else cell for cell in row]
            for row in rows
        )
        writer.writerows([columns, *cells])
        content = text.getvalue()
    elif suffix == ".md":
        lines = [columns, ["---"] * len(columns), *rows]
        content = "".join(f"| {' | '.join(map(_format_cell, line))} |\n" for line in lines)
    else:
        raise ValueError(f"{path}: expected a name that ends with .csv, .tsv or .md")
    write_atomic(path, content.encode(), private=False)


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        # Four decimals, as in the tables of papers; CSV has all of them.
        return f"{value:.4f}"
    text = "" if value is None else " ".join(str(value).split())
    # Backslashes first, since the others add some.
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
