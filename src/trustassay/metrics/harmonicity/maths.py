"""The mathematics of harmonic robustness (Kersting et al. 2024), on arrays.

Notation: o is the vector of the answer to the original prompt, p_1 ... p_n are those of the
answers to the perturbed prompts, S is their sum.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics import Bools, Floats
from trustassay.statistics.resampling import percentile_interval

BLOCK_NUMBERS = 2**18
"""Numbers of the perturbed vectors in one block, which bounds the memory."""
CANCELLED_SHARE = 1e-12
"""A sum shorter than this share of its parts' lengths is zero: its direction is rounding error."""
MIN_QUICK_SHARE = 1e-3
"""Share of n sum |p_i| above which plain arithmetic gives r, the part of S across o, to 1e-12."""
DEKKER_SPLITTER = 2.0**27 + 1
"""Dekker's constant, which splits the 53 bits of a double into halves."""


class Angles(NamedTuple):
    """The angle between o and S; shape (...) each."""

    gamma: Floats
    """Its sine, 0 to 1; 1 where there is no angle, as of vectors with nothing in common."""
    radians: Floats
    """The angle, 0 to pi; a right one where there is none."""
    defined: Bools
    """False where o or S is zero, so that there is no angle."""


def angles(original: ArrayLike, perturbed: ArrayLike) -> Angles:
    """Return gamma = sin(o, S) (Algorithm 1), from 0 to 1, and the angle, from 0 to pi radians.

    The sine falls again beyond a right angle; the angle does not. gamma is |r| / |S|, where r is
    the part of S across o. r is computed in doubled precision, so that equal answers give exactly
    0, and gamma has a relative error of 1e-12 down to 1e-15, far from o as well as near it
    (sqrt(1 - cos^2) loses all digits below 1e-8).

    Args:
        original: finite numbers of any scale, shape (..., d).
        perturbed: likewise, shape (..., n, d), n of 1 or more; else it raises ValueError.
    """
    return Angles(*_map_blocks(original, perturbed, _compute_angles))


