"""``trustassay shard``: divide an input into shards."""

from pathlib import Path
from typing import Annotated

import trustassay.ray
from trustassay.cli import common
from trustassay.cli.options import with_options
from trustassay.input.places import name_of, scheme_of
from trustassay.report.terminal import say
from trustassay.runs.options import (
    OUTPUT,
    Flag,
    RecordOptions,
)
from trustassay.text.numbers import amount, verb


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
        Path | None, Flag("--out", "The folder to create. Default: INPUT.shards.", group=OUTPUT)
    ],
    records: RecordOptions,
    whole: Annotated[
        bool,
        Flag(
            "--whole",
            "Also write all samples to NAME.whole.jsonl, for metrics that compare each sample "
            "with all others.",
        ),
    ],
) -> None:
    """Divide an input into shards that several machines can score.

    The id of a sample determines its shard. Score each shard into a separate folder with the same
    options, then give these folders to trustassay merge. Metrics that compare each sample with all
    others (fewl) need the file that --whole writes: pass it to score as --pool.

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
        say(f"{shard_file.path}: {amount(shard_file.samples, 'sample')}")
    if result.pool_path:
        say(f"{result.pool_path}: all samples")
    # With --skip-bad.
    if result.intake.faulty:
        say(f"{amount(result.intake.faulty, 'faulty record')} skipped")
    # A shard follows from the hash of the id, so a small input may leave some of them empty.
    if empty := result.into - len(result.shards):
        say(
            f"{empty} of {amount(result.into, 'shard')} {verb(empty, 'has', 'have')} no samples "
            "and no file"
        )
