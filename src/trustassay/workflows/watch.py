"""Scores the records of a growing file as they arrive, into a run's folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, Client, open_calls, shared_file
from trustassay.calls.endpoints import samples_at_once
from trustassay.data.reading import Located
from trustassay.data.records import Fault, InputError
from trustassay.data.source_files import GZIP, LONGEST, is_standard_input, other_than_text
from trustassay.errors import UsageError
from trustassay.event_loop import TaskLimiter
from trustassay.metric import Inventory, Metric
from trustassay.registry import read_score
from trustassay.runs.folder import RunFolder
from trustassay.runs.growing import GrowingRun
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import hash64
from trustassay.runs.needs import check_run_keys
from trustassay.runs.second_reading import assessed_by_both
from trustassay.sample import Problem, Sample
from trustassay.text.limits import LONGEST_ANSWER
from trustassay.workflows.scorer import EvaluationEvents, EventsChoice, problems_of, record_of

POLL_S = 0.25


@dataclass(slots=True)
class Place:
    """How far a file was read: its inode, the number of the last line read, and its hash."""

    file: int = 0
    line: int = 0
    mark: str = ""

    @classmethod
    def of(cls, stored: Any) -> Place:
        """Read back what :func:`dataclasses.asdict` made; the beginning for anything else."""
        try:
            return cls(int(stored["file"]), int(stored["line"]), str(stored["mark"]))
        except (TypeError, KeyError, ValueError):
            return cls()


class GrowingFile:
    """The lines of a file that something else appends to.

    place: how far it was read; may be set before :meth:`lines` to go on from there.
    reads_again: the file was cut or rewritten, so that lines may come that came before; the reader
    sets it to ``False`` at the first new one.
    """

    def __init__(
        self, path: Path, report: Callable[[str], None], *, once: bool, idle_s: float | None
    ) -> None:
        self.place = Place()
        self.reads_again = False
        self._path, self._report = path, report
        self._once, self._idle_s = once, idle_s

    def first(self, count: int) -> list[bytes]:
        """Return the first complete lines, at most ``count``."""
        with self._path.open("rb") as file:
            return list(islice(_complete_lines(file, ending=self._once), count))

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield each complete line after ``place``, and ``None`` whenever there is no new one.

        Ends with the file as it is now (``once``), or after ``idle_s`` without a line.
        """
        quiet_s = 0.0
        with ExitStack() as stack:
            file: IO[bytes] = self._path.open("rb")
            stack.callback(file.close)
            self._skip_read(file)
            while True:
                replaced = self._is_replaced(file)  # what is in the old one is read first
                before = self.place.line
                for line in _complete_lines(file, ending=self._once):
                    self.place.line, self.place.mark = self.place.line + 1, _hash(line)
                    yield line
                if replaced:
                    self._report(f"{self._path}: was replaced; read from its beginning")
                    file = self._path.open("rb")
                    stack.callback(file.close)
                    self.place = Place(os.fstat(file.fileno()).st_ino)
                    continue
                quiet_s = 0.0 if self.place.line > before else quiet_s + POLL_S
                if self._once or (self._idle_s is not None and quiet_s >= self._idle_s):
                    if file.tell() < os.fstat(file.fileno()).st_size:
                        where = f"{self._path}:{self.place.line + 1}"
                        self._report(f"{where}: has no line end yet and is not read")
                    return
                yield None
                await asyncio.sleep(POLL_S)
                if os.fstat(file.fileno()).st_size < file.tell():
                    self._report(f"{self._path}: was cut; read from its beginning")
                    self._begin_again(file)

    def _skip_read(self, file: IO[bytes]) -> None:
        """Go to the end of the last line that was read, if the file still has it there."""
        inode = os.fstat(file.fileno()).st_ino
        if self.place.file == inode:
            line = b""
            for _ in range(self.place.line):
                line = file.readline()
            if self.place.line and _hash(line) != self.place.mark:
                self._report(f"{self._path}: was cut or rewritten; read from its beginning")
                self._begin_again(file)
            return
        if self.place.file:
            self._report(f"{self._path}: is another file now; read from its beginning")
        self.place = Place(inode)

    def _begin_again(self, file: IO[bytes]) -> None:
        file.seek(0)
        self.place = Place(os.fstat(file.fileno()).st_ino)
        self.reads_again = True

    def _is_replaced(self, file: IO[bytes]) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            return False  # it is being replaced


