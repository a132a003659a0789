"""What the service replies: JSON, and errors of one form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from trustassay.sample import Problem, SampleError
from trustassay.service.service import BusyError, ClosingError
from trustassay.workflows.scorer import ScorerClosedError

__all__ = ["RequestError", "closing", "encoded", "fault", "handlers", "problems_json", "reply"]

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


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return fault(error.status_code, error.detail, error.headers)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SampleError)
    return fault(422, "the sample cannot be scored", problems=problems_json(error.problems))


async def _later(_request: Request, error: Exception) -> Response:
    status = 429 if isinstance(error, BusyError) else 503
    wait = error.retry_after_s if isinstance(error, BusyError | ClosingError) else 5
    return fault(status, str(error), {"retry-after": str(wait)})


async def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


def handlers() -> Any:
    """Return what answers the errors that a route may raise, by their class."""
    later = dict.fromkeys((BusyError, ClosingError, ScorerClosedError), _later)
    return {HTTPException: _refused, SampleError: _invalid, ClientDisconnect: _gone, **later}
