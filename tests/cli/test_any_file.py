"""A newcomer's file on the command line: what cannot be told, and standard input."""

import io
import json
import shlex
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.cli.conftest import Cli
from tests.support import jsonl, summary_of

LEXICAL = ("--entailer", "lexical")
ROW = {"Ask": "Which river?", "Reply": "The Tagus.", "Sources": ["The Tagus flows."]}


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_the_command_that_is_proposed_works(cli: Cli, tmp_path: Path, name: str) -> None:
    jsonl(tmp_path / "log.jsonl", [ROW | {"n": n} for n in range(42)])
    (tmp_path / "log.csv").write_text(
        "Ask,Reply,Sources\n" + "Q?,The lamp is red.,It is red.\n" * 42
    )
    said = cli("score", name, *LEXICAL, "--out", "my run")
    assert said.status == 2
    assert said.err.count("question: is missing") <= 1
    lines = said.err.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("  trustassay score"))
    # What would be read is shown below the command.
    question, response = (
        ("Q?", "The lamp is red.") if name == "log.csv" else tuple(ROW.values())[:2]
    )
    shown = lines[place + 1 :]
    assert shown == [f"  question read: {question}", f"  response read: {response}"]
    again = cli(*shlex.split(lines[place])[1:])
    assert again.status == 0, again.err
    assert summary_of(tmp_path / "my run")["metrics"]["faithfulness"]["n"] == 42


@pytest.mark.parametrize(
    ("name", "rows", "works"),
    [
        ("log.jsonl", [{"Ask": "Q?", "answer": "A.", "contexts": ["p"]}], True),
        ("log.jsonl", [{"Ask": "Q?", "answer": "A.", "contexts": None}], True),
        ("log.jsonl", [{"ask": {"text": "Q?"}, "answer": "A.", "evidence": "p"}], True),
        ("log.jsonl", [{"Ask": "Q?", "answer": None, "contexts": ["p"]}], False),
        ("log.jsonl", [{"Ask": 7, "answer": "A.", "contexts": ["p"]}], False),
        ("log.jsonl", [{"Ask": "Q?", "Reply": "A.", "chunk": 7}], False),
        ("log.jsonl", [{"Ask": "Q?", "Reply": "A.", "source": "https://example.org"}], False),
        ("log.jsonl", [ROW, ROW | {"id": 1.5}], False),
        ("log.jsonl", [ROW, {"question": "Q?"}], False),
        ("log.jsonl", [{"messages": [{"role": "user", "content": "Q?"}]}], False),
        ("log.jsonl", [{"messages": ["Q?", "A."]}], False),
        ("log.csv", "Ask,Reply\nQ?,A.\n", False),
        ("log.csv", "Question,Answer\nQ?,A.\n", False),
        ("log.csv", "Question,Answer,Source\nQ?,A.,Handbook\n", False),
        ("log.csv", "Ask,Answer,Context\nQ?,A.,p\n", True),
    ],
)
def test_a_command_is_proposed_only_where_it_works(
    cli: Cli, tmp_path: Path, name: str, rows: Any, works: bool
) -> None:
    if isinstance(rows, str):
        (tmp_path / name).write_text(rows)
    else:
        jsonl(tmp_path / name, rows)
    said = cli("score", name, *LEXICAL)
    assert said.status == 2
    proposed = [line for line in said.err.splitlines() if line.startswith("  trustassay")]
    assert bool(proposed) == works, said.err
    for line in proposed:
        again = cli(*shlex.split(line)[1:])
        assert again.status == 1, again.err  # "A." claims nothing that could be judged


def test_questions_and_answers_alone_are_told_what_they_lack(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"question": "Q?", "answer": "A."}] * 9)
    said = cli("score", "log.jsonl", *LEXICAL)
    assert said.status == 2
    assert "log.jsonl:1 and 8 more: response: is missing" in said.err
    assert "name the field with the response:\n  --field response=answer\n" in said.err
    assert "  question read: Q?\n  response read: A.\n" in said.err
    assert "documents=" not in said.err
    assert "give --retriever" in said.err
    (tmp_path / "log.csv").write_text("Question,Answer,Sources\nQ?,A.,Handbook\n")
    said = cli("score", "log.csv", *LEXICAL)
    assert (
        "log.csv:2: documents: is missing (Sources contains a link or a title; expected" in said.err
    )


