"""Both wires of decision models served, with upstreams of either, calibrated and not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.decision_server import DecisionServer
from tests.lazily import needed
from tests.live.running import JSON, LEXICAL, serving
from tests.people.calibrators import calibrator, promise
from trustassay import scorer
from trustassay.input.records import InputError
from trustassay.live import Service, ServiceSettings, create_app
from trustassay.live.decision_model import decision_model_part
from trustassay.runs.calibrator import (
    AuditStatus,
    ScoreOrigin,
    read_calibrator,
    write_calibrator,
)
from trustassay.statistics.comparison import summarise_distribution

UPSTREAMS = (
    ("systemone", "typesafe"),
    ("systemone", "vllm"),
    ("systemone", "sglang"),
    ("systemone", "llamacpp"),
    ("decisions", "openai"),
    ("decisions", "vllm"),
)
WIRES = ("systemone", "decisions")
URI = "{}:m@{}?patience=0.2&deadline=2&tries=2"


def asked(
    uri: str, *requests: tuple[str, Any], path: Path | None = None, **options: Any
) -> list[Any]:
    """Return the replies to bodies by their wire; a function among them is called in its turn."""

    async def run() -> list[Any]:
        from httpx2 import ASGITransport, AsyncClient

        replies = []
        options.setdefault("cache", None)
        options.update(entailer="lexical", decisions=uri)
        async with scorer(metrics="faithfulness", **options) as opened:
            service = Service(opened, ServiceSettings())
            app = create_app(service, service.settings, [decision_model_part(path)(service)])
            transport = ASGITransport(app, raise_app_exceptions=False)
            async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                document = (await client.get("/openapi.json")).json()
                for wire, body in requests:
                    if callable(body):
                        body()
                        continue
                    # In ASCII, since half of a surrogate pair cannot be sent otherwise.
                    content = json.dumps(body)
                    reply = await client.post(f"/v1/{wire}", content=content, headers=JSON)
                    check(document, wire, reply)
                    replies.append(reply)
        return replies

    return asyncio.run(run())


def check(document: Any, wire: str, reply: Any) -> None:
    """Check that a reply is as the document describes it."""
    from jsonschema import Draft202012Validator

    responses = document["paths"][f"/v1/{wire}"]["post"]["responses"]
    schema = responses[str(reply.status_code)]["content"]["application/json"]["schema"]
    Draft202012Validator({**document, **schema}).validate(reply.json())


def systemone(**instructions: str) -> Any:
    """Return a request of yes/no questions, a choice (``c...``) or a score (``s...``)."""
    questions: dict[str, Any] = {}
    for key, text in instructions.items():
        questions[key] = {"type": "noul", "instructions": text}
        if key.startswith("c"):
            questions[key] |= {"type": "choice", "criteria": {"x": "the x", "y": None}}
        elif key.startswith("s"):
            questions[key] |= {"type": "score", "criteria": ["bad", "fair", "good"]}
    return {"model": "any", "state": {"text": "a state"}, "questions": questions}


def decisions(**instructions: str) -> Any:
    """Return the same request on the other wire; names that begin with _ are left out."""
    questions = []
    for key, text in instructions.items():
        question: dict[str, Any] = {"type": "predicate", "instructions": text}
        if key.startswith("c"):
            choices = [{"value": "x", "description": "the x"}, {"value": "y"}]
            question |= {"type": "choice", "choices": choices}
        elif key.startswith("s"):
            levels = [{"label": label} for label in ("bad", "fair", "good")]
            question |= {"type": "score", "levels": levels}
        questions.append(question | ({} if key.startswith("_") else {"name": key}))
    return {"model": "any", "input": '{"text": "a state"}', "questions": questions}


def build(wire: str, **instructions: str) -> tuple[str, Any]:
    return wire, (systemone if wire == "systemone" else decisions)(**instructions)


def by_id(wire: str, reply: Any) -> Any:
    assert reply.status_code == 200, reply.text
    answers = reply.json()["answers"]
    return answers if wire == "systemone" else {row["name"]: row for row in answers}


def chance(row: Any) -> float:
    """Return the probability of a yes/no answer of either wire."""
    return float(row["noul"] if "noul" in row else row["probability"])


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return calibrator(tmp_path / "c.json")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("scheme", "dialect"), UPSTREAMS)
def test_each_wire_reaches_each_upstream(wire: str, scheme: str, dialect: str) -> None:
    body = build(wire, p="Is it? {.8 .2}", c="Which? {.3 .7}", s="How? {.1 .2 .7}")
    with DecisionServer(dialect) as server:
        (reply,) = asked(URI.format(scheme, server.url), body)
        (sent,) = server.bodies
    rows = by_id(wire, reply)
    assert sent["model"] == "m"
    assert "a state" in sent["state" if scheme == "systemone" else "input"]
    assert reply.json()["model"] == server.model
    assert reply.json()["usage"]["input_tokens"] == 100
    assert chance(rows["p"]) == pytest.approx(0.8)
    assert rows["c"]["choice"] == "y" and rows["s"]["score"] == pytest.approx(1.6)
    assert [row["calibrated"] for row in rows.values()] == [False] * 3
    assert not any({"accept", "raw"} & row.keys() for row in rows.values())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("scheme", "dialect"), [UPSTREAMS[0], UPSTREAMS[4]])
def test_a_calibrator_replaces_the_probability_of_yes_alone(
    wire: str, scheme: str, dialect: str, made: Path
) -> None:
    body = build(wire, p="Is it? {.8 .2}", q="Is it? {.4 .6}", c="Which? {.3 .7}")
    with DecisionServer(dialect) as server:
        (reply,) = asked(URI.format(scheme, server.url), body, path=made)
    rows = by_id(wire, reply)
    for key, raw, accept in (("p", 0.8, True), ("q", 0.4, False)):
        assert chance(rows[key]) == pytest.approx(0.5 + 0.4 * raw)
        assert rows[key]["raw"] == pytest.approx(raw)
        assert (rows[key]["accept"], rows[key]["calibrated"]) == (accept, True)
        assert "reason" not in rows[key]
    assert rows["c"]["calibrated"] is False and rows["c"].keys().isdisjoint({"accept", "raw"})


def test_a_withdrawn_promise_accepts_nothing_from_then_on(made: Path) -> None:
    def withdraw() -> None:
        audit = AuditStatus("withdrawn", "2026-10-11", "15 of 30 are wrong")
        write_calibrator(replace(read_calibrator(made), audit=audit), made)

    body = build("systemone", p="Is it? {.8 .2}")
    with DecisionServer("vllm") as server:
        uri = URI.format("systemone", server.url)
        before, after = asked(uri, body, ("", withdraw), body, path=made)
    assert by_id("systemone", before)["p"]["accept"] is True
    row = by_id("systemone", after)["p"]
    assert (row["accept"], row["calibrated"]) == (False, True)
    assert row["reason"] == "the promise has been withdrawn since 2026-10-11: 15 of 30 are wrong"


def test_nothing_is_answered_while_the_calibrator_is_damaged(made: Path) -> None:
    body = build("decisions", p="Is it? {.8 .2}")
    with DecisionServer("openai") as server:
        uri = URI.format("decisions", server.url)
        (reply,) = asked(uri, ("", lambda: made.write_text("{")), body, path=made)
    assert reply.status_code == 500
    assert "cannot be read" in reply.text and str(made) not in reply.text


@pytest.mark.parametrize(("names", "accept"), [(["jev-1.13.0"], True), (["jev-1.12.0"], False)])
def test_another_model_than_the_labelled_one_is_not_accepted(
    names: list[str], accept: bool, tmp_path: Path
) -> None:
    path = calibrator(tmp_path / "c.json", judges={"judge_model": names, "prompt": ["p1"]})
    with DecisionServer("typesafe") as server:
        uri = URI.format("systemone", server.url)
        (reply,) = asked(uri, build("systemone", p="Is it? {.8 .2}"), path=path)
    row = by_id("systemone", reply)["p"]
    assert row["accept"] is accept
    assert ("jev-1.13.0" in row.get("reason", "")) is not accept


def test_a_calibrator_of_a_metric_or_of_no_probability_is_refused(tmp_path: Path) -> None:
    path = calibrator(tmp_path / "c.json", origin=ScoreOrigin("run", "grounding"))
    with pytest.raises(
        InputError,
        match="calibrates the metric grounding; --decisions needs a calibrator of a column",
    ):
        decision_model_part(path)
    made = read_calibrator(calibrator(path, [promise()]))
    scores = [float(score) for score in range(100)]
    spread = summarise_distribution(scores, list(range(100)))
    write_calibrator(replace(made, spread=spread), path)
    with pytest.raises(InputError, match="needs a calibrator of probabilities from 0 to 1"):
        decision_model_part(path)


@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_is_that_of_one_question(wire: str, made: Path) -> None:
    body = build(wire, p="Is it? {refuse}", q="Is it? {.8 .2}")
    with DecisionServer("openai") as server:
        (reply,) = asked(URI.format("decisions", server.url), body, path=made)
    rows = by_id(wire, reply)
    assert rows["p"]["refusal"] == "I cannot judge this."
    assert rows["p"]["type"] == ("noul" if wire == "systemone" else "refusal")
    assert rows["p"].keys().isdisjoint({"noul", "probability", "accept"})
    assert rows["q"]["accept"] is True


def test_a_lost_answer_is_left_out_or_refused_and_the_others_stay() -> None:
    texts = {"_1": "Is it? {lose}", "_2": "Is it? {.8 .2}", "c": "Which? {.2 .2}"}
    with DecisionServer("typesafe") as server:
        uri = URI.format("systemone", server.url)
        bodies = [build(wire, **texts) for wire in WIRES]
        bodies.append(build("systemone", only="Is it? {lose}"))
        named, listed, alone = asked(uri, *bodies)
    assert list(by_id("systemone", named)) == ["_2"]
    rows = listed.json()["answers"]
    assert [row["type"] for row in rows] == ["refusal", "predicate", "refusal"]
    assert [row["name"] for row in rows] == [None, None, "c"]
    assert alone.status_code == 502 and "has no answer" in alone.text


def test_an_undecided_answer_passes_with_its_mass() -> None:
    with DecisionServer("sglang") as server:
        uri = URI.format("systemone", server.url)
        (reply,) = asked(uri, build("decisions", c="Which? {.3 .7} {mass .2}"))
    row = by_id("decisions", reply)["c"]
    assert (row["choice"], row["label_mass"], row["calibrated"]) == ("y", 0.2, False)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("scheme", "dialect"), UPSTREAMS)
def test_a_question_that_the_model_refuses_is_named(wire: str, scheme: str, dialect: str) -> None:
    body = build(wire, p="Is it? {.8 .2}", q="Is it? {bad}")
    with DecisionServer(dialect) as server:
        (reply,) = asked(URI.format(scheme, server.url), body)
    assert reply.status_code == (422 if wire == "systemone" else 400)
    assert reply.json()["error"]["type"] == "invalid_request"
    assert reply.json()["error"]["message"].startswith("questions.q: ")
    assert ("detail" in reply.json()) is (wire == "systemone")


@pytest.mark.parametrize(
    ("status", "expected"), [(429, 429), (500, 502), (401, 502), (501, 502), (408, 504)]
)
@pytest.mark.parametrize("wire", WIRES)
def test_errors_of_the_model_have_a_status_and_no_key(
    wire: str, status: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-of-the-upstream"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    failure = (status, {"error": {"message": f"no, {key}"}}, {"Retry-After": "1"})
    with DecisionServer("openai", *[failure] * 20) as server:
        uri = f"decisions:m@{server.url}?patience=0.1&deadline=0.1&tries=1"
        (reply,) = asked(uri, build(wire, p="Is it?"))
    assert server.requests[0][2]["Authorization"] == f"Bearer {key}"
    assert reply.status_code == expected, reply.text
    assert ("retry-after" in reply.headers) is (expected == 429)
    assert key not in reply.text and reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (
            systemone(**{f"q{i}": "Is it?" for i in range(65)}),
            "questions: expected 1 to 64, got 65",
        ),
        (systemone(), "questions: expected 1 to 64"),
        (systemone(q=" "), "questions.q.instructions"),
        ([], "model: expected"),
        ({**systemone(q="Is it?"), "state": None}, "state: expected"),
    ],
)
def test_a_faulty_request_names_its_field_and_is_not_passed_on(body: Any, field: str) -> None:
    with DecisionServer("vllm") as server:
        (reply,) = asked(URI.format("systemone", server.url), ("systemone", body))
        assert not server.requests
    assert reply.status_code == 422 and field in reply.json()["error"]["message"]


@pytest.mark.parametrize("content", [5, True, None, [], {}, [5], [{"type": "input_image"}]])
def test_messages_without_text_are_refused(content: Any) -> None:
    body = {**decisions(q="Is it?"), "input": [{"role": "user", "content": content}]}
    (reply,) = asked(URI.format("decisions", "http://127.0.0.1:9"), ("decisions", body))
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == "input: expected a text, or messages with texts"


def test_hostile_text_stays_text() -> None:
    hostile = 'Is it? {.8 .2}\r\n"}], "model": "other" \x00 <script> ../../etc \u202e \ud83d'
    body = systemone(**{"a\n\ud800": hostile, "__proto__": "Is it? {.7 .3}"})
    with DecisionServer("typesafe") as server:
        (reply,) = asked(URI.format("systemone", server.url), ("systemone", body))
        (sent,) = server.bodies
    assert sent["model"] == "m" and set(sent["questions"]) == {"q0", "q1"}
    rows = by_id("systemone", reply)
    assert [chance(row) for row in rows.values()] == [pytest.approx(0.8), pytest.approx(0.7)]
    assert list(rows) == ["a\n?", "__proto__"]


def test_an_answer_is_stored_like_any_call(tmp_path: Path) -> None:
    body = build("systemone", p="Is it? {.8 .2}")
    with DecisionServer("vllm") as server:
        uri = URI.format("systemone", server.url)
        replies = [asked(uri, body, cache=tmp_path)[0] for _ in range(2)]
        replies += asked(uri, build("decisions", p="Is it? {.8 .2}"), cache=tmp_path)
        assert len(server.requests) == 1
    assert {reply.status_code for reply in replies} == {200}


def test_the_budget_holds_for_questions(tmp_path: Path) -> None:
    with DecisionServer("vllm") as server:
        uri = URI.format("systemone", server.url)
        bodies = [build("systemone", p=f"Is it {i}?") for i in range(2)]
        replies = asked(uri, *bodies, budget="120", cache=tmp_path)
    assert [reply.status_code for reply in replies] == [200, 502]
    assert "the budget of 120 tokens is reached" in replies[1].text


@pytest.fixture
def openai_server() -> Iterator[DecisionServer]:
    with DecisionServer("typesafe") as server:
        yield server


def test_the_command_serves_openais_own_client(
    tmp_path: Path, openai_server: DecisionServer, made: Path
) -> None:
    openai = needed("openai")
    token = "a-token-of-the-service"
    options = ("--decisions", f"systemone:m@{openai_server.url}", "--calibrator", made)
    with serving(
        tmp_path, *LEXICAL, *options, TRUSTASSAY_SERVE_TOKEN=token, TRUSTASSAY_CACHE="off"
    ) as service:
        base = f"http://{service.host}:{service.port}/v1"
        client = openai.OpenAI(base_url=base, api_key=token, max_retries=0)
        body = decisions(p="Is it? {.8 .2}", c="Which? {.3 .7}", s="How? {.1 .2 .7}")
        decision = client.decisions.create(**body)
        refused = service.ask("POST", "/v1/systemone", json.dumps(systemone(p="Is it?")), JSON)
    predicate, choice, score = decision.answers
    assert predicate.probability == pytest.approx(0.82) and predicate.accept is True
    assert (choice.choice, score.probabilities[2].label) == ("y", "good")
    assert decision.usage.input_tokens_details.cached_tokens == 0
    openai.types.Decision.model_validate(decision.model_dump())
    assert refused.status == 401
