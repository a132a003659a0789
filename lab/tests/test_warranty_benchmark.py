"""The benchmark of promises: populations, procedures, summaries and the page."""

from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.warranty import measuring, tables
from lab.benchmarks.warranty.populations import GENERATORS, HOSTILE, Population, make_population
from lab.benchmarks.warranty.procedures import (
    choose_counts_before,
    choose_thresholds,
    judge_looks,
    judge_thresholds,
    plan_looks,
    search_before,
    walk_samples,
)
from lab.benchmarks.warranty.sets import SETS, JudgedAnswer, draw_answers
from lab.benchmarks.warranty.simulation import simulate
from lab.benchmarks.which_metric.sets import shared
from trustassay.statistics.distributions import incomplete_beta
from trustassay.statistics.warranty import walk

needs_data = pytest.mark.skipif(
    not (shared() / "tlm-simpleqa").is_dir(), reason="public sets are absent; set TRUSTASSAY_SHARED"
)


def build_population(levels: int = 20) -> Population:
    """Return 400 answers; of those with higher scores fewer are wrong."""
    scores = np.arange(400) * levels // 400
    return Population(scores, np.linspace(0.5, 0.0, 400))


def build_answers() -> list[JudgedAnswer]:
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    right = rng.random(300) < 0.9 + 0.1 * scores
    return [
        JudgedAnswer(f"{n}", f"{n // 2}", bool(right[n]), {"jev": float(scores[n])}, {})
        for n in range(300)
    ]


def test_shares_and_risks_above_each_level_are_exact() -> None:
    population = Population([0.2, 0.9, 0.9, 0.5], [1, 0, 1, 0])
    assert population.shares.tolist() == [1, 0.75, 0.5, 0]
    assert population.shares_wrong.tolist() == [0.5, 1 / 3, 0.5, 0]
    assert population.limit(0.4) == 0.75
    # Equal scores stay together: the upper half is the two with .9.
    assert population.upper_cut == 1


@pytest.mark.parametrize("levels", [0, 7, 21])
@pytest.mark.parametrize("name", [*GENERATORS, *HOSTILE])
def test_populations_have_the_share_of_wrong_answers_that_they_name(name: str, levels: int) -> None:
    population = make_population(name, 0.1, levels)
    expected = GENERATORS[name].wrong if name in GENERATORS else 0.1
    slack = 0.02 if name == "bump" else 1e-3
    assert population.shares_wrong[0] == pytest.approx(expected, abs=slack)
    if name in ("flat", "saw", "rising", "bad top"):
        assert population.limit(0.1) == 0


@pytest.mark.parametrize("levels", [20, 400])
def test_the_walk_over_many_samples_is_that_of_the_package(levels: int) -> None:
    population = build_population(levels)
    samples = population.draw((40, 100), np.random.default_rng(0))
    thresholds = walk_samples(samples, 0.2, 0.05, population.best_level)
    for row, threshold in zip(samples, thresholds.tolist(), strict=True):
        expected = walk(row >> 1, row & 1, alpha=0.2, delta=0.05)
        above = population.best_level if expected is None else max(expected.above, -1)
        assert threshold == above


def test_the_procedure_before_tests_the_counts_that_fit() -> None:
    counts = choose_counts_before(100, 0.1, 0.05)
    assert (len(counts), counts[0], counts[-1]) == (5, 44, 100)
    assert choose_counts_before(28, 0.1, 0.05) == []
    # No answer is wrong: all are accepted. All are: none is.
    right, wrong = np.arange(0, 200, 2)[None], np.arange(1, 201, 2)[None]
    assert search_before(right, 0.1, 0.05, 99).tolist() == [-1]
    assert search_before(wrong, 0.1, 0.05, 99).tolist() == [99]


