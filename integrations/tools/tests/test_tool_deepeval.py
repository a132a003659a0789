"""The metric in DeepEval: single cases, whole evaluations, its settings for errors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepeval", reason="needs deepeval: tox run")

from bridge import NOT_SUPPORTED, PASSAGE, REFUSAL, SUPPORTED, Unlucky
from deepeval import assert_test, evaluate
from deepeval.errors import MissingTestCaseParamsError
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase, RetrievedContextData
from tutorials import run_section

from trustassay import AssessmentError
from trustassay.live import open_scorers
from trustassay.live.integrations.deepeval import TrustMetric

QUIET = DisplayConfig(show_indicator=False, print_results=False)


def case(answer: str | None = SUPPORTED, **fields: Any) -> LLMTestCase:
    given = {"input": "When?", "retrieval_context": [PASSAGE]} | fields
    return LLMTestCase(actual_output=answer, **given)


def faithful(**options: Any) -> TrustMetric:
    return TrustMetric("faithfulness", **({"entailer": "lexical"} | options))


def results(cases: list[LLMTestCase], *metrics: TrustMetric, **options: Any) -> Any:
    """Return the results in the order of the cases; DeepEval's order is that of their ends."""
    found = evaluate(cases, list(metrics), display_config=QUIET, **options).test_results
    order = [one.actual_output for one in cases]
    return sorted(found, key=lambda one: order.index(one.actual_output))


def test_a_case_has_a_score_a_reason_and_a_success() -> None:
    metric = faithful()
    assert metric.measure(case()) == metric.score == 1.0
    assert (metric.reason, metric.success) == ("the passages support the answer", True)
    assert metric.score_breakdown["supported"] == 1
    assert metric.measure(case(NOT_SUPPORTED)) == 0.0
    assert metric.is_successful() is False
    assert "1 of 1 sentence not found" in metric.reason
    assert metric.__name__ == "trustassay faithfulness"


def test_a_threshold_takes_the_place_of_the_metrics_own_line() -> None:
    half = case(f"{SUPPORTED} {NOT_SUPPORTED}")
    for threshold, success in ((None, False), (0.5, True), (0.6, False)):
        metric = faithful(threshold=threshold)
        assert metric.measure(half) == 0.5
        assert metric.is_successful() is success


def test_low_scores_are_good_where_the_metric_says_so() -> None:
    passages = [f"It was opened in {year}." for year in (1911, 1912)]
    stable = case("It was opened in 1911.", metadata={"again": passages[:1] * 3})
    unstable = case("It was opened in 1911.", metadata={"again": ["In May.", "Never.", "Why?"]})
    metric = TrustMetric(
        "harmonicity:original=response", threshold=0.1, fields={"resamples": "metadata.again"}
    )
    metric.measure(stable)
    assert metric.is_successful() is True
    assert metric.score < 0.1
    assert metric.reason.endswith("(low scores are good)")
    metric.measure(unstable)
    assert metric.is_successful() is False
    assert metric.score > 0.1


def test_fields_of_a_case_are_mapped() -> None:
    kept = RetrievedContextData(context=PASSAGE, source="guide")
    assert faithful().measure(case(retrieval_context=[kept])) == 1.0
    assert faithful().measure(case(retrieval_context=None, context=[PASSAGE])) == 1.0
    elsewhere = case(retrieval_context=None, metadata={"sources": [PASSAGE]})
    assert faithful(fields={"documents": "metadata.sources"}).measure(elsewhere) == 1.0
    assert TrustMetric("reference").measure(case(expected_output="in 1911")) == 1.0


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (case(None), MissingTestCaseParamsError, "actual_output: is missing"),
        (case(retrieval_context=None), MissingTestCaseParamsError, "retrieval_context: is missing"),
        (case(""), AssessmentError, "blank"),
        (case(NOT_SUPPORTED), AssessmentError, "unlucky"),
    ],
)
def test_a_failure_is_an_exception_and_never_a_0(
    given: LLMTestCase, kind: type[Exception], words: str
) -> None:
    metric = faithful(entailer=Unlucky(), threshold=0.0)
    with pytest.raises(kind, match=words):
        metric.measure(given)
    assert metric.score is None
    assert words in metric.error
    assert metric.is_successful() is False
    with pytest.raises(kind, match=words):
        asyncio.run(metric.a_measure(given))
    metric.measure(case())
    assert (metric.error, metric.is_successful()) == (None, True)


