"""``score`` where a model answers first: nothing is asked twice, nothing is lost, nothing leaks."""

# ruff: noqa: F401 - fixtures are imported, and arguments bear their names

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import trustassay
from tests.cli.conftest import Cli
from tests.cli.serving import (
    LEXICAL,
    one_server,
    question,
    questions,
    server,
    uri,
)
from tests.llm_server import LlmServer
from tests.support import command, jsonl, lines, results, run_command, summary_of
from trustassay.calls.store import CallStore


def assessed(folder: Path) -> list[dict[str, Any]]:
    return lines(folder / "assessments.jsonl")


# ---- answers, in order, once ----


def test_questions_are_answered_in_order_and_scored(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    rows = [question(i) for i in range(40)]
    rows[7]["response"] = "Mine [1]."
    jsonl(tmp_path / "q.jsonl", rows)
    said = cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    assert said.status == 0
    assert "of 40 questions." in said.err
    assert "not answered: error" not in said.err
    assert "39 calls" in said.err
    assert "price unknown" in said.err
    samples = lines(tmp_path / "run" / "samples.jsonl")
    assert [s["id"] for s in samples] == [row["id"] for row in rows]
    assert samples[7]["response"] == "Mine [1]."
    assert all(s["response"].startswith("Reply ") for i, s in enumerate(samples) if i != 7)
    assert all(s["model"] == uri(server) for i, s in enumerate(samples) if i != 7)
    assert [a["id"] for a in assessed(tmp_path / "run")] == [row["id"] for row in rows]
    assert server.stats()["received"] == 39
    for request, row in zip(server.requests()[:3], rows, strict=False):
        assert row["question"] in request["raw"]


def test_a_second_run_asks_nothing_and_costs_nothing(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 10)
    asking = ("score", "q.jsonl", "--model", uri(server), *LEXICAL)
    assert cli(*asking, "--out", "one").status == 0
    assert server.stats()["received"] == 10
    for folder in ("one", "two"):
        assert cli(*asking, "--out", folder).status == 0
        assert server.stats()["received"] == 10
    used = summary_of(tmp_path / "two")["usage"]["models"][uri(server)]
    assert (used["calls"], used["cached"], used["prompt_tokens"]) == (0, 10, 0)
    assert assessed(tmp_path / "one") == assessed(tmp_path / "two")
    changes = (["--temperature", "0.5"], ["--max-tokens", "299"], ["--style", "rag"])
    for changed in (*changes, ["--logprobs", "0"]):
        server.reset()
        assert cli(*asking, *changed, "--out", "-".join(changed)).status == 0
        assert server.stats()["received"] == 10
    server.reset()
    assert cli(*asking, "--out", "three", "--cache", "off").status == 0
    assert server.stats()["received"] == 10


def test_the_probabilities_of_an_answers_tokens_can_be_asked_for_and_scored_later(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 2)
    asking = ("generate", "q.jsonl", "--model", uri(server))
    for number, most in (("0", 0), ("2", 2)):
        assert cli(*asking, "--logprobs", number, "--out", "a.jsonl").status == 0
        for row in map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines()):
            tokens = row["token_logprobs"]
            assert "".join(token for token, *_ in tokens).strip() == row["response"]
            assert all(logprob <= 0 for _, logprob, *_ in tokens)
            assert [len(rest[0]) for _, _, *rest in tokens if rest] == [2] * len(tokens) * (
                most > 0
            )
    server.reset()
    said = cli("score", "a.jsonl", "--metric", "uncertainty:parts=tokens", "--out", "run")
    assert said.status == 0, said.err
    assert {"nll", "mean_entropy"} <= set(assessed(tmp_path / "run")[0]["parts"])
    assert server.stats()["received"] == 0
    assert cli(*asking, "--out", "b.jsonl").status == 0
    assert "token_logprobs" not in (tmp_path / "b.jsonl").read_text()
    server.change(reply="text:<think>Well.</think>Yes.")
    said = cli(*asking, "--logprobs", "0", "--out", "c.jsonl", "--cache", "off")
    assert "2 of 2 answers have no log-probabilities" in said.out + said.err
    assert "token_logprobs" not in (text := (tmp_path / "c.jsonl").read_text())
    assert '"response": "Yes."' in text
    said = cli(*asking, "--logprobs", "21", "--out", "a.jsonl")
    assert (said.status, "--logprobs" in said.err) == (2, True)


