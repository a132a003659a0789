"""Several coroutines at once, none of which is left running when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

__all__ = ["all_of"]

T = TypeVar("T")
TURN = 16
"""Coroutines that begin before other work of the event loop has its turn."""


async def all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results in their order; wait for all, then raise the first failure by place."""
    begun: list[asyncio.Future[T]] = []
    try:
        for number, one in enumerate(work, 1):
            begun.append(asyncio.ensure_future(one))
            if number % TURN == 0:
                await asyncio.sleep(0)
        ended = await asyncio.gather(*begun, return_exceptions=True)
    except BaseException:
        for one in begun:
            one.cancel()
        raise
    found: list[T] = []
    for result in ended:
        if isinstance(result, BaseException):
            raise result
        found.append(result)
    return found
