"""``trustassay demo``."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from trustassay.cli.common import Entailer, Json, errors_for_people, say, show


def demo(
    out: Annotated[Path, typer.Option(help="The run's folder.")] = Path("trustassay-runs/demo"),
    entailer: Entailer = "lexical",
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
        from trustassay.engine import api

        with as_file(files("trustassay.data") / "demo.jsonl") as source:
            say(f"scoring the bundled answers with the entailer {entailer}")
            run = api.score(
                source, metrics=["grounding"], entailer=entailer, out=out, progress=True
            )
        if open_report:
            typer.launch(str(run.path / "report.html"))
        show(run, as_json=as_json)
