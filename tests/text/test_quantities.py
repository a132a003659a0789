"""Quantities are read with units, dates, ordinals and bounds; what is no quantity is left out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.text.quantities import Quantity, read_quantities


def one(text: str) -> Quantity:
    """Return the only quantity of a text (of a date with its day, the first)."""
    result = read_quantities(text).quantities
    assert result and len({(q.start, q.end) for q in result}) == 1, result
    return result[0]


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3 feet", "length", 0.9144),
        ("a six-foot wall", "length", 1.8288),
        ("12.5 km", "length", 12_500),
        ("two and a half", "count", 2),
        ("twenty-one dogs", "count", 21),
        ("three hundred and five men", "count", 305),
        ("two million three hundred thousand books", "count", 2_300_000),
        ("half a million books", "count", 500_000),
        ("a dozen eggs", "count", 12),
        ("1,432 users", "count", 1432),
        ("$2.4m", "USD", 2.4e6),
        ("US$5 billion", "USD", 5e9),
        ("5bn euros", "EUR", 5e9),
        ("£72", "GBP", 72),
        ("68 degrees Fahrenheit", "temperature", 20),
        ("20 °C", "temperature", 20),
        ("55 per cent", "%", 55),
        ("60 miles per hour", "length/time", 26.8224),
        ("36 km/h", "length/time", 10),
        ("3 square km", "area", 3e6),
        ("18 months", "time", 1.5 * 31_557_600),
        ("he died aged 55", "time", 55 * 31_557_600),
        ("the third president", "ordinal", 3),
        ("her 21st film", "ordinal", 21),
        ("the twenty-first film", "ordinal", 21),
    ],
)
def test_a_value_in_its_base_unit(text: str, dimension: str, value: float) -> None:
    found = one(text)
    assert found.dimension == dimension
    assert found.low == found.high == pytest.approx(value)


def test_what_is_counted_is_told_by_stems() -> None:
    assert one("three large dogs in a garden").nouns == ("larg", "dog")
    assert one("three of the dogs").nouns == ("dog",)
    assert one("three, in the garden").nouns == ()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("at least 40 dogs", 40, math.inf),
        ("40 or more dogs", 40, math.inf),
        ("40+ dogs", 40, math.inf),
        ("no more than 40 dogs", -math.inf, 40),
        ("about 40 dogs", 36, 44),
        ("nearly 40 dogs", 36, 40),
        ("between 40 and 50 dogs", 40, 50),
        ("from 40 to 50 dogs", 40, 50),
        ("40-50 dogs", 40, 50),
    ],
)
def test_words_around_make_it_an_interval(text: str, low: float, high: float) -> None:
    result = one(text)
    assert (result.low, result.high) == pytest.approx((low, high))


def test_more_than_leaves_the_number_itself_out() -> None:
    assert one("more than 40 dogs").low > 40
    assert one("fewer than 40 dogs").high < 40


def test_a_part_of_a_date_contains_the_date() -> None:
    day, month, year, decade, century = (
        one(text)
        for text in ("12 March 1994", "March 1994", "in 1994", "the 1990s", "the 20th century")
    )
    for inner, outer in ((day, month), (month, year), (year, decade), (decade, century)):
        assert outer.low <= inner.low <= inner.high <= outer.high
        assert outer.dimension == "date"
    assert one("March 12, 1994")[:3] == one("12th of March 1994")[:3] == day[:3]
    assert one("after 1994").low > year.high
    assert one("before 1994").high < year.low
    assert one("1914-18")[:4] == one("1914–1918")[:4]


@pytest.mark.parametrize(
    "text",
    [
        "COVID-19",
        "the A380",
        "Boeing 747 jets",
        "1. First of all",
        "at 10:30",
        "at 8 pm",
        "3/4 of it",
        "version 1.2.3",
        "one of the best",
        "several hundred men",
        "by 2010",
        "a third of them",
        "they won 3-2",
        "44 BC",
        "12345678901234567890 dogs",
        "they may march",
    ],
)
def test_what_is_no_quantity_is_not_read(text: str) -> None:
    dimensions = {q.dimension for q in read_quantities(text).quantities}
    assert dimensions <= {"count"} if text == "44 BC" else not dimensions


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_every_text_can_be_read(text: str) -> None:
    for q in read_quantities(text).quantities:
        assert 0 <= q.start < q.end <= len(text)
        assert not math.isnan(q.low) and not math.isnan(q.high)


PARTS = (
    "12 3.5 1,000 2015 - – to and of a half million hundred twenty one third May ( $ % + . , s th"
)


@given(st.lists(st.sampled_from([*PARTS.split(), "per", "hour", "\n", "²", "٣", "between"])))
@settings(max_examples=500)
def test_every_order_of_parts_can_be_read(parts: list[str]) -> None:
    for text in (" ".join(parts), "".join(parts)):
        assert all(q.start < q.end <= len(text) for q in read_quantities(text).quantities)
