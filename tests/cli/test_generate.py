"""``trustassay generate``: four styles, every fault of the input, and a stop at any moment."""

# ruff: noqa: F401 - fixtures are imported, and arguments bear their names

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.serving import one_server, question, questions, server, uri
from tests.llm_server import LlmServer
from tests.support import command, jsonl, lines, record

ASKED = ("generate", "q.jsonl", "--out", "a.jsonl")
SHOWN = [{"question": "Who?", "response": "She did [1].", "documents": ["She did."]}]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("closed-book", ["one full sentence", "Question: What is number 0?\nAnswer:"]),
        ("rag", ["Document [1](Title: ): Number 0 is odd.", "three at most.\n"]),
        ("rag-refusal", ["Document [2]", "reply with this sentence alone: I apologize"]),
        ("icl", ["in the same manner", "Question: Who?\nAnswer: She did [1]."]),
        ("auto", ["Document [1]", "I apologize"]),
    ],
)
def test_four_styles(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    style: str,
    expected: list[str],
) -> None:
    jsonl(tmp_path / "q.jsonl", [question(0, extra="kept")])
    shown = ["--examples", jsonl(tmp_path / "e.jsonl", SHOWN)] if style == "icl" else []
    said = cli("generate", "q.jsonl", "--model", uri(server), "--style", style, *shown,
               "--out", "new/folder/a.jsonl")  # fmt: skip
    assert said.status == 0
    assert "1 answer in new/folder/a.jsonl" in said.err
    (answer,) = lines(tmp_path / "new" / "folder" / "a.jsonl")
    assert answer["id"] == "q0"
    assert answer["extra"] == "kept"
    assert answer["model"] == uri(server)
    assert answer["response"].startswith("Reply ")
    (sent,) = server.requests()
    for words in expected:
        assert words in sent["body"]["messages"][0]["content"]
    assert sent["body"]["stop"] == ["\nQuestion:"]


def test_what_has_an_answer_keeps_it_unless_again(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    jsonl(tmp_path / "q.jsonl", [record(0, response="Mine."), question(1)])
    asking = ("generate", "q.jsonl", "--model", uri(server), "--out", "a.jsonl")
    assert cli(*asking).status == 0
    first, second = lines(tmp_path / "a.jsonl")
    assert first["response"] == "Mine."
    assert server.stats()["received"] == 1
    assert cli(*asking, "--again").status == 0
    assert server.stats()["received"] == 2
    first, again = lines(tmp_path / "a.jsonl")
    assert first["response"].startswith("Reply ")
    assert again == second


def test_repeats_are_calls_of_their_own_and_ids_of_their_own(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 2)
    asking = ("generate", "q.jsonl", "--model", uri(server), "--repeats", "5")
    for out in ("a.jsonl", "b.jsonl"):
        assert cli(*asking, "--temperature", "1", "--out", out).status == 0
    assert server.stats()["received"] == 10
    ids = [f"q{i}#{repeat}" for i in range(2) for repeat in range(1, 6)]
    assert [row["id"] for row in lines(tmp_path / "a.jsonl")] == ids


def test_a_prompt_of_ones_own(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    jsonl(tmp_path / "q.jsonl", [{"question": "{{ 7 * 7 }}?", "documents": ["{% raw %}"]}])
    (tmp_path / "mine.jinja").write_text(
        "{# version 3 #}Q: {{ question }} {{ sample.documents[0].text }}"
    )
    said = cli("generate", "q.jsonl", "--model", uri(server), "--prompt", "mine.jinja",
               "--out", "a.jsonl")  # fmt: skip
    assert said.status == 0
    assert server.requests()[0]["body"]["messages"][0]["content"] == "Q: {{ 7 * 7 }}? {% raw %}"


FAULTY_PROMPTS = [
    ("a\n{% for %}", "mine.jinja:2: "),
    ("{{ unknown }}", "'unknown' is undefined"),
    ("{{ sample.nothing }}", "nothing"),
    ("{{ 1 / 0 }}", "division by zero"),
    ("{{ question() }}", "not callable"),
    ("{% include 'x' %}", "mine.jinja:1: TypeError"),
    ("{{ ''.__class__.__mro__ }}", "unsafe"),
    (b"\xff\xfe", "not UTF-8"),
]


@pytest.mark.parametrize(("text", "words"), FAULTY_PROMPTS)
@pytest.mark.parametrize("verb", ["generate", "score"])
def test_a_prompt_with_a_fault_is_named_before_anything_is_asked(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    text: str | bytes,
    words: str,
    verb: str,
) -> None:
    questions(tmp_path / "q.jsonl", 3)
    (tmp_path / "mine.jinja").write_bytes(text if isinstance(text, bytes) else text.encode())
    said = cli(verb, "q.jsonl", "--model", uri(server), "--prompt", "mine.jinja", "--out", "out")
    assert said.status == 2
    assert words in said.err
    assert server.stats()["received"] == 0
    assert not (tmp_path / "out").exists()


def test_faults_of_the_input_are_named_with_file_line_and_field(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    rows = [question(0), {"id": "x"}, {"question": "No documents?"}, question(3, documents=7)]
    jsonl(tmp_path / "q.jsonl", rows)
    asking = ("generate", "q.jsonl", "--model", uri(server), "--style", "rag", "--out", "a.jsonl")
    said = cli(*asking)
    assert said.status == 2
    assert "q.jsonl:2: question: is missing" in said.err
    assert "q.jsonl:3: documents: is missing or empty" in said.err
    assert "q.jsonl:4: documents: expected a list of documents, got 7" in said.err
    assert server.stats()["received"] == 0
    assert not (tmp_path / "a.jsonl").exists()
    assert cli(*asking, "--skip-bad").status == 0
    assert [row["id"] for row in lines(tmp_path / "a.jsonl")] == ["q0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--style", "rags"], "unknown style 'rags'; did you mean rag"),
        (["--style", "icl"], "needs examples (--examples FILE)"),
        (["--examples", "unanswered.jsonl"], "example 1 (q0): has no response"),
        (["--examples", "faulty.jsonl"], "faulty.jsonl:1: question: is missing"),
        (["--examples", "none.jsonl"], "none.jsonl: no such file"),
        (["--prompt", "none.jinja"], "trustassay: none.jinja: No such file"),
        (["--prompt", "none.jinja"], "none.jinja"),
        (["--repeats", "0"], "--repeats"),
        (["--out", "."], "is a folder"),
        (["--out", "q.jsonl/a.jsonl"], "q.jsonl"),
        (["--budget", "1usd"], "needs the price of openai:test@"),
        (["--model", "openia:x"], "did you mean openai"),
        (["--model", "openai:"], "needs a model"),
        (["--model", "openai:x@localhost:1"], "needs http:// or https:// after the @"),
    ],
)
def test_bad_arguments_are_2_and_nothing_is_asked(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    arguments: list[str],
    words: str,
) -> None:
    questions(tmp_path / "q.jsonl", 2)
    questions(tmp_path / "unanswered.jsonl", 1)
    jsonl(tmp_path / "faulty.jsonl", [{"response": "x"}])
    before = sorted(tmp_path.rglob("*"))
    said = cli("generate", "q.jsonl", "--model", uri(server), "--out", "a.jsonl", *arguments)
    assert said.status == 2
    assert words in said.err
    assert server.stats()["received"] == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_not_answered_is_left_out_and_asked_for_again(cli: Cli, tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 30)
    with LlmServer(die_after=12) as mortal:
        model = uri(mortal, patience=0.3, concurrency=2)
        asking = ("generate", "q.jsonl", "--model", model, "--out", "a.jsonl")
        said = cli(*asking)
        assert said.status == 0
        assert "so no more requests are sent" in said.err
        written = len(lines(tmp_path / "a.jsonl"))
        assert written == 12
        assert "18 answers failed; run the same command again to retry only these" in said.err
        mortal.revive()
        mortal.reset()
        assert cli(*asking).status == 0
        assert mortal.stats()["received"] == 18
    assert [row["id"] for row in lines(tmp_path / "a.jsonl")] == [f"q{i}" for i in range(30)]


