"""``trustassay models``."""

from __future__ import annotations

from typing import Annotated

import typer

from trustassay.cli.common import errors_for_people, say


def models(
    check: Annotated[
        bool, typer.Option("--check", help="Load each, run its self-test and measure its speed.")
    ] = False,
) -> None:
    """Say which backends work here; with --check, how fast each is.

    \b
    trustassay models --check
    """
    with errors_for_people():
        from rich.console import Console
        from rich.table import Table

        from trustassay.backends import inventory

        table = Table("backend", "what for", "here", box=None, pad_edge=False)
        if check:
            table.add_column("load")
            table.add_column("speed")
        broken = 0
        for found in inventory.backends(check=check):
            broken += found.broken
            cells = [found.name, found.capability, found.state]
            table.add_row(*cells, *([found.load, found.speed] if check else []))
        Console(stderr=True, highlight=False, markup=False).print(table)
        if broken:
            say(f"{broken} of them should work here and do not")
            raise typer.Exit(1)
