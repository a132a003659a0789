"""Data in passages: what is read as sentences, for which row, and what is left as it is."""

import csv
import io
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import Recorder
from trustassay import score
from trustassay.backends.embedded import EmbeddedEntailer
from trustassay.text.tables import (
    MAX_PASSAGE_CHARACTERS,
    MAX_VALUES,
    find_dated_rows,
    read_data,
    spell_data,
)

ROWS = [
    {"name": "Aurora lamp", "price_usd": 20, "stock": 14, "color": "red"},
    {"name": "Borealis lamp", "price_usd": 35, "stock": 3, "color": "blue"},
    {"name": "Cirrus chair", "price_usd": 120, "stock": 0, "color": "green"},
]
CELLS = [list(ROWS[0]), *([str(cell) for cell in row.values()] for row in ROWS)]
AURORA = (
    "The name is Aurora lamp. The price of Aurora lamp is 20 USD. "
    "The stock of Aurora lamp is 14. The color of Aurora lamp is red."
)
FORMS = {
    "JSON": json.dumps(ROWS),
    "JSON Lines": "\n".join(map(json.dumps, ROWS)),
    "a tool's": json.dumps({"status": "ok", "results": ROWS}, indent=2),
    "fenced": f"Found:\n```json\n{json.dumps(ROWS)}\n```\n",
    "Markdown": "\n".join(
        f"| {' | '.join(line)} |" for line in [CELLS[0], [":--"] * 4, *CELLS[1:]]
    ),
    "bars": "\n".join(" | ".join(line) for line in CELLS),
    "CSV": "\n".join(",".join(line) for line in CELLS),
    "semicolons": "\n".join(";".join(line) for line in CELLS),
    "TSV": "\n".join("\t".join(line) for line in CELLS),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_value_is_a_sentence_with_its_row_and_its_column(form: str) -> None:
    assert AURORA in spell_data(FORMS[form])
    assert "The price of Cirrus chair is 120 USD." in spell_data(FORMS[form])


@pytest.mark.parametrize("form", FORMS)
def test_the_row_that_a_statement_is_about_is_shown_alone(form: str) -> None:
    shown = spell_data(FORMS[form], "The Aurora lamp costs 35 dollars.")
    assert AURORA in shown
    assert "Borealis" not in shown and "Cirrus" not in shown


def test_a_value_of_another_row_does_not_choose_that_row() -> None:
    assert "Borealis" not in spell_data(FORMS["JSON"], "The Aurora lamp is blue.")


def test_rows_that_are_equally_near_are_all_shown() -> None:
    shown = spell_data(FORMS["CSV"], "The Aurora lamp is cheaper than the Borealis lamp.")
    assert "Aurora" in shown and "Borealis" in shown and "Cirrus" not in shown
    assert spell_data(FORMS["CSV"], "Everything is in stock.").count("The price of") == 3


@pytest.mark.parametrize(
    ("names", "statement", "shown"),
    [
        (["Lamp 3a", "Lamp 3b"], "Lamp 3a costs 10 dollars.", ["Lamp 3a"]),
        (["Lamp 3", "Lamp 4"], "Lamp 3 costs 4 dollars.", ["Lamp 3"]),
        (["iPhone 14", "iPhone 14 Pro"], "The iPhone 14 is cheap.", ["iPhone 14"]),
        (["iPhone 14", "iPhone 14 Pro"], "The iPhone 14 Pro's price is low.", ["iPhone 14 Pro"]),
        (
            ["iPhone 14", "iPhone 14 Pro", "iPhone 13"],
            "An iPhone 14 Pro costs more than an iPhone 14.",
            ["iPhone 14", "iPhone 14 Pro"],
        ),
        (["RX-7", "RX-8"], "the rx-8 costs 4 dollars", ["RX-8"]),
        (["Q1", "Q2"], "In Q2 it was 4.", ["Q2"]),
        (["A", "B"], "Plan B is a cheap one.", ["B"]),
        (["IN", "OH"], "In OH it is 4.", ["OH"]),
        (["2014-05-06", "2014-05-07"], "On 2014-05-07 it was 4.", ["2014-05-07"]),
        (["Aurora lamp", "Borealis lamp", "Cirrus"], "Aurora lamps cost 4.", ["Aurora lamp"]),
        (
            ["Aurora lamp", "Borealis lamp", "Cirrus"],
            "The Aurora lamp costs less than the Borealis.",
            ["Aurora lamp", "Borealis lamp"],
        ),
    ],
)
def test_a_row_is_named_by_its_whole_name(
    names: list[str], statement: str, shown: list[str]
) -> None:
    rows = [{"name": name, "price": n} for n, name in enumerate(names, 3)]
    told = spell_data(json.dumps(rows), statement)
    assert [name for name in names if f"The name is {name}." in told] == shown


def test_rows_of_one_name_are_told_apart_by_what_differs() -> None:
    years = (
        "country,sex,year,rate\nFrance,f,1999,4\nFrance,f,2000,5\nFrance,m,2000,6\nSpain,f,2000,7"
    )
    assert "The rate of France, 2000, m is 6." in spell_data(years)
    shown = spell_data(years, "In 1999 the rate of France was 5 (f).")
    assert "is 4." in shown and "is 5." not in shown and "Spain" not in shown
    both = spell_data(years, "France has a rate of 5.")
    assert both.count("The rate of France") == 3 and "Spain" not in both
    unnamed = json.dumps([{"year": 1999, "rate": 4}, {"year": 2000, "rate": 5}])
    assert "The rate of 2000 is 5." in spell_data(unnamed, "It was 4 in 2000.")


def test_every_line_of_json_is_a_row() -> None:
    lines = "\n".join(json.dumps({"name": f"Lamp {n}x", "price_usd": n}) for n in range(40))
    assert spell_data(lines).count("The price of Lamp") == 40
    assert spell_data(lines, "The price of lamp 7x is high.").count("The price of") == 1


def test_a_table_of_texts_alone_is_read() -> None:
    told = spell_data("name,city,state\nThigpen,Bay Springs,MS\nLivingston,Livingston,TX")
    assert "The city of Thigpen is Bay Springs." in told


def test_rows_with_prose_are_shown_whatever_the_statement_names() -> None:
    """What supports a statement may stand in the text of another result."""
    found = [
        {
            "title": "Aurora lamp",
            "snippet": "It was shown first in Oslo and sold out in a single week that year.",
        },
        {
            "title": "Fairs",
            "snippet": "The fair of Oslo takes place in May, with four hundred makers of lamps.",
        },
    ]
    shown = spell_data(json.dumps(found), "The Aurora lamp was shown at a fair in May.")
    assert "sold out" in shown and "takes place in May" in shown


def test_each_table_has_its_own_row_and_what_stands_alone_is_kept() -> None:
    order = {
        "customer": {"name": "Ann Smith", "address": {"city": "Oslo"}},
        "items": ROWS,
        "shops": [{"city": "Bergen", "open": True}, {"city": "Lund", "open": False}],
    }
    shown = spell_data(json.dumps(order), "Ann Smith bought the Aurora lamp.")
    assert "The customer address city is Oslo." in shown
    assert "Aurora" in shown and "Borealis" not in shown and "Bergen" not in shown
    both = spell_data(json.dumps(order), "The shop in Lund sells the Cirrus chair.")
    assert "Lund is not open." in both and "Cirrus" in both and "Bergen" not in both


def test_an_object_inside_of_a_row_is_a_part_of_it() -> None:
    towns = [
        {"city": c, "tags": [c], "wind": {"speed_mph": n}} for n, c in ((7, "Oslo"), (9, "Lund"))
    ]
    shown = spell_data(json.dumps(towns), "The tags say Oslo, where the wind blows at 7 mph.")
    assert "The wind speed of Oslo is 7 mph." in shown and "Lund" not in shown


@pytest.mark.parametrize("form", FORMS)
def test_a_title_before_data_stays(form: str) -> None:
    shown = spell_data(f"Title: Lamps, all\n{FORMS[form]}", "The Aurora lamp costs 20 dollars.")
    assert shown.startswith("Title: Lamps, all\n")
    assert AURORA in shown and "Borealis" not in shown


def test_lists_are_counted() -> None:
    assert spell_data(FORMS["a tool's"]).endswith("There are 3 results.")


def test_what_stands_around_data_stays() -> None:
    text = f"Title: Lamps\nThe shop says: {json.dumps(ROWS[:1])} Prices may change."
    assert spell_data(text).splitlines() == [
        "Title: Lamps",
        "The shop says:",
        AURORA,
        "Prices may change.",
    ]


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ({"city": "Oslo", "temperature_c": 12}, "The temperature of Oslo is 12 degrees Celsius."),
        ({"city": "Oslo", "vitaminC": 12}, "The vitamin c of Oslo is 12."),
        ({"city": "Oslo", "isRaining": True}, "Oslo is raining."),
        ({"city": "Oslo", "has_tram": False}, "Oslo does not have tram."),
        ({"in_stock": False}, "It is not in stock."),
        ({"city": "Oslo", "wind": {"speed_mph": 7}}, "The wind speed of Oslo is 7 mph."),
        ({"name": "A", "tags": ["x", "y", "z"]}, "The tags of A are x, y and z."),
        ({"name": "A", "note": " ".join(["word"] * 20)}, f"note of A: {' '.join(['word'] * 20)}."),
        ({"name": "Oslo", "rooms": [{"name": "1", "beds": 2}]}, "The beds of 1 (Oslo) is 2."),
        ({"url": "https://x", "title": "Lamps", "n": 3}, "The n of Lamps is 3."),
        ({"a": None, "b": ""}, ""),
    ],
)
def test_values_of_json(value: dict[str, Any], sentences: str) -> None:
    told = spell_data(json.dumps(value))
    assert sentences in told
    assert (read_data(json.dumps(value)) is not None) == bool(sentences)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The bridge was opened in 1931, after four years, two strikes and a fire.",
        "First, a line, with commas.\nThen, another, with commas.\nAnd, a third, too.",
        "He wrote {sic} and [1] and [2, 3].",
        "a | b in one line of prose",
        "A: hello | there\nB: yes",
        "Well, yes, I think\nso, do, you",
        '["a", "b"]',
        "[1, 2, 3]",
        '{"broken": ',
        "```python\nprint(1)\n```",
        "x,y,z\n1,2\n3,4,5",
        "Ann, Bob, Cid\nDora, Eve, Finn\nGus, Hal, Ida",
    ],
)
def test_a_passage_without_data_is_not_changed(text: str) -> None:
    assert spell_data(text, "Some statement.") is text


