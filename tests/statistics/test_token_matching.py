"""Greedy matching of tokens, by hand and by what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.statistics.token_matching import greedy_match, harmonic_mean


def test_greedy_match_by_hand() -> None:
    # Cosines: of the answer's rows with the gold answer's 1, 0; 0.6, 0.8; of any length.
    answer = [[2.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    gold = [[1.0, 0.0], [0.0, 5.0]]
    found = greedy_match(answer, gold)
    assert found.precision == pytest.approx((1 + 0.8 + 0) / 3)
    assert found.recall == pytest.approx((1 + 0.8) / 2)
    assert found.f1 == pytest.approx(2 * 0.6 * 0.9 / 1.5)


def test_special_tokens_are_matched_with_and_count_in_no_mean() -> None:
    answer = np.eye(3)[[0, 1]]  # the first is special
    gold = np.eye(3)[[1, 2, 0]]  # the last is special
    assert greedy_match(answer, gold, [0], [2]).precision == 1
    assert greedy_match(answer, gold, [0], [2]).recall == pytest.approx(1 / 2)
    assert greedy_match(np.eye(3)[[0]], gold[[0, 2]], [], [1]).precision == 1
    assert greedy_match(answer, gold, [0, 1], [2]) == (0, 0, 0)
    assert greedy_match(answer, gold, [0], [0, 1, 2]) == (0, 0, 0)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_greedy_match_has_the_bounds_of_a_cosine(m: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(m, 4)), rng.normal(size=(n, 4))
    there, back = greedy_match(one, other), greedy_match(other, one)
    assert there.precision == pytest.approx(back.recall)
    assert all(-1 <= value <= 1 for value in there[:2])
    assert 0 <= there.f1 <= 1
    same = greedy_match(one, one * 3)
    assert max(same) <= 1
    assert same == pytest.approx((1, 1, 1))


def test_a_harmonic_mean_of_what_may_be_negative() -> None:
    assert harmonic_mean(0, 0) == harmonic_mean(0.5, -0.4) == harmonic_mean(-0.5, -0.4) == 0
    assert harmonic_mean(1, 0.5) == pytest.approx(2 / 3)
