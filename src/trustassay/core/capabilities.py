"""The capabilities that a metric may use: small protocols, and the values that they exchange.

A backend implements one of them for batches. A metric uses :class:`Models`, which takes one item at
a time and returns an awaitable. The engine connects the two.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trustassay.core.decisions import DecisionAnswer, DecisionQuestion
from trustassay.errors import BackendError, UsageError

T = TypeVar("T")
Vectors = NDArray[np.float32]
Probabilities = NDArray[np.float64]


on_sending: ContextVar[Callable[[], None] | None] = ContextVar("on_sending", default=None)
"""Called before each request of the current task is sent; it may raise to cancel the request."""


class Entailment(NamedTuple):
    """Probabilities that a premise entails, leaves open, or contradicts a hypothesis; sum 1."""

    entailment: float
    neutral: float
    contradiction: float


class Message(NamedTuple):
    """One turn of a chat."""

    role: str
    """``system``, ``user`` or ``assistant``."""
    content: str
    """The text of the turn."""


Turns = str | Sequence[Message]
"""One user message, or a whole chat."""
MAX_ECHOED_CHARS = 2000
"""Characters of an unreadable reply that are shown to the model again."""


def build_repair_turns(prompt: str, unreadable: str, instruction: str) -> tuple[Message, ...]:
    """Return the turns that ask once more after a reply that could not be read.

    Args:
        prompt: the first question. unreadable: the reply to it, which is quoted up to
            :data:`MAX_ECHOED_CHARS`. instruction: what the model is asked to do now.
    """
    echoed = unreadable[:MAX_ECHOED_CHARS]
    if not echoed.strip():
        # Some endpoints refuse an empty turn of the assistant, and two turns of the user in a row.
        return (Message("user", f"{prompt}\n\n{instruction}"),)
    return Message("user", prompt), Message("assistant", echoed), Message("user", instruction)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model."""

    messages: tuple[Message, ...]
    """The turns of the chat."""
    temperature: float | None = 0.0
    """0 for the most likely reply; ``None`` leaves it to the model."""
    max_tokens: int | None = None
    """Of the reply; ``None`` for the endpoint's own limit."""
    seed: int | None = None
    """Passed to endpoints that accept one."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    n: int = 1
    """Number of replies to this request."""
    logprobs: int | None = None
    """Number of alternatives to return for each token of the reply; 0 for the token alone."""
    repeat: int = 0
    """Numbers otherwise equal requests, so that thirty repeats are thirty calls."""
    prompt: str = ""
    """Name and version of the prompt's file, as in ``judge/1``."""
    may_be_empty: bool = False
    """An empty reply is an answer, and not a failure of the kind ``empty``."""
    schema: str = ""
    """A JSON schema, as text, that the reply must follow if the endpoint supports it."""
    embedding_radius: float | None = None
    """Radius of the ball in which the embeddings of the user's tokens are moved at random by
    ``repeat``, relative to their mean length; for models with ``perturbs_embeddings = True``."""
    stand_in: str = ""
    """The reply that a plan assumes; it is not sent, and not part of the stored call."""

    @classmethod
    def of(cls, text: str, /, *, system: str | None = None, **parameters: Any) -> "ChatRequest":
        """Return a request with one user message, after a system message if given."""
        system_turns = () if system is None else (Message("system", system),)
        return cls((*system_turns, Message("user", text)), **parameters)