def test_a_bracket_of_prose_may_stand_before_data() -> None:
    text = 'As [1] and [2] say: {"name": "Aurora", "price": 20}'
    assert "The price of Aurora is 20." in spell_data(text)


@given(st.text(alphabet='{}[]":,|\t\n-`ab1 ', max_size=200), st.text(max_size=20))
def test_no_text_breaks_it(text: str, statement: str) -> None:
    assert isinstance(spell_data(text, statement), str)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 5000 + "1" + "}" * 5000,
        json.dumps([{"a": "b"}] * (MAX_VALUES + 1)),
        json.dumps([{"name": "a", "value": "b" * MAX_PASSAGE_CHARACTERS}]),
        "[" * 100_000,
        "```abc,\n" * 20_000,
        "|--|" * 40_000,
        "| " + " " * 150_000 + "x,",
        "a,b,1\n" * 30_000,
    ],
)
def test_what_is_too_much_is_left_as_it_is_and_takes_no_time(text: str) -> None:
    start = time.process_time()
    assert spell_data(text, "Statement.") is text
    assert time.process_time() - start < 5  # of a second, with much to spare


def test_the_entailer_reads_whose_value_it_is() -> None:
    entailer = EmbeddedEntailer(threads=1)
    right = ["The Borealis lamp costs 35 dollars.", "There are 3 Borealis lamps in stock."]
    wrong = ["The Aurora lamp costs 35 dollars.", "There are 14 Borealis lamps in stock."]
    for form in ("JSON", "Markdown", "CSV"):
        chances = entailer.scores([(FORMS[form], one) for one in (*right, *wrong)])[:, 0]
        assert (chances > 0.5).tolist() == [True, True, False, False], form


