"""What supports a value, and what a model may choose by itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.tool_use.arguments import KnownValues, find_unsupported

ASKED = (
    "Hello, I am Anna Berg. Book 2 rooms in Reykjavik from 3 May 2026 for three nights, up to "
    "1,200 euros, and send it to anna@berg.example."
)
RESULT = '{"hotel": {"id": "HX-4471", "name": "Fosshotel Baron", "price": 145.5, "share": 0.12}}'


def new(arguments: Any, said: str = ASKED, shown: str = RESULT) -> list[str]:
    return [part for _, _, part in find_unsupported(arguments, KnownValues([said], [shown]))[1]]


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Reykjavik", "rooms": 2, "nights": 3, "budget": 1200},
        {"city": "Reykjavík, Iceland"},  # accents, and what a model knows of a name
        {"city": "Reykjavk", "guest": "Anna Berg"},  # misspelled
        {"check_in": "2026-05-03", "at": "2026-05-03T15:00:00Z", "time": "15:30"},
        {"to": "anna@berg.example", "hotel": "HX-4471", "name": "Fosshotel Baron"},
        {"price": 145.5, "about": 146, "percent": 12, "hotel": {"share": 12.0}},
        {"total": 2400, "each": 400},  # 2 times 1200, and 1200 by 3
        {"limit": 25, "page_size": 50, "maxResults": 99, "query": "hotels Iceland 2025"},
        {"currency_code": "ISK", "sort": "asc", "category": "hotel", "smoking": False, "x": None},
        {"offset": 7, "n": 40, "first": 1, "rest": 0, "list": ["Berg", 2]},
        {"body": "Dear Sir or Madam, we should like to come for 3 nights, with kind regards, Anna"},
        "2 rooms",
        None,
        [],
    ],
)
def test_what_is_known_or_chosen_is_not_told(arguments: Any) -> None:
    assert new(arguments) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"city": "Akureyri"}, ["Akureyri"]),
        ({"guest": "Anna Lund"}, ["Lund"]),
        ({"rooms": 8, "nights": "7"}, ["8", "7"]),
        ({"check_in": "2026-05-04"}, ["2026-05-04"]),
        ({"check_in": "2027-05-03"}, ["2027-05-03"]),
        ({"check_in": "2026-13-03"}, ["2026-13-03"]),
        ({"to": "anna@other.example", "id": "HX-4472"}, ["anna@other.example", "hx-4472"]),
        ({"price": 145.9}, ["145.9"]),
        ({"deep": [{"of": {"city": "Akureyri"}}]}, ["Akureyri"]),
        ({"hotel": "grand budapest palace"}, ["grand budapest palace"]),
        ({"body": "Dear Sir, we should like to come for 9 nights, with kind regards"}, ["9"]),
        ("9 rooms", ["9"]),
    ],
)
def test_what_nothing_supports_is_told_with_its_new_part(arguments: Any, told: list[str]) -> None:
    assert new(arguments) == told


def test_a_date_that_the_user_gives_in_other_words_may_be_computed() -> None:
    assert new({"date": "2031-01-09"}, "What about tomorrow?") == []
    assert new({"date": "2031-01-09"}, "On 9 January, please.") == []
    assert new({"date": "2031-01-09"}, "On 1/9, please.") == []
    assert new({"date": "2031-01-09"}, "On the 10th of January.") == ["2031-01-09"]


def test_names_in_another_script_are_not_judged_but_numbers_are() -> None:
    assert new({"city": "Tokyo", "rooms": 4}, "東京のホテルを2部屋") == ["4"]


def test_years_and_ones_make_no_sums() -> None:
    assert new({"year": 2001}, "One car of the year 2000.") == ["2001"]


@given(st.recursive(st.none() | st.floats() | st.text(), st.lists, max_leaves=9), st.text())
def test_any_arguments_are_read(arguments: Any, said: str) -> None:
    judged, found = find_unsupported({"x": arguments}, KnownValues([said], ["shown"]))
    assert len(found) <= judged
