"""The result of an experiment: its table, and a page with its drawings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.files import whole
from trustassay.show.charts import bars_svg, box_svg
from trustassay.show.document import Bar, Bars, Chart, Document, Section, Table, Text
from trustassay.show.document import Row as TableRow
from trustassay.show.text import number
from trustassay.statistics.intervals import FEWEST, FEWEST_FOR_MEANS, mean_interval, unit_mean
from trustassay.text.words import amount

Floats = NDArray[np.float64]


class Cell(NamedTuple):
    """A figure: as people read it, and the numbers behind it."""

    text: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A line of the table. ``about`` says in JSON what it is; ``cells`` stand as the columns;
    ``tables`` are those of the paper that have it.
    """

    name: str
    cells: Sequence[Cell]
    about: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of an experiment.

    notes: sentences on what the table holds, and what it lacks. left_out: why samples do not
    count, by id. settings: what was chosen. drawings: of its page, where it has one.
    """

    experiment: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    drawings: Sequence[Chart] = ()

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

    def with_skipped(self, count: int) -> Result:
        """Return the result with the number of faulty records that were skipped."""
        said = f"{count:,} faulty records are skipped."
        return replace(self, notes=[*self.notes, said]) if count else self

    def texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows as people read them."""
        told = any(row.tables for row in self.rows)
        head = ["", *self.columns, *(["paper's tables"] if told else [])]
        body = []
        for row in self.rows:
            own = [", ".join(map(str, row.tables))] if told else []
            body.append([row.name, *(cell.text for cell in row.cells), *own])
        return head, body

    def markdown(self) -> str:
        """Return a page of the table."""
        head, body = self.texts()
        lines = [f"# {_plain(self.title)}", ""]
        lines += [_line(head), _line(["---"] * len(head)), *map(_line, body), ""]
        lines += [f"- {_plain(note)}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``experiment.json``, ``experiment.md``, and the page where there are drawings."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        for name, content in (("experiment.json", text), ("experiment.md", self.markdown())):
            with whole(folder / name) as file:
                file.write(content.encode())
        if self.drawings:
            self._write_page(folder / "experiment.html")

    def _write_page(self, path: Path) -> None:
        head, body = self.texts()
        table = Table(
            "Row", head[1:], [TableRow(name, cells) for name, *cells in body], "In numbers"
        )
        texts = [Text(note) for note in self.notes[1:]]
        Document(
            f"papers experiment {self.experiment}",
            self.title,
            {name: str(value) for name, value in self.settings.items()},
            self.notes[0],
            [],
            [Section("", [*texts, *self.drawings, table])],
        ).write(path)


def _plain(text: str) -> str:
    """Return text in one line in which nothing is markup."""
    escaped = " ".join(text.split())
    for sign in "\\`*_<>[]|#":
        escaped = escaped.replace(sign, f"\\{sign}")
    return escaped


def _line(cells: Sequence[str]) -> str:
    shown = (cell if cell == "---" else _plain(cell) for cell in cells)
    return f"| {' | '.join(shown)} |"


def shares(
    won: Floats, tied: Floats, questions: NDArray[np.int64] | None = None, *, count: bool = False
) -> list[Cell]:
    """Return, for each row, the share of units that it wins, with its interval and its ties.

    Args:
        won, tied: shape (r, n) of r rows and n units, from 0 to 1.
        questions: the number of each unit's question, below 0 where it is the only one of it.
        count: write how many units are won, too.

    Fewer than :data:`~trustassay.statistics.intervals.FEWEST` questions have no interval, nor have
    fewer than :data:`~trustassay.statistics.intervals.FEWEST_FOR_MEANS` some of which are won in
    part.
    """
    n = won.shape[1]
    if not n:
        return [Cell("–", {"value": None, "n": 0})] * len(won)
    cells = []
    for own, ties in zip(won, tied.mean(axis=1), strict=True):
        interval = None
        mean = unit_mean(own, questions)
        if mean.units >= (FEWEST if np.isin(own, (0.0, 1.0)).all() else FEWEST_FOR_MEANS):
            low, high = mean_interval(*mean)
            interval = (100 * low, 100 * high)
        value, tie = 100 * mean.mean, 100 * float(ties)
        values: dict[str, Any] = {"value": value, "interval": interval, "ties": tie, "n": n}
        within = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else ""
        text = f"{value:.1f}" + (f" ({within})" if within else "")
        if count:
            values["count"] = round(float(own.sum()), 6)
            text = f"{values['count']:g} of {n} ({value:.1f} %{', ' if within else ''}{within})"
        if tie:
            text += f", ties {tie:.1f}"
        cells.append(Cell(text, values))
    return cells


def figure(title: str, note: str, rows: Sequence[Bar], axis: tuple[str, str]) -> Chart:
    """Return drawings on one axis: ``note`` says what is drawn, ``axis`` holds the ends' labels."""
    return Chart(title, note, [Bars(rows, axis)])


def boxes(name: str, values: ArrayLike, most: float) -> Bar:
    """Return the least, the quartiles and the largest of values from 0 to ``most``, drawn.

    There is at least one value.
    """
    found = np.quantile(np.asarray(values, dtype=float), (0, 0.25, 0.5, 0.75, 1)).tolist()
    words = [number(one, 2) for one in found]
    label = f"least {words[0]}, quartiles {', '.join(words[1:4])}, largest {words[4]}"
    return Bar(name, f"median {words[2]}", box_svg([one / most for one in found], label))


def bars(name: str, counts: Sequence[int], labels: Sequence[str], beside: str) -> Bar:
    """Return counts as bars; ``labels`` name them, ``beside`` is the number beside the drawing."""
    titles = [f"{label}: {count:,}" for label, count in zip(labels, counts, strict=True)]
    label = f"{amount(sum(counts), 'value')}: {'; '.join(titles)}"
    return Bar(
        name, beside, bars_svg([float(c) for c in counts], max(*counts, 1), label, titles=titles)
    )
