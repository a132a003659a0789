"""What votes amount to: by hand, by going through all that may follow, and by properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.metrics.judge.votes import (
    PassingVotes,
    compute_expected_value,
    decide_outcome,
    find_majority,
    flip_rate,
    is_settled,
    spread,
)

VALUES = {"5": 5.0, "4": 4.0, "3": 3.0, "2": 2.0, "1": 1.0}


def test_majority_is_the_lowest_of_the_most_frequent() -> None:
    assert find_majority(["4", "4", "1"], VALUES) == "4"
    assert find_majority(["4", "1", "4", "1", "5"], VALUES) == "1"
    assert find_majority(["3"], VALUES) == "3"


def test_spread_by_hand() -> None:
    assert spread([3, 3, 3]) == 0
    assert spread([2, 4]) == pytest.approx(math.sqrt(2))
    assert spread([4]) is None


def test_flip_rate_is_the_share_of_the_lesser_side() -> None:
    assert flip_rate(PassingVotes(30, 30)) == 0
    assert flip_rate(PassingVotes(21, 30)) == pytest.approx(30)
    assert flip_rate(PassingVotes(9, 30)) == pytest.approx(30)


def test_outcomes() -> None:
    # Few votes decide by majority, from five on by an interval: 5 of 5, but not 5 of 6.
    assert [decide_outcome(PassingVotes(k, 4)) for k in (4, 3, 2, 1)] == [
        "passes",
        "passes",
        "undecided",
        "fails",
    ]
    assert decide_outcome(PassingVotes(5, 5)) == "passes"
    assert decide_outcome(PassingVotes(0, 5)) == "fails"
    assert decide_outcome(PassingVotes(5, 6)) == "undecided"
    assert [decide_outcome(PassingVotes(k, 30)) for k in (9, 10, 20, 21)] == [
        "fails",
        "undecided",
        "undecided",
        "passes",
    ]


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=60, deadline=None)
def test_outcomes_mirror_each_other(votes: tuple[int, int]) -> None:
    passing, n = votes
    mirror = {"passes": "fails", "fails": "passes", "undecided": "undecided"}
    assert (
        decide_outcome(PassingVotes(n - passing, n))
        == mirror[decide_outcome(PassingVotes(passing, n))]
    )


@pytest.mark.parametrize("total", [4, 9, 14])
def test_settled_means_that_nothing_that_may_follow_changes_it(total: int) -> None:
    found = 0
    for n in range(1, total):
        for passing in range(n + 1):
            if is_settled(PassingVotes(passing, n), total - n):
                found += 1
                after = {
                    decide_outcome(PassingVotes(passing + more, n + read))
                    for read in range(total - n + 1)  # the others could not be read
                    for more in range(read + 1)
                }
                assert len(after) == 1
    assert found > 0
    assert is_settled(PassingVotes(0, 0), 0)
    assert not is_settled(PassingVotes(0, 0), 3)


def test_expected_value_by_hand() -> None:
    logs = {"4": math.log(0.5), "3": math.log(0.25), "9": math.log(0.25)}
    assert compute_expected_value(logs, VALUES) == pytest.approx(((2 + 0.75) / 0.75, 0.75))
    assert compute_expected_value({}, VALUES) is None
    assert compute_expected_value({"4": -math.inf}, VALUES) is None
