"""The ten built-in capabilities: what a metric can ask of models, each described once.

One :class:`Capability` says everything about an operation: how requests are made, answered in
batches or by an endpoint, checked, stored, planned and shown, and which backends serve it. Another
package registers one by an entry point in the group ``trustassay.capabilities`` that names a
:class:`Capability`; its name is the method of ``models``.
"""

import base64
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import (
    DEFAULT_EMBEDDER,
    DEFAULT_ENTAILER,
    DEFAULT_SIMILARITY,
    DEFAULT_SOURCES,
)
from trustassay.backends.chat_text import to_messages
from trustassay.backends.registry import load, package_of
from trustassay.backends.resolve import resolve_sources
from trustassay.backends.vectors import scale_to_unit
from trustassay.calls.batching import Codec
from trustassay.calls.endpoints import BatchCaller, ChatCaller, DecisionCaller, Endpoints
from trustassay.calls.prices import (
    CHARACTERS_PER_TOKEN,
    BudgetLedger,
    RequestLimiter,
    TokenCounts,
)
from trustassay.calls.replies import CHAT_CODEC, build_checked_replies, clean_value
from trustassay.calls.store import Calls
from trustassay.core.capabilities import (
    ChatRequest,
    Embedder,
    Entailer,
    Entailment,
    Entity,
    EntityLinker,
    Likelihood,
    LikelihoodModel,
    LocalChatModel,
    Message,
    Passage,
    Reply,
    Retriever,
    SubstituteSource,
    SubstitutesRequest,
    TokenEmbedder,
    TokenVectors,
    Turns,
    find_limits,
)
from trustassay.core.decisions import DecisionAnswer, DecisionQuestion
from trustassay.errors import BackendError, UnknownNameError, did_you_mean
from trustassay.text.numbers import amount

T = TypeVar("T")
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
            raise BackendError(
                f"{name} cannot be used for {self.stored_as}; choose another {self.backend}"
            )


def numbers_to_json(values: Sequence[float]) -> str:
    """Return numbers as the JSON in which they are stored, rounded to :data:`STORED_DECIMALS`."""
    return json.dumps([round(value, STORED_DECIMALS) for value in values])


ENTRY_POINT_GROUP = "trustassay.capabilities"
Vector = NDArray[np.float32]
Pair = tuple[str, str]
TextTuple = tuple[str, ...]
"""A text and a reference, and the question where the similarity reads it."""
ChatMessages = tuple[Message, ...]
STAND_IN_REPLY = "A stand-in reply."
STAND_IN_PASSAGE = " ".join(["stand-in"] * 98 + ["passage"])
"""Passage that a plan uses: 99 words and a number, as long as one of a corpus that is cut."""
MAX_SUBSTITUTE_CHARACTERS = 200
"""Characters of a substitute. Longer ones are dropped, since the texts of a source are not ours."""


def _answer_in_groups(
    items: Sequence[T], key: Callable[[T], Any], ask: Callable[[Any, list[T]], Iterable[Any]]
) -> list[Any]:
    """Return the reply to each item, asking for items with an equal key together.

    ``ask`` gets the key and the items of a group.
    """
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        groups[key(item)].append(index)
    results: list[Any] = [None] * len(items)
    for shared, indices in groups.items():
        replies = ask(shared, [items[index] for index in indices])
        for index, reply in zip(indices, replies, strict=True):
            results[index] = reply
    return results


def _build_rows_codec(kind: Any, **more: Any) -> Codec[Any, Any]:
    """Return the codec of replies that are several dataclasses of one kind."""
    return Codec(
        reply_to_json=lambda reply: json.dumps(clean_value([asdict(row) for row in reply])),
        reply_from_json=lambda text: tuple(kind(**row) for row in json.loads(text)),
        **more,
    )


