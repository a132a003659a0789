"""The folder of a run: its files, how they are written, and how a stopped run is resumed.

``run.json``            settings, versions, seed, backends, the input's digest, start and end
``samples.jsonl``       the samples in canonical form and input order
``assessments.jsonl``   one line for each assessment; grows as they finish, sorted at the end
``calls.sqlite``        every model call and its reply
``pool.jsonl``          the samples of ``--pool``, if there is one
``second.json``         the findings of the first reader, if the run has a second one
``prepared.json``       the requests that metrics made before the first sample, if they made any
``tracebacks/``         of errors that metrics do not report themselves; rewritten by each attempt
``waiting-*.jsonl``     spans and events of ``serve --otlp`` that wait, see ``live/waiting.py``
``summary.json``, ``assessments.parquet``, ``report.html``   made at the end
"""

import fcntl
import json
import os
import re
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import MODEL_ROLE
from trustassay.core.files import Appender, cut_unfinished, make_private_folder, open_atomic
from trustassay.core.metric import ORIGIN, Assessment, Metric, MetricInfo
from trustassay.core.registry import metric_from_settings
from trustassay.core.sample import Sample, SampleError
from trustassay.core.tracebacks import TRACEBACKS
from trustassay.errors import RunFolderError, UnknownNameError
from trustassay.runs import lines
from trustassay.runs.lines import StepCallback
from trustassay.statistics import Places
from trustassay.text.numbers import amount

T = TypeVar("T")
REPAIRS = {
    "summary": "to write it again, run the command of this run",
    "run": "restore it, or choose another --out",
}
"""What a user can do about a damaged file."""
STARTED, ENDED = "started", "ended"
"""Keys in ``run.json``: when the run began and when its last answer was scored, in UTC and
ISO 8601. Runs of earlier versions have neither."""
SAMPLES_REPAIR = (
    "remove samples.jsonl and assessments.jsonl and score again; stored replies are reused"
)

_URL_AS_PATH = re.compile(r"[a-z][a-z0-9+.-]+:/")


