"""One run: samples x metrics x backends, executed once, stored in a folder that can be resumed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trustassay.answering import Answering
from trustassay.capabilities import BackendError
from trustassay.engine.answers import Answers, answer_samples
from trustassay.engine.asking import held_back, samples_at_once
from trustassay.engine.batch import Counts, Policy
from trustassay.engine.cache import CallStore, copy_calls, default_cache, open_cache
from trustassay.engine.ending import Steps, run_in_thread
from trustassay.engine.folder import RunFolder, RunFolderError, encoded
from trustassay.engine.hashing import HashSet, hash64
from trustassay.engine.intake import BREATH, Intake, Source, take_in
from trustassay.engine.keys import check_run_keys, shared_file
from trustassay.engine.limits import Endpoint
from trustassay.engine.models import (
    Asking,
    Backends,
    Gatherers,
    SampleModels,
    any_shared,
    check_budget,
)
from trustassay.engine.outputs import write_outputs
from trustassay.engine.progress import Progress, tell
from trustassay.engine.usage import Budget, Prices
from trustassay.files import Appender, DiskFullError
from trustassay.metric import Assessment, AssessmentError, Metric
from trustassay.sample import Sample, clean

__all__ = ["RunOptions", "RunOutcome", "Window", "assess_one", "execute", "write_results"]


SAMPLES = 256
"""Samples in flight at once where nobody says how many."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is carried out. Only ``fields``, ``limit``, ``seed`` and ``answering`` can change
    a result.

    concurrency: samples in flight at once, per metric; ``None`` for 256, or for twice the calls
        that an endpoint takes at once where that is more.
    report: write ``report.html`` at the end.
    calls_from: a store of calls to start from.
    answering: how samples without a response are answered, where the run has a model.
    cache: folder of the file of calls that runs share; ``None`` for no such file.
    budget: the most that the run may spend on chat models, all its starts together.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    skip_bad: bool = False
    concurrency: int | None = None
    report: bool = True
    progress: bool = False
    calls_from: Path | None = None
    policy: Policy = field(default_factory=Policy)
    answering: Answering = field(default_factory=Answering)
    cache: Path | None = field(default_factory=default_cache)
    prices: Prices = field(default_factory=Prices)
    budget: Budget | None = None

    def __post_init__(self) -> None:
        for option, least in (("concurrency", 1), ("limit", 1), ("seed", 0)):
            value = getattr(self, option)
            if value is not None and value < least:
                raise ValueError(f"{option}: expected {least} or more, got {value}")


