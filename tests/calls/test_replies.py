"""Replies between store and reader: kept as they came, read as answers, never silent."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from trustassay.backends.functions import FunctionChat
from trustassay.backends.replay import ReplayChat
from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, Client, SampleModels
from trustassay.calls.keys import Keys, chat_parts
from trustassay.calls.prices import Budget, Prices
from trustassay.calls.replies import (
    find_empty_reply_error,
    reply_from_json,
    reply_to_json,
)
from trustassay.calls.store import CACHE_FILE, CallStore, StoredCall
from trustassay.core.capabilities import ChatRequest, EndpointLimits, Reply, TokenLogprob
from trustassay.core.event_loop import run_anywhere
from trustassay.errors import BackendError, CallError
from trustassay.papers.session import FolderRequestCounter

ASKED = ChatRequest.of("Where?")
OLD = {"text": "<think>hm</think>Paris.", "finish": "stop", "prompt_tokens": 3,
       "reply_tokens": 4, "others": [], "logprobs": None, "dropped": []}  # fmt: skip
"""A reply as it was stored before there was reasoning."""


class Saying:
    """Says one thing after the other, and then the last for ever; shared like an endpoint."""

    limits = EndpointLimits()

    def __init__(self, *said: str | Reply, name: str = "openai:m@http://h/v1") -> None:
        self.name, self.said = name, list(said)
        self.asked: Counter[str] = Counter()

    async def reply(self, request: ChatRequest) -> Reply:
        self.asked[request.messages[-1].content] += 1
        found = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        return Reply(found, "stop", 5, 7) if isinstance(found, str) else found


class Local:
    """Answers batches in this process, each request by a function."""

    name = "local"

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.batches: list[int] = []

    def replies(self, requests: Sequence[ChatRequest]) -> list[Reply]:
        self.batches.append(len(requests))
        return [Reply(self.answer(r.messages[-1].content), "stop", 1, 1) for r in requests]


def asked(
    model: Any, own: Path | None = None, n: int = 1, *, may_be_empty: bool = False, **given: Any
) -> list[Any]:
    """Return the replies to ``n`` prompts, and the errors; calls are stored in ``own``."""

    async def work() -> list[Any]:
        store = CallStore(own) if own else None
        stores = {name: given[name] for name in ("shared_store", "counter") if name in given}
        options = {name: value for name, value in given.items() if name not in stores}
        gatherers = Client(
            Backends.of(chat={"model": model}), CallOptions(**options), own_store=store, **stores
        )
        models = SampleModels(gatherers)
        found: list[Any] = []
        try:
            requests = [ChatRequest.of(f"Where? {i}", may_be_empty=may_be_empty) for i in range(n)]
            futures = list(map(models.request, requests))
            for future in futures:
                try:
                    found.append(await future)
                except BackendError as error:
                    found.append(error)
        finally:
            await gatherers.close()
            if store:
                store.close()
        return found

    return run_anywhere(work)


def rows(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as calls:
        query = "SELECT reply, prompt_tokens, reply_tokens FROM calls ORDER BY rowid"
        return [(json.loads(reply)["text"], *tokens) for reply, *tokens in calls.execute(query)]


# An empty reply ----------------------------------------------------------------------------------


def test_an_empty_reply_is_asked_for_once_more() -> None:
    model = Saying("", "Paris.")
    assert asked(model)[0].text == "Paris."
    assert model.asked.total() == 2


@pytest.mark.parametrize("said", ["", " \n", "\u200b", "<think>hm</think>\n"])
def test_what_stays_empty_fails(said: str) -> None:
    model = Saying(said)
    (error,) = asked(model)
    assert isinstance(error, CallError)
    assert error.kind == "empty"
    assert str(error).startswith(f"{model.name}: the reply is empty")
    assert str(error).endswith("(after 2 tries)")
    assert model.asked.total() == 2


def test_a_reply_cut_before_it_began_is_not_asked_for_again() -> None:
    model = Saying(Reply("", "length", 5, 300, reasoning="hm"))
    (error,) = asked(model)
    assert "it reached the token limit before an answer began; raise max_tokens" in str(error)
    assert model.asked.total() == 1
    told = find_empty_reply_error("m", ChatRequest.of("a", max_tokens=3000), Reply("", "length"))
    assert str(told).endswith("raise max_tokens (3,000)")


def test_the_message_says_what_there_was() -> None:
    def words(reply: Reply) -> str:
        return str(find_empty_reply_error("m", ASKED, reply))

    assert words(Reply("", "tool_calls")) == "m: the reply is empty (finish: tool_calls)"
    assert words(Reply("<think>\nhm", "stop")) == "m: the reply is empty except for its reasoning"
    assert words(Reply("a", others=("", "b"))) == "m: 1 of 3 replies are empty"
    assert find_empty_reply_error("m", ASKED, Reply("a")) is None


def test_empty_replies_are_paid_stored_and_asked_for_by_the_next_run(tmp_path: Path) -> None:
    own = tmp_path / "calls.sqlite"
    assert asked(Saying(""), own)[0].kind == "empty"
    assert rows(own) == [("", 5, 7)] * 2
    model = Saying("Paris.")
    assert asked(model, own)[0].text == "Paris."
    assert asked(model, own)[0].text == "Paris."
    assert model.asked.total() == 1
    assert rows(own) == [("", 5, 7), ("", 5, 7), ("Paris.", 5, 7)]
    store = CallStore(own)
    used = store.usage("chat")[model.name]
    assert (used.calls, used.prompt_tokens, used.reply_tokens) == (3, 15, 21)
    store.close()


def test_a_budget_counts_what_came_empty() -> None:
    model = Saying("")
    found = asked(model, None, 200, prices=Prices(), budget=Budget(2000, "tokens"))
    assert all(isinstance(error, BackendError) for error in found)
    assert "the budget of 2,000 tokens is reached" in str(found[-1])
    assert model.asked.total() * 12 < 2000


def test_what_left_is_counted_once_when_a_search_goes_on(tmp_path: Path) -> None:
    own, failures = tmp_path / "calls.sqlite", tmp_path / "failures.jsonl"
    model = Saying("")

    def work(most: int | None = None) -> tuple[Any, int]:
        counter = FolderRequestCounter(store := CallStore(own), failures, most)
        counter.ask(counter.of(model.name, ChatRequest.of("Where? 0")).key)
        (error,) = asked(model, own, counter=counter)
        used = counter.used
        store.close()
        return error, used

    error, used = work()
    assert (error.kind, used, model.asked.total()) == ("empty", 2, 2)
    error, used = work(most=3)  # not asked again: an unbroken search would not have done so
    assert (error.kind, used, model.asked.total()) == ("empty", 2, 2)
    model.asked.clear()
    counter = FolderRequestCounter(store := CallStore(own), failures, 3)
    asked(model, own, 2, counter=counter)
    store.close()
    assert model.asked == {"Where? 1": 1}  # two had left, one more may


def test_a_local_model_is_asked_once_and_its_neighbours_stay(tmp_path: Path) -> None:
    model = Local(lambda text: "" if text.endswith("1") else "<think>hm</think>Paris.")
    own = tmp_path / "calls.sqlite"
    first, second, third = asked(model, own, 3)
    assert (first.text, first.reasoning, third.text) == ("Paris.", "hm", "Paris.")
    assert second.kind == "empty"
    assert model.batches == [3]
    assert Counter(text for text, *_ in rows(own))[""] == 1


def test_a_function_that_says_nothing_fails() -> None:
    (error,) = asked(FunctionChat(lambda prompt: "", "silent"))
    assert str(error) == "silent: the reply is empty (after 2 tries)"


# What may be empty -------------------------------------------------------------------------------


def test_a_request_may_allow_an_empty_reply(tmp_path: Path) -> None:
    model = Saying("")
    own = tmp_path / "calls.sqlite"
    for _ in range(2):  # the second from the store
        (reply,) = asked(model, own, may_be_empty=True)
        assert reply.text == ""
    assert model.asked.total() == 1
    (error,) = asked(model, own)
    assert error.kind == "empty"
    assert model.asked.total() == 3


def test_keys_are_those_of_older_stores() -> None:
    fields = json.loads(chat_parts(ASKED)[0])
    assert "may_be_empty" not in fields
    allowed = ChatRequest.of("Where?", may_be_empty=True)
    assert json.loads(chat_parts(allowed)[0]) == {**fields, "may_be_empty": True}
    assert "embedding_radius" not in fields
    for radius, more in ((None, {}), (0.0, {}), (0.05, {"embedding_radius": 0.05})):
        moved = ChatRequest.of("Where?", embedding_radius=radius)
        assert json.loads(chat_parts(moved)[0]) == fields | more


# The store ---------------------------------------------------------------------------------------


def test_the_store_has_the_reply_as_it_came() -> None:
    reply = Reply("<think>hm</think>Paris.", "stop", reasoning="told apart")
    stored = json.loads(reply_to_json(reply))
    assert (stored["text"], stored["reasoning"]) == (reply.text, "told apart")
    read = reply_from_json(json.dumps(stored))
    assert (read.text, read.reasoning) == ("Paris.", "told apart\n\nhm")
    assert not {"reasoning", "may_be_empty"} & json.loads(reply_to_json(Reply("a"))).keys()


def test_log_probabilities_are_stored_in_short_and_read_in_both_forms(tmp_path: Path) -> None:
    tokens = (TokenLogprob("Paris", -0.2, (("Rome", -1.7),)), TokenLogprob(".", -1.5e-7))
    own = tmp_path / "calls.sqlite"
    reply = Reply("<think>hm</think>Paris.", logprobs=tokens)
    assert asked(Saying(reply), own)[0].logprobs == tokens
    assert asked(ReplayChat(str(own)))[0].logprobs == tokens
    with sqlite3.connect(own) as calls:
        ((stored,),) = calls.execute("SELECT reply FROM calls")
    assert isinstance(json.loads(stored)["logprobs"], str)
    assert reply_from_json(json.dumps({**OLD, "logprobs": tokens})).logprobs == tokens
    with sqlite3.connect(own) as calls:
        calls.execute("UPDATE calls SET reply = ?", [json.dumps({**OLD, "logprobs": "0"})])
    with pytest.raises(
        BackendError, match=r"reply: logprobs: expected a list of \[token, logprob, alt"
    ):
        ReplayChat(str(own))


def test_older_stores_are_read_and_their_silence_asked_for_again(tmp_path: Path) -> None:
    model = Saying("Rome.")
    store = CallStore(tmp_path / CACHE_FILE)
    for text, reply in (("Where? 0", OLD), ("Where? 1", {**OLD, "text": ""})):
        parts = chat_parts(ChatRequest.of(text))
        key = Keys("chat", model.name).of(parts)
        store.add([StoredCall(key, "chat", model.name, json.dumps(parts), json.dumps(reply), 0.0)])
    first, second = asked(model, None, 2, shared_store=store)
    assert (first.text, first.reasoning, second.text) == ("Paris.", "hm", "Rome.")
    assert model.asked == {"Where? 1": 1}
    assert asked(model, None, 2, shared_store=store)[1].text == "Rome."
    assert model.asked.total() == 1
    store.close()


def test_a_replayed_run_gives_the_answer_and_not_the_silence_before_it(tmp_path: Path) -> None:
    own = tmp_path / "calls.sqlite"
    asked(Saying("", "Paris."), own)
    assert asked(ReplayChat(str(own)))[0].text == "Paris."
    silent = tmp_path / "silent.sqlite"
    asked(Saying(""), silent)
    assert asked(ReplayChat(str(silent)))[0].kind == "empty"


# Errors have a name ------------------------------------------------------------------------------


class Slow(Saying):
    limits = EndpointLimits(timeout_s=0.01, tries=1)

    async def reply(self, request: ChatRequest) -> Reply:
        await asyncio.sleep(10)
        return await super().reply(request)


def test_a_timeout_names_its_address() -> None:
    (error,) = asked(Slow("a"))
    assert str(error) == "openai:m@http://h/v1: no reply within 0.01 s"
    assert error.kind == "timeout"