class TokenLogprob(NamedTuple):
    """A token of a reply."""

    token: str
    """Its text."""
    logprob: float
    """Its natural log-probability; NaN where it is not known."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """The most likely tokens at its position, with their log-probabilities."""

    @property
    def known(self) -> list[tuple[str, float]]:
        """The token and its alternatives, as far as their log-probabilities are known."""
        pairs = ((self.token, self.logprob), *self.alternatives)
        return [(text, logprob) for text, logprob in pairs if not math.isnan(logprob)]

    def to_json(self, max_alternatives: int) -> list[Any]:
        """Return the form in which a sample stores it: numbers to four digits, others as ``null``.

        Args:
            max_alternatives: of the alternatives, the first so many are kept.
        """
        rounded = [
            [text, round(logprob, 4)] for text, logprob in self.alternatives[:max_alternatives]
        ]
        # JSON has neither NaN nor infinity.
        logprob = round(self.logprob, 4) if math.isfinite(self.logprob) else None
        return [self.token, logprob, *([rounded] if rounded else [])]


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's answer; fields that the backend does not report are ``None``."""

    text: str
    """The answer; a backend may leave reasoning in it between ``<think>`` tags, which is removed on
    reading."""
    finish: str | None = None
    """Why the reply ended, in the endpoint's words."""
    prompt_tokens: int | None = None
    """Tokens of the request."""
    reply_tokens: int | None = None
    """Tokens of the reply."""
    others: tuple[str, ...] = ()
    """The further replies if the request's ``n`` is more than one."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens of the reply with their log-probabilities."""
    dropped: tuple[str, ...] = ()
    """Parameters that the endpoint refused and that were left out."""
    reasoning: str | None = None
    """The text before the answer, if the endpoint returns it separately."""
    may_be_empty: bool = False
    """Whether the request allowed an empty reply."""

    @property
    def error(self) -> None:
        """Always ``None``: a prompt without an answer is represented by another class, with an
        error."""
        return None


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved text."""

    id: str
    """The passage's id in its corpus."""
    text: str
    """Its text."""
    title: str = ""
    """Its title; it supports nothing by itself."""
    score: float = 0.0
    """Orders the passages of one query; higher is closer."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A span ``text[start:end]`` that is linked to an entry of a knowledge base."""

    id: str
    """The entry's id."""
    name: str
    """The entry's name."""
    start: int
    """First character of the span."""
    end: int
    """Character after the span."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further facts of the entry, such as ``types``."""


@dataclass(frozen=True, slots=True)
class SubstitutesRequest:
    """A request for words that can replace others."""

    words: str
    """The words to replace, as they stand in a text."""
    k: int
    """Maximum number of substitutes."""
    tag: str = ""
    """Part of speech (Penn Treebank) of the words; empty if unknown."""
    types: tuple[str, ...] = ()
    """Types, in a knowledge base, of the entity that the words name."""


class Likelihood(NamedTuple):
    """Natural log-probabilities of the tokens of a continuation, in their order."""

    tokens: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability of the whole continuation; 0 if it has no token."""
        return sum(self.tokens)


class TokenVectors(NamedTuple):
    """The tokens of a text and their vectors, special tokens included."""

    tokens: tuple[str, ...]
    """The n tokens."""
    vectors: Vectors
    """Their vectors, shape (n, d)."""
    special: tuple[int, ...] = ()
    """Indices of the tokens that the tokenizer added around the text."""


@dataclass(frozen=True, slots=True)
class OptionChoice:
    """The option that a model chose."""

    index: int | None
    """The option's index; ``None`` if the reply names none."""
    way: Literal["likelihood", "logprobs", "letter"]
    """How it was determined: ``likelihood`` of the letters after the prompt, ``logprobs`` of the
    letters as the first token of a reply, or the ``letter`` that the reply names."""
    probabilities: tuple[float, ...] = ()
    """Of the options, with sum 1; empty if ``way`` gives none."""
    reply: str = ""
    """The text of the reply; empty for ``likelihood``."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum size of a batch."""

    items: int = 256
    """Maximum number of items."""
    tokens: int | None = 8192
    """Maximum number of tokens after padding to the longest item, at an estimated four characters
    per token; ``None`` for no limit."""
    order: Literal["length", "text"] = "length"
    """The order of requests before batches are cut: by ``text`` if the model reads a common
    beginning only once, otherwise by ``length``, which saves padding."""
    alike: bool = False
    """Whether the requests of a batch must have the same first text."""


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """The limits of an endpoint; ``None`` means no limit of that kind."""

    concurrency: int = 64
    """Calls in progress at once; fewer after the endpoint reported too many."""
    requests_per_minute: float | None = None
    """Requests started in any minute."""
    tokens_per_minute: float | None = None
    """Tokens of requests and replies in any minute."""
    timeout_s: float = 120.0
    """Seconds for one try."""
    deadline_s: float = 600.0
    """Seconds for a call with all its tries, not counting outages."""
    patience_s: float = 60.0
    """Seconds with nothing but failures after which the endpoint is given up."""
    tries: int = 8
    """Maximum number of tries of one call."""
    reply_bytes: int = 16_000_000
    """Bytes of a body, after decompression, beyond which it is not read further."""

    def __post_init__(self) -> None:
        # Also a limit of 0 is refused: it would wait forever.
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"{name}: expected more than 0, got {value}")


