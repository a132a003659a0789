"""What a table may come in: separators, zstd, workbooks, standard input; and hostile cells."""

import datetime
import gzip
import io
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.lazily import needed
from trustassay.core.sample import Sample
from trustassay.input import InputError, InputFault, LocatedSample, read_samples
from trustassay.input.places import store_standard_input
from trustassay.runs.intake import default_folder

openpyxl = needed("openpyxl")
HEADER = ["Question", "Answer", "Contexts"]
ROW = ["Which river?", "The Tagus.", "['The Tagus flows.', 'Lisbon has hills.']"]


def samples(source: Any) -> list[Sample]:
    found = list(read_samples(source))
    assert not [str(one) for one in found if isinstance(one, InputFault)]
    return [one.sample for one in found if isinstance(one, LocatedSample)]


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
    assert isinstance(good, LocatedSample)
    assert not Path("hacked").exists()


def test_formulas_and_zero_bytes_in_csv_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Question,Answer,Contexts\n=1+1,=HYPERLINK(0),a\x00b\n")
    [sample] = samples(path)
    assert (sample.question, sample.response) == ("=1+1", "=HYPERLINK(0)")
    assert texts(sample) == ["a\x00b"]


# ---- headers in other languages, encodings, titles ----

HEADERS = [
    ("Frage;Antwort;Kontext;Musterantwort;Nr.;Modell", "cp1252"),
    ("FRAGE ;antwort; Textstelle;Musterlösung;Kennung;Sprachmodell", "cp1252"),
    ("Question;Réponse;Contexte;Réponse attendue;Identifiant;Modèle", "cp1252"),
    ("Pregunta;Respuesta;Contexto;Respuesta correcta;Identificador;Modelo", "cp1252"),
    ("Pergunta;Resposta;Trechos;Resposta correta;ID;Modelo", "cp1252"),
    ("Domanda;Risposta;Brano;Risposta corretta;Id;Modello", "cp1252"),
    ("Vraag;Antwoord;Fragment;Verwacht antwoord;ID;Model", "cp1252"),
    ("質問,回答,文脈,正解,番号,モデル", "cp932"),
    ("问题,回答,上下文,标准答案,编号,模型", "gb18030"),
    ("問題\t答案\t參考資料\t正確答案\t編號\t模型", "utf-8"),
    ("Question,Answer,Passages,Gold Answer,Id,Model", "utf-8"),
    ("user_question,botAnswer,retrieved-chunks,expected answer,ID,model", "utf-8"),
]


@pytest.mark.parametrize(("header", "encoding"), HEADERS)
def test_headers_are_known_in_nine_languages_as_excel_writes_them(
    tmp_path: Path, header: str, encoding: str
) -> None:
    mark = next(one for one in "\t;," if one in header)
    path = tmp_path / "log.csv"
    path.write_bytes(f"{header}\nq?{mark}a.{mark}p.{mark}g.{mark}x7{mark}m\n".encode(encoding))
    [one] = samples(path)
    assert (one.id, one.question, one.response, one.model) == ("x7", "q?", "a.", "m")
    assert (texts(one), one.claims, one.metadata) == (["p."], ("g.",), {})


