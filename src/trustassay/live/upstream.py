"""The address to which the proxy passes requests on: headers, requests, and streams of events."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from trustassay.backends.http import check_base, environment_proxy, read_key
from trustassay.errors import UsageError
from trustassay.live.requests import RequestError, encode_json, parse_json

if TYPE_CHECKING:
    import aiohttp
    from starlette.requests import Request

HOP_BY_HOP = frozenset(
    """connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade""".split()
)
"""Headers that concern one connection (RFC 9110, section 7.6.1), as do those that ``Connection``
lists."""
NOT_SENT = HOP_BY_HOP | frozenset(
    "host content-length content-type content-encoding accept-encoding expect cookie".split()
)
"""Headers of a request that are not passed on: the body is written anew and requested unpacked, and
the upstream never set a cookie."""
NOT_RETURNED = HOP_BY_HOP | frozenset(
    """content-length content-encoding date server set-cookie location alt-svc
    strict-transport-security""".split()
)
"""Headers of a reply that are not passed back: they describe the upstream's connection or site."""
OWN_HEADER_PREFIX = "x-trustassay-"
"""The beginning of the proxy's own headers; an upstream cannot set them."""
CONNECT_S = 30.0
"""Seconds for opening a connection."""


class UpstreamError(RequestError):
    """The upstream gave no reply that can be passed on (HTTP 502, or 504)."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(status, message)


class Upstream:
    """Sends requests to an address; redirects are not followed.

    Args:
        base: the address, which may have a path.
        key: the environment variable with the key for it. If empty, the caller's own header
            ``Authorization`` is passed on.
        tokens: the tokens of the service itself, which are never passed on.
        timeout_s: seconds for a whole answer.
    """

    def __init__(self, base: str, key: str, tokens: Sequence[str], timeout_s: float) -> None:
        """Check address and key; BackendError or ValueError if one of them cannot be used."""
        self.base = check_base(base, "--upstream")
        self._tokens, self._timeout_s = frozenset(tokens), timeout_s
        self._key = read_key(key) if key else ""
        if key and not self._key:
            raise UsageError(f"--upstream-key: the environment variable {key} is not set")
        self._proxy = environment_proxy(self.base)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the connections open within the block."""
        import aiohttp

        async with aiohttp.ClientSession(
            # The service bounds its own connections; a second limit here would only queue requests.
            connector=aiohttp.TCPConnector(limit=0),
            # Bodies are passed on as they are.
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent",),
        ) as self._session:
            yield
        self._session = None

    async def send(self, request: Request, path: str, body: bytes | None) -> aiohttp.ClientResponse:
        """Send a request with another body; return the response as soon as its head has arrived.

        The caller reads and closes the response.

        Raises:
            UpstreamError: there is no response, it is a redirect, or it has no valid status.
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
                # The path and the query are passed on as they came, not decoded and encoded again.
                URL(url, encoded=True),
                data=body,
                headers=self._build_headers(request, with_body=body is not None),
                allow_redirects=False,
                proxy=self._proxy,
                timeout=timeout,
            )
        except TimeoutError:
            raise UpstreamError("the upstream did not reply in time", 504) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamError(
                f"the upstream cannot be reached ({_describe_error(error)})"
            ) from None
        # Following a redirect would send the key to another address.
        if 300 <= response.status < 400:
            response.close()
            message = f"the upstream replied with a redirect ({response.status}), which is not"
            raise UpstreamError(f"{message} followed; set --upstream to the final address")
        # Such a status cannot be passed on: the reply would break off.
        if not 200 <= response.status < 600:
            response.close()
            raise UpstreamError(f"the upstream's reply has an invalid status ({response.status})")
        return response

    def redact(self, body: bytes) -> bytes:
        """Return a body with the key of the environment replaced, as in a quoting error message."""
        return body.replace(self._key.encode(), b"[key]") if len(self._key) >= 8 else body

    def _build_headers(self, request: Request, *, with_body: bool) -> list[tuple[str, str]]:
        # A header that is not ASCII cannot be sent as it came, so it is left out.
        ascii_headers = [header for header in request.headers.items() if header[1].isascii()]
        dropped = NOT_SENT | {"authorization"} if self._key else NOT_SENT
        sent = [
            (name, value)
            for name, value in _filter_headers(ascii_headers, dropped)
            # A token of this service in any header, such as x-api-key, must not reach the upstream.
            if value.rpartition(" ")[2].strip() not in self._tokens  # with or without a scheme
        ]
        sent.append(("accept-encoding", "identity"))
        if with_body:
            sent.append(("content-type", "application/json"))
        if self._key:
            sent.append(("authorization", f"Bearer {self._key}"))
        return sent


def returnable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that are passed back to the client."""
    return dict(_filter_headers(headers.items(), NOT_RETURNED))


