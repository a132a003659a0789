"""A scorer for inspect_ai: what metrics of trustassay find, one value a metric.

    Task(dataset=..., solver=generate(), scorer=trust_scorer("faithfulness", entailer="embedded"))

``inspect score LOG --scorer trustassay_serve/trust_scorer -S metrics=faithfulness`` scores a log.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from trustassay.metric import Metric
from trustassay_serve.integrations.resident import Finding, ResidentScorer, needs, traced

with needs("inspect_ai", "inspect-ai"):
    import anyio.to_thread
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def trust_scorer(metrics: str | Metric | Sequence[str | Metric], **options: Any) -> Scorer:
    """Score samples with one or more metrics; models are loaded once a process.

    The question is the sample's input, the response the model's output, the answers its target.
    Passages come from the sample's metadata (``context``, ``documents``, ``contexts``, ...); other
    fields are named by ``fields``, as in ``fields={"claims": "metadata.facts"}``.

    The value is a dictionary with the score of each metric, which inspect_ai summarises key by key.
    A metric that could not score a sample has inspect_ai's mark of the unscored, NaN, which counts
    in no mean and is reported as unscored; the explanation says why.

    Metrics and options are those of :class:`~.resident.ResidentScorer`;
    options that a log is to record must be names.
    """
    resident = ResidentScorer(metrics, **options)

    async def score(state: TaskState, target: Target) -> Score:
        return _score(await _scored(resident, _record(state, target)), state.output.completion)

    return score


async def _scored(resident: ResidentScorer, record: dict[str, Any]) -> list[Finding]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # trio, which inspect_ai can run on as well
        return await anyio.to_thread.run_sync(resident.score, record, abandon_on_cancel=True)
    return await resident.ascore(record)


def _record(state: TaskState, target: Target) -> dict[str, Any]:
    golds = [text for text in target if text.strip()]
    return traced(
        state.input_text,
        state.output.completion,
        answers=[golds] if golds else None,
        metadata=state.metadata,
        model=str(state.model),
        sample_id=str(state.sample_id),
        epoch=state.epoch,
    )


def _score(found: Sequence[Finding], answer: str) -> Score:
    one = len(found) == 1
    return Score(
        value={each.metric: math.nan if each.score is None else each.score for each in found},
        answer=answer,
        explanation="\n".join(
            each.comment if one else f"{each.metric}: {each.comment}" for each in found
        ),
        reason="scoring_failed" if any(each.error is not None for each in found) else None,
        metadata={
            each.metric: {
                "verdict": each.verdict,
                "passed": each.passed,
                "error": each.error,
                "parts": dict(each.parts),
            }
            for each in found
        },
    )
