"""A reply is read up to a limit, packed or not, and memory stays flat."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.backends.test_http import Handler, asked, failing, saying
from trustassay.backends.http import EndpointAddress, HttpEndpoint, parse_size
from trustassay.errors import CallError, UnknownNameError

MB = 1_000_000
PIECE = b"x" * 64_000
GOOD = json.dumps({"text": "a" * 300_000}).encode()


def sending(
    pieces: Callable[[], AsyncIterator[bytes]], status: int = 200, **headers: str
) -> Handler:
    """Return a handler that sends a body bit by bit; underscores in headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=named)
        await response.prepare(request)
        try:
            async for piece in pieces():
                await response.write(piece)
        except ConnectionError:
            pass  # broken off by the client, as it should
        return response

    return handler


async def plain() -> AsyncIterator[bytes]:
    """100 MB."""
    for _ in range(1600):
        yield PIECE


async def bomb() -> AsyncIterator[bytes]:
    """100 MB in 100 KB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(100):
        yield packer.compress(b"x" * MB)
    yield packer.flush()


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("pieces", "headers"),
    [
        (plain, {}),
        (plain, {"Content_Length": str(1600 * len(PIECE))}),
        (bomb, {"Content_Encoding": "gzip"}),
    ],
    ids=["chunked", "told", "gzip"],
)
@pytest.mark.slow
def test_a_reply_that_is_too_large_is_broken_off(
    pieces: Callable[[], AsyncIterator[bytes]], headers: dict[str, str]
) -> None:
    found: list[CallError] = []
    peak = peak_of(lambda: found.append(failing(sending(pieces, 200, **headers))))
    assert found[0].kind == "oversized"
    assert str(found[0]).endswith(
        "the reply has more than 16,000,000 bytes (allow more with ?max_reply=)"
    )
    assert peak < 40 * MB


def test_many_large_replies_at_once_take_little_more_than_one() -> None:
    async def work() -> list[BaseException]:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", sending(plain))
        async with TestServer(app) as server:
            base = str(server.make_url(""))
            http = HttpEndpoint(EndpointAddress.parse("test", f"m@{base}", base="", key=""), "x")
            try:
                posts = (http.post("/", {"n": n}) for n in range(8))
                replies = await asyncio.gather(*posts, return_exceptions=True)
                return [reply for reply in replies if isinstance(reply, CallError)]
            finally:
                await http.close()

    found: list[BaseException] = []
    peak = peak_of(lambda: found.extend(asyncio.run(work())))
    assert len(found) == 8
    assert peak < 60 * MB


def test_an_error_of_any_size_is_told_by_its_status() -> None:
    found: list[CallError] = []
    peak = peak_of(lambda: found.append(failing(sending(plain, status=503))))
    assert found[0].kind == "server"
    assert peak < 10 * MB


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(GOOD)),
        ("deflate", zlib.compress(GOOD)),
        ("deflate", zlib.compress(GOOD, wbits=-15)),
        ("identity", GOOD),
        ("GZIP", gzip.compress(GOOD)),
    ],
)
def test_packed_replies_are_unpacked(encoding: str, body: bytes) -> None:
    async def whole() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    assert asked(sending(whole, Content_Encoding=encoding))["text"] == "a" * 300_000


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("gzip", gzip.compress(GOOD)[:-20], "end too early"),
        ("gzip", b"no gzip", "incomplete gzip data"),
        ("br", b"brotli", "encoded as 'br'"),
    ],
)
def test_replies_that_cannot_be_unpacked(encoding: str, body: bytes, words: str) -> None:
    async def whole() -> AsyncIterator[bytes]:
        yield body

    error = failing(sending(whole, Content_Encoding=encoding))
    assert error.kind == "malformed"
    assert words in str(error)


@pytest.mark.parametrize("told", [True, False])
def test_the_limit_is_an_option_of_the_uri(told: bool) -> None:
    text = json.dumps("x" * 998)

    async def whole() -> AsyncIterator[bytes]:
        yield text.encode()

    handler = saying(text) if told else sending(whole)
    assert asked(handler, options="?max_reply=1kB") == "x" * 998
    assert failing(handler, options="?max_reply=999").kind == "oversized"


@pytest.mark.parametrize(
    ("text", "size"),
    [("16MB", 16 * MB), ("500kB", 500_000), ("1GiB", 2**30), ("4096", 4096), ("1.5 m", 1_500_000)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1TB", "0", "nan"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UnknownNameError, match="option max_reply of test"):
        EndpointAddress.parse("test", f"m?max_reply={text}", base="http://x", key="")
