"""Populations of labelled answers with scores: AUROCs, their differences, and what
`label` estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from lab.benchmarks.labelling import POPULATIONS as LABELLED
from lab.benchmarks.labelling import chosen
from trustassay.statistics.auroc import auroc_difference, auroc_interval
from trustassay.statistics.correlation import auroc
from trustassay.statistics.intervals import MIN_UNITS

__all__ = ["LABELLED", "SCORED", "labelled", "separated"]

Floats = NDArray[np.float64]
Rng = np.random.Generator


class Scored(NamedTuple):
    """Two scores that order answers equally well on average, and labels of 0 and 1; by question
    and answer, shape (questions, answers)."""

    first: Floats
    second: Floats
    labels: Floats


Shape = Callable[[Floats], Floats]


def scored(
    rng: Rng,
    *,
    apart: float,
    right: float = 0.5,
    answers: int = 1,
    alike: float = 0.5,
    shape: Shape = lambda score: score,
) -> Scored:
    """Return normal scores, ``apart`` standard deviations apart, in another shape.

    right: the share of right answers. alike: the correlation of the labels, and of the scores, of
    one question's answers. Half of a score's variance is common to both.
    """
    size = (POPULATION, answers)
    own = np.full((POPULATION, 1), right)
    if answers > 1:
        total = (1 - alike) / alike
        own = rng.beta(total * right, total * (1 - right), (POPULATION, 1))
    labels = (rng.random(size) < own).astype(np.float64)

    def noise() -> Floats:
        shared = rng.normal(size=(POPULATION, 1)) if answers > 1 else rng.normal(size=size)
        return np.asarray(math.sqrt(alike) * shared + math.sqrt(1 - alike) * rng.normal(size=size))

    common = noise()
    first, second = (
        shape(apart * (labels - 0.5) + math.sqrt(0.5) * (common + noise())) for _ in range(2)
    )
    return Scored(first, second, labels)


def _yes(score: Floats) -> Floats:
    return (score > 0).astype(np.float64)


def _skewed(score: Floats) -> Floats:
    """Return scores from 0 to 1, most of them nearly 1, in steps of 0.05."""
    return np.asarray(np.round(1 / (1 + np.exp(-2 * score - 2)) * 20) / 20)


SCORED: Mapping[str, Callable[[Rng], Scored]] = {
    "says nothing": lambda rng: scored(rng, apart=0.0),
    "good": lambda rng: scored(rng, apart=1.0),
    "excellent": lambda rng: scored(rng, apart=2.0),
    "nearly perfect": lambda rng: scored(rng, apart=3.0),
    "excellent, a fifth right": lambda rng: scored(rng, apart=2.0, right=0.2),
    "0/1": lambda rng: scored(rng, apart=1.0, shape=_yes),
    "0/1, nearly perfect": lambda rng: scored(rng, apart=3.5, shape=_yes),
    "0/1, a fifth right": lambda rng: scored(rng, apart=2.5, right=0.2, shape=_yes),
    "skewed": lambda rng: scored(rng, apart=1.5, shape=_skewed),
    "skewed, 80 % right": lambda rng: scored(rng, apart=1.0, right=0.8, shape=_skewed),
    "5 answers": lambda rng: scored(rng, apart=1.0, answers=5),
    "5 answers, nearly perfect": lambda rng: scored(rng, apart=3.0, answers=5),
    "5 answers, labels alike": lambda rng: scored(rng, apart=1.5, answers=5, alike=0.9),
    "5 answers, 0/1": lambda rng: scored(rng, apart=1.5, answers=5, shape=_yes),
}


def separated(name: str) -> Study:
    """Return the study of an AUROC and of the difference of two; n counts questions."""
    whole = SCORED[name](np.random.default_rng(1))
    labels = whole.labels.ravel()
    first, second = (auroc(one.ravel(), labels) or 0.0 for one in (whole.first, whole.second))

    def draw(places: Places) -> Mapping[str, Interval | None]:
        x, other, y = (one[places].ravel() for one in whole)
        units = np.repeat(np.arange(len(places)), whole.labels.shape[1])
        interval = auroc_interval(x, y, units)
        if isinstance(interval, str):
            return {"auroc": None, "difference": None}
        difference = auroc_difference(x, other, y, units)
        return {"auroc": interval, "difference": difference.interval}

    return Study(name, {"auroc": first, "difference": first - second}, draw)


def labelled(name: str) -> Study:
    """Return the study of `label`'s estimates, of these answers; n counts labels."""
    made, kinds = LABELLED[name]

    def draw(places: Places) -> Mapping[str, Interval | None]:
        found: dict[str, Interval | None] = {}
        for kind in kinds:
            seed = int(places[0])
            task = made.draw(np.random.default_rng([1, seed]), kind, name)
            (one,) = chosen(task, (len(places),), seed)
            few = len(places) < MIN_UNITS or math.isnan(one.here[0])
            low, high = one.here
            found[kind] = None if few else (low - task.truth, high - task.truth)
        return found

    return Study(name, dict.fromkeys(kinds, 0.0), draw)
