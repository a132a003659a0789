"""Receiving spans over HTTP, as OTLP sends them; each trace is scored when it is complete.

A trace counts as complete some seconds after its root has arrived, because the spans of a trace may
come in several requests. Until then its spans are in memory, and with a run's folder also in a file
there, which the next start reads. A request is accepted completely or, if too much is waiting, not
at all: its sender then tries again, as OTLP demands of exporters.
"""

import asyncio
import re
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.core.fair_queue import CURRENT_FLOW, FairQueue, Flow, in_flow
from trustassay.core.files import DiskFullError
from trustassay.core.sample import Sample, SampleError
from trustassay.errors import install_command
from trustassay.input.otlp import decode_messages
from trustassay.input.records import InputError
from trustassay.live.app import Part
from trustassay.live.evaluation_events import Sink, build_log_records
from trustassay.live.requests import JSON, RequestError, parse_json_in_thread, reply
from trustassay.live.scorer import Assay
from trustassay.live.service import BusyError, Service, choose_work_for, run_beside
from trustassay.live.waiting import WAITING_SPANS, WaitingJournal, encode_line
from trustassay.report.serving import MessageWriter
from trustassay.text.numbers import amount

PATH = "/v1/traces"
PROTOBUF = "application/x-protobuf"
ROOT_WITHIN_S = 600.0
"""Seconds after which a trace without a root is given up."""
MAX_REMEMBERED_TRACES = 10_000
"""Finished traces that are remembered, to drop their late spans."""
MAX_WAITING_BYTES = 128 * 1024**2
"""The most bytes of spans that wait."""
SETTLE_EVERY_S = 0.1
"""Seconds between two looks for complete traces."""
TRACES_AT_A_LOOK = 50
"""Complete traces that are begun at a look, in turn of their senders."""
MAX_REFUSALS_LISTED = 20
"""The most traces that cannot be scored that are reported one by one."""
UNAVAILABLE = 14
"""The code of google.rpc.Status that tells an exporter to try again later."""
_IDS = {"traceId": re.compile("[0-9a-fA-F]{32}"), "spanId": re.compile("[0-9a-fA-F]{16}")}
Span = Mapping[str, Any]


@dataclass
class _PendingTrace:
    """A trace that is not complete yet."""

    since: float
    """When its first span came, in seconds of the monotonic clock."""
    flow: Flow
    """The flow of the request with its first span."""
    spans: dict[str, Span] = field(default_factory=dict)
    """Its spans by their ids; a span that is sent again replaces the first one."""
    size: int = 0
    """About how many bytes its spans have."""
    root_time: float | None = None
    """When its root came; ``None`` before that."""
    sample: Sample | None = None
    """The sample of the complete trace, while it waits for room in the service."""


def _trace_id_of(span: Span) -> str:
    # in one spelling: exporters write hexadecimal digits in either case
    return str(span["traceId"]).lower()


class TooManyTracesError(RuntimeError):
    """Too much is waiting; nothing of the request was accepted (HTTP 503)."""


