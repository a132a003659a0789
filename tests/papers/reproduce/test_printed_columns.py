"""A table has the paper's figures beside ours where there are any, and says what is missing."""

from __future__ import annotations

from trustassay.papers.reproduce.tables import (
    ReproducedCell,
    ReproducedRow,
    ReproducedTable,
    list_missing_intervals,
)


def build_table(*rows: ReproducedRow) -> ReproducedTable:
    return ReproducedTable("Table 1", "r", ["one", "two"], rows, first="score")


def test_only_columns_with_printed_figures_have_a_second_one() -> None:
    table = build_table(
        ReproducedRow("a", [ReproducedCell("0.5", paper="0.51"), ReproducedCell("0.6")]),
        ReproducedRow("b", [ReproducedCell("0.7"), ReproducedCell("0.8")]),
        ReproducedRow("c", [ReproducedCell("–"), ReproducedCell("–")]),
    )
    headings, rows = table.to_texts()
    assert headings == ["score", "one: here", "paper", "two"]
    assert rows == [
        ["a", "0.5", "0.51", "0.6"],
        ["b", "0.7", "not comparable", "0.8"],
        # Nothing of ours, so nothing to compare.
        ["c", "–", "–", "–"],
    ]


def test_a_table_without_printed_figures_is_as_it_was() -> None:
    table = build_table(ReproducedRow("a", [ReproducedCell("0.5"), ReproducedCell("0.6")]))
    assert table.to_texts() == (["score", "one", "two"], [["a", "0.5", "0.6"]])


def test_missing_figures_and_intervals_are_told_apart_and_joined_by_reason() -> None:
    few = "too few answers"
    rows = [
        ReproducedRow("a", [ReproducedCell.of_estimate(0.5, reason=few), ReproducedCell("x")]),
        ReproducedRow("b", [ReproducedCell.of_estimate(0.6, reason=few), ReproducedCell("x")]),
        ReproducedRow("c", [ReproducedCell("–", {"value": None, "reason": "all are 0"})] * 2),
    ]
    assert list_missing_intervals(["one", "two"], rows) == [
        "No interval for a (one); b (one): too few answers.",
        "No value for c (one); c (two): all are 0.",
    ]


def test_of_many_places_the_first_are_named() -> None:
    cell = ReproducedCell.of_estimate(0.5, reason="too few")
    rows = [ReproducedRow(f"row {n}", [cell]) for n in range(9)]
    (note,) = list_missing_intervals(["r"], rows)
    assert note == "No interval for row 0 (r); row 1 (r); row 2 (r); row 3 (r) and 5 more: too few."
