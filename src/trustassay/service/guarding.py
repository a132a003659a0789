"""Who may ask, how often, how much, and how slowly: ASGI middlewares around all routes.

Nothing here reads or tells what a request says.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections import OrderedDict

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.service.replies import RequestError, closing, fault
from trustassay.service.settings import ServiceSettings
from trustassay.workflows.listening import is_loopback

__all__ = ["Guarded", "Limited", "TokenBuckets"]

OPEN = frozenset({"/health"})
"""Paths that need no token: what watches over the service has none."""
CALLERS = 10_000
BODIES = 64
"""Bodies of the largest size that all requests in progress may hold together."""
DISCARDED = 16 * 1024**2
"""Bytes beyond the limit that are read and dropped, so that a client that first sends everything
reads why it was refused."""


class TokenBuckets:
    """How often each caller may ask: ``per_minute`` at once, refilled evenly over a minute.

    The callers heard of last are known; one that is forgotten begins again.
    """

    def __init__(self, per_minute: int) -> None:
        self._most, self._per_s = float(per_minute), per_minute / 60
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float) -> float:
        """Take one; return 0, or the seconds after which there will be one."""
        left, then = self._left.pop(caller, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_s)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._left[caller] = (left if wait else left - 1, now)
        if len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return wait


class Guarded:
    """Lets requests in that bring a token, or, where none is set, that name this machine as host.

    A page in a browser of this machine could otherwise reach the service by a name of its own that
    leads to 127.0.0.1.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._tokens = [_digest(token) for token in settings.tokens]
        self._buckets = TokenBuckets(settings.per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = self._token(headers)
        client = scope.get("client")
        caller = given or (client[0] if client else "")
        if wait := self._buckets.take(caller, time.monotonic()):
            later = {"retry-after": str(math.ceil(wait))}
            refused = fault(429, "too many requests in a minute", closing(later))
        elif not self._tokens and not _names_this_machine(headers.getlist("host")):
            words = "the Host header must name this machine (127.0.0.1 or localhost)"
            refused = fault(421, words, closing())
        elif self._tokens and given is None and scope["path"] not in OPEN:
            words = "expected the header Authorization: Bearer TOKEN with a valid token"
            refused = fault(401, words, closing({"www-authenticate": "Bearer"}))
        else:
            await self._app(scope, receive, send)
            return
        await refused(scope, receive, send)

    def _token(self, headers: Headers) -> str | None:
        """Return the digest of a request's token if it is valid; the time tells nothing."""
        valid = None
        for given in _given(headers):
            digest = _digest(given)
            same = [hmac.compare_digest(digest, one) for one in self._tokens]
            valid = digest if any(same) else valid
        return valid


class Limited:
    """Bounds the bytes of a body and the time that a client takes to send it.

    A body in chunks is counted as it comes. A sender that is too slow, or sends too much, gets its
    reply from the route that reads: :class:`~trustassay.service.replies.RequestError`.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app, self._settings = app, settings
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a bounded ``receive``."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most, slow_s = self._settings.largest_body, self._settings.slow_s
        deadline = asyncio.get_running_loop().time() + slow_s
        total, own, done = 0, 0, False

        async def piece() -> Message:
            try:
                async with asyncio.timeout_at(deadline):
                    return await receive()
            except TimeoutError:
                words = f"the request did not arrive within {slow_s:g} seconds"
                raise RequestError(408, words, closing()) from None

        async def receiving() -> Message:
            nonlocal total, own, done
            if done:  # what comes now is the end of the connection
                return await receive()
            message = await piece()
            size = len(message.get("body", b""))
            total += size
            done = not message.get("more_body", False)
            if total > most:
                while message.get("more_body", False) and total < most + DISCARDED:
                    message = await piece()
                    total += len(message.get("body", b""))
                words = f"the body has more than {most:,} bytes; send fewer samples at once"
                raise RequestError(413, words, closing())
            if self._held + size > BODIES * most:
                words = "the requests in progress are too large together; send this again"
                raise RequestError(429, words, closing({"retry-after": "1"}))
            self._held, own = self._held + size, own + size
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            self._held -= own


def _given(headers: Headers) -> list[str]:
    """Return what may be a token: of ``Authorization: Bearer``, and of ``x-api-key``, which leaves
    the other to a key for an upstream. A header that comes twice is none.
    """
    bearers, keys = headers.getlist("authorization"), headers.getlist("x-api-key")
    scheme, _, token = bearers[0].partition(" ") if len(bearers) == 1 else ("", "", "")
    found = [token.strip()] if scheme.lower() == "bearer" else []
    return found + (keys if len(keys) == 1 else [])


def _digest(token: str) -> str:
    """Return what stands for a token: of one length, and not the token itself."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _names_this_machine(hosts: list[str]) -> bool:
    if len(hosts) != 1:
        return False
    host = hosts[0]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)
