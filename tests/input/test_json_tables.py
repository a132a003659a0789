"""Tables in JSON as pandas writes them, in files and in Python."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay.core.sample import Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples

pandas = needed("pandas")
ROWS: list[dict[str, Any]] = [
    {"question": f"Q{n}?", "response": f"A{n}", "documents": [f"P{n}."]} for n in range(12)
]
LABELS = [str(n) for n in range(12)]
COLUMNS = {name: dict(zip(LABELS, [row[name] for row in ROWS], strict=True)) for name in ROWS[0]}
CELLS = [list(row.values()) for row in ROWS]
FORMS = {
    "columns": COLUMNS,
    "lists": {name: list(column.values()) for name, column in COLUMNS.items()},
    "split": {"columns": list(ROWS[0]), "index": list(range(12)), "data": CELLS},
    "table": {
        "schema": {"fields": [{"name": "index", "type": "integer"}], "primaryKey": ["index"]},
        "data": [{"index": n, **row} for n, row in enumerate(ROWS)],
    },
    "index": dict(zip(LABELS, ROWS, strict=True)),
    "records": ROWS,
}


def samples(source: Any, **fields: str) -> list[Sample]:
    results = list(read_samples(source, fields=fields))
    assert not [str(result) for result in results if isinstance(result, InputFault)]
    return [result.sample for result in results if isinstance(result, LocatedSample)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_pandas_gives_the_rows_in_their_order(tmp_path: Path, form: str) -> None:
    for name in ("x.json", "x.jsonl"):
        (tmp_path / name).write_text(json.dumps(FORMS[form]))
        if name == "x.json" or form != "lists":
            assert samples(tmp_path / name) == samples(ROWS)
    assert samples(FORMS[form]) == samples(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("orient", ["columns", "split", "table", "index", "records"])
def test_what_pandas_writes_is_read(tmp_path: Path, orient: str) -> None:
    frame = pandas.DataFrame(ROWS)[::2]
    frame.to_json(tmp_path / "x.json", orient=orient)
    assert samples(tmp_path / "x.json") == samples(ROWS[::2])
    if orient not in {"table", "columns"}:
        assert samples(frame.to_dict(orient=orient)) == samples(ROWS[::2])
    assert samples(frame.to_dict()) == samples(frame.to_dict(orient="series")) == samples(frame)


def test_rows_by_their_ids_keep_them() -> None:
    rows = {"a": ROWS[0], "b": {**ROWS[1], "id": "own"}}
    assert [sample.id for sample in samples(rows)] == ["a", "own"]


def test_a_table_of_unknown_names_is_read_with_the_names_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"What one asks": {"0": "Q?"}, "What it says": {"0": "A"}}))
    assert samples(path, question="What one asks", response="What it says")[0].response == "A"
    [fault] = read_samples(path)
    assert isinstance(fault, InputFault)
    assert fault.unknown_fields is not None
    assert fault.unknown_fields.names == ("What one asks", "What it says")


def test_rows_without_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(CELLS))
    with pytest.raises(InputError, match=r'rows without column names; .* orient="records"'):
        list(read_samples(tmp_path / "x.json"))


def test_a_row_of_another_length_is_a_fault(tmp_path: Path) -> None:
    content = {"columns": ["question", "response"], "data": [["Q?", "A"], ["Q?"]]}
    (tmp_path / "x.json").write_text(json.dumps(content))
    good, fault = read_samples(tmp_path / "x.json")
    assert isinstance(good, LocatedSample)
    assert str(fault).endswith("x.json: item 2: record: expected an object, got a list")


@pytest.mark.parametrize(
    "record",
    [
        {"inputs": {"question": "Q?"}, "outputs": {"answer": "A"}},
        {"question": {"text": "Q?"}, "response": {"text": "A", "score": 1}},
        {"messages": [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "A"}]},
    ],
)
def test_a_single_record_is_no_table(tmp_path: Path, record: Any) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(record))
    [result] = read_samples(tmp_path / "x.jsonl")
    [expected] = read_samples([record])
    assert type(result) is type(expected)
    with pytest.raises(InputError, match="got a single dict"):
        read_samples(record)
