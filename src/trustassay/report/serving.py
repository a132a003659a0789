"""Serves local pages safely: sockets, access tokens, allowed hosts, form limits, browser headers.

Each address begins with a secret token. A request that another site's page made, or that names
another host, is refused.
"""

import asyncio
import hmac
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trustassay.core.files import open_atomic
from trustassay.input.records import InputError

QUIET_UVICORN_OPTIONS: Mapping[str, Any] = {
    "access_log": False,  # a link may hold a token
    "log_config": None,
    "log_level": "critical",  # a traceback may quote a sample
    "lifespan": "off",
    "ws": "none",
    "loop": "asyncio",
    "proxy_headers": False,
    "server_header": False,
}
"""Options with which uvicorn logs nothing, and does not identify itself."""


def is_loopback(host: str) -> bool:
    """Whether a host name or address is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one; InputError: the address is not
    available."""
    try:
        # getaddrinfo resolves names and covers IPv4 and IPv6.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        server_socket = socket.socket(family, kind, protocol)
        try:
            # Without it a restart within a minute fails, as old connections still hold the port.
            server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server_socket.bind(address)
            server_socket.listen(128)
        except OSError:
            # Opened but not bound: close it before the error leaves.
            server_socket.close()
            raise
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another --port (0 picks a "
            "free port) or --host"
        ) from None
    return server_socket


TOKEN_BYTES = 18
"""Random bytes of a token."""
MAX_BODY_BYTES = 64 * 1024
"""Largest form; a note has at most 2,000 characters."""
SHUTDOWN_GRACE_S = 3
FORM_NUMBER = re.compile("[0-9]{1,9}")
# Nothing is loaded from or sent to other sites, cached, or embedded in another page.
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    # "no-referrer" would make browsers send "Origin: null" with the page's own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
FormFields = dict[str, str]
MessageWriter = Callable[[str], None]
"""Writes a message to the terminal of whoever started the server; never the text of an answer."""


class AccessLinks:
    """The tokens of people, stored in ``.NAME.links`` beside a file.

    Because they are stored, links stay the same when the command runs again. Only the owner of the
    file can read it.
    """

    def __init__(self, beside: Path, names: Sequence[str]) -> None:
        """Read the tokens and create missing ones; raises InputError if the file is damaged."""
        path = beside.with_name(f".{beside.name}.links")
        stored_tokens = _read_tokens(path)
        new_tokens = {
            name: secrets.token_urlsafe(TOKEN_BYTES) for name in names if name not in stored_tokens
        }
        if new_tokens:
            with open_atomic(path) as file:
                file.write(json.dumps(stored_tokens | new_tokens, indent=2).encode() + b"\n")
        self.tokens: Mapping[str, str] = {
            name: (stored_tokens | new_tokens)[name] for name in names
        }

    def find_owner(self, token: str) -> str | None:
        """Return the owner of a token, ``None`` if nobody has it, in constant time."""
        result = None
        for name, token_of_person in self.tokens.items():
            # No early return: the loop compares every token, so the time does not depend on the
            # match.
            if hmac.compare_digest(token_of_person.encode(), token.encode(errors="replace")):
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
        isinstance(token, str) and len(token) >= TOKEN_BYTES for token in result.values()
    ):
        raise InputError(f"{path}: damaged; remove it to give all raters new links")
    return result


