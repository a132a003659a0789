"""The figures of a data set against hand computation."""

from __future__ import annotations

from typing import Any

import pytest

from trustassay.metric import Assessment
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity


def gammas(*values: float | None, refused: int = 0, unseen: int = 0) -> list[Assessment]:
    found = []
    for i, value in enumerate(values):
        if value is None:
            found.append(Assessment.failed(str(i), "harmonicity", "no angle"))
            continue
        parts = {
            "gamma": value,
            "gamma_length": 2 * value,
            "angle_degrees": 100 * value,
            "gamma_low": 0.0,
            "gamma_high": 1.0,
            "pairwise_distance": value / 2,
            "perturbations": 10 - i % 10,
            "refused": refused,
            "empty": 1,
            "cut": 3,
            "unseen": unseen,
        }
        verdict = "stable" if value < 0.05 else "unstable"
        found.append(Assessment(str(i), "harmonicity", value, verdict, parts=parts))
    return found


def test_figures_by_hand() -> None:
    found = Harmonicity().summarise(gammas(0.0, 0.04, None, 0.2, 0.36, refused=2, unseen=1))
    assert (found.n, found.failed) == (5, 1)
    assert found.values == pytest.approx(
        {
            "mean": 0.15,
            "median": 0.12,
            "p90": 0.2 + 0.7 * 0.16,
            "stable_share": 50,
            "stable_mean": 0.02,
            "angle_degrees": 15,
            "gamma_length": 0.3,
            "pairwise_distance": 0.075,
            "perturbations": (10 + 9 + 7 + 6) / 4,
            "refused": 8,
            "empty": 4,
            "cut": 12,
            "unseen": 4,
        }
    )
    assert found.support == {key: 2 if key == "stable_mean" else 4 for key in found.values}
    counts = {"perturbations", "refused", "empty", "cut", "unseen"}
    for key in found.values.keys() - counts:
        low, high = found.intervals[key]
        value = found.values[key]
        assert value is not None
        assert low <= value <= high
    assert not found.intervals.keys() & counts
    assert found.settings["stable_below"] == 0.05


@pytest.mark.parametrize("metric", [Harmonicity(), SemanticHarmonicity()], ids=lambda m: m.name)
@pytest.mark.parametrize("values", [(), (None,)], ids=["none", "failed"])
def test_no_scored_sample(metric: Any, values: tuple[None, ...]) -> None:
    found = metric.summarise(gammas(*values))
    assert found.values.keys() == metric.figures.keys()
    assert set(found.values.values()) == {None}
    assert set(found.not_applicable.values()) == {"no sample was scored"}
    assert not found.intervals


def test_a_single_sample_has_no_interval() -> None:
    found = Harmonicity().summarise(gammas(0.02))
    assert found.values["mean"] == pytest.approx(0.02)
    assert not found.intervals
    found = Harmonicity().summarise(gammas(0.02, 0.5))
    assert {"mean", "median", "stable_share"} <= found.intervals.keys()
    assert "stable_mean" not in found.intervals  # one of the two is stable


def test_no_stable_sample() -> None:
    found = Harmonicity().summarise(gammas(0.5, 0.7))
    assert found.values["stable_share"] == 0
    assert found.values["stable_mean"] is None
    assert found.not_applicable == {"stable_mean": "no answer is stable"}
    assert found.support["stable_mean"] == 0


def test_figures_depend_on_the_seed_alone() -> None:
    first, again, other = (
        Harmonicity().summarise(gammas(*(i / 99 for i in range(99))), seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first.values == other.values
    assert first.intervals != other.intervals
