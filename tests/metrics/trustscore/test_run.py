"""Planned, stopped and taken up again, scored anew, and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.trustscore.helpers import Keeper, sample, who
from tests.metrics.trustscore.test_metric import LONG
from tests.support import results
from trustassay import score
from trustassay.api import plan, rescore
from trustassay.core.capabilities import ChatRequest, Reply
from trustassay.core.sample import Sample
from trustassay.metrics import TrustScore
from trustassay.metrics.trustscore.metric import TrustEvidence

ROWS = [sample(i, response=LONG) for i in range(4)]
METRICS = [TrustScore(checks=3), TrustScore(checks=3, claims=True)]
BY = pytest.mark.parametrize("metric", METRICS, ids=["whole", "claims"])


@BY
def test_a_plan_counts_the_most_and_asks_nothing(metric: TrustScore, tmp_path: Path) -> None:
    model = Keeper()
    claims = 3 if metric.claims else 1
    found = plan(ROWS, metrics=metric, **who(model))
    calls = {part.capability: part.calls for part in found.parts}
    assert (calls["chat"], calls["entailment"]) == (4 * 3 * claims, 4 * claims)
    assert found.unsure == {}
    assert not model.requests
    score(ROWS, metrics=metric, out=tmp_path / "run", **who(model))
    assert len(model.requests) == calls["chat"]
    found = plan(ROWS, metrics=metric, out=tmp_path / "run", **who(model))
    assert all(part.calls == part.cached for part in found.parts)


def test_a_plan_counts_both_parts_also_where_a_judge_is_to_be_asked() -> None:
    metric = TrustScore(checks=3, fact_by="model")
    found = plan(ROWS, metrics=metric, **who(judge=Keeper(), entailer=None))
    calls = {part.backend: part.calls for part in found.parts if part.capability == "chat"}
    assert sum(calls.values()) == 4 * 3 + 4


@BY
def test_interrupted_it_goes_on_without_asking_again(
    metric: TrustScore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Keeper()
    score(ROWS, metrics=metric, out=tmp_path / "whole", **who(whole))
    model = Keeper()
    reply = Keeper.reply

    async def until_it_breaks(self: Keeper, request: ChatRequest) -> Reply:
        if len(model.requests) == 5:
            raise KeyboardInterrupt
        return await reply(self, request)

    monkeypatch.setattr(Keeper, "reply", until_it_breaks)
    with pytest.raises(KeyboardInterrupt):
        score(ROWS, metrics=metric, out=tmp_path / "run", **who(model))
    monkeypatch.setattr(Keeper, "reply", reply)
    score(ROWS, metrics=metric, out=tmp_path / "run", **who(model))
    assert len(model.requests) <= len(whole.requests) + 5
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_scored_again_by_another_threshold_nobody_is_asked(tmp_path: Path) -> None:
    model, given = Keeper(), who()
    given["model"] = model
    metric = TrustScore(checks=3, claims=True)
    first = score(ROWS, metrics=metric, out=tmp_path / "run", **given)
    assert {a.score for a in first.assessments} == {1.0}
    asked, judged = len(model.requests), len(given["entailer"].batches)
    stricter = TrustScore(checks=3, claims=True, threshold=0.95)
    again = rescore(tmp_path / "run", metrics=stricter, out=tmp_path / "again", **given)
    assert [a.score for a in again.assessments] == pytest.approx([0.6] * 4)
    assert (len(model.requests), len(given["entailer"].batches)) == (asked, judged)


def test_the_order_of_samples_and_their_number_at_once_change_nothing(tmp_path: Path) -> None:
    metric = TrustScore(checks=3, claims=True)

    def scores(rows: list[dict[str, Any]], concurrency: int) -> dict[str, Any]:
        run = score(rows, metrics=metric, samples_at_once=concurrency, **who())
        return {a.id: a.evidence for a in run.assessments}

    assert scores(ROWS, 1) == scores(ROWS[::-1], 8)


# ------------------------------------------------------------------------------ the report


def test_the_report_shows_both_parts_of_each_claim(tmp_path: Path) -> None:
    model = Keeper(lambda text: "oil" not in text)
    record = sample(response=LONG + " <script>alert(1)</script>")
    score([record], metrics=METRICS[1], out=tmp_path / "run", **who(model))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "divided into 4 claims (claims=yes)" in page
    assert "TrustScore by claim (mean Trust_OV)" in page
    assert page.count("<summary>Fact check (Trust_FC)</summary>") == 4
    assert page.count("<summary>Behavioural consistency (Trust_BC)</summary>") == 4
    assert page.count("the weakest</span>") == 1
    assert "took none of the above" in page
    assert "supports the answer" in page
    assert 'id="a1" data-problem>' in page
    assert "<script>alert" not in page


def test_the_report_of_a_whole_answer_names_no_claims(tmp_path: Path) -> None:
    model = Keeper(lambda _: False)
    run = score(
        [sample(verdict="contradict")], metrics=METRICS[0], out=tmp_path / "run", **who(model)
    )
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "divided into" not in page
    assert page.count("<summary>Fact check (Trust_FC)</summary>") == 1
    assert 'id="a1" data-problem>' in page
    metric, (found,) = METRICS[0], run.assessments
    said = "the facts contradict it; the model does not choose its own answer again"
    assert metric.problem(found) == said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ROW = st.fixed_dictionaries(
    {"kind": st.sampled_from(["claim", "answer", "other"])},
    optional=dict.fromkeys(
        ("text", "score", "factcheck", "consistency", "weakest", "reason"), JSON
    ),
)


@given(st.lists(ROW | JSON, max_size=4))
def test_foreign_evidence_is_shown_as_it_is(evidence: list[Any]) -> None:
    metric = TrustScore()
    found = TrustEvidence.read(metric.factcheck, metric.consistency, Sample("q", "Q?"), evidence)
    assert len(found.claims) + len(found.other_items) == len(evidence)
