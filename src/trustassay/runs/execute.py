"""Execute one run: samples x metrics x backends, stored in a folder that can be resumed.

1. Check the input, settings and keys, and write ``run.json`` and ``samples.jsonl``.
2. Fill what samples lack: responses, references, pairs of answers, documents.
3. Prepare metrics that look at all samples.
4. Score each sample by each metric (:func:`assess_sample`).
5. Let the second reader read its part (:class:`SecondPass`).
6. Sort the assessments and write the summary, the table and the report.
"""

import asyncio
import dataclasses
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from trustassay.calls.backends import Backends
from trustassay.calls.batching import RequestCounts
from trustassay.calls.capability import capability
from trustassay.calls.client import Client, SampleModels, check_budget, open_calls
from trustassay.calls.endpoints import describe_limited_endpoints, samples_at_once
from trustassay.calls.retry import Endpoint
from trustassay.calls.store import copy_calls
from trustassay.core.asked import Asked, count_failures_once
from trustassay.core.capabilities import Models
from trustassay.core.event_loop import TaskLimiter, run_in_thread
from trustassay.core.fair_queue import run_in_turn
from trustassay.core.files import DiskFullError, open_atomic
from trustassay.core.metric import Assessment, Context, Metric, MetricInfo, compute_badness
from trustassay.core.progress import Progress, tell
from trustassay.core.prompts import PromptError
from trustassay.core.sample import Sample, clean, is_blank
from trustassay.core.tracebacks import describe_error, write_failure
from trustassay.errors import AssessmentError, BackendError, UsageError
from trustassay.input.reading import paths_of
from trustassay.judging.second_reader import (
    PART_READ_BY_SECOND,
    REASON_READ_ALONE,
    REASON_UNMEASURED,
    ROLE,
    SecondReader,
)
from trustassay.report.review import problem_of
from trustassay.runs.answering_models import check_model, settle_models
from trustassay.runs.calibrator import check_calibrator
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
from trustassay.runs.remarks import DRAWN, GROWN
from trustassay.runs.results import write_results
from trustassay.runs.second_reading import (
    OTHER_LANGUAGE_KEY,
    SECOND_FILE,
    TIMED_AT_ONCE,
    FirstFinding,
    check_second,
    choose_answers,
    list_second_read_metrics,
)
from trustassay.runs.units import UNIT, read_units
from trustassay.text.language import OTHER_LANGUAGE, detect_language
from trustassay.text.numbers import amount

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
        backends = settle_models(
            backends, intake.census, is_shard=shard is not None, is_drawn=options.is_part
        )
        check_second(metrics, backends, options.second, shard=shard is not None)
        # A key is only needed if a reply is missing, or if a metric asks the model itself.
        check_run_keys(metrics, backends, options.stores(folder), intake.inventory.unanswered)
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
                f"{amount(self.intake.faulty, 'sample')} of this shard cannot be scored, but other "
                "samples are compared with them; remove them from the input and shard it again"
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
                progress.resume(len(scored_pairs))
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
            return self.intake.inventory.unanswered
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
            is_shown = self.options.first_verdict and result.score is not None
            if is_shown and progress.is_first_call():
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
        # Without another field, such as passages, a sample may still be scored by a metric that
        # does not need it, or that says itself who did not answer.
        results = (failures.get((sample.id, name)) for name in ("documents", *metric.fills))
        result = next(filter(None, results), None)
        return result if result and (metric.rejects(sample) or metric.problems(sample)) else None


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
            file.write(encode_sample(result.stored_sample))
    return outcome


