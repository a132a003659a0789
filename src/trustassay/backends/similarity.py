"""Similarities of two texts, on top of the other capabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trustassay.backends.lexical import overlap
from trustassay.capabilities import BatchLimits, Embedder, Entailer

__all__ = ["ConsistencySimilarity", "CosineSimilarity", "LexicalSimilarity"]

Pairs = Sequence[tuple[str, str]]
Scores = NDArray[np.float64]


class CosineSimilarity:
    """Cosine of the texts' vectors, -1..1; symmetric."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"cosine of {embedder.name}"
        self.limits: BatchLimits = getattr(embedder, "limits", BatchLimits())

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference); each different text is embedded once."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        if not texts:
            return np.zeros(0)
        place = {text: row for row, text in enumerate(texts)}
        vectors = self._embedder.vectors(texts).astype(float)
        firsts, seconds = ([place[pair[side]] for pair in pairs] for side in (0, 1))
        scores: Scores = np.einsum("nd,nd->n", vectors[firsts], vectors[seconds])
        return scores


class ConsistencySimilarity:
    """Probability that the reference (premise) entails the text, 0..1; not symmetric."""

    def __init__(self, entailer: Entailer) -> None:
        self._entailer = entailer
        self.name = f"consistency by {entailer.name}"
        self.limits: BatchLimits = getattr(entailer, "limits", BatchLimits())
        self.stored: bool = getattr(entailer, "stored", True)

    def scores(self, pairs: Pairs) -> Scores:
        """Return shape (n,) for n (text, reference)."""
        return self._entailer.scores([(reference, text) for text, reference in pairs])[:, 0]


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
