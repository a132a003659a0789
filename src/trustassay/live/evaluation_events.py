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
from typing import Any
from urllib.parse import unquote

from trustassay.backends.http import EndpointAddress, check_base
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import EndpointLimits
from trustassay.core.files import Appender
from trustassay.core.sample import Sample
from trustassay.core.tracebacks import hide_key
from trustassay.errors import CallError, UsageError
from trustassay.live.scorer import EVALUATION_EVENT, Assay, build_event_attributes
from trustassay.live.service import run_beside
from trustassay.live.trace_stores import SecretHttp
from trustassay.report.serving import MessageWriter

HEADERS = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
"""Environment variables with headers for a collector, as ``name=value`` separated by commas; the
first that is set counts."""
AT_A_TIME = 100
"""The most events of one request."""
ENDS_WITHIN_S = 30.0
"""Seconds that the end of the service waits for events that are not sent."""
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
        self._file = Appender(path)

    def send(self, records: Sequence[Record]) -> None:
        """Write log records; a file that cannot be written loses events, but never a score."""
        try:
            self._file.append(json.dumps(build_message(records)).encode() + b"\n")
        except OSError as error:
            # Said once: the disk may be full for hours.
            if not self._has_failed:
                self._has_failed = True
                self._tell(f"events are lost: {error.filename}: {error.strerror}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the file at the end of the block."""
        try:
            yield
        finally:
            self._file.close()


class EventSender:
    """Posts log records to a collector in the background, with retries."""

    limits = EndpointLimits(concurrency=1, patience_s=120.0, timeout_s=30.0)

    def __init__(self, url: str, tell: MessageWriter) -> None:
        """Check the address and read the headers; BackendError or UsageError if they are wrong."""
        headers = _read_headers()
        base = check_base(url, "--events")
        address = EndpointAddress("otlp", "logs", base, self.limits, "", {}, {})
        # Replacing very short values, such as "1", would garble every message.
        secrets = [value for value in headers.values() if len(value) > 3]
        self._http = SecretHttp(address, "").with_secrets(_find_headers_variable(), secrets)
        self._http.with_headers(**headers)
        self._tell, self._queue = tell, asyncio.Queue[Record]()
        self.pending, self.lost = 0, 0

    def send(self, records: Sequence[Record]) -> None:
        """Queue log records for sending."""
        self.pending += len(records)
        for record in records:
            self._queue.put_nowait(record)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send within the block; its end waits :data:`ENDS_WITHIN_S` for what is still queued."""
        endpoint = Endpoint(self.limits, name="--events", again_after_s=30.0)
        try:
            async with run_beside(self._send(endpoint)):
                yield
                deadline = time.monotonic() + ENDS_WITHIN_S
                # Not queue.join(): a collector that is down must not keep the service from ending.
                while self.pending and time.monotonic() < deadline:
                    await asyncio.sleep(0.02)
        finally:
            await self._http.close()
            if lost := self.lost + self.pending:
                self._tell(f"events that --events did not take: {lost:,}")

    async def _send(self, endpoint: Endpoint) -> None:
        """Post queued records in batches, for ever."""
        while True:
            part = [await self._queue.get()]
            while len(part) < AT_A_TIME and not self._queue.empty():
                part.append(self._queue.get_nowait())
            body = build_message(part)
            try:
                await endpoint.call(lambda body=body: self._http.post("", body))  # type: ignore[misc]
            except CallError as error:
                # said once; the end of the service prints the number of lost events
                if not self.lost:
                    self._tell(f"events are lost: {error}")
                self.lost += len(part)
            # Lost or sent, they are no longer pending: a dead collector must not block new traces.
            self.pending -= len(part)


Sink = EventFile | EventSender


def open_sink(target: str, tell: MessageWriter) -> Sink:
    """Return where events go: to a collector if the target is an http address, else to a file."""
    # Any address, so that a mistyped https:// makes no file whose name has a secret.
    if "://" in target:
        return EventSender(target, tell)
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
            raise UsageError(f"{variable}: expected NAME=VALUE, with commas between several")
        # The values are mostly keys.
        hide_key(text)
        result[name.strip()] = text
    return result
