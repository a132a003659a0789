"""Work on every sample of a file that is stored and resumed: a file of records."""

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
    check_keys,
    open_calls,
    shared_file,
)
from trustassay.calls.prices import BudgetReachedError
from trustassay.calls.retry import Endpoint
from trustassay.capabilities import Models
from trustassay.errors import BackendError, CallError
from trustassay.files import named, whole
from trustassay.progress import Progress
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import Check, InputOptions, Source, samples_of
from trustassay.sample import Sample
from trustassay.tracebacks import words_of
from trustassay.workflows.generate import UnfinishedError, locked

FINISHED = {"finished": True}
"""The last line if the file was written although some items had failed."""


class Failure(NamedTuple):
    """Why an item has no result."""

    id: str
    reason: str


class UnfinishedFile:
    """Results of items, in their order, in ``.NAME.part`` next to the file that they become.

    The first line holds the settings, each other line the place of an item and its record or its
    failure. Doing the same work again continues after the last line and tries the failed items
    again; the part file is kept as long as an item has failed. Use as a context manager.

    ``done`` is the number of items that have a record or have failed, ``failed`` holds the
    failures by place, and ``counts`` the sums of what was counted with the records.

    Raises:
        UnfinishedError: there are unfinished results with other settings, or another process is
            working on them.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}.part")
        self.done = 0
        self.failed: dict[int, Failure] = {}
        self.counts: Counter[str] = Counter()
        out.parent.mkdir(parents=True, exist_ok=True)
        self._file = locked(self.path)
        try:
            self._read(_line({"settings": dict(settings)}, sort_keys=True))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with named(self.path):
            self._file.close()

    @property
    def written(self) -> int:
        """The number of records."""
        return self.done - len(self.failed)

    def todo(self, items: Iterable[T]) -> Iterator[tuple[int, T]]:
        """Yield the items without a record, and their places: what failed, then all new ones."""
        done, failed = self.done, frozenset(self.failed)
        return ((i, item) for i, item in enumerate(items) if i >= done or i in failed)

    def add(self, place: int, record: Mapping[str, Any], **counts: int) -> None:
        """Append the record of an item, on disk at the return; new items come in their order."""
        self._write({"place": place, "record": record, "counts": counts})

    def fail(self, place: int, identifier: str, reason: str) -> None:
        """Append why an item has no record."""
        self._write({"place": place, "failed": identifier, "reason": reason})

    def finish(self) -> None:
        """Write all records to the file, in full or not at all."""
        late = {}  # the records of items that had failed before
        due = 0
        for content in self._results():
            if content["place"] == due:
                due += 1
            elif "record" in content:
                late[content["place"]] = content["record"]
        due = 0
        with whole(self.out, ".whole") as file:
            for content in self._results():
                if content["place"] == due:
                    record = content.get("record", late.get(due))
                    if record is not None:
                        file.write(_line(record))
                    due += 1
        if self.failed:
            self._append(_line(FINISHED))
        else:
            self.path.unlink()

    def _read(self, settings: bytes) -> None:
        """Read the existing results, up to the last line end."""
        self._file.seek(0)
        first, last, size = b"", b"", 0
        for line in self._file:
            if line.endswith(b"\n"):
                first, last, size = first or line, line, size + len(line)
        if first != settings:
            if first and last != _line(FINISHED):
                raise UnfinishedError(
                    f"{self.path}: holds unfinished work with another input or other settings; "
                    "continue with those, or remove it"
                )
            size = 0
        self._file.truncate(size)
        if not size:
            self._append(settings)
        try:
            for content in self._results():
                self._count(content)
        except (ValueError, KeyError, TypeError):
            raise UnfinishedError(f"{self.path}: damaged; remove it, and start again") from None

    def _results(self) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as lines:
            next(lines)
            for line in lines:
                if (content := json.loads(line)) != FINISHED:
                    yield content

    def _count(self, content: Mapping[str, Any]) -> None:
        place = content["place"]
        if place == self.done:
            self.done += 1
        elif self.failed.pop(place, None) is None:
            raise ValueError(f"item {place} is neither the next one nor one that failed")
        if "record" in content:
            self.counts.update(content["counts"])
        else:
            self.failed[place] = Failure(content["failed"], content["reason"])

    def _write(self, content: Mapping[str, Any]) -> None:
        self._count(content)
        self._append(_line(content))

    def _append(self, line: bytes) -> None:
        with named(self.path):
            self._file.write(line)
            self._file.flush()


def _line(content: Mapping[str, Any], *, sort_keys: bool = False) -> bytes:
    text = json.dumps(content, ensure_ascii=False, default=str, sort_keys=sort_keys)
    return text.encode() + b"\n"


T = TypeVar("T")


Record: TypeAlias = tuple[Mapping[str, Any], Mapping[str, int]]
"""The record of a sample, and what is to be counted of it."""
Item: TypeAlias = tuple[int, Sample]
Work: TypeAlias = Callable[[Sample, Models], Awaitable[Record]]


@dataclass(frozen=True, kw_only=True)
class FileOptions(InputOptions):
    """As :class:`InputOptions`, and ``samples_at_once``: how many are in progress at once."""

    samples_at_once: int = 64


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
        opened = samples_of(source, options, work.check)
        folder, intake = await stack.enter_async_context(opened)
        check_keys(backends.endpoints(), [shared_file(options.calls.cache)])
        known = {**work.settings, "samples": intake.sha256, "backends": backends.names()}
        unfinished = stack.enter_context(UnfinishedFile(out, known))
        resumed, stopped = unfinished.written, None
        total = intake.inventory.samples
        progress = stack.enter_context(Progress(work.doing, total, shown=options.progress))
        progress.step(resumed)
        client = await stack.enter_async_context(open_calls(backends, options.calls))
        models, record_of = cast(Models, SampleModels(client)), work.begin(folder)
        samples = unfinished.todo(folder.samples())
        try:
            under_way = ((item, record_of(item[1], models)) for item in samples)
            async for (place, sample), result in _results(under_way, options.samples_at_once):
                if isinstance(result, Exception):
                    ours = not isinstance(result, BackendError)  # a fault that is named by its kind
                    words = words_of(result) if ours else str(result)
                    unfinished.fail(place, sample.id, words)
                else:
                    record, counts = result
                    unfinished.add(place, record, **counts)
                progress.step()
        except (BudgetReachedError, CallError) as error:
            stopped = str(error)
        if stopped is None:
            unfinished.finish()
        failed = dict(unfinished.failed.values())
        endpoints = client.endpoints.all()
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
    """Return what became of a sample; an error that all others would meet is raised."""
    try:
        return await task
    except BudgetReachedError:
        raise
    except Exception as error:
        if isinstance(error, CallError) and error.kind == "closed":
            raise
        return error
