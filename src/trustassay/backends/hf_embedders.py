"""``hf:ID-or-path`` as an embedder of texts, or of tokens, run on this machine.

Texts: a sentence-transformers model. That library cuts a text that is longer than its model reads.
Here such a text is divided between words until its parts fit, and its vector is the mean of
theirs, weighed by their tokens. Tokens: the hidden states of a model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends import hf_loading
from trustassay.capabilities import TokenVectors, Vectors
from trustassay.errors import BackendError, install
from trustassay.sample import clean


class SentenceTransformerEmbedder(hf_loading.HubModel):
    """Turns texts into vectors; built for ``hf:ID-or-path[?option=value&...]``."""

    def __init__(self, model: str, **options: Any) -> None:
        """Load a model, with the options of :class:`HubModel`; raises :class:`BackendError`, in
        one line, where that is not possible."""
        super().__init__(**options)
        self.name = hf_loading.uri(model, dtype=self._dtype)
        with hf_loading.one_line(self.name, Exception):
            self._open(model)

    def _open(self, name: str) -> None:
        hf_loading.libraries()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise BackendError(
                f"{error.name} is missing: {install('sentence-transformers')}"
            ) from error
        folder, _ = hf_loading.config_of(name)
        where, options = hf_loading.dtype_options(self._device, self._dtype)
        with hf_loading.safetensors_only():
            self._model: Any = SentenceTransformer(
                folder,
                device=str(where),
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, **options},
                **hf_loading.only_local(folder),
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
        """Return unit vectors, shape (n, d), for n texts; may be called from several threads."""
        with self._lock, hf_loading.one_line(self.name, Exception):
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
        for batch in hf_loading.batches([tokens for _, tokens in parts], self._batch_tokens):
            rows[batch] = self._model.encode(
                [parts[i][0] for i in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        return rows


class HuggingFaceTokenEmbedder(hf_loading.HubModel):
    """Turns texts into the vectors of their tokens; built for ``hf:ID-or-path[?layer=N&...]``."""

    def __init__(self, model: str, *, layer: int | None = None, **options: Any) -> None:
        """Load a model; raises :class:`BackendError`, in one line, where that is not possible.

        ``layer`` counts the model's blocks from 1, 0 being its input embeddings; the last one
        unless named. Other options as of :class:`HubModel`.
        """
        super().__init__(**options)
        self.name, self._layer = hf_loading.uri(model, layer=layer, dtype=self._dtype), layer
        with hf_loading.one_line(self.name, Exception):
            _, transformers = hf_loading.libraries()
            folder, _ = hf_loading.config_of(model)
            # Models saved with the head they were trained with have no pooler, which is not read.
            self._model, self._tokenizer = hf_loading.load(
                folder, transformers.AutoModel, self._device, self._dtype, unused=("pooler.",)
            )
            self._limit = hf_loading.longest_input(self._model, self._tokenizer)
        blocks = self._model.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= blocks:
            raise BackendError(f"{self.name}: has {blocks} layers, but no layer {layer}")

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text; may be called from several threads.

        Raises:
            BackendError: a text is longer than the model reads, or the model fails.
        """
        result: list[TokenVectors | None] = [None] * len(texts)
        with self._lock, hf_loading.one_line(self.name, Exception):
            told = {"return_special_tokens_mask": True, "verbose": False}
            inputs = [dict(self._tokenizer(clean(text), **told)) for text in texts]
            masks = [one.pop("special_tokens_mask") for one in inputs]
            lengths = [len(one["input_ids"]) for one in inputs]
            if self._limit is not None and max(lengths, default=0) > self._limit:
                raise BackendError(
                    f"a text of {max(lengths)} tokens is longer than the {self._limit} that this "
                    "model reads"
                )
            for batch in hf_loading.batches(lengths, self._batch_tokens):
                states = self._states([inputs[i] for i in batch])
                for row, i in zip(states, batch, strict=True):
                    ids = inputs[i]["input_ids"]
                    tokens = self._tokenizer.convert_ids_to_tokens(ids)
                    special = tuple(place for place, around in enumerate(masks[i]) if around)
                    result[i] = TokenVectors(tuple(tokens), row[: lengths[i]].copy(), special)
        return [one for one in result if one is not None]

    def _states(self, inputs: Sequence[Any]) -> Any:
        """Return the hidden states, shape (n, longest, d), of texts padded on the right."""
        torch, _ = hf_loading.libraries()
        self._tokenizer.padding_side = "right"
        batch = hf_loading.padded(inputs, self._tokenizer, self._model.device)
        with torch.inference_mode():
            if self._layer is None:
                states = self._model(**batch).last_hidden_state
            else:
                states = self._model(**batch, output_hidden_states=True).hidden_states[self._layer]
        return np.asarray(states.float().cpu().numpy(), dtype=np.float32)
