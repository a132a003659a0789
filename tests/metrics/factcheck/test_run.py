"""Planned, stopped and taken up again, scored anew: nothing is asked that need not be."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import LlmServer
from tests.metrics.factcheck.helpers import Corpus, Judge, sample, words_of
from tests.support import Recorder, command, jsonl, killed_at_work, results, run_command
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.metrics import FactCheck

BOTH = words_of({"red": (0.6, 0.2, 0.2), "blue": (0.1, 0.2, 0.7)})
ROWS = [sample(i) for i in range(4)]


def who(**others: Any) -> dict[str, Any]:
    return {
        "retriever": Corpus("It is red.", "It is blue.", "It is old."),
        "entailer": Recorder(BOTH),
        "cache": None,
        **others,
    }


def test_a_plan_counts_what_would_be_asked_and_asks_nothing(tmp_path: Path) -> None:
    given = who()
    found = plan(ROWS, metrics=FactCheck(), **given)
    assert {p.capability: p.calls for p in found.parts} == {"retrieval": 4, "entailment": 40}
    assert found.unsure == {}
    judge = Judge("SUPPORTS")
    asked = {**who(judge=judge)}
    del asked["entailer"]
    parts = plan(ROWS, metrics=FactCheck(by="model"), **asked).parts
    assert {p.capability: p.calls for p in parts} == {"retrieval": 4, "chat": 4}
    assert not judge.requests
    score(ROWS, metrics=FactCheck(by="model"), out=tmp_path / "run", **asked)
    parts = plan(ROWS, metrics=FactCheck(by="model"), out=tmp_path / "run", **asked).parts
    assert {p.capability: p.cached for p in parts} == {"retrieval": 4, "chat": 4}


def test_scored_again_by_another_threshold_or_rule_nobody_is_asked(tmp_path: Path) -> None:
    given = who()
    first = score(ROWS, metrics=FactCheck(), out=tmp_path / "run", **given)
    assert [a.verdict for a in first.assessments] == ["support"] * 4
    asked, searched = len(given["entailer"].batches), len(given["retriever"].queries)
    backends = {name: given[name] for name in ("entailer", "retriever")}
    for i, (metric, verdict) in enumerate(
        [
            (FactCheck(rule="stronger"), "contradict"),
            (FactCheck(threshold=0.65), "contradict"),
            (FactCheck(threshold=0.9), "neutral"),
        ]
    ):
        again = rescore(
            tmp_path / "run", metrics=metric, out=tmp_path / f"{i}", cache=None, **backends
        )
        assert [a.verdict for a in again.assessments] == [verdict] * 4
    assert (len(given["entailer"].batches), len(given["retriever"].queries)) == (asked, searched)


def test_interrupted_it_goes_on_without_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(judge: Judge) -> dict[str, Any]:
        return {
            "judge": judge,
            "retriever": Corpus("It is red."),
            "cache": None,
            "samples_at_once": 1,
        }

    metric = FactCheck(by="model")
    score(ROWS, metrics=metric, out=tmp_path / "whole", **given(Judge("SUPPORTS\n1.")))
    judge = Judge("SUPPORTS\n1.")
    reply = Judge.reply

    async def until_it_breaks(self: Judge, request: ChatRequest) -> Reply:
        if len(judge.requests) == 2:
            raise KeyboardInterrupt
        return await reply(self, request)

    monkeypatch.setattr(Judge, "reply", until_it_breaks)
    with pytest.raises(KeyboardInterrupt):
        score(ROWS, metrics=metric, out=tmp_path / "run", **given(judge))
    monkeypatch.setattr(Judge, "reply", reply)
    score(ROWS, metrics=metric, out=tmp_path / "run", **given(judge))
    assert len(judge.prompts) == len(set(judge.prompts)) == 4
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@pytest.mark.slow
def test_the_command_line_killed_goes_on_to_the_same_files(tmp_path: Path) -> None:
    """A corpus in DPR's layout, a chat model for an entailer, a kill in the middle."""
    (tmp_path / "psgs.tsv").write_text(
        'id\ttext\ttitle\n1\t"The lamp ""Ada"" stands in a red house."\tLamps\n'
        '2\t"A house, red or not, has a lamp."\t"""Red"" house"\n'
    )
    jsonl(tmp_path / "in.jsonl", [sample(i) for i in range(40)])
    with LlmServer(latency_ms=40, reply="text:SUPPORTS", keep=0) as server:
        asking = ["score", "in.jsonl", "--metric", "factcheck", "--retriever", "bm25:psgs.tsv"]
        asking += ["--entailer", f"openai:test@{server.base_url}?concurrency=4"]
        here: dict[str, Any] = {"cwd": tmp_path, "TRUSTASSAY_CACHE": str(tmp_path / "cache")}
        part = tmp_path / "run" / "assessments.jsonl"
        killed_at_work(command(*asking, "--out", "run"), part, **here)
        killed = time.time()
        done = run_command(*asking, "--out", "run", "--json", **here)
        assert done.returncode == 0, done.stderr
        assert len(server.asked_again([killed])) <= 4
        assert server.stats()["answered"] <= 80 + 4
        assert run_command(*asking, "--out", "whole", **here).returncode == 0
        assert server.stats()["answered"] <= 80 + 4
    values = json.loads(done.stdout)["metrics"]["factcheck"]["values"]
    assert (values["support"], values["passages"]) == (100, 2)
    assert results(tmp_path / "run")[0] == results(tmp_path / "whole")[0]
