"""An LLM and an embedding for tests, and what they read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM


class Scripted(CustomLLM):
    """An LLM that replies as a function says."""

    script: Callable[[str], str]
    prompts: list[str] = []

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.script(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        text = ""
        for word in self.script(prompt).split(" "):
            delta = f" {word}" if text else word
            text += delta
            yield CompletionResponse(text=text, delta=delta)


class WordVectors(BaseEmbedding):
    """An embedding whose vectors add those of the words: different texts are in order."""

    def _of(self, text: str) -> list[float]:
        words = [word.strip(".,?!").lower() for word in text.split()]
        # Seeded by the word: the same word has the same vector in every process.
        rows = [np.random.default_rng(zlib.crc32(w.encode())).normal(size=64) for w in words]
        return [float(x) for x in np.sum(rows, axis=0)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._of(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._of(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._of(query)


PASSAGES = {
    "The bridge": "The stone bridge was opened in 1911. It crosses the river on seven arches.",
    "The mill": "The paper mill closed in 1984. Its chimney is 40 metres high.",
    "The market": "The market is held on Saturdays. Farmers sell cheese and apples there.",
}
