"""Populations of samples: the figures of a run's summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from lab.benchmarks.populations import ANSWERS, SCORES
from trustassay.core.assessment import WeightedColumns, compute_interval
from trustassay.metrics import Grounding, Harmonicity, SemanticHarmonicity
from trustassay.metrics.grounding.maths import PARTS
from trustassay.metrics.grounding.summary import FIGURES, GroundingSums

__all__ = ["grounding", "harmonicity"]

Floats = NDArray[np.float64]
HEADLINES = [
    *(key for key, figure in FIGURES.items() if figure.headline),
    *("reject_f1", "answerable_f1", "answered_citation_rec", "answered_citation_prec"),
]
Correctness = Literal["em", "em5", "cm"]


def grounding(name: str, correctness: Correctness, profile: str = "default") -> Study:
    """Return the study of a population of answers."""
    metric = Grounding(correctness=correctness, profile=profile, splitter="lines")
    parts = ANSWERS[name](np.random.default_rng(1), POPULATION)
    absent = np.full(POPULATION, np.nan)
    whole = GroundingSums(metric)
    rows = whole.rows({part: parts.get(part, absent) for part in PARTS})
    whole.add(rows)
    figures = {key: float(value) for key, value in whole.figures().items()}
    truth = {key: figures[key] for key in HEADLINES if key in figures}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        answers = GroundingSums(metric)
        answers.add(rows[places])
        found, _ = answers.intervals(truth)
        return {key: found.get(key) for key in truth}

    return Study(f"{name}, {correctness}, {profile}", truth, draw)


def harmonicity(name: str, *, semantic: bool = False) -> Study:
    """Return the study of a population of gammas, or of divergences."""
    metric = SemanticHarmonicity() if semantic else Harmonicity(stable_below=0.05)
    scores = SCORES[name](np.random.default_rng(1), POPULATION)
    stable = scores < metric.stability_bound
    named = [key for key, one in metric.figures.items() if one.headline or key == "p90"]
    statistics = {key: metric.statistics[key] for key in named}
    columns = {
        "stable_share": stable.astype(np.float64),
        "angle_degrees": np.degrees(np.arcsin(scores)),
    }
    figures = WeightedColumns(statistics, {key: columns.get(key, scores) for key in named})

    def draw(places: Places) -> Mapping[str, Interval | None]:
        alone = np.full(len(places), -1)
        found = {
            key: compute_interval(one, figures.columns[key][places], alone, metric.score_range)
            for key, one in statistics.items()
        }
        return {key: None if isinstance(one, str) else one for key, one in found.items()}

    truth = figures.figures(np.ones((1, POPULATION)))
    return Study(name, {key: float(values[0]) for key, values in truth.items()}, draw)
