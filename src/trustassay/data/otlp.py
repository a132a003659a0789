"""OTLP in protobuf, as collectors and exporters write it: the objects that its JSON has."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trustassay.data.records import InputError, Raw
from trustassay.data.source_files import opened
from trustassay.errors import install

SUFFIXES = (".binpb", ".pb", ".otlp")
_IDS = ("traceId", "spanId", "parentSpanId")
_WAY = ("resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", "spans", "logRecords")
_NONE = "expected a message of OTLP with spans or log records (or it is cut)"
_START = b"\n"
"""First byte of a message of OTLP; before it there may be its length in four bytes."""


def decoded(data: bytes, name: str) -> list[dict[str, Any]]:
    """Return the messages of some bytes as objects, ids in hexadecimal digits: requests to export
    spans or log records, one alone, or each after its length. ``name`` is that of the input.

    Raises:
        InputError: there are no such messages, or the package that reads them is missing.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError as error:
        told = f"is OTLP in protobuf; to read it: {install('opentelemetry')}"
        raise InputError(f"{name}: {told}") from error
    result = []
    for place, message in _messages(data, name):
        found: dict[str, Any] = {}
        for kind in (TracesData, LogsData):
            with suppress(DecodeError):
                found = found or _told(_with_ids(MessageToDict(kind.FromString(message))))
        if not found:
            raise InputError(f"{name}: byte {place}: {_NONE}")
        result.append(found)
    return result


def _told(found: dict[str, Any]) -> dict[str, Any]:
    """Return a message, an empty one where a span has no id: it is one of log records."""
    told = [one for batch in found.get("resourceSpans", ()) for one in batch.get("scopeSpans", ())]
    spans = [span for one in told for span in one.get("spans", ())]
    told = [one for batch in found.get("resourceLogs", ()) for one in batch.get("scopeLogs", ())]
    logs = any(one.get("logRecords") for one in told)
    return found if logs or (spans and all(span.get("spanId") for span in spans)) else {}


def records_of(path: Path, name: str) -> Iterator[Raw]:
    """Yield the messages of a file."""
    with opened(path, name) as stream:
        data = stream.read()
    for number, record in enumerate(decoded(data, name), 1):
        yield Raw(f"{name}: message {number}", record)


def _messages(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield each message with the place of its first byte, from 1."""
    if data[:1] == _START:
        yield 1, data
        return
    place = 0
    while place < len(data):
        end = place + 4 + int.from_bytes(data[place : place + 4])
        message = data[place + 4 : end]
        if end > len(data) or message[:1] not in (b"", _START):
            raise InputError(f"{name}: byte {place + 1}: {_NONE}")
        if message:
            yield place + 5, message
        place = end


def _with_ids(value: Any) -> Any:
    """Return an object whose ids are in hexadecimal digits and no longer in base 64."""
    if not isinstance(value, Mapping):
        return value
    result = dict(value)
    for name in _IDS:
        if isinstance(value.get(name), str):
            result[name] = base64.b64decode(value[name]).hex()
    return result | {k: list(map(_with_ids, value[k])) for k in _WAY if k in value}
