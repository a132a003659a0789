"""/v1/score: one sample, many, and every way in which a body can be wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.running import JSON, LEXICAL, Running, serving
from tests.support import record, records
from trustassay import score

METRICS = ("faithfulness", "grounding")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    chosen = [word for name in METRICS for word in ("--metric", name)]
    with serving(
        tmp_path_factory.mktemp("service"), *chosen, *LEXICAL, "--per-caller", "50"
    ) as one:
        yield one


@pytest.mark.slow
def test_a_sample_gets_what_a_run_of_it_gives(service: Running) -> None:
    run = score([record(1)], metrics=list(METRICS), entailer="lexical")
    reply = service.score(record(1))
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    found = reply.json
    assert found["id"] == "q1"
    for assessment in run.assessments:
        told = found["metrics"][assessment.metric]
        assert (told["score"], told["verdict"]) == (assessment.score, assessment.verdict)
        assert told["parts"] == dict(assessment.parts)
        assert told["error"] is None
    wrong = record(1, response="Elephants live in Asia and Africa.")
    told = service.score(wrong).json
    assert told["needs_look"] is True
    assert told["metrics"]["faithfulness"]["problem"]
    assert told["metrics"]["faithfulness"]["reason"]


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ({}, True),
        ({"response": "I'm sorry, but I cannot answer that."}, False),
    ],
)
def test_an_answer_that_no_metric_judged_says_so(
    service: Running, changes: dict[str, str], judged: bool
) -> None:
    assert service.score(record(1, **changes)).json["judged"] is judged


def test_many_samples_have_a_line_each_with_their_index(service: Running) -> None:
    reply = service.score(records(20))
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    assert {(one["index"], one["id"]) for one in reply.lines} == {(i, f"q{i}") for i in range(20)}
    single = service.score(record(3)).json
    (third,) = [one for one in reply.lines if one["index"] == 3]
    assert {**single, "index": 3} == third


def test_json_lines(service: Running) -> None:
    body = "".join(f"{json.dumps(one)}\r\n\n" for one in records(3))
    for kind in ("application/x-ndjson", "application/jsonl; charset=utf-8"):
        reply = service.ask("POST", "/v1/score", body, {"Content-Type": kind})
        assert sorted(one["index"] for one in reply.lines) == [0, 1, 2]


def test_a_list_of_one_is_many(service: Running) -> None:
    assert len(service.score([record(1)]).lines) == 1
    assert "index" in service.score([record(1)]).json


def test_other_layouts_are_read(service: Running) -> None:
    ragas = {
        "user_input": "Who built it?",
        "response": "The town built it.",
        "retrieved_contexts": ["The town built it."],
    }
    found = service.score(ragas).json
    assert found["metrics"]["faithfulness"]["score"] == 1.0


def test_every_fault_is_told_with_its_field(service: Running) -> None:
    reply = service.score({"question": 3, "response": ["x"], "documents": [5, {"title": "t"}]})
    assert reply.status == 422
    assert {one["field"] for one in reply.error["problems"]} >= {"question", "response"}
    assert all("index" not in one for one in reply.error["problems"])
    before = service.metric('trustassay_samples_total{outcome="scored"}')
    reply = service.score([record(1), {"question": "x"}, record(2), 7])
    assert reply.status == 422
    assert {one["index"] for one in reply.error["problems"]} == {1, 3}
    assert service.metric('trustassay_samples_total{outcome="scored"}') == before


BAD: list[tuple[bytes, str]] = [
    (b"", "is not JSON"),
    (b"{", "is not JSON"),
    (b'{"question": "x"} more', "is not JSON"),
    (b'"\xff"', "is not UTF-8"),
    (b"[]", "has no sample"),
    (b"NaN", "not finite"),
    (b'{"label": 1e999}', "not finite"),
    (b'{"label": -Infinity}', "not finite"),
    (b"1" * 5000, "too many digits"),
    (b"[" * 100_000, "more than 64"),
    (b"[" * 65 + b"]" * 65, "more than 64"),
    (b'{"a":' * 2000 + b"1" + b"}" * 2000, "more than 64"),
]


@pytest.mark.parametrize(("body", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_no_json_of_samples_is_refused(service: Running, body: bytes, said: str) -> None:
    reply = service.ask("POST", "/v1/score", body, JSON)
    assert reply.status == 400
    assert said in reply.error["message"]


def test_values_that_are_no_samples(service: Running) -> None:
    for body in ("null", "3", '"text"', "{}", "[[]]", '{"id": {}}', "[null]"):
        reply = service.ask("POST", "/v1/score", body, JSON)
        assert reply.status == 422, body
        assert reply.error["problems"], body


def test_json_may_be_nested_within_the_limit(service: Running) -> None:
    inner: Any = "x"
    for _ in range(62):
        inner = [inner]
    assert service.score(record(1, notes=inner)).status == 200


def test_half_of_a_surrogate_pair_is_answered(service: Running) -> None:
    reply = service.score(record(1, id="a\ud800", response="Number 1 is \udfff odd [1]."))
    assert reply.status == 200
    assert reply.json["id"] == "a\ufffd"


def test_other_types_of_body_are_refused(service: Running) -> None:
    body = json.dumps(record(1))
    kinds = ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonx")
    for kind in (*kinds, "application/json; charset=latin-1"):
        reply = service.ask("POST", "/v1/score", body, {"Content-Type": kind})
        assert reply.status == 415, kind
        assert "Content-Type" in reply.error["message"] or "UTF-8" in reply.error["message"]
    packed = gzip.compress(body.encode())
    reply = service.ask("POST", "/v1/score", packed, {**JSON, "Content-Encoding": "gzip"})
    assert reply.status == 415


@pytest.mark.slow
def test_more_samples_than_can_ever_be_accepted(service: Running) -> None:
    lines = {"Content-Type": "application/jsonl"}
    for reply in (
        service.score(records(51)),
        service.ask("POST", "/v1/score", b"1\n" * 2_000_000, lines),
    ):
        assert reply.status == 413
        assert "samples; send 50 or fewer at once" in reply.error["message"]


def test_paths_and_methods(service: Running) -> None:
    for path in (
        "/",
        "/v1",
        "/v1/score/",
        "/v1//score",
        "/v1/%2e%2e/health",
        "/health%00",
        "/.env",
    ):
        assert service.ask("GET", path).status == 404, path
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        reply = service.ask(method, "/v1/score")
        assert (reply.status, reply.headers["allow"]) == (405, "POST")
    for target in (b"/../../etc/passwd", b"http://127.0.0.1/v1/score/../x", b"/%", b"*"):
        head = b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        assert service.raw(head).split()[1] in (b"404", b"400"), target


@pytest.mark.slow
def test_a_folder_has_samples_of_one_id_once(tmp_path: Path) -> None:
    with serving(tmp_path, *LEXICAL, "--out", "run") as one:
        assert one.score([record(1), record(1)]).status == 200
        other = record(1, response="Something else.")
        reply = one.score(other)
        assert reply.status == 422
        assert reply.error["problems"][0]["field"] == "id"
        (line,) = [line for line in one.score([record(2), other]).lines if line["index"] == 1]
        assert line["id"] == "q1"
        assert line["error"]["problems"][0]["field"] == "id"
        assert one.end() == 0
    assert len((tmp_path / "run" / "samples.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "run" / "summary.json").exists()
