"""The process of the service: connections, signals, and a shutdown that loses no sample."""

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

from trustassay.core.event_loop import run_anywhere
from trustassay.live.app import Part, ServiceMetrics, create_app, scoring_part
from trustassay.live.scorer import OpenScorer
from trustassay.live.service import Service, ServiceSettings
from trustassay.report.serving import QUIET_UVICORN_OPTIONS, MessageWriter
from trustassay.text.words import amount

FULL_REPLY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)
"""The reply to a connection beyond the limit, written without parsing its request."""
SWITCH_S = 0.0005
"""Seconds after which a thread that works on a text yields to the event loop. Python's default of
5 ms would add up, since each step of a request waits for it."""
HALF_CLOSED_PROBE_S = 1.0
"""Seconds between the interim responses that show whether a half-closed client is still there."""
HALF_CLOSED_WAIT_S = 10.0
"""Seconds without a byte sent after which a half-closed client counts as gone, where no interim
response can be sent."""
INTERIM_REPLY = b"HTTP/1.1 100 Continue\r\n\r\n"
"""A response that clients of HTTP/1.1 read and skip, however often it comes (RFC 9110, 15.2)."""
RESERVED_FILES = 200
"""Open files that are reserved for everything other than connections."""


def serve(
    open_scorer: OpenScorer,
    settings: ServiceSettings,
    listener: socket.socket,
    tell: MessageWriter,
    parts: Sequence[Callable[[Service], Part]] = (),
) -> bool:
    """Serve until SIGTERM or SIGINT, finish the accepted samples, and close the scorer.

    A second signal gives up the samples in progress; with a folder they are scored at the next
    start.

    Args:
        open_scorer: opens the scorer.
        settings: tokens and limits.
        listener: the listening socket.
        tell: prints messages.
        parts: functions that build the optional parts for the service.

    Returns:
        Whether every accepted sample was finished.
    """
    meter = ServiceMetrics()
    most = _allow_connections(settings.connections)
    if most < settings.connections:
        tell(f"this process may open few files, so {most:,} connections are served at once")

    async def run() -> bool:
        # The default handler would log the message of an error, which may quote a request.
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: tell(_describe_error(context))
        )
        sys.setswitchinterval(SWITCH_S)
        async with open_scorer as scorer, AsyncExitStack() as stack:
            service = Service(scorer, settings, meter.note)
            every = [scoring_part(service), meter.part(service), *(part(service) for part in parts)]
            for part in every:
                await stack.enter_async_context(part.running())
            app = create_app(service, settings, every, tell, meter.count)
            ended = await _serve_until_signal(
                _Server(_make_config(app, settings, most)), listener, service, tell
            )
            # Closing the scorer would wait for the samples that were given up: it is cancelled
            # instead.
            if not ended and (task := asyncio.current_task()):
                asyncio.get_running_loop().call_soon(task.cancel)
        return ended

    try:
        return run_anywhere(run)
    except asyncio.CancelledError:
        return False


