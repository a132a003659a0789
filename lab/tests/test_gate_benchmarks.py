"""The simulations of ``gate`` and of corrected shares: what they make, and what they measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.corrected import CHOICES, RIGHT_REFUSALS, make_answers
from lab.benchmarks.gating import check_folders
from lab.benchmarks.outcome_runs import (
    FAILED,
    PASSED,
    REFUSED,
    System,
    compare_runs,
    refuse,
    result_of,
)
from lab.benchmarks.ratchet import (
    CHANGES,
    CHURN,
    CHURNS,
    merged_of_series,
    summarise,
    swap_outcomes,
)
from lab.results import read_result
from trustassay.compare.corrected import MIN_LABELS_OF_OUTCOME

MANY = 20_000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(8)


def test_two_runs_of_a_system_differ_in_a_tenth_each_way_alike(rng: np.random.Generator) -> None:
    system = System.draw(rng, 1, MANY)
    first, second = system.run(rng), system.run(rng)
    risen = ((first == PASSED) & (second == FAILED)).mean()
    fallen = ((first == FAILED) & (second == PASSED)).mean()
    assert (risen, fallen) == pytest.approx((0.05, 0.05), abs=0.006)
    assert ((first == REFUSED) != (second == REFUSED)).mean() == pytest.approx(0.02, abs=0.004)


def test_a_system_gets_worse_by_the_first_metric_alone(rng: np.random.Generator) -> None:
    system = System.draw(rng, 3, MANY)
    worse = system.worsen(rng, 10)
    rises = [(worse.kinds[row] == FAILED).mean() for row in range(3)]
    before = [(system.kinds[row] == FAILED).mean() for row in range(3)]
    assert rises[0] - before[0] == pytest.approx(0.1, abs=0.01)
    assert rises[1:] == before[1:]
    refused = refuse(rng, system.run(rng), 0.2)
    assert (refused == REFUSED).all(axis=0).mean() == pytest.approx(0.2, abs=0.01)


def test_what_is_exchanged_for_good_leaves_the_shares(rng: np.random.Generator) -> None:
    run = System.draw(rng, 1, MANY).run(rng)
    after = swap_outcomes(rng, run, PASSED, FAILED, CHURN)
    assert (run != after).mean() == pytest.approx(CHURN, abs=0.01)
    assert (after == FAILED).mean() == pytest.approx((run == FAILED).mean(), abs=0.01)


def test_runs_in_memory_are_checked_as_folders_are(tmp_path: Path) -> None:
    assert check_folders(tmp_path)


def test_a_run_that_lacks_rows_fails(rng: np.random.Generator) -> None:
    run = System.draw(rng, 1, 60).run(rng)
    assert result_of(compare_runs([run], run)) == "pass"
    checks = compare_runs([run], run[:, :50])
    assert result_of(checks) == "fail"
    assert [check.name for check in checks if check.result == "fail"] == ["missing"]


def test_rules_that_cannot_fail_weaken_no_other_rule() -> None:
    first = np.full((6, 30), PASSED)
    second = first.copy()
    second[0, :7] = FAILED
    second[1:, :5] = FAILED  # five changes are too few to raise an alarm
    checks = {check.name: check for check in compare_runs([first], second)}
    alone = checks["faithfulness.failed"]
    assert alone.fail_p == alone.corrected_p == pytest.approx(1 / 128)
    assert alone.result == "fail"
    assert checks["rag.failed"].fail_p is None
    assert checks["rag.failed"].result == "undecided"


def test_a_change_that_ruins_everything_merges_in_no_way(rng: np.random.Generator) -> None:
    for next_candidate in CHURNS.values():
        assert not any(merged_of_series(rng, next_candidate, 60.0, "last and anchor"))
    assert summarise([[True] * 2 + [False] * 10, [True] * CHANGES])["distribution"] == (
        [0, 0, 1, *[0] * 9, 1]
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_labels_are_of_different_answers_and_of_those_that_a_way_chooses(
    choice: str, rng: np.random.Generator
) -> None:
    right, judged = make_answers(rng, 300, 0.5, 0.9, 0.2)
    failed = judged.strata == 1
    places = CHOICES[choice](rng, failed, judged.badness, 50)
    assert len(set(places.tolist())) == len(places) == 50
    flagged = {"at random": (0.2, 0.6), "half flagged, half at random": (0.5, 0.9)}
    low, high = flagged.get(choice, (1.0, 1.0))
    assert low <= failed[places].mean() <= high
    refusals = right[judged.strata == 2]
    assert refusals.mean() == pytest.approx(RIGHT_REFUSALS, abs=0.1)


# What was measured -------------------------------------------------------------------------------


def test_equal_runs_fail_in_at_most_25_of_1000_gate_calls() -> None:
    figures = read_result("gate")
    equal = [row for row in figures["rows"] if row["second_run"] == "equal"]
    assert [row["metrics"] for row in equal] == [1, 3, 6]
    for row in equal:
        assert all(row[f"n={n}"]["fail"] <= 0.025 * figures["draws"] for n in (30, 60, 200))


def test_ten_points_more_that_fail_are_noticed() -> None:
    figures = read_result("gate")
    rows = [row for row in figures["rows"] if row["second_run"] == "10 points more fail"]
    assert rows[0]["metrics"] == 1
    assert rows[0]["n=200"]["fail"] >= 0.8 * figures["draws"]


def test_an_anchor_stops_the_ratchet_and_lets_equal_changes_merge() -> None:
    rows = {
        (row["churn"], row["points_worse"], row["compared_with"]): row
        for row in read_result("ratchet")["rows"]
    }
    for churn in CHURNS:
        assert rows[churn, 0.0, "last and anchor"]["share_merged"] >= 95
        anchored, alone = (
            rows[churn, 3.0, compared]["mean"] for compared in ("last and anchor", "last alone")
        )
        assert anchored < 0.6 * alone


def test_corrected_shares_hold_with_as_few_labels_as_are_asked_for() -> None:
    figures = read_result("corrected")
    assert figures["fewest_labels"] == MIN_LABELS_OF_OUTCOME, (
        "measure again (lab.benchmarks.corrected choices)"
    )
    low, high = figures["band"]
    for row in figures["by_fewest"]:
        if row["labels_from"] >= MIN_LABELS_OF_OUTCOME and row["intervals"] >= 1000:
            assert low <= row["coverage"] <= high, row
