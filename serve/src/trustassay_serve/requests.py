"""What the service replies: JSON, and errors of one form."""

import asyncio
import hashlib
import hmac
import json
import math
import time
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.sample import Problem, SampleError
from trustassay.text.limits import SHORT_PASSAGES, TextWork
from trustassay.workflows.listening import is_loopback
from trustassay.workflows.scorer import ScorerClosedError
from trustassay_serve.service import BusyError, ClosingError, ServiceSettings

KINDS = {
    400: "invalid_request",
    401: "not_authorized",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    415: "wrong_type",
    421: "wrong_host",
    422: "invalid_sample",
    429: "busy",
    500: "failed",
    502: "upstream_failed",
    503: "closing",
    504: "upstream_too_slow",
}
"""The ``type`` of an error by its status."""


class RequestError(HTTPException):
    """A request that is refused; the message is for whoever sent it."""


def encoded(content: Any) -> bytes:
    """Return JSON on one line; half of a surrogate pair, which no text can hold, as ``?``."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encoded(content), status, headers, "application/json")


def fault(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    problems: Iterable[Any] | None = None,
) -> Response:
    """Return the response of an error: ``{"error": {"type", "message", "problems"}}``."""
    told: dict[str, Any] = {"type": KINDS.get(status, "failed"), "message": message}
    if problems is not None:
        told["problems"] = list(problems)
    return reply({"error": told}, status, headers)


def closing(headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return headers after which the connection is closed, since not all of it was read."""
    return {**(headers or {}), "connection": "close"}


def problems_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Return the faults of a record as JSON values."""
    return [{"field": one.field, "message": one.message} for one in problems]


async def answered(_request: Request, error: Exception) -> Response:
    """Return the response to an error of :data:`ANSWERED`, which a route may raise."""
    if isinstance(error, HTTPException):
        return fault(error.status_code, error.detail, error.headers)
    if isinstance(error, SampleError):
        return fault(422, "the sample cannot be scored", problems=problems_json(error.problems))
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    status = 429 if isinstance(error, BusyError) else 503
    wait = error.retry_after_s if isinstance(error, BusyError | ClosingError) else 5
    return fault(status, str(error), {"retry-after": str(wait)})


ANSWERED = (
    *(HTTPException, SampleError, ClientDisconnect),
    *(BusyError, ClosingError, ScorerClosedError),
)
JSON = "application/json"
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
DEEPEST = 64
"""Objects and lists inside one another; the deepest layout that `score` reads has about ten."""


async def read_records(request: Request, most: int) -> tuple[Sequence[Any], bool]:
    """Read a body: an object is one record, a list or JSON Lines are many, ``most`` or fewer.

    Returns what it holds, and whether these are many, as a list with a single record is.

    Raises:
        RequestError: it is not that, is of another type, is too large (413) or comes too slowly
            (408).
    """
    kind = _kind(request, (JSON, *JSON_LINES))
    body = await request.body()
    if kind == JSON:
        content = await parsed(body, "the body")
        records = content if isinstance(content, list) else [content]
        _bound(len(records), most)
        return records, isinstance(content, list)
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    _bound(len(lines), most)
    return [parse_json(line, f"line {n}") for n, line in lines], True


async def read_json(request: Request) -> Any:
    """Read a body of JSON alone."""
    _kind(request, (JSON,))
    return await parsed(await request.body(), "the body")


def _bound(records: int, most: int) -> None:
    if not records:
        raise RequestError(400, "the body holds no sample")
    if records > most:
        raise RequestError(413, f"send {most:,} samples or fewer at once")


def _kind(request: Request, known: Sequence[str]) -> str:
    """Return the type of a body; one that a page of another site may send unasked is refused."""
    given = request.headers.get("content-type", "")
    kind, *options = (part.strip().lower() for part in given.split(";"))
    if kind not in known:
        raise RequestError(415, f"expected the header Content-Type: {' or '.join(known)}")
    charset = next((one.partition("=")[2] for one in options if one.startswith("charset=")), "")
    if charset.strip('"') not in ("", "utf-8", "utf8"):
        raise RequestError(415, "expected the body in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "expected the body without Content-Encoding")
    return kind


async def parsed(text: bytes, where: str) -> Any:
    """Return what :func:`parse_json` does; a long text is read in a thread."""
    return await TextWork(long=len(text) > SHORT_PASSAGES)(parse_json, text, where)


def parse_json(text: bytes, where: str) -> Any:
    """Return what JSON in UTF-8 holds.

    Raises:
        RequestError: it is not that, or not as deep and finite as can be written again.
    """
    try:
        result = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
        if _is_deep(result):
            raise RecursionError
    except UnicodeDecodeError as error:
        raise RequestError(400, f"{where}: byte {error.start + 1} is not UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise RequestError(400, f"{where}: is not JSON ({place}: {error.msg})") from None
    except RecursionError:
        message = f"more than {DEEPEST} objects and lists are inside one another"
        raise RequestError(400, f"{where}: {message}") from None
    except ValueError:
        message = "a number is not finite, or has too many digits"
        raise RequestError(400, f"{where}: {message}") from None
    return result


def _is_deep(content: Any) -> bool:
    level = [content]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    result = float(text)
    return result if math.isfinite(result) else _refuse(text)


def _refuse(_text: str) -> NoReturn:
    raise ValueError


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
            message = "the Host header must name this machine (127.0.0.1 or localhost)"
            refused = fault(421, message, closing())
        elif self._tokens and given is None and scope["path"] not in OPEN:
            message = "expected the header Authorization: Bearer TOKEN with a valid token"
            refused = fault(401, message, closing({"www-authenticate": "Bearer"}))
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
    reply from the route that reads: :class:`~trustassay_serve.requests.RequestError`.
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
                message = f"the request did not arrive within {slow_s:g} seconds"
                raise RequestError(408, message, closing()) from None

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
    result = [token.strip()] if scheme.lower() == "bearer" else []
    return result + (keys if len(keys) == 1 else [])


def _digest(token: str) -> str:
    """Return what stands for a token: of one length, and not the token itself."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _names_this_machine(hosts: list[str]) -> bool:
    if len(hosts) != 1:
        return False
    host = hosts[0]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


async def unless_gone(request: Request, work: Coroutine[Any, Any, Response]) -> Response:
    """Return the response that ``work`` makes; if the client goes away, it is cancelled."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else Response(status_code=400)  # nobody reads it
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
