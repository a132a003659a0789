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
        ("It costs 40, so 360 are left of 400.", "360", True),
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
    answer = "Cards 10 and 5, 15 together. Gifts 7 and 2, 9 together. All: 24."
    assert find_computed(answer, ["15", "9", "24"], [], [], []) == {"15", "9", "24"}


def test_fields_are_added_up_by_their_names_and_lists_counted() -> None:
    assert read_field_totals(LEGS) == {2.0, 295.0}
    assert read_field_totals("no data") == frozenset()


def test_the_end_of_an_id_is_known_where_the_sentence_calls_it_so() -> None:
    assert find_endings("the card ending in 1784", ["card_1591784"]) == {"1784"}
    assert find_endings("the card ending in 1785", ["card_1591784"]) == set()
    assert find_endings("the card 1784", ["card_1591784"]) == set()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_any_data_are_read(data: object) -> None:
    assert all(isinstance(total, float) for total in read_field_totals(json.dumps(data)))
