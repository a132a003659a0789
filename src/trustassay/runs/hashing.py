"""Sets of texts by their 64-bit hashes: eight bytes each, so that millions fit."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["HashSet", "hash64"]

FRESH = 65_536


def hash64(*parts: str) -> int:
    """Return 64 bits of BLAKE2b of the parts."""
    text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


class HashSet:
    """A growing set of 64-bit hashes: recent ones in a set, the rest in one sorted array.

    Two different texts among a million share a hash with a probability of about 3e-8.
    """

    def __init__(self) -> None:
        self._fresh: set[int] = set()
        self._sorted: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def __contains__(self, value: int) -> bool:
        if value in self._fresh:
            return True
        if not len(self._sorted):
            return False
        place = int(np.searchsorted(self._sorted, np.uint64(value)))
        return place < len(self._sorted) and int(self._sorted[place]) == value

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)

    def add(self, value: int) -> None:
        """Put a hash in."""
        self._fresh.add(value)
        if len(self._fresh) >= FRESH:
            self._merge()

    def _merge(self) -> None:
        fresh = np.fromiter(self._fresh, dtype=np.uint64, count=len(self._fresh))
        self._sorted = np.union1d(self._sorted, fresh)
        self._fresh.clear()
