"""The server of the pages: a link and one tab for each rater, and nothing for anybody else."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.data.records import InputError
from trustassay.files import is_full, whole
from trustassay.workflows.annotate.pages import asset, list_page, page
from trustassay.workflows.annotate.session import NotOfferedError, RaterState, Session
from trustassay.workflows.listening import QUIET

BYTES = 18


class Links:
    """The tokens of raters, kept in ``.NAME.links`` beside the file of ratings, so that links stay
    the same when the command is run again. Only its owner can read that file.
    """

    def __init__(self, ratings: Path, raters: Sequence[str]) -> None:
        """Read the tokens, and make those that are missing; InputError: the file is damaged."""
        path = ratings.with_name(f".{ratings.name}.links")
        known = _read_tokens(path)
        new = {name: secrets.token_urlsafe(BYTES) for name in raters if name not in known}
        if new:
            with whole(path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps(known | new, indent=2).encode() + b"\n")
        self.tokens: Mapping[str, str] = {name: (known | new)[name] for name in raters}

    def rater(self, token: str) -> str | None:
        """Return whose token it is; ``None`` if nobody's. The time it takes tells nothing."""
        result = None
        for name, known in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode(errors="replace")):
                result = name
        return result


def _read_tokens(path: Path) -> dict[str, str]:
    try:
        result = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        result = None
    if not isinstance(result, dict) or not all(
        isinstance(token, str) and len(token) >= BYTES for token in result.values()
    ):
        raise InputError(f"{path}: damaged; remove it, and all raters get new links")
    return result


LEASE_S = 15.0
"""Seconds after which a tab that gave no sign counts as closed; an open one gives one every 5."""


