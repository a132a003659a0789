"""What a metric may ask of a model: five small protocols and the values they exchange.

A backend implements one of them for batches; a metric sees :class:`Models`, which asks for one
item at a time and answers with an awaitable. The engine stands between the two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BackendError",
    "BatchLimits",
    "ChatModel",
    "ChatRequest",
    "Embedder",
    "Entailer",
    "Entailment",
    "Entity",
    "EntityLinker",
    "Message",
    "Models",
    "Passage",
    "Reply",
    "Retriever",
    "Similarity",
]

Vectors = NDArray[np.float32]
Probabilities = NDArray[np.float64]


class BackendError(RuntimeError):
    """A backend cannot be loaded or cannot answer; the message is fit for a user's eyes."""


class Entailment(NamedTuple):
    """Probabilities that a premise entails, leaves open, or contradicts a hypothesis; sum 1."""

    entailment: float
    neutral: float
    contradiction: float


class Message(NamedTuple):
    """One turn of a chat; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    ``repeat`` numbers otherwise equal requests, so that thirty repeats are thirty calls.
    """

    messages: tuple[Message, ...]
    temperature: float = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's answer; token counts are ``None`` where the backend does not tell them."""

    text: str
    finish: str | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved text; ``score`` orders the passages of one query, higher is closer."""

    id: str
    text: str
    title: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Entity:
    """A span ``text[start:end]`` linked to the entry ``id`` of a knowledge base."""

    id: str
    name: str
    start: int
    end: int
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a backend takes at once: items, and tokens after padding to the longest item.

    The engine estimates four characters a token; ``tokens=None`` means that length is no matter.
    """

    items: int = 256
    tokens: int | None = 8192


@runtime_checkable
class ChatModel(Protocol):
    """Writes text."""

    name: str

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request; raises :class:`BackendError`."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), for n texts."""
        ...


@runtime_checkable
class Entailer(Protocol):
    """Judges whether a premise entails a hypothesis.

    ``name`` is recorded in the run and is part of a stored call's key. Two attributes are
    optional: ``limits`` (:class:`BatchLimits`) and ``stored`` (``False`` for a pure function that
    is cheaper to compute again than to look up).
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Calibrated so that a probability of entailment of 0.5 or more reads as "entails".
        """
        ...


@runtime_checkable
class Similarity(Protocol):
    """Says how much a text says the same as a reference."""

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference); higher is closer, 1 is the same."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds passages."""

    name: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return the k best passages of each query, best first."""
        ...


@runtime_checkable
class EntityLinker(Protocol):
    """Finds the entities a text speaks of."""

    name: str

    def link(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text in reading order."""
        ...


class Models(Protocol):
    """What a metric holds while it assesses: single requests, answered when they are awaited.

    Equal requests are asked once, single requests are gathered into batches; a metric need not
    know. A backend's failure arrives as :class:`BackendError`.
    """

    def entail(self, premise: str, hypothesis: str) -> Awaitable[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``."""
        ...

    def embed(self, text: str) -> Awaitable[Vectors]:
        """Ask for the vector of a text, shape (d,)."""
        ...

    def compare(self, text: str, reference: str) -> Awaitable[float]:
        """Ask how much ``text`` says the same as ``reference``."""
        ...
