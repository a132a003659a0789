"""An address with a JSON API: sessions, keys, proxies, kinds of errors, and bodies of any size.

Bodies are read in pieces and never beyond a limit, whether compressed or not.
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

from trustassay.core.capabilities import EndpointLimits, on_sending
from trustassay.core.sample import clean
from trustassay.core.tracebacks import MIN_SECRET_CHARS, hide_key
from trustassay.errors import (
    BackendError,
    CallError,
    CallFault,
    UnknownNameError,
    UsageError,
    did_you_mean,
)

if TYPE_CHECKING:
    import aiohttp

ACCEPTED = "gzip, deflate"
"""Value of ``Accept-Encoding``: what :func:`read_body` can decompress."""
PLAIN = "identity"
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
LARGE_BYTES = 1_000_000
"""Bytes beyond which a reply is large."""
LARGE_BODIES_AT_ONCE = 2
"""Large replies that an endpoint's client reads at the same time."""
PIECE_BYTES = 1 << 18
"""Bytes that are decompressed at a time, since a few compressed ones may stand for very many."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


class BodyError(ValueError):
    """A body cannot be decompressed."""


class OversizedError(ValueError):
    """A body is larger than allowed."""


def parse_size(text: str) -> int:
    """Read a size: ``16MB``, ``500kB``, ``1GiB``, ``4096``.

    Raises:
        ValueError: it has another form.
    """
    result = _SIZE.fullmatch(text.strip())
    if result is None:
        raise ValueError(text)
    unit = 1024 if result[3] else 1000
    return int(float(result[1]) * unit ** _POWERS[result[2].lower()])


async def read_body(
    response: aiohttp.ClientResponse, max_bytes: int, room: asyncio.Semaphore, *, cut: bool = False
) -> bytes:
    """Return the body of a response whose session does not decompress by itself.

    Args:
        response: the response, of which only the headers have been read.
        max_bytes: maximum size in bytes, after decompression.
        room: limits how many large replies are read at the same time, so that many of them take no
            more memory than a few.
        cut: return the first ``max_bytes`` bytes of a body that is too large, instead of raising.

    Raises:
        OversizedError: the body is too large; reading stops there.
        BodyError: it has an encoding that was not requested, or is damaged.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower() or PLAIN
    if encoding == PLAIN and response.content_length is not None:
        # The usual case: small and uncompressed.
        if response.content_length <= min(max_bytes, LARGE_BYTES):
            return await response.read()
        if response.content_length > max_bytes and not cut:
            response.close()
            raise OversizedError
    parts: list[bytes] = []
    size = 0
    async with AsyncExitStack() as stack:
        async for part in _pieces(response, encoding):
            # Now it is large: wait until there is room. The exit stack frees the place at the end.
            if size <= LARGE_BYTES < size + len(part):
                await stack.enter_async_context(room)
            size += len(part)
            if size > max_bytes:
                response.close()
                if not cut:
                    parts.clear()  # the error holds on to this frame
                    raise OversizedError
                parts.append(part[: max_bytes - size])
                break
            parts.append(part)
        return b"".join(parts)


async def _pieces(response: aiohttp.ClientResponse, encoding: str) -> AsyncIterator[bytes]:
    """Yield the body in pieces, decompressed."""
    if encoding == PLAIN:
        while part := await response.content.readany():
            yield part
        return
    if encoding not in _WINDOW_BITS:
        raise BodyError(f"encoded as {encoding[:40]!r}, expected gzip, deflate or plain")
    unpacker = zlib.decompressobj(_WINDOW_BITS[encoding])
    first = True
    while part := await response.content.readany():
        if first and encoding == "deflate" and part[0] & 0x0F != 8:  # without zlib's header
            unpacker = zlib.decompressobj(-15)
        first = False
        try:
            while part:
                # A caller that has enough stops here, before more is decompressed.
                yield unpacker.decompress(part, PIECE_BYTES)
                part = unpacker.unconsumed_tail
        except zlib.error as error:
            raise BodyError(f"incomplete {encoding} data ({error})") from None
    # Without the end of its stream, the body was cut.
    if not unpacker.eof and not first:
        raise BodyError(f"incomplete {encoding} data (they end too early)")


