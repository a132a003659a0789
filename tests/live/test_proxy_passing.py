"""Requests that the proxy passes on without a verdict, and those that it refuses to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.live.chats import BAD, Serving
from tests.live.upstream import Asked, Upstream, Write, head, says, sends, streams

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.slow
KEY = "sk-of-the-environment-1"
EMBEDDED = b'{"object": "list",  "data": [{"embedding": [0.10, 1e-3]}]}'
TEXT_PATHS = ("/v1/completions", "/v1/responses", "/v1/messages")


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(says(BAD)) as place:
        yield place


@pytest.fixture(scope="module")
def passing(upstream: Upstream) -> Iterator[Serving]:
    options = ["--upstream", upstream.url, "--upstream-key", "SOME_KEY", "--upstream-timeout", "2"]
    with Serving([*options, "--otlp"], {"SOME_KEY": KEY}) as running:
        yield running
    assert KEY not in running.said


@pytest.fixture(scope="module")
def blocking(upstream: Upstream) -> Iterator[Serving]:
    options = ["--upstream", upstream.url, "--block-unscored"]
    with Serving(options) as running:
        yield running


@pytest.mark.parametrize("service", ["passing", "blocking"])
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/moderations"])
def test_what_makes_no_text_is_passed_on_as_it_is(
    path: str, service: str, request: pytest.FixtureRequest, upstream: Upstream
) -> None:
    upstream.answer = sends(EMBEDDED, x_request_id="req_1", x_trustassay_status="scored")
    body = b'{"input":  ["a", "\\u00e9"], "documents": ["kept"]}'
    reply = request.getfixturevalue(service).post(f"{path}?a=%20", body, X_Custom="kept")
    assert (reply.status, reply.body) == (200, EMBEDDED)
    assert reply.headers["x-trustassay-status"] == "not_judged"
    assert reply.headers["x-request-id"] == "req_1"
    sent = upstream.asked[-1]
    assert (sent.line, sent.body) == (f"POST {path}?a=%20 HTTP/1.1", body)
    assert sent.header("x-custom") == "kept"


def test_the_key_of_the_environment_is_sent_and_never_returned(
    passing: Serving, upstream: Upstream
) -> None:
    error = json.dumps({"error": {"message": f"wrong key: {KEY}"}}).encode()
    for path in ("/v1/embeddings", "/v1/responses"):
        upstream.answer = sends(error, 401, retry_after="7")
        reply = passing.post(path, {"input": "a"}, Authorization="Bearer of-the-client")
        assert upstream.asked[-1].header("authorization") == f"Bearer {KEY}"
        assert (reply.status, reply.headers["retry-after"]) == (401, "7")
        assert reply.json == {"error": {"message": "wrong key: [key]"}}
        upstream.answer = streams([b"data: " + error + b"\n\n"])
        assert KEY.encode() not in passing.post(path, {"stream": True}).body
    assert KEY.encode() not in passing.chat(stream=True).body


@pytest.mark.parametrize("model", ["m", "ft:gpt-4o:org::1", "org/model-1.5", "org%2Fmodel", "a@1"])
def test_a_model_is_asked_about_by_its_id_as_it_came(
    model: str, passing: Serving, upstream: Upstream
) -> None:
    upstream.answer = sends(b'{"id": "m"}')
    reply = passing.get(f"/v1/models/{model}")
    assert (reply.status, reply.json) == (200, {"id": "m"})
    assert upstream.asked[-1].line == f"GET /v1/models/{model} HTTP/1.1"


@pytest.mark.parametrize("path", TEXT_PATHS)
def test_texts_of_other_paths_pass_without_a_verdict(
    path: str, passing: Serving, upstream: Upstream
) -> None:
    body = json.dumps({"text": BAD}).encode()
    upstream.answer = sends(body)
    reply = passing.post(path, {"input": "a"})
    assert (reply.body, reply.headers["x-trustassay-status"]) == (body, "not_judged")
    assert upstream.asked[-1].line == f"POST {path} HTTP/1.1"


@pytest.mark.parametrize("path", TEXT_PATHS)
def test_texts_of_other_paths_are_refused_where_answers_may_be_withheld(
    path: str, blocking: Serving, upstream: Upstream
) -> None:
    asked = len(upstream.asked)
    for body in ({"input": "a"}, {"input": "a", "stream": True}, b"no JSON"):
        reply = blocking.post(path, body)
        assert (reply.status, reply.error["type"]) == (403, "not_allowed")
        assert path in reply.error["message"]
        assert "/v1/chat/completions" in reply.error["message"]
    assert len(upstream.asked) == asked


def test_a_stream_is_passed_on_as_it_comes(passing: Serving, upstream: Upstream) -> None:
    events = [
        b'event: response.created\ndata: {"type": "response.created"}\n\n',
        b'event: response.output_text.delta\r\ndata: {"delta": "The"}\r\n\r\n',
        b": waiting\n\n",
        b'event: response.completed\ndata: {"type": "response.completed"}\n\n',
    ]
    upstream.answer = streams(events, wait_s=0.01)
    reply = passing.post("/v1/responses", {"input": "a", "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-trustassay-status"] == "not_judged"
    assert reply.body == b"".join(events)


def test_a_stream_that_never_ends_is_ended(passing: Serving, upstream: Upstream) -> None:
    async def slowly(_asked: Asked, write: Write) -> None:
        await write(head(content_type="text/event-stream"))
        while True:
            await write(b'data: {"delta": "and "}\n\n')
            await asyncio.sleep(0.05)

    upstream.answer = slowly
    body = passing.post("/v1/responses", {"stream": True}).body
    assert json.loads(body.rpartition(b"data: ")[2])["error"]["code"] == 504


def test_many_embeddings_are_passed_on_whole(passing: Serving, upstream: Upstream) -> None:
    body = b'{"data": "' + b"x" * 40_000_000 + b'"}'
    upstream.answer = sends(body)
    assert passing.post("/v1/embeddings", {"input": "a"}).body == body


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"no JSON", "application/json", 400),
        (b'{"input": "a"}', "text/plain", 415),
        (b"input=a", "application/x-www-form-urlencoded", 415),
    ],
)
def test_what_a_page_of_another_site_can_send_is_not_passed_on(
    content: bytes, kind: str, status: int, passing: Serving, upstream: Upstream
) -> None:
    asked = len(upstream.asked)
    assert passing.post("/v1/embeddings", content, Content_Type=kind).status == status
    assert len(upstream.asked) == asked


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/v1/files", "/v1/audio/speech", "/v1/responses/resp_1", "/v1/decide", "/v1/"]
)
def test_other_paths_are_refused_with_the_list_of_what_is_passed_on(
    path: str, method: str, passing: Serving, blocking: Serving, upstream: Upstream
) -> None:
    asked = len(upstream.asked)
    for service, texts in ((passing, True), (blocking, False)):
        reply = service.running.ask(method, path, b"{}", {"Content-Type": "application/json"})
        assert (reply.status, reply.error["type"]) == (404, "not_found")
        message = reply.error["message"]
        assert "/v1/chat/completions" in message
        assert "/v1/embeddings" in message
        assert ("/v1/responses" in message) is texts
    assert len(upstream.asked) == asked


def test_paths_of_the_service_are_its_own(passing: Serving, upstream: Upstream) -> None:
    asked = len(upstream.asked)
    for method, path, status in (
        ("GET", "/v1/score", 405),
        ("GET", "/v1/traces", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/embeddings", 405),
        ("POST", "/v1/traces", 200),
        ("GET", "/metrics", 200),
        ("GET", "/health", 200),
    ):
        body = b'{"resourceSpans": []}' if method == "POST" else None
        headers = {"Content-Type": "application/json"}
        assert passing.running.ask(method, path, body, headers).status == status, path
    assert len(upstream.asked) == asked


def test_the_document_describes_what_is_passed_on(passing: Serving) -> None:
    paths = passing.get("/openapi.json").json["paths"]
    expected = {"/v1/embeddings", "/v1/moderations", "/v1/models", "/v1/models/{model}"}
    assert expected | set(TEXT_PATHS) <= set(paths)
    assert "403" in paths["/v1/responses"]["post"]["responses"]
