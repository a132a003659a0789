"""The Python interface: ``score``, ``ascore``, ``plan``, ``watch``, ``scorer``, ``rescore``, and
``Run``."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from trustassay.core.event_loop import run_anywhere, run_in_thread
from trustassay.core.files import is_run_folder
from trustassay.core.metric import Metric
from trustassay.core.progress import StepProgress, tell
from trustassay.core.registry import find_recorded_class, metric_from_text
from trustassay.core.sample import LONGEST_LINE_MIB
from trustassay.errors import RunFolderError, UnknownNameError, UsageError, did_you_mean
from trustassay.input.reading import InputFiles
from trustassay.runs.finished import Run
from trustassay.runs.folder import RunFolder
from trustassay.runs.options import (
    CLUSTER,
    EngineOptions,
    RescoreOptions,
    ScoreOptions,
    ScorerOptions,
    WatchOptions,
    check_keywords,
    shows_keywords,
)

# Each function below imports the modules that it needs when it is called, so that importing
# `trustassay` stays fast.
if TYPE_CHECKING:
    from trustassay.live.follow import WatchCounts
    from trustassay.live.scorer import EventsChoice, OpenScorer, Scorer
    from trustassay.runs.estimates import Plan
    from trustassay.runs.intake import RunOptions, Source

__all__ = ["Run", "ascore", "plan", "rescore", "score", "scorer", "watch"]

Metrics = Metric | str | Sequence[Metric | str]


@shows_keywords(ScoreOptions)
async def ascore(
    samples: Source,
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> Run:
    """Score samples inside an event loop; see :func:`score`."""
    from trustassay.runs.execute import execute
    from trustassay.runs.intake import find_row_index
    from trustassay.runs.needs import choose_backends
    from trustassay.runs.results import apply_calibrator

    # A temporary folder gets a report only on request; an explicit `report=` in `options` wins.
    all_options = {"report": out is not None, **options}
    metric_list, samples, backend_choices, settings = _read_arguments(samples, metrics, all_options)
    calibrator, report = settings.calibrator, settings.report
    # The report has to show the calibrated probabilities, which exist only after the run.
    if calibrator:
        settings = dataclasses.replace(settings, report=False)
    # Without responses the model is needed to write them. The input is only searched for such
    # samples when a model is given; otherwise a missing response is a fault of the sample.
    unanswered = False
    if "model" in backend_choices:
        from trustassay.runs.choose_metric import has_unanswered

        unanswered = has_unanswered(samples, settings.fields, settings.sheet, settings.longest_line)
    # The caller who names no folder gets a temporary one, which lives as long as the run object.
    path = Path(tempfile.mkdtemp(prefix="trustassay-")) if out is None else Path(out)
    folder = RunFolder(path)
    try:
        stores = settings.stores(folder)
        backends = await choose_backends(
            metric_list, backend_choices, stores=stores, unanswered=unanswered
        )
        outcome = await execute(samples, metric_list, backends, folder, settings)
        if calibrator:
            # In a thread, since fitting and rewriting the results is plain Python that would block
            # the event loop; `stop` ends it between two steps when the task is cancelled.
            def apply(stop: threading.Event) -> None:
                steps = StepProgress(visible=settings.progress, stop=stop)
                apply_calibrator(folder, calibrator, metric_list, report=report, steps=steps)

            await run_in_thread(apply)
    # BaseException: an interruption must not leave a temporary folder behind either.
    except BaseException:
        if out is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    run = Run(folder, outcome, find_row_index(samples, outcome.intake, settings.limit))
    if out is None:
        # Tied to `folder`, not to `run`: a user may keep only the folder and drop the run.
        weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True)
    return run


def _read_arguments(
    samples: Source, metrics: Metrics | None, options: Mapping[str, Any]
) -> tuple[list[Metric], Source, dict[str, Any], RunOptions]:
    """Return the metrics, the samples, the backends given by keyword, and the run's options.

    Wrong names are reported before the samples are read.
    """
    from trustassay.runs.intake import build_run_options

    metric_list = [] if metrics is None else build_metrics(metrics)
    backend_choices, other_options = _split_options(options, metric_list)
    # From here on a path and a list of paths are one type.
    samples = InputFiles.from_paths(samples)
    if metrics is None:
        from trustassay.runs.choose_metric import choose_metric, describe_metrics

        # A retriever supplies the documents that samples lack, which changes the choice.
        retrieves = backend_choices.get("retriever") is not None
        fields, answer_span = options.get("fields"), options.get("answer_span")
        result = choose_metric(
            samples,
            fields,
            sheet=options.get("sheet"),
            answer_span=answer_span,
            longest_line=options.get("longest_line", LONGEST_LINE_MIB),
            retrieves=retrieves,
        )
        if options.get("progress"):
            tell(f"{describe_metrics(result.metrics)}: {result.reason}")
        metric_list, samples = build_metrics(result.metrics), result.source
        # The caller's own `why` comes last, and so takes precedence over the reason found here.
        other_options = {"why": result.reason, **other_options}
    # A model is asked for the answers that are missing, also at the end of a chat.
    unanswered = backend_choices.get("model") is not None
    settings = build_run_options(unanswered=unanswered, **other_options)
    return metric_list, samples, backend_choices, settings


def _split_options(
    options: Mapping[str, Any],
    metric_list: Sequence[Metric],
    option_group: type = ScoreOptions,
    argument_names: Collection[str] = ("metrics", "out"),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the backends from the other options, and refuse unknown names.

    Args:
        options: keywords as the user gave them.
        metric_list: the metrics, so that the error for a metric's option can say how it is given.
        option_group: the ``TypedDict`` that declares the allowed options.
        argument_names: named arguments of the public function, which are allowed as well.

    Raises:
        UnknownNameError, UsageError: as :func:`~trustassay.runs.options.check_keywords`.
    """
    from trustassay.runs.needs import list_backend_options

    backend_names = set(list_backend_options())
    check_keywords(options, option_group, {*backend_names, *argument_names}, metric_list)
    backend_choices = {name: value for name, value in options.items() if name in backend_names}
    # `backends={...}` holds capabilities of other packages, whose names are no keywords of ours.
    backend_choices |= options.get("backends") or {}
    return backend_choices, {
        k: v for k, v in options.items() if k not in backend_names and k != "backends"
    }


