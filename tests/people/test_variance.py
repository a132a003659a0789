"""One question of variance for people and judges: groups and sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.metrics.judge import helpers
from trustassay import score
from trustassay.input.ratings import Rating, Ratings
from trustassay.metrics import Judge
from trustassay.people.agree import measure_agreement
from trustassay.people.variance import JUDGES, PEOPLE, RATERS, decompose_variances
from trustassay.people.votes import read_votes

ANSWERS = np.random.default_rng(7).normal(3, 1, 60)


def rated(name: str, repeats: int, noise: float, n: int = 60) -> list[Rating]:
    rng = np.random.default_rng(len(name) * 100 + ord(name[0]))
    own = rng.normal(0, 0.3, n)
    return [
        Rating(f"i{i}", name, float(ANSWERS[i] + own[i] + rng.normal(0, noise)), k)
        for i in range(n)
        for k in range(repeats)
    ]


PERSONS = [*rated("ann", 2, 0.8), *rated("bo", 2, 0.8)]
STEADY = [*rated("j1", 6, 0.2), *rated("judge2", 6, 0.2)]


def test_people_and_judges_stand_side_by_side() -> None:
    found = decompose_variances([*PERSONS, *STEADY], {"j1", "judge2"})
    assert list(found.groups) == [PEOPLE, JUDGES]
    people, judges = found.groups[PEOPLE], found.groups[JUDGES]
    assert (people.raters, people.answers, people.ratings, people.repeated) == (2, 60, 240, 60)
    assert (judges.raters, judges.ratings) == (2, 720)
    own, other = people.component("repeat"), judges.component("repeat")
    assert own and other
    assert own.sd == pytest.approx(0.8, abs=0.1)
    assert other.sd == pytest.approx(0.2, abs=0.02)
    assert own.sd_interval and own.sd_interval[0] < 0.8 < own.sd_interval[1]
    assert own.share_interval and own.share_interval[0] < (own.share or 0) < own.share_interval[1]
    assert sum(one.share or 0 for one in people.components) == pytest.approx(100)
    assert found.difference == pytest.approx(other.sd - own.sd)
    assert "judges vary less than people (difference -0." in found.in_words()
    turned = decompose_variances([*PERSONS, *STEADY], {"ann", "bo"}).in_words()
    assert "judges vary more than people (difference +0." in turned


def test_no_difference_is_told_where_there_is_none() -> None:
    again = [*rated("j1", 2, 0.8), *rated("judge2", 2, 0.8)]
    found = decompose_variances([*PERSONS, *again], {"j1", "judge2"})
    assert "; no significant difference (difference" in found.in_words()
    low, high = found.difference_interval or (1, -1)
    assert low < 0 < high


def test_answers_to_one_question_are_left_out_together() -> None:
    alone = decompose_variances(PERSONS).groups[RATERS]
    together = decompose_variances(PERSONS, units={f"i{i}": i // 2 for i in range(60)}).groups[
        RATERS
    ]
    few = decompose_variances(PERSONS, units={f"i{i}": i // 4 for i in range(60)}).groups[RATERS]
    assert [one.share for one in alone.components] == [one.share for one in together.components]
    first, second = alone.component("answer"), together.component("answer")
    assert first and second and first.share_interval and second.share_interval
    assert first.share_interval != second.share_interval
    assert few.without.startswith("too few independent units (of equal size): 15; at least 20")


def test_each_group_is_taken_apart_by_itself() -> None:
    alone = decompose_variances(PERSONS).groups[RATERS]
    beside = decompose_variances([*STEADY, *PERSONS], {"j1", "judge2"}).groups[PEOPLE]
    assert [one.estimate for one in alone.components] == pytest.approx(
        [one.estimate for one in beside.components]
    )


@pytest.mark.parametrize(
    ("people", "judges", "words"),
    [
        (
            [*rated("ann", 1, 1), *rated("bo", 1, 1)],
            STEADY,
            "No answer was rated twice by the same person, so the variation between repeated "
            "ratings is unknown. Whether judges vary more or less than people is therefore unknown",
        ),
        (rated("ann", 2, 1, 9), rated("j1", 3, 1, 9), "is unknown: too few answers: 9; at lea"),
        (
            [Rating("a", "ann", 1), Rating("a", "ann", 2, 1)],
            STEADY,
            "The variance of the people cannot be decomposed: fewer than two answers were rated.",
        ),
    ],
)
def test_what_cannot_be_said_is_said(people: Any, judges: Any, words: str) -> None:
    machines = {one.rater for one in judges}
    assert words in decompose_variances([*people, *judges], machines).in_words()


def test_one_group_alone_says_how_far_a_rater_differs_from_themselves() -> None:
    words = decompose_variances(STEADY, {"j1", "judge2"}).in_words()
    assert words.startswith("Standard deviation between repeated ratings of the same answer: 0.")
    assert words.endswith(" A comparison of judges with people needs repeated ratings by both.")


def test_ratings_that_are_all_the_same_have_no_shares() -> None:
    ratings = [Rating(f"i{i}", who, 4, k) for i in range(30) for who in "ab" for k in range(2)]
    found = decompose_variances(ratings).groups[RATERS]
    assert found.without == "all ratings are the same"
    assert {one.share for one in found.components} == {None}
    assert {one.variance for one in found.components} == {0.0}


def test_an_estimate_below_zero_counts_as_none_and_is_kept() -> None:
    # Two raters who disagree on single answers, alike on average: less between them than by chance.
    ratings = [
        Rating(f"i{i}", who, 1 + (i + at) % 2) for i in range(30) for at, who in enumerate("ab")
    ]
    found = decompose_variances(ratings).groups[RATERS]
    rater = found.component("rater")
    assert rater and rater.estimate < 0
    assert (rater.variance, rater.share) == (0, 0)


def test_categories_without_an_order_have_no_variance() -> None:
    ratings = [Rating("a", "x", 0), Rating("a", "y", 1), Rating("b", "x", 1), Rating("b", "y", 1)]
    found = measure_agreement(Ratings(ratings, ("fair", "good"), ordered=False))
    assert found.variance is None
    assert found.to_dict()["variance"] is None
    assert measure_agreement(Ratings(ratings)).to_dict()["variance"]["groups"]


def test_the_votes_of_a_noisy_judge_have_its_variance(tmp_path: Path) -> None:
    samples = helpers.answers([2, 3, 4] * 14)
    judge = helpers.Scripted(helpers.noisy(0.3))
    run = score(samples, metrics=Judge(repeats=10), judge=judge, out=tmp_path / "r", cache=None)
    votes = read_votes(run.path)
    assert votes is not None
    found = measure_agreement(votes, machines={"judge"})
    assert found.variance
    (group,) = found.variance.groups.values()
    assert [one.name for one in group.components] == ["answer", "repeat"]
    # One level off in three of ten votes: a variance of .3; levels 2, 3, 4: 2/3 n / (n - 1).
    assert [one.variance for one in group.components] == pytest.approx([0.68, 0.3], abs=0.05)
    assert json.dumps(found.to_dict())