def _build_lookup(
    local: type, method: str, checked: Callable[..., Any], what: str
) -> Mapping[str, Any]:
    """Return the fields of a capability whose backends return a list for each item.

    Args:
        local: protocol of a backend in this process; any other is an endpoint, which is asked for
            one item at a time and costs no tokens.
        method: the backend's method; an endpoint's has ``a`` before its name.
        checked: checks and returns the list of an item.
        what: what the lists are, for messages.
    """

    def compute(backend: Any, items: list[Any]) -> Sequence[Any]:
        lists = getattr(backend, method)(items)
        if not isinstance(lists, Sequence) or len(lists) != len(items):
            raise BackendError(
                f"{backend.name} returned {lists!r:.80}; expected a list with the {what}, of "
                f"length {len(items)}"
            )
        return [checked(backend, *both) for both in zip(items, lists, strict=True)]

    def endpoint(backend: Any, shared: RunServices) -> Remote | None:
        if isinstance(backend, local):
            return None

        async def look_up(items: list[Any]) -> list[Any]:
            return [
                checked(backend, item, await getattr(backend, f"a{method}")(item)) for item in items
            ]

        endpoint_of_backend = shared.endpoints.of(backend, backend.endpoint_limits)
        return BatchCaller(backend.name, endpoint_of_backend, shared.ledger, look_up)

    return {"compute": compute, "remote": endpoint, "remote_items": 1}


# ------------------------------------------------------------------------ chat: a model's reply


def chat_request(text: Turns, **parameters: Any) -> ChatRequest:
    """Build a request from one user message or a whole chat."""
    if isinstance(text, str):
        return ChatRequest.of(text, **parameters)
    return ChatRequest(tuple(text), **parameters)


def _build_chat_caller(model: Any, shared: RunServices) -> Remote | None:
    """Return the caller of a model behind an endpoint; ``None`` for a local model."""
    if isinstance(model, LocalChatModel):
        return None
    endpoint = shared.endpoints.of(model, find_limits(model))
    return ChatCaller(model, endpoint, shared.ledger, shared.calls_of(model), shared.counter)


CHAT: Capability[ChatRequest, Reply] = Capability(
    name="chat",
    stored_as="chat",
    backend="chat model",
    item=chat_request,
    compute=lambda model, requests: model.replies(requests),
    codec=CHAT_CODEC,
    stand_in=lambda request: Reply(STAND_IN_REPLY, others=(STAND_IN_REPLY,) * (request.n - 1)),
    load=partial(load, "chat model"),
    option="--model",
    local=lambda model, shared: build_checked_replies(model, shared.calls_of(model)),
    remote=_build_chat_caller,
    remote_items=1,
)


# --------------------------------------------- entail: whether a premise entails a hypothesis


def _compute_entailments(entailer: Entailer, pairs: list[Pair]) -> list[Entailment]:
    """Return an entailer's probabilities, checked: from 0 to 1, and a sum of 1."""
    scores = np.asarray(entailer.scores(pairs), dtype=float)
    if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
        raise BackendError(f"{entailer.name} did not return three probabilities for each pair")
    if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
        raise BackendError(f"{entailer.name} returned probabilities that do not sum to 1")
    return [Entailment(*row) for row in scores.tolist()]


def _find_inner_model(entailer: Any) -> Delegation | None:
    """Return how an entailer asks a chat model or a decision model; ``None`` if it asks none."""
    for name, attribute in (("chat", "chat_model"), ("decide", "decision_model")):
        model = getattr(entailer, attribute, None)
        if model is not None:
            return Delegation(name, model, entailer.aentailment)
    return None


ENTAIL: Capability[Pair, Entailment] = Capability(
    name="entail",
    stored_as="entailment",
    backend="entailer",
    item=lambda premise, hypothesis: (premise, hypothesis),
    compute=_compute_entailments,
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=numbers_to_json,
        reply_from_json=lambda text: Entailment(*json.loads(text)),
    ),
    stand_in=lambda _: Entailment(0.5, 0.25, 0.25),
    load=partial(load, "entailer"),
    default=DEFAULT_ENTAILER,
    option="--entailer",
    through=_find_inner_model,
)


# --------------------------- decide: the probabilities of the options of a question about a text


