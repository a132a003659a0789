"""``hf:ID-or-path`` as an embedder: a sentence-transformers model, run on this machine.

sentence-transformers cuts a text that is longer than its model reads. Here such a text is divided
between words until its parts fit, and its vector is the mean of theirs, weighed by their tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends.loading import (
    batches,
    config_of,
    dtype_options,
    libraries,
    one_line,
    only_local,
    safetensors_only,
    uri,
)
from trustassay.capabilities import BatchLimits, Vectors
from trustassay.errors import BackendError
from trustassay.sample import clean

__all__ = ["SentenceTransformerEmbedder"]


class SentenceTransformerEmbedder:
    """Turns texts into vectors; built for ``hf:ID-or-path[?option=value&...]``."""

    def __init__(
        self,
        model: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int = 16_384,
    ) -> None:
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

        Options as of :class:`~trustassay.backends.local_chat.HuggingFaceChat`.
        """
        self.name = uri(model, dtype=dtype)
        self.limits = BatchLimits(items=256, tokens=batch_tokens)
        self._batch_tokens = batch_tokens
        self._lock = threading.Lock()  # a fast tokenizer serves one thread at a time
        with one_line(self.name, Exception):
            self._open(model, device, dtype)

    def _open(self, name: str, device: str | None, dtype: str | None) -> None:
        libraries()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise BackendError(
                f"{error.name} is missing: pip install 'trustassay[sentence-transformers]'"
            ) from error
        folder, _ = config_of(name)
        where, options = dtype_options(device, dtype)
        with safetensors_only():
            self._model: Any = SentenceTransformer(
                folder,
                device=str(where),
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, **options},
                **only_local(folder),
            ).eval()
        prompts, default = self._model.prompts or {}, self._model.default_prompt_name
        self._prompt = prompts.get(default, "") if default else ""
        called = ("get_embedding_dimension", "get_sentence_embedding_dimension")  # new, old
        self._dimensions: int = next(
            getattr(self._model, name)() for name in called if hasattr(self._model, name)
        )
        longest = self._model.max_seq_length
        self._limit = int(longest) if longest and longest < 10**9 else None

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), for n texts; may be called from several threads.

        Raises:
            BackendError: the model fails.
        """
        with self._lock, one_line(self.name, Exception):
            parts = [self._parts(clean(text)) for text in texts]
            flat = [part for own in parts for part in own]
            made = self._encoded(flat)
        sums = np.zeros((len(texts), made.shape[1]))
        owners = [owner for owner, own in enumerate(parts) for _ in own]
        weights = np.array([tokens for _, tokens in flat], dtype=float)
        np.add.at(sums, owners, made * weights[:, None])
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.maximum(norms, 1e-12), dtype=np.float32)

    def _parts(self, text: str) -> list[tuple[str, int]]:
        """Return a text's parts that the model reads whole, each with its number of tokens."""
        tokens = len(self._model.tokenizer(self._prompt + text, verbose=False)["input_ids"])
        if self._limit is None or tokens <= self._limit or len(text) < 2:
            return [(text, tokens)]
        middle = len(text) // 2
        cut = text.rfind(" ", 1, middle)
        cut = middle if cut < 0 else cut
        return self._parts(text[:cut]) + self._parts(text[cut:].lstrip() or text[cut:])

    def _encoded(self, parts: Sequence[tuple[str, int]]) -> Vectors:
        rows: Vectors = np.zeros((len(parts), self._dimensions), dtype=np.float32)
        for batch in batches([tokens for _, tokens in parts], self._batch_tokens):
            rows[batch] = self._model.encode(
                [parts[i][0] for i in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return rows
