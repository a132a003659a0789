"""JSON Lines, JSON and iterables, and that no content whatever breaks the reader."""

import bz2
import gzip
import itertools
import json
import lzma
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from trustassay.core.sample import CANONICAL_FIELDS, Problem, Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples
from trustassay.input.layouts import LAYOUTS
from trustassay.input.reading import InputFiles


def read(path: Path, content: bytes | str, **fields: str) -> list[LocatedSample | InputFault]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_samples(path, fields=fields))


def samples(results: list[LocatedSample | InputFault]) -> list[Sample]:
    faults = [str(r) for r in results if isinstance(r, InputFault)]
    assert not faults
    return [r.sample for r in results if isinstance(r, LocatedSample)]


def questions(results: list[LocatedSample | InputFault]) -> list[str]:
    return [sample.question for sample in samples(results)]


# ---- JSON Lines ----


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".JSONL", ".jsonl.gz", ".ndjson.gz"])
def test_json_lines_are_read_in_order(tmp_path: Path, suffix: str) -> None:
    content = b'{"question": "a"}\n{"question": "b"}'
    packed = gzip.compress(content) if suffix.endswith(".gz") else content
    assert questions(read(tmp_path / f"x{suffix}", packed)) == ["a", "b"]


def test_byte_order_mark_carriage_returns_and_blank_lines(tmp_path: Path) -> None:
    results = read(
        tmp_path / "x.jsonl",
        b'\xef\xbb\xbf{"question": "\xc3\xa4"}\r\n\r\n  \n{"question": "b"}\r\n',
    )
    assert questions(results) == ["ä", "b"]
    assert [r.where.rpartition(":")[2] for r in results] == ["1", "4"]


def test_where_is_the_name_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answers.jsonl").write_text('{"question": "a"}\n{"question": 3}\n')
    monkeypatch.chdir(tmp_path)
    located, fault = read_samples("answers.jsonl")
    assert located.where == "answers.jsonl:1"
    assert str(fault) == "answers.jsonl:2: question: expected text, got 3"


def test_a_fault_shows_one_line_for_each_problem() -> None:
    fault = InputFault("x:1", (Problem("a", "is\nbad"), Problem("b", "is worse")))
    assert str(fault) == "x:1: a: is bad\nx:1: b: is worse"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"question": "a" "b"}', "column 18: is not JSON (Expecting ',' delimiter)"),
        (b'{"question": 1', "column 15: is not JSON (Expecting ',' delimiter)"),
        (b'{"question": "\xff"}', "byte 15: is not UTF-8"),
        (b"[1]", "record: expected an object, got a list"),
        (b"null", "record: expected an object, got null"),
        (b"1.5", "record: expected an object, got a number"),
        (b"[" * 100_000, "record: is not readable JSON (nested too deeply)"),
        (b'{"a": ' + b"9" * 5000 + b"}", "record: is not readable JSON (a number with too many"),
    ],
    ids=["comma", "cut", "utf8", "list", "null", "number", "deep", "digits"],
)
def test_a_bad_line_is_a_fault_and_the_next_is_read(
    tmp_path: Path, line: bytes, message: str
) -> None:
    fault, good = read(tmp_path / "x.jsonl", line + b'\n{"question": "b"}\n')
    assert str(fault).startswith(f"{tmp_path / 'x.jsonl'}:1: {message}")
    assert questions([good]) == ["b"]


def test_lines_are_not_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"question": "a"}\n' * 100_000)
        file.write(b"\xff")
    assert len(list(itertools.islice(read_samples(path), 3))) == 3


def test_nesting_of_any_depth_is_read_or_a_fault(tmp_path: Path) -> None:
    depths = range(900, 1000)
    lines = (f'{{"question": "q", "x": {"[" * depth}{"]" * depth}}}\n' for depth in depths)
    assert len(read(tmp_path / "x.jsonl", "".join(lines))) == len(depths)


# ---- JSON ----


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: {"data": r, "config": {}}])
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_json_holds_a_list_or_one_under_data(tmp_path: Path, wrap: Any, suffix: str) -> None:
    content = json.dumps(wrap([{"question": "a"}, 7])).encode()
    packed = gzip.compress(content) if suffix.endswith(".gz") else content
    first, second = read(tmp_path / f"x{suffix}", packed)
    assert first.where == f"{tmp_path / f'x{suffix}'}: item 1"
    assert str(second).endswith("item 2: record: expected an object, got a number")