def _answer_from_json(text: str) -> DecisionAnswer:
    """Read a stored answer."""
    fields = json.loads(text)
    lists = {name: tuple(fields[name]) for name in ("options", "raw")}
    return DecisionAnswer(**{**fields, **lists})


def _count_decision_tokens(answers: Sequence[Any]) -> TokenCounts | None:
    """Return the tokens of a call; ``None`` if the server does not count them."""
    counts = [(a.prompt_tokens, a.reply_tokens) for a in answers if isinstance(a, DecisionAnswer)]
    known = [(prompt, reply or 0) for prompt, reply in counts if prompt is not None]
    return TokenCounts(*map(sum, zip(*known, strict=True))) if known else None


def _build_decision_caller(model: Any, shared: RunServices) -> Remote:
    """Return the caller of a decision model, which is always behind an endpoint."""

    def estimate_tokens(questions: list[DecisionQuestion]) -> int:
        # The state is sent once, since a batch has only one.
        texts = [questions[0].state, *(repr(q.options) + q.instructions for q in questions)]
        return sum(len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts)

    return DecisionCaller(
        model.name,
        shared.endpoints.of(model, find_limits(model)),
        shared.ledger,
        model.adecide,
        tokens=estimate_tokens,
        count=_count_decision_tokens,
    )


def _ask_nobody(model: Any, questions: list[DecisionQuestion]) -> Sequence[DecisionAnswer]:
    asked = amount(len(questions), "question")
    raise BackendError(f"{model.name}: expected an endpoint for {asked}")


DECIDE: Capability[DecisionQuestion, DecisionAnswer] = Capability(
    name="decide",
    stored_as="decision",
    backend="decision model",
    item=DecisionQuestion,
    compute=_ask_nobody,
    codec=Codec(
        # The state is a part of its own, so that questions about one state form a batch.
        parts=lambda q: (q.state, json.dumps([q.kind, q.instructions, q.options])),
        reply_to_json=lambda answer: json.dumps(clean_value(asdict(answer))),
        reply_from_json=_answer_from_json,
        tokens=lambda answer: (answer.prompt_tokens, answer.reply_tokens),
    ),
    stand_in=lambda q: DecisionAnswer(q.names, (1 / len(q.names),) * len(q.names)),
    load=partial(load, "decision model"),
    option="--judge",
    remote=_build_decision_caller,
)


# ------------------------------------------------------------------ embed: the vector of a text


def _check_vectors(embedder: Any, texts: list[str], returned: Any) -> list[Vector]:
    """Return an embedder's vectors, checked and scaled to length 1."""
    return list(scale_to_unit(embedder.name, texts, returned))


def _vector_from_json(text: str) -> Vector:
    """Read a stored vector; raises :class:`BackendError` for one of length 0."""
    vector: Vector = scale_to_unit("a store", [""], [json.loads(text)])[0]
    return vector


def _build_embedding_caller(embedder: Any, shared: RunServices) -> Remote | None:
    """Return the caller of an embedding model behind an endpoint; ``None`` for a local one."""
    if isinstance(embedder, Embedder):
        return None
    endpoint = shared.endpoints.of(embedder, embedder.endpoint_limits)
    return BatchCaller(
        embedder.name,
        endpoint,
        shared.ledger,
        embedder.avectors,
        partial(_check_vectors, embedder),
        lambda texts: sum(len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts),
    )


EMBED: Capability[str, Vector] = Capability(
    name="embed",
    stored_as="embedding",
    backend="embedder",
    item=str,
    compute=lambda embedder, texts: _check_vectors(embedder, texts, embedder.vectors(texts)),
    codec=Codec(
        lambda vector: numbers_to_json(vector.tolist()),
        # Earlier versions stored vectors of any length.
        _vector_from_json,
    ),
    # Vectors have length 1, so the stand-in has it, too.
    stand_in=lambda _: np.ones(2, dtype=np.float32) / np.sqrt(np.float32(2)),
    load=partial(load, "embedder"),
    default=DEFAULT_EMBEDDER,
    option="--embedder",
    remote=_build_embedding_caller,
)


