"""What the server of the other tests promises."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import pytest

from tests.llm_server import LlmServer

T = TypeVar("T")
CHAT = "/v1/chat/completions"
GEMINI = "/v1beta/models/gemini-test:generateContent"
ANTHROPIC_HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def asked(words: str = "one two three", **others: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": words}], **others}


def inside(work: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            return await work(session)

    return asyncio.run(whole())


def post(
    server: LlmServer, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    async def work(session: aiohttp.ClientSession) -> tuple[int, Any]:
        async with session.post(server.root + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    return inside(work)


def fates(server: LlmServer, calls: int, at_once: int = 1) -> list[str]:
    """Say what becomes of calls with bodies of their own."""
    places = asyncio.Semaphore(at_once)

    async def work(session: aiohttp.ClientSession) -> list[str]:
        async def one(i: int) -> str:
            async with places:
                try:
                    async with session.post(server.root + CHAT, json=asked(f"n {i}")) as response:
                        await response.json()
                        return str(response.status)
                except aiohttp.ClientConnectionError:
                    return "dropped"
                except ValueError:
                    return "malformed"

        return await asyncio.gather(*map(one, range(calls)))

    return inside(work)


def test_a_chat_completion_follows_from_the_request() -> None:
    with LlmServer() as server:
        status, found = post(server, CHAT, asked(n=2, logprobs=True, top_logprobs=2))
        assert status == 200
        first, second = found["choices"]
        assert first["message"]["role"] == "assistant"
        assert first["message"]["content"] != second["message"]["content"]
        (token, _) = first["logprobs"]["content"]
        assert token["token"] == "Reply"
        likelihoods = [other["logprob"] for other in token["top_logprobs"]]
        assert likelihoods[0] == token["logprob"]
        assert sorted(likelihoods, reverse=True) == likelihoods
        assert found["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        assert post(server, CHAT, asked(n=2, logprobs=True, top_logprobs=2))[1] == found
        assert post(server, CHAT, asked(seed=1)) != post(server, CHAT, asked(seed=2))


@pytest.mark.parametrize("most", [{"max_tokens": 2}, {"max_completion_tokens": 2}])
def test_replies_end_at_their_length_and_at_a_stop(most: dict[str, Any]) -> None:
    with LlmServer(reply="echo") as server:
        (choice,) = post(server, CHAT, asked(**most))[1]["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("one two", "length")
        (choice,) = post(server, CHAT, asked(stop=[" three"]))[1]["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("one two", "stop")


def test_embeddings_are_unit_vectors_as_numbers_and_as_base64() -> None:
    with LlmServer(dimensions=8) as server:
        body = {"model": "m", "input": ["a", "b", "a"]}
        rows = post(server, "/v1/embeddings", body)[1]["data"]
        a, b, again = (row["embedding"] for row in rows)
        assert a == again != b
        assert sum(x * x for x in a) == pytest.approx(1)
        packed = post(server, "/v1/embeddings", body | {"encoding_format": "base64"})[1]["data"]
        numbers = struct.unpack("<8f", base64.b64decode(packed[0]["embedding"]))
        assert numbers == pytest.approx(a)


def test_anthropics_wire() -> None:
    body = asked(max_tokens=2, system="be brief")
    with LlmServer(reply="echo") as server:
        path = "/v1/messages"
        status, found = post(server, path, body, ANTHROPIC_HEADERS)
        assert status == 200
        assert found["content"] == [{"type": "text", "text": "one two"}]
        assert found["stop_reason"] == "max_tokens"
        assert found["usage"] == {"input_tokens": 5, "output_tokens": 2}
        for headers, wrong, kind in (
            ({}, body, "authentication_error"),
            ({"x-api-key": "k"}, body, "invalid_request_error"),
            (ANTHROPIC_HEADERS, asked(), "invalid_request_error"),
            (ANTHROPIC_HEADERS, body | {"seed": 1}, "invalid_request_error"),
        ):
            status, found = post(server, path, wrong, headers)
            assert (found["type"], found["error"]["type"]) == ("error", kind), found
            assert status == (401 if kind == "authentication_error" else 400)


def test_geminis_wire() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "one two three"}]}]}
    settings = {"maxOutputTokens": 2, "candidateCount": 2, "responseLogprobs": True, "logprobs": 1}
    with LlmServer(reply="echo", require_key="right") as server:
        right = {"x-goog-api-key": "right"}
        status, found = post(server, GEMINI, body | {"generationConfig": settings}, right)
        assert status == 200
        first, _ = found["candidates"]
        assert first["content"] == {"parts": [{"text": "one two"}], "role": "model"}
        assert first["finishReason"] == "MAX_TOKENS"
        assert len(first["logprobsResult"]["chosenCandidates"]) == 2
        assert found["usageMetadata"]["totalTokenCount"] == 7
        assert found["modelVersion"] == "gemini-test"
        status, found = post(server, GEMINI, body, {"x-goog-api-key": "wrong"})
        assert (status, found["error"]["status"]) == (400, "INVALID_ARGUMENT")
        assert found["error"]["details"][0]["reason"] == "API_KEY_INVALID"
        status, found = post(server, GEMINI, body)
        assert (status, found["error"]["status"]) == (403, "PERMISSION_DENIED")


def test_a_key_can_be_required_and_its_value_is_kept_nowhere() -> None:
    with LlmServer(require_key="secret-key") as server:
        for name, value, expected in (
            ("Authorization", "Bearer secret-key", 200),
            ("api-key", "secret-key", 200),
            ("Authorization", "Bearer other", 401),
            ("X-Nothing", "secret-key", 401),
        ):
            assert post(server, CHAT, asked(), {name: value})[0] == expected
        shown = server.requests()
        assert "Authorization" in shown[0]["headers"]
        assert "secret-key" not in f"{shown} {server.stats()}"


def test_refused_parameters_are_named() -> None:
    with LlmServer(refuse="max_tokens,seed") as server:
        status, found = post(server, CHAT, asked(seed=1))
        assert (status, found["error"]["param"]) == (400, "seed")
        assert found["error"]["type"] == "invalid_request_error"
        _, found = post(server, CHAT, asked(max_tokens=1))
        assert "Use 'max_completion_tokens' instead." in found["error"]["message"]
        assert post(server, CHAT, asked(max_completion_tokens=1))[0] == 200


def test_prompts_arrive_to_the_byte() -> None:
    words = "\x00\x1b[31m\u202e\r\n 中"
    with LlmServer(reply="echo") as server:
        (choice,) = post(server, CHAT, asked(words))[1]["choices"]
        assert choice["message"]["content"] == words
        (request,) = server.requests()
        assert request["body"] == asked(words)
        assert (request["method"], request["path"]) == ("POST", CHAT)


def test_what_cannot_be_read_is_a_bad_request() -> None:
    with LlmServer() as server:
        body: Any
        for body in ({}, [], asked() | {"messages": [{"role": "user"}]}, {"model": "m"}):
            assert post(server, CHAT, body)[0] == 400
        assert post(server, "/v1/nothing", {})[0] == 404
        assert server.stats()["answered"] == 0


@pytest.mark.slow
def test_faults_are_drawn_by_the_seed_and_counted() -> None:
    shares = {
        "share_429": 0.2,
        "share_500": 0.1,
        "share_dropped": 0.1,
        "share_malformed": 0.1,
    }
    with LlmServer(seed=3, **shares) as server:
        seen = fates(server, 400)
        counts = Counter(seen)
        for fate, share in zip(
            ("429", "500", "dropped", "malformed"), shares.values(), strict=True
        ):
            # half of the share is more than three standard deviations away
            assert counts[fate] == pytest.approx(400 * share, rel=0.5)
        stats = server.stats()
        assert stats["by_status"] == counts
        assert (stats["received"], stats["answered"]) == (400, counts["200"])
        assert sum(times["answered"] for times in stats["bodies"].values()) == counts["200"]
        server.change(seed=3)
        assert fates(server, 400) == seen
        assert len(server.stats()["bodies"]) == 400
        assert server.asked_again()
        server.reset()
        assert server.stats()["received"] == 0


def test_an_answer_that_a_killed_client_cannot_have_read_is_none() -> None:
    with LlmServer() as server:
        fates(server, 3)
        killed = time.time()
        assert not server.asked_again()
        fates(server, 2)
        assert len(server.asked_again()) == 2
        assert not server.asked_again([killed], grace_s=10)
        assert len(server.asked_again([killed - 10])) == 2


def test_a_429_says_how_long_to_wait() -> None:
    async def work(session: aiohttp.ClientSession) -> str:
        async with session.post(server.root + CHAT, json=asked()) as response:
            return response.headers["Retry-After"]

    with LlmServer(share_429=1.0, retry_after_s=7) as server:
        assert inside(work) == "7"
    with LlmServer(rpm=2, window_s=600.0) as server:
        assert fates(server, 3) == ["200", "200", "429"]
        assert 0 < int(inside(work)) <= 600
        server.change(window_s=0.05)
        time.sleep(0.1)
        assert fates(server, 1) == ["200"]


@pytest.mark.slow
def test_latency_and_slow_replies() -> None:
    with LlmServer(latency_ms=100, share_slow=0.5, slow_s=0.4, seed=1) as server:
        began = time.monotonic()
        assert fates(server, 1) == ["200"]
        assert time.monotonic() - began >= 0.1
        fates(server, 10, at_once=10)
        assert time.monotonic() - began > 0.5


@pytest.mark.slow
def test_five_hundred_at_once() -> None:
    with LlmServer(hold=500) as server:
        assert fates(server, 500, at_once=500) == ["200"] * 500
        assert server.stats()["at_once"] == 500


@pytest.mark.parametrize(("die", "after"), [("close", "dropped"), ("503", "503")])
def test_an_endpoint_dies_and_comes_back(die: str, after: str) -> None:
    with LlmServer(die_after=5, die=die, latency_ms=10) as server:
        assert Counter(fates(server, 12, at_once=4)) == {"200": 5, after: 7}
        stats = server.stats()
        assert (stats["dead"], stats["answered"]) == (True, 5)
        server.revive()
        assert fates(server, 12, at_once=4) == ["200"] * 12
        assert server.stats()["answered"] == 17
        server.die()
        assert fates(server, 1) == [after]


def test_the_process_ends_and_begins_again_at_the_same_port() -> None:
    with LlmServer(die_after=1) as server:
        before, pid = server.base_url, server.pid
        assert fates(server, 2) == ["200", "dropped"]
        server.stop()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert fates(server, 1) == ["dropped"]
        server.start(die_after=-1)
        assert server.base_url == before
        assert fates(server, 2) == ["200", "200"]
        assert server.stats()["received"] == 2
