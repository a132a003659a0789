"""Sets of hashes behave like sets, whatever is still fresh and whatever is sorted already."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.runs import lines
from trustassay.runs.lines import HashSet, hash64


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1)))
def test_a_hash_set_is_a_set(added: list[int], others: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_RECENT_HASHES", 3)
        found = HashSet()
        for value in added + added[::-1]:
            found.add(value)
    assert len(found) == len(set(added))
    assert all(value in found for value in added)
    assert [value in found for value in others] == [value in set(added) for value in others]


def test_a_hash_fits_into_64_bits_and_depends_on_every_part() -> None:
    hashes = {hash64(*parts) for parts in [("a",), ("a", "b"), ("ab",), ("b", "a"), ("", "a")]}
    assert len(hashes) == 5
    assert all(0 <= np.uint64(value) < 2**64 for value in hashes)


def test_texts_that_no_file_can_hold_have_a_hash() -> None:
    assert hash64("\ud800") != hash64("\ud801")