# ----------------------------------- compare: how much a text says the same as a reference


def reads_question(similarity: Any) -> bool:
    """Whether a similarity also reads the question."""
    return bool(getattr(similarity, "reads_question", False))


def _check_similarities(similarity: Any, pairs: Sequence[TextTuple], scores: Any) -> list[float]:
    """Return a similarity's numbers, checked.

    They are rounded unless the similarity is ``exact``: the last digits of a model's numbers depend
    on the other items of a batch.
    """
    scores = np.asarray(scores, dtype=float)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise BackendError(f"{similarity.name} did not return a number for each pair")
    if not getattr(similarity, "exact", False):
        scores = scores.round(STORED_DECIMALS)
    values: list[float] = scores.tolist()
    return values


def _find_delegate(similarity: Any) -> Delegation | None:
    """Return how a similarity asks an embedding endpoint, or an entailer that asks a chat model."""

    async def by_vectors(pair: TextTuple, ask: Callable[[str], Awaitable[Any]]) -> float:
        return _check_similarities(similarity, [pair], await similarity.ascores([pair], ask))[0]

    async def by_entailment(
        pair: TextTuple, ask: Callable[[TextTuple], Awaitable[Entailment]]
    ) -> float:
        text, reference = pair
        # The reference is the premise: how much of the text does it entail?
        return (await ask((reference, text))).entailment

    if embedder := getattr(similarity, "endpoint_embedder", None):
        # Through the engine, so that vectors of an endpoint are stored and paid for once.
        return Delegation("embed", embedder, by_vectors)
    entailer = getattr(similarity, "entailer", None)
    return Delegation("entail", entailer, by_entailment) if _find_inner_model(entailer) else None


COMPARE: Capability[TextTuple, float] = Capability(
    name="compare",
    stored_as="similarity",
    backend="similarity",
    item=lambda *texts: texts,
    compute=lambda similarity, pairs: _check_similarities(
        similarity, pairs, similarity.scores(pairs)
    ),
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=lambda score: json.dumps([score]),
        reply_from_json=lambda text: float(json.loads(text)[0]),
    ),
    stand_in=lambda _: 0.5,
    load=partial(load, "similarity"),
    default=DEFAULT_SIMILARITY,
    option="--backend similarity=URI",
    through=_find_delegate,
)


# ------------------------------------------------------------------ search: passages for a query


def _search_passages(
    retriever: Retriever, queries: list[tuple[str, int]]
) -> Sequence[tuple[Passage, ...]]:
    """Return the k best passages for each (query, k), best first."""

    def search(k: int, group: list[tuple[str, int]]) -> Iterable[tuple[Passage, ...]]:
        lists = retriever.search([query for query, _ in group], k)
        if len(lists) != len(group) or any(len(passages) > k for passages in lists):
            raise BackendError(
                f"{retriever.name} did not return a list of at most {k} passages for each query"
            )
        return map(tuple, lists)

    # search() takes one k for all its queries.
    return _answer_in_groups(queries, lambda query: query[1], search)


SEARCH: Capability[tuple[str, int], tuple[Passage, ...]] = Capability(
    name="search",
    stored_as="retrieval",
    backend="retriever",
    item=lambda query, k: (query, k),
    compute=_search_passages,
    codec=_build_rows_codec(Passage, parts=lambda query: (query[0], str(query[1]))),
    stand_in=lambda query: tuple(
        Passage(f"stand-in-{i}", f"{STAND_IN_PASSAGE} {i}.") for i in range(query[1])
    ),
    load=partial(load, "retriever"),
    option="--retriever",
)


# --------------------------------------------------------------- link: the entities of a text


def _check_entities(linker: Any, text: str, returned: Any) -> tuple[Entity, ...]:
    """Return the entities of a text, whose spans must be inside it; each may be a dictionary."""
    items = returned if isinstance(returned, list | tuple) else [returned]
    entities = tuple(_read_entity(linker, item) for item in items)
    for entity in entities:
        if not 0 <= entity.start <= entity.end <= len(text):
            span = f"{entity.start} to {entity.end}"
            raise BackendError(f"{linker.name} returned a span outside its text ({span})")
    return entities