def test_where_nothing_is_answered_an_older_file_stays(cli: Cli, tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 3)
    (tmp_path / "a.jsonl").write_text("mine\n")
    with LlmServer(require_key="sk-0123456789") as closed:
        said = cli(
            "generate", "q.jsonl", "--model", uri(closed), "--repeats", "2", "--out", "a.jsonl"
        )
    assert said.status == 1
    assert "no question was answered, so a.jsonl was not written" in said.err
    assert "6 answers failed;" in said.err
    assert "q2#2: openai:test@" in said.err
    assert (tmp_path / "a.jsonl").read_text() == "mine\n"
    assert not list(tmp_path.glob(".*part"))


@pytest.mark.slow
def test_killed_and_started_again_it_asks_for_the_rest(tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 60)
    with LlmServer(latency_ms=50) as one:
        asking = command("generate", "q.jsonl", "--model", uri(one, concurrency=4))
        asking += ["--out", "a.jsonl"]
        process = subprocess.Popen(asking, cwd=tmp_path, stderr=subprocess.DEVNULL)
        while one.stats()["answered"] < 15:
            time.sleep(0.005)
        process.kill()
        process.wait()
        assert not (tmp_path / "a.jsonl").exists()
        subprocess.run(asking, cwd=tmp_path, check=True, capture_output=True)
        assert one.stats()["received"] <= 64
    assert len(lines(tmp_path / "a.jsonl")) == 60


def test_no_questions(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("")
    said = cli(
        "generate", "q.jsonl", "--model", "openai:x@http://127.0.0.1:9/v1", "--out", "a.jsonl"
    )
    assert said.status == 2
    assert "q.jsonl: contains no records" in said.err


def test_so_many_calls_at_once_as_the_command_says(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    """Whatever the URI says: the command's word goes before it, and that is told."""
    questions(tmp_path / "q.jsonl", 60)
    server.change(latency_ms=20)
    model = uri(server, concurrency=300)
    said = cli(*ASKED, "--model", model, "--calls-at-once", "8")
    assert said.status == 0
    assert server.stats()["at_once"] == 8
    assert f"8 overrides the larger concurrency=300 of openai:test@{server.base_url}" in said.err
    assert "concurrency=300" in said.err


@pytest.mark.slow
def test_without_a_word_of_the_command_so_many_as_the_uri_says(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 400)
    server.change(latency_ms=200)
    said = cli(*ASKED, "--model", uri(server, concurrency=90))
    assert said.status == 0
    assert "concurrency" not in said.err
    assert server.stats()["at_once"] == 90
