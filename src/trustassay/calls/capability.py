"""The description of a capability: an operation that a metric can use.

One :class:`Capability` in :mod:`trustassay.calls.kinds` says everything about it: how it is called,
batched, stored, checked, planned and shown, and which backends serve it.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from trustassay.calls.batching import Codec
from trustassay.calls.endpoints import Endpoints
from trustassay.calls.prices import BudgetLedger, RequestLimiter
from trustassay.calls.store import Calls
from trustassay.errors import BackendError

ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT")
Remote = Callable[[list[Any]], Awaitable[tuple[Sequence[Any], float]]]

STORED_DECIMALS = 6
"""Decimal digits of a reply's numbers that are kept. Padding of a batch only changes later ones."""


class RunServices(Protocol):
    """What the capabilities of a run share for backends that are endpoints."""

    endpoints: Endpoints
    """The endpoints of the run by address."""
    ledger: BudgetLedger
    """The budget of the run."""
    counter: RequestLimiter | None
    """Limits the number of requests; ``None`` if it is not limited."""

    def calls_of(self, backend: Any) -> Calls:
        """Return the files that the calls of a backend are stored in."""
        ...


class Delegation(NamedTuple):
    """How a backend answers by calling another backend, through the engine like any other call."""

    capability: str
    """Capability that the other backend is asked for."""
    backend: Any
    """The other backend."""
    answer: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
    """Computes the reply to an item, given a function that asks the other backend."""


@dataclass(frozen=True, kw_only=True)
class Capability(Generic[ItemT, ReplyT]):
    """One operation that a metric can use."""

    name: str
    """Method of :class:`~trustassay.core.capabilities.Models`, and capability of a
    :class:`~trustassay.core.metric.Need`.
    """
    stored_as: str
    """Name in stored calls and in counts."""
    backend: str
    """Kind of backend that serves it, as in ``run.json``, options and messages."""
    item: Callable[..., ItemT]
    """Builds a request from the method's arguments."""
    compute: Callable[[Any, list[ItemT]], Sequence[ReplyT]]
    """Answers a batch of requests with a backend, and checks what it returns."""
    codec: Codec[ItemT, ReplyT]
    """How requests and replies are identified and stored."""
    stand_in: Callable[[ItemT], ReplyT]
    """Returns the reply that a plan uses."""
    load: Callable[[Any], Any]
    """Loads a backend from the user's choice: a URI or an object."""
    default: str | None = None
    """Choice that is loaded if a metric needs the capability and the user chose no backend."""
    choices: Callable[[Any], Mapping[str, Any]] | None = None
    """Returns, for a capability with several backends, what to load under which name."""
    option: str = ""
    """Option of the command line, for messages."""
    served_by: str = ""
    """Capability whose backends also serve this one, if they are instances of ``able``."""
    able: type | None = None
    """See ``served_by``; ``None``: every backend can."""
    local: Callable[[Any, RunServices], Callable[[list[ItemT]], Sequence[Any]]] | None = None
    """Returns how a backend in this process is called, if not by ``compute``."""
    remote: Callable[[Any, RunServices], Remote | None] = lambda _backend, _shared: None
    """Returns how an endpoint is called; ``None`` for a backend in this process."""
    through: Callable[[Any], Delegation | None] = lambda _backend: None
    """Returns how a backend answers by calling another one; ``None`` if it answers itself.
    Calls to the other one are limited, retried, stored, planned and paid for as usual.
    """
    remote_items: int | None = None
    """Requests per call to an endpoint; ``None``: the backend's own limits apply."""

    @property
    def word(self) -> str:
        """The keyword argument of the backend in Python."""
        return self.backend.replace(" ", "_")

    def check(self, backend: Any) -> None:
        """Raise :class:`BackendError` if a backend cannot serve this capability."""
        if self.able is not None and not isinstance(backend, self.able):
            name = getattr(backend, "name", backend)
            raise BackendError(f"{name} cannot be asked to {self.name}: it has no {self.stored_as}")


def numbers_to_json(values: Sequence[float]) -> str:
    """Return numbers as the JSON in which they are stored, rounded to :data:`DIGITS`."""
    return json.dumps([round(value, STORED_DECIMALS) for value in values])
