"""Work on a file of samples, one by one, whose results are one file that can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from trustassay.calls.backends import Backends
from trustassay.calls.keys import check_keys, shared_file
from trustassay.calls.models import SampleModels
from trustassay.calls.opening import CallOptions, open_calls
from trustassay.capabilities import Models
from trustassay.errors import BackendError
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Check, Source, take_in
from trustassay.sample import Sample
from trustassay.workflows.unfinished import UnfinishedFile

__all__ = ["Done", "FileOptions", "FileWork", "Work", "write_each"]

TOGETHER = 64
"""Samples in progress at once."""

Work: TypeAlias = Callable[[Sample, Models], Awaitable[tuple[Mapping[str, Any], Mapping[str, int]]]]
"""Returns the record of a sample, and what is to be counted of it."""


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a file of samples is read, and models are asked.

    fields, limit, skip_bad: of the input. progress: show it. calls: as of a run.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    progress: bool = False
    calls: CallOptions = field(default_factory=CallOptions)


@dataclass(frozen=True, slots=True)
class FileWork:
    """What is done to every sample of a file.

    doing: a word for the progress. check: returns the problems of a sample. settings: what the
    records depend on, besides samples and backends. begin: called once, with all samples.
    """

    doing: str
    check: Check
    settings: Mapping[str, Any]
    begin: Callable[[RunFolder], Work]


@dataclass(frozen=True, slots=True)
class Done:
    """What was written: records, the sums of what was counted, and why others are missing.

    ``resumed`` of the records were written by an earlier call that was interrupted.
    """

    written: int
    counts: Mapping[str, int]
    resumed: int
    failed: dict[str, str]


async def write_each(
    source: Source, out: Path, backends: Backends, options: FileOptions, work: FileWork
) -> Done:
    """Write the record of every sample of ``source`` to ``out``, in full or not at all.

    A sample whose work failed has no record. The same call continues an interrupted one, and tries
    the failed samples again.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError: a key is needed and not set.
    """
    async with AsyncExitStack() as stack:
        folder = RunFolder(Path(stack.enter_context(TemporaryDirectory(prefix="trustassay-"))))
        with Progress("checking the input", shown=options.progress) as progress:
            intake = await take_in(
                source,
                folder.samples_path,
                work.check,
                fields=options.fields,
                limit=options.limit,
                skip_bad=options.skip_bad,
                step=progress.step,
            )
        check_keys(backends.endpoints(), [shared_file(options.calls.cache)])
        known = {**work.settings, "answers": intake.sha256, "backends": backends.names()}
        unfinished = stack.enter_context(UnfinishedFile(out, known))
        resumed = unfinished.written
        total = intake.inventory.samples
        progress = stack.enter_context(Progress(work.doing, total, shown=options.progress))
        progress.step(resumed)
        samples = unfinished.todo(folder.samples())
        record_of = work.begin(folder)
        gatherers = await stack.enter_async_context(open_calls(backends, options.calls))
        models = cast(Models, SampleModels(gatherers))
        while block := list(islice(samples, TOGETHER)):
            under_way = (record_of(sample, models) for _, sample in block)
            results = await asyncio.gather(*under_way, return_exceptions=True)
            for (place, sample), result in zip(block, results, strict=True):
                if isinstance(result, BackendError):
                    unfinished.fail(place, sample.id, str(result))
                elif isinstance(result, Exception):  # a fault of ours, of this sample alone
                    unfinished.fail(place, sample.id, f"{type(result).__name__}: {result}")
                elif isinstance(result, BaseException):
                    raise result
                else:
                    record, counts = result
                    unfinished.add(place, record, **counts)
                progress.step()
        unfinished.finish()
        failed = dict(unfinished.failed.values())
        return Done(unfinished.written, unfinished.counts, resumed, failed)
