"""Runs that grow: by single samples, each stored before it is scored, or with their input.

The folder of a :class:`GrowingRun` is a run like any other when it is closed. If the process is
killed, nothing is lost: the next one scores the samples that were accepted and not scored, with the
replies that are stored among the calls. If an input grew (:class:`StoredSamples`), only the new
samples are scored.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.core.event_loop import run_in_thread
from trustassay.core.files import Appender, cut_unfinished, open_atomic
from trustassay.core.metric import Assessment, Inventory, Metric
from trustassay.core.sample import Problem, Sample, SampleError
from trustassay.errors import RunFolderError, UsageError, shorten_name
from trustassay.runs.answering_models import find_same_model
from trustassay.runs.fill import Stage
from trustassay.runs.folder import (
    ABOUT,
    STARTED,
    RunFolder,
    build_run_settings,
    check_settings,
    describe_metrics,
    to_stored,
    utc_now,
)
from trustassay.runs.intake import Intake, RunOptions
from trustassay.runs.lines import (
    HashIndex,
    HashSet,
    encode_assessment,
    encode_sample,
    hash64,
    parse_sample_id,
    read_located_lines,
)
from trustassay.runs.needs import resolve_metrics
from trustassay.runs.remarks import DRAWN, GROWN
from trustassay.runs.results import write_results
from trustassay.runs.second_reading import SECOND_FILE, list_second_read_metrics

SENT_INPUT = "samples sent one by one"
"""The input of a scorer's run in ``run.json``."""
SETTLED_KEY = "settled_by"
"""Key in ``run.json``: the inventory of fields by which ``auto`` options were settled."""


