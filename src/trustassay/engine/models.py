"""What a metric holds while it assesses one sample: the facade over the gatherers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import (
    BackendError,
    BatchLimits,
    ChatModel,
    ChatRequest,
    Embedder,
    Entailer,
    Entailment,
    LocalChatModel,
    Message,
    Reply,
    Similarity,
)
from trustassay.engine.asking import (
    AsyncEmbedder,
    ChatCaller,
    EmbeddingCaller,
    Endpoints,
    limits_of,
)
from trustassay.engine.batch import Codec, Counts, Gatherer, Policy
from trustassay.engine.cache import Calls, CallStore
from trustassay.engine.marks import MarkedCalls, Marks
from trustassay.engine.replies import CHAT, checked_replies, keeper
from trustassay.engine.tally import Tally
from trustassay.engine.usage import Budget, Prices, Purse

__all__ = [
    "Asking",
    "Backends",
    "Gatherers",
    "SampleModels",
    "any_shared",
    "chat_request",
    "check_budget",
    "is_remote",
]

T = TypeVar("T")
R = TypeVar("R")
Pair = tuple[str, str]
Vector = NDArray[np.float32]
GRACE_S = 1.0
"""So long calls that are under way may go on when all else has ended."""
DIGITS = 6
"""Digits of a reply's numbers that are kept; what a batch's padding changes lies beyond them."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends of a run; one that no metric needs may be ``None``.

    ``chat`` holds chat models by their role; ``model`` is the one under assessment.
    """

    entailer: Entailer | None = None
    embedder: Embedder | AsyncEmbedder | None = None
    similarity: Similarity | None = None
    chat: Mapping[str, ChatModel | LocalChatModel] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """Return the backend's name for each capability and role at hand."""
        found = {name: getattr(self, name) for name in ("entailer", "embedder", "similarity")}
        return {name: backend.name for name, backend in {**found, **self.chat}.items() if backend}

    def asked(self) -> list[Any]:
        """Return those backends that may be endpoints, also the one behind a similarity."""
        behind = getattr(self.similarity, "endpoint_embedder", None)
        return [b for b in (self.embedder, behind, *self.chat.values()) if b]


@dataclass(frozen=True, slots=True)
class Asking:
    """What the gatherers of a run share: where calls are kept, and what they may cost."""

    own: CallStore | None = None
    shared: CallStore | None = None
    policy: Policy = field(default_factory=Policy)
    prices: Prices = field(default_factory=Prices)
    budget: Budget | None = None
    concurrency: int | None = None
    tally: Tally | None = None


class Gatherers:
    """One gatherer for each backend of a run; made inside the event loop."""

    def __init__(self, backends: Backends, asking: Asking) -> None:
        make = _Maker(asking, _paid(backends))
        self._backends = backends
        self._callers, self._marks = make.callers, make.marks
        self.endpoints = make.endpoints
        self.entailment = make.entailment(backends.entailer) if backends.entailer else None
        self.embedding = make.embedding(backends.embedder) if backends.embedder else None
        self.vectors_compared = self._vectors_compared(make)
        self.similarity = (
            make.similarity(backends.similarity, self.vectors_compared)
            if backends.similarity
            else None
        )
        models = {model.name: model for model in backends.chat.values()}
        by_name = {name: make.chat(model) for name, model in models.items()}
        self.chat = {role: by_name[model.name] for role, model in backends.chat.items()}

    def _vectors_compared(self, make: _Maker) -> Gatherer[str, Vector] | None:
        """Return where a similarity by an endpoint's vectors asks for them, if it is one."""
        behind = getattr(self._backends.similarity, "endpoint_embedder", None)
        if not (behind and hasattr(self._backends.similarity, "ascores")):
            return None
        make.endpoints.of(behind, behind.endpoint_limits)
        if self.embedding and self.embedding.backend == behind.name:
            return self.embedding
        return make.embedding(behind)

    def _all(self) -> dict[str, Gatherer[Any, Any]]:
        own = {
            "entailment": self.entailment,
            "embedding": self.embedding,
            "similarity": self.similarity,
        }
        if self.vectors_compared is not self.embedding:
            own["embedding for similarity"] = self.vectors_compared
        chats = {f"chat {gatherer.backend}": gatherer for gatherer in self.chat.values()}
        return {name: gatherer for name, gatherer in {**own, **chats}.items() if gatherer}

    def counts(self) -> dict[str, Counts]:
        """Return what was asked of each capability, and each chat model, in this process."""
        return {name: gatherer.counts for name, gatherer in self._all().items()}

    async def close(self) -> None:
        """Stop all, and close the connections.

        Nothing more is asked. What is under way has a second to be replied, and is stored then,
        since it is paid for.
        """
        for caller in self._callers:
            caller.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                for caller in self._callers:
                    await caller.idle()
        for gatherer in self._all().values():
            await gatherer.close()
        if self._marks:
            self._marks.close()
        for backend in self._backends.asked():
            if close := getattr(backend, "close", None):
                await close()


