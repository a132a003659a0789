"""Trust_BC from its definition (Zheng et al. 2024, section 2.1), triples and places."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.consistency import maths
from trustassay.metrics.consistency.maths import ChoiceCheck

KEPT, OTHER, NONE, UNPARSED = (
    ChoiceCheck(1, 1),
    ChoiceCheck(1, 2),
    ChoiceCheck(1, 4),
    ChoiceCheck(1, None),
)

checks = st.lists(
    st.builds(ChoiceCheck, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 4))), max_size=12
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------------------------- the score


@pytest.mark.parametrize(
    ("made", "apart", "counted"),
    [
        ([KEPT] * 10, 1.0, 1.0),
        ([KEPT] * 9 + [OTHER], 0.0, 0.0),
        ([NONE], 0.0, 0.0),
        ([KEPT, UNPARSED], None, 0.0),
        ([UNPARSED] * 10, None, 0.0),
        ([UNPARSED, OTHER], 0.0, 0.0),
        ([KEPT, UNPARSED, KEPT], 1.0, 0.0),
        ([], None, None),
    ],
)
def test_one_where_all_are_consistent_and_zero_where_one_is_not(
    made: list[ChoiceCheck], apart: float | None, counted: float | None
) -> None:
    wanted = 2 if UNPARSED in made else len(made)
    assert maths.trust_bc(made, wanted, unparsed_counts=False) == apart
    assert maths.trust_bc(made, wanted, unparsed_counts=True) == counted


@pytest.mark.parametrize(
    ("score", "low", "high"), [(None, 0, 1), (0.0, 0, 0), (1.0, 1, 1), (0.4, 0.4, 0.4)]
)
def test_an_open_answer_may_be_0_or_1(score: float | None, low: float, high: float) -> None:
    assert maths.score_bounds(score) == (low, high)


@pytest.mark.parametrize(("checks", "replaced"), [(0, 0), (1, 1), (4, 2), (10, 5), (11, 6)])
def test_half_of_the_checks_may_be_replaced(checks: int, replaced: int) -> None:
    assert maths.count_replaceable_checks(checks) == replaced


@pytest.mark.parametrize(
    ("made", "apart", "counted"),
    [
        ([KEPT] * 3 + [OTHER], 0.75, 0.75),
        ([KEPT, NONE, UNPARSED, UNPARSED], 0.5, 0.25),
        ([UNPARSED], None, 0.0),
        ([], None, None),
    ],
)
def test_the_share_is_of_replies_that_name_an_option(
    made: list[ChoiceCheck], apart: float | None, counted: float | None
) -> None:
    assert maths.share_consistent(made, unparsed_counts=False) == apart
    assert maths.share_consistent(made, unparsed_counts=True) == counted


@given(checks, st.booleans())
def test_stopping_at_the_first_inconsistent_check_changes_no_score(
    made: list[ChoiceCheck], counts: bool
) -> None:
    ends = [i for i, one in enumerate(made) if maths.ends_checks(one, unparsed_counts=counts)]
    stopped = made[: ends[0] + 1] if ends else made
    score = maths.trust_bc(made, len(made), unparsed_counts=counts)
    assert maths.trust_bc(stopped, len(made), unparsed_counts=counts) == score
    share = maths.share_consistent(made, unparsed_counts=counts)
    assert (score == 1) == (share == 1 and (counts or UNPARSED.chosen not in [c[1] for c in made]))


# ----------------------------------------------------------------------------------- the triples


@pytest.mark.parametrize(
    ("candidates", "most"), [(0, 0), (1, 0), (2, 0), (3, 1), (4, 4), (5, 10), (40, 10)]
)
def test_few_candidates_allow_few_checks(candidates: int, most: int) -> None:
    assert maths.count_possible_checks(candidates, 10) == most
    assert len(maths.draw_triples(candidates, 10, rng())) == most


@given(st.integers(0, 12), st.integers(0, 30), st.integers(0, 5))
def test_triples_are_distinct_and_none_recurs_before_all_were_offered(
    candidates: int, n: int, seed: int
) -> None:
    found = maths.draw_triples(candidates, n, rng(seed))
    assert len(found) == min(n, comb(candidates, 3))
    assert all(len(set(one)) == 3 and max(one) < candidates for one in found)
    assert len({frozenset(one) for one in found}) == len(found)
    offered: set[int] = set()
    for one in found:
        new = set(one) - offered
        assert len(new) == min(3, candidates - len(offered))
        offered |= new


def test_all_triples_of_five_are_offered() -> None:
    found = {frozenset(one) for one in maths.draw_triples(5, 10, rng())}
    assert found == {frozenset(one) for one in combinations(range(5), 3)}


def test_thirty_of_forty_candidates_are_offered_once() -> None:
    uses = Counter(i for one in maths.draw_triples(40, 10, rng()) for i in one)
    assert set(uses.values()) == {1}
    assert len(uses) == 30


@given(st.integers(3, 8), st.integers(1, 20), st.integers(0, 3))
def test_fewer_checks_are_the_first_of_more(candidates: int, n: int, seed: int) -> None:
    more = maths.draw_triples(candidates, n + 5, rng(seed))
    assert maths.draw_triples(candidates, n, rng(seed)) == more[:n]
    assert maths.draw_places(n, rng(seed)) == maths.draw_places(n + 5, rng(seed))[:n]


def test_every_candidate_is_as_likely_to_be_offered() -> None:
    uses = Counter(i for seed in range(1000) for i in maths.draw_triples(6, 1, rng(seed))[0])
    assert all(abs(uses[i] - 500) < 5 * np.sqrt(1000 * 0.25) for i in range(6))


# ------------------------------------------------------------------------------------ the places


@given(st.integers(0, 23), st.integers(0, 5))
def test_places_differ_by_one_at_most(n: int, seed: int) -> None:
    uses = Counter(dict.fromkeys(range(4), 0))
    uses.update(maths.draw_places(n, rng(seed)))
    assert len(uses) == 4
    assert sum(uses.values()) == n
    assert max(uses.values()) - min(uses.values()) <= 1


def test_every_place_is_as_likely_to_be_the_first() -> None:
    uses = Counter(maths.draw_places(1, rng(seed))[0] for seed in range(1000))
    assert all(abs(uses[i] - 250) < 5 * np.sqrt(1000 * 3 / 16) for i in range(4))


# ------------------------------------------------------------------------------ the place's bias


def totals(made: list[ChoiceCheck]) -> dict[str, int]:
    return maths.count_choices(made)


def test_what_is_counted() -> None:
    found = totals(
        [
            ChoiceCheck(0, 0),
            ChoiceCheck(2, 1),
            ChoiceCheck(3, 4, asked_again=True),
            ChoiceCheck(1, None, asked_again=True),
        ]
    )
    assert {name: number for name, number in found.items() if number} == {
        "checks": 4,
        "consistent": 1,
        "none_chosen": 1,
        "asked_again": 2,
        "unparsed": 1,
        **{"offered_a": 1, "offered_c": 1, "offered_d": 1},
        **{"chosen_a": 1, "chosen_b": 1},
    }


@pytest.mark.parametrize(
    ("made", "bias"),
    [
        ([ChoiceCheck(i, i) for i in range(4)], 0.0),
        ([ChoiceCheck(i, 0) for i in range(4)], 0.75),
        ([ChoiceCheck(i, (i + 1) % 4) for i in range(4)], 0.0),  # wrong, and yet of no place
        ([ChoiceCheck(0, 0), ChoiceCheck(1, 1), ChoiceCheck(2, 0), ChoiceCheck(3, 1)], 0.5),
        ([ChoiceCheck(0, 0), ChoiceCheck(0, 3)], 0.5),
        ([ChoiceCheck(0, 4), ChoiceCheck(1, None)], None),
        ([], None),
    ],
)
def test_the_bias_is_the_distance_between_chosen_and_offered(
    made: list[ChoiceCheck], bias: float | None
) -> None:
    assert maths.position_bias(totals(made)) == bias


@given(checks)
def test_the_bias_is_a_share(made: list[ChoiceCheck]) -> None:
    bias = maths.position_bias(totals(made))
    assert bias is None or 0 <= bias <= 1