def test_a_csv_of_a_western_excel_is_read_and_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    rows = "Frage;Antwort;Kontext\nWo?;Hier.;a\nWo ist „Köln“?;Größe – nie;l’été, 5 €\n"
    path.write_bytes(rows.encode("cp1252"))
    _, second = samples(path)
    samples(path)
    assert (second.question, second.response) == ("Wo ist „Köln“?", "Größe – nie")
    assert texts(second) == ["l’été, 5 €"]
    assert capsys.readouterr().err == (
        f"{path}: is not UTF-8 and is read as Windows-1252; if letters are wrong, save the table "
        "as CSV UTF-8 (in Excel: Save As)\n"
    )


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("Вопрос о книге", "cp1251"), ("質問です", "cp932"), ("zażółć gęślą jaźń", "cp1250")],
)
def test_other_encodings_are_faults_that_say_how_to_save(
    tmp_path: Path, text: str, encoding: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(f"question,answer,context\n{text},a,b\n".encode(encoding))
    [fault] = read_samples(path)
    assert str(fault).startswith(f"{path}:2: question: is not UTF-8; save the table as CSV UTF-8")


def test_bytes_that_are_damaged_in_a_file_of_utf8_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("question,answer,context\nné?,a,b\n".encode() + b"n\xe9?,a,b\n")
    good, fault = read_samples(path)
    assert isinstance(good, LocatedSample)
    assert str(fault).startswith(f"{path}:3: question: is not UTF-8")


TITLED = [["Export of May"], [], ["by", "me"], ["Frage", "Antwort", "Kontext"], ["q?", "a.", "p"]]


def test_titles_above_the_header_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("sep=;\n" + "\n".join(";".join(row) for row in TITLED) + "\n")
    [found] = read_samples(path)
    assert isinstance(found, LocatedSample)
    assert (found.where, found.sample.question) == (f"{path}:6", "q?")
    [found] = read_samples(workbook(tmp_path / "log.xlsx", [["notes"]], TITLED))
    assert isinstance(found, LocatedSample)
    assert (found.where[-5:], found.sample.question) == ("row 5", "q?")


def test_a_header_of_unknown_names_is_no_title(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Ask,Reply,Year\nquestion,answer,2024\n")
    with pytest.raises(InputError, match="the header is 'Ask, Reply, Year'"):
        samples(path)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("https://example.org/a-page", False),
        ("Handbook 2024, chapter 3, page 12", False),
        ("The shop opens at nine.", True),
        (["The shop opens at nine.", "It closes at five o'clock."], True),
    ],
)
def test_a_source_counts_where_it_is_a_passage(source: Any, read: bool) -> None:
    record = {"Question": "Q?", "Answer": "A.", "Source": source}
    [found] = read_samples([record])
    assert isinstance(found, LocatedSample)
    sample = found.sample
    assert (sample.documents is not None, sample.response == "A.") == (read, read)


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
    with pytest.raises(InputError, match=r"pip install '\.\[zstd\]'"):
        samples(tmp_path / "x.jsonl.zst")


# ---- workbooks ----


def workbook(path: Path, *sheets: Sequence[Sequence[Any]]) -> Path:
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
    assert isinstance(first, LocatedSample)
    assert first.where == f"{path}: row 3"
    assert texts(first.sample) == ["The Tagus flows.", "Lisbon has hills."]
    assert first.sample.metadata == {"Year": 2024}
    assert isinstance(second, LocatedSample)
    assert (second.sample.response, texts(second.sample)) == ("", ["plain"])


def test_a_formula_is_a_fault_where_it_is_read_and_nothing_elsewhere(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [*HEADER, "Length"],
        ["Q?", "=A1", "c", "=LEN(A2)"],
        [*ROW, "=LEN(A3)"],
    ]
    fault, good = read_samples(workbook(tmp_path / "x.xlsx", rows))
    words = "row 2: Answer: is a formula, which is not computed; paste the column as values"
    assert str(fault).endswith(words)
    assert isinstance(good, LocatedSample)
    assert good.sample.metadata == {}


