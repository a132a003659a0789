"""Scores as OpenTelemetry's evaluation events, in OTLP's JSON, to a file or to a collector.

Each score is one log record ``gen_ai.evaluation.result`` at the span that wrote the answer.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

from trustassay.backends.http import EndpointAddress, check_base
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.core.files import Appender, DiskFullError
from trustassay.core.sample import Sample
from trustassay.core.tracebacks import hide_key
from trustassay.errors import CallError, CallFault, UsageError
from trustassay.live.scorer import EVALUATION_EVENT, Assay, build_event_attributes
from trustassay.live.service import run_beside
from trustassay.live.trace_stores import SecretHttp
from trustassay.live.waiting import WAITING_EVENTS, WaitingJournal, encode_line
from trustassay.report.serving import MessageWriter
from trustassay.text.numbers import amount

HEADERS = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""Environment variables with headers for a collector, as ``name=value`` separated by commas; the
first that is set counts."""
AT_A_TIME = 100
"""The most events of one request."""
EVENTS_WAIT_S, EVENTS_ON_DISK_WAIT_S = 10.0, 0.5
"""Seconds that the end of the service waits for events that are not sent."""
MAX_WAITING_BYTES = 64 * 1024**2
"""The most bytes of events that wait on disk; later ones are lost."""
POST_AGAIN_S = 30.0
"""Seconds until a collector is tried again that was given up."""
LOST_FAULTS: tuple[CallFault, ...] = ("refused", "oversized")
"""Faults of a collector that will never take these events."""
INFO = 9
"""The severity number of INFO in OTLP."""
Record = dict[str, Any]


def build_log_records(assay: Assay, *, explanations: bool) -> list[Record]:
    """Return a log record for each score; a failed one has the attribute ``error.type``.

    Args:
        assay: the scores of one sample.
        explanations: include the reasons of the scores, which may quote the answer.
    """
    sample, now = assay.sample, str(time.time_ns())
    result = []
    for assessment in assay.assessments.values():
        values_by_name = build_event_attributes(sample, assessment, explanations=explanations)
        attributes = [
            {"key": key, "value": _to_otlp_value(value)} for key, value in values_by_name.items()
        ]
        # one time for all scores of a sample, so that they can be found together
        record: Record = {"timeUnixNano": now, "observedTimeUnixNano": now, "severityNumber": INFO}
        result.append(
            {**record, "eventName": EVALUATION_EVENT, "attributes": attributes, **_span_ids(sample)}
        )
    return result


def _span_ids(sample: Sample) -> Mapping[str, str]:
    """Return the ids of the trace and the span of a sample; empty if it is not of a trace."""
    span = sample.metadata.get("root_span")
    return {"traceId": sample.id, "spanId": span} if isinstance(span, str) and span else {}


