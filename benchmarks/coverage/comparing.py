"""Populations of changes: the figures of two runs compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.coverage.counting import POPULATION, Interval, Places, Study
from benchmarks.populations import CHANGES
from trustassay.statistics.comparison import (
    Difference,
    difference_of_means,
    difference_of_medians,
    difference_of_shares,
    mean_of_differences,
)

__all__ = ["comparison"]


def comparison(name: str) -> Study:
    """Return the study of two runs: paired by sample, and as independent ones."""
    first, second = CHANGES[name](np.random.default_rng(1), POPULATION)
    median = float(np.median(second) - np.median(first))
    mean = float(second.mean() - first.mean())
    stable = 100 * float((second < 0.05).mean() - (first < 0.05).mean())
    truth = {"paired difference": mean, "mean": mean, "median": median, "stable share": stable}
    shift = np.random.default_rng(2).permutation(POPULATION)

    def draw(places: Places) -> Mapping[str, Interval | None]:
        a, b, other = first[places], second[places], second[shift[places]]
        found: Mapping[str, Difference] = {
            "paired difference": mean_of_differences(b - a),
            "mean": difference_of_means(a, other),
            "median": difference_of_medians(a, other),
            "stable share": difference_of_shares(a < 0.05, other < 0.05),
        }
        return {key: one.interval for key, one in found.items()}

    return Study(name, truth, draw)
