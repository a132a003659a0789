"""What metrics prepare once per run, with access to all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from trustassay.calls.client import Client
from trustassay.calls.models import SampleModels
from trustassay.capabilities import Models
from trustassay.errors import AssessmentError, BackendError
from trustassay.metric import Metric
from trustassay.runs.filling import Failure
from trustassay.runs.pool import StoredPool
from trustassay.tracebacks import keep_failure, words_of

__all__ = ["Prepared", "prepare", "requests_of"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a metric prepared, or why it could not, and the requests that it made."""

    value: Any = None
    failure: Failure | None = None
    calls: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


async def prepare(
    metrics: Sequence[Metric], pool: StoredPool | None, gatherers: Client, folder: Path
) -> dict[str, Prepared]:
    """Return what each metric prepared, by name; those without a pool prepare nothing.

    A failure is a value: it only fails the samples of its own metric. ``folder`` gets the traceback
    of an error that a metric does not tell of itself.
    """
    found = {metric.name: Prepared() for metric in metrics}
    for metric in metrics:
        if metric.pool and pool is not None:
            found[metric.name] = await _prepared(metric, pool, gatherers, folder)
    return found


def requests_of(prepared: Mapping[str, Prepared]) -> dict[str, Any]:
    """Return the requests that metrics made while they prepared, by name, of those that did."""
    return {
        name: {"calls": dict(one.calls), "usage": dict(one.usage)}
        for name, one in prepared.items()
        if one.calls
    }


async def _prepared(metric: Metric, pool: StoredPool, gatherers: Client, folder: Path) -> Prepared:
    models = SampleModels(gatherers)
    try:
        value = await metric.prepare(pool, cast(Models, models))
    except (AssessmentError, BackendError) as error:
        words = f"could not be prepared: {error}"
        return Prepared(failure=Failure(words, getattr(error, "kind", None)))
    except Exception as error:
        keep_failure(folder, metric.name, error)
        words = f"{metric.name} failed while it prepared: {words_of(error)}"
        return Prepared(failure=Failure(words))
    usage = {name: dict(sorted(one.items())) for name, one in sorted(models.usage.items())}
    return Prepared(value, None, dict(sorted(models.calls.items())), usage)
