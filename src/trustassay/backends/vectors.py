"""Scales the vectors that embedders return to length 1: dot products of them are then cosines."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trustassay.backends.chat_text import shorten
from trustassay.core.capabilities import Vectors
from trustassay.errors import BackendError
from trustassay.text.numbers import amount

UNIT_TOLERANCE = 1e-4
"""Deviation from length 1 that is rounding: of 32-bit numbers, and of the decimals of a store."""


def scale_to_unit(name: str, texts: Sequence[str], returned: Any) -> Vectors:
    """Return the vectors of n texts with length 1, shape (n, d).

    Vectors that have it stay as they are, to the last bit.

    Args:
        name: of the embedder, for messages.
        texts: the texts. returned: what it returned for them.

    Raises:
        BackendError: not a vector of finite numbers for each text, or one of length 0.
    """
    message = f"{name}: expected {amount(len(texts), 'vector')} of finite numbers"
    try:
        vectors = np.asarray(returned, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BackendError(f"{message}: {error}") from None
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise BackendError(f"{message}, got an array of shape {vectors.shape}")
    # In 64 bits, since squares of large numbers overflow in 32.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not lengths.all():
        place = int(np.flatnonzero(lengths == 0)[0])
        raise BackendError(
            f"{name} returned a vector of length 0 for text {place + 1} of {len(texts)}, "
            f"{shorten(texts[place], 60)!r}, so it has no cosine"
        )
    is_off = np.abs(lengths - 1) > UNIT_TOLERANCE
    if is_off.any():
        vectors = vectors.copy()
        vectors[is_off] = (vectors[is_off] / lengths[is_off, None]).astype(np.float32)
    return vectors
