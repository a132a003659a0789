"""A small packed file cannot fill the memory: lines, rows, cells and documents have a limit."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.answer_tables import read_answer_table
from trustassay.input.bounds import MAX_FIELDS, read_line
from trustassay.input.records import InputError

MIB = 2**20
GOOD = {"question": "Q?", "response": "A.", "documents": ["A."]}
LINE = json.dumps(GOOD).encode() + b"\n"
ADVICE = (
    "has more than 1 MiB; split it, or allow more in an INPUT with --longest-line 2 (MiB, now 1)"
)


def long_line(size: int) -> bytes:
    """Return a line of a record with so many bytes, without a line end."""
    start = b'{"question": "Q?", "response": "'
    return start + b"0" * (size - len(start) - 2) + b'"}'


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


def read(path: Path, longest_line: int = 1) -> list[LocatedSample | InputFault]:
    return list(read_samples(path, longest_line=longest_line))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.ndjson"])
def test_a_line_that_is_too_long_is_one_fault_and_the_others_are_read(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / name, LINE + b"0" * (3 * MIB) + b"\n" + LINE)
    first, fault, last = read(path)
    assert isinstance(first, LocatedSample)
    assert isinstance(last, LocatedSample)
    assert str(fault) == f"{path}:2: record: {ADVICE}"
    assert last.where == f"{path}:3"


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path, end: bytes) -> None:
    path = write(tmp_path / "a.jsonl", long_line(MIB) + end)
    assert isinstance(read(path)[0], LocatedSample)
    path = write(tmp_path / "a.jsonl", long_line(MIB + 1) + end)
    assert isinstance(read(path)[0], InputFault)
    assert isinstance(read(path, longest_line=2)[0], LocatedSample)


def test_of_a_long_line_no_more_than_the_limit_is_in_memory() -> None:
    stream = io.BytesIO(b"0" * (3 * MIB) + b"\nnext\n")
    line = read_line(stream, 1)
    assert line is not None
    assert (len(line.content), line.size, line.is_long) == (MIB + 1, 3 * MIB + 1, True)
    assert stream.readline() == b"next\n"


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.pb", "a.pb.gz"])
def test_a_document_may_have_eight_of_the_longest_lines(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"\n" + long_line(8 * MIB))
    with pytest.raises(InputError, match=r"a whole .* has more than 8 MiB; .*--longest-line 2 "):
        read(path)
    if ".json" in name:
        path = write(tmp_path / name, long_line(8 * MIB - 1))
        assert isinstance(read(path)[0], LocatedSample)


def test_whether_a_json_file_has_lines_is_seen_without_reading_one_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", LINE + b"0" * (3 * MIB) + b"\n" + LINE)
    assert [isinstance(one, LocatedSample) for one in read(path)] == [True, False, True]


@pytest.mark.parametrize("row", [b'Q?,"' + b"0" * MIB + b'"', b'Q?,"' + b"0\n" * MIB])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_row_that_is_too_long_refuses_the_table(tmp_path: Path, name: str, row: bytes) -> None:
    path = write(tmp_path / name, b"question,response\nQ?,A.\n" + row + b"\nQ?,A.\n")
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == f"{path}:3: the row {ADVICE}"


def test_a_table_of_answers_has_the_same_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'id,label\n1,"' + b"0" * MIB + b'"\n')
    with pytest.raises(InputError, match="the row has more than 1 MiB"):
        read_answer_table(path, {"label"}, longest_line=1)
    assert len(read_answer_table(path, {"label"}, longest_line=2).rows) == 1


def test_too_many_fields_are_a_fault(tmp_path: Path) -> None:
    record = GOOD | {f"k{number}": 1 for number in range(MAX_FIELDS)}
    path = write(tmp_path / "a.jsonl", json.dumps(record).encode() + b"\n" + LINE)
    fault, sample = read(path)
    assert str(fault).endswith("record: has 10,003 fields; expected at most 10,000")
    assert isinstance(sample, LocatedSample)
    with pytest.raises(InputError, match="has 10,003 fields"):
        read_answer_table(path, {"id"})


def test_too_many_columns_are_refused(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(MAX_FIELDS))
    path = write(tmp_path / "a.csv", f"question,response,{names}\nQ?,A.\n".encode())
    with pytest.raises(InputError, match="the header has 10,002 fields; expected at most 10,000"):
        read(path)


def rebuild(path: Path, pieces: Iterator[bytes]) -> Path:
    """Write a workbook with other content at the end of its only sheet."""
    openpyxl = pytest.importorskip("openpyxl")
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in (["question", "response"], ["Q?", "A."]):
        book.active.append(row)
    book.save(stream)
    sheet = "xl/worksheets/sheet1.xml"
    with (
        zipfile.ZipFile(stream) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            content = source.read(name)
            if name == sheet:
                start, end = content.split(b"</sheetData>")
                start = start.replace(b"A1:B2", b"A1:B3")
                content = start + b"".join(pieces) + b"</sheetData>" + end
            target.writestr(name, content)
    return path


def long_cell() -> Iterator[bytes]:
    yield b'<row r="3"><c r="A3" t="inlineStr"><is><t>Q?</t></is></c>'
    yield b'<c r="B3" t="inlineStr"><is><t>' + b"0" * (2 * MIB) + b"</t></is></c></row>"


def many_cells() -> Iterator[bytes]:
    yield b'<row r="3">' + b"<c/>" * 2**19 + b"</row>"


def rows_in_a_row() -> Iterator[bytes]:
    yield b'<row r="3">' + b"<row></row>" * 2**19 + b"</row>"


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (long_cell, f"sheet1.xml: a cell {ADVICE}"),
        (many_cells, "sheet1.xml: has more rows, or more cells in a row, than Excel allows"),
        (rows_in_a_row, "sheet1.xml: has more rows, or more cells in a row, than Excel allows"),
    ],
)
def test_a_workbook_is_refused_before_it_is_unpacked(
    tmp_path: Path, pieces: Callable[[], Iterator[bytes]], message: str
) -> None:
    path = rebuild(tmp_path / "a.xlsx", pieces())
    with pytest.raises(InputError) as caught:
        read(path)
    assert message in str(caught.value)


def test_a_workbook_within_the_limit_is_read(tmp_path: Path) -> None:
    path = rebuild(tmp_path / "a.xlsx", long_cell())
    assert len([one for one in read(path, longest_line=3) if isinstance(one, LocatedSample)]) == 2


def write_parquet(path: Path, answers: list[str], dictionary_bytes: int = MIB) -> Path:
    core, files = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
    text = core.DataType.utf8()
    columns: dict[str, Any] = {
        "question": core.Array(["Q?"] * len(answers), text),
        "response": core.Array(answers, text),
    }
    batch = core.RecordBatch.from_pydict(columns)
    files.write_parquet(
        core.RecordBatchReader.from_batches(batch.schema, [batch]),
        path,
        compression="zstd(1)",
        dictionary_page_size_limit=dictionary_bytes,
    )
    return path


def test_a_cell_of_parquet_that_is_too_long_is_a_fault(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", ["A.", "0" * (MIB + 1), "A."])
    first, fault, last = read(path)
    assert str(fault) == f"{path}: row 2: response: {ADVICE}"
    assert isinstance(first, LocatedSample)
    assert isinstance(last, LocatedSample)


def test_a_text_that_a_parquet_file_stores_once_is_not_unpacked_for_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trustassay.input import arrow

    row_counts: list[int] = []
    read_cells = arrow._read_cells

    def read_and_note(column: Any) -> list[Any]:
        row_counts.append(len(column))
        return read_cells(column)

    monkeypatch.setattr(arrow, "_read_cells", read_and_note)
    text = "0" * (MIB // 2)
    path = write_parquet(tmp_path / "a.parquet", [text] * 40, dictionary_bytes=10 * MIB)
    assert path.stat().st_size < MIB / 10
    assert len(read(path)) == 40
    assert max(row_counts) == 1


NESTED = b"[" * 100_000 + b"]" * 100_000
DIGITS = b"1" * 10_000_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (NESTED, "record: is not readable JSON (nested too deeply)"),
        (DIGITS, "record: is not readable JSON (a number with too many digits)"),
        (bytes(1000), "record: column 15: is not JSON (Expecting value)"),
    ],
)
def test_what_json_cannot_hold_is_a_fault_of_its_line(
    tmp_path: Path, value: bytes, message: str
) -> None:
    path = write(tmp_path / "a.jsonl", b'{"question": ' + value + b"}\n" + LINE)
    fault, sample = read(path, longest_line=64)
    assert message.rpartition(": ")[2][:40] in str(fault)
    assert isinstance(sample, LocatedSample)


PEAK = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "trustassay", *sys.argv[1:]], capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(done.returncode, peak, done.stderr.decode())
"""


def test_a_packed_line_of_200_mb_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"0" * MIB)
    assert path.stat().st_size < MIB
    arguments = ["plan", str(path), "--metric", "grounding", "--entailer", "lexical"]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
        check=True,
    )
    status, peak_kib, message = done.stdout.split(" ", 2)
    assert status == "2"
    assert f"{path}:1: record: has more than 64 MiB; split it" in message
    assert int(peak_kib) < 400_000
