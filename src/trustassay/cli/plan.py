"""How a plan is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trustassay.cli.streams import print_json, say
from trustassay.cli.tables import show_table

if TYPE_CHECKING:
    from trustassay.runs.estimates import Plan, Planned

COLUMNS = ("metric", "asks", "calls", "cached", "prompt tokens", "reply tokens", "USD", "time")


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print the calls that a run would make, and the basis of the estimate."""
    from trustassay.report.text import amount

    show_table(COLUMNS, [tuple(_cells(part)) for part in plan.parts], {"asks"}, wide=True)
    for part in plan.parts:
        say(f"{part.metric}, {part.capability} by {part.backend}: {part.basis}")
    price = "" if plan.usd_range is None else f", {span(plan.usd_range, money)} USD"
    mark = " (a guess)" if plan.guess else ""
    samples, seconds = amount(plan.samples, "sample"), times(plan.seconds_range)
    say(f"{samples}{price}, {seconds}{mark}; nothing was asked")
    for metric, count in plan.unsure.items():
        say(f"{metric}: {amount(count, 'sample')} may need more calls, depending on the replies")
    if as_json:
        print_json(plan.to_dict())


def _cells(part: Planned) -> Iterator[str]:
    yield from (part.metric, part.capability, f"{part.calls:,}", f"{part.cached:,}")
    if part.capability == "chat":
        yield span(part.prompt_tokens_range, whole)
        yield span(part.reply_tokens_range, whole)
        yield "unknown" if part.usd_range is None else span(part.usd_range, money)
    else:
        yield from ("", "", "")
    yield times(part.seconds_range)


def span(values: tuple[float, float], shown: Callable[[float], str]) -> str:
    """Return ``low to high``, or one value if both look the same."""
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
    """Return an amount of money; one below a cent with two significant digits."""
    return f"{value:,.2f}" if value == 0 or value >= 0.01 else f"{value:.2g}"
