"""Models behind endpoints: one limiter an address, a bad reply fails alone, doors stay shut."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trustassay
from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, Client, SampleModels
from trustassay.calls.prices import Budget, BudgetReachedError, Prices
from trustassay.calls.store import CallStore
from trustassay.core.capabilities import ChatRequest, EndpointLimits, Reply
from trustassay.errors import BackendError, CallError
from trustassay.papers.session import FolderRequestCounter


@dataclass
class Model:
    """Replies with the prompt; some prompts get something else."""

    name: str = "openai:m@http://h/v1"
    endpoint: str = "http://h/v1"
    limits: EndpointLimits = field(default_factory=lambda: EndpointLimits(concurrency=3))
    may_close: bool = True
    asked: list[str] = field(default_factory=list)
    at_once: list[int] = field(default_factory=lambda: [0, 0])

    async def reply(self, request: ChatRequest) -> Reply:
        text = request.messages[-1].content
        self.asked.append(text)
        self.at_once[0] += 1
        self.at_once[1] = max(self.at_once)
        await asyncio.sleep(0.001)
        self.at_once[0] -= 1
        match text:
            case "huge count":
                return Reply("x", prompt_tokens=10**30, reply_tokens=1)
            case "no text":
                return Reply(b"bytes")  # type: ignore[arg-type]
            case "no reply":
                return None  # type: ignore[return-value]
            case "closed" if self.may_close:
                raise CallError("401", "closed")
            case "broken":
                raise ZeroDivisionError
        return Reply(text, "stop", 5, 7)


async def replies(
    models: dict[str, Model], prompts: list[str], *given: Any, **stores: Any
) -> list[object]:
    gatherers = Client(Backends.of(chat=models), *given, **stores)
    try:
        sample = SampleModels(gatherers)
        futures = [sample.chat(text, role=role) for text in prompts for role in models]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 20)
    finally:
        await gatherers.close()


def test_models_of_one_address_share_its_limiter() -> None:
    one = Model()
    other = Model("openai:other@http://h/v1", at_once=one.at_once)
    prompts = [str(i) for i in range(40)]
    found = asyncio.run(replies({"model": one, "judge": other}, prompts))
    assert len(found) == 80
    assert one.at_once == [0, 3]
    assert sorted(one.asked) == sorted(other.asked) == sorted(prompts)


def test_two_kinds_of_limits_for_one_address_are_refused() -> None:
    other = Model("openai:other@http://h/v1", limits=EndpointLimits(concurrency=9))
    with pytest.raises(BackendError, match="two different sets of limits"):
        asyncio.run(replies({"model": Model(), "judge": other}, []))


def test_a_reply_that_cannot_be_kept_fails_alone(tmp_path: Path) -> None:
    store = CallStore(tmp_path / "calls.sqlite")
    prompts = ["one", "huge count", "two", "no text", "no reply", "broken", "three"]
    found = asyncio.run(replies({"model": Model()}, prompts, own_store=store))
    kinds = [type(reply).__name__ for reply in found]
    good, bad = "Reply", "BackendError"
    assert kinds == [good, bad, good, bad, bad, bad, good]
    assert "could not be stored" in str(found[1])
    assert "instead of a Reply" in str(found[4])
    assert store.counts() == {("chat", Model().name): 3}
    store.close()


def test_a_closed_model_is_asked_no_more_also_not_by_what_was_queued() -> None:
    closed, other = Model(), Model("openai:other@http://h/v1", may_close=False)
    prompts = ["closed", *(f"a longer prompt, {i}" for i in range(100))]
    found = asyncio.run(replies({"model": closed, "judge": other}, prompts))
    assert len(closed.asked) <= 6
    assert len(other.asked) == 101  # another model of the address may well be open
    assert sum(isinstance(reply, CallError) for reply in found) > 90


def test_equal_requests_are_one_call_and_give_up_alone() -> None:
    async def work() -> None:
        model = Model()
        gatherers = Client(Backends.of(chat={"model": model}))
        sample = SampleModels(gatherers)
        first, second = sample.chat("same"), sample.chat("same")
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).text == "same"
        assert model.asked == ["same"]
        assert sample.usage[model.name] == {
            "calls": 1,
            "prompt_tokens": 5,
            "reply_tokens": 7,
            "uncounted": 0,
        }
        await gatherers.close()

    asyncio.run(work())


def test_what_was_replied_before_the_end_is_stored(tmp_path: Path) -> None:
    async def work(store: CallStore) -> None:
        gatherers = Client(Backends.of(chat={"model": Model()}), own_store=store)
        sample = SampleModels(gatherers)
        futures = [sample.chat(str(i)) for i in range(50)]
        await futures[4]
        await gatherers.close()
        done = sum(future.done() and not future.cancelled() for future in futures)
        assert store.counts() == {("chat", Model().name): done}
        assert 5 <= done < 50

    store = CallStore(tmp_path / "calls.sqlite")
    asyncio.run(work(store))
    store.close()


def test_the_ledger_never_pays_more_than_one_reply_was_misjudged_by() -> None:
    """Each call costs 12 and was thought to cost 256 and a little, so a budget of 400 holds 12."""
    model = Model()
    budget = Budget(400, "tokens")
    found = asyncio.run(
        replies({"model": model}, [str(i) for i in range(100)], CallOptions(budget=budget))
    )
    answered = sum(isinstance(reply, Reply) for reply in found)
    assert answered == len(model.asked)
    assert 400 - 270 < answered * 12 <= 400


def test_a_budget_in_dollars_without_a_price_never_begins(tmp_path: Path) -> None:
    model = Model()
    with pytest.raises(BackendError, match="needs the price of openai:m"):
        trustassay.score(
            [{"question": "?"}],
            metrics="grounding",
            entailer="lexical",
            model=model,
            budget=Budget(1, "usd"),
            prices=Prices(),
            out=tmp_path / "run",
        )
    with pytest.raises(BackendError, match="needs the price of openai:m"):
        trustassay.chat(model, budget=Budget(1, "usd")).ask(["?"])
    assert not (tmp_path / "run").exists()
    assert not model.asked


def test_a_budget_learns_what_prompts_take_from_the_replies() -> None:
    """A token a character, four times as many as thought: the first replies tell.

    A call takes 400 and 1 tokens, so 24 of them fit into 10,000. By the first estimate (104 and 1)
    the last four would be let out with 376 left, and 27 be paid for.
    """

    @dataclass
    class Dense(Model):
        async def reply(self, request: ChatRequest) -> Reply:
            await asyncio.sleep(0.001)
            tokens = len(request.messages[-1].content)
            self.asked.append(request.messages[-1].content)
            return Reply("x", prompt_tokens=tokens, reply_tokens=1)

    model = Dense()

    async def work() -> list[object]:
        options = CallOptions(budget=Budget(10_000, "tokens"))
        gatherers = Client(Backends.of(chat={"model": model}), options)
        models = SampleModels(gatherers)
        found: list[object] = []
        try:
            for block in range(15):  # as a window of samples would
                prompts = [f"{block:02}{i:02}".ljust(400, "字") for i in range(4)]
                calls = [models.chat(prompt, max_tokens=1) for prompt in prompts]
                found += await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await gatherers.close()
        return found

    found = asyncio.run(work())
    assert len(model.asked) * 401 <= 10_000
    assert len(model.asked) >= 23
    assert isinstance(found[-1], BackendError)


def test_a_stored_reply_that_cannot_be_read_is_asked_for_again_and_mended(tmp_path: Path) -> None:
    """Its neighbours are taken from the file all the same."""
    model = Model()
    chat = trustassay.chat(model, cache=tmp_path)
    prompts = ["one", "two", "three"]
    chat.ask(prompts)
    with sqlite3.connect(tmp_path / "calls.sqlite") as calls:
        damaged = """UPDATE calls SET reply = '{"words": "of a later version"}' """
        assert calls.execute(damaged + "WHERE request LIKE '%two%'").rowcount == 1
    calls.close()
    for asked in (["two"], []):
        model.asked.clear()
        assert [reply.text for reply in chat.ask(prompts)] == prompts
        assert model.asked == asked


def test_a_request_that_may_not_leave_is_no_try(tmp_path: Path) -> None:
    async def asked() -> tuple[list[object], int]:
        own = CallStore(tmp_path / "calls.sqlite")
        counter = FolderRequestCounter(own, tmp_path / "failures.jsonl", max_requests=2)
        gatherers = Client(Backends.of(chat={"model": Model()}), own_store=own, counter=counter)
        models = SampleModels(gatherers)
        try:
            work = (models.chat(text) for text in "abc")
            found: list[object] = await asyncio.gather(*work, return_exceptions=True)
        finally:
            await gatherers.close()
            own.close()
        (endpoint,) = gatherers.endpoints.all().values()
        return found, endpoint.sent

    found, tries = asyncio.run(asked())
    assert tries == 2
    assert [type(each) for each in found] == [Reply, Reply, BudgetReachedError]
