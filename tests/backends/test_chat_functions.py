"""Functions as chat models: whatever they return or raise is a reply or words."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from trustassay.backends.functions import FunctionChat
from trustassay.core.capabilities import ChatModel, ChatRequest, Message, Reply
from trustassay.errors import BackendError, CallError

REQUEST = ChatRequest.of("Who?", system="Be brief.", temperature=0.7)


def asked(function: Callable[[Any], Any], request: ChatRequest = REQUEST) -> Reply:
    async def work() -> Reply:
        chat = FunctionChat(function)
        try:
            return await chat.reply(request)
        finally:
            await chat.close()

    return asyncio.run(work())


async def later(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.upper()


class Caller:
    async def __call__(self, prompt: str) -> str:
        return prompt.upper()


@pytest.mark.parametrize(
    "function", [str.upper, later, Caller(), partial(later), lambda p: later(p + "")]
)
def test_plain_and_async_functions_of_the_text(function: Callable[[str], Any]) -> None:
    assert asked(function) == Reply("BE BRIEF.\n\nWHO?")


def test_functions_of_the_whole_request() -> None:
    def named(request: Any) -> Reply:
        return Reply(str(request.temperature), finish="stop")

    def annotated(asked: ChatRequest) -> str:
        return asked.messages[0].content

    assert asked(named) == Reply("0.7", "stop")
    assert asked(annotated).text == "Be brief."


def test_turns_are_told_apart_in_the_text() -> None:
    turns = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Who?"))
    assert asked(lambda text: text, ChatRequest(turns)).text == (
        "User: Hi\n\nAssistant: Hello\n\nUser: Who?\n\nAssistant:"
    )


def test_n_replies_are_n_calls() -> None:
    numbers = iter(range(9))
    reply = asked(lambda _: str(next(numbers)), ChatRequest.of("?", n=3))
    assert sorted([reply.text, *reply.others]) == ["0", "1", "2"]
    whole = Reply("a", others=("b", "c"))
    assert asked(lambda _: whole, ChatRequest.of("?", n=3)) == whole
    with pytest.raises(BackendError, match="returned 3 replies instead of 4"):
        asked(lambda _: whole, ChatRequest.of("?", n=4))


def test_plain_functions_run_many_at_once() -> None:
    together = threading.Barrier(20)

    def slow(prompt: str) -> str:
        together.wait(timeout=20)
        return prompt

    async def work() -> list[Reply]:
        chat = FunctionChat(slow)
        requests = [ChatRequest.of(str(i)) for i in range(20)]
        replies = await asyncio.gather(*map(chat.reply, requests))
        await chat.close()
        return list(replies)

    assert [reply.text for reply in asyncio.run(work())] == [str(i) for i in range(20)]


def test_a_plain_function_does_not_stop_the_loop() -> None:
    began, go_on = threading.Event(), threading.Event()

    def held(prompt: str) -> str:
        began.set()
        assert go_on.wait(timeout=60)
        return prompt

    async def work() -> None:
        chat = FunctionChat(held)
        asking = asyncio.create_task(chat.reply(REQUEST))
        while not began.is_set():
            await asyncio.sleep(0.001)
        go_on.set()  # by the loop, while the function holds its thread
        await asking
        await chat.close()

    asyncio.run(work())


def raising(error: Exception) -> Callable[[str], str]:
    def function(prompt: str) -> str:
        raise error

    return function


def test_what_goes_wrong_is_told() -> None:
    with pytest.raises(BackendError, match=r"raising.<locals>.function.* failed: KeyError: 'x'"):
        asked(raising(KeyError("x")))
    with pytest.raises(BackendError, match=r"failed: ValueError$"):
        asked(raising(ValueError()))
    with pytest.raises(BackendError, match=r"failed: RuntimeError: StopIteration$"):
        asked(raising(StopIteration()))
    with pytest.raises(CallError, match=r"^slow down$") as limited:
        asked(raising(CallError("slow down", "limited", 3.0)))
    assert limited.value.retry_after_s == 3.0
    with pytest.raises(BackendError, match="returned None; expected a text or a Reply"):
        asked(lambda _: None)
    for wrong in (3, Reply, None):
        with pytest.raises(BackendError, match="expected a chat model"):
            FunctionChat(wrong)  # type: ignore[arg-type]


def test_names() -> None:
    assert FunctionChat(later).name == "function:tests.backends.test_chat_functions.later"
    assert FunctionChat(later, "python:m:later").name == "python:m:later"
    assert isinstance(FunctionChat(later), ChatModel)
    assert FunctionChat(lambda p: p + "a").name != FunctionChat(lambda p: p + "b").name

    def saying(text: str, mark: object) -> Callable[[str], str]:
        return lambda prompt: f"{text}{mark}"

    one, same, other = saying("a", object()), saying("a", object()), saying("b", object())
    assert FunctionChat(one).name == FunctionChat(same).name != FunctionChat(other).name
