"""``trustassay report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli.common import errors_for_people
from trustassay.cli.streams import say


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)],
    domain: Annotated[
        str, typer.Option(help="The field that holds a sample's domain; dots descend into objects.")
    ] = "domain",
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Write the report page of a finished run again, from what is stored.

    \b
    trustassay report trustassay-runs/answers-1a2b3c4d --open
    trustassay report runs/one --domain topic
    """
    with errors_for_people():
        from trustassay.runs.ending import Steps
        from trustassay.runs.folder import RunFolder
        from trustassay.runs.outputs import write_report

        folder = RunFolder(run)
        write_report(folder, domain_field=domain, steps=Steps(shown=True))
        say(f"report: {folder.report_path}")
        if open_report:
            typer.launch(str(folder.report_path))
