"""What a metric can ask of models: the nine capabilities, each described once.

A description says how a request is made, answered in batches or by an endpoint, checked, stored,
planned and loaded. Another package registers a capability by an entry point in the group
``trustassay.capabilities`` that names a :class:`~trustassay.calls.capability.Capability`; its name
is the method of ``models``.
"""

import base64
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import (
    DEFAULT_EMBEDDER,
    DEFAULT_ENTAILER,
    DEFAULT_SIMILARITY,
    DEFAULT_SOURCES,
    resolve,
)
from trustassay.backends.registry import load, package_of
from trustassay.calls.batching import CHARACTERS_PER_TOKEN, Codec
from trustassay.calls.capability import DIGITS, Capability, Remote, Shared, Through, numbers
from trustassay.calls.endpoints import BatchCaller, ChatCaller
from trustassay.calls.replies import CHAT_CODEC, checked_replies, cleaned
from trustassay.capabilities import (
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
    limits_of,
)
from trustassay.errors import BackendError, UnknownNameError, did_you_mean

ENTRY_POINT_GROUP = "trustassay.capabilities"
T = TypeVar("T")
Vector = NDArray[np.float32]
Pair = tuple[str, str]
Texts = tuple[str, ...]
"""A text and a reference, and the question where the similarity reads it."""
Chat = tuple[Message, ...]
STAND_IN_REPLY = "A stand-in reply."
STAND_IN_PASSAGE = " ".join(["stand-in"] * 98 + ["passage"])
"""A plan's passage: as many words as one of a corpus that is cut, and a number."""
LONGEST_SUBSTITUTE = 200
"""Characters; longer ones are dropped, since a source's labels are others' text."""


def _in_groups(
    items: Sequence[T], key: Callable[[T], Any], ask: Callable[[Any, list[T]], Iterable[Any]]
) -> list[Any]:
    """Return the reply to each item; ``ask`` gets those together that share a key, and that."""
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        groups[key(item)].append(index)
    results: list[Any] = [None] * len(items)
    for shared, indices in groups.items():
        replies = ask(shared, [items[index] for index in indices])
        for index, reply in zip(indices, replies, strict=True):
            results[index] = reply
    return results


def _rows(kind: Any, **more: Any) -> Codec[Any, Any]:
    """Return how replies of several dataclasses of one kind are stored."""
    return Codec(
        reply_to_json=lambda reply: json.dumps(cleaned([asdict(one) for one in reply])),
        reply_from_json=lambda text: tuple(kind(**one) for one in json.loads(text)),
        **more,
    )


def _looked_up(
    local: type, method: str, checked: Callable[..., Any], what: str
) -> Mapping[str, Any]:
    """Return how a backend with a method is asked for a list for each item, and how an endpoint
    is, which costs no tokens and is asked for one thing at a time."""

    def compute(backend: Any, items: list[Any]) -> Sequence[Any]:
        lists = getattr(backend, method)(items)
        if len(lists) != len(items):
            raise BackendError(f"{backend.name} did not return the {what}")
        return [checked(backend, *both) for both in zip(items, lists, strict=True)]

    def endpoint(backend: Any, shared: Shared) -> Remote | None:
        if isinstance(backend, local):
            return None

        async def look_up(items: list[Any]) -> list[Any]:
            return [
                checked(backend, one, await getattr(backend, f"a{method}")(one)) for one in items
            ]

        place = shared.endpoints.of(backend, backend.endpoint_limits)
        return BatchCaller(backend.name, place, shared.ledger, look_up)

    return {"compute": compute, "remote": endpoint, "remote_items": 1}


# ------------------------------------------------------------------------ chat: a model's reply


def chat_request(text: Turns, **parameters: Any) -> ChatRequest:
    """Return the request that one user message or a whole chat makes."""
    if isinstance(text, str):
        return ChatRequest.of(text, **parameters)
    return ChatRequest(tuple(text), **parameters)


def _chat_endpoint(model: Any, shared: Shared) -> Remote | None:
    if isinstance(model, LocalChatModel):
        return None
    endpoint = shared.endpoints.of(model, limits_of(model))
    return ChatCaller(model, endpoint, shared.ledger, shared.calls_of(model), shared.counter)


