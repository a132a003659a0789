"""A metric for DeepEval: ``assert_test(case, [TrustMetric("faithfulness")])``."""

import json
from collections.abc import Mapping
from typing import Any

from trustassay.core.metric import Metric
from trustassay.errors import AssessmentError
from trustassay.live.integrations.resident import IntegrationFinding, ResidentScorer, needs

with needs("deepeval", "deepeval"):
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase, SingleTurnParams


class TrustMetric(BaseMetric):  # type: ignore[misc]
    """A metric of trustassay over the fields of a test case; models are loaded once per process.

    ``input`` is the question, ``actual_output`` the response, ``retrieval_context`` (or
    ``context``) the passages, ``expected_output`` the right answer; ``fields`` names other fields,
    as in ``fields={"claims": "metadata.facts"}``.

    ``score`` is the metric's own. For metrics whose low scores are good, a test case is successful
    up to ``threshold`` instead of from it on. ``success`` is ``None`` where there is no score to
    judge, as for a refusal.

    Args:
        metric: as for :class:`~.resident.ResidentScorer`.
        threshold: a test case is successful from this score on; without a threshold, if the metric
            finds no problem in it.
        options: all other options, as a mapping (DeepEval rebuilds a metric from its fields) or as
            keywords.
    """

    _required_params = (SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT)
    success: bool | None = None
    verbose_mode = False
    include_reason = True

    def __init__(
        self,
        metric: str | Metric,
        *,
        threshold: float | None = None,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.metric, self.threshold = metric, threshold
        # Stored under the parameters' own names, from which DeepEval rebuilds a metric.
        self.options = {**(options or {}), **more}
        self._resident = ResidentScorer(metric, **self.options)
        self.evaluation_model = _describe_settings(metric, self.options)

    @property
    def __name__(self) -> str:  # what DeepEval shows
        return f"trustassay {self._resident.metrics[0].name}"

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float | None:
        """Score a test case and return its score; ``None`` if the metric has none for it.

        Raises:
            MissingTestCaseParamsError: the test case lacks a field, or one is wrong.
            AssessmentError: it could not be scored. With ``ErrorConfig(ignore_errors=True)``
                DeepEval keeps the message as the metric's error and goes on.
        """
        return self._store_finding(self._resident.score(_build_record(test_case))[0])

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float | None:
        """Do the same as :meth:`measure` without blocking the event loop."""
        return self._store_finding((await self._resident.ascore(_build_record(test_case)))[0])

    def is_successful(self) -> bool | None:
        """Return whether the last test case was successful; ``False`` if it failed."""
        # DeepEval sets `error` when it ignores an exception of `measure`.
        if self.error is not None:
            self.success = False
        return self.success

    def _store_finding(self, finding: IntegrationFinding) -> float | None:
        """Set the attributes that DeepEval reads, and return the score."""
        self.score, self.score_breakdown = finding.score, dict(finding.parts)
        self.reason, self.error = finding.comment, finding.error
        self.success = finding.passes(self.threshold)
        # DeepEval can be told to skip test cases that lack a field, by this very error.
        if finding.faulty:
            raise MissingTestCaseParamsError(finding.error)
        if finding.error is not None:
            raise AssessmentError(finding.error)
        return finding.score


def _build_record(case: LLMTestCase) -> dict[str, Any]:
    """Return the fields of a test case; a passage has its source as its title, if it is known."""
    names = ("input", "actual_output", "expected_output", "retrieval_context", "context")
    values = {name: getattr(case, name) for name in (*names, "metadata")}
    result = {name: value for name, value in values.items() if value is not None}
    # DeepEval's passages are texts, or objects with a context and its source.
    for name in result.keys() & {"retrieval_context", "context"}:
        result[name] = [
            passage
            if isinstance(passage, str)
            else {"text": passage.context, "title": passage.source}
            for passage in result[name]
        ]
    return result


def _describe_settings(metric: str | Metric, options: Mapping[str, Any]) -> str:
    """Return a description of metric and backends.

    DeepEval's cache treats metrics with equal descriptions as equal, so an object is described by
    its identity.
    """
    metric_text = metric if isinstance(metric, str) else f"{metric.name} {metric.settings()}"
    options_text = json.dumps(
        options, sort_keys=True, default=lambda value: f"{type(value).__name__} {id(value):x}"
    )
    return f"trustassay {metric_text} {options_text}"
