"""The capabilities that a metric may use: small protocols and the values they exchange.

A backend implements one of them for batches. A metric uses :class:`Models`, which takes one
item at a time and returns an awaitable. The engine connects the two.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trustassay.errors import BackendError, UsageError

T = TypeVar("T")
Vectors = NDArray[np.float32]
Probabilities = NDArray[np.float64]


on_sending: ContextVar[Callable[[], None] | None] = ContextVar("on_sending", default=None)
"""Called before each request of the current task is sent; it may cancel the request by raising."""


class Entailment(NamedTuple):
    """Probabilities that a premise entails, leaves open, or contradicts a hypothesis; sum 1."""

    entailment: float
    neutral: float
    contradiction: float


class Message(NamedTuple):
    """One turn of a chat; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


Turns = str | Sequence[Message]
"""One user message, or a whole chat."""
MAX_ECHOED_CHARS = 2000
"""Characters of an unreadable reply that the model is shown again."""


def repair_turns(prompt: str, unreadable: str, instruction: str) -> tuple[Message, ...]:
    """Return the turns that ask once more, with ``words``, after a reply that cannot be read.

    After an empty reply they are one turn, since some endpoints refuse two turns of one side.
    """
    echoed = unreadable[:MAX_ECHOED_CHARS]
    if not echoed.strip():
        return (Message("user", f"{prompt}\n\n{instruction}"),)
    return Message("user", prompt), Message("assistant", echoed), Message("user", instruction)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    temperature: 0 for the most likely reply; ``None`` leaves it to the model.
    n: number of replies to this request.
    logprobs: number of alternatives to return for each token of the reply; 0 for the token only.
    repeat: numbers otherwise equal requests, so that thirty repeats are thirty calls.
    prompt: name and version of the prompt's file, as in ``judge/1``.
    may_be_empty: an empty reply is an answer, and not a failure of the kind ``empty``.
    schema: a JSON schema, as text, that the reply must follow if the endpoint supports it.
    embedding_radius: of the ball in which embeddings of the user's tokens are moved, relative to
    their mean length, at random by ``repeat``; for models with ``perturbs_embeddings = True``.
    stand_in: the reply that a plan uses; it is not sent and not part of the stored call.
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
    schema: str = ""
    embedding_radius: float | None = None
    stand_in: str = ""

    @classmethod
    def of(cls, text: str, /, *, system: str | None = None, **parameters: Any) -> "ChatRequest":
        """Return the request that holds one user message, and a system message if given."""
        first = () if system is None else (Message("system", system),)
        return cls((*first, Message("user", text)), **parameters)


class TokenLogprob(NamedTuple):
    """A token of a reply, its log-probability (natural), and its most likely alternatives."""

    token: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()

    def stored(self, max_alternatives: int) -> list[Any]:
        """Return it as a sample holds it: numbers to four digits, ``most`` alternatives at most."""
        rounded = [
            [text, round(logprob, 4)] for text, logprob in self.alternatives[:max_alternatives]
        ]
        return [self.token, round(self.logprob, 4), *([rounded] if rounded else [])]


def spell(tokens: Iterable[TokenLogprob], text: str) -> bool:
    """Whether tokens are those of a text; white space does not count.

    Those of a reply are not where its thoughts were removed, or where a token is a part of a
    character.
    """
    joined = "".join(token.token for token in tokens)
    return "".join(joined.split()) == "".join(text.split())


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's answer; fields that the backend does not report are ``None``.

    ``others`` are the further replies if the request's ``n`` was more than one; ``dropped``
    names parameters that the endpoint refused and that were left out. ``reasoning`` is the text
    before the answer, if the endpoint returns it separately; a backend may also leave it in the
    text, between ``<think>`` tags, and it is removed on reading. ``may_be_empty`` is set if the
    request allowed an empty reply.
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
        """Always ``None``; an unanswered prompt has an object with an error instead."""
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


