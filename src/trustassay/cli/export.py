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
            "The folder to create, or a URL (s3://BUCKET/FOLDER).",
            metavar="PLACE",
        ),
    ],
    by: Annotated[
        str | None,
        Flag(
            "--by",
            "Sample fields or columns to group rows by, separated by commas. Each value gets a "
            "folder FIELD=VALUE; none writes one folder. Default: the folders of the run's input.",
            metavar="FIELD,...",
        ),
    ],
) -> None:
    """Write the table of a run as Parquet files, in folders like those of its input.

    The table has one row for each answer and metric, with the answer's id. If the run has grown,
    export it again: the new files replace the earlier ones. _trustassay.json there lists the files
    that are valid.

    \b
    trustassay export runs/log --to scores
    trustassay export runs/log --to s3://bucket/scores --by day,model
    """
    from trustassay.core.progress import StepProgress
    from trustassay.ray import export as exporting

    result = exporting.export(run, to, by, StepProgress(visible=True))
    folders = f", in folders by {', '.join(result.by)}" if result.by else ""
    counts = f"{amount(result.rows, 'row')} in {amount(result.files, 'file')}"
    say(f"{counts}{folders}: {result.to}")
