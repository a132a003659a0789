"""``trustassay rescore``: score the samples of a run with other settings."""

from pathlib import Path
from typing import Annotated

from trustassay.cli.common import Json, Metrics
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show_run
from trustassay.report.terminal import say
from trustassay.runs.options import (
    CHANCE,
    OUTPUT,
    BackendChoices,
    Flag,
    RescoreOptions,
    SecondReadingOptions,
)

# Samples, backends and replies come from the run: only these options can change.
RESCORED = Only(
    *(
        "unit",
        "longest_answer",
        *SecondReadingOptions.__annotations__,
        "calibrator",
    )
)


@with_options
def rescore(
    run: Annotated[Path, Flag("RUN", "A run's folder.")],
    *,
    out: Annotated[Path, Flag("--out", "The new run's folder.", group=OUTPUT)],
    metric: Metrics,
    backends: Annotated[
        BackendChoices, Only("model", "judge", "second", "entailer", "embedder", "backends")
    ],
    seed: Annotated[
        int | None, Flag("--seed", "A seed other than the run's.", group=CHANCE, least=0)
    ],
    options: Annotated[RescoreOptions, RESCORED],
    as_json: Json,
) -> None:
    """Score the samples of a run with other settings; stored replies are not requested again.

    A metric or a backend that is not given is the run's own.

    \b
    trustassay rescore runs/one --metric grounding:threshold=0.8 --out runs/strict
    trustassay rescore runs/two --metric harmonicity --embedder hf:MODEL \\
        --out runs/other
    """
    from trustassay import api

    rescore_options: RescoreOptions = {**options, **backends, "seed": seed, "progress": True}
    rescored = api.rescore(run, metrics=metric or None, out=out, **rescore_options)
    computed = sum(count.computed for count in rescored.outcome.counts.values())
    stored_replies = sum(count.from_store for count in rescored.outcome.counts.values())
    say(f"{stored_replies} replies were stored, {computed} were newly requested")
    show_run(rescored, as_json=as_json)