class SecondPass:
    """The second pass over the answers of a run."""

    def __init__(self, folder: RunFolder, metrics: Sequence[Metric], options: RunOptions) -> None:
        self._folder, self._metrics, self._options = folder, metrics, options

    @property
    def finished(self) -> bool:
        """Whether all chosen answers were read."""
        return bool((self._folder.read_json(SECOND_FILE) or {}).get("finished"))

    async def read(self, client: Client, prepared: Mapping[str, Prepared], at_once: int) -> None:
        """Let the second reader read the chosen answers that it has not read yet.

        An answer that it fails to read keeps the first assessment; the next start of the run tries
        it again.
        """
        run, options = self._folder.read_run() or {}, self._options
        stored_content = self._folder.read_json(SECOND_FILE) or {}
        began, spent = time.monotonic(), float(stored_content.get("seconds", 0.0))
        units = read_units(self._folder, run.get(UNIT))
        pool = StoredPool(self._folder.samples_path)
        content: dict[str, Any] = {"metrics": {}, "finished": False, "seconds": spent}
        content[OTHER_LANGUAGE_KEY] = {}
        todo: list[tuple[Metric, int]] = []
        for metric in self._metrics:
            # Findings of an earlier process stay: an answer that was read since has lost its first
            # assessment.
            known_rows = stored_content.get("metrics", {}).get(metric.name, ())
            rows, read_places, other_places = self._read_first_findings(metric, known_rows, pool)
            content["metrics"][metric.name] = [list(row) for row in rows]
            content[OTHER_LANGUAGE_KEY][metric.name] = n = len(other_places)
            choice = choose_answers(rows, len(pool), units, options.second, metric, options.seed, n)
            read_alone = other_places[: options.second.max_answers(n, len(rows))]
            # The random part first: an exhausted budget must not shorten it.
            places = (*choice.drawn, *read_alone, *choice.by_worth)
            todo += [(metric, place) for place in dict.fromkeys(places) if place not in read_places]
        self._folder.write_json(SECOND_FILE, content, indent=None)
        failures = await self._read_all(client, prepared, pool, todo, at_once, spent)
        if failures:
            answers_text = amount(len(failures), "answer")
            tell(
                f"the second reader failed on {answers_text}; the first error: {failures[0].error}"
            )
        content["failed"] = Counter(failure.metric for failure in failures)
        asked_by_sample: dict[str, list[Asked]] = {}
        for failure in failures:
            asked_by_sample.setdefault(failure.id, []).append(failure.asked)
        content["asked"] = [*asked_by_sample.values()]
        content["seconds"] = round(spent + time.monotonic() - began, 1)
        content["finished"] = not failures
        self._folder.write_json(SECOND_FILE, content, indent=None)

    def _read_first_findings(
        self, metric: Metric, known_rows: Iterable[Sequence[Any]], pool: StoredPool
    ) -> tuple[list[FirstFinding], set[int], list[int]]:
        """Read the findings of the first reader from the assessments.

        Args:
            known_rows: findings of an earlier process, as they are stored.

        Returns:
            The findings for each answer with a score, the places of answers that the second reader
            has read, and the places of answers in languages that the first one does not read.
        """
        rows = {int(row[0]): FirstFinding(*row) for row in known_rows}
        info, read_places, other_places = MetricInfo.of(metric), set[int](), set[int]()
        for assessment in self._folder.assessments(metric.name):
            place = pool.index(assessment.id)
            assert place is not None
            # The second one read an answer of which there is no first finding: the first could not
            # read it.
            if OTHER_LANGUAGE in assessment.parts or (
                PART_READ_BY_SECOND in assessment.parts and place not in rows
            ):
                other_places.add(place)
            if PART_READ_BY_SECOND in assessment.parts:
                read_places.add(place)
            elif (bad := compute_badness(info, assessment)) is not None:
                flagged = problem_of(metric, assessment) is not None
                rows[place] = FirstFinding(place, flagged, metric.in_doubt(assessment), bad)
        return [rows[place] for place in sorted(rows)], read_places, sorted(other_places)

    async def _read_all(
        self,
        client: Client,
        prepared: Mapping[str, Prepared],
        pool: StoredPool,
        todo: Sequence[tuple[Metric, int]],
        at_once: int,
        spent: float,
    ) -> list[Assessment]:
        """Let the second reader read answers.

        Args:
            todo: metrics and places, in reading order.
            spent: seconds that earlier processes have used of the budget.

        Returns:
            The failed assessments of answers that could not be read.
        """
        failures: list[Assessment] = []
        began, options = time.monotonic(), self._options
        most = options.second.seconds
        writer = self._folder.open_assessments()
        reader = SecondReader(options.second.second_alone)

        async def assess(metric: Metric, place: int) -> None:
            prepared_value, path = prepared[metric.name].value, self._folder.path
            result, line = await assess_sample(
                metric, pool[place], client, options, path, prepared_value, reader
            )
            if result.error is None:
                writer.append(line)
            else:
                failures.append(result)
            progress.step()

        show_progress = options.progress
        with (
            closing(writer),
            Progress("second reading", len(todo), visible=show_progress) as progress,
        ):
            async with TaskLimiter(at_once if most is None else TIMED_AT_ONCE) as limiter:
                for metric, place in todo:
                    # Checked before each start: answers in progress are finished.
                    if most is not None and spent + time.monotonic() - began >= most:
                        break
                    await limiter.start(assess(metric, place))
        return failures


