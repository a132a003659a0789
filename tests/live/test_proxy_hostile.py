"""The proxy and requests that no client of good will sends."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.chats import BAD, GOOD, MESSAGES, PASSAGE, Serving
from tests.live.upstream import Upstream, chunks, completion, says, sends, streams

pytest.importorskip("prometheus_client")
pytestmark = pytest.mark.slow
PATH = "/v1/chat/completions"
KEY = "sk-of-the-client-123456"
BODY = json.dumps({"messages": MESSAGES, "documents": [PASSAGE]}).encode()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(says(GOOD)) as found:
        yield found


@pytest.fixture(scope="module")
def running(upstream: Upstream) -> Iterator[Serving]:
    options = ["--upstream", upstream.url, "--upstream-timeout", "3", "--slow", "2"]
    with Serving(options) as found:
        yield found
    for secret in (KEY, PASSAGE, GOOD, BAD, MESSAGES[0]["content"]):
        assert secret not in found.said


@pytest.fixture
def service(running: Serving, upstream: Upstream) -> Iterator[Serving]:
    """The service, which answers as before when the test is over; nothing else was asked."""
    upstream.answer = says(GOOD)
    upstream.asked.clear()
    yield running
    upstream.answer = says(GOOD)
    assert running.chat().headers["x-trustassay-scores"] == "faithfulness=1"


def request(*lines: str, body: bytes = BODY, target: str = PATH, length: int | None = -1) -> bytes:
    first = [f"POST {target} HTTP/1.1", "Connection: close", "Content-Type: application/json"]
    sized = [] if length is None else [f"Content-Length: {len(body) if length < 0 else length}"]
    host = [] if any(line.lower().startswith("host") for line in lines) else ["Host: 127.0.0.1"]
    return "\r\n".join([*first, *host, *sized, *lines]).encode("latin-1") + b"\r\n\r\n" + body


def status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


def test_the_request_of_these_tests_is_answered(service: Serving) -> None:
    assert status(service.raw(request())) == 200


def test_a_large_body_is_refused(service: Serving, upstream: Upstream) -> None:
    found = service.chat(documents=["x" * 10_000_000])
    assert (found.status, found.json["error"]["type"]) == (413, "too_large")
    assert upstream.asked == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"text"',
        b"\xff\xfe{}",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}",
    ],
)
def test_a_body_that_is_no_object_is_refused(
    body: bytes, service: Serving, upstream: Upstream
) -> None:
    found = service.post(PATH, body)
    assert (found.status, found.json["error"]["type"]) == (400, "invalid_request")
    assert upstream.asked == []


@pytest.mark.parametrize(
    "messages", [None, 7, "text", [7], [{}], [{"role": 7, "content": {}}], [[]], {"role": "user"}]
)
def test_strange_messages_are_the_upstreams_to_judge(
    messages: Any, service: Serving, upstream: Upstream
) -> None:
    found = service.post(PATH, {"messages": messages, "documents": [PASSAGE]})
    assert upstream.asked[-1].json == {"messages": messages}
    assert found.headers["x-trustassay-status"] == "not_judged"


def test_of_a_name_that_comes_twice_both_see_the_same(service: Serving, upstream: Upstream) -> None:
    body = b'{"messages": [], "documents": ["x"], "messages": ' + json.dumps(MESSAGES).encode()
    service.post(PATH, body + b', "documents": []}')
    assert upstream.asked[-1].body.count(b"messages") == 1
    assert upstream.asked[-1].json == {"messages": MESSAGES}


def test_texts_are_passed_on_as_they_are(service: Serving, upstream: Upstream) -> None:
    strange = "\ud800 \u0000 \u202e é 日本 \U0001f600 </script> ${x} {{x}}"
    upstream.answer = sends(json.dumps(completion(strange)).encode())
    messages = [{"role": "user", "content": strange}]
    found = service.post(PATH, {"messages": messages, "documents": [strange]})
    assert upstream.asked[-1].json["messages"] == messages
    assert found.status == 200
    upstream.answer = streams(chunks(strange))
    assert service.chat(stream=True).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_page_of_another_site_can_send_is_refused(
    kind: str, service: Serving, upstream: Upstream
) -> None:
    assert service.post(PATH, BODY, Content_Type=kind).status == 415
    assert status(service.raw(request("Host: evil.example"))) == 421
    assert status(service.raw(request("Host: 127.0.0.1", "Host: evil.example"))) in (400, 421)
    assert upstream.asked == []


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/v1/chat/completions",
        "/v1//chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions/../../admin",
        "/v1/%2e%2e/admin",
        "/v1/chat%2fcompletions/..",
        "/v1/files",
        "/v1/embeddings/",
        "/v1/embeddings/../../admin",
        "/v1/embeddings/%2e%2e/admin",
        "/v1/embeddings%2f..%2fadmin",
        "/v1/embeddings;x",
        "/v1/../v1/embeddings",
        "/v1//embeddings",
        "/v2/embeddings",
        "*",
    ],
)
def test_no_other_path_is_passed_on(target: str, service: Serving, upstream: Upstream) -> None:
    assert status(service.raw(request(target=target))) in (400, 404)
    assert upstream.asked == []


@pytest.mark.parametrize(
    "target",
    [
        "..",
        "../chat/completions",
        "m/../../admin",
        "m/%2e%2e/admin",
        "m%2f..%2f..%2fadmin",
        "m%2F%2E%2E%2Fadmin",
        "m%252f..%252fadmin",
        ".%2e/admin",
        "m//admin",
        "m/",
        "m%5c..%5cadmin",
        "m%0a",
        "m%00",
        "m%3fx=1",
        "m%23",
        "m;x",
        "%e2%80%ae",
    ],
)
def test_an_id_of_a_model_is_no_way_to_another_path(
    target: str, service: Serving, upstream: Upstream
) -> None:
    sent = f"GET /v1/models/{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert status(service.raw(sent.encode())) in (400, 404)
    assert upstream.asked == []


def test_a_path_that_ends_in_a_line_break_is_passed_on_without_it(
    service: Serving, upstream: Upstream
) -> None:
    service.raw(request(target="/v1/embeddings%0a"))
    assert [one.line for one in upstream.asked] in ([], ["POST /v1/embeddings HTTP/1.1"])


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1"])
def test_a_target_with_a_host_reaches_no_other_host(
    host: str, service: Serving, upstream: Upstream
) -> None:
    """Whether it is refused or read as its path, the named upstream alone is asked."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.5)
        port = other.getsockname()[1]
        found = status(service.raw(request(target=f"http://{host}:{port}{PATH}")))
        with pytest.raises(TimeoutError):
            other.accept()
    assert found in (200, 400, 404, 421)
    assert [one.line for one in upstream.asked] in ([], [f"POST {PATH} HTTP/1.1"])