def test_a_chat_without_an_answer_is_told_as_such(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"messages": [{"role": "user", "content": "Q?"}]}])
    said = cli("score", "log.jsonl")
    assert (
        "log.jsonl:1: response: is missing (the chat in messages ends with a question; " in said.err
    )
    assert "--field response" not in said.err
    turns = [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": ""}]
    jsonl(tmp_path / "blank.jsonl", [{"messages": turns}])
    said = cli("score", "blank.jsonl")
    assert (
        "blank.jsonl:1: response: is missing (the chat in messages ends with a blank answer; "
        in said.err
    )


def test_a_translated_name_is_proposed_for_the_response(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("Frage,Antwort,Quellen\nWer?,Herr Stein.,\n")
    said = cli("score", "log.csv", *LEXICAL)
    assert "name the field with the response:\n  --field response=Antwort\n" in said.err


def test_without_a_guess_the_name_is_left_open(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"a": "Q?", "b": "A."}])
    said = cli("score", "log.jsonl")
    assert "no record can be read" in said.err
    assert (
        "NAME is one of the fields below:\n  --field question=NAME\n  a: Q?\n  b: A.\n" in said.err
    )


def test_of_many_fields_the_first_are_listed_with_their_values(cli: Cli, tmp_path: Path) -> None:
    row = {f"field{n}": f"\x1b[31mvalue {n}\nof two lines" for n in range(15)}
    jsonl(tmp_path / "log.jsonl", [row] * 2)
    lines = cli("score", "log.jsonl").err.splitlines()[1:]
    assert lines[0] == "log.jsonl:1 and 1 more: question: is missing (expected text)"
    # Without the hint at --skip-bad, which would skip all records.
    assert lines[1].startswith(
        "2 faulty records; nothing was started; name the field with the question"
    )
    assert lines[3:] == [
        *(f"  field{n}: <U+001B>[31mvalue {n} of two lines" for n in range(10)),
        "  and 5 other fields",
    ]


def test_a_record_of_a_known_tool_says_what_it_lacks_and_no_more(cli: Cli, tmp_path: Path) -> None:
    row = {"source_id": "7", "labels": [], "response": "A.", "model": "m"}
    jsonl(tmp_path / "log.jsonl", [row] * 5)
    lines = cli("score", "log.jsonl").err.splitlines()[1:]
    assert len(lines) == 2
    assert "log.jsonl:1 and 4 more: question: is missing (RAGTruth keeps it in" in lines[0]
    assert lines[1] == "5 faulty records; nothing was started"


def test_a_chat_under_another_name_is_not_met_with_options(cli: Cli, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "A."}]
    jsonl(tmp_path / "log.jsonl", [{"thread": turns}])
    output = cli("score", "log.jsonl")
    assert "thread holds the messages of a chat: rename it to messages" in output.err
    assert "--field" not in output.err


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        ({"messages": []}, "question", "has no user message; expected text"),
        (
            {"messages": [{"role": "system", "content": "Be kind."}]},
            "question",
            "has no user message; expected text",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "Which river?"},
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},
                ]
            },
            "response",
            "ends with a tool call; expected the text to assess",
        ),
    ],
)
def test_a_chat_that_cannot_be_scored_is_met_with_its_reason_alone(
    cli: Cli, tmp_path: Path, record: dict[str, Any], field: str, message: str
) -> None:
    jsonl(tmp_path / "log.jsonl", [record])
    errors = cli("score", "log.jsonl").err
    assert f"log.jsonl:1: {field}: is missing (the chat in messages {message})" in errors
    assert "--field" not in errors
    assert "rename it" not in errors


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"question": "Q?", "ground_truth": "A.", "contexts": ["A."]}, "response"),
        ({"response": "A.", "documents": ["A."]}, "question"),
    ],
)
def test_where_no_field_is_left_none_is_asked_for(
    cli: Cli, tmp_path: Path, record: dict[str, Any], field: str
) -> None:
    jsonl(tmp_path / "log.jsonl", [record])
    errors = cli("score", "log.jsonl").err
    assert f"add the field {field} to these records" in errors
    assert "NAME" not in errors


def test_fields_that_are_listed_have_a_heading(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "log.jsonl", [{"question": "Q?", "response": "A.", "foo": "b"}])
    errors = cli("score", "log.jsonl").err
    assert "nothing was started; the records also have these fields:\n  " in errors


def two_files(tmp_path: Path, **of_second: Any) -> None:
    text = "The lamp is red."
    rows = [{"id": i, "question": f"Q{i}?", "answer": text, "context": text} for i in range(3)]
    jsonl(tmp_path / "small.jsonl", rows)
    jsonl(tmp_path / "large.jsonl", [row | of_second for row in rows])


