"""Quantities are read with units, dates, ordinals and bounds; what is no quantity is left out."""

from __future__ import annotations

import datetime
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trustassay.text.quantities import (
    MONTHS,
    Quantity,
    read_quantities,
    read_values,
    read_values_of_words,
    spell_dates,
)


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
        ("two and a half", "count", 2.5),
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
        ("he died aged 55", "age", 55 * 31_557_600),
        ("the third president", "ordinal", 3),
        ("her 21st film", "ordinal", 21),
        ("the twenty-first film", "ordinal", 21),
    ],
)
def test_a_value_in_its_base_unit(text: str, dimension: str, value: float) -> None:
    found = one(text)
    assert found.dimension == dimension
    assert found.low == found.high == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        # Commas and stops with a space, as tokenisers part them.
        ("235, 000 people", "count", 235_000),
        ("235 , 000 people", "count", 235_000),
        ("1, 250, 000 copies", "count", 1_250_000),
        ("$ 10, 500", "USD", 10_500),
        ("98. 7 percent", "%", 98.7),
        ("6. 25 %", "%", 6.25),
        ("3. 5 kg of rice", "mass", 3.5),
        ("a gap of 2. 4 points", "points", 2.4),
        # Spaces between thousands.
        ("1 234 567 people", "count", 1_234_567),
        ("$50 000", "USD", 50_000),
        ("12 500 hectares", "area", 1.25e8),
        ("1\u00a0234 books", "count", 1234),
        # The separators of most of Europe.
        ("1.234,5 euros", "EUR", 1234.5),
        ("1.234.567,89 euros", "EUR", 1_234_567.89),
        ("1.250.000 euros", "EUR", 1_250_000),
        ("3,5 km", "length", 3500),
        # Hyphens with spaces.
        ("a 36 - year - old man", "age", 36 * 31_557_600),
        ("a 36-year-old man", "age", 36 * 31_557_600),
        ("her six - month - old son", "age", 31_557_600 / 2),
        ("a 55 - yard field goal", "length", 50.292),
        ("the 17 - week season", "time", 17 * 604_800),
        # Others that texts have.
        ("Ann Barker, 44, of Leeds", "age", 44 * 31_557_600),
        ("at the age of 44", "age", 44 * 31_557_600),
        ("US $ 5 billion", "USD", 5e9),
        ("two and a half million miles", "length", 2.5e6 * 1609.344),
    ],
)
def test_a_quantity_is_read_as_texts_write_it(text: str, dimension: str, value: float) -> None:
    result = one(text)
    assert result.dimension == dimension
    assert result.low == result.high == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("In 2019, 300 people came", [300]),
        ("On May 5, 300 people came", [300]),
        ("the numbers 98, 99, 100, 102", [98, 99, 100, 102]),
        ("She weighs 98. 7 people saw it", [98, 7]),
        ("rows of 12 and 500 seats", [12, 500]),
    ],
)
def test_two_numbers_stay_two(text: str, values: list[float]) -> None:
    result = [q.low for q in read_quantities(text).quantities if q.dimension == "count"]
    assert result == values


@pytest.mark.parametrize(
    ("text", "dimension", "values"),
    [
        ("Leeds have 28 points, with Sheffield on 27.", "points", [28, 27]),
        ("Profits were $5 million in May and sales 40 million.", "USD", [5e6, 4e7]),
        ("It sold 300 cars, down from 350.", "count", [300, 350]),
        ("Turnout was 40% in Leeds, in York only 35.", "%", [40, 35]),
        ("It sold 300 cars. The other number is 350.", "count", [300, 350]),
    ],
)
def test_a_count_without_a_noun_has_the_kind_before_it(
    text: str, dimension: str, values: list[float]
) -> None:
    quantities = read_quantities(text).quantities
    assert [q.low for q in quantities if q.dimension == dimension] == values
    # It is of the kind before it in the same sentence only.
    kinds = {q.nouns for q in quantities if q.dimension == dimension}
    assert len(kinds) == (2 if ". The other" in text else 1)


def test_a_quantity_has_the_names_of_its_clause() -> None:
    text = "Leeds have 28 points, with Sheffield on 27, and 12 teams are behind."
    assert [set(q.subject) for q in read_quantities(text).quantities] == [
        {"leed"},
        {"sheffield"},
        {"sheffield"},
    ]


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
    assert one("1994-03-12")[:3] == day[:3]
    assert one("before the 1990s").high < decade.low
    assert one("12 april 1994")[:3] == one("12 April 1994")[:3]


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
        "as shown before [1, 4]",
        "rated 4.5 / 10",
        "twelve fifty, or so",
        "in the year 661 BC",
    ],
)
def test_what_is_no_quantity_is_not_read(text: str) -> None:
    assert not read_quantities(text).quantities


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


