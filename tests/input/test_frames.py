"""Tables in memory: the same samples from every library."""

from typing import Any

import pytest

from tests.lazily import needed
from trustassay.core.sample import Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples
from trustassay.runs.choose_metric import choose_metric

pandas, polars = needed("pandas"), needed("polars")
pyarrow, datasets, arro3 = needed("pyarrow"), needed("datasets"), needed("arro3.core")
numpy = needed("numpy")
ROWS: list[dict[str, Any]] = [
    {"Question": "Which river?", "Answer": "The Tagus.", "Contexts": ["It flows.", "x"], "n": 1},
    {"Question": "When?", "Answer": "1966.", "Contexts": None, "n": 2},
]


def table(library: str, rows: list[dict[str, Any]]) -> Any:
    if library == "pandas":
        return pandas.DataFrame(rows)
    if library == "polars":
        return polars.DataFrame(rows)
    if library in {"Table", "RecordBatch"}:
        return getattr(pyarrow, library).from_pylist(rows)
    if library == "arro3":
        return arro3.Table.from_arrow(pyarrow.Table.from_pylist(rows))
    dataset = datasets.Dataset.from_list(rows)
    if library == "IterableDataset":
        return dataset.to_iterable_dataset()
    return datasets.DatasetDict(test=dataset) if library == "DatasetDict" else dataset


TABLES = ["pandas", "polars", "Table", "RecordBatch", "arro3"]
TABLES += ["Dataset", "IterableDataset", "DatasetDict"]
pytestmark = pytest.mark.slow


def samples(source: Any, **fields: str) -> list[Sample]:
    found = list(read_samples(source, fields=fields))
    assert not [str(one) for one in found if isinstance(one, InputFault)]
    return [one.sample for one in found if isinstance(one, LocatedSample)]


@pytest.mark.parametrize("library", TABLES)
def test_a_table_is_taken_as_it_is(library: str) -> None:
    first, second = samples(table(library, ROWS))
    assert (first.question, first.response, first.metadata) == (
        *("Which river?", "The Tagus."),
        {"n": 1},
    )
    assert [document.text for document in first.documents or ()] == ["It flows.", "x"]
    assert second.documents == ()
    assert [sample.label for sample in samples(table(library, ROWS), label="n")] == [1, 2]


@pytest.mark.parametrize("library", TABLES)
def test_choosing_a_metric_loses_nothing(library: str) -> None:
    chosen = choose_metric(table(library, ROWS))
    assert chosen.metrics == ["faithfulness"]
    assert len(samples(chosen.source)) == len(ROWS)


def test_lists_that_a_csv_file_brought_are_read() -> None:
    rows: list[dict[str, Any]] = [{"question": "Q?", "answer": "[1]", "contexts": "['a', 'b']"}]
    for library in TABLES:
        [sample] = samples(table(library, rows))
        assert sample.response == "[1]"
        assert [document.text for document in sample.documents or ()] == ["a", "b"]


def test_cells_of_pandas_that_are_empty_in_whatever_way() -> None:
    frame = pandas.DataFrame({"question": ["a", "b"], "response": ["x", float("nan")]})
    frame["when"] = pandas.to_datetime(["2024-01-01", None])
    frame["whole"] = pandas.array([1, None], dtype="Int64")
    frame["contexts"] = pandas.Series([numpy.array(["p", "q"]), None], dtype=object)
    first, second = samples(frame)
    assert first.metadata == {"when": "2024-01-01", "whole": 1}
    assert [document.text for document in first.documents or ()] == ["p", "q"]
    assert (second.response, second.documents, second.metadata) == ("", (), {})


def test_rows_that_a_dataset_selects_are_the_ones_that_are_read() -> None:
    chosen = datasets.Dataset.from_list(ROWS).select([1])
    assert [sample.question for sample in samples(chosen)] == ["When?"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: datasets.DatasetDict(dict.fromkeys("ab", datasets.Dataset.from_list(ROWS))),
            "got the splits a, b; pass one of them",
        ),
        (lambda: polars.DataFrame(ROWS).lazy(), r"LazyFrame; collect\(\) it first"),
        (lambda: pyarrow.Table.from_pylist(ROWS).to_reader(), r"read_all\(\) it first"),
        (lambda: pandas.DataFrame([[1, 2]], columns=["question"] * 2), "more than once"),
        (lambda: pandas.DataFrame({"question": []}), "no records"),
        (lambda: {"question": "a"}, "got a single dict"),
    ],
)
def test_what_is_no_table_is_said(build: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(read_samples(build()))


def test_a_field_that_no_column_bears_is_refused() -> None:
    for library in TABLES:
        with pytest.raises(InputError, match=r"no record has Reply"):
            samples(table(library, ROWS), response="Reply")


@pytest.mark.parametrize("library", TABLES)
def test_columns_of_numbers_are_texts_where_texts_are_needed(library: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 3.0, "question": 1902, "answer": 14, "contexts": ["p"], "model": 0.5},
        {"id": 4.0, "question": 1903, "answer": 0, "contexts": ["p"], "model": 1.0},
    ]
    first, second = samples(table(library, rows))
    assert (first.id, first.question, first.response, first.model) == ("3", "1902", "14", "0.5")
    assert (second.id, second.response, second.model) == ("4", "0", "1")
