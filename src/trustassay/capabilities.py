"""What a metric may ask of a model: small protocols and the values they exchange.

A backend implements one of them for batches; a metric sees :class:`Models`, which asks for one
item at a time and answers with an awaitable. The engine stands between the two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BatchLimits",
    "ChatModel",
    "ChatRequest",
    "Choice",
    "Embedder",
    "EndpointLimits",
    "Entailer",
    "Entailment",
    "Entity",
    "EntityLinker",
    "Likelihood",
    "LikelihoodModel",
    "LocalChatModel",
    "Message",
    "Models",
    "Passage",
    "QuestionSimilarity",
    "Reply",
    "Retriever",
    "Similarity",
    "TokenEmbedder",
    "TokenLogprob",
    "TokenVectors",
    "on_sending",
]

Vectors = NDArray[np.float32]
Probabilities = NDArray[np.float64]


on_sending: ContextVar[Callable[[], None] | None] = ContextVar("on_sending", default=None)
"""What is called before each request of the present task leaves; it may call it off by raising."""


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

    temperature: 0 for the likeliest reply; ``None`` leaves it to the model.
    n: how many replies to this one request.
    logprobs: how many alternatives to tell for each token of the reply; 0 tells the token alone.
    repeat: numbers otherwise equal requests, so that thirty repeats are thirty calls.
    prompt: name and version of the prompt's file, as in ``judge/1``.
    may_be_empty: a reply without words is an answer, and not a failure of the kind ``empty``.
    """

    messages: tuple[Message, ...]
    temperature: float | None = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    logprobs: int | None = None
    repeat: int = 0
    prompt: str = ""
    may_be_empty: bool = False

    @classmethod
    def of(cls, text: str, /, *, system: str | None = None, **parameters: Any) -> ChatRequest:
        """Return the request that holds one user message, and a system message if given."""
        first = () if system is None else (Message("system", system),)
        return cls((*first, Message("user", text)), **parameters)


class TokenLogprob(NamedTuple):
    """A token of a reply, its log-probability (natural), and its likeliest alternatives."""

    token: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's answer; what the backend does not tell is ``None``.

    ``others`` are the further replies where the request's ``n`` was more than one; ``dropped``
    names parameters that the endpoint refused and the call went without. ``reasoning`` is what the
    model wrote before its answer, where the endpoint tells it; a backend may also leave it in the
    text, between ``<think>`` tags, and what reads the reply takes it out. ``may_be_empty`` is set
    where the request allowed a reply without words.
    """

    text: str
    finish: str | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    others: tuple[str, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None
    dropped: tuple[str, ...] = ()
    reasoning: str | None = None
    may_be_empty: bool = False

    @property
    def error(self) -> None:
        """``None``: a prompt that was not answered has an error in its place."""
        return None


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


class Likelihood(NamedTuple):
    """Natural log-probabilities of the tokens of a continuation, in their order."""

    tokens: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability of the whole continuation; 0 where it has no token."""
        return sum(self.tokens)


class TokenVectors(NamedTuple):
    """The tokens of a text, n of them, and their vectors, shape (n, d), special tokens included.

    ``special`` are the places of the tokens that the tokenizer put around the text.
    """

    tokens: tuple[str, ...]
    vectors: Vectors
    special: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of several options a model chose: ``index``, ``None`` where its reply names none.

    way: ``likelihood`` of each option after the prompt, ``logprobs`` of the letters as the first
    token of a reply, or the ``letter`` that the reply names.
    probabilities: of the options, summing to 1; empty where the way gives none.
    reply: the text of the reply; empty by likelihood.
    """

    index: int | None
    way: Literal["likelihood", "logprobs", "letter"]
    probabilities: tuple[float, ...] = ()
    reply: str = ""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a backend takes at once: items, and tokens after padding to the longest item.

    The engine estimates four characters a token; ``tokens=None`` means that length is no matter.
    """

    items: int = 256
    tokens: int | None = 8192


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """What an endpoint may be asked for; ``None`` means no limit of that kind.

    concurrency: calls under way at once; fewer after the endpoint said that they are too many.
    timeout_s: for one try. deadline_s: for a call with all its tries, without outages.
    patience_s: after so long with nothing but failures the endpoint counts as gone.
    reply_bytes: a larger body is not read to its end; counted after unpacking.
    """

    concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float = 120.0
    deadline_s: float = 600.0
    patience_s: float = 60.0
    tries: int = 8
    reply_bytes: int = 16_000_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name}: expected more than 0, got {value}")


