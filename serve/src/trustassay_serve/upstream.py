"""The one address that the proxy passes requests on to."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from trustassay.backends.http import checked_base, environment_proxy
from trustassay.errors import UsageError
from trustassay.tracebacks import hide
from trustassay_serve.requests import RequestError, encoded, parse_json

if TYPE_CHECKING:
    import aiohttp
    from starlette.requests import Request

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


class UpstreamError(RequestError):
    """The upstream gave no reply that can be passed on: 502, or 504."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(status, message)


class Upstream:
    """Sends requests to the address ``base``, which may have a path, and follows no redirect.

    ``key`` names an environment variable with the key for it; without one the caller's own header
    ``Authorization`` is passed on. ``tokens`` are the service's own, which are never passed on.
    ``timeout_s`` is for a whole answer.
    """

    def __init__(self, base: str, key: str, tokens: Sequence[str], timeout_s: float) -> None:
        """Raise BackendError or ValueError if the address or the key cannot be used."""
        self.base = checked_base(base)
        if "?" in base or "#" in base:
            raise UsageError("--upstream: expected an address without ? and #")
        self._tokens, self._timeout_s = frozenset(tokens), timeout_s
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

    async def send(self, request: Request, path: str, body: bytes | None) -> aiohttp.ClientResponse:
        """Return the response to a request with another body when its head is here; the caller
        reads and closes it.

        Raises:
            UpstreamError: there is none, or it is a redirect.
        """
        import aiohttp
        from yarl import URL

        assert self._session, "send() within running()"
        query = request.scope["query_string"].decode("ascii", "replace")
        url = self.base + path + (f"?{query}" if query else "")
        timeout = aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=CONNECT_S)
        try:
            response = await self._session.request(
                request.method,
                URL(url, encoded=True),
                data=body,
                headers=self._headers(request, with_body=body is not None),
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
            message = f"the upstream redirects ({response.status}), which is not followed"
            raise UpstreamError(f"{message}; give --upstream its final address")
        return response

    def redacted(self, body: bytes) -> bytes:
        """Return a body without the key of the environment."""
        return body.replace(self._key.encode(), b"[key]") if len(self._key) >= 8 else body

    def _headers(self, request: Request, *, with_body: bool) -> list[tuple[str, str]]:
        # one that is not ASCII cannot be sent as it came, and is left out
        given = [one for one in request.headers.items() if one[1].isascii()]
        dropped = NOT_SENT | {"authorization"} if self._key else NOT_SENT
        sent = [
            (name, value)
            for name, value in _passed_on(given, dropped)
            if value.rpartition(" ")[2].strip() not in self._tokens  # with or without a scheme
        ]
        sent.append(("accept-encoding", "identity"))
        if with_body:
            sent.append(("content-type", "application/json"))
        if self._key:
            sent.append(("authorization", f"Bearer {self._key}"))
        return sent


def passed_back(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that its reader may have."""
    return dict(_passed_on(headers.items(), NOT_RETURNED))


def _passed_on(
    headers: Iterable[tuple[str, str]], dropped: frozenset[str]
) -> list[tuple[str, str]]:
    """Return headers in lower case without ``dropped``, those of the connection, and ours."""
    result = [(name.lower(), value) for name, value in headers]
    named = [value for name, value in result if name == "connection"]
    dropped |= {part.strip().lower() for value in named for part in value.split(",")}
    return [
        (name, value)
        for name, value in result
        if name not in dropped and not name.startswith(OURS) and value.isascii()
    ]


def _words(error: Exception) -> str:
    cause = getattr(error, "os_error", error)
    return getattr(cause, "strerror", None) or type(error).__name__


FIELD = "trustassay"
"""The field of a completion, or of a stream's last chunk, that holds the verdicts."""
DONE = b"[DONE]"
LARGEST_EVENT = 2 * 1024**2
MOST_CHOICES = 128
_END = re.compile(rb"\r?\n\r?\n")
_LINES = re.compile(rb"\r?\n")
_KNOWN = (b"data:", b":", b"event:", b"id:", b"retry:")
"""What a line begins with; some clients would read others as data, after a byte order mark or a
carriage return alone.
"""


class Event(NamedTuple):
    """An event as it came, with the blank line after it; ``chunk`` if it holds one.

    ``data`` is ``None`` if it has none, as a comment; all of it if it cannot be read.
    """

    raw: bytes
    data: bytes | None
    chunk: dict[str, Any] | None


async def events(pieces: AsyncIterable[bytes], most: int) -> AsyncIterator[Event]:
    """Yield the events of a stream up to ``[DONE]``; a last one may lack its blank line.

    Raises:
        UpstreamError: the stream has more than ``most`` bytes, or an event is too large.
    """
    left, total, large = bytearray(), 0, "the upstream's stream is too large"
    async for piece in pieces:
        total += len(piece)
        looked = max(len(left) - 3, 0)
        left += piece
        if total > most:
            raise UpstreamError(f"{large}: it has more than {most:,} bytes")
        while result := _END.search(left, looked):
            raw = bytes(left[: result.end()])
            del left[: result.end()]
            looked = 0
            yield (event := _event(raw))
            if event.data == DONE:
                return
        if len(left) > LARGEST_EVENT:
            raise UpstreamError(f"{large}: an event has more than {LARGEST_EVENT:,} bytes")
    if left.strip():
        yield _event(bytes(left) + b"\n\n")


def _event(raw: bytes) -> Event:
    lines = [line for line in _LINES.split(raw) if line]
    if any(b"\r" in line or not line.startswith(_KNOWN) for line in lines):
        return Event(raw, raw, None)
    result = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    if not result:
        return Event(raw, None, None)
    data = b"\n".join(result)
    try:
        chunk = parse_json(data, "an event")
    except RequestError:
        chunk = None
    if not isinstance(chunk, dict):
        return Event(raw, data, None)
    if FIELD in chunk:  # ours alone
        del chunk[FIELD]
        raw = event_of(chunk)
    return Event(raw, data, chunk)


def event_of(chunk: Mapping[str, Any]) -> bytes:
    """Return a chunk as an event."""
    return b"data: " + encoded(chunk) + b"\n\n"


class StreamedAnswers:
    """The answers of a stream, by the index of their choice, put together as its chunks come."""

    def __init__(self) -> None:
        self.last: dict[str, Any] = {}
        """The last chunk without what is its own: what a further one begins with."""
        self.error: str | None = None
        """Why the answers cannot be judged."""
        self._texts: dict[int, list[str]] = {}
        self._refusals: dict[int, list[str]] = {}
        self._ended = False

    def add(self, event: Event) -> None:
        """Take what an event holds."""
        chunk = event.chunk
        if event.data == DONE:
            self._ended = True
        elif chunk is None:
            if event.data is not None:
                self.error = self.error or "the stream holds data that is not a JSON object"
        elif chunk.get("error"):
            self.error = "the upstream ended the answer with an error"
        else:
            own = {"choices", "usage"}
            self.last = {name: value for name, value in chunk.items() if name not in own}
            for choice in _choices(chunk):
                self._add(choice)

    def texts(self) -> dict[int, str | None]:
        """Return the answers; ``None`` for one without text, as for a call of tools."""
        result = {}
        for index in sorted(self._texts):
            words = "".join(self._texts[index]) or "".join(self._refusals[index])
            result[index] = words or None
        return result

    def finish(self) -> None:
        """Take note that the stream is over."""
        if not self._ended:
            self.error = self.error or "the stream ended before the answer was complete"

    def _add(self, choice: Mapping[str, Any]) -> None:
        index = choice.get("index", 0)
        if not isinstance(index, int) or not 0 <= index < MOST_CHOICES:
            self.error = self.error or "a choice has an index that cannot be used"
            return
        texts = self._texts.setdefault(index, [])
        refusals = self._refusals.setdefault(index, [])
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for name, words in (("content", texts), ("refusal", refusals)):
                if isinstance(delta.get(name), str):
                    words.append(delta[name])
        self._ended = self._ended or bool(choice.get("finish_reason"))


def has_text(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk holds a part of an answer, or anything else a client waits for."""
    deltas = [choice.get("delta") for choice in _choices(chunk)]
    result = [delta for delta in deltas if isinstance(delta, dict)]
    return any(value for delta in result for name, value in delta.items() if name != "role")


def without_choices(event: Event, indices: Collection[int]) -> Event | None:
    """Return an event without some choices; ``None`` if nothing else is in it."""
    choices = [] if event.chunk is None else _choices(event.chunk)
    left = [one for one in choices if one.get("index", 0) not in indices]
    if event.chunk is None or len(left) == len(choices):
        return event
    chunk = {**event.chunk, "choices": left}
    return Event(event_of(chunk), event.data, chunk) if left or chunk.get("usage") else None


def empty_chunk(last: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
    """Return a chunk that adds nothing to the answer, with one choice, as most clients expect."""
    choice = {"index": index, "delta": {}, "finish_reason": None}
    return {"object": "chat.completion.chunk", **last, "choices": [choice]}


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    result = chunk.get("choices")
    return [one for one in result if isinstance(one, dict)] if isinstance(result, list) else []
