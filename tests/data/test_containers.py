"""What a table may come in: separators, zstd, workbooks, standard input; and hostile cells."""

import gzip
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay.data import Fault, InputError, Located, read_samples
from trustassay.data.standard_input import kept_input
from trustassay.runs.naming import default_folder
from trustassay.sample import Sample

openpyxl = needed("openpyxl")
HEADER = ["Question", "Answer", "Contexts"]
ROW = ["Which river?", "The Tagus.", "['The Tagus flows.', 'Lisbon has hills.']"]


def samples(source: Any) -> list[Sample]:
    found = list(read_samples(source))
    assert not [str(one) for one in found if isinstance(one, Fault)]
    return [one.sample for one in found if isinstance(one, Located)]


def texts(sample: Sample) -> list[str]:
    return [document.text for document in sample.documents or ()]


# ---- separators, and lists in cells ----


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_separator_is_found_whatever_the_suffix(tmp_path: Path, mark: str, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    cells = ['"Who, me?"', '"Yes; you."', "a"]
    path.write_text(f"{mark.join(['question', 'answer', 'context'])}\n{mark.join(cells)}\n")
    [sample] = samples(path)
    assert (sample.question, sample.response, texts(sample)) == ("Who, me?", "Yes; you.", ["a"])


def test_commas_in_a_header_of_semicolons_do_not_mislead(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('question;response;"one, two, three, four"\nQ?;A.;x\n', encoding="utf-8-sig")
    [sample] = samples(path)
    assert (sample.question, sample.response) == ("Q?", "A.")


def test_a_list_as_numpy_writes_it_keeps_its_elements_apart(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("question,answer,contexts\nQ?,A.,\"['one.' 'two.'\n 'it''s']\"\n")
    assert texts(samples(path)[0])[:2] == ["one.", "two."]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("[1] The Tagus flows.", ["[1] The Tagus flows."]),
        ("", []),
        ("[]", []),
        ('["", ""]', []),
        ('["", "b"]', ["", "b"]),
        ('[null, "b"]', ["", "b"]),
    ],
)
def test_a_cell_of_passages_is_a_text_a_list_or_blank(
    tmp_path: Path, cell: str, shown: list[str]
) -> None:
    path = tmp_path / "log.csv"
    quoted = '"' + cell.replace('"', '""') + '"'
    path.write_text(f"Question,Answer,Contexts\nQ?,A.,{quoted}\n")
    assert texts(samples(path)[0]) == shown


@pytest.mark.parametrize("blank", [None, "", "  ", [], [None], float("nan"), [float("nan")]])
def test_blank_passages_are_none_where_there_is_an_answer(blank: Any) -> None:
    [sample] = samples([{"question": "Q?", "answer": "A.", "contexts": blank, "context": None}])
    assert sample.documents == ()
    [asked] = samples([{"input": "Q?", "retrieval_context": blank or None}])
    assert asked.documents is None  # a question to be answered: they may be retrieved


@pytest.mark.parametrize(
    "cell",
    [
        "['cut, as Excel does at 32767 character",
        "['a', __import__('os').system('touch hacked')]",
        '["' + "[" * 100_000,
        "{'a': " * 5000,
        "['a', 9" + "9" * 5000 + "]",
    ],
    ids=["cut", "code", "deep", "deep object", "digits"],
)
def test_a_hostile_cell_is_a_fault_of_its_field(
    tmp_path: Path, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = '"' + cell.replace('"', '""') + '"'
    Path("log.csv").write_text(f"Question,Answer,Contexts\nQ?,A.,{quoted}\nR?,B.,c\n")
    fault, good = read_samples("log.csv")
    assert str(fault).startswith("log.csv:2: Contexts")
    assert isinstance(good, Located)
    assert not Path("hacked").exists()


def test_formulas_and_zero_bytes_in_csv_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Question,Answer,Contexts\n=1+1,=HYPERLINK(0),a\x00b\n")
    [sample] = samples(path)
    assert (sample.question, sample.response) == ("=1+1", "=HYPERLINK(0)")
    assert texts(sample) == ["a\x00b"]


# ---- zstd ----


@pytest.mark.parametrize("name", ["x.jsonl.zst", "x.jsonl"])
def test_zstd_is_read_whatever_the_name(tmp_path: Path, name: str) -> None:
    zstd = needed("backports.zstd")
    packed = zstd.compress(b'{"question": "a"}\n{"question": "b"}\n')
    (tmp_path / name).write_bytes(packed)
    assert [sample.question for sample in samples(tmp_path / name)] == ["a", "b"]
    (tmp_path / name).write_bytes(packed[:-6])
    with pytest.raises(InputError, match="not a complete zstd file"):
        samples(tmp_path / name)


def test_without_what_reads_zstd_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "x.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(InputError, match=r"pip install 'trustassay\[zstd\]'"):
        samples(tmp_path / "x.jsonl.zst")


# ---- workbooks ----


def workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"Sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_sheet_with_the_questions_is_read(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [],
        [*HEADER, "Year", None],
        [*ROW, 2024.0, None],
        [],
        ["Who?", None, "plain", 1.5, None],
    ]
    path = workbook(tmp_path / "log.xlsx", [["about"], ["this file"]], rows)
    first, second = read_samples(path)
    assert isinstance(first, Located)
    assert first.where == f"{path}: row 3"
    assert texts(first.sample) == ["The Tagus flows.", "Lisbon has hills."]
    assert first.sample.metadata == {"Year": 2024}
    assert isinstance(second, Located)
    assert (second.sample.response, texts(second.sample)) == ("", ["plain"])


def test_a_formula_is_a_fault_where_it_is_read_and_nothing_elsewhere(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [*HEADER, "Length"],
        ["Q?", "=A1", "c", "=LEN(A2)"],
        [*ROW, "=LEN(A3)"],
    ]
    fault, good = read_samples(workbook(tmp_path / "x.xlsx", rows))
    words = "row 2: Answer: is a formula, and formulas are not computed; paste the column as values"
    assert str(fault).endswith(words)
    assert isinstance(good, Located)
    assert good.sample.metadata == {}


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        ([[HEADER, ROW], [HEADER, ROW]], "sheets Sheet 1, Sheet 2 have a question column each"),
        ([[["a", "b"], [1, 2]]], "not a header with a question column"),
        ([[["Question", "Question"], [1, 2]]], "names Question more than once"),
        ([[]], "no records"),
    ],
)
def test_a_workbook_without_one_sheet_of_questions(
    tmp_path: Path, sheets: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        samples(workbook(tmp_path / "x.xlsx", *sheets))


def test_what_is_no_workbook_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"\xd0\xcf\x11\xe0 an old one")
    with pytest.raises(InputError, match="not a workbook of Excel"):
        samples(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InputError, match="not a readable workbook"):
        samples(tmp_path / "b.xlsx")


