"""Tables and folders: CSV, Parquet, and what `datasets` saves."""

import csv
import datetime
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, Table
from arro3.io import infer_json_schema, read_json, write_ipc_stream, write_parquet

from trustassay.core.sample import Document, Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples
from trustassay.runs.intake import default_folder


def read(path: Path, content: bytes | str, **fields: str) -> list[LocatedSample | InputFault]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_samples(path, fields=fields))


def samples(results: list[LocatedSample | InputFault]) -> list[Sample]:
    faults = [str(r) for r in results if isinstance(r, InputFault)]
    assert not faults
    return [r.sample for r in results if isinstance(r, LocatedSample)]


def table(records: Sequence[dict[str, Any]]) -> Any:
    """Return an Arrow table of nested records, its types inferred."""
    lines = "\n".join(map(json.dumps, records)).encode()
    return read_json(io.BytesIO(lines), infer_json_schema(io.BytesIO(lines)))


def save_dataset(folder: Path, shards: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Write a folder as `Dataset.save_to_disk` does."""
    folder.mkdir(parents=True)
    for name, records in shards.items():
        write_ipc_stream(table(records), folder / name)
    state = {"_data_files": [{"filename": name} for name in shards], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))


# ---- CSV ----


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t"), (".csv.gz", ",")])
def test_csv_cells_become_fields(tmp_path: Path, suffix: str, delimiter: str) -> None:
    rows = [
        ["id", "question", "response", "answers", "label", "note"],
        ["7", "q, or\tnot", 'he said "x"', '[["a", "b"], ["c"]]', "0.5", "n"],
        ["8", "r", "", "Paris", "", ""],
    ]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    content = b"\xef\xbb\xbf" + text.getvalue().encode()
    packed = gzip.compress(content) if suffix.endswith(".gz") else content
    first, second = samples(read(tmp_path / f"x{suffix}", packed))
    assert first == Sample(
        id="7",
        question="q, or\tnot",
        response='he said "x"',
        answers=(("a", "b"), ("c",)),
        label=0.5,
        metadata={"note": "n"},
    )
    assert second == Sample(id="8", question="r", response="", answers=(("Paris",),))


def test_csv_where_is_the_line_at_which_the_record_starts(tmp_path: Path) -> None:
    content = 'question,response\r\nq,"one\r\ntwo"\r\n\r\nr,x\r\n,,\r\ns\r\n'
    results = read(tmp_path / "x.csv", content)
    assert [r.where.rpartition(":")[2] for r in results] == ["2", "5", "7"]
    assert [s.response for s in samples(results)] == ["one\r\ntwo", "x", ""]


def test_csv_of_another_tool_with_the_index_column_of_pandas(tmp_path: Path) -> None:
    content = ',question,docs,output\n0,q,,o\n1,q,"[{""text"": ""t"", ""answers_found"": [5]}]",o\n'
    good, fault = read(tmp_path / "x.csv", content)
    assert samples([good])[0].metadata == {}
    assert str(fault).endswith("x.csv:3: docs[0].answers_found[0]: expected 0 or 1, got 5")


def test_csv_texts_that_look_like_json_stay_texts(tmp_path: Path) -> None:
    content = 'user_input,response,reference,extra\n[q],[1],"[sic] gold","{""a"": 1}"\n'
    [sample] = samples(read(tmp_path / "x.csv", content))
    assert (sample.question, sample.response, sample.claims) == ("[q]", "[1]", ("[sic] gold",))
    assert sample.metadata == {"extra": {"a": 1}}


def test_csv_list_as_python_writes_it(tmp_path: Path) -> None:
    content = 'question,gold,extra\nQ?,"[\'a\', ""it\'s b""]","{1, 2}"\n'
    [sample] = samples(read(tmp_path / "x.csv", content, answers="gold"))
    assert sample.answers == (("a",), ("it's b",))
    assert sample.metadata == {"extra": "{1, 2}"}  # a set is not a list: it stays text


@pytest.mark.parametrize("cell", ["['a', b]", "[__import__('os').getcwd()]", "[" * 5000])
def test_csv_list_that_is_none_is_a_fault_in_its_field(tmp_path: Path, cell: str) -> None:
    [fault] = read(tmp_path / "x.csv", f'question,gold\n,"{cell}"\n', answers="gold")
    assert [problem.field for problem in fault.problems] == ["gold", "question"]  # type: ignore[union-attr]
    assert 'gold: cannot be read as a list; write the texts as JSON: ["one", "two"]' in str(fault)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q,a,b", "record: has 3 cells, but the header has 2"),
        ('"q" x,a', "record: is not CSV ("),
        (b"q,\xff", "response: is not UTF-8"),
    ],
)
def test_a_bad_row_is_a_fault_and_the_next_is_read(
    tmp_path: Path, row: str | bytes, message: str
) -> None:
    line = row.encode() if isinstance(row, str) else row
    fault, good = read(tmp_path / "x.csv", b"question,response\n" + line + b"\nnext,\n")
    assert str(fault).startswith(f"{tmp_path / 'x.csv'}:2: {message}")
    assert samples([good])[0].question == "next"


def test_an_open_quote_is_a_fault_not_a_long_answer(tmp_path: Path) -> None:
    [fault] = read(tmp_path / "x.csv", 'question,response\nq,"open\nr,s\n')
    assert str(fault).endswith("x.csv:2: record: is not CSV (a quoted cell is never closed)")


def test_a_cell_may_be_longer_than_csv_allows_by_default(tmp_path: Path) -> None:
    [sample] = samples(read(tmp_path / "x.csv", "question\n" + "x" * 200_000 + "\n"))
    assert len(sample.question) == 200_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("What is it?,Yes\nWho?,No\n", "expected a column named question.*What is it"),
        ("asked|told\na|b\n", r"are separated by commas\); the header is 'asked\|told'"),
        ("question,a,b,a\nq,1,2,3\n", "the header has a more than once"),
        (b"question,\xff\nq,1\n", "first line is not UTF-8"),
        ("question\n", "no records"),
        ("", "no records"),
    ],
)
def test_csv_that_cannot_be_read_as_a_whole(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.csv", content)


def test_csv_field_that_no_column_bears_is_refused_before_the_first_record(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("question,generated\nq,r\n")
    results = read_samples(tmp_path / "x.csv", fields={"response": "generatd"})
    with pytest.raises(InputError, match="did you mean generated"):
        next(results)


def test_csv_field_whose_cells_are_all_empty_is_no_error(tmp_path: Path) -> None:
    [sample] = samples(read(tmp_path / "x.csv", "question,gen,label\nq,,\n", label="gen"))
    assert sample.label is None


@pytest.mark.parametrize(
    ("table", "fields", "response"),
    [
        ("question,response\nq,\n", {}, ""),
        ("question,response\nq\n", {}, ""),
        ("question,gen\nq,\n", {"response": "gen"}, ""),
        ("question,output,docs\nq,,[]\n", {}, ""),
        ("question,response,output,docs\nq,,text,[]\n", {}, "text"),
        ("question,label\nq,1\n", {}, None),
    ],
)
def test_an_empty_cell_of_the_response_is_a_blank_response(
    tmp_path: Path, table: str, fields: dict[str, str], response: str | None
) -> None:
    [sample] = samples(read(tmp_path / "x.csv", table, **fields))
    assert sample.response == response


def test_json_and_csv_read_a_blank_response_alike(tmp_path: Path) -> None:
    lines = '{"question": "q", "response": ""}\n{"question": "q", "response": " "}\n'
    assert samples(read(tmp_path / "x.jsonl", lines)) == samples(
        read(tmp_path / "x.csv", "question,response\nq,\nq, \n")
    )


# ---- empty cells, and cells that are no texts ----


@pytest.mark.parametrize(
    "text", ["nan", "NaN", "None", "N/A", "n/a", "NA", "#N/A", "null", "NULL", "<NA>", "NaT"]
)
def test_texts_that_stand_for_an_empty_cell_are_blank(tmp_path: Path, text: str) -> None:
    cells = {"question": "q", "answer": text, "contexts": text, "reference": text, "model": text}
    table = ",".join(cells) + "\n" + ",".join(cells.values()) + "\n"
    nested = {"inputs": {"question": "q"}, "outputs": {"answer": text, "docs": text}}
    for result in (
        read(tmp_path / "x.csv", table),
        read(tmp_path / "x.jsonl", json.dumps(cells)),
        list(read_samples([cells])),
        list(read_samples([nested])),
    ):
        [sample] = samples(result)
        assert (sample.response, sample.documents, sample.model) == ("", (), None)
        assert (sample.claims, sample.metadata) == ((), {})
    [fault] = read(tmp_path / "x.csv", f"question,answer,context\n{text},a,b\n")
    assert str(fault).endswith("x.csv:2: question: is missing (expected text)")


@pytest.mark.parametrize("text", ["None.", "none", "Nan", "no", "-", "nan nan"])
def test_answers_that_only_look_like_an_empty_cell_are_answers(text: str) -> None:
    row = {"question": "q", "response": text, "documents": [text]}
    [sample] = samples(list(read_samples([row])))
    assert sample.response == text
    assert [document.text for document in sample.documents or ()] == [text]


def test_missing_passages_keep_the_numbers_of_others_and_an_empty_column_gives_way() -> None:
    row = {
        "question": "q",
        "response": "nan",
        "output": "a",
        "docs": ["p", "nan", "r", None, "NaN"],
    }
    [sample] = samples(list(read_samples([row])))
    assert sample.response == "a"
    assert [document.text for document in sample.documents or ()] == ["p", "", "r"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(14, "14"), (0, "0"), (0.5, "0.5"), (3.0, "3"), (-2.50, "-2.5"), (True, "True")],
)
def test_numbers_and_booleans_are_texts_where_a_text_is_needed(value: Any, text: str) -> None:
    row = {"question": "q", "response": value, "model": value, "answers": [value]}
    [sample] = samples(list(read_samples([row])))
    assert (sample.response, sample.model) == (text, text)
    assert sample.answers == ((text,),)
    assert (
        sample.id
        == samples(
            list(read_samples([{**dict.fromkeys(row, text), "question": "q", "answers": [text]}]))
        )[0].id
    )


def test_an_id_that_a_frame_stores_as_a_float_is_a_whole_number() -> None:
    rows = [{"id": 3.0, "question": "q"}, {"id": float("nan"), "question": "q"}]
    first, second = samples(list(read_samples(rows)))
    assert (first.id, len(second.id)) == ("3", 12)


def test_dates_are_texts_in_iso_form() -> None:
    day, moment = datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4)
    row = {"question": day, "response": moment, "when": day.date()}
    [sample] = samples(list(read_samples([row])))
    assert (sample.question, sample.response) == ("2024-01-02", "2024-01-02T03:04:00")
    assert sample.metadata == {"when": "2024-01-02"}


def test_nan_in_json_is_an_empty_cell(tmp_path: Path) -> None:
    row = '{"question": "q", "answer": NaN, "contexts": NaN, "note": NaN}'
    for name, content in (("x.jsonl", row + "\n" + row), ("x.json", f"[{row}, {row}]")):
        for sample in samples(read(tmp_path / name, content)):
            assert (sample.response, sample.documents, sample.metadata) == ("", (), {})


# ---- Parquet ----

TRUST_EVAL: list[dict[str, Any]] = [
    {
        "question": "q0",
        "output": "o",
        "docs": [{"title": "t", "text": "x", "answers_found": [1, 0]}],
        "answers": [["a", "b"], ["c"]],
        "references": {"gpt": "yes"},
    },
    {"question": "q1", "references": {"llama": "no"}, "score": 1.5},
]


def test_parquet_rows_are_read_without_their_empty_cells(tmp_path: Path) -> None:
    write_parquet(table(TRUST_EVAL), tmp_path / "x.parquet")
    results = list(read_samples(tmp_path / "x.parquet"))
    first, second = samples(results)
    assert [r.where for r in results] == [f"{tmp_path / 'x.parquet'}: row {n}" for n in (1, 2)]
    assert first.documents == (Document("1", "x", "t", (1, 0)),)
    assert first.answers == (("a", "b"), ("c",))
    assert (first.references, second.references) == ({"gpt": ("yes",)}, {"llama": ("no",)})
    assert (second.response, second.documents, second.metadata) == (None, None, {"score": 1.5})


def test_parquet_metadata_become_values_that_json_knows(tmp_path: Path) -> None:
    text = Array(["1.50"], type=DataType.string())
    columns = {
        "question": text,
        "price": text.cast(DataType.decimal128(5, 2)),
        "day": Array(["2024-02-03"], type=DataType.string()).cast(DataType.date32()),
        "raw": Array([b"a\xff"], type=DataType.binary()),
        "label": Array([float("nan")], type=DataType.float64()),
    }
    write_parquet(Table.from_pydict(columns), tmp_path / "x.parquet")
    [sample] = samples(list(read_samples(tmp_path / "x.parquet")))
    assert sample.label is None
    assert sample.metadata == {"price": "1.50", "day": "2024-02-03", "raw": "a\\xff"}


def test_a_cell_that_python_cannot_hold_is_a_fault_of_its_row(tmp_path: Path) -> None:
    moments = Array([2**61, 1], type=DataType.int64()).cast(DataType.timestamp("us"))
    columns = {"question": Array(["a", "b"], type=DataType.string()), "at": moments}
    write_parquet(Table.from_pydict(columns), tmp_path / "x.parquet")
    fault, good = read_samples(tmp_path / "x.parquet")
    assert "row 1: at: cannot be read (year" in str(fault)
    assert samples([good])[0].question == "b"


def test_parquet_field_that_no_column_bears_is_refused(tmp_path: Path) -> None:
    write_parquet(table(TRUST_EVAL), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="did you mean output"):
        next(read_samples(tmp_path / "x.parquet", fields={"response": "outputs"}))


def test_broken_parquet_is_refused(tmp_path: Path) -> None:
    write_parquet(table(TRUST_EVAL), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    for content in (
        b"",
        b"PAR1",
        b"\0" * 100,
        whole[:-1],
        whole[: len(whole) // 2],
        b"x" * 8 + whole[-8:],
    ):
        with pytest.raises(InputError, match="not a complete Parquet file"):
            read(tmp_path / "broken.parquet", content)


def test_parquet_with_a_damaged_footer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(tmp_path / "x.parquet", b"PAR1" + b"\xff" * 20 + b"\x14\0\0\0PAR1")


# ---- folders of datasets ----


def test_a_saved_dataset_is_read_in_the_order_of_its_state(tmp_path: Path) -> None:
    shards = {"b.arrow": TRUST_EVAL, "a.arrow": [{"question": f"z{i}"} for i in range(3000)]}
    save_dataset(tmp_path / "ds", shards)
    results = list(read_samples(tmp_path / "ds"))
    found = [sample.question for sample in samples(results)]
    assert found == ["q0", "q1", *(f"z{i}" for i in range(3000))]
    assert results[3001].where == f"{tmp_path / 'ds'}: row 3002"


def test_a_batch_of_any_length_is_read_whole(tmp_path: Path) -> None:
    questions = [f"q{i}" for i in range(3000)]
    save_dataset(tmp_path / "ds", {"a.arrow": [{"question": "replaced"}]})
    batch = Table.from_pydict({"question": Array(questions, type=DataType.string())})
    write_ipc_stream(batch, tmp_path / "ds" / "a.arrow")
    assert [s.question for s in samples(list(read_samples(tmp_path / "ds")))] == questions


def test_the_only_split_is_taken_and_several_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "dd"
    save_dataset(folder / "test", {"a.arrow": TRUST_EVAL})
    (folder / "dataset_dict.json").write_text('{"splits": ["test"]}')
    assert len(samples(list(read_samples(folder)))) == 2
    save_dataset(folder / "train", {"a.arrow": TRUST_EVAL[:1]})
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match=r"splits train, test; .*dd/train"):
        read_samples(folder)
    assert len(samples(list(read_samples(folder / "train")))) == 1


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.arrow").write_bytes(b"")
    with pytest.raises(InputError, match=r"has no file that can be read .* has a state\.json\)"):
        read_samples(tmp_path)


def test_the_folder_of_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match="trustassay rescore"):
        read_samples(tmp_path)


def test_the_files_of_a_folder_are_one_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": str(n), "question": "q", "response": f"a{n}"} for n in range(4)]
    write_parquet(table(rows[2:3]), tmp_path / "c.parquet")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_text("id,question,response\n0,q,a0\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps(rows[1]).encode()))
    (tmp_path / "d.json").write_text(json.dumps(rows[3:]))
    for hidden in ("_SUCCESS", ".part.jsonl", "_log/x.jsonl"):
        (tmp_path / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / hidden).write_text("no record")
    (tmp_path / "README.md").write_text("What this is.")
    found = list(read_samples(tmp_path))
    assert [(one.id, one.response, one.model) for one in samples(found)] == [
        (row["id"], row["response"], None) for row in rows
    ]
    assert found[1].where == f"{tmp_path}/b.jsonl.gz:1"
    assert "left out files of other kinds: README.md" in capsys.readouterr().err


def test_folders_named_for_a_value_give_records_that_field(tmp_path: Path) -> None:
    day = tmp_path / "day=2026-11-27" / "model=gpt%2F4"
    day.mkdir(parents=True)
    rows = [{"question": "q", "response": "a"}, {"question": "r", "response": "b", "model": "own"}]
    write_parquet(table(rows[:1]), day / "part-0.parquet")
    (day / "part-1.jsonl").write_text(json.dumps(rows[1]))
    found = samples(list(read_samples(tmp_path)))
    assert [one.model for one in found] == ["gpt/4", "own"]
    assert [one.metadata["day"] for one in found] == ["2026-11-27"] * 2


def test_a_fault_in_a_folder_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"question": "q", "response": [3]}')
    [fault] = read_samples(tmp_path)
    assert str(fault).startswith(f"{tmp_path}/a.jsonl:1: response: ")


def test_a_folder_that_has_another_file_is_another_input(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    before = default_folder(tmp_path)
    assert default_folder(tmp_path) == before
    (tmp_path / "b.jsonl").write_text("{}")
    assert default_folder(tmp_path) != before


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("state.json", "{", "state.json: is not JSON"),
        ("state.json", "[]", "names no data files"),
        ("state.json", '{"_data_files": [{"filename": "gone.arrow"}]}', "gone.arrow: is not"),
        ("dataset_dict.json", '{"splits": 3}', "names no splits"),
        ("dataset_dict.json", '{"splits": []}', r"splits \(none\)"),
        ("dataset_dict.json", '{"splits": ["gone"]}', "gone: the split is missing"),
    ],
)
def test_a_broken_folder_is_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_samples(tmp_path))


def test_a_cut_shard_is_refused(tmp_path: Path) -> None:
    save_dataset(tmp_path / "ds", {"a.arrow": TRUST_EVAL})
    shard = tmp_path / "ds" / "a.arrow"
    shard.write_bytes(shard.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"a\.arrow: is not a readable Arrow file"):
        list(read_samples(tmp_path / "ds"))
