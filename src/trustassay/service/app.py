"""The ASGI application: the routes of all parts, behind the same guards."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.service.described import HEALTH_PATHS, openapi
from trustassay.service.guarding import Guarded, Limited
from trustassay.service.replies import fault, handlers, reply
from trustassay.service.service import Service
from trustassay.service.settings import ServiceSettings

__all__ = ["Part", "create_app"]

Tell = Callable[[str], None]
Count = Callable[[str, int], None]
OTHER = "other"
"""What a path is counted under that no route has."""


@dataclass(frozen=True)
class Part:
    """Routes, and what ``/openapi.json`` says of them: its ``paths`` and ``schemas``.

    running: opens what they need while the application serves.
    """

    routes: Sequence[BaseRoute]
    paths: Mapping[str, Any] = field(default_factory=dict)
    schemas: Mapping[str, Any] = field(default_factory=dict)
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


def create_app(
    service: Service,
    settings: ServiceSettings,
    parts: Sequence[Part] = (),
    tell: Tell = lambda words: None,  # noqa: ARG005
    count: Count = lambda path, status: None,  # noqa: ARG005
) -> Starlette:
    """Return the application: ``/health``, ``/openapi.json`` and the routes of ``parts``.

    A route raises what :mod:`trustassay.service.replies` answers: ``RequestError``, ``SampleError``
    (422), ``BusyError`` (429), ``ClosingError`` (503). ``tell`` hears of requests that failed, and
    never what they said; ``count`` of each reply, by the path of its route and its status.
    """

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {_place(error)}")
        return fault(500, "the service failed; its log says where")

    async def health(_request: Request) -> Response:
        if service.closing:
            return reply({"status": "closing"}, 503)
        return reply({"status": "ready"})

    document = openapi(
        {**HEALTH_PATHS, **{path: said for part in parts for path, said in part.paths.items()}},
        {name: said for part in parts for name, said in part.schemas.items()},
        asks_token=bool(settings.tokens),
    )

    async def described(_request: Request) -> Response:
        return reply(document)

    routes: list[BaseRoute] = [Route("/health", health), Route("/openapi.json", described)]
    routes += [route for part in parts for route in part.routes]
    paths = frozenset(route.path for route in routes if isinstance(route, Route))
    guards = [Middleware(Guarded, settings), Middleware(Limited, settings)]
    found = Starlette(
        routes=routes,
        middleware=[Middleware(Counted, count, paths), *guards],
        exception_handlers={**handlers(), Exception: failed},
    )
    found.router.redirect_slashes = False
    return found


class Counted:
    """Counts the replies."""

    def __init__(self, app: ASGIApp, count: Count, paths: Collection[str]) -> None:
        self._app, self._count, self._paths = app, count, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count the status of its reply; 500 if there was none."""
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if scope["type"] == "http":
                path = scope["path"]
                self._count(path if path in self._paths else OTHER, status)


def _place(error: Exception) -> str:
    """Return the class of an error and where it was raised, without its words."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return " ".join([type(error).__name__, *(f"at {one.name}:{one.lineno}" for one in last)])
