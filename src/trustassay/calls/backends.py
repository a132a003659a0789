"""The backends of a run, by capability, role and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.calls.kinds import capability
from trustassay.calls.kinds.compare import vectors_behind
from trustassay.capabilities import ChatModel

__all__ = ["Backends", "Place", "any_shared", "is_remote", "is_shared", "paid_names"]

MODEL = "model"
"""The role of the chat model under assessment."""


class Place(NamedTuple):
    """What a backend is for.

    role: of a chat model; empty for other capabilities. name: of one of several models in a role.
    """

    capability: str
    role: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends of a run by their place; only those that metrics need."""

    held: Mapping[Place, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *, chat: Mapping[str, Any] | None = None, **others: Any) -> Backends:
        """Return the backends of capabilities by keyword, and chat models by their role.

        In place of one model a role can have a mapping of models by name.
        """
        held = {Place(name): backend for name, backend in others.items() if backend is not None}
        for role, models in (chat or {}).items():
            named = models if isinstance(models, Mapping) else {"": models}
            held |= {Place("chat", role, name): model for name, model in named.items()}
        return cls(held)

    def find(self, name: str, role: str = "", which: str = "") -> Any | None:
        """Return the backend of a capability, if there is one; ``which`` of a role's models."""
        return self.held.get(place_of(name, role, which))

    def without(self, name: str) -> Backends:
        """Return these without those of a capability."""
        return Backends(
            {place: one for place, one in self.held.items() if place.capability != name}
        )

    def roles(self) -> set[str]:
        """Return the roles that have a chat model."""
        return {place.role for place in self.held if place.role}

    def named(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role."""
        return tuple(place.name for place in self.held if role and place.role == role)

    def names(self) -> dict[str, Any]:
        """Return the backends' names as in ``run.json``: by kind of backend, or by role.

        Several models of a role are listed by their own names.
        """
        found: dict[str, Any] = {}
        for place, backend in self.held.items():
            key = place.role or capability(place.capability).backend
            if place.name:
                found.setdefault(key, {})[place.name] = backend.name
            else:
                found[key] = backend.name
        return found

    def endpoints(self) -> Iterator[Any]:
        """Yield the backends that are endpoints, also the one behind a similarity."""
        for backend in self.held.values():
            for one in (backend, vectors_behind(backend)):
                if one is not None and is_remote(one):
                    yield one


def place_of(name: str, role: str = "", which: str = "") -> Place:
    """Return the place of the backend that serves a capability."""
    return Place(capability(name).served_by or name, role, which)


def is_remote(backend: Any) -> bool:
    """Whether a backend is an endpoint: asked one call at a time, many at once."""
    return hasattr(backend, "avectors") or isinstance(backend, ChatModel)


def is_shared(backend: Any) -> bool:
    """Whether other runs may take a backend's replies: an endpoint's, but not a function's."""
    return is_remote(backend) and getattr(backend, "shared", True)


def any_shared(backends: Backends) -> bool:
    """Whether other runs may take the replies of any backend."""
    return any(map(is_shared, backends.endpoints()))


def paid_names(backends: Backends) -> list[str]:
    """Return the names of those backends whose calls cost something: the endpoints."""
    return list(dict.fromkeys(backend.name for backend in backends.endpoints()))
