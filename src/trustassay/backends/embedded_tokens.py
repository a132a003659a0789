"""Vectors of tokens by the embedded model: those whose mean is the vector of a text."""

from collections.abc import Sequence

import numpy as np

from trustassay.backends.embedded import (
    EMBEDDED_AT_ONCE,
    EncodedText,
    check_version,
    load_encoder,
    read_card,
    split_overlapping,
)
from trustassay.core.capabilities import TokenVectors

LAST_LAYER_OUTPUT = "/LayerNorm_12/LayerNormalization_output_0"
"""Output of the graph's last layer, shape (1, tokens, 384)."""


class EmbeddedTokenEmbedder:
    """The last layer of all-MiniLM-L6-v2 in int8: 384 numbers for each token.

    A text beyond 256 tokens is read in consecutive pieces of that length: nothing is cut off.
    ``threads=None`` uses all cores.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{read_card()['version']}"
        self._encoder = load_encoder("embedder", threads, output=LAST_LAYER_OUTPUT)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text, with the special tokens at both ends."""
        tokenizer = self._encoder.tokenizer
        first, last = tokenizer.encode("").ids
        encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        # Two places are for the special tokens.
        size = EMBEDDED_AT_ONCE - 2
        pieces = [split_overlapping(encoding.ids, size, size) for encoding in encoded]
        read = [[first, *ids, last] for group in pieces for ids in group]
        # Pieces of all texts are computed together, and read back in the same order.
        states = iter(self._encoder.each([EncodedText(ids, [0] * len(ids)) for ids in read]))
        result = []
        for encoding, group in zip(encoded, pieces, strict=True):
            rows = [next(states)[0] for _ in group]
            inner_rows = [row[1:-1] for row in rows]
            # Of the special tokens around each piece, only the first and the last are kept.
            vectors = np.concatenate([rows[0][:1], *inner_rows, rows[-1][-1:]])
            tokens = ("[CLS]", *encoding.tokens, "[SEP]")
            result.append(TokenVectors(tokens, vectors, (0, len(tokens) - 1)))
        return result


def load_token_embedder(version: str = "", threads: int | None = None) -> EmbeddedTokenEmbedder:
    """Return the model; raises as :func:`~trustassay.backends.embedded.check_version`."""
    check_version(version)
    return EmbeddedTokenEmbedder(threads)
