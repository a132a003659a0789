"""An evaluator for Langfuse: metrics as scores of experiments, and of the traces of a live system.

langfuse.run_experiment(
    name="bridge", data=items, task=answer, evaluators=[TrustEvaluator("faithfulness")]
)
"""

import json
from collections.abc import Sequence
from typing import Any

from trustassay.core.metric import Metric
from trustassay.live.integrations.resident import (
    IntegrationFinding,
    ResidentScorer,
    build_record,
    needs,
)

with needs("langfuse", "langfuse"):
    from langfuse import Evaluation, Langfuse


class TrustEvaluator:
    """Scores items of experiments and traces; models are loaded once per process.

    Each metric gives a numeric score under its name, with the reason as its comment, and verdict
    and parts in its metadata. Where there is no score, a category ``NAME not scored`` takes its
    place: ``failed``, or ``no score`` where the metric has none for this kind of answer, as for a
    refusal that nobody can judge.

    Question, response, passages and right answer are found in input, output, expected output and
    metadata under their usual names, or in lists of messages; ``fields`` names other fields, as in
    ``fields={"documents": "outputs.sources"}``. The passages of a trace may also be ``context``.

    Metrics and options are those of :class:`~.resident.ResidentScorer`.
    """

    __name__ = "trustassay"  # what Langfuse shows

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], **options: Any) -> None:
        self._resident = ResidentScorer(metrics, **options)

    async def __call__(self, **item: Any) -> list[Evaluation]:
        """Score an item (``input``, ``output``, ``expected_output``, ``metadata``), as Langfuse
        calls it in ``run_experiment`` and ``run_batched_evaluation``.
        """
        return [
            _build_evaluation(finding)
            for finding in await self._resident.ascore(_build_record(item))
        ]

    def score_trace(
        self, langfuse: Langfuse, trace_id: str, *, observation_id: str | None = None, **item: Any
    ) -> list[Evaluation]:
        """Score an answer of a system, and send the scores to its trace.

        If it is scored again, the new scores replace the old ones.

        Args:
            langfuse: the client that sends the scores, in the background.
            trace_id: the trace to score.
            observation_id: the observation of the trace to score; by default the whole trace.
            item: ``input``, ``output`` and the other fields of an item of an experiment.
        """
        result = [
            _build_evaluation(finding) for finding in self._resident.score(_build_record(item))
        ]
        _send(langfuse, result, trace_id, observation_id)
        return result

    async def ascore_trace(
        self, langfuse: Langfuse, trace_id: str, *, observation_id: str | None = None, **item: Any
    ) -> list[Evaluation]:
        """Do the same as :meth:`score_trace` without blocking the event loop."""
        result = await self(**item)
        _send(langfuse, result, trace_id, observation_id)
        return result


def _build_record(item: dict[str, Any]) -> dict[str, Any]:
    fields = dict(item)
    question_input, output = fields.pop("input", None), fields.pop("output", None)
    return build_record(
        _parse_json(question_input), output, fields.pop("expected_output", None), **fields
    )


def _parse_json(value: Any) -> Any:
    """Parse fields or messages that are a JSON text, as Langfuse's API returns them.

    Any other value is returned as it is.
    """
    # An ordinary text, which is most often a question or an answer.
    if not (isinstance(value, str) and value.startswith(("{", "["))):
        return value
    try:
        result = json.loads(value)
    except (ValueError, RecursionError):
        return value
    listed = result if isinstance(result, list) else [result]
    # A list of plain values, as an answer may be, is no conversation.
    return result if all(isinstance(message, dict) for message in listed) else value


def _send(
    langfuse: Langfuse, evaluations: Sequence[Evaluation], trace_id: str, observation_id: str | None
) -> None:
    for evaluation in evaluations:
        langfuse.create_score(
            name=evaluation.name,
            value=evaluation.value,
            trace_id=trace_id,
            observation_id=observation_id,
            # An id of its own makes a second score replace the first.
            score_id="-".join(filter(None, (trace_id, observation_id, evaluation.name))),
            data_type=evaluation.data_type,
            comment=evaluation.comment,
            metadata=evaluation.metadata,
        )


def _build_evaluation(finding: IntegrationFinding) -> Evaluation:
    name, value, kind = finding.as_langfuse
    return Evaluation(
        name=name, value=value, comment=finding.comment, metadata=finding.details, data_type=kind
    )
