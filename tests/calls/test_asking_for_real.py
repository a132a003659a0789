"""Outages, keys and time-outs as a user meets them: real connections to a server that fails."""

from __future__ import annotations

import threading
import time

import pytest

import trustassay
from tests.llm_server import LlmServer
from trustassay.calls import retry
from trustassay.errors import BackendError

PROMPTS = [f"Question {i}?" for i in range(300)]


def uri(server: LlmServer, options: str = "") -> str:
    return f"openai:test@{server.base_url}?{options}"


@pytest.mark.slow
@pytest.mark.parametrize("die", ["close", "503"])
def test_an_outage_in_the_middle_loses_no_answer(die: str) -> None:
    """Each call has three tries, so that an outage of three seconds would use them up."""
    with LlmServer(latency_ms=50, die=die, reply="echo") as server:
        chat = trustassay.chat(uri(server, "concurrency=10&tries=3"), cache=False)

        def outage() -> None:
            time.sleep(0.5)
            server.die()
            time.sleep(3)
            server.revive()

        thread = threading.Thread(target=outage)
        thread.start()
        try:
            replies = chat.ask(PROMPTS)
        finally:
            thread.join()
        assert [reply.text for reply in replies] == PROMPTS
        assert server.stats()["received"] <= len(PROMPTS) + 40


@pytest.mark.parametrize("latency_ms", [0, 30])
def test_a_wrong_key_is_told_after_one_request(
    latency_ms: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        retry, "FIRST_CALL_ALONE_S", 30
    )  # on a busy machine the first reply may be late
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-the-right-one")
    with LlmServer(require_key="sk-the-right-one", latency_ms=latency_ms) as server:
        chat = trustassay.chat(uri(server, "key=OPENAI_API_KEY&concurrency=300"), cache=False)
        with pytest.raises(BackendError, match=r"300 of 300 prompts were not answered.*Incorrect"):
            chat.ask(PROMPTS, strict=True)
        assert server.stats()["received"] == 1


def test_a_time_out_names_the_address() -> None:
    with LlmServer(latency_ms=5000) as server:
        chat = trustassay.chat(uri(server, "timeout=0.2&tries=1"), cache=False)
        with pytest.raises(BackendError) as error:
            chat.ask(["?"], strict=True)
        assert f"{server.base_url}: no reply within 0.2 s" in str(error.value)


@pytest.mark.slow
def test_a_server_with_room_soon_has_as_many_calls_as_were_asked_for() -> None:
    with LlmServer(latency_ms=400) as server:
        chat = trustassay.chat(uri(server, "concurrency=100"), cache=False)
        chat.ask(PROMPTS)
        assert server.stats()["at_once"] >= 80
