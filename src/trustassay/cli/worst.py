"""What opens a run on the terminal: how many answers need a look, and the worst of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trustassay.show.terminal import one_line, say

if TYPE_CHECKING:
    from trustassay.api import Run

__all__ = ["show_worst"]

SHOWN = 3
"""Answers that are listed; the report and ``run.worst`` have the others."""
LONGEST = 240
"""Characters of a question, and of a reason, that are shown."""


def show_worst(run: Run) -> None:
    """Say in one sentence how many answers need a look; list the worst, each with its reason."""
    from trustassay.runs.looks import short

    found = run.looks(SHOWN)
    say(f"{found.sentence()}{':' if found.worst else '.'}")
    for answer in found.worst:
        say(one_line(f"  {short(answer.question.strip(), LONGEST)} ({answer.id})"))
        reason = short(answer.reason, LONGEST)
        say(one_line(f"    {answer.verdict}: {reason}" if reason else f"    {answer.verdict}"))
    if left := found.found - len(found.worst):
        say(f"  ... and {left:,} more")
