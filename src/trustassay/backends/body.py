"""The body of an HTTP response, read bit by bit and never beyond a limit, packed or not."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

__all__ = ["ACCEPTED", "AT_ONCE", "BodyError", "OversizedError", "in_bytes", "read_body"]

ACCEPTED = "gzip, deflate"
"""Value of ``Accept-Encoding``: what :func:`read_body` unpacks."""
PLAIN = "identity"
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
LARGE = 1_000_000
AT_ONCE = 2
"""Replies beyond so many bytes that an endpoint's client reads at once."""
PIECE = 1 << 18
"""Bytes that are unpacked at a time: a few packed ones may stand for very many."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


class BodyError(ValueError):
    """A body cannot be unpacked."""


class OversizedError(ValueError):
    """A body is larger than allowed."""


def in_bytes(text: str) -> int:
    """Read a size: ``16MB``, ``500kB``, ``1GiB``, ``4096``.

    Raises:
        ValueError: it is none.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    unit = 1024 if found[3] else 1000
    return int(float(found[1]) * unit ** _POWERS[found[2].lower()])


async def read_body(
    response: aiohttp.ClientResponse, most: int, room: asyncio.Semaphore, *, cut: bool = False
) -> bytes:
    """Return the body of a response whose session does not unpack by itself.

    ``room`` says how many may read on at once beyond :data:`LARGE` bytes, so that many large
    replies together take no more memory than a few. With ``cut`` a body that is too large is
    returned without what is beyond ``most`` bytes.

    Raises:
        OversizedError: it has more than ``most`` bytes after unpacking; it is not read on.
        BodyError: it is packed in a way that was not asked for, or damaged.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower() or PLAIN
    if encoding == PLAIN and response.content_length is not None:
        if response.content_length <= min(most, LARGE):
            return await response.read()
        if response.content_length > most and not cut:
            response.close()
            raise OversizedError
    parts: list[bytes] = []
    size = 0
    async with AsyncExitStack() as stack:
        async for part in _pieces(response, encoding):
            if size <= LARGE < size + len(part):
                await stack.enter_async_context(room)
            size += len(part)
            if size > most:
                response.close()
                if not cut:
                    parts.clear()  # the error holds on to this frame
                    raise OversizedError
                parts.append(part[: most - size])
                break
            parts.append(part)
        return b"".join(parts)


async def _pieces(response: aiohttp.ClientResponse, encoding: str) -> AsyncIterator[bytes]:
    """Yield the body in pieces, unpacked."""
    if encoding == PLAIN:
        while part := await response.content.readany():
            yield part
        return
    if encoding not in _WINDOW_BITS:
        raise BodyError(f"encoded as {encoding[:40]!r}, which was not requested")
    unpacker = zlib.decompressobj(_WINDOW_BITS[encoding])
    first = True
    while part := await response.content.readany():
        if first and encoding == "deflate" and part[0] & 0x0F != 8:  # without zlib's header
            unpacker = zlib.decompressobj(-15)
        first = False
        try:
            while part:
                yield unpacker.decompress(part, PIECE)
                part = unpacker.unconsumed_tail
        except zlib.error as error:
            raise BodyError(f"incomplete {encoding} data ({error})") from None
    if not unpacker.eof and not first:
        raise BodyError(f"incomplete {encoding} data (it ends too early)")