class Tabs:
    """The tab of each rater that writes. A tab's name is drawn by the page."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._held: dict[str, tuple[str, float]] = {}

    def claim(self, rater: str, tab: str, *, take: bool = False) -> bool:
        """Let a tab write, and return whether it may: no other one does, or it takes over.

        A page without scripts has no name (``""``); it may write while no other tab does.
        """
        held, until = self._held.get(rater, ("", 0.0))
        if held != tab and self._now() < until and not take:
            return False
        if tab:
            self._held[rater] = tab, self._now() + LEASE_S
        return True

    def leave(self, rater: str, tab: str) -> None:
        """Take note that a tab was closed."""
        if self._held.get(rater, ("", 0.0))[0] == tab:
            del self._held[rater]


LARGEST_BODY = 64 * 1024
"""Bytes of a request; a note has at most 2,000 characters."""
GRACE_S = 3
NUMBER = re.compile("[0-9]{1,9}")
LONGEST_TAB = 64
ELSEWHERE = "this rater is already rating in another tab."
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
Tell = Callable[[str], None]
"""Says something to whoever started the server; it is never told what an answer says."""


ACTS: Mapping[str, Callable[[Session, str, Fields], Awaitable[object]]] = {
    "rate": lambda session, rater, fields: session.rate(
        rater, _number(fields, "step"), fields.get("choice", ""), fields.get("note", "")
    ),
    "skip": lambda session, rater, fields: session.skip(
        rater, _number(fields, "step"), fields.get("note", "")
    ),
    "undo": lambda session, rater, fields: session.undo(rater, _number(fields, "last")),
    "reopen": lambda session, rater, _: session.reopen(rater),
}
"""What a rater can do, by the name under which a form is sent."""


def application(session: Session, links: Links, tell: Tell) -> ASGIApp:
    """Return the ASGI application that shows and stores ratings.

    ``/TOKEN`` is a rater's page, ``/TOKEN/ratings`` the list of what is rated; ``/TOKEN/rate``,
    ``skip``, ``undo``, ``reopen`` and ``tab`` take forms.
    """
    tabs = Tabs()

    def who(request: Request) -> RaterState:
        rater = links.rater(request.path_params["token"])
        if rater is None:
            raise HTTPException(404)
        return session.raters[rater]

    async def shown(request: Request) -> Response:
        rater, token = who(request), request.path_params["token"]
        if "step" not in request.query_params:
            return HTMLResponse(page(session.project, rater, token))
        texts = [request.query_params.get(name, "0") for name in ("step", "scale")]
        step, scale = (int(text) if NUMBER.fullmatch(text) else -1 for text in texts)
        known = any(one in rater.done for one in rater.ratings(step))
        if not (known and 0 <= scale < rater.scales):
            return RedirectResponse(f"/{token}", 303)  # it was taken back, or never shown
        return HTMLResponse(page(session.project, rater, token, step, scale))

    async def listed(request: Request) -> Response:
        return HTMLResponse(list_page(session.project, who(request), request.path_params["token"]))

    async def tab(request: Request) -> Response:
        rater, fields = who(request), await _fields(request)
        name = fields.get("tab", "")[:LONGEST_TAB]
        if "leave" in fields:
            tabs.leave(rater.name, name)
        elif not tabs.claim(rater.name, name, take="take" in fields):
            return PlainTextResponse(ELSEWHERE, 409)
        return Response(status_code=204)

    def acts(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            rater, fields = who(request), await _fields(request)
            if not tabs.claim(rater.name, fields.get("tab", "")[:LONGEST_TAB]):
                return PlainTextResponse(ELSEWHERE, 409)
            open_before = rater.current is not None
            try:
                await ACTS[name](session, rater.name, fields)
            except NotOfferedError as error:
                return PlainTextResponse(str(error), 400)
            except OSError as error:
                why = "the disk is full" if is_full(error) else "the file cannot be written"
                tell(f"{rater.name}: a rating was not stored: {error}")
                return PlainTextResponse(f"{why}.", 503)
            if open_before and rater.current is None:
                skipped = f", {len(rater.skipped):,} skipped" if rater.skipped else ""
                tell(f"{rater.name} is at the end: {rater.rated:,} rated{skipped}")
            return RedirectResponse(f"/{request.path_params['token']}{after(rater, fields)}", 303)

        return endpoint

    def after(rater: RaterState, fields: Fields) -> str:
        """Return where a request leads: of an answer that was gone back to, to its next scale."""
        if "again" not in fields or "choice" not in fields:
            return ""
        scale = session.offered(fields["choice"])[0] + 1
        return f"?step={fields['step']}&scale={scale}" if scale < rater.scales else ""

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {type(error).__name__}")  # its words may quote an answer
        return PlainTextResponse("the server failed.", 500)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(asset(name), media_type=ASSETS[name])

    routes = [Route(f"/{name}", file) for name in ASSETS]
    routes += [Route("/{token}", shown), Route("/{token}/ratings", listed)]
    routes.append(Route("/{token}/tab", tab, methods=["POST"]))
    routes += [Route(f"/{{token}}/{name}", acts(name), methods=["POST"]) for name in ACTS]
    handlers: Any = {HTTPException: _nothing, Exception: failed}
    result = Starlette(routes=routes, exception_handlers=handlers)
    result.router.redirect_slashes = False
    return _with_headers(result)


async def _nothing(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse("", error.status_code)


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
    """Read a form: what is not UTF-8 is replaced, of a field that comes twice the last counts."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise HTTPException(413)
    result = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in result.items()}


def _number(fields: Fields, name: str) -> int:
    text = fields.get(name, "")
    if not NUMBER.fullmatch(text):
        raise NotOfferedError(f"{name}: expected a number")
    return int(text)


def serve(application: ASGIApp, at: socket.socket, session: Session) -> None:
    """Serve until the process is interrupted; what is being stored then is stored."""
    import uvicorn

    config = uvicorn.Config(application, http="h11", timeout_graceful_shutdown=GRACE_S, **QUIET)

    async def run() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[at])
        finally:
            await session.drain()

    asyncio.run(run())