def test_two_rows_together_support_nothing() -> None:
    sample = {
        "question": "What do the lamps cost?",
        "response": "The Aurora lamp costs 35 dollars. The Borealis lamp costs 35 dollars.",
        "documents": [FORMS["a tool's"]],
    }
    [found] = score([sample], metrics="faithfulness", cache=None).assessments
    assert [row["verdict"] for row in found.evidence] == ["not found", "supported"]


def test_evidence_quotes_the_sentence_and_words_of_columns_count_as_said() -> None:
    table = io.StringIO()
    csv.writer(table).writerows(CELLS)
    sample = {
        "question": "What does it cost?",
        "response": "The price of the Borealis lamp is 40 USD.",
        "documents": [table.getvalue()],
    }
    judge = Recorder(lambda *_: (0.1, 0.8, 0.1))
    [found] = score([sample], metrics="faithfulness", entailer=judge, cache=None).assessments
    [row] = found.evidence
    assert row["quote"] == "The price of Borealis lamp is 35 USD."
    assert row["missing"] == ["40"]


def test_a_list_of_lists_is_one_table_whose_rows_may_share_a_name() -> None:
    legs = json.dumps(
        [
            [{"train": "R12", "date": "2031-01-09", "fare": 20}],
            [{"train": "R34", "date": "2031-01-09", "fare": 30}],
            [{"train": "R56", "date": "2031-01-09", "fare": 40}],
        ]
    )
    both = spell_data(legs, "On 2031-01-09 R12 and R34 run.", by_name=True)
    assert ["is 20" in both, "is 30" in both, "is 40" in both] == [True, True, False]
    # Without a name all rows count.
    assert "is 40" in spell_data(legs, "The trains are cheap.", by_name=True)


