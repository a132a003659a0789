"""OTLP in protobuf, and log records with the messages of a call beside its span or without it."""

import base64
import gzip
import json
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.input.test_traces import (
    SHOWN,
    A,
    Json,
    Q,
    any_value,
    faults,
    lines,
    otlp,
    samples,
    span,
    texts,
)
from tests.input.test_traces import tool as tool_span
from trustassay.input import InputError
from trustassay.input.otlp import decode_messages

HERE = Path(__file__).parent / "traces"
NONE = "expected an OTLP message with spans or log records; the file may be truncated"
TRACE = "0af7651916cd43dd8448eb211c80319c"


def of_json(record: Json) -> bytes:
    """Return OTLP's JSON in protobuf, by the package that exporters use."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def encoded(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(encoded, value))
        if not isinstance(value, dict):
            return value
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            k: base64.b64encode(bytes.fromhex(v)).decode() if k in ids else encoded(v)
            for k, v in value.items()
        }

    message = LogsData() if "resourceLogs" in record else TracesData()
    written: bytes = ParseDict(encoded(record), message).SerializeToString()
    return written


def prefixed(*messages: bytes) -> bytes:
    return b"".join(len(one).to_bytes(4) + one for one in messages)


def log(event: str, body: Any, time: int, span: str = "00f067aa0ba902b7", **more: Any) -> Json:
    return {
        "timeUnixNano": str(10**18 + time),
        "traceId": TRACE,
        "spanId": span,
        "eventName": event,
        "body": value(body),
        **more,
    }


def value(given: Any) -> Json:
    if isinstance(given, dict):
        return {
            "kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in given.items()]}
        }
    if isinstance(given, list):
        return {"arrayValue": {"values": list(map(value, given))}}
    return any_value(given)


def logs(*records: Json) -> Json:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": records}]}]}


CALLED = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"of": "x"}'}}
EVENTS = [
    log("gen_ai.system.message", {"content": "Be brief."}, 1),
    log("gen_ai.user.message", {"content": Q}, 2),
    log("gen_ai.assistant.message", {"tool_calls": [CALLED]}, 3),
    log("gen_ai.tool.message", {"id": "c1", "content": json.dumps(SHOWN)}, 4),
    log("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": A}}, 5),
    log("http.request", {"url": "x"}, 6),
]


@pytest.mark.parametrize("name", ["pydantic-ai.json", "strands.json", "openinference-openai.json"])
@pytest.mark.parametrize("form", ["x.binpb", "x.pb.gz", "x.otlp"])
def test_a_file_in_protobuf_is_read_as_the_same_in_json(
    name: str, form: str, tmp_path: Path
) -> None:
    written = of_json(json.loads((HERE / name).read_text()))
    path = tmp_path / form
    path.write_bytes(gzip.compress(written) if form.endswith(".gz") else written)
    if form == "x.otlp":  # each message after its length, as a collector writes them
        path.write_bytes(prefixed(b"", written, of_json(logs(*EVENTS))))
    first, *others = samples(path)
    assert first == samples(HERE / name)[0]
    assert len(others) == (form == "x.otlp")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x0a\x05abc", f"byte 1: {NONE}"),
        (b"no protobuf", f"byte 1: {NONE}"),
        (b"\0\0\0\x09\x0a\x00", f"byte 1: {NONE}"),
        (b"\0\0\0\x02\x0a\x00", f"byte 5: {NONE}"),
        (b"", "contains no records"),
    ],
)
def test_what_is_no_otlp_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.binpb"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        samples(path)
    assert str(error.value) == f"{path}: {message}"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(InputError):
        decode_messages(b"\x0a" + content, "x")


def test_without_the_package_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.pb").write_bytes(of_json(logs(*EVENTS)))
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    with pytest.raises(InputError, match=r"pip install '.\[opentelemetry\]'"):
        samples(tmp_path / "x.pb")


# ---- log records ----


def test_log_records_alone_are_the_messages_of_a_call(tmp_path: Path) -> None:
    shuffled = random.Random(2).sample(EVENTS, len(EVENTS))
    [sample] = samples(lines(tmp_path, [logs(*shuffled)]))
    assert (sample.question, sample.response, sample.id) == (Q, A, TRACE)
    assert texts(sample) == SHOWN
    assert sample.metadata["steps"] == [
        {"system": "Be brief."},
        {"user": Q},
        {"tool": "find", "arguments": {"of": "x"}, "passages": [1, 2]},
    ]


def test_log_records_are_put_to_their_spans_wherever_they_stand(tmp_path: Path) -> None:
    known = "00f067aa0ba902b7"
    root = {**span(1), "traceId": TRACE, "spanId": "root"}
    model = span(3, gen_ai__operation__name="chat", gen_ai__request__model="m")
    model |= {"traceId": TRACE, "spanId": known, "parentSpanId": "root"}
    tool = {**tool_span(2, 0, SHOWN[0]), "traceId": TRACE, "parentSpanId": "root"}
    path = lines(tmp_path, [logs(*EVENTS[4:]), otlp(model, tool), logs(EVENTS[1]), otlp(root)])
    [sample] = samples(path)
    assert (sample.question, sample.response, sample.model) == (Q, A, "m")
    assert texts(sample) == [SHOWN[0]]


def test_records_as_the_sdk_writes_them_and_events_with_all_messages(tmp_path: Path) -> None:
    told = {"trace_id": f"0x{TRACE}", "span_id": "0x1", "timestamp": "2026-01-01T00:00:01Z"}
    ask = {**told, "body": {"content": Q}, "attributes": {"event.name": "gen_ai.user.message"}}
    say = {**told, "body": {"message": {"content": A}}, "event_name": "gen_ai.choice"}
    [sample] = samples(lines(tmp_path, [ask, say]))
    assert (sample.question, sample.response) == (Q, A)
    asking = {"role": "user", "parts": [{"type": "text", "content": Q}]}
    said = {"role": "assistant", "parts": [{"type": "text", "content": A}]}
    whole: Json = {**told, "body": None, "attributes": {"gen_ai.input.messages": [asking]}}
    whole["attributes"]["gen_ai.output.messages"] = [said]
    whole["event_name"] = "gen_ai.client.inference.operation.details"
    [sample] = samples(lines(tmp_path, [whole]))
    assert (sample.question, sample.response) == (Q, A)


def test_log_records_of_a_call_without_its_answer_name_trace_and_span(tmp_path: Path) -> None:
    [message] = faults(lines(tmp_path, [logs(*EVENTS[:4])]))
    assert f"trace {TRACE}, span 'log records' (00f067aa0ba902b7): response: is missing" in message


def test_log_records_of_other_things_are_left_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no records"):
        samples(lines(tmp_path, [logs(EVENTS[5])]))
