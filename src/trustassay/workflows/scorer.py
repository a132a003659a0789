"""A resident scorer: models loaded once, single samples of many callers scored together."""

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

from trustassay.calls.backends import MODEL, Backends
from trustassay.calls.client import Client, check_budget, open_calls, shared_file
from trustassay.calls.endpoints import samples_at_once
from trustassay.data.reading import Located, read_samples
from trustassay.data.records import Fault, InputError
from trustassay.errors import BackendError, UsageError, install
from trustassay.event_loop import all_of
from trustassay.files import DiskFullError
from trustassay.metric import Assessment, Inventory, Metric
from trustassay.progress import tell
from trustassay.runs.execute import SAMPLES
from trustassay.runs.folder import RunFolder
from trustassay.runs.growing import GrowingRun
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import check_run_keys, check_served, resolved
from trustassay.runs.second_reading import assessed_by_both
from trustassay.sample import Problem, Sample, SampleError

if TYPE_CHECKING:
    from opentelemetry.context import Context

EventsChoice = bool | Literal["explanations"]

EVENT = "gen_ai.evaluation.result"
TRACEPARENT = "traceparent"
"""Field of a record: the span that wrote the response, as W3C Trace Context spells it."""
RESPONSE_ID = ("gen_ai.response.id", "response_id")
"""Fields of a record that hold the id which the model's provider gave the response."""
LONGEST_ID = 256
OTHER = "_OTHER"
"""The conventions' word for an error of no known kind."""


class EvaluationEvents:
    """Sends an event for each assessment; a provider that fails costs events, never a score.

    One event ``gen_ai.evaluation.result`` an assessment, with the attributes of OpenTelemetry's
    semantic conventions for generative AI (status: development), to the provider that the user
    configured. No provider and no exporter is made.
    """

    def __init__(self, *, explanations: bool = False) -> None:
        """Take the provider that is configured now; BackendError: there is none. explanations: also
        send the reason of each score, which may quote question, response and documents.
        """
        try:
            from opentelemetry import _logs
            from opentelemetry.sdk import _logs as _  # noqa: F401 - the API alone sends nothing
        except ImportError:
            raise BackendError(
                f"events of OpenTelemetry need its SDK: {install('opentelemetry')}"
            ) from None
        provider = _logs.get_logger_provider()
        if type(provider).__module__.startswith("opentelemetry._logs"):  # its own send nothing
            raise BackendError(
                "no logger provider of OpenTelemetry is configured, so events would go nowhere; "
                "call opentelemetry._logs.set_logger_provider first, or start the program with "
                "opentelemetry-instrument"
            )
        self._logger = provider.get_logger("trustassay", version("trustassay"))
        self._explanations = explanations
        self._has_failed = False

    @classmethod
    def of(cls, choice: EventsChoice) -> EvaluationEvents | None:
        """Return what an option asks for; ``None`` for ``False``.

        Raises:
            ValueError: it is no such option.
            BackendError: as of the constructor.
        """
        if choice not in (True, False, "explanations"):
            message = f"opentelemetry: expected True, False or 'explanations', got {choice!r:.60}"
            raise UsageError(message)
        return cls(explanations=choice == "explanations") if choice else None

    def send(self, sample: Sample, found: Assessment) -> None:
        """Send one assessment, below the span that the field ``traceparent`` names, if any."""
        try:
            self._logger.emit(
                event_name=EVENT,
                timestamp=time.time_ns(),
                context=_parent(sample),
                attributes=event_attributes(sample, found, explanations=self._explanations),
            )
        except Exception as error:
            if not self._has_failed:  # its text may hold a key of an exporter
                self._has_failed = True
                tell(f"OpenTelemetry fails to take events: {type(error).__name__}")


