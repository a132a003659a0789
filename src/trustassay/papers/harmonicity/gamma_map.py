"""The Gamma map: prompts placed by their vectors in a plane, coloured by gamma.

Kersting et al. 2024 (section 6) propose it as an outlook. The plane is that of the two largest
principal components of the prompts' vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trustassay.report.charts import PlaneDot, dots_svg
from trustassay.report.document import DrawingBlock
from trustassay.report.text import cut
from trustassay.statistics import Floats
from trustassay.text.numbers import score_text

MIN_PROMPTS = 3
"""Two prompts always lie on a line: a plane needs three."""
MAX_TITLE_CHARACTERS = 160


@dataclass(frozen=True)
class PromptPlane:
    """Prompts in the plane of their two largest principal components."""

    places: Floats
    """Shape (n, 2)."""
    shares: tuple[float, float]
    """The share of the vectors' variance along each axis, from 0 to 1."""


def project_prompts(vectors: ArrayLike) -> PromptPlane:
    """Return the places of vectors in the plane of their largest variance.

    The sign of each axis is such that its largest loading is positive, so that the same vectors
    give the same map on every machine.

    Args:
        vectors: shape (n, d), n of at least :data:`MIN_PROMPTS`.

    Raises:
        ValueError: there are fewer vectors.
    """
    table = np.asarray(vectors, dtype=np.float64)
    if table.ndim != 2 or len(table) < MIN_PROMPTS:
        raise ValueError(f"expected {MIN_PROMPTS} or more vectors, got shape {table.shape}")
    centred = table - table.mean(axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    # Vectors of one number have one axis: the other is empty.
    places = np.zeros((len(table), 2))
    shares = [0.0, 0.0]
    total = float((sizes**2).sum())
    for axis in range(min(2, len(sizes))):
        loadings = axes[axis]
        sign = 1.0 if loadings[np.abs(loadings).argmax()] >= 0 else -1.0
        places[:, axis] = sign * left[:, axis] * sizes[axis]
        shares[axis] = float(sizes[axis] ** 2) / total if total else 0.0
    return PromptPlane(places, (shares[0], shares[1]))


def draw_gamma_map(
    places: Floats, gammas: Sequence[float], prompts: Sequence[str], whole: Floats, top: float
) -> DrawingBlock:
    """Draw some prompts of a plane; the fuller a dot, the larger its gamma.

    Args:
        places: shape (n, 2), of the prompts that are drawn.
        gammas: of each prompt.
        prompts: the texts, as titles of the dots.
        whole: shape (m, 2), all prompts of the plane, so that maps of domains share their axes.
        top: the gamma of a full dot, above 0.
    """
    dots = [
        PlaneDot(
            float(x),
            float(y),
            min(1.0, gamma / top),
            f"gamma {score_text(gamma)}: {cut(prompt, MAX_TITLE_CHARACTERS)}",
        )
        # Large ones last, so that no stable prompt hides an unstable one.
        for gamma, (x, y), prompt in sorted(
            zip(gammas, places.tolist(), prompts, strict=True), key=lambda item: item[0]
        )
    ]
    label = (
        f"{len(dots)} prompts in the plane of their vectors, gamma from "
        f"{score_text(min(gammas))} to {score_text(max(gammas))}"
    )
    spans = [(float(column.min()), float(column.max())) for column in whole.T]
    return DrawingBlock(dots_svg(dots, (spans[0], spans[1]), label))
