"""LlamaIndex's LLMs, embeddings, retrievers and indexes as backends of trustassay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llama_index.core import Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.evaluation.trust_eval.nodes import documents_of

from trustassay.core.capabilities import ChatRequest, EndpointLimits, Passage, Reply
from trustassay.errors import BackendError

__all__ = [
    "Embedding",
    "IndexRetriever",
    "LlamaIndexLLM",
    "as_embedder",
    "as_model",
    "as_retriever",
    "settings_llm",
]


AT_ONCE = 16
"""Maximum number of calls of an LLM in progress."""


def settings_llm() -> LLM | None:
    """Return ``Settings.llm`` if somebody set it; reading the property would load a default."""
    return Settings._llm


class LlamaIndexLLM:
    """A chat model of trustassay that asks a LlamaIndex LLM, with the LLM's own settings.

    Temperature, length, seed and stops of a request have no effect, and the reply says so. Replies
    are not shared between runs, since the LLM's name does not identify its settings.
    """

    shared = False
    limits = EndpointLimits(concurrency=AT_ONCE, tries=1)

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        # Its own pool: the loop's default one may be small and busy.
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="trustassay-llm")
        self.name = f"llama-index:{type(llm).__name__}:{llm.metadata.model_name}"

    async def reply(self, request: ChatRequest) -> Reply:
        """Ask once; raises :class:`BackendError`."""
        messages = [ChatMessage(role=m.role, content=m.content) for m in request.messages]
        loop = asyncio.get_running_loop()
        try:
            # In a thread: an asynchronous client belongs to the event loop in which it was first
            # used, and an LLM without one would block this loop.
            replies = [
                await loop.run_in_executor(self._threads, self._llm.chat, messages)
                for _ in range(request.n)
            ]
            texts = [reply.message.content or "" for reply in replies]
        except Exception as error:
            raise BackendError(f"{self.name}: {type(error).__name__}: {error}") from error
        request_settings = {
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "stop": request.stop or None,
            "logprobs": request.logprobs,
        }
        dropped = tuple(name for name, value in request_settings.items() if value is not None)
        return Reply(texts[0], others=tuple(texts[1:]), dropped=dropped)


class Embedding:
    """An embedder of trustassay that asks a LlamaIndex embedding."""

    def __init__(self, embedding: BaseEmbedding) -> None:
        self._embedding = embedding
        self.name = f"llama-index:{type(embedding).__name__}:{embedding.model_name}"

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return shape (n, d) for n texts, each of length 1; raises :class:`BackendError`."""
        try:
            embedded = self._embedding.get_text_embedding_batch(list(texts))
        except Exception as error:
            raise BackendError(f"{self.name}: {type(error).__name__}: {error}") from error
        rows = np.asarray(embedded, dtype=np.float32)
        # LlamaIndex does not promise unit vectors.
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.all(lengths > 0):
            raise BackendError(f"{self.name}: returned a vector of zeros")
        return rows / lengths


class IndexRetriever:
    """A retriever of trustassay that asks a LlamaIndex index or retriever."""

    def __init__(self, source: BaseIndex[Any] | BaseRetriever) -> None:
        self._source = source
        self.name = f"llama-index:{type(source).__name__}"

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return the k best passages of each query, best first; raises :class:`BackendError`.

        A retriever returns as many as it was configured for; the first k of these are used.
        """
        source = self._source
        if isinstance(source, BaseIndex):
            # An index can return exactly k; a retriever has its own number.
            source = source.as_retriever(similarity_top_k=k)
        try:
            return [self._retrieve(source, query)[:k] for query in queries]
        except Exception as error:
            raise BackendError(f"{self.name}: {type(error).__name__}: {error}") from error

    def _retrieve(self, source: BaseRetriever, query: str) -> list[Passage]:
        nodes = source.retrieve(query)
        return [
            Passage(d["id"], d["text"], d.get("title", ""), float(n.score or 0.0))
            for n, d in zip(nodes, documents_of(nodes), strict=True)
        ]


def as_model(model: Any) -> Any:
    """Return the chat model of an LLM; what trustassay reads by itself stays as it is."""
    # URIs and models of trustassay pass through unchanged.
    return LlamaIndexLLM(model) if isinstance(model, LLM) else model


def as_embedder(embedder: Any) -> Any:
    """Return the embedder of an embedding; what trustassay reads by itself stays as it is."""
    return Embedding(embedder) if isinstance(embedder, BaseEmbedding) else embedder


def as_retriever(retriever: Any) -> Any:
    """Return the retriever of an index or retriever; anything else stays as it is."""
    return (
        IndexRetriever(retriever) if isinstance(retriever, BaseIndex | BaseRetriever) else retriever
    )
