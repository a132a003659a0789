"""Intervals of 20 samples hold the true figure: the benchmark in small, with fixed draws.

Percentile bootstrap intervals fail here: of 20 "excellent" answers they hold the true F1 of
refusals 38 times in a hundred, of 20 scores a share of 97 % 41 times.
"""

from __future__ import annotations

import numpy as np
import pytest

from lab.benchmarks.coverage import counting, ratings, summaries
from lab.benchmarks.coverage.__main__ import fewest
from lab.benchmarks.coverage.counting import Study, covered
from lab.benchmarks.coverage.summaries import grounding, harmonicity
from lab.benchmarks.populations import ANSWERS
from trustassay.core.metric import Assessment
from trustassay.metrics import Grounding

DRAWS = 150


@pytest.fixture(autouse=True)
def small_population(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (counting, summaries):
        monkeypatch.setattr(module, "POPULATION", 20_000)


def shares(study: Study, n: int) -> dict[str, float]:
    counts = covered(study.truth, study.draw, n, DRAWS, np.random.default_rng(5))
    for count in counts.values():
        assert count.intervals > 0.9 * DRAWS
    return {key: count.hits / count.intervals for key, count in counts.items()}


@pytest.mark.parametrize("name", ["excellent", "middling"])
def test_headline_figures_of_20_answers_are_held(name: str) -> None:
    found = shares(grounding(name, "em"), 20)
    assert {"trust_score", "macro_f1", "calib_str_em_f1", "answered_citation_f1"} <= found.keys()
    assert min(found.values()) > 0.9  # 0.95 less two and a half standard errors of 150 draws


def test_headline_figures_of_20_and_40_scores_are_held() -> None:
    study = harmonicity("97 % zero")
    few = {key: study.truth[key] for key in ("median", "stable_share")}
    assert min(shares(Study("few", few, study.draw), 20).values()) > 0.9
    assert min(shares(study, 40).values()) > 0.9


def test_a_draw_has_the_intervals_of_its_summary() -> None:
    """What the benchmark looks at is what a run of the same answers writes."""
    study = grounding("good", "em")
    places = np.random.default_rng(0).integers(0, counting.POPULATION, 30)
    parts = ANSWERS["good"](np.random.default_rng(1), counting.POPULATION)
    answers = [
        Assessment(f"{n}", "grounding", 0.0, parts={key: col[i] for key, col in parts.items()})
        for n, i in enumerate(places)
    ]
    summary = Grounding(correctness="em").summarise(answers)
    for key, interval in study.draw(places).items():
        assert summary.intervals[key] == pytest.approx(interval)


def test_fewer_than_20_have_no_interval_unless_the_benchmark_asks_what_they_would_be() -> None:
    study = grounding("middling", "em")
    places = np.arange(10)
    assert set(study.draw(places).values()) == {None}
    with fewest(2):
        assert None not in study.draw(places).values()


@pytest.mark.slow
def test_shares_of_the_variance_of_40_answers_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratings, "POPULATION", 20_000)
    found = shares(ratings.variance("a fifth missing"), 40)
    names = {"answer", "rater", "answer x rater", "repeat"}
    assert found.keys() == names | {f"{name}, sd" for name in names}
    assert min(found.values()) > 0.87  # 0.93 less two and a half standard errors


@pytest.mark.slow
def test_they_are_not_of_other_raters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three raters say little of how much raters differ, however many answers they rate."""
    assert shares(ratings.other_raters("agree somewhat", 3), 150)["rater"] < 0.6
