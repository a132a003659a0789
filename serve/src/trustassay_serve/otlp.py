"""Spans over HTTP, as OTLP sends them: each trace is scored when it is complete.

A trace is complete some seconds after its root came, since spans of one trace come in several
requests. Until then its spans are in memory. A request is taken as a whole or, where too much
waits, not at all: its sender tries again, as OTLP demands of exporters.
"""

import asyncio
import re
import time
import zlib
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trustassay.data.otlp import decoded
from trustassay.data.records import InputError
from trustassay.errors import install
from trustassay.sample import Sample, SampleError
from trustassay.text.limits import SHORT_PASSAGES, TextWork
from trustassay.text.words import amount
from trustassay.workflows.scorer import Assay
from trustassay_serve.app import Part
from trustassay_serve.evaluation_events import Sink, records_of
from trustassay_serve.requests import JSON, RequestError, parsed, reply
from trustassay_serve.service import BusyError, Service

PATH = "/v1/traces"
PROTOBUF = "application/x-protobuf"
ROOT_WITHIN_S = 600.0
"""A trace whose root did not come for so long is given up."""
REMEMBERED = 10_000
"""Traces that were scored, of which later spans are dropped."""
MOST_BYTES = 128 * 1024**2
"""Bytes of spans that wait."""
TICK_S = 0.1
TOLD = 20
"""Traces that cannot be scored that are told each."""
UNAVAILABLE = 14
"""The code of google.rpc.Status by which OTLP says: later."""
_IDS = {"traceId": re.compile("[0-9a-fA-F]{32}"), "spanId": re.compile("[0-9a-fA-F]{16}")}
Tell = Callable[[str], None]
Span = Mapping[str, Any]


@dataclass
class _Trace:
    """Spans that came, by their ids; when the first came, and when the root."""

    since: float
    spans: dict[str, Span] = field(default_factory=dict)
    size: int = 0
    rooted: float | None = None
    sample: Sample | None = None


class FullError(RuntimeError):
    """Too much waits; nothing of the request was taken (HTTP 503)."""


