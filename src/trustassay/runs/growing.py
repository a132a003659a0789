"""A run's folder that grows by single samples: each is on disk before it is scored.

It is a run like any other when it is closed. Killed and opened again it lacks nothing: what was
accepted and not scored is scored then, and replies are among the calls.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.errors import RunFolderError
from trustassay.event_loop import run_in_thread
from trustassay.files import Appender, cut_unfinished
from trustassay.metric import Assessment, Inventory, Metric
from trustassay.runs.folder import (
    ABOUT,
    RunFolder,
    as_stored,
    check_settings,
    described,
    run_settings,
)
from trustassay.runs.intake import Intake, RunOptions
from trustassay.runs.lines import HashSet, encoded, encoded_sample, hash64
from trustassay.runs.needs import resolved
from trustassay.runs.results import write_results
from trustassay.runs.second_reading import FILE, readers_of
from trustassay.sample import Problem, Sample, SampleError

SENT = "samples sent one by one"
"""What ``run.json`` names as the input of a scorer's run."""
SETTLED = "settled_by"
"""Part of ``run.json``: the fields of the samples by which ``auto`` options were settled."""


class GrowingRun:
    """The folder of a run to which samples are added, inside :meth:`opened`.

    Args:
        source: what ``run.json`` names as the input.
        place: returns further fields of ``run.json``, which say how far the source was read.

    metrics: their ``auto`` options are settled, as ``run.json`` says: by :meth:`settle`, else by
    the first sample. before: ``run.json`` as it was found. last: the last sample that was there.
    settled: by what the options were. ids: hashes of all ids. faulty: records of the source that
    were left out.
    """

    def __init__(
        self,
        folder: RunFolder,
        metrics: Sequence[Metric],
        backends: Backends,
        options: RunOptions,
        source: str = SENT,
        place: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.metrics = list(metrics)
        self.folder, self.faulty, self.ids = folder, 0, HashSet()
        self.before: Mapping[str, Any] = {}
        self.last: Sample | None = None
        self._source, self._place = source, place
        self._backends, self._options = backends, options
        self.settled: Inventory | None = None
        self._known, self._scored = HashSet(), HashSet()
        self._started = time.monotonic()

    @contextmanager
    def opened(self) -> Iterator[list[Sample]]:
        """Hold the folder, begin or take up its run, and yield the samples that lack a score."""
        with self.folder.claimed():
            waiting = self._take_up()
            self._samples = Appender(self.folder.samples_path)
            self._assessments = self.folder.open_assessments()
            try:
                yield waiting
            finally:
                self.close_files()

    def settle(self, inventory: Inventory) -> None:
        """Settle the ``auto`` options of the metrics by what samples bring, and store it."""
        self._resolve(inventory)
        self._write_run(Intake(faulty=self.faulty))

    def accept(self, sample: Sample) -> None:
        """Store a sample, before it is scored; one that equals an earlier one is there already.

        Raises:
            SampleError: an earlier sample with other content has its id.
            DiskFullError: it could not be stored.
        """
        line = encoded_sample(sample)
        known = hash64(line.decode())
        if known in self._known:
            return
        if hash64(sample.id) in self.ids:
            message = f"{sample.id!r} is already used by an earlier sample with other content"
            raise SampleError([Problem("id", message)])
        if self.settled is None:
            inventory = Inventory()
            inventory.add(sample)
            self.settle(inventory)
        self._samples.append(line)
        self._known.add(known)
        self.ids.add(hash64(sample.id))

    def note(self, assessment: Assessment, line: bytes) -> None:
        """Store an assessment, unless its sample is scored by this metric already."""
        pair = hash64(assessment.id, assessment.metric)
        if pair in self._scored:
            return
        self._assessments.append(line)
        if assessment.error is None:
            self._scored.add(pair)

    def close_files(self) -> None:
        """Close the files to which samples and assessments are added."""
        self._samples.close()
        self._assessments.close()

    async def finish(self) -> None:
        """Write the results of the run, once nothing is added any more.

        Raises:
            OSError: they cannot be written; all that was scored is on disk.
        """
        self.close_files()
        intake = Intake(faulty=self.faulty)
        with self.folder.samples_path.open("rb") as file:
            intake.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        for sample in self.folder.samples():
            intake.inventory.add(sample)
        if intake.inventory.samples:
            self._fail_the_rest()
        self._write_run(intake)
        if intake.inventory.samples:
            how = self.metrics, intake, self._options, self._started
            await run_in_thread(partial(write_results, self.folder, *how))

    # what is there already

    def _take_up(self) -> list[Sample]:
        folder = self.folder
        before = folder.read_run()
        if before is None:
            folder.check_empty()
            self._write_run(Intake(faulty=self.faulty))
            return []
        self._check_source(before)
        if isinstance(before.get(SETTLED), dict):
            self._resolve(Inventory(**before[SETTLED]))
        now = self._settings()
        check_settings(folder.path, {name: before.get(name) for name in now}, now)
        self.before, self.faulty = before, int(before.get("skipped") or 0)
        cut_unfinished(folder.samples_path)
        self._scored = folder.scored()
        waiting = []
        for sample in folder.samples() if folder.samples_path.exists() else ():
            self.last = sample
            self.ids.add(hash64(sample.id))
            self._known.add(hash64(encoded_sample(sample).decode()))
            if any(hash64(sample.id, m.name) not in self._scored for m in self.metrics):
                waiting.append(sample)
        folder.drop_outputs()
        return waiting

    def _check_source(self, before: Mapping[str, Any]) -> None:
        """Refuse a run of another kind, to which nothing can be added."""
        if self._source == SENT:
            same, maker = before["input"] == SENT, "a scorer"
        else:
            same, maker = self._place().keys() <= before.keys(), "watching"
        if not same:
            message = f"holds a run that was not made by {maker}; choose another folder"
            raise RunFolderError(f"{self.folder.path}: {message}")

    def _resolve(self, inventory: Inventory) -> None:
        self.settled = inventory
        self.metrics = resolved(self.metrics, inventory, self._backends.names())

    def _settings(self) -> dict[str, Any]:
        second = {}
        if readers_of(self.metrics, self._backends):
            second = {FILE: self._options.second.settings()}
        names = self._backends.names()
        return as_stored(run_settings(self.metrics, names, self._options.seed, **second))

    def _write_run(self, intake: Intake) -> None:
        content = {
            "input": self._source,
            **self._settings(),
            "skipped": intake.faulty,
            **self._place(),
            SETTLED: None if self.settled is None else asdict(self.settled),
            "samples": intake.digested(),
            ABOUT: described(self.metrics),
        }
        self.folder.write_json("run", as_stored(content))

    def _fail_the_rest(self) -> None:
        """Note what has no assessment, since the disk was full or the closing was interrupted.

        The next opening scores it.
        """
        noted = self.folder.scored(or_failed=True)
        ended = "the scorer" if self._source == SENT else "watching"
        with closing(self.folder.open_assessments()) as writer:
            for sample in self.folder.samples():
                for metric in self.metrics:
                    if hash64(sample.id, metric.name) not in noted:
                        message = f"{ended} ended before it was scored"
                        failed = Assessment.failed(sample.id, metric.name, message)
                        writer.append(encoded(failed))