CHAT: Capability[ChatRequest, Reply] = Capability(
    name="chat",
    stored_as="chat",
    backend="chat model",
    item=chat_request,
    compute=lambda model, requests: model.replies(requests),
    codec=CHAT_CODEC,
    stand_in=lambda request: Reply(STAND_IN_REPLY, others=(STAND_IN_REPLY,) * (request.n - 1)),
    load=resolve.chat,
    option="--model",
    local=lambda model, shared: checked_replies(model, shared.calls_of(model)),
    remote=_chat_endpoint,
    remote_items=1,
)


# --------------------------------------------- entail: whether a premise entails a hypothesis


def _entailments(entailer: Entailer, pairs: list[Pair]) -> list[Entailment]:
    scores = np.asarray(entailer.scores(pairs), dtype=float)
    if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
        raise BackendError(f"{entailer.name} did not return three probabilities for each pair")
    if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
        raise BackendError(f"{entailer.name} returned probabilities that do not sum to 1")
    return [Entailment(*row) for row in scores.tolist()]


def _entailed_by_chat(entailer: Any) -> Through | None:
    model = getattr(entailer, "chat_model", None)
    return None if model is None else Through("chat", model, entailer.aentailment)


ENTAIL: Capability[Pair, Entailment] = Capability(
    name="entail",
    stored_as="entailment",
    backend="entailer",
    item=lambda premise, hypothesis: (premise, hypothesis),
    compute=_entailments,
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=numbers,
        reply_from_json=lambda text: Entailment(*json.loads(text)),
    ),
    stand_in=lambda _: Entailment(0.5, 0.25, 0.25),
    load=resolve.entailer,
    default=DEFAULT_ENTAILER,
    option="--entailer",
    through=_entailed_by_chat,
)


# ------------------------------------------------------------------ embed: the vector of a text


