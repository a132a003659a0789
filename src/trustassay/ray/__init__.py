"""Scoring on several machines: divide an input into shards, merge their runs, run on a Ray cluster.

``shard`` and ``merge`` are for shards that are scored by hand; they do not need Ray.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trustassay.core.event_loop import run_anywhere
from trustassay.core.progress import StepProgress, tell
from trustassay.core.sample import LONGEST_LINE_MIB

# Everything else is imported inside the functions, so that `import trustassay.ray` is fast.
if TYPE_CHECKING:
    from trustassay.calls.prices import Prices
    from trustassay.input.records import FieldNames
    from trustassay.ray.shards import Shards
    from trustassay.runs.finished import Run
    from trustassay.runs.intake import Source

__all__ = ["merge", "shard"]


def shard(  # noqa: PLR0913 - one argument an option
    samples: Source,
    *,
    into: int,
    out: str | os.PathLike[str],
    fields: FieldNames | None = None,
    sheet: str | int | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    answer_span: str | None = None,
    longest_line: int = LONGEST_LINE_MIB,
    whole: bool = False,
    progress: bool = False,
) -> Shards:
    """Divide samples into ``into`` files in the new folder ``out``; each is scored by itself.

    ``whole`` also writes all samples into one file. Metrics that compare a sample with all others
    take it as the option ``pool``.

    Raises:
        InputError, BadInputError: the input has faults; nothing was written.
        RunFolderError: ``out`` exists already.
        ValueError: the number of shards is not between 1 and 400.
    """
    from trustassay.ray.shards import split
    from trustassay.runs.intake import RunOptions

    # Only options of reading: shards are scored later, elsewhere.
    options = RunOptions(
        fields=fields or {},
        sheet=sheet,
        limit=limit,
        skip_bad=skip_bad,
        answer_span=answer_span,
        longest_line=longest_line,
        progress=progress,
    )
    return run_anywhere(
        lambda: split(samples, Path(out), lambda _: into, options, keep_whole=whole)
    )


def merge(
    runs: Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    pool: str | os.PathLike[str] | None = None,
    prices: Prices | None = None,
    progress: bool = False,
) -> Run:
    """Merge the runs of all shards of an input into the folder ``out``.

    ``pool`` is the file of all samples that the runs used; give it if the file was moved since.

    Raises:
        UnfinishedShardsError: shards are missing or unfinished.
        RunFolderError: the runs do not belong together, or ``out`` holds something else.
    """
    from trustassay.ray.shards import merge_runs
    from trustassay.runs.finished import Run

    steps = StepProgress(visible=progress)
    file = None if pool is None else Path(pool)
    folders = [Path(run) for run in runs]
    result = merge_runs(folders, Path(out), pool=file, prices=prices, steps=steps)
    # Two shards that ask the same question of a model at the same time both pay for it.
    if result.repeated and progress:
        tell(f"calls that more than one shard made and paid for: {result.repeated:,}")
    return Run(result.folder, result.outcome)
