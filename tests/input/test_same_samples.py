"""The same rows give the same samples from every kind of file and of table."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lazily import needed
from trustassay.core.sample import Sample
from trustassay.input import InputFault, LocatedSample, read_samples

pandas, polars, pyarrow = needed("pandas"), needed("polars"), needed("pyarrow")
parquet, datasets = needed("pyarrow.parquet"), needed("datasets")
Row = dict[str, Any]


def samples(source: Any, **options: Any) -> list[Sample]:
    results = list(read_samples(source, **options))
    assert not [str(result) for result in results if isinstance(result, InputFault)]
    return [result.sample for result in results if isinstance(result, LocatedSample)]


# ---- every way to write rows ----


def flat(value: Any) -> Any:
    """Return the value of a cell that has no lists: JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows({name: flat(value) for name, value in row.items()} for row in rows)
    (path := path.with_suffix(".csv")).write_text(text.getvalue(), newline="")
    return path


def write_jsonl(path: Path, rows: Sequence[Row]) -> Path:
    (path := path.with_suffix(".jsonl")).write_text("\n".join(map(json.dumps, rows)))
    return path


def write_json(path: Path, rows: Any) -> Path:
    (path := path.with_suffix(".json")).write_text(json.dumps(rows))
    return path


def write_columns(path: Path, rows: Sequence[Row]) -> Path:
    """Write an object of columns, as ``DataFrame.to_json`` does by default."""
    labels = list(map(str, range(len(rows))))
    return write_json(
        path,
        {k: dict(zip(labels, (row[k] for row in rows), strict=True)) for k in rows[0]},
    )


def write_split(path: Path, rows: Sequence[Row]) -> Path:
    return write_json(
        path, {"columns": list(rows[0]), "index": [], "data": [list(row.values()) for row in rows]}
    )


def write_workbook(path: Path, rows: Sequence[Row]) -> Path:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for cells in (list(rows[0]), *(list(map(flat, row.values())) for row in rows)):
        sheet.append(cells)
    book.save(path := path.with_suffix(".xlsx"))
    return path


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path := path.with_suffix(".parquet"))
    return path


FILES = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "json": write_json,
    "json of columns": write_columns,
    "json of cells": write_split,
    "workbook": write_workbook,
}
TABLES = {
    "pandas": lambda _, rows: pandas.DataFrame(rows),
    "polars": lambda _, rows: polars.DataFrame(rows, infer_schema_length=None),
    "arrow": lambda _, rows: pyarrow.Table.from_pylist(rows),
    "dataset": lambda _, rows: datasets.Dataset.from_list(rows),
    "parquet": write_parquet,
}


# ---- rows of any content ----

letters = st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), exclude_characters="=")
texts = st.text(letters, min_size=1, max_size=12).filter(lambda text: text.strip() == text)
words = st.sampled_from(
    ["nan", "None", "N/A", "null", "[1]", "14", "0.5", "True", "['a']", '{"a": 1}', "1. A\n2. B"]
)
questions = texts.map(lambda text: f"{text}?") | st.sampled_from(["14", "[q]"])
answers = st.one_of(texts, words, st.just(""))
passages = st.lists(texts | words | st.just(""), max_size=3)
# By the name of a column, its values: of one type in a table, as data formats need.
columns: Mapping[str, Sequence[st.SearchStrategy[Any]]] = {
    "id": [st.uuids().map(str), st.integers(1, 10**6)],
    "response": [answers, st.integers(-5, 99), st.just(0.5), st.booleans()],
    "contexts": [
        passages,
        passages.map(json.dumps),
        passages.map(repr),
        st.lists(texts.map(lambda text: {"title": "T", "text": text}), min_size=1, max_size=2),
        texts.filter(lambda text: text[0] not in "[{(<"),
    ],
    "label": [st.integers(0, 1), st.sampled_from(["0", "1", "0.5"])],
    "ground_truth": [texts, st.just("")],
    "note": [texts],
}


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Return rows with the same columns."""
    chosen = {name: draw(st.sampled_from(kinds)) for name, kinds in columns.items()}
    if draw(st.booleans()):
        del chosen["contexts"]
        chosen |= {f"Context {number}": answers for number in draw(st.permutations([1, 2, 10]))}
    for name in draw(st.sets(st.sampled_from(["id", "label", "ground_truth", "note"]))):
        del chosen[name]
    chosen = {"question": questions, **chosen}
    rows = draw(st.lists(st.fixed_dictionaries(chosen), min_size=1, max_size=3))
    return [{name: row[name] for name in chosen} for row in rows]


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables())
@pytest.mark.parametrize("kind", FILES)
def test_a_file_gives_the_samples_of_its_rows(tmp_path: Path, kind: str, rows: list[Row]) -> None:
    assert samples(FILES[kind](tmp_path / "x", rows)) == samples(rows)


@pytest.mark.slow
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables())
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_gives_the_samples_of_its_rows(tmp_path: Path, kind: str, rows: list[Row]) -> None:
    assert samples(TABLES[kind](tmp_path / "x", rows)) == samples(rows)