class Receiver:
    """Gathers spans by trace, and has each trace scored.

    Args:
        service: scores; its ``capacity`` bounds traces that wait, samples in progress, and events
            that are not sent, together.
        settle_s: so long after its root a trace is complete.
        sink: where events go, if anywhere. explanations: with the reasons of scores.
    """

    def __init__(
        self,
        service: Service,
        settle_s: float,
        sink: Sink | None = None,
        *,
        explanations: bool = False,
        tell: Tell = lambda words: None,  # noqa: ARG005
    ) -> None:
        self._service, self._settle_s, self._sink = service, settle_s, sink
        self._explanations, self._tell = explanations, tell
        self._waiting: OrderedDict[str, _Trace] = OrderedDict()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._bytes = 0
        self._tasks: set[asyncio.Task[Assay]] = set()
        self.outcomes: Counter[str] = Counter()

    def take(self, spans: Sequence[Span], size: int, now: float) -> None:
        """Take all spans of a request of so many bytes.

        Raises:
            FullError: there is no room; none was taken.
        """
        wanted = [one for one in spans if one["traceId"].lower() not in self._done]
        new = {one["traceId"].lower() for one in wanted} - self._waiting.keys()
        pending = self._sink.pending if self._sink else 0
        count = len(self._waiting) + self._service.scorer.in_progress + pending + len(new)
        if new and (count > self._service.settings.capacity or self._bytes + size > MOST_BYTES):
            raise FullError(
                "too many traces wait; send this again after the seconds of Retry-After"
            )
        each = size // max(len(spans), 1)
        for span in wanted:
            trace = self._waiting.setdefault(span["traceId"].lower(), _Trace(now))
            trace.spans[span["spanId"].lower()] = span
            trace.size += each
            self._bytes += each
            if not str(span.get("parentSpanId") or "").strip("0"):
                trace.rooted = now

    async def settle(self, now: float) -> None:
        """Begin to score the traces that are complete; give up those whose root did not come."""
        for known_as, trace in list(self._waiting.items()):
            if trace.rooted is None:
                if now - trace.since > ROOT_WITHIN_S:
                    self._drop(known_as)
                    self._refuse(known_as, "its root did not come")
            elif now - trace.rooted >= self._settle_s:
                try:
                    await self._begin(known_as, trace)
                except BusyError:
                    return  # other routes have all the room; it waits

    async def _begin(self, known_as: str, trace: _Trace, *, late: bool = False) -> None:
        if trace.sample is None:
            spans = [{"scopeSpans": [{"spans": list(trace.spans.values())}]}]
            try:
                trace.sample = await self._service.checked({"resourceSpans": spans})
            except SampleError as error:
                self._drop(known_as)
                fields = ", ".join(sorted({one.field for one in error.problems}))
                self._refuse(known_as, f"cannot be scored ({fields})")
                return
        [task] = self._service.begin([trace.sample], late=late)
        self._drop(known_as)
        if isinstance(task, SampleError):
            self._refuse(known_as, "came before with other content")
            return
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Assay]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.outcomes["given up"] += 1
            return
        assay = task.result()
        self.outcomes["failed" if assay.errors else "scored"] += 1
        if self._sink:
            self._sink.put(records_of(assay, explanations=self._explanations))

    def _drop(self, known_as: str) -> None:
        """Forget the spans of a trace, and that it came."""
        self._bytes -= self._waiting.pop(known_as).size
        self._done[known_as] = None
        if len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    def _refuse(self, known_as: str, why: str) -> None:
        self.outcomes["not scored"] += 1
        if self.outcomes["not scored"] <= TOLD:
            self._tell(f"trace {known_as}: {why}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Score complete traces within the block; its end scores those whose root is there."""

        async def watch() -> None:
            while True:
                await asyncio.sleep(TICK_S)
                await self.settle(time.monotonic())

        watching = asyncio.create_task(watch())
        try:
            yield
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._finish()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        told = ", ".join(f"{n:,} {outcome}" for outcome, n in self.outcomes.items())
        self._tell(f"traces: {told or 'none'}")

    async def _finish(self) -> None:
        for known_as, trace in list(self._waiting.items()):
            while trace.rooted is not None and known_as in self._waiting:
                try:
                    await self._begin(known_as, trace, late=True)
                except BusyError:
                    await asyncio.sleep(TICK_S)
        while self._tasks:
            await asyncio.wait(self._tasks)
        if left := len(self._waiting):
            self._tell(f"{amount(left, 'trace')} without a root given up")


def traces_part(service: Service, receiver: Receiver, sink: Sink | None) -> Part:
    """Return the route that takes spans."""

    async def traces(request: Request) -> Response:
        service.refuse_if_closing()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (JSON, PROTOBUF):
            raise RequestError(415, f"expected the header Content-Type: {JSON} or {PROTOBUF}")
        body = _unpacked(await request.body(), request, service.settings.largest_body)
        if kind == JSON:
            messages = [await parsed(body, "the body")]
        else:
            messages = await TextWork(long=len(body) > SHORT_PASSAGES)(_from_protobuf, body)
        spans, strange = _sound([span for one in messages for span in _spans_of(one)])
        try:
            receiver.take(spans, len(body), time.monotonic())
        except FullError as error:
            later = {"retry-after": str(service.wait_s(1))}
            return reply({"code": UNAVAILABLE, "message": str(error)}, 503, later)
        if kind == PROTOBUF:
            return Response(b"", media_type=PROTOBUF)
        words = "spans without the ids of OTLP: traceId of 32 and spanId of 16 hexadecimal digits"
        partial = {"rejectedSpans": str(strange), "errorMessage": words}
        return reply({"partialSuccess": partial} if strange else {})

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        if sink is None:
            async with receiver.running():
                yield
        else:
            async with sink.running(), receiver.running():
                yield

    return Part([Route(PATH, traces, methods=["POST"])], running)


def _unpacked(body: bytes, request: Request, most: int) -> bytes:
    """Return a body without its compression, of ``most`` bytes or fewer.

    Raises:
        RequestError: it is packed otherwise (415), damaged (400), or larger (413).
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise RequestError(415, "expected the header Content-Encoding: gzip, or none")
    unpacker = zlib.decompressobj(31)
    try:
        result = unpacker.decompress(body, most + 1)
    except zlib.error:
        raise RequestError(400, "the body is not gzip") from None
    if len(result) > most:
        raise RequestError(413, f"the body has more than {most:,} bytes; send fewer spans at once")
    if not unpacker.eof:
        raise RequestError(400, "the body is not gzip: it ends too early")
    return result


def _from_protobuf(body: bytes) -> list[dict[str, Any]]:
    """Return a request as the objects that its JSON has; an empty one holds nothing.

    Raises:
        RequestError: it is none (400), or the package that reads it is missing (415).
    """
    if not body:
        return []
    try:
        import opentelemetry.proto  # noqa: F401 - what reads it may not be installed
    except ImportError:
        told = f"expected the header Content-Type: {JSON}; for protobuf: {install('opentelemetry')}"
        raise RequestError(415, told) from None
    try:
        return decoded(body, "the body")
    except InputError as error:
        raise RequestError(400, str(error)) from None


def _spans_of(message: Any) -> Iterator[Any]:
    """Yield the spans of a request.

    Raises:
        RequestError: it is none (400).
    """

    def listed(holder: Any, name: str) -> list[Any]:
        value = holder.get(name, []) if isinstance(holder, dict) else None
        if not isinstance(value, list):
            raise RequestError(400, f"{name}: expected a list in an object")
        return value

    if not isinstance(message, dict) or "resourceSpans" not in message:
        raise RequestError(400, "the body: expected an object with resourceSpans")
    for resource in listed(message, "resourceSpans"):
        for scope in listed(resource, "scopeSpans"):
            yield from listed(scope, "spans")


def _sound(spans: Sequence[Any]) -> tuple[list[Span], int]:
    """Return the spans that have ids, and how many have none."""

    def has_ids(span: Any) -> bool:
        ids = [(span.get(name), form) for name, form in _IDS.items()]
        return all(isinstance(one, str) and form.fullmatch(one) for one, form in ids)

    result: list[Span] = [one for one in spans if isinstance(one, dict) and has_ids(one)]
    return result, len(spans) - len(result)
