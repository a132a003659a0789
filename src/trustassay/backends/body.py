"""The body of an HTTP response, read bit by bit and never beyond a limit, packed or not."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

__all__ = ["ACCEPTED", "BodyError", "OversizedError", "in_bytes", "read_body"]

ACCEPTED = "gzip, deflate"
"""Value of ``Accept-Encoding``: what :func:`read_body` unpacks."""
PLAIN = "identity"
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
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


async def read_body(response: aiohttp.ClientResponse, most: int, *, cut: bool = False) -> bytes:
    """Return the body of a response whose session does not unpack by itself.

    With ``cut`` one that is too large is returned without what is beyond ``most`` bytes.

    Raises:
        OversizedError: it has more than ``most`` bytes after unpacking; it is not read on.
        BodyError: it is packed in a way that was not asked for, or damaged.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower() or PLAIN
    if encoding == PLAIN and response.content_length is not None:
        if response.content_length <= most:
            return await response.read()
        if not cut:
            response.close()
            raise OversizedError
    parts: list[bytes] = []
    size = 0
    async for part in _pieces(response, encoding):
        size += len(part)
        if size > most:
            response.close()
            if not cut:
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
        raise BodyError(f"packed as {encoding[:40]!r}, which was not asked for")
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
            raise BodyError(f"not whole {encoding} ({error})") from None
    if not unpacker.eof and not first:
        raise BodyError(f"not whole {encoding} (it ends too early)")
