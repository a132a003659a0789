"""Reads OTLP in protobuf, as collectors and exporters write it, into the objects of its JSON."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trustassay.errors import install_command
from trustassay.input.bounds import read_document
from trustassay.input.places import InputFile, open_text
from trustassay.input.records import InputError, RawRecord

_IDS = ("traceId", "spanId", "parentSpanId")
_WAYS = ("resource_spans scope_spans spans", "resource_logs scope_logs log_records")
_INSIDE = ("resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords")
_NONE = "expected an OTLP message with spans or log records; the file may be truncated"
_START = b"\n"
"""First byte of an OTLP message; its length, in four bytes, may stand before it."""


def decode_messages(data: bytes, name: str) -> list[dict[str, Any]]:
    """Return the messages of some bytes as objects, with ids in hexadecimal digits.

    Args:
        data: requests to export spans or log records: a single one, or several that each follow
            their lengths.
        name: the name of the input, for messages.

    Raises:
        InputError: there are no such messages, or the package that reads them is missing.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError as error:
        message = f"is OTLP in protobuf; to read it: {install_command('opentelemetry')}"
        raise InputError(f"{name}: {message}") from error
    result: dict[int, dict[str, Any]] = {}
    kinds: Any = (TracesData, LogsData)
    for place, content in _split_messages(data, name):
        for kind, way in zip(kinds, _WAYS, strict=True):
            # The bytes do not say whether they are traces or logs: both are tried.
            with suppress(DecodeError):
                decoded_message = kind.FromString(content)
                parts = [decoded_message]
                for field in way.split():
                    parts = [inner for part in parts for inner in getattr(part, field)]
                # Protobuf also decodes bytes of another type, so the result must have records with
                # their fields.
                if parts and (kind is LogsData or all(part.span_id for part in parts)):
                    result.setdefault(place, _convert_ids(MessageToDict(decoded_message)))
        if place not in result:
            raise InputError(f"{name}: byte {place}: {_NONE}")
    return list(result.values())


def read_records(path: InputFile, name: str, longest_line: int) -> Iterator[RawRecord]:
    """Yield the messages of a file as raw records."""
    with open_text(path, name) as stream:
        data = read_document(stream, name, longest_line)
    for number, record in enumerate(decode_messages(data, name), 1):
        yield RawRecord(f"{name}: message {number}", record)


def _split_messages(data: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield each message with the number of its first byte, from 1."""
    # A file that begins with the first byte of a message has a single message without a length.
    place, is_single = 0, data[:1] == _START
    while place < len(data):
        end = len(data) if is_single else place + 4 + int.from_bytes(data[place : place + 4])
        message = data if is_single else data[place + 4 : end]
        # The file was cut off, or is of another format.
        if end > len(data) or message[:1] not in (b"", _START):
            raise InputError(f"{name}: byte {place + 1}: {_NONE}")
        if message:
            yield end - len(message) + 1, message
        place = end


def _convert_ids(value: Any) -> dict[str, Any]:
    """Return an object whose ids are in hexadecimal digits and no longer in base 64."""
    ids = {name: base64.b64decode(value[name]).hex() for name in _IDS if name in value}
    inner = {name: list(map(_convert_ids, value[name])) for name in _INSIDE if name in value}
    return {**value, **ids, **inner}
