"""An address with a JSON API: sessions, keys, proxies, kinds of errors, and bodies of any size.

A body is read bit by bit and never beyond a limit, packed or not.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import urllib.request
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from trustassay.capabilities import EndpointLimits, on_sending
from trustassay.errors import BackendError, CallError, CallFault, UnknownNameError, did_you_mean
from trustassay.sample import clean
from trustassay.tracebacks import SECRET, hide

if TYPE_CHECKING:
    import aiohttp

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
    result = _SIZE.fullmatch(text.strip())
    if result is None:
        raise ValueError(text)
    unit = 1024 if result[3] else 1000
    return int(float(result[1]) * unit ** _POWERS[result[2].lower()])


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


_as_json = json.JSONEncoder(ensure_ascii=False).encode

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
SHOWN = 300
"""Characters of an endpoint's own words that an error message repeats."""
ERROR_BYTES = 1_000_000
"""Of a reply that tells an error, no more is read."""

_CLOSED = re.compile(
    "insufficient_quota|invalid_api_key|API_KEY_INVALID|credit balance is too low", re.IGNORECASE
)
"""What endpoints say, under various statuses, when they will answer nothing at all."""
_HOST_AT_END = re.compile(r"@(localhost|[\w.-]+:\d+|[\w.-]+\.\w+/|\w+://)")

_LIMITS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "concurrency": ("concurrency", int),
    "rpm": ("requests_per_minute", float),
    "tpm": ("tokens_per_minute", float),
    "timeout": ("timeout_s", float),
    "deadline": ("deadline_s", float),
    "patience": ("patience_s", float),
    "tries": ("tries", int),
    "max_reply": ("reply_bytes", in_bytes),
}


@dataclass(frozen=True, slots=True)
class Address:
    """What a URI such as ``openai:MODEL@BASE_URL?rpm=500`` says.

    query: what is sent along in every URL (``api-version``); body: additions to every request's
    body (``body.reasoning_effort=low``); key: name of the environment variable with the key;
    public: whether this is the service's own address, where nothing is answered without a key.
    """

    scheme: str
    model: str
    base: str
    limits: EndpointLimits
    key: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    public: bool = False

    @classmethod
    def parse(cls, scheme: str, rest: str, *, base: str, key: str, public: str = "") -> Address:
        """Read the part after ``SCHEME:``.

        ``base`` and ``key`` are used if the URI names no others; ``public`` is the service's own
        address.

        Raises:
            BackendError: no model, or an address that cannot be used.
            UnknownNameError: no such option.
        """
        rest, _, options = rest.partition("?")
        model, *more = re.split("@(?=https?://)", rest, maxsplit=1)
        own = "".join(more)
        if not model:
            raise BackendError(f"{scheme}: needs a model, as in {scheme}:MODEL[@BASE_URL]")
        if not own and _HOST_AT_END.search(model):
            raise BackendError(f"{scheme}:MODEL@BASE_URL needs http:// or https:// after the @")
        base = checked_base(own or base)
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
            elif name.startswith("body.") and name != "body.":
                body[name.removeprefix("body.")] = _value(value)
            else:
                known = [*_LIMITS, "key", "api-version", "body.NAME"]
                raise UnknownNameError(did_you_mean(f"option of {scheme}", name, known))
        try:
            set_limits = EndpointLimits(**limits)
            return cls(scheme, model, base, set_limits, key, query, body, base == public)
        except ValueError as error:
            names = {field: name for name, (field, _) in _LIMITS.items()}
            field, _, rest = str(error).partition(":")
            raise UnknownNameError(f"option {names[field]} of {scheme}:{rest}") from None

    @property
    def name(self) -> str:
        """Model, address, and everything else that affects the replies."""
        others = [f"{k}={v}" for k, v in self.query.items()]
        others += [f"body.{k}={json.dumps(v)}" for k, v in self.body.items()]
        return f"{self.scheme}:{self.model}@{self.base}" + ("?" + "&".join(others)) * bool(others)


