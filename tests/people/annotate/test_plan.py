"""Who rates what, in which order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.people.annotate.project import (
    build_steps,
    divide_pages,
    draw_order_with_repeats,
    draw_per_group,
)


@given(
    size=st.integers(1, 60),
    again=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_a_repeat_comes_later_and_never_next(size: int, again: float, seed: int) -> None:
    order = draw_order_with_repeats(size, again, np.random.default_rng(seed))
    first = {page: at for at, (page, repeat) in enumerate(order) if repeat == 0}
    second = {page: at for at, (page, repeat) in enumerate(order) if repeat == 1}
    assert sorted(first) == list(range(size))
    assert len(order) == len(first) + len(second)
    assert len(second) == (round(again * size) if size > 1 else 0)
    assert all(at - first[page] >= 2 for page, at in second.items())


def test_few_repeats_are_a_third_apart_and_not_all_at_the_end() -> None:
    order = draw_order_with_repeats(90, 0.2, np.random.default_rng(0))
    first = {page: at for at, (page, repeat) in enumerate(order) if repeat == 0}
    second = {page: at for at, (page, repeat) in enumerate(order) if repeat == 1}
    assert len(second) == 18
    assert min(at - first[page] for page, at in second.items()) >= 30
    assert min(second.values()) < 70


@given(
    pages=st.integers(0, 50),
    raters=st.integers(1, 5),
    double=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_shares(pages: int, raters: int, double: float, seed: int) -> None:
    found = divide_pages(pages, [f"r{n}" for n in range(raters)], double, seed)
    counts = Counter(page for own in found.values() for page in own)
    common = round(double * pages)
    assert sorted(counts) == list(range(pages))
    if raters > 1:
        assert sorted(counts.values()) == [1] * (pages - common) + [raters] * common
    sizes = [len(own) for own in found.values()]
    assert max(sizes) - min(sizes) <= 1


def test_the_order_is_drawn_for_each_rater_and_the_same_again() -> None:
    pages = [(n,) for n in range(30)]
    anna = build_steps(pages, "anna", 0.3, 7)
    assert anna == build_steps(pages, "anna", 0.3, 7)
    assert anna != build_steps(pages, "anna", 0.3, 8)
    bela = build_steps(pages, "bela", 0.3, 7)
    assert [one.item for one in anna] != [one.item for one in bela]


def test_pages_stay_whole_and_their_order_is_drawn() -> None:
    pages = [(3 * n, 3 * n + 1, 3 * n + 2) for n in range(20)]
    found = build_steps(pages, "anna", 0.5, 0)
    assert len(found) == 90
    orders = set()
    for number in range(30):
        together = [one.item for one in found if one.page == number]
        assert {item // 3 for item in together} == {together[0] // 3}
        orders.add(tuple(item % 3 for item in together))
    assert len(orders) > 3


def test_sides_are_drawn_for_pairs_alone() -> None:
    pages = [(n,) for n in range(400)]
    swapped = sum(one.swapped for one in build_steps(pages, "anna", 0, 0, pairs=True))
    assert 150 < swapped < 250
    assert not any(one.swapped for one in build_steps(pages, "anna", 0, 0))


def test_the_same_number_of_each_group() -> None:
    groups = [("a", "web")] * 10 + [("b", "web")] * 30 + [("a", "code")] * 7
    found = draw_per_group(groups, 7, 0)
    assert Counter(groups[place] for place in found) == dict.fromkeys(set(groups), 7)
    assert found == draw_per_group(groups, 7, 0)
    assert found != draw_per_group(groups, 7, 1)
    with pytest.raises(
        ValueError, match=r"--per-group 8: the smallest group \('a', 'code'\) has 7"
    ):
        draw_per_group(groups, 8, 0)
