"""How much each document supports a sentence: by entailment, by vectors, or by shared words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from trustassay.capabilities import Models, Passage
from trustassay.retrieval.bm25 import Bm25
from trustassay.sample import Document

__all__ = ["SUPPORTS", "THRESHOLDS", "Scores", "Support", "premise"]

Scores = NDArray[np.float64]
Support = Callable[[Sequence[Document], Sequence[str], Models], Awaitable[Scores]]
"""Takes an answer's documents and sentences; returns scores, shape (sentences, documents)."""

THRESHOLDS = {"entailment": 0.5, "embedding": 0.5, "bm25": 0.0}
"""A document is cited if its score is at least this, and above 0."""


def premise(document: Document) -> str:
    """Return a passage as entailment reads it, in the default profile of the grounding metric."""
    return f"Title: {document.title}\n{document.text}" if document.title else document.text


async def by_entailment(
    documents: Sequence[Document], sentences: Sequence[str], models: Models
) -> Scores:
    """Return the probabilities that the documents entail the sentences."""
    premises = [premise(document) for document in documents]
    replies = await asyncio.gather(*(models.entail(p, s) for s in sentences for p in premises))
    shape = len(sentences), len(documents)
    return np.array([reply.entailment for reply in replies], dtype=float).reshape(shape)


async def by_embedding(
    documents: Sequence[Document], sentences: Sequence[str], models: Models
) -> Scores:
    """Return the cosines of the vectors of sentences and documents."""
    texts = [*sentences, *map(premise, documents)]
    vectors = np.array(await asyncio.gather(*map(models.embed, texts)), dtype=float)
    products: Scores = vectors[: len(sentences)] @ vectors[len(sentences) :].T
    return products


async def by_bm25(documents: Sequence[Document], sentences: Sequence[str], _: Models) -> Scores:
    """Return BM25 scores among the answer's documents, 0 where they share no word."""
    index = Bm25.of(Passage(str(i), d.text, d.title) for i, d in enumerate(documents))
    scores = np.zeros((len(sentences), len(documents)))
    for row, found in zip(scores, index.search(sentences, len(documents)), strict=True):
        for passage in found:
            row[int(passage.id)] = passage.score
    return scores


SUPPORTS: dict[str, Support] = {
    "entailment": by_entailment,
    "embedding": by_embedding,
    "bm25": by_bm25,
}
