"""A resident scorer: loads models once, and scores the samples of many callers together.

:func:`open_scorer` opens a :class:`Scorer` in an event loop; a :class:`ThreadScorer` runs one in a
thread of its own, for callers without an event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from trustassay.calls.backends import MODEL_ROLE, BackendKey, Backends, is_remote
from trustassay.calls.capability import DECIDE, capability
from trustassay.calls.client import Client, build_cache_path, check_budget, open_calls
from trustassay.calls.endpoints import samples_at_once
from trustassay.core.decisions import DecisionAnswer, DecisionQuestion
from trustassay.core.event_loop import gather_all
from trustassay.core.fair_queue import CURRENT_FLOW, Flow
from trustassay.core.files import DiskFullError
from trustassay.core.metric import Assessment, Inventory, Metric
from trustassay.core.progress import tell
from trustassay.core.sample import Document, Problem, Sample, SampleError
from trustassay.errors import BackendError, ModelNotGivenError, UsageError, install_command
from trustassay.input.reading import LocatedSample, read_samples
from trustassay.input.records import FieldNames, InputError, InputFault
from trustassay.runs.answering_models import ArrivingBackends, check_model
from trustassay.runs.execute import (
    DEFAULT_RUN_SAMPLES_AT_ONCE,
    assess_sample,
    assess_with_both,
)
from trustassay.runs.folder import RunFolder
from trustassay.runs.growing import GrowingRun
from trustassay.runs.intake import RunOptions, remove_outcomes
from trustassay.runs.needs import check_run_keys, check_served, resolve_metrics

if TYPE_CHECKING:
    from opentelemetry.context import Context

EventsChoice = bool | Literal["explanations"]

EVALUATION_EVENT = "gen_ai.evaluation.result"
TRACEPARENT_FIELD = "traceparent"
"""Field of a record: the span that wrote the response, as W3C Trace Context spells it."""
RESPONSE_ID_FIELDS = ("gen_ai.response.id", "response_id")
"""Fields of a record that may hold the id that the provider gave the response."""
MAX_RESPONSE_ID_CHARS = 256
SERVED_ROLE = "served"
"""The role of the decision model that no metric asks."""
UNKNOWN_ERROR_TYPE = "_OTHER"
"""The value of ``error.type`` that the conventions define for errors of no known kind."""


class EvaluationEvents:
    """Sends an OpenTelemetry event for each assessment; a failing provider never costs a score.

    The event ``gen_ai.evaluation.result`` has the attributes of OpenTelemetry's semantic
    conventions for generative AI (status: development). It goes to the logger provider that the
    user configured; no provider or exporter is created here.
    """

    def __init__(self, *, explanations: bool = False) -> None:
        """Use the provider that is configured now.

        Args:
            explanations: also send the reason of each score, which may quote the question, the
                response and the documents.

        Raises:
            BackendError: there is no provider.
        """
        try:
            from opentelemetry import _logs
            from opentelemetry.sdk import _logs as _  # noqa: F401 - the API alone sends nothing
        except ImportError:
            raise BackendError(
                f"OpenTelemetry events need its SDK: {install_command('opentelemetry')}"
            ) from None
        provider = _logs.get_logger_provider()
        # The API's own default providers drop every event.
        if type(provider).__module__.startswith("opentelemetry._logs"):
            raise BackendError(
                "no OpenTelemetry logger provider is configured, so events would be lost; call "
                "opentelemetry._logs.set_logger_provider first, or start the program with "
                "opentelemetry-instrument"
            )
        self._logger = provider.get_logger("trustassay", version("trustassay"))
        self._explanations = explanations
        self._has_failed = False

    @classmethod
    def of(cls, choice: EventsChoice) -> EvaluationEvents | None:
        """Build the sender that an option asks for; ``None`` for ``False``.

        Raises:
            UsageError: the option has another value.
            BackendError: there is no provider.
        """
        if choice not in (True, False, "explanations"):
            message = f"opentelemetry: expected True, False or 'explanations', got {choice!r:.60}"
            raise UsageError(message)
        return cls(explanations=choice == "explanations") if choice else None

    def send(self, sample: Sample, assessment: Assessment) -> None:
        """Send one assessment, as a child of the span in the field ``traceparent``, if there is
        one."""
        try:
            self._logger.emit(
                event_name=EVALUATION_EVENT,
                timestamp=time.time_ns(),
                context=_parent_context(sample),
                attributes=build_event_attributes(
                    sample, assessment, explanations=self._explanations
                ),
            )
        except Exception as error:
            # Only the type is reported, once: the message may contain a key of an exporter.
            if not self._has_failed:
                self._has_failed = True
                tell(f"OpenTelemetry does not accept events: {type(error).__name__}")


def build_event_attributes(
    sample: Sample, assessment: Assessment, *, explanations: bool = False
) -> dict[str, Any]:
    """Build the attributes of an event: those of the conventions, and the sample's id.

    With ``explanations`` the reason is included, which may quote the sample.
    """
    explanation = assessment.error or assessment.reason if explanations else None
    ids = [sample.metadata.get(name) for name in RESPONSE_ID_FIELDS]
    ids = [
        identifier
        for identifier in ids
        if isinstance(identifier, str) and 0 < len(identifier) <= MAX_RESPONSE_ID_CHARS
    ]
    attributes = {
        "gen_ai.evaluation.name": assessment.metric,
        "gen_ai.evaluation.score.value": None
        if assessment.score is None
        else float(assessment.score),
        "gen_ai.evaluation.score.label": assessment.verdict,
        "gen_ai.evaluation.explanation": explanation or None,
        "gen_ai.response.id": ids[0] if ids else None,
        "error.type": None if assessment.error is None else assessment.fault or UNKNOWN_ERROR_TYPE,
        "trustassay.sample.id": sample.id,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _parent_context(sample: Sample) -> Context | None:
    """Return the context of the span that wrote the response, if the sample names it."""
    traceparent = sample.metadata.get(TRACEPARENT_FIELD)
    # Samples come from anywhere, so the field may hold anything.
    if not isinstance(traceparent, str):
        return None
    from opentelemetry.context import get_current
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({TRACEPARENT_FIELD: traceparent}, get_current())


RETRY_ENDPOINT_AFTER_S = 30.0
"""Seconds after which a failed endpoint is tried again: a scorer runs for days and, unlike a run,
is not started again."""
ABANDON_WITHIN_S = 1.0
"""Seconds that samples which are given up have to clean up."""
EXAMPLE = Sample(
    id="example",
    question="When was the bridge opened?",
    response="The stone bridge was opened in 1911. It is made of steel [1].",
    documents=(Document("1", "The stone bridge over the river was opened in 1911."),),
)
"""The sample of :meth:`Scorer.warm_up`."""


class ScorerClosedError(RuntimeError):
    """The scorer is closed or closing; the sample was not accepted."""


@dataclass(frozen=True, slots=True)
class Assay:
    """A sample with the assessment of each metric: ``assay["faithfulness"].score``."""

    sample: Sample
    assessments: Mapping[str, Assessment]
    """The assessments, by the name of the metric."""

    def __getitem__(self, metric: str) -> Assessment:
        return self.assessments[metric]

    @property
    def errors(self) -> dict[str, str]:
        """The errors of the metrics that failed, by name."""
        return {
            name: assessment.error
            for name, assessment in self.assessments.items()
            if assessment.error is not None
        }


@asynccontextmanager
async def open_scorer(
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder | None,
    options: RunOptions,
    events: EvaluationEvents | None = None,
    decisions: Any = None,
) -> AsyncIterator[Scorer]:
    """Open a scorer; at the end of the block it finishes the samples that it accepted.

    With a folder, all samples and assessments are added to the run in it, and the results are
    written at the end. Samples that an earlier process accepted there but did not score are scored
    as well. With ``events`` each assessment is sent as an event. ``decisions`` is the decision
    model that :meth:`Scorer.decide` asks, a URI or an object.

    Raises:
        UsageError: a metric looks at all samples together.
        BackendError: a key is needed and not set.
        RunFolderError: the folder holds another run, or another process works in it.
        OSError: at the end, if the results cannot be written.
    """
    for metric in metrics:
        if metric.pool:
            raise UsageError(
                f"{metric.name}: compares all samples, so it cannot score them one by one; use "
                "score(samples, ...)"
            )
    backends = called = ArrivingBackends(backends.by_key)
    if decisions is not None:
        # The run does not name it, but one budget and one limit hold for all calls.
        own_key = BackendKey(DECIDE.name, SERVED_ROLE)
        called = ArrivingBackends({**backends.by_key, own_key: DECIDE.load(decisions)})
    check_budget(called, options.calls.prices, options.calls.budget)
    calls_path = None if folder is None else folder.calls_path
    # missing=1: later samples may lack a response, so the keys for asking a model are needed now.
    check_run_keys(metrics, called, [calls_path, build_cache_path(options.calls.cache)], missing=1)
    run = None if folder is None else GrowingRun(folder, metrics, backends, options)
    # A resident scorer outlives outages of its endpoints.
    calls = dataclasses.replace(options.calls, again_after_s=RETRY_ENDPOINT_AFTER_S)
    with ExitStack() as stack:
        # Opening the run locks its folder, and returns the samples that an earlier process left.
        waiting = stack.enter_context(run.claim()) if run else []
        async with open_calls(called, calls, calls_path) as client:
            scorer = Scorer(metrics, backends, client, run, options, events)
            # Started first, so that samples of an earlier process come before new ones.
            scorer.resume(waiting)
            try:
                yield scorer
            finally:
                # Also after an error in the block: accepted samples are never dropped silently.
                await scorer.close()
        if run:
            await run.finish()


def read_record(
    record: Any,
    fields: FieldNames,
    expected: str = "one answer",
    *,
    unanswered: bool = True,
    answer_span: str | None = None,
) -> LocatedSample | InputFault:
    """Read a single record; return its sample, or the fault that prevents it.

    Args:
        record: the record.
        fields: the user's names of fields, by canonical field.
        expected: what the record should hold, for messages.
        unanswered: as of :func:`~trustassay.input.reading.read_samples`. The answer to be scored is
            that to the last question; in a log it may be an earlier one.
        answer_span: as of the same.
    """
    try:
        result, *other_samples = read_samples(
            [record], fields=fields, unanswered=unanswered, answer_span=answer_span
        )
    except InputError as error:
        return InputFault("", (Problem("record", str(error)),))
    # Some layouts hold one answer for each of several systems in a record.
    if other_samples:
        message = f"has answers of several systems (expected {expected})"
        return InputFault("", (Problem("record", message),))
    return remove_outcomes(result)


def find_problems(sample: Sample, metrics: Sequence[Metric], backends: Backends) -> list[Problem]:
    """List the problems that keep metrics from scoring a sample with these backends.

    Whether its model is among them is asked by :func:`find_model_problems`.
    """
    result: list[Problem] = []
    has_model = bool(backends.names_of_role(MODEL_ROLE))
    for metric in metrics:
        result += metric.problems(sample)
        result += [] if has_model else metric.problems_without_model(sample)
    return result


def find_model_problems(
    sample: Sample, metrics: Sequence[Metric], backends: Backends
) -> list[Problem]:
    """List the problems of metrics that must ask a sample's model, which was not given."""
    result: list[Problem] = []
    for metric in metrics:
        try:
            check_model(metric, sample, backends)
        except ModelNotGivenError as error:
            result.append(Problem("model", str(error)))
    return result


