"""Evaluators for LangSmith and OpenEvals: ``f(inputs, outputs, reference_outputs)``.

    client.evaluate(my_system, data="questions", evaluators=[trust_evaluator("faithfulness")])

Both tools call plain functions, so this file imports neither.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trustassay.core.metric import Metric
from trustassay.live.integrations.resident import IntegrationFinding, ResidentScorer, build_record

Feedback = dict[str, Any]


def trust_evaluator(
    metrics: str | Metric | Sequence[str | Metric], **options: Any
) -> Callable[..., Feedback | list[Feedback]]:
    """Return an evaluator for ``evaluate``; models are loaded once per process.

    It returns ``{"key", "score", "comment", "metadata"}``, or a list of these, one per metric, if
    ``metrics`` is a list. Question, response, passages and right answer are found in inputs and
    outputs under their usual names, or in lists of messages; ``fields`` names other fields, as in
    ``fields={"documents": "outputs.sources"}``. Passages may also be passed as ``context``.

    A metric that could not score has the score ``None``, the reason as its comment, and
    ``extra={"error": True}``, as LangSmith records an evaluator that failed.

    Metrics and options are those of :class:`~.resident.ResidentScorer`.
    """
    resident = ResidentScorer(metrics, **options)

    # The name of the function is the name that LangSmith shows for the evaluator.
    def trustassay(
        inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **extra: Any
    ) -> Feedback | list[Feedback]:
        record = build_record(inputs, outputs, reference_outputs, **extra)
        return _build_feedback(resident.score(record), metrics)

    return trustassay


def async_trust_evaluator(
    metrics: str | Metric | Sequence[str | Metric], **options: Any
) -> Callable[..., Awaitable[Feedback | list[Feedback]]]:
    """Return the same for ``aevaluate``, with the arguments of :func:`trust_evaluator`."""
    resident = ResidentScorer(metrics, **options)

    async def trustassay(
        inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **extra: Any
    ) -> Feedback | list[Feedback]:
        record = build_record(inputs, outputs, reference_outputs, **extra)
        return _build_feedback(await resident.ascore(record), metrics)

    return trustassay


def _build_feedback(
    findings: Sequence[IntegrationFinding], metrics: str | Metric | Sequence[str | Metric]
) -> Feedback | list[Feedback]:
    feedback: list[Feedback] = [
        {
            "key": finding.metric,
            "score": finding.score,
            "comment": finding.comment,
            "metadata": finding.about,
        }
        # LangSmith counts feedback with this mark as a failed evaluator, not as a score.
        | ({} if finding.error is None else {"extra": {"error": True}})
        for finding in findings
    ]
    # A list of one metric gives a list of one feedback: the form follows the argument.
    return feedback[0] if isinstance(metrics, str | Metric) else feedback
