"""The process of the service: connections, signals, and a shutdown that loses no sample."""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trustassay.core.event_loop import run_anywhere
from trustassay.live.app import Part, ServiceMetrics, create_app, scoring_part
from trustassay.live.scorer import OpenScorer, Scorer
from trustassay.live.service import Service, ServiceSettings, run_beside
from trustassay.report.serving import QUIET_UVICORN_OPTIONS, MessageWriter
from trustassay.report.terminal import INTERRUPTED
from trustassay.text.numbers import amount

FULL_REPLY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)
"""The reply to a connection beyond the limit, written without parsing its request; and to a request
that is given up."""
_LOADING_BODY = b'{"status":"loading"}'
LOADING_REPLY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_LOADING_BODY), _LOADING_BODY)
)
"""The reply to every request while models are being loaded."""
LOADING_REQUEST_S = 5.0
"""Seconds in which such a request must have come."""
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
REPLY_WITHIN_S = 0.5
"""Seconds in which requests whose samples are given up write their replies."""
LEAVE_S = 2.0
"""Seconds after giving up until the process ends, whatever it waits for."""


def serve(
    open_scorer: OpenScorer,
    settings: ServiceSettings,
    listener: socket.socket,
    tell: MessageWriter,
    parts: Sequence[Callable[[Service], Part]],
    *,
    grace_s: float,
    advice: str,
) -> bool:
    """Serve until SIGTERM or SIGINT, finish what was accepted, and close the scorer.

    1. The first signal: nothing more is accepted, and what was accepted is finished.
    2. After ``grace_s`` seconds the rest is given up: its connections are closed, and with a folder
       the results so far are written; the next start scores the samples that lack a score.
    3. A second signal gives up at once, and writes no results.

    Args:
        open_scorer: opens the scorer.
        settings: tokens and limits.
        listener: the listening socket.
        tell: prints messages.
        parts: functions that build the optional parts for the service.
        grace_s: seconds after the first signal until unfinished work is given up.
        advice: what a user can do about work that was given up.

    Returns:
        Whether everything accepted was finished.
    """
    meter = ServiceMetrics()
    most = _allow_connections(settings.connections)
    if most < settings.connections:
        tell(
            f"--connections {settings.connections:,}: this process may not open enough files, so "
            f"at most {amount(most, 'connection')} are open at once"
        )

    async def run() -> bool:
        # The default handler would log the message of an error, which may quote a request.
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: tell(_describe_error(context))
        )
        sys.setswitchinterval(SWITCH_S)
        # Around the scorer, so that a second signal also ends the writing of results.
        with ExitStack() as signals:
            async with AsyncExitStack() as opened:
                async with _answer_loading(listener):
                    scorer = await opened.enter_async_context(open_scorer)
                    await scorer.warm_up()
                service = Service(scorer, settings, meter.note)
                every = [scoring_part(service), meter.part(service), *(p(service) for p in parts)]
                app = create_app(service, settings, every, tell, meter.count)
                server = _Server(_make_config(app, settings, most))
                first = signals.enter_context(_handle_signals(service, tell, advice))
                serving = _serve_and_drain(server, listener, service, every, first, tell)
                return await _finish_within(grace_s, serving, first, server, scorer, tell, advice)

    try:
        return run_anywhere(run)
    # by a second signal
    except asyncio.CancelledError:
        return False


