"""Planned, killed, taken up again and scored anew at a real endpoint, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from tests.metrics.judge.helpers import answers
from tests.support import command, jsonl, killed_at_work, results, run_command

pytestmark = pytest.mark.slow

REPEATS, AT_ONCE = 3, 4


def values(said: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said)["metrics"]["judge"]["values"]
    return found


def test_planned_killed_resumed_and_scored_again(tmp_path: Path) -> None:
    rows = answers([5, 4, 3, 2, 1] * 5, expected=4, model="test")
    jsonl(tmp_path / "in.jsonl", rows)
    here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
    metric = f"judge:repeats={REPEATS},temperature=none"
    with LlmServer(
        latency_ms=30, reply="text:Score: 4\nReason: One date is off.", keep=0
    ) as server:
        judge = ("--judge", f"openai:test@{server.base_url}?concurrency={AT_ONCE}")
        planned = run_command("plan", "in.jsonl", "--metric", metric, *judge, "--json", **here)
        assert planned.returncode == 0, planned.stderr
        (part,) = json.loads(planned.stdout)["parts"]
        assert (part["calls"], server.stats()["received"]) == (len(rows) * REPEATS, 0)

        asking = ("score", "in.jsonl", "--metric", metric, *judge, "--out")
        killed_at_work(command(*asking, "run"), tmp_path / "run" / "assessments.jsonl", **here)
        assert not (tmp_path / "run" / "summary.json").exists()
        before = server.stats()["answered"]
        assert before < part["calls"]
        done = run_command(*asking, "run", "--json", **here)
        assert done.returncode == 0, done.stderr
        answered = server.stats()["answered"]
        # Only what was under way when it was killed, paid for and not stored, is asked again.
        assert part["calls"] <= answered <= part["calls"] + AT_ONCE

        here["TRUSTASSAY_CACHE"] = str(tmp_path / "another")
        whole = run_command(*asking, "whole", "--json", **here)
        assert whole.returncode == 0, whole.stderr
        assert server.stats()["answered"] == answered + part["calls"]
        assert results(tmp_path / "run") == results(tmp_path / "whole")
        told = values(done.stdout)
        assert (told["votes"], told["passes"], told["own"], told["kappa"]) == (75, 100, 25, None)

        received = server.stats()["received"]
        other = f"judge:repeats={REPEATS},temperature=none,aggregate=median,threshold=5"
        again = run_command("rescore", "run", "--metric", other, "--out", "other", "--json", **here)
        assert again.returncode == 0, again.stderr
        fewer = "judge:repeats=2,temperature=none,aggregate=majority"
        less = run_command("rescore", "run", "--metric", fewer, "--out", "less", "--json", **here)
        assert less.returncode == 0, less.stderr
        assert server.stats()["received"] == received
    assert values(again.stdout)["passes"] == 0
    assert values(less.stdout)["votes"] == 50
    assert "0 newly requested" in again.stderr


def test_a_refused_schema_is_left_out_and_said(tmp_path: Path) -> None:
    jsonl(tmp_path / "in.jsonl", answers([4, 4]))
    here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
    with LlmServer(reply='text:{"score": 4, "reason": "."}', refuse="response_format") as server:
        judge = ("--judge", f"openai:test@{server.base_url}")
        asking = ("score", "in.jsonl", "--metric", "judge:constrained=yes", *judge, "--json")
        done = run_command(*asking, "--out", "run", **here)
        assert done.returncode == 0, done.stderr
        assert (values(done.stdout)["votes"], values(done.stdout)["repairs"]) == (2, 0)
        assert "2 calls without schema, which the endpoint refused" in done.stderr
