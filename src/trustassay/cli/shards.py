"""``trustassay shard`` and ``trustassay merge``: trustassay finds them by entry points."""

from pathlib import Path
from typing import Annotated

import trustassay.ray
from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.input.places import name_of, scheme_of
from trustassay.report.terminal import say
from trustassay.runs.options import (
    INPUT,
    OUTPUT,
    Flag,
    RecordOptions,
)
from trustassay.text.words import amount


def shards_folder(source: str) -> Path:
    """Return the default folder of an input's shards: next to a file, else the current one."""
    # A URL or a table has no folder on this machine.
    beside = Path() if scheme_of(source) else Path(source).parent
    return beside / f"{name_of(source)}.shards"


@with_options
def shard(
    source: common.Source,
    *,
    into: Annotated[int, Flag("--into", "The number of shards, up to 400.", least=1)],
    out: Annotated[
        Path | None, Flag("--out", "The new folder. Default: INPUT.shards.", group=OUTPUT)
    ],
    records: RecordOptions,
    whole: Annotated[
        bool,
        Flag(
            "--whole",
            "Also write all samples into one file, NAME.whole.jsonl, for metrics that compare a "
            "sample with all others.",
        ),
    ],
) -> None:
    """Divide an input into shards, to be scored on several machines and merged.

    A sample's shard follows from its id. Score each shard into a folder of its own with the same
    options, then give these folders to merge. Metrics that compare a sample with all others
    (fewl) need the file that --whole writes: give it to score as --pool.

    \b
    trustassay shard answers.jsonl --into 8
    trustassay score answers.jsonl.shards/answers.jsonl.shard-0-of-8.jsonl \\
        --out runs/0
    trustassay merge runs/* --out whole
    trustassay shard answers.jsonl --into 8 --whole
    """
    target = out or shards_folder(source)
    result = trustassay.ray.shard(
        source, into=into, out=target, whole=whole, progress=True, **records
    )
    for shard_file in result.shards:
        say(f"{shard_file.path}: {shard_file.samples:,} samples")
    if result.pool_path:
        say(f"{result.pool_path}: all samples")
    # With --skip-bad.
    if result.intake.faulty:
        say(f"skipped as faulty: {result.intake.faulty}")
    # A shard follows from the hash of the id, so a small input may leave some of them empty.
    if empty := result.into - len(result.shards):
        say(f"{empty} of {result.into} shards would be empty and have no file")


@with_options
def merge(
    *,
    runs: Annotated[list[Path], Flag("RUN...", "The runs of all shards.")],
    out: Annotated[Path, Flag("--out", "The folder of the whole run.", group=OUTPUT)],
    pool: Annotated[
        Path | None,
        Flag(
            "--pool",
            "The file of all samples that the runs were given as --pool, if it was moved.",
            group=INPUT,
            rare=True,
        ),
    ],
    as_json: common.Json,
) -> None:
    """Put the runs of all shards of an input together: summary, table and report as of one run.

    Unfinished and missing shards are named with the command that finishes them. If it is
    interrupted, run the same command again.

    \b
    trustassay merge runs/* --out whole
    trustassay merge runs/0 runs/1 --out whole --json > summary.json
    """
    from trustassay.cli.results import show_run

    show_run(
        trustassay.ray.merge(runs, out=out, pool=pool, progress=True),
        as_json=as_json,
    )


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
