"""The mathematics of harmonic robustness (Kersting et al. 2024), on arrays.

Notation: o is the vector of the answer to the original prompt, p_1 ... p_n are those of the
answers to the perturbed prompts, S is their sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Angles", "angles", "pairwise_distance", "resampled_gammas"]

Floats = NDArray[np.float64]

ROWS = 1024
"""Samples worked on at once; what bounds the memory."""
CANCELLED = 1e-12
"""A sum shorter than this share of its parts counts as zero: its direction is rounding."""


class Angles(NamedTuple):
    """The angle between o and S, and its sine gamma; shape (...) each.

    ``defined`` is False where o or S is zero and there is no angle; gamma is 1 there and the
    angle a right one, as of vectors that have nothing in common.
    """

    gamma: Floats
    radians: Floats
    defined: NDArray[np.bool_]


def angles(original: ArrayLike, perturbed: ArrayLike) -> Angles:
    """Return gamma = sin(o, S) (Algorithm 1) and the angle itself, in radians from 0 to pi.

    The sine falls again beyond a right angle, which the angle does not. The part of S across o is
    computed from the differences p_i - o, which are exact for vectors near each other: equal
    answers give exactly 0, and a small gamma keeps all of its digits, which sqrt(1 - cos^2) does
    not.

    Args:
        original: shape (..., d).
        perturbed: shape (..., n, d), n of 1 or more.

    Raises:
        ValueError: shapes that do not fit.
    """
    o, p = np.asarray(original), np.asarray(perturbed)
    if p.ndim != o.ndim + 1 or p.shape[:-2] != o.shape[:-1] or p.shape[-1] != o.shape[-1]:
        raise ValueError(f"expected (..., d) and (..., n, d), got {o.shape} and {p.shape}")
    if p.shape[-2] == 0:
        raise ValueError("expected one perturbed answer or more")
    shape = o.shape[:-1]
    flat_o = o.reshape(-1, o.shape[-1])
    flat_p = p.reshape(-1, *p.shape[-2:])
    found = [np.empty(len(flat_o)), np.empty(len(flat_o)), np.empty(len(flat_o), dtype=bool)]
    for start in range(0, len(flat_o), ROWS):
        block = slice(start, start + ROWS)
        for column, values in zip(found, _angles(flat_o[block], flat_p[block]), strict=True):
            column[block] = values
    return Angles(*(column.reshape(shape) for column in found))


def _angles(original: NDArray[np.floating], perturbed: NDArray[np.floating]) -> Angles:
    """Return the angles of a block: shapes (m, d) and (m, n, d)."""
    o = original.astype(np.float64)
    p = perturbed.astype(np.float64)
    squared = np.einsum("md,md->m", o, o)
    dots = np.einsum("mnd,md->m", p, o)
    towards = np.where(dots < 0, -1.0, 1.0)[:, None] * o
    difference = (p - towards[:, None, :]).sum(axis=1)
    across = np.linalg.norm(_across(difference, o, squared), axis=1)
    along = dots / np.sqrt(np.where(squared > 0, squared, 1.0))
    length = np.hypot(along, across)
    whole = np.linalg.norm(p, axis=2).sum(axis=1)
    defined = (squared > 0) & (length > CANCELLED * whole)
    gamma = np.where(defined, across / np.where(defined, length, 1.0), 1.0)
    radians = np.where(defined, np.arctan2(across, along), np.pi / 2)
    return Angles(gamma, radians, defined)


def _across(vectors: Floats, o: Floats, squared: Floats) -> Floats:
    """Return the parts of (m, d) vectors that are orthogonal to o, projected twice.

    The second projection removes what rounding left of a long part along o.
    """
    safe = np.where(squared > 0, squared, 1.0)
    for _ in range(2):
        vectors = vectors - (np.einsum("md,md->m", vectors, o) / safe)[:, None] * o
    return vectors


def resampled_gammas(
    original: ArrayLike, perturbed: ArrayLike, rng: np.random.Generator, replicates: int = 1000
) -> Floats:
    """Return gamma for resamples of the perturbations with replacement, shape (replicates,).

    Args:
        original: shape (d,). perturbed: shape (n, d).

    A resample whose sum is zero gives 1. All depends on the products of the vectors alone, so a
    resample costs n^2 operations and not n d.
    """
    o, p = np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    n = len(p)
    squared = float(o @ o)
    if squared == 0:
        return np.ones(replicates)
    difference = _across(p - o, np.broadcast_to(o, p.shape), np.full(n, squared))
    products = difference @ difference.T
    along = p @ o / np.sqrt(squared)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=replicates).astype(np.float64)
    across = np.sqrt(np.maximum(np.einsum("bi,ij,bj->b", weights, products, weights), 0.0))
    length = np.hypot(weights @ along, across)
    whole = weights @ np.linalg.norm(p, axis=1)
    zero = length <= CANCELLED * whole
    return np.asarray(np.where(zero, 1.0, across / np.where(zero, 1.0, length)))


def pairwise_distance(vectors: ArrayLike) -> float:
    """Return the mean of 1 - v_i . v_j over all pairs of unit vectors, shape (n, d).

    Equal vectors give exactly 0; a single one has no pair and gives 0.
    """
    v = np.asarray(vectors, dtype=np.float64)
    n = len(v)
    if n < 2:
        return 0.0
    from_first = v - v[0]
    spread = (
        n * np.einsum("nd,nd->", from_first, from_first) - np.square(from_first.sum(axis=0)).sum()
    )
    return float(max(spread, 0.0) / (n * (n - 1)))
