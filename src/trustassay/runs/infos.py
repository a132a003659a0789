"""The descriptions of the metrics of a stored run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.metric import Metric, MetricInfo
from trustassay.registry import metric_from_settings
from trustassay.runs.folder import RunFolder

__all__ = ["ABOUT", "metric_infos", "metrics_of"]

ABOUT = "about"
"""The part of ``run.json`` that holds it; runs of earlier versions have none."""


def metric_infos(folder: RunFolder, run: Mapping[str, Any]) -> dict[str, MetricInfo]:
    """Return, by name, the descriptions of the metrics of a run.

    Raises:
        RunFolderError: ``run.json`` is damaged.
        UnknownNameError: the run has no description, and the metric is not installed.
    """
    found = {}
    for name, settings in run["metrics"].items():
        told = run.get(ABOUT, {}).get(name)
        if told is None:
            metric = metric_from_settings(name, settings).served_by(run.get("backends", {}))
            found[name] = MetricInfo.of(metric)
            continue
        try:
            found[name] = MetricInfo.from_dict(told)
        except (KeyError, TypeError, ValueError):
            words = f"damaged (the description of {name} cannot be read)"
            raise RunFolderError(f"{folder.path / 'run.json'}: {words}") from None
    return found


def metrics_of(run: Mapping[str, Any]) -> dict[str, Metric]:
    """Return, by name, those metrics of a run that are installed, with the run's options."""
    found = {}
    for name, settings in run["metrics"].items():
        with suppress(UnknownNameError, TypeError, ValueError):
            found[name] = metric_from_settings(name, settings).served_by(run.get("backends", {}))
    return found