def _map_blocks(
    original: ArrayLike,
    perturbed: ArrayLike,
    function: Callable[[NDArray[Any], NDArray[Any]], Sequence[NDArray[Any]]],
) -> list[NDArray[Any]]:
    """Apply ``function`` to blocks (m, d) and (m, n, d), to bound the memory; shape (...) each."""
    o, p = np.asarray(original), np.asarray(perturbed)
    if p.ndim != o.ndim + 1 or p.shape[:-2] != o.shape[:-1] or p.shape[-1] != o.shape[-1]:
        raise ValueError(f"expected (..., d) and (..., n, d), got {o.shape} and {p.shape}")
    if p.shape[-2] == 0:
        raise ValueError("expected one perturbed answer or more")
    shape = o.shape[:-1]
    o, p = o.reshape(-1, o.shape[-1]), p.reshape(-1, *p.shape[-2:])
    rows = max(1, BLOCK_NUMBERS // max(1, p.shape[1] * p.shape[2]))
    starts = range(0, max(1, len(o)), rows)
    result = [function(o[start : start + rows], p[start : start + rows]) for start in starts]
    return [np.concatenate(parts).reshape(shape) for parts in zip(*result, strict=True)]


def _compute_angles(original: NDArray[Any], perturbed: NDArray[Any]) -> Angles:
    """Return the angles of a block: shapes (m, d) and (m, n, d)."""
    if perturbed.dtype not in (np.float32, np.float64):
        perturbed = perturbed.astype(np.float64)
    with np.errstate(all="ignore"):  # overflows and 0 / 0 are computed again below
        result, sound = _compute_quickly(original.astype(np.float64), perturbed)
    if not sound.all():
        o, p = original[~sound], perturbed[~sound]
        # The usual case of near vectors: all answers are the original one, gamma is exactly 0.
        equal = (p == o[:, None]).all(axis=(1, 2)) & o.any(axis=1)
        for column, value in zip(result, (0.0, 0.0, True), strict=True):
            column[~sound] = value
        if not equal.all():
            rows = np.flatnonzero(~sound)[~equal]
            for column, values in zip(
                result, _compute_carefully(o[~equal], p[~equal]), strict=True
            ):
                column[rows] = values
    return result


def _compute_quickly(o: Floats, p: NDArray[np.floating]) -> tuple[Angles, Bools]:
    """Return the angles by plain arithmetic, and where their relative error is below 1e-12.

    The error of r is at most (n + 2) units in the last place of sum |p_i|.
    """
    n = p.shape[1]
    total = np.add.reduce(p, axis=1, dtype=np.float64)
    squared, dots = _dot_rows(o, o), _dot_rows(total, o)
    across_vector = total - (dots / squared)[:, None] * o
    across = np.sqrt(_dot_rows(across_vector, across_vector))
    along = dots / np.sqrt(squared)
    gamma = np.minimum(across / np.hypot(along, across), 1.0)
    sum_of_lengths = np.sqrt(
        n * np.einsum("mnd,mnd->m", p, p).astype(np.float64)
    )  # sum |p_i| or more
    # Squares of numbers outside of this range overflow, or lose digits as subnormals.
    in_range = (
        (squared > 1e-200) & (squared < 1e200) & (sum_of_lengths > 1e-10) & (sum_of_lengths < 1e100)
    )
    sound = in_range & (across > MIN_QUICK_SHARE * n * sum_of_lengths)
    return Angles(gamma, np.arctan2(across, along), sound.copy()), sound


def _compute_carefully(original: NDArray[Any], perturbed: NDArray[Any]) -> Angles:
    """Return the angles with r in doubled precision."""
    o, p = original * _find_scale(original, (1,)), perturbed * _find_scale(perturbed, (1, 2))
    n = p.shape[1]
    total, residue = _sum_exactly(p)
    squared = _dot_rows(o, o)
    # A zero o has no direction; ``defined`` is False below, any number will do.
    safe = np.where(squared > 0, squared, 1.0)
    dots = _dot_rows(total, o)
    # Equal answers leave nothing after the first step, other near ones little for the second.
    for share in (np.where(dots < 0, -n, n), None):
        # First take n o from S (or -n o, beyond a right angle), then the remaining part along o.
        factor = (_dot_rows(total, o) / safe if share is None else share)[:, None]
        product, product_error = _two_product(factor, o)
        total, error = _two_sum(total, -product)
        residue += error - product_error
        total, residue = _two_sum(total, residue)
    across_vector = total - (_dot_rows(total, o) / safe)[:, None] * o
    across = np.sqrt(_dot_rows(across_vector, across_vector))
    along = dots / np.sqrt(safe)
    # |S| from its parts along and across o.
    length = np.hypot(along, across)
    sum_of_lengths = np.sqrt(np.einsum("mnd,mnd->mn", p, p)).sum(axis=1)
    defined = (squared > 0) & (length > CANCELLED_SHARE * sum_of_lengths)
    gamma = np.minimum(across / np.where(defined, length, 1.0), 1.0)
    radians = np.arctan2(across, along)
    return Angles(np.where(defined, gamma, 1.0), np.where(defined, radians, np.pi / 2), defined)


def _find_scale(vectors: NDArray[Any], axes: tuple[int, ...]) -> Floats:
    """Return the power of two that brings the largest of the numbers near 1: it loses nothing, and
    keeps squares from becoming infinite or zero.
    """
    largest = np.maximum(
        vectors.max(axis=axes, keepdims=True), -vectors.min(axis=axes, keepdims=True)
    ).astype(np.float64)
    # Clipped: the reciprocal of a subnormal number overflows.
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(1.0, -np.clip(exponent, -1000, 1000)))


def _dot_rows(a: Floats, b: Floats) -> Floats:
    products: Floats = np.einsum("md,md->m", a, b)
    return products


