"""The server of the page: a link for each rater, and nothing for anybody else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.files import is_full
from trustassay.workflows.annotate.links import Links
from trustassay.workflows.annotate.pages import asset, page
from trustassay.workflows.annotate.session import NotOfferedError, RaterState, Session

__all__ = ["application", "serve"]

LARGEST_BODY = 64 * 1024
"""Bytes of a request; a note has at most 2,000 characters."""
GRACE_S = 3
ASSETS = {"annotate.css": "text/css", "annotate.js": "text/javascript"}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
}
Fields = dict[str, str]
Act = Callable[[str, Fields], Awaitable[object]]
Tell = Callable[[str], None]
"""Says something to whoever started the server; it is never told what an answer says."""


def application(session: Session, links: Links, tell: Tell) -> ASGIApp:
    """Return the ASGI application that shows and stores ratings.

    ``/TOKEN`` is a rater's page; ``/TOKEN/rate``, ``skip``, ``undo`` and ``reopen`` take forms.
    """

    def who(request: Request) -> RaterState:
        rater = links.rater(request.path_params["token"])
        if rater is None:
            raise HTTPException(404)
        return session.raters[rater]

    async def shown(request: Request) -> Response:
        token = request.path_params["token"]
        return HTMLResponse(page(session.project, who(request), token))

    def acts(act: Act) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            rater = who(request)
            open_before = rater.current is not None
            try:
                await act(rater.name, await _fields(request))
            except NotOfferedError as error:
                return PlainTextResponse(str(error), 400)
            except OSError as error:
                why = "the disk is full" if is_full(error) else "the file cannot be written"
                tell(f"{rater.name}: a rating was not stored: {error}")
                return PlainTextResponse(f"{why}.", 503)
            if open_before and rater.current is None:
                skipped = f", {len(rater.skipped):,} skipped" if rater.skipped else ""
                tell(f"{rater.name} is at the end: {rater.rated:,} rated{skipped}")
            return RedirectResponse(f"/{request.path_params['token']}", 303)

        return endpoint

    async def rate(rater: str, fields: Fields) -> None:
        step = _number(fields, "step")
        await session.rate(rater, step, fields.get("choice", ""), fields.get("note", ""))

    async def skip(rater: str, fields: Fields) -> None:
        await session.skip(rater, _number(fields, "step"), fields.get("note", ""))

    async def undo(rater: str, fields: Fields) -> None:
        await session.undo(rater, _number(fields, "last"))

    async def reopen(rater: str, _fields: Fields) -> None:
        await session.reopen(rater)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(asset(name), media_type=ASSETS[name])

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {type(error).__name__}")  # its words may quote an answer
        return PlainTextResponse("the server failed.", 500)

    async def nothing(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return PlainTextResponse("", error.status_code)

    routes = [Route(f"/{name}", file) for name in ASSETS]
    routes.append(Route("/{token}", shown))
    for name, act in (("rate", rate), ("skip", skip), ("undo", undo), ("reopen", reopen)):
        routes.append(Route(f"/{{token}}/{name}", acts(act), methods=["POST"]))
    handlers: Any = {HTTPException: nothing, Exception: failed}
    found = Starlette(routes=routes, exception_handlers=handlers)
    found.router.redirect_slashes = False
    return _with_headers(found)


def _with_headers(application: ASGIApp) -> ASGIApp:
    """Add the headers that keep a page from loading or telling anything elsewhere."""
    raw = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *raw]
            await send(message)

        await application(scope, receive, sending)

    return wrapped


async def _fields(request: Request) -> Fields:
    """Read a form. What is not UTF-8 is replaced, of a field that comes twice the last one counts.

    Raises:
        HTTPException: it is too large.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise HTTPException(413)
    found = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in found.items()}


def _number(fields: Fields, name: str) -> int:
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotOfferedError(f"{name}: expected a number")
    return int(text)


def serve(application: ASGIApp, at: socket.socket, session: Session) -> None:
    """Serve until the process is interrupted; what is being stored then is stored.

    Raises:
        KeyboardInterrupt: at an interruption.
    """
    import uvicorn

    config = uvicorn.Config(
        application,
        access_log=False,  # a link holds a token
        log_config=None,
        log_level="critical",  # a traceback may quote an answer
        lifespan="off",
        ws="none",
        loop="asyncio",
        http="h11",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )

    async def run() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[at])
        finally:
            await session.drain()

    asyncio.run(run())
