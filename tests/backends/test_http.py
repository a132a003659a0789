"""What an address may answer, and what must never leave this process."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from trustassay.backends.endpoint_chat import find_refused_parameter
from trustassay.backends.http import (
    EndpointAddress,
    HttpEndpoint,
    RefusalError,
    describe_error_body,
)
from trustassay.errors import CallError

KEY = "sk-geheim-0123456789/+="
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


def asked(handler: Handler, body: Any = None, options: str = "") -> Any:
    """Return what an endpoint makes of a server that answers as ``handler`` does."""

    async def work() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", handler)
        async with TestServer(app) as server:
            base = str(server.make_url("/v1"))
            address = EndpointAddress.parse("test", f"m@{base}{options}", base="", key="TEST_KEY")
            http = HttpEndpoint(address, "Authorization", "Bearer ").with_headers(x_extra="1")
            try:
                return await http.post("/answer", {} if body is None else body)
            finally:
                await http.close()

    return asyncio.run(work())


def saying(text: str, status: int = 200, **headers: str) -> Handler:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status, headers=named)

    return handler


def failing(handler: Handler, options: str = "") -> CallError:
    with pytest.raises(CallError) as error:
        asked(handler, options=options)
    shown = "".join(map(str, (error.value, error.value.args, vars(error.value))))
    assert KEY not in shown
    return error.value


# ----------------------------------------------------------------------------- kinds of failure

QUOTA = json.dumps({"error": {"message": "You have no money.", "code": "insufficient_quota"}})
DELAY = json.dumps({"error": {"code": 429, "details": [{"retryDelay": "34.5s"}]}})


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "no", "refused"),
        (401, "no", "closed"),
        (402, "no", "closed"),
        (403, "no", "closed"),
        (403, "flagged by Moderation", "refused"),
        (404, "no", "closed"),
        (408, "no", "timeout"),
        (409, "no", "server"),
        (413, "no", "refused"),
        (422, "no", "refused"),
        (425, "no", "server"),
        (429, "no", "limited"),
        (429, QUOTA, "closed"),
        (400, '{"error": {"details": [{"reason": "API_KEY_INVALID"}]}}', "closed"),
        (400, "Your credit balance is too low", "closed"),
        (500, "no", "server"),
        (503, "no", "server"),
        (529, "overloaded", "server"),
        (301, "", "closed"),
        (200, "<html>", "malformed"),
        (200, "", "malformed"),
        (200, '{"choices": [', "malformed"),
        (200, '{"error": {"message": "down", "code": 502}}', "server"),
        (200, '{"error": {"message": "slowly", "code": 429}}', "limited"),
        (200, '{"error": "unknown"}', "server"),
    ],
)
def test_every_answer_has_its_kind(status: int, text: str, kind: str) -> None:
    error = failing(saying(text, status))
    assert error.kind == kind
    assert str(error).startswith("test:m@http://127.0.0.1:")
    assert isinstance(error, RefusalError) == (kind == "refused")


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"Retry_After": "7"}, "", 7),
        ({"Retry_After": "0.25"}, "", 0.25),
        ({"Retry_After_Ms": "1500", "Retry_After": "9"}, "", 1.5),
        ({"Retry_After": "-3"}, "", 0),
        ({"Retry_After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0),
        ({"Retry_After": "soon"}, "", None),
        ({}, DELAY, 34.5),
        ({}, "", None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], text: str, seconds: float | None) -> None:
    assert failing(saying(text, 429, **headers)).retry_after_s == seconds


def test_a_date_to_wait_for() -> None:
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    assert 50 < (failing(saying("", 503, Retry_After=later)).retry_after_s or 0) <= 60


def test_nobody_there_and_a_reply_that_breaks_off() -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b'{"choices"')
        assert request.transport
        request.transport.close()
        return response

    assert failing(broken).kind == "connection"

    async def nobody() -> None:
        address = EndpointAddress.parse("test", "m@http://127.0.0.1:9", base="", key="TEST_KEY")
        http = HttpEndpoint(address, "Authorization")
        try:
            await http.post("/answer", {})
        finally:
            await http.close()

    with pytest.raises(CallError, match="no connection") as error:
        asyncio.run(nobody())
    assert error.value.kind == "connection"


def test_the_endpoints_own_words_are_shown_and_cut() -> None:
    assert "400: Bad thing" in str(failing(saying('{"error": {"message": "Bad thing"}}', 400)))
    assert (
        describe_error_body('{"detail": [{"msg": "Extra inputs", "loc": ["body"]}]}')
        == "Extra inputs"
    )
    assert describe_error_body('{"message": "m", "code": 1}') == "m"
    assert describe_error_body('{"error": {}}') == '{"error": {}}'
    assert describe_error_body(" two\n lines ") == "two lines"
    assert len(str(failing(saying("x" * 10_000, 500)))) < 400


# ------------------------------------------------------------------------------- keys, redirects


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response({"text": json.dumps(dict(request.headers))})


async def complaint(request: web.Request) -> web.StreamResponse:
    told = f"Incorrect API key {request.headers['Authorization']}"
    return web.json_response({"error": {"message": told}}, status=401)


async def escaped(request: web.Request) -> web.StreamResponse:
    told = "".join(f"\\u{ord(c):04x}" for c in request.headers["Authorization"])
    return web.Response(text=f'{{"error": {{"message": "{told}"}}}}', status=400)


def test_a_key_that_the_server_sends_back_is_struck_out() -> None:
    found = asked(echo)["text"]
    assert KEY not in found
    assert json.loads(found)["Authorization"] == "Bearer [key]"
    assert json.loads(found)["x-extra"] == "1"
    assert "Incorrect API key Bearer [key]" in str(failing(complaint))
    assert "Bearer [key]" in str(failing(escaped))


def test_placeholders_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "EMPTY")
    assert json.loads(asked(echo)["text"])["Authorization"] == "Bearer EMPTY"


def test_no_key_and_the_key_of_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Authorization" not in json.loads(asked(echo, options="?key=")["text"])
    monkeypatch.setenv("OTHER_KEY", "other")
    headers = json.loads(asked(echo, options="?key=OTHER_KEY")["text"])
    assert headers["Authorization"] == "Bearer other"
    monkeypatch.delenv("TEST_KEY")
    assert "(no key: TEST_KEY is not set)" in str(failing(saying("no", 401)))
    assert "no key" not in str(failing(saying("no", 404)))


@pytest.mark.parametrize(("status", "kind"), [(200, "malformed"), (400, "refused")])
def test_a_reply_that_is_nested_too_deep_is_the_endpoints_fault(status: int, kind: str) -> None:
    assert failing(saying("[" * 100_000, status)).kind == kind


def test_a_key_that_is_refused_is_named_by_its_variable() -> None:
    assert "(it rejects the key in TEST_KEY)" in str(failing(saying("no", 401)))
    assert "(it rejects the key in TEST_KEY)" in str(failing(saying("no", 403)))
    assert "rejects the key" not in str(failing(saying("moderation", 403)))


@pytest.mark.parametrize("bad", ["sk-geheim\r\nX: y", "sk-geheim\u20ac", "sk geheim\x00"])
def test_what_is_no_key_is_not_sent(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {"TEST_KEY": bad})
    error = failing(echo)
    assert error.kind == "closed"
    assert "TEST_KEY is not a valid API key" in str(error)
    assert "geheim" not in str(error)


def test_redirects_are_told_and_not_followed() -> None:
    reached = []

    async def handler(request: web.Request) -> web.StreamResponse:
        reached.append(request.path)
        raise web.HTTPTemporaryRedirect(f"http://elsewhere/?k={KEY}")

    error = failing(handler)
    assert reached == ["/v1/answer"]
    assert "307: redirects to http://elsewhere/?k=[key]; not followed" in str(error)


def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://me:geheim@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    address = EndpointAddress.parse("test", "m@http://example.invalid", base="", key="TEST_KEY")
    with pytest.raises(CallError) as error:
        asyncio.run(HttpEndpoint(address, "Authorization").post("/answer", {}))
    assert error.value.kind in ("closed", "connection")
    assert "geheim" not in str(error.value)


# ---------------------------------------------------------------------------------- what arrives


def received(body: dict[str, Any], options: str = "") -> tuple[bytes, str]:
    seen = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((await request.read(), request.path_qs))
        return web.json_response({})

    asked(handler, body, options)
    return seen[0]


def test_every_character_arrives() -> None:
    text = "".join(map(chr, range(0x20))) + "\x7f\x85\u2028é\U0001f600"
    raw, _ = received({"text": text})
    assert json.loads(raw)["text"] == text


@pytest.mark.parametrize(
    ("text", "arrives"),
    [("a\ud800b", "a\ufffdb"), ("\udfff", "\ufffd"), ("\ud83d\ude00", "\U0001f600")],
)
def test_what_utf_8_cannot_hold_does_no_harm(text: str, arrives: str) -> None:
    raw, _ = received({"text": text})
    assert json.loads(raw.decode("utf-8"))["text"] == arrives


def test_additions_of_the_uri() -> None:
    raw, path = received({"a": 1}, '?api-version=2&body.b={"c":[1,true]}&body.d=word')
    assert json.loads(raw) == {"a": 1, "b": {"c": [1, True]}, "d": "word"}
    assert path == "/v1/answer?api-version=2"


def test_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert received({}) == (b"{}", "/v1/answer")


def test_an_endpoint_outlives_an_event_loop(unused_tcp_port: int) -> None:
    address = EndpointAddress.parse(
        "test", f"m@http://127.0.0.1:{unused_tcp_port}", base="", key="NONE"
    )
    http = HttpEndpoint(address, "Authorization")

    async def once() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", saying("{}"))
        async with TestServer(app, port=unused_tcp_port):
            found = await http.post("/answer", {})
            await http.close()
            return found

    assert [asyncio.run(once()), asyncio.run(once())] == [{}, {}]


@pytest.fixture
def unused_tcp_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


# --------------------------------------------------------------------------- refused parameters

NAMES = ("temperature", "seed", "stop", "logprobs", "top_logprobs", "max_tokens")


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ('{"error": {"message": "Unsupported value: \'temperature\' does not support 0 with this '
         'model. Only the default (1) value is supported.", "param": "temperature"}}',
         "temperature"),
        ('{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this '
         'model. Use \'max_completion_tokens\' instead.", "param": "max_tokens"}}', "max_tokens"),
        ('{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], '
         '"msg": "Extra inputs are not permitted"}]}', "seed"),
        ("property 'seed' is unsupported", "seed"),
        ("deepseek-reasoner does not support `logprobs`", "logprobs"),
        ('{"error": {"message": "`temperature` is deprecated for this model."}}', "temperature"),
        ('{"error": {"message": "seed: Extra inputs are not permitted"}}', "seed"),
        ('{"error": {"message": "Unknown name \\"seed\\" at \'generation_config\'"}}', "seed"),
        ("Unknown name \"topLogprobs\"", "top_logprobs"),
        ("the model does not support tools", None),
        ("Unsupported model for temperatures", None),
        ("Invalid 'temperature': expected a value <= 2", None),
        ("'max_tokens' is too large: 9000. This model's maximum context length is 4096", None),
        ('{"error": {"message": "max_tokens: 9 > 8, which is the maximum"}}', None),
        ("", None),
    ],
)  # fmt: skip
def test_which_parameter_is_refused(said: str, refused: str | None) -> None:
    assert find_refused_parameter(RefusalError("", said), NAMES) == refused


@pytest.mark.parametrize("status", [200, 400])
def test_a_reply_that_is_nested_too_deeply_is_malformed_or_refused(status: int) -> None:
    error = failing(saying("[" * 100_000, status))
    assert error.kind == ("malformed" if status == 200 else "refused")
