"""The ASGI application: the routes of all parts, behind the same guards."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trustassay.service.guarding import Guarded, Limited
from trustassay.service.replies import fault, handlers, reply
from trustassay.service.service import Service
from trustassay.service.settings import ServiceSettings

__all__ = ["Part", "create_app"]

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """Routes, and what ``/openapi.json`` says of them: its ``paths`` and ``schemas``."""

    routes: Sequence[BaseRoute]
    paths: Mapping[str, Any] = field(default_factory=dict)
    schemas: Mapping[str, Any] = field(default_factory=dict)


def create_app(
    service: Service,
    settings: ServiceSettings,
    parts: Sequence[Part] = (),
    tell: Tell = lambda words: None,  # noqa: ARG005
) -> Starlette:
    """Return the application: ``/health``, and the routes of ``parts``.

    A route raises what :mod:`trustassay.service.replies` answers: ``RequestError``, ``SampleError``
    (422), ``BusyError`` (429), ``ClosingError`` (503). ``tell`` hears of requests that failed, and
    never what they said.
    """

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {_place(error)}")
        return fault(500, "the service failed; its log says where")

    async def health(_request: Request) -> Response:
        if service.closing:
            return reply({"status": "closing"}, 503)
        return reply({"status": "ready"})

    routes = [Route("/health", health), *(route for part in parts for route in part.routes)]
    found = Starlette(
        routes=routes,
        middleware=[Middleware(Guarded, settings), Middleware(Limited, settings)],
        exception_handlers={**handlers(), Exception: failed},
    )
    found.router.redirect_slashes = False
    return found


def _place(error: Exception) -> str:
    """Return the class of an error and where it was raised, without its words."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([type(error).__name__, *(f"at {one.name}:{one.lineno}" for one in last)])
