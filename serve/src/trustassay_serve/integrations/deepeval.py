"""A metric for DeepEval: ``assert_test(case, [TrustMetric("faithfulness")])``."""

import json
from collections.abc import Mapping
from typing import Any

from trustassay.errors import AssessmentError
from trustassay.metric import Metric
from trustassay_serve.integrations.resident import Finding, ResidentScorer, needs

with needs("deepeval", "deepeval"):
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase, SingleTurnParams


class TrustMetric(BaseMetric):  # type: ignore[misc]
    """One metric of trustassay over the fields of a test case; models are loaded once a process.

    ``input`` is the question, ``actual_output`` the response, ``retrieval_context`` (or
    ``context``) the passages, ``expected_output`` the right answer; ``fields`` names others, as in
    ``fields={"claims": "metadata.facts"}``.

    ``score`` is the metric's own: of some metrics low scores are good, and then a test case is
    successful up to ``threshold`` and not from it on. ``success`` is ``None`` where there is no
    score to judge, as for a refusal.

    Args:
        metric: as of :class:`~.resident.ResidentScorer`.
        threshold: a test case is successful from this score on; without it if the metric finds
            nothing in it that needs a look.
        options: all others, as a mapping (DeepEval makes a metric again from its fields) or as
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
        self.options = {**(options or {}), **more}
        self._resident = ResidentScorer(metric, **self.options)
        self.evaluation_model = _told(metric, self.options)

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
        return self._keep(self._resident.score(_record(test_case))[0])

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float | None:
        """Do as :meth:`measure` in an event loop, which is not blocked."""
        return self._keep((await self._resident.ascore(_record(test_case)))[0])

    def is_successful(self) -> bool | None:
        """Return whether the last test case was successful; ``False`` if it failed."""
        if self.error is not None:
            self.success = False
        return self.success

    def _keep(self, found: Finding) -> float | None:
        self.score, self.score_breakdown = found.score, dict(found.parts)
        self.reason, self.error = found.comment, found.error
        self.success = found.passes(self.threshold)
        if found.faulty:
            raise MissingTestCaseParamsError(found.error)
        if found.error is not None:
            raise AssessmentError(found.error)
        return found.score


def _record(case: LLMTestCase) -> dict[str, Any]:
    """Return the fields of a test case; passages have their source, if it is known, as a title."""
    names = ("input", "actual_output", "expected_output", "retrieval_context", "context")
    given = {name: getattr(case, name) for name in (*names, "metadata")}
    result = {name: value for name, value in given.items() if value is not None}
    for name in result.keys() & {"retrieval_context", "context"}:
        result[name] = [
            one if isinstance(one, str) else {"text": one.context, "title": one.source}
            for one in result[name]
        ]
    return result


def _told(metric: str | Metric, options: Mapping[str, Any]) -> str:
    """Return metric and backends in words. DeepEval's cache takes results of equal words as equal,
    so an object is told by its identity.
    """
    named = metric if isinstance(metric, str) else f"{metric.name} {metric.settings()}"
    given = json.dumps(
        options, sort_keys=True, default=lambda one: f"{type(one).__name__} {id(one):x}"
    )
    return f"trustassay {named} {given}"
