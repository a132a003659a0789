"""Every metric as an evaluator: one answer, a batch, an engine's response; nothing is raised."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: tox run")

import llama_index.evaluation.trust_eval as package
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner, EvaluationResult
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.evaluation.trust_eval import (
    ConsistencyEvaluator,
    FactCheckEvaluator,
    GroundedFaithfulnessEvaluator,
    GroundingEvaluator,
    HarmonicityEvaluator,
    PreferenceEvaluator,
    ReferenceEvaluator,
    RubricEvaluator,
    SemanticHarmonicityEvaluator,
    TrustMetricEvaluator,
    UncertaintyEvaluator,
)
from llama_index.evaluation.trust_eval.evaluators import _NamedMetricEvaluator
from llama_models import PASSAGES, Scripted, WordVectors

from trustassay.core.registry import load_metric_class

BRIDGE = list(PASSAGES.values())[:1]
RIGHT = "The stone bridge was opened in 1911."
WRONG = "The stone bridge was opened in 1950 by the king of Spain."


def test_every_metric_that_scores_one_answer_has_an_evaluator() -> None:
    from importlib.metadata import entry_points

    metrics = {entry.name for entry in entry_points(group="trustassay.metrics")}
    evaluated = {evaluator._metric for evaluator in _NamedMetricEvaluator.__subclasses__()}
    assert metrics - evaluated == {"fewl"}  # looks at all samples together
    assert load_metric_class("fewl").pool
    assert {evaluator.__name__ for evaluator in _NamedMetricEvaluator.__subclasses__()} <= set(
        package.__all__
    )
    with pytest.raises(
        ValueError, match="fewl: compares all samples, so it cannot score them one by one"
    ):
        TrustMetricEvaluator("fewl")


def test_a_true_and_a_false_answer() -> None:
    evaluator = GroundedFaithfulnessEvaluator()
    assert isinstance(evaluator, BaseEvaluator)
    good = evaluator.evaluate("When was the bridge opened?", RIGHT, BRIDGE)
    assert (good.score, good.passing, good.invalid_result) == (1.0, True, False)
    assert good.contexts == BRIDGE
    assert good.feedback == "the passages support the answer"
    bad = asyncio.run(evaluator.aevaluate("When was the bridge opened?", WRONG, BRIDGE))
    assert (bad.score, bad.passing) == (0.0, False)
    assert bad.feedback
    evaluator.close()


def test_what_fails_is_a_result_that_says_so() -> None:
    evaluator = GroundedFaithfulnessEvaluator()
    for arguments, message in (
        ({"query": "When?", "response": RIGHT}, "documents: is missing"),
        ({"response": RIGHT, "contexts": BRIDGE}, "question: is missing"),
        ({"query": "When?", "response": "", "contexts": BRIDGE}, "the response is blank"),
        ({"query": "When?", "response": RIGHT, "contexts": BRIDGE, "refrence": "x"}, "refrence"),
    ):
        result = evaluator.evaluate(**arguments)
        assert result.invalid_result
        assert message in (result.invalid_reason or "")
        assert result.score is None
    assert evaluator.evaluate_response("When?", 3).invalid_result  # type: ignore[arg-type]
    assert evaluator.evaluate_response("When?", None).invalid_result
    evaluator.close()
    reopened = evaluator.evaluate("When was the bridge opened?", RIGHT, BRIDGE)
    assert reopened.score == 1.0  # opened again


def test_an_llm_that_fails_is_a_result_that_says_so() -> None:
    def fail(prompt: str) -> str:
        raise RuntimeError("quota is used up")

    result = RubricEvaluator(llm=Scripted(script=fail)).evaluate("When?", RIGHT, reference=RIGHT)
    assert result.invalid_result
    assert "quota is used up" in (result.invalid_reason or "")


def test_a_threshold_is_kept_on_the_side_that_is_good() -> None:
    passing = [
        GroundedFaithfulnessEvaluator(threshold=threshold, entailer="lexical")
        .evaluate("When?", "The stone bridge has seven arches, and towers.", BRIDGE)
        .passing
        for threshold in (0.0, 1.1)
    ]
    assert passing == [True, False]
    llm = Scripted(script=lambda prompt: "In 1911.")
    # Low scores are good here: the threshold is an upper bound.
    for threshold, expected in ((0.5, True), (-0.1, False)):
        harmonicity = HarmonicityEvaluator("perturbations=3", llm=llm, threshold=threshold)
        assert harmonicity.evaluate("When?", "In 1911.").passing is expected


def test_passing_is_the_outcome_that_a_run_counts() -> None:
    """An answer that grounding calls `answered` passes only if its passages support it."""
    evaluator = GroundingEvaluator("correctness=em", entailer="lexical")
    refusal = "I apologize, but I couldn't find an answer to your question in the search results."
    answers = ["The stone bridge has seven arches [1].", "It has nine red towers [1].", refusal]
    results = [
        evaluator.evaluate("How many arches?", text, BRIDGE, reference="seven") for text in answers
    ]
    assert [result.passing for result in results] == [True, False, None]
    assert results[2].score == 0


def test_the_gold_answer_is_the_reference() -> None:
    grounding = GroundingEvaluator("correctness=em")
    right, wrong = (
        grounding.evaluate("When?", "It was opened in 1911 [1].", BRIDGE, reference=gold)
        for gold in ("1911", "1950")
    )
    assert right.score is not None
    assert wrong.score is not None
    assert right.score > wrong.score
    reference = ReferenceEvaluator("parts=bertscore")  # by the embedded model
    same, other = (
        reference.evaluate("When?", "It was opened in 1911.", reference=gold).score
        for gold in ("It was opened in 1911.", "Nobody knows.")
    )
    assert same == pytest.approx(1)
    assert other is not None
    assert other < 0.9


def test_the_llm_is_the_judge_or_the_model_under_assessment() -> None:
    llm = Scripted(script=lambda prompt: "Score: 4", prompts=[])
    result = RubricEvaluator("rubric=answer", llm=llm).evaluate("When?", RIGHT)
    assert result.score == 4
    assert "When?" in llm.prompts[0]
    llm = Scripted(script=lambda prompt: "It was opened in 1911.", prompts=[])
    same = SemanticHarmonicityEvaluator("perturbations=3", llm=llm).evaluate(
        "When was it opened?", "It was opened in 1911."
    )
    assert same.score == 0.0
    assert len(llm.prompts) >= 3
    sure = UncertaintyEvaluator("samples=2,alternatives=-1", llm=llm).evaluate(
        "When was it opened?", "It was opened in 1911."
    )
    assert (sure.score, sure.passing) == (0.0, True)
    Settings.llm = Scripted(script=lambda prompt: "Score: 2", prompts=[])
    assert RubricEvaluator("rubric=answer").evaluate("When?", RIGHT).score == 2
    judge = Scripted(script=lambda prompt: "Score: 1", prompts=[])
    assert RubricEvaluator("rubric=answer", judge=_backend(judge)).evaluate("?", "x").score == 1


def _backend(llm: Any) -> Any:
    from llama_index.evaluation.trust_eval.models import as_model

    return as_model(llm)


def test_embeddings_and_indexes_take_the_place_of_the_embedded_ones(index: Any) -> None:
    llm = Scripted(script=lambda prompt: "In 1911.")
    embedding = WordVectors()
    result = HarmonicityEvaluator("perturbations=3", llm=llm, embed_model=embedding).evaluate(
        "When was it opened?", "In 1911."
    )
    assert result.score == pytest.approx(0.0, abs=1e-6)
    checked = FactCheckEvaluator("by=entailer", retriever=index).evaluate(
        "When was the stone bridge opened?", RIGHT
    )
    assert checked.score is not None
    assert not checked.invalid_result


def test_what_no_metric_uses_is_refused(index: Any) -> None:
    llm = Scripted(script=lambda prompt: "x")
    with pytest.raises(ValueError, match="llm is given, but faithfulness does not use it"):
        GroundedFaithfulnessEvaluator(llm=llm)
    with pytest.raises(ValueError, match="retriever is given, but judge"):
        RubricEvaluator(llm=llm, retriever=index)
    with pytest.raises(ValueError, match="needs a judge"):
        RubricEvaluator()


def test_other_fields_of_a_sample_are_arguments() -> None:
    llm = Scripted(script=lambda prompt: "Answer: 1")
    result = PreferenceEvaluator(llm=llm).evaluate("When?", RIGHT, other_response=WRONG)
    assert result.invalid_result or result.score is not None
    missing = PreferenceEvaluator(llm=llm).evaluate("When?", RIGHT)
    assert "other_response: is missing" in (missing.invalid_reason or "")
    answerer = Scripted(script=lambda prompt: "A")
    chosen = ConsistencyEvaluator("sources=given", llm=answerer).evaluate(
        "When was it opened?", "In 1911.", wrong_answers=["In 1912.", "In 1850.", "In 2001."]
    )
    assert not chosen.invalid_result, chosen.invalid_reason


# ---- responses of engines ----


def test_a_citation_engine_cites_its_nodes_by_their_place(engine: Any) -> None:
    query = "When was the stone bridge over the river opened?"
    response = engine(lambda prompt: "The stone bridge was opened in 1911 [1].").query(query)
    assert response.source_nodes[0].node.get_content().startswith("Source 1:\n")
    evaluator = GroundingEvaluator()
    result = evaluator.evaluate_response(query, response)
    assert result.score == 1.0, result
    assert result.contexts is not None
    assert result.contexts[0] == PASSAGES["The bridge"]
    assert not any("Source" in text for text in result.contexts)
    other = engine(lambda prompt: "The stone bridge was opened in 1911 [2].").query(query)
    wrong = asyncio.run(evaluator.aevaluate_response(query=query, response=other))
    assert wrong.score == 0.0
    contexts = [node.get_content() for node in response.source_nodes]
    assert evaluator.evaluate(query, str(response), contexts).score == 1.0  # stripped here, too


def test_the_titles_of_nodes_are_kept(tmp_path: Path) -> None:
    nodes = [
        NodeWithScore(node=TextNode(text="It has seven arches.", metadata=metadata))
        for metadata in ({"file_name": "bridge.txt"}, {"title": "The bridge", "file_name": "x"}, {})
    ]
    evaluator = GroundingEvaluator(out=tmp_path / "run")
    evaluator.evaluate_response(
        QueryBundle("How many arches?"),  # type: ignore[arg-type]
        Response("It has seven arches [1].", source_nodes=nodes),
    )
    evaluator.close()
    sample = json.loads((tmp_path / "run" / "samples.jsonl").read_text())
    assert [document.get("title", "") for document in sample["documents"]] == [
        "bridge.txt",
        "The bridge",
        "",
    ]
    assert (tmp_path / "run" / "report.html").exists()


def test_an_engine_without_passages_refuses() -> None:
    """No node, and a node without a text: what the engine says then is a refusal."""
    llm = Scripted(script=lambda prompt: "It was opened in 1950.")
    empty = VectorStoreIndex(nodes=[], embed_model=WordVectors()).as_query_engine(llm=llm)
    query = "When was the stone bridge opened?"
    nothing = empty.query(query)
    assert str(nothing) == "Empty Response"
    blank = Response(str(nothing), source_nodes=[NodeWithScore(node=TextNode(text=""))])
    # Both ways in which an engine shows that it found nothing.
    for response in (nothing, blank):
        result = GroundingEvaluator("correctness=em").evaluate_response(
            query, response, reference="1911"
        )
        assert (result.score, result.feedback) == (
            1.0,
            "rightly refused: no document supports a gold answer",
        )
        faithful = GroundedFaithfulnessEvaluator().evaluate_response(query, response)
        assert (faithful.score, faithful.invalid_reason) == (None, "refuses to answer")
        checked = FactCheckEvaluator("by=entailer").evaluate_response(query, response)
        assert checked.score is None
        assert "there is no answer" in (checked.invalid_reason or "")


def test_a_text_that_only_looks_like_a_citation_engines_is_left_alone() -> None:
    result = GroundedFaithfulnessEvaluator(entailer="lexical").evaluate(
        "?", "Source 2: the log.", ["Source 2:\nthe log", "other"]
    )
    assert result.contexts == ["Source 2:\nthe log", "other"]


def test_a_stream_is_read(engine: Any) -> None:
    query = "When was the stone bridge over the river opened?"
    response = engine(lambda prompt: "It was opened in 1911 [1].", streaming=True).query(query)
    result = GroundingEvaluator().evaluate_response(query, response)
    assert result.response == "It was opened in 1911 [1]."
    assert result.score == 1.0


def test_the_batch_runner_gets_a_result_for_each_answer(engine: Any) -> None:
    def reply(prompt: str) -> str:
        if "bridge" in prompt.rsplit("Query:", 1)[1]:
            return "The stone bridge was opened in 1911 [1]."
        return "The chimney is made of gold [1]."

    runner = BatchEvalRunner(
        {"grounding": GroundingEvaluator(), "faithful": GroundedFaithfulnessEvaluator()}, workers=8
    )
    queries = ["When was the stone bridge over the river opened?", "How high is the chimney?"]
    answering = engine(reply)
    results = runner.evaluate_responses(queries, [answering.query(query) for query in queries])
    assert [result.score for result in results["grounding"]] == [1.0, 0.0]
    assert [result.score for result in results["faithful"]] == [1.0, 0.0]
    texts = runner.evaluate_response_strs(queries, [RIGHT, "40 metres."], [BRIDGE, None])
    assert [result.score for result in texts["faithful"]] == [1.0, None]
    assert [result.invalid_result for result in texts["faithful"]] == [False, True]
    answered = runner.evaluate_queries(answering, queries[:1])
    assert answered["grounding"][0].score == 1.0


def test_an_evaluator_that_nobody_holds_ends_its_thread() -> None:
    def threads() -> int:
        return sum(thread.name == "trustassay-scorer" for thread in threading.enumerate())

    gc.collect()
    evaluator = GroundedFaithfulnessEvaluator(entailer="lexical")
    before = threads()
    assert before > 0
    # The last reference: the finalizer must end the thread.
    del evaluator
    gc.collect()
    # The thread ends a moment later.
    until = time.monotonic() + 20
    while threads() >= before and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() < before


def test_inside_a_running_loop_many_at_once() -> None:
    evaluator = GroundedFaithfulnessEvaluator(entailer="lexical")

    async def main() -> list[EvaluationResult]:
        first = evaluator.evaluate("When?", RIGHT, BRIDGE)  # as in a notebook
        more = [evaluator.aevaluate(f"When, {i}?", RIGHT, BRIDGE) for i in range(20)]
        return [first, *await asyncio.gather(*more)]

    assert {result.invalid_result for result in asyncio.run(main())} == {False}
