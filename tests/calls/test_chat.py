"""A chat model by itself: order, how many at once, what is kept, what is said of failures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import trustassay
from trustassay.calls.chat import Unanswered, UnansweredError
from trustassay.calls.prices import Budget
from trustassay.core.capabilities import ChatRequest, EndpointLimits, Reply
from trustassay.errors import CallError


@dataclass
class Model:
    """Replies with the prompt in capitals, later to earlier prompts."""

    name: str = "openai:m@http://h/v1"
    limits: EndpointLimits = field(default_factory=EndpointLimits)
    asked: list[ChatRequest] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    delay_s: float = 0.005
    stuck: asyncio.Event | None = None

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked.append(request)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.delay_s / len(self.asked) if len(self.asked) < 5 else 0.01)
            if text == "stuck" and self.stuck:
                self.stuck.set()
                await asyncio.Event().wait()
            if text.startswith("bad"):
                raise CallError(f"no answer to {text}", "refused")
        finally:
            self.under_way -= 1
        return Reply(text.upper(), prompt_tokens=10, reply_tokens=10)


def test_replies_come_in_the_order_of_the_prompts_and_parameters_arrive() -> None:
    model = Model()
    replies = trustassay.chat(model, cache=False).ask(["a", "b", "c"], temperature=0.5)
    assert [reply.text for reply in replies] == ["A", "B", "C"]
    assert {request.temperature for request in model.asked} == {0.5}
    assert trustassay.chat(model, cache=False).ask([]) == []


def test_it_works_where_an_event_loop_is_running() -> None:
    async def work() -> list[Reply | Unanswered]:
        return trustassay.chat(Model(), cache=False).ask(["a"])

    assert asyncio.run(work())[0].text == "A"


def test_so_many_at_once_as_the_model_itself_allows() -> None:
    model = Model(limits=EndpointLimits(concurrency=300))
    trustassay.chat(model, cache=False).ask([str(i) for i in range(2000)])
    assert model.most == 300


def test_so_many_at_once_as_is_asked_for() -> None:
    model = Model()
    trustassay.chat(model, cache=False, calls_at_once=3).ask([str(i) for i in range(30)])
    assert model.most == 3


def test_replies_and_failures_both_come_back() -> None:
    """Each in its prompt's place, and an error only for who reads what is not there."""
    first, second, third = trustassay.chat(Model(), cache=False).ask(["bad 1", "good", "bad 2"])
    assert (second.text, second.error) == ("GOOD", None)
    assert isinstance(first, Unanswered)
    assert isinstance(first.error, CallError)
    assert first.error.kind == "refused"
    assert str(third.error) == "no answer to bad 2"
    with pytest.raises(CallError, match="no answer to bad 1"):
        _ = [reply.text for reply in (second, first)]


def test_strict_tells_how_many_failed_and_has_the_replies() -> None:
    chat = trustassay.chat(Model(), cache=False)
    assert [reply.text for reply in chat.ask(["a"], strict=True)] == ["A"]
    words = r"2 of 3 prompts were not answered: no answer to bad 1"
    with pytest.raises(UnansweredError, match=words) as caught:
        chat.ask(["bad 1", "good", "bad 2"], strict=True)
    assert [type(reply) for reply in caught.value.replies] == [Unanswered, Reply, Unanswered]
    assert caught.value.replies[1].text == "GOOD"


def test_one_text_is_no_list_of_prompts() -> None:
    model = Model()
    with pytest.raises(TypeError, match="got a single text"):
        trustassay.chat(model, cache=False).ask("a prompt")
    assert model.asked == []


def test_what_was_replied_is_kept_also_where_others_fail_or_it_is_given_up(tmp_path: Path) -> None:
    model = Model()
    chat = trustassay.chat(model, cache=tmp_path)
    assert [reply.error is None for reply in chat.ask(["a", "bad"])] == [True, False]

    async def given_up() -> None:
        model.stuck = asyncio.Event()
        task = asyncio.create_task(chat.aask(["b", "stuck"]))
        await model.stuck.wait()
        while model.under_way > 1:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, "a task was left behind"

    asyncio.run(given_up())
    model.asked.clear()
    assert [reply.text for reply in chat.ask(["a", "b"])] == ["A", "B"]
    assert model.asked == []


def test_a_functions_replies_are_no_other_runs(tmp_path: Path) -> None:
    asked: list[str] = []

    def function(prompt: str) -> str:
        asked.append(prompt)
        return "x"

    chat = trustassay.chat(function, cache=tmp_path / "cache")
    chat.ask(["a"])
    chat.ask(["a"])
    assert asked == ["a", "a"]
    assert not (tmp_path / "cache").exists()


def test_a_budget_holds_for_one_call_of_ask() -> None:
    model = Model()
    # 256 tokens of reply are expected of each, 20 are taken: so they go out one after the other.
    chat = trustassay.chat(model, cache=False, budget=Budget(300, "tokens"))
    words = r"prompts were not answered: the budget of 300 tokens"
    with pytest.raises(UnansweredError, match=words):
        chat.ask([str(i) for i in range(5)], strict=True)
    assert 1 <= len(model.asked) <= 3
    model.asked.clear()
    assert chat.ask(["1"])[0].text == "1"
