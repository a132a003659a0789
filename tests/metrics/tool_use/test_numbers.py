"""Which numbers an answer may compute."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trustassay.metrics.tool_use.numbers import find_computed, find_endings, read_field_totals

LEGS = json.dumps({"legs": [{"to": "Lund", "price": 105}, {"to": "Ystad", "price": 190}]})


@pytest.mark.parametrize(
    ("answer", "value", "is_known"),
    [
        ("The total is 295.", "295", True),  # of one field
        ("It costs $295.", "295", True),
        ("It costs $296.", "296", False),
        ("Tea 12, milk 7: 19.", "19", True),  # of the answer
        ("3 guests with 4 bags each make 12.", "12", True),
        ("Tea 12, milk 7: 20.", "20", False),
        ("The 105 of one leg leave a refund of 85.", "85", True),  # 190 is in the result
        ("The room has 85 beds.", "85", False),
        ("Tea 12, milk 7, bread 4: 23.", "23", True),
        ("Room 44 has a size of 1936.", "1936", False),  # 44 by 44
        ("It costs 40, so 360 are left.", "360", True),  # of the 400 of a call
        ("The refund is 105.", "105", True),  # -105 in the result
        ("Two legs.", "Two", True),
        ("Nine legs.", "Nine", False),
        ("Without these 50 the card now has 55.", "55", True),
        ("Without these 50 the card has the code 55.", "55", False),
    ],
)
def test_totals_and_results_of_few_numbers_are_computed(
    answer: str, value: str, is_known: bool
) -> None:
    computed = find_computed(answer, [value], [LEGS], ['{"of": 400}'], [105.0, 190.0])
    assert computed == ({value} if is_known else set())


def test_a_computed_number_may_be_part_of_the_next_one() -> None:
    answer = "3 teas at 12 make 36, 2 milks at 7 make 14. All: 50."
    assert find_computed(answer, ["36", "14", "50"], [], [], []) == {"36", "14", "50"}


def test_fields_are_added_up_by_their_names_and_lists_counted() -> None:
    assert read_field_totals(LEGS) == {2.0, 295.0}
    numbers_listed = {4, 21, 301, 4001, 320, 4020, 4300, 321, 4320, 4321}
    assert read_field_totals("[1, 20, 300, 4000]") == numbers_listed
    assert read_field_totals("no data") == frozenset()


def test_the_end_of_an_id_is_known_where_the_sentence_calls_it_so() -> None:
    assert find_endings("the card ending in 1784", ["card_1591784"]) == {"1784"}
    assert find_endings("its last three digits are 784", ["card_1591784"]) == {"784"}
    assert find_endings("the card ending in 1784", ["card_15917840"]) == set()
    assert find_endings("the card ending in 1785", ["card_1591784"]) == set()
    assert find_endings("the card 1784", ["card_1591784"]) == set()


def test_the_number_behind_the_last_underscore_of_an_id_is_known() -> None:
    results = ['{"method": "gift_card_7091239"}']
    assert find_endings("- gift card (7091239), 7091238", results) == {"7091239"}
    # A part of the number is none that the id has, and neither is a number in an id's middle.
    assert find_endings("gift card 1239", results) == set()
    assert find_endings("gift card 709", ["gift_709_card", "gift_7091", "no_709.5"]) == set()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_any_data_are_read(data: object) -> None:
    assert all(isinstance(total, float) for total in read_field_totals(json.dumps(data)))