def _to_otlp_value(value: Any) -> dict[str, Any]:
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def build_message(records: Sequence[Record]) -> dict[str, Any]:
    """Return the OTLP request that exports log records."""
    name = {"key": "service.name", "value": {"stringValue": "trustassay"}}
    scope = {"name": "trustassay", "version": version("trustassay")}
    logs = [{"scope": scope, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": [name]}, "scopeLogs": logs}]}


class EventFile:
    """A file of OTLP messages in JSON, one per line, as collectors read it (``otlpjsonfile``)."""

    pending = 0
    """Events that are not written: always 0, as a file takes them at once."""

    def __init__(self, path: Path, tell: MessageWriter) -> None:
        """Open the file; OSError if that fails."""
        self._tell, self._has_failed = tell, False
        self._file = Appender(path, private=False)

    def send(self, records: Sequence[Record]) -> None:
        """Write log records; a file that cannot be written loses events, but never a score."""
        try:
            self._file.append(json.dumps(build_message(records)).encode() + b"\n")
        except OSError as error:
            # Said once: the disk may be full for hours.
            if not self._has_failed:
                self._has_failed = True
                self._tell(f"events are lost: {error.filename}: {error.strerror}")

    async def flush(self) -> None:
        """Do nothing: the file has all events."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the file at the end of the block."""
        try:
            yield
        finally:
            self._file.close()


class _WaitingEvent(NamedTuple):
    """A log record that is not sent."""

    record: Record
    key: str
    """The key of all events that came together, in the file that keeps them; empty without one."""
    is_last: bool
    """Whether it is the last one of its key."""


class EventSender:
    """Posts log records to a collector in the background, with retries.

    With a run's folder, they are kept in a file there until the collector has taken them, also over
    the end of the process. An event may then arrive twice, but none is lost.
    """

    limits = EndpointLimits(concurrency=1, patience_s=120.0, timeout_s=30.0)

    def __init__(self, url: str, tell: MessageWriter, out: Path | None = None) -> None:
        """Check the address and read the headers; BackendError or UsageError if they are wrong."""
        headers = _read_headers()
        base = check_base(url, "--events")
        address = EndpointAddress("otlp", "logs", base, self.limits, "", {}, {})
        # Replacing very short values, such as "1", would garble every message.
        secrets = [value for value in headers.values() if len(value) > 3]
        self._http = SecretHttp(address, "").with_secrets(_find_headers_variable(), secrets)
        self._http.with_headers(**headers)
        self._tell, self._queue = tell, asyncio.Queue[_WaitingEvent]()
        self._out = out
        self._journal: WaitingJournal | None = None
        self.pending, self.lost = 0, 0
        """Events that are in memory alone and not sent, and those that are lost."""
        self._kept = 0
        self._has_reported = False

    def send(self, records: Sequence[Record]) -> None:
        """Queue log records for sending; with a folder they are on disk then."""
        key = ""
        if self._journal:
            key = uuid4().hex
            lines = [(key, encode_line(key, record)) for record in records]
            try:
                if self._journal.size > MAX_WAITING_BYTES:
                    limit = f"{MAX_WAITING_BYTES // 1024**2} MiB of events already wait"
                    self._lose(len(records), f"{limit} in {self._journal.path}")
                    return
                self._journal.add(lines)
            except DiskFullError:
                # They are still sent, unless the process is killed.
                key = ""
        self._enqueue(key, records)

    def _enqueue(self, key: str, records: Sequence[Record]) -> None:
        for number, record in enumerate(records, 1):
            self._queue.put_nowait(_WaitingEvent(record, key, is_last=number == len(records)))
            self._count(key, 1)

    def _count(self, key: str, events: int) -> None:
        if key:
            self._kept += events
        else:
            self.pending += events

    def _lose(self, events: int, reason: object) -> None:
        # said once; the end of the service prints the number of lost events
        if not self.lost:
            self._tell(f"events are lost: {reason}")
        self.lost += events

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send within the block, first what an earlier process kept."""
        endpoint = Endpoint(self.limits, name="--events", again_after_s=POST_AGAIN_S)
        if self._out:
            self._journal = WaitingJournal(self._out / WAITING_EVENTS)
            for key, records in self._journal.read().items():
                self._enqueue(key, records)
        try:
            async with run_beside(self._send(endpoint)):
                yield
        finally:
            await self._http.close()
            if lost := self.lost + self.pending:
                self._tell(f"{amount(lost, 'event')} could not be sent to --events")
            if self._journal:
                if self._kept:
                    waiting = f"{amount(self._kept, 'event')} not sent yet: {self._journal.path}"
                    self._tell(f"{waiting}; run the same command again to send them")
                self._journal.close()

    async def flush(self) -> None:
        """Wait for the events that are not sent; only shortly if all of them are on disk."""
        wait_s = EVENTS_WAIT_S if self.pending else EVENTS_ON_DISK_WAIT_S
        deadline = time.monotonic() + wait_s
        # Polled, not queue.join(): a collector that is down must not keep the service from ending.
        while (self.pending or self._kept) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    async def _send(self, endpoint: Endpoint) -> None:
        """Post queued records in batches, for ever."""
        while True:
            part = [await self._queue.get()]
            while len(part) < AT_A_TIME and not self._queue.empty():
                part.append(self._queue.get_nowait())
            while part := await self._post(endpoint, part):
                await asyncio.sleep(POST_AGAIN_S)

    async def _post(self, endpoint: Endpoint, part: list[_WaitingEvent]) -> list[_WaitingEvent]:
        """Post records once; return those that go on waiting."""
        body, waiting = build_message([event.record for event in part]), list[_WaitingEvent]()
        try:
            await endpoint.call(lambda: self._http.post("", body))
        except CallError as error:
            if error.kind not in LOST_FAULTS:
                # Only those on disk: the others would fill the memory.
                waiting = [event for event in part if event.key]
            if lost := len(part) - len(waiting):
                self._lose(lost, error)
            elif not self._has_reported:
                self._has_reported = True
                self._tell(f"events wait until the collector accepts them: {error}")
        for event in part:
            if waiting and event.key:
                continue
            # Lost or sent, it is no longer pending: a dead collector must not block new traces.
            self._count(event.key, -1)
            if event.is_last and event.key and self._journal:
                self._journal.drop(event.key)
        return waiting


Sink = EventFile | EventSender


def open_sink(target: str, tell: MessageWriter, out: Path | None = None) -> Sink:
    """Return where events go: to a collector if the target is an http address, else to a file.

    ``out`` is the run's folder, in which events wait for a collector.
    """
    # Any address, so that a mistyped https:// makes no file whose name has a secret.
    if "://" in target:
        return EventSender(target, tell, out)
    return EventFile(Path(target), tell)


def _find_headers_variable() -> str:
    """Return the variable with headers for a collector, or the usual one if none is set."""
    return next((name for name in HEADERS if os.environ.get(name)), HEADERS[-1])


def _read_headers() -> dict[str, str]:
    """Return the headers that the environment names for a collector.

    Raises:
        UsageError: they are malformed; the message shows no value.
    """
    variable = _find_headers_variable()
    result = {}
    for part in filter(None, os.environ.get(variable, "").split(",")):
        name, equals, value = part.partition("=")
        # Values are percent-encoded, as the specification of these variables says.
        text = unquote(value).strip()
        if not (equals and name.strip() and text.isascii() and text.isprintable()):
            raise UsageError(f"{variable}: expected NAME=VALUE; separate several with commas")
        # The values are mostly keys.
        hide_key(text)
        result[name.strip()] = text
    return result
