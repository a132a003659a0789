"""``trustassay export``: write the table of a run in folders."""

from pathlib import Path
from typing import Annotated

from trustassay.cli.options import with_options
from trustassay.report.terminal import say
from trustassay.runs.options import (
    Flag,
)
from trustassay.text.numbers import amount


@with_options
def export(
    *,
    run: Annotated[Path, Flag("RUN", "The folder of a finished run.")],
    to: Annotated[
        str,
        Flag(
            "--to",
            "Where the files go: a new folder, or a URL (s3://BUCKET/FOLDER).",
            metavar="PLACE",
        ),
    ],
    by: Annotated[
        str | None,
        Flag(
            "--by",
            "Fields of the samples, or columns, with commas: each value has a folder FIELD=VALUE; "
            "none for one folder. Default: the folders of the run's input.",
            metavar="FIELD,...",
        ),
    ],
) -> None:
    """Write the table of a run as Parquet files, in folders as those of its input.

    A row for each answer and metric, with the answer's id. Export again after the run has grown:
    files of the earlier export are replaced. What is valid stands in _trustassay.json there.

    \b
    trustassay export runs/log --to scores
    trustassay export runs/log --to s3://bucket/scores --by day,model
    """
    from trustassay.core.progress import StepProgress
    from trustassay.ray import export as exporting

    result = exporting.export(run, to, by, StepProgress(visible=True))
    folders = f", in folders by {', '.join(result.by)}" if result.by else ""
    say(f"{result.rows:,} rows in {amount(result.files, 'file')}{folders}: {result.to}")
