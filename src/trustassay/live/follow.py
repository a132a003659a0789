"""``score --follow``: scores the records of a growing file as they arrive, into a run's folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from trustassay.calls.backends import Backends
from trustassay.calls.client import open_calls
from trustassay.core.event_loop import TaskLimiter
from trustassay.core.metric import Inventory, Metric
from trustassay.core.registry import read_score
from trustassay.core.sample import LONGEST_LINE_MIB, Problem, Sample
from trustassay.errors import MODEL_NOT_GIVEN, UsageError
from trustassay.input.bounds import describe_excess, is_beginning, read_line
from trustassay.input.places import GZIP, START_BYTES, describe_non_text, is_standard_input
from trustassay.input.reading import LocatedSample
from trustassay.input.records import InputError, InputFault
from trustassay.live.scorer import (
    EvaluationEvents,
    EventsChoice,
    Scorer,
    find_problems,
    read_record,
)
from trustassay.runs.answering_models import ArrivingBackends
from trustassay.runs.folder import RunFolder
from trustassay.runs.growing import GrowingRun
from trustassay.runs.intake import RunOptions
from trustassay.runs.lines import hash64
from trustassay.runs.needs import check_run_keys

POLL_S = 0.25


@dataclass(slots=True)
class FilePosition:
    """How far a file was read."""

    file: int = 0
    """The inode of the file; 0 before it is opened."""
    line: int = 0
    """The number of the last line that was read, from 1 on."""
    mark: str = ""
    """The hash of that line."""

    @classmethod
    def of(cls, stored: Any) -> FilePosition:
        """Parse the output of :func:`dataclasses.asdict`; for anything else, the beginning."""
        try:
            return cls(int(stored["file"]), int(stored["line"]), str(stored["mark"]))
        except (TypeError, KeyError, ValueError):
            return cls()


class GrowingFile:
    """The lines of a file that another program appends to.

    ``place`` is how far it was read; set it before :meth:`lines` to continue from there.
    ``reads_again`` is set when the file was cut or rewritten, so that known lines may come again;
    the reader resets it at the first new line.
    """

    def __init__(
        self,
        path: Path,
        report: Callable[[str], None],
        *,
        once: bool,
        idle_s: float | None,
        longest_line: int = LONGEST_LINE_MIB,
    ) -> None:
        self.place = FilePosition()
        self.reads_again = False
        self._path, self._report = path, report
        self._once, self._idle_s, self._longest_line = once, idle_s, longest_line

    def first(self, count: int) -> list[bytes]:
        """Return the first complete lines, at most ``count``."""
        with self._path.open("rb") as file:
            return list(islice(self._read_complete_lines(file), count))

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield each complete line after ``place``, and ``None`` whenever there is no new line.

        Ends at the present end of the file (``once``), or after ``idle_s`` seconds without a line.
        """
        quiet_s = 0.0
        with ExitStack() as stack:
            file: IO[bytes] = self._path.open("rb")
            stack.callback(file.close)
            self._skip_lines_read(file)
            while True:
                # Asked before reading: lines written to the old file until then are still read.
                replaced = self._is_replaced(file)
                before = self.place.line
                for line in self._read_complete_lines(file):
                    # Updated before the line is yielded, so that the sample can store its own
                    # position.
                    self.place.line, self.place.mark = self.place.line + 1, _hash_line(line)
                    yield line
                if replaced:
                    self._report(f"{self._path}: the file was replaced; reading from its start")
                    file = self._path.open("rb")
                    stack.callback(file.close)
                    self.place = FilePosition(os.fstat(file.fileno()).st_ino)
                    continue
                quiet_s = 0.0 if self.place.line > before else quiet_s + POLL_S
                # Quiet time is counted in polls, so time spent scoring does not end the watch.
                if self._once or (self._idle_s is not None and quiet_s >= self._idle_s):
                    if file.tell() < os.fstat(file.fileno()).st_size:
                        where = f"{self._path}:{self.place.line + 1}"
                        self._report(f"{where}: the line has no line end yet, so it was not read")
                    return
                yield None
                await asyncio.sleep(POLL_S)
                # The file became shorter than what was read, so it was truncated in place.
                if os.fstat(file.fileno()).st_size < file.tell():
                    self._report(f"{self._path}: the file became shorter; reading from its start")
                    self._restart(file)

    def _read_complete_lines(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield complete lines; with ``once`` also a last record without a line end.

        Of a line that is too long, its beginning.
        """
        while line := read_line(file, self._longest_line):
            is_last = self._once and (line.is_long or _is_record(line.content))
            # An incomplete line is still being written; go back and read it again later.
            if not (line.has_end or is_last):
                file.seek(-line.size, os.SEEK_CUR)
                return
            yield line.content

    def _skip_lines_read(self, file: IO[bytes]) -> None:
        """Skip the lines that were read before, if the file still has the last of them."""
        inode = os.fstat(file.fileno()).st_ino
        if self.place.file == inode:
            line = b""
            for _ in range(self.place.line):
                bounded_line = read_line(file, self._longest_line)
                line = bounded_line.content if bounded_line else b""
            # The same inode, but another line at this number: it was rewritten in place.
            if self.place.line and _hash_line(line) != self.place.mark:
                self._report(f"{self._path}: earlier lines have changed; reading from its start")
                self._restart(file)
            return
        if self.place.file:
            self._report(f"{self._path}: this is a new file; reading from its start")
        self.place = FilePosition(inode)

    def _restart(self, file: IO[bytes]) -> None:
        file.seek(0)
        self.place = FilePosition(os.fstat(file.fileno()).st_ino)
        self.reads_again = True

    def _is_replaced(self, file: IO[bytes]) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except FileNotFoundError:
            # In the middle of being replaced: look again at the next poll.
            return False


def _hash_line(line: bytes) -> str:
    # Line ends are left out, since the last line may get its line end later.
    return hashlib.blake2b(line.rstrip(b"\r\n"), digest_size=8).hexdigest()


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):  # deeply nested JSON is a fault of its line, when complete
        return False


STATUS_S = 60.0
POSITION_FIELD = "watched"
"""The field of a sample that holds the :class:`FilePosition` of its line."""
MAX_FIRST_RECORDS = 100
"""The number of records from which ``auto`` options are resolved."""


@dataclass(slots=True)
class WatchCounts:
    """The counts of records that this process read."""

    scored: int = 0
    scoreless: int = 0
    """Records that can have no score, such as a refusal that cannot be judged."""
    failed: int = 0
    """Records whose metric failed."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Records whose model was not given, by its name."""
    faulty: int = 0
    """Lines that are no valid record."""
    beyond: int = 0
    """Records whose score is beyond the threshold."""


class Watch:
    """Follows a file of JSON Lines, and scores each record once its line is complete.

    ``tell`` is called with a message for each fault, for each answer beyond the threshold, and when
    the file was cut or replaced. The folder is an ordinary run; the same call continues after the
    last record in it.
    """

    def __init__(  # noqa: PLR0913 - one maker calls it
        self,
        source: Path,
        metric: Metric,
        backends: Backends,
        folder: RunFolder,
        options: RunOptions,
        *,
        threshold: float | str,
        idle_s: float | None = None,
        once: bool = False,
        opentelemetry: EventsChoice = False,
        tell: Callable[[str], None] = print,
    ) -> None:
        """Check the arguments; nothing is read or written yet.

        Args:
            threshold: answers whose score is beyond it, on the metric's bad side, are reported: a
                number, or as text with a per cent sign, of the range of its scores.
            idle_s: end after so many seconds without a record; ``None``: never.
            once: end with the file as it is now.
            opentelemetry: whether each assessment is sent as an event, or with "explanations".

        Raises:
            InputError: there is no such file, or it cannot be watched.
            UsageError: the threshold is outside the range of the metric's scores.
            BackendError: a key is needed and not set; OpenTelemetry is asked for and not
                configured.
        """
        if idle_s is not None and not idle_s >= 0:
            raise UsageError(f"idle: expected 0 or more seconds, got {idle_s}")
        if is_standard_input(source):
            raise InputError("standard input cannot be followed; expected a file that grows")
        if not source.is_file():
            raise InputError(f"{source}: no such file")
        if metric.pool:
            message = "compares all samples, so it cannot score a growing file"
            raise UsageError(f"{metric.name}: {message}")
        with source.open("rb") as file:
            # A compressed or binary file would only give faults, one for each line.
            first_bytes = file.read(START_BYTES)
        packed_fault = first_bytes.startswith(GZIP) and "is a gzip file, which cannot be followed"
        if fault := packed_fault or describe_non_text(first_bytes):
            raise InputError(f"{source}: {fault}")
        backends = ArrivingBackends(backends.by_key)
        check_run_keys([metric], backends, options.stores(folder))
        self._source, self._backends = source, backends
        self._options, self._tell = options, tell
        self._limit = read_score(metric, "--threshold", threshold)
        self._events = EvaluationEvents.of(opentelemetry)
        self._counts = WatchCounts()
        self._file = GrowingFile(
            source, tell, once=once, idle_s=idle_s, longest_line=options.longest_line
        )
        # With --once there is no first record to wait for.
        self._wait_s = 0.0 if once else idle_s
        self._status_at = time.monotonic()
        self._run = GrowingRun(
            folder, [metric], backends, options, str(source), self._position_metadata
        )

    @property
    def _metric(self) -> Metric:
        # Its "auto" options are resolved once the run is settled.
        return self._run.metrics[0]

    def _position_metadata(self) -> dict[str, Any]:
        return {POSITION_FIELD: asdict(self._file.place)}

    async def run(self) -> WatchCounts:
        """Watch until the options end it; write the run's results then, or when interrupted.

        Raises:
            RunFolderError: the folder holds another run, or another process works in it.
        """
        with self._run.claim() as waiting:
            self._file.place = self._find_position()
            # "auto" options are resolved once for a run, so that all its scores are comparable.
            if self._run.settled is None:
                self._run.settle(await self._read_first_records())
            try:
                await self._follow(waiting)
            finally:
                # Also when interrupted, so that the folder always holds a readable result.
                await self._run.finish()
        return self._counts

    async def _follow(self, waiting: Sequence[Sample]) -> None:
        async with open_calls(
            self._backends, self._options.calls, self._run.folder.calls_path
        ) as client:
            scorer = Scorer(
                [self._metric], self._backends, client, self._run, self._options, self._events
            )
            # Reads no further than what is being scored, and stops at the first unexpected error.
            async with TaskLimiter(scorer.at_once) as limiter:
                # Samples that an earlier process accepted and did not score.
                for sample in waiting:
                    await limiter.start(self._score(scorer, sample))
                async for sample in self._read_arriving():
                    self._run.accept(sample)
                    await limiter.start(self._score(scorer, sample))

    async def _read_first_records(self) -> Inventory:
        """Return the inventory of the first readable records of the file; wait for at least one."""
        waited = time.monotonic()
        while True:
            inventory = Inventory()
            for line in self._file.first(MAX_FIRST_RECORDS):
                result = self._read_line(line)
                if not isinstance(result, InputFault):
                    inventory.add(result.sample)
            ended = self._wait_s is not None and time.monotonic() - waited >= self._wait_s
            if inventory.samples or ended:
                return inventory
            await asyncio.sleep(POLL_S)

    def _find_position(self) -> FilePosition:
        """Return the position where an earlier watch in this folder ended; else the beginning."""
        last, before = self._run.last, self._run.before
        place = FilePosition.of(last.metadata.get(POSITION_FIELD) if last else None)
        ended = FilePosition.of(before.get(POSITION_FIELD))
        # Faulty lines after the last sample were read too; they are only in the stored end
        # position.
        is_later = ended.file != place.file or ended.line > place.line
        return ended if ended.file and is_later else place

    # records

    async def _read_arriving(self) -> AsyncIterator[Sample]:
        """Yield the samples of the file: first those it has, then those that arrive."""
        async for line in self._file.lines():
            if line is None:
                if time.monotonic() - self._status_at >= STATUS_S:
                    self._status_at = time.monotonic()
                    counts = f"{self._counts.scored:,} scored, {self._counts.beyond:,}"
                    self._tell(f"{counts} beyond the threshold")
            elif sample := self._accept_line(line):
                yield sample
                # Let scoring tasks run: a large existing file would otherwise be read in one go.
                await asyncio.sleep(0)

    def _accept_line(self, line: bytes) -> Sample | None:
        """Return the sample of a line, or ``None``; a faulty line is reported and counted."""
        if not line.strip():
            return None
        result = self._read_line(line)
        if isinstance(result, InputFault):
            self._note_fault(result)
            return None
        sample = result.sample
        is_id_used = hash64(sample.id) in self._run.ids
        # A rewritten file repeats records that are scored already.
        if is_id_used and self._file.reads_again:
            return None
        self._file.reads_again = False
        problems = find_problems(sample, [self._metric], self._backends)
        # Only an id that the record itself gives is an error; generated ids are made unique below.
        if is_id_used and result.has_id:
            problems.append(Problem("id", f"{sample.id!r} is already used by an earlier record"))
        if problems:
            self._note_fault(
                InputFault(result.where, tuple(map(result.use_original_names, problems)))
            )
            return None
        # Generated ids count from the line, which starts again when a file is replaced.
        name, number = sample.id, 1
        while hash64(name) in self._run.ids:
            number += 1
            name = f"{sample.id}-{number}"
        return replace(sample, id=name, metadata={**sample.metadata, **self._position_metadata()})

    def _read_line(self, line: bytes) -> LocatedSample | InputFault:
        where = f"{self._source}:{self._file.place.line}"
        longest_line = self._options.longest_line
        if is_beginning(line, longest_line):
            return InputFault(where, (Problem("record", describe_excess(longest_line)),))
        try:
            record = json.loads(line)
        # Deeply nested JSON raises RecursionError.
        except (ValueError, RecursionError) as error:
            return InputFault(where, (Problem("record", f"is not JSON ({error})"),))
        result = read_record(
            record,
            self._options.fields,
            "one answer a line",
            unanswered=False,
            answer_span=self._options.answer_span,
        )
        if isinstance(result, InputFault):
            return replace(result, where=where)
        return result._replace(where=where)

    def _note_fault(self, fault: InputFault) -> None:
        self._counts.faulty += 1
        self._run.faulty += 1
        self._tell(str(fault))

    # scores

    async def _score(self, scorer: Scorer, sample: Sample) -> None:
        assay = await scorer.assay(sample, stop_on_full_disk=True)
        result = assay[self._metric.name]
        if result.fault == MODEL_NOT_GIVEN:
            self._counts.left_out[sample.model or ""] += 1
        elif result.score is None:
            # Without an error there is no score by design, for instance for a refusal.
            self._counts.failed += result.error is not None
            self._counts.scoreless += result.error is None
            if result.error is not None:
                self._tell(f"{sample.id}: failed: {result.error}")
        else:
            self._counts.scored += 1
            if self._is_beyond(result.score):
                self._counts.beyond += 1
                message = f"{self._metric.name} {result.score:.3f}: {sample.question}"
                self._tell(f"{sample.id}: {message}")

    def _is_beyond(self, score: float) -> bool:
        if self._metric.lower_is_better:
            return score > self._limit
        return score < self._limit