@asynccontextmanager
async def _answer_loading(listener: socket.socket) -> AsyncIterator[None]:
    """Answer every request within the block that the service is not ready."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Nobody waits for these connections: what goes wrong with one concerns its client alone.
        with suppress(
            OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError
        ):
            async with asyncio.timeout(LOADING_REQUEST_S):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(LOADING_REPLY)
                await writer.drain()
        writer.close()

    # A copy of the socket, since the end of this server closes it.
    server = await asyncio.start_server(answer, sock=listener.dup())
    try:
        yield
    finally:
        server.close()


@contextmanager
def _handle_signals(service: Service, tell: MessageWriter, advice: str) -> Iterator[asyncio.Event]:
    """Close the service at the first signal, which sets the event; a second one ends this task."""
    loop, main, first = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
    assert main

    def note_signal() -> None:
        if not first.is_set():
            service.close()
            remaining = amount(service.scorer.in_progress, "sample")
            tell(f"closing; {remaining} in progress (a second signal cancels them)")
            first.set()
        # A third signal must not interrupt the cleaning up after the second one.
        elif not main.cancelling():
            tell(f"interrupted; {advice}")
            _leave_within(LEAVE_S)
            main.cancel()

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, note_signal)
    try:
        yield first
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def _serve_and_drain(
    server: "_Server",
    listener: socket.socket,
    service: Service,
    parts: Sequence[Part],
    first: asyncio.Event,
    tell: MessageWriter,
) -> None:
    """Serve until the first signal, and until all that was accepted is finished and answered."""

    async def end() -> None:
        await first.wait()
        # Connections stay open until all replies are written; only then the server stops. It closes
        # idle connections, and waits for chats that are passed on.
        await service.drain()
        server.should_exit = True

    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part.running())
        host, port = listener.getsockname()[:2]
        host_text = f"[{host}]" if ":" in host else host
        waiting = service.scorer.in_progress
        message = f"; scoring {amount(waiting, 'sample')} accepted before" if waiting else ""
        tell(f"listening at http://{host_text}:{port}{message}; press Ctrl-C to stop")
        async with run_beside(end()):
            await server.serve(sockets=[listener])


async def _finish_within(
    grace_s: float,
    serving: Coroutine[Any, Any, None],
    first: asyncio.Event,
    server: "_Server",
    scorer: Scorer,
    tell: MessageWriter,
    advice: str,
) -> bool:
    """Run ``serving`` to its end, or give it up ``grace_s`` seconds after the first signal.

    Returns:
        Whether it came to its end.

    Raises:
        asyncio.CancelledError: there was a second signal; it was given up without results.
    """
    working, closing = asyncio.create_task(serving), asyncio.create_task(first.wait())
    try:
        await asyncio.wait((working, closing), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((working,), timeout=grace_s)
        if working.done():
            working.result()
            return True
        samples, requests = scorer.in_progress, len(server.server_state.tasks)
        lost = f"{amount(samples, 'sample')} and {amount(requests, 'request')} in progress"
        tell(f"stopped {grace_s:g} s after the signal (--grace) with {lost}; {advice}")
    finally:
        closing.cancel()
        if not working.done():
            # First the samples, so that those who wait for them are answered that they were given
            # up.
            await scorer.abandon()
            await server.cut()
            working.cancel()
            await asyncio.wait((working,), timeout=LEAVE_S)
    # Before the scorer is closed: that waits for the batch of a local model, maybe for very long.
    await scorer.write_results()
    _leave_within(LEAVE_S)
    return False


def _leave_within(seconds: float) -> None:
    """End the process after some seconds, whatever it waits for.

    A thread in which a model works cannot be cancelled. All that was accepted is on disk by then.
    """

    def leave() -> None:
        sys.stderr.flush()
        os._exit(INTERRUPTED)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to :func:`_handle_signals`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: uvicorn would stop at the first signal, before the samples are finished."""
        yield

    async def cut(self) -> None:
        """Close all connections, also those whose replies are not complete."""
        # It has none before its startup is complete.
        for accepting in getattr(self, "servers", ()):
            accepting.close()
        # Requests that were just told that their samples are given up still write their replies.
        if tasks := [*self.server_state.tasks]:
            await asyncio.wait(tasks, timeout=REPLY_WITHIN_S)
        for connection in [*self.server_state.connections]:
            assert isinstance(connection, BoundedProtocol)
            connection.cut()
        for task in tasks:
            task.cancel()


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

    def cut(self) -> None:
        """Close the connection now; a reply that has begun stays without its end."""
        if self.cycle and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()
            return
        if self.cycle and not self.cycle.response_started:
            self.transport.write(FULL_REPLY)
        self.transport.close()

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
    return f"an error in the service: {type(error).__name__ if error else 'in the event loop'}"