def _read_entity(linker: Any, item: Any) -> Entity:
    """Return an entity, which may be a dictionary with the same fields."""
    try:
        entity = Entity(**item) if isinstance(item, Mapping) else item
        if isinstance(entity, Entity) and isinstance(entity.start + entity.end, int):
            return entity
    except TypeError:
        pass  # a field is missing or unknown, or a place is no number
    raise BackendError(
        f"{linker.name} returned {item!r:.80} as an entity; expected, for each text, a list of "
        "Entity(id, name, start, end, details) or of dictionaries with these fields. start and "
        "end are character positions; details is optional"
    )


LINK: Capability[str, tuple[Entity, ...]] = Capability(
    name="link",
    stored_as="linking",
    backend="linker",
    item=str,
    codec=_build_rows_codec(Entity),
    stand_in=lambda _: (),
    load=partial(load, "linker"),
    option="--backend linker=URI",
    **_build_lookup(EntityLinker, "link", _check_entities, "entities of each text"),
)


# ---------------------------------- likelihood: how likely a local model finds a continuation


def _build_likelihood_request(prompt: Turns, continuation: str) -> tuple[ChatMessages, str]:
    """Build a request from a prompt or a chat, and a continuation of it."""
    return to_messages(prompt), continuation


def _compute_likelihoods(
    model: LikelihoodModel, requests: list[tuple[ChatMessages, str]]
) -> Sequence[Likelihood]:
    """Return the token log-probabilities of each continuation.

    Continuations of one prompt are computed together, since the prompt is then read once.
    """

    def of_one_prompt(
        chat: ChatMessages, together: list[tuple[ChatMessages, str]]
    ) -> Iterable[Likelihood]:
        # The chat is the same for all of them: see _answer_in_groups.
        rows = model.token_loglikelihoods(chat, [continuation for _, continuation in together])
        finite = all(math.isfinite(value) for row in rows for value in row)
        if len(rows) != len(together) or not finite:
            raise BackendError(
                f"{model.name} did not return finite log-probabilities for each continuation"
            )
        return [Likelihood(tuple(row)) for row in rows]

    return _answer_in_groups(requests, lambda request: request[0], of_one_prompt)


LIKELIHOOD: Capability[tuple[ChatMessages, str], Likelihood] = Capability(
    name="likelihood",
    stored_as="likelihood",
    backend="chat model",
    item=_build_likelihood_request,
    compute=_compute_likelihoods,
    codec=Codec(
        parts=lambda asked: (json.dumps(asked[0]), asked[1]),
        reply_to_json=lambda likelihood: numbers_to_json(likelihood.tokens),
        reply_from_json=lambda text: Likelihood(tuple(json.loads(text))),
    ),
    stand_in=lambda _: Likelihood((-1.0,)),
    load=partial(load, "chat model"),
    option="--model",
    served_by="chat",
    able=LikelihoodModel,
)


# ------------------------------------------------- token_vectors: the vectors of a text's tokens


def _compute_token_vectors(embedder: TokenEmbedder, texts: list[str]) -> Sequence[TokenVectors]:
    """Return an embedder's token vectors, checked."""
    results = embedder.token_vectors(texts)
    sound = len(results) == len(texts) and all(
        tokens.vectors.ndim == 2
        and len(tokens.vectors) == len(tokens.tokens)
        and all(0 <= position < len(tokens.tokens) for position in tokens.special)
        and np.isfinite(tokens.vectors).all()
        for tokens in results
    )
    if not sound:
        raise BackendError(f"{embedder.name} did not return a vector for each token of each text")
    return results


def _token_vectors_to_json(tokens: TokenVectors) -> str:
    """Return the stored form: the vectors as base64 of little-endian 32-bit floats."""
    # Numbers as decimal text would take much more space.
    data = np.ascontiguousarray(tokens.vectors, dtype="<f4").tobytes()
    return json.dumps(
        {
            "tokens": clean_value(tokens.tokens),
            "special": list(tokens.special),
            "size": tokens.vectors.shape[1],
            "vectors": base64.b64encode(data).decode(),
        }
    )


