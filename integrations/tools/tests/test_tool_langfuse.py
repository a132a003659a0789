"""The Langfuse evaluator in experiments and on traces, with a server on this machine or none."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langfuse", reason="needs langfuse: tox run")

import tutorials
from langfuse import EvaluatorInputs, Langfuse

from trustassay import scorer
from trustassay.live.integrations.langfuse import TrustEvaluator

PASSAGE = "The stone bridge over the river was opened in 1911."
DEEP: dict[str, Any] = {}
for _ in range(50_000):
    DEEP = {"answer": DEEP}
OUTPUT = {"answer": PASSAGE, "documents": [PASSAGE]}


def found_by(evaluator: TrustEvaluator, **item: Any) -> list[Any]:
    return asyncio.run(evaluator(**item))


# ---- an item ----


def test_an_evaluation_has_the_score_the_reason_and_the_verdict() -> None:
    item = {"input": {"question": "When?"}, "output": OUTPUT, "expected_output": None}
    (found,) = found_by(TrustEvaluator("faithfulness"), **item)
    with scorer(metrics="faithfulness") as direct:
        record = {"question": "When?", "response": PASSAGE, "documents": [PASSAGE]}
        expected = direct.score(record)["faithfulness"]
    assert (found.name, found.value, found.data_type) == ("faithfulness", 1.0, "NUMERIC")
    assert found.comment == expected.reason
    assert found.metadata == {
        "verdict": expected.verdict,
        "passed": True,
        "lower_is_better": False,
        "parts": dict(expected.parts),
    }


@pytest.mark.parametrize(
    "item",
    [
        {"input": "When?", "output": PASSAGE, "metadata": {"contexts": [PASSAGE]}},
        {"input": {"question": "When?"}, "output": OUTPUT, "metadata": {"k": 1}},
        {"input": json.dumps({"question": "When?"}), "output": json.dumps(OUTPUT)},
        {"input": [{"role": "user", "content": "When?"}], "output": OUTPUT},
        {"input": "When?", "output": PASSAGE, "context": [PASSAGE]},
    ],
)
def test_items_of_every_form(item: dict[str, Any]) -> None:
    evaluator = TrustEvaluator("faithfulness", entailer="lexical")
    assert [one.value for one in found_by(evaluator, **item)] == [1.0]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"input": "When?", "output": None}, "response: is missing"),
        ({"input": None, "output": OUTPUT}, "question: is missing"),
        ({"input": {"x": 3}, "output": OUTPUT}, "question: is missing"),
        ({"input": "When?", "output": "In 1911."}, "documents: is missing"),
        ({"input": "[1, 2]", "output": "{"}, "documents: is missing"),
        ({"input": "When?", "output": {"answer": 3, "documents": 7}}, "documents"),
        ({"input": "When?", "output": object()}, "response"),
        ({"input": "When?", "output": DEEP}, "nested too deeply"),
        ({"input": "[" * 50_000, "output": "In 1911."}, "documents: is missing"),
        ({}, "question: is missing"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_an_item_that_cannot_be_scored_is_counted_and_is_no_0(
    item: dict[str, Any], words: str
) -> None:
    (found,) = found_by(TrustEvaluator("faithfulness", entailer="lexical"), **item)
    assert (found.name, found.value) == ("faithfulness not scored", "failed")
    assert found.data_type == "CATEGORICAL"
    assert words in found.comment


def test_a_refusal_has_no_score_and_says_why() -> None:
    output = {"answer": "I cannot answer that.", "documents": [PASSAGE]}
    (found,) = found_by(TrustEvaluator("faithfulness"), input="When?", output=output)
    assert (found.name, found.value) == ("faithfulness not scored", "no score")
    assert found.metadata["verdict"] == "refused"


def test_an_exception_inside_is_a_failure_of_that_item() -> None:
    def entailer(premise: str, hypothesis: str) -> float:
        raise ZeroDivisionError("unlucky")

    evaluator = TrustEvaluator("faithfulness", entailer=entailer)
    (found,) = found_by(evaluator, input="When?", output=OUTPUT)
    assert found.value == "failed"
    assert "unlucky" in found.comment


# ---- experiments ----


def answer(*, item: Any, **_: Any) -> Any:
    number = item["input"]["number"]
    if number == 1:
        raise RuntimeError("unlucky")
    return None if number == 2 else OUTPUT


def items(n: int) -> list[Any]:
    return [{"input": {"question": "When?", "number": i}} for i in range(n)]


def test_an_experiment_without_a_server(tmp_path: Path) -> None:
    langfuse = Langfuse(public_key="pk-lf-off", secret_key="sk-lf-off", tracing_enabled=False)
    evaluator = TrustEvaluator("faithfulness", entailer="lexical", out=tmp_path / "run")
    result = langfuse.run_experiment(
        name="bridge", data=items(50), task=answer, evaluators=[evaluator]
    )
    found = {
        one.item["input"]["number"]: [(each.name, each.value) for each in one.evaluations]
        for one in result.item_results
    }
    assert found[2] == [("faithfulness not scored", "failed")]
    assert {number: values for number, values in found.items() if number != 2} == {
        number: [("faithfulness", 1.0)] for number in (0, *range(3, 50))
    }
    assert len((tmp_path / "run" / "samples.jsonl").read_text().splitlines()) == 48


class Server:
    """What a Langfuse server would get, and answers as one."""

    def __init__(self) -> None:
        self.scores: list[dict[str, Any]] = []
        self.observations: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path.endswith("/scores"):
                    outer.scores += json.loads(body)
                self.answer({})

            def do_GET(self) -> None:
                if "/observations" in self.path:
                    self.answer({"data": outer.observations, "meta": {}})
                else:
                    about = {"id": "p1", "name": "p", "organization": {"id": "o", "name": "o"}}
                    self.answer({"data": [about | {"metadata": {}}]})

            def answer(self, content: Any) -> None:
                text = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.fixture
def langfuse(server: Server, request: pytest.FixtureRequest) -> Iterator[Langfuse]:
    client = Langfuse(
        public_key=f"pk-lf-{request.node.name}", secret_key="sk-lf-1", base_url=server.url
    )
    yield client
    client.shutdown()


def test_scores_of_an_experiment_reach_the_server(langfuse: Langfuse, server: Server) -> None:
    evaluator = TrustEvaluator("faithfulness", entailer="lexical")
    langfuse.run_experiment(name="bridge", data=items(3), task=answer, evaluators=[evaluator])
    langfuse.flush()
    assert sorted((one["name"], one["value"], one["dataType"]) for one in server.scores) == [
        ("faithfulness", 1.0, "NUMERIC"),
        ("faithfulness not scored", "failed", "CATEGORICAL"),
    ]


def test_observations_of_the_server_are_scored(langfuse: Langfuse, server: Server) -> None:
    server.observations = [
        {
            "id": "0123456789abcdef",
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "startTime": "2026-11-22T12:00:00Z",
            "type": "SPAN",
            "projectId": "p1",
            "input": json.dumps({"question": "When?"}),
            "output": json.dumps(OUTPUT),
        }
    ]
    result = langfuse.run_batched_evaluation(
        mapper=lambda *, item: EvaluatorInputs(input=item.input, output=item.output),
        evaluators=[TrustEvaluator("faithfulness", entailer="lexical")],
    )
    assert result.total_items_failed == 0
    langfuse.flush()
    (sent,) = server.scores
    assert (sent["name"], sent["value"]) == ("faithfulness", 1.0)
    assert sent["observationId"] == "0123456789abcdef"


# ---- traces ----


def test_a_trace_is_scored_and_scored_again_in_place(langfuse: Langfuse, server: Server) -> None:
    evaluator = TrustEvaluator("faithfulness", entailer="lexical")
    item: dict[str, Any] = {"input": "When?", "output": PASSAGE, "context": [PASSAGE]}
    with langfuse.start_as_current_observation(name="answer") as span:
        first = evaluator.score_trace(langfuse, span.trace_id, **item)
        asyncio.run(evaluator.ascore_trace(langfuse, span.trace_id, **item))
        evaluator.score_trace(langfuse, span.trace_id, observation_id=span.id, **item)
    langfuse.flush()
    assert [one.value for one in first] == [1.0]
    assert [one["traceId"] for one in server.scores] == [span.trace_id] * 3
    assert [one.get("observationId") for one in server.scores] == [None, None, span.id]
    ids = [one["id"] for one in server.scores]
    assert ids[0] == ids[1] != ids[2]


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    printed = tutorials.run_section("Langfuse", tmp_path)
    assert printed
    assert all(one.agrees() for one in printed), [one.actual for one in printed]