# Numbers, dates and times of day are read as values, however they are written


def values(text: str, kind: str) -> list[tuple[float, ...]]:
    found = read_values(text)
    assert all(value.kind == kind for value in found)
    return [value.numbers for value in found]


# Numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,000", 1000),
        ("1 000", 1000),
        ("235, 000", 235_000),
        ("1.234.567,5", 1_234_567.5),
        ("two and a half million", 2_500_000),
        ("half a million", 500_000),
        ("2 000 000", 2_000_000),
        ("1.5k", 1500),
        ("1.5 million", 1_500_000),
        ("5bn", 5e9),
        ("7 lakh", 700_000),
        ("$29.00", 29),
        ("€5", 5),
        ("-3.2%", -3.2),
        ("-$5", -5),
        ("+4", 4),
        ("007", 7),
        ("0.002", 0.002),
        ("twenty-five", 25),
        ("Two hundred", 200),
        ("one hundred twenty", 120),
        ("three hundred and two thousand", 302_000),
        ("five million", 5_000_000),
    ],
)
def test_a_number_is_read_in_figures_and_in_words(text: str, number: float) -> None:
    assert values(text, "number") == [(number,)]
    assert values(f"It was {text} once.", "number") == [(number,)]


@pytest.mark.parametrize("text", ["A4 paper", "covid-19", "x2", "no number", "hundred", "1" * 19])
def test_what_is_part_of_a_name_or_no_number_is_not_read(text: str) -> None:
    assert read_values(text) == []


def test_several_numbers_are_read_in_order_with_their_places() -> None:
    text = "From 18-20, five of 1,000 paid $2.50."
    found = read_values(text)
    assert [text[value.start : value.end] for value in found] == [
        "18",
        "20",
        "five",
        "1,000",
        "2.50",
    ]
    assert [value.numbers for value in found] == [(18,), (20,), (5,), (1000,), (2.5,)]


def test_a_step_is_half_of_what_the_last_digit_stands_for() -> None:
    steps = {text: read_values(text)[0].step for text in ("3", "3.2", "3.25", "1.5 million", "3k")}
    assert steps == {"3": 0.5, "3.2": 0.05, "3.25": 0.005, "1.5 million": 50_000, "3k": 500}


SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spelled(number: int) -> str:
    """A number below a million in English words."""
    if number >= 1000:
        rest = f" {spelled(number % 1000)}" if number % 1000 else ""
        return f"{spelled(number // 1000)} thousand{rest}"
    if number >= 100:
        rest = f" and {spelled(number % 100)}" if number % 100 else ""
        return f"{SMALL[number // 100]} hundred{rest}"
    if number >= 20:
        rest = f"-{SMALL[number % 10]}" if number % 10 else ""
        return TENS[number // 10 - 2] + rest
    return SMALL[number]


@given(st.integers(0, 999_999))
def test_every_number_is_read_from_its_words(number: int) -> None:
    assert values(f"There are {spelled(number)}.", "number") == [(number,)]


FORMATS = st.sampled_from(
    [
        "{}",
        "{:,}",
        "${:,}",
        "€{}",
        "{}%",
        "{:,} km",
        "({})",
        "“{}”",
        "{}, or",
        "{}.0",
        "about {:,}.",
    ]
)


@given(st.integers(0, 10**12), FORMATS)
def test_every_number_is_read_however_it_is_formatted(number: int, form: str) -> None:
    text = form.format(number)
    assert values(f"It has {text} in all", "number") == [(number,)]
    assert values(f"It has {text.replace(',', ' ')} in all", "number") == [(number,)]


@given(st.decimals(-10_000, 10_000, places=2))
def test_every_decimal_is_read_with_its_sign(number: float) -> None:
    assert values(f"It is {number:.2f} now.", "number") == [(float(number),)]


# Dates


@pytest.mark.parametrize(
    "text",
    [
        "2021-03-05",
        "2021/03/05",
        "2021-03-05T10",
        "5 March 2021",
        "5 Mar. 2021",
        "5th of March, 2021",
        "the 5th March 2021",
        "March 5, 2021",
        "March 5th 2021",
        "march the 5th, 2021",
    ],
)
def test_a_date_is_year_month_and_day(text: str) -> None:
    assert values(f"It opened on {text}.", "date") == [(2021, 3, 5)]


@pytest.mark.parametrize("text", ["2021-03-05T14:20:30Z", "2021-03-05t14:20", "2021-03-05 14:20"])
def test_a_time_behind_a_date_is_one(text: str) -> None:
    kinds = [(value.kind, value.numbers) for value in read_values(f"It opened on {text}.")]
    assert kinds == [("date", (2021, 3, 5)), ("time", (14 * 60 + 20,))]
    assert spell_dates(text).startswith("5 March 2021 14:20")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("March 2021", [(2021, 3, 0)]),
        ("5 March", [(0, 3, 5)]),
        ("31/12/2021", [(2021, 12, 31)]),
        ("12/31/21", [(2021, 12, 31)]),
        ("1.2.99", [(1999, 1, 2), (1999, 2, 1)]),  # which is the day is not known
    ],
)
def test_what_is_not_said_of_a_date_is_left_open(
    text: str, expected: list[tuple[float, ...]]
) -> None:
    assert sorted(values(f"It opened {text} and closed", "date")) == expected