def find_limits(backend: Any) -> EndpointLimits:
    """Return the limits that a backend declares, or the default limits."""
    # A backend with batches has `limits` of another type, so an endpoint of it uses another name.
    result = getattr(backend, "endpoint_limits", None) or getattr(backend, "limits", None)
    return result if isinstance(result, EndpointLimits) else EndpointLimits()


@runtime_checkable
class ChatModel(Protocol):
    """Generates text, one request per call, with many calls at once: an endpoint.

    ``name`` is recorded in the run and is part of a stored call's key, so it must contain model and
    address. Optional attributes: ``endpoint`` (models with the same value share a rate limiter;
    default ``name``), ``limits`` (:class:`EndpointLimits`), ``shared`` (``False`` keeps its replies
    out of the file that runs share), and an async method ``close``.
    """

    name: str

    async def reply(self, request: ChatRequest) -> Reply:
        """Answer one request, in one try.

        Raises:
            CallError: the try failed, and how.
            BackendError: it cannot be answered.
        """


@runtime_checkable
class DecisionModel(Protocol):
    """Answers questions with probabilities and writes no text: an endpoint.

    Optional attributes as of :class:`ChatModel`, with ``endpoint_limits`` in place of ``limits``.
    """

    name: str
    limits: BatchLimits
    """At most 64 items, and ``alike``: the questions of a call have one state."""

    async def adecide(
        self, questions: Sequence[DecisionQuestion]
    ) -> Sequence[DecisionAnswer | BackendError]:
        """Answer questions about one state, in one try.

        A question that fails alone has its error in place of an answer.

        Raises:
            CallError: the try failed for all, and how.
        """


@runtime_checkable
class LocalChatModel(Protocol):
    """Generates text, a batch at a time, in this process; ``limits`` (:class:`BatchLimits`)."""

    name: str

    def replies(self, requests: Sequence[ChatRequest]) -> Sequence[Reply | BackendError]:
        """Answer the requests; raises :class:`BackendError`.

        If only some of several requests fail, their error may be returned in place of the reply.
        """


@runtime_checkable
class LikelihoodModel(Protocol):
    """Computes the likelihood of a continuation of a prompt."""

    name: str

    def token_loglikelihoods(self, prompt: Turns, options: Sequence[str]) -> list[list[float]]:
        """Return, for each option, the natural log-probabilities of its tokens after the prompt.

        Raises:
            BackendError: prompt and option are longer than the model reads, or the model fails.
        """


@runtime_checkable
class TokenEmbedder(Protocol):
    """Turns a text into the vectors of its tokens."""

    name: str

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return vectors, shape (n, d), for n texts; they are scaled to length 1."""


@runtime_checkable
class Entailer(Protocol):
    """Judges whether a premise entails a hypothesis.

    ``name`` is recorded in the run and is part of a stored call's key. Two attributes are optional:
    ``limits`` (:class:`BatchLimits`), and ``stored`` (``False`` for a pure function that is cheaper
    to compute again than to look up).
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Calibrated so that a probability of entailment of 0.5 or more means "entails".
        """


@runtime_checkable
class Similarity(Protocol):
    """Compares the meaning of a text with a reference.

    Scores are rounded to six digits, because those of a model depend on what else is in its batch;
    an attribute ``exact = True`` keeps all digits.
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference); higher is closer, 1 is the same."""


@runtime_checkable
class QuestionSimilarity(Protocol):
    """Says how close an answer is to another answer to the same question."""

    name: str
    reads_question: bool
    """Always True; it makes the engine pass the question along."""

    def scores(self, triples: Sequence[tuple[str, str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference, question); higher is closer, 1 is the same."""


@runtime_checkable
class Retriever(Protocol):
    """Finds passages."""

    name: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return the k best passages of each query, best first."""


@runtime_checkable
class EntityLinker(Protocol):
    """Finds the entities mentioned in a text."""

    name: str

    def link(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text in reading order."""


