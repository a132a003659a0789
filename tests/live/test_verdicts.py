"""Whether an answer is withheld, and what is said of one that could not be judged."""

from __future__ import annotations

import asyncio

import pytest

from trustassay.live import verdicts
from trustassay.live.verdicts import AnswerJudging, BlockingRules


def test_an_answer_that_is_not_judged_in_time_did_not_fail_a_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(verdicts, "VERDICT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(verdicts, "_wait_for_verdict", never)
    for rules in (BlockingRules(unscored=True), BlockingRules(unscored=True, message="Later.")):
        judging = AnswerJudging((), rules)
        (verdict_of_answer,) = asyncio.run(judging.verdicts(None, {}, ["An answer."]))  # type: ignore[arg-type]
        assert verdict_of_answer.status == "not_judged"
        assert verdict_of_answer.to_dict()["status"] == "not_judged"
        assert "did not pass an automatic check" not in verdict_of_answer.message
        assert rules.message in verdict_of_answer.message
    passing = asyncio.run(AnswerJudging((), BlockingRules()).verdicts(None, {}, ["An answer."]))  # type: ignore[arg-type]
    assert (passing[0].status, passing[0].blocked) == ("not_judged", ())
