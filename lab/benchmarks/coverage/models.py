"""Populations of texts that a perturbation moves, and of pairs that an entailer judges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from trustassay.papers.harmonicity.isotropy import Isotropy, isotropy
from trustassay.statistics.calibration import balanced_accuracy, balanced_accuracy_interval

__all__ = ["JUDGED", "MOVED", "balanced", "directions"]

Floats = NDArray[np.float64]
DIMENSIONS, VERSIONS = 12, 4
MOVED: Mapping[str, tuple[bool, float]] = {
    # skewed lengths of displacement, and the largest share of unchanged versions of a text
    "texts move alike": (False, 0.0),
    "few texts move far": (True, 0.0),
    "some versions unchanged": (False, 0.7),
}


def _figures(found: Isotropy) -> dict[str, tuple[float, Interval | None]]:
    shape = found.shape
    assert shape is not None and shape.cosine is not None
    return {
        "unchanged": found.unchanged,
        "angle": found.angle,
        "cone": found.cone,
        "displacement": shape.displacement,
        "cosine of displacements": shape.cosine,
    }


def directions(name: str) -> Study:
    """Return the study of where perturbations push texts."""
    skewed, unchanged = MOVED[name]
    rng = np.random.default_rng(1)
    texts = rng.standard_normal((POPULATION, DIMENSIONS))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    one = (POPULATION, 1, 1)
    length = rng.lognormal(-2.5, 1, one) if skewed else rng.gamma(2, 0.15, one)
    axes = np.exp(-np.arange(DIMENSIONS) / 6)
    moves = rng.standard_normal((POPULATION, VERSIONS, DIMENSIONS)) * axes * length
    moves += 0.5 * length * axes * rng.standard_normal((POPULATION, 1, DIMENSIONS))
    still = rng.random((POPULATION, VERSIONS, 1)) < unchanged * rng.random(one)
    versions = texts[:, None] + np.where(still, 0.0, moves)

    def draw(places: Places) -> Mapping[str, Interval | None]:
        found = isotropy(texts[places], versions[places], np.random.default_rng(0))
        return {key: interval for key, (_, interval) in _figures(found).items()}

    whole = _figures(isotropy(texts, versions, np.random.default_rng(0)))
    return Study(name, {key: value for key, (value, _) in whole.items()}, draw)


JUDGED: Mapping[str, tuple[float, float, int]] = {
    # the share supported, the share judged right, pairs of each premise
    "half supported, 85 % right": (0.5, 0.85, 1),
    "half supported, 97 % right": (0.5, 0.97, 1),
    "15 % supported, 85 % right": (0.15, 0.85, 1),
    "half supported, 80 % right, 5 pairs a premise": (0.5, 0.8, 5),
}


def balanced(name: str) -> Study:
    """Return the study of an entailer's balanced accuracy, over premises."""
    supported, right, size = JUDGED[name]
    rng = np.random.default_rng(1)
    shape = (POPULATION, size)
    own = rng.beta(4 * right, 4 * (1 - right), (POPULATION, 1)) if size > 1 else right
    true = rng.random(shape) < supported
    said = np.where(rng.random(shape) < own, true, ~true).astype(np.float64)
    value = balanced_accuracy(said.ravel(), true.ravel())
    assert value is not None

    def draw(places: Places) -> Mapping[str, Interval | None]:
        units = np.repeat(np.arange(len(places)), size)
        found = balanced_accuracy_interval(said[places].ravel(), true[places].ravel(), units)
        return {"balanced accuracy": found}

    return Study(name, {"balanced accuracy": value}, draw)
