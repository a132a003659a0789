"""How a page of this machine is served: who may ask, what a form may hold, what a browser may do.

An address begins with a token that only whoever was given it knows. A request that a foreign page
made, or that names a foreign host, is refused.
"""

import asyncio
import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.data.records import InputError
from trustassay.files import whole
from trustassay.workflows.listening import QUIET, is_loopback

BYTES = 18
"""Bytes of a token."""
LARGEST_BODY = 64 * 1024
"""Bytes of a form; a note has at most 2,000 characters."""
GRACE_S = 3
NUMBER = re.compile("[0-9]{1,9}")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # with no-referrer a form of the page has no origin
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Fields = dict[str, str]
Tell = Callable[[str], None]
"""Says something to whoever started the server; it is never told what an answer says."""


class Links:
    """The tokens of people, kept in ``.NAME.links`` beside a file, so that links stay the same when
    the command is run again. Only its owner can read that file.
    """

    def __init__(self, beside: Path, names: Sequence[str]) -> None:
        """Read the tokens, and make those that are missing; InputError: the file is damaged."""
        path = beside.with_name(f".{beside.name}.links")
        known = _read_tokens(path)
        new = {name: secrets.token_urlsafe(BYTES) for name in names if name not in known}
        if new:
            with whole(path) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps(known | new, indent=2).encode() + b"\n")
        self.tokens: Mapping[str, str] = {name: (known | new)[name] for name in names}

    def owner(self, token: str) -> str | None:
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


@dataclass(frozen=True)
class Hosts:
    """Under which names a server that listens at ``host`` may be asked, at any port, since a tunnel
    may have another one.

    One of this machine alone has the names of this machine; another one also those under which
    others reach it: an address, or the name of this machine. A page elsewhere whose name was made
    to lead here (DNS rebinding) gives neither. ``public`` is the name, with a port if it has one,
    of a proxy that shows the page.
    """

    host: str
    public: str = ""

    def known(self, value: str) -> bool:
        """Whether a header Host is of this server."""
        if self.public and value == self.public:
            return True
        name = value.rpartition(":")[0] if value.rfind(":") > value.rfind("]") else value
        name = name.removeprefix("[").removesuffix("]")
        if is_loopback(name) or is_loopback(self.host):
            return is_loopback(name)
        return name in {self.host, socket.gethostname(), socket.getfqdn()} or _is_address(name)

    def own(self, origin: str, host: str) -> bool:
        """Whether a header Origin is of a page of this server, which was asked as ``host``."""
        return origin.partition("://")[2] in {host, self.public} - {""}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def starlette(routes: Sequence[BaseRoute], tell: Tell, hosts: Hosts | None = None) -> ASGIApp:
    """Return the application of these routes. A fault of it tells its name alone, since its words
    may quote an answer. Without ``hosts`` any name of a host may be given.
    """

    async def failed(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {type(error).__name__}")
        return PlainTextResponse("the server failed.", 500)

    async def refused(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = error.detail if error.status_code in (400, 409, 503) else ""
        return PlainTextResponse(detail, error.status_code)

    result = Starlette(
        routes=list(routes), exception_handlers={HTTPException: refused, Exception: failed}
    )
    result.router.redirect_slashes = False
    return _guarded(result, hosts)


def _guarded(application: ASGIApp, hosts: Hosts | None) -> ASGIApp:
    """Refuse what another page asks for, and add the headers that keep this one from loading or
    telling anything elsewhere.
    """
    raw = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *raw]
            await send(message)

        if scope["type"] == "http" and (why := _foreign(Request(scope), hosts)):
            await PlainTextResponse(why, 403)(scope, receive, sending)
        else:
            await application(scope, receive, sending)

    return wrapped


def _foreign(request: Request, hosts: Hosts | None) -> str:
    """Return why a request is not one of this page; empty if it is."""
    given = request.headers.getlist("host")
    if len(given) != 1 or not (hosts is None or hosts.known(given[0])):
        return "the header Host names another server; --public takes the name of a proxy."
    origin = request.headers.get("origin")
    if origin is not None and not (hosts or Hosts("")).own(origin, given[0]):
        return "another page sent this request."
    if request.headers.get("sec-fetch-site", "none") == "cross-site" and request.method != "GET":
        return "another page sent this request."
    return ""


def asset_routes(assets: Mapping[str, Sequence[tuple[str, str]]]) -> list[BaseRoute]:
    """Return the routes of style sheets and scripts: of each the files, as (package, name), of
    which it is made.
    """

    async def served(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response("\n".join(_template(*one) for one in assets[name]), media_type=kind)

    return [Route(f"/{name}", served) for name in assets]


@cache
def _template(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


async def read_fields(request: Request) -> Fields:
    """Read a form: what is not UTF-8 is replaced, of a field that comes twice the last counts."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise HTTPException(413)
    result = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in result.items()}


def serve(application: ASGIApp, at: socket.socket, drain: Callable[[], Awaitable[object]]) -> None:
    """Serve until the process is interrupted; ``drain`` waits for what is being stored then."""
    import uvicorn

    config = uvicorn.Config(application, http="h11", timeout_graceful_shutdown=GRACE_S, **QUIET)

    async def run() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[at])
        finally:
            await drain()

    asyncio.run(run())


def address(host: str, at: socket.socket) -> str:
    """Return ``http://HOST:PORT`` as a person opens it."""
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{at.getsockname()[1]}"


def warning_of(host: str) -> str:
    """Return what to say of a host that other machines reach; empty if they do not."""
    if is_loopback(host):
        return ""
    return (
        f"warning: other machines can reach {host}. Whoever has a link can read the answers and "
        "rate; nothing is encrypted"
    )
