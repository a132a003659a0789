"""How a plan is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trustassay.cli.common import say

if TYPE_CHECKING:
    from trustassay.runs.plan import Plan, Planned

COLUMNS = ("metric", "asks", "calls", "cached", "prompt tokens", "reply tokens", "USD", "time")


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print what a run would ask, and what that is based on."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("metric", "asks") else "right")
    for part in plan.parts:
        table.add_row(*_cells(part))
    console = Console(stderr=True, highlight=False, markup=False)
    console = console if console.is_terminal else Console(stderr=True, width=160, markup=False)
    wide = console.options.update(max_width=1000)
    if console.measure(table, options=wide).maximum <= console.width:
        console.print(table)
        for part in plan.parts:
            say(f"{part.metric}, {part.capability} by {part.backend}: {part.basis}")
    else:
        for part in plan.parts:
            _show_lines(part)
    price = "" if plan.usd_range is None else f", {span(plan.usd_range, money)} USD"
    mark = " (a guess)" if plan.guess else ""
    say(f"{plan.samples:,} samples{price}, {times(plan.seconds_range)}{mark}; nothing was asked")
    for metric, count in plan.unsure.items():
        say(f"{metric}: {count:,} samples may ask for more; that depends on the replies")
    if as_json:
        print(json.dumps(plan.to_dict(), indent=2, ensure_ascii=False))


def _cells(part: Planned) -> Iterator[str]:
    yield from (part.metric, part.capability, f"{part.calls:,}", f"{part.cached:,}")
    if part.capability == "chat":
        yield span(part.prompt_tokens_range, whole)
        yield span(part.reply_tokens_range, whole)
        yield "unknown" if part.usd_range is None else span(part.usd_range, money)
    else:
        yield from ("", "", "")
    yield times(part.seconds_range)


def _show_lines(part: Planned) -> None:
    """Print a part one figure a line, where the table has no room."""
    say(f"{part.metric}, {part.capability} by {part.backend}")
    for name, cell in zip(COLUMNS[2:], list(_cells(part))[2:], strict=True):
        if cell:
            say(f"  {name}: {cell}")
    say(f"  {part.basis}")


def span(values: tuple[float, float], shown: Callable[[float], str]) -> str:
    """Return ``low to high``, or one value where both look the same."""
    low, high = map(shown, values)
    return low if low == high else f"{low} to {high}"


def times(values: tuple[float, float]) -> str:
    """Return a range of seconds."""
    from trustassay.progress import duration

    return span(values, duration)


def whole(value: float) -> str:
    """Return a count."""
    return f"{value:,.0f}"


def money(value: float) -> str:
    """Return an amount; one below a cent with the digits that tell it from nothing."""
    return f"{value:,.2f}" if value == 0 or value >= 0.01 else f"{value:.2g}"
