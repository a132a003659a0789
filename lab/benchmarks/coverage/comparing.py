"""Populations of changes: the figures of two runs compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lab.benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from lab.benchmarks.populations import CHANGES
from trustassay.statistics.comparison import mean_of_differences

__all__ = ["comparison"]


def comparison(name: str) -> Study:
    """Return the study of the mean of paired differences of two runs."""
    first, second = CHANGES[name](np.random.default_rng(1), POPULATION)
    truth = {"paired difference": float(second.mean() - first.mean())}

    def draw(places: Places) -> Mapping[str, Interval | None]:
        return {"paired difference": mean_of_differences(second[places] - first[places]).interval}

    return Study(name, truth, draw)