async def assess_sample(
    metric: Metric,
    sample: Sample,
    client: Client,
    options: RunOptions,
    folder: Path | None = None,
    prepared: Any = None,
    second: SecondReader | None = None,
) -> tuple[Assessment, bytes]:
    """Assess one sample; return the assessment, which may be a failure, and its line.

    1. Refuse a sample that is too long, or in a language that the metric's models do not read.
    2. Let the metric assess it.
    3. Check the assessment against the contract: identity, finite numbers, score range, texts.

    A failure counts no calls, since how many were made before it depends on concurrent work.

    Args:
        folder: the run's; it gets the traceback of an error that the metric does not report itself.
        prepared: what the metric prepared for the run.
        second: the second reader, if it is to read the answer. Where the first reader does not read
            the answer's language, the second one reads instead of it.
    """
    models, limits = SampleModels(client, model=sample.model), options.limits
    try:
        limits.check(sample)
        # Before other models are asked, such as one that makes distractors, and paid for nothing.
        check_model(metric, sample, client.backends)
        unread = await run_in_turn(
            partial(assess_other_language, metric, sample, cast(Models, models)),
            len(sample.response or "") + MAX_PASSAGE_CHARACTERS,
        )
        # The first reader cannot read the answer: the second one takes its place for all claims.
        if second_reads_alone := second is not None and unread is not None:
            models, second = SampleModels(client, ROLE, sample.model), None
            # The second reader may not read the language either.
            unread = assess_other_language(metric, sample, cast(Models, models))
        context = Context(sample, cast(Models, models), prepared, options.seed, limits, second)
        # An assessment without a score ("not assessable") stands in for the metric's own.
        result = unread or await metric.assess(context)
        _check_assessment(result, sample, metric)
        if second_reads_alone and not unread:
            result = _read_alone(result, measured=bool(models.languages("entail")))
        result = dataclasses.replace(result, **models.count_requests())
        return result, encode_assessment(result)
    except (AssessmentError, BackendError, PromptError) as error:
        # Errors of this kind are made for users: their text is the message, without a traceback.
        message, fault = str(error), getattr(error, "kind", None)
    except (Exception, asyncio.CancelledError) as error:
        # A metric may raise anything, also CancelledError from a task of its own. Only a
        # cancellation of this task, or a full disk, ends the run.
        task = asyncio.current_task()
        if (task and task.cancelling()) or isinstance(error, DiskFullError):
            raise  # replies to further requests could not be stored
        if folder:
            write_failure(folder, metric.name, error)
        message, fault = f"{metric.name} failed: {describe_error(error)}", None
    asked = count_failures_once(models.asked)
    failure = Assessment.for_failure(sample.id, metric.name, message, fault, asked)
    return failure, encode_assessment(failure)


async def assess_with_both(
    metric: Metric, sample: Sample, client: Client, options: RunOptions, folder: Path | None = None
) -> tuple[Assessment, bytes]:
    """Assess one sample of a run that has no second pass, such as a server's.

    The second reader, if there is one, reads the answer if it needs a look or nearly does. If that
    fails, the assessment of the first reader stays.
    """
    result, line = await assess_sample(metric, sample, client, options, folder)
    if not list_second_read_metrics([metric], client.backends) or result.error is not None:
        return result, line
    # An answer that the first reader cannot read always goes to the second one.
    is_other_language = OTHER_LANGUAGE in result.parts
    if not is_other_language and problem_of(metric, result) is None and not metric.in_doubt(result):
        return result, line
    reader = SecondReader(options.second.second_alone)
    second_result, second_line = await assess_sample(
        metric, sample, client, options, folder, None, reader
    )
    return (result, line) if second_result.error is not None else (second_result, second_line)