def test_json_of_one_object_a_line_is_read_as_json_lines(tmp_path: Path) -> None:
    first, _ = read(tmp_path / "x.json", '{"question": "a"}\n\n{"question": "b"}\n')
    assert isinstance(first, LocatedSample)
    assert first.where == f"{tmp_path / 'x.json'}:1"
    (one,) = read(tmp_path / "y.json", '{"data": [{"question": "a"}]}\n')
    assert one.where.endswith("item 1")


def test_json_of_columns_is_read_by_rows(tmp_path: Path) -> None:
    columns = json.dumps({"question": ["a", "b"], "response": ["x", "y"]})
    rows = read(tmp_path / "x.json", columns)
    assert [row.sample.response for row in rows if isinstance(row, LocatedSample)] == ["x", "y"]


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        ({"question": ["a", "b"], "data": [1, 2]}, {}),
        ({"user_input": ["a", "b"], "Data": [1, 2], "reference": ["x", "y"]}, {}),
        ({"asked": ["a", "b"], "data": [1, 2]}, {"question": "asked"}),
    ],
)
def test_columns_with_a_question_are_read_before_data(
    columns: dict[str, Any], fields: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(columns))
    rows = list(read_samples(path, fields=fields))
    assert [row.sample.question for row in rows if isinstance(row, LocatedSample)] == ["a", "b"]


def test_lists_without_a_question_are_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"one": ["a"], "other": ["b"]}')
    with pytest.raises(InputError, match="with a question column; it has the fields one, other"):
        list(read_samples(path))
    (one,) = read(path, '{"data": [{"question": "a"}], "other": [1]}')
    assert isinstance(one, LocatedSample)


@pytest.mark.parametrize(
    "content",
    [
        '{"question": "a", "documents": [{"text": "one"}]}',
        '{"samples": [{"question": "a"}]}',
        '{"version": 2, "mine": [{"question": "a"}], "sizes": [1, 2]}',
        '{"results": {"results": [{"question": "a"}], "prompts": [{"raw": "b"}]}}',
        '{"data": {"question": ["a"], "score": [1]}, "metadata": {}}',
        '{"results": [], "rows": [{"question": "a"}]}',
    ],
)
def test_the_records_in_an_object_are_found(tmp_path: Path, content: str) -> None:
    (one,) = read(tmp_path / "x.json", content)
    assert isinstance(one, LocatedSample), one
    assert one.sample.question == "a"


def test_of_two_lists_with_other_names_none_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"one": [{"question": "a"}], "two": [{"question": "b"}]}')
    with pytest.raises(InputError, match=r"expected a list of records.*it has the fields one, two"):
        list(read_samples(tmp_path / "x.json"))


@pytest.mark.parametrize("content", ["", " \n", "[]", '{"results": []}', '{"resourceSpans": []}'])
def test_an_empty_file_contains_no_records(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match="contains no records"):
        list(read_samples(tmp_path / "x.json"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": "b"}', "expected a list of records"),
        (b'{"data": {}}', "expected a list of records"),
        (b'[{"a": 1},', r"is not JSON \(line 1 column 11"),
        (b'{"question": ["a"], "id": ["1", "2"]}', "columns of the same length"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "too many digits"),
        (b'["\xff"]', "byte 3 is not UTF-8"),
        (b"[]", "no records"),
    ],
    ids=["object", "data", "cut", "columns", "deep", "digits", "utf8", "no items"],
)
def test_json_that_cannot_be_read_as_a_whole(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path / "x.json", content)
    assert str(caught.value).startswith(str(tmp_path / "x.json"))


# ---- what is no input ----


def test_a_missing_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nope\.jsonl: no such file"):
        read_samples(tmp_path / "nope.jsonl")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot be read|no such file"):
        read_samples("x" * 5000 + ".jsonl")


@pytest.mark.parametrize("name", ["x.txt", "x", "x.parquet.gz", "x.gz"])
def test_an_unknown_suffix_names_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=r"unknown kind.*\.jsonl.*\.csv.*\.parquet.*datasets"):
        read_samples(tmp_path / name)


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_a_file_without_records_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="no records"):
        read(tmp_path / "x.jsonl", content)


