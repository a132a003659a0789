"""The vector of a text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trustassay.backends import DEFAULT_EMBEDDER, resolve
from trustassay.calls.capability import Capability, Remote, Shared, numbers
from trustassay.calls.endpoints import EmbeddingCaller
from trustassay.calls.keeping import text_codec
from trustassay.capabilities import Embedder
from trustassay.errors import BackendError

__all__ = ["EMBED"]

Vector = NDArray[np.float32]


def compute(embedder: Embedder, texts: list[str]) -> list[Vector]:
    """Return a vector for each text.

    Raises:
        BackendError: the embedder returned something else.
    """
    vectors = np.asarray(embedder.vectors(texts), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise BackendError(f"{embedder.name} did not return a vector for each text")
    return list(vectors)


def remote(embedder: Any, shared: Shared) -> Remote | None:
    """Return how an embedding endpoint is asked."""
    if isinstance(embedder, Embedder):
        return None
    endpoint = shared.endpoints.of(embedder, embedder.endpoint_limits)
    return EmbeddingCaller(embedder, endpoint, shared.ledger)


EMBED: Capability[str, Vector] = Capability(
    name="embed",
    stored_as="embedding",
    backend="embedder",
    item=str,
    compute=compute,
    codec=text_codec(
        lambda vector: numbers(vector.tolist()),
        lambda text: np.array(json.loads(text), dtype=np.float32),
    ),
    stand_in=lambda _: np.ones(2, dtype=np.float32) / np.sqrt(np.float32(2)),
    load=resolve.embedder,
    default=DEFAULT_EMBEDDER,
    option="--embedder",
    remote=remote,
)
