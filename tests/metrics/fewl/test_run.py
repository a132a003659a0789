"""Planned, killed and taken up again, scored anew: nothing is asked that need not be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from tests.support import command, jsonl, results, run_command
from trustassay.api import rescore

QUESTIONS = 20
METRIC = "fewl:max_similarity=1"
REPLY = "text:1. Wrong Answer: a red house\n1. Non-Wrong Answer: no red house"
"""What generator and references reply: one pair to the one, an answer like any other to these."""


@pytest.mark.slow
def test_killed_it_goes_on_and_scored_anew_it_asks_nobody(tmp_path: Path) -> None:
    jsonl(
        tmp_path / "in.jsonl",
        [
            {"id": f"q{i}", "question": f"Who built lamp {i}?", "response": "A red house."}
            for i in range(QUESTIONS)
        ],
    )
    calls = 3 * QUESTIONS
    with LlmServer(latency_ms=40, reply=REPLY, keep=0) as server:

        def asked(name: str) -> str:
            return f"openai:{name}@{server.base_url}?concurrency=4"

        who = ["--reference", f"one={asked('a')}", "--reference", f"two={asked('b')}"]
        who += ["--backend", f"generator={asked('g')}", "--backend", "similarity=novel"]
        here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
        planned = run_command("plan", "in.jsonl", "--metric", METRIC, *who, "--json", **here)
        assert planned.returncode == 0, planned.stderr
        counts = [part["calls"] for part in json.loads(planned.stdout)["parts"]]
        assert counts[:3] == [QUESTIONS] * 3
        assert server.stats()["received"] == 0

        score = ["score", "in.jsonl", "--metric", METRIC, *who]
        killed_after(calls // 3, server, command(*score, "--out", "run"), tmp_path)
        killed = time.time()
        done = run_command(*score, "--out", "run", **here)
        assert done.returncode == 0, done.stderr
        assert len(server.asked_again([killed])) <= 12
        answered = server.stats()["answered"]
        assert calls <= answered <= calls + 12
        whole = run_command(*score, "--out", "whole", **here)
        assert whole.returncode == 0, whole.stderr
        assert results(tmp_path / "run")[0] == results(tmp_path / "whole")[0]
        received = server.stats()["received"]  # more than answered: some were under way

        found = {results(tmp_path / "run")[0]}
        for number, options in enumerate(
            ("form=theory", "divergence=kl", "weights=uniform", "penalty=random", "penalty=none")
        ):
            out = tmp_path / f"again-{number}"
            rescore(tmp_path / "run", metrics=f"{METRIC},{options}", similarity="novel", out=out)
            found.add(results(out)[0])
        assert len(found) >= 5  # equal answers everywhere: drawn neighbours may change nothing
        assert server.stats()["received"] == received


def killed_after(answered: int, server: LlmServer, arguments: list[str], cwd: Path) -> None:
    """Start a command, and end it with SIGKILL when so many calls are answered."""
    cache = {"TRUSTASSAY_CACHE": str(cwd / "cache")}
    with subprocess.Popen(
        arguments, cwd=cwd, env=os.environ | cache, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while server.stats()["answered"] < answered:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
