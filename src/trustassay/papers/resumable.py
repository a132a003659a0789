"""Process every sample of a file, store each record at once, and resume after an interruption."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar, cast

from trustassay.calls.backends import Backends
from trustassay.calls.client import (
    SampleModels,
    build_cache_path,
    check_keys,
    open_calls,
)
from trustassay.calls.prices import BudgetReachedError
from trustassay.calls.retry import Endpoint
from trustassay.core.capabilities import Models
from trustassay.core.files import name_in_errors, open_atomic
from trustassay.core.progress import Progress
from trustassay.core.sample import Sample, clean
from trustassay.core.tracebacks import describe_error
from trustassay.errors import BackendError, CallError
from trustassay.runs.folder import RunFolder
from trustassay.runs.generate import UnfinishedError, open_output
from trustassay.runs.intake import Check, InputOptions, Source, open_samples

T = TypeVar("T")
Record: TypeAlias = tuple[Mapping[str, Any], Mapping[str, int]]
"""The record of a sample, and counts to add up."""
Item: TypeAlias = tuple[int, Sample]
Work: TypeAlias = Callable[[Sample, Models], Awaitable[Record]]

FINISHED_LINE = {"finished": True}
"""Last line of a part file whose records were written although some items had failed."""


class ItemFailure(NamedTuple):
    """Why an item has no result."""

    id: str
    reason: str
    """The error, as people read it."""


class UnfinishedFile:
    """Results of items, in order, in ``.NAME.part`` next to the file that they become.

    The first line holds the settings, each other line the index of an item and its record or its
    failure. The same work continues after the last line and tries failed items again; the part file
    stays as long as an item has failed. Use as a context manager.

    ``done`` is the number of items that have a record or have failed, ``failed`` holds the
    failures by index, and ``counts`` the sums of what was counted with the records.

    Raises:
        UnfinishedError: there are unfinished results with other settings, or another process is
            working on them.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}.part")
        self.done = 0
        self.failed: dict[int, ItemFailure] = {}
        self.counts: Counter[str] = Counter()
        out.parent.mkdir(parents=True, exist_ok=True)
        # The lock keeps a second process from appending to the same file.
        self._file = open_output(self.path)
        try:
            self._read(_encode_line({"settings": dict(settings)}, sort_keys=True))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with name_in_errors(self.path):
            self._file.close()

    @property
    def written(self) -> int:
        """The number of records."""
        return self.done - len(self.failed)

    def unfinished_items(self, items: Iterable[T]) -> Iterator[tuple[int, T]]:
        """Yield the items without a record and their indices: failed ones, then new ones."""
        first_new, failed = self.done, frozenset(self.failed)
        return ((i, item) for i, item in enumerate(items) if i >= first_new or i in failed)

    def add(self, index: int, record: Mapping[str, Any], **counts: int) -> None:
        """Append the record of an item and flush it; new items must come in order."""
        self._write({"place": index, "record": record, "counts": counts})

    def fail(self, index: int, identifier: str, reason: str) -> None:
        """Append why an item has no record."""
        self._write({"place": index, "failed": identifier, "reason": reason})

    def finish(self) -> None:
        """Write all records to the file, in full or not at all."""
        # A failed item that succeeded later stands behind newer ones, so two passes restore the
        # order with only the late records in memory.
        late_records = {}
        next_index = 0
        for content in self._read_entries():
            if content["place"] == next_index:
                next_index += 1
            elif "record" in content:
                late_records[content["place"]] = content["record"]
        next_index = 0
        with open_atomic(self.out, ".whole", private=False) as file:
            for content in self._read_entries():
                if content["place"] == next_index:
                    record = content.get("record", late_records.get(next_index))
                    if record is not None:
                        file.write(_encode_line(record))
                    next_index += 1
        if self.failed:
            # Kept, so that the next call can try the failed items again.
            self._append(_encode_line(FINISHED_LINE))
        else:
            self.path.unlink()

    def _read(self, settings: bytes) -> None:
        """Read the existing results up to the last line end; start empty if there are none.

        Raises:
            UnfinishedError: the file has other settings, or is damaged.
        """
        self._file.seek(0)
        first, last, size = b"", b"", 0
        for line in self._file:
            # A killed process may leave a line without an end.
            if line.endswith(b"\n"):
                first, last, size = first or line, line, size + len(line)
        if first != settings:
            # A finished part file holds nothing that is not also in the output, so it may be
            # replaced.
            if first and last != _encode_line(FINISHED_LINE):
                raise UnfinishedError(
                    f"{self.path}: holds unfinished work with another input or other settings; "
                    "use those to continue, or remove the file"
                )
            size = 0
        # Everything after the last complete line goes.
        self._file.truncate(size)
        if not size:
            self._append(settings)
        try:
            for content in self._read_entries():
                self._apply_entry(content)
        except (ValueError, KeyError, TypeError):
            raise UnfinishedError(f"{self.path}: damaged; remove it and start again") from None

    def _read_entries(self) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as lines:
            next(lines)
            for line in lines:
                if (content := json.loads(line)) != FINISHED_LINE:
                    yield content

    def _apply_entry(self, content: Mapping[str, Any]) -> None:
        index = content["place"]
        if index == self.done:
            self.done += 1
        # An index below `done` is only valid for an item that failed earlier.
        elif self.failed.pop(index, None) is None:
            raise ValueError(f"item {index} is neither the next one nor one that failed")
        if "record" in content:
            self.counts.update(content["counts"])
        else:
            self.failed[index] = ItemFailure(content["failed"], content["reason"])

    def _write(self, content: Mapping[str, Any]) -> None:
        self._apply_entry(content)
        self._append(_encode_line(content))

    def _append(self, line: bytes) -> None:
        with name_in_errors(self.path):
            self._file.write(line)
            self._file.flush()


