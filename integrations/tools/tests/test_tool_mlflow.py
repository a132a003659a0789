"""The MLflow scorer in ``mlflow.genai.evaluate``, with a store on this disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlflow", reason="needs mlflow: tox run")

import mlflow
import tutorials
from mlflow.entities import Feedback, SpanType

from trustassay import scorer
from trustassay.live.integrations.mlflow import NOT_SCORED, trust_scorer

DEEP: dict[str, Any] = {}
for _ in range(50_000):
    DEEP = {"answer": DEEP}
PASSAGE = "The stone bridge over the river was opened in 1911."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with its tables, which take seconds to make."""
    yield f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"
    mlflow.set_tracking_uri(None)


@pytest.fixture
def experiment(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    mlflow.set_tracking_uri(store)
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment(
            request.node.name, artifact_location=(tmp_path / "artifacts").as_uri()
        )
    )


def row(response: Any = PASSAGE, **fields: Any) -> dict[str, Any]:
    return {
        "inputs": {"question": "When was the bridge opened?"},
        "outputs": {"response": response, "documents": [PASSAGE]},
    } | fields


def only(found: Any) -> Feedback:
    (one,) = found
    return one


# ---- a call of the scorer ----


def test_a_feedback_has_the_score_the_reason_and_the_verdict() -> None:
    found = only(trust_scorer("faithfulness")(**row()))
    with scorer(metrics="faithfulness") as direct:
        expected = direct.score(
            {
                "question": "When was the bridge opened?",
                "response": PASSAGE,
                "documents": [PASSAGE],
            }
        )["faithfulness"]
    assert (found.name, found.value, found.rationale) == ("faithfulness", 1.0, expected.reason)
    assert found.error is None
    assert found.source.source_id == "trustassay"
    assert found.metadata["verdict"] == expected.verdict
    assert found.metadata["passed"] == "true"
    assert json.loads(found.metadata["parts"]) == dict(expected.parts)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (row(None), "response: is missing"),
        (row(["a", "b"]), "response"),
        ({"inputs": None, "outputs": None}, "question: is missing"),
        ({"inputs": {"x": 3}, "outputs": "In 1911."}, "question: is missing"),
        (row(outputs="In 1911."), "documents: is missing"),
        (row(outputs=object()), "response"),
        (row(outputs=DEEP), "nested too deeply"),
        ({"outputs": {}}, "question: is missing"),
        ({}, "question: is missing"),
        (row(expectations="not a mapping", outputs=None), "response: is missing"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_record_that_cannot_be_scored_has_an_error_and_no_value(
    given: dict[str, Any], words: str
) -> None:
    found = only(trust_scorer("faithfulness", entailer="lexical")(**given))
    assert found.value is None
    assert found.error.error_code == NOT_SCORED
    assert words in found.error.error_message


def test_a_refusal_has_no_value_and_says_why() -> None:
    found = only(trust_scorer("faithfulness")(**row("I cannot answer that.")))
    assert (found.value, found.error) == (None, None)
    assert found.rationale.startswith("no score: ")
    assert found.metadata["verdict"] == "refused"


def test_an_exception_inside_is_an_error_of_that_record() -> None:
    def entailer(premise: str, hypothesis: str) -> float:
        raise ZeroDivisionError("unlucky")

    found = only(trust_scorer("faithfulness", entailer=entailer)(**row()))
    assert found.value is None
    assert "unlucky" in found.error.error_message


@pytest.mark.parametrize(
    "expectations",
    [
        {"expected_response": "It was opened in 1911."},
        {"expected_facts": ["It was opened in 1911."]},
        {"expected_response": "no", "expected_facts": ["It was opened in 1911."]},
        {"reference": "It was opened in 1911."},
    ],
)
def test_expectations_are_right_answers(expectations: dict[str, Any]) -> None:
    one = trust_scorer("grounding:correctness=cm", entailer="lexical")
    found = only(one(**row(expectations=expectations)))
    assert json.loads(found.metadata["parts"])["golds"] == 1.0


def test_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean faithfulness"):
        trust_scorer("faithfullness")
    with pytest.raises(ValueError, match="a scorer for each"):
        trust_scorer(["faithfulness", "grounding"], threshold=0.5)


# ---- evaluation ----


def feedback(result: Any) -> list[dict[str, Any]]:
    """Return the feedback of each row by name, in the order of the questions."""
    rows = []
    for assessments, request in zip(
        result.result_df["assessments"], result.result_df["request"], strict=True
    ):
        named = {one["assessment_name"]: one["feedback"] for one in assessments}
        rows.append((request["question"], {k: v for k, v in named.items() if v is not None}))
    return [named for _, named in sorted(rows, key=lambda each: each[0])]


def test_an_evaluation_of_rows(experiment: None) -> None:
    data = [row(inputs={"question": f"{i}: when?"}) for i in range(3)]
    data[1]["outputs"]["response"] = None
    data[2]["outputs"]["response"] = "The bridge was opened in 1920."
    result = mlflow.genai.evaluate(
        data=data, scorers=[trust_scorer(["faithfulness", "grounding:correctness=none"])]
    )
    first, second, third = feedback(result)
    assert first["faithfulness"] == {"value": 1.0}
    assert second["faithfulness"]["value"] is None
    assert second["grounding"]["error"]["error_code"] == NOT_SCORED
    assert third["faithfulness"] == {"value": 0.0}
    assert result.metrics["faithfulness/mean"] == 0.5


def test_two_settings_of_one_metric_stand_side_by_side_and_a_threshold_lets_pass(
    experiment: None,
) -> None:
    scorers = [
        trust_scorer("faithfulness", threshold=0.5),
        trust_scorer("faithfulness", name="words", entailer="lexical", threshold=0.5),
    ]
    result = mlflow.genai.evaluate(data=[row()], scorers=scorers)
    assert set(feedback(result)[0]) == {"faithfulness", "words"}
    assert result.passed, result.reason
    wrong = mlflow.genai.evaluate(data=[row("It was never opened.")], scorers=scorers[:1])
    assert not wrong.passed
    assert "faithfulness" in wrong.reason


@mlflow.trace(span_type=SpanType.RETRIEVER)
def retrieve(question: str) -> list[dict[str, Any]]:
    draft(question)
    return [{"page_content": PASSAGE, "metadata": {"doc_uri": "bridges.txt"}}]


@mlflow.trace(span_type=SpanType.RETRIEVER)
def draft(question: str) -> list[dict[str, Any]]:
    return [{"page_content": "A passage that the retriever has sorted out."}]


@mlflow.trace
def answer(question: str) -> str | None:
    if question.startswith("1"):
        raise RuntimeError("unlucky")
    retrieve(question)
    return PASSAGE


def test_passages_are_those_of_the_traces_retrievers(experiment: None, tmp_path: Path) -> None:
    one = trust_scorer("faithfulness", entailer="lexical", out=tmp_path / "run")
    result = mlflow.genai.evaluate(
        data=[{"inputs": {"question": f"{i}: when?"}} for i in (0, 1)],
        predict_fn=answer,
        scorers=[one],
    )
    first, second = feedback(result)
    assert first["faithfulness"] == {"value": 1.0}
    assert second["faithfulness"]["error"]["error_code"] == NOT_SCORED
    (line,) = (tmp_path / "run" / "samples.jsonl").read_text().splitlines()
    assert [one["text"] for one in json.loads(line)["documents"]] == [PASSAGE]


def test_stored_traces_are_scored(experiment: None) -> None:
    answer("0: when?")
    traces = mlflow.search_traces(return_type="list", flush=True)
    result = mlflow.genai.evaluate(
        data=traces, scorers=[trust_scorer("faithfulness", entailer="lexical")]
    )
    assert result.metrics["faithfulness/mean"] == 1.0


def test_fifty_rows_at_once(tmp_path: Path) -> None:
    """Called as ``evaluate`` does, from threads; its own store takes a minute for 50 rows."""
    out = tmp_path / "run"
    one = trust_scorer("faithfulness", entailer="lexical", out=out)
    rows = [row(inputs={"question": f"{i}: when?"}) for i in range(50)]
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda each: only(one.run(**each)), rows))
    assert [each.value for each in found] == [1.0] * 50
    assert len((out / "samples.jsonl").read_text().splitlines()) == 50


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    printed = tutorials.run_section("MLflow", tmp_path)
    assert printed
    assert all(one.agrees() for one in printed), [one.actual for one in printed]
