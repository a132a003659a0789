"""Whether the service withstands hostile requests: the next good sample is answered, nothing told.

    python -m lab.benchmarks.hostile [--only WORD] [--rounds 2]

`trustassay serve` runs twice, each in a process of its own, with every part: once for this machine
alone, once with a token. Its upstream is a server of this script that answers as an attack wants it
to. After each attack, and while slow ones last:

- a good sample is scored right within `GOOD_S` seconds, and no reply of the attack is a 500;
- the service prints no traceback, and nothing that the attack sent (each holds `MARK`);
- descriptors return to their number within `SETTLE_S` seconds.

The whole list is sent twice: from the first time on memory must not grow by more than `GROWTH_MIB`.
A table is printed, and `results/hostile.json` written; the exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from lab.results import write_result

MARK = "q7zmark"
"""A word in every attack that the service must not print."""
TOKEN = "token-of-the-hostile-requests-1"
GOOD_S = 5.0
SETTLE_S = 20.0
GROWTH_MIB = 32
SLOW_S = 2
"""The service's limit for slow clients."""
REPLY_WAIT_S = 20.0
"""Seconds after which an attack stops waiting for a reply."""
SAMPLE = {
    "question": "When was the bridge opened?",
    "response": "The stone bridge over the river was opened in 1911.",
    "documents": ["The stone bridge over the river was opened in 1911."],
}
CHAT = {
    "model": MARK,
    "messages": [{"role": "user", "content": SAMPLE["question"]}],
    "documents": SAMPLE["documents"],
}
CHAT_PATH, SCORE, TRACES = "/v1/chat/completions", "/v1/score", "/v1/traces"
GUARDRAIL = "/beta/litellm_basic_guardrail_api"
Write = Callable[[bytes], Awaitable[None]]


class HostileUpstream:
    """A server that reads a request and then does what the attack says."""

    def __init__(self) -> None:
        self.parts: Callable[[], Iterator[bytes | float]] = lambda: iter(())
        """Returns the bytes of the reply, and numbers: seconds to wait."""
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within the block."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The end of the script cancels a reply that waits.
        gone = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with suppress(*gone, TimeoutError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            async with asyncio.timeout(30):
                for part in self.parts():
                    if isinstance(part, bytes):
                        writer.write(part)
                        await writer.drain()
                    else:
                        await asyncio.sleep(part)
        writer.close()


@dataclass
class HostileService:
    """A service in a process of its own."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    upstream: HostileUpstream
    token: str = ""

    async def send(self, *pieces: bytes | float, half_close: bool = False) -> bytes:
        """Send pieces over one connection (a number: wait); return what comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        reply = b""
        reading = asyncio.create_task(reader.read(2**26))
        try:
            async with asyncio.timeout(REPLY_WAIT_S):
                with suppress(ConnectionError):
                    for piece in pieces:
                        if isinstance(piece, bytes):
                            writer.write(piece)
                            await writer.drain()
                        else:
                            await asyncio.sleep(piece)
                    if half_close:
                        writer.write_eof()
                with suppress(ConnectionError):
                    while piece_read := await reading:
                        reply += piece_read
                        reading = asyncio.create_task(reader.read(2**26))
        except TimeoutError:
            reply += b" HTTP/1.1 000 still open"
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            writer.close()
        return reply

    async def post(self, path: str, body: bytes, *lines: str, kind: str = "json") -> bytes:
        """Post a body, of JSON unless `kind` is another subtype, with further header lines."""
        return await self.send(self.request(path, body, *lines, kind=kind))

    def request(self, path: str, body: bytes, *lines: str, kind: str = "json") -> bytes:
        """Return the bytes of a request that is sound but for its content."""
        first = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        sized = [f"Content-Type: application/{kind}", f"Content-Length: {len(body)}"]
        access = [f"x-api-key: {self.token}"] if self.token else []
        head = "\r\n".join([*first, *sized, *access, *lines])
        return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body

    async def is_good(self) -> tuple[bool, float]:
        """Return whether a good sample is scored right, and after how many seconds."""
        began = time.perf_counter()
        headers = {"x-api-key": self.token} if self.token else {}
        timeout = aiohttp.ClientTimeout(total=GOOD_S)
        url = f"http://127.0.0.1:{self.port}{SCORE}"
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(url, json=SAMPLE, headers=headers) as reply,
            ):
                content = await reply.json()
                right = content["metrics"]["faithfulness"]["verdict"] == "supported"
        except (TimeoutError, aiohttp.ClientError, KeyError, ValueError):
            right = False
        return right, time.perf_counter() - began

    def descriptors(self) -> int:
        """Return the number of open descriptors."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def memory_mib(self) -> float:
        """Return the memory in use."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+)", status)
        return int(match[1]) / 1024 if match else 0.0


