"""Tables of a paper, computed again: our figures, and beside them those that the paper prints.

A printed figure stands beside ours only where rows and model are the paper's. Elsewhere the cell
has :data:`NOT_COMPARABLE`, and the table says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trustassay.core.files import write_atomic
from trustassay.errors import UsageError
from trustassay.papers.experiments.results import (
    dump_result,
    escape_markdown,
    escape_sentence,
    format_markdown_table,
)
from trustassay.report.document import (
    Chart,
    DocumentRow,
    ListBlock,
    PageDocument,
    Section,
    Table,
    Text,
)
from trustassay.report.text import mark_code
from trustassay.statistics.intervals import UNIT_ADVICE, Estimate
from trustassay.text.numbers import amount, number, verb, with_interval

RESULT_FILES = ("reproduction.json", "reproduction.md", "reproduction.html")
NOT_COMPARABLE = "not comparable"
NO_FIGURE = "–"
"""Stands for a figure that cannot be computed here."""
MAX_PLACES_LISTED = 4
"""Cells that a note on missing intervals names."""


def refuse_other_work(folder: Path, paper: str) -> None:
    """Raise UsageError if writing the tables of a paper into a folder would destroy other files.

    A ``reproduction.json`` of the same paper is an earlier result of ours, and is replaced with
    the files beside it.
    """
    if folder.is_file():
        raise UsageError(f"{folder} is a file; expected a folder for --out")
    present = [name for name in RESULT_FILES if (folder / name).exists()]
    if not present:
        return
    owner: object = None
    with suppress(OSError, ValueError):
        content = json.loads((folder / RESULT_FILES[0]).read_text(encoding="utf-8"))
        owner = content.get("paper") if isinstance(content, dict) else None
    if owner == paper:
        return
    whose = f"the tables of {str(owner)[:40]}" if owner else f"another {present[0]}"
    raise UsageError(f"{folder} holds {whose}, which would be replaced; choose another --out")


@dataclass(frozen=True)
class ReproducedCell:
    """One figure of a table."""

    text: str
    """Our figure as people read it; :data:`NO_FIGURE` if there is none."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The numbers behind it in JSON: ``value``, ``interval``, ``n``, ``p``, ``reason`` ..."""
    paper: str = ""
    """The figure that the paper prints for the same rows and model; empty if it prints none, or
    if they are not the paper's."""

    @classmethod
    def of_estimate(
        cls,
        value: float | None,
        interval: tuple[float, float] | None = None,
        *,
        digits: int = 3,
        paper: str = "",
        **values: Any,
    ) -> ReproducedCell:
        """Build the cell of an estimate and its 95 % interval; ``None`` gives no figure."""
        text = NO_FIGURE if value is None else with_interval(value, interval, digits)
        return cls(text, {"value": value, "interval": interval, **values}, paper)

    @classmethod
    def of(cls, estimate: Estimate, *, digits: int = 3, **values: Any) -> ReproducedCell:
        """Build the cell of an estimate; without the advice on options that a paper lacks."""
        return cls.of_estimate(
            estimate.value,
            estimate.interval,
            digits=digits,
            n=estimate.n,
            reason=estimate.without.removesuffix(UNIT_ADVICE),
            **values,
        )

    @classmethod
    def of_count(cls, value: float, **values: Any) -> ReproducedCell:
        """Build the cell of a count, or of another number without an interval."""
        return cls(number(value, 0), {"value": value, **values})


@dataclass(frozen=True)
class ReproducedRow:
    """A row of a table."""

    name: str
    cells: Sequence[ReproducedCell]
    """One for each column."""