class RunFolder:
    """The files of one run.

    Raises:
        RunFolderError: by all methods that read, if a file or a line is damaged; the message names
            it and says what to do.
    """

    last_locked: ClassVar[Path | None] = None
    """The folder that this process claimed last; the traceback of an internal error goes there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples_path = path / "samples.jsonl"
        self.assessments_path = path / "assessments.jsonl"
        self.calls_path = path / "calls.sqlite"
        self.pool_path = path / "pool.jsonl"
        self.parquet_path = path / "assessments.parquet"
        self.report_path = path / "report.html"

    # one process at a time

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Create the folder and lock it for this process until the block ends.

        Folders that were created here and are still empty at the end are removed.

        Raises:
            RunFolderError: another process works in it, or it is a URL.
        """
        # `s3://bucket/run` as a path is `s3:/bucket/run`, a folder below the current one.
        if _URL_AS_PATH.match(str(self.path)):
            advice = "`trustassay export RUN --to URL` then copies its table there"
            raise RunFolderError(f"{self.path}: a run needs a local folder; {advice}")
        # Innermost first, the order in which they can be removed.
        created = [path for path in (self.path, *self.path.parents) if not path.exists()]
        make_private_folder(self.path)
        # The folder itself is locked: a lock file would be left behind by a killed process, and the
        # system releases this lock however the process ends.
        lock = os.open(self.path, os.O_RDONLY)
        RunFolder.last_locked = self.path
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise RunFolderError(f"{self.path}: another process is using this run") from None
        try:
            yield
        finally:
            os.close(lock)
            # An error before the first file, such as a fault of the input, leaves no empty folders.
            for path in created:
                if any(path.iterdir()):
                    break
                path.rmdir()

    def check_empty(self, what: str = "run") -> None:
        """Refuse a folder that holds other files.

        Raises:
            RunFolderError: it holds files whose names do not begin with a dot.
        """
        if any(not path.name.startswith(".") for path in self.path.iterdir()):
            message = f"is not empty and holds no {what}; choose another folder"
            raise RunFolderError(f"{self.path}: {message}")

    def check_entries(self) -> None:
        """Refuse a folder by which somebody who sent it would have other files read.

        Raises:
            RunFolderError: it holds a link that leads out of it, or a pipe or device, or cannot be
                read.
        """
        home = os.path.realpath(self.path)
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.is_symlink() and not _is_below(entry.path, home):
                        message = "a link that points outside the run's folder is not followed"
                        raise RunFolderError(f"{entry.path}: {message}; copy the file there")
                    # Reading a pipe would wait for its writer without end.
                    if not (entry.is_file() or entry.is_dir()):
                        raise RunFolderError(
                            f"{entry.path}: neither a file nor a folder; remove it"
                        )
        except OSError as error:
            raise RunFolderError(f"{self.path}: cannot be read ({error.strerror})") from None

    # run.json and summary.json

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return the content of ``NAME.json``, or ``None`` if there is none."""
        path = self.path / f"{name}.json"
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._build_damage_error(name, f"is not JSON: {error}") from None
        if not isinstance(content, dict):
            raise self._build_damage_error(name, "expected an object")
        return content

    def _build_damage_error(self, name: str, reason: str) -> RunFolderError:
        repair = REPAIRS.get(name, "choose another --out")
        return RunFolderError(f"{self.path / name}.json: damaged ({reason}); {repair}")

    def read_run(self) -> dict[str, Any] | None:
        """Return the content of ``run.json``, or ``None`` if there is none."""
        # The fields that other modules read without checking them again.
        parts = {"input": str, "metrics": dict, "backends": dict, "seed": int, "samples": dict}
        return self._read_with_parts("run", parts)

    def read_summary(self) -> dict[str, Any] | None:
        """Return the content of ``summary.json``, or ``None`` if there is none."""
        return self._read_with_parts("summary", {"metrics": dict, "calls": dict})

    def read_finished(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the contents of ``run.json`` and ``summary.json``.

        Raises:
            RunFolderError: there is no finished run.
        """
        run, summary = self.read_run(), self.read_summary()
        if run is None or summary is None:
            raise RunFolderError(f"{self.path}: holds no finished run")
        return run, summary

    def _read_with_parts(self, name: str, parts: Mapping[str, type]) -> dict[str, Any] | None:
        content = self.read_json(name)
        for part, kind in parts.items():
            if content is not None and not isinstance(content.get(part), kind):
                raise self._build_damage_error(name, f"{part} is missing")
        return content

    def write_json(self, name: str, content: Mapping[str, Any], indent: int | None = 2) -> None:
        """Write ``NAME.json`` in full or not at all."""
        # NaN is refused: other programs could not read the file.
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
        with open_atomic(self.path / f"{name}.json") as file:
            file.write(text.encode())

    def is_finished(self, *, report: bool) -> bool:
        """Whether all outputs of a finished run exist, and the summary can be read."""
        try:
            if self.read_summary() is None:
                return False
        except RunFolderError:
            return False  # a damaged summary is written again
        return self.parquet_path.exists() and (self.report_path.exists() or not report)

    def drop_outputs(self) -> None:
        """Remove the outputs and the end of the run, before its assessments change."""
        # The summary goes first: it marks the run as finished.
        for path in (self.path / "summary.json", self.parquet_path, self.report_path):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.path / TRACEBACKS, ignore_errors=True)
        if (run := self.read_json("run")) and ENDED in run:
            del run[ENDED]
            self.write_json("run", run)

    def note_end(self) -> None:
        """Record in ``run.json`` that the run ends now, unless it has an end already.

        Outputs can be written again later, which does not move the end of the run.
        """
        run = self.read_json("run")
        if run is not None and ENDED not in run:
            self.write_json("run", {**run, ENDED: utc_now()})

    # samples

    def samples(self) -> Iterator[Sample]:
        """Yield the samples in input order."""
        for number, record in enumerate(self.sample_records(), 1):
            try:
                yield Sample.parse(record)
            except SampleError as error:
                raise self.build_sample_error(number, str(error)) from None

    def check_samples(self, expected: int) -> None:
        """Check that the file of samples has the ``expected`` number of lines."""
        result = sum(1 for _ in lines.read_lines(self.samples_path))
        if result != expected:
            message = f"expected {amount(expected, 'line')}, got {result:,}"
            raise RunFolderError(f"{self.samples_path}: damaged ({message}); {SAMPLES_REPAIR}")

    def sample_records(self) -> Iterator[dict[str, Any]]:
        """Yield the samples as dictionaries, unchecked.

        Checking them, as :meth:`samples` does, takes longer than reading them.
        """
        with self.samples_path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise self.build_sample_error(number, f"is not JSON: {error}") from None

    def build_sample_error(self, number: int, reason: str) -> RunFolderError:
        """Return the error of line ``number`` of the samples."""
        where = f"{self.samples_path}:{number}"
        return RunFolderError(f"{where}: damaged ({reason}); {SAMPLES_REPAIR}")

    # assessments while the run goes on

    def read_scored(self, *, or_failed: bool = False) -> lines.HashSet:
        """Return hashes of the (id, metric) pairs that are scored.

        A line that a killed process left unfinished is cut off.

        Args:
            or_failed: include pairs that failed. Without it they are tried again.
        """
        scored_pairs = lines.HashSet()
        # Before appending: the rest of half a line would join the next one.
        cut_unfinished(self.assessments_path)
        for number, line in enumerate(lines.read_lines(self.assessments_path), 1):
            identity = lines.read_identity(self.assessments_path, line, number)
            if or_failed or lines.is_scored(line):
                scored_pairs.add(lines.hash64(*identity))
        return scored_pairs

    def open_assessments(self) -> Appender:
        """Open the file of assessments for appending."""
        return Appender(self.assessments_path)

    def sort_assessments(self, metrics: Sequence[str], step: StepCallback = lambda: None) -> None:
        """Sort the assessments into input order; keep the last one of each sample and metric."""
        offsets, lengths, places = self._index_lines(metrics, step)
        # By place in the input, then by offset: of several attempts the latest comes last.
        order = np.lexsort((offsets, places))
        # Keep a line if the next one has another place.
        last = np.append(places[order][1:] != places[order][:-1], True)
        order = order[last] if len(order) else order
        # Sorted already, as after a first run with one sample at a time: nothing is rewritten.
        if len(order) == len(offsets) and np.all(order == np.arange(len(order))):
            return
        with (
            self.assessments_path.open("rb") as source,
            open_atomic(self.assessments_path) as target,
        ):
            for index in order:
                source.seek(offsets[index])
                target.write(source.read(lengths[index]))
                step()

    def _index_lines(
        self, metrics: Sequence[str], step: StepCallback
    ) -> tuple[Places, Places, Places]:
        """Return of each assessment the line's offset and length, and its place in input order.

        The place is that of the sample times the number of metrics, plus that of the metric.
        """
        # Compact arrays: a run may have millions of assessments, and only numbers are held of each.
        id_hashes, ranks, offsets, lengths = array("Q"), array("q"), array("q"), array("q")
        rank = {name: i for i, name in enumerate(metrics)}
        for number, (offset, line) in enumerate(lines.read_located_lines(self.assessments_path), 1):
            sample_id, metric = lines.read_identity(self.assessments_path, line, number)
            id_hashes.append(lines.hash64(sample_id))
            ranks.append(rank.get(metric, -1))
            offsets.append(offset)
            lengths.append(len(line))
            step()
        places = self._find_sample_places(np.array(id_hashes, dtype=np.uint64), step)
        # A line of another run would silently change the figures.
        unknown_lines = np.flatnonzero((places < 0) | (np.array(ranks, dtype=np.int64) < 0))
        if len(unknown_lines):
            where = f"{self.assessments_path}:{unknown_lines[0] + 1}"
            raise RunFolderError(f"{where}: belongs to no sample or metric of this run")
        places = places * len(metrics) + ranks
        return np.array(offsets, dtype=np.int64), np.array(lengths, dtype=np.int64), places

    def _find_sample_places(self, hashes: NDArray[np.uint64], step: StepCallback) -> Places:
        """Return the places in input order of the samples whose ids have these hashes.

        -1 for hashes that no sample has.
        """
        ids = array("Q")
        for line in lines.read_lines(self.samples_path):
            ids.append(lines.hash64(lines.parse_sample_id(line)))
            step()
        return lines.HashIndex(ids).find_all(hashes)

    def assessments(
        self,
        metric: str | None = None,
        *,
        evidence_later: bool = False,
        step: StepCallback = lambda: None,
        units: Places | None = None,
    ) -> lines.StoredAssessments:
        """Return the assessments, of one metric or all, as a sequence that reads from disk.

        Args:
            evidence_later: decode evidence only when it is accessed, which summaries rarely do.
            units: the number of each sample's unit in input order, -1 for a unit of one sample, as
                :func:`~trustassay.runs.units.read_units` returns it.

        Raises:
            RunFolderError: ``units`` are given and some samples have no assessment.
        """
        path = self.assessments_path
        result = lines.StoredAssessments(
            path, metric, self, step, units, evidence_later=evidence_later
        )
        if units is not None and len(result) != len(units):
            raise RunFolderError(
                f"{path}: expected {len(units):,} assessments of {metric}, got {len(result):,}; "
                "run the command of this run again"
            )
        return result

    def lines(self) -> Iterator[tuple[int, lines.AssessmentLine]]:
        """Yield offset and line of each assessment in file order, with evidence not decoded."""
        for offset, line in lines.read_located_lines(self.assessments_path):
            yield offset, self._decode_line(lines.read_line, offset, line)

    def sample_at(self, offset: int) -> Sample:
        """Return the sample whose line begins at the byte ``offset``."""
        with self.samples_path.open("rb") as file:
            file.seek(offset)
            return Sample.parse(json.loads(file.readline()))

    def assessments_at(self, offset: int, count: int) -> list[Assessment]:
        """Return ``count`` consecutive assessments; the first begins at the byte ``offset``."""
        result = []
        with self.assessments_path.open("rb") as file:
            for _ in range(count):
                file.seek(offset)
                line = file.readline()
                result.append(Assessment.from_dict(self._decode_line(json.loads, offset, line)))
                offset += len(line)
        return result

    def _decode_line(self, decode: Callable[[bytes], T], offset: int, line: bytes) -> T:
        try:
            return decode(line)
        except (ValueError, KeyError, TypeError):
            raise lines.build_error_at(self.assessments_path, offset) from None