def test_a_month_that_does_not_exist_makes_no_date() -> None:
    assert values("99/99/2021", "number") == [(99,), (99,), (2021,)]
    assert read_values("in May") == []


DAYS = st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31))
DATE_FORMATS = st.sampled_from(
    [
        "{year}-{month:02}-{day:02}",
        "{year}/{month:02}/{day:02}",
        "{day} {name} {year}",
        "{day:02} {name:.3} {year}",
        "{name} {day}, {year}",
    ]
)


@given(DAYS, DATE_FORMATS)
def test_every_date_is_read_and_spelled_alike(date: datetime.date, form: str) -> None:
    year, month, day, name = date.year, date.month, date.day, MONTHS[date.month - 1].title()
    text = form.format(year=year, month=month, day=day, name=name)
    assert values(f"It opened on {text}.", "date") == [(year, month, day)]
    assert spell_dates(f"It opened on {text}.") == f"It opened on {day} {name} {year}."


@pytest.mark.parametrize(
    "text", ["03/05/2021", "March 2021", "5 March", "1.5 and 2", "no date", "3 March 21"]
)
def test_a_date_that_is_not_certain_is_not_spelled_anew(text: str) -> None:
    assert spell_dates(text) == text


def test_several_dates_are_spelled() -> None:
    text = "On March 5, 2021 and from 2022-01-02 to 13/05/2023, but not on 03/05/2021."
    expected = "On 5 March 2021 and from 2 January 2022 to 13 May 2023, but not on 03/05/2021."
    assert spell_dates(text) == expected
    assert spell_dates(expected) == expected


# Times of day


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("3 pm", [15]),
        ("3pm", [15]),
        ("3.30 p.m.", [15.5]),
        ("15:30", [15.5]),
        ("12 pm", [12]),
        ("12 am", [0]),
        ("noon", [12]),
        ("0:00", [0]),
        ("3:30", [3.5, 15.5]),  # of the morning or of the afternoon
        ("midnight", [0, 24]),
    ],
)
def test_times_of_day_are_minutes(text: str, hours: list[float]) -> None:
    assert sorted(values(f"It opens at {text}", "time")) == [(60 * hour,) for hour in hours]


@given(st.times())
def test_every_time_is_read_in_12_and_in_24_hours(time: datetime.time) -> None:
    minutes = (60 * time.hour + time.minute,)
    half = "am" if time.hour < 12 else "pm"
    assert minutes in values(f"at {time.hour}:{time.minute:02} h", "time")
    assert values(f"at {time.hour % 12 or 12}:{time.minute:02} {half}.", "time") == [minutes]


# Words


def test_words_that_stand_for_a_number() -> None:
    assert 0.5 in read_values_of_words("Half of it")
    assert list(read_values_of_words("It closed twice.")) == [2]
    assert list(read_values_of_words("the third, a dozen")) == [3, 12]
    assert list(read_values_of_words("three of them")) == []


# Any text at all


@given(st.text() | st.text("0123456789.,:/- $€%abkmpn", max_size=30))
def test_values_do_not_overlap_unless_they_are_readings_of_the_same(text: str) -> None:
    found = read_values(text)
    assert found == sorted(found, key=lambda value: value.start)
    for one, other in itertools.pairwise(found):
        assert one.end <= other.start or (one.start, one.end) == (other.start, other.end)
    assert all(0 <= value.start < value.end <= len(text) for value in found)
