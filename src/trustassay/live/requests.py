"""Requests and replies of the service: reading bodies, errors of one form, access, and limits."""

import asyncio
import hashlib
import hmac
import itertools
import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.core.fair_queue import CURRENT_FLOW, Flow, in_flow
from trustassay.core.sample import Problem, SampleError
from trustassay.live.scorer import ScorerClosedError
from trustassay.live.service import BusyError, ClosingError, ServiceSettings, choose_work_for
from trustassay.report.serving import is_loopback

ERROR_TYPES = {
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
    """A request that is refused; its message is sent to the client."""


def encode_json(content: Any) -> bytes:
    """Return JSON on one line; half of a surrogate pair, which UTF-8 cannot hold, becomes ``?``."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(encode_json(content), status, headers, "application/json")


def fault(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    problems: Iterable[Any] | None = None,
) -> Response:
    """Return the response of an error: ``{"error": {"type", "message", "problems"}}``."""
    details = {} if problems is None else {"problems": list(problems)}
    kind = ERROR_TYPES.get(status, "failed")
    return reply(build_error(message, kind, **details), status, headers)


def build_error(message: str, kind: str, **details: Any) -> dict[str, Any]:
    """Return the JSON object of an error."""
    return {"error": {"type": kind, "message": message, **details}}


def closing(headers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return headers that close the connection after the reply, since the body was not read."""
    return {**(headers or {}), "connection": "close"}


def problems_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Return the faults of a record as JSON values."""
    return [{"field": problem.field, "message": problem.message} for problem in problems]


async def error_response(_request: Request, error: Exception) -> Response:
    """Return the response to an error of :data:`HANDLED_ERRORS`, which a route may raise."""
    if isinstance(error, HTTPException):
        return fault(error.status_code, error.detail, error.headers)
    if isinstance(error, SampleError):
        return fault(422, "the sample cannot be scored", problems=problems_json(error.problems))
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # nobody reads it
    status = 429 if isinstance(error, BusyError) else 503
    wait = error.retry_after_s if isinstance(error, BusyError | ClosingError) else 5
    return fault(status, str(error), {"retry-after": str(wait)})


HANDLED_ERRORS = (
    *(HTTPException, SampleError, ClientDisconnect),
    *(BusyError, ClosingError, ScorerClosedError),
)
"""The errors that :func:`error_response` turns into replies."""
JSON = "application/json"
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
MAX_DEPTH = 64
"""The deepest nesting of objects and lists; the deepest layout that `score` reads has about ten."""


async def read_records(request: Request, most: int) -> tuple[Sequence[Any], bool]:
    """Read the records of a body: an object is one record, a list or JSON Lines are many.

    Args:
        request: the request.
        most: the most records.

    Returns:
        The records, and whether they came as a list; a list may have a single record.

    Raises:
        RequestError: the body is malformed or of another type, is too large (413), or comes too
            slowly (408).
    """
    kind = _media_type(request, (JSON, *JSON_LINES))
    body = await request.body()
    if kind == JSON:
        content = await parse_json_in_thread(body, "the body")
        records = content if isinstance(content, list) else [content]
        _check_count(len(records), most)
        return records, isinstance(content, list)
    return await choose_work_for(len(body))(_parse_json_lines, body, most), True


def _parse_json_lines(body: bytes, most: int) -> list[Any]:
    """Parse JSON Lines; errors as of :func:`read_records`."""
    # Numbered before empty lines are dropped, so that an error names the line of the body.
    lines = [(n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    _check_count(len(lines), most)
    return [parse_json(line, f"line {n}") for n, line in lines]


async def read_json(request: Request) -> Any:
    """Read a body that is one JSON value; errors as of :func:`read_records`."""
    _media_type(request, (JSON,))
    return await parse_json_in_thread(await request.body(), "the body")


def _check_count(records: int, most: int) -> None:
    if not records:
        raise RequestError(400, "the body has no sample")
    if records > most:
        message = f"the body has {records:,} samples; send {most:,} or fewer at once"
        raise RequestError(413, message)


def _media_type(request: Request, allowed: Sequence[str]) -> str:
    """Return the media type of a body.

    Other types are refused. This also keeps out pages of other sites: a browser sends plain text
    and forms to any address without asking, but not JSON.
    """
    header = request.headers.get("content-type", "")
    kind, *options = (part.strip().lower() for part in header.split(";"))
    if kind not in allowed:
        raise RequestError(415, f"expected the header Content-Type: {' or '.join(allowed)}")
    # as in "application/json; charset=utf-8"
    charset = next(
        (option.partition("=")[2] for option in options if option.startswith("charset=")), ""
    )
    if charset.strip('"') not in ("", "utf-8", "utf8"):
        raise RequestError(415, "expected the body in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestError(415, "expected the body without Content-Encoding")
    return kind


async def parse_json_in_thread(text: bytes, where: str) -> Any:
    """Parse JSON as :func:`parse_json` does, a long text in a thread."""
    return await choose_work_for(len(text))(parse_json, text, where)


def parse_json(text: bytes, where: str) -> Any:
    """Parse JSON in UTF-8.

    Args:
        text: the bytes.
        where: what they are, for the messages.

    Raises:
        RequestError: it is not JSON, is nested too deeply, or has a number that is not finite:
            such values could not be written again.
    """
    try:
        result = json.loads(
            text.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_parse_finite
        )
        # Python's own parser allows a nesting at which other code would overflow the stack.
        if _is_deep(result):
            raise RecursionError
    except UnicodeDecodeError as error:
        raise RequestError(400, f"{where}: byte {error.start + 1} is not UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise RequestError(400, f"{where}: is not JSON ({place}: {error.msg})") from None
    except RecursionError:
        message = f"objects and lists are nested more than {MAX_DEPTH} deep"
        raise RequestError(400, f"{where}: {message}") from None
    # last, since the errors above are kinds of it
    except ValueError:
        message = "a number is not finite, or has too many digits"
        raise RequestError(400, f"{where}: {message}") from None
    return result


def _is_deep(content: Any) -> bool:
    """Whether values are nested more than :data:`MAX_DEPTH` deep; checked level by level."""
    level = [content]
    # Without recursion: the values to check may be nested deeply on purpose.
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for container in level
            if isinstance(container, dict | list)
            for inner in (container.values() if isinstance(container, dict) else container)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _parse_finite(text: str) -> float:
    """Parse a number; ValueError for one like 1e999, which Python reads as infinity."""
    result = float(text)
    return result if math.isfinite(result) else _refuse(text)


def _refuse(_text: str) -> NoReturn:
    raise ValueError


PATHS_WITHOUT_TOKEN = frozenset({"/health"})
"""Paths that need no token: a health check has none."""
MAX_CALLERS = 10_000
"""The most callers whose rates are remembered."""
MAX_BODIES_IN_MEMORY = 64
"""All requests in progress together may hold this many bodies of the largest size."""
MAX_BODIES_OF_CALLER = 16
"""The same for the requests of one caller."""
MAX_DISCARDED_BYTES = 16 * 1024**2
"""Bytes beyond the limit that are read and dropped, so that a client that sends everything before
it reads can read why it was refused."""


class TokenBuckets:
    """Token buckets that limit the rate of each caller.

    A bucket allows ``per_minute`` requests at once and refills evenly over a minute. Only the most
    recent callers are remembered; a forgotten one starts with a full bucket.
    """

    def __init__(self, per_minute: int) -> None:
        self._most, self._per_s = float(per_minute), per_minute / 60
        self._tokens_left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, now: float) -> float:
        """Take a token for a request; return 0, or the seconds until there is one."""
        # Popping and inserting again keeps the callers in order of their last request.
        available, earlier = self._tokens_left.pop(caller, (self._most, now))
        available = min(self._most, available + (now - earlier) * self._per_s)
        wait = 0.0 if available >= 1 else (1 - available) / self._per_s
        self._tokens_left[caller] = (available if wait else available - 1, now)
        if len(self._tokens_left) > MAX_CALLERS:
            self._tokens_left.popitem(last=False)
        return wait


class AccessGuard:
    """Middleware that admits requests with a token and within the rate of their caller.

    What a request causes is in the flow of its caller: the digest of the token; without one the
    header that the settings name, for callers behind a proxy; without that the address.

    Where no token is set, the Host header must name this machine: a web page in a local browser
    could otherwise reach the service through a domain of its own that resolves to 127.0.0.1 (DNS
    rebinding).
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._tokens = [_hash_token(token) for token in settings.tokens]
        self._buckets = TokenBuckets(settings.per_minute)
        self._caller_header = settings.caller_header
        self._request_numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        token_digest = self._find_valid_token(headers)
        caller = token_digest or self._name_caller(headers, scope)
        # Rates come first, so that guessing tokens is limited as well.
        if wait := self._buckets.take(caller, time.monotonic()):
            later = {"retry-after": str(math.ceil(wait))}
            message = "too many requests in a minute; wait for the seconds in Retry-After"
            refused = fault(429, message, closing(later))
        elif not self._tokens and not _names_this_machine(headers.getlist("host")):
            message = "the Host header must name this machine (127.0.0.1 or localhost)"
            refused = fault(421, message, closing())
        elif self._tokens and token_digest is None and scope["path"] not in PATHS_WITHOUT_TOKEN:
            message = "expected the header Authorization: Bearer TOKEN with a valid token"
            refused = fault(401, message, closing({"www-authenticate": "Bearer"}))
        else:
            with in_flow(Flow(caller, next(self._request_numbers))):
                await self._app(scope, receive, send)
            return
        await refused(scope, receive, send)

    def _name_caller(self, headers: Headers, scope: Scope) -> str:
        """Return the name of a caller without a token."""
        named_in_header = headers.getlist(self._caller_header) if self._caller_header else []
        if named_in_header:
            # A digest, since the header may be of any length.
            return _hash_token("\n".join(named_in_header))
        client = scope.get("client")
        return client[0] if client else "unknown"

    def _find_valid_token(self, headers: Headers) -> str | None:
        """Return the digest of the request's token if it is valid, in constant time."""
        valid = None
        for candidate in _candidate_tokens(headers):
            digest = _hash_token(candidate)
            # Every token is compared, also after a match, so that the time does not tell which one
            # it was.
            same = [hmac.compare_digest(digest, valid_digest) for valid_digest in self._tokens]
            valid = digest if any(same) else valid
        return valid


class BodyLimiter:
    """Middleware that limits the size of a body and the time in which it must arrive.

    Bytes are counted as they come. The route that reads the body gets a :class:`RequestError` if
    the client is too slow or sends too much.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app, self._settings = app, settings
        self._bytes_held = 0
        self._bytes_by_caller: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a bounded ``receive``."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most, slow_s = self._settings.largest_body, self._settings.slow_s
        # One deadline for the whole body: a byte now and then does not keep a request alive.
        deadline = asyncio.get_running_loop().time() + slow_s
        total, request_bytes, is_complete = 0, 0, False
        caller = CURRENT_FLOW.get().caller

        async def piece() -> Message:
            try:
                async with asyncio.timeout_at(deadline):
                    return await receive()
            except TimeoutError:
                message = f"the request did not arrive within {slow_s:g} seconds"
                raise RequestError(408, message, closing()) from None

        async def receiving() -> Message:
            nonlocal total, request_bytes, is_complete
            if is_complete:  # what comes now is the end of the connection
                return await receive()
            message = await piece()
            size = len(message.get("body", b""))
            total += size
            is_complete = not message.get("more_body", False)
            if total > most:
                # Closing at once would reset the connection, and the client might never see the
                # reply.
                while message.get("more_body", False) and total < most + MAX_DISCARDED_BYTES:
                    message = await piece()
                    total += len(message.get("body", b""))
                text = f"the body has more than {most:,} bytes; send fewer samples at once"
                raise RequestError(413, text, closing())
            # Each body may be within its limit and all together still fill the memory.
            of_caller = self._bytes_by_caller[caller] + size
            if (
                of_caller > MAX_BODIES_OF_CALLER * most
                or self._bytes_held + size > MAX_BODIES_IN_MEMORY * most
            ):
                text = "the requests in progress are too large together; send this request again"
                raise RequestError(429, text, closing({"retry-after": "1"}))
            self._bytes_held, request_bytes = self._bytes_held + size, request_bytes + size
            self._bytes_by_caller[caller] = of_caller
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            self._bytes_held -= request_bytes
            self._bytes_by_caller[caller] -= request_bytes
            if not self._bytes_by_caller[caller]:
                del self._bytes_by_caller[caller]


def _candidate_tokens(headers: Headers) -> list[str]:
    """Return the tokens that a request may mean.

    They are those of ``Authorization: Bearer`` and of ``x-api-key``; the latter leaves the former
    free for the key of an upstream. A header that occurs twice is ignored.
    """
    bearers, keys = headers.getlist("authorization"), headers.getlist("x-api-key")
    scheme, _, token = bearers[0].partition(" ") if len(bearers) == 1 else ("", "", "")
    result = [token.strip()] if scheme.lower() == "bearer" else []
    return result + (keys if len(keys) == 1 else [])


def _hash_token(token: str) -> str:
    """Return a digest that stands for a token: all have one length, and none shows the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _names_this_machine(hosts: list[str]) -> bool:
    """Whether the only Host header is a loopback name, such as localhost:8770 or [::1]."""
    if len(hosts) != 1:
        return False
    host = hosts[0]
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


async def unless_gone(request: Request, work: Coroutine[Any, Any, Response]) -> Response:
    """Return the response of ``work``, which is cancelled if the client disconnects."""

    async def gone() -> None:
        # The body has been read, so the next message is the end of the connection.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else Response(status_code=400)  # nobody reads it
    finally:
        # Not waited for: a second signal that ends the service would then be answered with 500.
        leaving.cancel()
        working.cancel()
        # waits until the cancelled work has released what it holds
        await asyncio.gather(working, return_exceptions=True)
