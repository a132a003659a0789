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
    runs: Annotated[list[Path], Flag("RUN...", "The folders of the runs of all shards.")],
    out: Annotated[Path, Flag("--out", "The folder to write the merged run to.", group=OUTPUT)],
    pool: Annotated[
        Path | None,
        Flag(
            "--pool",
            "The file of all samples, if it was moved since the runs used it as --pool.",
            group=INPUT,
            rare=True,
        ),
    ],
    as_json: common.Json,
) -> None:
    """Merge the runs of all shards into one run, with summary, table and report.

    If shards are unfinished or missing, the error lists them with the command that finishes each.
    If the merge is interrupted, run the same command again.

    \b
    trustassay merge runs/* --out whole
    trustassay merge runs/0 runs/1 --out whole --json > summary.json
    """
    from trustassay.cli.results import show_run

    show_run(
        trustassay.ray.merge(runs, out=out, pool=pool, progress=True),
        as_json=as_json,
    )
