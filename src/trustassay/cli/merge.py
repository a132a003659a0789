"""``trustassay merge``: put the runs of all shards together."""

from pathlib import Path
from typing import Annotated

import trustassay.ray
from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.runs.options import (
    INPUT,
    OUTPUT,
    Flag,
)


@with_options
def merge(
    *,
    runs: Annotated[list[Path], Flag("RUN...", "The runs of all shards.")],
    out: Annotated[Path, Flag("--out", "The folder of the whole run.", group=OUTPUT)],
    pool: Annotated[
        Path | None,
        Flag(
            "--pool",
            "The file of all samples that the runs were given as --pool, if it was moved.",
            group=INPUT,
            rare=True,
        ),
    ],
    as_json: common.Json,
) -> None:
    """Put the runs of all shards of an input together: summary, table and report as of one run.

    Unfinished and missing shards are named with the command that finishes them. If it is
    interrupted, run the same command again.

    \b
    trustassay merge runs/* --out whole
    trustassay merge runs/0 runs/1 --out whole --json > summary.json
    """
    from trustassay.cli.results import show_run

    show_run(
        trustassay.ray.merge(runs, out=out, pool=pool, progress=True),
        as_json=as_json,
    )
