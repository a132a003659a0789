"""Vectors of tokens by the embedded model: what its graph takes the mean of for a text's vector."""

from collections.abc import Sequence

import numpy as np

from trustassay.backends.embedded import (
    EMBEDDED_AT_ONCE,
    Tokens,
    card,
    check_version,
    encoder,
    overlapping,
)
from trustassay.capabilities import TokenVectors

STATES = "/LayerNorm_12/LayerNormalization_output_0"
"""The value of the graph that holds the last layer's vectors, shape (1, tokens, 384)."""


class EmbeddedTokenEmbedder:
    """The last layer of all-MiniLM-L6-v2 as int8: 384 numbers a token; ``threads=None`` uses all
    cores.

    A text beyond 256 tokens is read in consecutive pieces of that length: nothing is cut off.

    Raises:
        BackendError: the weights or the packages that run them are missing or damaged.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.name = f"embedded:{card()['version']}"
        self._encoder = encoder("embedder", threads, output=STATES)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens and vectors of each text, with the special token at both ends."""
        tokenizer = self._encoder.tokenizer
        first, last = tokenizer.encode("").ids
        encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        size = EMBEDDED_AT_ONCE - 2
        pieces = [overlapping(one.ids, size, size) for one in encoded]
        read = [[first, *ids, last] for group in pieces for ids in group]
        states = iter(self._encoder.each([Tokens(ids, [0] * len(ids)) for ids in read]))
        result = []
        for one, group in zip(encoded, pieces, strict=True):
            rows = [next(states)[0] for _ in group]
            own = [row[1:-1] for row in rows]
            vectors = np.concatenate([rows[0][:1], *own, rows[-1][-1:]])
            tokens = ("[CLS]", *one.tokens, "[SEP]")
            result.append(TokenVectors(tokens, vectors, (0, len(tokens) - 1)))
        return result


def embedded_tokens(version: str = "", threads: int | None = None) -> EmbeddedTokenEmbedder:
    """Return the model; raises as :func:`~trustassay.backends.embedded.check_version`."""
    check_version(version)
    return EmbeddedTokenEmbedder(threads)