@dataclass(frozen=True)
class AllowedHosts:
    """The host names under which a server accepts requests, to prevent DNS rebinding.

    A server that listens on this machine only accepts the machine's loopback names. Any other
    server also accepts addresses and the machine's own name. A page of another site, whose name was
    made to resolve to this machine, has neither. Ports are ignored, since a tunnel may use another
    one.
    """

    host: str
    """The host at which the server listens."""
    public: str = ""
    """The name, with its port if it has one, of a proxy in front of the server."""

    def accepts_host(self, value: str) -> bool:
        """Whether a header Host names this server."""
        if self.public and value == self.public:
            return True
        # Cut the port: the last colon, unless it is part of an IPv6 address, [::1].
        name = value.rpartition(":")[0] if value.rfind(":") > value.rfind("]") else value
        name = name.removeprefix("[").removesuffix("]")
        # Loopback names are always fine; a loopback server accepts no other names.
        if is_loopback(name) or is_loopback(self.host):
            return is_loopback(name)
        return name in {self.host, socket.gethostname(), socket.getfqdn()} or _is_address(name)

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Whether a header Origin names a page of this server, which was requested as ``host``."""
        # Without a public name the set must not contain "", which "Origin: null" would match.
        return origin.partition("://")[2] in {host, self.public} - {""}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def build_application(
    routes: Sequence[BaseRoute], tell: MessageWriter, hosts: AllowedHosts | None = None
) -> ASGIApp:
    """Build the application of these routes.

    Of an unexpected error only the type is reported, since its message may quote an answer. Without
    ``hosts`` any host name is accepted.
    """

    async def answer_failure(_request: Request, error: Exception) -> Response:
        tell(f"a request failed: {type(error).__name__}")
        return PlainTextResponse("the server failed.", 500)

    async def answer_refusal(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        # Only these messages are written for the user; others may describe the server.
        detail = error.detail if error.status_code in (400, 409, 503) else ""
        return PlainTextResponse(detail, error.status_code)

    result = Starlette(
        routes=list(routes),
        exception_handlers={HTTPException: answer_refusal, Exception: answer_failure},
    )
    # An address with a trailing slash is not found, instead of redirected.
    result.router.redirect_slashes = False
    return _guard(result, hosts)


def _guard(application: ASGIApp, hosts: AllowedHosts | None) -> ASGIApp:
    """Refuse requests of other sites' pages, and add headers that stop a page from contacting
    them."""
    raw_headers = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

    async def answer_guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *raw_headers]
            await send(message)

        if scope["type"] == "http" and (reason := _explain_foreign_request(Request(scope), hosts)):
            await PlainTextResponse(reason, 403)(scope, receive, send_with_headers)
        else:
            await application(scope, receive, send_with_headers)

    return answer_guarded


def _explain_foreign_request(request: Request, hosts: AllowedHosts | None) -> str:
    """Return why a request does not come from this server's pages; empty if it does."""
    host_headers = request.headers.getlist("host")
    # Two Host headers are a way to smuggle one past the check.
    if len(host_headers) != 1 or not (hosts is None or hosts.accepts_host(host_headers[0])):
        return "the Host header names another server; give the name of a proxy with --public."
    origin = request.headers.get("origin")
    if origin is not None and not (hosts or AllowedHosts("")).accepts_origin(
        origin, host_headers[0]
    ):
        return "a page of another site sent this request."
    # Links from other sites may open a page (GET) but not send a form.
    if request.headers.get("sec-fetch-site", "none") == "cross-site" and request.method != "GET":
        return "a page of another site sent this request."
    return ""


def build_asset_routes(assets: Mapping[str, Sequence[tuple[str, str]]]) -> list[BaseRoute]:
    """Build the routes of style sheets and scripts.

    ``assets`` maps the name of each to the files it is joined from, as (package, name).
    """

    async def serve_asset(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(
            "\n".join(_read_template(*asset_file) for asset_file in assets[name]), media_type=kind
        )

    return [Route(f"/{name}", serve_asset) for name in assets]


@cache
def _read_template(package: str, name: str) -> str:
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


async def read_fields(request: Request) -> FormFields:
    """Read a form; bytes that are not UTF-8 are replaced, and the last of equal fields counts.

    Raises:
        HTTPException: 413, the form is larger than :data:`MAX_BODY_BYTES`.
    """
    body = b""
    async for piece in request.stream():
        # Counted while reading: the header Content-Length may be missing or wrong.
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413)
    result = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in result.items()}


def serve(application: ASGIApp, at: socket.socket, drain: Callable[[], Awaitable[object]]) -> None:
    """Serve until the process is interrupted, then call ``drain`` to finish storing."""
    import uvicorn

    # h11 is pure Python and always installed with uvicorn.
    config = uvicorn.Config(
        application, http="h11", timeout_graceful_shutdown=SHUTDOWN_GRACE_S, **QUIET_UVICORN_OPTIONS
    )

    async def run() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[at])
        finally:
            # A rating that a request has sent must be on disk before the process ends.
            await drain()

    asyncio.run(run())


def format_address(host: str, at: socket.socket) -> str:
    """Write the address as a person opens it: ``http://HOST:PORT``."""
    # 0.0.0.0 and :: mean every interface, and cannot be opened in a browser.
    host_name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"http://{f'[{host_name}]' if ':' in host_name else host_name}:{at.getsockname()[1]}"


def warn_of_exposure(host: str) -> str:
    """Write a warning for a host that other machines can reach; empty if they cannot."""
    if is_loopback(host):
        return ""
    return (
        f"warning: other machines can reach {host}. Anyone with a link can read and rate the "
        "answers; nothing is encrypted"
    )
