"""``trustassay merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli import common
from trustassay.cli.common import errors_for_people
from trustassay.cli.results import show


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