class SampleModels:
    """The models as one sample's assessment sees them; counts what it asks for."""

    def __init__(self, gatherers: Gatherers) -> None:
        self._gatherers = gatherers
        self.calls: Counter[str] = Counter()
        self.usage: dict[str, Counter[str]] = {}

    def entail(self, premise: str, hypothesis: str) -> asyncio.Future[Entailment]:
        """Ask whether ``premise`` entails ``hypothesis``."""
        return self._ask("entailment", self._gatherers.entailment, (premise, hypothesis))

    def embed(self, text: str) -> asyncio.Future[Vector]:
        """Ask for the vector of a text."""
        return self._ask("embedding", self._gatherers.embedding, text)

    def compare(self, text: str, reference: str) -> asyncio.Future[float]:
        """Ask how much ``text`` says the same as ``reference``."""
        return self._ask("similarity", self._gatherers.similarity, (text, reference))

    def chat(
        self, text: str | Sequence[Message], /, *, role: str = "model", **parameters: Any
    ) -> asyncio.Future[Reply]:
        """Ask a chat model; ``parameters`` are the other fields of a request."""
        return self.request(chat_request(text, **parameters), role)

    def request(self, request: ChatRequest, role: str = "model") -> asyncio.Future[Reply]:
        """Ask a chat model with a request that is made already."""
        gatherer = self._gatherers.chat.get(role)
        future = self._ask(role, gatherer, request, capability="chat")
        assert gatherer
        future.add_done_callback(partial(self._count, gatherer.backend))
        return future

    def _ask(
        self, backend: str, gatherer: Gatherer[T, R] | None, item: T, capability: str = ""
    ) -> asyncio.Future[R]:
        if gatherer is None:
            raise BackendError(f"this run has no {_BACKENDS.get(backend, backend)}")
        self.calls[capability or backend] += 1
        return gatherer.ask(item)

    def _count(self, backend: str, future: asyncio.Future[Reply]) -> None:
        if future.cancelled() or future.exception():
            return
        reply = future.result()
        usage = self.usage.setdefault(backend, Counter())
        usage["calls"] += 1
        usage["prompt_tokens"] += reply.prompt_tokens or 0
        usage["reply_tokens"] += reply.reply_tokens or 0
        usage["uncounted"] += reply.prompt_tokens is None or reply.reply_tokens is None
        if reply.finish == "length":
            usage["cut"] += 1
        for name in reply.dropped:
            usage[f"without {name}"] += 1


def chat_request(text: str | Sequence[Message], **parameters: Any) -> ChatRequest:
    """Return the request that one user message or a whole chat makes."""
    if isinstance(text, str):
        return ChatRequest.of(text, **parameters)
    return ChatRequest(tuple(text), **parameters)


def check_budget(backends: Backends, prices: Prices, budget: Budget | None) -> None:
    """Raise :class:`BackendError` where a budget cannot be kept, before anything is begun."""
    Purse(budget, prices, {}, _paid(backends))


def is_remote(backend: Any) -> bool:
    """Whether a backend is an endpoint: asked one call at a time, many at once."""
    return hasattr(backend, "avectors") or isinstance(backend, ChatModel)


def any_shared(backends: Backends) -> bool:
    """Whether other runs may take the replies of any backend."""
    return any(map(_is_shared, backends.asked()))


def _is_shared(backend: Any) -> bool:
    """Whether other runs may take a backend's replies: an endpoint's, but not a function's."""
    return is_remote(backend) and getattr(backend, "shared", True)


def _paid(backends: Backends) -> list[str]:
    """Return the names of those backends whose calls cost something: the endpoints."""
    return list(dict.fromkeys(b.name for b in backends.asked() if is_remote(b)))


_BACKENDS = {"entailment": "entailer", "embedding": "embedder"}


