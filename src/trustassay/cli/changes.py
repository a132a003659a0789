"""The answers that changed between two runs, for people."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from trustassay.show.terminal import say

if TYPE_CHECKING:
    from trustassay.workflows.changes import AnswerChanges

__all__ = ["show_worse"]

SHOWN = 10
QUESTION, ID, REASON = 100, 40, 200
"""Characters of each that are printed."""


def show_worse(metric: str, answers: AnswerChanges) -> None:
    """Print how many answers changed, and those that got worse."""
    say(f"{metric}: {answers.in_words()}")
    for change in answers.worse[:SHOWN]:
        say(f"  {_short(change.question, QUESTION)} ({_short(change.ids[1], ID)})")
        reason = _short(change.reasons[1], REASON)
        say(f"    {change.in_words()}{': ' if reason else ''}{reason}")
    if (count := answers.counts["worse"]) > SHOWN:
        say(f"  ... and {count - SHOWN:,} more (--json lists them)")


def _short(text: str, length: int) -> str:
    """Return text on one line, cut between words."""
    return textwrap.shorten(text, length, placeholder=" …")
