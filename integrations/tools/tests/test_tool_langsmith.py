"""The evaluators in LangSmith's ``evaluate`` and in OpenEvals, and called by themselves."""

from __future__ import annotations

import asyncio
import datetime
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("langsmith", reason="needs langsmith: tox run")

from bridge import NOT_SUPPORTED, PASSAGE, REFUSAL, SUPPORTED, Unlucky
from langsmith import Client
from langsmith.schemas import Example
from tutorials import run_section

from trustassay.live import open_scorers
from trustassay.live.integrations.langsmith import async_trust_evaluator, trust_evaluator


def examples(*questions: str) -> list[Example]:
    now = datetime.datetime.now(datetime.UTC)
    return [
        Example(
            id=uuid.uuid4(),
            dataset_id=uuid.uuid4(),
            created_at=now,
            inputs={"question": question},
            outputs={"answer": "1911"},
        )
        for question in questions
    ]


ANSWERS = {
    "good": {"answer": SUPPORTED, "context": [PASSAGE]},
    "bad": {"answer": NOT_SUPPORTED, "context": [PASSAGE]},
    "refused": {"answer": REFUSAL, "context": [PASSAGE]},
    "none": {"answer": None, "context": [PASSAGE]},
    "bare": {"answer": SUPPORTED},
}


def system(inputs: dict[str, str]) -> Any:
    return ANSWERS[inputs["question"]]  # raises for any other


def client() -> Client:
    """A client whose session reaches nobody: traces of asynchronous targets are sent anyway."""
    return Client(
        api_url="http://127.0.0.1:9",
        api_key="not used",
        info={},
        session=MagicMock(),
        auto_batch_tracing=False,
    )


def feedback(row: Any) -> list[tuple[str, Any, Any]]:
    return [(one.key, one.score, one.extra) for one in row["evaluation_results"]["results"]]


def by_question(rows: Any) -> dict[str, list[tuple[str, Any, Any]]]:
    return {row["example"].inputs["question"]: feedback(row) for row in rows}


FAILED = {"error": True}


def test_an_experiment_has_the_feedback_of_each_evaluator() -> None:
    evaluators = [
        trust_evaluator("faithfulness", entailer="lexical"),
        trust_evaluator(["reference"]),
    ]
    rows = client().evaluate(
        system,
        data=examples("good", "bad", "refused", "none", "bare", "raises"),
        evaluators=evaluators,
        upload_results=False,
    )
    assert by_question(rows) == {
        "good": [("faithfulness", 1.0, None), ("reference", 1.0, None)],
        "bad": [("faithfulness", 0.0, None), ("reference", 0.0, None)],
        "refused": [("faithfulness", None, None), ("reference", 0.0, None)],
        "none": [("faithfulness", None, FAILED), ("reference", None, FAILED)],
        "bare": [("faithfulness", None, FAILED), ("reference", 1.0, None)],
        "raises": [("faithfulness", None, FAILED), ("reference", None, FAILED)],
    }


def test_an_asynchronous_experiment_of_fifty_shares_one_scorer() -> None:
    async def target(inputs: dict[str, str]) -> Any:
        return system(inputs)

    async def run() -> list[Any]:
        rows = await client().aevaluate(
            target,
            data=examples(*["good", "bad"] * 25),
            evaluators=[async_trust_evaluator("faithfulness", entailer="lexical")],
            max_concurrency=50,
            upload_results=False,
        )
        return [feedback(row) async for row in rows]

    found = asyncio.run(run())
    assert sorted(score for [(_, score, _)] in found) == [0.0] * 25 + [1.0] * 25
    assert len(open_scorers._scorers_by_key) == 1


