"""``trustassay score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trustassay.cli.common import (
    Concurrency,
    Entailer,
    Json,
    Metrics,
    errors_for_people,
    pairs,
    show,
)


def score(  # noqa: PLR0913 - one argument an option
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Answers: .jsonl, .json, .csv, .tsv, .parquet, or a folder saved by datasets.",
            show_default=False,
        ),
    ],
    metric: Metrics = ["grounding"],  # noqa: B006 - typer copies it
    entailer: Entailer = "lexical",
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it
        typer.Option(
            help="The run's folder; the same command with the same folder goes on where it "
            "stopped. Default: one in trustassay-runs, named after the input and the settings.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Score the first N records alone.", min=1, show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0)] = 0,
    concurrency: Concurrency = 256,
    field: Annotated[
        list[str],
        typer.Option(
            help="Read a field under another name; dots reach inside. May be given more than once.",
            metavar="CANONICAL=THEIRS",
        ),
    ] = [],  # noqa: B006
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without faulty records, and count them.")
    ] = False,
    as_json: Json = False,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Score a file of answers; the report and all results go into the run's folder.

    \b
    trustassay score answers.jsonl
    trustassay score answers.json --metric grounding:profile=paper --entailer hf:MODEL
    trustassay score ragas.parquet --out runs/one --json > summary.json
    trustassay score mine.csv --field response=answer --field documents=contexts
    """
    with errors_for_people():
        from trustassay.engine import api
        from trustassay.engine.naming import default_folder

        fields = pairs(field, "--field")
        folder = out or default_folder(source, metric, entailer, seed, limit, fields)
        run = api.score(
            source,
            metrics=metric,
            entailer=entailer,
            out=folder,
            fields=fields,
            limit=limit,
            seed=seed,
            skip_bad=skip_bad,
            concurrency=concurrency,
            progress=True,
        )
        if open_report:
            typer.launch(str(run.path / "report.html"))
        show(run, as_json=as_json)
