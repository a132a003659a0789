"""Two metrics written against the public contract alone, through everything that a run does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.contract import backends
from tests.contract.backends import Says, Words, asked, guesses, judges, knows, pairs
from tests.contract.fewl import TinyFewl
from tests.contract.judge import ManyVotes
from tests.support import summary_of
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.metric import Metric

SAMPLES = [
    {"id": f"q{i}", "question": f"what is number {i}?", "response": f"number {i} is odd"}
    for i in range(4)
] + [{"id": "wrong", "question": "what is number 9?", "response": "number 9 is a fruit"}]


@pytest.fixture(autouse=True)
def nobody_was_asked() -> None:
    asked.clear()


def who(metric: Metric) -> dict[str, Any]:
    if isinstance(metric, ManyVotes):
        return {"judge": Says("judge", judges)}
    words = Words()
    return {
        "similarity": words,
        "embedder": words,
        "references": {"expert": Says("expert", knows), "layman": Says("layman", guesses)},
        "generator": Says("generator", pairs),
    }


METRICS = [TinyFewl(), ManyVotes()]


def test_references_are_weighed_by_their_expertise(tmp_path: Path) -> None:
    run = score(SAMPLES, metrics=TinyFewl(), out=tmp_path / "run", **who(TinyFewl()))
    assert [a.error for a in run.assessments] == [None] * 5
    first = run.assessments[0]
    rows = {row["name"]: row for row in first.evidence}
    # The expert says what the corrected answer says (1.0) and half of the wrong one's words.
    assert rows["expert"]["expertise"] > 0 > rows["layman"]["expertise"] - 1e-9
    assert rows["expert"]["weight"] > 0.5 > rows["layman"]["weight"]
    assert sum(row["weight"] for row in rows.values()) == pytest.approx(1)
    agreement = {a.id: a.evidence[0]["agreement"] for a in run.assessments}
    assert agreement.pop("wrong") < 1
    assert set(agreement.values()) == {1.0}
    assert Counter(asked) == {"expert": 5, "layman": 5, "generator": 5}
    stored = [json.loads(line) for line in (tmp_path / "run/samples.jsonl").open()]
    assert stored[0]["references"] == {"expert": ["number 0 is odd"], "layman": ["no idea at all"]}
    assert stored[0]["wrong_answers"] == ["number 0 is a fruit"]


def test_a_judge_is_asked_until_the_majority_stands(tmp_path: Path) -> None:
    run = score(SAMPLES, metrics=ManyVotes(), out=tmp_path / "run", **who(ManyVotes()))
    found = {a.id: a for a in run.assessments}
    assert found["wrong"].verdict == "false"
    assert found["wrong"].parts["votes"] == 16  # sixteen of thirty decide
    assert found["q0"].verdict == "true"
    assert found["q0"].parts["votes"] == 19  # every fifth vote is no
    assert run.summary["many_votes"]["true"] == 80
    assert len(asked) == 4 * 19 + 16


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_plan_asks_nothing_and_names_every_role(metric: Metric) -> None:
    found = plan(SAMPLES, metrics=metric, **who(metric))
    assert not asked
    planned = {(part.metric, part.backend): part.calls for part in found.parts}
    if isinstance(metric, TinyFewl):
        assert planned["references", "expert"] == planned["references", "layman"] == 5
        assert planned["wrong_answers", "generator"] == 5
        assert planned["tiny_fewl", "words"] >= 5
    else:
        assert planned["many_votes", "judge"] >= 5


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_interrupted_it_goes_on_without_asking_again(
    metric: Metric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = score(SAMPLES, metrics=metric, out=tmp_path / "whole", **who(metric))
    needed = Counter(asked)
    asked.clear()

    reply = Says.reply

    async def until_it_breaks(self: Says, request: Any) -> Any:
        if len(asked) >= 7:
            raise KeyboardInterrupt
        return await reply(self, request)

    monkeypatch.setattr(Says, "reply", until_it_breaks)
    with pytest.raises(KeyboardInterrupt):
        score(SAMPLES, metrics=metric, out=tmp_path / "run", **who(metric))
    monkeypatch.setattr(Says, "reply", reply)
    before = len(asked)
    again = score(SAMPLES, metrics=metric, out=tmp_path / "run", **who(metric))
    assert 0 < before < sum(needed.values())
    assert len(asked) <= sum(needed.values()) + 7  # what was under way is asked again at most
    assert [a.to_dict() for a in again.assessments] == [a.to_dict() for a in whole.assessments]
    assert summary_of(tmp_path / "run") == summary_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("metric", "other"),
    [(TinyFewl(), TinyFewl(neighbours=1)), (ManyVotes(), ManyVotes(threshold=0.9))],
    ids=lambda metric: metric.name,
)
def test_scored_again_with_other_options_nobody_is_asked(
    metric: Metric, other: Metric, tmp_path: Path
) -> None:
    score(SAMPLES, metrics=metric, out=tmp_path / "run", **who(metric))
    asked.clear()
    words: dict[str, Any] = {k: v for k, v in who(metric).items() if isinstance(v, Words)}
    again = rescore(tmp_path / "run", metrics=other, out=tmp_path / "again", **words)
    assert not asked
    assert [a.error for a in again.assessments] == [None] * 5
    if isinstance(other, ManyVotes):
        assert again.summary["many_votes"]["true"] == 0


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_report_draws_its_evidence_and_names_its_problem(
    metric: Metric, tmp_path: Path
) -> None:
    score(SAMPLES, metrics=metric, out=tmp_path / "run", **who(metric))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    if isinstance(metric, TinyFewl):
        assert page.count('<table class="weights">') == 5
        assert "no idea at all" in page
    else:
        assert page.count('<ol class="votes">') == 5
        assert page.count("data-problem>") + page.count("data-problem ") >= 1


def test_a_summary_that_fails_leaves_the_run_whole(tmp_path: Path) -> None:
    class Broken(ManyVotes):
        def summarise(self, assessments: Any, *, seed: int = 0) -> Any:
            raise ZeroDivisionError("no such figure")

    run = score(SAMPLES, metrics=Broken(), out=tmp_path / "run", **who(ManyVotes()))
    summary = run.summaries["many_votes"]
    assert summary.error and "ZeroDivisionError: no such figure" in summary.error
    assert (summary.n, summary.failed) == (5, 0)
    assert len(run.assessments) == 5
    assert (tmp_path / "run" / "report.html").exists()


def test_backends_are_plain_objects() -> None:
    assert backends.Words().scores([("a b", "a c")])[0] == pytest.approx(1 / 3)
