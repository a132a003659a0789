"""What the figures that were calculated apart have in common: neighbours and means of cosines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.fewl.sets import Places
from trustassay.metrics.fewl import maths
from trustassay.metrics.fewl.references import find_nearest

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
NEIGHBOURS = 10
NAMES = ("no penalty", "eq1", "theory")
FORMS: tuple[maths.Form | None, ...] = (None, "eq1", "theory")
"""Of :data:`NAMES`; ``None`` is equation 1 without a penalty."""


class Figure(NamedTuple):
    """One figure: what it is of, in %, by the specification and here, and how far draws differ."""

    name: str
    specified: float
    ours: float
    deviation: float = 0.0


def neighbours_in(questions: Sequence[str], embed: Embed, k: int = NEIGHBOURS) -> Places:
    """Return the places of the nearest other questions, none more similar than 0.8."""
    vectors = embed(questions)
    itself = np.arange(len(vectors))
    return find_nearest(vectors, vectors, k, max_similarity=0.8, itself=itself).places


def likeness(similarity: Callable[[Places], Floats], near: Places) -> Floats:
    """Return the mean over the neighbours that there are of what is like their answers."""
    there = near >= 0
    total = sum(np.where(there[:, [k]], similarity(near[:, k]), 0.0) for k in range(near.shape[1]))
    return np.asarray(total / np.maximum(there.sum(axis=1, keepdims=True), 1))


def won(right: Floats, wrong: Floats) -> float:
    """Return the share of right answers that score strictly higher, in %."""
    return float(100 * (right > wrong).mean())
