"""``trustassay compare --judge``: the win rate of answers over others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trustassay.cli import common
from trustassay.cli.options import Records, Spending
from trustassay.cli.plan import show_plan
from trustassay.cli.streams import one_line, print_json, say

if TYPE_CHECKING:
    from trustassay.workflows.winrate import WinRate

__all__ = ["Judged", "headline", "show_win_rate"]


@dataclass(frozen=True)
class Judged:
    """What is compared by whom; ``page`` is where the page goes, ``run`` the folder of the run."""

    first: Path
    second: Path
    judge: str
    prompt: Path | None
    run: Path | None
    page: Path | None
    seed: int


def show_win_rate(
    asked: Judged, records: Records, spending: Spending, *, dry_run: bool, as_json: bool
) -> None:
    """Compare and print; raises as :func:`~trustassay.workflows.winrate.win_rate`."""
    from trustassay.api import Run
    from trustassay.metrics.pairwise import Pairwise
    from trustassay.runs.folder import RunFolder
    from trustassay.workflows import winrate

    read = records.read()
    metric = Pairwise(None if asked.prompt is None else str(asked.prompt))
    options = winrate.WinRateOptions(
        metric, asked.seed, progress=True, calls=spending.read(), **read
    )
    out = asked.run or _default_folder(asked, metric.settings(), read)
    inputs = asked.first, asked.second, asked.judge
    if dry_run:
        show_plan(winrate.plan_win_rate(*inputs, out, options), as_json=as_json)
        return
    found = winrate.win_rate(*inputs, out, options)
    run = Run(RunFolder(found.path), found.outcome)
    failed = common.tell(run, as_json=False, worst=False)
    for line in _left_out(found, asked):
        say(one_line(line))
    say(one_line(headline(found, asked)))
    if asked.page:
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        say(f"page: {run.report(asked.page)}")
    if as_json:
        print_json(found.to_dict())
    if failed:
        raise typer.Exit(1)


def _default_folder(asked: Judged, settings: Any, read: Any) -> Path:
    from trustassay.runs.folder import default_folder

    other = default_folder(asked.second).name  # which changes with the file
    return default_folder(
        asked.first,
        second=other,
        judge=asked.judge,
        metrics=settings,
        seed=asked.seed,
        limit=read["limit"],
        fields=read["fields"],
    )


def _left_out(found: WinRate, asked: Judged) -> list[str]:
    pairs = found.pairs
    counts = (
        (pairs.only_first, f"questions of {asked.first} alone"),
        (pairs.only_second, f"questions of {asked.second} alone"),
        (pairs.blank, "questions to which one of them has no answer"),
    )
    return [f"left out: {count:,} {words}" for count, words in counts if count]


def headline(found: WinRate, asked: Judged) -> str:
    """Return a sentence on who is preferred, and how sure that is."""
    summary = found.summary
    rate, values = summary.values["win_rate"], summary.values
    dropped = {name: values[name] for name in ("unsure", "inconsistent", "unreadable")}
    why = ", ".join(f"{count} {name}" for name, count in dropped.items() if count)
    rest = f"{sum(int(count or 0) for count in dropped.values())} dropped"
    rest += (f" ({why})" if why else "") + (f", {summary.failed} failed" if summary.failed else "")
    if rate is None:
        return f"Nothing was won or lost in both orders: {rest}."
    counts = f"{values['wins']} won, {values['losses']} lost, {rest}"
    words = f"{asked.first} wins {rate:.1f} % against {asked.second}: {counts}"
    if reason := summary.without_interval.get("win_rate"):
        return f"{words}; whether that is a real difference is unknown ({reason})."
    low, high = summary.intervals["win_rate"]
    clear = "" if low > 50 or high < 50 else ", which is no clear difference"
    return f"{words}{clear} (95 % interval {low:.1f} to {high:.1f})."
