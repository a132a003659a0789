"""``hf:ID-or-path`` as an embedder of texts, or of tokens, run on this machine.

Texts: a sentence-transformers model. That library cuts off a text that is longer than its model
reads. Here such a text is divided between words until its parts fit, and its vector is the mean of
theirs, weighted by their tokens. Tokens: the hidden states of a model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends import hf_loading
from trustassay.core.capabilities import TokenVectors, Vectors
from trustassay.core.sample import clean
from trustassay.errors import BackendError, install_command


class SentenceTransformerEmbedder(hf_loading.HubModel):
    """Turns texts into vectors; built for ``hf:ID-or-path[?option=value&...]``."""

    def __init__(self, model: str, **options: Any) -> None:
        """Load a model, with the options of :class:`HubModel`.

        Raises:
            BackendError: with a message of one line, if that fails.
        """
        super().__init__(**options)
        self.name = hf_loading.build_uri(model, dtype=self._dtype)
        with hf_loading.errors_in_one_line(self.name, Exception):
            self._load(model)

    def _load(self, name: str) -> None:
        """Load the model, and find out its dimensions and its limit."""
        hf_loading.import_libraries()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise BackendError(
                f"{error.name} is missing: {install_command('sentence-transformers')}"
            ) from error
        folder, _ = hf_loading.load_config(name)
        where, options = hf_loading.dtype_options(self._device, self._dtype)
        with hf_loading.safetensors_only():
            self._model: Any = SentenceTransformer(
                folder,
                device=str(where),
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, **options},
                **hf_loading.only_local(folder),
            ).eval()
        # encode() puts this prompt before each text, so its tokens count.
        prompts, default = self._model.prompts or {}, self._model.default_prompt_name
        self._prompt = prompts.get(default, "") if default else ""
        called = ("get_embedding_dimension", "get_sentence_embedding_dimension")  # new, old
        self._dimensions: int = next(
            getattr(self._model, name)() for name in called if hasattr(self._model, name)
        )
        # Models without a limit say 10^30.
        longest = self._model.max_seq_length
        self._limit = int(longest) if longest and longest < 10**9 else None

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, d), for n texts; may be called from several threads."""
        with self._lock, hf_loading.errors_in_one_line(self.name, Exception):
            parts = [self._split_to_fit(clean(text)) for text in texts]
            flat = [part for parts_of_text in parts for part in parts_of_text]
            vectors_of_parts = self._encode(flat)
        sums = np.zeros((len(texts), vectors_of_parts.shape[1]))
        owners = [owner for owner, parts_of_text in enumerate(parts) for _ in parts_of_text]
        weights = np.array([tokens for _, tokens in flat], dtype=float)
        # A text in parts has several rows, so a plain += would count only one of them.
        np.add.at(sums, owners, vectors_of_parts * weights[:, None])
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.asarray(sums / np.maximum(norms, 1e-12), dtype=np.float32)

    def _split_to_fit(self, text: str) -> list[tuple[str, int]]:
        """Return parts of a text that fit the model, each with its number of tokens."""
        tokens = len(self._model.tokenizer(self._prompt + text, verbose=False)["input_ids"])
        if self._limit is None or tokens <= self._limit or len(text) < 2:
            return [(text, tokens)]
        middle = len(text) // 2
        # Between words if possible; a text without spaces is cut in its middle.
        cut = text.rfind(" ", 1, middle)
        cut = middle if cut < 0 else cut
        return self._split_to_fit(text[:cut]) + self._split_to_fit(
            text[cut:].lstrip() or text[cut:]
        )

    def _encode(self, parts: Sequence[tuple[str, int]]) -> Vectors:
        """Return the vectors of parts, computed in batches of similar length."""
        rows: Vectors = np.zeros((len(parts), self._dimensions), dtype=np.float32)
        for batch in hf_loading.split_in_batches(
            [tokens for _, tokens in parts], self._batch_tokens
        ):
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
        """Load a model; raises :class:`BackendError`, with a message of one line, if that fails.

        Args:
            model: ID on the hub, or folder.
            layer: block of the model whose output is used, from 1; 0 is its input embeddings. By
                default the last one.
            options: those of :class:`HubModel`.
        """
        super().__init__(**options)
        self.name, self._layer = hf_loading.build_uri(model, layer=layer, dtype=self._dtype), layer
        with hf_loading.errors_in_one_line(self.name, Exception):
            _, transformers = hf_loading.import_libraries()
            folder, _ = hf_loading.load_config(model)
            # Models saved with the head they were trained with have no pooler, which is not read.
            self._model, self._tokenizer = hf_loading.load(
                folder, transformers.AutoModel, self._device, self._dtype, unused=("pooler.",)
            )
            self._limit = hf_loading.find_max_input_tokens(self._model, self._tokenizer)
        blocks = self._model.config.num_hidden_layers
        if layer is not None and not 0 <= layer <= blocks:
            raise BackendError(f"{self.name}: expected a layer from 0 to {blocks}, got {layer}")

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text; may be called from several threads.

        Raises:
            BackendError: a text is longer than the model reads, or the model fails.
        """
        result: list[TokenVectors | None] = [None] * len(texts)
        with self._lock, hf_loading.errors_in_one_line(self.name, Exception):
            tokenizer_options = {"return_special_tokens_mask": True, "verbose": False}
            inputs = [dict(self._tokenizer(clean(text), **tokenizer_options)) for text in texts]
            masks = [features.pop("special_tokens_mask") for features in inputs]
            lengths = [len(features["input_ids"]) for features in inputs]
            # A text of tokens cannot be averaged over parts, so it must fit.
            if self._limit is not None and max(lengths, default=0) > self._limit:
                raise BackendError(
                    f"a text of {max(lengths)} tokens exceeds the model's limit of {self._limit} "
                    "tokens"
                )
            for batch in hf_loading.split_in_batches(lengths, self._batch_tokens):
                states = self._compute_states([inputs[i] for i in batch])
                for row, i in zip(states, batch, strict=True):
                    ids = inputs[i]["input_ids"]
                    tokens = self._tokenizer.convert_ids_to_tokens(ids)
                    special = tuple(position for position, around in enumerate(masks[i]) if around)
                    result[i] = TokenVectors(tuple(tokens), row[: lengths[i]].copy(), special)
        return [features for features in result if features is not None]

    def _compute_states(self, inputs: Sequence[Any]) -> Any:
        """Return the hidden states, shape (n, longest, d), of texts padded on the right."""
        torch, _ = hf_loading.import_libraries()
        self._tokenizer.padding_side = "right"
        batch = hf_loading.pad_inputs(inputs, self._tokenizer, self._model.device)
        with torch.inference_mode():
            if self._layer is None:
                states = self._model(**batch).last_hidden_state
            else:
                states = self._model(**batch, output_hidden_states=True).hidden_states[self._layer]
        return np.asarray(states.float().cpu().numpy(), dtype=np.float32)
