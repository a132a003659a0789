"""``trustassay plan`` and ``score --dry-run``: what would be asked, and nothing is."""

# ruff: noqa: F401 - fixtures are imported, and arguments bear their names

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.serving import LEXICAL, one_server, question, questions, server, uri
from tests.llm_server import LlmServer
from tests.support import jsonl, records
from trustassay import score


def test_it_asks_nothing_writes_nothing_and_counts_what_is_at_hand(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions(tmp_path / "q.jsonl", 12)
    (tmp_path / "p.json").write_text('{"test": {"prompt": 1000, "reply": 2000}}')
    asking = ("q.jsonl", "--model", uri(server), *LEXICAL, "--prices", "p.json")
    before = sorted(tmp_path.rglob("*"))
    said = cli("plan", *asking, "--json")
    assert said.status == 0
    assert "no call was made" in said.err
    assert sorted(tmp_path.rglob("*")) == before
    assert server.stats()["received"] == 0
    found = json.loads(said.out)
    (answering,) = [part for part in found["parts"] if part["capability"] == "chat"]
    assert (answering["calls"], answering["cached"]) == (12, 0)
    assert answering["reply_tokens"] == 1200
    usd = (1000 * answering["prompt_tokens"] + 2000 * answering["reply_tokens"]) / 1e6
    assert answering["usd"] == found["usd"]
    assert abs(answering["usd"] - usd) < 1e-9
    assert sorted(tmp_path.rglob("*")) == before

    assert cli("score", *asking, "--limit", "5", "--out", "run").status == 0
    found = json.loads(cli("plan", *asking, "--json").out)
    (answering,) = [part for part in found["parts"] if part["capability"] == "chat"]
    assert (answering["calls"], answering["cached"]) == (12, 5)
    assert answering["measured"]
    monkeypatch.setenv("TRUSTASSAY_CACHE", "off")
    off = json.loads(cli("plan", *asking, "--json").out)
    assert next(part for part in off["parts"] if part["capability"] == "chat")["cached"] == 0
    assert server.stats()["received"] == 5


def test_it_equals_what_the_run_then_asks(cli: Cli, tmp_path: Path) -> None:
    jsonl(tmp_path / "a.jsonl", records(9))
    found = json.loads(cli("plan", "a.jsonl", *LEXICAL, "--json").out)
    (part,) = found["parts"]
    assert (part["metric"], part["capability"], part["cached"]) == ("grounding", "entailment", 0)
    run = score(tmp_path / "a.jsonl", metrics="grounding", entailer="lexical")
    assert part["calls"] == run.outcome.counts["entailment"].computed > 0


def test_an_unknown_price_is_said_to_be_unknown(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 2)
    said = cli("plan", "q.jsonl", "--model", uri(server), *LEXICAL, "--json")
    assert "unknown" in said.err
    assert json.loads(said.out)["usd"] is None
    assert "log-probabilities" not in said.err
    (line,) = [
        line
        for line in cli(
            "plan", "q.jsonl", "--model", uri(server), *LEXICAL, "--logprobs", "5"
        ).err.splitlines()
        if "log-probabilities" in line
    ]
    assert re.fullmatch(r"  log-probabilities add [\d,.]+ kB to the store, and no .*", line)


def test_what_a_run_then_takes_lies_in_the_range_and_the_next_is_learnt(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    """Replies are short, where they might be 300 tokens long."""
    jsonl(tmp_path / "a.jsonl", [question(i) for i in range(40)])
    jsonl(tmp_path / "b.jsonl", [question(i) for i in range(100, 160)])
    (tmp_path / "p.json").write_text('{"test": {"prompt": 1000, "reply": 20000}}')
    options = ("--model", uri(server), *LEXICAL, "--prices", "p.json", "--json")
    seen = []
    for name in ("a.jsonl", "b.jsonl"):
        said = cli("plan", name, *options)
        (part,) = [p for p in json.loads(said.out)["parts"] if p["capability"] == "chat"]
        assert part["basis"] in said.err
        taken = json.loads(cli("score", name, *options).out)["usage"]["models"][part["backend"]]
        for amount in ("prompt_tokens", "reply_tokens", "usd"):
            low, high = part[f"{amount}_range"]
            assert low <= taken[amount] <= high, amount
        seen.append((part, said.err))
    (guessed, first), (learnt, second) = seen
    assert (guessed["guess"], learnt["guess"]) == (True, False)
    assert guessed["basis"] == "guess: no reply of this model is stored yet"
    assert learnt["basis"] == "based on 40 stored replies"
    assert "(a guess); no call was made" in first
    assert "guess" not in second
    low, high = learnt["reply_tokens_range"]
    assert high < 2 * low
    assert learnt["usd_range"][1] < guessed["usd_range"][1] / 10


@pytest.mark.slow
def test_figures_are_whole_where_the_terminal_is_narrow(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions(tmp_path / "q.jsonl", 3000)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "40")
    said = cli("plan", "q.jsonl", "--model", uri(server), *LEXICAL)
    assert "…" not in said.err
    assert "reply tokens: 3,000 to 900,000" in said.err


def test_it_may_look_at_a_run_that_is_under_way_or_done(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    questions(tmp_path / "q.jsonl", 3)
    asking = ("q.jsonl", "--model", uri(server), *LEXICAL, "--out", "run")
    assert cli("score", *asking).status == 0
    files = {p: p.stat().st_size for p in sorted((tmp_path / "run").iterdir())}
    found = json.loads(cli("plan", *asking, "--json").out)
    assert next(part for part in found["parts"] if part["capability"] == "chat")["cached"] == 3
    assert {p: p.stat().st_size for p in sorted((tmp_path / "run").iterdir())} == files


def test_faults_of_the_input_and_the_prompt_are_found(
    cli: Cli,
    tmp_path: Path,
    server: LlmServer,
) -> None:
    jsonl(tmp_path / "bad.jsonl", [question(0), {"id": 1}])
    said = cli("plan", "bad.jsonl", "--model", uri(server), *LEXICAL)
    assert said.status == 2
    assert "bad.jsonl:2: question: is missing" in said.err