def checked_base(base: str) -> str:
    """Return an ``http://`` or ``https://`` address without the slash at its end.

    Raises:
        BackendError: it is none, or contains a password.
    """
    if "@" in base.partition("://")[2].partition("/")[0]:
        raise BackendError(
            "the address contains a password; put the key in an environment variable"
        )
    try:
        parts = urlsplit(base)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        raise BackendError(f"{base!r} is not an address; expected http://... or https://...")
    return base.rstrip("/")


SERVICES = {
    "openai": ("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "gemini": ("https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "ollama": ("http://127.0.0.1:11434/v1", ()),
    "llamafile": ("http://127.0.0.1:8080/v1", ()),
}
"""The addresses of services and the variables of their keys; without any it is on this machine."""


def service_address(scheme: str, rest: str) -> Address:
    """Return the address of a service, its own unless the URI or the environment names another,
    with the first of the variables of keys that is set; raises as :meth:`Address.parse`."""
    base, keys = SERVICES[scheme]
    if not keys:
        return Address.parse(scheme, rest, base=base, key="")
    own = os.environ.get(f"{scheme.upper()}_BASE_URL") or base
    key = next((name for name in keys if os.environ.get(name)), keys[0])
    return Address.parse(scheme, rest, base=own, key=key, public=base)


def _number(scheme: str, name: str, value: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise UnknownNameError(f"option {name} of {scheme} cannot be {value!r}") from None


def _value(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return text


class RefusalError(CallError):
    """A request that the endpoint will never answer; ``said`` is the body of its reply."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message, "refused")
        self.said = said


class HttpEndpoint:
    """Posts JSON and returns the JSON reply; a session is opened when it is needed.

    The key is read from the environment for every session and removed from everything that
    the endpoint sends back, so that it cannot get into a file or a message. Redirects are not
    followed: they would send the key elsewhere. What UTF-8 cannot encode is sent as U+FFFD. A
    reply larger than the address's ``reply_bytes`` is not read to its end.
    """

    def __init__(self, address: Address, key_header: str, key_prefix: str = "") -> None:
        self.address = address
        self._key_header, self._key_prefix = key_header, key_prefix
        self._headers: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._key = ""
        self._proxy: str | None = None

    def with_headers(self, **headers: str) -> HttpEndpoint:
        """Add headers to every request; an underscore stands for a hyphen."""
        self._headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    @property
    def missing_key(self) -> str | None:
        """The error message if a key is needed and not set, else ``None``."""
        address = self.address
        if not (address.public and address.key) or os.environ.get(address.key, "").strip():
            return None
        return (
            f"{address.name}: needs a key; set {address.key}, or name another variable "
            "with ?key=NAME"
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send ``body`` to the address and ``path``, and return what came back."""
        text = _as_json({**body, **self.address.body})
        return await self._answer("POST", path, clean(text).encode())

    async def post_form(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send the fields of a form, for which ``with_headers`` has to say ``Content_Type``."""
        return await self._answer("POST", path, urlencode(fields, errors="replace").encode())

    async def get(self, path: str) -> Any:
        """Fetch what is at ``path``; raises as :meth:`post`."""
        return await self._answer("GET", path, None)

    async def close(self) -> None:
        """Close the session; the next request opens another."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    async def _answer(self, method: str, path: str, data: bytes | None) -> Any:
        status, headers, text = await self._sent(method, path, data)
        if not 200 <= status < 300:
            raise self._fault(status, text, headers)
        try:
            result = json.loads(text)
        except ValueError:
            raise self._error(f"the reply is not JSON: {worded(text)}", "malformed") from None
        if isinstance(result, dict) and result.get("error"):  # as OpenRouter tells of its providers
            code = result["error"].get("code") if isinstance(result["error"], dict) else None
            raise self._fault(code if isinstance(code, int) else 502, text, headers)
        return result

    async def _sent(
        self, method: str, path: str, data: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        """Send a request; return status, headers and text of the response, without the key."""
        import aiohttp

        session = self._opened()
        most = self.address.limits.reply_bytes
        if told := on_sending.get():
            told()
        try:
            async with session.request(
                method,
                self.address.base + path,
                data=data,
                params=dict(self.address.query) or None,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                status = response.status
                good = 200 <= status < 300
                limit = most if good else ERROR_BYTES
                body = await read_body(response, limit, self._room, cut=not good)
                return status, response.headers, self._redacted(body.decode("utf-8", "replace"))
        except OversizedError:
            words = f"the reply has more than {most:,} bytes (max_reply)"
            raise self._error(words, "oversized") from None
        except BodyError as error:
            raise self._error(f"the reply is {error}", "malformed") from None
        except aiohttp.ClientPayloadError:
            raise self._error("the connection broke off during the reply", "connection") from None
        except (aiohttp.ClientError, OSError) as error:
            cause = getattr(error, "os_error", error)
            words = getattr(cause, "strerror", None) or str(cause) or type(error).__name__
            wrong = isinstance(error, aiohttp.ClientConnectorCertificateError)
            words = f"no connection ({words})"
            raise self._error(words, "closed" if wrong else "connection") from None
        except ValueError as error:  # of the address, or of a proxy
            raise self._error(f"the request cannot be sent ({error})", "closed") from None

    def _opened(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            if missing := self.missing_key:
                raise CallError(missing, "closed")
            self._key = os.environ.get(self.address.key, "").strip()
            hide(self._key)
            if not (self._key.isascii() and self._key.isprintable()):
                raise self._error(f"{self.address.key} is not a valid API key", "closed")
            self._proxy = environment_proxy(self.address.base)
            headers = {
                "Content-Type": "application/json",
                "Accept-Encoding": ACCEPTED,
                **self._headers,
            }
            if self._key:
                headers[self._key_header] = self._key_prefix + self._key
            self._loop, self._room = loop, asyncio.Semaphore(AT_ONCE)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=30),
                headers=headers,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _redacted(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) >= SECRET else text

    def _error(self, words: str, kind: CallFault, retry_after_s: float | None = None) -> CallError:
        return CallError(self._redacted(f"{self.address.name}: {words}"), kind, retry_after_s)

    def _fault(self, status: int, text: str, headers: Mapping[str, str]) -> CallError:
        """Return the error for a status other than success."""
        words = f"{status}: {worded(text)}".rstrip(": ")
        if status in (401, 403) and not self._key:
            words += f" (no key: {self.address.key or 'its variable'} is not set)"
        if 300 <= status < 400:
            target = self._redacted(headers.get("Location", "elsewhere"))
            return self._error(f"{status}: redirects to {target[:SHOWN]}; not followed", "closed")
        flagged = status == 403 and "moderation" in text.lower()  # OpenRouter, of one prompt
        if (status in (401, 402, 403, 404) and not flagged) or _CLOSED.search(text):
            return self._error(words, "closed")
        if status == 429:
            return self._error(words, "limited", _retry_after(headers, text))
        if status == 408:
            return self._error(words, "timeout")
        if status >= 500 or status in (409, 425):
            return self._error(words, "server", _retry_after(headers, text))
        return RefusalError(self._redacted(f"{self.address.name}: {words}"), text)


class HttpBackend:
    """What asks an address."""

    _http: HttpEndpoint

    @property
    def missing_key(self) -> str | None:
        """The error message if a key is needed and not set, else ``None``."""
        return self._http.missing_key

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def worded(text: str) -> str:
    """Return what an endpoint says in an error's body, cut to a readable length."""
    with suppress(ValueError):
        result = json.loads(text)
        while isinstance(result, dict | list) and result:
            if isinstance(result, list):
                result = result[0]
            else:
                known = (name for name in ("error", "message", "detail", "msg") if name in result)
                result = result.get(next(known, None))
        text = result if isinstance(result, str) else text
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Return the seconds an endpoint asks to wait: ``Retry-After-Ms``, seconds, a date, or
    Google's ``retryDelay`` in the body."""
    if delay := re.search(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"', text):
        return float(delay[1])
    try:
        if "Retry-After-Ms" in headers:
            return max(0.0, float(headers["Retry-After-Ms"]) / 1000)
        text = headers.get("Retry-After", "")
        try:
            return max(0.0, float(text))
        except ValueError:
            until = parsedate_to_datetime(text)
            return max(0.0, (until - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for an address; this machine needs none."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)