class _Maker:
    """Makes gatherers that share stores, endpoints and a purse."""

    def __init__(self, asking: Asking, paid: Collection[str]) -> None:
        self._asking = asking
        self.endpoints = Endpoints(asking.concurrency)
        spent = asking.own.usage("chat") if asking.own else {}
        self._purse = Purse(asking.budget, asking.prices, spent, paid)
        self.callers: list[ChatCaller | EmbeddingCaller] = []
        self.marks = Marks(asking.shared.path) if asking.shared else None

    def entailment(self, entailer: Entailer) -> Gatherer[Pair, Entailment]:
        def compute(pairs: list[Pair]) -> list[Entailment]:
            scores = np.asarray(entailer.scores(pairs), dtype=float)
            if scores.shape != (len(pairs), 3) or not np.all((scores >= 0) & (scores <= 1)):
                raise BackendError(
                    f"{entailer.name} did not return three probabilities for each pair"
                )
            if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
                raise BackendError(f"{entailer.name} returned probabilities that do not sum to 1")
            return [Entailment(*row) for row in scores.tolist()]

        codec: Codec[Pair, Entailment] = Codec(
            parts=lambda pair: pair,
            reply_to_json=_numbers,
            reply_from_json=lambda text: Entailment(*json.loads(text)),
        )
        return self._gatherer("entailment", entailer, compute, codec)

    def embedding(self, embedder: Embedder | AsyncEmbedder) -> Gatherer[str, Vector]:
        codec: Codec[str, Vector] = Codec(
            parts=lambda text: (text,),
            reply_to_json=lambda vector: _numbers(vector.tolist()),
            reply_from_json=lambda text: np.array(json.loads(text), dtype=np.float32),
        )
        if not isinstance(embedder, Embedder):  # then it is an endpoint
            endpoint = self.endpoints.of(embedder, embedder.endpoint_limits)
            remote = EmbeddingCaller(embedder, endpoint, self._purse)
            self.callers.append(remote)
            return self._gatherer("embedding", embedder, remote, codec, remote=True)

        def compute(texts: list[str]) -> list[Vector]:
            vectors = np.asarray(embedder.vectors(texts), dtype=np.float32)
            if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
                raise BackendError(f"{embedder.name} did not return a vector for each text")
            return list(vectors)

        return self._gatherer("embedding", embedder, compute, codec)

    def chat(self, model: ChatModel | LocalChatModel) -> Gatherer[ChatRequest, Reply]:
        keep = keeper(model.name, self._calls(model))
        if isinstance(model, LocalChatModel):
            return self._gatherer("chat", model, checked_replies(model, keep), CHAT)
        endpoint = self.endpoints.of(model, limits_of(model))
        caller = ChatCaller(model, endpoint, self._purse, keep, self._asking.tally)
        self.callers.append(caller)
        return self._gatherer("chat", model, caller, CHAT, remote=True, items=1)

    def similarity(
        self, similarity: Similarity, vectors: Gatherer[str, Vector] | None
    ) -> Gatherer[Pair, float]:
        """Make one; ``vectors`` are those of an endpoint that the similarity is made of."""

        def checked(found: Any, pairs: list[Pair]) -> list[float]:
            scores = np.asarray(found, dtype=float)
            if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
                raise BackendError(f"{similarity.name} did not return a number for each pair")
            numbers: list[float] = scores.tolist()
            return numbers

        def compute(pairs: list[Pair]) -> list[float]:
            return checked(similarity.scores(pairs), pairs)

        async def by_vectors(pairs: list[Pair]) -> tuple[list[float], float]:
            assert vectors
            found = await similarity.ascores(pairs, vectors.ask)  # type: ignore[attr-defined]
            return checked(found, pairs), 0.0  # the seconds count for the vectors

        codec: Codec[Pair, float] = Codec(
            parts=lambda pair: pair,
            reply_to_json=lambda score: _numbers([score]),
            reply_from_json=lambda text: float(json.loads(text)[0]),
        )
        if vectors:  # one pair at a time: the vectors are what is gathered
            return self._gatherer("similarity", similarity, by_vectors, codec, remote=True, items=1)
        return self._gatherer("similarity", similarity, compute, codec)

    def _calls(self, backend: Any) -> Calls:
        asking = self._asking
        if asking.shared and self.marks and _is_shared(backend):
            return MarkedCalls(asking.own, asking.shared, self.marks)
        return Calls(asking.own)

    def _gatherer(
        self,
        capability: str,
        backend: Any,
        compute: Any,
        codec: Codec[T, R],
        *,
        remote: bool = False,
        items: int | None = None,
    ) -> Gatherer[T, R]:
        limits = getattr(backend, "limits", BatchLimits())
        return Gatherer(
            capability,
            backend.name,
            compute,
            codec,
            limits=BatchLimits(items=items, tokens=None) if items else limits,
            store=self._calls(backend) if getattr(backend, "stored", True) else None,
            policy=self._asking.policy,
            remote=remote,
        )


def _numbers(values: Sequence[float]) -> str:
    return json.dumps([round(value, DIGITS) for value in values])
