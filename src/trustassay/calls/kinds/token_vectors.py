"""The vectors of a text's tokens, for measures that match texts token by token."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import numpy as np

from trustassay.backends import resolve
from trustassay.calls.capability import Capability
from trustassay.calls.keeping import Codec
from trustassay.calls.replies import cleaned
from trustassay.capabilities import TokenEmbedder, TokenVectors
from trustassay.errors import BackendError

__all__ = ["TOKEN_VECTORS"]


def compute(embedder: TokenEmbedder, texts: list[str]) -> Sequence[TokenVectors]:
    """Return the tokens and vectors of each text.

    Raises:
        BackendError: the backend returned something else.
    """
    found = embedder.token_vectors(texts)
    sound = len(found) == len(texts) and all(
        one.vectors.ndim == 2
        and len(one.vectors) == len(one.tokens)
        and all(0 <= place < len(one.tokens) for place in one.special)
        and np.isfinite(one.vectors).all()
        for one in found
    )
    if not sound:
        raise BackendError(f"{embedder.name} did not return a vector for each token of each text")
    return found


def to_json(found: TokenVectors) -> str:
    """Return the stored form: the vectors as base64 of little-endian 32-bit floats."""
    data = np.ascontiguousarray(found.vectors, dtype="<f4").tobytes()
    return json.dumps(
        {
            "tokens": cleaned(found.tokens),
            "special": list(found.special),
            "size": found.vectors.shape[1],
            "vectors": base64.b64encode(data).decode(),
        }
    )


def from_json(text: str) -> TokenVectors:
    """Read back what :func:`to_json` wrote."""
    content = json.loads(text)
    data = np.frombuffer(base64.b64decode(content["vectors"]), dtype="<f4")
    vectors = data.reshape(-1, content["size"])
    return TokenVectors(tuple(content["tokens"]), vectors, tuple(content["special"]))


TOKEN_VECTORS: Capability[str, TokenVectors] = Capability(
    name="token_vectors",
    stored_as="token vectors",
    backend="token embedder",
    item=lambda text: text,
    compute=compute,
    codec=Codec(parts=lambda text: (text,), reply_to_json=to_json, reply_from_json=from_json),
    stand_in=lambda _: TokenVectors(("token",), np.ones((1, 2), dtype=np.float32)),
    load=resolve.token_embedder,
    option="--token-embedder",
)