@pytest.mark.parametrize("at_once", [True, False])
def test_an_evaluation_notes_failures_and_goes_on(at_once: bool) -> None:
    cases = [case(), case(NOT_SUPPORTED), case(None), case(REFUSAL)]
    found = results(
        cases,
        faithful(entailer=Unlucky(), threshold=0.5),
        error_config=ErrorConfig(ignore_errors=True),
        async_config=AsyncConfig(run_async=at_once),
    )
    data = [one.metrics_data[0] for one in found]
    assert [one.score for one in data] == [1.0, None, None, None]
    assert [one.success for one in data] == [True, False, False, None]
    assert [bool(one.error) for one in data] == [False, True, True, False]
    assert "unlucky" in data[1].error
    assert data[3].reason == "no score: refuses to answer"
    assert "sk-secret" not in str(found)


@pytest.mark.parametrize("at_once", [True, False])
def test_cases_that_lack_a_field_can_be_skipped(at_once: bool) -> None:
    found = results(
        [case(), case(None)],
        faithful(threshold=0.5),
        error_config=ErrorConfig(skip_on_missing_params=True),
        async_config=AsyncConfig(run_async=at_once),
    )
    assert [len(one.metrics_data or []) for one in found] == [1, 0]


def test_fifty_cases_at_once_share_one_scorer() -> None:
    cases = [case(f"The stone bridge was opened in {1900 + number}.") for number in range(50)]
    found = results(cases, faithful(threshold=0.5), async_config=AsyncConfig(max_concurrent=50))
    assert [one.metrics_data[0].score for one in found] == [0.0] * 11 + [1.0] + [0.0] * 38
    assert len(open_scorers._scorers_by_key) == 1


def test_one_metric_measures_many_cases_at_once() -> None:
    metric = faithful()

    async def both() -> list[Any]:
        return await asyncio.gather(
            *(metric.a_measure(case(answer)) for answer in (SUPPORTED, NOT_SUPPORTED) * 10)
        )

    assert asyncio.run(both()) == [1.0, 0.0] * 10


def test_deepevals_cache_tells_settings_apart() -> None:
    metrics = [
        faithful(threshold=0.5),
        faithful(threshold=0.5, entailer="embedded"),
        faithful(threshold=0.5, entailer=Unlucky()),
        TrustMetric("faithfulness:threshold=0.7", threshold=0.5, entailer="lexical"),
    ]
    assert len({one.evaluation_model for one in metrics}) == 4
    assert "sk-secret" not in str([one.evaluation_model for one in metrics])
    cached = CacheConfig(write_cache=True, use_cache=True)
    unstated = case("Ships sank.")
    scores = [
        results([unstated], metric, cache_config=cached)[0].metrics_data[0].score
        for metric in (metrics[0], metrics[2], metrics[0], metrics[2])
    ]
    assert scores == [0.0, 1.0, 0.0, 1.0]


def test_assert_test_fails_with_the_reason() -> None:
    assert_test(case(), [faithful(threshold=0.9)])
    with pytest.raises(AssertionError, match="1 of 1 sentence not found"):
        assert_test(case(NOT_SUPPORTED), [faithful(threshold=0.9)])


def test_a_wrong_name_is_told_when_the_metric_is_made() -> None:
    with pytest.raises(ValueError, match="did you mean faithfulness"):
        TrustMetric("faithfullness")


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    printed = run_section("DeepEval", tmp_path)
    assert len(printed) == 1
    assert [one.actual for one in printed if not one.agrees()] == []
