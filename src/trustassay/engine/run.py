"""One run: samples x metrics x backends, executed once, stored in a folder that can be resumed."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trustassay.capabilities import BackendError
from trustassay.engine.batch import Counts, Policy
from trustassay.engine.cache import CallStore
from trustassay.engine.folder import AssessmentWriter, RunFolder, RunFolderError
from trustassay.engine.hashing import HashSet, hash64
from trustassay.engine.intake import Intake, Source, take_in
from trustassay.engine.models import Backends, Gatherers, SampleModels
from trustassay.engine.outputs import write_outputs
from trustassay.engine.progress import Progress
from trustassay.metric import Assessment, AssessmentError, Metric
from trustassay.sample import Sample

__all__ = ["RunOptions", "RunOutcome", "execute"]


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out. Only ``fields``, ``limit`` and ``seed`` can change a result.

    concurrency: samples in flight at once, per metric.
    report: write ``report.html`` at the end.
    calls_from: a store of calls to start from.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    skip_bad: bool = False
    concurrency: int = 256
    report: bool = True
    progress: bool = False
    calls_from: Path | None = None
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class RunOutcome:
    """What :func:`execute` did in this process; the results themselves stand in the folder."""

    metrics: Sequence[Metric]
    intake: Intake
    scored_before: int
    counts: Mapping[str, Counts]
    seconds: float


async def execute(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
) -> RunOutcome:
    """Check the input, score what is not scored yet, and write the results into ``folder``.

    Raises:
        InputError, BadInputError: nothing was started.
        RunFolderError: the folder holds another run, or another process works in it.
        asyncio.CancelledError: interrupted; what was finished is on disk.
    """
    started = time.monotonic()
    created = not folder.path.exists()
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.lock()
    try:
        intake, metrics = _begin(source, metrics, backends, folder, options)
        done = folder.scored()
        scored_before = len(done)
        counts = await _score(metrics, backends, folder, options, done, intake)
        folder.sort_assessments([metric.name for metric in metrics])
        seconds = time.monotonic() - started
        write_outputs(folder, metrics, options.seed, intake, seconds, report=options.report)
        return RunOutcome(metrics, intake, scored_before, counts, seconds)
    finally:
        folder.unlock()
        if created and not any(folder.path.iterdir()):
            folder.path.rmdir()


def _begin(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
) -> tuple[Intake, list[Metric]]:
    """Check the input and write ``run.json``, or check that the folder holds this very run."""
    before = folder.read_json("run")
    if before is None and any(p for p in folder.path.iterdir() if not p.name.startswith(".")):
        raise RunFolderError(f"{folder.path}: is not empty and holds no run; choose another --out")
    part = folder.path / ".samples.jsonl.part"
    with Progress("checking the input", shown=options.progress) as progress:
        intake, resolved = take_in(
            source,
            metrics,
            part,
            fields=options.fields,
            limit=options.limit,
            skip_bad=options.skip_bad,
            step=progress.step,
        )
    settings = {
        "trustassay": version("trustassay"),
        "metrics": {metric.name: metric.settings() for metric in resolved},
        "backends": backends.names(),
        "seed": options.seed,
        "skipped": intake.faulty,
        "samples": {"sha256": intake.sha256, **dataclasses.asdict(intake.inventory)},
    }
    if before is None:
        name = str(source) if isinstance(source, str | Path) else "samples in memory"
        folder.write_json("run", {"input": name, **settings})
    elif changes := list(_differences(before, {"input": before.get("input"), **settings})):
        part.unlink()
        raise RunFolderError(
            f"{folder.path}: holds another run; choose another --out, or go on with the same "
            "settings. Different: " + "; ".join(changes)
        )
    if options.calls_from and options.calls_from.exists() and not folder.calls_path.exists():
        shutil.copyfile(options.calls_from, folder.calls_path)
    if folder.samples_path.exists():
        part.unlink()
    else:
        part.replace(folder.samples_path)
    return intake, resolved


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield what differs between the settings of a stored run and those asked for."""
    for key in {**before, **now}:
        old, value = before.get(key), now.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from _differences(old, value, f"{at}{key}.")
        elif old != value:
            yield f"{at}{key} was {old!r}, now {value!r}"


async def _score(
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
    done: HashSet,
    intake: Intake,
) -> dict[str, Counts]:
    """Score every (sample, metric) that is not in ``done``, a bounded window at a time."""
    total = intake.inventory.samples * len(metrics)
    if len(done) >= total:
        return {}
    store = CallStore(folder.calls_path)
    gatherers = Gatherers(backends, store, options.policy)
    writer = folder.open_assessments()
    window = _Window(options.concurrency * len(metrics))
    try:
        with Progress("scoring", total, shown=options.progress) as progress:
            progress.step(len(done))
            for sample in folder.samples():
                for metric in metrics:
                    if hash64(sample.id, metric.name) not in done:
                        work = _assess(metric, sample, gatherers, writer, progress)
                        await window.start(work)
            await window.drain()
    finally:
        await window.cancel()
        await gatherers.close()
        writer.close()
        store.close()
    return gatherers.counts()


async def _assess(
    metric: Metric,
    sample: Sample,
    gatherers: Gatherers,
    writer: AssessmentWriter,
    progress: Progress,
) -> None:
    """Assess one sample and write the result down; a failure is a result, too."""
    models = SampleModels(gatherers)
    try:
        assessment = await metric.assess(sample, models)
    except (AssessmentError, BackendError) as error:
        assessment = Assessment.failed(sample.id, metric.name, str(error))
    except Exception as error:
        words = f"{metric.name} failed: {type(error).__name__}: {error}"
        assessment = Assessment.failed(sample.id, metric.name, words)
    writer.append(dataclasses.replace(assessment, calls=dict(sorted(models.calls.items()))))
    progress.step()


class _Window:
    """At most ``size`` tasks at once; the first unexpected error stops the intake of more."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None

    async def start(self, work: Any) -> None:
        """Start ``work`` as soon as there is room for it."""
        await self._free.acquire()
        if self._error:
            work.close()
            raise self._error
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()
        if not task.cancelled() and task.exception():
            self._error = self._error or task.exception()

    async def drain(self) -> None:
        """Wait for all tasks."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