@dataclass(frozen=True, slots=True)
class SubstitutesRequest:
    """What is looked up to stand in the place of some words.

    words: as they stand in a text. k: the most that are wanted.
    tag: part of speech, as in the Penn Treebank, of what is looked for; empty where unknown.
    types: of the entity that the words name, in a knowledge base.
    """

    words: str
    k: int
    tag: str = ""
    types: tuple[str, ...] = ()


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
    """The option that a model chose: ``index``, or ``None`` if its reply names none.

    way: ``likelihood`` of the letters after the prompt, ``logprobs`` of the letters as the first
    token of a reply, or the ``letter`` that the reply names.
    probabilities: of the options, summing to 1; empty if the way gives none.
    reply: the text of the reply; empty for ``likelihood``.
    """

    index: int | None
    way: Literal["likelihood", "logprobs", "letter"]
    probabilities: tuple[float, ...] = ()
    reply: str = ""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum size of a batch: items, and tokens after padding to the longest item.

    The engine estimates four characters per token; ``tokens=None``: length is not limited.
    order: how requests are put before batches are cut; by ``text`` where the model reads once
    what requests one after another begin with, else by ``length``, which saves padding.
    """

    items: int = 256
    tokens: int | None = 8192
    order: Literal["length", "text"] = "length"


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """The limits of an endpoint; ``None`` means no limit of that kind.

    concurrency: calls in progress at once; fewer after the endpoint reported too many.
    timeout_s: for one try. deadline_s: for a call with all its tries, without outages.
    patience_s: after this time with nothing but failures the endpoint is given up.
    reply_bytes: a larger body is not read to its end; counted after decompression.
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
                raise UsageError(f"{name}: expected more than 0, got {value}")


def limits_of(backend: Any) -> EndpointLimits:
    """Return what an endpoint says of itself, or else the usual limits."""
    result = getattr(backend, "endpoint_limits", None) or getattr(backend, "limits", None)
    return result if isinstance(result, EndpointLimits) else EndpointLimits()


@runtime_checkable
class ChatModel(Protocol):
    """Generates text, one request per call, with many calls at once: an endpoint.

    ``name`` is recorded in the run and is part of a stored call's key, so it must contain model
    and address. Optional attributes: ``endpoint`` (models with the same value share a limiter;
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
class LocalChatModel(Protocol):
    """Generates text, a batch at a time, in this process; ``limits`` (:class:`BatchLimits`)."""

    name: str

    def replies(self, requests: Sequence[ChatRequest]) -> Sequence[Reply | BackendError]:
        """Answer each of the requests; raises :class:`BackendError`.

        Of several, those that fail may have their error in the place of a reply.
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
        """Return unit vectors, shape (n, d), for n texts."""


@runtime_checkable
class Entailer(Protocol):
    """Judges whether a premise entails a hypothesis.

    ``name`` is recorded in the run and is part of a stored call's key. Two attributes are
    optional: ``limits`` (:class:`BatchLimits`), and ``stored`` (``False`` for a pure function that
    is cheaper to compute again than to look up).
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
        """Return shape (n, 3): entailment, neutral, contradiction of n (premise, hypothesis).

        Calibrated so that a probability of entailment of 0.5 or more means "entails".
        """


@runtime_checkable
class Similarity(Protocol):
    """Compares the meaning of a text with a reference.

    Its numbers are rounded to six digits, since those of a model depend on what else is in a
    batch; an attribute ``exact = True`` keeps all digits.
    """

    name: str

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Return shape (n,) for n (text, reference); higher is closer, 1 is the same."""


@runtime_checkable
class QuestionSimilarity(Protocol):
    """Says how much an answer says the same as another answer to the same question."""

    name: str
    reads_question: bool
    """True: the engine passes the question along."""

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
    """Finds words that can stand in the place of others: near in meaning, of one type, ...

    An endpoint has ``async def asubstitutes(request)`` in place of the batch, which tries once and
    raises :class:`CallError`, and ``endpoint_limits``.
    """

    name: str

    def substitutes(self, requests: Sequence[SubstitutesRequest]) -> list[list[str]]:
        """Return up to ``k`` substitutes of each request, best first, none twice."""


class Models(Protocol):
    """The models for a metric: single requests, answered when they are awaited.

    Equal requests are made once, and single requests are gathered into batches, without the
    metric's help. A backend's failure is raised as :class:`BackendError`.
    """

    @property
    def stand_ins(self) -> int:
        """How many replies so far a plan made up: what they say decides nothing; 0 in a run."""

    def entail(self, premise: str, hypothesis: str, *, role: str = "") -> Awaitable[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``; by ``role`` the ``second`` reader."""

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

    def names(self, role: str) -> tuple[str, ...]:
        """Return the names of the models of a role; empty if the run has none.

        ``distractors`` gives those of the sources of substitutes; a ``linker`` has the empty name.
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

    def tells_likelihood(self, role: str = "model", name: str = "") -> bool:
        """Whether a model can be asked for likelihoods: :class:`LikelihoodModel`."""

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
    ) -> Awaitable[Choice]:
        """Ask which of several options follows a prompt that shows them as A, B, C, ...

        By the likelihood of the letters if the model supports it, else by the log-probabilities of
        the first token, else by the letter that the reply names; ``way`` of the result says which.
        ``by`` allows only ``likelihood``, or only the ``letter`` of a reply. ``expected`` is the
        option that a plan assumes to be chosen: the one after which the most calls follow.
        ``parameters`` are the other fields of :class:`ChatRequest`.
        """
