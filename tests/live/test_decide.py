"""``POST /v1/decide``: decisions by a calibrator that may change while the service runs."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.live.running import JSON, LEXICAL, serving
from tests.people.calibrators import calibrator, promise
from tests.support import record
from trustassay import scorer
from trustassay.input.records import InputError
from trustassay.live import Service, ServiceSettings, create_app
from trustassay.live.decide import LiveCalibrator, decide, decision_part
from trustassay.metrics import Faithfulness
from trustassay.runs.calibrator import (
    AuditStatus,
    ScoreOrigin,
    read_calibrator,
    write_calibrator,
)
from trustassay.runs.folder import to_stored

WITHDRAWN = AuditStatus("withdrawn", "2026-10-11", "15 of 30 are wrong")


def asked(path: Path, *bodies: Any) -> list[Any]:
    """Return the replies to bodies; a function among them is called in its turn."""

    async def run() -> list[Any]:
        from httpx2 import ASGITransport, AsyncClient

        replies = []
        async with scorer(metrics="faithfulness", entailer="lexical") as opened:
            service = Service(opened, ServiceSettings())
            part = decision_part(path, ["faithfulness"])(service)
            app = create_app(service, service.settings, [part])
            transport = ASGITransport(app, raise_app_exceptions=False)
            async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                document = (await client.get("/openapi.json")).json()
                for body in bodies:
                    if callable(body):
                        body()
                        continue
                    replies.append(await client.post("/v1/decide", json=body))
        check(document, [reply.json() for reply in replies if reply.status_code == 200])
        return replies

    return asyncio.run(run())


def check(document: Any, decisions: list[Any]) -> None:
    """Check that decisions are as the document describes them."""
    from jsonschema import Draft202012Validator

    assert "/v1/decide" in document["paths"]
    for decision in decisions:
        for one in decision.get("decisions", [decision]):
            schema = {**document, "$ref": "#/components/schemas/Decision"}
            Draft202012Validator(schema).validate(one)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return calibrator(tmp_path / "c.json")


def test_a_score_is_decided(made: Path) -> None:
    (one, several) = asked(made, {"score": 0.93}, {"scores": [0.5, 0.51, None, 93]})
    assert one.json() == {
        "decision": "accept",
        "probability": pytest.approx(0.5 + 0.4 * 0.93),
        "at_most": 0.1,
        "confidence": 0.95,
        "valid": True,
        "reason": "",
    }
    decisions = several.json()["decisions"]
    assert [one["decision"] for one in decisions] == ["ask", "accept", "ask", "ask"]
    other_scale = "the score is 93, but the scores of the calibration were from 0 to 1"
    assert [one["reason"] for one in decisions] == ["", "", "there is no score", other_scale]
    assert decisions[2]["probability"] is None


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({}, "score", "expected a number, got ''"),
        ({"score": "0.9"}, "score", "expected a number, got '0.9'"),
        ({"score": True}, "score", "expected a number, got True"),
        ({"scores": [0.1, [2]]}, "scores[1]", "expected a number, got [2]"),
        ({"scores": 3}, "scores", "expected a list of at most 5,000 items, got 3"),
        ({"score": 0.9, "by": 7}, "by", "expected a text, got 7"),
        ({"score": 10**300}, "score", "expected a number"),
    ],
)
def test_errors_name_the_field(made: Path, body: Any, field: str, message: str) -> None:
    (reply,) = asked(made, body)
    assert reply.status_code == 422
    (problem,) = reply.json()["error"]["problems"]
    assert problem["field"] == field
    assert message in problem["message"]


def test_what_is_no_object_is_refused(made: Path) -> None:
    for reply in asked(made, [0.9], {"score": 0.9, "scores": [0.9]}):
        assert reply.status_code == 400
        assert "expected an object with either score or scores" in reply.text


def test_a_withdrawn_promise_accepts_nothing_from_then_on(made: Path) -> None:
    def withdraw() -> None:
        write_calibrator(replace(read_calibrator(made), audit=WITHDRAWN), made)

    (before, after) = asked(made, {"score": 0.93}, withdraw, {"score": 0.93})
    assert before.json()["decision"] == "accept"
    decision = after.json()
    assert (decision["decision"], decision["valid"]) == ("ask", False)
    assert (
        decision["reason"] == "the promise has been withdrawn since 2026-10-11: 15 of 30 are wrong"
    )


def test_nothing_is_decided_while_the_file_is_damaged(made: Path) -> None:
    content = made.read_bytes()
    replies = asked(
        made,
        lambda: made.write_bytes(content[:50]),
        {"score": 0.93},
        made.unlink,
        {"score": 0.93},
        lambda: made.write_bytes(content),
        {"score": 0.93},
    )
    assert [reply.status_code for reply in replies] == [500, 500, 200]
    assert "cannot be read, so no decision was made" in replies[0].text
    assert str(made) not in replies[0].text


def test_promises_of_values_of_a_field(tmp_path: Path) -> None:
    path = calibrator(
        tmp_path / "c.json",
        [promise(0.9, of="de"), promise(0.5, of="en"), promise(of="fr", without="few")],
        by="language",
    )
    bodies = [{"score": 0.8, "by": by} for by in ("de", "en", "fr", "xx")]
    decisions = [reply.json() for reply in asked(path, *bodies, {"score": 0.8})]
    assert [one["decision"] for one in decisions] == ["ask", "accept", "ask", "ask", "ask"]
    assert [one["valid"] for one in decisions] == [True, True, False, False, False]
    assert decisions[2]["reason"] == "the calibrator makes no promise for language 'fr'"
    assert decisions[4]["at_most"] is None


def test_a_sample_is_scored_and_decided(tmp_path: Path) -> None:
    settings = to_stored(Faithfulness().settings())

    def of(backend: str) -> ScoreOrigin:
        return ScoreOrigin("run", "faithfulness", "", settings, {"entailer": backend})

    path = calibrator(tmp_path / "c.json", [promise(0.1)], origin=of("lexical"))
    answer = record(1, response="Number 1 is odd.")
    (good, faulty) = asked(path, answer, {"question": 1})
    assert good.json()["decision"] == "accept", good.text
    assert faulty.status_code == 422
    calibrator(path, [promise(0.1)], origin=of("another"))
    (other,) = asked(path, answer)
    assert (other.json()["decision"], other.json()["valid"]) == ("ask", False)
    assert "has other models than the calibrator: " in other.json()["reason"]


def test_a_calibrator_of_a_metric_that_is_not_scored_is_refused(tmp_path: Path) -> None:
    path = calibrator(tmp_path / "c.json", origin=ScoreOrigin("run", "grounding"))
    with pytest.raises(InputError, match="add --metric grounding"):
        LiveCalibrator(path, ["faithfulness"])


def test_the_command_serves_decisions(tmp_path: Path) -> None:
    path = calibrator(tmp_path / "c.json")
    with serving(tmp_path, *LEXICAL, "--calibrator", path) as service:
        reply = service.ask("POST", "/v1/decide", '{"score": 0.93}', JSON)
    assert reply.json["decision"] == "accept"


def test_without_a_score_nothing_is_accepted(made: Path) -> None:
    decision = decide(read_calibrator(made), math.nan, "")
    assert decision["decision"] == "ask"
    json.dumps(decision, allow_nan=False)


def test_scores_of_another_judge_are_not_accepted(tmp_path: Path) -> None:
    path = calibrator(tmp_path / "c.json", judges={"model": ["m-1"]})
    bodies: list[Any] = [
        {"score": 0.9, "judge": {"model": "m-1"}},
        {"score": 0.9, "judge": {"model": "m-2"}},
        {"score": 0.9},
        {"score": 0.9, "judge": "m-1"},
    ]
    same, other, unnamed, damaged = asked(path, *bodies)
    assert same.json()["decision"] == "accept"
    assert (other.json()["decision"], other.json()["valid"]) == ("ask", False)
    assert other.json()["reason"] == "no labelled answer of the calibration had model 'm-2'"
    assert "expected model in the field judge, as in the calibration" in unnamed.json()["reason"]
    assert damaged.status_code == 422 and "judge" in damaged.text
