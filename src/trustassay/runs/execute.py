"""Execute one run: samples x metrics x backends, stored in a folder that can be resumed.

1. Check the input, settings and keys, and write ``run.json`` and ``samples.jsonl``.
2. Fill what samples lack: responses, references, pairs of answers, documents.
3. Prepare metrics that look at all samples.
4. Score each sample by each metric; then let the second reader read its part.
5. Sort the assessments and write the summary, the table and the report.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.calls.batching import RequestCounts
from trustassay.calls.client import Client, SampleModels, check_budget, open_calls
from trustassay.calls.endpoints import describe_limited_endpoints, samples_at_once
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import copy_calls
from trustassay.core.event_loop import TaskLimiter, run_in_thread
from trustassay.core.files import open_atomic
from trustassay.core.metric import Assessment, Metric
from trustassay.core.progress import Progress, tell
from trustassay.core.sample import Sample, clean
from trustassay.errors import UsageError
from trustassay.input.reading import paths_of
from trustassay.runs.assess import assess_sample
from trustassay.runs.fill import (
    SAMPLES_PER_CALL,
    FillFailure,
    FillOutcome,
    Stage,
    choose_stages,
    collect_stage_settings,
    fill_in_order,
)
from trustassay.runs.finished import RunOutcome, describe_first_verdict
from trustassay.runs.folder import (
    ABOUT,
    ENDED,
    STARTED,
    RunFolder,
    build_run_settings,
    check_settings,
    describe_metrics,
    to_stored,
    utc_now,
)
from trustassay.runs.growing import StoredSamples, check_append
from trustassay.runs.intake import (
    WHY,
    YIELD_EVERY,
    InputOptions,
    Intake,
    RunOptions,
    ShardMark,
    Source,
    admit_samples,
    take_in,
)
from trustassay.runs.lines import HashSet, encode_assessment, encode_sample, hash64
from trustassay.runs.needs import check_run_keys, resolve_metrics
from trustassay.runs.prepare import (
    POOL,
    PREPARATION,
    Preparation,
    Prepared,
    StoredPool,
    collect_requests,
    compute_key,
    prepare,
    prepare_once,
)
from trustassay.runs.probabilities import check_calibrator
from trustassay.runs.remarks import DRAWN, GROWN
from trustassay.runs.results import write_results
from trustassay.runs.second_reading import (
    SECOND_FILE,
    SecondPass,
    check_second,
    list_second_read_metrics,
)
from trustassay.runs.units import UNIT

DEFAULT_RUN_SAMPLES_AT_ONCE = 256
"""Default number of samples in progress at once."""
UNCHECKED_FIELDS = ("input", "command", WHY, POOL, ABOUT, GROWN, STARTED, ENDED)
"""Fields of a stored run that do not affect its results."""


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
        asyncio.CancelledError: interrupted; all finished assessments are on disk.
    """
    # The monotonic clock measures the duration; the wall clock is what people read in run.json.
    started, began = time.monotonic(), utc_now()
    # Before the folder is made: a budget without known prices is a mistake in the command.
    check_budget(backends, options.calls.prices, options.calls.budget)
    with folder.claim():
        run = await _begin(source, metrics, backends, folder, options, began)
        scored_pairs = folder.read_scored()
        scored_before = len(scored_pairs)
        counts, endpoints = await run.work(scored_pairs)
        # Not if nothing was asked and all outputs exist: then the command was only run again.
        if counts or not folder.is_finished(report=options.report):
            write = partial(write_results, folder, run.metrics, run.intake, options, started)
            # In a thread, so that Ctrl-C is noticed while a large run is summarised.
            await run_in_thread(write)
    seconds = time.monotonic() - started
    return RunOutcome(
        run.metrics, run.intake, scored_before, counts, run.filled, endpoints, seconds
    )


