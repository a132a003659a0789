"""The questions nearest to a question: exact, in blocks, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK_BYTES", "Neighbours", "nearest", "random_others"]

Vectors = NDArray[np.float32]
BLOCK_BYTES = 64_000_000
"""Memory of the similarities that are looked at together."""
ROUNDING = 1e-6
"""A similarity at the bound may be this far above it: vectors have single precision."""


class Neighbours(NamedTuple):
    """Places in the pool, nearest first, and their similarities; -1 and 0 where there are fewer.

    Both have shape (n, k).
    """

    places: NDArray[np.int64]
    similarities: NDArray[np.float32]


def nearest(
    queries: Vectors,
    pool: Vectors,
    k: int,
    *,
    max_similarity: float = 1.0,
    itself: Sequence[int] | NDArray[np.int64] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Neighbours:
    """Return the k nearest vectors of the pool for each query, by cosine.

    Args:
        queries: unit vectors, shape (n, d). pool: unit vectors, shape (m, d).
        max_similarity: what is more similar than this is passed over (section 4.1 of the paper
            takes 0.8, inclusive, for random questions).
        itself: for each query its own place in the pool, which is passed over; -1 for none.
        block_bytes: bounds the memory, apart from the vectors and the result.

    Of equally similar ones the earlier place comes first, so the result does not depend on blocks.
    """
    n, m = len(queries), len(pool)
    k = min(k, m)
    places = np.full((n, k), -1, dtype=np.int64)
    found = np.zeros((n, k), dtype=np.float32)
    if not (n and k):
        return Neighbours(places, found)
    own = np.full(n, -1) if itself is None else np.asarray(itself, dtype=np.int64)
    rows = max(1, block_bytes // (8 * m))  # the similarities, and the order among them
    for start in range(0, n, rows):
        alike = queries[start : start + rows] @ pool.T
        alike[alike > max_similarity + ROUNDING] = -np.inf
        here = own[start : start + rows]
        alike[np.flatnonzero(here >= 0), here[here >= 0]] = -np.inf
        for row, values in enumerate(alike):
            order = _largest(values, k)
            order = order[np.isfinite(values[order])]
            places[start + row, : len(order)] = order
            found[start + row, : len(order)] = values[order]
    return Neighbours(places, found)


def _largest(values: Vectors, k: int) -> NDArray[np.int64]:
    """Return the places of the k largest values, largest first, the earlier of equal ones."""
    if k < len(values):
        bound = np.partition(values, len(values) - k)[len(values) - k]
        candidates = np.flatnonzero(values >= bound)
    else:
        candidates = np.arange(len(values))
    return np.asarray(candidates[np.argsort(-values[candidates], kind="stable")][:k])


def random_others(
    query: Vectors,
    pool: Vectors,
    k: int,
    rng: np.random.Generator,
    *,
    max_similarity: float = 1.0,
    itself: int = -1,
) -> Neighbours:
    """Return k places of the pool at random, without repetition, none more similar than allowed.

    Shapes as in :func:`nearest` with n = 1; ``query`` has shape (d,).
    """
    k = min(k, len(pool))
    places = np.full((1, k), -1, dtype=np.int64)
    found = np.zeros((1, k), dtype=np.float32)
    taken = 0
    for place in rng.permutation(len(pool)).tolist() if k else ():
        alike = float(query @ pool[place])
        if place == itself or alike > max_similarity + ROUNDING:
            continue
        places[0, taken], found[0, taken] = place, alike
        taken += 1
        if taken == k:
            break
    return Neighbours(places, found)
