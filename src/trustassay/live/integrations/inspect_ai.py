"""A scorer for inspect_ai, with one value per metric of trustassay.

    Task(dataset=..., solver=generate(), scorer=trust_scorer("faithfulness", entailer="embedded"))

``inspect score LOG --scorer trustassay.live/trust_scorer -S metrics=faithfulness`` scores a log.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from trustassay.core.metric import Metric
from trustassay.live.integrations.resident import (
    IntegrationFinding,
    ResidentScorer,
    build_record,
    needs,
)

with needs("inspect_ai", "inspect-ai"):
    import anyio.to_thread
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def trust_scorer(metrics: str | Metric | Sequence[str | Metric], **options: Any) -> Scorer:
    """Score samples with one or more metrics; models are loaded once per process.

    The question is the sample's input, the response the model's output, the answers its target.
    Passages come from the sample's metadata (``context``, ``documents``, ``contexts``, ...);
    ``fields`` names other fields, as in ``fields={"claims": "metadata.facts"}``.

    The value is a dictionary with the score of each metric, which inspect_ai summarises key by key.
    A metric that could not score a sample has NaN, inspect_ai's mark of an unscored value, which
    counts in no mean and is reported as unscored; the explanation says why.

    Metrics and options are those of :class:`~.resident.ResidentScorer`. Options that a log is to
    record must be names.
    """
    resident = ResidentScorer(metrics, **options)

    async def score(state: TaskState, target: Target) -> Score:
        return _build_score(
            await _score_record(resident, _build_record(state, target)), state.output.completion
        )

    return score


async def _score_record(
    resident: ResidentScorer, record: dict[str, Any]
) -> list[IntegrationFinding]:
    """Score a record under asyncio or trio, both of which inspect_ai can run on."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # no asyncio loop, so this is trio: score in a thread
        return await anyio.to_thread.run_sync(resident.score, record, abandon_on_cancel=True)
    return await resident.ascore(record)


def _build_record(state: TaskState, target: Target) -> dict[str, Any]:
    """Return the record of a sample and its output."""
    golds = [text for text in target if text.strip()]
    return build_record(
        state.input_text,
        state.output.completion,
        # The texts of a target are alternatives of one answer.
        answers=[golds] if golds else None,
        metadata=state.metadata,
        model=str(state.model),
        # id and epoch name the sample; each epoch has an answer of its own
        sample_id=str(state.sample_id),
        epoch=state.epoch,
    )


def _build_score(findings: Sequence[IntegrationFinding], answer: str) -> Score:
    is_single = len(findings) == 1
    return Score(
        value={
            finding.metric: math.nan if finding.score is None else finding.score
            for finding in findings
        },
        answer=answer,
        explanation="\n".join(
            finding.comment if is_single else f"{finding.metric}: {finding.comment}"
            for finding in findings
        ),
        # One failed metric marks the whole score, since inspect_ai has one reason per score.
        reason="scoring_failed" if any(finding.error is not None for finding in findings) else None,
        metadata={
            finding.metric: {
                "verdict": finding.verdict,
                "passed": finding.passed,
                "error": finding.error,
                "parts": dict(finding.parts),
            }
            for finding in findings
        },
    )