async def _begin(
    source: Source,
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder,
    options: RunOptions,
    began: str,
) -> "_CheckedRun":
    """Check the input and write ``run.json``, or check that the folder holds this run.

    Args:
        began: when the command began, as reading a large input is a part of the run.
    """
    # Step 1: is there a run in this folder, and if not, is the folder free?
    stored_run = folder.read_run()
    if stored_run is None:
        folder.check_empty()
    stages = choose_stages(metrics, backends, options.filling)
    # A name with a dot: if this process is killed, the folder still counts as empty.
    part_path = folder.path / ".samples.jsonl.part"
    stored_samples = None
    if options.append:
        check_append(metrics, second=bool(list_second_read_metrics(metrics, backends)))
        stored_samples = StoredSamples(folder, stages) if stored_run else None
    # Step 2: read the whole input and refuse all that can be refused before anything is asked.
    intake = await admit_samples(
        source, part_path, metrics, backends, stages, options, *filter(None, [stored_samples])
    )
    try:
        # Step 3: settle what depends on the samples: shard, second reader, keys, ``auto`` options.
        with part_path.open("rb") as file:
            shard = ShardMark.take(json.loads(file.readline()))
        check_second(metrics, backends, options.second, shard=shard is not None)
        # A key is only needed if a reply is missing, or if a metric asks the model itself.
        missing = intake.inventory.samples - intake.inventory.responses
        check_run_keys(metrics, backends, options.stores(folder), missing)
        backend_names = backends.names()
        resolved_metrics = resolve_metrics(metrics, intake.inventory, backend_names)
        run = _CheckedRun(resolved_metrics, stages, backends, folder, options, intake)
        # Step 4: collect the settings that decide about the results, as they will be read back.
        pool_settings = await run.take_in_pool(shard)
        settings = to_stored(
            {
                **build_run_settings(
                    resolved_metrics,
                    backend_names,
                    options.seed,
                    **run.stage_settings(),
                    **pool_settings,
                ),
                **({UNIT: options.unit} if options.unit else {}),
                **(
                    {SECOND_FILE: options.second.settings()}
                    if list_second_read_metrics(resolved_metrics, backends)
                    else {}
                ),
                **({DRAWN: drawn} if (drawn := intake.drawn or options.drawn) else {}),
                # With these two a changed input is noticed when the run is continued.
                "skipped": intake.faulty,
                "samples": intake.describe_samples(),
            }
        )
        # A calibrator of other settings is refused now, and not after the calls are paid for.
        if options.calibrator:
            compared = settings["metrics"], settings["backends"]
            check_calibrator(options.calibrator, *compared, str(folder.path))
        # Step 5: write run.json for a new run, or compare it with the stored one.
        if stored_run is None:
            # Samples that are not read from files are named by the object that yields them.
            source_name = str(getattr(source, "name", "samples in memory"))
            input_name = clean(", ".join(paths_of(source) or [source_name]))
            command_fields = {"command": options.command, WHY: options.why}
            texts = {key: clean(text) for key, text in command_fields.items() if text}
            pool_field = run.pool_field()
            opening_fields = {"input": input_name, **texts, STARTED: began, **pool_field}
            content = {**opening_fields, **settings, ABOUT: describe_metrics(resolved_metrics)}
            folder.write_json("run", content)
        else:
            # Fields such as the command may differ between the first start and a continuation.
            current = {
                key: stored_run[key] for key in UNCHECKED_FIELDS if key in stored_run
            } | settings
            if stored_samples:
                stored_samples.grow(stored_run, current, part_path)
            else:
                check_settings(folder.path, stored_run, current)
        # Only into a run without calls: a continued run has its own, which may be newer.
        if options.calls_from and options.calls_from.exists() and not folder.calls_path.exists():
            copy_calls(options.calls_from, folder.calls_path)
        # Step 6: the samples move into place last, since stages may have filled the stored ones
        # already.
        if folder.samples_path.exists():
            part_path.unlink(missing_ok=True)
            folder.check_samples(intake.inventory.samples)
        else:
            part_path.replace(folder.samples_path)
    except BaseException:
        part_path.unlink(missing_ok=True)
        raise
    return run