def event_attributes(
    sample: Sample, found: Assessment, *, explanations: bool = False
) -> dict[str, Any]:
    """Return the attributes of the event of an assessment, those of the conventions and the
    sample's id; with ``explanations`` the reason, which may quote the sample."""
    explanation = found.error or found.reason if explanations else None
    ids = [sample.metadata.get(name) for name in RESPONSE_ID]
    ids = [one for one in ids if isinstance(one, str) and 0 < len(one) <= LONGEST_ID]
    attributes = {
        "gen_ai.evaluation.name": found.metric,
        "gen_ai.evaluation.score.value": None if found.score is None else float(found.score),
        "gen_ai.evaluation.score.label": found.verdict,
        "gen_ai.evaluation.explanation": explanation or None,
        "gen_ai.response.id": ids[0] if ids else None,
        "error.type": None if found.error is None else found.fault or OTHER,
        "trustassay.sample.id": sample.id,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _parent(sample: Sample) -> Context | None:
    """Return the context of the span that wrote the response, if the sample names it."""
    named = sample.metadata.get(TRACEPARENT)
    if not isinstance(named, str):
        return None
    from opentelemetry.context import get_current
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({TRACEPARENT: named}, get_current())


AGAIN_AFTER_S = 30.0
"""An endpoint that was given up is asked again after so long: a scorer is not started again."""


class ScorerClosedError(RuntimeError):
    """A sample came to a scorer that is closed or closing; it was not accepted."""


@dataclass(frozen=True, slots=True)
class Assay:
    """A sample and what each metric found in it: ``assay["faithfulness"].score``."""

    sample: Sample
    assessments: Mapping[str, Assessment]

    def __getitem__(self, metric: str) -> Assessment:
        return self.assessments[metric]

    @property
    def errors(self) -> dict[str, str]:
        """Why a metric gave no score, by its name; only metrics that failed."""
        return {name: one.error for name, one in self.assessments.items() if one.error is not None}


@asynccontextmanager
async def open_scorer(
    metrics: Sequence[Metric],
    backends: Backends,
    folder: RunFolder | None,
    options: RunOptions,
    events: EvaluationEvents | None = None,
) -> AsyncIterator[Scorer]:
    """Open a scorer; at the end of the block it finishes what it accepted.

    With a folder, all samples and assessments are added to the run in it, and its results are
    written at the end. What an earlier process accepted there and did not score is scored as well.
    With ``events`` each assessment is sent to them.

    Raises:
        ValueError: a metric looks at all samples together.
        BackendError: a key is needed and not set.
        RunFolderError: the folder holds another run, or another process works in it.
        OSError: at the end, if the results cannot be written.
    """
    for metric in metrics:
        if metric.pool:
            raise UsageError(
                f"{metric.name}: looks at all samples together, so it cannot score one by one; "
                "use score(samples, ...)"
            )
    check_budget(backends, options.calls.prices, options.calls.budget)
    own = None if folder is None else folder.calls_path
    check_run_keys(metrics, backends, [own, shared_file(options.calls.cache)], missing=1)
    run = None if folder is None else GrowingRun(folder, metrics, backends, options)
    calls = dataclasses.replace(options.calls, again_after_s=AGAIN_AFTER_S)
    with ExitStack() as stack:
        waiting = stack.enter_context(run.opened()) if run else []
        async with open_calls(backends, calls, own) as client:
            scorer = Scorer(metrics, backends, client, run, options, events)
            scorer.take_up(waiting)
            try:
                yield scorer
            finally:
                await scorer.close()
        if run:
            await run.finish()


def record_of(
    given: Any, fields: Mapping[str, str], expected: str = "one answer"
) -> Located | Fault:
    """Return the sample of a single record, or why it has none."""
    try:
        result, *others = read_samples([given], fields=fields)
    except InputError as error:
        return Fault("", (Problem("record", str(error)),))
    message = f"holds answers of several systems (expected {expected})"
    return Fault("", (Problem("record", message),)) if others else result


def problems_of(sample: Sample, metrics: Sequence[Metric], backends: Backends) -> list[Problem]:
    """Return what keeps metrics from scoring a sample with these backends."""
    result: list[Problem] = []
    asked = backends.find("chat", MODEL) is not None
    for metric in metrics:
        result += metric.problems(sample)
        result += [] if asked else metric.problems_without_model(sample)
    return result


class Scorer:
    """Scores samples as they come; used inside the event loop in which it was opened.

    Requests of samples in progress are gathered into batches, and equal ones are made once.
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
        at_once = samples_at_once(options.samples_at_once, SAMPLES, backends.endpoints())
        self._free = asyncio.Semaphore(at_once)
        self._tasks: set[asyncio.Task[Assay]] = set()
        self._settled: dict[tuple[int, ...], Sequence[Metric]] = {}
        self._closed = False

    @property
    def in_progress(self) -> int:
        """The number of samples that are accepted and not finished."""
        return len(self._tasks)

    async def score(self, sample: Sample | Mapping[str, Any]) -> Assay:
        """Return what the metrics find; their failures are values in it, never exceptions.

        A record may have any layout that :func:`trustassay.score` reads. A caller that is cancelled
        gives its own sample up, or, in a scorer with a folder, leaves it to be finished there; the
        other callers notice nothing.

        Raises:
            SampleError: a field is missing or wrong; with a folder, an earlier sample with other
                content has the same id. Nothing was stored.
            ScorerClosedError: the scorer is closed.
        """
        return await self.finished(self.begin(self.check(sample)))

    def check(self, given: Sample | Mapping[str, Any]) -> Sample:
        """Return the sample of a record, and accept nothing.

        Raises:
            SampleError: it is none, or cannot be scored.
        """
        result = record_of(given, self._options.fields)
        if isinstance(result, Fault):
            raise SampleError(result.problems)
        problems = problems_of(result.sample, self._metrics, self._backends)
        inventory = Inventory()
        inventory.add(result.sample)
        try:
            check_served(self._metrics, self._backends, inventory)
        except UsageError as error:
            problems.append(Problem("documents", str(error)))
        if problems:
            raise SampleError([result.in_own_words(one) for one in dict.fromkeys(problems)])
        return result.sample

    def begin(self, sample: Sample) -> asyncio.Task[Assay]:
        """Accept a sample that :meth:`check` returned; :meth:`finished` waits for its task.

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
                return asyncio.create_task(self._unstored(sample, error))
        return self._start(sample)

    async def finished(self, task: asyncio.Task[Assay]) -> Assay:
        """Wait for a task of :meth:`begin`, which belongs to this caller alone; see :meth:`score`.

        Raises:
            ScorerClosedError: the scorer was interrupted before the sample was scored.
        """
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                message = f"the scorer was interrupted before {task.get_name()!r} was scored"
                raise ScorerClosedError(message) from None
            self.give_up(task)
            raise

    def give_up(self, task: asyncio.Task[Assay]) -> None:
        """Nobody waits for a task any more: it ends, or, with a folder, is finished there."""
        if not self._run:
            task.cancel()

    def metrics_for(self, sample: Sample) -> Sequence[Metric]:
        """Return the metrics as they score a sample, their ``auto`` options settled; without a
        folder as in a run of this sample alone.
        """
        if self._run:
            return self._run.metrics
        inventory = Inventory()
        inventory.add(sample)
        key = dataclasses.astuple(inventory)
        if key not in self._settled:
            self._settled[key] = resolved(self._metrics, inventory, self._backends.names())
        return self._settled[key]

    def take_up(self, waiting: Sequence[Sample]) -> None:
        """Score what an earlier process accepted; nobody waits for it but :meth:`close`."""
        for sample in waiting:
            self._start(sample, contextvars.Context())  # the span of the opener is not its caller's

    async def close(self) -> None:
        """Accept nothing more, and wait for what was accepted; cancelled, give that up."""
        self._closed = True
        try:
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(
        self, sample: Sample, context: contextvars.Context | None = None
    ) -> asyncio.Task[Assay]:
        """Begin to score a sample, in a copy of the caller's context unless another is given."""
        task = asyncio.create_task(self._assay(sample), name=sample.id, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _unstored(self, sample: Sample, error: DiskFullError) -> Assay:
        return Assay(sample, {m.name: _failed(sample, m, error) for m in self._metrics})

    async def _assay(self, sample: Sample) -> Assay:
        async with self._free:
            metrics = self.metrics_for(sample)
            result = await all_of(self._assess(metric, sample) for metric in metrics)
        return Assay(sample, {one.metric: one for one in result})

    async def _assess(self, metric: Metric, sample: Sample) -> Assessment:
        path = self._run.folder.path if self._run else None
        try:
            result, line = await assessed_by_both(metric, sample, self._client, self._options, path)
            if self._run:
                self._run.note(result, line)
        except DiskFullError as error:
            result = _failed(sample, metric, error)
        if self._events:
            self._events.send(sample, result)
        return result


Door = Callable[[], AbstractAsyncContextManager[Scorer]]
"""Opens a scorer."""


def _failed(sample: Sample, metric: Metric, error: DiskFullError) -> Assessment:
    return Assessment.failed(sample.id, metric.name, f"cannot be stored: {error}")


class OpenScorer:
    """Opens a scorer: ``async with`` a :class:`Scorer`, ``with`` a :class:`ThreadScorer`."""

    def __init__(self, door: Door) -> None:
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
    """A scorer in an event loop of its own, whose :meth:`score` any number of threads may call."""

    def __init__(self, door: Door) -> None:
        """Open the scorer; raises what opening it raises."""
        ready: Future[Scorer] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(door, ready), name="trustassay-scorer", daemon=True
        )
        self._thread.start()
        self._scorer = ready.result()

    def score(self, sample: Sample | Mapping[str, Any]) -> Assay:
        """Wait for the result; as :meth:`Scorer.score`, with the same errors."""
        future = self.submit(sample)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # of an interruption; a finished one stays as it is
            raise

    def submit(self, sample: Sample | Mapping[str, Any]) -> Future[Assay]:
        """Return a future of what :meth:`score` returns, without waiting.

        Raises:
            ScorerClosedError: the scorer is closed.
        """
        work = self._scorer.score(sample)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise ScorerClosedError("this scorer is closed; open another one") from None

    def close(self) -> None:
        """Finish what was accepted, and close; raises what closing raises."""
        self.stop()
        self._ended.result()

    def stop(self) -> None:
        """Begin to close, and do not wait for it."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._close.set)

    def _run(self, door: Door, ready: Future[Scorer]) -> None:
        async def serve() -> None:
            self._loop, self._close = asyncio.get_running_loop(), asyncio.Event()
            async with door() as scorer:
                ready.set_result(scorer)
                await self._close.wait()

        try:
            asyncio.run(serve())
        except BaseException as error:
            (self._ended if ready.done() else ready).set_exception(error)
        else:
            self._ended.set_result(None)
