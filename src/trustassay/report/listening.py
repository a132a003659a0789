"""Opens the socket of a local server, and the options to run it without logs."""

import ipaddress
import socket
from collections.abc import Mapping
from typing import Any

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
            f"cannot listen at {host}:{port} ({error.strerror}); choose another --port (0 takes a "
            "free one) or --host"
        ) from None
    return server_socket
