"""How many answers are usual, which groups vanished, how old the last run is: hand-made cases."""

from __future__ import annotations

from datetime import date
from math import comb

import numpy as np
import pytest
from lab.results import read_result

from trustassay.live import volume
from trustassay.live.volume import (
    DAILY_LEVEL,
    compare_counts,
    count_answers,
    find_absences,
    read_staleness,
)


def low_days(counts: list[int], first_weekday: int = 0) -> list[int]:
    weekdays = [(first_weekday + day) % 7 for day in range(len(counts))]
    tested = compare_counts(counts, weekdays)
    return [day for day, one in enumerate(tested) if one is not None and one[1] < DAILY_LEVEL]


@pytest.mark.parametrize(
    ("before", "today", "is_low"),
    [
        ([60] * 3, 1, True),
        ([55, 68, 61], 1, True),
        ([60] * 8, 1, True),
        ([60] * 8, 30, False),  # of eight days a half may be chance
        ([60] * 8, 120, False),
        ([60] * 2, 1, False),  # two days do not say what is usual
        ([5] * 30, 0, False),  # so few are chance: once in 150 days
        ([12] * 60, 0, True),
        ([10] * 200, 1, False),  # a Poisson number of mean 10 is 1 or 0 once in 2,000 days
        ([20, 100, 45, 160, 70, 15, 90, 60], 5, False),  # these days differ by themselves
        ([1000] * 28, 500, True),
        ([0] * 5, 0, False),
    ],
)
def test_a_day_with_fewer_answers_than_days_differ_by_is_low(
    before: list[int], today: int, is_low: bool
) -> None:
    assert low_days([*before, today]) == [len(before)] * is_low


def test_what_stays_low_is_low_on_each_day() -> None:
    assert low_days([60] * 20 + [1] * 10) == list(range(20, 30))


def test_a_weekend_is_known_after_two() -> None:
    weeks = [60, 62, 58, 61, 59, 4, 5] * 8
    assert low_days(weeks) == [5, 6, 12, 13]
    weeks[45] = 3
    assert low_days(weeks) == [5, 6, 12, 13, 45]


def test_the_usual_number_is_that_of_the_days_before() -> None:
    (*_, last) = compare_counts([50, 60, 70, 999], [0, 1, 2, 3])
    assert last is not None
    assert last == (60.0, 1.0)


def test_false_alarms_keep_the_level() -> None:
    """Of 60 years of a hundred days each, 0.6 days are expected at most; 5 are a thousandth."""
    rng = np.random.default_rng(4)
    days = 0
    for mean, spread in ((10, 0.1), (60, 0.2), (500, 0.3)):
        for _ in range(20):
            means = mean * rng.gamma(1 / spread**2, spread**2, 100)
            days += len(low_days(rng.poisson(means).tolist()))
    assert days < 5


def test_the_rule_is_the_one_that_was_measured() -> None:
    """``python -m lab.benchmarks.volumes`` measures it again: ``lab/results/volumes.json``."""
    figures = read_result("volumes")
    assert figures["rule"] == {
        "daily_level": volume.DAILY_LEVEL,
        "assumed_spread": volume.ASSUMED_SPREAD,
        "assumed_days": volume.ASSUMED_DAYS,
        "fewest_days": volume.MIN_DAYS,
    }
    rates = [one["per_10000_days"] for one in figures["false_alarms"]]
    assert max(rates) < 4 and sum(rates) / len(rates) < 1
    found = {one["name"]: one["found"] for one in figures["falls"]}
    assert found["60 a day, 3 days, 2% left"] > 90


def days_with(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"all": total, "x": own} if own else {"all": total} for total, own in pairs]


def test_a_group_vanished_if_chance_does_not_explain_it() -> None:
    """Ten of 40 a day for three days, then none: (120 over 30) / (160 over 30) is 5e-5."""
    days = days_with(*[(40, 10)] * 3, (40, 0))
    assert comb(120, 30) / comb(160, 30) < DAILY_LEVEL < comb(80, 20) / comb(120, 20)
    assert find_absences(days, "all") == [(3, "x", 2)]
    assert find_absences(days[1:], "all") == []
    assert find_absences([*days[1:], {"all": 40}], "all") == [(3, "x", 1)]


def test_a_group_that_was_away_as_long_before_has_not_vanished() -> None:
    week = [(60, 30), *[(60, 0)] * 6]
    assert [day for day, _, _ in find_absences(days_with(*week * 4), "all")] == [1]
    assert find_absences(days_with((60, 30), *[(60, 0)] * 2), "all") == [(1, "x", 0)]


def test_a_group_that_comes_back_and_goes_for_longer_vanished_again() -> None:
    days = days_with((60, 30), (60, 0), (60, 30), (60, 0), (60, 0))
    assert find_absences(days, "all") == [(1, "x", 0), (4, "x", 2)]


def test_a_new_group_is_no_absence_before_it() -> None:
    assert find_absences(days_with((60, 0), (60, 0), (60, 30)), "all") == []


def test_answers_are_counted_once_however_many_metrics_there_are() -> None:
    said = {
        "first": {"all": {"supported": 3, "failed": 1}, "x": {"failed": 1}},
        "second": {"all": {"no verdict": 4}},
    }
    assert count_answers({"said": said}) == {"all": 4, "x": 1}


@pytest.mark.parametrize(
    ("days", "today", "is_stale"),
    [
        (["2026-10-01"], 4, False),
        (["2026-10-01"], 5, True),
        (["2026-10-01", "2026-10-02", "2026-10-05"], 11, False),  # gaps of 1 and 3: 2 on median
        (["2026-10-01", "2026-10-02", "2026-10-05"], 12, True),
        ([], 12, False),
    ],
)
def test_a_run_is_overdue_after_three_times_the_usual_gap(
    days: list[str], today: int, is_stale: bool
) -> None:
    assert read_staleness(days, date(2026, 10, today)).is_stale is is_stale
