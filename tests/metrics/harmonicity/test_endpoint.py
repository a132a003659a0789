"""Perturbed prompts at a real HTTP endpoint, and a run that is killed and goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.llm_server import LlmServer
from tests.support import command, jsonl, quick_embedder, run_command
from trustassay import score
from trustassay.metrics.harmonicity.perturbations import find_family, perturb
from trustassay.statistics.resampling import generator

QUESTIONS = [{"id": f"q{i}", "question": f"Who built bridge {i}?"} for i in range(6)]


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with LlmServer(keep=1000) as started:
        yield started


def expected(question: dict[str, str], name: str, n: int) -> list[str]:
    """Return the prompt and its first ``n`` perturbed ones, drawn apart from the metric."""
    rng = generator(0, question["id"], "perturbation")
    found: list[str] = [question["question"]]
    for _ in range(n):
        found.append(perturb(found[0], find_family(name), rng, found))
    return found


@pytest.mark.parametrize("name", ["control", "unicode", "whitespace"])
def test_perturbed_prompts_arrive_byte_for_byte(server: LlmServer, name: str) -> None:
    server.reset()
    before = len(server.requests())
    run = score(
        QUESTIONS,
        metrics=f"harmonicity:perturbation={name}",
        model=f"openai:test@{server.base_url}",
        cache=None,
    )
    assert all(a.error is None for a in run.assessments)
    bodies = [json.loads(request["raw"]) for request in server.requests()[before:]]
    arrived = sorted(body["messages"][-1]["content"].encode() for body in bodies)
    wanted = [text.encode() for question in QUESTIONS for text in expected(question, name, 10)]
    assert arrived == sorted(wanted)
    assert all(body["temperature"] == 0 for body in bodies)
    if name == "control":
        assert len({byte for text in arrived for byte in text if byte < 32}) > 20


def test_what_a_prompt_was_answered_with_stands_beside_its_change(server: LlmServer) -> None:
    server.change(reply="echo")
    run = score(
        QUESTIONS[:1],
        metrics="harmonicity:perturbation=typo",
        model=f"openai:test@{server.base_url}",
        cache=None,
    )
    (found,) = run.assessments
    rows = [row for row in found.evidence if "answer" in row]
    assert [row["change"] for row in rows] == [row["answer"] for row in rows]
    server.change(reply="hash")


def test_the_command_line(server: LlmServer, tmp_path: Path) -> None:
    server.change(reply="text:The Romans.")
    done = run_command(
        *("score", jsonl(tmp_path / "in.jsonl", QUESTIONS), "--out", "run", "--json"),
        *("--model", f"openai:test@{server.base_url}"),
        *("--metric", "harmonicity:perturbations=5,perturbation=typo,precision=0.02"),
        cwd=tmp_path,
        TRUSTASSAY_CACHE=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)["metrics"]["harmonicity"]["values"]
    assert values["mean"] == 0
    assert values["stable_share"] == 100
    assert values["perturbations"] == 3
    server.change(reply="hash")


def stored_chats(path: Path) -> int:
    with closing(sqlite3.connect(path)) as calls:
        (count,) = calls.execute("SELECT COUNT(*) FROM calls WHERE capability = 'chat'").fetchone()
        return int(count)


@pytest.mark.slow
def test_killed_and_resumed_nothing_is_asked_twice(tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "in.jsonl", [{"id": f"{i}", "question": f"Number {i}?"} for i in range(40)]
    )
    with LlmServer(latency_ms=150) as server:
        arguments: list[str | Path] = [
            *("score", source, "--out", "run", "--model", f"openai:test@{server.base_url}"),
            *("--metric", "harmonicity:precision=0.05", *quick_embedder(tmp_path)),
        ]
        environment = os.environ | {"TRUSTASSAY_CACHE": str(tmp_path / "cache")}
        process = subprocess.Popen(
            command(*arguments), cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
        )
        while server.stats()["answered"] < 150 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        calls = tmp_path / "run/calls.sqlite"
        stored, before = stored_chats(calls), server.stats()["received"]
        done = run_command(*arguments, cwd=tmp_path, TRUSTASSAY_CACHE=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
        assert 50 < stored < stored_chats(calls)
        # Replies that were stored for all runs, but not yet for this one, are not asked for either.
        assert server.stats()["received"] - before <= stored_chats(calls) - stored
    rows = [
        json.loads(line) for line in (tmp_path / "run/assessments.jsonl").read_text().splitlines()
    ]
    assert [row["error"] for row in rows] == [None] * 40