def test_a_first_column_without_a_name_names_the_rows() -> None:
    table = "|  | Price |\n|---|---|\n| Aurora lamp | 20 |\n| Borealis lamp | 35 |\n"
    assert "The price of Borealis lamp is 35." in spell_data(table)
    assert "Borealis" not in spell_data(table, "The Aurora lamp is bright.")


def test_prose_with_a_bar_may_stand_directly_above_a_table() -> None:
    table = "P(a|b) by lamp\n| Lamp | Price |\n|---|---|\n| Aurora | 20 |\n| Borealis | 35 |\n"
    assert spell_data(table).startswith("P(a|b) by lamp\n")
    assert "The price of Borealis is 35." in spell_data(table)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "JSON Lines"])
def test_every_form_of_a_table_has_the_same_cells(form: str) -> None:
    data = read_data(FORMS[form])
    assert data is not None
    [grid] = data.grids
    assert [list(grid.header), *map(list, grid.rows)] == CELLS


def test_a_table_has_the_text_before_it_as_its_caption() -> None:
    data = read_data(f"Title: Shop\nPrices in July\n{FORMS['Markdown']}\n\nAfter it.")
    assert data is not None
    assert [grid.caption for grid in data.grids] == ["Title: Shop\nPrices in July"]


def test_objects_without_common_fields_are_no_table() -> None:
    data = read_data(json.dumps([{f"field {n}": n} for n in range(1000)]))
    assert data is not None
    assert data.rows and not data.grids


# As Python prints it, and with names and values side by side -----------------------------------


def test_data_as_python_prints_them_are_read() -> None:
    assert AURORA in spell_data(repr(ROWS))
    assert AURORA in spell_data(f"The tool returned {ROWS!r} and ended.")