RECORD = '{"question": "a"}\n'


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv", "x.tsv"])
def test_utf16_is_refused_as_such(tmp_path: Path, name: str, encoding: str) -> None:
    told = r"is UTF-16(LE|BE)?, expected UTF-8 \(convert it with iconv -f UTF-16(LE|BE)? -t"
    with pytest.raises(InputError, match=told):
        read(tmp_path / name, RECORD.encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf32_is_refused_as_such(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(InputError, match=r"is UTF-32(LE|BE)?, expected UTF-8"):
        read(tmp_path / "x.jsonl", RECORD.encode(encoding))


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv"])
def test_a_gzipped_file_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    content = {"x.json": f"[{RECORD}]", "x.csv": "question\na\n"}.get(name, RECORD)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()))
    (found,) = read_samples(path)
    assert isinstance(found, LocatedSample)
    assert found.sample.question == "a"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            bz2.compress(RECORD.encode()),
            r"is compressed with bzip2; decompress it first \(bzip2 -d\)",
        ),
        (lzma.compress(RECORD.encode()), "is compressed with xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "is not a complete zstd file"),
        (b"PK\x03\x04" + bytes(20), r"is a zip archive or a workbook; rename a workbook to \.xlsx"),
        (b"PAR1\x15\x00" + bytes(20), r"is a Parquet file; rename it to \.parquet"),
        (b"SQLite format 3\x00", "is a SQLite database"),
    ],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_what_is_no_text_is_named(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(tmp_path / name, content)


def test_utf16_that_is_packed_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is UTF-16, expected UTF-8"):
        read(tmp_path / "x.jsonl.gz", gzip.compress(RECORD.encode("utf-16")))


def test_a_text_that_begins_like_a_signature_is_text(tmp_path: Path) -> None:
    for start in ("PAR1 is a gene", "BZh is a name", "SQLite files", "ARROW1"):
        path = tmp_path / "x.csv"
        path.write_text(f"{start},question\na,b\n")
        (found,) = read_samples(path)
        assert isinstance(found, LocatedSample)


@pytest.mark.parametrize("keep", [slice(0, 2), slice(0, 30), slice(3, None)])
def test_a_cut_gzip_file_is_refused(tmp_path: Path, keep: slice) -> None:
    packed = gzip.compress(b"".join(b'{"question": "%d"}\n' % i for i in range(100)))
    with pytest.raises(InputError, match="gzip"):
        read(tmp_path / "x.jsonl.gz", packed[keep])


@pytest.mark.parametrize("source", [{"question": "a"}, 3, None])
def test_a_single_record_or_another_object_is_refused(source: Any) -> None:
    with pytest.raises(InputError, match="expected a path or an iterable"):
        read_samples(source)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(b'{"question": "%d"}\n' % i for i in range(999))))
    packed[10:40] = b"\xff" * 30
    with pytest.raises(InputError, match="not a complete gzip file"):
        read(tmp_path / "x.jsonl.gz", bytes(packed))


def test_an_empty_iterable_is_refused() -> None:
    with pytest.raises(InputError, match="no records"):
        list(read_samples([]))


# ---- iterables ----


def test_an_iterable_gives_records_and_samples_in_order() -> None:
    ready = Sample(id="s", question="ready")
    mixed: list[Any] = [{"question": "a"}, ready, "text"]
    results = list(read_samples(iter(mixed)))
    assert [r.where for r in results] == ["sample 1", "sample 2", "sample 3"]
    assert isinstance(results[1], LocatedSample)
    assert results[1].sample == ready
    assert str(results[2]) == "sample 3: record: expected an object, got text"


def test_an_endless_iterable_is_read_as_far_as_asked() -> None:
    def endless() -> Iterator[dict[str, str]]:
        yield from ({"question": f"q{i}"} for i in itertools.count())

    assert questions(list(itertools.islice(read_samples(endless()), 2))) == ["q0", "q1"]


def test_the_user_s_record_is_not_changed() -> None:
    record = {"question": "q", "docs": [{"text": "t", "answers_found": [1]}], "answers": ["a"]}
    before = json.dumps(record)
    list(read_samples([record]))
    assert json.dumps(record) == before


def test_values_of_numpy_and_of_pandas_rows() -> None:
    record = {
        "question": np.str_("q"),
        "response": float("nan"),
        "label": np.float32(0.5),
        "documents": np.array([{"text": "t", "supports": np.array([1, 0])}], dtype=object),
        "answers": [("a", "b"), ("c",)],
    }
    [sample] = samples(list(read_samples([record])))
    assert (sample.question, sample.response, sample.label) == ("q", "", 0.5)
    assert sample.answers == (("a", "b"), ("c",))
    assert sample.documents is not None
    assert sample.documents[0].supports == (1, 0)


