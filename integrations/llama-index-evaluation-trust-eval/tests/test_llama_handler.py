"""What a running engine answers is scored beside its work."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")

from llama_index.core.evaluation import EvaluationResult
from llama_index.core.instrumentation import get_dispatcher
from llama_index.evaluation.trust_eval import (
    GroundedFaithfulnessEvaluator,
    GroundingEvaluator,
    TrustEvaluationHandler,
)

QUERY = "When was the stone bridge over the river opened?"


@pytest.fixture
def add_handler() -> Any:
    """Add a handler to all engines, and take it away again."""
    root = get_dispatcher()
    before = list(root.event_handlers)

    def add(handler: TrustEvaluationHandler) -> TrustEvaluationHandler:
        root.add_event_handler(handler)
        return handler

    yield add
    # Dispatchers are global: a handler would see the engines of other tests.
    root.event_handlers = before


def test_every_answer_is_scored(engine: Any, add_handler: Any) -> None:
    results: list[tuple[str, EvaluationResult]] = []
    evaluators = {"g": GroundingEvaluator(), "f": GroundedFaithfulnessEvaluator()}
    handler = add_handler(
        TrustEvaluationHandler(evaluators, lambda *result: results.append(result))
    )
    answering = engine(lambda prompt: "The stone bridge was opened in 1911 [1].")
    for _ in range(3):
        assert str(answering.query(QUERY)) == "The stone bridge was opened in 1911 [1]."
    assert handler.wait(60)
    assert sorted(name for name, _ in results) == ["f", "f", "f", "g", "g", "g"]
    assert {
        (result_of_handler.query, result_of_handler.score, result_of_handler.passing)
        for _, result_of_handler in handler.results
    } == {
        (QUERY, 1.0, results[0][1].passing),
    } | {(QUERY, 1.0, result_of_handler.passing) for _, result_of_handler in results}


def test_a_stream_is_left_to_the_caller(engine: Any, add_handler: Any) -> None:
    handler = add_handler(TrustEvaluationHandler({"g": GroundingEvaluator()}))
    response = engine(lambda prompt: "In 1911 [1].", streaming=True).query(QUERY)
    assert str(response) == "In 1911 [1]."
    assert handler.skipped == 1
    assert handler.wait(5)
    assert handler.results == []


def test_a_callback_that_fails_harms_neither_engine_nor_handler(
    engine: Any, add_handler: Any
) -> None:
    def fail(name: str, result: EvaluationResult) -> None:
        raise RuntimeError("no")

    handler = add_handler(TrustEvaluationHandler({"g": GroundingEvaluator()}, fail))
    answering = engine(lambda prompt: "The stone bridge was opened in 1911 [1].")
    for _ in range(2):
        answering.query(QUERY)
    assert handler.wait(60)
    assert len(handler.results) == 2
