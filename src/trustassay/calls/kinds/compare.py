"""How much a text says the same as a reference."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from trustassay.backends import DEFAULT_SIMILARITY, resolve
from trustassay.calls.capability import DIGITS, Capability, Through
from trustassay.calls.keeping import Codec
from trustassay.calls.kinds.entail import chat_behind
from trustassay.capabilities import Entailment, QuestionSimilarity, Similarity
from trustassay.errors import BackendError

__all__ = ["COMPARE", "reads_question"]

Texts = tuple[str, ...]
"""A text and a reference, and the question where the similarity reads it."""


def compute(similarity: Any, pairs: list[Texts]) -> list[float]:
    """Return a number for each pair of text and reference.

    Those of models are rounded: their last digits depend on what else is in a batch. Those of a
    similarity that says it is ``exact`` are not.

    Raises:
        BackendError: the similarity returned something else.
    """
    return _checked(similarity, similarity.scores(pairs), pairs)


def reads_question(similarity: Any) -> bool:
    """Return whether a similarity reads the question."""
    return bool(getattr(similarity, "reads_question", False))


def through(similarity: Any) -> Through | None:
    """Return how a similarity asks an endpoint's vectors, or an entailer that asks a chat model."""

    async def by_vectors(pair: Texts, ask: Callable[[str], Awaitable[Any]]) -> float:
        return _checked(similarity, await similarity.ascores([pair], ask), [pair])[0]

    async def by_entailment(pair: Texts, ask: Callable[[Texts], Awaitable[Entailment]]) -> float:
        text, reference = pair
        return (await ask((reference, text))).entailment

    if embedder := getattr(similarity, "endpoint_embedder", None):
        return Through("embed", embedder, by_vectors)
    entailer = getattr(similarity, "entailer", None)
    if chat_behind(entailer):
        return Through("entail", entailer, by_entailment)
    return None


def _checked(
    similarity: Similarity | QuestionSimilarity, found: Any, pairs: list[Texts]
) -> list[float]:
    scores = np.asarray(found, dtype=float)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise BackendError(f"{similarity.name} did not return a number for each pair")
    if not getattr(similarity, "exact", False):
        scores = scores.round(DIGITS)
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
        reply_to_json=lambda score: json.dumps([score]),
        reply_from_json=lambda text: float(json.loads(text)[0]),
    ),
    stand_in=lambda _: 0.5,
    load=resolve.similarity,
    default=DEFAULT_SIMILARITY,
    option="--similarity",
    through=through,
)