def _sum_exactly(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the sums over axis 1 and what rounding took from them, shapes (m, d)."""
    total = vectors[:, 0].copy()
    residue = np.zeros_like(total)
    for i in range(1, vectors.shape[1]):
        total, error = _two_sum(total, vectors[:, i])
        residue += error
    return _two_sum(total, residue)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return fl(a + b) and its error, which add up to a + b exactly (Knuth 1969)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return fl(a b) and its error, which add up to a b exactly (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split_halves(a), _split_halves(b)
    high = a_high * b_high - product
    return product, a_low * b_low + (a_low * b_high + (a_high * b_low + high))


def _split_halves(a: Floats) -> tuple[Floats, Floats]:
    # high has the upper 26 bits of a; the products of two halves are exact.
    scaled = DEKKER_SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def gamma_length(original: ArrayLike, perturbed: ArrayLike) -> Floats:
    """Return |o - S/n|, the length of the vector gamma (eq. 1.3 on vectors, Section 1).

    The paper prefers the angle, see :func:`angles`. For unit vectors the length is 0 to 2 and at
    least sin(o, S). It still rises beyond a right angle, where the sine falls, and is defined where
    S is zero. Equal answers give exactly 0. The differences p_i - o are added in doubled precision,
    for a relative error of 5e-15 also for near answers. Shapes and errors as in :func:`angles`.
    """
    return _map_blocks(original, perturbed, _compute_lengths)[0]


def _compute_lengths(original: NDArray[Any], perturbed: NDArray[Any]) -> tuple[Floats]:
    """Return the lengths of a block: shapes (m, d) and (m, n, d)."""
    vectors = np.concatenate([original[:, None], perturbed], axis=1).astype(np.float64)
    scale = _find_scale(vectors, (1, 2))
    vectors *= scale
    differences, errors = _two_sum(vectors[:, 1:], -vectors[:, :1])
    total, residue = _sum_exactly(differences)
    total += residue + errors.sum(axis=1)
    return (np.linalg.norm(total, axis=1) / perturbed.shape[1] / scale[:, 0, 0],)


def resample_gammas(
    original: ArrayLike, perturbed: ArrayLike, rng: np.random.Generator, replicates: int = 1000
) -> Floats:
    """Return gamma for resamples of the perturbations with replacement, shape (replicates,).

    ``original`` has shape (d,), ``perturbed`` (n, d). A resample whose sum is zero gives 1. The
    parts across o are first written in a basis of their own of at most n dimensions, so that a
    resample costs n^2 operations instead of n d.
    """
    o, p = np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    n = len(p)
    length = np.linalg.norm(o)
    if length == 0:
        return np.ones(replicates)
    direction = o / length
    across = p - o
    for _ in range(2):  # the second time removes what rounding left of a long part along o
        across = across - np.outer(across @ direction, direction)
    # Lengths in the basis of Q are lengths: only R is needed.
    triangle = np.linalg.qr(across.T, mode="r")
    # Drawing n with replacement is a multinomial count of each.
    weights = rng.multinomial(n, np.full(n, 1 / n), size=replicates).astype(np.float64)
    across = np.linalg.norm(weights @ np.transpose(triangle), axis=1)
    length = np.hypot(weights @ (p @ direction), across)
    zero = length <= CANCELLED_SHARE * (weights @ np.linalg.norm(p, axis=1))
    return np.minimum(np.where(zero, 1.0, across / np.where(zero, 1.0, length)), 1.0)


def gamma_interval(gamma: float, resampled: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the interval in which gamma of as many other perturbations would lie.

    A resample repeats some answers and so averages over fewer: where all answers differ, each of
    its gammas (``resampled``) exceeds gamma. The percentile interval is therefore taken of their
    squares, shifted so that the mean is gamma^2.
    """
    squares = np.square(resampled)
    low, high = percentile_interval(squares - squares.mean() + gamma**2, level) or (0.0, 1.0)
    return float(np.sqrt(max(low, 0.0))), float(np.sqrt(min(max(high, 0.0), 1.0)))


def pairwise_distance(vectors: ArrayLike) -> float:
    """Return the mean of 1 - cos(v_i, v_j) over all pairs, from 0 to 2; shape (n, d).

    Equal vectors give exactly 0. Zero vectors have no direction and are left out; where no pair
    is left the distance is 0.
    """
    v = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(v, axis=1)
    v = v[lengths > 0] / lengths[lengths > 0, None]
    n = len(v)
    if n < 2:
        return 0.0
    # For unit vectors 1 - v_i . v_j is half of |v_i - v_j|^2, which keeps its digits near 0. The
    # sum of those over all pairs is n sum |x_i|^2 - |sum x_i|^2, the x_i counted from anywhere.
    x = v - v[0]
    spread = n * np.square(x).sum() - np.square(x.sum(axis=0)).sum()
    return float(max(spread, 0.0) / (n * (n - 1)))
