"""What a metric found as a value and a sentence."""

from __future__ import annotations

import pytest

from trustassay import Assessment
from trustassay.core.metric import Metric
from trustassay.core.registry import metric_from_text
from trustassay.live.integrations.resident import IntegrationFinding, finding_of, findings_of_fault


def found(metric: Metric, assessment: Assessment) -> IntegrationFinding:
    return finding_of(metric, assessment)


def test_a_supported_answer_passes() -> None:
    metric = metric_from_text("faithfulness")
    one = found(
        metric, Assessment("q1", "faithfulness", 1.0, verdict="supported", reason="all supported")
    )
    assert (one.score, one.comment, one.passed) == (1.0, "all supported", True)


def test_an_answer_that_needs_a_look_does_not_pass_whatever_its_verdict() -> None:
    metric = metric_from_text("grounding")
    parts = {"statements": 2.0, "supported_statements": 1.0}
    one = found(metric, Assessment("q1", "grounding", 0.5, verdict="answered", parts=parts))
    assert one.passed is False
    assert one.comment == "1 of 2 sentences not supported"


def test_a_failure_has_no_score_and_does_not_pass() -> None:
    metric = metric_from_text("faithfulness")
    one = found(metric, Assessment.for_failure("q1", "faithfulness", "no reply\nafter 30 s"))
    assert one.score is None
    assert one.passed is None
    assert one.passes(None) is False
    assert one.passes(0.0) is False
    assert one.comment == "could not be scored: no reply after 30 s"


def test_an_answer_without_a_score_says_why() -> None:
    metric = metric_from_text("faithfulness")
    one = found(
        metric, Assessment("q1", "faithfulness", None, verdict="refused", reason="a refusal")
    )
    assert (one.score, one.error, one.passed) == (None, None, None)
    assert one.comment == "no score: a refusal"
    assert one.passes(0.5) is None


def test_low_scores_are_good_where_the_metric_says_so() -> None:
    metric = metric_from_text("harmonicity")
    one = found(metric, Assessment("q1", "harmonicity", 0.4, verdict="unstable"))
    assert one.lower_is_better
    assert one.comment.endswith("(low scores are good)")
    assert (one.passed, one.passes(0.5), one.passes(0.3)) == (False, True, False)


def test_a_threshold_is_taken_in_place_of_the_line() -> None:
    one = IntegrationFinding("faithfulness", 0.5, passed=False)
    assert [one.passes(threshold) for threshold in (None, 0.5, 0.51)] == [False, True, False]


def test_a_refused_record_fails_for_every_metric() -> None:
    metrics = [metric_from_text(name) for name in ("faithfulness", "grounding")]
    assert [
        (one.metric, one.error) for one in findings_of_fault(metrics, "question: is missing")
    ] == [
        ("faithfulness", "question: is missing"),
        ("grounding", "question: is missing"),
    ]


@pytest.mark.parametrize(
    ("finding", "comment"),
    [
        (IntegrationFinding("x", None), "no score: the metric gives no reason"),
        (IntegrationFinding("x", 1.0), ""),
        (IntegrationFinding("x", 1.0, verdict="good"), "good"),
        (IntegrationFinding("x", 1.0, lower_is_better=True), "low scores are good"),
    ],
)
def test_a_metric_may_say_little(finding: IntegrationFinding, comment: str) -> None:
    assert finding.comment == comment
