"""The three wires against a server that speaks them, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.llm_server import LlmServer, vector
from trustassay.backends import resolve
from trustassay.backends.openai import OpenAIChat
from trustassay.core.capabilities import ChatModel, ChatRequest, Message, Reply
from trustassay.errors import CallError

WIRES = ("openai", "anthropic", "gemini")
KEY = "sk-geheim-0123456789"
DEFAULTS: dict[str, Any] = {
    "refuse": "", "require_key": KEY, "reply": "hash", "latency_ms": 0.0, "seed": 0,
    "share_429": 0.0, "share_500": 0.0, "share_dropped": 0.0, "share_malformed": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[LlmServer]:
    with LlmServer() as server:
        yield server


@pytest.fixture
def server(running: LlmServer, monkeypatch: pytest.MonkeyPatch) -> LlmServer:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    running.change(**DEFAULTS)
    running.reset()
    return running


def chat_of(wire: str, server: LlmServer, model: str = "test", options: str = "") -> Any:
    base = server.base_url if wire == "openai" else server.root
    return resolve.chat(f"{wire}:{model}@{base}{options}")


def asked(chat: Any, *requests: ChatRequest) -> list[Reply]:
    """Ask all at once."""

    async def work() -> list[Reply]:
        try:
            return list(await asyncio.gather(*map(chat.reply, requests)))
        finally:
            await chat.close()

    return asyncio.run(work())


def failing(chat: Any, request: ChatRequest) -> CallError:
    with pytest.raises(CallError) as error:
        asked(chat, request)
    assert KEY not in str(error.value)
    return error.value


FULL = ChatRequest(
    (
        Message("system", "Be brief."),
        Message("user", "Who?"),
        Message("assistant", "She."),
        Message("user", "Why?"),
    ),
    temperature=0.5,
    max_tokens=7,
    seed=11,
    stop=("END", "###"),
    logprobs=2,
    repeat=3,
    prompt="judge/1",
    schema='{"type": "object"}',
    stand_in="what a plan takes",
)

BODIES: dict[str, dict[str, Any]] = {
    "openai": {
        "model": "test",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": "She."},
            {"role": "user", "content": "Why?"},
        ],
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 11,
        "stop": ["END", "###"],
        "logprobs": True,
        "top_logprobs": 2,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": {"type": "object"}},
        },
    },
    "anthropic": {
        "model": "test",
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": "She."},
            {"role": "user", "content": "Why?"},
        ],
        "temperature": 0.5,
        "max_tokens": 7,
        "stop_sequences": ["END", "###"],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Who?"}]},
            {"role": "model", "parts": [{"text": "She."}]},
            {"role": "user", "parts": [{"text": "Why?"}]},
        ],
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 7,
            "seed": 11,
            "stopSequences": ["END", "###"],
            "responseLogprobs": True,
            "logprobs": 2,
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    },
}
PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/test:generateContent",
}
HEADERS = {
    "openai": {"authorization"},
    "anthropic": {"x-api-key", "anthropic-version"},
    "gemini": {"x-goog-api-key"},
}


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_sent(wire: str, server: LlmServer) -> None:
    asked(chat_of(wire, server), FULL)
    (sent,) = server.requests()
    assert (sent["method"], sent["path"], sent["body"]) == ("POST", PATHS[wire], BODIES[wire])
    assert {name.lower() for name in sent["headers"]} >= HEADERS[wire]
    assert KEY not in json.dumps(sent)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("openai", {"model": "test", "messages": [{"role": "user", "content": "Hi"}]}),
        (
            "anthropic",
            {"model": "test", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1024},
        ),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    ],
)
def test_what_is_left_open_is_not_sent(wire: str, body: Any, server: LlmServer) -> None:
    asked(chat_of(wire, server), ChatRequest.of("Hi", temperature=None))
    assert server.requests()[0]["body"] == body


@pytest.mark.parametrize("wire", WIRES)
def test_what_comes_back(wire: str, server: LlmServer) -> None:
    server.change(reply="text:one two three END four")
    chat: Any = chat_of(wire, server)
    whole, cut, stopped = asked(
        chat,
        ChatRequest.of("a b", system="c"),
        ChatRequest.of("a b", max_tokens=2),
        ChatRequest.of("a b", stop=("END",)),
    )
    assert whole == Reply("one two three END four", "stop", 3, 5)
    assert cut == Reply("one two", "length", 2, 2)
    assert stopped.text == "one two three " and stopped.finish == "stop"
    assert chat.endpoint == (server.base_url if wire == "openai" else server.root)
    assert isinstance(chat, ChatModel)


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_several_replies_and_log_probabilities(wire: str, server: LlmServer) -> None:
    (reply,) = asked(chat_of(wire, server), ChatRequest.of("a", n=3, logprobs=2, seed=1))
    assert len({reply.text, *reply.others}) == 3
    assert reply.logprobs is not None
    assert "".join(token.token for token in reply.logprobs) == reply.text
    first = reply.logprobs[0]
    assert len(first.alternatives) == 2
    assert first.alternatives[0] == (first.token, first.logprob)
    assert reply.dropped == ()
    (alone,) = asked(chat_of(wire, server), ChatRequest.of("a", logprobs=0))
    assert alone.logprobs is not None and alone.logprobs[0].alternatives == ()


def test_what_anthropics_wire_cannot_say(server: LlmServer) -> None:
    chat = chat_of("anthropic", server)
    (reply,) = asked(chat, ChatRequest.of("a", temperature=1.5, seed=1, logprobs=1, schema="{}"))
    assert reply.dropped == ("logprobs", "schema", "seed", "temperature")
    assert server.requests()[0]["body"]["temperature"] == 1.0
    assert asked(chat, ChatRequest.of("a", temperature=1.0))[0].dropped == ()
    error = failing(chat, ChatRequest.of("a", n=2))
    assert error.kind == "refused" and "one reply per request" in str(error)


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_is_needed(wire: str, server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{wire.upper()}_API_KEY"
    monkeypatch.setenv(name, "sk-wrong-0123456789")
    error = failing(chat_of(wire, server), ChatRequest.of("a"))
    assert error.kind == "closed" and "wrong" not in str(error)
    monkeypatch.delenv(name)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    error = failing(chat_of(wire, server), ChatRequest.of("a"))
    assert error.kind == "closed" and f"(no key: {name} is not set)" in str(error)


def test_googles_other_key(server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "sk-other-0123456789")
    assert asked(chat_of("gemini", server), ChatRequest.of("a"))
    monkeypatch.delenv("GEMINI_API_KEY")
    assert failing(chat_of("gemini", server), ChatRequest.of("a")).kind == "closed"
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    assert asked(chat_of("gemini", server), ChatRequest.of("a"))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("share_429", "limited"),
        ("share_500", "server"),
        ("share_dropped", "connection"),
        ("share_malformed", "malformed"),
    ],
)
def test_faults_have_their_kind(wire: str, fault: str, kind: str, server: LlmServer) -> None:
    server.change(**{fault: 1.0, "retry_after_s": 2.0})
    error = failing(chat_of(wire, server), ChatRequest.of("a"))
    assert error.kind == kind
    assert error.retry_after_s == (2.0 if kind == "limited" else None)


@pytest.mark.parametrize("wire", WIRES)
def test_every_character_arrives(wire: str, server: LlmServer) -> None:
    server.change(reply="echo")
    text = "".join(map(chr, range(0x20))) + "\x7f\u2028é\U0001f600 </s> \\ \" '"
    (reply,) = asked(chat_of(wire, server), ChatRequest.of(text))
    assert reply.text == text
    (reply,) = asked(chat_of(wire, server), ChatRequest.of("lone \ud800 half"))
    assert reply.text == "lone \ufffd half"


# ---------------------------------------------------------------------------- refused parameters

REFUSED = [
    ("openai", "temperature", "temperature"),
    ("openai", "seed", "seed"),
    ("openai", "stop", "stop"),
    ("openai", "logprobs,top_logprobs", "logprobs"),
    ("openai", "max_tokens,max_completion_tokens", "max_tokens"),
    ("openai", "response_format", "schema"),
    ("gemini", "responseJsonSchema", "schema"),
    ("anthropic", "temperature", "temperature"),
    ("anthropic", "stop_sequences", "stop"),
    ("gemini", "temperature", "temperature"),
    ("gemini", "seed", "seed"),
    ("gemini", "maxOutputTokens", "max_tokens"),
    ("gemini", "stopSequences", "stop"),
    ("gemini", "responseLogprobs", "logprobs"),
]


@pytest.mark.parametrize(("wire", "names", "dropped"), REFUSED)
def test_a_refused_parameter_is_dropped_once_remembered_and_told(
    wire: str, names: str, dropped: str, server: LlmServer
) -> None:
    server.change(refuse=names)
    chat = chat_of(wire, server)
    without = set(asked(chat_of(wire, server), FULL)[0].dropped)
    server.change(refuse="")
    always = set(asked(chat_of(wire, server), FULL)[0].dropped)
    assert without - always == {dropped}
    server.change(refuse=names)
    server.reset()
    first = asked(chat, FULL)[0]
    refusals = server.stats()["by_status"]["400"]
    assert refusals <= 1 + names.count(",")
    second, plain = asked(chat, FULL, ChatRequest.of("a", temperature=None))
    assert server.stats()["by_status"]["400"] == refusals
    assert dropped in first.dropped and dropped in second.dropped
    assert plain.dropped == ()


def test_the_new_name_of_max_tokens(server: LlmServer) -> None:
    server.change(refuse="max_tokens")
    chat = chat_of("openai", server)
    first, second = asked(chat, FULL)[0], asked(chat, FULL)[0]
    assert first == second and first.dropped == () and first.reply_tokens == 2
    bodies = [sent["body"] for sent in server.requests()]
    assert ["max_completion_tokens" in body for body in bodies] == [False, True, True]
    assert bodies[-1]["max_completion_tokens"] == 7 and "max_tokens" not in bodies[-1]


@pytest.mark.parametrize("wire", WIRES)
def test_twenty_calls_that_meet_a_refusal_at_once(wire: str, server: LlmServer) -> None:
    server.change(refuse="temperature,stop,stop_sequences,stopSequences", latency_ms=30.0)
    chat = chat_of(wire, server)
    requests = [ChatRequest.of(str(i), temperature=0.0, stop=("END",)) for i in range(20)]
    replies = asked(chat, *requests)
    assert {reply.dropped for reply in replies} == {("stop", "temperature")}
    assert len({reply.text for reply in replies}) == 20
    statuses = server.stats()["by_status"]
    assert statuses["200"] == 20 and 2 <= statuses["400"] <= 40
    server.reset()
    asked(chat, *requests)
    assert server.stats()["by_status"] == {"200": 20}


def test_what_cannot_be_dropped_is_an_error(server: LlmServer) -> None:
    server.change(refuse="n")
    error = failing(chat_of("openai", server), ChatRequest.of("a", n=2))
    assert error.kind == "refused" and "'n' is not supported" in str(error)
    assert server.stats()["received"] == 1


def test_other_refusals_are_not_tried_again(server: LlmServer) -> None:
    server.change(refuse="messages")
    assert failing(chat_of("openai", server), FULL).kind == "refused"
    assert server.stats()["received"] == 1


# ------------------------------------------------------------------ what no good server would say


def read(wire: str, body: Any, request: ChatRequest | None = None) -> Reply:
    """Return what a wire makes of a body."""
    chat: Any = resolve.chat(f"{wire}:m@http://localhost")

    async def post(path: str, sent: Any) -> Any:
        return body

    chat._http.post = post
    reply: Reply = asyncio.run(chat.reply(request or ChatRequest.of("a")))
    return reply


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "body",
    [
        None, 3, [], {}, "text", {"choices": []}, {"choices": [{}]}, {"choices": 3},
        {"choices": [{"message": {"content": 3}}]}, {"content": 3}, {"content": [{}]},
        {"content": [{"type": "text"}]}, {"candidates": 3}, {"candidates": [3]},
        {"candidates": [{"content": {"parts": [{"text": 3}]}}]},
    ],
)  # fmt: skip
def test_bodies_without_a_reply(wire: str, body: Any) -> None:
    with pytest.raises(CallError) as error:
        read(wire, body)
    assert error.value.kind == "malformed"


@pytest.mark.parametrize("number", [{}, {"logprob": None}, {"logprob": "nan"}])
def test_a_token_without_a_number_costs_the_other_tokens_nothing(number: Any) -> None:
    content = [{"token": "a", **number}, {"token": "b", "logprob": -0.1}]
    body = {"choices": [{"message": {"content": "ab"}, "logprobs": {"content": content}}]}
    reply = read("openai", body, ChatRequest.of("?", logprobs=0))
    assert (reply.text, reply.dropped) == ("ab", ())
    assert reply.logprobs is not None
    assert [token.known for token in reply.logprobs] == [[], [("b", -0.1)]]


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (
            "openai",
            {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]},
        ),
        (
            "openai",
            {
                "choices": [
                    {
                        "message": {"content": None, "refusal": "no"},
                        "finish_reason": "content_filter",
                    }
                ]
            },
        ),
        ("anthropic", {"content": [], "stop_reason": "refusal"}),
        ("gemini", {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
        ("gemini", {"candidates": [{"content": {}, "finishReason": "PROHIBITED_CONTENT"}]}),
    ],
)
def test_what_was_blocked_is_refused(wire: str, body: Any) -> None:
    with pytest.raises(CallError, match="blocked") as error:
        read(wire, body)
    assert error.value.kind == "refused"


@pytest.mark.parametrize(
    ("wire", "body", "reply"),
    [
        ("openai", {"choices": [{"message": {"content": [{"text": "a"}, {"text": "b"}]}}]},
         Reply("ab")),
        ("openai", {"choices": [{"message": {"refusal": "No."}, "finish_reason": "stop"}]},
         Reply("No.", "stop")),
        ("openai", {"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": -1}},
         Reply("a")),
        ("openai", {"choices": [{"message": {"content": "a"}},
                                {"message": {"refusal": "no"}, "finish_reason": "content_filter"},
                                {"message": {"refusal": "no"}}]},
         Reply("a", others=("", "no"))),
        ("anthropic", {"content": [{"type": "thinking", "thinking": "?"},
                                   {"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                       "stop_reason": "refusal",
                       "usage": {"input_tokens": 3, "cache_read_input_tokens": 4}},
         Reply("ab", "content_filter", 7, reasoning="?")),
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "?", "thought": True},
                                                          {"text": "a"}]},
                                    "finishReason": "SAFETY"}],
                    "usageMetadata": {"candidatesTokenCount": 2, "thoughtsTokenCount": 5}},
         Reply("a", "content_filter", None, 7, reasoning="?")),
        ("openai", {"choices": [{"message": {"content": "a", "reasoning_content": "?"}}]},
         Reply("a", reasoning="?")),
        ("openai", {"choices": [{"message": {"content": None, "reasoning": "?"}}]},
         Reply("", reasoning="?")),
        ("openai", {"choices": [{"message": {"content": None, "tool_calls": [{}]},
                                 "finish_reason": "tool_calls"}]},
         Reply("", "tool_calls")),
        ("gemini", {"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]},
         Reply("", "length")),
    ],
)  # fmt: skip
def test_unusual_replies(wire: str, body: Any, reply: Reply) -> None:
    assert read(wire, body) == reply


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_fewer_replies_than_asked_for(wire: str) -> None:
    body = {
        "choices": [{"message": {"content": "a"}}],
        "candidates": [{"content": {"parts": [{"text": "a"}]}}],
    }
    with pytest.raises(CallError, match="1 replies instead of 3"):
        read(wire, body, ChatRequest.of("a", n=3))


def test_log_probabilities_that_do_not_come_are_told() -> None:
    body = {"choices": [{"message": {"content": "a"}}]}
    assert read("openai", body, ChatRequest.of("a", logprobs=1)).dropped == ("logprobs",)


# ---------------------------------------------------------------------------- names of models


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-pro", "/v1beta/models/gemini-pro:generateContent"),
        ("models/gemini-pro", "/v1beta/models/gemini-pro:generateContent"),
        ("tunedModels/my one", "/v1beta/tunedModels/my%20one:generateContent"),
        ("a#b%2Fc", "/v1beta/models/a%23b%252Fc:generateContent"),
    ],
)
def test_the_model_in_geminis_path(model: str, path: str) -> None:
    chat: Any = resolve.chat(f"gemini:{model}@http://localhost")
    assert chat.path == path


def test_a_path_arrives_as_it_was_quoted(server: LlmServer) -> None:
    asked(chat_of("gemini", server, "a b#c%2Fd"), ChatRequest.of("a"))
    (sent,) = server.requests()
    assert sent["path"] == "/v1beta/models/a%20b%23c%252Fd:generateContent"


def test_azure_has_a_header_of_its_own() -> None:
    for base, header in (
        ("https://mine.openai.azure.com/openai/v1", "api-key"),
        ("https://azure.com.example.org/v1", "Authorization"),
    ):
        chat: Any = resolve.chat(f"openai:m@{base}")
        assert chat._http._key_header == header


def test_the_models_of_an_endpoint(server: LlmServer) -> None:
    chat: OpenAIChat = chat_of("openai", server)

    async def work() -> list[str]:
        try:
            return await chat.models()
        finally:
            await chat.close()

    assert asyncio.run(work()) == ["test"]


# --------------------------------------------------------------------------------- embeddings


def vectors(server: LlmServer, texts: list[str]) -> Any:
    embedder: Any = resolve.embedder(f"openai:test@{server.base_url}")

    async def work() -> Any:
        try:
            return await embedder.avectors(texts)
        finally:
            await embedder.close()

    return asyncio.run(work())


def test_embeddings(server: LlmServer) -> None:
    texts = ["a", "b\x00\n", "é"]
    found = vectors(server, texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.array([vector(t, 32) for t in texts]), atol=1e-6)
    server.change(share_429=1.0)
    with pytest.raises(CallError, match="429"):
        vectors(server, texts)


def test_embeddings_for_callers_that_cannot_wait(server: LlmServer) -> None:
    similarity = resolve.similarity(f"cosine:openai:test@{server.base_url}")

    async def inside_a_loop() -> Any:
        return similarity.scores([("a", "a"), ("a", "b")])

    found = asyncio.run(inside_a_loop())
    assert found[0] == pytest.approx(1) and found[1] < 0.99


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": "???"}, {"index": 1, "embedding": "AAAA"}]},
        {"data": [{"index": 0}, {"index": 1}]},
        {"data": [{"index": 0, "embedding": [1, np.nan]}, {"index": 1, "embedding": [1, 2]}]},
        {"data": [{"index": 0, "embedding": [1, np.inf]}, {"index": 1, "embedding": [1, 2]}]},
    ],
)
def test_bodies_without_the_vectors(body: Any) -> None:
    embedder: Any = resolve.embedder("openai:m@http://localhost")

    async def post(path: str, sent: Any) -> Any:
        return body

    embedder._http.post = post
    with pytest.raises(CallError, match="not have a vector of finite numbers for each") as error:
        asyncio.run(embedder.avectors(["a", "b"]))
    assert error.value.kind == "malformed"


def test_vectors_come_in_order_and_as_base64() -> None:
    embedder: Any = resolve.embedder("openai:m@http://localhost")
    packed = __import__("base64").b64encode(np.array([0, 2], dtype="<f4").tobytes()).decode()

    async def post(path: str, sent: Any) -> Any:
        return {"data": [{"index": 1, "embedding": packed}, {"index": 0, "embedding": [3, 4]}]}

    embedder._http.post = post
    found = asyncio.run(embedder.avectors(["a", "b"]))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]], atol=1e-6)


ANTHROPIC = {"content": [{"type": "text", "text": "Yes."}], "stop_reason": None, "usage": None}
GEMINI = {"candidates": [{"content": {"parts": [{"text": "Yes."}]}, "finishReason": None}]}
OPENAI = {"choices": [{"message": {"content": "Yes."}, "finish_reason": None}], "usage": None}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "[]", "7"])
@pytest.mark.parametrize(
    ("wire", "body"), [("openai", OPENAI), ("anthropic", ANTHROPIC), ("gemini", GEMINI)]
)
def test_what_is_no_reason_costs_no_reply(wire: str, body: Any, value: str) -> None:
    chat: Any = resolve.chat(f"{wire}:m@http://localhost")
    reply = chat.read(json.loads(json.dumps(body).replace("null", value)))
    assert (reply.text, reply.finish, reply.prompt_tokens) == ("Yes.", None, None)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_log_probabilities_that_are_not_finite_are_absent(number: str) -> None:
    chat: Any = resolve.chat("openai:m@http://localhost")
    body = {"choices": [{"message": {"content": "Yes."}, "logprobs": {"content": [{}, {}]}}]}
    first, second = body["choices"][0]["logprobs"]["content"]  # type: ignore[index]
    first |= {"token": "Yes", "logprob": -0.5, "top_logprobs": [{"token": "No", "logprob": 7.5}]}
    second |= {"token": ".", "logprob": -0.1}
    reply = chat.read(json.loads(json.dumps(body).replace("7.5", number)))
    assert reply.text == "Yes."
    assert reply.logprobs == (("Yes", -0.5, ()), (".", -0.1, ()))
    second["logprob"] = 7.5
    reply = chat.read(json.loads(json.dumps(body).replace("7.5", number)))
    assert reply.logprobs is not None
    assert [token.known for token in reply.logprobs] == [[("Yes", -0.5)], []]
