"""The process of the service: connections, signals, and an end that loses nothing accepted."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trustassay.event_loop import run_anywhere
from trustassay.text.words import amount
from trustassay.workflows.listening import QUIET
from trustassay.workflows.scorer import OpenScorer
from trustassay_serve.app import Meter, Part, create_app, scoring
from trustassay_serve.service import Service, ServiceSettings

Tell = Callable[[str], None]
"""Says something to whoever started the service; it is never told what a request says."""
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)
SWITCH_S = 0.0005
"""After so long a thread that works on a text lets the event loop go on; Python's own 5 ms would
add up, since each step of a request waits for it."""
OWN_FILES = 200
"""Files that are open besides the connections, at most."""


def serve(
    door: OpenScorer,
    settings: ServiceSettings,
    at: socket.socket,
    tell: Tell,
    parts: Sequence[Callable[[Service], Part]] = (),
) -> bool:
    """Serve until SIGTERM or SIGINT, finish what was accepted, and close the scorer.

    A second signal gives up what is in progress; in a folder it waits for the next start. Returns
    whether everything accepted was finished.
    """
    meter = Meter()
    most = _room_for(settings.connections)
    if most < settings.connections:
        tell(f"this process may open few files, so {most:,} connections are served at once")

    async def run() -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda _, found: tell(_words(found)))
        sys.setswitchinterval(SWITCH_S)
        async with door as scorer, AsyncExitStack() as stack:
            service = Service(scorer, settings, meter.note)
            every = [scoring(service), meter.part(service), *(part(service) for part in parts)]
            for part in every:
                await stack.enter_async_context(part.running())
            app = create_app(service, settings, every, tell, meter.count)
            ended = await _until_signalled(_Server(_config(app, settings, most)), at, service, tell)
            if not ended and (task := asyncio.current_task()):
                asyncio.get_running_loop().call_soon(task.cancel)
        return ended

    try:
        return run_anywhere(run)
    except asyncio.CancelledError:
        return False


async def _until_signalled(
    server: "_Server", at: socket.socket, service: Service, tell: Tell
) -> bool:
    """Serve until a signal came and everything accepted is answered; false at a second signal."""
    loop = asyncio.get_running_loop()
    first, second = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        if first.is_set():
            second.set()
            return
        service.close()
        left = amount(service.scorer.in_progress, "sample")
        tell(f"closing; {left} in progress (a second signal gives up)")
        first.set()

    async def end() -> None:
        await first.wait()
        await service.drained()
        server.should_exit = True

    signals = (signal.SIGTERM, signal.SIGINT)
    for one in signals:
        loop.add_signal_handler(one, signalled)
    host, port = at.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    waiting = service.scorer.in_progress
    message = f"; scores {amount(waiting, 'sample')} accepted before" if waiting else ""
    tell(f"listening at http://{shown}:{port}{message}; Ctrl-C ends")
    ending, given_up = asyncio.create_task(end()), asyncio.create_task(second.wait())
    serving = asyncio.create_task(server.serve(sockets=[at]))
    try:
        await asyncio.wait((serving, given_up), return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            server.force_exit = server.should_exit = True
            serving.cancel()
            await asyncio.wait((serving,))
            return False
        serving.result()
        return True
    finally:
        ending.cancel()
        given_up.cancel()
        for one in signals:
            loop.remove_signal_handler(one)


class _Server(uvicorn.Server):
    """A server that leaves signals to :func:`_until_signalled`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: Any, settings: ServiceSettings, connections: int) -> uvicorn.Config:
    class Bounded(BoundedProtocol):
        slow_s = settings.slow_s
        most = connections

    return uvicorn.Config(app, http=Bounded, **QUIET)


class BoundedProtocol(H11Protocol):
    """A connection that is one of ``most``, and whose client may not be slow.

    Slow is who does not finish the head of a request, or a body that nobody reads any more, within
    ``slow_s`` seconds of its first byte, sends nothing at all, or takes no part of a reply so long.
    """

    slow_s: float
    most: int
    _sending: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or refuse where there are too many."""
        assert isinstance(transport, asyncio.Transport)
        full = len(self.connections) >= self.most
        super().connection_made(transport)
        self._sending = self._timer()
        if full:
            transport.write(FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what was sent, unless the connection is being closed."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        unread = self.cycle is None or self.cycle.response_complete
        if unread or self.conn.their_state is h11.IDLE:
            self._sending = self._sending or self._timer()
        elif self._sending:
            self._sending.cancel()
            self._sending = None

    def pause_writing(self) -> None:
        """Note that the client does not take its reply."""
        super().pause_writing()
        self._taking = self._taking or self._timer()

    def resume_writing(self) -> None:
        """Note that it does again."""
        super().resume_writing()
        if self._taking:
            self._taking.cancel()
            self._taking = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, whether or not the client takes what is left."""
        super().timeout_keep_alive_handler()
        self._taking = self._taking or self._timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        for timer in (self._sending, self._taking):
            if timer:
                timer.cancel()
        self._sending = self._taking = None

    def _timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.slow_s, self.transport.abort)


def _room_for(connections: int) -> int:
    """Let this process open as many files as it may; return how many connections there can be."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OWN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return min(connections, max(wanted - OWN_FILES, 1))


def _words(found: dict[str, Any]) -> str:
    """Return the class of an error in the event loop without its words, which may quote a text."""
    error = found.get("exception")
    return f"an error in the service: {type(error).__name__ if error else 'of the event loop'}"
