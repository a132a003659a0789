"""Errors with messages for users, and suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal

__all__ = [
    "AssessmentError",
    "BackendError",
    "CallError",
    "CallFault",
    "FaultsError",
    "RunFolderError",
    "UnknownNameError",
    "UnparsedError",
    "did_you_mean",
]

CallFault = Literal[
    "limited",
    "server",
    "connection",
    "timeout",
    "malformed",
    "refused",
    "closed",
    "empty",
    "oversized",
]


class BackendError(RuntimeError):
    """A backend cannot be loaded or cannot answer; the message is written for users."""


class CallError(BackendError):
    """One call to an endpoint failed; ``kind`` says how, and the engine decides what to do.

    ``limited`` (429, with the seconds that the endpoint asks to wait), ``server`` (5xx),
    ``connection``, ``timeout`` and ``malformed`` (no reply could be read) may pass; ``refused``
    (the endpoint will never answer this request), ``oversized`` (the reply is larger than allowed)
    and ``closed`` (it will answer no request: key, model or quota) do not. ``empty``: the reply
    has no text.
    """

    def __init__(self, message: str, kind: CallFault, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s


class UnparsedError(BackendError):
    """A model answered, and its reply is none of the answers that were on offer.

    ``kind`` is what such failures are counted under.
    """

    kind = "unparsed"


class FaultsError(BackendError, ValueError):
    """Several things stand in the way of a run; ``faults`` has a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class RunFolderError(ValueError):
    """The folder cannot be used for this run; the message says why and what to do."""


class UnknownNameError(ValueError):
    """A name or an option is unknown; the message suggests the nearest known ones."""


class AssessmentError(RuntimeError):
    """Raised by a metric that cannot score a sample; the run records the message and continues.

    ``kind`` names the cause if it is to be counted: ``empty`` for answers without text.
    """

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


def did_you_mean(what: str, name: str, known: Iterable[str]) -> str:
    """Return "unknown WHAT 'NAME'" with the nearest known names, or all when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return f"unknown {what} {name!r}; {hint}"
