"""Scores as OpenTelemetry's events of evaluations, in OTLP's JSON: to a file, or to a collector.

One log record ``gen_ai.evaluation.result`` a score, at the span that wrote the answer.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from trustassay.backends.http import Address, checked_base
from trustassay.calls.retry import Endpoint
from trustassay.capabilities import EndpointLimits
from trustassay.errors import CallError, UsageError
from trustassay.files import Appender, DiskFullError
from trustassay.sample import Sample
from trustassay.tracebacks import hide
from trustassay.workflows.scorer import EVENT, Assay, event_attributes
from trustassay_serve.trace_stores import SecretHttp

HEADERS = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""Variables with headers for a collector, ``name=value`` with commas between."""
AT_A_TIME = 100
"""Events of one request."""
ENDS_WITHIN_S = 30.0
INFO = 9
"""The number of the severity."""
Tell = Callable[[str], None]
Record = dict[str, Any]


def records_of(assay: Assay, *, explanations: bool) -> list[Record]:
    """Return the log record of each score; of one that failed ``error.type`` tells how."""
    sample, now = assay.sample, str(time.time_ns())
    result = []
    for found in assay.assessments.values():
        told = event_attributes(sample, found, explanations=explanations)
        attributes = [{"key": key, "value": _value(value)} for key, value in told.items()]
        record: Record = {"timeUnixNano": now, "observedTimeUnixNano": now, "severityNumber": INFO}
        result.append({**record, "eventName": EVENT, "attributes": attributes, **_place(sample)})
    return result


def _place(sample: Sample) -> Mapping[str, str]:
    """Return the trace and the span of a sample of a trace, nothing for another."""
    span = sample.metadata.get("root_span")
    return {"traceId": sample.id, "spanId": span} if isinstance(span, str) and span else {}


def _value(value: Any) -> dict[str, Any]:
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": str(value)}


def message_of(records: Sequence[Record]) -> dict[str, Any]:
    """Return log records as a request to export them."""
    name = {"key": "service.name", "value": {"stringValue": "trustassay"}}
    scope = {"name": "trustassay", "version": version("trustassay")}
    logs = [{"scope": scope, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": [name]}, "scopeLogs": logs}]}


class EventFile:
    """A file of OTLP in JSON, a message a line, as collectors read it (``otlpjsonfile``)."""

    pending = 0
    """Events that are not written."""

    def __init__(self, path: Path, tell: Tell) -> None:
        """Raises OSError where the file cannot be opened."""
        self._tell, self._has_failed = tell, False
        self._file = Appender(path)

    def put(self, records: Sequence[Record]) -> None:
        """Write log records; a full disk costs events, and never a score."""
        try:
            self._file.append(json.dumps(message_of(records)).encode() + b"\n")
        except DiskFullError as error:
            if not self._has_failed:
                self._has_failed = True
                self._tell(f"events are lost: {error}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the file open."""
        try:
            yield
        finally:
            self._file.close()


class EventSender:
    """Posts log records to a collector in the background; what it does not take is tried again."""

    limits = EndpointLimits(concurrency=1, patience_s=120.0, timeout_s=30.0)

    def __init__(self, url: str, tell: Tell) -> None:
        """Raises BackendError where the address is none, UsageError for wrong headers."""
        headers = _headers()
        address = Address("otlp", "logs", checked_base(url), self.limits, "", {}, {})
        self._http = SecretHttp(address, "").with_headers(**headers)
        assert isinstance(self._http, SecretHttp)
        self._http.secrets = [one for one in headers.values() if len(one) > 3]
        self._tell, self._queue = tell, asyncio.Queue[Record]()
        self.pending, self.lost = 0, 0

    def put(self, records: Sequence[Record]) -> None:
        """Send log records when it is their turn."""
        self.pending += len(records)
        for one in records:
            self._queue.put_nowait(one)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send within the block; its end waits for what is left, and not for long."""
        endpoint = Endpoint(self.limits, name="--events", again_after_s=30.0)
        sending = asyncio.create_task(self._send(endpoint))
        try:
            yield
            deadline = time.monotonic() + ENDS_WITHIN_S
            while self.pending and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await self._http.close()
            if lost := self.lost + self.pending:
                self._tell(f"events that --events did not take: {lost:,}")

    async def _send(self, endpoint: Endpoint) -> None:
        while True:
            part = [await self._queue.get()]
            while len(part) < AT_A_TIME and not self._queue.empty():
                part.append(self._queue.get_nowait())
            body = message_of(part)
            try:
                await endpoint.call(lambda body=body: self._http.post("", body))  # type: ignore[misc]
            except CallError as error:
                if not self.lost:
                    self._tell(f"events are lost: {error}")
                self.lost += len(part)
            self.pending -= len(part)


Sink = EventFile | EventSender


def sink_of(target: str, tell: Tell) -> Sink:
    """Return where events go: an address that begins with http, or else a file."""
    if target.startswith(("http://", "https://")):
        return EventSender(target, tell)
    return EventFile(Path(target), tell)


def _headers() -> dict[str, str]:
    """Return the headers that the environment names for a collector.

    Raises:
        UsageError: they cannot be read; the message shows no value.
    """
    named = next((name for name in HEADERS if os.environ.get(name)), "")
    result = {}
    for part in filter(None, os.environ.get(named, "").split(",")):
        name, equals, value = part.partition("=")
        text = unquote(value).strip()
        if not (equals and name.strip() and text.isascii() and text.isprintable()):
            raise UsageError(f"{named}: expected NAME=VALUE, with commas between several")
        hide(text)
        result[name.strip()] = text
    return result
