"""Several coroutines at once, none of which is left running when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

__all__ = ["all_of"]

T = TypeVar("T")


async def all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results in their order; wait for all, then raise the first failure by place."""
    found: list[T] = []
    for one in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(one, BaseException):
            raise one
        found.append(one)
    return found