_encode_json = json.JSONEncoder(ensure_ascii=False).encode

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
MAX_SHOWN_CHARACTERS = 300
"""Characters of an endpoint's own message that an error message repeats."""
ERROR_BYTES = 1_000_000
"""Bytes of the body of an error that are read."""

_CLOSED_MESSAGES = re.compile(
    "insufficient_quota|invalid_api_key|API_KEY_INVALID|credit balance is too low", re.IGNORECASE
)
"""What endpoints say, with various statuses, if they will not answer any request."""
_HOST = re.compile(r"[\w.:%-]+")
_SCHEME_AND_HOST = re.compile(r"[a-z][a-z\d+.-]*://(?:\[[\da-f:.]+\]|[\w.-]*)", re.IGNORECASE)
_HOST_AT_END = re.compile(r"@(localhost|[\w.-]+:\d+|[\w.-]+\.\w+/|\w+://)")

_LIMITS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "concurrency": ("concurrency", int),
    "rpm": ("requests_per_minute", float),
    "tpm": ("tokens_per_minute", float),
    "timeout": ("timeout_s", float),
    "deadline": ("deadline_s", float),
    "patience": ("patience_s", float),
    "tries": ("tries", int),
    "max_reply": ("reply_bytes", parse_size),
}


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The parts of a URI such as ``openai:MODEL@BASE_URL?rpm=500``."""

    scheme: str
    """Scheme of the URI."""
    model: str
    """Name of the model."""
    base: str
    """URL without a slash at its end."""
    limits: EndpointLimits
    """Limits of the endpoint, from options such as ``rpm``."""
    key: str
    """Name of the environment variable with the key; empty if there is none."""
    query: Mapping[str, str]
    """Parameters that are sent in every URL (``api-version``)."""
    body: Mapping[str, Any]
    """Fields that are added to the body of every request (``body.reasoning_effort=low``)."""
    public: bool = False
    """Whether this is the service's own address, which answers nothing without a key."""

    @classmethod
    def parse(
        cls,
        scheme: str,
        remainder: str,
        *,
        base: str,
        key: str,
        public: str = "",
        base_name: str = "",
    ) -> EndpointAddress:
        """Read the part after ``SCHEME:``.

        Args:
            scheme: the scheme.
            remainder: the part after the colon.
            base: address if the URI names no other.
            key: environment variable of the key if the URI names no other.
            public: the service's own address.
            base_name: the environment variable with ``base``, for messages.

        Raises:
            BackendError: no model, or an address that cannot be used.
            UnknownNameError: no such option.
        """
        remainder, _, options = remainder.partition("?")
        model, *more = re.split("@(?=https?://)", remainder, maxsplit=1)
        # MODEL@http://HOST: a model's name may itself contain an @, so split before http.
        named_base = "".join(more)
        if not model:
            raise BackendError(f"{scheme}: needs a model, as in {scheme}:MODEL[@BASE_URL]")
        # openai:MODEL@localhost:8000 would otherwise send the prompts to the public service.
        if not named_base and _HOST_AT_END.search(model):
            raise BackendError(f"{scheme}:MODEL@BASE_URL needs http:// or https:// after the @")
        base = check_base(named_base or base, scheme if named_base else base_name or scheme)
        limits: dict[str, Any] = {}
        query, body = {}, {}
        for name, value in parse_qsl(options, keep_blank_values=True):
            if name in _LIMITS:
                field, kind = _LIMITS[name]
                limits[field] = _parse_option(scheme, name, value, kind)
            elif name == "key":
                key = value
            elif name == "api-version":
                query[name] = value
            elif name.startswith("body.") and name != "body.":
                body[name.removeprefix("body.")] = _parse_body_value(value)
            else:
                option_names = [*_LIMITS, "key", "api-version", "body.NAME"]
                raise UnknownNameError(did_you_mean(f"option of {scheme}", name, option_names))
        try:
            set_limits = EndpointLimits(**limits)
            return cls(scheme, model, base, set_limits, key, query, body, base == public)
        except ValueError as error:
            # EndpointLimits names its field in the message; the user knows the option.
            names = {field: name for name, (field, _) in _LIMITS.items()}
            field, _, remainder = str(error).partition(":")
            raise UnknownNameError(f"option {names[field]} of {scheme}:{remainder}") from None

    @property
    def name(self) -> str:
        """Model, address, and all options that affect the replies."""
        options = [f"{k}={v}" for k, v in self.query.items()]
        options += [f"body.{k}={json.dumps(v)}" for k, v in self.body.items()]
        return f"{self.scheme}:{self.model}@{self.base}" + ("?" + "&".join(options)) * bool(options)


