"""Declared figures over resamples: equal to those over the answers written out."""

from __future__ import annotations

import numpy as np
import pytest

from trustassay.metric import Assessment
from trustassay.summaries import (
    Mean,
    Quantile,
    Share,
    Statistic,
    Total,
    WeightedColumns,
    summarised,
)

STATISTICS: dict[str, Statistic] = {
    "mean": Mean(),
    "length": Mean("length"),
    "good": Share("good"),
    "p70": Quantile(0.7),
    "median": Quantile(0.5, "length"),
    "sum": Total("length"),
}


def assessments(n: int = 30) -> list[Assessment]:
    rng = np.random.default_rng(0)
    found = []
    for i in range(n):
        if i % 7 == 3:
            found.append(Assessment.failed(str(i), "m", "no"))
            continue
        score = None if i % 5 == 0 else float(rng.choice([0.0, 0.25, rng.random()]))
        parts = {} if i % 4 == 0 else {"length": float(rng.integers(1, 9))}
        verdict = None if i % 6 == 0 else str(rng.choice(["good", "bad"]))
        found.append(Assessment(str(i), "m", score, verdict, parts=parts))
    return found


def test_figures_are_those_of_the_answers_repeated() -> None:
    rows = assessments()
    weights = np.random.default_rng(1).multinomial(30, np.full(30, 1 / 30), size=20).astype(float)
    found = WeightedColumns.of(STATISTICS, rows).figures(weights)
    for draw, counts in enumerate(weights):
        written = [one for one, count in zip(rows, counts, strict=True) for _ in range(int(count))]
        expected = summarised(STATISTICS, written).values
        assert {key: found[key][draw] for key in found} == pytest.approx(expected)


def test_places_choose_and_order() -> None:
    rows = assessments()
    some = WeightedColumns.of(STATISTICS, rows).at(np.array([5, 2]))
    alone = WeightedColumns.of(STATISTICS, [rows[5], rows[2]])
    for key in STATISTICS:
        assert np.array_equal(some.inputs(key), alone.inputs(key), equal_nan=True)


def test_a_figure_of_no_answer_is_undefined() -> None:
    found = WeightedColumns.of(STATISTICS, assessments()).figures(np.zeros((1, 30)))
    assert all(np.isnan(found[key][0]) for key in STATISTICS if key != "sum")
    assert found["sum"][0] == 0.0
