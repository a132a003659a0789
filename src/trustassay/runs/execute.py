"""One run: samples x metrics x backends, executed once, stored in a folder that can be resumed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.calls.batching import Counts
from trustassay.calls.client import Client, SampleModels, check_budget, open_calls
from trustassay.calls.endpoints import held_back, samples_at_once
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import copy_calls
from trustassay.data.reading import paths_of
from trustassay.errors import UsageError
from trustassay.event_loop import TaskLimiter, run_in_thread
from trustassay.files import whole
from trustassay.metric import Assessment, Metric
from trustassay.progress import Progress, tell
from trustassay.runs.assess import assessed
from trustassay.runs.counts import UNIT
from trustassay.runs.fill import AHEAD, Failure, Outcome, Stage, filled, settings_of, stages_of
from trustassay.runs.folder import (
    ABOUT,
    RunFolder,
    as_stored,
    check_settings,
    described,
    run_settings,
)
from trustassay.runs.intake import (
    WHY,
    YIELD_EVERY,
    InputOptions,
    Intake,
    RunOptions,
    ShardMark,
    Source,
    admit,
    take_in,
)
from trustassay.runs.lines import HashSet, encoded, encoded_sample, hash64
from trustassay.runs.looks import first_verdict
from trustassay.runs.needs import check_run_keys, resolved
from trustassay.runs.prepare import (
    POOL,
    PREPARATION,
    Preparation,
    Prepared,
    StoredPool,
    key_of,
    prepare,
    prepare_once,
    requests_of,
)
from trustassay.runs.probabilities import check_calibrator
from trustassay.runs.results import write_results
from trustassay.runs.second_reading import FILE, SecondReading, check_second, readers_of
from trustassay.sample import Sample, clean

SAMPLES = 256
"""Default number of samples in progress at once."""
UNCHECKED = ("input", "command", WHY, POOL, ABOUT)
"""Fields of a stored run that do not affect its results."""


@dataclass(frozen=True)
class RunOutcome:
    """What :func:`execute` did in this process; the results themselves are in the folder."""

    metrics: Sequence[Metric]
    intake: Intake
    scored_before: int
    counts: Mapping[str, Counts]
    filled: Outcome
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
    check_budget(backends, options.calls.prices, options.calls.budget)
    with folder.claimed():
        run = await _begin(source, metrics, backends, folder, options)
        done = folder.scored()
        scored_before = len(done)
        counts, filled, endpoints = await _work(run, done)
        if counts or not folder.finished(report=options.report):
            write = partial(write_results, folder, run.metrics, run.intake, options, started)
            await run_in_thread(write)
    seconds = time.monotonic() - started
    return RunOutcome(run.metrics, run.intake, scored_before, counts, filled, endpoints, seconds)


@dataclass(frozen=True)
class _Run:
    """A run that has begun: its input is checked, its settings are stored."""

    metrics: Sequence[Metric]
    stages: Sequence[Stage]
    backends: Backends
    folder: RunFolder
    options: RunOptions
    intake: Intake
    whole: Preparation | None = None
    """What is prepared for all shards, where the run is of one and looks beyond it."""


async def _begin(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
) -> _Run:
    """Check the input and write ``run.json``, or check that the folder holds this run."""
    before = folder.read_run()
    if before is None:
        folder.check_empty()
    stages = stages_of(metrics, backends, options.filling)
    part = folder.path / ".samples.jsonl.part"
    intake = await admit(source, part, metrics, backends, stages, options)
    try:
        shard = shard_of(part)
        check_second(metrics, backends, options.second, shard=shard is not None)
        missing = intake.inventory.samples - intake.inventory.responses
        check_run_keys(metrics, backends, options.stores(folder), missing)
        named = backends.names()
        settled = resolved(metrics, intake.inventory, named)
        prepared = _preparation_of(shard, intake, options.pool, settled, stages, backends)
        pool = {} if prepared else await _take_in_pool(metrics, folder, options)
        common = run_settings(
            settled,
            named,
            options.seed,
            **_stage_settings(stages, intake),
            **pool,
            **({PREPARATION: prepared.key} if prepared else {}),
        )
        settings = as_stored(
            {
                **common,
                **({UNIT: options.unit} if options.unit else {}),
                **({FILE: options.second.settings()} if readers_of(settled, backends) else {}),
                "skipped": intake.faulty,
                "samples": {"sha256": intake.sha256, **dataclasses.asdict(intake.inventory)},
            }
        )
        if options.calibrator:
            own = settings["metrics"], settings["backends"]
            check_calibrator(options.calibrator, *own, str(folder.path))
        if before is None:
            if paths := paths_of(source):
                name = clean(", ".join(paths))
            else:  # of samples made elsewhere, what made them says what they are
                name = clean(str(getattr(source, "name", "samples in memory")))
            given = {"command": options.command, WHY: options.why}
            words = {key: clean(text) for key, text in given.items() if text}
            at = {POOL: os.fspath(prepared.pool)} if prepared else {}
            content = {"input": name, **words, **at, **settings, ABOUT: described(settled)}
            folder.write_json("run", content)
        else:
            kept = {name: before[name] for name in UNCHECKED if name in before}
            check_settings(folder.path, before, {**kept, **settings})
        if options.calls_from and options.calls_from.exists() and not folder.calls_path.exists():
            copy_calls(options.calls_from, folder.calls_path)
        if folder.samples_path.exists():
            part.unlink()
            folder.check_samples(intake.inventory.samples)
        else:
            part.replace(folder.samples_path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return _Run(settled, stages, backends, folder, options, intake, prepared)


def shard_of(samples: Path) -> ShardMark | None:
    """Return to what a file of samples in canonical form belongs, if it is a shard."""
    with samples.open("rb") as file:
        return ShardMark.take(json.loads(file.readline()))


def _preparation_of(
    mark: ShardMark | None,
    intake: Intake,
    pool: str | os.PathLike[str] | None,
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    backends: Backends,
) -> Preparation | None:
    """Return what is prepared for all shards, where a run's samples are a shard and a metric looks
    beyond them; ``metrics`` are resolved.

    Raises:
        ValueError: samples of the shard were left out, which the pool holds.
    """
    if pool is None or mark is None or not any(metric.pool for metric in metrics):
        return None
    if intake.faulty:
        raise UsageError(
            f"{intake.faulty:,} samples of this shard cannot be scored, and others would be "
            "compared with them; remove them from the input, and divide it again"
        )
    return Preparation(Path(pool), key_of(mark.of, metrics, stages, backends))


async def _take_in_pool(
    metrics: Sequence[Metric], folder: RunFolder, options: RunOptions
) -> dict[str, Any]:
    """Write the pool into the folder if it is a separate file; return its setting."""
    if options.pool is None or not any(metric.pool for metric in metrics):
        return {}
    part = folder.path / ".pool.jsonl.part"
    reading = InputOptions(fields=options.fields, progress=options.progress)
    found = await take_in(options.pool, part, reading, what="the pool")
    part.replace(folder.pool_path)
    return {"pool": {"sha256": found.sha256, "samples": found.inventory.samples}}


def _stage_settings(stages: Sequence[Stage], intake: Intake) -> dict[str, Any]:
    """Return the settings of the stages that fill missing fields."""
    inventory = intake.inventory
    settings = settings_of(stages)
    if inventory.responses == inventory.samples:
        settings.pop("response", None)
    found = {"answering": settings.pop("response")} if "response" in settings else {}
    return {**found, "filling": settings} if settings else found


async def _work(
    run: _Run, done: HashSet
) -> tuple[Mapping[str, Counts], Outcome, Mapping[str, Endpoint]]:
    """Fill and score what is not scored yet; return the calls, what was filled, and endpoints."""
    filled = Outcome()
    total = run.intake.inventory.samples * len(run.metrics)
    folder, options = run.folder, run.options
    second = None
    if readers := readers_of(run.metrics, run.backends):
        second = SecondReading(folder, readers, options.second, options.seed, options.limits)
    if len(done) >= total and (second is None or second.finished):
        return {}, filled, {}
    folder.drop_outputs()
    prepared = None
    if run.whole:
        with Progress("preparing", shown=options.progress):
            shown = bool(options.progress)
            prepared = await prepare_once(
                run.whole, run.metrics, run.stages, run.backends, options.calls, shown=shown
            )
    backends = list(run.backends.endpoints())
    if options.progress:
        for words in held_back("--samples-at-once", options.samples_at_once, backends):
            tell(words)
    at_once = samples_at_once(options.samples_at_once, SAMPLES, backends)
    async with open_calls(run.backends, options.calls, folder.calls_path) as client:
        if lacking := _lacking(run):
            with Progress("answering", lacking, shown=options.progress) as progress:
                filled = await fill_samples(
                    folder, run.stages, client, at_once * AHEAD, progress.step
                )
        if prepared is None:
            prepared = await prepare(run.metrics, _pool(run), client, folder.path)
        if made := requests_of(prepared):
            folder.write_json("prepared", made)
        with Progress("scoring", total, shown=options.progress) as progress:
            progress.step(len(done))
            await _score(run, client, at_once * len(run.metrics), done, filled, prepared, progress)
        if second:
            await second.read(client, prepared, at_once, options.progress)
        return client.counts(), filled, client.endpoints.all()


async def fill_samples(
    folder: RunFolder,
    stages: Sequence[Stage],
    client: Client,
    at_once: int,
    step: Callable[[], None],
) -> Outcome:
    """Write the results of the stages into the run's samples, all at once.

    A stopped run finds the replies received so far among its calls. A sample that could not be
    filled is not changed, and the next run tries it again.
    """
    outcome = Outcome()
    models = SampleModels(client)
    samples = ((sample, stages, 0) for sample in folder.samples())
    with whole(folder.samples_path) as file:
        async for found in filled(samples, models, at_once, step):
            outcome.note(found)
            file.write(encoded_sample(found.sample))
    return outcome


def _pool(run: _Run) -> StoredPool | None:
    """Return what metrics may look at, if any does: a file of its own, else the run's samples."""
    if not any(metric.pool for metric in run.metrics):
        return None
    own = StoredPool(run.folder.samples_path)
    if run.folder.pool_path.exists():
        return StoredPool(run.folder.pool_path, run.stages, own)
    return own


