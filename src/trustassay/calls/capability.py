"""The description of a capability: an operation that a metric can use.

Everything about a capability is in one file of :mod:`trustassay.calls.kinds`: how it is called,
batched, stored, checked, planned and shown, and which backends serve it.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from trustassay.calls.batching import Codec
from trustassay.calls.endpoints import Endpoints
from trustassay.calls.prices import BudgetLedger, RequestCounter
from trustassay.calls.store import Calls
from trustassay.errors import BackendError

Item = TypeVar("Item")
Reply = TypeVar("Reply")
Remote = Callable[[list[Any]], Awaitable[tuple[Sequence[Any], float]]]

DIGITS = 6
"""Digits of a reply's numbers that are kept; what a batch's padding changes lies beyond them."""


class Shared(Protocol):
    """What all capabilities of a run share when their backends are endpoints."""

    endpoints: Endpoints
    ledger: BudgetLedger
    counter: RequestCounter | None

    def calls_of(self, backend: Any) -> Calls:
        """Return where the calls of a backend are kept."""
        ...


class Through(NamedTuple):
    """How a backend answers by asking another one, as every request to that one is asked.

    capability, backend: who is asked, and for what. answer: makes the reply to an item, with a
    function that asks for one thing of the other capability.
    """

    capability: str
    backend: Any
    answer: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Capability(Generic[Item, Reply]):
    """One operation that a metric can use.

    name: the method of :class:`~trustassay.capabilities.Models`, and the word in a
    :class:`~trustassay.metric.Need`.
    stored_as: the word in stored calls and in what is counted.
    backend: who serves it; the word in ``run.json``, for the option and for messages.
    item: makes a request from the method's arguments.
    compute: asks a backend for a batch, and checks what it returns.
    codec: how requests and replies are identified and stored.
    stand_in: the reply used by a plan.
    load: makes a backend from the user's choice, a URI or an object.
    choices: if several backends serve it: returns what to load under which name, from the user's
    choice.
    default: loaded if a metric needs the capability and no backend is given.
    option: the command line's option, for messages.
    served_by: the capability whose backends also serve this one, if they are of the type
    ``able``.
    local: returns how a backend in this process is called, if that is more than ``compute``.
    remote: returns how an endpoint is called, or ``None`` for a backend in this process.
    through: returns how a backend answers by calling another one, or ``None`` if it answers
    itself. Calls to the other one are limited, retried, stored, planned and paid for as usual.
    remote_items: requests per call to an endpoint; ``None``: by the backend's limits.
    """

    name: str
    stored_as: str
    backend: str
    item: Callable[..., Item]
    compute: Callable[[Any, list[Item]], Sequence[Reply]]
    codec: Codec[Item, Reply]
    stand_in: Callable[[Item], Reply]
    load: Callable[[Any], Any]
    default: str | None = None
    choices: Callable[[Any], Mapping[str, Any]] | None = None
    option: str = ""
    served_by: str = ""
    able: type | None = None
    local: Callable[[Any, Shared], Callable[[list[Item]], Sequence[Any]]] | None = None
    remote: Callable[[Any, Shared], Remote | None] = lambda _backend, _shared: None
    through: Callable[[Any], Through | None] = lambda _backend: None
    remote_items: int | None = None

    @property
    def word(self) -> str:
        """The keyword of the backend in Python."""
        return self.backend.replace(" ", "_")

    def check(self, backend: Any) -> None:
        """Raise :class:`BackendError` if a backend cannot serve this capability."""
        if self.able is not None and not isinstance(backend, self.able):
            name = getattr(backend, "name", backend)
            raise BackendError(f"{name} cannot be asked to {self.name}: it has no {self.stored_as}")


def numbers(values: Sequence[float]) -> str:
    """Return numbers as the JSON in which they are stored."""
    return json.dumps([round(value, DIGITS) for value in values])