class TraceReceiver:
    """Collects spans by trace, and has each complete trace scored.

    Args:
        service: scores the traces; its ``capacity`` bounds waiting traces, samples in progress and
            unsent events together, and its ``share`` the waiting traces of one sender.
        settle_s: seconds after the root until a trace is complete.
        sink: where events go, if anywhere.
        explanations: whether events have the reasons of the scores.
        out: the run's folder, in which spans are kept until their trace has its scores.
        tell: prints messages.
    """

    def __init__(
        self,
        service: Service,
        settle_s: float,
        sink: Sink | None = None,
        *,
        explanations: bool = False,
        out: Path | None = None,
        tell: MessageWriter = lambda words: None,  # noqa: ARG005
    ) -> None:
        self._service, self._settle_s, self._sink = service, settle_s, sink
        self._explanations, self._out, self._tell = explanations, out, tell
        self._journal: WaitingJournal | None = None
        self._waiting: OrderedDict[str, _PendingTrace] = OrderedDict()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._bytes = 0
        self._traces_by_caller: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[Assay]] = set()
        self.outcomes: Counter[str] = Counter()

    def encode(self, spans: Sequence[Span]) -> list[bytes]:
        """Return the lines of spans for the file in which they are kept; none without a file."""
        if self._journal is None:
            return []
        return [encode_line(_trace_id_of(span), span) for span in spans]

    def take(
        self, spans: Sequence[Span], size: int, now: float, lines: Sequence[bytes] = ()
    ) -> None:
        """Accept all spans of a request; with a folder they are on disk then.

        Args:
            spans: the spans.
            size: the bytes of the request.
            now: seconds of the monotonic clock.
            lines: what :meth:`encode` returned for them.

        Raises:
            TooManyTracesError, DiskFullError: there is no room; no span was accepted.
        """
        wanted = [span for span in spans if _trace_id_of(span) not in self._done]
        new = {_trace_id_of(span) for span in wanted} - self._waiting.keys()
        pending = self._sink.pending if self._sink else 0
        count = len(self._waiting) + self._service.samples_in_progress + pending + len(new)
        # Spans of a trace that is waiting are always accepted: without them it could not complete.
        waiting_bytes = max(self._bytes, self._journal.size if self._journal else 0)
        settings, flow = self._service.settings, CURRENT_FLOW.get()
        if new and (
            self._traces_by_caller[flow.caller] + len(new) > settings.share
            or count > settings.capacity
            or waiting_bytes + size > MAX_WAITING_BYTES
        ):
            raise TooManyTracesError(
                "too many traces wait; send this request again after the seconds in Retry-After"
            )
        if self._journal and wanted:
            keyed = [(_trace_id_of(s), line) for s, line in zip(spans, lines, strict=True)]
            # First on disk, then in memory: a full disk raises here, and nothing was accepted.
            self._journal.add([(key, line) for key, line in keyed if key not in self._done])
        # an equal share per span is near enough for a limit
        each = size // max(len(spans), 1)
        for span in wanted:
            self._add(span, each, now)

    def _add(self, span: Span, size: int, now: float) -> None:
        trace_id = _trace_id_of(span)
        if trace_id not in self._waiting:
            flow = CURRENT_FLOW.get()
            self._waiting[trace_id] = _PendingTrace(now, flow)
            self._traces_by_caller[flow.caller] += 1
        trace = self._waiting[trace_id]
        trace.spans[span["spanId"].lower()] = span
        trace.size += size
        self._bytes += size
        # A root has no parent; some exporters write a parent of zeros.
        if not str(span.get("parentSpanId") or "").strip("0"):
            trace.root_time = now

    async def settle(self, now: float) -> None:
        """Begin to score the complete traces; give up those whose root did not come in time.

        While the service closes, every trace with a root is complete: no more spans are accepted.
        """
        late = self._service.closing
        complete: FairQueue[str] = FairQueue()
        for trace_id, trace in list(self._waiting.items()):
            if trace.root_time is None:
                if now - trace.since > ROOT_WITHIN_S:
                    self._refuse(trace_id, "the root span did not arrive")
            elif late or now - trace.root_time >= self._settle_s:
                # One flow a sender: the spans of each request would be a flow of their own.
                complete.push(trace_id, max(trace.size, 1), Flow(trace.flow.caller))
        for _ in range(min(len(complete), TRACES_AT_A_LOOK)):
            trace_id = complete.pop()
            # While its sender or all have no room, it waits; another sender may have room.
            with suppress(BusyError):
                await self._begin(trace_id, self._waiting[trace_id], late=late)

    async def _begin(self, trace_id: str, trace: _PendingTrace, *, late: bool = False) -> None:
        """Begin to score a complete trace; BusyError if there is no room, and then it waits."""
        with in_flow(trace.flow):
            await self._begin_in_flow(trace_id, trace, late=late)

    async def _begin_in_flow(self, trace_id: str, trace: _PendingTrace, *, late: bool) -> None:
        if trace.sample is None:
            spans = [{"scopeSpans": [{"spans": list(trace.spans.values())}]}]
            try:
                trace.sample = await self._service.check({"resourceSpans": spans})
            except SampleError as error:
                # only the names of fields: messages may quote what the spans say
                fields = ", ".join(sorted({problem.field for problem in error.problems}))
                self._refuse(trace_id, f"cannot be scored ({fields})")
                return
        # Only after this has accepted the sample are the spans forgotten.
        [task] = self._service.begin([trace.sample], late=late)
        if isinstance(task, SampleError):
            self._refuse(trace_id, "a trace with this id and other content came before")
            return
        self._drop(trace_id)
        self._tasks.add(task)
        task.add_done_callback(partial(self._note_end, trace_id))

    def _note_end(self, trace_id: str, task: asyncio.Task[Assay]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.outcomes["given up"] += 1
            return
        assay = task.result()
        self.outcomes["failed" if assay.errors else "scored"] += 1
        if self._sink:
            self._sink.send(build_log_records(assay, explanations=self._explanations))
        # Only now, and not when the sample was accepted: after a kill in between, the next start
        # scores the trace again, from stored calls, and sends its events, which may be lost.
        if self._journal:
            self._journal.drop(trace_id)

    def _drop(self, trace_id: str) -> None:
        """Forget the spans of a trace in memory, and remember its id."""
        trace = self._waiting.pop(trace_id)
        self._bytes -= trace.size
        self._traces_by_caller[trace.flow.caller] -= 1
        if not self._traces_by_caller[trace.flow.caller]:
            del self._traces_by_caller[trace.flow.caller]
        self._done[trace_id] = None
        if len(self._done) > MAX_REMEMBERED_TRACES:
            self._done.popitem(last=False)

    def _refuse(self, trace_id: str, reason: str) -> None:
        """Forget a trace that cannot be scored."""
        self._drop(trace_id)
        if self._journal:
            self._journal.drop(trace_id)
        self.outcomes["not scored"] += 1
        if self.outcomes["not scored"] <= MAX_REFUSALS_LISTED:
            self._tell(f"trace {trace_id}: {reason}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Score complete traces within the block; its end scores those whose root has come."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(SETTLE_EVERY_S)
                await self.settle(time.monotonic())

        if self._out:
            self._journal = WaitingJournal(self._out / WAITING_SPANS)
            self._restore(self._journal)
        else:
            self._tell("without --out, waiting traces are lost if the process is killed")
        try:
            async with run_beside(watch()):
                yield
            await self._finish()
        # also when the end is cut short
        finally:
            self._tell_counts()
            if self._journal:
                self._journal.close()

    def _restore(self, journal: WaitingJournal) -> None:
        """Take up the spans that an earlier process kept."""
        now = time.monotonic()
        for spans in journal.read().values():
            for span in spans:
                self._add(span, len(encode_line("", span)), now)
        if count := len(self._waiting):
            self._tell(f"continuing with {amount(count, 'trace')} from {journal.path}")

    async def _finish(self) -> None:
        """Score all traces with a root, and wait for their results."""
        for trace_id, trace in list(self._waiting.items()):
            # Other routes may have all the room, so it is tried until this trace has begun.
            while trace.root_time is not None and trace_id in self._waiting:
                try:
                    await self._begin(trace_id, trace, late=True)
                except BusyError:
                    await asyncio.sleep(SETTLE_EVERY_S)
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _tell_counts(self) -> None:
        unfinished = "given up"
        if self._journal:
            unfinished = f"kept in {self._journal.path} for the next start"
        with_root = sum(trace.root_time is not None for trace in self._waiting.values())
        without_root = len(self._waiting) - with_root
        if with_root:
            self._tell(f"{amount(with_root, 'trace')} in progress: {unfinished}")
        if without_root:
            self._tell(f"{amount(without_root, 'trace')} without a root span: {unfinished}")
        counts = ", ".join(f"{n:,} {outcome}" for outcome, n in self.outcomes.items())
        self._tell(f"traces: {counts or 'none'}")


def traces_part(service: Service, receiver: TraceReceiver, sink: Sink | None) -> Part:
    """Return the route that accepts spans; receiver and sink run while the application serves."""

    async def traces(request: Request) -> Response:
        service.refuse_if_closing()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (JSON, PROTOBUF):
            raise RequestError(415, f"expected the header Content-Type: {JSON} or {PROTOBUF}")
        body = _unpack(await request.body(), request, service.settings.largest_body)
        if kind == JSON:
            messages = [await parse_json_in_thread(body, "the body")]
        else:
            messages = await choose_work_for(len(body))(_from_protobuf, body)
        spans, rejected = _split_valid(
            [span for message in messages for span in _spans_of(message)]
        )
        try:
            lines = await choose_work_for(len(body))(receiver.encode, spans)
            receiver.take(spans, len(body), time.monotonic(), lines)
        except (TooManyTracesError, DiskFullError) as error:
            later = {"retry-after": str(service.estimate_wait_s(1))}
            is_full = isinstance(error, DiskFullError)
            # The error of a disk names a path of this machine.
            message = "the disk is full; send this request again later" if is_full else str(error)
            return reply({"code": UNAVAILABLE, "message": message}, 503, later)
        if kind == PROTOBUF:
            return Response(b"", media_type=PROTOBUF)
        text = "expected a traceId of 32 and a spanId of 16 hexadecimal digits in each span"
        # OTLP accepts the rest of a request in which some spans are malformed.
        partial = {"rejectedSpans": str(rejected), "errorMessage": text}
        return reply({"partialSuccess": partial} if rejected else {})

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        if sink is None:
            async with receiver.running():
                yield
        else:
            # The sink is opened first, so that it is closed after the receiver's last scores.
            async with sink.running():
                async with receiver.running():
                    yield
                await sink.flush()

    return Part([Route(PATH, traces, methods=["POST"])], running)


def _unpack(body: bytes, request: Request, most: int) -> bytes:
    """Decompress a body of at most ``most`` bytes.

    Raises:
        RequestError: its encoding is unknown (415), it is damaged (400), or it is larger (413).
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise RequestError(415, "expected the header Content-Encoding: gzip, or none")
    # 31: a gzip header is expected, with the largest window
    unpacker = zlib.decompressobj(31)
    try:
        # Bounded: a small body may decompress to more than the memory holds.
        result = unpacker.decompress(body, most + 1)
    except zlib.error:
        raise RequestError(400, "the body is not gzip") from None
    if len(result) > most:
        raise RequestError(413, f"the body has more than {most:,} bytes; send fewer spans at once")
    if not unpacker.eof:
        raise RequestError(400, "the body is not complete gzip data: it ends too early")
    return result


def _from_protobuf(body: bytes) -> list[dict[str, Any]]:
    """Decode a protobuf request to the objects that its JSON form has; an empty body has none.

    Raises:
        RequestError: it is malformed (400), or the package that reads protobuf is missing (415).
    """
    # An empty protobuf message has no bytes at all.
    if not body:
        return []
    try:
        import opentelemetry.proto  # noqa: F401 - what reads it may not be installed
    except ImportError:
        install = install_command("opentelemetry")
        message = f"expected the header Content-Type: {JSON}; to accept protobuf: {install}"
        raise RequestError(415, message) from None
    try:
        return decode_messages(body, "the body")
    except InputError as error:
        raise RequestError(400, str(error)) from None


def _spans_of(message: Any) -> Iterator[Any]:
    """Yield the spans of a request.

    Raises:
        RequestError: the request is malformed (400).
    """

    def read_list(holder: Any, name: str) -> list[Any]:
        value = holder.get(name, []) if isinstance(holder, dict) else None
        if not isinstance(value, list):
            raise RequestError(400, f"{name}: expected a list")
        return value

    # A misspelt field would otherwise be accepted as a request without spans.
    if not isinstance(message, dict) or "resourceSpans" not in message:
        raise RequestError(400, "the body: expected an object with resourceSpans")
    for resource in read_list(message, "resourceSpans"):
        for scope in read_list(resource, "scopeSpans"):
            yield from read_list(scope, "spans")


def _split_valid(spans: Sequence[Any]) -> tuple[list[Span], int]:
    """Return the spans with valid ids, and the number of the others."""

    def has_ids(span: Any) -> bool:
        # OTLP's JSON writes ids in hexadecimal, unlike protobuf's own JSON (base64).
        ids = [(span.get(name), form) for name, form in _IDS.items()]
        return all(
            isinstance(candidate, str) and form.fullmatch(candidate) for candidate, form in ids
        )

    result: list[Span] = [
        candidate for candidate in spans if isinstance(candidate, dict) and has_ids(candidate)
    ]
    return result, len(spans) - len(result)
