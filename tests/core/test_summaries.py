"""Declared figures over resamples: equal to those over the answers written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trustassay.core.assessment import (
    Mean,
    Quantile,
    Share,
    Statistic,
    Total,
    WeightedColumns,
    compute_summary,
)
from trustassay.core.metric import Assessment

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
            found.append(Assessment.for_failure(str(i), "m", "no"))
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
        expected = compute_summary(STATISTICS, written).values
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


def questions(n: int, answers: int, likely: float = 0.7) -> list[Assessment]:
    """Return answers of n questions; those of one question are all good, or all bad."""
    good = np.random.default_rng(0).random(n) < likely
    return [
        Assessment(f"{q}-{a}", "m", float(good[q]), "good" if good[q] else "bad", unit=q)
        for q in range(n)
        for a in range(answers)
    ]


def test_intervals_are_over_units_and_not_over_answers() -> None:
    """Ten equal answers to each question tell what one of each tells."""
    statistics: dict[str, Statistic]
    statistics = {"mean": Mean(), "good": Share("good"), "median": Quantile(0.5)}
    one, ten = (compute_summary(statistics, questions(50, answers)) for answers in (1, 10))
    assert one.values == ten.values
    assert ten.intervals["mean"] == pytest.approx(one.intervals["mean"])
    assert ten.intervals["good"] == pytest.approx(one.intervals["good"])
    assert ten.support["mean"] == 500
    assert ten.units == {"mean": 50, "good": 50, "median": 50}
    assert one.units == {}


def test_the_least_number_counts_units() -> None:
    statistics: dict[str, Statistic] = {"mean": Mean(), "good": Share("good"), "p90": Quantile(0.9)}
    found = compute_summary(statistics, questions(12, 10))
    reason = "too few independent units (of equal size): 12; at least 40 are needed"
    reason += "; score with --unit answer to take each answer as a unit"
    assert found.intervals == {}
    assert found.without_interval["mean"] == reason
    of_quantile = compute_summary(statistics, questions(60, 2)).without_interval["p90"]
    assert "only a median" in of_quantile


def test_units_of_a_figure_are_those_of_the_answers_behind_it() -> None:
    """Of each question one of two answers has no score."""
    rows = [replace(one, score=None) if n % 2 else one for n, one in enumerate(questions(45, 2))]
    found = compute_summary({"mean": Mean()}, rows)
    assert found.support["mean"] == 45
    assert found.units == {}
    alone = compute_summary({"mean": Mean()}, [replace(one, unit=None) for one in rows])
    assert found.intervals == alone.intervals
