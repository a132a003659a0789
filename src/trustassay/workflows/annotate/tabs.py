"""Which tab of a rater's browsers may write: one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["LEASE_S", "Tabs"]

LEASE_S = 15.0
"""Seconds after which a tab that gave no sign counts as closed; an open one gives one every 5."""


class Tabs:
    """The tab of each rater that writes. A tab's name is drawn by the page."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._held: dict[str, tuple[str, float]] = {}

    def claim(self, rater: str, tab: str, *, take: bool = False) -> bool:
        """Let a tab write, and return whether it may: no other one does, or it takes over.

        A page without scripts has no name (``""``); it may write while no other tab does.
        """
        held, until = self._held.get(rater, ("", 0.0))
        if held != tab and self._now() < until and not take:
            return False
        if tab:
            self._held[rater] = tab, self._now() + LEASE_S
        return True

    def leave(self, rater: str, tab: str) -> None:
        """Take note that a tab was closed."""
        if self._held.get(rater, ("", 0.0))[0] == tab:
            del self._held[rater]