def _hash(line: bytes) -> str:
    return hashlib.blake2b(line.rstrip(b"\r\n"), digest_size=8).hexdigest()


def _complete_lines(file: IO[bytes], *, ending: bool) -> Iterator[bytes]:
    """Yield the complete lines; if ``ending`` also a last record without a line end."""
    while line := file.readline():
        if not line.endswith(b"\n") and not (ending and _is_record(line)):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


SAMPLES = 64
"""Samples that are scored at once where no number is given."""
STATUS_S = 60.0
PLACE = "watched"
"""Field of a sample: the :class:`Place` of its line."""
FIRST = 100
"""Records by which ``auto`` options are settled."""


@dataclass(frozen=True)
class WatchOptions:
    """When to report an answer, and when to end.

    threshold: answers whose score is beyond it, on the metric's bad side, are reported: a number,
    or as text with a per cent sign, of the range of its scores. idle_s: end after so long without a
    record; ``None`` never. once: end with the file as it is now. opentelemetry: whether each
    assessment is sent as an event, or with "explanations".
    """

    threshold: float | str
    idle_s: float | None = None
    once: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    samples_at_once: int | None = None
    opentelemetry: EventsChoice = False
    calls: CallOptions = field(default_factory=CallOptions)
    longest_answer: int = LONGEST_ANSWER

    def __post_init__(self) -> None:
        if min(self.longest_answer, self.samples_at_once or 1) < 1:
            raise UsageError("longest_answer and samples_at_once: expected 1 or more")
        if self.idle_s is not None and not self.idle_s >= 0:
            raise UsageError(f"idle: expected 0 or more seconds, got {self.idle_s}")


@dataclass(slots=True)
class Watched:
    """What was seen by this process: records scored, faulty ones, those beyond the threshold.

    ``scoreless`` records can have no score, as a refusal that nobody can judge.
    """

    scored: int = 0
    scoreless: int = 0
    failed: int = 0
    faulty: int = 0
    beyond: int = 0


