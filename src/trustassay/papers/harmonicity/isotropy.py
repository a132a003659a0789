"""How evenly perturbations of a text move its vector (Kersting et al. 2024, footnote 3).

Notation: o is the unit vector of a text, p_1 ... p_n are those of its perturbed versions, and
d_i = p_i - o are the displacements. Isotropic means that the d_i have no preferred direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.intervals import MIN_UNITS_FOR_MEANS, interval_within_bounds, unit_mean

Floats = NDArray[np.float64]

MIN_DISPLACEMENT = 1e-5
"""Shorter displacements count as none: rounding of stored vectors can cause them."""
DEGREES, COSINE, SHARE = (0.0, 180.0), (-1.0, 1.0), (0.0, 1.0)
"""Bounds of the figures that have intervals. Figures of the spectrum have none, since it is stable
only from hundreds of texts on; nor have figures that a few outlying texts decide."""


class IsotropyEstimate(NamedTuple):
    """A figure over texts, with its 95 % interval if there is one."""

    value: float
    interval: tuple[float, float] | None


class Spectrum(NamedTuple):
    """The eigenvalues of the second moments of displacements, largest first, as shares of 1."""

    shares: Floats

    @property
    def largest(self) -> float:
        """The share of the largest eigenvalue; 1 means that all displacements are on one line."""
        return float(self.shares[0])

    @property
    def dimensions(self) -> float:
        """The participation ratio, (sum l)^2 / sum l^2: the number of effective dimensions."""
        return float(1 / np.square(self.shares).sum())


@dataclass(frozen=True)
class DisplacementShape:
    """The directions of displacements."""

    displacement: IsotropyEstimate
    """The mean, over texts, of the length of the mean unit displacement: 0 if they cancel out,
    though n random ones leave about 1/sqrt(n)."""
    cosine: IsotropyEstimate | None
    """The mean cosine of two displacements of the same text, which does not have that bias;
    ``None`` if no text moved twice."""
    largest: IsotropyEstimate
    """The largest share of the spectrum, over all texts."""
    dimensions: IsotropyEstimate
    """The effective dimensions of the spectrum, over all texts."""
    spectrum: Spectrum


@dataclass(frozen=True)
class CosineFigures:
    """The four figures of the authors' program, each a mean over texts."""

    mean: IsotropyEstimate
    """Of the cosines between o and p_1 ... p_n."""
    deviation: IsotropyEstimate
    """Of these cosines, with the denominator n."""
    of_mean: IsotropyEstimate
    """The cosine between o and the mean of the p_i."""
    below: IsotropyEstimate
    """``of_mean`` less ``mean``."""
    error: float | None
    """The standard error of ``mean``; ``None`` for a single text."""


@dataclass(frozen=True)
class Isotropy:
    """The figures of footnote 3 and related ones; angles are in degrees."""

    texts: int
    """The number of texts, t."""
    perturbations: int
    """The number of perturbed versions of a text, n."""
    width: int
    """The dimensions of the vectors, d."""
    angles: Floats
    """From each version to its text, shape (t n,)."""
    cones: Floats
    """From the mean of each text's versions to the text, shape (t,)."""
    unchanged: IsotropyEstimate
    """The share of versions with the same vector as the text."""
    angle: IsotropyEstimate
    """The mean of ``angles`` over texts."""
    cone: IsotropyEstimate
    """The mean of ``cones``."""
    largest_cone: float
    """The largest of ``cones``."""
    cosines: CosineFigures
    shape: DisplacementShape | None
    """The directions of the displacements; ``None`` if nothing moved."""
    cloud_shape: DisplacementShape | None
    """The same for an isotropic cloud of the same size: as many versions at the same angles, in
    random directions."""