@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        ([[HEADER, ROW], [HEADER, ROW]], "sheets Sheet 1, Sheet 2 each have a question column"),
        ([[["a", "b"], [1, 2]]], "expected a column named question, or .* the header is 'a, b'"),
        (
            [[["a", "b"], [1, 2]], [["c"], [1]]],
            r"COLUMN \(in the sheet Sheet 1; choose --sheet: Sheet 2\); the header is 'a, b'",
        ),
        ([[["Question", "Question"], [1, 2]]], "the header has Question more than once"),
        ([[]], "no records"),
    ],
)
def test_a_workbook_without_one_sheet_of_questions(
    tmp_path: Path, sheets: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        samples(workbook(tmp_path / "x.xlsx", *sheets))


def test_cells_of_any_type_are_the_texts_that_the_sheet_shows(tmp_path: Path) -> None:
    shown = {
        14: "14",
        0: "0",
        3.0: "3",
        0.5: "0.5",
        True: "True",
        datetime.datetime(2024, 1, 2): "2024-01-02",
        datetime.date(2024, 1, 3): "2024-01-03",
    }
    rows = [["question", "answer", "context", "label"]]
    path = workbook(tmp_path / "x.xlsx", [*rows, *([v, v, v, 1] for v in shown)])
    results = samples(path)
    assert [sample.question for sample in results] == list(shown.values())
    assert [sample.response for sample in results] == list(shown.values())
    assert [texts(sample)[0] for sample in results] == list(shown.values())


def test_percentages_and_missing_values_are_read_as_they_are_shown(tmp_path: Path) -> None:
    cells = [("0%", 0.25, "25%"), ("0.0%", 0.1234, "12.3%"), ("General", "#N/A", "")]
    path = workbook(tmp_path / "x.xlsx", [[*HEADER, "label"], *([*ROW] for _ in cells)])
    book = openpyxl.load_workbook(path)
    for number, (number_format, value, _) in enumerate(cells, 2):
        for column in (2, 4):
            cell = book.worksheets[0].cell(number, column, value)
            cell.number_format = number_format
            cell.data_type = "e" if value == "#N/A" else "n"
    book.save(path)
    results = samples(path)
    assert [sample.response for sample in results] == [text for *_, text in cells]
    # A label stays a number.
    assert [sample.label for sample in results] == [0.25, 0.1234, None]


def test_a_sheet_is_chosen_by_title_or_number(tmp_path: Path) -> None:
    sheets: list[list[list[Any]]] = [[[*HEADER], [f"Q{n}?", "A.", "B.", None]] for n in (1, 2, 3)]
    path = workbook(tmp_path / "x.xlsx", *sheets)
    book = openpyxl.load_workbook(path)
    book.worksheets[2].title = "1"
    book.save(path)

    def question(sheet: Any) -> str:
        [result] = read_samples(path, sheet=sheet)
        assert isinstance(result, LocatedSample)
        return result.sample.question

    assert (question("Sheet 2"), question(2), question("2")) == ("Q2?", "Q2?", "Q2?")
    assert (question("1"), question("3")) == ("Q3?", "Q3?")
    with pytest.raises(InputError, match="unknown sheet 'Sheet 4'; did you mean Sheet"):
        question("Sheet 4")
    with pytest.raises(InputError, match="choose one, for example --sheet 'Sheet 1'"):
        samples(path)


def test_what_has_no_sheets_is_refused_where_one_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("question\nq\n")
    for source in (tmp_path / "x.csv", [{"question": "q"}]):
        with pytest.raises(InputError, match="workbook"):
            list(read_samples(source, sheet="A"))


@pytest.mark.parametrize("aside", ["hidden", "with a pivot table"])
def test_a_sheet_that_is_hidden_or_a_pivot_is_only_read_by_its_name(
    tmp_path: Path, aside: str
) -> None:
    def save(name: str, *sheets: list[list[Any]]) -> Path:
        book = openpyxl.load_workbook(workbook(tmp_path / name, *sheets))
        book.active = 1
        book.worksheets[0].sheet_state = "hidden" if aside == "hidden" else "visible"
        book.save(tmp_path / name)
        if aside != "hidden":
            with zipfile.ZipFile(tmp_path / name, "a") as archive:
                target = '<Relationship Type="http://x/relationships/pivotTable" Target="p.xml"/>'
                archive.writestr("xl/worksheets/_rels/sheet1.xml.rels", target)
        return tmp_path / name

    alone = save("alone.xlsx", [HEADER, ROW], [["note"]])
    with pytest.raises(InputError, match=rf"Sheet 1 \({aside}\) has a question column; choose"):
        samples(alone)
    assert len(list(read_samples(alone, sheet="Sheet 1"))) == 1
    beside_another = save("beside.xlsx", [HEADER, ROW, ROW], [HEADER, ROW])
    assert len(samples(beside_another)) == 1


def test_what_is_no_workbook_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"\xd0\xcf\x11\xe0 an old one")
    with pytest.raises(InputError, match="not an Excel workbook"):
        samples(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InputError, match="not a readable Excel workbook"):
        samples(tmp_path / "b.xlsx")


def test_a_workbook_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trustassay.input.tables.MAX_WORKBOOK_BYTES", 1000)
    with pytest.raises(
        InputError, match=r"expected at most 1,000 bytes unpacked, got .*; save it as CSV"
    ):
        samples(workbook(tmp_path / "x.xlsx", [HEADER, ROW]))


def test_without_openpyxl_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "x.xlsx", [HEADER, ROW])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install '\.\[excel\]'"):
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
        (gzip.compress(b"question\ta\nq\tb\n", mtime=0), ["standard input:2"]),
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
    with pytest.raises(
        InputError, match=r"is a terminal; expected a file, for example trustassay score"
    ):
        read_samples("-")


def test_the_copy_of_standard_input_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"question\na\n")
    assert store_standard_input() is store_standard_input()