@pytest.mark.parametrize(
    ("printed", "sentences"),
    [
        ("{'name': \"Ann's [old] lamp\", 'mass': 3}", "The mass of Ann's [old] lamp is 3."),
        ("{'name': 'Lamp', 'price': '€\\u2009875.00'}", "The price of Lamp is € 875.00."),
        ("{'name': 'Lamp', 'dimmable': True, 'mass': None}", "Lamp is dimmable."),
        ("{'name': 'Lamp', 'mass': nan, 'price': 3}", "The price of Lamp is 3."),
        ("{'name': 'Lamp', 'colors': ('red', 'blue')}", "The colors of Lamp are red and blue."),
    ],
)
def test_values_as_python_prints_them(printed: str, sentences: str) -> None:
    assert (
        spell_data(printed) == f"The name is {spell_data(printed).split('.')[0][12:]}. {sentences}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{'name': 'Lamp', 'price': 3",
        "{'name': Lamp, 'price': price()}",
        "The set {a, b} isn't [one of 'these'].",
        "Pass {'name': 'Lamp', 'price': 3} to the function.",
    ],
)
def test_what_only_resembles_printed_data_is_not_changed(text: str) -> None:
    assert spell_data(text) == text


def test_a_list_of_names_and_values_is_one_object() -> None:
    pairs = [
        {"name": "Weight", "value": "205 g"},
        {"name": "Colors", "value": "red"},
        {"name": " ", "value": "blue"},
    ]
    spelled = spell_data(json.dumps({"title": "Lamp 3", "facts": pairs}))
    assert "The facts weight of Lamp 3 is 205 g." in spelled
    assert "The facts colors of Lamp 3 are red and blue." in spelled
    # Rows that happen to have these two columns stay rows.
    twice = [{"name": "Weight", "value": 1}, {"name": "Size", "value": 2}] * 2
    assert "There are 4 facts." in spell_data(json.dumps({"title": "Lamp 3", "facts": twice}))


def test_titled_lists_of_names_and_values_are_parts_of_one_object() -> None:
    sections = [
        {"group": "Body", "items": [{"name": "Weight", "value": "205 g"}]},
        {"group": "Shop", "items": [{"name": "Price", "value": "90 euros"}]},
    ]
    passage = json.dumps({"name": "Lamp 3", "sections": sections})
    # Both, whichever of them a statement is about.
    spelled = spell_data(passage, "The body weighs 205 g.")
    assert "The body weight of Lamp 3 is 205 g." in spelled
    assert "The shop price of Lamp 3 is 90 euros." in spelled


def test_a_list_of_one_object_in_a_row_is_a_part_of_the_row() -> None:
    rows = [
        {"name": name, "offers": [{"shop": shop, "price": 3}]}
        for name, shop in (("Lamp", "Ahorn"), ("Chair", "Birke"))
    ]
    assert "The offers shop of Lamp is Ahorn." in spell_data(json.dumps(rows), "The Lamp costs 3.")


def test_lines_of_comment_before_a_table_stay() -> None:
    passage = "# city: Ahorn\n# unit: mm\ndate,rain\n2021-05-01,3.5\n2021-05-02,0\n"
    assert spell_data(passage).splitlines()[:3] == [
        "# city: Ahorn",
        "# unit: mm",
        "The date is 2021-05-01. The rain of 2021-05-01 is 3.5.",
    ]


def test_two_columns_are_a_table_if_the_second_has_numbers_alone() -> None:
    assert "The rain of Ahorn is 3." in spell_data("city,rain\nAhorn,3\nBirke,4")
    assert spell_data("Dear Ann,hello\nas you know,we met") == "Dear Ann,hello\nas you know,we met"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("period3", "period 3"),
        ("area_m2", "area m2"),
        ("2G bands", "2G bands"),
        ("3.5mm jack", "3.5mm jack"),
        ("GDPGrowth2020", "GDP growth 2020"),
        ("Model A7", "model A7"),
        ("GDP2020", "GDP 2020"),
    ],
)
def test_digits_of_a_field_name(field: str, words: str) -> None:
    assert spell_data(json.dumps({"name": "Ahorn", field: 7})).endswith(
        f"The {words} of Ahorn is 7."
    )


