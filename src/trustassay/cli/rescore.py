"""``trustassay rescore``: score the samples of a run with other settings."""

from pathlib import Path
from typing import Annotated

from trustassay.cli.common import Json
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show_run
from trustassay.report.terminal import say
from trustassay.runs.options import (
    CHANCE,
    MODELS,
    OUTPUT,
    BackendChoices,
    Flag,
    RescoreOptions,
    SecondReadingOptions,
)
from trustassay.text.numbers import amount

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
    run: Annotated[Path, Flag("RUN", "The folder of the run.")],
    *,
    out: Annotated[Path, Flag("--out", "The folder of the new run.", group=OUTPUT)],
    metric: Annotated[
        list[str],
        Flag(
            "--metric",
            "A metric and, after a colon, its options: grounding:threshold=0.8. Can be repeated. "
            "Default: the metrics of the run.",
            metavar="NAME[:OPTION=VALUE,...]",
            group=MODELS,
        ),
    ],
    backends: Annotated[
        BackendChoices, Only("model", "judge", "second", "entailer", "embedder", "backends")
    ],
    seed: Annotated[
        int | None,
        Flag(
            "--seed",
            "Seed of all random choices. Default: that of the run.",
            group=CHANCE,
            least=0,
        ),
    ],
    options: Annotated[RescoreOptions, RESCORED],
    as_json: Json,
) -> None:
    """Score the answers of a run again, with other settings; stored replies are reused.

    Metrics and backends that you do not give are those of the run.

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
    stored = f"{amount(stored_replies, 'reply', 'replies')} reused from the stored run"
    say(f"{stored}, {computed:,} newly requested")
    show_run(rescored, as_json=as_json)