def _is_below(path: str, home: str) -> bool:
    """Whether a path is in a folder when its links are followed; ``home`` has no links."""
    return os.path.realpath(path).startswith(f"{home}{os.sep}")


def utc_now() -> str:
    """Return the time as ``run.json`` has it, such as 2026-11-29T01:34:50Z."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_start(run: Mapping[str, Any]) -> datetime | None:
    """Return when a run began, in UTC, from its ``run.json``; ``None`` if it does not say so."""
    try:
        start = datetime.fromisoformat(run[STARTED])
    except (KeyError, TypeError, ValueError):
        return None
    # Years at the ends of the calendar cannot be written in each time zone, and no run is of them.
    if not 1970 < start.year < 9000:
        return None
    # A time without a zone is read as UTC, which is what a run writes.
    return start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)


def to_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``settings`` as they will be read back from ``run.json``.

    Tuples become lists, and other objects texts, so that they can be compared with stored ones.
    """
    result: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return result


def check_settings(
    folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], what: str = "another run"
) -> None:
    """Check that a folder is reopened with the settings that it holds.

    Args:
        before: the stored settings.
        now: those of this command, as they would be stored.
        what: how the message names the content of the folder if they differ.

    Raises:
        RunFolderError: they differ; the message names each setting, its old and its new value.
    """
    if changes := list(list_setting_changes(before, now)):
        # Only the input has changed: --append may be what the user wants.
        only_input_changed = all(
            change.startswith(("samples.", "skipped", "drawn.")) for change in changes
        )
        advice = ", or add --append if records were only added" if only_input_changed else ""
        # Nobody knows an input by its digest.
        causes = [change for change in changes if not change.startswith("samples.")]
        causes = causes if len(causes) == len(changes) else ["the input", *causes]
        raise RunFolderError(
            f"{folder}: holds {what}; choose another folder, or use the same "
            f"settings{advice}. Different: {'; '.join(causes)}"
        )


