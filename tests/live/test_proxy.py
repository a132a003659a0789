"""The proxy as its clients see it, between a running service and an upstream of the tests."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.live.chats import BAD, GOOD, MESSAGES, PASSAGE, QUESTION, Serving
from tests.live.upstream import (
    DONE,
    USAGE,
    Asked,
    Upstream,
    Write,
    chunk,
    chunks,
    completion,
    head,
    says,
    sends,
    streams,
    streams_from,
)

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.slow
KEY = "sk-of-the-client-123456"


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(says(GOOD)) as found:
        yield found


@pytest.fixture(scope="module")
def passing(upstream: Upstream) -> Iterator[Serving]:
    """A proxy that withholds nothing."""
    with Serving(["--upstream", upstream.url, "--upstream-timeout", "3"]) as found:
        yield found


@pytest.fixture(scope="module")
def blocking(upstream: Upstream) -> Iterator[Serving]:
    """A proxy that withholds answers with little support."""
    options = ["--upstream", upstream.url, "--block-below", "faithfulness=0.5"]
    with Serving([*options, "--block-message", "I am not sure."]) as found:
        yield found


def verdict(told: Any) -> Any:
    (found,) = told["trustassay"]["verdicts"]
    return found


def events(body: bytes) -> list[Any]:
    """Return the JSON of the events of a stream, which ends as it should."""
    parts = body.split(b"\n\n")
    assert parts[-2:] == [b"data: [DONE]", b""], body
    return [json.loads(part.removeprefix(b"data: ")) for part in parts[:-2]]


def text(told: list[Any]) -> str:
    deltas = [one["choices"][0]["delta"] for one in told if one.get("choices")]
    return "".join(delta.get("content") or "" for delta in deltas)


def test_an_answer_is_passed_on_with_its_verdict(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = says(GOOD, system_fingerprint="fp")
    found = passing.chat(temperature=0.5, seed=7)
    assert found.status == 200
    assert found.headers["x-trustassay-status"] == "scored"
    assert found.headers["x-trustassay-scores"] == "faithfulness=1"
    told = found.json
    assert verdict(told)["metrics"]["faithfulness"]["verdict"] == "supported"
    assert verdict(told)["metrics"]["faithfulness"]["reason"]
    del told["trustassay"]
    assert told == completion(GOOD, system_fingerprint="fp")
    sent = upstream.asked[-1]
    assert sent.line == "POST /v1/chat/completions HTTP/1.1"
    assert sent.json == {"model": "m", "messages": MESSAGES, "temperature": 0.5, "seed": 7}


def test_an_unsupported_answer_is_passed_on_and_told(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = says(BAD)
    found = passing.chat()
    assert found.headers["x-trustassay-scores"] == "faithfulness=0"
    assert found.json["choices"][0]["message"]["content"] == BAD
    assert verdict(found.json)["needs_look"] is True
    assert verdict(found.json)["metrics"]["faithfulness"]["problem"]


def test_each_choice_has_its_verdict(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = says(GOOD, BAD, None)
    found = passing.chat(n=3)
    first, second, third = found.json["trustassay"]["verdicts"]
    assert first["metrics"]["faithfulness"]["score"] == 1
    assert second["metrics"]["faithfulness"]["score"] == 0
    assert third["error"]["type"] == "no_text"
    assert found.headers["x-trustassay-status"] == "not_judged"


SEARCHED = {"results": [{"title": "Bridges", "score": 0.9, "snippet": PASSAGE, "url": "u"}]}


@pytest.mark.parametrize(
    ("messages", "documents"),
    [
        ([*MESSAGES, {"role": "tool", "tool_call_id": "c", "content": PASSAGE}], None),
        ([*MESSAGES, {"role": "tool", "content": [{"type": "text", "text": PASSAGE}]}], None),
        ([*MESSAGES, {"role": "tool", "content": json.dumps(SEARCHED)}], None),
        (MESSAGES, PASSAGE),
        (MESSAGES, f"[1] The tram is red.\n[2] {PASSAGE}"),
        (MESSAGES, [{"title": "Bridges", "text": PASSAGE}]),
        ([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}], [PASSAGE]),
        ([{"role": "user", "content": "Hello?"}, *MESSAGES], [PASSAGE]),
    ],
)
def test_where_passages_and_question_are_found(
    messages: Any, documents: Any, passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = says(GOOD)
    found = passing.chat(messages=messages, documents=documents)
    assert verdict(found.json)["metrics"]["faithfulness"]["score"] == 1
    assert upstream.asked[-1].json == {"model": "m", "messages": messages}


def test_messages_of_the_system_are_passages_where_it_is_said_so(upstream: Upstream) -> None:
    upstream.answer = says(GOOD)
    messages = [{"role": "system", "content": f"Use this: {PASSAGE}"}, *MESSAGES]
    with Serving(["--upstream", upstream.url, "--documents-in", "system"]) as service:
        found = service.chat(messages=messages, documents=None)
    assert verdict(found.json)["metrics"]["faithfulness"]["score"] == 1


@pytest.mark.parametrize(
    ("messages", "field"),
    [(MESSAGES, "documents"), ([{"role": "system", "content": "Hi."}], "question")],
)
def test_what_cannot_be_judged_is_passed_on_with_the_reason(
    messages: Any, field: str, passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = says(GOOD)
    found = passing.chat(messages=messages, documents=None)
    assert found.status == 200
    assert found.json["choices"] == completion(GOOD)["choices"]
    assert found.headers["x-trustassay-status"] == "not_judged"
    error = verdict(found.json)["error"]
    assert error["type"] == "invalid_sample"
    assert field in [one["field"] for one in error["problems"]]


def test_documents_of_a_wrong_type_are_refused_before_anything_is_asked(
    passing: Serving, upstream: Upstream
) -> None:
    before = len(upstream.asked)
    found = passing.chat(documents=7)
    assert (found.status, found.json["error"]["type"]) == (400, "invalid_request")
    assert "documents" in found.json["error"]["message"]
    assert len(upstream.asked) == before


def test_an_upstream_cannot_give_a_verdict_of_its_own(passing: Serving, upstream: Upstream) -> None:
    body = json.dumps(completion(BAD, trustassay={"status": "scored"})).encode()
    upstream.answer = sends(
        body, x_trustassay_status="scored", x_trustassay_scores="faithfulness=1"
    )
    found = passing.chat()
    assert found.headers["x-trustassay-scores"] == "faithfulness=0"
    assert verdict(found.json)["metrics"]["faithfulness"]["score"] == 0
    forged = chunk({"content": BAD}, trustassay={"verdicts": []})
    upstream.answer = streams([forged, chunk({}, finish="stop", trustassay=1), DONE])
    told = events(passing.chat(stream=True).body)
    assert ["trustassay" in one for one in told] == [False, True]
    assert verdict(told[-1])["metrics"]["faithfulness"]["score"] == 0


# Headers -----------------------------------------------------------------------------------------


def test_headers_of_the_client_are_passed_on(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = sends(
        json.dumps(completion(GOOD)).encode(),
        x_request_id="req_1",
        x_ratelimit_remaining_requests="9",
        set_cookie="a=b",
        keep_alive="timeout=5",
        x_hop="1",
        connection="close, x-hop",
    )
    headers = [
        f"Authorization: Bearer {KEY}",
        "OpenAI-Organization: org",
        "X-Custom: kept",
        "X-Hop: dropped",
        "Connection: close, x-hop",
        "Cookie: a=b",
        "TE: trailers",
        "Proxy-Authorization: Basic eDp5",
        "X-Trustassay-Other: dropped",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
    ]
    body = json.dumps({"messages": MESSAGES}).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", *headers, f"Content-Length: {len(body)}"]
    found = passing.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    sent = upstream.asked[-1]
    assert sent.header("authorization") == f"Bearer {KEY}"
    assert sent.header("openai-organization") == "org"
    assert sent.header("x-custom") == "kept"
    assert sent.header("content-type") == "application/json"
    assert sent.header("accept-encoding") == "identity"
    assert sent.header("host") == f"127.0.0.1:{upstream.port}"
    dropped = ("x-hop", "cookie", "te", "proxy-authorization", "x-trustassay-other", "connection")
    assert [name for name in dropped if sent.header(name)] == []
    assert b"\r\nx-request-id: req_1\r\n" in found
    assert b"\r\nx-ratelimit-remaining-requests: 9\r\n" in found
    assert not [name for name in (b"set-cookie", b"keep-alive", b"x-hop") if name in found]


def test_the_query_is_passed_on(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = says(GOOD)
    passing.post("/v1/chat/completions?api-version=2024%2D10&x=a%20b", {"messages": MESSAGES})
    assert upstream.asked[-1].line == (
        "POST /v1/chat/completions?api-version=2024%2D10&x=a%20b HTTP/1.1"
    )


def test_the_list_of_models_is_passed_on(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = sends(b'{"object": "list", "data": []}')
    found = passing.get("/v1/models", Authorization=f"Bearer {KEY}")
    assert (found.status, found.json) == (200, {"object": "list", "data": []})
    assert upstream.asked[-1].line == "GET /v1/models HTTP/1.1"
    assert upstream.asked[-1].header("authorization") == f"Bearer {KEY}"


def test_a_key_of_the_environment_takes_the_place_of_the_clients(upstream: Upstream) -> None:
    upstream.answer = sends(b'{"error": {"message": "wrong key: sk-environment-1"}}', 401)
    options = ["--upstream", upstream.url, "--upstream-key", "SOME_KEY"]
    with Serving(options, {"SOME_KEY": "sk-environment-1"}) as service:
        found = service.chat({"Authorization": f"Bearer {KEY}"})
    assert upstream.asked[-1].header("authorization") == "Bearer sk-environment-1"
    assert found.status == 401
    assert found.json == {"error": {"message": "wrong key: [key]"}}
    assert "sk-" not in service.said


def test_the_services_token_never_reaches_the_upstream(upstream: Upstream) -> None:
    token = "token-of-the-service-1"
    upstream.answer = says(GOOD)
    with Serving(["--upstream", upstream.url], {"TRUSTASSAY_SERVE_TOKEN": token}) as service:
        before = len(upstream.asked)
        assert service.chat().status == 401
        assert service.chat({"Authorization": f"Bearer {KEY}"}).status == 401
        assert service.chat({"x-api-key": token[:-1]}).status == 401
        assert service.chat({"x-api-key": ""}).status == 401
        assert len(upstream.asked) == before
        assert service.chat({"Authorization": f"Bearer {token}"}).status == 200
        both = {"Authorization": f"Bearer {KEY}", "x-api-key": token}
        assert service.chat(both).status == 200
    first, second = upstream.asked[before:]
    assert first.header("authorization") is None
    assert second.header("authorization") == f"Bearer {KEY}"
    assert second.header("x-api-key") is None
    assert token not in service.said
    assert KEY not in service.said


# Upstreams that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_errors_of_the_upstream_are_passed_on(
    status: int, passing: Serving, upstream: Upstream
) -> None:
    said = {"error": {"message": "No.", "type": "some", "code": "x"}}
    upstream.answer = sends(json.dumps(said).encode(), status, retry_after="7")
    for stream in (False, True):
        found = passing.chat(stream=stream)
        assert (found.status, found.json) == (status, said)
        assert found.headers["retry-after"] == "7"
        assert "x-trustassay-scores" not in found.headers


def test_a_redirect_is_not_followed(passing: Serving, upstream: Upstream) -> None:
    with Upstream(says(GOOD)) as other:
        upstream.answer = sends(b"", 307, location=f"{other.url}/chat/completions")
        found = passing.chat({"Authorization": f"Bearer {KEY}"})
        assert found.status == 502
        assert "replied with a redirect (307)" in found.json["error"]["message"]
        assert "location" not in found.headers
        assert other.asked == []


def test_an_upstream_that_is_away_is_a_502() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with Serving(["--upstream", f"http://127.0.0.1:{free.getsockname()[1]}/v1"]) as service:
            found = service.chat()
    assert (found.status, found.json["error"]["type"]) == (502, "upstream_failed")
    assert "cannot be reached" in found.json["error"]["message"]


@pytest.mark.parametrize("status", [101, 600, 999])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_a_status_that_cannot_be_passed_on_is_a_502(
    path: str, status: int, passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = sends(json.dumps(completion(GOOD)).encode(), status)
    reply = passing.post(path, {"messages": MESSAGES})
    assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_failed")
    assert str(status) in reply.json["error"]["message"]


def test_a_reply_with_more_choices_than_can_be_asked_for_is_a_502(
    passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = says(*[GOOD] * 128)
    assert len(passing.chat().json["trustassay"]["verdicts"]) == 128
    upstream.answer = says(*[GOOD] * 129)
    reply = passing.chat()
    assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_failed")
    assert "more than 128 choices" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"no JSON", b"[]", b'{"choices": 3}', b'{"choices": [1]}', b'{"a": NaN}', b"[" * 10**5],
)
def test_a_reply_that_is_no_completion_is_a_502(
    body: bytes, passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = sends(body)
    found = passing.chat()
    assert found.status == 502
    assert "not a chat completion" in found.json["error"]["message"]


def test_a_reply_that_is_too_large_is_a_502(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = sends(b"x" * 17_000_000)
    assert "more than 16,000,000 bytes" in passing.chat().json["error"]["message"]


def test_a_packed_reply_is_unpacked_and_a_bomb_is_not(passing: Serving, upstream: Upstream) -> None:
    import gzip

    packed = gzip.compress(json.dumps(completion(GOOD)).encode())
    upstream.answer = sends(packed, content_encoding="gzip")
    found = passing.chat()
    assert verdict(found.json)["metrics"]["faithfulness"]["score"] == 1
    assert "content-encoding" not in found.headers
    upstream.answer = sends(gzip.compress(b" " * 10**8, 1), content_encoding="gzip")
    assert passing.chat().status == 502


def test_an_upstream_that_hangs_is_a_504(passing: Serving, upstream: Upstream) -> None:
    async def hang(_asked: Asked, write: Write) -> None:
        await asyncio.sleep(60)

    async def hang_later(_asked: Asked, write: Write) -> None:
        await write(head(content_length="100") + b"{")
        await asyncio.sleep(60)

    for answer in (hang, hang_later):
        upstream.answer = answer
        found = passing.chat()
        assert (found.status, found.json["error"]["type"]) == (504, "upstream_too_slow")


def test_a_reply_that_breaks_off_is_a_502(passing: Serving, upstream: Upstream) -> None:
    async def answer(_asked: Asked, write: Write) -> None:
        await write(head(content_length="1000") + b'{"choices"')

    upstream.answer = answer
    assert passing.chat().status == 502


# Streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("usage", [False, True])
def test_the_verdict_is_in_the_last_chunk_of_a_stream(
    usage: bool, passing: Serving, upstream: Upstream
) -> None:
    given = chunks("The stone bridge", " was opened in 1911.", usage=usage)
    upstream.answer = streams(given)
    found = passing.chat(stream=True)
    assert found.headers["content-type"].startswith("text/event-stream")
    assert found.headers["x-trustassay-status"] == "in-stream"
    told = events(found.body)
    assert found.body.startswith(b"".join(given[:-2]))
    assert verdict(told[-1])["metrics"]["faithfulness"]["score"] == 1
    last = {name: value for name, value in told[-1].items() if name != "trustassay"}
    assert [*told[:-1], last] == events(b"".join(given))


def test_a_stream_whose_last_chunk_has_text_gets_another_one(
    passing: Serving, upstream: Upstream
) -> None:
    given = [chunk({"role": "assistant", "content": GOOD}, finish="stop"), DONE]
    upstream.answer = streams(given)
    found = passing.chat(stream=True)
    assert found.body.startswith(given[0])
    _, last = events(found.body)
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    assert (last["id"], last["model"]) == ("chatcmpl-1", "m")
    assert verdict(last)["metrics"]["faithfulness"]["score"] == 1


def test_chunks_are_passed_on_as_they_come(passing: Serving, upstream: Upstream) -> None:
    came: list[bytes] = []
    words = GOOD.split()

    async def given() -> AsyncIterator[bytes]:
        """Each chunk once the text before it has come."""
        for number, part in enumerate(chunks(*(f"{word} " for word in words))):
            yield part
            while 0 < number <= len(words) and b"".join(came).count(b'"content"') <= number:
                await asyncio.sleep(0.005)

    upstream.answer = streams_from(given)
    body = json.dumps({"messages": MESSAGES, "documents": [PASSAGE], "stream": True}).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection(passing.address, timeout=60) as connection:
        connection.sendall(request + body)
        while part := connection.recv(65536):
            came.append(part)
    assert b"".join(came).count(b'"content"') > len(words)


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_events_of_any_form_are_read(end: bytes, passing: Serving, upstream: Upstream) -> None:
    given = b"".join([b": waiting\n\n", b"event: message\nid: 1\n", *chunks(GOOD)])
    given = given.replace(b"\n", end)
    upstream.answer = streams([given[i : i + 7] for i in range(0, len(given), 7)])
    found = passing.chat(stream=True)
    assert b": waiting" in found.body
    assert b"event: message" in found.body
    assert b'"faithfulness":{"score":1.0' in found.body
    assert found.body.rstrip().endswith(b"data: [DONE]")


def test_a_stream_without_its_end_is_told(passing: Serving, upstream: Upstream) -> None:
    upstream.answer = streams([chunk({"content": "The stone"})])
    found = passing.chat(stream=True)
    assert b"ended before the answer was complete" in found.body
    assert b"[DONE]" not in found.body


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\xff\xfe garbage",
        b"data: {not JSON\n\n",
        b"data: 7\n\n",
        b"data: " + b"[" * 10**5 + b"\n\n",
    ],
)
@pytest.mark.parametrize("service", ["passing", "blocking"])
def test_garbage_in_a_stream_is_passed_on_and_not_judged(
    garbage: bytes, service: str, request: pytest.FixtureRequest, upstream: Upstream
) -> None:
    upstream.answer = streams([chunk({"content": GOOD}), garbage])
    found = request.getfixturevalue(service).chat(stream=True)
    assert found.status == 200
    assert garbage.strip() in found.body
    assert b'"type":"unreadable"' in found.body


def test_a_stream_that_never_ends_is_ended(passing: Serving, upstream: Upstream) -> None:
    async def slowly(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream"))
        while True:
            await write(chunk({"content": "and "}))
            await asyncio.sleep(0.05)

    async def quickly(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream"))
        while True:
            await write(chunk({"content": "and " * 10_000}))

    async def one_event(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream") + b"data: ")
        while True:
            await write(b"x" * 100_000)

    told = []
    for answer in (slowly, quickly, one_event):
        upstream.answer = answer
        begun = time.monotonic()
        body = passing.chat(stream=True).body
        assert time.monotonic() - begun < 60
        assert b"[DONE]" not in body
        told.append(json.loads(body.rpartition(b"data: ")[2])["error"]["message"])
    assert "in time" in told[0]
    assert "too large" in told[1]
    assert "too large" in told[2]


def test_an_error_in_a_stream_is_passed_on(passing: Serving, upstream: Upstream) -> None:
    error = b'data: {"error": {"message": "overloaded"}}\n\n'
    upstream.answer = streams([chunk({"content": "The"}), error])
    body = passing.chat(stream=True).body
    assert error in body
    assert b"ended the answer with an error" in body


def test_a_client_that_goes_away_ends_the_call(passing: Serving, upstream: Upstream) -> None:
    async def slowly(_asked: Asked, write: Write) -> None:
        await asyncio.sleep(3600)

    async def endlessly(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream"))
        while True:
            await write(chunk({"content": "and "}))
            await asyncio.sleep(0.02)

    for answer in (slowly, endlessly):
        upstream.answer = answer
        body = json.dumps({"messages": MESSAGES}).encode()
        with socket.create_connection(passing.address) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            connection.sendall(body)
            wait_for(lambda: upstream.open == 1)
        wait_for(lambda: upstream.open == 0)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_awaited_when_the_service_closes_gets_its_verdict(
    stream: bool, upstream: Upstream
) -> None:
    async def slowly(asked: Asked, write: Write) -> None:
        await asyncio.sleep(0.5)
        await (streams(chunks(GOOD)) if stream else says(GOOD))(asked, write)

    upstream.answer = slowly
    with Serving(["--upstream", upstream.url]) as service, ThreadPoolExecutor() as pool:
        waiting = pool.submit(service.chat, stream=stream)
        wait_for(lambda: upstream.open == 1)
        service.running.process.send_signal(signal.SIGTERM)
        found = waiting.result(60)
        assert service.running.process.wait(60) == 0
    assert found.status == 200
    assert b'"faithfulness":{"score":1.0' in found.body


def wait_for(condition: Callable[[], bool], wait_s: float = 60.0) -> None:
    until = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


# Blocking ----------------------------------------------------------------------------------------


def test_a_withheld_answer_is_a_normal_completion(blocking: Serving, upstream: Upstream) -> None:
    upstream.answer = says(BAD, system_fingerprint="fp")
    found = blocking.chat()
    assert found.status == 200
    assert found.headers["x-trustassay-status"] == "blocked"
    told = found.json
    assert told["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "I am not sure."},
            "finish_reason": "content_filter",
            "logprobs": None,
        }
    ]
    assert told["usage"] == USAGE
    assert verdict(told) == {
        "status": "blocked",
        "blocked": ["faithfulness 0 is below 0.5"],
        "metrics": {"faithfulness": {"score": 0.0, "verdict": "not found"}},
    }
    assert b"mayor" not in found.body


def test_only_the_choice_is_withheld_that_must_be(blocking: Serving, upstream: Upstream) -> None:
    upstream.answer = says(BAD, GOOD)
    found = blocking.chat()
    first, second = found.json["choices"]
    assert first["finish_reason"] == "content_filter"
    assert second == completion(BAD, GOOD)["choices"][1]
    assert found.headers["x-trustassay-status"] == "blocked"


def test_an_answer_that_cannot_be_judged_is_passed_on(
    blocking: Serving, upstream: Upstream
) -> None:
    upstream.answer = says(BAD)
    found = blocking.chat(documents=None)
    assert found.json["choices"] == completion(BAD)["choices"]
    assert found.headers["x-trustassay-status"] == "not_judged"


def test_an_answer_that_cannot_be_judged_is_withheld_where_it_is_said_so(
    upstream: Upstream,
) -> None:
    upstream.answer = says(BAD)
    with Serving(["--upstream", upstream.url, "--block-unscored"]) as service:
        withheld = service.chat(documents=None)
        # it did not fail a check, so neither words nor status say so
        reason = "not judged: the sample cannot be scored (documents)"
        assert verdict(withheld.json)["blocked"] == [reason]
        assert verdict(withheld.json)["status"] == "not_judged"
        assert withheld.headers["x-trustassay-status"] == "not_judged"
        choice = withheld.json["choices"][0]
        assert choice["finish_reason"] == "content_filter"
        assert choice["message"]["content"] == (
            f"This answer was withheld because it was {reason}."
        )
        assert service.chat().headers["x-trustassay-status"] == "scored"
        upstream.answer = says(None)
        assert service.chat().json["choices"] == completion(None)["choices"]


def test_of_a_stream_that_cannot_be_read_nothing_is_sent_where_it_is_said_so(
    upstream: Upstream,
) -> None:
    strange = [chunk({"content": BAD}, 10**9), b"data: " + BAD.encode() + b"\n\n"]
    upstream.answer = streams([chunk({"content": "The"}), *strange, *chunks(BAD)])
    with Serving(["--upstream", upstream.url, "--block-unscored"]) as service:
        found = service.chat(stream=True)
    assert found.headers["x-trustassay-status"] == "not_judged"
    assert b"bicycles" not in found.body
    assert b"withheld because it was not judged" in found.body


def test_a_stream_is_held_back_until_it_is_judged(blocking: Serving, upstream: Upstream) -> None:
    given = chunks("The stone bridge", " was opened in 1911.", usage=True)
    upstream.answer = streams(given, wait_s=0.05)
    found = blocking.chat(stream=True)
    assert found.headers["x-trustassay-status"] == "scored"
    assert found.headers["x-trustassay-scores"] == "faithfulness=1"
    assert found.body.startswith(b"".join(given[:-2]))
    assert verdict(events(found.body)[-1])["metrics"]["faithfulness"]["score"] == 1


def test_of_a_withheld_stream_nothing_is_sent(blocking: Serving, upstream: Upstream) -> None:
    upstream.answer = streams(chunks(BAD[:20], BAD[20:], usage=True))
    found = blocking.chat(stream=True)
    assert found.headers["x-trustassay-status"] == "blocked"
    told = events(found.body)
    assert text(told) == "I am not sure."
    reasons = [one["choices"][0]["finish_reason"] for one in told if one["choices"]]
    assert reasons == [None, "content_filter"]
    assert told[-1]["usage"] == USAGE
    assert verdict(told[-1])["blocked"]
    assert b"bicycles" not in found.body


def test_of_a_stream_only_the_choice_is_withheld_that_must_be(
    blocking: Serving, upstream: Upstream
) -> None:
    both = [chunk({"content": words}, i) for i, words in enumerate((BAD, GOOD))]
    ends = [chunk({}, i, finish="stop") for i in range(2)]
    upstream.answer = streams([*both, *ends, DONE])
    found = blocking.chat(stream=True)
    choices = [one["choices"][0] for one in events(found.body)]
    kept = [one for one in choices if one["index"] == 1]
    assert [one["finish_reason"] for one in kept] == [None, "stop"]
    assert kept[0]["delta"]["content"] == GOOD
    assert b"bicycles" not in found.body


def test_a_stream_that_fails_before_it_is_judged_is_an_error(
    blocking: Serving, upstream: Upstream
) -> None:
    async def answer(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream", content_length="9999"))
        await write(chunk({"content": "The"}))

    upstream.answer = answer
    found = blocking.chat(stream=True)
    assert found.status == 502
    assert "answer is incomplete" in found.json["error"]["message"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--block-below", "faithfulness=high"], "expected a number or a percentage"),
        (["--block-below", "faithfulness"], "expected METRIC=SCORE"),
        (["--block-below", "faithfulness=50"], "scores from 0 to 1"),
        (["--block-below", "grounding=0.5"], "expected a metric of this service (faithfulness)"),
        (["--block-above", "faithfulness=0.5"], "use --block-below"),
        (["--documents-in", "user"], "expected tool or system"),
        (["--upstream", "ftp://x"], "expected an address"),
        (["--upstream", "http://user:secret@x/v1"], "--upstream: the address contains a password"),
        (["--upstream", "http://x/v1?key=secret"], "without ? and #, got http://x..."),
        (["--upstream-key", "ABSENT_KEY"], "ABSENT_KEY is not set"),
    ],
)
def test_wrong_options_are_told_at_the_start(options: list[str], words: str) -> None:
    from typer.testing import CliRunner

    from trustassay.cli.main import app

    result = CliRunner().invoke(app, ["serve", "--upstream", "http://127.0.0.1:1/v1", *options])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert "secret" not in result.output


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
@pytest.mark.parametrize("service", ["passing", "blocking"])
def test_a_number_that_is_not_finite_costs_no_verdict_and_is_null(
    number: bytes, service: str, request: pytest.FixtureRequest, upstream: Upstream
) -> None:
    logprobs = {"content": [{"token": "a", "logprob": 7.5, "top_logprobs": [{"logprob": 7.5}]}]}
    full = completion(GOOD, usage={"prompt_tokens": 7.5})
    full["choices"][0]["logprobs"] = logprobs
    upstream.answer = sends(json.dumps(full).encode().replace(b"7.5", number))
    reply = request.getfixturevalue(service).chat()
    assert (reply.status, reply.headers["x-trustassay-status"]) == (200, "scored")
    completion_of_reply = reply.json
    assert verdict(completion_of_reply)["metrics"]["faithfulness"]["verdict"] == "supported"
    del completion_of_reply["trustassay"]
    assert completion_of_reply == json.loads(json.dumps(full).replace("7.5", "null"))
    assert b"Infinity" not in reply.body
    # Of a stream, each chunk but the last passes as it came.
    first = chunk({"content": GOOD}, logprobs=7.5).replace(b"7.5", number)
    last = chunk({}, usage={"prompt_tokens": 7.5}).replace(b"7.5", number)
    upstream.answer = streams([first, last, b"data: [DONE]\n\n"])
    reply = request.getfixturevalue(service).chat(stream=True)
    assert reply.body.startswith(first)
    completion_of_reply = json.loads(reply.body.split(b"\n\n")[-3].removeprefix(b"data: "))
    assert completion_of_reply["usage"] == {"prompt_tokens": None}
    assert verdict(completion_of_reply)["metrics"]["faithfulness"]["verdict"] == "supported"