@shows_keywords(ScoreOptions)
def plan(
    samples: Source,
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> Plan:
    """Return the calls that :func:`score` would make with the same arguments, without making any.

    Raises:
        As :func:`score`.
    """
    from trustassay.runs.needs import choose_backends
    from trustassay.runs.plan import plan as plan_calls

    async def rehearse() -> Plan:
        # Checked inside the coroutine, so that all errors reach the caller through `run_anywhere`.
        metric_list, source, backend_choices, settings = _read_arguments(samples, metrics, options)
        backends = await choose_backends(metric_list, backend_choices)
        return await plan_calls(
            source, metric_list, backends, settings, None if out is None else Path(out)
        )

    return run_anywhere(rehearse)


@shows_keywords(WatchOptions)
def watch(  # noqa: PLR0913
    source: str | os.PathLike[str],
    *,
    metric: Metric | str,
    out: str | os.PathLike[str],
    threshold: float | str,
    idle_s: float | None = None,
    once: bool = False,
    opentelemetry: EventsChoice = False,
    tell: Callable[[str], None] = print,
    **options: Unpack[WatchOptions],
) -> WatchCounts:
    """Score the records of a growing file as they arrive; see :mod:`trustassay.live.follow`.

    Args:
        source: the file. metric: one metric or its name. out: the run's folder; the same call
            continues the run in it.
        threshold: answers with worse scores are passed to ``tell``: a number, or a text such as
            ``"20%"``, a share of the range of the metric's scores.
        idle_s: seconds without a new record after which the run ends; ``None``: never.
        once: end after the records that are in the file now.
        opentelemetry: as of :func:`scorer`.
        tell: receives one line of progress at a time.
        options: as of :func:`scorer`, and ``longest_line``, the MiB of the longest line.

    Raises:
        As :func:`score`.
    """
    from trustassay.live.follow import Watch
    from trustassay.runs.intake import build_run_options
    from trustassay.runs.needs import choose_backends

    async def follow() -> WatchCounts:
        metric_list = build_metrics(metric)
        choices, others = _split_options(options, metric_list, WatchOptions, ("metric", "out"))
        settings = build_run_options(progress=False, **others)
        folder = RunFolder(Path(out))
        # Replies already paid for are looked up in the run's own store first, then in the shared
        # one.
        stores = settings.stores(folder)
        backends = await choose_backends(metric_list, choices, stores=stores)
        return await Watch(
            Path(source),
            metric_list[0],
            backends,
            folder,
            settings,
            threshold=threshold,
            idle_s=idle_s,
            once=once,
            opentelemetry=opentelemetry,
            tell=tell,
        ).run()

    return run_anywhere(follow)


@shows_keywords(ScorerOptions)
def scorer(
    *,
    metrics: Metrics,
    out: str | os.PathLike[str] | None = None,
    opentelemetry: EventsChoice = False,
    decisions: Any = None,
    **options: Unpack[ScorerOptions],
) -> OpenScorer:
    """Open a scorer that scores single samples as they come, with models that are loaded once.

    ``async with scorer(metrics="faithfulness") as s: assay = await s.score(sample)`` inside an
    event loop; ``with scorer(...) as s: assay = s.score(sample)`` for threads. Samples of many
    callers are scored together, and the end of the block waits for those accepted.

    Args:
        metrics: as of :func:`score`.
        out: a folder to which all samples and assessments are added; it is a run like any other
            when the block ends, and the same call continues it. Without it, only the shared file
            of calls is kept.
        opentelemetry: send each assessment as an event ``gen_ai.evaluation.result`` to the
            configured logger provider of OpenTelemetry, as a child of the caller's current span.
            With ``"explanations"``, the event has the reason, which may quote the sample.
        decisions: a decision model for the method ``decide`` of the scorer, a URI or an object.
        options: backends, and ``fields``, ``seed``, ``samples_at_once``, ``report``, ``cache``,
            ``prices``, ``budget``, ``calls_at_once``, as of :func:`score`. Samples come complete:
            nothing is requested to fill missing fields.

    Raises:
        ValueError: at once, if a metric compares samples with each other, or if an option is about
            files of samples. All others are raised when the block begins:
        UnknownNameError, ValueError, BackendError, RunFolderError: as of :func:`score`.
        BackendError: OpenTelemetry is asked for and not installed or configured.
    """
    from trustassay.live.scorer import EvaluationEvents, OpenScorer, open_scorer
    from trustassay.runs.intake import build_run_options
    from trustassay.runs.needs import choose_backends

    metric_list = build_metrics(metrics)
    backend_choices, other_options = _split_options(options, metric_list)
    # Options about files, drawing and filling exist for `score`; a single sample has no use for
    # them.
    if unsupported := sorted(set(other_options) - set(ScorerOptions.__annotations__)):
        raise UsageError(f"{unsupported[0]}: not for a scorer, which scores single samples")
    settings = build_run_options(**({"report": out is not None} | other_options))
    folder = None if out is None else RunFolder(Path(out))

    @asynccontextmanager
    # Backends are resolved when the block begins, not when `scorer` is called: that may load
    # models.
    async def open_session() -> AsyncIterator[Scorer]:
        events = EvaluationEvents.of(opentelemetry)
        backends = await choose_backends(metric_list, backend_choices)
        opening = open_scorer(metric_list, backends, folder, settings, events, decisions)
        async with opening as result:
            yield result

    return OpenScorer(open_session)


@shows_keywords(EngineOptions)
def score(
    samples: Source,
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str = "local",
    **options: Unpack[EngineOptions],
) -> Run:
    """Score samples with one or more metrics and return the run.

    Args:
        samples: a path, a list of paths (for example one for each model), or an iterable of samples
            or of mappings in any recognised layout.
        metrics: metrics or their names as on the command line, a list or a single one
            (``"grounding:profile=paper"``). Without it, the samples decide (``docs/input.md``).
        out: the run's folder; a second call with the same settings continues where the first
            stopped. Without it, the folder is temporary, and a report is only written on request.
        options: backends, and how samples are read, filled, scored and paid for:
            :class:`~trustassay.runs.options.ScoreOptions` describes each.

    The backends, each a URI or an object of the right protocol:

    * ``entailer`` (or a function of premise and hypothesis), ``embedder``, ``similarity``
      (``cosine``, ``consistency``, ``lexical``), ``retriever``, ``linker``, ``token_embedder``.
    * Chat models, or functions of the prompt: ``model`` is the model under assessment, which is
      asked for the response of samples that have none; ``judge``, ``generator``, ``references``.
      Give several models, judges or references as a list, or as a mapping by name. A model is
      asked only about samples that have its name.

    Backends that are not given have their default, if there is one: ``embedded``, and ``cosine``.

    ``engine``: ``"local"``, or ``"ray"`` (``"ray:ADDRESS"``) for workers on a Ray cluster, with the
    fields of :class:`~trustassay.runs.options.Cluster`: ``workers``, ``cpus``, ``gpus``, ``store``,
    ``scratch``, ``shards``. It takes one file, backends by URI, and ``out``, and needs the package
    :mod:`trustassay.ray`.

    Also works in a notebook: if an event loop is running, the work is done in a thread.

    Raises:
        InputError, BadInputError: the input has faults; nothing was started.
        UnknownNameError: no metric, keyword or backend has that name; the message suggests the
            nearest one.
        ValueError: a backend that a metric needs is not given, or no metric needs a given one.
        BackendError: a backend cannot be loaded; ``engine``'s package is not installed.
        RunFolderError: ``out`` holds another run.
    """
    kind, _, address = engine.partition(":")
    if kind == "ray":
        return _on_cluster(samples, metrics, out, address or None, dict(options))
    if kind != "local":
        raise UnknownNameError(did_you_mean("engine", kind, ["local", "ray"]))
    if cluster_only := [name for name in CLUSTER if name in options]:
        raise UsageError(f"{', '.join(cluster_only)}: only with engine='ray'")
    # Safe: the cluster's keywords were refused just above.
    local = cast(ScoreOptions, options)
    return run_anywhere(lambda: ascore(samples, metrics=metrics, out=out, **local))


def _on_cluster(
    samples: Source,
    metrics: Metrics | None,
    out: str | os.PathLike[str] | None,
    address: str | None,
    options: dict[str, Any],
) -> Run:
    """Score on a Ray cluster; a run that is already merged continues in this process, as any
    other."""
    from trustassay.ray.cluster import ClusterOptions
    from trustassay.ray.engine import CLUSTER_FOLDER, score_on_cluster
    from trustassay.runs.results import apply_calibrator

    # Removed from `options`, so that the rest can be checked as options of an ordinary run.
    cluster = ClusterOptions(
        address, **{name: options.pop(name) for name in CLUSTER if name in options}
    )
    if out is None:
        raise UsageError("engine 'ray': needs a folder for the run (out)")
    metric_list, samples, backend_choices, settings = _read_arguments(samples, metrics, options)
    if "second" in backend_choices:
        raise UsageError("second: not with engine='ray'; use it to rescore the finished run")
    if unsupported := [name for name in ("sample", "append") if options.get(name)]:
        raise UsageError(f"{unsupported[0]}: not with engine='ray'")
    folder = Path(out)
    # A cluster's run has this folder until its shards are merged. Without it nothing is left to
    # distribute, and new metrics or samples of the same run are scored here.
    if is_run_folder(folder) and not (folder / CLUSTER_FOLDER).exists():
        return run_anywhere(lambda: ascore(samples, metrics=metric_list, out=folder, **options))
    result = score_on_cluster(samples, metric_list, backend_choices, folder, settings, cluster)
    if settings.calibrator:
        apply_calibrator(result.folder, settings.calibrator, metric_list, report=settings.report)
    return Run(result.folder, result.outcome)


@shows_keywords(RescoreOptions)
def rescore(
    run: str | os.PathLike[str],
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str],
    **options: Unpack[RescoreOptions],
) -> Run:
    """Score the samples of a stored run again, with other settings, into the folder ``out``.

    The new run starts with a copy of the stored calls, so a model is asked only new requests.
    Metrics, backends and the seed are those of the stored run unless they are given.

    Raises:
        RunFolderError: ``run`` holds no run.
        As :func:`score`.
    """
    from trustassay.runs.needs import list_backend_options, load_recorded_backends
    from trustassay.runs.prepare import POOL
    from trustassay.runs.remarks import DRAWN
    from trustassay.runs.units import UNIT

    old, new = RunFolder(Path(run)), RunFolder(Path(out))
    settings = old.read_run()
    if settings is None or not old.samples_path.exists():
        raise RunFolderError(f"{old.path}: holds no run")
    # Compared after resolving links: the new run would overwrite the results that it reads.
    if old.path.resolve() == new.path.resolve():
        raise RunFolderError(
            f"{new.path}: holds the stored run; give the new run another folder (--out)"
        )
    if metrics is None:
        classes = [
            find_recorded_class(name, options) for name, options in settings["metrics"].items()
        ]
        metrics = [cls(**recorded_options) for cls, recorded_options in classes]
    metric_list = build_metrics(metrics)
    check_keywords(
        options, RescoreOptions, {*list_backend_options(), "metrics", "out"}, metric_list
    )
    new_options: dict[str, Any] = dict(options)
    # The old run's pool is a copy in its folder or the path of the user's file. Only metrics that
    # look at other samples need one; any other would refuse the option.
    pool = old.pool_path if old.pool_path.exists() else settings.get(POOL)
    if pool is not None and any(metric.pool for metric in metric_list):
        new_options.setdefault("pool", pool)
    # `None` counts as not given: the same seed draws the same distractors, so stored replies fit.
    if new_options.get("seed") is None:
        new_options["seed"] = settings["seed"]
    if new_options.get(UNIT) is None:
        new_options[UNIT] = settings.get(UNIT)
    # Flattened, so that a backend given in either way replaces the recorded one.
    new_options |= new_options.pop("backends", {})
    # A `limit` makes another selection of samples, so the record of how they were drawn is void.
    if "limit" not in new_options:
        new_options[DRAWN] = settings.get(DRAWN)
    recorded_choices = load_recorded_backends(
        settings["backends"], metric_list, old.calls_path, new_options
    )
    return score(
        old.samples_path,
        metrics=metric_list,
        out=out,
        calls_from=old.calls_path,
        **(new_options | recorded_choices),
    )


def build_metrics(metrics: Metrics) -> list[Metric]:
    """Return the metrics as objects; raises UsageError if there is none, or one twice."""
    specs = [metrics] if isinstance(metrics, str | Metric) else metrics
    metric_list = [metric_from_text(m) if isinstance(m, str) else m for m in specs]
    if not metric_list:
        raise UsageError("no metric given")
    # Results are stored by a metric's name, so two variants of one metric cannot share a run.
    names = [metric.name for metric in metric_list]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"metric {repeated[0]} is given more than once")
    return metric_list