def test_a_query_stays_a_query(service: Serving, upstream: Upstream) -> None:
    for query in ("?x=@evil.example/", "?x=%0d%0aX-Evil:%201", "?#frag", "?http://evil.example"):
        service.raw(request(target=PATH + query))
    for one in upstream.asked:
        assert one.line.startswith(f"POST {PATH}")
        assert one.header("x-evil") is None
        assert one.header("host") == f"127.0.0.1:{upstream.port}"


@pytest.mark.parametrize(
    "line",
    [
        "X-A: b\r\n X-Evil: 1",
        "X-A: b\rX-Evil: 1",
        "X-A: b\x00c",
        "X-A : b",
        ": b",
        "X-\xe9: b",
        "X-A: b\xe9\xff",
        "no colon",
        "Host: 127.0.0.1:1@evil.example",
    ],
)
def test_headers_that_are_none_add_none(line: str, service: Serving, upstream: Upstream) -> None:
    service.raw(request(line))
    for one in upstream.asked:
        assert one.header("x-evil") is None
        assert one.header("host") == f"127.0.0.1:{upstream.port}"
        assert all(value.isascii() for _, value in one.headers)


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (("Transfer-Encoding: chunked",), b"0\r\n\r\nPOST /admin HTTP/1.1\r\nHost: x\r\n\r\n"),
        (("Transfer-Encoding: xchunked",), BODY),
        (("Transfer-Encoding: chunked, identity",), BODY),
        (("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), BODY),
        (("Content-Length: 3",), BODY),
        (("Content-Length: -1",), BODY),
        (("Content-Length: 0x10",), BODY),
        (("Content-Length : 5",), BODY),
    ],
)
@pytest.mark.parametrize("length", [-1, None])
def test_smuggled_requests_are_not_passed_on(
    lines: tuple[str, ...],
    body: bytes,
    length: int | None,
    service: Serving,
    upstream: Upstream,
) -> None:
    service.raw(request(*lines, body=body, length=length), wait_s=5)
    assert all(one.line == f"POST {PATH} HTTP/1.1" for one in upstream.asked)
    assert len(upstream.asked) <= 1
    for one in upstream.asked:
        assert one.header("transfer-encoding") is None
        assert one.json == {"messages": MESSAGES}


def test_a_slow_sender_is_cut_off(service: Serving, upstream: Upstream) -> None:
    found = service.raw(request(length=len(BODY) + 1), wait_s=8)
    assert status(found) == 408
    assert upstream.asked == []


def test_what_an_upstream_says_of_a_connection_is_not_repeated(
    service: Serving, upstream: Upstream
) -> None:
    body = json.dumps(completion(GOOD)).encode()
    upstream.answer = sends(body, x_evil="\u00e9", trailer="x", upgrade="h2c", content_encoding="")
    found = service.raw(request())
    head, _, sent = found.partition(b"\r\n\r\n")
    assert status(found) == 200
    assert not [name for name in (b"trailer", b"upgrade", b"x-evil") if name in head.lower()]
    assert f"content-length: {len(sent)}".encode() in head


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": 7}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"content": [7, {"text": 7}]}}]},
        {"choices": [{"message": {"content": " "}}], "usage": "x", "id": {}},
    ],
)
def test_strange_completions_are_passed_on(
    body: dict[str, Any], service: Serving, upstream: Upstream
) -> None:
    upstream.answer = sends(json.dumps(body).encode())
    found = service.chat()
    assert found.status == 200
    assert {**found.json, "trustassay": None} == {**body, "trustassay": None}
    assert found.headers["x-trustassay-status"] in ("not_judged", "scored")


def test_strange_chunks_are_passed_on(service: Serving, upstream: Upstream) -> None:
    choices = [
        [{"index": -1, "delta": {"content": "x"}}],
        [{"index": "0", "delta": {"content": "x"}}],
        [{"index": 10**9, "delta": {"content": "x"}}],
        [{"delta": []}, 7, None],
        [{"index": 0, "delta": {"content": 7, "refusal": {}}}],
        7,
        None,
    ]
    for one in choices:
        sent = json.dumps({"choices": one}).encode()
        upstream.answer = streams([b"data: " + sent + b"\n\n", *chunks(GOOD)])
        found = service.chat(stream=True)
        assert found.status == 200
        assert b'"trustassay"' in found.body
        assert found.body.endswith(b"data: [DONE]\n\n")