def list_setting_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """Yield a text for each setting that differs: its path, its old and its new value.

    Args:
        path: of the block that is compared, with a final dot.
    """
    for key in {**before, **now}:
        old, value = before.get(key), now.get(key)
        # A metric from the user's own file is the same while its class and the file's content are.
        if key == ORIGIN and isinstance(value, Mapping) and isinstance(old, Mapping):
            if old.get("class") != value.get("class"):
                yield f"{path}class was {old.get('class')!r}, now {value.get('class')!r}"
            elif old.get("sha256") != value.get("sha256"):
                yield f"{path[:-1]}: {value.get('file')} has changed since the run began"
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from list_setting_changes(old, value, f"{path}{key}.")
        elif old != value:
            yield f"{path}{key} was {_format_value(old)}, now {_format_value(value)}"


def _format_value(value: Any) -> str:
    # The options of a whole metric would fill a screen.
    if isinstance(value, Mapping) and len(value) > 2:
        return "set"
    return "not set" if value is None else repr(value)


ABOUT = "about"
"""Key in ``run.json`` of the descriptions of metrics; runs of earlier versions have none."""


def build_run_settings(
    metrics: Iterable[Metric], backends: Mapping[str, Any], seed: int, **other_fields: Any
) -> dict[str, Any]:
    """Return the fields of ``run.json`` that every run has, in their order.

    Args:
        other_fields: further fields, which stand before the seed.
    """
    metric_settings = {metric.name: metric.settings() for metric in metrics}
    first = {"trustassay": version("trustassay"), "metrics": metric_settings, "backends": backends}
    return {**first, **other_fields, "seed": seed}


