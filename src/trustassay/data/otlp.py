"""OTLP in protobuf, as collectors and exporters write it: the objects that its JSON has."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trustassay.data.places import File
from trustassay.data.records import InputError, Raw
from trustassay.data.source_files import opened
from trustassay.errors import install

_IDS = ("traceId", "spanId", "parentSpanId")
_WAYS = ("resource_spans scope_spans spans", "resource_logs scope_logs log_records")
_INSIDE = ("resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords")
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
    result: dict[int, dict[str, Any]] = {}
    kinds: Any = (TracesData, LogsData)
    for place, message in _messages(data, name):
        for kind, way in zip(kinds, _WAYS, strict=True):
            with suppress(DecodeError):
                found = kind.FromString(message)
                parts = [found]
                for field in way.split():
                    parts = [inner for part in parts for inner in getattr(part, field)]
                if parts and (kind is LogsData or all(part.span_id for part in parts)):
                    result.setdefault(place, _with_ids(MessageToDict(found)))
        if place not in result:
            raise InputError(f"{name}: byte {place}: {_NONE}")
    return list(result.values())


def records_of(path: File, name: str) -> Iterator[Raw]:
    """Yield the messages of a file."""
    with opened(path, name) as stream:
        data = stream.read()
    for number, record in enumerate(decoded(data, name), 1):
        yield Raw(f"{name}: message {number}", record)


def _messages(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield each message with the place of its first byte, from 1."""
    place, whole = 0, data[:1] == _START
    while place < len(data):
        end = len(data) if whole else place + 4 + int.from_bytes(data[place : place + 4])
        message = data if whole else data[place + 4 : end]
        if end > len(data) or message[:1] not in (b"", _START):
            raise InputError(f"{name}: byte {place + 1}: {_NONE}")
        if message:
            yield end - len(message) + 1, message
        place = end


def _with_ids(value: Any) -> dict[str, Any]:
    """Return an object whose ids are in hexadecimal digits and no longer in base 64."""
    ids = {name: base64.b64decode(value[name]).hex() for name in _IDS if name in value}
    inner = {name: list(map(_with_ids, value[name])) for name in _INSIDE if name in value}
    return {**value, **ids, **inner}
