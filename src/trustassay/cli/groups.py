"""The table of a run's groups on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trustassay.show.terminal import one_line, say, show_table

__all__ = ["show_groups"]

MOST = 24


def show_groups(title: str, found: Mapping[str, Any]) -> None:
    """Print the means of each model and domain with their standard errors: 0.063(4).

    ``found`` is a metric's block of ``groups`` in ``summary.json``. A single group is not printed,
    since it would repeat the figures above.
    """
    from trustassay.show.text import with_error

    groups = found["groups"]
    if len(groups) < 2:
        return
    stable = found.get("stable_below")
    columns = {"score": ("score", 3)}
    if stable is not None:
        columns["stable_score"] = (f"score\n< {stable:g}", 3)
    if "rating" in found["all"]:
        columns["rating"] = ("rating", 2)
        if stable is not None:
            columns["stable_rating"] = (f"rating,\nscore < {stable:g}", 2)
    names = [n for n in ("model", "domain") if any(group[n] is not None for group in groups)]
    shown = groups[:MOST]
    rows = []
    for group in [*shown, {**found["all"], names[0]: "all"}]:
        cells = [_safe(group.get(name) or "") for name in names]
        for key, (_, digits) in columns.items():
            part = group.get(key)
            cells.append(with_error(part["mean"], part["error"], digits) if part else "–")
        rows.append([*cells, f"{group['score']['n']:,}"])
    say(f"{title}: means")
    headings = [*names, *(heading for heading, _ in columns.values()), "n"]
    show_table(headings, rows, names)
    if left := len(groups) - len(shown):
        say(f"{left:,} smaller groups are in summary.json")


def _safe(text: str) -> str:
    """Return a name from the data as one line without control characters."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in one_line(text))[:80]
