"""Similarities of two texts, on top of the other capabilities."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.lexical import overlap
from trustassay.backends.openai import BlockingEmbedder, OpenAIEmbedder
from trustassay.capabilities import (
    BatchLimits,
    Embedder,
    Entailer,
    TokenEmbedder,
    TokenVectors,
    Vectors,
)
from trustassay.token_matching import greedy_match

__all__ = [
    "BertScoreSimilarity",
    "ConsistencySimilarity",
    "CosineSimilarity",
    "EndpointCosineSimilarity",
    "LexicalSimilarity",
]

Pairs = Sequence[tuple[str, str]]
Scores = NDArray[np.float64]
REMEMBERED = 16_384
"""Vectors that a cosine similarity keeps; 25 MB of the embedded embedder's."""
READ_LATELY = 1024
"""Texts whose tokens' vectors BERTScore keeps; 60 MB of texts of 20 tokens by a base model."""


class CosineSimilarity:
    """Cosine of the texts' vectors, -1..1; symmetric.

    The vectors of the latest :data:`REMEMBERED` texts are kept, since a text is mostly compared
    with many.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._remembered: OrderedDict[str, Vectors] = OrderedDict()
        self.name = f"cosine:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is embedded once."""
        if not pairs:
            return np.zeros(0)
        texts = dict.fromkeys(text for pair in pairs for text in pair)
        known = [text for text in texts if text in self._remembered]
        vectors = {text: self._remembered.pop(text) for text in known}
        if new := [text for text in texts if text not in vectors]:
            vectors |= zip(new, self._embedder.vectors(new), strict=True)
        self._remembered.update(vectors)  # as the latest
        while len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)
        firsts, seconds = (np.stack([vectors[pair[side]] for pair in pairs]) for side in (0, 1))
        return _cosines(firsts, seconds)


class EndpointCosineSimilarity(CosineSimilarity):
    """The same by an embedding model behind an endpoint.

    The engine asks for the vectors itself, with ``ascores``: limited, stored and tried again like
    every other call to that endpoint.
    """

    def __init__(self, endpoint: OpenAIEmbedder) -> None:
        super().__init__(BlockingEmbedder(endpoint))
        self.endpoint_embedder = endpoint

    async def ascores(
        self, pairs: Pairs, embed: Callable[[str], Awaitable[NDArray[np.float32]]]
    ) -> Scores:
        """Return shape (n,) for n (text, reference), by the vectors that ``embed`` gives."""
        vectors = await asyncio.gather(*(embed(text) for pair in pairs for text in pair))
        return _cosines(np.stack(vectors[::2]), np.stack(vectors[1::2]))


def _cosines(firsts: Vectors, seconds: Vectors) -> Scores:
    """Return the dot products of unit vectors, shape (n,), of two times (n, d)."""
    scores: Scores = np.einsum("nd,nd->n", firsts.astype(float), seconds.astype(float))
    return scores


class BertScoreSimilarity:
    """BERTScore's F, 0..1, of the text against the reference; symmetric (Zhang et al. 2020).

    A text is read with a space before it, as by the metric ``reference``: models with byte-level
    tokenizers learnt to read a word so. A text without tokens has 0. The vectors of the latest
    :data:`READ_LATELY` texts are kept.
    """

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder = embedder
        self._read_lately: OrderedDict[str, TokenVectors] = OrderedDict()
        self.name = f"bertscore:{embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is read once."""
        texts = dict.fromkeys(f" {text.strip()}" for pair in pairs for text in pair)
        found = {text: self._read_lately.pop(text) for text in texts if text in self._read_lately}
        if new := [text for text in texts if text not in found and text.strip()]:
            found |= zip(new, self._embedder.token_vectors(new), strict=True)
        self._read_lately.update(found)  # as the latest
        while len(self._read_lately) > READ_LATELY:
            self._read_lately.popitem(last=False)
        return np.array([self._score(*(found.get(f" {t.strip()}") for t in p)) for p in pairs])

    def _score(self, one: TokenVectors | None, other: TokenVectors | None) -> float:
        if one is None or other is None:
            return 0.0
        return greedy_match(one.vectors, other.vectors, one.special, other.special).f1


class ConsistencySimilarity:
    """Probability that the reference (premise) entails the text, 0..1; not symmetric."""

    def __init__(self, entailer: Entailer) -> None:
        self.entailer = entailer
        self.name = f"consistency:{entailer.name}"
        self.limits: BatchLimits = getattr(entailer, "limits", BatchLimits())
        self.languages: tuple[str, ...] = getattr(entailer, "languages", ())
        self.stored: bool = getattr(entailer, "stored", True)

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference)."""
        return self.entailer.scores([(reference, text) for text, reference in pairs])[:, 0]


class LexicalSimilarity:
    """F1 of the content words that the texts hold of each other, 0..1; symmetric."""

    name = "lexical"
    limits = BatchLimits(items=1024, tokens=None)
    stored = False

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); 0 where they share no content word."""
        both = np.array(
            [(overlap(b, a).containment, overlap(a, b).containment) for a, b in pairs]
        ).reshape(-1, 2)
        total = both.sum(axis=1)
        scores: Scores = np.zeros(len(both))
        np.divide(2 * both.prod(axis=1), total, out=scores, where=total > 0)
        return scores
