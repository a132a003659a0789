"""A run's folder that grows by single samples: each is on disk before it is scored.

It is a run like any other when it is closed. Killed and opened again it lacks nothing: what was
accepted and not scored is scored then, and replies are among the calls.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.errors import RunFolderError
from trustassay.files import Appender, cut_unfinished
from trustassay.metric import Assessment, Inventory, Metric, MetricInfo
from trustassay.runs.execute import write_results
from trustassay.runs.folder import ABOUT, RunFolder, as_stored, check_settings
from trustassay.runs.intake import Intake, RunOptions
from trustassay.runs.lines import HashSet, checked_identity, encoded, encoded_sample, hash64
from trustassay.runs.needs import resolved
from trustassay.runs.tasks import run_in_thread
from trustassay.sample import Problem, Sample, SampleError

__all__ = ["GrowingRun"]

SENT = "samples sent one by one"
"""What ``run.json`` names as the input of such a run."""
SETTLED = "settled_by"
"""Part of ``run.json``: the fields of the sample by which ``auto`` options were settled."""


class GrowingRun:
    """The folder of a run to which samples are added; locked from :meth:`open` to :meth:`unlock`.

    ``metrics`` have their ``auto`` options settled by the first sample, as ``run.json`` says.
    """

    def __init__(
        self, folder: RunFolder, metrics: Sequence[Metric], backends: Backends, options: RunOptions
    ) -> None:
        self.metrics = list(metrics)
        self.path, self.calls_path = folder.path, folder.calls_path
        self._folder, self._backends, self._options = folder, backends, options
        self._settled: Inventory | None = None
        self._ids, self._lines, self._scored = HashSet(), HashSet(), HashSet()
        self._started = time.monotonic()

    def open(self) -> list[Sample]:
        """Lock the folder, begin or take up its run, and return the samples that lack a score.

        Raises:
            RunFolderError: it holds another run, or another process works in it.
        """
        self._folder.path.mkdir(parents=True, exist_ok=True)
        self._folder.lock()
        try:
            waiting = self._take_up()
        except BaseException:
            self.unlock()
            raise
        self._samples = Appender(self._folder.samples_path)
        self._assessments = self._folder.open_assessments()
        return waiting

    def unlock(self) -> None:
        """Release the folder."""
        self._folder.unlock()

    def accept(self, sample: Sample) -> None:
        """Store a sample, before it is scored; one that equals an earlier one is there already.

        Raises:
            SampleError: an earlier sample with other content has its id.
            DiskFullError: it could not be stored.
        """
        line = encoded_sample(sample)
        known = hash64(line.decode())
        if known in self._lines:
            return
        if hash64(sample.id) in self._ids:
            words = f"{sample.id!r} is already used by an earlier sample with other content"
            raise SampleError([Problem("id", words)])
        if self._settled is None:
            self._settle(sample)
        self._samples.append(line)
        self._lines.add(known)
        self._ids.add(hash64(sample.id))

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
        intake, digest = Intake(), hashlib.sha256()
        with self._folder.samples_path.open("rb") as file:
            for line in file:
                digest.update(line)
        for sample in self._folder.samples():
            intake.inventory.add(sample)
        if intake.inventory.samples:
            self._fail_the_rest()
            self._write_run(intake.inventory, digest.hexdigest())
            started = self._started
            await run_in_thread(
                lambda stop: write_results(
                    self._folder, self.metrics, intake, self._options, started, stop
                )
            )

    # what is there already

    def _take_up(self) -> list[Sample]:
        folder = self._folder
        before = folder.read_run()
        if before is None:
            if any(not found.name.startswith(".") for found in folder.path.iterdir()):
                words = "is not empty and holds no run; choose another folder"
                raise RunFolderError(f"{folder.path}: {words}")
            self._write_run(Inventory(), "")
            return []
        if before["input"] != SENT:
            words = "holds a run that was not made by a scorer; choose another folder"
            raise RunFolderError(f"{folder.path}: {words}")
        if isinstance(before.get(SETTLED), dict):
            self._settled = Inventory(**before[SETTLED])
            self.metrics = resolved(self.metrics, self._settled, self._backends.names())
        now = self._settings()
        check_settings(folder.path, {name: before.get(name) for name in now}, now)
        cut_unfinished(folder.samples_path)
        self._scored = folder.scored()
        waiting = []
        for sample in folder.samples() if folder.samples_path.exists() else ():
            self._ids.add(hash64(sample.id))
            self._lines.add(hash64(encoded_sample(sample).decode()))
            if any(hash64(sample.id, m.name) not in self._scored for m in self.metrics):
                waiting.append(sample)
        folder.drop_outputs()
        return waiting

    def _settle(self, sample: Sample) -> None:
        self._settled = Inventory()
        self._settled.add(sample)
        self.metrics = resolved(self.metrics, self._settled, self._backends.names())
        self._write_run(Inventory(), "")

    def _settings(self) -> dict[str, Any]:
        return as_stored(
            {
                "trustassay": version("trustassay"),
                "metrics": {metric.name: metric.settings() for metric in self.metrics},
                "backends": self._backends.names(),
                "seed": self._options.seed,
            }
        )

    def _write_run(self, inventory: Inventory, sha256: str) -> None:
        about = {metric.name: MetricInfo.of(metric).to_dict() for metric in self.metrics}
        samples = {"sha256": sha256, **asdict(inventory)}
        settled = None if self._settled is None else asdict(self._settled)
        content = {"input": SENT, **self._settings(), "skipped": 0, SETTLED: settled}
        self._folder.write_json("run", as_stored({**content, "samples": samples, ABOUT: about}))

    def _fail_the_rest(self) -> None:
        """Note what has no assessment, since the disk was full or the closing was interrupted.

        The next opening scores it.
        """
        noted = HashSet()
        with self._folder.assessments_path.open("rb") as file:
            for number, line in enumerate(file, 1):
                noted.add(hash64(*checked_identity(self._folder.assessments_path, line, number)))
        with closing(self._folder.open_assessments()) as writer:
            for sample in self._folder.samples():
                for metric in self.metrics:
                    if hash64(sample.id, metric.name) not in noted:
                        words = "the scorer ended before it was scored"
                        failed = Assessment.failed(sample.id, metric.name, words)
                        writer.append(encoded(failed))
