"""How the service takes requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trustassay.errors import UsageError

__all__ = ["TOKEN_VARIABLE", "ServiceSettings", "read_tokens"]

TOKEN_VARIABLE = "TRUSTASSAY_SERVE_TOKEN"
SHORTEST_TOKEN = 16
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+", re.ASCII)
"""What an ``Authorization: Bearer`` header can carry (RFC 6750, section 2.1)."""


@dataclass(frozen=True)
class ServiceSettings:
    """How the service takes requests.

    tokens: a request needs one of them; without any, only this machine is served. Never shown.
    capacity: samples accepted and not finished, at once; more are refused for now (429).
    largest_body: bytes of a request's body (413).
    per_minute: requests of one caller, a token or else an address, in a minute (429).
    connections: open at once; more are closed.
    slow_s: seconds in which the head of a request, its body, and each part of a reply must have
        been sent or taken (408).
    """

    tokens: tuple[str, ...] = field(default=(), repr=False)
    capacity: int = 1024
    largest_body: int = 4 * 1024**2
    per_minute: int = 6000
    connections: int = 2048
    slow_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("capacity", "largest_body", "per_minute", "connections"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: expected 1 or more, got {getattr(self, name)}")
        if not self.slow_s > 0:
            raise UsageError(f"slow_s: expected more than 0 seconds, got {self.slow_s:g}")


def read_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of the environment's variable; a comma stands between several.

    Raises:
        ValueError: one is too short, or cannot be sent in a header; the message does not show it.
    """
    found: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    for number, token in enumerate(found, 1):
        which = f"{TOKEN_VARIABLE}, token {number} of {len(found)}"
        if len(token) < SHORTEST_TOKEN:
            raise UsageError(f"{which}: expected {SHORTEST_TOKEN} characters or more")
        if not TOKEN.fullmatch(token):
            raise UsageError(f"{which}: expected letters, digits and ._~+/=- alone")
    return tuple(found)
