"""The address at which a server of this machine listens, and how it is served."""

import ipaddress
import socket
from collections.abc import Mapping
from typing import Any

from trustassay.data.records import InputError

QUIET: Mapping[str, Any] = {
    "access_log": False,  # a link may hold a token
    "log_config": None,
    "log_level": "critical",  # a traceback may quote a sample
    "lifespan": "off",
    "ws": "none",
    "loop": "asyncio",
    "proxy_headers": False,
    "server_header": False,
}
"""Options of uvicorn with which nothing is logged or said of the server."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there, port 0: at a free one; InputError: it cannot be taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        result = socket.socket(family, kind, protocol)
        try:
            result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            result.bind(address)
            result.listen(128)
        except OSError:
            result.close()
            raise
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another --port (0 takes a "
            "free one) or --host"
        ) from None
    return result
