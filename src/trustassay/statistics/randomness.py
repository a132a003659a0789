"""Generators that depend on what they are for, never on order, concurrency or worker."""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["generator"]


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """Return the generator of (seed, purpose...), for instance (0, sample id, "bootstrap")."""
    text = "\x1f".join(purpose).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])
