"""Kinds of files that people have, each in several variants: read as a careful person reads them.

Beside each folder of ``kinds/`` is a table with the right reading of its files. All texts are our
own; the forms are those of the tools. In a table ``{"together": [...]}`` lists passages of which
nothing says where one ends, and ``{"fault": ...}`` is the field that a message must name. Labels
and log-probabilities differ in one field, so their tables hold its value, and the test writes the
file.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.input.test_formats import table
from trustassay import score
from trustassay.core.sample import Sample
from trustassay.input import InputFault, LocatedSample, read_samples
from trustassay.input.labels import read_labels

KINDS = Path(__file__).parent / "kinds"
LEXICAL = ("--entailer", "lexical")
Q1, A1 = "How tall is the Norrevik lighthouse?", "The Norrevik lighthouse is 31 metres tall."
Q2, A2 = "When does the last ferry to Aldra leave?", "The last ferry to Aldra leaves at 22:15."
P1 = "The Norrevik lighthouse is 31 metres tall. It was first lit in 1874."
P2 = "From May to September the last ferry to Aldra leaves at 22:15."
P3 = "Bicycles travel free of charge on all ferries to Aldra."


def readings(kind: str) -> dict[str, Any]:
    readings_of_kind = json.loads((KINDS / f"{kind}.json").read_text(encoding="utf-8"))
    assert isinstance(readings_of_kind, dict)
    return readings_of_kind


def cases(*kinds: str) -> list[Any]:
    return [
        pytest.param(kind, name, id=f"{kind}/{name}") for kind in kinds for name in readings(kind)
    ]


# ---- comparing a sample with its reading ----


def one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def agrees(value: Any, right: Any) -> bool:
    if isinstance(right, list) and isinstance(value, list | tuple):
        return len(value) == len(right) and all(map(agrees, value, right))
    return bool(one_line(value) == one_line(right))


def documents_agree(texts: Sequence[str], right: Any) -> bool:
    if isinstance(right, Mapping):
        return bool(one_line(" ".join(texts)) == one_line(" ".join(right["together"])))
    return agrees(list(texts), right)


def differences(sample: Sample, right: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a sample has in the fields in which it differs from its right reading."""
    texts = [document.text for document in sample.documents or ()]
    result: dict[str, Any] = {}
    for name, value in right.items():
        if name == "no_documents":
            if texts:
                result[name] = texts
        elif name == "documents":
            if not documents_agree(texts, value):
                result[name] = texts
        elif name == "label":
            if label_values([sample], "label") != [value]:
                result[name] = sample.label
        elif not agrees(getattr(sample, name), value):
            result[name] = getattr(sample, name)
    return result


def label_values(samples: Sequence[Sample], field: str) -> list[float | None]:
    """Return the labels of samples as all commands read them."""
    values = [sample.to_dict().get(field, sample.label) for sample in samples]
    numbers = read_labels(field, values).values
    return [None if math.isnan(number) else number for number in numbers]


def samples_of(results: Sequence[LocatedSample | InputFault]) -> list[Sample]:
    assert not [str(result) for result in results if isinstance(result, InputFault)]
    return [result.sample for result in results if isinstance(result, LocatedSample)]


def check(samples: Sequence[Sample], right: Sequence[Mapping[str, Any]]) -> None:
    assert len(samples) == len(right), [(one.question, one.response) for one in samples]
    assert [differences(*pair) for pair in zip(samples, right, strict=True)] == [{}] * len(right)


# ---- files ----


@pytest.mark.parametrize(
    ("kind", "name"),
    cases("chats", "chats-context", "ordinary", "traces", "tables", "values", "layouts", "cut"),
)
def test_a_file_is_read_as_a_careful_person_reads_it(kind: str, name: str) -> None:
    right = readings(kind)[name]
    results = list(read_samples(KINDS / kind / name, turns=right.get("turns", "last")))
    if "fault" in right:
        # What is cut, or of no known form, is reported by the name of its field.
        assert results
        assert all(
            isinstance(result, InputFault) and f": {right['fault']}: " in str(result)
            for result in results
        ), results
    else:
        check(samples_of(results), right["samples"])


# ---- labels ----


def write_labelled(path: Path, field: str, values: Sequence[Any]) -> Path:
    """Write answers about towns, each with a label: every other answer is wrong."""
    rows = [
        {
            "id": f"t{n}",
            "question": f"How many bridges has town {n}?",
            "response": f"Town {n} has {(3, 8)[n % 2]} bridges.",
            "documents": [f"Town {n} has 3 bridges."],
            field: value,
        }
        for n, value in enumerate(values)
    ]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        writer.writerows([*list(row.values())[:3], row["documents"][0], row[field]] for row in rows)
    return path


