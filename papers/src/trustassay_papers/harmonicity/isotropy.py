"""How evenly do perturbations push a vector about? (Kersting et al. 2024, footnote 3.)

Notation: o is the unit vector of a text, p_1 ... p_n are those of its perturbed versions, and
d_i = p_i - o are the displacements. Isotropic means that the d_i point anywhere alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trustassay.statistics.intervals import FEWEST_FOR_MEANS, bounded_interval, unit_mean

Floats = NDArray[np.float64]

SAME = 1e-5
"""A displacement no longer than this is none: what rounding of stored vectors can do."""
DEGREES, COSINE, SHARE = (0.0, 180.0), (-1.0, 1.0), (0.0, 1.0)
"""Bounds of the figures that have intervals. Those of the spectrum have none, since it is that of
many more texts only from hundreds on; nor have the figures that only few texts far out decide."""


class Estimate(NamedTuple):
    """A figure over texts and its 95 % interval; ``interval`` is ``None`` if there is none."""

    value: float
    interval: tuple[float, float] | None


class Spectrum(NamedTuple):
    """The eigenvalues of the second moments of displacements, largest first, as shares of 1."""

    shares: Floats

    @property
    def largest(self) -> float:
        """The share of the largest eigenvalue: 1 means that all move along one line."""
        return float(self.shares[0])

    @property
    def dimensions(self) -> float:
        """The participation ratio, (sum l)^2 / sum l^2: effectively used dimensions."""
        return float(1 / np.square(self.shares).sum())


@dataclass(frozen=True)
class Shape:
    """Where displacements point.

    displacement: the mean, over texts, of the length of the mean unit displacement: 0 for many that
        cancel out, though n random ones still leave about 1/sqrt(n).
    cosine: the mean cosine of two displacements of the same text; free of that bias, and ``None``
        where no text moved twice.
    largest, dimensions: of the spectrum, over all texts.
    """

    displacement: Estimate
    cosine: Estimate | None
    largest: Estimate
    dimensions: Estimate
    spectrum: Spectrum


@dataclass(frozen=True)
class Cosines:
    """The four figures of the authors' program, each a mean over texts.

    mean, deviation: of the cosines between o and p_1 ... p_n (the deviation over n, not n - 1).
    of_mean: the cosine between o and the mean of the p_i. below: how far ``mean`` lies below that.
    error: the standard error of ``mean``, ``None`` for a single text.
    """

    mean: Estimate
    deviation: Estimate
    of_mean: Estimate
    below: Estimate
    error: float | None


@dataclass(frozen=True)
class Isotropy:
    """The figures of footnote 3 and around it; angles are in degrees.

    angles: of every perturbed version to its text. cones: of the mean of each text's versions.
    angle, cone: their means over texts; within: the largest cone. cosines: see :class:`Cosines`.
    unchanged: the share of versions whose vector is that of the text.
    shape: where the displacements point, ``None`` if nothing moved; expected: the same of an
        isotropic cloud of the same size, with as many versions at the same angles in random
        directions.
    """

    texts: int
    perturbations: int
    width: int
    angles: Floats
    cones: Floats
    unchanged: Estimate
    angle: Estimate
    cone: Estimate
    within: float
    cosines: Cosines
    shape: Shape | None
    expected: Shape | None


def angles_degrees(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the angles between vectors, shapes (..., d), in degrees.

    By 2 atan2(|a - b|, |a + b|) of the unit vectors (Kahan), which keeps its digits for small and
    for flat angles; equal vectors give exactly 0.
    """
    a, b = _unit(np.asarray(first, np.float64)), _unit(np.asarray(second, np.float64))
    apart, together = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return np.asarray(np.degrees(2 * np.arctan2(apart, together)))


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