def test_metadata_become_values_that_json_knows() -> None:
    extra = {
        "day": date(2024, 2, 3),
        "time": datetime(2024, 2, 3, 4, 5, tzinfo=UTC),
        "price": Decimal("1.50"),
        "raw": b"a\xff",
        "tags": {"y", "x"},
        "where": Path("a/b"),
        1: np.int64(2),
        "nested": {2: [None, ("x",)], "b": {}},
    }
    [sample] = samples(list(read_samples([{"question": "q", **extra}])))  # type: ignore[dict-item]
    assert sample.metadata == {
        "day": "2024-02-03",
        "time": "2024-02-03T04:05:00+00:00",
        "price": "1.50",
        "raw": "a\\xff",
        "tags": ["x", "y"],
        "where": "a/b",
        "1": 2,
        "nested": {"2": [None, ["x"]], "b": {}},
    }


def test_objects_that_no_file_could_hold_are_faults() -> None:
    circular: dict[str, Any] = {"question": "q"}
    circular["self"] = circular
    deep, huge = read_samples([circular, {"question": "q", "n": 10**5000}])
    assert str(deep) == "sample 1: record: is nested too deeply"
    assert str(huge).startswith("sample 2: record: cannot be read")


# ---- any content ----


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=300), suffix=st.sampled_from([".jsonl", ".json", ".csv", ".tsv"]))
@example(content=b"\xff\xfe", suffix=".jsonl")
@example(content=b'{"question": "\\ud800", "\\udfff": "\\udc80"}', suffix=".jsonl")
@example(content=b'{"references": {"\\udfff": {}}}', suffix=".jsonl")
@example(content=b'question\n"', suffix=".csv")
@example(content=b"question\n\x00\r\r", suffix=".csv")
def test_any_bytes_give_results_or_an_input_error(
    tmp_path: Path, content: bytes, suffix: str
) -> None:
    try:
        results = read(tmp_path / f"x{suffix}", content)
    except InputError:
        return
    for result in results:
        assert isinstance(result, LocatedSample) or (result.problems and str(result).encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "title", "supports", "answers_found", "short_answers", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
field_names = sorted(
    {*CANONICAL_FIELDS, "docs", "context", "answer", "Ground Truth", "inputs", "outputs"}
    | {"vars", "datasource_item", "sample", "metadata", "expectedOutput", "inputs.question"}
    | {theirs for layout in LAYOUTS for names in layout.fields.values() for theirs in names}
)
records = st.dictionaries(st.sampled_from(field_names), json_values, max_size=5)
mappings = st.dictionaries(st.sampled_from(CANONICAL_FIELDS), st.sampled_from(field_names))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(records | json_values, max_size=3), fields=mappings)
def test_any_json_gives_results_or_an_input_error(
    tmp_path: Path, lines: list[Any], fields: dict[str, str]
) -> None:
    content = "\n".join(map(json.dumps, lines))
    count = 0
    try:
        (tmp_path / "x.jsonl").write_text(content)
        for result in read_samples(tmp_path / "x.jsonl", fields=fields):
            count += 1
            assert isinstance(result, LocatedSample) or (result.problems and str(result))
    except InputError:
        assert fields or not lines
    assert count == len(lines)


@settings(deadline=None)
@given(lines=st.lists(records, min_size=1, max_size=3))
def test_a_file_and_an_iterable_give_the_same_samples(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]]
) -> None:
    lines = [{k: v for k, v in line.items() if repr(v) != "nan"} for line in lines]
    path = tmp_path_factory.mktemp("same") / "x.jsonl"
    from_file = read(path, "\n".join(map(json.dumps, lines)))
    assert list(map(repr, map(_content, from_file))) == list(
        map(repr, map(_content, read_samples(lines)))
    )


def _content(result: LocatedSample | InputFault) -> Any:
    return result.sample if isinstance(result, LocatedSample) else result.problems


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "log.jsonl" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text('{"id": "q", "question": "Q?"}\n{"question": "R?", "model": "m"}\n')
    found = [
        one.sample
        for one in read_samples(InputFiles.from_paths(paths))
        if isinstance(one, LocatedSample)
    ]
    assert [one.model for one in found] == ["a/log", "m", "b/log", "m"]
    assert [found[0].id, found[2].id] == ["q-a/log", "q-b/log"]
    assert InputFiles.from_paths(paths[:1]) == paths[0]


def test_a_text_among_records_is_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"question": "Q?"}\n')
    [fault] = read_samples([str(tmp_path / "log.jsonl")])
    assert "expected an object, got text" in str(fault)