def test_the_procedure_before_passes_where_a_binomial_test_does() -> None:
    population = build_population()
    samples = population.draw((40, 100), np.random.default_rng(1))
    counts = choose_counts_before(100, 0.2, 0.05)
    thresholds = search_before(samples, 0.2, 0.05, population.best_level)
    for row, threshold in zip(samples, thresholds.tolist(), strict=True):
        best = population.best_level
        for count in counts:
            ranked = np.sort(row >> 1)[::-1]
            above = int(ranked[count]) if count < 100 else -1
            accepted = row[row >> 1 > above]
            errors = int((accepted & 1).sum())
            p = 1.0
            if errors < len(accepted):
                p = incomplete_beta(len(accepted) - errors, errors + 1, 0.8)
            if p <= 0.05 / len(counts):
                best = above
        assert threshold == best


def test_the_plan_accepts_nothing_below_the_median_unless_the_upper_half_is_good() -> None:
    # Of all answers .08 are wrong, of the upper half .16.
    population = Population(np.arange(400), np.repeat([0.0, 0.16], 200))
    rng = np.random.default_rng(0)
    samples = population.draw((200, 200), rng)
    best = population.best_level
    assert (walk_samples(samples, 0.15, 0.05, best) == -1).mean() > 0.5
    thresholds = plan_looks(samples, population, 0.15, 0.05, [200], rng)[0]
    assert thresholds.min() >= population.upper_cut
    good = Population(np.arange(400), np.full(400, 0.0001))
    samples = good.draw((200, 200), rng)
    assert (plan_looks(samples, good, 0.05, 0.05, [200], rng)[0] == -1).mean() > 0.9


def test_an_alpha_of_a_fifth_makes_the_plan_the_walk() -> None:
    population = build_population()
    samples = population.draw((50, 100), np.random.default_rng(0))
    of = [
        choose_thresholds(name, samples, population, 0.2, np.random.default_rng(0)).tolist()
        for name in ("walk", "plan")
    ]
    assert of[0] == of[1]


def test_a_promise_is_broken_above_alpha_alone() -> None:
    population = Population([1, 2, 3, 4], [1, 1, 0, 0])
    outcome = judge_thresholds(np.array([-1, 0, 1, 3]), population, 0.5)
    assert outcome == (0.5625, 0.0)
    assert judge_thresholds(np.array([-1, 1]), population, 0.4).broken == 0.5
    assert judge_looks("walk", population, 0.1, 5, 10, np.random.default_rng(0))[0][0] == 50


@pytest.mark.slow
def test_the_page_shows_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "GROUPED_DRAWS", 5)
    monkeypatch.setattr(measuring, "GROUPED_LABELS", (50,))
    monkeypatch.setattr(measuring, "score_answers", lambda name, out: build_answers())
    monkeypatch.setattr(measuring, "LOOKS", 2)
    monkeypatch.setattr(measuring, "ALPHAS", (0.1,))
    sets = tables.add_summaries(measuring.measure_sets(tmp_path, ["fib"], [50, 100], 20))
    simulated = tables.add_summaries(simulate(["good", "flat"], [0], [50, 100], 20))
    row = sets["judges"][0]
    assert (row["answers"], row["groups"], len(row["cells"])) == (300, 150, 1)
    assert [row["decision"] for row in sets["judges"]] == ["accept", "reject"]
    assert row["top"]["stated"] > row["bottom"]["stated"]
    assert row["promises"][0]["share"] > 0
    assert [cell["labels"] for cell in row["whole groups"]] == [50]
    ratios = simulated["summary"]["generators"]["ratios"]
    assert [ratio["labels"] for ratio in ratios] == [50, 100]
    page = tables.build_page(simulated, sets)
    assert "| fib (consistent) | jev | 300 |" in page
    assert "| flat | " in page


@pytest.mark.slow
@needs_data
def test_the_sets_have_labels_and_scores() -> None:
    assert len(SETS) >= 8
    for name in SETS:
        answers = draw_answers(name)
        assert 300 < len(answers) < 2500
        assert len({answer.id for answer in answers}) == len(answers)
        assert 0.05 < np.mean([answer.right for answer in answers]) < 0.95
        assert answers[0].scores or answers[0].record