@runtime_checkable
class ChatModel(Protocol):
    """Writes text, one request at a time, many at once: an endpoint.

    ``name`` is recorded in the run and is part of a stored call's key, and so holds model and
    address. Optional attributes: ``endpoint`` (models with the same share a limiter; else
    ``name``), ``limits`` (:class:`EndpointLimits`), ``shared`` (``False`` keeps its replies out of
    the file that runs share), and an async method ``close``.
    """

    name: str

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request, in one try.

        Raises:
            CallError: the try failed, and how.
            BackendError: it cannot be answered.
        """
        ...


@runtime_checkable
class LocalChatModel(Protocol):
    """Writes text, a batch at a time, in this process; ``limits`` (:class:`BatchLimits`)."""

    name: str

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        """Answer each of the requests; raises :class:`BackendError`."""
        ...


@runtime_checkable
class LikelihoodModel(Protocol):
    """Says how likely it finds a continuation of a prompt."""

    name: str

    def token_loglikelihoods(
        self, prompt: str | Sequence[Message], options: Sequence[str]
    ) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens after the prompt.

        Raises:
            BackendError: prompt and option are longer than the model reads, or the model fails.
        """
        ...


@runtime_checkable
class TokenEmbedder(Protocol):
    """Turns a text into the vectors of its tokens."""

    name: str

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text."""
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
class QuestionSimilarity(Protocol):
    """Says how much an answer says the same as another answer to the same question."""

    name: str
    reads_question: bool
    """True: the engine passes the question along."""

    def scores(self, triples: Sequence[tuple[str, str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference, question); higher is closer, 1 is the same."""
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

    def compare(self, text: str, reference: str, question: str = "") -> Awaitable[float]:
        """Ask how much ``text`` says the same as ``reference``.

        ``question`` is what both answer, for similarities that read it
        (:class:`QuestionSimilarity`); others are not told.
        """
        ...

    def chat(
        self,
        text: str | Sequence[Message],
        /,
        *,
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> Awaitable[Reply]:
        """Ask a chat model, by default the one under assessment.

        ``text`` is one user message or a whole chat; ``name`` says which model of a role that many
        have; ``parameters`` are the other fields of :class:`ChatRequest`.
        """
        ...

    def names(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role, none where the run has none."""
        ...

    def search(self, query: str, k: int) -> Awaitable[tuple[Passage, ...]]:
        """Ask for the ``k`` best passages of a query, best first."""
        ...

    def link(self, text: str) -> Awaitable[tuple[Entity, ...]]:
        """Ask for the entities that a text speaks of, in reading order."""
        ...

    def likelihood(
        self,
        prompt: str | Sequence[Message],
        continuation: str,
        *,
        role: str = "model",
        name: str = "",
    ) -> Awaitable[Likelihood]:
        """Ask how likely a model finds ``continuation`` after ``prompt``."""
        ...

    def token_vectors(self, text: str) -> Awaitable[TokenVectors]:
        """Ask for the vectors of a text's tokens."""
        ...

    def choose(
        self,
        prompt: str,
        options: Sequence[str],
        *,
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> Awaitable[Choice]:
        """Ask which of several options follows a prompt that shows them as A, B, C, ...

        By the likelihood of the letters where the model gives it, else by the log-probabilities of
        the first token, else by the letter that the reply names; the choice says which.
        """
        ...
