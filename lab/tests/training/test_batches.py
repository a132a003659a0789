"""Batches hold every pair once, and the pairs of a premise together where that is asked."""

import numpy as np

from lab.training.batches import BATCH, LARGEST, alone, batches, groups
from lab.training.data import Pair

ROWS = [Pair(f"p{n % 500}", f"h{n}", n % 3, "x") for n in range(3000)]
LENGTHS = [10 + n * 7 % 90 for n in range(3000)]


def test_each_pair_once() -> None:
    for together in (alone(3000), groups(ROWS)):
        found = batches(LENGTHS, 1, together)
        assert sorted(i for batch in found for i in batch) == list(range(3000))
        assert max(map(len, found)) < BATCH + LARGEST
        assert found == batches(LENGTHS, 1, together) != batches(LENGTHS, 2, together)


def test_batches_are_of_like_length() -> None:
    found = batches(LENGTHS, 1, alone(3000))
    assert np.mean([max(LENGTHS[i] for i in b) - min(LENGTHS[i] for i in b) for b in found]) < 5
    assert {len(batch) for batch in found[:-1]} <= {BATCH, 2048 % BATCH, 952 % BATCH}


def test_pairs_of_a_premise_stay_together() -> None:
    places = {i: n for n, batch in enumerate(batches(LENGTHS, 1, groups(ROWS))) for i in batch}
    for premise in range(500):
        assert len({places[i] for i in range(premise, 3000, 500)}) == 1


def test_a_pair_that_is_there_twice_and_a_premise_with_many() -> None:
    assert groups([*ROWS[:2], *ROWS[:2]]) == [[0], [1], [2], [3]]
    many = [Pair("p", f"h{n}", 0, "x") for n in range(LARGEST + 3)]
    assert [len(part) for part in groups(many)] == [LARGEST, 3]
