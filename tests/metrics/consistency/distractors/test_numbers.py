import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.metrics.consistency.tokens import (
    draw_number_neighbours,
    find_numbers,
    select_same_form,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There are 10 episodes.", ["10"]),
        ("It has 1,234,567 people and 5.5 degrees", ["1,234,567", "5.5"]),
        ("the 19th of three", ["19th", "three"]),
        ("AK-47 and 3-4 and A1", []),
        ("Two won", ["Two"]),
        ("", []),
    ],
)
def test_numbers_are_found(text: str, expected: list[str]) -> None:
    slots = find_numbers(text)
    assert [slot.text for slot in slots] == expected
    assert all(text[slot.start : slot.end] == slot.text for slot in slots)


@given(value=st.integers(0, 10**9), seed=st.integers(0, 50))
@settings(max_examples=120, deadline=None)
def test_neighbours_have_as_many_digits_no_leading_zero_and_a_similar_size(
    value: int, seed: int
) -> None:
    text = str(value)
    others = draw_number_neighbours(text, 20, rng(seed))
    assert text not in others and len(set(others)) == len(others)
    for other in others:
        assert len(other) == len(text) and re.fullmatch(r"[1-9]\d*|0", other)
        assert abs(int(other) - value) <= max(value, 10)


@pytest.mark.parametrize("text", ["5", "12", "1,250", "7.5", "19th", "0.75"])
def test_there_are_at_least_three(text: str) -> None:
    assert len(draw_number_neighbours(text, 40, rng())) >= 3


def test_the_way_of_writing_is_kept() -> None:
    assert all(re.fullmatch(r"\d,\d{3}", one) for one in draw_number_neighbours("1,250", 9, rng()))
    assert all(re.fullmatch(r"\d\.\d", one) for one in draw_number_neighbours("5.5", 9, rng()))
    ordinals = draw_number_neighbours("19th", 40, rng())
    assert {"21st", "12th", "22nd", "23rd"} <= set(ordinals)


def test_a_round_number_has_round_neighbours() -> None:
    assert all(one.endswith("00") for one in draw_number_neighbours("5000", 9, rng()))


def test_number_words_stay_in_their_series() -> None:
    assert set(draw_number_neighbours("Two", 40, rng())) <= {
        word.capitalize()
        for word in "one three four five six seven eight nine ten eleven twelve".split()
    }
    assert "second" in draw_number_neighbours("third", 40, rng())
    assert set(draw_number_neighbours("million", 9, rng())) == {
        "hundred",
        "thousand",
        "billion",
        "trillion",
    }


def test_digits_are_those_of_ascii() -> None:
    assert find_numbers("٣ and ١٢٣ and 12") == [find_numbers("٣ and ١٢٣ and 12")[-1]]
    assert find_numbers("12\u00a0km")[0].text == "12" and find_numbers("caf\u00e912") == []


@pytest.mark.parametrize("text", ["9" * 19, "1" * 5000, "1." + "3" * 18, "9" + ",999" * 7])
def test_what_is_too_long_for_a_random_number_has_no_neighbours(text: str) -> None:
    assert find_numbers(f"It is {text} long")[0].text == text
    assert draw_number_neighbours(text, 5, rng()) == []
    assert len(draw_number_neighbours("9" * 18, 5, rng())) == 5


@pytest.mark.parametrize("text", ["007", "x", "1.2.3", ""])
def test_what_is_no_plain_number_has_none(text: str) -> None:
    assert draw_number_neighbours(text, 5, rng()) == []


@pytest.mark.parametrize(("text", "others"), [("8", 7), ("0", 8), ("two", 10)])
def test_one_does_not_replace_several(text: str, others: int) -> None:
    neighbours = draw_number_neighbours(text, 40, rng())
    assert len(neighbours) == others and not {"1", "one"} & set(neighbours)


def test_teens_and_compounds_are_numbers_of_one_word() -> None:
    assert [slot.text for slot in find_numbers("Fifteen of twenty-five")] == [
        "Fifteen",
        "twenty-five",
    ]
    assert set(draw_number_neighbours("Fifteen", 40, rng())) <= {
        word.capitalize()
        for word in "thirteen fourteen sixteen seventeen eighteen nineteen".split()
    }
    for other in draw_number_neighbours("twenty-five", 9, rng()):
        assert re.fullmatch(r"[a-z]+ty-[a-z]+", other) and other != "twenty-five"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("1983", ["1999"]),
        ("8", ["12"]),
        ("139,000", ["141,500"]),
        ("3.5", ["2.25"]),
        ("18th", ["19th"]),
        ("Two", ["six"]),
        ("million", ["billion"]),
        ("fifteen", ["nineteen"]),
        ("1980s", ["1970s"]),
        ("Monday", ["Friday"]),
    ],
)
def test_only_replacements_written_as_the_number_are_kept(text: str, kept: list[str]) -> None:
    candidates = [
        "1999", "12", "141,500", "2.25", "19th", "six", "billion", "nineteen", "1970s", "Friday",
        "1", "one", "forty", "home", "1,2,3", "##",
    ]  # fmt: skip
    assert select_same_form(text, candidates) == kept
    assert select_same_form("house", candidates) == candidates
