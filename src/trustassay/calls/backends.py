"""The backends of a run, by capability, role and name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.calls.kinds import capability
from trustassay.capabilities import ChatModel
from trustassay.errors import BackendError

MODEL = "model"
"""The role of the chat model under assessment."""
REMOTE_METHODS = ("avectors", "asubstitutes", "alink")
"""What endpoints have that are no chat models."""


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
    def of(cls, *, chat: Mapping[str, Any] | None = None, **others: Any) -> "Backends":
        """Return the backends of capabilities by keyword, and chat models by their role.

        In place of one backend there can be a mapping of several by name.
        """
        held: dict[Place, Any] = {}
        for word, backends in others.items():
            named = backends if isinstance(backends, Mapping) else {"": backends}
            held |= {Place(word, "", name): one for name, one in named.items() if one is not None}
        for role, models in (chat or {}).items():
            named = models if isinstance(models, Mapping) else {"": models}
            held |= {Place("chat", role, name): model for name, model in named.items()}
        return cls(held)

    def find(self, name: str, role: str = "", which: str = "") -> Any | None:
        """Return the backend of a capability, if there is one; ``which`` of a role's models."""
        return self.held.get(place_of(name, role, which))

    def without(self, name: str) -> "Backends":
        """Return these without those of a capability."""
        return Backends(
            {place: one for place, one in self.held.items() if place.capability != name}
        )

    def named(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role, or of a capability's backends by its word."""
        return tuple(
            place.name
            for place in self.held
            if role and role == (place.role or capability(place.capability).backend)
        )

    def names(self) -> dict[str, Any]:
        """Return the backends' names as in ``run.json``: by kind of backend, or by role.

        Several models of a role are listed by their own names.
        """
        result: dict[str, Any] = {}
        for place, backend in self.held.items():
            key = place.role or capability(place.capability).backend
            if place.name:
                result.setdefault(key, {})[place.name] = backend.name
            else:
                result[key] = backend.name
        return result

    def asked(self) -> Iterator[tuple[str, Any]]:
        """Yield each backend with its capability, and those that it asks itself."""
        for place, backend in self.held.items():
            name, one = place.capability, backend
            yield name, one
            while through := capability(name).through(one):
                name, one = through.capability, through.backend
                yield name, one

    def endpoints(self) -> Iterator[Any]:
        """Yield the backends that are endpoints, also those that other backends ask."""
        return (backend for _, backend in self.asked() if is_remote(backend))


def place_of(name: str, role: str = "", which: str = "") -> Place:
    """Return the place of the backend that serves a capability."""
    return Place(capability(name).served_by or name, role, which)


def check_embeddings(model: Any) -> None:
    """Raise :class:`BackendError` if a chat model cannot move the embeddings of a prompt."""
    if not getattr(model, "perturbs_embeddings", False):
        raise BackendError(f"{model.name}: cannot perturb embeddings (expected a hf: model)")


def is_remote(backend: Any) -> bool:
    """Whether a backend is an endpoint: asked one call at a time, many at once."""
    return isinstance(backend, ChatModel) or any(hasattr(backend, name) for name in REMOTE_METHODS)
