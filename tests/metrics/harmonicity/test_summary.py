"""The figures of a data set against hand computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trustassay.core import assessment
from trustassay.core.metric import Assessment
from trustassay.metrics.harmonicity import Harmonicity, SemanticHarmonicity
from trustassay.statistics.intervals import binomial_interval, mean_interval, quantile_interval


def gammas(*values: float | None, refused: int = 0, unseen: int = 0) -> list[Assessment]:
    found = []
    for i, value in enumerate(values):
        if value is None:
            found.append(Assessment.for_failure(str(i), "harmonicity", "no angle"))
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
    assert not found.intervals
    counted = {"perturbations", "refused", "empty", "cut", "unseen"}
    assert found.without_interval.keys() == found.values.keys() - counted
    assert found.settings["stable_below"] is None


@pytest.mark.parametrize("metric", [Harmonicity(), SemanticHarmonicity()], ids=lambda m: m.name)
@pytest.mark.parametrize("values", [(), (None,)], ids=["none", "failed"])
def test_no_scored_sample(metric: Any, values: tuple[None, ...]) -> None:
    found = metric.summarise(gammas(*values))
    assert found.values.keys() == metric.figures.keys()
    assert set(found.values.values()) == {None}
    assert set(found.not_applicable.values()) == {"no sample was scored"}
    assert not found.intervals


def spread(n: int) -> list[Assessment]:
    """Return n gammas from 0 to nearly 1, evenly, the first of them below 0.05 stable."""
    return gammas(*(i / n for i in range(n)))


def test_each_figure_has_an_interval_from_its_own_number_of_samples_on() -> None:
    found = Harmonicity().summarise(spread(19))
    assert not found.intervals
    assert found.without_interval["median"] == "too few samples: 19; at least 20 are needed"
    assert found.without_interval["mean"] == "too few samples: 19; at least 40 are needed"
    assert found.without_interval["p90"] == "too few samples: 19; at least 36 are needed"
    assert Harmonicity().summarise(spread(20)).intervals.keys() == {"median", "stable_share"}
    assert "p90" in Harmonicity().summarise(spread(36)).intervals
    found = Harmonicity().summarise(spread(40))
    means = {"mean", "angle_degrees", "gamma_length", "pairwise_distance"}
    assert found.intervals.keys() == {"median", "p90", "stable_share", *means}
    assert found.without_interval == {
        "stable_mean": "too few stable samples: 2; at least 40 are needed"
    }


def test_intervals_against_those_of_the_statistics() -> None:
    values = np.arange(60) / 60
    found = Harmonicity().summarise(spread(60)).intervals
    expected = mean_interval(values.mean(), values.var() / 60, 60)
    assert found["mean"] == pytest.approx(expected)
    low, high = mean_interval(100 * values.mean() / 180, (100 / 180) ** 2 * values.var() / 60, 60)
    assert found["angle_degrees"] == pytest.approx((180 * low, 180 * high))
    low, high = binomial_interval(3, 60)  # 0, 1/60 and 2/60 are below 0.05
    assert found["stable_share"] == pytest.approx((100 * low, 100 * high))
    assert found["median"] == quantile_interval(values, 0.5)


def test_a_share_of_all_has_an_interval_with_a_width() -> None:
    found = Harmonicity().summarise(gammas(*[0.0] * 20))
    assert found.values["stable_share"] == 100
    assert found.intervals["stable_share"] == pytest.approx((86.09, 100), abs=0.01)


def test_no_stable_sample() -> None:
    found = Harmonicity().summarise(gammas(0.5, 0.7))
    assert found.values["stable_share"] == 0
    assert found.values["stable_mean"] is None
    assert found.not_applicable == {"stable_mean": "no answer is stable"}
    assert found.support["stable_mean"] == 0


def test_figures_do_not_depend_on_the_seed() -> None:
    first, other = (Harmonicity().summarise(spread(99), seed=seed) for seed in (1, 2))
    assert first.intervals
    assert first == other


def test_many_samples_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Harmonicity().summarise(spread(50))
    monkeypatch.setattr(assessment, "ASSESSMENTS_PER_CHUNK", 7)
    pieces = Harmonicity().summarise(spread(50))
    assert pieces.values == pytest.approx(whole.values)
    for key, interval in whole.intervals.items():
        assert pieces.intervals[key] == pytest.approx(interval)
