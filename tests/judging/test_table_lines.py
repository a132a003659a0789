"""Numbers, directions and names of a table, and the words of a claim that mention them."""

import pytest

from trustassay.judging.table_lines import (
    NumericTable,
    find_direction,
    find_mentions,
    read_number,
    read_tokens,
)
from trustassay.text.tables import TableGrid


@pytest.mark.parametrize(
    ("cell", "value", "unit"),
    [
        ("12", 12.0, ""),
        ("-0.5", -0.5, ""),
        (".311", 0.311, ""),
        ("$1,250", 1250.0, ""),
        ("20 USD", 20.0, "usd"),
        ("60.62±3.54", 60.62, ""),
        ("76.5 (± 2.7)", 76.5, ""),
        ("+0.20%", 0.2, "%"),
        ("0.571*", 0.571, ""),
        ("3.1E-35", 3.1e-35, ""),
        ("2h", 2.0, "h"),
    ],
)
def test_a_cell_is_a_number_with_marks_around_it(cell: str, value: float, unit: str) -> None:
    number = read_number(cell)
    assert number is not None
    assert (number.value, number.unit) == (value, unit)


@pytest.mark.parametrize(
    "cell", ["", "-", "n/a", "GPT-2", "04/05/2015", "10 to 20", "O(1)", "1.2.3"]
)
def test_other_cells_are_no_numbers(cell: str) -> None:
    assert read_number(cell) is None


def test_the_direction_is_that_of_the_last_measure() -> None:
    assert find_direction("Test accuracy") == 1
    assert find_direction("TER ↓") == -1
    assert find_direction("loss, F1") == 1
    assert find_direction("Precision loss") == -1
    assert find_direction("Price") == 0


def grid(*rows: str, caption: str = "") -> TableGrid:
    cells = [tuple(row.split("|")) for row in rows]
    return TableGrid(cells[0], tuple(cells[1:]), caption)


def test_a_caption_gives_the_direction_where_no_column_has_one() -> None:
    def directions(header: str, caption: str) -> list[int]:
        return [
            line.direction for line in NumericTable(grid(header, "A|1|2", caption=caption)).axes[1]
        ]

    assert directions("Model|News|Web", "Accuracy by text") == [1, 1]
    assert directions("Model|News|Size", "Accuracy by text") == [1, 0]
    assert directions("Model|F1|Web", "Accuracy by text") == [1, 0]
    assert directions("Model|News|Web", "Accuracy and loss") == [0, 0]


def test_rows_are_named_by_their_texts_or_by_a_first_column_of_numbers() -> None:
    def names(*rows: str) -> list[str]:
        return [line.text for line in NumericTable(grid(*rows)).axes[0]]

    assert names("Shop|Sales", "Bern|5", "Basel|7") == ["Bern", "Basel"]
    assert names("Shop|Year|Sales", "Bern|old|5", "Bern|new|7") == ["Bern, old", "Bern, new"]
    assert names("#|Shop|Sales", "1|Bern|5", "2|Basel|7") == ["Bern", "Basel"]
    assert names("k|Sales", "1|5", "2|7") == ["k 1", "k 2"]
    assert names("Shop|Sales", "Bern|5", "Swiss|Swiss") == ["Bern"]


def mentions(claim: str, *rows: str) -> list[tuple[str, list[int]]]:
    lines = NumericTable(grid("Name|Price", *(f"{row}|1" for row in rows))).axes[0]
    return [
        (claim[mention.start : mention.end], sorted(mention.lines))
        for mention in find_mentions(read_tokens(claim), lines)
    ]


def test_a_whole_name_comes_before_the_beginning_and_that_before_a_part() -> None:
    rows = "Kite", "Kite Pro", "Big Kite", "M1: Kite"
    assert mentions("The Kite flies", *rows) == [("Kite", [0])]
    assert mentions("The Kite flies", *rows[1:]) == [("Kite", [0])]
    assert mentions("The Kite flies", *rows[2:]) == [("Kite", [0, 1])]
    assert mentions("The Kite Pros fly", *rows) == [("Kite Pros", [1])]


def test_common_words_and_numbers_are_no_mentions() -> None:
    assert mentions("The model of the action is 3", "Model 3", "Multi-action data") == []
    # "our" counts before a word such as "system", or with another word of the name.
    assert mentions("Our shop is near our system.", "Kite (ours)", "Other") == [("our", [0])]