def _filter_headers(
    headers: Iterable[tuple[str, str]], dropped: frozenset[str]
) -> list[tuple[str, str]]:
    """Return headers in lower case, without ``dropped``, those of the connection, and our own."""
    result = [(name.lower(), value) for name, value in headers]
    connection_values = [value for name, value in result if name == "connection"]
    dropped |= {part.strip().lower() for value in connection_values for part in value.split(",")}
    return [
        (name, value)
        for name, value in result
        if name not in dropped and not name.startswith(OWN_HEADER_PREFIX) and value.isascii()
    ]


def _describe_error(error: Exception) -> str:
    # The message of aiohttp names the upstream's address, which is not for the client.
    cause = getattr(error, "os_error", error)
    return getattr(cause, "strerror", None) or type(error).__name__


VERDICT_FIELD = "trustassay"
"""The field of a completion, or of a stream's last chunk, that holds the verdicts."""
END_MARKER = b"[DONE]"
"""The data of the event that ends a stream."""
MAX_EVENT_BYTES = 2 * 1024**2
"""Bytes of the largest event."""
MAX_CHOICES = 128
"""The most choices of one reply, as many as OpenAI's API allows."""
_END = re.compile(rb"\r?\n\r?\n")
_LINES = re.compile(rb"\r?\n")
_LINE_STARTS = (b"data:", b":", b"event:", b"id:", b"retry:")
"""The beginnings of valid lines. Some clients would read other lines as data, after a byte order
mark or a single carriage return, and so show text that was not judged.
"""


class StreamEvent(NamedTuple):
    """A server-sent event."""

    raw: bytes
    """The event as it came, with the blank line after it."""
    data: bytes | None
    """Its data; ``None`` if it has none, as a comment. The whole event if it cannot be read."""
    chunk: dict[str, Any] | None
    """The chunk of a completion that it holds, if any."""


def parse_upstream_json(text: bytes, where: str) -> Any:
    """Parse JSON of the upstream; raises as :func:`~trustassay.live.requests.parse_json`.

    Numbers that are not finite, such as the ``NaN`` of a log-probability, become null: JSON has no
    form for them, and the answer beside them can be judged.
    """
    try:
        return parse_json(text, where)
    except RequestError as error:
        try:
            content = json.loads(
                text.decode("utf-8-sig"), parse_constant=lambda _: None, parse_float=_parse_finite
            )
            strict_text = json.dumps(content).encode()
        except (ValueError, RecursionError):
            raise error from None
        return parse_json(strict_text, where)


def _parse_finite(text: str) -> float | None:
    # 1e999 is a number of JSON, and infinity in Python.
    number = float(text)
    return number if math.isfinite(number) else None


async def read_events(pieces: AsyncIterable[bytes], most: int) -> AsyncIterator[StreamEvent]:
    """Yield the events of a stream up to ``[DONE]``; the last event may lack its blank line.

    Args:
        pieces: the bytes of the stream, cut anywhere.
        most: the most bytes of the stream.

    Raises:
        UpstreamError: the stream has more than ``most`` bytes, or an event is too large.
    """
    buffer, total, large = bytearray(), 0, "the upstream's stream is too large"
    async for piece in pieces:
        total += len(piece)
        # An end of up to four bytes may have begun in the last three of the piece before.
        search_from = max(len(buffer) - 3, 0)
        buffer += piece
        if total > most:
            raise UpstreamError(f"{large}: it has more than {most:,} bytes")
        while result := _END.search(buffer, search_from):
            raw = bytes(buffer[: result.end()])
            del buffer[: result.end()]
            search_from = 0
            yield (event := _parse_event(raw))
            if event.data == END_MARKER:
                return
        if len(buffer) > MAX_EVENT_BYTES:
            raise UpstreamError(f"{large}: an event has more than {MAX_EVENT_BYTES:,} bytes")
    if buffer.strip():
        yield _parse_event(bytes(buffer) + b"\n\n")