@dataclass
class _CheckedRun:
    """A run whose input is checked, and what this process does for it."""

    metrics: Sequence[Metric]
    """The metrics, with their ``auto`` options settled."""
    stages: Sequence[Stage]
    """The stages that fill samples before they are scored."""
    backends: Backends
    folder: RunFolder
    options: RunOptions
    intake: Intake
    """The result of the first pass over the input."""
    shared_preparation: Preparation | None = None
    """The preparation that all shards share, if the run scores a shard and a metric needs it."""
    filled: FillOutcome = field(default_factory=FillOutcome)
    """What stages filled in this process."""

    async def take_in_pool(self, mark: ShardMark | None) -> dict[str, Any]:
        """Store the pool that metrics compare samples with; return its settings for ``run.json``.

        The pool is written into the folder. For a shard it is the file of all samples, by which all
        shards are prepared together.

        Args:
            mark: of the first sample, if the input is a shard.

        Raises:
            ValueError: samples of the shard were left out, which the pool holds.
        """
        options = self.options
        if options.pool is None or not any(metric.pool for metric in self.metrics):
            return {}
        if mark is None:
            part = self.folder.path / ".pool.jsonl.part"
            reading = InputOptions(fields=options.fields, progress=options.progress)
            result = await take_in(options.pool, part, reading, what="the pool")
            part.replace(self.folder.pool_path)
            return {"pool": {"sha256": result.sha256, "samples": result.inventory.samples}}
        # The pool has the faulty samples too, so a shard without them would be compared with more.
        if self.intake.faulty:
            raise UsageError(
                f"{self.intake.faulty:,} samples of this shard cannot be scored, and others would "
                "be compared with them; remove them from the input, and divide it again"
            )
        # The same samples, settings and models give the same key, so that shards share one
        # preparation.
        key = compute_key(mark.of, self.metrics, self.stages, self.backends)
        self.shared_preparation = Preparation(Path(options.pool), key)
        return {PREPARATION: key}

    def pool_field(self) -> dict[str, str]:
        """Return the field of ``run.json`` with the file of all samples, if the run is a shard."""
        preparation = self.shared_preparation
        return {POOL: os.fspath(preparation.pool)} if preparation else {}

    def stage_settings(self) -> dict[str, Any]:
        """Return the settings of the stages that fill missing fields."""
        settings = collect_stage_settings(self.stages)
        # Nothing is to be answered, so how it would be answered is no setting of this run.
        if self.intake.inventory.responses == self.intake.inventory.samples:
            settings.pop("response", None)
        result = {"answering": settings.pop("response")} if "response" in settings else {}
        return {**result, "filling": settings} if settings else result

    async def work(
        self, scored_pairs: HashSet
    ) -> tuple[Mapping[str, RequestCounts], Mapping[str, Endpoint]]:
        """Fill and score what is not scored yet.

        Args:
            scored_pairs: hashes of the (id, metric) pairs that are scored.

        Returns:
            Counts of calls by capability, and endpoints by address; empty if all was scored.
        """
        total = self.intake.inventory.samples * len(self.metrics)
        folder, options = self.folder, self.options
        second_pass = None
        if readers := list_second_read_metrics(self.metrics, self.backends):
            second_pass = SecondPass(folder, readers, options)
        if len(scored_pairs) >= total and (second_pass is None or second_pass.finished):
            return {}, {}
        # The summary says that a run is finished: it goes before the first new assessment is
        # written.
        folder.drop_outputs()
        # A shard: all shards share one preparation, and wait here for the process that makes it.
        prepared = None
        if self.shared_preparation:
            with Progress("preparing", visible=options.progress):
                prepared = await prepare_once(
                    self.shared_preparation,
                    self.metrics,
                    self.stages,
                    self.backends,
                    options.calls,
                    show_progress=bool(options.progress),
                )
        backends = list(self.backends.endpoints())
        if options.progress:
            for message in describe_limited_endpoints(
                "--samples-at-once", options.samples_at_once, backends
            ):
                tell(message)
        # How many samples are in progress: asked by the user, else as many as the endpoints can
        # take.
        samples_in_progress = samples_at_once(
            options.samples_at_once, DEFAULT_RUN_SAMPLES_AT_ONCE, backends
        )
        async with open_calls(self.backends, options.calls, folder.calls_path) as client:
            # Fill before preparing: metrics that look at all samples want them complete.
            if samples_to_fill := self.count_lacking():
                with Progress("answering", samples_to_fill, visible=options.progress) as progress:
                    self.filled = await fill_samples(
                        folder,
                        self.stages,
                        client,
                        samples_in_progress * SAMPLES_PER_CALL,
                        progress.step,
                    )
            if prepared is None:
                prepared = await prepare(self.metrics, self.pool(), client, folder.path)
            # Requests of the preparation belong to no sample; the summary reads them from this
            # file.
            if preparation_requests := collect_requests(prepared):
                folder.write_json("prepared", preparation_requests)
            with Progress("scoring", total, visible=options.progress) as progress:
                # What an earlier process scored counts as done in the progress.
                progress.step(len(scored_pairs))
                await self.score(
                    client,
                    samples_in_progress * len(self.metrics),
                    scored_pairs,
                    prepared,
                    progress,
                )
            # After all first verdicts: what the second reader reads depends on all of them.
            if second_pass:
                await second_pass.read(client, prepared, samples_in_progress)
            return client.counts(), client.endpoints.all()

    def pool(self) -> StoredPool | None:
        """Open the samples that metrics compare with: those of ``--pool``, else the run's own.

        ``None`` if no metric looks at other samples.
        """
        if not any(metric.pool for metric in self.metrics):
            return None
        run_samples = StoredPool(self.folder.samples_path)
        if self.folder.pool_path.exists():
            return StoredPool(self.folder.pool_path, self.stages, run_samples)
        return run_samples

    def count_lacking(self) -> int:
        """Count the samples that a stage would fill."""
        # The common case is known from the first pass, without reading all samples again.
        if [stage.field for stage in self.stages] == ["response"]:
            return self.intake.inventory.samples - self.intake.inventory.responses
        samples = self.folder.samples() if self.stages else ()
        return sum(any(stage.lacks(sample) for stage in self.stages) for sample in samples)

    async def score(
        self,
        client: Client,
        at_once: int,
        scored_pairs: HashSet,
        prepared: Mapping[str, Prepared],
        progress: Progress,
    ) -> None:
        """Score every pair that is not in ``scored_pairs``, a bounded number at a time."""
        folder, total = self.folder, self.intake.inventory.samples
        writer = folder.open_assessments()

        async def assess(metric: Metric, sample: Sample) -> None:
            value = prepared[metric.name].value
            result, line = await assess_sample(
                metric, sample, client, self.options, folder.path, value
            )
            writer.append(line)
            # The first verdict appears while the rest is scored: a wrong setting is noticed early.
            if result.score is not None and progress.is_first_call():
                tell(describe_first_verdict(metric, sample, result, total))
            progress.step()

        with closing(writer):
            async with TaskLimiter(at_once) as limiter:
                for number, sample in enumerate(folder.samples()):
                    if number % YIELD_EVERY == 0:
                        await asyncio.sleep(0)  # lets an interruption through
                    for metric in self.metrics:
                        if hash64(sample.id, metric.name) in scored_pairs:
                            continue
                        # A failed preparation or filling fails the sample without a call.
                        failure = prepared[metric.name].failure or self.find_fill_failure(
                            metric, sample
                        )
                        if failure:
                            failed_assessment = Assessment.for_failure(
                                sample.id, metric.name, *failure
                            )
                            writer.append(encode_assessment(failed_assessment))
                            progress.step()
                        else:
                            await limiter.start(assess(metric, sample))

    def find_fill_failure(self, metric: Metric, sample: Sample) -> FillFailure | None:
        """Return why a sample cannot be scored if a stage failed to fill it; else ``None``."""
        failures = self.filled.failed
        if not failures:
            return None
        if metric.reads_response and (result := failures.get((sample.id, "response"))):
            return result
        # Without retrieved passages a sample may still be scored, by a metric that does not need
        # them.
        result = failures.get((sample.id, "documents"))
        return result if result and metric.problems(sample) else None


async def fill_samples(
    folder: RunFolder,
    stages: Sequence[Stage],
    client: Client,
    at_once: int,
    step: Callable[[], None],
) -> FillOutcome:
    """Fill the run's samples and replace their file when all are filled.

    If the run is stopped before, the replies received so far are stored among its calls. A sample
    that could not be filled stays as it was; the next run tries it again.
    """
    outcome = FillOutcome()
    models = SampleModels(client)
    samples = ((sample, stages, 0) for sample in folder.samples())
    with open_atomic(folder.samples_path) as file:
        async for result in fill_in_order(samples, models, at_once, step):
            outcome.note(result)
            file.write(encode_sample(result.sample))
    return outcome