async def _serve_until_signal(
    server: "_Server", listener: socket.socket, service: Service, tell: MessageWriter
) -> bool:
    """Serve until a signal, and until all accepted samples are answered; false if cut short."""
    loop = asyncio.get_running_loop()
    first, second = asyncio.Event(), asyncio.Event()

    def note_signal() -> None:
        if first.is_set():
            second.set()
            return
        service.close()
        remaining = amount(service.scorer.in_progress, "sample")
        tell(f"closing; {remaining} in progress (a second signal gives up)")
        first.set()

    async def end() -> None:
        await first.wait()
        # Connections stay open until all replies are written; only then the server stops.
        await service.drain()
        server.should_exit = True

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, note_signal)
    host, port = listener.getsockname()[:2]
    host_text = f"[{host}]" if ":" in host else host
    waiting = service.scorer.in_progress
    message = f"; scores {amount(waiting, 'sample')} accepted before" if waiting else ""
    tell(f"listening at http://{host_text}:{port}{message}; Ctrl-C ends")
    ending, given_up = asyncio.create_task(end()), asyncio.create_task(second.wait())
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        # The server ends by itself (first signal) or the second signal cuts it short.
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
        for number in signals:
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to :func:`_serve_until_signal`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: uvicorn would stop at the first signal, before the samples are finished."""
        yield


def _make_config(app: Any, settings: ServiceSettings, connections: int) -> uvicorn.Config:
    class Bounded(BoundedProtocol):
        slow_s = settings.slow_s
        most = connections

    return uvicorn.Config(app, http=Bounded, **QUIET_UVICORN_OPTIONS)


class BoundedProtocol(H11Protocol):
    """A connection with limits on its number and on the slowness of its client.

    It is aborted if the client does not finish the head of a request, or a body that is no longer
    read, within ``slow_s`` seconds of the first byte; if it sends nothing at all; or if it takes no
    part of a reply for that long. (Bodies that are read are limited by ``BodyLimiter``.)

    A client that ends its side after a whole request (``shutdown(SHUT_WR)``) gets its reply. One
    that closed the connection altogether sends the same FIN: only its answer to bytes of ours, a
    reset, tells them apart. So the reply itself is the test, and until it begins an interim
    response is sent every ``HALF_CLOSED_PROBE_S``; a write after the reset ends the connection, and
    with it the work on the reply. Where no interim response is allowed (HTTP/1.0, or a reply that
    has begun and pauses), the client counts as gone after ``HALF_CLOSED_WAIT_S`` without a write.
    """

    slow_s: float
    """The seconds that a client has."""
    most: int
    """The most connections of the server."""
    _sending: asyncio.TimerHandle | None = None
    """Aborts the connection while the client is to send."""
    _taking: asyncio.TimerHandle | None = None
    """Aborts the connection while the client does not read its reply."""
    _probing: asyncio.TimerHandle | None = None
    """Finds out whether a half-closed client is still there; ``None`` before its end."""
    _wrote_at: float = 0.0
    """When the last part of a reply was written, by the clock of the loop."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Create the protocol as uvicorn does, with an application whose writes are timed."""
        super().__init__(*arguments, **options)
        application = self.app

        async def run_timed(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                await send(message)
                self._wrote_at = self.loop.time()

            await application(scope, receive, sending)

        self.app = run_timed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer, or refuse the connection if there are too many."""
        assert isinstance(transport, asyncio.Transport)
        # counted before super() adds this one
        full = len(self.connections) >= self.most
        super().connection_made(transport)
        self._sending = self._start_timer()
        if full:
            transport.write(FULL_REPLY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and stop the timer once a request's body is being read."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        # A body after a complete reply (a refusal) is parsed by nobody: its sender must finish in
        # time.
        unread = self.cycle is None or self.cycle.response_complete
        if unread or self.conn.their_state is h11.IDLE:
            self._sending = self._sending or self._start_timer()
        elif self._sending:
            self._sending.cancel()
            self._sending = None

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection if a whole request waits for its reply; otherwise close it."""
        if not self._is_answering():
            return False
        if self._probing is None:
            self._wrote_at = self.loop.time()
            self._probing = self.loop.call_later(HALF_CLOSED_PROBE_S, self._probe)
        return True

    def on_response_complete(self) -> None:
        """Go on with the next request, or close if a half-closed client has sent no other."""
        super().on_response_complete()
        if self._probing and not self._is_answering() and not self.transport.is_closing():
            self.transport.close()

    def _is_answering(self) -> bool:
        """Whether a request has arrived whole, and its reply is not complete."""
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    def _probe(self) -> None:
        """Write to a half-closed client: to one that is gone the second write fails."""
        if self.transport.is_closing():
            return
        if not self.cycle.response_started and self.scope["http_version"] == "1.1":
            self.transport.write(INTERIM_REPLY)
        elif self.loop.time() - self._wrote_at >= HALF_CLOSED_WAIT_S:
            self.transport.abort()
            return
        self._probing = self.loop.call_later(HALF_CLOSED_PROBE_S, self._probe)

    def pause_writing(self) -> None:
        """Start the timer: the client does not read its reply."""
        super().pause_writing()
        self._taking = self._taking or self._start_timer()

    def resume_writing(self) -> None:
        """Stop the timer: the client reads again."""
        super().resume_writing()
        if self._taking:
            self._taking.cancel()
            self._taking = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if the client does not read the rest."""
        super().timeout_keep_alive_handler()
        self._taking = self._taking or self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        super().connection_lost(exc)
        for timer in (self._sending, self._taking, self._probing):
            if timer:
                timer.cancel()
        self._sending = self._taking = self._probing = None

    def _start_timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self.slow_s, self.transport.abort)


def _allow_connections(connections: int) -> int:
    """Raise the limit of open files as far as needed and allowed; return the connections left."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVED_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    # A process may raise its soft limit up to the hard one without any privilege.
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return min(connections, max(wanted - RESERVED_FILES, 1))


def _describe_error(context: dict[str, Any]) -> str:
    """Return the class of an error in the event loop; its message may quote a request."""
    error = context.get("exception")
    return f"an error in the service: {type(error).__name__ if error else 'of the event loop'}"