def angles_degrees(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the angles between vectors, shapes (..., d), in degrees.

    Computed as 2 atan2(|a - b|, |a + b|) of the unit vectors (Kahan), which is accurate for angles
    near 0 and 180 degrees; equal vectors give exactly 0.
    """
    a, b = _normalise(np.asarray(first, np.float64)), _normalise(np.asarray(second, np.float64))
    difference_lengths, sum_lengths = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return np.asarray(np.degrees(2 * np.arctan2(difference_lengths, sum_lengths)))


def _normalise(vectors: Floats) -> Floats:
    # A vector of zeros stays zero instead of NaN.
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def isotropy(originals: ArrayLike, perturbed: ArrayLike, rng: np.random.Generator) -> Isotropy:
    """Return the figures of t texts with n perturbed versions each.

    Args:
        originals: shape (t, d). perturbed: shape (t, n, d).
        rng: draws the isotropic cloud.

    Intervals are over texts, if there are 40 or more.

    Raises:
        ValueError: shapes that do not fit, or no text or no perturbation.
    """
    o, p = np.asarray(originals, np.float64), np.asarray(perturbed, np.float64)
    if o.ndim != 2 or p.ndim != 3 or p.shape[::2] != o.shape or 0 in p.shape:
        raise ValueError(f"expected (t, d) and (t, n, d), got {o.shape} and {p.shape}")
    # Embedders need not return unit vectors; only directions count.
    o, p = _normalise(o), _normalise(p)
    moves = p - o[:, None, :]
    # Versions that did not move have no direction and an angle of exactly 0.
    moved = np.linalg.norm(moves, axis=2) > MIN_DISPLACEMENT
    angles = np.where(moved, angles_degrees(o[:, None, :], p), 0.0)
    cones = np.where(moved.any(axis=1), angles_degrees(o, p.mean(axis=1)), 0.0)
    cosines = _compute_cosines(angles, cones)
    shape = expected = None
    if moved.any():
        shape = _describe_shape(moves, moved)
        expected = _describe_shape(_draw_versions(o, angles, rng) - o[:, None, :], moved)
    mean, deviation, of_mean, below = map(_estimate_mean, cosines.T)
    # With fewer texts that moved, the bounds of an angle make its interval far too wide.
    degrees = DEGREES if moved.any(axis=1).sum() >= MIN_UNITS_FOR_MEANS else None
    error = float(cosines[:, 0].std(ddof=1) / np.sqrt(len(o))) if len(o) > 1 else None
    return Isotropy(
        texts=p.shape[0],
        perturbations=p.shape[1],
        width=p.shape[2],
        angles=angles.ravel(),
        cones=cones,
        unchanged=_estimate_mean(1 - moved.mean(axis=1), SHARE),
        angle=_estimate_mean(angles.mean(axis=1), degrees),
        cone=_estimate_mean(cones, degrees),
        largest_cone=float(cones.max()),
        cosines=CosineFigures(mean, deviation, of_mean, below, error),
        shape=shape,
        cloud_shape=expected,
    )


def _compute_cosines(angles: Floats, cones: Floats) -> Floats:
    """Return the first four :class:`CosineFigures` of each text, shape (t, 4), from degrees."""
    single, of_mean = np.cos(np.radians(angles)), np.cos(np.radians(cones))
    mean = single.mean(axis=1)
    return np.column_stack([mean, single.std(axis=1), of_mean, of_mean - mean])


def _draw_versions(o: Floats, angles: Floats, rng: np.random.Generator) -> Floats:
    """Return unit vectors at these angles to each o, shape (t, n), in random directions."""
    # A Gaussian vector has a random direction; its part along o is removed.
    noise = rng.standard_normal((*angles.shape, o.shape[1]))
    across = _normalise(noise - np.einsum("tnd,td->tn", noise, o)[..., None] * o[:, None, :])
    # On the circle through o in the random direction, at the angle of the version.
    turn = np.radians(angles)[..., None]
    return np.asarray(np.cos(turn) * o[:, None, :] + np.sin(turn) * across)


def _describe_shape(moves: Floats, moved: NDArray[np.bool_]) -> DisplacementShape:
    """Return the shape of displacements (t, n, d); only those that moved count."""
    move_counts = moved.sum(axis=1)
    sums = np.linalg.norm(np.where(moved[..., None], _normalise(moves), 0.0).sum(axis=1), axis=1)
    # A cosine needs two displacements of the same text.
    has_move, has_two_moves = move_counts > 0, move_counts > 1
    cosine = None
    if has_two_moves.any():
        # |sum u_i|^2 = n + sum over pairs of u_i u_j, so all cosines follow from the length of the
        # sum.
        pairs = move_counts[has_two_moves] * (move_counts[has_two_moves] - 1)
        cosine = _estimate_mean(
            (sums[has_two_moves] ** 2 - move_counts[has_two_moves]) / pairs, COSINE
        )
    spectrum_of_moves = spectrum(moves[moved])
    return DisplacementShape(
        _estimate_mean(sums[has_move] / move_counts[has_move], SHARE),
        cosine,
        IsotropyEstimate(spectrum_of_moves.largest, None),
        IsotropyEstimate(spectrum_of_moves.dimensions, None),
        spectrum_of_moves,
    )


def _estimate_mean(values: Floats, bounds: tuple[float, float] | None = None) -> IsotropyEstimate:
    """Return the mean over texts, with an interval if there are bounds and enough texts."""
    mean = unit_mean(values)
    without_interval = bounds is None or len(values) < MIN_UNITS_FOR_MEANS
    return IsotropyEstimate(
        mean.mean, None if without_interval else interval_within_bounds(mean, bounds)
    )


def spectrum(displacements: ArrayLike) -> Spectrum:
    """Return the spectrum of displacements, shape (m, d), about the original (not their mean).

    Raises:
        ValueError: there is none, or all are zero.
    """
    moves = np.asarray(displacements, np.float64)
    # Both products have the same eigenvalues apart from zeros: take the smaller one.
    gram = moves.T @ moves if moves.shape[0] >= moves.shape[1] else moves @ moves.T
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0) if gram.size else np.zeros(1)
    if values.sum() <= 0:
        raise ValueError("expected a displacement that is not zero")
    return Spectrum(values / values.sum())