# Rows of dates ---------------------------------------------------------------------------------

DAYS = "day,rain,wind\n" + "\n".join(
    f"2024-0{month}-{day:02},{day}.5,{month}.1" for month in (1, 2) for day in range(1, 29)
)


@pytest.mark.parametrize(
    ("statement", "days"),
    [
        ("On January 5, 2024, it rained.", ["2024-01-05"]),
        ("On 5 January it rained.", ["2024-01-05"]),
        ("From January 5 to January 7 it rained.", ["2024-01-05", "2024-01-06", "2024-01-07"]),
        ("On January 5 and on February 7 it rained.", ["2024-01-05", "2024-02-07"]),
        ("It rained in February 2024.", [f"2024-02-{day:02}" for day in range(1, 29)]),
        # The Fridays of that time.
        ("It rained on Friday.", [f"2024-01-{day:02}" for day in (5, 12, 19, 26)]
            + [f"2024-02-{day:02}" for day in (2, 9, 16, 23)]),
        ("It rained in 2024.", [f"2024-0{m}-{day:02}" for m in (1, 2) for day in range(1, 29)]),
        ("It rained in 1999.", []),
        ("It rained for 2024 hours and on 31 March.", []),
    ],
)  # fmt: skip
def test_rows_are_found_by_the_dates_that_a_statement_names(
    statement: str, days: list[str]
) -> None:
    data = read_data(DAYS)
    assert data is not None
    dated = find_dated_rows(data.rows, statement)
    assert ["-".join(row.names[0].split()) for row in dated] == days


def test_of_the_rows_of_a_date_those_of_the_other_names_are_chosen() -> None:
    data = read_data("date,shop,sales\n2024-01-05,Bern,7\n2024-01-05,Basel,9\n2024-01-06,Bern,4")
    assert data is not None
    for statement, sales in (
        ("On January 5, Basel sold 7.", ["9"]),
        ("On January 5, Basel sold more than Bern.", ["7", "9"]),
        ("On January 5, they sold 16.", ["7", "9"]),
        ("On January 5 and 6, Bern sold 11.", ["7"]),
    ):
        dated = find_dated_rows(data.rows, statement)
        assert [dict(row.cells)["sales"] for row in dated] == sales, statement


def test_a_header_of_two_lines_is_one() -> None:
    table = """\
| | 2022 | 2022 | 2023 |
|---|---|---|---|
| Shop | Sales | Returns | Sales |
| Bern | 100 | 5 | 120 |
| Basel | 90 | 9 | 80 |
"""
    assert spell_data(table).splitlines()[0] == (
        "The shop is Bern. The 2022 sales of Bern is 100. The 2022 returns of Bern is 5. "
        "The 2023 sales of Bern is 120."
    )
    # A row of numbers, or one that does not tell the columns apart, is none of the header.
    for row in ("| Bern | 100 | 5 | 120 |", "| Shop | Sales | Sales | Sales |"):
        data = read_data(table.replace("| Shop | Sales | Returns | Sales |", row))
        assert data is not None and len(data.grids[0].rows) == 3


def test_rows_without_dates_are_not_found_by_dates() -> None:
    data = read_data(FORMS["JSON"])
    assert data is not None
    assert find_dated_rows(data.rows, "On 5 January 2024 it cost 20.") == []


@pytest.mark.parametrize(
    ("column", "spelled"),
    [
        ("Revenue (million euros)", "The revenue of 2022 is 48 million euros."),
        ("Revenue in million euros", "The revenue of 2022 is 48 million euros."),
        ("revenue_millions", "The revenue of 2022 is 48 million."),
        ("revenue_usd_millions", "The revenue of 2022 is 48 million USD."),
        ("Check in", "The check in of 2022 is 48."),
    ],
)
def test_a_scale_in_the_name_of_a_column_belongs_to_its_numbers(column: str, spelled: str) -> None:
    assert spelled in spell_data(
        f"| Year | {column} |\n| --- | --- |\n| 2022 | 48 |\n| 2023 | 50 |"
    )