LABELS = {name: value for name, value in readings("labels").items() if value["read"]}
UNREADABLE = {name: value for name, value in readings("labels").items() if not value["read"]}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read_as_people_write_them(tmp_path: Path, name: str) -> None:
    right = LABELS[name]
    path = write_labelled(tmp_path / name, right["field"], right["values"])
    values = label_values(samples_of(list(read_samples(path))), right["field"])
    # Labels from 0 to 100 may be read as parts of 1.
    scale = 100 if right.get("scaled") and max(value or 0 for value in values) > 1 else 1
    scaled = [None if value is None else value / scale for value in values]
    assert scaled == [value if value is None else pytest.approx(value) for value in right["read"]]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_label_that_cannot_be_read_stops_no_metric(tmp_path: Path, name: str) -> None:
    path = write_labelled(tmp_path / name, "label", UNREADABLE[name]["values"])
    run = score(path, metrics="faithfulness", entailer="lexical", progress=False)
    assert [one.error for one in run.assessments] == [None] * 4
    assert all(one.score is not None for one in run.assessments)


@pytest.mark.parametrize("name", [name for name, value in UNREADABLE.items() if value["word"]])
def test_a_command_that_asks_for_labels_names_the_unreadable_one(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    path = write_labelled(tmp_path / name, "label", UNREADABLE[name]["values"])
    assert cli("score", path, "--metric", "faithfulness", *LEXICAL, "--out", "run").status == 0
    result = cli("study", "run", "--label", "label")
    assert UNREADABLE[name]["word"] in result.err + result.out


@pytest.mark.parametrize("words", ["yes no", "👍 👎", "richtig falsch", "PASS FAIL", "✅ ❌"])
def test_words_as_labels_reach_a_study(cli: Cli, tmp_path: Path, words: str) -> None:
    path = write_labelled(tmp_path / "log.csv", "label", words.split() * 12)
    assert cli("score", path, "--metric", "faithfulness", *LEXICAL, "--out", "run").status == 0
    result = cli("study", "run", "--label", "label")
    assert result.status == 0, result.err
    assert "24 answers with a binary label, mean 0.500" in result.err + result.out


# ---- log-probabilities ----

REPLIES = ["It leaves at 22:15.", "At 22:15.", "The last ferry leaves at 21:30."]


@pytest.mark.parametrize("name", readings("logprobs"))
def test_log_probabilities_are_read_or_left_out(name: str) -> None:
    right = readings("logprobs")[name]
    row = {
        "question": "When does it ring?",
        "response": right["response"],
        "resamples": REPLIES,
        "token_logprobs": right["token_logprobs"],
    }
    plain = {"question": "And then?", "response": REPLIES[0], "resamples": REPLIES}
    run = score([row, plain], metrics="uncertainty", entailer="lexical", progress=False)
    # The replies give a score without them.
    assert [one.error for one in run.assessments] == [None, None]
    assert all(one.score is not None for one in run.assessments)
    # Where they are read, the sum is one of those in the table; where it has none, they are not.
    total = run.assessments[0].parts.get("nll")
    assert (total is None) == (not right["nll"])
    assert total is None or any(total == pytest.approx(each, abs=1e-4) for each in right["nll"])


# ---- workbooks, Parquet, frames ----


def workbook(path: Path, **sheets: Sequence[Any]) -> Path:
    """Write sheets, each a list of rows."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


HEADER = ["question", "answer", "context"]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (14, {"14"}),
        (14.0, {"14"}),
        (2.5, {"2.5"}),
        (True, {"True", "TRUE", "true"}),
        (datetime.date(1874, 5, 3), {"1874-05-03", "1874-05-03 00:00:00", "1874-05-03T00:00:00"}),
        (datetime.time(22, 15), {"22:15:00", "22:15"}),
    ],
)
def test_a_typed_cell_is_the_text_that_people_see(
    tmp_path: Path, answer: Any, texts: set[str]
) -> None:
    path = workbook(tmp_path / "x.xlsx", Log=[HEADER, [Q1, answer, 31], [Q2, A2, P2]])
    first, second = samples_of(list(read_samples(path)))
    assert first.response in texts
    assert [document.text for document in first.documents or ()] == ["31"]
    assert (second.question, second.response) == (Q2, A2)


def test_a_question_may_be_a_number_or_a_date_in_a_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", Log=[HEADER, [1874, A1, P1]])
    [sample] = samples_of(list(read_samples(path)))
    assert sample.question == "1874"


@pytest.mark.parametrize(
    "header",
    [
        ["Frage", "Antwort", "Quelle 1", "Quelle 2", "Bewertung"],
        ["Question", "Réponse", "Passage 1", "Passage 2", "Note"],
        ["Question", "Answer", "Context 1", "Context 2", "Thumbs"],
        ["質問", "回答", "出典1", "出典2", "評価"],
    ],
)
def test_a_workbook_with_numbered_columns(tmp_path: Path, header: list[str]) -> None:
    rows = [["Export", None, None, None, None], header, [Q2, A2, P2, P3, "ok"], [Q1, A1, P1]]
    path = workbook(tmp_path / "x.xlsx", Log=rows)
    check(
        samples_of(list(read_samples(path))),
        [
            {"question": Q2, "response": A2, "documents": [P2, P3]},
            {"question": Q1, "response": A1, "documents": [P1]},
        ],
    )


def test_text_nans_in_a_workbook_are_blank(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", Log=[HEADER, [Q1, "nan", P1], [Q2, A2, "#N/A"]])
    first, second = samples_of(list(read_samples(path)))
    assert (first.response, second.documents) == ("", ())


def test_notes_beside_the_sheet_with_questions_do_not_matter(tmp_path: Path) -> None:
    notes = [["What", "When"], ["Exported", datetime.date(2026, 5, 3)]]
    path = workbook(tmp_path / "x.xlsx", Notes=notes, Log=[HEADER, [Q1, A1, P1]])
    check(samples_of(list(read_samples(path))), [{"question": Q1, "response": A1}])


def test_a_sheet_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    workbook(tmp_path / "x.xlsx", May=[HEADER, [Q1, A1, P1]], June=[HEADER, [Q2, A2, P2]])
    refused = cli("score", "x.xlsx", *LEXICAL)
    assert refused.status == 2
    assert "May" in refused.err
    assert "June" in refused.err
    assert "--sheet" in refused.err
    chosen = cli("score", "x.xlsx", *LEXICAL, "--sheet", "June", "--out", "run")
    assert chosen.status == 0, chosen.err
    assert questions_of(tmp_path / "run") == [Q2]


def rows_of_run(run: Path) -> list[dict[str, Any]]:
    lines = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def questions_of(run: Path) -> list[str]:
    return [row["question"] for row in rows_of_run(run)]


def test_two_fields_of_passages_add_up(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"Q,A,Manual,Notes\n{Q2},{A2},{P2},{P3}\n")
    names = ("question=Q", "response=A", "documents=Manual", "documents=Notes")
    options = [part for name in names for part in ("--field", name)]
    result = cli("score", "x.csv", *options, *LEXICAL, "--out", "run")
    assert result.status == 0, result.err
    [row] = rows_of_run(tmp_path / "run")
    assert [document["text"] for document in row["documents"]] == [P2, P3]


def test_two_named_chunks_beside_known_names_add_up(cli: Cli, tmp_path: Path) -> None:
    row = {"question": Q2, "answer": A2, "hit": {"a": P2, "b": P3}}
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")
    fields = ("response=answer", "documents=hit.a", "documents=hit.b")
    options = [part for name in fields for part in ("--field", name)]
    result = cli("score", "x.jsonl", *options, *LEXICAL, "--out", "run")
    assert result.status == 0, result.err
    assert [one["text"] for one in rows_of_run(tmp_path / "run")[0]["documents"]] == [P2, P3]


ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": Q1, "answer": A1, "contexts": [P1], "model": "m", "votes": 3},
    {"id": "b", "question": Q2, "answer": A2, "contexts": [P2, P3], "model": "m", "votes": 0},
    {"id": "c", "question": "How many keepers?", "answer": "14", "contexts": [P1, P3]},
    {"id": "d", "question": "Who keeps it?", "answer": "", "contexts": []},
]


def as_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(ROWS[0]))
    writer.writeheader()
    writer.writerows({**row, "contexts": json.dumps(row["contexts"])} for row in rows)
    (path / "x.csv").write_text(file.getvalue(), encoding="utf-8")
    return path / "x.csv"


def as_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    (path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path / "x.jsonl"


def as_columns(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    columns = {name: {str(n): row.get(name) for n, row in enumerate(rows)} for name in ROWS[0]}
    (path / "x.json").write_text(json.dumps(columns))
    return path / "x.json"


def as_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    from arro3.io import write_parquet

    write_parquet(table([dict(row) for row in rows]), path / "x.parquet")
    return path / "x.parquet"


def as_workbook(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    names = list(ROWS[0])
    cells = [
        [json.dumps(row["contexts"]) if name == "contexts" else row.get(name) for name in names]
        for row in rows
    ]
    return workbook(path / "x.xlsx", Log=[names, *cells])


def as_frame(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(list(rows))


def as_dictionaries(path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    return [dict(row) for row in rows]


@pytest.mark.parametrize(
    "write", [as_csv, as_lines, as_columns, as_parquet, as_workbook, as_frame, as_dictionaries]
)
def test_the_same_rows_are_the_same_samples(
    tmp_path: Path, write: Callable[[Path, Sequence[Mapping[str, Any]]], Any]
) -> None:
    check(
        samples_of(list(read_samples(write(tmp_path, ROWS)))),
        [
            {
                "id": row["id"],
                "question": row["question"],
                "response": row["answer"],
                "documents": row["contexts"],
                "model": row.get("model"),
            }
            for row in ROWS
        ],
    )


def test_numeric_columns_of_a_frame_and_of_parquet_are_texts(tmp_path: Path) -> None:
    rows = [{"question": Q1, "answer": 31, "contexts": [P1]}]
    rows += [{"question": "And in feet?", "answer": 102, "contexts": [P1]}]
    for source in (as_frame(tmp_path, rows), as_parquet(tmp_path, rows)):
        assert [one.response for one in samples_of(list(read_samples(source)))] == ["31", "102"]


def test_halubench_as_it_is_published(tmp_path: Path) -> None:
    rows = [{"id": "e1", "passage": P1, "question": Q1, "answer": A1, "label": "PASS"}]
    rows += [{"id": "e2", "passage": P2, "question": Q2, "answer": "At 23:40.", "label": "FAIL"}]
    path = as_parquet(tmp_path, [{**row, "source_ds": "own"} for row in rows])
    check(
        samples_of(list(read_samples(path))),
        [
            {"id": "e1", "response": A1, "documents": [P1], "label": 1},
            {"id": "e2", "response": "At 23:40.", "documents": [P2], "label": 0},
        ],
    )


# ---- what cannot be used ----


@pytest.mark.parametrize(("kind", "name"), cases("refused"))
def test_a_record_that_cannot_be_used_is_one_line_and_no_gold_answer_is_proposed(
    cli: Cli, tmp_path: Path, kind: str, name: str
) -> None:
    right = readings(kind)[name]
    (tmp_path / name).write_bytes((KINDS / kind / name).read_bytes())
    result = cli("score", name, *LEXICAL)
    assert result.status in {1, 2}, result.err
    assert "needs a look" not in result.err
    for wrong in right.get("never", ()):
        assert f"response={wrong}" not in result.err.replace("'", "").replace('"', "")
    lines = [line for line in result.err.splitlines() if line.startswith(name)]
    assert not right.get("lines") or any(
        all(part in line for part in right["lines"]) for line in lines
    ), result.err
    commands = [
        line.strip() for line in result.err.splitlines() if line.startswith("  trustassay score")
    ]
    for field, proposed in right.get("propose", {}).items():
        assert commands, result.err
        assert all(f"{field}={proposed}" in command for command in commands)
    for command in commands:
        again = cli(*shlex.split(command)[1:], "--out", "again")
        assert again.status == 0, again.err
        [row] = rows_of_run(tmp_path / "again")
        # What the proposal reads is shown beside it: the beginnings of question and response.
        assert row["question"][:30] in one_line(result.err)
        assert row["response"][:30] in one_line(result.err)


def test_a_bad_line_is_left_out_on_request_and_counted(cli: Cli, tmp_path: Path) -> None:
    name = "one-line-without-question.jsonl"
    (tmp_path / name).write_bytes((KINDS / "refused" / name).read_bytes())
    result = cli("score", name, *LEXICAL, "--skip-bad", "--out", "run")
    assert questions_of(tmp_path / "run") == [Q1]
    assert re.search(
        r"\b1 (faulty )?record\b[^.]*\b(skipped|left out)|\bskipped\b[^.]*\b1\b", result.err
    )
    assert "No answer needs a look" not in result.err