class GrowingRun:
    """A run to which samples are added one by one, inside :meth:`claim`.

    Args:
        source: the input in ``run.json``.
        read_position: returns further fields of ``run.json``: how far the source was read.
    """

    def __init__(
        self,
        folder: RunFolder,
        metrics: Sequence[Metric],
        backends: Backends,
        options: RunOptions,
        source: str = SENT_INPUT,
        read_position: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.metrics = list(metrics)
        """Their ``auto`` options are settled by :meth:`settle`, else by the first sample."""
        self.folder, self.faulty, self.ids = folder, 0, HashSet()
        """``faulty``: records of the source that were left out. ``ids``: hashes of all ids."""
        self.before: Mapping[str, Any] = {}
        """``run.json`` of the run that is continued; empty for a new one."""
        self.last: Sample | None = None
        """The last sample of the run that is continued."""
        self._source, self._read_position = source, read_position
        self._backends, self._options = backends, options
        self.settled: Inventory | None = None
        """The fields by which ``auto`` options were settled."""
        self._content_hashes, self._scored = HashSet(), HashSet()
        self._started = time.monotonic()
        self._began: str | None = utc_now()
        self._has_finished = False

    @contextmanager
    def claim(self) -> Iterator[list[Sample]]:
        """Lock the folder, begin or continue its run, and yield the samples that lack a score."""
        with self.folder.claim():
            waiting = self._resume()
            self._samples = Appender(self.folder.samples_path)
            self._assessments = self.folder.open_assessments()
            try:
                yield waiting
            finally:
                self.close_files()

    def settle(self, inventory: Inventory) -> None:
        """Settle the ``auto`` options of the metrics by the fields of samples, and store that."""
        self._resolve(inventory)
        self._write_run(Intake(faulty=self.faulty))

    def accept(self, sample: Sample) -> None:
        """Store a sample before it is scored; do nothing if an equal one is stored.

        Raises:
            SampleError: an earlier sample with other content has its id.
            DiskFullError: it could not be stored.
        """
        line = encode_sample(sample)
        # A client that sends a sample twice, since it got no reply, is not at fault.
        content_hash = hash64(line.decode())
        if content_hash in self._content_hashes:
            return
        if hash64(sample.id) in self.ids:
            message = f"{sample.id!r} is already used by an earlier sample with other content"
            raise SampleError([Problem("id", message)])
        # Options such as ``auto`` must not change from sample to sample: the first one decides.
        if self.settled is None:
            inventory = Inventory()
            inventory.add(sample)
            self.settle(inventory)
        # Stored first, remembered second: a full disk raises here, and the sample can be sent
        # again.
        self._samples.append(line)
        self._content_hashes.add(content_hash)
        self.ids.add(hash64(sample.id))

    def note(self, assessment: Assessment, line: bytes) -> None:
        """Store an assessment, unless this metric has scored its sample already."""
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
        """Write the results of the run after the last sample; do nothing if they are written.

        Raises:
            OSError: they cannot be written; all assessments are on disk.
        """
        if self._has_finished:
            return
        self.close_files()
        # The digest and the inventory of all samples are known only now.
        intake = Intake(faulty=self.faulty)
        with self.folder.samples_path.open("rb") as file:
            intake.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        for sample in self.folder.samples():
            intake.inventory.add(sample)
        if intake.inventory.samples:
            self._fail_unscored()
        self._write_run(intake)
        if intake.inventory.samples:
            arguments = self.metrics, intake, self._options, self._started
            await run_in_thread(partial(write_results, self.folder, *arguments))
        self._has_finished = True

    # continuing a run

    def _resume(self) -> list[Sample]:
        folder = self.folder
        stored_run = folder.read_run()
        if stored_run is None:
            folder.check_empty()
            self._write_run(Intake(faulty=self.faulty))
            return []
        # Order matters: a run of another kind is refused before its settings are compared.
        self._check_source(stored_run)
        if isinstance(stored_run.get(SETTLED_KEY), dict):
            self._resolve(Inventory(**stored_run[SETTLED_KEY]))
        current = self._settings()
        check_settings(folder.path, {name: stored_run.get(name) for name in current}, current)
        self.before, self.faulty = stored_run, int(stored_run.get("skipped") or 0)
        # A run of an earlier version has no start; that of this process is not the run's.
        self._began = stored_run.get(STARTED)
        # Before reading: a killed process may have left half a line.
        cut_unfinished(folder.samples_path)
        self._scored = folder.read_scored()
        waiting = []
        for sample in folder.samples() if folder.samples_path.exists() else ():
            self.last = sample
            self.ids.add(hash64(sample.id))
            self._content_hashes.add(hash64(encode_sample(sample).decode()))
            if any(hash64(sample.id, m.name) not in self._scored for m in self.metrics):
                waiting.append(sample)
        # The summary would say that the run is finished.
        folder.drop_outputs()
        return waiting

    def _check_source(self, stored_run: Mapping[str, Any]) -> None:
        """Refuse a run of another kind, to which nothing can be added."""
        # A followed file leaves fields in run.json that say how far it was read; other runs lack
        # them.
        if self._source == SENT_INPUT:
            is_same_kind, maker = stored_run["input"] == SENT_INPUT, "a scorer"
        else:
            is_same_kind, maker = self._read_position().keys() <= stored_run.keys(), "--follow"
        if not is_same_kind:
            message = f"holds a run of another kind (not made by {maker}); choose another folder"
            raise RunFolderError(f"{self.folder.path}: {message}")

    def _resolve(self, inventory: Inventory) -> None:
        self.settled = inventory
        self.metrics = resolve_metrics(self.metrics, inventory, self._backends.names())

    def _settings(self) -> dict[str, Any]:
        second = {}
        if list_second_read_metrics(self.metrics, self._backends):
            second = {SECOND_FILE: self._options.second.settings()}
        names = self._backends.names()
        return to_stored(build_run_settings(self.metrics, names, self._options.seed, **second))

    def _write_run(self, intake: Intake) -> None:
        content = {
            "input": self._source,
            **({STARTED: self._began} if self._began else {}),
            **self._settings(),
            "skipped": intake.faulty,
            **self._read_position(),
            SETTLED_KEY: None if self.settled is None else asdict(self.settled),
            "samples": intake.describe_samples(),
            ABOUT: describe_metrics(self.metrics),
        }
        self.folder.write_json("run", to_stored(content))

    def _fail_unscored(self) -> None:
        """Store a failure for each sample that has no assessment.

        There are some if the disk was full or the closing was interrupted. The next process scores
        them.
        """
        noted = self.folder.read_scored(or_failed=True)
        ended = "the scorer" if self._source == SENT_INPUT else "watching"
        with closing(self.folder.open_assessments()) as writer:
            for sample in self.folder.samples():
                for metric in self.metrics:
                    if hash64(sample.id, metric.name) not in noted:
                        message = f"{ended} ended before it was scored"
                        failed_assessment = Assessment.for_failure(sample.id, metric.name, message)
                        writer.append(encode_assessment(failed_assessment))


OTHER_OUT_ADVICE = "choose another --out to score all"


def check_append(metrics: Sequence[Metric], *, second: bool) -> None:
    """Raise :class:`UsageError` if new samples would change the scores of earlier ones."""
    reasons = [f"{m.name} compares each answer with the others" for m in metrics if m.pool]
    if reasons := reasons + ["the second reader's answers are drawn from all answers"] * second:
        raise UsageError(f"append: earlier scores would change, because {reasons[0]}")


class StoredSamples:
    """The stored samples of a run whose input grew, to check the samples that the input has today.

    32 bytes are held of each: hashes of id and content, the offset, and the place of the id. A
    field that ``stages`` of the run filled, such as the response, may be absent today.
    """

    def __init__(self, folder: RunFolder, stages: Sequence[Stage]) -> None:
        self._folder, self._stages = folder, stages
        lines = read_located_lines(folder.samples_path)
        rows = (
            (hash64(parse_sample_id(line)), hash64(line.decode()), offset) for offset, line in lines
        )
        # Sorted by the hash of the id, so that an error names the same sample in any order.
        samples = np.sort(np.fromiter(rows, dtype="u8,u8,i8"))
        self._contents, self._at = samples["f1"], samples["f2"]
        self._index = HashIndex(samples["f0"])

    def _line(self, place: int) -> bytes:
        with self._folder.samples_path.open("rb") as file:
            file.seek(int(self._at[place]))
            return file.readline()

    def __call__(self, sample: Sample) -> list[Problem]:
        """Return a problem for each field of a sample that differs from the stored sample."""
        place, line = self._index.find(hash64(sample.id)), encode_sample(sample)
        if place < 0 or self._contents[place] == np.uint64(hash64(line.decode())):
            return []
        stored_record, record = json.loads(self._line(place)), json.loads(line)
        # If a stage filled the stored sample, it has more fields: only those of today are compared.
        keys = (
            record if any(stage.lacks(sample) for stage in self._stages) else record | stored_record
        )
        message = f"has changed since {sample.id!r} was scored; {OTHER_OUT_ADVICE} again"
        return [Problem(key, message) for key in keys if stored_record.get(key) != record.get(key)]

    def _merge_stored(self, part: Path) -> bool:
        """Replace today's samples by the stored ones where there are; return whether any are new.

        Raises:
            RunFolderError: a stored sample is not among today's.
        """
        is_missing, has_new = np.ones(len(self._at), dtype=bool), False
        with part.open("rb") as today, open_atomic(part) as file:
            for line in today:
                if (place := self._index.find(hash64(parse_sample_id(line)))) < 0:
                    has_new = bool(file.write(line))
                else:
                    # ``write`` returns the number of bytes, which is true: this sample is not gone.
                    is_missing[place] = not file.write(self._line(place))
            # A lost sample is an error: its old score would stay in the figures.
            if is_missing.any():
                first = parse_sample_id(self._line(int(np.flatnonzero(is_missing)[0])))
                count = f"{is_missing.sum():,} of {len(is_missing):,} scored samples"
                message = (
                    f"{count} have changed or are no longer in the input, such as {first!r}; "
                    f"{OTHER_OUT_ADVICE}"
                )
                raise RunFolderError(f"{self._folder.path}: {message}")
        return has_new

    def _name_stored_model(
        self, stored_run: Mapping[str, Any], backends: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the stored settings with the name that the model has since others are named too.

        Args:
            backends: those of this command, as ``run.json`` has them.

        Raises:
            RunFolderError: the model was asked about answers of another one than it has the name
                of.
        """
        stored_model, models = stored_run["backends"].get(MODEL_ROLE), backends.get(MODEL_ROLE)
        if not isinstance(models, Mapping) or [*models.values()] != [stored_model]:
            return stored_run
        for sample in self._folder.sample_records():
            model = sample.get("model") or stored_model
            if model != stored_model and not find_same_model(model, "", [*models]):
                raise RunFolderError(
                    f"{self._folder.path}: this run asked {stored_model} about answers of "
                    f"{shorten_name(model)}, and the input now names several models\n"
                    f"{OTHER_OUT_ADVICE}, and give each model as --model NAME=URI"
                )
        return {**stored_run, "backends": {**stored_run["backends"], MODEL_ROLE: models}}

    def grow(self, stored_run: Mapping[str, Any], current: dict[str, Any], part: Path) -> None:
        """Add the new samples to the run, and keep its figures so far for comparison.

        Args:
            stored_run: ``run.json`` of the run.
            current: ``run.json`` of this command; changed in place.
            part: the file of today's samples, which replaces the run's.

        Raises:
            RunFolderError: a stored sample is gone, or a setting has changed.
        """
        has_new = self._merge_stored(part)
        stored_run = self._name_stored_model(stored_run, current["backends"])
        of_input = {name: current[name] for name in ("skipped", "samples")}
        # A share that is drawn grows with the input, so its counts may differ; how it is drawn may
        # not.
        if DRAWN in stored_run and DRAWN in current:
            counts = {name: current[DRAWN][name] for name in ("answers", "of", "units")}
            of_input[DRAWN] = {**stored_run[DRAWN], **counts}
        check_settings(self._folder.path, {**stored_run, **of_input}, current)
        # The figures are kept in run.json, so that they survive a kill before the new summary.
        if has_new and (summary := self._folder.read_summary()):
            current[GROWN] = {
                # Those that are there: after a kill below, run.json counts today's already.
                "samples": len(self._at),
                "metrics": summary["metrics"],
            }
        # run.json before the samples: after a kill in between, the same command joins them again.
        self._folder.write_json("run", {**stored_run, **current})
        part.replace(self._folder.samples_path)
        if any(stored_run[name] != value for name, value in of_input.items()):
            self._folder.drop_outputs()
