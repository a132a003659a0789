"""Traces sent as OTLP: scored when they are complete, with events, and never half."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.live.running import JSON, LEXICAL, Reply, Running, serving, waiting_entailer
from tests.live.stores import Collector
from trustassay import scorer
from trustassay.core.fair_queue import Flow, in_flow
from trustassay.core.files import Appender, DiskFullError
from trustassay.errors import BackendError
from trustassay.live import Service, ServiceSettings
from trustassay.live.evaluation_events import open_sink
from trustassay.live.otlp import ROOT_WITHIN_S, TooManyTracesError, TraceReceiver
from trustassay.live.scorer import Scorer
from trustassay.live.waiting import WaitingJournal

PASSAGE = "The Tagus runs through Lisbon."
NOWHERE = "Nothing of it is known to anybody."
EVENT = "gen_ai.evaluation.result"


def span(trace: int, number: int, parent: int | None = None, **attributes: Any) -> dict[str, Any]:
    told = {key.replace("__", "."): value for key, value in attributes.items()}
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{trace:08x}{number:08x}",
        "parentSpanId": "" if parent is None else f"{trace:08x}{parent:08x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(1795773600000000000 + number),
        "endTimeUnixNano": str(1795773601000000000 + number),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in told.items()],
    }


def spans(trace: int, answer: str = PASSAGE) -> list[dict[str, Any]]:
    """Children first, as exporters send them."""
    return [
        span(trace, 2, 1, openinference__span__kind="RETRIEVER",
             retrieval__documents__0__document__content=PASSAGE),
        span(trace, 1, None, openinference__span__kind="CHAIN", input__value="Which river?",
             output__value=answer),
    ]  # fmt: skip


def message(given: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": given}]}]}


def sent(service: Running, given: list[dict[str, Any]], **headers: str) -> Reply:
    return service.ask("POST", "/v1/traces", json.dumps(message(given)), {**JSON, **headers})


def events(lines: list[Any]) -> list[dict[str, Any]]:
    """The events of messages, their attributes as an object."""
    logs = [one for line in lines for one in line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]]
    for one in logs:
        told = {a["key"]: next(iter(a["value"].values())) for a in one["attributes"]}
        one["attributes"] = told
    return sorted(logs, key=lambda one: str(one.get("traceId")))


def in_file(path: Path) -> list[dict[str, Any]]:
    return events([json.loads(line) for line in path.read_text().splitlines()])


# a service in a process

pytestmark = pytest.mark.slow
SCORED = 'trustassay_samples_total{outcome="scored"}'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("otlp")
    with serving(folder, *LEXICAL, "--otlp", "--settle", "0.3", "--events", "e.jsonl") as one:
        yield one


def test_what_is_no_message_is_refused(service: Running) -> None:
    def asked(body: bytes | str, kind: str, **headers: str) -> int:
        given = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return service.ask("POST", "/v1/traces", body, given).status

    kind = "application/json"
    assert asked("{", kind) == 400
    assert asked("[]", kind) == 400
    assert asked('{"resourceSpans": [{"scopeSpans": 7}]}', kind) == 400
    assert asked("{}", "text/plain") == 415
    assert asked(b"x", kind, Content_Encoding="gzip") == 400
    assert asked(gzip.compress(b"{}")[:-4], kind, Content_Encoding="gzip") == 400
    assert asked(b"x", kind, Content_Encoding="br") == 415
    assert asked(gzip.compress(b" " * 2**23), kind, Content_Encoding="gzip") == 413


def test_spans_without_ids_are_told_and_the_others_taken(service: Running) -> None:
    reply = sent(service, [{**span(900, 1), "spanId": "x"}, {"traceId": 7}])
    assert (reply.status, reply.json["partialSuccess"]["rejectedSpans"]) == (200, "2")
    assert sent(service, []).json == {}


def in_protobuf(given: list[dict[str, Any]]) -> bytes:
    """The same in protobuf, where ids are bytes."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def packed(one: dict[str, Any]) -> dict[str, Any]:
        ids = {name: one[name] for name in ("traceId", "spanId", "parentSpanId")}
        return {**one, **{k: b64encode(bytes.fromhex(v)).decode() for k, v in ids.items()}}

    return bytes(
        ParseDict(message([packed(one) for one in given]), TracesData()).SerializeToString()
    )


