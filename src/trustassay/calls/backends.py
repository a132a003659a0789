"""The backends of a run, each under its capability, role and name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trustassay.calls.capability import capability
from trustassay.core.capabilities import ChatModel
from trustassay.errors import BackendError, ModelNotGivenError

MODEL_ROLE = "model"
"""The role of the chat model under assessment."""
REMOTE_METHODS = ("avectors", "asubstitutes", "alink", "adecide")
"""Methods that mark an endpoint other than a chat model: embeddings, substitutes, entity links,
decisions."""


class BackendKey(NamedTuple):
    """What a backend of a run is used for."""

    capability: str
    """Name of the capability that the backend serves."""
    role: str = ""
    """Role of a chat model (``model``, ``judge``, ...); empty for most other capabilities."""
    name: str = ""
    """Tells several models of one role apart; empty where there is only one."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends of a run by their key; only those that a metric needs."""

    by_key: Mapping[BackendKey, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, *, chat: Mapping[str, Any] | None = None, **backends_by_name: Any) -> "Backends":
        """Build the collection from keywords.

        Args:
            chat: chat models by role; a role may have one model, or a mapping of several by name.
            backends_by_name: the backend of a capability, or a mapping of several by name; ``None``
                is skipped.
        """
        by_key: dict[BackendKey, Any] = {}
        for word, backends in backends_by_name.items():
            models_by_name = backends if isinstance(backends, Mapping) else {"": backends}
            by_key |= {
                BackendKey(word, "", name): backend
                for name, backend in models_by_name.items()
                if backend is not None
            }
        for role, models in (chat or {}).items():
            models_by_name = models if isinstance(models, Mapping) else {"": models}
            by_key |= {
                BackendKey("chat", role, name): model for name, model in models_by_name.items()
            }
        return cls(by_key)

    def find(self, name: str, role: str = "", which: str = "") -> Any | None:
        """Return the backend of a capability, if any; ``which`` names one of a role's models."""
        return self.by_key.get(build_backend_key(name, role, which))

    def find_model(self, model: str | None) -> str:
        """Return the name of the model under assessment that answers for a sample.

        A single model without a name answers for all samples; models with names answer for their
        own, and a single one also for samples that name no model.

        Args:
            model: the field ``model`` of the sample.

        Raises:
            ModelNotGivenError: the sample's model was not given.
        """
        names = self.names_of_role(MODEL_ROLE)
        if "" in names or not names:
            return ""
        if model in names:
            return str(model)
        if not model and len(names) == 1:
            return names[0]
        raise ModelNotGivenError(model or "")

    def without(self, name: str) -> "Backends":
        """Return a copy without the backends of one capability."""
        return Backends(
            {place: backend for place, backend in self.by_key.items() if place.capability != name}
        )

    def names_of_role(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role, or of all backends of a kind."""
        return tuple(
            place.name
            for place in self.by_key
            if role and role == (place.role or capability(place.capability).backend)
        )

    def names(self) -> dict[str, Any]:
        """Return the backends' names as ``run.json`` has them: by role, else by kind of backend.

        Where a role has several models, they are in a mapping by their names.
        """
        result: dict[str, Any] = {}
        for place, backend in self.by_key.items():
            key = place.role or capability(place.capability).backend
            if place.name:
                result.setdefault(key, {})[place.name] = backend.name
            else:
                result[key] = backend.name
        return result

    def iterate_with_inner(self) -> Iterator[tuple[str, Any]]:
        """Yield each backend with its capability, followed by the backends that it calls itself."""
        for place, backend in self.by_key.items():
            name, backend_in_chain = place.capability, backend
            yield name, backend_in_chain
            # A similarity may call an entailer that calls a chat model, so there can be several
            # steps.
            while through := capability(name).through(backend_in_chain):
                name, backend_in_chain = through.capability, through.backend
                yield name, backend_in_chain

    def endpoints(self) -> Iterator[Any]:
        """Yield the backends that are endpoints, including those that another backend calls."""
        return (backend for _, backend in self.iterate_with_inner() if is_remote(backend))


def build_backend_key(name: str, role: str = "", which: str = "") -> BackendKey:
    """Return the key of the backend that serves a capability."""
    # Likelihoods come from the chat model itself, so they share its key instead of having one.
    return BackendKey(capability(name).served_by or name, role, which)


def check_embeddings(model: Any) -> None:
    """Raise :class:`BackendError` if a chat model cannot perturb the embeddings of a prompt."""
    if not getattr(model, "perturbs_embeddings", False):
        raise BackendError(f"{model.name}: cannot perturb embeddings (expected a hf: model)")


def is_remote(backend: Any) -> bool:
    """Whether a backend is an endpoint, which is called concurrently, one request at a time."""
    return isinstance(backend, ChatModel) or any(hasattr(backend, name) for name in REMOTE_METHODS)
