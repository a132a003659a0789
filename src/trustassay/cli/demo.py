"""``trustassay demo``."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.backends import DEFAULT_ENTAILER
from trustassay.cli.common import Entailer, Json, errors_for_people
from trustassay.cli.results import show
from trustassay.show.terminal import say


def demo(
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(help="The run's folder. Default: one in trustassay-runs.", show_default=False),
    ] = None,
    entailer: Entailer = DEFAULT_ENTAILER,
    as_json: Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Score the bundled example: 32 cited answers, good ones and bad ones.

    \b
    trustassay demo --open
    """
    with errors_for_people():
        from trustassay import api
        from trustassay.runs.intake import default_folder

        with as_file(files("trustassay.data") / "demo.jsonl") as source:
            say(f"scoring the bundled answers with the entailer {entailer}")
            folder = out or default_folder(source, metrics=["grounding"], entailer=entailer)
            run = api.score(
                source, metrics=["grounding"], entailer=entailer, out=folder, progress=True
            )
        if open_report:
            typer.launch(str(run.path / "report.html"))
        show(run, as_json=as_json)