def test_protobuf_is_read_as_json_is(tmp_path: Path) -> None:
    kind = {"Content-Type": "application/x-protobuf"}
    options = (*LEXICAL, "--otlp", "--settle", "0.2", "--events", "e.jsonl")
    with serving(tmp_path, *options) as service:
        for body in (in_protobuf(spans(1)), gzip.compress(in_protobuf(spans(2, NOWHERE))), b""):
            packed = {"Content-Encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {}
            reply = service.ask("POST", "/v1/traces", body, kind | packed)
            assert (reply.status, reply.body) == (200, b"")
            assert reply.headers["content-type"] == kind["Content-Type"]
        assert service.ask("POST", "/v1/traces", b"no message", kind).status == 400
        service.until(SCORED, 2)
    found = in_file(tmp_path / "e.jsonl")
    assert [one["spanId"] for one in found] == [f"{n:08x}{1:08x}" for n in (1, 2)]
    told = [one["attributes"]["gen_ai.evaluation.score.value"] for one in found]
    assert told == [1.0, 0.0]


def test_a_trace_in_pieces_is_scored_once(tmp_path: Path) -> None:
    options = (*LEXICAL, "--otlp", "--settle", "0.3", "--events", "e.jsonl", "--out", "run")
    with serving(tmp_path, *options) as service:
        first, second = spans(1), spans(2, NOWHERE)
        for given in (first[:1], second, first[1:]):
            packed = gzip.compress(json.dumps(message(given)).encode())
            headers = {**JSON, "Content-Encoding": "gzip"}
            reply = service.ask("POST", "/v1/traces", packed, headers)
            assert (reply.status, reply.json) == (200, {})
        sent(service, first)  # an exporter that tries again
        service.until(SCORED, 2)
        sent(service, first)  # and much later
        assert service.end() == 0
        assert "traces: 2 scored" in service.said
    # Which trace settles first depends on when its last piece came.
    found = sorted(in_file(tmp_path / "e.jsonl"), key=lambda one: str(one["traceId"]))
    assert [one["traceId"] for one in found] == [f"{n:032x}" for n in (1, 2)]
    assert [one["spanId"] for one in found] == [f"{n:08x}{1:08x}" for n in (1, 2)]
    assert {one["eventName"] for one in found} == {EVENT}
    told = [one["attributes"] for one in found]
    assert [one["gen_ai.evaluation.score.value"] for one in told] == [1.0, 0.0]
    assert [one["gen_ai.evaluation.score.label"] for one in told] == ["supported", "not found"]
    assert "gen_ai.evaluation.explanation" not in told[0]
    lines = (tmp_path / "run" / "assessments.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == [f"{n:032x}" for n in (1, 2)]


def test_a_full_service_takes_nothing_of_a_request(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    options = (*entailer, "--otlp", "--settle", "0", "--capacity", "2", "--events", "e.jsonl")
    with serving(tmp_path, *options) as service:
        assert sent(service, spans(1)).status == 200
        service.until("trustassay_samples_in_progress", 1)
        refused = sent(service, spans(2) + spans(3))
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json["code"] == 14
        assert sent(service, spans(1)).status == 200  # no new trace
        assert sent(service, spans(2)).status == 200
        (tmp_path / "go").touch()
        service.until(SCORED, 2)
        assert sent(service, spans(3)).status == 200
        service.until(SCORED, 3)
    assert len(in_file(tmp_path / "e.jsonl")) == 3


def test_what_was_taken_is_scored_before_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, *LEXICAL, "--otlp", "--settle", "60", "--events", "e.jsonl") as service:
        sent(service, spans(1) + spans(2)[:1])
        assert service.end(signal.SIGTERM) == 0
        assert "traces: 1 scored" in service.said
        assert "1 trace without a root span: given up" in service.said
    assert len(in_file(tmp_path / "e.jsonl")) == 1


def test_a_killed_service_keeps_the_spans_that_it_accepted(tmp_path: Path) -> None:
    options = (*LEXICAL, "--otlp", "--settle", "0", "--events", "e.jsonl", "--out", "run")
    child, root = spans(1)
    with serving(tmp_path, *options) as service:
        assert sent(service, [child, *spans(2)[:1]]).status == 200
        service.process.kill()
    with serving(tmp_path, *options) as service:
        assert "continuing with 2 traces from run/waiting-spans.jsonl" in service.said
        assert sent(service, [root]).status == 200
        service.until(SCORED, 1)
        assert service.end() == 0
        assert "1 trace without a root span: kept in run/waiting-spans.jsonl" in service.said
    [event] = in_file(tmp_path / "e.jsonl")
    # only with the passage of the span that came before the kill is it supported
    assert event["attributes"]["gen_ai.evaluation.score.value"] == 1.0
    kept = (tmp_path / "run" / "waiting-spans.jsonl").read_text()
    assert f"{2:032x}" in kept


def test_a_trace_that_was_accepted_and_not_scored_is_scored_after_a_kill(tmp_path: Path) -> None:
    entailer = waiting_entailer(tmp_path)
    options = (*entailer, "--otlp", "--settle", "0", "--events", "e.jsonl", "--out", "run")
    with serving(tmp_path, *options) as service:
        sent(service, spans(1))
        service.until("trustassay_samples_in_progress", 1)
        service.process.kill()
    (tmp_path / "go").touch()
    with serving(tmp_path, *options) as service:
        assert service.end() == 0
        assert "traces: 1 scored" in service.said
    assert [event["traceId"] for event in in_file(tmp_path / "e.jsonl")] == [f"{1:032x}"]
    stored = (tmp_path / "run" / "assessments.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in stored] == [f"{1:032x}"]
    assert not (tmp_path / "run" / "waiting-spans.jsonl").exists()


def test_a_second_signal_leaves_traces_for_the_next_start(tmp_path: Path) -> None:
    options = (*waiting_entailer(tmp_path), "--otlp", "--settle", "0", "--out", "run")
    with serving(tmp_path, *options) as service:
        sent(service, spans(1) + spans(2)[:1])
        service.until("trustassay_samples_in_progress", 1)
        service.process.send_signal(signal.SIGTERM)
        while "closing" not in service.said:
            pass
        assert service.end() == 130
        assert "1 trace without a root span: kept" in service.said
    (tmp_path / "go").touch()
    with serving(tmp_path, *options) as service:
        assert "continuing with 2 traces" in service.said
        assert service.end() == 0


def test_without_a_folder_the_command_says_that_traces_wait_in_memory(service: Running) -> None:
    assert service.said.count("without --out, waiting traces are lost") == 1


def test_a_trace_that_is_no_answer_is_told_by_its_id_alone(tmp_path: Path) -> None:
    with serving(tmp_path, *LEXICAL, "--otlp", "--settle", "0") as service:
        sent(service, [span(5, 1, None, http__route="/words-of-a-user")])
        sent(service, spans(6))
        service.until(SCORED, 1)
        assert service.end() == 0
        assert f"trace {5:032x}: cannot be scored (record)" in service.said
        assert "words-of-a-user" not in service.said


def test_events_are_posted_to_a_collector_with_its_headers(tmp_path: Path) -> None:
    secret = "secret-of-the-collector"
    with Collector([503, 200]) as collector:
        options = (*LEXICAL, "--otlp", "--settle", "0", "--events", collector.url, "--explanations")
        with serving(
            tmp_path, *options, OTEL_EXPORTER_OTLP_HEADERS=f"x-api-key={secret}"
        ) as service:
            sent(service, spans(1, NOWHERE))
            service.until(SCORED, 1)
            assert service.end() == 0
            assert secret not in service.said
    [found] = events(collector.taken)
    assert found["attributes"]["gen_ai.evaluation.explanation"].startswith("1 of 1 sentence")
    assert set(collector.keys) == {secret}
    assert collector.statuses == []  # the first was tried again


def test_a_collector_that_refuses_costs_events_and_no_score(tmp_path: Path) -> None:
    with Collector([400, 400]) as collector:
        options = (*LEXICAL, "--otlp", "--settle", "0", "--events", collector.url)
        with serving(tmp_path, *options) as service:
            sent(service, spans(1))
            service.until(SCORED, 1)
            assert service.end() == 0
            assert "events are lost: " in service.said
            assert "1 event could not be sent to --events" in service.said


def test_events_wait_on_disk_for_a_collector_that_is_down(tmp_path: Path) -> None:
    options = (*LEXICAL, "--otlp", "--settle", "0", "--out", "run", "--events")
    with Collector([]) as collector:
        url = collector.url
    with serving(tmp_path, *options, url) as service:
        sent(service, spans(1))
        service.until(SCORED, 1)
        assert service.end() == 0
        assert (
            "1 event not sent yet: run/waiting-events.jsonl; run the same command again to send"
            in service.said
        )
    with serving(tmp_path, *options, url) as service:
        sent(service, spans(2))
        service.until(SCORED, 1)
        service.process.kill()
    with Collector([]) as collector:
        with serving(tmp_path, *options, collector.url) as service:
            assert service.end() == 0
        assert [event["traceId"] for event in events(collector.taken)] == [
            f"{number:032x}" for number in (1, 2)
        ]
    assert not (tmp_path / "run" / "waiting-events.jsonl").exists()


@pytest.mark.parametrize(
    "target",
    ["http://me:secret@h/v1/logs", "http://h/v1/logs?key=secret", "htps://h/secret", "HTTP://:1/"],
)
def test_an_address_for_events_that_cannot_be_one_is_refused(target: str) -> None:
    with pytest.raises(BackendError, match="--events: ") as error:
        open_sink(target, print)
    assert "secret" not in str(error.value)


def test_events_that_a_file_does_not_take_cost_no_score() -> None:
    messages: list[str] = []
    sink = open_sink("/dev/full", messages.append)
    for _ in range(2):
        sink.send([{"eventName": EVENT}])
    assert messages == ["events are lost: /dev/full: No space left on device"]


# the receiver by itself


def received(work: Any, capacity: int = 4, settle_s: float = 5.0, per_caller: int = 4) -> Any:
    """Return what ``work(receiver, scorer)`` does, and what was told."""
    told: list[str] = []

    async def run() -> Any:
        async with scorer(metrics="faithfulness", entailer="lexical") as inside:
            service = Service(inside, ServiceSettings(capacity=capacity, per_caller=per_caller))
            return await work(TraceReceiver(service, settle_s, tell=told.append), inside)

    return asyncio.run(run()), told


def test_a_trace_waits_for_its_root_and_for_what_comes_after_it() -> None:
    async def work(receiver: TraceReceiver, inside: Scorer) -> list[int]:
        steps = []
        child, root = spans(1)
        for now, given in ((0, [child]), (100, [root]), (104, []), (106, [])):
            receiver.take(given, 1000, now)
            await receiver.settle(now)
            steps.append(inside.in_progress)
        await inside.close()
        return steps

    assert received(work) == ([0, 0, 0, 1], [])


def test_a_trace_without_a_root_is_given_up() -> None:
    async def work(receiver: TraceReceiver, inside: Scorer) -> int:
        receiver.take(spans(1)[:1], 1000, 0)
        await receiver.settle(ROOT_WITHIN_S + 1)
        receiver.take(spans(2) + spans(3) + spans(4) + spans(5), 4000, 700)  # there is room again
        return inside.in_progress

    assert received(work) == (0, [f"trace {1:032x}: the root span did not arrive"])


def test_on_a_full_disk_no_span_of_a_request_is_accepted(tmp_path: Path) -> None:
    async def run() -> dict[str, list[Any]]:
        async with scorer(metrics="faithfulness", entailer="lexical") as inside:
            receiver = TraceReceiver(Service(inside, ServiceSettings()), 60.0, out=tmp_path)
            async with receiver.running():
                lines = receiver.encode(spans(1))
                full = DiskFullError(tmp_path)
                refused = pytest.raises(DiskFullError)
                with patch.object(Appender, "append", side_effect=full), refused:
                    receiver.take(spans(1), 1000, 0, lines)
                receiver.take(spans(2)[:1], 1000, 0, receiver.encode(spans(2)[:1]))
        return WaitingJournal(tmp_path / "waiting-spans.jsonl").read()

    assert asyncio.run(run()).keys() == {f"{2:032x}"}


def test_events_on_disk_are_bounded(tmp_path: Path) -> None:
    messages: list[str] = []

    async def run() -> None:
        sink = open_sink("http://127.0.0.1:9/v1/logs", messages.append, tmp_path)
        async with sink.running():
            sink.send([{"eventName": "kept"}])
            with patch("trustassay.live.evaluation_events.MAX_WAITING_BYTES", 10):
                sink.send([{"eventName": "lost"}, {"eventName": "lost"}])

    asyncio.run(run())
    kept = WaitingJournal(tmp_path / "waiting-events.jsonl").read()
    assert [*kept.values()] == [[{"eventName": "kept"}]]
    assert "2 events could not be sent to --events" in messages


def test_too_many_traces_are_refused_together() -> None:
    async def work(receiver: TraceReceiver, inside: Scorer) -> int:
        receiver.take(spans(1) + spans(2) + spans(3), 3000, 0)
        with pytest.raises(TooManyTracesError):
            receiver.take(spans(4) + spans(5), 2000, 1)
        receiver.take(spans(4), 1000, 1)
        await receiver.settle(100)
        result = inside.in_progress
        await inside.close()
        return result

    assert received(work)[0] == 4


def test_a_sender_with_many_traces_keeps_no_other_waiting() -> None:
    async def work(receiver: TraceReceiver, _inside: Scorer) -> None:
        with in_flow(Flow("many", 1)):
            receiver.take([span for n in range(1, 4) for span in spans(n)], 100, 0.0)
            with pytest.raises(TooManyTracesError):
                receiver.take(spans(4), 100, 0.0)
            # spans of a trace that waits are still taken
            receiver.take(spans(1), 100, 0.0)
        with in_flow(Flow("few", 2)):
            receiver.take(spans(9), 100, 0.0)
        assert receiver._waiting[f"{9:032x}"].flow == Flow("few", 2)
        await receiver.settle(10.0)
        assert not receiver._waiting
        assert not receiver._traces_by_caller

    received(work, capacity=12, per_caller=3)
