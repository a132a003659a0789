"""The scores of a run by model and domain: one pass over its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trustassay.engine.folder import RunFolder
from trustassay.metric import Metric
from trustassay.report import Groups

__all__ = ["DOMAIN", "grouped"]

DOMAIN = "domain"


def grouped(
    folder: RunFolder,
    run: Mapping[str, Any],
    metrics: Sequence[type[Metric]],
    domain_field: str = DOMAIN,
) -> dict[str, Groups]:
    """Return the scores of each metric by model and domain.

    A sample's model is the one it names, else the one that the run asked; its domain stands in the
    field ``domain_field``, where dots reach inside, or in the one of that name under ``metadata``.
    """
    asked = run["backends"].get("model")
    found = {
        metric.name: Groups(
            *metric.score_range,
            lower_is_better=metric.lower_is_better,
            stable_below=run["metrics"].get(metric.name, {}).get("stable_below"),
            domain_field=domain_field,
        )
        for metric in metrics
    }
    columns = [iter(folder.assessments(metric.name)) for metric in metrics]
    for sample, *assessments in zip(folder.sample_records(), *columns, strict=True):
        domain = _domain(sample, domain_field)
        for assessment in assessments:
            if assessment.score is not None:
                found[assessment.metric].add(
                    sample.get("model") or asked, domain, assessment.score, sample.get("label")
                )
    return found


def _domain(sample: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field; ``None`` where there is none."""
    for outer in (sample, sample.get("metadata")):
        value: Any = outer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None
