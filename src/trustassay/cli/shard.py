"""``trustassay shard`` and ``trustassay merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.options import Records, with_options
from trustassay.cli.results import show
from trustassay.show.terminal import say


@with_options
def shard(
    source: common.Source,
    *,
    into: Annotated[
        int, typer.Option(help="The number of shards, up to 400.", min=1, show_default=False)
    ],
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(help="The new folder. Default: INPUT.shards.", show_default=False),
    ] = None,
    records: Records,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole",
            help="Also write all samples into one file, NAME.whole.jsonl, for metrics that compare "
            "a sample with all others.",
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
    with errors_for_people():
        from trustassay import api

        target = out or source.with_name(f"{source.name}.shards")
        found = api.shard(
            source, into=into, out=target, whole=whole, progress=True, **records.read()
        )
        for one in found.shards:
            say(f"{one.path}: {one.samples:,} samples")
        if found.whole:
            say(f"{found.whole}: all samples")
        if found.intake.faulty:
            say(f"skipped as faulty: {found.intake.faulty}")
        if empty := found.into - len(found.shards):
            say(f"{empty} of {found.into} shards would be empty and have no file")


def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="The runs of all shards.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the whole run.", show_default=False)],
    pool: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The file of all samples that the runs were given as --pool, if it was moved.",
            show_default=False,
        ),
    ] = None,
    prices: common.PricesFile = None,
    as_json: common.Json = False,
) -> None:
    """Put the runs of all shards of an input together: summary, table and report as of one run.

    Unfinished and missing shards are named with the command that finishes them. If it is
    interrupted, run the same command again.

    \b
    trustassay merge runs/* --out whole
    trustassay merge runs/0 runs/1 --out whole --json > summary.json
    """
    with errors_for_people():
        from trustassay import api
        from trustassay.calls.prices import Prices

        known = Prices.read(prices) if prices else None
        show(api.merge(runs, out=out, pool=pool, prices=known, progress=True), as_json=as_json)