def check_base(base: str, name: str) -> str:
    """Return the address of an API without the slash at its end.

    Paths are added to it, so it has no query. Takes and raises what :func:`check_address` does.
    """
    address = check_address(base, name)
    if "?" in address:
        short = shorten_address(address)
        raise BackendError(f"{name}: expected an address without ? and #, got {short}")
    return address.rstrip("/")


def check_address(address: str, name: str) -> str:
    """Return an ``http://`` or ``https://`` address unchanged, after checking all parts of it.

    Args:
        address: the address.
        name: the option, scheme or environment variable that has it, for messages.

    Raises:
        BackendError: it has another form, a fragment or a password. The message has no more of it
            than scheme and host.
    """
    # As text first: urlsplit drops line breaks, and leaves a malformed password in the host.
    if "@" in re.split("[/?#]", address.partition("://")[2], maxsplit=1)[0]:
        raise BackendError(
            f"{name}: the address contains a password; remove it and set the key in an "
            "environment variable"
        )
    expected = ""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        if not address.isprintable() or " " in address:
            expected = "without spaces and control characters"
        elif parts.scheme not in ("http", "https"):
            expected = "that begins with http:// or https://"
        # IDNA: no label is empty or too long.
        elif not (_HOST.fullmatch(host) and host.encode("idna")):
            expected = "with a host name"
        elif parts.port == 0:
            expected = "with a port from 1 to 65535"
        elif "#" in address:
            expected = "without #"
    except ValueError:
        expected = "of the form https://HOST or http://HOST:PORT"
    if expected:
        short = shorten_address(address)
        raise BackendError(f"{name}: expected an address {expected}, got {short}")
    return address


def read_key(variable: str) -> str:
    """Return a key from an environment variable; empty if it is not set.

    Raises:
        UsageError: it cannot be sent in a header.
    """
    key = os.environ.get(variable, "").strip()
    # before anything can fail, so that no traceback shows the key
    hide_key(key)
    # A line break in a key would be a header of its own.
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{variable} is not a valid API key; expected printable ASCII")
    return key


def shorten_address(address: str) -> str:
    """Return scheme and host of an address for a message; what follows may be a secret."""
    parts = _SCHEME_AND_HOST.match(address)
    return f"{parts[0]}..." if parts else "a text without ://"


