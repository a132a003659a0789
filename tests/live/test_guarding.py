"""Who may ask, how often and how much; and what the log does not say."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.live.running import JSON, LEXICAL, Running, rest_of, serving
from tests.support import record, run_command
from trustassay.core.fair_queue import CURRENT_FLOW, Flow
from trustassay.live.requests import BodyLimiter, RequestError, TokenBuckets
from trustassay.live.service import ServiceSettings, read_tokens

TOKEN, OTHER = "first-token-of-this-test", "second.token~of+this/test="
KEYS = ("trustassay", "KEY-of-an-endpoint-never-shown")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = (*LEXICAL, "--host", "127.0.0.2", "--largest-body", "100000")
    folder = tmp_path_factory.mktemp("guarded")
    tokens = f"{TOKEN}, {OTHER}"
    with serving(
        folder, *options, TRUSTASSAY_SERVE_TOKEN=tokens, OPENAI_API_KEY=KEYS[1]
    ) as service:
        yield service


def bearer(token: str) -> dict[str, str]:
    return {**JSON, "Authorization": f"Bearer {token}"}


def test_each_token_lets_in_and_nothing_else(guarded: Running) -> None:
    body = json.dumps(record(1))
    for token in (TOKEN, OTHER):
        assert guarded.ask("POST", "/v1/score", body, bearer(token)).status == 200
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": ""},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN}, {OTHER}"},
        {"Authorization": f"Bearer {TOKEN.upper()}"},
        {"Authorization": "Bearer \xff\xfe"},
        {"X-Authorization": f"Bearer {TOKEN}"},
        {"Cookie": f"token={TOKEN}"},
    ]
    for headers in wrong:
        for path in ("/v1/score", "/metrics", "/openapi.json", "/nothing", "/health/"):
            reply = guarded.ask("POST", path, body, {**JSON, **headers})
            assert reply.status == 401, (path, headers)
            assert reply.headers["www-authenticate"] == "Bearer"
    assert guarded.ask("POST", f"/v1/score?token={TOKEN}", body, JSON).status == 401
    twice = f"Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer wrong\r\n"
    assert guarded.raw(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{twice}\r\n".encode()).split()[1] == (
        b"401"
    )


def test_health_needs_no_token(guarded: Running) -> None:
    assert guarded.ask("GET", "/health").json == {"status": "ready"}


def test_a_large_body_is_refused_and_told(guarded: Running) -> None:
    large = json.dumps(record(1, response="x" * 10_000_000))
    reply = guarded.ask("POST", "/v1/score", large, bearer(TOKEN))
    assert (reply.status, reply.headers["connection"]) == (413, "close")
    assert "100,000 bytes" in reply.error["message"]
    with suppress(ConnectionError):  # of a stranger nothing is read
        assert guarded.ask("POST", "/v1/score", large, JSON).status == 401
    assert guarded.ask("GET", "/health").status == 200


def test_a_body_in_pieces_is_counted(guarded: Running) -> None:
    head = (
        f"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    piece = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    assert guarded.raw(head + piece * 7 + b"0\r\n\r\n").split()[1] == b"413"
    small = json.dumps(record(1)).encode()
    sound = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(small), small)
    with guarded.connected() as client:
        client.sendall(sound)
        assert client.recv(1000).split()[1] == b"200"


def test_what_is_no_http_is_refused(guarded: Running) -> None:
    both = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n",
        b"GET /he\nalth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 400_000 + b"\r\n\r\n",
        both + b"Content-Length: 4\r\n\r\nabc",
    ):
        assert guarded.raw(sent).split()[1:2] in ([b"400"], [b"431"]), sent[:60]
    assert guarded.ask("GET", "/health").status == 200


def test_the_log_says_nothing_of_samples_and_keys(tmp_path: Path) -> None:
    secret = "PASSAGE-that-nobody-may-log"
    with serving(
        tmp_path, *LEXICAL, "--metric", "faithfulness", TRUSTASSAY_SERVE_TOKEN=TOKEN
    ) as one:
        for body in (
            json.dumps(record(1, response=secret, documents=[secret])),
            json.dumps({"question": 3, secret: secret}),
            secret,
            '{"a":' * 5000 + secret,
        ):
            one.ask("POST", f"/v1/score?{secret}", body, bearer(TOKEN))
            one.ask("POST", f"/{secret}", body, {**bearer(secret), "X-Key": secret})
        one.raw(f"{secret} {secret}\r\n\r\n".encode())
        told = one.ask("GET", "/metrics", headers=bearer(TOKEN)).body.decode()
        assert one.end() == 0
        for text in (one.said, told):
            assert secret not in text
            assert TOKEN not in text
        assert len(one.said.splitlines()) == 2


def test_only_this_machine_is_served_without_a_token(tmp_path: Path) -> None:
    done = run_command("serve", "--host", "0.0.0.0", "--port", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert "TRUSTASSAY_SERVE_TOKEN" in done.stderr
    with serving(tmp_path, *LEXICAL) as one:
        for host in ("127.0.0.1", f"localhost:{one.port}", "[::1]:80", "127.8.9.1"):
            assert one.ask("GET", "/metrics", headers={"Host": host}).status == 200, host
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]"):
            assert one.ask("GET", "/metrics", headers={"Host": host}).status == 421, host


def test_too_many_requests_in_a_minute(tmp_path: Path) -> None:
    with serving(
        tmp_path, *LEXICAL, "--per-minute", "3", TRUSTASSAY_SERVE_TOKEN=f"{TOKEN},{OTHER}"
    ) as one:
        found = [one.ask("GET", "/metrics", headers=bearer(TOKEN)) for _ in range(4)]
        assert [reply.status for reply in found] == [200, 200, 200, 429]
        assert 1 <= int(found[3].headers["retry-after"]) <= 20
        assert one.ask("GET", "/metrics", headers=bearer(OTHER)).status == 200
        tried = [one.ask("GET", "/metrics", headers=bearer(f"guess{i}")) for i in range(4)]
        assert [reply.status for reply in tried] == [401, 401, 401, 429]


def test_bodies_are_bounded_together() -> None:
    """64 bodies of the largest size are held, 16 of a caller; an ended request holds nothing."""
    refused: list[int] = []
    free = asyncio.Event()

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        try:
            await receive()
        except RequestError as error:
            refused.append(error.status_code)
        await free.wait()

    async def body() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 100, "more_body": False}

    async def sent(_message: Any) -> None: ...

    async def run() -> None:
        limited = BodyLimiter(app, ServiceSettings(largest_body=100))

        async def send_as(caller: str) -> None:
            CURRENT_FLOW.set(Flow(caller))
            await limited({"type": "http"}, body, sent)

        for callers, most in ((["a"], 16), ("abcd", 64), ("abcdef", 64), (["a"], 16)):
            free.clear()
            refused.clear()
            at_once = [
                asyncio.create_task(send_as(caller)) for caller in callers for _ in range(17)
            ]
            for _ in range(1000):  # until each of them has begun
                await asyncio.sleep(0)
            assert refused == [429] * (len(at_once) - most)
            free.set()
            await asyncio.gather(*at_once)

    asyncio.run(run())


def test_the_buckets_of_callers() -> None:
    buckets = TokenBuckets(60)
    assert [buckets.take("a", 0.0) for _ in range(60)] == [0.0] * 60
    assert buckets.take("a", 0.0) == pytest.approx(1.0)
    assert buckets.take("b", 0.0) == 0.0
    assert buckets.take("a", 0.25) == pytest.approx(0.75)
    assert buckets.take("a", 1.01) == 0.0
    assert [buckets.take("a", 1000.0) for _ in range(61)][-1] == pytest.approx(1.0)
    for i in range(20_000):
        buckets.take(str(i), 1000.0)
    assert len(buckets._tokens_left) == 10_000


def test_tokens_are_checked_and_not_shown() -> None:
    assert read_tokens("") == read_tokens(" , ") == ()
    assert read_tokens(f" {TOKEN} ,{OTHER}") == (TOKEN, OTHER)
    for wrong in ("short", "sixteen letters with a space", "sechzehn-Zeichen-ü"):
        with pytest.raises(ValueError, match="TRUSTASSAY_SERVE_TOKEN, token 2 of 2") as caught:
            read_tokens(f"{TOKEN},{wrong}")
        assert wrong not in str(caught.value)
    assert TOKEN not in repr(ServiceSettings((TOKEN,)))
    for name in ("capacity", "largest_body", "per_minute", "connections", "slow_s"):
        with pytest.raises(ValueError, match=name):
            ServiceSettings(**dict[str, Any]([(name, 0)]))


@pytest.mark.slow
def test_slow_senders_are_cut_off(tmp_path: Path) -> None:
    head = b"POST /v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    body = b"Content-Length: 1000\r\n\r\n"
    unread = b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body
    with serving(tmp_path, *LEXICAL, "--slow", "1") as one:
        for start, drip, said in (
            (b"", b"", b""),
            (b"", b"G", b""),
            (head, b"X-A: b\r\n", b""),
            (head + body, b" ", b"408"),
            (unread, b" ", b"404"),
        ):
            began = time.monotonic()
            with one.connected() as client:
                client.sendall(start)
                client.settimeout(0.2)
                found, open_ = b"", True
                while open_ and time.monotonic() - began < 60:
                    try:
                        client.sendall(drip)
                        piece = client.recv(1000)
                        found, open_ = found + piece, bool(piece)
                    except TimeoutError:
                        continue
                    except OSError:
                        open_ = False
            assert not open_, (start, drip)
            assert said in found[:20]
        assert one.ask("GET", "/health").status == 200


@pytest.mark.slow
def test_a_client_that_takes_no_reply_is_cut_off(tmp_path: Path) -> None:
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serving(tmp_path, *LEXICAL, "--slow", "1") as one, one.connected() as client:
        client.setblocking(False)
        began, sent = time.monotonic(), 0
        while time.monotonic() - began < 60:
            try:
                sent += client.send(ask * 100)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
        else:
            pytest.fail("the connection is still open")
        assert sent > 0
        assert one.ask("GET", "/health").status == 200


@pytest.mark.slow
def test_more_connections_than_allowed_are_told_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path, *LEXICAL, "--connections", "5", "--slow", "4") as one:
        held = [one.connected() for _ in range(5)]
        time.sleep(0.3)
        with one.connected() as client:
            refused = rest_of(client)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1" in refused
        for client in held:
            assert rest_of(client) == b""  # they sent nothing for four seconds
            client.close()
        assert one.ask("GET", "/health").status == 200