def test_one_metric_gives_one_feedback_and_a_list_a_list() -> None:
    given = {"inputs": {"question": "When?"}, "outputs": ANSWERS["bad"]}
    one = trust_evaluator("faithfulness", entailer="lexical")(**given)
    assert (one["key"], one["score"]) == ("faithfulness", 0.0)
    assert "1 of 1 sentence not found" in one["comment"]
    assert one["metadata"]["passed"] is False
    several = trust_evaluator(["faithfulness", "grounding"], entailer="lexical")(**given)
    assert [each["key"] for each in several] == ["faithfulness", "grounding"]
    assert several[0] == one


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (None, "response: is missing"),
        ({}, "response: is missing"),
        ({"answer": 3}, "response: is missing"),
        ([{"role": "user", "content": "When?"}], "response: is missing"),
        ("", "the response is blank"),
        (NOT_SUPPORTED, "unlucky"),
    ],
)
def test_what_cannot_be_scored_is_told_and_never_a_0(outputs: Any, words: str) -> None:
    given = {"inputs": {"question": "When?"}, "outputs": outputs, "context": [PASSAGE]}
    options: dict[str, Any] = {"entailer": Unlucky()}
    found = trust_evaluator("faithfulness", **options)(**given)
    assert (found["score"], found["extra"]) == (None, FAILED)
    assert words in found["comment"]
    assert found == asyncio.run(async_trust_evaluator("faithfulness", **options)(**given))


def test_fifty_threads_are_served() -> None:
    evaluator = trust_evaluator("faithfulness", entailer="lexical")
    texts = [f"The stone bridge was opened in {1900 + number}." for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        found = list(
            pool.map(lambda text: evaluator(inputs="?", outputs=text, context=PASSAGE), texts)
        )
    assert [one["score"] for one in found] == [0.0] * 11 + [1.0] + [0.0] * 38


def test_broken_settings_are_an_error_of_the_experiment() -> None:
    rows = client().evaluate(
        system, data=examples("good"), evaluators=[trust_evaluator("judge")], upload_results=False
    )
    [row] = rows
    [found] = row["evaluation_results"]["results"]
    assert (found.score, found.extra) == (None, FAILED)
    assert "needs a judge" in found.comment
    with pytest.raises(ValueError, match="did you mean faithfulness"):
        trust_evaluator("faithfullness")


def test_messages_and_documents_of_langchain_are_read() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, HumanMessage

    evaluator = trust_evaluator("faithfulness", entailer="lexical")
    found = evaluator(
        inputs={"messages": [HumanMessage("When?")]},
        outputs={
            "messages": [HumanMessage("When?"), AIMessage(SUPPORTED)],
            "context": [Document(PASSAGE)],
        },
    )
    assert found["score"] == 1.0


def test_a_simulated_conversation_of_openevals_is_evaluated_by_its_last_answer() -> None:
    pytest.importorskip("openevals", reason="needs openevals: tox run")
    from openevals.simulators import run_multiturn_simulation, run_multiturn_simulation_async

    replies = [SUPPORTED, NOT_SUPPORTED]

    def app(message: Any, **_: Any) -> Any:
        return {
            "role": "assistant",
            "content": replies[0] if "When" in str(message) else replies[1],
        }

    given = {
        "user": ["When was it opened?", "How many arches?"],
        "max_turns": 2,
        "reference_outputs": {"context": [PASSAGE]},
    }
    options: dict[str, Any] = {
        "entailer": "lexical",
        "fields": {"documents": "reference_outputs.context"},
    }
    found = run_multiturn_simulation(
        app=app, trajectory_evaluators=[trust_evaluator("faithfulness", **options)], **given
    )
    [result] = found["evaluator_results"]
    assert (result["key"], result["score"]) == ("faithfulness", 0.0)

    async def later(message: Any, **_: Any) -> Any:
        return app(message)

    again = asyncio.run(
        run_multiturn_simulation_async(
            app=later,
            trajectory_evaluators=[async_trust_evaluator("faithfulness", **options)],
            **given,
        )
    )
    assert again["evaluator_results"] == [result]


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    printed = run_section("LangSmith and OpenEvals", tmp_path)
    assert len(printed) == 1
    assert [one.actual for one in printed if not one.agrees()] == []
