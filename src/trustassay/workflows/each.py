"""Work on a file of samples, one by one, whose results are one file that can be resumed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from trustassay.calls.backends import Backends
from trustassay.calls.budget import BudgetReachedError
from trustassay.calls.client import CallOptions, check_keys, open_calls, shared_file
from trustassay.calls.models import SampleModels
from trustassay.calls.retry import Endpoint
from trustassay.capabilities import Models
from trustassay.errors import BackendError, CallError
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Check, Source, take_in
from trustassay.sample import Sample
from trustassay.tracebacks import words_of
from trustassay.workflows.unfinished import UnfinishedFile

__all__ = ["Done", "FileOptions", "FileWork", "Work", "write_each"]

Record: TypeAlias = tuple[Mapping[str, Any], Mapping[str, int]]
"""The record of a sample, and what is to be counted of it."""
Item: TypeAlias = tuple[int, Sample]
Work: TypeAlias = Callable[[Sample, Models], Awaitable[Record]]


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a file of samples is read, and models are asked.

    fields, limit, skip_bad: of the input. samples_at_once: how many are in progress at once.
    progress: show it. calls: as of a run.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    skip_bad: bool = False
    samples_at_once: int = 64
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

    ``resumed`` of the records were written by an earlier call that was interrupted. ``stopped``
    says why a model replies no more; there is no file then, and the same call goes on.
    """

    written: int
    counts: Mapping[str, int]
    resumed: int
    failed: dict[str, str]
    stopped: str | None
    endpoints: Mapping[str, Endpoint]


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
        known = {**work.settings, "samples": intake.sha256, "backends": backends.names()}
        unfinished = stack.enter_context(UnfinishedFile(out, known))
        resumed, stopped = unfinished.written, None
        total = intake.inventory.samples
        progress = stack.enter_context(Progress(work.doing, total, shown=options.progress))
        progress.step(resumed)
        gatherers = await stack.enter_async_context(open_calls(backends, options.calls))
        models, record_of = cast(Models, SampleModels(gatherers)), work.begin(folder)
        samples = unfinished.todo(folder.samples())
        try:
            under_way = ((item, record_of(item[1], models)) for item in samples)
            async for (place, sample), result in _results(under_way, options.samples_at_once):
                if isinstance(result, Exception):
                    unfinished.fail(place, sample.id, _words(result))
                else:
                    record, counts = result
                    unfinished.add(place, record, **counts)
                progress.step()
        except (BudgetReachedError, CallError) as error:
            stopped = str(error)
        if stopped is None:
            unfinished.finish()
        failed = dict(unfinished.failed.values())
        endpoints = gatherers.endpoints.all()
        return Done(unfinished.written, unfinished.counts, resumed, failed, stopped, endpoints)


async def _results(
    work: Iterator[tuple[Item, Awaitable[Record]]], samples_at_once: int
) -> AsyncIterator[tuple[Item, Record | Exception]]:
    """Yield each sample with what became of it, in order, several in progress at once."""
    under_way: deque[tuple[Item, asyncio.Future[Record]]] = deque()
    try:
        for item, record in work:
            under_way.append((item, asyncio.ensure_future(record)))
            if len(under_way) >= 2 * samples_at_once:
                first, task = under_way.popleft()
                yield first, await _ended(task)
        while under_way:
            first, task = under_way.popleft()
            yield first, await _ended(task)
    finally:
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


async def _ended(task: asyncio.Future[Record]) -> Record | Exception:
    """Return what became of a sample; what would befall all that follow is raised."""
    try:
        return await task
    except BudgetReachedError:
        raise
    except Exception as error:
        if isinstance(error, CallError) and error.kind == "closed":
            raise
        return error


def _words(error: Exception) -> str:
    """Return why a sample has no record; a fault of ours is named by its kind."""
    return str(error) if isinstance(error, BackendError) else words_of(error)