def _token_vectors_from_json(text: str) -> TokenVectors:
    """Read the stored form."""
    content = json.loads(text)
    data = np.frombuffer(base64.b64decode(content["vectors"]), dtype="<f4")
    vectors = data.reshape(-1, content["size"])
    return TokenVectors(tuple(content["tokens"]), vectors, tuple(content["special"]))


TOKEN_VECTORS: Capability[str, TokenVectors] = Capability(
    name="token_vectors",
    stored_as="token vectors",
    backend="token embedder",
    item=str,
    compute=_compute_token_vectors,
    codec=Codec(_token_vectors_to_json, _token_vectors_from_json),
    stand_in=lambda _: TokenVectors(("token",), np.ones((1, 2), dtype=np.float32)),
    load=partial(load, "token embedder"),
    option="--backend token-embedder=URI",
    default=DEFAULT_EMBEDDER,
)


# ----------------------------------- substitutes: words that can stand in the place of others


def _check_substitutes(
    source: Any, request: SubstitutesRequest, substitutes: Sequence[str]
) -> TextTuple:
    """Return the substitutes of a request, checked, without those that are too long."""
    texts = all(isinstance(substitute, str) and substitute.strip() for substitute in substitutes)
    if len(substitutes) > request.k or not texts:
        raise BackendError(
            f"{source.name} did not return a list of at most {request.k} non-empty texts"
        )
    return tuple(
        substitute for substitute in substitutes if len(substitute) <= MAX_SUBSTITUTE_CHARACTERS
    )


SUBSTITUTE: Capability[SubstitutesRequest, TextTuple] = Capability(
    name="substitutes",
    stored_as="substitution",
    backend="distractors",
    item=lambda words, k, tag="", types=(): SubstitutesRequest(words, k, tag, tuple(types)),
    codec=Codec(
        parts=lambda one: (one.words, str(one.k), one.tag, *one.types),
        reply_to_json=lambda substitutes: json.dumps(clean_value(list(substitutes))),
        reply_from_json=lambda text: tuple(json.loads(text)),
    ),
    stand_in=lambda one: tuple(f"Substitute{i}" for i in range(one.k)),
    load=partial(load, "distractors"),
    choices=resolve_sources,
    default=DEFAULT_SOURCES,
    option="--backend distractors=URI",
    **_build_lookup(
        SubstituteSource, "substitutes", _check_substitutes, "substitutes of each request"
    ),
)


BUILT_IN_CAPABILITIES: tuple[Capability[Any, Any], ...] = (
    CHAT,
    ENTAIL,
    DECIDE,
    EMBED,
    COMPARE,
    SEARCH,
    LINK,
    LIKELIHOOD,
    TOKEN_VECTORS,
    SUBSTITUTE,
)
_broken: dict[str, str] = {}
"""Capabilities of other packages that cannot be loaded, with the message that says why."""


@cache
def capabilities() -> Mapping[str, Capability[Any, Any]]:
    """Return all capabilities by name, including those of other packages that can be loaded."""
    from_packages = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            from_packages.append(entry.load())
        # A broken package must not affect runs that do not use it. Its error appears when it is
        # used.
        except (Exception, SystemExit) as error:
            message = f"the capability {entry.name} of the package {package_of(entry)}"
            reason = f"{type(error).__name__}: {error}"
            _broken[entry.name] = f"{message} cannot be loaded ({reason})"
    # Built-in ones come last, so that no package can replace them.
    return {
        each_capability.name: each_capability
        for each_capability in (*from_packages, *BUILT_IN_CAPABILITIES)
    }


def capability(name: str) -> Capability[Any, Any]:
    """Return a capability by its name.

    Raises:
        UnknownNameError: there is none of that name, or it cannot be loaded.
    """
    if name not in capabilities():
        message = did_you_mean("capability", name, capabilities())
        raise UnknownNameError(_broken.get(name, message))
    return capabilities()[name]
