"""``hf:ID-or-path`` as an embedder of tokens: the hidden states of a model, run on this machine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends.loading import (
    batches,
    libraries,
    load,
    longest_input,
    one_line,
    padded,
    uri,
)
from trustassay.capabilities import BatchLimits, TokenVectors
from trustassay.errors import BackendError
from trustassay.sample import clean

__all__ = ["HuggingFaceTokenEmbedder"]


class HuggingFaceTokenEmbedder:
    """Turns texts into the vectors of their tokens; built for ``hf:ID-or-path[?layer=N&...]``."""

    def __init__(
        self,
        model: str,
        *,
        layer: int | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int = 16_384,
    ) -> None:
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

        ``layer`` counts the model's blocks from 1, 0 being its input embeddings; the last one
        unless named. Other options as of :class:`~trustassay.backends.local_chat.HuggingFaceChat`.
        """
        self.name = uri(model, layer=layer, dtype=dtype)
        self.limits = BatchLimits(items=256, tokens=batch_tokens)
        self._batch_tokens, self._layer = batch_tokens, layer
        self._lock = threading.Lock()  # a fast tokenizer serves one thread at a time
        with one_line(self.name, Exception):
            self._tokenizer, self._model = load(model, "AutoModel", device, dtype)
            self._limit = longest_input(self._model, self._tokenizer)
        blocks = self._model.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= blocks:
            raise BackendError(f"{self.name}: has {blocks} layers, and no layer {layer}")

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text; may be called from several threads.

        Raises:
            BackendError: a text is longer than the model reads, or the model fails.
        """
        found: list[TokenVectors | None] = [None] * len(texts)
        with self._lock, one_line(self.name, Exception):
            inputs = [self._read(text) for text in texts]
            masks = [one.pop("special_tokens_mask") for one in inputs]
            lengths = [len(one["input_ids"]) for one in inputs]
            if self._limit is not None and max(lengths, default=0) > self._limit:
                raise BackendError(
                    f"a text of {max(lengths)} tokens is longer than the {self._limit} that this "
                    "model reads"
                )
            for batch in batches(lengths, self._batch_tokens):
                states = self._states([inputs[i] for i in batch])
                for row, i in zip(states, batch, strict=True):
                    ids = inputs[i]["input_ids"]
                    tokens = self._tokenizer.convert_ids_to_tokens(ids)
                    special = tuple(place for place, around in enumerate(masks[i]) if around)
                    found[i] = TokenVectors(tuple(tokens), row[: lengths[i]].copy(), special)
        return [one for one in found if one is not None]

    def _read(self, text: str) -> dict[str, Any]:
        return dict(self._tokenizer(clean(text), return_special_tokens_mask=True, verbose=False))

    def _states(self, inputs: Sequence[Any]) -> Any:
        """Return the hidden states, shape (n, longest, d), of texts padded on the right."""
        torch, _ = libraries()
        self._tokenizer.padding_side = "right"
        arrays = padded(inputs, self._tokenizer)
        batch = {k: torch.from_numpy(v).to(self._model.device) for k, v in arrays.items()}
        with torch.inference_mode():
            if self._layer is None:
                states = self._model(**batch).last_hidden_state
            else:
                states = self._model(**batch, output_hidden_states=True).hidden_states[self._layer]
        return np.asarray(states.float().cpu().numpy(), dtype=np.float32)
