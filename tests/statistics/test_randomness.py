"""Randomness depends on what it is for, and on nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.statistics.resampling import generator


def draws(seed: int, *purpose: str) -> list[float]:
    return [float(x) for x in generator(seed, *purpose).random(4)]


def test_the_same_purpose_gives_the_same_numbers_in_any_order() -> None:
    first = {name: draws(7, name) for name in ("a", "b", "c")}
    assert first == {name: draws(7, name) for name in ("c", "a", "b")}


def test_seed_and_every_part_of_the_purpose_count() -> None:
    different = [
        draws(0, "q1", "bootstrap"),
        draws(1, "q1", "bootstrap"),
        draws(0, "q2", "bootstrap"),
        draws(0, "q1", "shuffle"),
        draws(0, "bootstrap", "q1"),
        draws(0, "q1"),
        draws(0),
        draws(0, ""),
    ]
    assert len({tuple(d) for d in different[:-1]}) == len(different) - 1


def test_purposes_do_not_overlap() -> None:
    a, b = generator(0, "a").random(2000), generator(0, "b").random(2000)
    assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.08


def test_the_numbers_are_those_of_ever() -> None:
    """A change here changes every interval that anyone has published."""
    assert generator(0, "bootstrap", "grounding").integers(0, 1000, 5).tolist() == [
        266,
        536,
        584,
        141,
        123,
    ]


@given(st.integers(0, 2**70), st.text(alphabet=st.characters()))
def test_any_seed_and_any_text_will_do(seed: int, purpose: str) -> None:
    assert draws(seed, purpose) == draws(seed, purpose)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "x")
