"""One address that answers JSON to JSON: sessions, keys, proxies, and what kind of error it was."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from trustassay.capabilities import BackendError, CallError, CallFault, EndpointLimits
from trustassay.metric import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Address", "HttpEndpoint", "parameter_refused", "worded"]

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
SHOWN = 300
"""Characters of an endpoint's own words that an error message repeats."""

_LIMITS = {
    "concurrency": ("concurrency", int),
    "rpm": ("requests_per_minute", float),
    "tpm": ("tokens_per_minute", float),
    "timeout": ("timeout_s", float),
    "deadline": ("deadline_s", float),
    "patience": ("patience_s", float),
    "tries": ("tries", int),
}


@dataclass(frozen=True, slots=True)
class Address:
    """What a URI such as ``openai:MODEL@BASE_URL?rpm=500`` says.

    query: what is sent along in every URL (``api-version``); body: additions to every request's
    body (``body.reasoning_effort=low``); key: name of the environment variable with the key.
    """

    scheme: str
    model: str
    base: str
    limits: EndpointLimits
    key: str
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @classmethod
    def parse(cls, scheme: str, rest: str, *, base: str, key: str) -> Address:
        """Read what stands after ``SCHEME:``; ``base`` and ``key`` are the scheme's own.

        Raises:
            BackendError: no model, or an address that cannot be used.
            UnknownNameError: an option that nothing here answers to.
        """
        rest, _, options = rest.partition("?")
        model, own = rest, ""
        for mark in ("@http://", "@https://"):
            if mark in rest:
                model, own = rest.split(mark, 1)
                own = mark[1:] + own
        if not model:
            raise BackendError(f"{scheme}: needs a model, as in {scheme}:MODEL[@BASE_URL]")
        base = _checked_base(own or base)
        limits: dict[str, Any] = {}
        query, body = {}, {}
        for name, value in parse_qsl(options, keep_blank_values=True):
            if name in _LIMITS:
                field, kind = _LIMITS[name]
                limits[field] = _number(scheme, name, value, kind)
            elif name == "key":
                key = value
            elif name == "api-version":
                query[name] = value
            elif name.startswith("body."):
                body[name.removeprefix("body.")] = _value(value)
            else:
                known = [*_LIMITS, "key", "api-version", "body.NAME"]
                raise UnknownNameError(did_you_mean(f"option of {scheme}", name, known))
        try:
            return cls(scheme, model, base, EndpointLimits(**limits), key, query, body)
        except ValueError as error:
            names = {field: name for name, (field, _) in _LIMITS.items()}
            field, _, rest = str(error).partition(":")
            raise UnknownNameError(f"option {names[field]} of {scheme}:{rest}") from None

    @property
    def name(self) -> str:
        """Model, address, and whatever else decides what is answered."""
        others = [f"{k}={v}" for k, v in self.query.items()]
        others += [f"body.{k}={json.dumps(v)}" for k, v in self.body.items()]
        return f"{self.scheme}:{self.model}@{self.base}" + ("?" + "&".join(others)) * bool(others)


def _checked_base(base: str) -> str:
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BackendError(f"{base!r} is no address; expected http://... or https://...")
    if parts.username or parts.password:
        raise BackendError("an address with a password in it; keys belong into the environment")
    return base.rstrip("/")


def _number(scheme: str, name: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise UnknownNameError(f"option {name} of {scheme} cannot be {value!r}") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class HttpEndpoint:
    """Posts JSON and returns the JSON that came back; a session is opened when it is needed.

    The key is read from the environment for every session and is struck out of everything that
    the endpoint sends back, so that it cannot reach a file or a message.
    """

    def __init__(self, address: Address, key_header: str, key_prefix: str = "") -> None:
        self.address = address
        self._key_header, self._key_prefix = key_header, key_prefix
        self._headers: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._key = ""
        self._proxy: str | None = None

    def with_headers(self, **headers: str) -> HttpEndpoint:
        """Send these with every request, too; an underscore stands for a hyphen."""
        self._headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send ``body`` to the address and ``path``, and return what came back.

        Raises:
            CallError: with its kind; the message holds the endpoint's own words.
        """
        return await self._answer("POST", path, json.dumps({**body, **self.address.body}).encode())

    async def get(self, path: str) -> Any:
        """Fetch what stands at ``path``; raises as :meth:`post`."""
        return await self._answer("GET", path, None)

    async def close(self) -> None:
        """Close the session; the next request opens another."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    async def _answer(self, method: str, path: str, data: bytes | None) -> Any:
        import aiohttp

        session = self._opened()
        try:
            async with session.request(
                method,
                self.address.base + path,
                data=data,
                params=dict(self.address.query) or None,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                text = (await response.read()).decode("utf-8", "replace")
                status, headers = response.status, response.headers
        except aiohttp.ClientPayloadError:
            raise self._error("the reply broke off", "connection") from None
        except (aiohttp.ClientError, OSError) as error:
            reason = self._redacted(f"{type(error).__name__}: {error}")
            raise self._error(f"no connection ({reason})", "connection") from None
        text = self._redacted(text)
        if status != 200:
            raise self._refusal(status, text, headers)
        try:
            return json.loads(text)
        except ValueError:
            raise self._error(f"a reply that is no JSON: {worded(text)}", "malformed") from None

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            self._key = os.environ.get(self.address.key, "").strip()
            self._proxy = _proxy(self.address.base)
            headers = {"Content-Type": "application/json", **self._headers}
            if self._key:
                headers[self._key_header] = self._key_prefix + self._key
            self._loop = loop
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=30),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _redacted(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def _error(self, words: str, kind: CallFault, retry_after_s: float | None = None) -> CallError:
        return CallError(f"{self.address.name}: {words}", kind, retry_after_s)

    def _refusal(self, status: int, text: str, headers: Mapping[str, str]) -> CallError:
        words = f"{status}: {worded(text)}"
        if status in (401, 403, 404):
            if not self._key and status != 404:
                words += f" (no key: {self.address.key} is not set)"
            return self._error(words, "closed")
        if status == 402 or (status == 429 and "insufficient_quota" in text):
            return self._error(words, "closed")
        if status == 429:
            return self._error(words, "limited", _retry_after(headers))
        if status == 408:
            return self._error(words, "timeout")
        if status >= 500 or status in (409, 425):
            return self._error(words, "server", _retry_after(headers))
        return self._error(words, "refused")


def worded(text: str) -> str:
    """Return what an endpoint says in an error's body, cut to a readable length."""
    try:
        found = json.loads(text)
        while isinstance(found, dict | list) and found:
            if isinstance(found, list):
                found = found[0]
            else:
                found = found.get("error") or found.get("message") or found.get("detail")
        text = found if isinstance(found, str) else text
    except ValueError:
        pass
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def parameter_refused(error: CallError, sent: Mapping[str, Any]) -> str | None:
    """Return the parameter among ``sent`` that an endpoint refused by name, the longest first."""
    if error.kind != "refused":
        return None
    words = str(error).partition(": ")[2]
    quoted = {word.strip("'\"`.,:;()[]") for word in words.split()}
    found = sorted((name for name in sent if name in quoted), key=len, reverse=True)
    return found[0] if found else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds an endpoint asks to wait: ``Retry-After-Ms``, seconds, or a date."""
    try:
        if "Retry-After-Ms" in headers:
            return max(0.0, float(headers["Retry-After-Ms"]) / 1000)
        text = headers.get("Retry-After", "")
        if not text:
            return None
        try:
            return max(0.0, float(text))
        except ValueError:
            until = parsedate_to_datetime(text)
            return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for an address; this machine needs none."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)