def group_by_reason(
    columns: Sequence[str], rows: Sequence[ReproducedRow]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return row and column of figures that are missing, or lack an interval.

    The key is ``No value`` or ``No interval``, and the reason.
    """
    places: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        for column, cell in zip(columns, row.cells, strict=True):
            if reason := cell.values.get("reason"):
                what = "No value" if cell.values.get("value") is None else "No interval"
                places.setdefault((what, reason), []).append((row.name, column))
    return places


def list_missing_intervals(columns: Sequence[str], rows: Sequence[ReproducedRow]) -> list[str]:
    """Return a note for each reason why figures, or their intervals, are missing.

    Args:
        columns: the headings of the figures. rows: their cells, whose ``reason`` says why.
    """
    notes = []
    for (what, reason), places in group_by_reason(columns, rows).items():
        listed = "; ".join(f"{name} ({column})" for name, column in places[:MAX_PLACES_LISTED])
        if len(places) > MAX_PLACES_LISTED:
            listed += f" and {len(places) - MAX_PLACES_LISTED} more"
        notes.append(f"{what} for {listed}: {reason}.")
    return notes


@dataclass(frozen=True)
class ReproducedTable:
    """A table of the paper, computed again."""

    number: str
    """The paper's name of it, such as ``Table 1``."""
    title: str
    """What it shows, in a few words."""
    columns: Sequence[str]
    """The headings of the figures."""
    rows: Sequence[ReproducedRow]
    not_comparable: str = ""
    """Why the paper's figures do not stand beside ours; empty if some do."""
    first: str = ""
    """The heading of the rows' names."""
    notes: Sequence[str] = ()
    """Sentences on what the table holds and lacks."""
    texts: Sequence[str] = ()
    """The columns that hold sentences, which are wrapped."""
    charts: Sequence[Chart] = ()
    """The drawings that belong to it."""

    @property
    def has_printed_figures(self) -> bool:
        """Whether a figure of the paper stands beside one of ours."""
        return any(cell.paper for row in self.rows for cell in row.cells)

    @property
    def heading(self) -> str:
        """Its number and title."""
        return f"{self.number}: {self.title}" if self.number else self.title

    def to_texts(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows as people read them.

        A column in which figures of the paper stand beside ours has a second one for them.
        """
        is_printed = [
            any(row.cells[place].paper for row in self.rows) for place in range(len(self.columns))
        ]
        headings = [self.first]
        for column, printed in zip(self.columns, is_printed, strict=True):
            headings += [f"{column}: here", "paper"] if printed else [column]
        rows = []
        for row in self.rows:
            texts = [row.name]
            for cell, printed in zip(row.cells, is_printed, strict=True):
                texts.append(cell.text)
                if printed:
                    # Where we have no figure there is nothing to compare.
                    other = NO_FIGURE if cell.text == NO_FIGURE else NOT_COMPARABLE
                    texts.append(cell.paper or other)
            rows.append(texts)
        return headings, rows

    def list_notes(self) -> list[str]:
        """Return its notes, and first why it cannot be compared."""
        reason = f"{NOT_COMPARABLE.capitalize()} with the paper: {self.not_comparable}"
        return [*([reason] if self.not_comparable else []), *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        rows = []
        for row in self.rows:
            cells = {}
            for column, cell in zip(self.columns, row.cells, strict=True):
                printed = {"paper": cell.paper} if cell.paper else {}
                cells[column] = {**cell.values, **printed}
            rows.append({"name": row.name, "figures": cells})
        return {
            "number": self.number,
            "title": self.title,
            "rows": rows,
            "not_comparable": self.not_comparable,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Reproduction:
    """The tables of one paper, computed again."""

    paper: str
    """The name that the command has for it."""
    source: str
    """Authors, title and year."""
    data: str
    """What the figures are computed from, in one sentence."""
    tables: Sequence[ReproducedTable]
    differences: Sequence[str]
    """What differs from the paper, a sentence each."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """By table or figure of the paper: why it is not computed, and what it would need."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The options of the command."""
    charts: Sequence[Chart] = ()
    """The drawings of its page."""

    def with_skipped(self, count: int) -> Reproduction:
        """Return the result with the number of faulty records that were skipped."""
        if not count:
            return self
        skipped = f"{amount(count, 'faulty record')} {verb(count, 'was', 'were')} skipped."
        return replace(self, data=f"{self.data} {skipped}")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "paper": self.paper,
            "source": self.source,
            "data": self.data,
            "settings": dict(self.settings),
            "tables": [table.to_dict() for table in self.tables],
            "differences": list(self.differences),
            "missing": dict(self.missing),
        }

    def to_markdown(self) -> str:
        """Return the tables, the differences and what is missing in Markdown."""
        lines = [f"# {escape_markdown(self.source)}", "", escape_markdown(self.data), ""]
        for table in self.tables:
            lines += [f"## {escape_markdown(table.heading)}", ""]
            lines += format_markdown_table(*table.to_texts())
            lines += [*(f"- {escape_sentence(note)}" for note in table.list_notes()), ""]
        lines += ["## Differences from the paper", ""]
        lines += [f"- {escape_sentence(difference)}" for difference in self.differences]
        if self.missing:
            lines += ["", "## Not computed", ""]
            lines += [
                f"- {escape_markdown(place)}: {escape_sentence(reason)}"
                for place, reason in self.missing.items()
            ]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``reproduction.json``, ``reproduction.md`` and the page ``reproduction.html``.

        Raises:
            UsageError: the folder has such files that are not an earlier result of this paper.
        """
        refuse_other_work(folder, self.paper)
        folder.mkdir(parents=True, exist_ok=True)
        text = dump_result(self.to_dict())
        data, table, page = (folder / name for name in RESULT_FILES)
        write_atomic(data, text.encode(), private=False)
        write_atomic(table, self.to_markdown().encode(), private=False)
        self._build_page().write(page)

    def _build_page(self) -> PageDocument:
        sections = []
        for table in self.tables:
            headings, rows = table.to_texts()
            body = [DocumentRow(name, cells) for name, *cells in rows]
            notes = [Text(mark_code(note), "note") for note in table.list_notes()]
            sections.append(
                Section(
                    table.heading,
                    [Table(headings[0], headings[1:], body, texts=table.texts), *notes],
                )
            )
        if self.charts:
            sections.append(Section("Figures", self.charts))
        differences = ListBlock([mark_code(line) for line in self.differences])
        sections.append(Section("Differences from the paper", [differences]))
        if self.missing:
            lines = [mark_code(f"{place}: {reason}") for place, reason in self.missing.items()]
            sections.append(Section("Not computed", [ListBlock(lines)]))
        facts = {
            name: ", ".join(value) if isinstance(value, list) else str(value)
            for name, value in self.settings.items()
            if value
        }
        return PageDocument(
            f"papers reproduce {self.paper}", self.source, facts, self.data, [], sections
        )