class Watch:
    """Follows a file of JSON Lines, and scores each record when its line is complete.

    ``tell`` is given a line of text for each fault, each answer beyond the threshold, and when the
    file was cut or replaced. The folder is a run like any other at the end, and the same call goes
    on behind the last record that it holds.
    """

    def __init__(
        self,
        source: Path,
        metric: Metric,
        backends: Backends,
        folder: RunFolder,
        options: WatchOptions,
        tell: Callable[[str], None],
    ) -> None:
        """Check what is given.

        Raises:
            InputError: there is no such file.
            ValueError: the threshold is outside the range of the metric's scores.
            BackendError: a key is needed and not set; OpenTelemetry is asked for and not
                configured.
        """
        if is_standard_input(source):
            raise InputError("standard input cannot be watched; expected a file that grows")
        if not source.is_file():
            raise InputError(f"{source}: no such file")
        if metric.pool:
            why = "looks at all samples together, so it cannot be watched"
            raise UsageError(f"{metric.name}: {why}")
        with source.open("rb") as file:
            start = file.read(LONGEST)
        packed = start.startswith(GZIP) and "is packed by gzip, to which nothing can be appended"
        if result := packed or other_than_text(start):
            raise InputError(f"{source}: {result}")
        check_run_keys([metric], backends, [folder.calls_path, shared_file(options.calls.cache)])
        self._source, self._backends, self._options, self._tell = source, backends, options, tell
        self._limit = read_score(metric, "--threshold", options.threshold)
        self._events = EvaluationEvents.of(options.opentelemetry)
        self._found = Watched()
        self._file = GrowingFile(source, tell, once=options.once, idle_s=options.idle_s)
        self._status_at = time.monotonic()
        self._how = RunOptions(
            seed=options.seed,
            longest_answer=options.longest_answer,
            progress=False,
            calls=options.calls,
        )
        self._run = GrowingRun(folder, [metric], backends, self._how, str(source), self._place)

    def _place(self) -> dict[str, Any]:
        return {PLACE: asdict(self._file.place)}

    @property
    def _metric(self) -> Metric:
        return self._run.metrics[0]

    async def run(self) -> Watched:
        """Watch until the options end it, and write the run's results, also where it is
        interrupted.

        Raises:
            RunFolderError: the folder holds another run, or another process works in it.
        """
        with self._run.opened() as waiting:
            self._go_on()
            if self._run.settled is None:
                self._run.settle(await self._first_records())
            try:
                await self._follow(waiting)
            finally:
                await self._run.finish()
        return self._found

    async def _follow(self, waiting: Sequence[Sample]) -> None:
        own, wanted = self._run.folder.calls_path, self._options.samples_at_once
        async with open_calls(self._backends, self._options.calls, own) as client:
            at_once = samples_at_once(wanted, SAMPLES, self._backends.held.values())
            async with TaskLimiter(at_once) as limiter:
                for sample in waiting:
                    await limiter.start(self._score(sample, client))
                async for sample in self._arriving():
                    self._run.accept(sample)
                    await limiter.start(self._score(sample, client))

    async def _first_records(self) -> Inventory:
        """Return what the first records of the file bring, those that can be read; wait for one."""
        waited = time.monotonic()
        idle_s = 0.0 if self._options.once else self._options.idle_s
        while True:
            inventory = Inventory()
            for line in self._file.first(FIRST):
                result = self._read(line)
                if not isinstance(result, Fault):
                    inventory.add(result.sample)
            ended = idle_s is not None and time.monotonic() - waited >= idle_s
            if inventory.samples or ended:
                return inventory
            await asyncio.sleep(POLL_S)

    def _go_on(self) -> None:
        """Take up the place where an earlier watch in this folder ended."""
        run = self._run
        if not run.before:
            return
        place = Place.of(run.last.metadata.get(PLACE)) if run.last else Place()
        ended = Place.of(run.before.get(PLACE))
        if ended.file and (ended.file != place.file or ended.line > place.line):
            place = ended
        self._file.place = place

    # records

    async def _arriving(self) -> AsyncIterator[Sample]:
        """Yield the samples of the file, those that are there and those that come."""
        async for line in self._file.lines():
            if line is None:
                if time.monotonic() - self._status_at >= STATUS_S:
                    self._status_at = time.monotonic()
                    self._tell(f"{self._found.scored:,} scored, {self._found.beyond:,} beyond")
            elif sample := self._sample(line):
                yield sample
                await asyncio.sleep(0)

    def _sample(self, line: bytes) -> Sample | None:
        """Return the sample of a line; a faulty one is told of and counted."""
        if not line.strip():
            return None
        result = self._read(line)
        if isinstance(result, Fault):
            self._note(result)
            return None
        sample = result.sample
        taken = hash64(sample.id) in self._run.ids
        if taken and self._file.reads_again:
            return None
        self._file.reads_again = False
        problems = problems_of(sample, [self._metric], self._backends)
        if taken and result.has_id:
            problems.append(Problem("id", f"{sample.id!r} is already used by an earlier record"))
        if problems:
            self._note(Fault(result.where, tuple(map(result.in_own_words, problems))))
            return None
        name, number = sample.id, 1
        while hash64(name) in self._run.ids:
            number += 1
            name = f"{sample.id}-{number}"
        return replace(sample, id=name, metadata={**sample.metadata, **self._place()})

    def _read(self, line: bytes) -> Located | Fault:
        where = f"{self._source}:{self._file.place.line}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Fault(where, (Problem("record", f"is not JSON ({error})"),))
        result = record_of(record, self._options.fields, "one answer a line")
        if isinstance(result, Fault):
            return replace(result, where=where)
        return result._replace(where=where)

    def _note(self, fault: Fault) -> None:
        self._found.faulty += 1
        self._run.faulty += 1
        self._tell(str(fault))

    # scores

    async def _score(self, sample: Sample, client: Client) -> None:
        path = self._run.folder.path
        result, line = await assessed_by_both(self._metric, sample, client, self._how, path)
        self._run.note(result, line)
        if self._events:
            self._events.send(sample, result)
        if result.score is None:
            self._found.failed += result.error is not None
            self._found.scoreless += result.error is None
            if result.error is not None:
                self._tell(f"{sample.id}: failed: {result.error}")
            return
        self._found.scored += 1
        if self._is_beyond(result.score):
            self._found.beyond += 1
            self._tell(f"{sample.id}: {self._metric.name} {result.score:.3f}: {sample.question}")

    def _is_beyond(self, score: float) -> bool:
        if self._metric.lower_is_better:
            return score > self._limit
        return score < self._limit
