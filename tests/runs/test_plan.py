"""The rehearsal: what counts once, what is learnt, what is unsure, and that nothing is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import Probe, Recorder
from trustassay import score
from trustassay.api import plan
from trustassay.backends.chat_text import OTHER_BYTES, OWN_BYTES
from trustassay.calls.prices import Price, Prices
from trustassay.core.capabilities import ChatRequest, EndpointLimits, Models, Probabilities, Reply
from trustassay.core.sample import Sample
from trustassay.runs.estimates import (
    DEFAULT_LATENCY_S,
    DEFAULT_REPLY_TOKENS,
    MAX_OPEN_REPLY_TOKENS,
    Plan,
    stretch_factor,
)
from trustassay.runs.plan import MAX_PROBE_REQUESTS

NAME = "openai:m@http://h/v1"
OPTIONS: dict[str, Any] = {"entailer": Recorder(lambda p, h: (0.5, 0.5, 0)), "cache": None}


@dataclass
class Model:
    """Replies with an x, which takes 30 and 10 tokens."""

    name: str = NAME
    limits: EndpointLimits = field(default_factory=lambda: EndpointLimits(concurrency=4))
    asked: int = 0

    async def reply(self, request: ChatRequest) -> Reply:
        self.asked += 1
        return Reply("x", prompt_tokens=30, reply_tokens=10)


def samples(n: int) -> list[dict[str, str]]:
    return [{"id": f"s{i}", "question": f"{i}?".ljust(36), "response": "yes"} for i in range(n)]


def asking(*texts: str, **parameters: Any) -> Probe:
    """Return a metric that puts the question and ``texts`` to the model."""

    async def ask(sample: Sample, models: Models) -> float:
        for text in (sample.question, *texts):
            await models.chat(text, **parameters)
        return 0.5

    return Probe(ask)


def planned(metric: Probe, n: int, model: Model | None = None, **options: Any) -> Plan:
    model = model or Model()
    before = model.asked
    found = plan(samples(n), metrics=metric, model=model, **OPTIONS | options)
    assert model.asked == before
    return found


def test_equal_requests_count_once_and_tokens_are_estimated() -> None:
    (part,) = planned(asking("to all"), 10).parts
    assert (part.calls, part.cached) == (11, 0)
    # 36 characters are 9 tokens, 6 are 1, and a message takes 4 more.
    assert part.prompt_tokens == 10 * (9 + 4) + (1 + 4)
    assert part.reply_tokens == 11 * DEFAULT_REPLY_TOKENS
    low, high = part.prompt_tokens_range
    assert low < part.prompt_tokens < high
    assert part.reply_tokens_range == (11, 11 * MAX_OPEN_REPLY_TOKENS)
    assert part.basis == "guess: no reply of this model is stored yet"


def test_a_request_that_bounds_its_reply_is_expected_to_take_no_more() -> None:
    (part,) = planned(asking(max_tokens=7, n=3), 2).parts
    assert part.reply_tokens == 2 * 3 * 7
    assert part.reply_tokens_range == (2 * 3, 2 * 3 * 7)


def test_log_probabilities_take_room_in_the_store_and_no_tokens() -> None:
    found = planned(asking(max_tokens=7), 3)
    told = planned(asking(max_tokens=7, logprobs=2), 3)
    (before,), (part,) = found.parts, told.parts
    assert (part.reply_tokens, part.prompt_tokens) == (before.reply_tokens, before.prompt_tokens)
    assert part.logprob_bytes == round(3 * 7 * (OWN_BYTES + 2 * OTHER_BYTES))
    assert told.to_dict()["parts"][0]["logprob_bytes"] == part.logprob_bytes
    assert before.logprob_bytes == 0
    assert found.to_dict()["parts"][0]["logprob_bytes"] == 0


def test_money_by_the_table_or_unknown() -> None:
    prices = Prices({"m": Price(1e6, 2e6)})
    found = planned(asking(), 3, prices=prices)
    (part,) = found.parts
    assert found.usd == part.usd == part.prompt_tokens + 2 * part.reply_tokens
    ends = zip(part.prompt_tokens_range, part.reply_tokens_range, strict=True)
    assert found.usd_range == tuple(prompt + 2 * reply for prompt, reply in ends)
    assert planned(asking(), 3).usd is None
    assert planned(asking(), 3).usd_range is None


def test_time_is_that_of_calls_together_or_what_the_limits_allow() -> None:
    found = planned(asking(), 10)
    assert found.seconds == pytest.approx(10 * DEFAULT_LATENCY_S.middle / 4)
    assert not found.parts[0].measured
    paced = Model(limits=EndpointLimits(concurrency=4, requests_per_minute=2))
    assert planned(asking(), 10, paced).seconds == pytest.approx(300)
    assert found.seconds_range == pytest.approx(
        (10 * DEFAULT_LATENCY_S.low / 4, 10 * DEFAULT_LATENCY_S.high / 4)
    )


def test_what_a_run_has_stored_is_at_hand_and_teaches(tmp_path: Path) -> None:
    model, out = Model(), tmp_path / "run"
    score(samples(4), metrics=asking(), model=model, out=out, report=False, **OPTIONS)
    assert model.asked == 4
    (part,) = planned(asking(), 6, model, out=out).parts
    assert (part.calls, part.cached) == (6, 4)
    assert part.reply_tokens == 2 * 10
    assert part.measured
    low, high = part.reply_tokens_range
    assert (low, high) == (20 / stretch_factor(4), 20 * stretch_factor(4))
    assert (part.learnt_from, part.guess) == (4, False)
    assert part.basis == "based on 4 stored replies"
    assert part.seconds < 2 * DEFAULT_LATENCY_S.middle / 4
    assert planned(asking(), 4, model, out=out, prices=Prices({})).usd == 0


def test_requests_of_other_kinds_are_said_to_be_learnt_from_other_prompts(tmp_path: Path) -> None:
    model, out = Model(), tmp_path / "run"
    score(samples(6), metrics=asking(), model=model, out=out, report=False, **OPTIONS)

    async def ask(sample: Sample, models: Models) -> float:
        await models.chat(sample.question)
        await models.chat(sample.question, max_tokens=20)
        return 0.5

    (part,) = planned(Probe(ask), 8, model, out=out).parts
    assert (part.calls, part.cached) == (16, 6)
    assert part.basis == "based on 6 stored replies to other prompts for 8 of 10 calls"


def test_what_is_made_of_replies_counts_once_for_each() -> None:
    async def ask(sample: Sample, models: Models) -> float:
        reply = await models.chat(sample.question)
        return (await models.entail(reply.text, "It is so.")).entailment

    counts = {part.capability: part.calls for part in planned(Probe(ask), 5).parts}
    assert counts == {"chat": 5, "entailment": 5}


def test_a_metric_that_stumbles_over_a_stand_in_is_unsure() -> None:
    async def ask(sample: Sample, models: Models) -> float:
        reply = await models.chat(sample.question)
        return float(reply.text)

    found = planned(Probe(ask), 5)
    assert found.unsure == {"probe": 5}
    assert found.parts[0].calls == 5


def test_a_local_model_is_timed_by_a_few_requests() -> None:
    class Slow:
        name = "slow"
        asked = 0

        def scores(self, pairs: Sequence[tuple[str, str]]) -> Probabilities:
            self.asked += len(pairs)
            return np.full((len(pairs), 3), 1 / 3)

    slow = Slow()
    found = plan(samples(100), metrics=Probe(), entailer=slow, cache=None)
    (part,) = found.parts
    assert (part.capability, part.calls, part.measured) == ("entailment", 100, True)
    assert slow.asked == MAX_PROBE_REQUESTS
    assert found.usd == 0


def test_answers_are_planned_for_samples_without_one() -> None:
    rows = [{"id": "a", "question": "a?"}, {"id": "b", "question": "b?", "response": "mine"}]
    found = plan(rows, metrics=Probe(), model=Model(), **OPTIONS)
    assert [(part.metric, part.capability, part.calls) for part in found.parts] == [
        ("answering", "chat", 1),
        ("probe", "entailment", 2),
    ]
    assert found.to_dict()["samples"] == 2