def _lacking(run: _Run) -> int:
    """Return how many samples a stage would fill."""
    if not run.stages:
        return 0
    if [stage.field for stage in run.stages] == ["response"]:
        return run.intake.inventory.samples - run.intake.inventory.responses
    return sum(any(stage.lacks(one) for stage in run.stages) for one in run.folder.samples())


async def _score(
    run: _Run,
    client: Client,
    at_once: int,
    done: HashSet,
    filled: Outcome,
    prepared: Mapping[str, Prepared],
    progress: Progress,
) -> None:
    """Score every (sample, metric) that is not in ``done``, a bounded number at a time."""
    how = run.options.seed, run.options.limits, run.folder.path
    limiter, writer = TaskLimiter(at_once), run.folder.open_assessments()

    async def assess(metric: Metric, sample: Sample) -> None:
        found, line = await assessed(metric, sample, client, prepared[metric.name].value, *how)
        writer.append(line)
        if found.score is not None and progress.first():
            tell(first_verdict(metric, sample, found, run.intake.inventory.samples))
        progress.step()

    try:
        for number, sample in enumerate(run.folder.samples()):
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)  # lets an interruption through
            for metric in run.metrics:
                if hash64(sample.id, metric.name) in done:
                    continue
                failure = prepared[metric.name].failure or _unfilled(metric, sample, filled)
                if failure:
                    writer.append(encoded(Assessment.failed(sample.id, metric.name, *failure)))
                    progress.step()
                else:
                    await limiter.start(assess(metric, sample))
        await limiter.drain()
    finally:
        await limiter.cancel()
        writer.close()


def _unfilled(metric: Metric, sample: Sample, filled: Outcome) -> Failure | None:
    """Return why a sample that a stage failed to fill cannot be scored, if it cannot."""
    if not filled.failed:
        return None
    if metric.reads_response and (found := filled.failed.get((sample.id, "response"))):
        return found
    found = filled.failed.get((sample.id, "documents"))
    return found if found and metric.problems(sample) else None