def isotropy(originals: ArrayLike, perturbed: ArrayLike, rng: np.random.Generator) -> Isotropy:
    """Return the figures of t texts with n perturbed versions each.

    Args:
        originals: shape (t, d). perturbed: shape (t, n, d).
        rng: for the isotropic cloud.

    Intervals are over texts, from 40 on.

    Raises:
        ValueError: shapes that do not fit, or no text or no perturbation.
    """
    o, p = np.asarray(originals, np.float64), np.asarray(perturbed, np.float64)
    if o.ndim != 2 or p.ndim != 3 or p.shape[::2] != o.shape or 0 in p.shape:
        raise ValueError(f"expected (t, d) and (t, n, d), got {o.shape} and {p.shape}")
    o, p = _unit(o), _unit(p)
    moves = p - o[:, None, :]
    moved = np.linalg.norm(moves, axis=2) > SAME
    angles = np.where(moved, angles_degrees(o[:, None, :], p), 0.0)
    cones = np.where(moved.any(axis=1), angles_degrees(o, p.mean(axis=1)), 0.0)
    cosines = _cosines(angles, cones)
    shape = expected = None
    if moved.any():
        shape = _shape(moves, moved)
        expected = _shape(_random_versions(o, angles, rng) - o[:, None, :], moved)
    mean, deviation, of_mean, below = map(_mean, cosines.T)
    # Of fewer texts that moved, the bounds of an angle make its interval far too wide.
    degrees = DEGREES if moved.any(axis=1).sum() >= FEWEST_FOR_MEANS else None
    error = float(cosines[:, 0].std(ddof=1) / np.sqrt(len(o))) if len(o) > 1 else None
    return Isotropy(
        texts=p.shape[0],
        perturbations=p.shape[1],
        width=p.shape[2],
        angles=angles.ravel(),
        cones=cones,
        unchanged=_mean(1 - moved.mean(axis=1), SHARE),
        angle=_mean(angles.mean(axis=1), degrees),
        cone=_mean(cones, degrees),
        within=float(cones.max()),
        cosines=Cosines(mean, deviation, of_mean, below, error),
        shape=shape,
        expected=expected,
    )


def _cosines(angles: Floats, cones: Floats) -> Floats:
    """Return the figures of :class:`Cosines` of each text, shape (t, 4), from angles in degrees."""
    single, of_mean = np.cos(np.radians(angles)), np.cos(np.radians(cones))
    mean = single.mean(axis=1)
    return np.column_stack([mean, single.std(axis=1), of_mean, of_mean - mean])


def _random_versions(o: Floats, angles: Floats, rng: np.random.Generator) -> Floats:
    """Return unit vectors at these angles to each o, shape (t, n), in random directions."""
    noise = rng.standard_normal((*angles.shape, o.shape[1]))
    across = _unit(noise - np.einsum("tnd,td->tn", noise, o)[..., None] * o[:, None, :])
    turn = np.radians(angles)[..., None]
    return np.asarray(np.cos(turn) * o[:, None, :] + np.sin(turn) * across)


def _shape(moves: Floats, moved: NDArray[np.bool_]) -> Shape:
    """Return the shape of displacements (t, n, d), of which those that moved count."""
    own = moved.sum(axis=1)
    sums = np.linalg.norm(np.where(moved[..., None], _unit(moves), 0.0).sum(axis=1), axis=1)
    some, several = own > 0, own > 1
    cosine = None
    if several.any():
        pairs = own[several] * (own[several] - 1)
        cosine = _mean((sums[several] ** 2 - own[several]) / pairs, COSINE)
    result = spectrum(moves[moved])
    return Shape(
        _mean(sums[some] / own[some], SHARE),
        cosine,
        Estimate(result.largest, None),
        Estimate(result.dimensions, None),
        result,
    )


def _mean(values: Floats, bounds: tuple[float, float] | None = None) -> Estimate:
    """Return the mean over texts; with its interval where there are bounds and enough texts."""
    mean = unit_mean(values)
    few = bounds is None or len(values) < FEWEST_FOR_MEANS
    return Estimate(mean.mean, None if few else bounded_interval(mean, bounds))


def spectrum(displacements: ArrayLike) -> Spectrum:
    """Return the spectrum of displacements, shape (m, d), about the original (not their mean).

    Raises:
        ValueError: there is none, or all are zero.
    """
    moves = np.asarray(displacements, np.float64)
    gram = moves.T @ moves if moves.shape[0] >= moves.shape[1] else moves @ moves.T
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0) if gram.size else np.zeros(1)
    if values.sum() <= 0:
        raise ValueError("expected a displacement that is not zero")
    return Spectrum(values / values.sum())