@runtime_checkable
class SubstituteSource(Protocol):
    """Finds words that can replace others: near in meaning, of the same type, and so on.

    An endpoint has ``async def asubstitutes(request)`` instead of the batch method, which tries
    once and raises :class:`~trustassay.errors.CallError`, and ``endpoint_limits``.
    """

    name: str

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to ``k`` different substitutes for each request, best first."""


class Models(Protocol):
    """The models of a metric: single requests, answered when they are awaited.

    Equal requests are made once, and single requests are gathered into batches, without the
    metric's help. A backend's failure is raised as :class:`BackendError`.
    """

    @property
    def stand_ins(self) -> int:
        """Number of replies that a plan has made up so far; 0 in a run.

        What such replies say decides nothing.
        """

    def entail(self, premise: str, hypothesis: str, *, role: str = "") -> Awaitable[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``; the role ``second`` asks the second
        reader."""

    def embed(self, text: str) -> Awaitable[Vectors]:
        """Ask for the vector of a text, shape (d,)."""

    def compare(self, text: str, reference: str, question: str = "") -> Awaitable[float]:
        """Ask for the similarity of ``text`` and ``reference``.

        ``question`` is what both answer; only a :class:`QuestionSimilarity` gets it.
        """

    def chat(
        self, text: Turns, /, *, role: str = "model", name: str = "", **parameters: Any
    ) -> Awaitable[Reply]:
        """Ask a chat model, by default the one under assessment.

        ``text`` is one user message or a whole chat; ``name`` selects one of several models of a
        role; ``parameters`` are the other fields of :class:`ChatRequest`.
        """

    def note_unreadable(self, role: str, name: str = "", count: int = 1) -> None:
        """Count replies of a model as unreadable, for the table of who did not answer."""

    def names(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role; empty if the run has none.

        Of the models under assessment there is only the one that gave the sample's answer.

        For ``distractors`` these are the sources of substitutes; a ``linker`` has the empty name.
        """

    def languages(self, name: str) -> tuple[str, ...]:
        """Return the languages (ISO 639-1) that the backend of a capability reads.

        Empty if it does not say, or reads any.
        """

    def search(self, query: str, k: int) -> Awaitable[tuple[Passage, ...]]:
        """Ask for the ``k`` best passages of a query, best first."""

    def link(self, text: str) -> Awaitable[tuple[Entity, ...]]:
        """Ask for the entities mentioned in a text, in reading order."""

    def substitutes(
        self, words: str, *, k: int, source: str, tag: str = "", types: Sequence[str] = ()
    ) -> Awaitable[tuple[str, ...]]:
        """Ask a source, by its name, for up to ``k`` substitutes of ``words``, best first."""

    def decides(self, role: str, name: str = "") -> bool:
        """Whether the model of a role is a decision model, which :meth:`decide` asks."""

    def decide(
        self, question: DecisionQuestion, *, role: str, name: str = ""
    ) -> Awaitable[DecisionAnswer]:
        """Ask a decision model for the probabilities of the options of a question."""

    def tells_likelihood(self, role: str = "model", name: str = "") -> bool:
        """Whether a model can return likelihoods (:class:`LikelihoodModel`)."""

    def likelihood(
        self, prompt: Turns, continuation: str, *, role: str = "model", name: str = ""
    ) -> Awaitable[Likelihood]:
        """Ask a model for the likelihood of ``continuation`` after ``prompt``."""

    def token_vectors(self, text: str) -> Awaitable[TokenVectors]:
        """Ask for the vectors of a text's tokens."""

    def choose(
        self,
        text: Turns,
        options: Sequence[str],
        /,
        *,
        by: Literal["auto", "letter", "likelihood"] = "auto",
        expected: int | None = None,
        role: str = "model",
        name: str = "",
        **parameters: Any,
    ) -> Awaitable[OptionChoice]:
        """Ask which of several options follows a prompt that shows them as A, B, C, ...

        It is decided by the likelihood of the letters if the model supports it, otherwise by the
        log-probabilities of the first token, otherwise by the letter that the reply names; ``way``
        of the result says which.

        Args:
            text: the prompt.
            options: their texts.
            by: allows only ``likelihood``, or only the ``letter`` of a reply.
            expected: the option that a plan assumes to be chosen: the one after which the most
                calls follow.
            role, name: the model.
            parameters: the other fields of :class:`ChatRequest`.
        """
