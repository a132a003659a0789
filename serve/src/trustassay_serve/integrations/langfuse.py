"""An evaluator for Langfuse: metrics as scores of experiments, and of the traces of a live system.

langfuse.run_experiment(
    name="bridge", data=items, task=answer, evaluators=[TrustEvaluator("faithfulness")]
)
"""

import json
from collections.abc import Sequence
from typing import Any

from trustassay.metric import Metric
from trustassay_serve.integrations.resident import Finding, ResidentScorer, needs, traced

with needs("langfuse", "langfuse"):
    from langfuse import Evaluation, Langfuse


class TrustEvaluator:
    """Scores items of experiments and traces; models are loaded once a process.

    Each metric is a numeric score under its name, with the reason as its comment, and verdict and
    parts in its metadata. Where there is none, a category ``NAME not scored`` takes its place:
    ``failed``, or ``no score`` where the metric has none for such an answer, as for a refusal that
    nobody can judge.

    Question, response, passages and right answer are found in input, output, expected output and
    metadata under their usual names, or in lists of messages; ``fields`` names others, as in
    ``fields={"documents": "outputs.sources"}``. A trace's passages may also be ``context``.

    Metrics and options are those of :class:`~.resident.ResidentScorer`.
    """

    __name__ = "trustassay"  # what Langfuse shows

    def __init__(self, metrics: str | Metric | Sequence[str | Metric], **options: Any) -> None:
        self._resident = ResidentScorer(metrics, **options)

    async def __call__(self, **item: Any) -> list[Evaluation]:
        """Score an item (``input``, ``output``, ``expected_output``, ``metadata``), as Langfuse
        calls it in ``run_experiment`` and ``run_batched_evaluation``.
        """
        return [_evaluation(one) for one in await self._resident.ascore(_record(item))]

    def score_trace(
        self, langfuse: Langfuse, trace_id: str, *, observation_id: str | None = None, **item: Any
    ) -> list[Evaluation]:
        """Score what a system answered, and send the scores to its trace.

        If it is scored again, the new scores take the place of the old ones.

        Args:
            langfuse: the client that sends them, in the background.
            trace_id: the trace to score. observation_id: the one observation of it to score.
            item: ``input``, ``output`` and what else an item of an experiment has.
        """
        result = [_evaluation(one) for one in self._resident.score(_record(item))]
        _send(langfuse, result, trace_id, observation_id)
        return result

    async def ascore_trace(
        self, langfuse: Langfuse, trace_id: str, *, observation_id: str | None = None, **item: Any
    ) -> list[Evaluation]:
        """Do as :meth:`score_trace` in an event loop, which is not blocked."""
        result = await self(**item)
        _send(langfuse, result, trace_id, observation_id)
        return result


def _record(item: dict[str, Any]) -> dict[str, Any]:
    given = dict(item)
    asked, said = given.pop("input", None), given.pop("output", None)
    return traced(_opened(asked), said, given.pop("expected_output", None), **given)


def _opened(value: Any) -> Any:
    """Return fields or messages that are written as JSON in a text, as Langfuse's API gives them;
    anything else as it is.
    """
    if not (isinstance(value, str) and value.startswith(("{", "["))):
        return value
    try:
        result = json.loads(value)
    except (ValueError, RecursionError):
        return value
    listed = result if isinstance(result, list) else [result]
    return result if all(isinstance(one, dict) for one in listed) else value


def _send(
    langfuse: Langfuse, found: Sequence[Evaluation], trace_id: str, observation_id: str | None
) -> None:
    for one in found:
        langfuse.create_score(
            name=one.name,
            value=one.value,
            trace_id=trace_id,
            observation_id=observation_id,
            score_id="-".join(filter(None, (trace_id, observation_id, one.name))),
            data_type=one.data_type,
            comment=one.comment,
            metadata=one.metadata,
        )


def _evaluation(found: Finding) -> Evaluation:
    metadata = {name: value for name, value in found.about.items() if value not in (None, {})}
    name, value, kind = found.as_langfuse
    return Evaluation(
        name=name, value=value, comment=found.comment, metadata=metadata, data_type=kind
    )
