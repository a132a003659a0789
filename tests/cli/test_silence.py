"""Silence, cut answers, reasoning and a missing key, as a user of the commands meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.serving import LEXICAL, one_server, question, questions, server, uri
from tests.llm_server import LlmServer
from tests.support import jsonl, lines, record
from trustassay.backends import http
from trustassay.cli.common import FAILURES_SHOWN

__all__ = ["one_server", "server"]

ANSWER = "Number 1 is odd [1]. Number 1 is large and red [2]."


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_bytes())
    return found


def report(run: Path) -> str:
    return (run / "report.html").read_text(encoding="utf-8")


# Empty replies -----------------------------------------------------------------------------------


def test_empty_answers_have_no_score_and_the_same_command_asks_again(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    server.change(reply="text:")
    jsonl(tmp_path / "q.jsonl", [question(0), question(1), record(2)])
    command = ("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    said = cli(*command)
    assert said.status == 0
    assert "grounding: 2 of 3 samples failed: empty reply" in said.err
    assert "the reply is empty (after 2 tries)" in said.err
    found = summary(tmp_path / "run")
    assert found["faults"] == {"grounding": {"empty": 2}}
    assert found["metrics"]["grounding"]["failed"] == 2
    assert found["usage"]["models"][uri(server)]["calls"] == 4
    assert "grounding: 2 of 3 samples failed: empty reply" in report(tmp_path / "run")
    assert "response" not in lines(tmp_path / "run" / "samples.jsonl")[0]
    server.change(reply=f"text:{ANSWER}")
    said = cli(*command)
    assert said.status == 0
    assert "empty" not in said.err
    assert "faults" not in summary(tmp_path / "run")
    assert summary(tmp_path / "run")["usage"]["models"][uri(server)]["calls"] == 6


def test_generate_counts_what_is_empty_and_writes_none_of_it(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    server.change(reply="text:<think>\nhm\n</think>\n")
    questions(tmp_path / "q.jsonl", FAILURES_SHOWN)
    said = cli("generate", "q.jsonl", "--model", uri(server), "--out", "a.jsonl")
    assert said.status == 1
    assert f"{FAILURES_SHOWN} of {FAILURES_SHOWN} answers were empty" in said.err
    assert "the reply is empty except for its reasoning" in said.err
    assert not (tmp_path / "a.jsonl").exists()


def test_harmonicity_of_silence(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply="text:")
    jsonl(tmp_path / "q.jsonl", [{"question": "Who?"}, {"question": "Where?"}])
    metric = ("--metric", "harmonicity:perturbations=2")
    said = cli("score", "q.jsonl", "--model", uri(server), *metric, "--out", "run")
    assert said.status == 1
    assert "harmonicity: 2 of 2 samples failed: empty reply" in said.err
    assert summary(tmp_path / "run")["metrics"]["harmonicity"]["values"]["mean"] is None
    resamples = [{"question": "Who?", "response": "", "resamples": ["", ""]}]
    jsonl(tmp_path / "r.jsonl", resamples)
    said = cli("score", "r.jsonl", "--metric", "harmonicity", "--out", "recorded")
    assert said.status == 1
    assert "the response is blank" in said.err
    assert "0 of 1 answer could be judged: blank (1)" in report(tmp_path / "recorded")


def test_watch_tells_of_silence(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply="text:")
    jsonl(tmp_path / "log.jsonl", [{"question": "Who?"}])
    said = cli("score", "log.jsonl", "--follow", "--model", uri(server), "--threshold", "0.3",
               "--once", "--out", "run")  # fmt: skip
    assert said.status == 1
    assert "the reply is empty" in said.err
    assert "harmonicity: 1 of 1 samples failed: empty reply" in report(tmp_path / "run")


def test_attack_does_not_climb_on_silence(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply="text:")
    said = cli("papers", "attack", "Who?", "--model", uri(server), "--out", "attack")
    assert said.status == 2
    assert "the reply is empty" in said.err


def test_attack_counts_cut_replies(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply=f"text:{ANSWER}")
    said = cli("papers", "attack", "Who?", "--model", uri(server), "--max-tokens", "2",
               "--steps", "1", "--candidates", "1", "--perturbations", "2",
               "--out", "attack")  # fmt: skip
    assert said.status == 0
    assert "6 of 6 replies were cut at max_tokens" in said.err
    page = (tmp_path / "attack" / "ascent.html").read_text(encoding="utf-8")
    assert "6 of 6 replies were cut at max_tokens" in page


# Cut answers -------------------------------------------------------------------------------------


def test_cut_answers_are_counted_wherever_they_go(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    server.change(reply=f"text:{ANSWER}")
    questions(tmp_path / "q.jsonl", 2)
    asked = ("--model", uri(server), "--max-tokens", "4")
    said = cli("score", "q.jsonl", *asked, *LEXICAL, "--out", "run")
    assert said.status == 0
    words = "2 of 2 answers were cut at max_tokens"
    assert words in said.err
    assert words in report(tmp_path / "run")
    assert summary(tmp_path / "run")["answers"] == {"cut": 2}
    (tmp_path / "run" / "summary.json").unlink()  # as a run that was killed at its very end
    assert words in cli("score", "q.jsonl", *asked, *LEXICAL, "--out", "run").err

    said = cli("generate", "q.jsonl", *asked, "--out", "a.jsonl")
    assert "2 of 2 answers were cut at 4 tokens; allow more with --max-tokens" in said.err
    assert [line["response_cut"] for line in lines(tmp_path / "a.jsonl")] == [True, True]
    assert words in cli("score", "a.jsonl", *LEXICAL, "--out", "later").err
    cli("generate", "a.jsonl", "--model", uri(server), "--again", "--out", "b.jsonl")
    assert not any("response_cut" in line for line in lines(tmp_path / "b.jsonl"))


def test_harmonicity_counts_cut_replies(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply=f"text:{ANSWER}")
    jsonl(tmp_path / "q.jsonl", [{"question": "Who?"}])
    metric = "harmonicity:perturbations=3,max_tokens=2"
    said = cli("score", "q.jsonl", "--model", uri(server), "--metric", metric, "--out", "run")
    assert "harmonicity: 4 of 4 replies were cut at max_tokens" in said.err
    assert summary(tmp_path / "run")["metrics"]["harmonicity"]["values"]["cut"] == 4
    assert "harmonicity: 4 of 4 replies were cut at max_tokens" in report(tmp_path / "run")


# Reasoning ---------------------------------------------------------------------------------------


def test_reasoning_is_kept_out_of_the_response_and_in_the_store(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    server.change(reply=f"text:<think>\nIs it odd?\n</think>\n\n{ANSWER}")
    questions(tmp_path / "q.jsonl", 1)
    assert cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run").status == 0
    (sample,) = lines(tmp_path / "run" / "samples.jsonl")
    assert sample["response"] == ANSWER
    replayed = ("score", "q.jsonl", "--model", "replay:run", *LEXICAL, "--out", "replayed")
    assert cli(*replayed).status == 0
    (sample,) = lines(tmp_path / "replayed" / "samples.jsonl")
    assert sample["response"] == ANSWER
    assert b"Is it odd?" in (tmp_path / "run" / "calls.sqlite").read_bytes()


# Blank responses ---------------------------------------------------------------------------------

DOCUMENTS = '["Number 0 is odd.", "Number 0 is large."]'


def test_blank_responses_read_alike_from_json_and_csv(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    rows = [("q0", ""), ("q1", "Number 1 is odd [1].")]
    quoted = DOCUMENTS.replace('"', '""')
    table = "".join(f'{name},What?,{text},"{quoted}"\n' for name, text in rows)
    (tmp_path / "x.csv").write_text(f"id,question,response,documents\n{table}")
    records = [
        {"id": name, "question": "What?", "response": text, "documents": json.loads(DOCUMENTS)}
        for name, text in rows
    ]
    jsonl(tmp_path / "x.jsonl", records)
    summaries = []
    for kind in ("csv", "jsonl"):
        said = cli("score", f"x.{kind}", *LEXICAL, "--out", kind)
        assert said.status == 0
        assert "  not answered: blank (1)\n" in said.err
        summaries.append(summary(tmp_path / kind) | {"seconds": 0})
    assert summaries[0] == summaries[1]
    server.change(reply=f"text:{ANSWER}")
    for kind in ("csv", "jsonl"):
        said = cli("score", f"x.{kind}", "--model", uri(server), *LEXICAL, "--out", f"{kind}-asked")
        assert said.status == 0
        responses = [one["response"] for one in lines(tmp_path / f"{kind}-asked" / "samples.jsonl")]
        assert responses == [ANSWER, "Number 1 is odd [1]."]
    assert server.stats()["received"] == 1  # the second was in the cache


# Large replies -----------------------------------------------------------------------------------


def test_a_reply_beyond_the_limit_is_a_failure_and_not_asked_for_again(
    cli: Cli, tmp_path: Path, server: LlmServer
) -> None:
    server.change(reply="text:" + "x" * 60_000)
    questions(tmp_path / "q.jsonl", 2)
    model = uri(server, max_reply="50kB")
    said = cli("score", "q.jsonl", "--model", model, *LEXICAL, "--out", "run")
    assert said.status == 1
    assert "the reply has more than 50,000 bytes (allow more with ?max_reply=)" in said.err
    assert "grounding: 2 of 2 samples failed: the reply was too large" in said.err
    assert server.stats()["received"] == 2
    assert summary(tmp_path / "run")["faults"] == {"grounding": {"oversized": 2}}


# Keys and names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-4o-mini", "OPENAI_API_KEY"),
        ("openai:gpt-4o-mini@https://api.openai.com/v1/", "OPENAI_API_KEY"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-x", "GEMINI_API_KEY"),
        ("openai:gpt-4o-mini?key=MY_OWN_KEY", "MY_OWN_KEY"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("score", "q.jsonl", "--metric", "grounding", *LEXICAL, "--out", "out"),
        ("score", "q.jsonl", "--metric", "harmonicity", "--out", "out"),
        ("generate", "q.jsonl", "--out", "out"),
        ("score", "q.jsonl", "--follow", "--once", "--threshold", "0.5", "--out", "out"),
    ],
    ids=["grounding", "harmonicity", "generate", "watch"],
)
def test_without_a_key_nothing_is_started(
    cli: Cli, tmp_path: Path, command: tuple[str, ...], model: str, variable: str
) -> None:
    questions(tmp_path / "q.jsonl", 1)
    said = cli(*command, "--model", model)
    assert said.status == 2
    assert f"needs a key; set {variable}, or name another variable" in said.err
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".cache"] == ["q.jsonl"]


def test_attack_and_an_embedder_need_their_keys(cli: Cli, tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 1)
    said = cli("papers", "attack", "Who?", "--model", "openai:m", "--out", "out")
    assert (said.status, "set OPENAI_API_KEY" in said.err) == (2, True)
    said = cli("score", "q.jsonl", "--metric", "harmonicity", "--embedder", "openai:e", "--out",
               "out", "--model", "openai:m@http://127.0.0.1:9/v1")  # fmt: skip
    assert (said.status, "set OPENAI_API_KEY" in said.err) == (2, True)
    jsonl(tmp_path / "r.jsonl", [record(0)])
    said = cli(
        "papers", "cite", "r.jsonl", "--by", "embedding", "--embedder", "openai:e", "--out", "out"
    )
    assert (said.status, "set OPENAI_API_KEY" in said.err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_what_asks_nobody_needs_no_key(
    cli: Cli, tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions(tmp_path / "q.jsonl", 1)
    jsonl(tmp_path / "r.jsonl", [record(0)])
    hosted = ("--model", "openai:gpt-4o-mini", *LEXICAL)
    assert cli("plan", "q.jsonl", *hosted).status == 0
    assert cli("score", "r.jsonl", *hosted, "--out", "answered").status == 0
    assert cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "local").status == 0
    # A run of the service's own address, whose replies are stored, is scored again without a key.
    monkeypatch.setitem(http.SERVICES, "openai", (server.base_url, ("OPENAI_API_KEY",)))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert cli("score", "q.jsonl", "--model", "openai:m", *LEXICAL, "--out", "run").status == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    rescored = ("rescore", "run", "--metric", "grounding:threshold=0.8", "--out", "new")
    assert cli(*rescored).status == 0
    assert cli("score", "q.jsonl", "--model", "openai:m", *LEXICAL, "--out", "again").status == 0


@pytest.mark.parametrize(
    ("model", "offer"),
    [
        ("gpt-4o-mini", "openai:gpt-4o-mini"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("Qwen/Qwen3-0.6B", "hf:Qwen/Qwen3-0.6B"),
        ("http://127.0.0.1:8000/v1", "openai:MODEL@http://127.0.0.1:8000/v1"),
        ("opnai:gpt-4o", "openai"),
    ],
)
def test_a_name_without_its_scheme(cli: Cli, tmp_path: Path, model: str, offer: str) -> None:
    questions(tmp_path / "q.jsonl", 1)
    said = cli("score", "q.jsonl", "--model", model, *LEXICAL, "--out", "run")
    assert said.status == 2
    assert f"did you mean {offer}?" in said.err