SERVICES = {
    "openai": ("https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "gemini": ("https://generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "ollama": ("http://127.0.0.1:11434/v1", ()),
    "llamafile": ("http://127.0.0.1:8080/v1", ()),
    "systemone": ("https://api.typesafe.ai", ("TYPESAFE_API_KEY",)),
    "decisions": ("https://api.openai.com", ("OPENAI_API_KEY",)),
}
"""Address of each service, and the variables that may hold its key; a local one has none."""


def service_address(scheme: str, remainder: str) -> EndpointAddress:
    """Return the address of a service, with the first of its key variables that is set.

    It is the service's own address, unless the URI or the environment names another. Raises as
    :meth:`EndpointAddress.parse`.
    """
    base, keys = SERVICES[scheme]
    if not keys:
        return EndpointAddress.parse(scheme, remainder, base=base, key="")
    variable = find_base_variable(scheme)
    service_base = os.environ.get(variable) or base
    key = next((name for name in keys if os.environ.get(name)), keys[0])
    return EndpointAddress.parse(
        scheme, remainder, base=service_base, key=key, public=base, base_name=variable
    )


def find_base_variable(scheme: str) -> str:
    """Return the variable that may name another address of a service: ``OPENAI_BASE_URL``."""
    _, keys = SERVICES[scheme]
    return keys[0].removesuffix("API_KEY") + "BASE_URL" if keys else ""


def _parse_option(scheme: str, name: str, value: str, kind: Callable[[str], Any]) -> Any:
    """Return the value of an option."""
    try:
        return kind(value)
    except ValueError:
        raise UnknownNameError(f"option {name} of {scheme} cannot be {value!r}") from None


def _parse_body_value(text: str) -> Any:
    """Return a text as JSON if it is JSON, else as it is."""
    with suppress(ValueError):
        return json.loads(text)
    return text


class RefusalError(CallError):
    """A request that the endpoint will never answer; ``body`` is that of its reply."""

    def __init__(self, message: str, body: str) -> None:
        super().__init__(message, "refused")
        self.body = body


class HttpEndpoint:
    """Posts JSON and returns the JSON reply; a session is opened when it is needed.

    The key is read from the environment for every session and removed from everything that the
    endpoint sends back, so that it cannot get into a file or a message. Redirects are not followed,
    as they would send the key elsewhere. Characters that UTF-8 cannot encode are sent as U+FFFD. A
    reply larger than the address's ``reply_bytes`` is not read to its end.
    """

    def __init__(self, address: EndpointAddress, key_header: str, key_prefix: str = "") -> None:
        self.address = address
        self._key_header, self._key_prefix = key_header, key_prefix
        self._headers: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Semaphore(LARGE_BODIES_AT_ONCE)
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
        """Send ``body`` to the address and ``path``, and return the reply's JSON."""
        text = _encode_json({**body, **self.address.body})
        return await self._request_json("POST", path, clean(text).encode())

    async def post_form(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send the fields of a form; ``with_headers`` has to set ``Content_Type`` for it."""
        return await self._request_json("POST", path, urlencode(fields, errors="replace").encode())

    async def get(self, path: str) -> Any:
        """Fetch ``path``; raises as :meth:`post`."""
        return await self._request_json("GET", path, None)

    async def close(self) -> None:
        """Close the session; the next request opens another."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    async def _request_json(self, method: str, path: str, data: bytes | None) -> Any:
        """Send a request, and return the reply's JSON."""
        status, headers, text = await self._send(method, path, data)
        if not 200 <= status < 300:
            raise self._error_of_status(status, text, headers)
        try:
            result = json.loads(text)
        except (ValueError, RecursionError):
            raise self._error(
                f"the reply is not JSON: {describe_error_body(text)}", "malformed"
            ) from None
        # An error in a response with the status 200.
        if isinstance(result, dict) and result.get("error"):  # as OpenRouter tells of its providers
            code = result["error"].get("code") if isinstance(result["error"], dict) else None
            raise self._error_of_status(code if isinstance(code, int) else 502, text, headers)
        return result

    async def _send(
        self, method: str, path: str, data: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        """Send a request; return status, headers and text of the response, without the key."""
        import aiohttp

        session = self._open_session()
        max_bytes = self.address.limits.reply_bytes
        # Requests are counted one by one, including those sent again without a refused parameter.
        if notify := on_sending.get():
            notify()
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
                limit = max_bytes if good else ERROR_BYTES
                body = await read_body(response, limit, self._room, cut=not good)
                return status, response.headers, self._redact(body.decode("utf-8", "replace"))
        # From here on, each kind of error says whether and how the call is tried again.
        except OversizedError:
            message = f"the reply has more than {max_bytes:,} bytes (allow more with ?max_reply=)"
            raise self._error(message, "oversized") from None
        except BodyError as error:
            raise self._error(f"the reply is {error}", "malformed") from None
        except aiohttp.ClientPayloadError:
            raise self._error("the connection was lost during the reply", "connection") from None
        except (aiohttp.ClientError, OSError) as error:
            cause = getattr(error, "os_error", error)
            message = getattr(cause, "strerror", None) or str(cause) or type(error).__name__
            # A certificate does not become valid by waiting.
            wrong = isinstance(error, aiohttp.ClientConnectorCertificateError)
            message = f"no connection ({message})"
            raise self._error(message, "closed" if wrong else "connection") from None
        except ValueError as error:  # of the address, or of a proxy
            raise self._error(f"the request cannot be sent ({error})", "closed") from None

    def _open_session(self) -> aiohttp.ClientSession:
        """Return the session of the running event loop; open it first if there is none."""
        import aiohttp

        loop = asyncio.get_running_loop()
        # A session belongs to an event loop, and callers outside one have a new loop for each call.
        if self._session is None or self._loop is not loop:
            if missing := self.missing_key:
                raise CallError(missing, "closed")
            try:
                self._key = read_key(self.address.key)
            except UsageError as error:
                raise self._error(str(error), "closed") from None
            self._proxy = environment_proxy(self.address.base)
            headers = {
                "Content-Type": "application/json",
                "Accept-Encoding": ACCEPTED,
                **self._headers,
            }
            if self._key:
                headers[self._key_header] = self._key_prefix + self._key
            self._loop, self._room = loop, asyncio.Semaphore(LARGE_BODIES_AT_ONCE)
            self._session = aiohttp.ClientSession(
                # The engine limits the number of connections and the time of a call.
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=30),
                headers=headers,
                auto_decompress=False,
                # No cookies, so that a reply never depends on earlier calls.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _redact(self, text: str) -> str:
        """Return a text without the key; very short keys would match by chance."""
        return text.replace(self._key, "[key]") if len(self._key) >= MIN_SECRET_CHARS else text

    def _error(
        self, message: str, kind: CallFault, retry_after_s: float | None = None
    ) -> CallError:
        """Return an error with the address's name, without the key."""
        return CallError(self._redact(f"{self.address.name}: {message}"), kind, retry_after_s)

    def _describe_key(self) -> str:
        """Say which variable has the key that was sent, or would have it."""
        if self._key:
            return f"it rejects the key in {self.address.key}"
        return f"no key: {self.address.key or 'its environment variable'} is not set"

    def _error_of_status(self, status: int, text: str, headers: Mapping[str, str]) -> CallError:
        """Return the error for a status other than success."""
        message = f"{status}: {describe_error_body(text)}".rstrip(": ")
        flagged = status == 403 and "moderation" in text.lower()  # OpenRouter, of one prompt
        # The key is the likely cause, so name its variable.
        if status in (401, 403) and not flagged:
            message += f" ({self._describe_key()})"
        if 300 <= status < 400:
            target = self._redact(headers.get("Location", "elsewhere"))
            # Following it would send the key elsewhere, so the user has to correct the URI.
            return self._error(
                f"{status}: redirects to {target[:MAX_SHOWN_CHARACTERS]}; not followed", "closed"
            )
        # Key, credit, permission or model: every other request would fail as well.
        # So would they if the server does not implement this for its model (501).
        if (status in (401, 402, 403, 404, 501) and not flagged) or _CLOSED_MESSAGES.search(text):
            return self._error(message, "closed")
        # Temporary failures; retry.py waits and tries again.
        if status == 429:
            return self._error(message, "limited", _retry_after(headers, text))
        if status == 408:
            return self._error(message, "timeout")
        if status >= 500 or status in (409, 425):
            return self._error(message, "server", _retry_after(headers, text))
        return RefusalError(self._redact(f"{self.address.name}: {message}"), text)


class HttpBackend:
    """A backend that calls an address."""

    _http: HttpEndpoint

    @property
    def missing_key(self) -> str | None:
        """The error message if a key is needed and not set, else ``None``."""
        return self._http.missing_key

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def describe_error_body(text: str) -> str:
    """Return the message in an error's body, cut to a readable length."""
    with suppress(ValueError, RecursionError):
        result = json.loads(text)
        # {"error": {"message": "..."}}, [{"error": ...}], {"detail": [{"msg": "..."}]}
        while isinstance(result, dict | list) and result:
            if isinstance(result, list):
                result = result[0]
            else:
                keys = (name for name in ("error", "message", "detail", "msg") if name in result)
                result = result.get(next(keys, None))
        text = result if isinstance(result, str) else text
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "..."


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Return the seconds an endpoint asks to wait; ``None`` if it does not say.

    It says so by ``Retry-After-Ms``, by ``Retry-After`` in seconds or as a date, or by Google's
    ``retryDelay`` in the body.
    """
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
    """Return the proxy that the environment names for an address; ``None`` for this machine."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)
