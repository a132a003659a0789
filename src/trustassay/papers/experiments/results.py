"""The result of an experiment: a table, notes, and a page with drawings."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.core.files import open_atomic
from trustassay.report.charts import bars_svg, box_svg
from trustassay.report.document import Bar, Bars, Chart, PageDocument, Section, Table, Text
from trustassay.report.document import DocumentRow as TableRow
from trustassay.report.terminal import visible
from trustassay.report.text import split_code
from trustassay.statistics import Floats
from trustassay.statistics.intervals import MIN_UNITS, MIN_UNITS_FOR_MEANS, mean_interval, unit_mean
from trustassay.text.numbers import amount, number, verb

JSON_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls that a terminal obeys, marks that reorder text, and halves of characters."""


class Cell(NamedTuple):
    """A figure as people read it, and the numbers behind it in JSON."""

    text: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class ExperimentRow:
    """A row of the table."""

    name: str
    cells: Sequence[Cell]
    """One for each column of the result."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the row is, in JSON."""
    tables: tuple[int, ...] = ()
    """The paper's tables that have the row."""


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment."""

    experiment: str
    """The name of its command."""
    title: str
    columns: Sequence[str]
    rows: Sequence[ExperimentRow]
    notes: Sequence[str] = ()
    """Sentences on what the table holds and what it lacks; the first one leads the page."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Why samples do not count, by id."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The options of the experiment."""
    drawings: Sequence[Chart] = ()
    """The charts of its page; without any there is no page."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "experiment": self.experiment,
            "title": self.title,
            "settings": dict(self.settings),
            "rows": [
                {
                    "name": row.name,
                    **row.about,
                    "tables": list(row.tables),
                    **{
                        column: dict(cell.values)
                        for column, cell in zip(self.columns, row.cells, strict=True)
                    },
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
            "left_out": dict(self.left_out),
        }

    def with_skipped(self, count: int) -> ExperimentResult:
        """Return the result with the number of faulty records that were skipped."""
        note = f"{amount(count, 'faulty record')} skipped."
        return replace(self, notes=[*self.notes, note]) if count else self

    def to_texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows as people read them."""
        # Only experiments of the paper's own tables have the column.
        has_tables = any(row.tables for row in self.rows)
        headings = ["", *self.columns, *(["paper's tables"] if has_tables else [])]
        rows = []
        for row in self.rows:
            tables_cell = [", ".join(map(str, row.tables))] if has_tables else []
            rows.append([row.name, *(cell.text for cell in row.cells), *tables_cell])
        return headings, rows

    def to_markdown(self) -> str:
        """Return the table and the notes in Markdown."""
        lines = [f"# {escape_markdown(self.title)}", "", *format_markdown_table(*self.to_texts())]
        lines += [f"- {escape_markdown(note)}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``experiment.json``, ``experiment.md``, and the page if there are drawings."""
        text = dump_result(self.to_dict())
        # Each file is written in full or not at all.
        for name, content in (("experiment.json", text), ("experiment.md", self.to_markdown())):
            with open_atomic(folder / name, private=False) as file:
                file.write(content.encode())
        if self.drawings:
            self._write_page(folder / "experiment.html")

    def _write_page(self, path: Path) -> None:
        head, body = self.to_texts()
        table = Table(
            "Row", head[1:], [TableRow(name, cells) for name, *cells in body], "In numbers"
        )
        # The first note is the headline of the page.
        texts = [Text(note) for note in self.notes[1:]]
        PageDocument(
            f"papers experiment {self.experiment}",
            self.title,
            {name: str(value) for name, value in self.settings.items()},
            self.notes[0],
            [],
            [Section("", [*texts, *self.drawings, table])],
        ).write(path)


def note_left_out(left_out: Mapping[str, str], noun: str, state: str = "left out") -> list[str]:
    """Return a note on how many samples are left out, with the first reason; none if none is.

    The JSON has the reasons of all.
    """
    if not left_out:
        return []
    n = len(left_out)
    state = f"{amount(n, noun)} {verb(n, 'is', 'are')} {state}"
    return [f"{state}; reason for the first: {next(iter(left_out.values()))}"]


def dump_result(content: Mapping[str, Any]) -> str:
    """Return the JSON of a result, with control characters that JSON allows as escapes, too."""
    # NaN is no JSON: a figure that does not exist must be `None`.
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return JSON_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def escape_markdown(text: str) -> str:
    """Return text in one line, with all signs of Markdown escaped.

    Control characters are spelled out: a terminal that shows the file would obey them.
    """
    return _escape_signs(_write_on_one_line(text))


def escape_sentence(text: str) -> str:
    """Return text like :func:`escape_markdown`, with what stands between backticks as code."""
    pieces = split_code(_write_on_one_line(text))
    # Signs have no meaning in code.
    return "".join(
        f"`{piece}`" if place % 2 else _escape_signs(piece) for place, piece in enumerate(pieces)
    )


def _write_on_one_line(text: str) -> str:
    spaced = "".join(" " if unicodedata.category(c) == "Zs" or c in "\r\n\t" else c for c in text)
    return " ".join(visible(spaced).split())


def _escape_signs(text: str) -> str:
    # The first is the backslash itself, so that no escape is escaped again.
    for sign in "\\`*_<>[]|#":
        text = text.replace(sign, f"\\{sign}")
    return text


def format_markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown, and an empty one after them."""
    head, *body = (f"| {' | '.join(map(escape_markdown, row))} |" for row in (headings, *rows))
    return [head, f"|{' --- |' * len(headings)}", *body, ""]


def build_share_cells(
    won: Floats, tied: Floats, questions: NDArray[np.int64] | None = None, *, count: bool = False
) -> list[Cell]:
    """Return, for each row, the share of units that it wins, with its interval and its ties.

    Args:
        won, tied: shape (r, n) for r rows and n units, from 0 to 1.
        questions: the number of each unit's question; below 0 for the only unit of a question.
        count: also write how many units are won.

    There is no interval for fewer than :data:`~trustassay.statistics.intervals.MIN_UNITS`
    questions, or :data:`~trustassay.statistics.intervals.MIN_UNITS_FOR_MEANS` if some are won in
    part.
    """
    n = won.shape[1]
    if not n:
        return [Cell("–", {"value": None, "n": 0})] * len(won)
    cells = []
    for wins, ties in zip(won, tied.mean(axis=1), strict=True):
        interval = None
        mean = unit_mean(wins, questions)
        # Shares of yes and no need fewer questions for an interval than means do.
        if mean.units >= (MIN_UNITS if np.isin(wins, (0.0, 1.0)).all() else MIN_UNITS_FOR_MEANS):
            low, high = mean_interval(*mean)
            interval = (100 * low, 100 * high)
        value, tie_share = 100 * mean.mean, 100 * float(ties)
        values: dict[str, Any] = {"value": value, "interval": interval, "ties": tie_share, "n": n}
        interval_text = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else ""
        text = f"{value:.1f}" + (f" ({interval_text})" if interval_text else "")
        if count:
            # Sums of thirds and halves: without rounding 7 would print as 6.999999.
            values["count"] = round(float(wins.sum()), 6)
            separator = ", " if interval_text else ""
            text = f"{values['count']:g} of {n} ({value:.1f} %{separator}{interval_text})"
        # Ties are shown, since they count as not won.
        if tie_share:
            text += f", ties {tie_share:.1f}"
        cells.append(Cell(text, values))
    return cells


def build_chart(title: str, note: str, rows: Sequence[Bar], axis: tuple[str, str]) -> Chart:
    """Return a chart of bars on one axis; ``axis`` holds the labels of its ends."""
    return Chart(title, note, [Bars(rows, axis)])


def build_box_bar(name: str, values: ArrayLike, max_value: float) -> Bar:
    """Return a box plot of one or more values from 0 to ``max_value``: extremes and quartiles."""
    quantiles = np.quantile(np.asarray(values, dtype=float), (0, 0.25, 0.5, 0.75, 1)).tolist()
    texts = [number(value, 2) for value in quantiles]
    # Read aloud instead of the drawing.
    label = f"smallest {texts[0]}, quartiles {', '.join(texts[1:4])}, largest {texts[4]}"
    return Bar(
        name, f"median {texts[2]}", box_svg([value / max_value for value in quantiles], label)
    )


def build_count_bar(name: str, counts: Sequence[int], labels: Sequence[str], note: str) -> Bar:
    """Return counts as bars named by ``labels``; ``note`` is shown next to the drawing."""
    titles = [f"{label}: {count:,}" for label, count in zip(labels, counts, strict=True)]
    label = f"{amount(sum(counts), 'value')}: {'; '.join(titles)}"
    return Bar(
        name, note, bars_svg([float(c) for c in counts], max(*counts, 1), label, titles=titles)
    )
