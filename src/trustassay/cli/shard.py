"""``trustassay shard`` and ``trustassay merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from trustassay.cli import common
from trustassay.cli.options import Only, with_options
from trustassay.cli.results import show
from trustassay.options import Argument, Flag, Records, Spending
from trustassay.show.terminal import say


@with_options
def shard(
    source: common.Source,
    *,
    into: Annotated[int, Flag("The number of shards, up to 400.", least=1)],
    out: Annotated[
        Path | None,
        Flag("The new folder. Default: INPUT.shards."),
    ] = None,
    records: Records,
    whole: Annotated[
        bool,
        Flag(
            "Also write all samples into one file, NAME.whole.jsonl, for metrics that compare "
            "a sample with all others.",
            name="--whole",
        ),
    ] = False,
) -> None:
    """Divide an input into shards, to be scored on several machines and merged.

    A sample's shard follows from its id. Score each shard into a folder of its own with the same
    options, then give these folders to merge. Metrics that compare a sample with all others
    (fewl) need the file that --whole writes: give it to score as --pool.

    \b
    trustassay shard answers.jsonl --into 8
    trustassay score answers.jsonl.shards/answers.jsonl.shard-0-of-8.jsonl --out runs/0
    trustassay merge runs/* --out whole
    trustassay shard answers.jsonl --into 8 --whole
    """
    from trustassay import api

    target = out or source.with_name(f"{source.name}.shards")
    found = api.shard(source, into=into, out=target, whole=whole, progress=True, **records)
    for one in found.shards:
        say(f"{one.path}: {one.samples:,} samples")
    if found.whole:
        say(f"{found.whole}: all samples")
    if found.intake.faulty:
        say(f"skipped as faulty: {found.intake.faulty}")
    if empty := found.into - len(found.shards):
        say(f"{empty} of {found.into} shards would be empty and have no file")


@with_options
def merge(
    *,
    runs: Annotated[
        list[Path],
        Argument("The runs of all shards.", "RUN..."),
    ],
    out: Annotated[Path, Flag("The folder of the whole run.")],
    pool: Annotated[
        Path | None,
        Flag("The file of all samples that the runs were given as --pool, if it was moved."),
    ] = None,
    spending: Annotated[Spending, Only("prices")],
    as_json: common.Json,
) -> None:
    """Put the runs of all shards of an input together: summary, table and report as of one run.

    Unfinished and missing shards are named with the command that finishes them. If it is
    interrupted, run the same command again.

    \b
    trustassay merge runs/* --out whole
    trustassay merge runs/0 runs/1 --out whole --json > summary.json
    """
    from trustassay import api
    from trustassay.calls.client import CallOptions

    known = CallOptions.of(**spending).prices if spending else None
    show(api.merge(runs, out=out, pool=pool, prices=known, progress=True), as_json=as_json)