def test_a_workbook_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.data.workbooks.LARGEST", 1000)
    with pytest.raises(InputError, match="save so large a table as CSV"):
        samples(workbook(tmp_path / "x.xlsx", [HEADER, ROW]))


def test_without_openpyxl_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "x.xlsx", [HEADER, ROW])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'trustassay\[excel\]'"):
        samples(path)


# ---- standard input ----


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("content", "wheres"),
    [
        (b'{"question": "a"}\n{"question": "b"}\n', ["standard input:1", "standard input:2"]),
        (b'\n[{"question": "a"}]', ["standard input: item 1"]),
        (b'{"data": [\n{"question": "a"}]}', ["standard input: item 1"]),
        (b"\xef\xbb\xbfQuestion;Answer\na;b\n", ["standard input:2"]),
        (gzip.compress(b"question\ta\nq\tb\n"), ["standard input:2"]),
    ],
)
def test_standard_input_is_known_by_its_content_and_read_again(
    monkeypatch: pytest.MonkeyPatch, content: bytes, wheres: list[str]
) -> None:
    pipe(monkeypatch, content)
    assert [one.where for one in read_samples("-")] == wheres
    assert [one.where for one in read_samples(Path("-"))] == wheres


def test_a_workbook_may_be_piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, workbook(tmp_path / "x.xlsx", [HEADER, ROW]).read_bytes())
    assert samples("-")[0].question == ROW[0]


def test_the_folder_of_standard_input_is_named_after_its_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = []
    for content in (b"question\na\n", b"question\na\n", b"question\nb\n"):
        pipe(monkeypatch, content)
        names.append(default_folder(Path("-"), seed=0).name)
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("stdin-")


def test_a_terminal_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(InputError, match=r"is a terminal; expected a file, as in trustassay score"):
        read_samples("-")


def test_the_copy_of_standard_input_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"question\na\n")
    assert kept_input() is kept_input()