def _parse_event(raw: bytes) -> StreamEvent:
    lines = [line for line in _LINES.split(raw) if line]
    if any(b"\r" in line or not line.startswith(_LINE_STARTS) for line in lines):
        return StreamEvent(raw, raw, None)
    result = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    if not result:
        return StreamEvent(raw, None, None)
    data = b"\n".join(result)
    try:
        chunk = parse_upstream_json(data, "an event")
    except RequestError:
        chunk = None
    if not isinstance(chunk, dict):
        return StreamEvent(raw, data, None)
    # An upstream must not be able to write verdicts.
    if VERDICT_FIELD in chunk:  # ours alone
        del chunk[VERDICT_FIELD]
        raw = format_event(chunk)
    return StreamEvent(raw, data, chunk)


def format_event(chunk: Mapping[str, Any]) -> bytes:
    """Return a chunk as an event."""
    return b"data: " + encode_json(chunk) + b"\n\n"


class StreamedAnswers:
    """Collects the answers of a stream from its chunks, by the index of their choice."""

    def __init__(self) -> None:
        self.last: dict[str, Any] = {}
        """The fields of the last chunk that a further chunk repeats (id, model, ...)."""
        self.end_marker = b""
        """The event that ended the stream; empty if it has none."""
        self.error: str | None = None
        """Why the answers cannot be judged; ``None`` if they can."""
        self._texts: dict[int, list[str]] = {}
        self._refusals: dict[int, list[str]] = {}
        self._ended = False

    def add(self, event: StreamEvent) -> None:
        """Add the texts of an event."""
        chunk = event.chunk
        if event.data == END_MARKER:
            self._ended, self.end_marker = True, event.raw
        elif chunk is None:
            # A comment (data is None) may be skipped; data that cannot be read may be part of the
            # answer.
            if event.data is not None:
                self.error = self.error or "the stream has data that is not a JSON object"
        elif chunk.get("error"):
            self.error = "the upstream ended the answer with an error"
        else:
            # What differs from chunk to chunk; the rest (id, model) stays for a chunk that is made
            # up.
            changing = {"choices", "usage"}
            self.last = {name: value for name, value in chunk.items() if name not in changing}
            for choice in _read_choices(chunk):
                self._add_choice(choice)

    def texts(self) -> dict[int, str | None]:
        """Return the answers by index; ``None`` for one without text, as for a call of tools."""
        result = {}
        for index in sorted(self._texts):
            text = "".join(self._texts[index]) or "".join(self._refusals[index])
            result[index] = text or None
        return result

    def finish(self) -> None:
        """Note the end of the stream; without an end marker or a finish reason it is incomplete."""
        if not self._ended:
            self.error = self.error or "the stream ended before the answer was complete"

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        index = choice.get("index", 0)
        # An answer that cannot be assigned would pass without a verdict, so none is judged.
        if not isinstance(index, int) or not 0 <= index < MAX_CHOICES:
            self.error = self.error or "a choice has an invalid index"
            return
        texts = self._texts.setdefault(index, [])
        refusals = self._refusals.setdefault(index, [])
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for name, pieces in (("content", texts), ("refusal", refusals)):
                if isinstance(delta.get(name), str):
                    pieces.append(delta[name])
        self._ended = self._ended or bool(choice.get("finish_reason"))


def has_text(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk holds a part of an answer, or anything else that a client waits for."""
    deltas = [choice.get("delta") for choice in _read_choices(chunk)]
    result = [delta for delta in deltas if isinstance(delta, dict)]
    return any(value for delta in result for name, value in delta.items() if name != "role")


def without_choices(event: StreamEvent, indices: Collection[int]) -> StreamEvent | None:
    """Return an event without some choices; ``None`` if nothing else is left in it."""
    choices = [] if event.chunk is None else _read_choices(event.chunk)
    remaining = [choice for choice in choices if choice.get("index", 0) not in indices]
    if event.chunk is None or len(remaining) == len(choices):
        return event
    chunk = {**event.chunk, "choices": remaining}
    return (
        StreamEvent(format_event(chunk), event.data, chunk)
        if remaining or chunk.get("usage")
        else None
    )


def empty_chunk(last: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
    """Return a chunk that adds nothing to the answer, with one choice, as most clients expect."""
    choice = {"index": index, "delta": {}, "finish_reason": None}
    return {"object": "chat.completion.chunk", **last, "choices": [choice]}


def _read_choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    result = chunk.get("choices")
    return (
        [choice for choice in result if isinstance(choice, dict)]
        if isinstance(result, list)
        else []
    )