@dataclass(frozen=True)
class RunOutcome:
    """What :func:`execute` did in this process; the results themselves stand in the folder."""

    metrics: Sequence[Metric]
    intake: Intake
    scored_before: int
    counts: Mapping[str, Counts]
    answers: Answers
    endpoints: Mapping[str, Endpoint]
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
        InputError, BadInputError, BackendError: nothing was started.
        RunFolderError: the folder holds another run, or another process works in it.
        asyncio.CancelledError: interrupted; what was finished is on disk.
    """
    started = time.monotonic()
    check_budget(backends, options.prices, options.budget)
    created = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.lock()
    try:
        intake, metrics = await _begin(source, metrics, backends, folder, options)
        done = folder.scored()
        scored_before = len(done)
        work = await _work(metrics, backends, folder, options, done, intake)
        if work.counts or not folder.finished(report=options.report):
            await run_in_thread(partial(write_results, folder, metrics, intake, options, started))
        seconds = time.monotonic() - started
        return RunOutcome(
            metrics, intake, scored_before, work.counts, work.answers, work.endpoints, seconds
        )
    finally:
        folder.unlock()
        for path in created:
            if any(path.iterdir()):
                break
            path.rmdir()


def write_results(
    folder: RunFolder,
    metrics: Sequence[Metric],
    intake: Intake,
    options: RunOptions,
    started: float,
    stop: threading.Event,
) -> None:
    """Sort the assessments and write the results, a step after the other, until ``stop`` is set."""
    steps = Steps(shown=options.progress, stop=stop)
    lines = intake.inventory.samples * (1 + 2 * len(metrics))
    with steps.begin("sorting assessments", lines) as step:
        folder.sort_assessments([metric.name for metric in metrics], step)
    write_outputs(
        folder,
        metrics,
        intake,
        time.monotonic() - started,
        seed=options.seed,
        report=options.report,
        prices=options.prices,
        steps=steps,
    )


async def _begin(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
) -> tuple[Intake, list[Metric]]:
    """Check the input and write ``run.json``, or check that the folder holds this very run."""
    before = folder.read_run()
    if before is None and any(p for p in folder.path.iterdir() if not p.name.startswith(".")):
        raise RunFolderError(f"{folder.path}: is not empty and holds no run; choose another --out")
    part = folder.path / ".samples.jsonl.part"
    with Progress("checking the input", shown=options.progress) as progress:
        intake, resolved = await take_in(
            source,
            metrics,
            part,
            fields=options.fields,
            limit=options.limit,
            skip_bad=options.skip_bad,
            answering=options.answering if "model" in backends.chat else None,
            step=progress.step,
        )
    missing = intake.inventory.samples - intake.inventory.responses
    try:
        stores = (folder.calls_path, options.calls_from, shared_file(options.cache))
        check_run_keys(metrics, backends, stores, missing)
    except BaseException:
        part.unlink()
        raise
    answering = {}
    if missing and _answers(metrics, backends):
        answering = {"answering": options.answering.settings()}
    settings = _as_stored(
        {
            "trustassay": version("trustassay"),
            "metrics": {metric.name: metric.settings() for metric in resolved},
            "backends": backends.names(),
            **answering,
            "seed": options.seed,
            "skipped": intake.faulty,
            "samples": {"sha256": intake.sha256, **dataclasses.asdict(intake.inventory)},
        }
    )
    if before is None:
        name = "samples in memory"
        if isinstance(source, str | os.PathLike):
            name = clean(os.fspath(source))
        folder.write_json("run", {"input": name, **settings})
    elif changes := list(_differences(before, {"input": before.get("input"), **settings})):
        part.unlink()
        raise RunFolderError(
            f"{folder.path}: holds another run; choose another --out, or go on with the same "
            "settings. Different: " + "; ".join(changes)
        )
    if options.calls_from and options.calls_from.exists() and not folder.calls_path.exists():
        copy_calls(options.calls_from, folder.calls_path)
    if folder.samples_path.exists():
        part.unlink()
        folder.check_samples(intake.inventory.samples)
    else:
        part.replace(folder.samples_path)
    return intake, resolved


def _as_stored(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``settings`` as they will be read back from ``run.json``."""
    stored: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return stored


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield what differs between the settings of a stored run and those asked for."""
    for key in {**before, **now}:
        old, value = before.get(key), now.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from _differences(old, value, f"{at}{key}.")
        elif old != value:
            yield f"{at}{key} was {old!r}, now {value!r}"


@dataclass
class _Work:
    """What was done in this process."""

    counts: Mapping[str, Counts] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


async def _work(
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
    done: HashSet,
    intake: Intake,
) -> _Work:
    """Answer and score what is not scored yet."""
    total = intake.inventory.samples * len(metrics)
    if len(done) >= total:
        return _Work()
    folder.drop_outputs()
    work = _Work()
    with ExitStack() as stack:
        own = CallStore(folder.calls_path)
        stack.callback(own.close)
        shared = _shared(options.cache, backends)
        if shared:
            stack.callback(shared.close, alone=False)
        for words in held_back(options.concurrency, backends.asked()) if options.progress else ():
            tell(words)
        at_once = samples_at_once(options.concurrency, SAMPLES, backends.asked())
        gatherers = Gatherers(
            backends, Asking(own, shared, options.policy, options.prices, options.budget)
        )
        try:
            missing = intake.inventory.samples - intake.inventory.responses
            if missing and _answers(metrics, backends):
                with Progress("answering", missing, shown=options.progress) as progress:
                    work.answers = await answer_samples(
                        folder, options.answering, gatherers, at_once, progress.step
                    )
            with Progress("scoring", total, shown=options.progress) as progress:
                progress.step(len(done))
                window = Window(at_once * len(metrics))
                await _score(metrics, folder, gatherers, window, done, work.answers, progress)
        finally:
            await gatherers.close()
        work.counts, work.endpoints = gatherers.counts(), gatherers.endpoints.all()
    return work


def _answers(metrics: Sequence[Metric], backends: Backends) -> bool:
    """Whether samples without a response are answered before they are scored."""
    return "model" in backends.chat and any(metric.reads_response for metric in metrics)


def _shared(folder: Path | None, backends: Backends) -> CallStore | None:
    """Open the file that runs share, where something is asked of an endpoint."""
    if folder is None or not any_shared(backends):
        return None
    return open_cache(folder)


async def _score(
    metrics: Sequence[Metric],
    folder: RunFolder,
    gatherers: Gatherers,
    window: Window,
    done: HashSet,
    answers: Answers,
    progress: Progress,
) -> None:
    """Score every (sample, metric) that is not in ``done``, a bounded window at a time."""
    writer = folder.open_assessments()
    try:
        for number, sample in enumerate(folder.samples()):
            if number % BREATH == 0:
                await asyncio.sleep(0)  # lets an interruption through
            for metric in metrics:
                if hash64(sample.id, metric.name) in done:
                    continue
                if sample.id in answers.failed:
                    error, fault = answers.failed[sample.id]
                    words = f"no response: {error}"
                    writer.append(encoded(Assessment.failed(sample.id, metric.name, words, fault)))
                    progress.step()
                else:
                    await window.start(_assess(metric, sample, gatherers, writer, progress))
        await window.drain()
    finally:
        await window.cancel()
        writer.close()


async def assess_one(
    metric: Metric, sample: Sample, gatherers: Gatherers, writer: Appender
) -> Assessment:
    """Assess one sample, write the result down, and return it; a failure is a result, too.

    A failure counts no calls: how many were made before it depends on what else was going on.
    """
    models = SampleModels(gatherers)
    try:
        found = await metric.assess(sample, models)
        _check(found, sample, metric)
        usage = {name: dict(sorted(usage.items())) for name, usage in sorted(models.usage.items())}
        calls = dict(sorted(models.calls.items()))
        found = dataclasses.replace(found, calls=calls, usage=usage)
        line = encoded(found)
    except (AssessmentError, BackendError) as error:
        fault = getattr(error, "kind", None)
        found = Assessment.failed(sample.id, metric.name, str(error), fault)
        line = encoded(found)
    except (Exception, asyncio.CancelledError) as error:
        if _being_cancelled() or isinstance(error, DiskFullError):
            raise  # what is asked from now on could not be kept
        words = f"{metric.name} failed: {type(error).__name__}: {error}"
        found = Assessment.failed(sample.id, metric.name, words)
        line = encoded(found)
    writer.append(line)
    return found


async def _assess(
    metric: Metric,
    sample: Sample,
    gatherers: Gatherers,
    writer: Appender,
    progress: Progress,
) -> None:
    await assess_one(metric, sample, gatherers, writer)
    progress.step()


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _check(found: Any, sample: Sample, metric: Metric) -> None:
    """Hold what a metric returned against its contract.

    Raises:
        AssessmentError: it breaks it; nothing of it may reach the summary or the files.
    """
    if not isinstance(found, Assessment):
        raise AssessmentError(f"{metric.name} returned {found!r:.60} in place of an Assessment")
    if (found.id, found.metric) != (sample.id, metric.name):
        raise AssessmentError(f"{metric.name} spoke of {found.id!r} and {found.metric!r}")
    low, high = metric.score_range
    numbers = (
        [*found.parts.values()] if found.score is None else [found.score, *found.parts.values()]
    )
    for number in numbers:
        if not isinstance(number, int | float) or not math.isfinite(number):
            raise AssessmentError(f"{metric.name} counts with {number!r:.60}, which is no number")
    if found.score is not None and not low <= found.score <= high:
        raise AssessmentError(f"{metric.name} gave {found.score}, outside of {low:g} to {high:g}")
    for name in ("verdict", "reason", "error"):
        if not isinstance(getattr(found, name), str | None):
            raise AssessmentError(f"{metric.name} gave a {name} that is no text")


class Window:
    """At most ``size`` tasks at once; the first unexpected error stops the intake of more."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None

    async def start(self, work: Any) -> None:
        """Start ``work`` as soon as there is room for it."""
        try:
            await self._free.acquire()
            if self._error:
                raise self._error
        except BaseException:
            work.close()
            raise
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()
        if not task.cancelled() and task.exception():
            self._error = self._error or task.exception()

    async def drain(self) -> None:
        """Wait for all tasks, or for the first unexpected error."""
        while self._tasks and not self._error:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        if self._error:
            raise self._error

    async def cancel(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