def _read_alone(result: Assessment, *, measured: bool) -> Assessment:
    """Add to an assessment that the second reader made it without the first.

    Args:
        measured: whether the quality of the second reader is measured in other languages.
    """
    parts = {**result.parts, PART_READ_BY_SECOND: result.parts.get("statements", 1.0)}
    # Readers of the report must know that the usual reader did not judge this answer.
    remarks = (result.reason, REASON_READ_ALONE, "" if measured else REASON_UNMEASURED)
    reason = "; ".join(filter(None, remarks))
    return dataclasses.replace(result, parts=parts, reason=reason)


def _check_assessment(result: Any, sample: Sample, metric: Metric) -> None:
    """Raise AssessmentError for a result that breaks the contract of a metric.

    Called before the result is stored, so that it reaches neither the summary nor the files.
    """
    name = metric.name
    if not isinstance(result, Assessment):
        raise AssessmentError(f"{name}: expected an Assessment, got {result!r:.60}")
    # The summary finds assessments by id and metric: another identity would replace another result.
    if (result.id, result.metric) != (sample.id, name):
        raise AssessmentError(
            f"{name}: returned an assessment of {result.id!r} by {result.metric!r}, expected one "
            f"of {sample.id!r} by {name!r}"
        )
    numbers = (
        dict(result.parts) if result.score is None else {**result.parts, "score": result.score}
    )
    for part, number in numbers.items():
        # NaN and infinity are not JSON, and would spread through every mean.
        if not isinstance(number, int | float) or not math.isfinite(number):
            label = "score" if part == "score" else f"part {part!r}"
            raise AssessmentError(f"{name}: {label} must be a finite number, got {number!r:.60}")
    low, high = metric.score_range
    if result.score is not None and not low <= result.score <= high:
        raise AssessmentError(
            f"{name}: the score must lie between {low:g} and {high:g}, got {result.score}"
        )
    for text_field in ("verdict", "reason", "error"):
        value = getattr(result, text_field)
        if not isinstance(value, str | None):
            raise AssessmentError(f"{name}: {text_field} must be text, got {value!r:.60}")


MAX_LANGUAGE_PASSAGES = 3
"""Passages that are used to detect the language where the answer is too short to tell it."""
MAX_PASSAGE_CHARACTERS = 200
"""Characters of each of these passages."""


def assess_other_language(metric: Metric, sample: Sample, models: Models) -> Assessment | None:
    """Return an assessment without a score if a model of the metric does not read the language.

    ``None`` if all models read it, or if the language is not known.
    """
    for need in metric.needs():
        # Only models without a role are checked: those with one are chat models, or the second
        # reader, which takes over where the first does not read the language.
        message = (
            None
            if need.role or need.only_with
            else describe_unread_language(need.capability, sample, models)
        )
        if message:
            reason, parts = f"not assessable: {message}", {OTHER_LANGUAGE: 1.0}
            return Assessment(sample.id, metric.name, None, reason=reason, parts=parts)
    return None


def describe_unread_language(kind: str, sample: Sample, models: Models) -> str | None:
    """Return a message if the backend of a capability does not read the language of an answer.

    ``None`` if it reads the language, if that is not known, or if the answer is blank.
    """
    response, reads = sample.response, models.languages(kind)
    # A backend that lists no languages reads any. A blank answer is in no language.
    if not reads or (response is not None and is_blank(response)):
        return None
    documents = (sample.documents or ())[:MAX_LANGUAGE_PASSAGES]
    passages = (document.text[:MAX_PASSAGE_CHARACTERS] for document in documents)
    language = detect_language(response or "", (sample.question, *passages))
    # ``None``: the text does not tell its language; it is then assessed like any other.
    if language in (*reads, None):
        return None
    backend_kind = capability(kind)
    return (
        f"the answer is in another language ({language}) than the {backend_kind.backend} reads "
        f"({', '.join(reads)}); give another {backend_kind.option}"
    )
