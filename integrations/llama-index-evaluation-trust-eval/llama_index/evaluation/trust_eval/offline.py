"""Answers without a language model: sentences of the passages, cited, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends.embedded import EmbeddedEmbedder
from trustassay.runs.answering import REFUSAL_SENTENCE
from trustassay.text.sentences import load_splitter

__all__ = ["OfflineAnswerer"]


class OfflineAnswerer:
    """Quotes the sentences of the passages that are closest to the question, each with its number.

    A sentence is close enough from a cosine of ``threshold`` in trustassay's embedded sentence
    vectors; up to ``most`` are quoted, the closest first. Without any it refuses. It adds no text
    of its own: it demonstrates the evaluation, and says nothing about language models.
    """

    name = "offline-quotes/1"

    def __init__(self, threshold: float = 0.7, most: int = 2) -> None:
        self._threshold, self._most = threshold, most
        self._split = load_splitter("sentencex")
        self._embedder = EmbeddedEmbedder()

    def answer(self, question: str, documents: Sequence[Any]) -> str:
        """Return the response to a question; ``documents`` have a ``text``."""
        sentences = [
            (sentence, number)
            for number, document in enumerate(documents, 1)
            for sentence in self._split(document.text)
        ]
        if not sentences:
            return REFUSAL_SENTENCE
        vectors = self._embedder.vectors([question, *(sentence for sentence, _ in sentences)])
        closeness = vectors[1:] @ vectors[0]
        # Stable: of equal sentences the first one is quoted.
        best = np.argsort(-closeness, kind="stable")[: self._most]
        chosen = [sentences[i] for i in best if closeness[i] >= self._threshold]
        if not chosen:
            return REFUSAL_SENTENCE
        return " ".join(f"{sentence.rstrip('.!?')} [{number}]." for sentence, number in chosen)
