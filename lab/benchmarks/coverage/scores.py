"""Populations of labelled answers with scores: AUROCs, their differences, calibration, and what
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
from trustassay.people.calibrate.fitting import LabelledScores, fit
from trustassay.people.study.answers import ScoreColumn
from trustassay.people.study.figures import Resampling, estimate_figures
from trustassay.statistics.auroc import auroc_difference, auroc_interval
from trustassay.statistics.correlation import WEIGHTED_MEASURES, auroc, value_of, weighted_log_loss
from trustassay.statistics.intervals import MIN_UNITS
from trustassay.statistics.regression import Isotonic, sigmoid
from trustassay.statistics.resampling import MIN_SAMPLES_OF_CLASS

__all__ = ["CALIBRATED", "LABELLED", "SCORED", "calibrated", "labelled", "separated"]

Floats = NDArray[np.float64]
Rng = np.random.Generator
RESAMPLES = 500
FIGURES = {"log_loss": weighted_log_loss} | {
    name: WEIGHTED_MEASURES[name] for name in ("auroc", "brier")
}


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


CALIBRATED: Mapping[str, tuple[float, float]] = {
    # how much a standard deviation of the score moves the log-odds of being right; their mean
    "good": (2.5, 0.8),
    "excellent": (5.0, 2.5),
    "says nothing": (0.0, 0.5),
}


def calibrated(name: str) -> Study:
    """Return the study of `calibrate`'s figures, of the score itself and out of fold.

    What is true of probabilities out of fold differs from draw to draw: it is that of the curve
    that the draw's answers give. So their intervals are given less that, and the truth is 0.
    """
    slope, mean = CALIBRATED[name]
    rng = np.random.default_rng(1)
    x = rng.normal(size=POPULATION)
    right = (rng.random(POPULATION) < sigmoid(slope * x + mean)).astype(np.float64)
    score = sigmoid(x)
    truth = {key: value_of(measure, score, right) or 0.0 for key, measure in FIGURES.items()}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        nothing: dict[str, Interval | None] = dict.fromkeys([*truth, *(f"{k}, out" for k in truth)])
        own = right[places]
        if len(places) < MIN_UNITS or min(own.sum(), (1 - own).sum()) < MIN_SAMPLES_OF_CLASS:
            return nothing
        questions = np.arange(len(places))
        fitted = fit(LabelledScores(score[places][:, None], own, questions), None, int(places[0]))
        columns = [
            ScoreColumn("score", "metric", score[places], probability=True),
            ScoreColumn("out", "metric", fitted.out_of_fold, probability=True),
        ]
        resampling = Resampling(np.random.default_rng(0), RESAMPLES)
        found = estimate_figures(columns, own, "binary", questions, resampling, FIGURES)
        model = fitted.model
        chances = model.at(score) if isinstance(model, Isotonic) else model.probabilities(score)
        for key, measure in FIGURES.items():
            nothing[key] = found["score"][key].interval
            if interval := found["out"][key].interval:
                true = value_of(measure, chances, right) or 0.0
                nothing[f"{key}, out"] = (interval[0] - true, interval[1] - true)
        return nothing

    return Study(name, truth | {f"{key}, out": 0.0 for key in truth}, draw)


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
