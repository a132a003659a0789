"""Tables for people, on standard error: no number is cut, however narrow the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trustassay.cli.streams import folded, is_quiet, one_line, visible

__all__ = ["show_table"]

GAP = 2
LEAST_TEXT = 16
"""Least width of a column of text, which is also that of its longest word; if there is less room,
each row is written as a list."""
NAMELESS = "–"
OF_LOGS = 160
"""Width of wide tables if the output is not a terminal."""


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[str],
    *,
    wide: bool = False,
) -> None:
    """Print a table; if it is too wide for the terminal, each row as a list of its cells.

    Only the columns named in ``texts`` are folded. They and the first column, which names the row,
    are left-aligned. No word is cut. With ``--quiet`` nothing is printed.
    ``wide``: without a terminal the width is :data:`OF_LOGS`.
    """
    if is_quiet():
        return
    from rich.console import Console

    rows = [[visible(one_line(cell)) for cell in row] for row in rows]
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if wide and not console.is_terminal:
        console.width = OF_LOGS
    if _width(headings, rows, texts) > console.width:
        for line in _listed(headings, rows, console.width):
            console.print(line, soft_wrap=True)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, heading in enumerate(headings):
        if heading in texts:
            least = _least([heading, *(row[place] for row in rows)])
            table.add_column(heading, overflow="fold", min_width=least)
        else:
            table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str]) -> int:
    """Return the least width of the table."""
    from rich.cells import cell_len

    total = GAP * len(headings)  # the last column has one, too
    for place, heading in enumerate(headings):
        cells = [*heading.split("\n"), *(row[place] for row in rows)]
        longest = max(map(cell_len, cells))
        total += _least(cells) if heading in texts else longest
    return total


def _least(cells: Sequence[str]) -> int:
    """Return the least width of a column of text: its longest word, or some words' room."""
    from rich.cells import cell_len

    words = [cell_len(word) for cell in cells for word in cell.split()]
    return max([min(max(map(cell_len, cells)), LEAST_TEXT), *words])


def _listed(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return lines: the first cell of each row, below it its other cells, folded at spaces."""
    lines = []
    for name, *cells in rows:
        lines.append(name or NAMELESS)
        for heading, cell in zip(headings[1:], cells, strict=True):
            if cell:
                label = " ".join(heading.split())
                lines += folded(f"  {label}: {' '.join(cell.split())}", width, "    ")
    return lines
