"""Comparisons in claims: which the numbers of a table bear out, contradict or leave open."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.readers import OPEN, YES, Reader, Row, judged
from trustassay.judging.table_checks import TableComparison, check_comparisons
from trustassay.judging.verdict import ClaimFinding
from trustassay.text.tables import MAX_VALUES, read_data

LAMPS = """\
Desk lamps, July
| Lamp | Price (USD) | Brightness (lm) | Rating | Returns |
|---|---|---|---|---|
| Aurora | 20 | 400 | 4.1 | 2.5% |
| Aurora Plus | 45 | 900 | 4.6±0.2 | 3.5% |
| Borealis | $35 | 650 | 3.9 | 1.5% |
| Cirrus | 1,250 | - | **4.8** | 0.5% |
| Average | 338 | 650 | 4.4 | 2.0% |
"""
REVENUE = """\
Revenue in million euros
| Region | Q1 2024 | Q2 2024 | Q3 2024 |
|---|---|---|---|
| North | 12.5 | 13.1 | 11.9 |
| South | 8.2 | 9.0 | 9.6 |
"""
CLUBS = """\
| Club | Position | Goals conceded | Complaints | Profit |
|---|---|---|---|---|
| Alba | 1 | 15 | 3 | -3 |
| Bern | 2 | 18 | 1 | -8 |
| Cork | 3 | 48 | 9 | 20 |
"""
MODELS = """\
Table 3: Tagging. Lower loss is better.
|  | Data | News Acc. | News Loss | Web Acc. | Web Loss |
|---|---|---|---|---|---|
| BI | small | 71.0 | 0.51 | 60.1 | 0.80 |
| BI + CRF | small | 73.2 | 0.44 | 61.5 | 0.71 |
| BI | large | 75.0 | 0.40 | 66.0 | 0.60 |
| BI + CRF | large | 78.2 | 0.31 | 65.1 | 0.62 |
| NET (ours) | large | 80.3 | 0.29 | 69.0 | 0.55 |
"""
PLANS = [
    {"name": "Plan S", "monthly_fee": 9, "storage_gb": 50},
    {"name": "Plan M", "monthly_fee": 15, "storage_gb": 200},
]


def check(claim: str, passage: str) -> TableComparison | None:
    data = read_data(passage)
    assert data is not None
    return check_comparisons(claim, data.grids)


def agrees(claim: str, passage: str) -> bool | None:
    result = check(claim, passage)
    return None if result is None else result.agrees


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        # larger and smaller
        ("Aurora has a lower price than Borealis.", LAMPS),
        ("The price of Borealis is higher than that of Aurora.", LAMPS),
        ("Aurora is cheaper than Borealis.", LAMPS),
        ("Borealis is more expensive than Aurora.", LAMPS),
        ("Aurora has more returns than Borealis.", LAMPS),
        ("Aurora Plus has a higher price and a higher rating than Aurora.", LAMPS),
        # better and worse, where the direction is known
        ("Aurora has a better rating than Borealis.", LAMPS),
        ("Borealis has a worse rating than Aurora Plus.", LAMPS),
        ("NET outperforms BI + CRF.", MODELS),
        ("BI + CRF has a better news loss than BI.", MODELS),
        ("Our model surpasses all other models on Web.", MODELS),
        ("BI is inferior to BI + CRF on News.", MODELS),
        # the best of all
        ("Cirrus has the highest rating.", LAMPS),
        ("The cheapest lamp is Aurora.", LAMPS),
        ("The best accuracy on the Web data is that of NET.", MODELS),
        ("Our model achieves the lowest loss.", MODELS),
        # What follows a superlative is the measure, and no column to compare with others.
        ("Alba was the club that conceded the fewest goals.", CLUBS),
        # change
        ("Revenue in the North rose from Q1 2024 to Q2 2024.", REVENUE),
        ("Revenue in the North fell from Q2 2024 to Q3 2024.", REVENUE),
        ("The South gained revenue from Q1 2024 to Q2 2024.", REVENUE),
        ("Revenue in the South was higher in Q3 2024 than in Q2 2024.", REVENUE),
        ("CRF improves the accuracy on News over BI.", MODELS),
    ],
)
def test_a_comparison_is_borne_out_and_its_denial_is_not(claim: str, passage: str) -> None:
    assert agrees(claim, passage) is True
    for verb, denial in (
        (" has ", " does not have "),
        (" is ", " is not "),
        (" was ", " was not "),
        (" rose ", " never rose "),
        (" fell ", " never fell "),
        (" gained ", " never gained "),
        (" outperforms ", " does not outperform "),
        (" surpasses ", " does not surpass "),
        (" achieves ", " does not achieve "),
        (" improves ", " does not improve "),
    ):
        if verb in claim:
            assert agrees(claim.replace(verb, denial, 1), passage) is False
            break
    else:
        pytest.fail("no verb to deny")


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Aurora has a higher price than Borealis.", LAMPS),
        ("Borealis is cheaper than Aurora.", LAMPS),
        ("Aurora Plus has the best rating.", LAMPS),
        ("Borealis has the lowest price of all lamps.", LAMPS),
        ("Borealis has a better rating than all other lamps.", LAMPS),
        ("All other lamps have a better rating than Cirrus.", LAMPS),
        ("BI outperforms NET.", MODELS),
        ("BI has a lower news loss than BI + CRF.", MODELS),
        # one data set is enough against "both"
        ("On the large data, BI + CRF outperforms BI on both News and Web.", MODELS),
        ("Revenue in the North fell from Q1 2024 to Q2 2024.", REVENUE),
        # one comparison of two
        ("NET outperforms BI, and BI outperforms BI + CRF on News.", MODELS),
    ],
)
def test_a_comparison_that_the_numbers_contradict(claim: str, passage: str) -> None:
    assert agrees(claim, passage) is False


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Aurora is cheaper than Borealis and not Cirrus.", LAMPS),
        # no row, or a word that is no name
        ("The lamp is cheaper than the chair.", LAMPS),
        ("Dorado is cheaper than Aurora.", LAMPS),
        # no measure of the table
        ("Aurora has a higher weight than Borealis.", LAMPS),
        ("Aurora is brighter than Borealis.", LAMPS),
        # neither end of the measure is better
        ("Aurora has a better price than Borealis.", LAMPS),
        ("Aurora is better than Borealis in brightness.", LAMPS),
        # a missing number
        ("Aurora Plus has the highest brightness.", LAMPS),
        ("Cirrus has a higher brightness than Aurora.", LAMPS),
        # better by one measure, worse by another
        ("BI + CRF outperforms BI on the large data.", MODELS),
        # two rows of a name
        ("BI has a higher accuracy than BI + CRF on Web.", MODELS),
        # what the numbers do not show
        ("Borealis is the second cheapest lamp.", LAMPS),
        ("Aurora has the largest increase of the price.", LAMPS),
        ("All lamps except Cirrus are cheaper than Aurora Plus.", LAMPS),
        ("Borealis is outperformed by Aurora.", LAMPS),
        ("Revenue grew from 8.2 to 9.0.", REVENUE),
        ("The revenue of the South is better.", REVENUE),
        # something better that the table does not have
        ("Aurora has a better warranty than Aurora Plus.", LAMPS),
        ("Alba has the worst defence.", CLUBS),
        # better by complaints, worse by profit
        ("Bern is better than Alba.", CLUBS),
        # a part of the lines
        ("Of the lamps under 40 dollars, Borealis is the most expensive.", LAMPS),
        ("Among lamps with low ratings, Aurora is the best.", LAMPS),
        ("Aurora had its highest price in May.", LAMPS),
        # not said to be so now
        ("Some say that Borealis is cheaper than Aurora.", LAMPS),
        ("It is wrong that Borealis is cheaper than Aurora.", LAMPS),
        ("Borealis would be cheaper than Aurora with a discount.", LAMPS),
        ("Borealis was once cheaper than Aurora.", LAMPS),
        # The first position is the highest one, and the largest loss the lowest profit.
        ("Alba has a higher position than Bern.", CLUBS),
        ("Bern has a larger loss of profit than Alba.", CLUBS),
        ("Aurora costs 20 dollars.", LAMPS),
    ],
)
def test_nothing_is_said_where_a_step_is_unclear(claim: str, passage: str) -> None:
    assert check(claim, passage) is None


def test_a_function_word_is_a_name_only_as_the_table_writes_it() -> None:
    table = "| Model | Acc |\n|---|---|\n| IS | 70 |\n| BI | 60 |\n"
    assert agrees("IS is better than BI.", table) is True
    assert check("It is better than BI.", table) is None


def test_a_clear_difference_is_significant_in_any_sense() -> None:
    assert check("Aurora does not have a significantly higher rating than Borealis.", LAMPS) is None
    assert (
        agrees("Borealis does not have a significantly higher price than Aurora.", LAMPS) is False
    )


def test_several_things_that_are_compared_with() -> None:
    assert agrees("Aurora is cheaper than Aurora Plus as well as Borealis.", LAMPS) is True
    assert agrees("Borealis is cheaper than Aurora Plus as well as Aurora.", LAMPS) is False


def test_a_gain_over_something_needs_no_measure_but_a_higher_weight_does() -> None:
    assert agrees("NET shows gains over BI.", MODELS) is True
    assert check("NET has a higher weight than BI.", MODELS) is None


def test_the_longest_name_counts() -> None:
    assert agrees("Aurora Plus is cheaper than Borealis.", LAMPS) is False
    assert agrees("Aurora is cheaper than Borealis.", LAMPS) is True


def test_the_best_that_is_beaten_is_not_the_subject() -> None:
    assert check("Aurora Plus beats the lamp with the lowest price.", LAMPS) is None


def test_words_that_deny_count_once() -> None:
    assert agrees("Borealis is neither cheaper nor better rated than Aurora.", LAMPS) is True
    assert agrees("The cheapest lamp is neither Cirrus nor Aurora Plus.", LAMPS) is True
    assert agrees("Borealis is hardly cheaper than Aurora.", LAMPS) is True


def test_a_fall_below_zero_is_a_fall_but_a_larger_loss_is_unclear() -> None:
    table = "| Year | Profit | Debt |\n|---|---|---|\n| Y22 | 4 | 1 |\n| Y23 | -2 | 3 |\n"
    assert agrees("The profit falls from Y22 to Y23.", table) is True
    assert check("The profit had higher losses in Y23 than in Y22.", table) is None


@pytest.mark.parametrize("field", ["latency_ms", "meanLatency"])
def test_the_direction_of_a_field_is_known(field: str) -> None:
    hosts = json.dumps([{"host": "web-1", field: 41}, {"host": "db-1", field: 12}])
    assert agrees("db-1 has a better latency than web-1.", hosts) is True


def test_totals_and_averages_do_not_compete() -> None:
    table = "| Shop | Sales |\n|---|---|\n| Bern | 5 |\n| Basel | 9 |\n| Total | 14 |\n"
    assert agrees("Basel has the highest sales.", table) is True


@pytest.mark.parametrize("cells", [("900 MB", "2 GB", "4 GB"), ("$300", "€290", "€450")])
def test_units_and_currencies_that_differ_are_not_compared(cells: tuple[str, str, str]) -> None:
    rows = zip(("Alpha", "Beta", "Gamma"), cells, strict=True)
    lines = [f"| {name} | {cell} |" for name, cell in rows]
    table = "\n".join(["| Name | Size |", "|---|---|", *lines])
    assert check("Alpha has a larger size than Beta.", table) is None
    assert agrees("Beta has a smaller size than Gamma.", table) is True
    assert check("Alpha has the largest size.", table) is None


def test_a_table_of_one_measure_says_nothing_about_another() -> None:
    table = "| Lamp | Price |\n|---|---|\n| Aurora | 20 |\n| Borealis | 35 |\n"
    assert check("Borealis has a higher weight than Aurora.", table) is None
    assert check("Borealis is more popular than Aurora.", table) is None
    assert agrees("Borealis has a higher price than Aurora.", table) is True


def test_an_overall_score_stands_for_its_parts() -> None:
    rows = "| Model | Precision | Recall | F1 |", "|---|---|---|---|", "| A1 | 9 | 4 | 6 |"
    table = "\n".join([*rows, "| B1 | 7 | 5 | 5 |"])
    assert agrees("A1 outperforms B1.", table) is True
    assert agrees("A1 has a better recall than B1.", table) is False


def test_a_word_that_denies_may_be_a_part_of_a_name() -> None:
    table = "| Lamp | Rating |\n|---|---|\n| Aurora | 4 |\n| Aurora no dimmer | 3 |\n"
    assert agrees("Aurora no dimmer has a worse rating than Aurora.", table) is True


def test_rows_that_differ_in_one_name_are_compared_with_each_other() -> None:
    table = (
        "| Engine | Mode | Rating |\n|---|---|---|\n"
        "| Rook | slow | 50 |\n| Pawn | slow | 40 |\n| Rook | fast | 30 |\n| Pawn | fast | 20 |\n"
    )
    # The fast rook is below the slow pawn.
    assert agrees("Rook is better than Pawn.", table) is True
    # Two names of one row, and a name that two rows have.
    assert agrees("Rook fast is better than Pawn slow.", table) is False
    assert agrees("Rook fast is better than Rook.", table) is False


def test_columns_of_a_unit_are_compared_as_well() -> None:
    table = "Accuracy\n| Task | Alpha | Beta |\n|---|---|---|\n| Tagging | 71 | 65 |\n"
    assert agrees("Alpha outperforms Beta.", table) is True
    assert agrees("Beta has the best accuracy on Tagging.", table) is False
    assert check("The rating is higher than the returns.", LAMPS) is None


def test_an_abbreviation_and_a_number_may_be_names() -> None:
    table = "| k | Prec. | Yield |\n|---|---|---|\n| 1 | 50 | 20 |\n| 2 | 60 | 10 |\n"
    assert agrees("k = 2 gives the highest precision.", table) is True
    assert agrees("k = 1 gives the highest precision.", table) is False


@pytest.mark.parametrize("form", ["JSON", "CSV"])
def test_json_and_csv_are_tables(form: str) -> None:
    lines = [",".join(PLANS[0]), *(",".join(map(str, plan.values())) for plan in PLANS)]
    passage = json.dumps({"plans": PLANS}) if form == "JSON" else "\n".join(lines)
    assert agrees("Plan S is cheaper than Plan M.", passage) is True
    assert agrees("Plan M has a lower monthly fee than Plan S.", passage) is False


def test_the_reason_names_the_cells() -> None:
    result = check("Borealis has a lower price than Aurora.", LAMPS)
    assert result is not None
    assert result.reason == "Price (USD): $35 for Borealis is above 20 for Aurora"
    assert result.quote == "Price (USD): $35 for Borealis, 20 for Aurora"


def test_the_share_is_that_of_the_clauses_that_are_decided() -> None:
    whole = check("Aurora is cheaper than Borealis.", LAMPS)
    part = check("Aurora is cheaper than Borealis, which shows that nobody wants it.", LAMPS)
    assert whole and whole.share == 1.0
    assert part and part.share == pytest.approx(39 / 66, abs=0.03)


NAMES = st.lists(
    st.text("ABCDEFGHJKLMNPQRTUVWXYZ", min_size=3, max_size=6), min_size=2, max_size=6, unique=True
)


@given(NAMES, st.data())
def test_the_numbers_decide_between_any_two_rows(names: list[str], data: st.DataObject) -> None:
    names = [f"Lamp-{name}" for name in names]
    prices = [data.draw(st.integers(0, 99)) for _ in names]
    lines = [f"| {name} | {price} |" for name, price in zip(names, prices, strict=True)]
    table = "\n".join(["| Lamp | Price |", "|---|---|", *lines])
    assert agrees(f"{names[0]} is cheaper than {names[1]}.", table) is (prices[0] < prices[1])
    assert agrees(f"{names[0]} is the cheapest.", table) is (prices[0] == min(prices))


@given(st.text(max_size=60), st.lists(st.text("ab1.% -|\n", max_size=12), max_size=12))
def test_no_text_breaks_it(claim: str, cells: list[str]) -> None:
    data = read_data("| a | b |\n|---|---|\n" + "\n".join(f"| {cell} | 1 |" for cell in cells))
    check_comparisons(f"{claim} a is better than b", data.grids if data else ())


@pytest.mark.parametrize(("rows", "columns"), [(100, 100), (70, 70), (290, 16), (16, 290)])
def test_a_large_table_takes_little_time(rows: int, columns: int) -> None:
    header = "|".join(f"Metric {column} accuracy" for column in range(columns))
    lines = [f"|Model {row}|{'|'.join('7' * 9 for _ in range(columns))}|" for row in range(rows)]
    passage = "\n".join([f"|Name|{header}|", "|---" * (columns + 1) + "|", *lines])
    data = read_data(passage)
    assert (data is None) == (rows * (columns + 1) > MAX_VALUES)
    start = time.process_time()
    for claim in (
        "Model 7 is better than all other models.",
        " ".join(f"Model {row} outperforms Metric {row} accuracy" for row in range(9)),
        "Model accuracy outperforms Model accuracy and is the best, " * 5,
    ):
        check_comparisons(claim, data.grids if data else ())
    assert time.process_time() - start < 2


@pytest.mark.parametrize("cell", ["1" * 90_000, "1," * 40_000, " " * 90_000, "(" * 90_000])
def test_a_long_cell_takes_no_time(cell: str) -> None:
    start = time.process_time()
    data = read_data(json.dumps([{"name": "A1", "price": cell}, {"name": "B1", "price": "2"}]))
    assert data is not None
    check_comparisons("A1 is cheaper than B1.", data.grids)
    check_comparisons(f"A1 is cheaper than B{'a' * 90_000}.", data.grids)
    assert time.process_time() - start < 1


# The verdict on a claim

RIGHT, WRONG = "Aurora is cheaper than Borealis.", "Borealis is cheaper than Aurora."


def judge(claim: str, reads: Row = OPEN) -> tuple[ClaimFinding, Reader]:
    reader = Reader(lambda *_: reads)
    [finding] = judged(claim, "About lamps.", LAMPS, reader=reader)
    return finding, reader


@pytest.mark.parametrize(("claim", "verdict"), [(RIGHT, "supported"), (WRONG, "contradicted")])
def test_a_table_decides_without_a_reader(claim: str, verdict: str) -> None:
    finding, reader = judge(claim)
    assert finding.row.verdict == verdict and not finding.read
    assert reader.asked == []
    assert finding.row.passages == [2]
    assert (finding.row.why or "").startswith("passage [2]: ")
    assert (finding.row.quote or "").startswith("Price (USD): ")


def test_a_reader_judges_a_claim_that_says_more_than_the_comparison() -> None:
    rest = "which shows that people who sit at a desk in the evening prefer it"
    finding, reader = judge(f"Aurora is cheaper than Borealis, {rest}.", YES)
    assert finding.read and reader.asked
    # What is contradicted stays so, whatever else the claim says.
    finding, reader = judge(f"Borealis is cheaper than Aurora, {rest}.", YES)
    assert finding.row.verdict == "contradicted" and not reader.asked


def test_a_reader_judges_a_comparison_with_a_number_of_another_row() -> None:
    for claim in (
        "Aurora, rated 4.8, is cheaper than Borealis.",
        f"At 45 dollars, {RIGHT}",
        "At 45 dollars, the cheapest lamp is Aurora.",
        # The number of what it is compared with, on either side.
        "Aurora costs 35 dollars and is cheaper than Borealis.",
        "Aurora is cheaper than Borealis, which costs 20 dollars.",
    ):
        finding, reader = judge(claim)
        assert finding.read and reader.asked, claim
    for claim in (
        "Aurora, rated 4.1, is cheaper than Borealis.",
        "Aurora at 20 is cheaper than Borealis at 35.",
    ):
        finding, reader = judge(claim)
        assert finding.row.verdict == "supported" and not reader.asked, claim


def test_a_number_that_no_passage_has_is_not_supported_by_a_table() -> None:
    finding, _ = judge("Aurora is cheaper than Borealis by 77 dollars.")
    assert finding.row.verdict == "not found"
    assert finding.row.missing == ["77"]