def _encode_line(content: Mapping[str, Any], *, sort_keys: bool = False) -> bytes:
    text = json.dumps(content, ensure_ascii=False, default=str, sort_keys=sort_keys)
    return clean(text).encode() + b"\n"


@dataclass(frozen=True, kw_only=True)
class FileOptions(InputOptions):
    """As :class:`InputOptions`, and ``samples_at_once``: how many are in progress at once."""

    samples_at_once: int = 64


@dataclass(frozen=True, slots=True)
class FileWork:
    """What is done with every sample of a file."""

    doing: str
    """A word for the progress bar."""
    check: Check
    """Returns the problems of a sample."""
    settings: Mapping[str, Any]
    """What the records depend on, besides samples and backends."""
    begin: Callable[[RunFolder], Work]
    """Called once with the folder of all samples; returns the work for one."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was written, and why some samples have no record."""

    written: int
    """The number of records."""
    counts: Mapping[str, int]
    """The sums of what was counted with the records."""
    resumed: int
    """How many of the records an earlier, interrupted call wrote."""
    failed: dict[str, str]
    """Why samples have no record, by id."""
    stopped: str | None
    """Why the model no longer replies; then there is no file, and the same call continues."""
    endpoints: Mapping[str, Endpoint]


async def write_each(
    source: Source, out: Path, backends: Backends, options: FileOptions, work: FileWork
) -> FileResult:
    """Write the record of every sample of ``source`` to ``out``, in full or not at all.

    A sample whose work failed has no record. The same call continues an interrupted one, and tries
    the failed samples again.

    Raises:
        BadInputError, InputError: the input has faults; nothing was started.
        UnfinishedError: other work on ``out`` is unfinished.
        BackendError: a key is needed and not set.
    """
    async with AsyncExitStack() as stack:
        opened = open_samples(source, options, work.check)
        folder, intake = await stack.enter_async_context(opened)
        check_keys(backends.endpoints(), [build_cache_path(options.calls.cache)])
        settings = {**work.settings, "samples": intake.sha256, "backends": backends.names()}
        unfinished = stack.enter_context(UnfinishedFile(out, settings))
        # Counted before the work, for the message at the end.
        resumed, stopped = unfinished.written, None
        total = intake.inventory.samples
        progress = stack.enter_context(Progress(work.doing, total, visible=options.progress))
        progress.resume(resumed)
        client = await stack.enter_async_context(open_calls(backends, options.calls))
        models, record_of = cast(Models, SampleModels(client)), work.begin(folder)
        # The generator below starts work only as results are taken.
        samples = unfinished.unfinished_items(folder.samples())
        try:
            under_way = ((item, record_of(item[1], models)) for item in samples)
            async for (index, sample), result in _run_at_once(under_way, options.samples_at_once):
                if isinstance(result, Exception):
                    # An internal error is reported with its class.
                    is_internal = not isinstance(result, BackendError)
                    reason = describe_error(result) if is_internal else str(result)
                    unfinished.fail(index, sample.id, reason)
                else:
                    record, counts = result
                    unfinished.add(index, record, **counts)
                progress.step()
        # Errors that end all work; others are recorded with their sample.
        except (BudgetReachedError, CallError) as error:
            stopped = str(error)
        if stopped is None:
            unfinished.finish()
        failed = dict(unfinished.failed.values())
        endpoints = client.endpoints.all()
        return FileResult(
            unfinished.written, unfinished.counts, resumed, failed, stopped, endpoints
        )


async def _run_at_once(
    work: Iterator[tuple[Item, Awaitable[Record]]], samples_at_once: int
) -> AsyncIterator[tuple[Item, Record | Exception]]:
    """Yield each sample with its record or error, in order, several in progress at once."""
    under_way: deque[tuple[Item, asyncio.Future[Record]]] = deque()
    try:
        for item, record in work:
            under_way.append((item, asyncio.ensure_future(record)))
            # Results are taken in order, so a slow sample holds up the others: twice as many may
            # be in progress.
            if len(under_way) >= 2 * samples_at_once:
                first, task = under_way.popleft()
                yield first, await _await_outcome(task)
        while under_way:
            first, task = under_way.popleft()
            yield first, await _await_outcome(task)
    finally:
        # The consumer stopped: cancel what is in progress, and wait so that nothing is left over.
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


async def _await_outcome(task: asyncio.Future[Record]) -> Record | Exception:
    """Return the record of a sample, or its error; raise an error that all samples would get."""
    try:
        return await task
    except BudgetReachedError:
        raise
    except Exception as error:
        # The endpoint is gone for good; going on would fail every sample.
        if isinstance(error, CallError) and error.kind == "closed":
            raise
        return error
