"""A finished run, or answers that are scored first: the input of commands that use scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trustassay.cli import common

__all__ = ["METRIC", "scored_run"]

METRIC = "fewl:form=agreement"
"""What answers are scored with if no metric is named."""


def scored_run(
    source: Path | list[Path],
    metric: str | None,
    backends: Mapping[str, Any],
    read: Mapping[str, Any],
    *,
    out: Path | None,
    seed: int,
) -> tuple[Path, str | None, int]:
    """Return a run's folder, the metric that is meant, and the number of samples that failed.

    A source that is a run is taken as it is; anything else is scored into ``out``, or into a folder
    that the same command finds again. Raises as :func:`trustassay.score`.
    """
    if isinstance(source, Path) and (source / "run.json").exists():
        return source, metric, 0
    from trustassay import api
    from trustassay.runs.folder import default_folder

    chosen = metric or METRIC
    settings: dict[str, Any] = {"metrics": [chosen], "seed": seed, **backends}
    settings |= {"limit": read["limit"], "fields": read["fields"]}
    folder = out or default_folder(source, **settings)
    run = api.score(
        source, metrics=chosen, out=folder, seed=seed, progress=True, **backends, **read
    )
    failed = common.tell(run, as_json=False)
    return folder, chosen.partition(":")[0], failed
