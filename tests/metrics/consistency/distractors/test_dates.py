import calendar
import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.metrics.consistency.tokens import draw_date_neighbours, find_dates

YEARS = range(1500, 2100)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It came out in 1983.", ["1983"]),
        ("born on 31 August 1983 in Rome", ["31 August 1983"]),
        ("on August 31, 1983, at noon", ["August 31, 1983"]),
        ("in Aug 1983", ["Aug 1983"]),
        ("the 15th of October 2021", ["15th of October 2021"]),
        ("in the 1997-1998 season", ["1997-1998"]),
        ("in the 1997–98 season", ["1997–98"]),
        ("on 1983-08-31", ["1983-08-31"]),
        ("during the 1900s and 1910s", ["1900s", "1910s"]),
        ("from 1985 to 1993", ["1985", "1993"]),
        ("It may march on", []),
        ("it costs $1999 or 1999.5 or 1999%", []),
        ("Saturday", ["Saturday"]),
        ("call 555-1234", []),
    ],
)
def test_dates_are_found_whole(text: str, expected: list[str]) -> None:
    slots = find_dates(text)
    assert [slot.text for slot in slots] == expected
    assert all(text[slot.start : slot.end] == slot.text for slot in slots)
    assert all(slot.kind == "date" and slot.level == 1 for slot in slots)


@pytest.mark.parametrize(
    "text",
    "1983|August 31, 1983|31 August 1983|31st of August 1983|1983-08-31|Aug 1983|January 1983|"
    "3 May 1981|1997-1998|1997-98|1990s|Saturday|29 February 2000".split("|"),
)
def test_no_neighbour_is_the_date_itself_and_all_are_read_as_dates_again(text: str) -> None:
    others = draw_date_neighbours(text, 40, rng())
    assert others and text not in others and len(set(others)) == len(others)
    for other in others:
        assert [slot.text for slot in find_dates(other)] == [other]


def test_another_year_is_tried_before_another_month_or_day() -> None:
    years = draw_date_neighbours("31 August 1983", 40, rng())
    assert all(one.startswith("31 August ") for one in years)
    assert all(1963 <= int(one[-4:]) <= 2003 for one in years)
    more = draw_date_neighbours("31 August 1983", 100, rng())
    assert len(more) == 40 + 6 + 30  # six other months have 31 days
    assert set(more[40:46]) == {
        f"31 {month} 1983" for month in "January March May July October December".split()
    }


def test_a_leap_day_moves_to_leap_years_alone() -> None:
    years = [int(one[-4:]) for one in draw_date_neighbours("29 February 2000", 10, rng())]
    assert sorted(years) == [1980, 1984, 1988, 1992, 1996, 2004, 2008, 2012, 2016, 2020]


def test_a_past_date_has_no_neighbour_in_the_future() -> None:
    assert max(int(one) for one in draw_date_neighbours("2020", 40, rng())) == 2025
    assert max(int(one) for one in draw_date_neighbours("2030", 40, rng())) == 2050


def test_a_date_that_does_not_exist_has_no_neighbours() -> None:
    assert draw_date_neighbours("31 February 1983", 5, rng()) == []
    assert draw_date_neighbours("next week", 5, rng()) == []


def test_the_way_of_writing_is_kept() -> None:
    assert all(
        re.fullmatch(r"\d{4}-98|\d{4}-\d\d", o) for o in draw_date_neighbours("1997-98", 5, rng())
    )
    spans = [tuple(map(int, o.split("-"))) for o in draw_date_neighbours("1997-1999", 9, rng())]
    assert all(b - a == 2 for a, b in spans)
    suffixed = draw_date_neighbours("1st of May 1990", 80, rng())[-30:]
    assert "22nd of May 1990" in suffixed and "11th of May 1990" in suffixed
    assert all(one.islower() for one in draw_date_neighbours("may 5", 30, rng()))


@given(
    year=st.integers(1500, 2025),
    month=st.integers(1, 12),
    day=st.integers(1, 31),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_every_neighbour_exists_and_differs_in_one_field(
    year: int, month: int, day: int, seed: int
) -> None:
    if day > calendar.monthrange(year, month)[1]:
        return
    for other in draw_date_neighbours(f"{year}-{month:02d}-{day:02d}", 100, rng(seed)):
        y, m, d = map(int, other.split("-"))
        assert 1 <= d <= calendar.monthrange(y, m)[1]
        assert (y != year) + (m != month) + (d != day) == 1


def test_a_span_that_ends_before_it_begins_has_no_neighbours() -> None:
    assert draw_date_neighbours("1998-1997", 5, rng()) == []
    assert len(draw_date_neighbours("1998-1998", 5, rng())) == 5


def test_digits_and_names_are_those_of_ascii_and_spaces_any() -> None:
    assert [slot.text for slot in find_dates("ſept 1983, 1٩83, ٣ May")] == ["1983"]
    assert [slot.text for slot in find_dates("31\u00a0August\u00a01983")] == [
        "31\u00a0August\u00a01983"
    ]


def test_white_space_without_end_is_read_in_no_time() -> None:
    began = time.process_time()
    find_dates("May 1" + " " * 20_000 + "x")
    find_dates(("May 1" + " " * 300) * 200)
    assert time.process_time() - began < 1


def test_the_seed_decides_the_order() -> None:
    assert draw_date_neighbours("1983", 9, rng(1)) == draw_date_neighbours("1983", 9, rng(1))
    assert draw_date_neighbours("1983", 9, rng(1)) != draw_date_neighbours("1983", 9, rng(2))
