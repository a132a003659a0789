"""A scorer for MLflow: metrics as feedback on traces and evaluation rows.

mlflow.genai.evaluate(data=data, scorers=[trust_scorer("faithfulness")])
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.core.metric import Metric
from trustassay.errors import UsageError
from trustassay.live.integrations.resident import (
    IntegrationFinding,
    ResidentScorer,
    build_record,
    needs,
)

with needs("mlflow", "mlflow"):
    import mlflow.genai
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback, SpanType, Trace
    from mlflow.genai.scorers import Scorer

NOT_SCORED = "NOT_SCORED"
"""The error code of a feedback whose record could not be scored."""


def trust_scorer(
    metrics: str | Metric | Sequence[str | Metric],
    *,
    name: str | None = None,
    threshold: float | None = None,
    **options: Any,
) -> Scorer:
    """Return a scorer for ``mlflow.genai.evaluate``; models are loaded once per process.

    Each metric is a feedback under its name, with the score, the reason as its rationale, and
    verdict and parts in its metadata. A metric that could not score has an error and no value.
    A metric without a score for this kind of answer, as for a refusal that nobody can judge, has no
    value and says why.

    Question, response and passages are found in inputs and outputs under their usual names, or in
    lists of messages; ``fields`` names other fields (``fields={"question": "inputs.ask"}``). If
    they have no passages, those of the trace's retrievers are used. ``expected_response`` and
    ``expected_facts`` of the expectations are the right answer and its facts.

    Args:
        metrics, options: as for :class:`~.resident.ResidentScorer`.
        name: the name of the feedback instead of the metric's; for a single metric.
        threshold: the score from which an answer passes in ``EvaluationResult.passed`` (up to
            which, where low scores are good); for a single metric.
    """
    resident = ResidentScorer(metrics, **options)
    # A name or a threshold cannot be shared by several metrics.
    only = resident.metrics[0] if len(resident.metrics) == 1 else None
    if only is None and (name is not None or threshold is not None):
        raise UsageError("name and threshold: need exactly one metric; make a scorer for each")
    name = name or "_".join(metric.name for metric in resident.metrics)

    def scored(
        inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None
    ) -> list[Feedback]:
        expected = dict(expectations) if isinstance(expectations, Mapping) else {}
        facts = expected.get("expected_facts")
        # Facts are claims, and are preferred; expectations of any other form are the answer
        # themselves.
        gold = None if facts else expected.get("expected_response", expected or None)
        record = build_record(
            inputs, outputs, gold, claims=facts, context=_retrieve_passages(trace)
        )
        result = resident.score(record)
        return [_build_feedback(finding, name if only else finding.metric) for finding in result]

    def passes(value: Any) -> bool:
        assert only is not None
        result = IntegrationFinding(only.name, value, lower_is_better=only.lower_is_better)
        return bool(result.passes(threshold))

    return mlflow.genai.scorer(
        scored,
        name=name,
        description="; ".join(metric.title for metric in resident.metrics),
        pass_if=None if threshold is None else passes,
    )


def _retrieve_passages(trace: Trace | None) -> list[Any] | None:
    """Return the passages of a trace: those of retrievers that were not called by a retriever."""
    spans = {span.span_id: span for span in (trace.data.spans if trace and trace.data else ())}
    retrievers = {span_id for span_id in spans if spans[span_id].span_type == SpanType.RETRIEVER}

    def is_inner(span_id: str) -> bool:
        # `visited` ends the walk in a damaged trace whose parents form a circle.
        visited, above = {span_id}, spans[span_id].parent_id
        while above in spans and above not in visited:
            if above in retrievers:
                return True
            visited.add(above)
            above = spans[above].parent_id
        return False

    result = [
        spans[span_id].outputs
        for span_id in spans
        if span_id in retrievers and not is_inner(span_id)
    ]
    passages = [passage for output in result if isinstance(output, list) for passage in output]
    return passages or None


def _build_feedback(finding: IntegrationFinding, name: str) -> Feedback:
    about = {
        "verdict": finding.verdict,
        "passed": None if finding.passed is None else str(finding.passed).lower(),
        "lower_is_better": str(finding.lower_is_better).lower(),
        "parts": json.dumps(dict(finding.parts)) if finding.parts else None,
    }
    return Feedback(
        name=name,
        value=finding.score,
        error=None if finding.error is None else AssessmentError(NOT_SCORED, finding.error),
        rationale=None if finding.error is not None else finding.comment,
        source=AssessmentSource("CODE", "trustassay"),
        # MLflow's metadata are texts, hence the JSON above.
        metadata={name: value for name, value in about.items() if value is not None},
    )