def test_the_cache_may_lie_anywhere_and_may_be_damaged(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 2)
    asking = ("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run", "--cache")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "calls.sqlite").write_bytes(b"no database at all, but long enough" * 40)
    said = cli(*asking, "bad")
    assert said.status == 2
    assert "bad/calls.sqlite: is not a store of model calls" in said.err
    with sqlite3.connect(tmp_path / "later.sqlite") as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    (tmp_path / "later").mkdir()
    (tmp_path / "later.sqlite").rename(tmp_path / "later" / "calls.sqlite")
    said = cli(*asking, "later")
    assert said.status == 2
    assert "made by another version of trustassay" in said.err
    assert server.stats()["received"] == 0
    assert cli(*asking, "a/new/one").status == 0
    assert (tmp_path / "a" / "new" / "one" / "calls.sqlite").exists()


# ---- faults ----


@pytest.mark.slow
def test_through_faults_every_sample_is_scored_and_little_is_asked_twice(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    server.change(
        seed=5,
        retry_after_s=0,
        share_429=0.05,
        share_500=0.02,
        share_dropped=0.01,
        share_malformed=0.01,
    )
    n = 500
    questions(tmp_path / "q.jsonl", n)
    said = cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    assert said.status == 0
    assert f"of {n} questions." in said.err
    assert "not answered: error" not in said.err
    assert "tries; failed:" in said.err
    stats = server.stats()
    assert n < stats["received"] <= 1.15 * n
    assert {"429", "500", "dropped", "malformed"} <= stats["by_status"].keys()
    assert stats["answered"] == n
    assert not server.asked_again()
    store = CallStore(tmp_path / "run" / "calls.sqlite")
    assert store.counts() == {("chat", uri(server)): n}
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("die", ["close", "503"])
def test_an_endpoint_that_dies_and_comes_back(cli: Cli, tmp_path: Path, die: str) -> None:
    with LlmServer(die_after=25, die=die) as mortal:
        dies_and_comes_back(cli, tmp_path, mortal)


def dies_and_comes_back(cli: Cli, tmp_path: Path, mortal: LlmServer) -> None:
    questions(tmp_path / "q.jsonl", 60)
    model = uri(mortal, patience=0.4, concurrency=4)
    asking = ("score", "q.jsonl", "--model", model, *LEXICAL, "--out", "run")
    said = cli(*asking)
    assert said.status == 0
    failed = int(re.findall(r"(\d+) scores could not be computed:\n", said.err)[0])
    assert 30 <= failed <= 35
    assert f"  not answered: error ({failed})\n" in said.err
    assert "no response: " in said.err
    errors = {a["id"]: a["error"] for a in assessed(tmp_path / "run") if a["error"]}
    assert len(errors) == failed
    assert all(error.startswith("no response: openai:test@") for error in errors.values())
    mortal.revive()
    mortal.reset()
    said = cli(*asking)
    assert said.status == 0
    assert "of 60 questions." in said.err
    assert "not answered: error" not in said.err
    assert mortal.stats()["received"] == failed
    whole = cli("score", "q.jsonl", "--model", model, *LEXICAL, "--out", "whole")
    assert whole.status == 0
    assert assessed(tmp_path / "run") == assessed(tmp_path / "whole")


def test_a_closed_door_is_knocked_at_by_few(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    questions(tmp_path / "q.jsonl", 300)
    server.change(require_key="sk-right-0123456789")
    said = cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    assert said.status == 1
    assert "401" in said.err
    assert "OPENAI_API_KEY is not set" in said.err
    assert server.stats()["received"] <= 64
    monkeypatch.setenv("OPENAI_API_KEY", "sk-right-0123456789")
    assert cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run").status == 0


# ---- the key ----


@pytest.mark.slow
def test_the_key_is_nowhere_even_if_the_server_repeats_it(tmp_path: Path) -> None:
    key = "sk-secret-ABCDEF0123456789"
    questions(tmp_path / "q.jsonl", 4)
    environment = {"OPENAI_API_KEY": key, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
    with LlmServer(require_key=key, reply=f"text:Your key is {key}.") as one:
        said = run_command(
            "score", "q.jsonl", "--model", uri(one), *LEXICAL, "--out", "good", cwd=tmp_path,
            **environment,
        )  # fmt: skip
        assert said.returncode == 1  # what it replies is no claim, so nothing could be judged
        assert lines(tmp_path / "good" / "samples.jsonl")[0]["response"] == "Your key is [key]."
    with LlmServer(require_key="another") as one:
        bad = run_command(
            "score", "q.jsonl", "--model", uri(one), *LEXICAL, "--out", "bad", cwd=tmp_path,
            **environment,
        )  # fmt: skip
        assert bad.returncode == 1
        assert "401" in bad.stderr
    for text in (said.stdout, said.stderr, bad.stdout, bad.stderr):
        assert key not in text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert key.encode() not in path.read_bytes(), path


# ---- killed ----


def stored_questions(folder: Path) -> set[str]:
    """Return the prompts among a run's stored calls, also those in the journal of a killed one."""
    with sqlite3.connect(folder / "calls.sqlite") as calls:
        rows = calls.execute("SELECT request FROM calls WHERE capability = 'chat'").fetchall()
    calls.close()
    return {json.loads(json.loads(request)[0])["messages"][0][1] for (request,) in rows}


def asked_questions(server: LlmServer) -> list[str]:
    return [request["body"]["messages"][0]["content"] for request in server.requests()]


@pytest.mark.slow
def test_killed_at_random_moments_no_stored_call_is_asked_again(tmp_path: Path) -> None:
    n, at_once, kills = 120, 6, 3
    questions(tmp_path / "q.jsonl", n)
    rng = random.Random(11)
    stored: set[str] = set()
    received = 0
    with LlmServer(latency_ms=10, keep=1000) as one:
        model = uri(one, concurrency=at_once)
        asking = command("score", "q.jsonl", "--model", model, *LEXICAL, "--out", "run")
        for kill in range(kills + 1):
            one.reset()
            process = subprocess.Popen(asking, cwd=tmp_path, stderr=subprocess.DEVNULL)
            goal = rng.randint(5, 30)
            while kill < kills and one.stats()["answered"] < goal:
                assert process.poll() is None
                time.sleep(rng.random() / 50)
            if kill < kills:
                process.kill()
            process.wait()
            assert not stored & set(asked_questions(one))
            received += one.stats()["received"]
            stored = stored_questions(tmp_path / "run")
        assert process.returncode == 0
        assert len(stored) == n
        assert n <= received <= n + kills * at_once
        other = [*asking[:-1], "unbroken", "--cache", "off"]
        assert subprocess.run(other, cwd=tmp_path, check=True, capture_output=True)
    assert results(tmp_path / "run") == results(tmp_path / "unbroken")
    samples = [(tmp_path / run / "samples.jsonl").read_bytes() for run in ("run", "unbroken")]
    assert samples[0] == samples[1]


@pytest.mark.slow
def test_interrupted_by_ctrl_c_nothing_is_lost(tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 60)
    with LlmServer(latency_ms=30) as one:
        asking = command(
            "score", "q.jsonl", "--model", uri(one, concurrency=4), *LEXICAL, "--out", "run"
        )
        process = subprocess.Popen(asking, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while one.stats()["answered"] < 20:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "interrupted; run the same command again" in said
        assert "Traceback" not in said
        assert "never retrieved" not in said
        stored = stored_questions(tmp_path / "run")
        assert len(stored) >= 20 - 4
        one.reset()
        assert subprocess.run(asking, cwd=tmp_path, check=True, capture_output=True)
        assert not stored & set(asked_questions(one))
        assert one.stats()["received"] == 60 - len(stored)


# ---- budgets ----


def test_a_budget_in_tokens_is_kept_and_a_larger_one_goes_on(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 60)
    asking = ["score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run"]
    asking += ["--max-tokens", "50"]
    said = cli(*asking, "--budget", "4000")
    assert said.status == 0
    assert "the budget of 4,000 tokens is reached; to continue, run the same command" in said.err
    used = summary_of(tmp_path / "run")["usage"]["models"][uri(server)]
    assert 1500 < used["prompt_tokens"] + used["reply_tokens"] <= 4000
    first = server.stats()["received"]
    assert 0 < first < 60
    said = cli(*asking, "--budget", "4000")
    assert said.status == 0
    used = summary_of(tmp_path / "run")["usage"]["models"][uri(server)]
    assert used["prompt_tokens"] + used["reply_tokens"] <= 4000
    assert cli(*asking, "--budget", "1m").status == 0
    assert server.stats()["received"] == 60
    assert not server.asked_again()


def test_a_budget_in_dollars_needs_a_price_before_anything_is_begun(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 20)
    asking = ["score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run"]
    said = cli(*asking, "--budget", "1usd")
    assert said.status == 2
    assert (
        f"a budget in US dollars needs the price of {uri(server)}; add it with --prices" in said.err
    )
    assert not (tmp_path / "run").exists()
    assert server.stats()["received"] == 0
    prices = {"test": {"prompt": 1000, "reply": 2000}}
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    said = cli(*asking, "--prices", "prices.json", "--budget", "$0.9", "--max-tokens", "50")
    assert said.status == 0
    assert "the budget of 0.9 USD is reached" in said.err
    used = summary_of(tmp_path / "run")["usage"]["models"][uri(server)]
    assert 0.1 < used["usd"] <= 0.9
    assert used["usd"] == pytest.approx(
        (1000 * used["prompt_tokens"] + 2000 * used["reply_tokens"]) / 1e6
    )


@pytest.mark.parametrize("option", [("--budget", "much"), ("--prices", "none.json")])
def test_options_of_spending_with_a_fault(
    cli: Cli, tmp_path: Path, option: tuple[str, str]
) -> None:
    questions(tmp_path / "q.jsonl", 1)
    said = cli("score", "q.jsonl", *option)
    assert said.status == 2
    assert option[1] in said.err


# ---- hostile replies ----

HOSTILE = (
    "<script>alert(1)</script> {{ 7*7 }} {% raw %} \x00\x1b[31m \ud800 \u2028 \x85 ]]> &amp; é"
)


def test_hostile_replies_are_kept_as_text(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    server.change(reply="text:" + HOSTILE)
    questions(tmp_path / "q.jsonl", 2)
    said = cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    assert said.status == 0
    kept = lines_of(tmp_path / "run" / "samples.jsonl")[0]["response"]
    assert kept == HOSTILE.replace("\ud800", "\ufffd")
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    assert "{{ 7*7 }}" in page
    assert cli("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run").status == 0
    out = ("generate", "q.jsonl", "--model", uri(server), "--out", "a.jsonl")
    assert cli(*out).status == 0
    assert cli("score", "a.jsonl", *LEXICAL, "--out", "again").status == 0
    again = lines_of(tmp_path / "again" / "samples.jsonl")[0]["response"]
    assert again == HOSTILE.replace("\ud800", "\ufffd").strip()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_a_reply_of_a_megabyte(cli: Cli, tmp_path: Path, server: LlmServer) -> None:
    server.change(reply="text:" + "x" * 900_000)
    questions(tmp_path / "q.jsonl", 2)
    asking = ("score", "q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    said = cli(*asking)
    assert (said.status, said.err.count("2 of 2 samples failed: too long to assess")) == (1, 1)
    said = cli(*asking, "--longest-answer", "1000000")
    assert said.status == 0
    assert len(lines_of(tmp_path / "run" / "samples.jsonl")[1]["response"]) == 900_000


# ---- scored again ----


def test_rescore_needs_no_model_any_more(cli: Cli, tmp_path: Path) -> None:
    questions(tmp_path / "q.jsonl", 5)
    with LlmServer() as gone:
        said = cli("score", "q.jsonl", "--model", uri(gone), *LEXICAL, "--out", "run")
        assert said.status == 0
    said = cli("rescore", "run", "--metric", "grounding:threshold=0.8", "--out", "new")
    assert said.status == 0
    assert "of 5 questions." in said.err


# ---- from Python ----


def test_prompts_arrive_byte_for_byte(server: LlmServer, tmp_path: Path) -> None:
    prompts = ["", " ", "\x00\x01\x7f", "\r\n\t\u2028", "x" * 1_000_000, "\U0001f600 é {{ a }} %s"]
    model = trustassay.chat(uri(server), cache=tmp_path)
    server.change(reply="echo")
    assert [reply.text for reply in model.ask(prompts, may_be_empty=True)] == prompts
    sent = [request["body"]["messages"][0]["content"] for request in server.requests()]
    assert Counter(sent) == Counter(prompts)
    server.reset()
    assert [reply.text for reply in model.ask(prompts, may_be_empty=True)] == prompts
    assert server.stats()["received"] == 0


def test_thirty_repeats_are_thirty_calls_and_a_second_run_is_none(
    server: LlmServer,
    tmp_path: Path,
) -> None:
    model = trustassay.chat(uri(server), cache=tmp_path)
    for _ in range(2):
        for repeat in range(30):
            model.ask(["Same?"], temperature=1.0, repeat=repeat)
        model.ask(["Same?", "Same?"], temperature=1.0, prompt="judge/2")
        assert server.stats()["received"] == 31


def test_inside_a_running_event_loop(server: LlmServer) -> None:
    async def notebook() -> None:
        replies = trustassay.chat(uri(server)).ask(["One?", "Two?"])
        assert len(replies) == 2
        assert await trustassay.chat(uri(server)).aask(["One?", "Two?"]) == replies

    asyncio.run(notebook())
    assert server.stats()["received"] == 2


def test_the_users_own_cache_is_never_touched_by_tests() -> None:
    assert "caches" in os.environ["TRUSTASSAY_CACHE"]
