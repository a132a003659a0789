"""How much a text says the same as a reference."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from trustassay.backends import DEFAULT_SIMILARITY, resolve
from trustassay.calls.capability import Capability, Remote, Shared, numbers
from trustassay.calls.keeping import Codec
from trustassay.capabilities import QuestionSimilarity, Similarity
from trustassay.errors import BackendError

__all__ = ["COMPARE", "reads_question", "vectors_behind"]

Texts = tuple[str, ...]
"""A text and a reference, and the question where the similarity reads it."""


def compute(similarity: Any, pairs: list[Texts]) -> list[float]:
    """Return a number for each pair of text and reference.

    Raises:
        BackendError: the similarity returned something else.
    """
    return _checked(similarity, similarity.scores(pairs), pairs)


def reads_question(similarity: Any) -> bool:
    """Whether a similarity is told the question, too."""
    return bool(getattr(similarity, "reads_question", False))


def vectors_behind(similarity: Any) -> Any | None:
    """Return the embedding endpoint by whose vectors a similarity compares, if it does."""
    return getattr(similarity, "endpoint_embedder", None)


def remote(similarity: Any, shared: Shared) -> Remote | None:
    """Return how a similarity by an endpoint's vectors asks for them: gathered, like any other."""
    behind = vectors_behind(similarity)
    if behind is None:
        return None
    vectors = shared.gatherer("embed", behind)

    async def by_vectors(pairs: list[Texts]) -> tuple[list[float], float]:
        found = await similarity.ascores(pairs, vectors.ask)
        return _checked(similarity, found, pairs), 0.0  # the seconds count for the vectors

    return by_vectors


def _checked(
    similarity: Similarity | QuestionSimilarity, found: Any, pairs: list[Texts]
) -> list[float]:
    scores = np.asarray(found, dtype=float)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise BackendError(f"{similarity.name} did not return a number for each pair")
    numbers: list[float] = scores.tolist()
    return numbers


COMPARE: Capability[Texts, float] = Capability(
    name="compare",
    stored_as="similarity",
    backend="similarity",
    item=lambda *texts: texts,
    compute=compute,
    codec=Codec(
        parts=lambda pair: pair,
        reply_to_json=lambda score: numbers([score]),
        reply_from_json=lambda text: float(json.loads(text)[0]),
    ),
    stand_in=lambda _: 0.5,
    load=resolve.similarity,
    default=DEFAULT_SIMILARITY,
    option="--similarity",
    remote=remote,
    remote_items=1,  # one pair at a time: the vectors are what is gathered
)
