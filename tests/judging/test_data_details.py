"""Which values of a claim the rows of its dates do not have, although other rows do."""

from __future__ import annotations

import json

import pytest

from trustassay.judging.data_details import DataDetails, has_swapped_numbers
from trustassay.text.tables import read_data

DAYS = [
    {"date": "2021-05-01", "rain_mm": 3.5, "wind": 12},
    {"date": "2021-05-02", "rain_mm": 8.25, "wind": 30},
    {"date": "2021-05-03", "rain_mm": 1.5, "wind": 44},
]
PASSAGE = json.dumps({"city": "Ahorn", "people": 1900, "days": DAYS})


def misplaced(claim: str, *passages: str) -> list[str]:
    return DataDetails(passages or [PASSAGE], [], "What was the weather?").find_misplaced(claim)


@pytest.mark.parametrize(
    ("claim", "values"),
    [
        ("On May 1, 3.5 mm of rain fell.", []),
        ("On May 1, 8.25 mm of rain fell.", ["8.25"]),
        ("On Sunday, 30 was the wind and 1.5 the rain.", ["1.5"]),
        ("From May 1 to May 3 up to 8.25 mm fell.", []),
        # Rounded, as other details may be.
        ("On May 2, 8.3 mm of rain fell.", []),
        # What stands outside of the table stays known, and the means of its columns are.
        ("On May 2, the 1,900 people of Ahorn had 8.25 mm.", []),
        ("From May 2 to May 3 an average of 37 was measured.", []),
        # No date says which rows it is about.
        ("It rained 8.25 mm.", []),
        ("On June 1, 8.25 mm fell.", []),
    ],
)
def test_values_of_other_days_are_misplaced(claim: str, values: list[str]) -> None:
    assert misplaced(claim) == values


def test_other_passages_have_values_of_any_day() -> None:
    assert misplaced("On May 1, 8.25 mm fell.", PASSAGE, "Another station had 8.25 mm.") == []


def test_few_rows_are_not_checked() -> None:
    assert misplaced("On May 1, 8.25 mm fell.", json.dumps(DAYS[:2])) == []


@pytest.mark.parametrize(
    ("claim", "swapped"),
    [
        ("The price of Aurora is 14 USD.", True),
        ("Aurora has a unit weight of 20.", True),
        # The number of the column, of no column, and no column.
        ("The price of Aurora is 20 USD.", False),
        ("The price of Aurora is 22 USD.", False),
        ("Aurora: 14 left.", False),
        # A number that a column without mention has, too.
        ("The price of Aurora fits a stock of 14.", False),
        # Both columns.
        ("The price of Aurora is 20 USD, with 14 in stock.", False),
    ],
)
def test_a_number_of_another_column_is_swapped(claim: str, swapped: bool) -> None:
    data = read_data(
        json.dumps([{"name": "Aurora", "price_usd": 20, "stock": 14, "unitWeight": 3, "sold": 14}])
    )
    assert data is not None
    assert has_swapped_numbers(claim, data.rows) is swapped
