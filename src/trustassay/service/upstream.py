"""The one address that the proxy passes requests on to."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trustassay.backends.http import checked_base, environment_proxy
from trustassay.errors import UsageError
from trustassay.tracebacks import hide

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Upstream", "UpstreamError", "passed_back"]

HOP_BY_HOP = frozenset(
    """connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade""".split()
)
"""Headers of one connection (RFC 9110, section 7.6.1), and those that ``Connection`` names."""
NOT_SENT = HOP_BY_HOP | frozenset(
    "host content-length content-type content-encoding accept-encoding expect cookie".split()
)
"""The body is written anew, and is asked for unpacked; no cookie was set by an upstream."""
NOT_RETURNED = HOP_BY_HOP | frozenset(
    """content-length content-encoding date server set-cookie location alt-svc
    strict-transport-security""".split()
)
OURS = "x-trustassay-"
CONNECT_S = 30.0


class UpstreamError(Exception):
    """The upstream gave no reply that can be passed on; ``status`` is 502 or 504."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class Upstream:
    """Sends requests to the address ``base``, which may have a path, and follows no redirect.

    ``key`` names an environment variable with the key for it; without one the caller's own header
    ``Authorization`` is passed on. ``tokens`` are the service's own, which are never passed on.
    """

    def __init__(self, base: str, key: str = "", tokens: Sequence[str] = ()) -> None:
        """Raise BackendError or ValueError if the address or the key cannot be used."""
        self.base = checked_base(base)
        if "?" in base or "#" in base:
            raise UsageError("--upstream: expected an address without ? and #")
        self._tokens = frozenset(tokens)
        self._key = os.environ.get(key, "").strip() if key else ""
        hide(self._key)
        if key and not self._key:
            raise UsageError(f"--upstream-key: the environment variable {key} is not set")
        if not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(f"--upstream-key: {key} is not a valid API key")
        self._proxy = environment_proxy(self.base)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the connections open within the block."""
        import aiohttp

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
        ) as self._session:
            yield
        self._session = None

    async def send(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes | None,
        timeout_s: float,
    ) -> aiohttp.ClientResponse:
        """Return the response when its head is here; the caller reads and closes it.

        Raises:
            UpstreamError: there is none, or it is a redirect.
        """
        import aiohttp
        from yarl import URL

        assert self._session, "send() within running()"
        url = self.base + path + ("?" + query.decode("ascii", "replace") if query else "")
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        try:
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                data=body,
                headers=self._headers(headers, body is not None),
                allow_redirects=False,
                proxy=self._proxy,
                timeout=timeout,
            )
        except TimeoutError:
            raise UpstreamError("the upstream did not reply in time", 504) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamError(f"the upstream cannot be reached ({_words(error)})") from None
        if 300 <= response.status < 400:
            response.close()
            words = f"the upstream redirects ({response.status}), which is not followed"
            raise UpstreamError(f"{words}; give --upstream its final address")
        return response

    def redacted(self, body: bytes) -> bytes:
        """Return a body without the key of the environment."""
        return body.replace(self._key.encode(), b"[key]") if len(self._key) >= 8 else body

    def _headers(
        self, given: Iterable[tuple[bytes, bytes]], with_body: bool
    ) -> list[tuple[str, str]]:
        found = _decoded(given)
        dropped = (
            NOT_SENT | _named_by_connection(found) | ({"authorization"} if self._key else set())
        )
        sent = [
            (name, value)
            for name, value in found
            if name not in dropped and not name.startswith(OURS) and not self._is_token(value)
        ]
        sent.append(("accept-encoding", "identity"))
        if with_body:
            sent.append(("content-type", "application/json"))
        if self._key:
            sent.append(("authorization", f"Bearer {self._key}"))
        return sent

    def _is_token(self, value: str) -> bool:
        """Whether a header's value is a token of the service, with or without a scheme."""
        return value.rpartition(" ")[2].strip() in self._tokens


def passed_back(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that its reader may have."""
    found = [(name.lower(), value) for name, value in headers.items()]
    dropped = NOT_RETURNED | _named_by_connection(found)
    return {
        name: value
        for name, value in found
        if name not in dropped and not name.startswith(OURS) and value.isascii()
    }


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Return headers as text; one that is not ASCII cannot be sent as it came, and is left out."""
    found = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in found if value.isascii()]


def _named_by_connection(headers: Iterable[tuple[str, str]]) -> set[str]:
    values = [value for name, value in headers if name == "connection"]
    return {part.strip().lower() for value in values for part in value.split(",")}


def _words(error: Exception) -> str:
    cause = getattr(error, "os_error", error)
    return getattr(cause, "strerror", None) or type(error).__name__