def test_files_of_several_models_are_pooled(cli: Cli, tmp_path: Path) -> None:
    two_files(tmp_path)
    assert cli("score", "small.jsonl", "large.jsonl", *LEXICAL, "--out", "run").status == 0
    samples = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").open()]
    ids = [f"{i}-{model}" for model in ("small", "large") for i in range(3)]
    assert [(one["id"], one["model"]) for one in samples] == [(one, one[2:]) for one in ids]
    assert summary_of(tmp_path / "run")["metrics"]["faithfulness"]["units"]["mean"] == 3
    ranked = cli("rank", "small.jsonl", "large.jsonl", "--metric", "faithfulness", *LEXICAL)
    assert "3 questions asked of all models, ranked by share supported" in ranked.out
    planned = cli("plan", "small.jsonl", "large.jsonl", *LEXICAL)
    assert "6 samples" in planned.err


def test_of_several_files_faults_name_their_own(cli: Cli, tmp_path: Path) -> None:
    two_files(tmp_path, model="small")
    said = cli("score", "small.jsonl", "large.jsonl", *LEXICAL)
    assert "large.jsonl:1: id: '0-small' is already used by an earlier record" in said.err
    two_files(tmp_path, context=7)
    assert "large.jsonl:1: context: expected" in cli("score", "small.jsonl", "large.jsonl").err
    assert "no.jsonl: no such file" in cli("score", "small.jsonl", "no.jsonl").err
    assert "small.jsonl: is given twice" in cli("score", "small.jsonl", "small.jsonl").err
    (tmp_path / "large.jsonl").write_text("")
    assert "large.jsonl: contains no records" in cli("score", "small.jsonl", "large.jsonl").err


def test_standard_input_is_scored_and_scored_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"question": "Q?", "answer": f"A{n}.", "context": "A0."} for n in range(3)]
    for _ in range(2):
        piped(monkeypatch, "\n".join(map(json.dumps, rows)))
        assert cli("score", "-", *LEXICAL).status == 0
    [run] = (tmp_path / "trustassay-runs").iterdir()
    assert run.name.startswith("stdin-")
    piped(monkeypatch, json.dumps(rows[:1]))
    assert cli("score", "-", *LEXICAL, "--out", str(run)).status == 2  # another input's folder
    piped(monkeypatch, json.dumps({"question": "Q?"}) + "\n[")
    said = cli("score", "-", *LEXICAL)
    assert "standard input:2: column" in said.err


def test_standard_input_cannot_be_watched(cli: Cli) -> None:
    options = ("--metric", "faithfulness", "--threshold", "0.5", "--out", "w", *LEXICAL)
    said = cli("score", "-", "--follow", *options)
    assert said.status == 2
    assert "standard input cannot be followed; expected a file that grows" in said.err


def test_two_fields_of_passages_add_up_and_no_other_field_is_named_twice(
    cli: Cli, tmp_path: Path
) -> None:
    rows = [{"question": "Q?", "response": "The lamp is red.", "a": "p", "b": "The lamp is red."}]
    jsonl(tmp_path / "log.jsonl", rows)
    two = ("--field", "documents=a", "--field", "documents=b")
    output = cli("score", "log.jsonl", *LEXICAL, *two, "--out", "run")
    assert output.status == 0, output.err
    [stored] = [json.loads(line) for line in (tmp_path / "run/samples.jsonl").open()]
    assert [document["text"] for document in stored["documents"]] == ["p", "The lamp is red."]
    # The run can be continued with the same options.
    assert cli("score", "log.jsonl", *LEXICAL, *two, "--out", "run").status == 0
    twice = ("--field", "response=a", "--field", "response=b")
    output = cli("score", "log.jsonl", *LEXICAL, *twice)
    assert output.status == 2
    assert "--field: response is given twice, as a and b" in output.err


def test_a_sheet_of_a_workbook_is_chosen(cli: Cli, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for title, answer in (("Old", "The lamp is blue."), ("New", "The lamp is red.")):
        sheet = book.create_sheet(title)
        sheet.append(["question", "answer", "context"])
        sheet.append(["Q?", answer, "The lamp is red."])
    book.save(tmp_path / "log.xlsx")
    output = cli("score", "log.xlsx", *LEXICAL)
    assert output.status == 2
    assert (
        "sheets Old, New each have a question column; choose one, for example --sheet Old"
        in output.err
    )
    for sheet in ("New", "3"):
        output = cli("score", "log.xlsx", *LEXICAL, "--sheet", sheet, "--out", f"run-{sheet}")
        assert output.status == 0, output.err
        stored = json.loads((tmp_path / f"run-{sheet}" / "samples.jsonl").read_text())
        assert stored["response"] == "The lamp is red."
    assert cli("plan", "log.xlsx", *LEXICAL, "--sheet", "Old").status == 0