def describe_metrics(metrics: Iterable[Metric]) -> dict[str, Any]:
    """Return the descriptions of metrics by name, as :func:`read_metric_infos` reads them back."""
    return {metric.name: MetricInfo.of(metric).to_dict() for metric in metrics}


def read_metric_infos(folder: RunFolder, run: Mapping[str, Any]) -> dict[str, MetricInfo]:
    """Return the descriptions of a run's metrics by name, from ``run.json``.

    Raises:
        RunFolderError: ``run.json`` is damaged.
        UnknownNameError: the run has no description, and the metric is not installed.
    """
    result = {}
    for name, settings in run["metrics"].items():
        description = run.get(ABOUT, {}).get(name)
        # A run of an earlier version: the description comes from the installed metric.
        if description is None:
            result[name] = MetricInfo.of(_load_metric(name, settings, run))
            continue
        try:
            result[name] = MetricInfo.from_dict(description)
        except (KeyError, TypeError, ValueError):
            message = f"damaged (the description of {name} cannot be read)"
            raise RunFolderError(f"{folder.path / 'run.json'}: {message}") from None
    return result


def find_run_model(run: Mapping[str, Any]) -> str | None:
    """Return the model of a run that answered for samples which name none.

    ``None`` if the run has no model, or several with names.
    """
    models = run.get("backends", {}).get(MODEL_ROLE)
    if isinstance(models, Mapping):
        return next(iter(models)) if len(models) == 1 else None
    return models if isinstance(models, str) else None


def load_metrics(run: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of a run that are installed, by name, with the run's options."""
    result = {}
    for name, settings in run["metrics"].items():
        with suppress(UnknownNameError, TypeError, ValueError):
            result[name] = _load_metric(name, settings, run)
    return result


def _load_metric(name: str, settings: Mapping[str, Any], run: Mapping[str, Any]) -> Metric:
    return metric_from_settings(name, settings).with_backends(run.get("backends", {}))