class Scorer:
    """Scores samples as they arrive, inside the event loop in which it was opened.

    Requests of all samples in progress are batched together, and equal requests are made once.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        backends: Backends,
        client: Client,
        run: GrowingRun | None,
        options: RunOptions,
        events: EvaluationEvents | None,
    ) -> None:
        self._metrics, self._backends = metrics, backends
        self._client, self._run, self._options = client, run, options
        self._events = events
        # Limits the samples in progress, not the requests: each sample makes many.
        self.at_once = samples_at_once(
            options.samples_at_once, DEFAULT_RUN_SAMPLES_AT_ONCE, backends.endpoints()
        )
        # Of each flow, so that a sample need not wait for a long list of others to be begun.
        self._slots_by_flow: WeakValueDictionary[Flow, asyncio.Semaphore] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Assay]] = set()
        self._metrics_by_inventory: dict[tuple[int, ...], Sequence[Metric]] = {}
        self._closed = False

    @property
    def in_progress(self) -> int:
        """The number of accepted samples that are not finished."""
        return len(self._tasks)

    @property
    def backend_names(self) -> dict[str, Any]:
        """The backends as ``run.json`` names them."""
        return self._backends.names()

    def decide(self, question: DecisionQuestion) -> asyncio.Future[DecisionAnswer]:
        """Return a future of the answer of the scorer's decision model.

        Raises:
            BackendError: the scorer has none; by the future, the model gave no answer.
        """
        return self._client.find(DECIDE.name, SERVED_ROLE).ask(question)

    async def score(self, sample: Sample | Mapping[str, Any]) -> Assay:
        """Score a sample with all metrics; a metric that fails is a value, never an exception.

        A record may have any layout that :func:`trustassay.score` reads. If the caller is
        cancelled, its sample is given up, or, in a scorer with a folder, finished there; other
        callers are not affected.

        Raises:
            SampleError: a field is missing or wrong; with a folder, an earlier sample with other
                content has the same id. Nothing was stored.
            ScorerClosedError: the scorer is closed.
        """
        return await self.wait_for(self.begin(self.check(sample)))

    def check(self, record: Sample | Mapping[str, Any]) -> Sample:
        """Return the sample of a record without accepting it.

        Raises:
            SampleError: the record is no sample, or cannot be scored.
        """
        options = self._options
        result = read_record(record, options.fields, answer_span=options.answer_span)
        if isinstance(result, InputFault):
            raise SampleError(result.problems)
        sample, metrics = result.sample, self._metrics
        problems = find_problems(sample, metrics, self._backends)
        problems += find_model_problems(sample, metrics, self._backends)
        inventory = Inventory()
        inventory.add(sample)
        try:
            check_served(metrics, self._backends, inventory)
        except UsageError as error:
            problems.append(Problem("documents", str(error)))
        if problems:
            raise SampleError(
                [result.use_original_names(problem) for problem in dict.fromkeys(problems)]
            )
        return sample

    def begin(self, sample: Sample) -> asyncio.Task[Assay]:
        """Accept a sample that :meth:`check` returned; :meth:`wait_for` waits for its task.

        Raises:
            SampleError: with a folder, an earlier sample with other content has the same id.
            ScorerClosedError: the scorer is closed.
        """
        if self._closed:
            raise ScorerClosedError("this scorer is closed; open another one")
        if self._run:
            try:
                self._run.accept(sample)
            except DiskFullError as error:
                return asyncio.create_task(self._fail_all(sample, error))
        return self._start(sample)

    async def wait_for(self, task: asyncio.Task[Assay]) -> Assay:
        """Wait for a task of :meth:`begin` that no other caller waits for; see :meth:`score`.

        Raises:
            ScorerClosedError: the scorer was interrupted before the sample was scored.
        """
        try:
            # shield: cancelling the caller must not cancel a sample that a folder has accepted.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The task itself was cancelled, by close(); otherwise the caller was.
            if task.cancelled():
                message = f"the scorer was interrupted before {task.get_name()!r} was scored"
                raise ScorerClosedError(message) from None
            self.give_up(task)
            raise

    def give_up(self, task: asyncio.Task[Assay]) -> None:
        """Cancel a task that nobody waits for; with a folder, let it finish there."""
        if not self._run:
            task.cancel()

    def metrics_for(self, sample: Sample) -> Sequence[Metric]:
        """Return the metrics with their ``auto`` options resolved for a sample.

        Without a folder they are resolved as in a run of this sample alone.
        """
        if self._run:
            return self._run.metrics
        inventory = Inventory()
        inventory.add(sample)
        # Resolving options takes time, and samples with the same contents give the same result.
        key = dataclasses.astuple(inventory)
        if key not in self._metrics_by_inventory:
            self._metrics_by_inventory[key] = resolve_metrics(
                self._metrics, inventory, self._backends.names()
            )
        return self._metrics_by_inventory[key]

    async def warm_up(self) -> None:
        """Score an example, so that what is loaded at its first use is loaded before samples come.

        Nothing of it is kept. Only models of this package in this process are asked; a metric that
        needs others is left out.
        """
        inventory = Inventory()
        inventory.add(EXAMPLE)
        client = Client(
            Backends({k: b for k, b in self._backends.by_key.items() if _is_ours(k, b)})
        )
        try:
            for metric in resolve_metrics(self._metrics, inventory, self._backends.names()):
                if not metric.problems(EXAMPLE):
                    await assess_sample(metric, EXAMPLE, client, self._options)
        finally:
            await client.close()

    def resume(self, waiting: Sequence[Sample]) -> None:
        """Score samples that an earlier process accepted; only :meth:`close` waits for them."""
        for sample in waiting:
            # An empty context: the current span belongs to whoever opened the scorer.
            context = contextvars.Context()
            # A caller among others, who need not wait until all these have begun.
            context.run(CURRENT_FLOW.set, Flow("accepted before"))
            self._start(sample, context)

    async def close(self) -> None:
        """Accept no more samples, and wait for the accepted ones; if cancelled, give these up."""
        self._closed = True
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            # Let cancelled tasks run their cleanup before the client is closed.
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def abandon(self) -> None:
        """Accept no more samples and cancel those in progress; with a folder they stay in it."""
        self._closed = True
        if tasks := [*self._tasks]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=ABANDON_WITHIN_S)

    async def write_results(self) -> None:
        """With a folder, write the results of the run so far; call this after :meth:`abandon`."""
        if self._run:
            await self._run.finish()

    def _start(
        self, sample: Sample, context: contextvars.Context | None = None
    ) -> asyncio.Task[Assay]:
        """Start to score a sample, in a copy of the caller's context unless ``context`` is
        given."""
        task = asyncio.create_task(self.assay(sample), name=sample.id, context=context)
        self._tasks.add(task)
        # The set also keeps the task alive: the event loop holds weak references only.
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fail_all(self, sample: Sample, error: DiskFullError) -> Assay:
        return Assay(sample, {m.name: _fail_assessment(sample, m, error) for m in self._metrics})

    async def assay(self, sample: Sample, *, stop_on_full_disk: bool = False) -> Assay:
        """Score a sample that was checked, and with a folder accepted; keep it there.

        Args:
            stop_on_full_disk: raise :class:`DiskFullError` in place of a failed assessment, for a
                caller who would go on to pay for scores that cannot be kept.
        """
        flow = CURRENT_FLOW.get()
        slots = self._slots_by_flow.get(flow) or asyncio.Semaphore(self.at_once)
        self._slots_by_flow[flow] = slots
        async with slots:
            metrics = self.metrics_for(sample)
            result = await gather_all(
                self._assess(metric, sample, stop_on_full_disk=stop_on_full_disk)
                for metric in metrics
            )
        return Assay(sample, {assessment.metric: assessment for assessment in result})

    async def _assess(
        self, metric: Metric, sample: Sample, *, stop_on_full_disk: bool
    ) -> Assessment:
        path = self._run.folder.path if self._run else None
        try:
            result, line = await assess_with_both(metric, sample, self._client, self._options, path)
            if self._run:
                self._run.note(result, line)
        except DiskFullError as error:
            if stop_on_full_disk:
                raise
            result = _fail_assessment(sample, metric, error)
        if self._events:
            self._events.send(sample, result)
        return result


def _is_ours(key: BackendKey, backend: Any) -> bool:
    """Whether a backend costs nothing and is no function of the user."""
    if key.capability == "chat" or is_remote(backend) or backend.name.startswith("python:"):
        return False
    # One that asks another model may ask an endpoint.
    return capability(key.capability).through(backend) is None


ScorerFactory = Callable[[], AbstractAsyncContextManager[Scorer]]
"""A function that opens a scorer."""


def _fail_assessment(sample: Sample, metric: Metric, error: DiskFullError) -> Assessment:
    return Assessment.for_failure(sample.id, metric.name, f"cannot be stored: {error}")


class OpenScorer:
    """Opens a scorer: ``async with`` gives a :class:`Scorer`, ``with`` a :class:`ThreadScorer`."""

    def __init__(self, door: ScorerFactory) -> None:
        self._door = door
        self._inside: AbstractAsyncContextManager[Scorer] | None = None
        self._threads: ThreadScorer | None = None

    async def __aenter__(self) -> Scorer:
        self._inside = self._door()
        return await self._inside.__aenter__()

    async def __aexit__(self, *details: Any) -> bool | None:
        assert self._inside
        return await self._inside.__aexit__(*details)

    def __enter__(self) -> ThreadScorer:
        self._threads = ThreadScorer(self._door)
        return self._threads

    def __exit__(self, *_: object) -> None:
        assert self._threads
        self._threads.close()


class ThreadScorer:
    """A scorer in an event loop of its own; any number of threads may call :meth:`score`."""

    def __init__(self, door: ScorerFactory) -> None:
        """Open the scorer in a new thread; errors of opening it are raised here."""
        ready: Future[Scorer] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(
            # A daemon: a program that forgets to close the scorer can still exit.
            target=self._run,
            args=(door, ready),
            name="trustassay-scorer",
            daemon=True,
        )
        self._thread.start()
        self._scorer = ready.result()

    def score(self, sample: Sample | Mapping[str, Any]) -> Assay:
        """Score a sample and wait for the result; raises the errors of :meth:`Scorer.score`."""
        future = self.submit(sample)
        try:
            return future.result()
        except BaseException:
            # An interruption, such as Ctrl-C; cancelling a finished future does nothing.
            future.cancel()
            raise

    def submit(self, sample: Sample | Mapping[str, Any]) -> Future[Assay]:
        """Return a future of the result of :meth:`score`, without waiting.

        Raises:
            ScorerClosedError: the scorer is closed.
        """
        work = self._scorer.score(sample)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            # The loop is closed. Closing the coroutine avoids a warning that it was never awaited.
            work.close()
            raise ScorerClosedError("this scorer is closed; open another one") from None

    def close(self) -> None:
        """Finish the accepted samples and close; errors of closing are raised here."""
        self.stop()
        self._ended.result()

    def stop(self) -> None:
        """Start to close, without waiting."""
        # RuntimeError: the loop is closed already.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._close.set)

    def _run(self, door: ScorerFactory, ready: Future[Scorer]) -> None:
        async def serve() -> None:
            self._loop, self._close = asyncio.get_running_loop(), asyncio.Event()
            async with door() as scorer:
                ready.set_result(scorer)
                await self._close.wait()

        try:
            asyncio.run(serve())
        except BaseException as error:
            # An error before the scorer is open goes to __init__, a later one to close().
            (self._ended if ready.done() else ready).set_exception(error)
        else:
            self._ended.set_result(None)