def _checked_vectors(embedder: Any, texts: list[str], found: Any) -> list[Vector]:
    vectors = np.asarray(found, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise BackendError(f"{embedder.name} did not return a vector for each text")
    return list(vectors)


def _embedding_endpoint(embedder: Any, shared: Shared) -> Remote | None:
    if isinstance(embedder, Embedder):
        return None
    endpoint = shared.endpoints.of(embedder, embedder.endpoint_limits)
    return BatchCaller(
        embedder.name,
        endpoint,
        shared.ledger,
        embedder.avectors,
        partial(_checked_vectors, embedder),
        lambda texts: sum(len(text) // CHARACTERS_PER_TOKEN + 1 for text in texts),
    )


EMBED: Capability[str, Vector] = Capability(
    name="embed",
    stored_as="embedding",
    backend="embedder",
    item=str,
    compute=lambda embedder, texts: _checked_vectors(embedder, texts, embedder.vectors(texts)),
    codec=Codec(
        lambda vector: numbers(vector.tolist()),
        lambda text: np.array(json.loads(text), dtype=np.float32),
    ),
    stand_in=lambda _: np.ones(2, dtype=np.float32) / np.sqrt(np.float32(2)),
    load=resolve.embedder,
    default=DEFAULT_EMBEDDER,
    option="--embedder",
    remote=_embedding_endpoint,
)


# ----------------------------------- compare: how much a text says the same as a reference


def reads_question(similarity: Any) -> bool:
    """Return whether a similarity reads the question."""
    return bool(getattr(similarity, "reads_question", False))


def _similarities(similarity: Any, pairs: Sequence[Texts], scores: Any) -> list[float]:
    """Return a similarity's numbers, checked.

    They are rounded unless it says ``exact``: a model's last digits depend on the rest of a batch.
    """
    scores = np.asarray(scores, dtype=float)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise BackendError(f"{similarity.name} did not return a number for each pair")
    if not getattr(similarity, "exact", False):
        scores = scores.round(DIGITS)
    values: list[float] = scores.tolist()
    return values


def _compared_by_another(similarity: Any) -> Through | None:
    """Return how a similarity asks an endpoint's vectors, or an entailer that asks a chat model."""

    async def by_vectors(pair: Texts, ask: Callable[[str], Awaitable[Any]]) -> float:
        return _similarities(similarity, [pair], await similarity.ascores([pair], ask))[0]

    async def by_entailment(pair: Texts, ask: Callable[[Texts], Awaitable[Entailment]]) -> float:
        text, reference = pair
        return (await ask((reference, text))).entailment

    if embedder := getattr(similarity, "endpoint_embedder", None):
        return Through("embed", embedder, by_vectors)
    entailer = getattr(similarity, "entailer", None)
    return Through("entail", entailer, by_entailment) if _entailed_by_chat(entailer) else None


COMPARE: Capability[Texts, float] = Capability(
    name="compare",
    stored_as="similarity",
    backend="similarity",
    item=lambda *texts: texts,
    compute=lambda similarity, pairs: _similarities(similarity, pairs, similarity.scores(pairs)),
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=lambda score: json.dumps([score]),
        reply_from_json=lambda text: float(json.loads(text)[0]),
    ),
    stand_in=lambda _: 0.5,
    load=resolve.similarity,
    default=DEFAULT_SIMILARITY,
    option="--similarity",
    through=_compared_by_another,
)


# ------------------------------------------------------------------ search: passages for a query


def _passages(
    retriever: Retriever, queries: list[tuple[str, int]]
) -> Sequence[tuple[Passage, ...]]:
    """Return the k best passages of each (query, k), best first."""

    def search(k: int, asked: list[tuple[str, int]]) -> Iterable[tuple[Passage, ...]]:
        lists = retriever.search([query for query, _ in asked], k)
        if len(lists) != len(asked) or any(len(passages) > k for passages in lists):
            raise BackendError(f"{retriever.name} did not return up to {k} passages for each query")
        return map(tuple, lists)

    return _in_groups(queries, lambda query: query[1], search)


SEARCH: Capability[tuple[str, int], tuple[Passage, ...]] = Capability(
    name="search",
    stored_as="retrieval",
    backend="retriever",
    item=lambda query, k: (query, k),
    compute=_passages,
    codec=_rows(Passage, parts=lambda query: (query[0], str(query[1]))),
    stand_in=lambda query: tuple(
        Passage(f"stand-in-{i}", f"{STAND_IN_PASSAGE} {i}.") for i in range(query[1])
    ),
    load=partial(load, "retriever"),
    option="--retriever",
)


# --------------------------------------------------------------- link: the entities of a text


def _checked_entities(linker: Any, text: str, entities: Sequence[Entity]) -> tuple[Entity, ...]:
    for entity in entities:
        if not 0 <= entity.start <= entity.end <= len(text):
            span = f"{entity.start} to {entity.end}"
            raise BackendError(f"{linker.name} returned a span outside its text ({span})")
    return tuple(entities)


LINK: Capability[str, tuple[Entity, ...]] = Capability(
    name="link",
    stored_as="linking",
    backend="linker",
    item=str,
    codec=_rows(Entity),
    stand_in=lambda _: (),
    load=partial(load, "linker"),
    option="--linker",
    **_looked_up(EntityLinker, "link", _checked_entities, "entities of each text"),
)


# ---------------------------------- likelihood: how likely a local model finds a continuation


def _continuation(prompt: Turns, continuation: str) -> tuple[Chat, str]:
    chat = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
    return chat, continuation


def _likelihoods(model: LikelihoodModel, asked: list[tuple[Chat, str]]) -> Sequence[Likelihood]:
    """Return the log-probabilities of each continuation; those of one prompt are asked together."""

    def of_one_prompt(chat: Chat, together: list[tuple[Chat, str]]) -> Iterable[Likelihood]:
        rows = model.token_loglikelihoods(chat, [continuation for _, continuation in together])
        finite = all(math.isfinite(value) for row in rows for value in row)
        if len(rows) != len(together) or not finite:
            raise BackendError(f"{model.name} did not return finite log-probabilities for each")
        return [Likelihood(tuple(row)) for row in rows]

    return _in_groups(asked, lambda one: one[0], of_one_prompt)


LIKELIHOOD: Capability[tuple[Chat, str], Likelihood] = Capability(
    name="likelihood",
    stored_as="likelihood",
    backend="chat model",
    item=_continuation,
    compute=_likelihoods,
    codec=Codec(
        parts=lambda asked: (json.dumps(asked[0]), asked[1]),
        reply_to_json=lambda likelihood: numbers(likelihood.tokens),
        reply_from_json=lambda text: Likelihood(tuple(json.loads(text))),
    ),
    stand_in=lambda _: Likelihood((-1.0,)),
    load=resolve.chat,
    option="--model",
    served_by="chat",
    able=LikelihoodModel,
)


# ------------------------------------------------- token_vectors: the vectors of a text's tokens


def _token_vectors(embedder: TokenEmbedder, texts: list[str]) -> Sequence[TokenVectors]:
    results = embedder.token_vectors(texts)
    sound = len(results) == len(texts) and all(
        one.vectors.ndim == 2
        and len(one.vectors) == len(one.tokens)
        and all(0 <= place < len(one.tokens) for place in one.special)
        and np.isfinite(one.vectors).all()
        for one in results
    )
    if not sound:
        raise BackendError(f"{embedder.name} did not return a vector for each token of each text")
    return results


def _token_vectors_to_json(tokens: TokenVectors) -> str:
    """Return the stored form: the vectors as base64 of little-endian 32-bit floats."""
    data = np.ascontiguousarray(tokens.vectors, dtype="<f4").tobytes()
    return json.dumps(
        {
            "tokens": cleaned(tokens.tokens),
            "special": list(tokens.special),
            "size": tokens.vectors.shape[1],
            "vectors": base64.b64encode(data).decode(),
        }
    )


def _token_vectors_from_json(text: str) -> TokenVectors:
    content = json.loads(text)
    data = np.frombuffer(base64.b64decode(content["vectors"]), dtype="<f4")
    vectors = data.reshape(-1, content["size"])
    return TokenVectors(tuple(content["tokens"]), vectors, tuple(content["special"]))


TOKEN_VECTORS: Capability[str, TokenVectors] = Capability(
    name="token_vectors",
    stored_as="token vectors",
    backend="token embedder",
    item=str,
    compute=_token_vectors,
    codec=Codec(_token_vectors_to_json, _token_vectors_from_json),
    stand_in=lambda _: TokenVectors(("token",), np.ones((1, 2), dtype=np.float32)),
    load=partial(load, "token embedder"),
    option="--token-embedder",
    default=DEFAULT_EMBEDDER,
)


# ----------------------------------- substitutes: words that can stand in the place of others


def _checked_substitutes(
    source: Any, request: SubstitutesRequest, substitutes: Sequence[str]
) -> Texts:
    texts = all(isinstance(one, str) and one.strip() for one in substitutes)
    if len(substitutes) > request.k or not texts:
        raise BackendError(f"{source.name} did not return up to {request.k} substitutes, all text")
    return tuple(one for one in substitutes if len(one) <= LONGEST_SUBSTITUTE)


SUBSTITUTE: Capability[SubstitutesRequest, Texts] = Capability(
    name="substitutes",
    stored_as="substitution",
    backend="distractors",
    item=lambda words, k, tag="", types=(): SubstitutesRequest(words, k, tag, tuple(types)),
    codec=Codec(
        parts=lambda one: (one.words, str(one.k), one.tag, *one.types),
        reply_to_json=lambda substitutes: json.dumps(cleaned(list(substitutes))),
        reply_from_json=lambda text: tuple(json.loads(text)),
    ),
    stand_in=lambda one: tuple(f"Substitute{i}" for i in range(one.k)),
    load=partial(load, "distractors"),
    choices=resolve.named_sources,
    default=DEFAULT_SOURCES,
    option="--distractors",
    **_looked_up(
        SubstituteSource, "substitutes", _checked_substitutes, "substitutes of each request"
    ),
)


OWN: tuple[Capability[Any, Any], ...] = (CHAT, ENTAIL, EMBED, COMPARE, SEARCH, LINK, LIKELIHOOD)
OWN += (TOKEN_VECTORS, SUBSTITUTE)
_broken: dict[str, str] = {}
"""Why capabilities of other packages cannot be loaded, by name."""


@cache
def capabilities() -> Mapping[str, Capability[Any, Any]]:
    """Return all capabilities by name; those of other packages as well, if they can be loaded."""
    others = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            others.append(entry.load())
        except (Exception, SystemExit) as error:
            message = f"the capability {entry.name} of the package {package_of(entry)}"
            reason = f"{type(error).__name__}: {error}"
            _broken[entry.name] = f"{message} cannot be loaded ({reason})"
    return {one.name: one for one in (*others, *OWN)}


def capability(name: str) -> Capability[Any, Any]:
    """Return a capability.

    Raises:
        UnknownNameError: there is none of that name, or it cannot be loaded.
    """
    if name not in capabilities():
        known = did_you_mean("capability", name, capabilities())
        raise UnknownNameError(_broken.get(name, known))
    return capabilities()[name]
