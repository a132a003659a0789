"""What several processes that call one endpoint share: its limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trustassay.capabilities import EndpointLimits

__all__ = ["SharedPace", "Sharing"]


class SharedPace(Protocol):
    """When calls may start, as one process is told; see :class:`~trustassay.calls.pacing.Pace`.

    ``wake`` is called when the answer of :meth:`wait_s` has changed.
    """

    wake: Callable[[], None]

    def wait_s(self, refused: int, now: float) -> float:
        """Return the seconds until a call may start; infinite until ``wake`` is called."""
        ...

    def take(self, waiting: int, now: float) -> int:
        """Say that a call starts while so many others wait; return its number."""
        ...

    def replied(self, turn: int, latency_s: float) -> None:
        """Take a reply into account."""
        ...

    def complained(self, turn: int, latency_s: float) -> None:
        """Take a complaint into account."""
        ...

    def stopped(self) -> None:
        """Say that all was refused for a while, which is over."""
        ...

    def spent(self, tokens: float) -> None:
        """Say that so many tokens were sent and received; negative ones were not, after all."""
        ...


class Sharing(Protocol):
    """How one process shares the limits of endpoints with others."""

    def part(self, limits: EndpointLimits) -> EndpointLimits:
        """Return the limits that this process keeps by itself."""
        ...

    def pace(self, address: str, limits: EndpointLimits) -> SharedPace:
        """Return when calls to an address may start, by limits that all processes keep together."""
        ...
