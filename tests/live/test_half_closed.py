"""Clients that end their side of a connection after the request, and clients that are gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.live.chats import GOOD, MESSAGES, PASSAGE, Serving
from tests.live.running import rest_of
from tests.live.upstream import Asked, Upstream, Write, chunks, says, streams
from tests.support import record, records
from trustassay.live import server
from trustassay.live.service import ServiceSettings

pytest.importorskip("prometheus_client")
CHAT = {"messages": MESSAGES, "documents": [PASSAGE]}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(says(GOOD)) as place:
        yield place


@pytest.fixture(scope="module")
def service(upstream: Upstream) -> Iterator[Serving]:
    with Serving(["--upstream", upstream.url]) as running:
        yield running


def request(path: str, content: Any = None, version: str = "1.1") -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    method = "GET" if content is None else "POST"
    lines = [f"{method} {path} HTTP/{version}", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode() + body


def half_closed(service: Serving, sent: bytes) -> bytes:
    """Send bytes, end this side, and return all that comes until the other side ends, too."""
    with service.running.connected() as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return rest_of(client)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("path", "content", "end"),
    [
        ("/health", None, b'{"status":"ready"}'),
        ("/v1/score", record(1), b"}"),
        ("/v1/score", records(3), b"}"),
        ("/v1/chat/completions", CHAT, b"}"),
        ("/v1/chat/completions", {**CHAT, "stream": True}, b"[DONE]"),
    ],
)
def test_a_client_that_ended_its_side_gets_the_whole_reply(
    path: str, content: Any, end: bytes, version: str, service: Serving, upstream: Upstream
) -> None:
    async def answer(asked: Asked, write: Write) -> None:
        stream = streams(chunks(GOOD[:20], GOOD[20:]), wait_s=0.05)
        await (stream if asked.json.get("stream") else says(GOOD))(asked, write)

    upstream.answer = answer
    reply = half_closed(service, request(path, content, version))
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert reply.removesuffix(b"0\r\n\r\n").rstrip().endswith(end)


@pytest.mark.slow
def test_requests_that_came_before_the_end_are_all_answered(service: Serving) -> None:
    reply = half_closed(service, request("/health") * 3 + request("/v1/score", record(1)))
    assert reply.count(b"HTTP/1.1 200 ") == 4


@pytest.mark.slow
def test_an_end_within_a_request_closes_at_once(service: Serving) -> None:
    whole = request("/v1/score", record(1))
    for length in (0, 10, whole.index(b"\r\n\r\n"), len(whole) - 1):
        assert half_closed(service, whole[:length]) == b""
    # Of two requests the whole one is answered.
    assert half_closed(service, request("/health") + whole[:-1]).count(b"HTTP/1.1") == 1


@contextlib.asynccontextmanager
async def serving(application: Any) -> AsyncIterator[tuple[str, int]]:
    """Serve an application by the protocol of the service, in this loop."""
    settings = ServiceSettings()
    running = server._Server(server._make_config(application, settings, 100))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(running.serve(sockets=[listener]))
        try:
            yield listener.getsockname()
        finally:
            running.should_exit = True
            await task


class Waiting:
    """An application whose reply waits until ``go`` is set, or until the client disconnects."""

    def __init__(self, begins: bool = False) -> None:
        self.begins = begins
        self.go, self.began, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if self.begins:
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"first ", "more_body": True})
        self.began.set()
        leaving = asyncio.create_task(receive())
        going = asyncio.create_task(self.go.wait())
        await asyncio.wait((leaving, going), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            self.gone.set()
            going.cancel()
            return
        if not self.begins:
            await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"last"})
        await leaving


def with_short_waits(monkeypatch: pytest.MonkeyPatch, probe_s: float, wait_s: float) -> None:
    monkeypatch.setattr(server, "HALF_CLOSED_PROBE_S", probe_s)
    monkeypatch.setattr(server, "HALF_CLOSED_WAIT_S", wait_s)


def test_a_reply_that_takes_long_reaches_a_client_that_ended_its_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Longer than the wait for clients that cannot be asked: those of HTTP/1.1 are."""
    with_short_waits(monkeypatch, 0.02, 0.05)

    async def run() -> bytes:
        waiting = Waiting()
        async with serving(waiting) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(request("/"))
            writer.write_eof()
            interim = await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.2)
            waiting.go.set()
            rest = await reader.read()
            writer.close()
        return interim + rest

    reply = asyncio.run(run())
    assert reply.startswith(server.INTERIM_REPLY * 3)
    assert reply.replace(server.INTERIM_REPLY, b"").startswith(b"HTTP/1.1 200 ")
    assert b"last" in reply


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("how", ["closed", "reset", "half-closed, then closed"])
def test_a_client_that_is_gone_is_noticed(
    how: str, begins: bool, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_short_waits(monkeypatch, 0.02, 0.1)

    async def run() -> None:
        waiting = Waiting(begins)
        async with serving(waiting) as address:
            client = socket.create_connection(address)
            client.sendall(request("/", version=version))
            await asyncio.wait_for(waiting.began.wait(), 10)
            if begins:
                await asyncio.to_thread(client.recv, 1000)
            if how == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif how != "closed":
                client.shutdown(socket.SHUT_WR)
                await asyncio.sleep(0.05)
            client.close()
            await asyncio.wait_for(waiting.gone.wait(), 10)

    asyncio.run(run())


def test_a_reply_that_comes_slowly_reaches_a_client_that_ended_its_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each written part shows that it is there: the wait begins again."""
    with_short_waits(monkeypatch, 0.02, 0.3)

    async def slowly(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        for number in range(6):
            await asyncio.sleep(0.1)
            message = {"type": "http.response.body", "body": b"x", "more_body": number < 5}
            await send(message)

    async def run() -> bytes:
        async with serving(slowly) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(request("/", version="1.0"))
            writer.write_eof()
            reply = await reader.read()
            writer.close()
        return reply

    assert asyncio.run(run()).endswith(b"xxxxxx")