@asynccontextmanager
async def serving(
    folder: Path, upstream: HostileUpstream, token: str
) -> AsyncIterator[HostileService]:
    """Run a service with every part within the block."""
    log = folder / ("guarded.log" if token else "open.log")
    address = f"http://127.0.0.1:{upstream.port}/v1"
    # Few requests a minute, where tokens are guessed.
    rate = "300" if token else "1000000"
    options = ["--entailer", "lexical", "--mcp", "--guardrail", "--otlp", "--settle", "0.2"]
    options += ["--upstream", address, "--upstream-timeout", "3", "--slow", str(SLOW_S)]
    environment = {**os.environ, "TRUSTASSAY_CACHE": "off", "TRUSTASSAY_SERVE_TOKEN": token}
    # Freed memory goes back to the system at once, so that what grows is in use.
    environment |= {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "100000"}
    with log.open("wb") as output:
        command = [sys.executable, "-m", "trustassay", "serve", "--port", "0"]
        process = subprocess.Popen(
            [*command, "--per-minute", rate, *options],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        while not (listening := re.search(r"listening at http://\S+?:(\d+)", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(f"the service did not start: {log.read_text()}")
            await asyncio.sleep(0.1)
        yield HostileService(int(listening[1]), process, log, upstream, token)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


Send = Callable[[HostileService], Awaitable[bytes]]


@dataclass(frozen=True)
class Attack:
    """One hostile request, or many of a kind."""

    name: str
    send: Send
    """Sends it, and returns all replies."""
    guarded: bool = False
    """Whether it is meant for the service with a token."""
    forbidden: tuple[int, ...] = (500,)
    """Statuses that no reply may have."""


ATTACKS: list[Attack] = []


def attack(
    name: str, *, guarded: bool = False, forbidden: tuple[int, ...] = (500,)
) -> Callable[[Send], Send]:
    """Add a function to the list."""

    def add(send: Send) -> Send:
        ATTACKS.append(Attack(name, send, guarded, forbidden))
        return send

    return add


def add_bytes(name: str, *pieces: bytes, forbidden: tuple[int, ...] = (500,)) -> None:
    """Add an attack that sends bytes as they are."""

    async def send(service: HostileService) -> bytes:
        return await service.send(*pieces)

    attack(name, forbidden=forbidden)(send)


def add_bodies(name: str, path: str, *bodies: bytes, kind: str = "json", lines: Any = ()) -> None:
    """Add an attack that posts bodies, one after the other."""

    async def send(service: HostileService) -> bytes:
        return b"".join([await service.post(path, body, *lines, kind=kind) for body in bodies])

    attack(name)(send)


def add_upstream(
    name: str,
    parts: Callable[[], Iterator[bytes | float]],
    path: str = CHAT_PATH,
    *,
    stream: bool = False,
) -> None:
    """Add an attack of the upstream: a chat, or a request of another path, is answered so."""

    async def send(service: HostileService) -> bytes:
        service.upstream.parts = parts
        body = json.dumps({**CHAT, "stream": stream}).encode()
        return await service.post(path, body)

    attack(f"upstream: {name}")(send)


# Request lines and headers ------------------------------------------------------------------------

HOST = b"Host: 127.0.0.1\r\nConnection: close\r\nX-Mark: " + MARK.encode() + b"\r\n"
JSON = b"Content-Type: application/json\r\n"
GET = b"GET /health HTTP/1.1\r\n"
POST = b"POST /v1/score HTTP/1.1\r\n"
END = b"\r\n"
WORD = MARK.encode()
GOOD_BODY = json.dumps(SAMPLE).encode()
SIZED = b"Content-Length: %d\r\n" % len(GOOD_BODY)

for line in (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + WORD,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x00" * 1000,
    b"GET\r\n\r\n",
    b"GET /" + WORD + b" HTTP/9.9\r\n" + HOST + END,
    b"GET  /health  HTTP/1.1\r\n" + HOST + END,
    b"GET /" + WORD * 20_000 + b" HTTP/1.1\r\n" + HOST + END,
    b"GET /\xff\xfe\x00 HTTP/1.1\r\n" + HOST + END,
    b"G\x00T /health HTTP/1.1\r\n" + HOST + END,
    b"\r\n" * 50_000,
):
    add_bytes(f"request line {line[:12]!r}", line)
for method in ("DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "PROPFIND", "x" * 200):
    sent = f"{method} /v1/score HTTP/1.1\r\n".encode() + HOST + END
    add_bytes(f"method {method[:10]}", sent)
add_bytes(
    "upgrade to a websocket", GET + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
)
add_bytes("10,000 headers", GET + HOST + b"X-A: b\r\n" * 10_000 + END)
add_bytes("a header of 100,000 bytes", GET + HOST + b"X-A: " + WORD * 15_000 + END + END)
add_bytes("header folded", GET + HOST + b"X-A: b\r\n c\r\n" + END)
add_bytes("header with NUL", GET + HOST + b"X-A: b\x00" + WORD + END + END)
add_bytes("header that is not ASCII", GET + HOST + b"X-\xe9: \xff" + END + END)
add_bytes("no host", GET + b"Connection: close\r\n\r\n")
add_bytes("two hosts", GET + HOST + b"Host: " + WORD + b".example\r\n\r\n")
add_bytes("host of another site (rebinding)", POST + b"Host: " + WORD + b".example\r\n" + END)
add_bytes("host with a password", GET + b"Host: 127.0.0.1@" + WORD + b".example\r\n" + END)
add_bytes(
    "forged forwarding", GET + HOST + b"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: e\r\n" + END
)
add_bytes(
    "100,000 commas of Connection", GET + HOST[:-2] + b"\r\nConnection: " + b"," * 50_000 + END * 2
)

# Smuggling and lengths ----------------------------------------------------------------------------

SECOND = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
for name, lines, body in (
    ("two content lengths", SIZED + b"Content-Length: 3\r\n", GOOD_BODY),
    ("two in one header", b"Content-Length: 3, 5\r\n", GOOD_BODY),
    ("length and chunks", SIZED + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + SECOND),
    ("unknown encoding", b"Transfer-Encoding: xchunked\r\n", GOOD_BODY),
    ("two encodings", b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + SECOND),
    ("chunk of 2^63", b"Transfer-Encoding: chunked\r\n", b"8000000000000000\r\n" + WORD),
    ("chunk of 2^64 + 1", b"Transfer-Encoding: chunked\r\n", b"10000000000000001\r\n" + WORD),
    ("negative chunk", b"Transfer-Encoding: chunked\r\n", b"-1\r\n" + WORD),
    ("chunk extension without end", b"Transfer-Encoding: chunked\r\n", b"1;" + b"x" * 200_000),
    ("trailer without end", b"Transfer-Encoding: chunked\r\n", b"0\r\n" + b"X-A: b\r\n" * 20_000),
    (
        "200,000 chunks of a byte",
        b"Transfer-Encoding: chunked\r\n",
        b"1\r\n \r\n" * 200_000 + b"0\r\n\r\n",
    ),
    ("negative length", b"Content-Length: -1\r\n", GOOD_BODY),
    ("length of 2^64", b"Content-Length: 18446744073709551616\r\n", GOOD_BODY),
    ("length of 5,000 digits", b"Content-Length: " + b"9" * 5000 + END, GOOD_BODY),
    ("length in hexadecimal", b"Content-Length: 0x10\r\n", GOOD_BODY),
    ("endless body", b"Transfer-Encoding: chunked\r\n", (b"100000\r\n" + b" " * 2**20 + END) * 30),
):
    add_bytes(name, POST + HOST + JSON + lines + END, body)


@attack("200 pipelined requests")
async def send_pipelined(service: HostileService) -> bytes:
    """One connection; the last request closes it."""
    first = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    return await service.send(first * 200 + GET + HOST + END)


async def send_slowly(service: HostileService, start: bytes, drip: bytes) -> bytes:
    """Send a byte now and then over 200 connections, while good samples are scored."""

    pieces: list[bytes | float] = [0.25, drip] * 60

    async def drip_once() -> bytes:
        return await service.send(start, *pieces)

    dripping = [asyncio.create_task(drip_once()) for _ in range(200)]
    await asyncio.sleep(1)
    right, _ = await service.is_good()
    replies = await asyncio.gather(*dripping)
    return b"".join(replies) if right else b"HTTP/1.1 500 (no good answer meanwhile)"


@attack("200 slow heads")
async def send_slow_heads(service: HostileService) -> bytes:
    """A header every quarter of a second."""
    return await send_slowly(service, POST, b"X-A: b\r\n")


@attack("200 slow bodies")
async def send_slow_bodies(service: HostileService) -> bytes:
    """A byte of the body every quarter of a second."""
    start = POST + HOST + JSON + b"Content-Length: 4000\r\n\r\n"
    return await send_slowly(service, start, b" ")


@attack("200 connections that send nothing")
async def send_nothing(service: HostileService) -> bytes:
    """They must be closed."""
    return b"".join(await asyncio.gather(*(service.send() for _ in range(200))))


@attack("300 requests cut off in the middle")
async def send_halves(service: HostileService) -> bytes:
    """Each ends its side within the body."""
    whole = service.request(SCORE, GOOD_BODY)
    cut = [whole[: 50 + place] for place in range(300)]
    return b"".join(await asyncio.gather(*(service.send(piece, half_close=True) for piece in cut)))


@attack("200 half-closed clients of chats that hang")
async def wait_half_closed(service: HostileService) -> bytes:
    """Each must get its reply."""
    service.upstream.parts = lambda: iter([60.0])
    request = service.request(CHAT_PATH, json.dumps(CHAT).encode())
    replies = await asyncio.gather(*(service.send(request, half_close=True) for _ in range(200)))
    silent = sum(b"HTTP/1.1 504" not in one for one in replies)
    return b"".join(replies) + b"HTTP/1.1 500 (no reply)" * silent


@attack("200 clients that go away before the reply")
async def leave_early(service: HostileService) -> bytes:
    """Of chats whose upstream hangs; half of them by a reset."""
    service.upstream.parts = lambda: iter([60.0])
    request = service.request(CHAT_PATH, json.dumps(CHAT).encode())

    async def leave(by_reset: bool) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(request)
        await writer.drain()
        await asyncio.sleep(0.1)
        if by_reset:
            linger = struct.pack("ii", 1, 0)
            client = writer.get_extra_info("socket")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    await asyncio.gather(*(leave(number % 2 == 0) for number in range(200)))
    return b""


# Bodies -------------------------------------------------------------------------------------------


def sample(**changes: Any) -> bytes:
    """Return the good sample with other fields."""
    return json.dumps({**SAMPLE, **changes}).encode()


def raw_sample(field_text: bytes) -> bytes:
    """Return a sample with a field in JSON as it is."""
    return GOOD_BODY[:-1] + b', "extra": ' + field_text + b"}"


add_bodies(
    "JSON nested 100,000 deep",
    SCORE,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 99_999 + b"]" * 99_999,
)
add_bodies("nested deeply within a sample", SCORE, raw_sample(b"[" * 2000 + b"]" * 2000))
add_bodies("200,000 keys", SCORE, json.dumps({f"{MARK}{n}": n for n in range(200_000)}).encode())
add_bodies(
    "huge numbers",
    SCORE,
    raw_sample(b"9" * 100_000),
    raw_sample(b"1e999"),
    raw_sample(b"-1e-999999"),
)
add_bodies(
    "NaN and infinity",
    SCORE,
    raw_sample(b"NaN"),
    raw_sample(b"Infinity"),
    sample(response=WORD.decode() * 2),
)
add_bodies(
    "lone surrogates",
    SCORE,
    *(
        json.dumps({**SAMPLE, name: value}).encode()
        for name, value in (("id", "\ud800"), ("question", "\udfff?"), ("response", "\ud83d x."))
    ),
)
add_bodies(
    "bytes that are not UTF-8",
    SCORE,
    b'{"question": "\xff\xfe"}',
    b"\xff\xfe{\x00}\x00",
    GOOD_BODY + b"\x80",
)
add_bodies(
    "NUL and controls in texts",
    SCORE,
    sample(response="\x00\x1b[2J\u202e" + MARK),
    sample(id="\x00"),
)
WRONG_TEXTS: list[Any] = [None, 7, True, [], {}, [[[]]], [{"text": {}}], [None] * 1000]
add_bodies(
    "texts of the wrong type",
    SCORE,
    *(
        json.dumps({**SAMPLE, name: value}).encode()
        for name in ("question", "response", "documents")
        for value in WRONG_TEXTS
    ),
)
add_bodies(
    "values that are no sample", SCORE, b"", b"7", b"null", b'"text"', b"[[]]", b"[null]", b"{}"
)
add_bodies("100,000 empty samples", SCORE, b"[" + b"{}," * 99_999 + b"{}]")
add_bodies("1,000 empty samples", SCORE, b"[" + b"{}," * 999 + b"{}]")
add_bodies("100,000 empty lines", SCORE, b"\n" * 100_000, b"{}\n" * 100_000, kind="x-ndjson")
add_bodies("a body of 30 MB", SCORE, b" " * 30_000_000)
add_bodies("an answer of 4 MB", SCORE, sample(response="a. " * 1_300_000))
add_bodies("an answer of a million citations", SCORE, sample(response="[1]" * 1_000_000))
add_bodies("100,000 passages", SCORE, sample(documents=["x"] * 100_000))
add_bodies(
    "a word of a million letters",
    SCORE,
    sample(response="x" * 1_000_000, documents=["x" * 1_000_000]),
)
add_bodies("a packed body", SCORE, gzip.compress(GOOD_BODY), lines=("Content-Encoding: gzip",))
add_bodies(
    "templates and paths in fields",
    SCORE,
    sample(
        id="../../../etc/passwd", model="{{7*7}}${jndi:ldap://x}", question="'; DROP TABLE x;--?"
    ),
)
for kind in ("x-www-form-urlencoded", "xml", "json; charset=utf-16", "json; charset=" + "x" * 9000):
    add_bodies(
        f"type {kind[:20]}",
        SCORE,
        b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
        kind=kind,
    )

# Paths --------------------------------------------------------------------------------------------

for target in (
    "/../../etc/passwd",
    "/v1/%2e%2e/%2e%2e/etc/passwd",
    "//evil.example/v1/score",
    "/v1/embeddings/../../admin",
    "/v1/models/%2e%2e%2fadmin",
    "/v1/models/..%252fadmin",
    "/v1/embeddings%0d%0aX-Evil:%20" + MARK,
    "/%00/%ff",
    "http://169.254.169.254/latest",
    "/v1/score?" + "a=b&" * 10_000,
):
    add_bytes(f"path {target[:40]}", f"GET {target} HTTP/1.1\r\n".encode() + HOST + END)

# Tokens -------------------------------------------------------------------------------------------


for name, header in (
    ("a token of 1 MB", b"Authorization: Bearer " + b"x" * 1_000_000),
    ("a token that is not ASCII", b"Authorization: Bearer \xff\xfe" + WORD),
    ("an empty token", b"Authorization: Bearer "),
    ("two tokens", f"x-api-key: {TOKEN}\r\nx-api-key: {MARK}".encode()),
    ("a token in the query", b"X-Query: none"),
):

    def with_header(header: bytes) -> Send:
        """Return an attack with a header."""
        path = f"/v1/score?token={TOKEN}&api_key={TOKEN}".encode()

        async def send(service: HostileService) -> bytes:
            start = b"POST " + path + b" HTTP/1.1\r\n" + HOST + JSON + SIZED
            return await service.send(start + header + b"\r\n\r\n" + GOOD_BODY)

        return send

    attack(name, guarded=True, forbidden=(500, 200))(with_header(header))


@attack("2,000 guessed tokens", guarded=True, forbidden=(500, 200))
async def guess_tokens(service: HostileService) -> bytes:
    """Over a few connections at a time; the rate of the caller ends it."""
    replies = b""
    start = POST + HOST + JSON + SIZED
    for first in range(0, 2000, 50):
        guesses = [
            start + f"x-api-key: {TOKEN[:-1]}{n}{MARK}\r\n\r\n".encode() + GOOD_BODY
            for n in range(first, first + 50)
        ]
        replies += b"".join(await asyncio.gather(*(service.send(guess) for guess in guesses)))
    return replies


# Traces, guardrail, MCP ---------------------------------------------------------------------------

GZIP = ("Content-Encoding: gzip",)
BOMB = gzip.compress(gzip.compress(b" " * 10**8, 9), 9)
add_bodies("gzip bomb of traces", TRACES, gzip.compress(b" " * 200_000_000, 9), lines=GZIP)
add_bodies(
    "gzip bomb of protobuf",
    TRACES,
    gzip.compress(b"\n" * 200_000_000, 9),
    kind="x-protobuf",
    lines=GZIP,
)
add_bodies(
    "gzip within gzip, and broken gzip",
    TRACES,
    BOMB,
    BOMB[:-9],
    b"\x1f\x8b" + WORD,
    b"",
    lines=GZIP,
)
add_bodies("unknown encodings of traces", TRACES, b"{}", lines=("Content-Encoding: br, gzip",))
add_bodies(
    "protobuf garbage",
    TRACES,
    WORD,
    b"\xff" * 1000,
    b"\n\xff\xff\xff\xff\x0f",
    b"\n\x80" * 50_000,
    b"",
    b"\x0b" * 100_000,
    kind="x-protobuf",
)


def nested(depth: int) -> bytes:
    """Return messages of protobuf, each the first field of another."""
    body = b""
    for _ in range(depth):
        size, length = len(body), b""
        while True:
            length += bytes([size & 127 | (128 if size > 127 else 0)])
            size >>= 7
            if not size:
                break
        body = b"\n" + length + body
    return body


add_bodies("protobuf nested 2,000 deep", TRACES, nested(2000), kind="x-protobuf")


def traces(*spans: Any) -> bytes:
    """Return spans as JSON of OTLP."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


ID = {"traceId": "a" * 32, "spanId": "b" * 16}
VALUE: Any = {"stringValue": MARK}
for _ in range(40):
    VALUE = {"arrayValue": {"values": [VALUE]}}
WRONG_IDS: list[Any] = [7, None, [], {}, "", "x" * 10**6, "\ud800", "0" * 32]
add_bodies(
    "spans with wrong ids",
    TRACES,
    *(traces({**ID, name: value}) for name in ID for value in WRONG_IDS),
    traces(None, 7, []),
    b'{"resourceSpans": {}}',
    b'{"resourceSpans": [{"scopeSpans": 7}]}',
    b"[]",
    b"null",
)
add_bodies(
    "spans with strange fields",
    TRACES,
    traces({**ID, "attributes": [{"key": MARK, "value": VALUE}], "parentSpanId": 7}),
    traces(
        {**ID, "traceId": "c" * 32, "attributes": [{"key": n} for n in range(50_000)], "name": {}}
    ),
    traces(
        {
            **ID,
            "traceId": "d" * 32,
            "startTimeUnixNano": "9" * 4000,
            "endTimeUnixNano": -1,
            "events": 7,
        }
    ),
    traces(
        {
            **ID,
            "traceId": "e" * 32,
            "startTimeUnixNano": "x",
            "status": [],
            "kind": {},
            "links": [7],
        }
    ),
    traces({**ID, "traceId": "f" * 32, "parentSpanId": "b" * 16}),
    traces(
        *(
            {"traceId": "1" * 32, "spanId": f"{n:016x}", "parentSpanId": f"{n + 1:016x}"}
            for n in range(5000)
        )
    ),
)
add_bodies(
    "30,000 traces",
    TRACES,
    traces(*({"traceId": f"{n:032x}", "spanId": f"{n:016x}"} for n in range(30_000))),
)
WRONG_CALLS: list[Any] = ["x" * 100_000, None, [], 7]
WRONG_FIELDS: list[Any] = [7, "x", [7], [None], {"documents": 7}, ["\ud800"] * 200]
add_bodies(
    "guardrail garbage",
    GUARDRAIL,
    b"[]",
    b"7",
    *(
        json.dumps({"input_type": kind, "litellm_call_id": call_id, name: value}).encode()
        for kind in ("request", "response", 7)
        for call_id in WRONG_CALLS
        for name in ("texts", "structured_messages", "additional_provider_specific_params")
        for value in WRONG_FIELDS
    ),
)


@attack("5,000 conversations of the guardrail")
async def fill_conversations(service: HostileService) -> bytes:
    """Each waits for an answer that never comes; 64 MB are the most."""
    timeout, url = aiohttp.ClientTimeout(total=120), f"http://127.0.0.1:{service.port}{GUARDRAIL}"
    messages = [{"role": "user", "content": "x" * 20_000}]
    statuses: Counter[int] = Counter()
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for number in range(5000):
            content = {"input_type": "request", "litellm_call_id": f"{MARK}{number}"}
            async with session.post(
                url, json={**content, "structured_messages": messages}
            ) as reply:
                statuses[reply.status] += 1
    return b"".join(b"HTTP/1.1 %d" % status for status in statuses)


ACCEPT = ("Accept: application/json, text/event-stream",)


def call(method: Any, params: Any = None, **more: Any) -> bytes:
    """Return a call of JSON-RPC."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}
    ).encode()


def tool(**arguments: Any) -> bytes:
    """Return a call of the tool."""
    return call("tools/call", {"name": "check_answer", "arguments": arguments})


add_bodies(
    "MCP garbage",
    "/mcp",
    b"",
    b"{",
    b"[]",
    b"7",
    WORD,
    b"\xff\xfe",
    b"[" * 50_000,
    b"{}",
    b'{"jsonrpc": "1.0"}',
    call(7),
    call("x" * 10_000),
    call("tools/call"),
    call("tools/call", []),
    call("tools/call", {"name": MARK}),
    call("initialize", {"protocolVersion": {}}),
    call("resources/read", {"uri": "file:///etc/passwd"}),
    call("tools/list", {"cursor": "\ud800"}),
    b"[" + call("ping") + b"," + call("ping") + b"]",
    call("ping", id=[MARK]),
    call("ping", id=2**70),
    call("ping", id=None),
    call("notifications/cancelled", {"requestId": 1}),
    lines=ACCEPT,
)
add_bodies(
    "MCP: wrong arguments",
    "/mcp",
    tool(),
    tool(question=7, response=[], documents={}),
    tool(**SAMPLE, metrics=[MARK]),
    tool(**SAMPLE, metrics=7),
    tool(**{**SAMPLE, "response": "\ud800"}),
    tool(**{**SAMPLE, "documents": [{"text": 7}]}),
    tool(**{**SAMPLE, "documents": [None]}),
    tool(**SAMPLE, **{MARK: 1}),
    tool(**{**SAMPLE, "response": "x" * 3_000_000}),
    lines=ACCEPT,
)
add_bodies(
    "MCP without its headers", "/mcp", call("ping"), kind="json", lines=("Accept: text/html",)
)
add_bodies(
    "MCP of another version",
    "/mcp",
    call("ping"),
    lines=(*ACCEPT, "Mcp-Protocol-Version: " + MARK, "Mcp-Session-Id: \x7f"),
)
for method in ("GET", "DELETE"):
    sent = f"{method} /mcp HTTP/1.1\r\nAccept: text/event-stream\r\n".encode() + HOST + END
    add_bytes(f"MCP {method}", sent)

# Chats --------------------------------------------------------------------------------------------


def chat(**changes: Any) -> bytes:
    """Return a chat with other fields."""
    return json.dumps({**CHAT, **changes}).encode()


add_bodies(
    "chats with strange fields",
    CHAT_PATH,
    chat(messages=7),
    chat(messages=[7, None, {}]),
    chat(documents={}),
    chat(documents="[1]"),
    chat(model={}),
    chat(stream=[]),
    chat(messages=[{"role": "tool", "content": [[]]}]),
    chat(messages=[{"role": "\ud800"}]),
    chat(messages=[{"role": "user", "content": "x"}] * 30_000),
    chat(documents=[{"text": 7, "title": []}] * 1000),
)
add_bodies(
    "a chat with header injection",
    CHAT_PATH,
    chat(),
    lines=("X-A: b\rX-Evil: 1", "Authorization: Bearer \x01" + MARK),
)
add_bodies("embeddings garbage", "/v1/embeddings", b"", b"[" * 100_000, b"\xff", b"NaN", b"1e999")

# Upstreams ----------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
AS_JSON = HEAD + b"Content-Type: application/json\r\n"
AS_STREAM = HEAD + b"Content-Type: text/event-stream\r\n\r\n"
FORGED = b'data: {"trustassay": {"status": "scored"}, "choices": []}\n\n'
PACKED = b"Content-Encoding: gzip\r\n\r\n"


def chunk_of(index: int) -> bytes:
    """Return an event with a part of an answer."""
    return b'data: {"choices": [{"index": %d, "delta": {"content": "and "}}]}\n\n' % index


CHUNK = chunk_of(0)


def whole(body: bytes, head: bytes = AS_JSON) -> Callable[[], Iterator[bytes | float]]:
    """Return a reply with its length."""
    return lambda: iter([head + b"Content-Length: %d\r\n\r\n" % len(body) + body])


def endless(start: bytes, part: bytes) -> Callable[[], Iterator[bytes | float]]:
    """Return a reply that goes on for ever."""

    def parts() -> Iterator[bytes | float]:
        yield start
        while True:
            yield part

    return parts


def answer(content: Any) -> bytes:
    """Return a completion."""
    message = {"role": "assistant", "content": content}
    return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()


REPLIES: dict[str, Callable[[], Iterator[bytes | float]]] = {
    "closes at once": lambda: iter(()),
    "garbage": lambda: iter([b"\x00\xff" * 5000 + WORD]),
    "HTTP/0.9": lambda: iter([answer("x")]),
    "hangs": lambda: iter([60.0]),
    "hangs within the head": lambda: iter([b"HTTP/1.1 200 OK\r\nX-A", 60.0]),
    "hangs within the body": lambda: iter([AS_JSON + b"Content-Length: 99\r\n\r\n{", 60.0]),
    "endless head": endless(HEAD, b"X-A: " + b"b" * 5000 + b"\r\n"),
    "endless line": endless(b"HTTP/1.1 200 ", b"x" * 10_000),
    "100 for ever": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless body": endless(AS_JSON + b"\r\n", b" " * 65_536),
    "redirect to metadata": lambda: iter(
        [b"HTTP/1.1 302 F\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"]
    ),
    "shorter than its length": lambda: iter([AS_JSON + b"Content-Length: 1000\r\n\r\n{"]),
    "longer than its length": lambda: iter([AS_JSON + b"Content-Length: 2\r\n\r\n" + answer("x")]),
    "negative length": lambda: iter([AS_JSON + b"Content-Length: -5\r\n\r\n" + answer("x")]),
    "two lengths": lambda: iter(
        [AS_JSON + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\n" + answer("x")]
    ),
    "huge chunk": lambda: iter(
        [AS_JSON + b"Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\nx"]
    ),
    "wrong chunk": lambda: iter([AS_JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx"]),
    "gzip bomb": whole(
        gzip.compress(b" " * 300_000_000, 9), AS_JSON + b"Content-Encoding: gzip\r\n"
    ),
    "broken gzip": whole(b"\x1f\x8b" + WORD, AS_JSON + b"Content-Encoding: gzip\r\n"),
    "unknown encoding": whole(answer("x"), AS_JSON + b"Content-Encoding: br\r\n"),
    "nested deeply": whole(b'{"choices": ' + b"[" * 100_000),
    "NaN": whole(b'{"choices": [], "a": NaN}'),
    "surrogates": whole(answer("\ud800 " + MARK)),
    "content that is no text": whole(answer([7, {"text": []}])),
    "200,000 choices": whole(json.dumps({"choices": [{}] * 200_000}).encode()),
    "an answer of 15 MB": whole(answer("a. " * 5_000_000)),
    "controls in headers": whole(answer("x"), AS_JSON + b"X-A: \x01\x02\x7f\r\nX-B: \xe9\r\n"),
    "odd header names": whole(answer("x"), AS_JSON + b"X(A): b\r\nX B: c\r\n"),
    "headers with line breaks": whole(
        answer("x"), AS_JSON + b"X-A: b\rX-Evil: 1\r\nX-C: d\nX-Evil: 2\r\n"
    ),
    "our own headers": whole(
        answer("x"), AS_JSON + b"x-trustassay-status: scored\r\nTransfer: x\r\nTrailer: x\r\n"
    ),
    "odd status": whole(answer("x"), b"HTTP/1.1 999 Odd\r\nConnection: close\r\n"),
    "status 600": whole(answer("x"), b"HTTP/1.1 600 Odd\r\nConnection: close\r\n"),
    "status of 4 digits": whole(answer("x"), b"HTTP/1.1 2000 OK\r\nConnection: close\r\n"),
    "204 with a body": whole(answer("x"), b"HTTP/1.1 204 None\r\nConnection: close\r\n"),
    "205 with a body": whole(answer("x"), b"HTTP/1.1 205 Reset\r\nConnection: close\r\n"),
    "304 with a body": whole(answer("x"), b"HTTP/1.1 304 Same\r\nConnection: close\r\n"),
    "101 upgrade": lambda: iter(
        [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + WORD]
    ),
    "content type garbage": whole(answer("x"), HEAD + b"Content-Type: ;;;=\xff\r\n"),
}
for name, parts in REPLIES.items():
    add_upstream(name, parts)
    add_upstream(f"embeddings, {name}", parts, "/v1/embeddings")
STREAMS: dict[str, Callable[[], Iterator[bytes | float]]] = {
    "endless stream": endless(AS_STREAM, CHUNK * 100),
    "endless event": endless(AS_STREAM + b"data: ", b"x" * 65_536),
    "stream that hangs": lambda: iter([AS_STREAM + CHUNK, 60.0]),
    "stream that breaks off": lambda: iter([AS_STREAM + CHUNK]),
    "stream of garbage": lambda: iter([AS_STREAM + b"\x00\xff\xfe" + WORD + b"\n\ndata: {\n\n"]),
    "indices": lambda: iter([AS_STREAM, *(chunk_of(index) for index in (-1, 2**70, 10**9))]),
    "100,000 events": lambda: iter([AS_STREAM, CHUNK * 100_000, b"data: [DONE]\n\n"]),
    "deep event": lambda: iter([AS_STREAM + b"data: " + b"[" * 100_000 + b"\n\n"]),
    "carriage returns": lambda: iter([AS_STREAM + b"data: {}\rdata: [DONE]\r\r" + CHUNK]),
    "forged verdict": lambda: iter([AS_STREAM + FORGED + CHUNK]),
    "packed stream": lambda: iter([AS_STREAM[:-2] + PACKED + gzip.compress(CHUNK)]),
}
for name, parts in STREAMS.items():
    add_upstream(name, parts, stream=True)
    add_upstream(f"responses, {name}", parts, "/v1/responses", stream=True)


@attack("upstream: 50 endless replies at once")
async def send_many_chats(service: HostileService) -> bytes:
    """Replies in memory together are bounded."""
    service.upstream.parts = endless(AS_JSON + b"\r\n", b" " * 65_536)
    request = service.request(CHAT_PATH, json.dumps(CHAT).encode())
    return b"".join(await asyncio.gather(*(service.send(request) for _ in range(50))))


# The check ----------------------------------------------------------------------------------------


@dataclass
class AttackResult:
    """What an attack did."""

    name: str
    statuses: str = ""
    """How often each status was replied."""
    seconds: float = 0.0
    good_ms: float = 0.0
    """How long the good sample took afterwards."""
    memory_mib: float = 0.0
    faults: list[str] = field(default_factory=list)
    """What the service must not do, and did."""


async def settle(service: HostileService, most: int) -> bool:
    """Wait until no more than `most` descriptors are open; false if that takes too long."""
    deadline = time.monotonic() + SETTLE_S
    while service.descriptors() > most:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True


async def carry_out(one: Attack, service: HostileService, descriptors: int) -> AttackResult:
    """Send an attack, and check what is left of the service."""
    result = AttackResult(one.name)
    printed_before = service.log.stat().st_size
    began = time.perf_counter()
    try:
        replies = await one.send(service)
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        replies = b""
        result.faults.append(f"no reply: {type(error).__name__}")
    result.seconds = time.perf_counter() - began
    statuses = Counter(int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3})", replies))
    result.statuses = ", ".join(f"{n} x {code}" for code, n in sorted(statuses.items())) or "closed"
    result.faults += [f"status {code}" for code in one.forbidden if statuses[code]]
    if statuses[0]:
        result.faults.append("a connection stayed open")
    right, seconds = await service.is_good()
    result.good_ms = seconds * 1000
    if not right:
        result.faults.append("the good sample was not scored")
    if service.process.poll() is not None:
        raise SystemExit(f"{one.name}: the service has ended: {service.log.read_text()}")
    if not await settle(service, descriptors + 2):
        result.faults.append(f"{service.descriptors()} descriptors, {descriptors} at first")
    printed = service.log.read_bytes()[printed_before:].decode(errors="replace")
    if (
        "Traceback" in printed
        or "an error in the service" in printed
        or "request failed" in printed
    ):
        result.faults.append(f"printed: {printed.strip()[:300]}")
    if MARK in printed or TOKEN in printed:
        result.faults.append("printed a part of the request")
    result.memory_mib = service.memory_mib()
    return result


async def run(only: str, rounds: int, folder: Path) -> list[str]:
    """Carry out the attacks; print a table of the first round, and return what failed."""
    upstream = HostileUpstream()
    chosen = [one for one in ATTACKS if only in one.name]
    failures: list[str] = []
    rows: list[dict[str, Any]] = []
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(upstream.running())
        services = [
            await stack.enter_async_context(serving(folder, upstream, token))
            for token in ("", TOKEN)
        ]
        for service in services:
            await service.is_good()
        descriptors = [service.descriptors() for service in services]
        print("| attack | replies | s | good sample, ms | MiB | faults |")
        print("| --- | --- | --- | --- | --- | --- |")
        memory: list[float] = []
        for round_ in range(rounds):
            for one in chosen:
                index = int(one.guarded)
                result = await carry_out(one, services[index], descriptors[index])
                failures += [f"{one.name}: {fault}" for fault in result.faults]
                # Later rounds show whether memory grows.
                if round_ and not result.faults:
                    continue
                figures = (
                    f"{result.seconds:.1f}",
                    f"{result.good_ms:.0f}",
                    f"{result.memory_mib:.0f}",
                )
                cells = (one.name, result.statuses, *figures, "; ".join(result.faults))
                print(
                    "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |", flush=True
                )
                rows.append(
                    {"attack": one.name, "replies": result.statuses, "faults": result.faults}
                )
                rows[-1]["good_ms"] = round(result.good_ms)
            memory.append(services[0].memory_mib())
        if memory[-1] - memory[0] > GROWTH_MIB:
            failures.append(f"memory grew from {memory[0]:.0f} to {memory[-1]:.0f} MiB")
    figures_of_all = {
        "attacks": len(chosen),
        "faults": failures,
        "slowest_good_ms": max(row["good_ms"] for row in rows),
        "memory_mib_after_each_round": [round(value) for value in memory],
        "each": rows,
    }
    mib = ", ".join(f"{value:.0f}" for value in memory)
    print(f"\n{len(chosen)} attacks, {rounds} times; MiB after each round: {mib}")
    if not only:
        data = "made-up requests to 127.0.0.1; two cores with other work"
        write_result("hostile", "python -m lab.benchmarks.hostile", data, figures_of_all)
    return failures


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failures = asyncio.run(run(options.only, options.rounds, Path(folder)))
    for failure in failures:
        print(f"FAILED {failure}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
