"""The Python interface: ``score`` and ``ascore`` with the run that they return, and ``scorer``."""

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

from trustassay.data.reading import Files
from trustassay.errors import (
    BackendError,
    RunFolderError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from trustassay.event_loop import run_anywhere, run_in_thread
from trustassay.metric import Metric
from trustassay.options import (
    CLUSTER,
    BackendChoices,
    EngineOptions,
    RescoreOptions,
    ScoreOptions,
    ScorerOptions,
    check_keywords,
    shows_keywords,
)
from trustassay.progress import Steps, tell
from trustassay.registry import metric_from_text, recorded_class
from trustassay.runs.finished import Run
from trustassay.runs.folder import RunFolder

if TYPE_CHECKING:  # what a door needs is loaded when it is used
    from trustassay.runs.estimates import Plan
    from trustassay.runs.intake import RunOptions, Source
    from trustassay.workflows.scorer import EventsChoice, OpenScorer, Scorer
    from trustassay.workflows.watch import Watched, WatchOptions

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
    from trustassay.runs.intake import row_index
    from trustassay.runs.needs import settle
    from trustassay.runs.results import apply_calibrator

    own = {"report": out is not None, **options}
    chosen, samples, named, settings = _read(samples, metrics, own)
    calibrator, report = settings.calibrator, settings.report
    if calibrator:  # the report is written once, with the probabilities
        settings = dataclasses.replace(settings, report=False)
    unanswered = False
    if "model" in named:
        from trustassay.workflows.choose_metric import some_unanswered

        unanswered = some_unanswered(samples, settings.fields)
    path = Path(tempfile.mkdtemp(prefix="trustassay-")) if out is None else Path(out)
    folder = RunFolder(path)
    try:
        stores = settings.stores(folder)
        backends = await settle(chosen, named, stores=stores, unanswered=unanswered)
        outcome = await execute(samples, chosen, backends, folder, settings)
        if calibrator:

            def apply(stop: threading.Event) -> None:
                steps = Steps(shown=settings.progress, stop=stop)
                apply_calibrator(folder, calibrator, chosen, report=report, steps=steps)

            await run_in_thread(apply)
    except BaseException:
        if out is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    run = Run(folder, outcome, row_index(samples, outcome.intake, settings.limit))
    if out is None:
        weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True)
    return run


def _read(
    samples: Source, metrics: Metrics | None, options: Mapping[str, Any]
) -> tuple[list[Metric], Source, dict[str, Any], RunOptions]:
    """Return the metrics, the samples, the backends that were named, and the run's options; what is
    wrong in names is told before the samples are looked at."""
    from trustassay.runs.intake import run_options

    chosen = [] if metrics is None else _built(metrics)
    named, others = _split(options, chosen)
    samples = Files.of(samples)
    if metrics is None:
        from trustassay.workflows.choose_metric import choose_metric, naming

        retrieves = named.get("retriever") is not None
        result = choose_metric(samples, options.get("fields"), retrieves=retrieves)
        if options.get("progress"):
            tell(f"{naming(result.metrics)}: {result.why}")
        chosen, samples = _built(result.metrics), result.source
        others = {"why": result.why, **others}
    return chosen, samples, named, run_options(**others)


def _split(
    options: Mapping[str, Any],
    chosen: Sequence[Metric],
    known: type = ScoreOptions,
    own: Collection[str] = ("metrics", "out"),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the backends that were named, and the other options; refuse wrong names."""
    from trustassay.runs.needs import backend_words

    words = set(backend_words())
    check_keywords(options, known, {*words, *own}, chosen)
    named = {name: value for name, value in options.items() if name in words}
    named |= options.get("backends") or {}
    return named, {k: v for k, v in options.items() if k not in words and k != "backends"}


@shows_keywords(ScoreOptions)
def plan(
    samples: Source,
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> Plan:
    """Return the calls that :func:`score` would make with the same arguments; make none.

    Raises:
        As :func:`score`.
    """
    from trustassay.runs.needs import settle
    from trustassay.runs.plan import plan as rehearsed

    async def rehearse() -> Plan:
        chosen, given, named, settings = _read(samples, metrics, options)
        backends = await settle(chosen, named)
        return await rehearsed(
            given, chosen, backends, settings, None if out is None else Path(out)
        )

    return run_anywhere(rehearse)


@shows_keywords(BackendChoices)
def watch(
    source: str | os.PathLike[str],
    *,
    metric: Metric | str,
    out: str | os.PathLike[str],
    options: WatchOptions,
    tell: Callable[[str], None] = print,
    **named: Unpack[BackendChoices],
) -> Watched:
    """Score the records of a growing file as they arrive; see :mod:`trustassay.workflows.watch`.

    ``named`` are backends, as of :func:`score`.

    Raises:
        As :func:`score`.
    """
    from trustassay.calls.client import shared_file
    from trustassay.runs.needs import settle
    from trustassay.workflows.watch import Watch

    async def follow() -> Watched:
        chosen = _built(metric)
        given, _ = _split(named, chosen, BackendChoices, ("metric", "out"))
        folder = RunFolder(Path(out))
        stores = (folder.calls_path, shared_file(options.calls.cache))
        backends = await settle(chosen, given, stores=stores)
        return await Watch(Path(source), chosen[0], backends, folder, options, tell).run()

    return run_anywhere(follow)


@shows_keywords(ScorerOptions)
def scorer(
    *,
    metrics: Metrics,
    out: str | os.PathLike[str] | None = None,
    opentelemetry: EventsChoice = False,
    **options: Unpack[ScorerOptions],
) -> OpenScorer:
    """Open a scorer that scores single samples as they come, with models that are loaded once.

    ``async with scorer(metrics="faithfulness") as s: assay = await s.score(sample)`` inside an
    event loop; ``with scorer(...) as s: assay = s.score(sample)`` for threads. Samples of many
    callers are scored together, and the end of the block waits for those accepted.

    Args:
        metrics: as of :func:`score`.
        out: a folder to which all samples and assessments are added; it is a run like any other
            when the block ends, and the same call continues it. Without it nothing is kept but
            the shared file of calls.
        opentelemetry: send each assessment as an event ``gen_ai.evaluation.result`` to the logger
            provider of OpenTelemetry that is configured, a child of the caller's current span;
            ``"explanations"``: with its reason, which may quote the sample.
        options: backends, and ``fields``, ``seed``, ``samples_at_once``, ``report``, ``cache``,
            ``prices``, ``budget``, ``calls_at_once``, as of :func:`score`. Samples come complete:
            nothing is requested to fill missing fields.

    Raises:
        ValueError: a metric looks at all samples together, or an option is about files of samples;
            at once. All others when the block begins:
        UnknownNameError, ValueError, BackendError, RunFolderError: as of :func:`score`.
        BackendError: OpenTelemetry is asked for and not installed or configured.
    """
    from trustassay.runs.intake import run_options
    from trustassay.runs.needs import settle
    from trustassay.workflows.scorer import EvaluationEvents, OpenScorer, open_scorer

    chosen = _built(metrics)
    named, others = _split(options, chosen)
    if strange := sorted(set(others) - set(ScorerOptions.__annotations__)):
        raise UsageError(f"{strange[0]}: not for a scorer, which takes complete single samples")
    settings = run_options(**({"report": out is not None} | others))
    folder = None if out is None else RunFolder(Path(out))

    @asynccontextmanager
    async def door() -> AsyncIterator[Scorer]:
        events = EvaluationEvents.of(opentelemetry)
        backends = await settle(chosen, named)
        async with open_scorer(chosen, backends, folder, settings, events) as result:
            yield result

    return OpenScorer(door)


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
        samples: a path, a list of paths, as of several models, or an iterable of samples or of
            mappings in any recognised layout.
        metrics: metrics or their names as on the command line, a list or a single one
            (``"grounding:profile=paper"``). If none is named the samples decide
            (``docs/input.md``).
        out: the run's folder; a second call with the same settings continues where the first
            stopped. Without it the folder is temporary, and a report is only written on request.
        options: backends, and how samples are read, filled, scored and paid for:
            :class:`~trustassay.options.ScoreOptions` describes each.

    The backends, each a URI or an object of the right protocol:

    ``entailer`` (or a function of premise and hypothesis), ``embedder``, ``similarity``
    (``cosine``, ``consistency``, ``lexical``), ``retriever``, ``linker``, ``token_embedder``; and
    chat models (or functions of the prompt): ``model``, the one under assessment, which is asked
    for the response of samples that have none, ``judge``, ``generator``, ``references``. Give
    several judges or references as a list, or as a mapping by name. If an option is not given, the
    default is used, if there is one: ``embedded``, and ``cosine``.

    ``engine``: ``"local"``, or ``"ray"`` (``"ray:ADDRESS"``) for workers on a Ray cluster, with the
    fields of :class:`~trustassay.options.Cluster`: ``workers``, ``cpus``, ``gpus``, ``store``,
    ``scratch``, ``shards``. It takes one file, backends by URI, and ``out``, and needs the package
    ``trustassay-cluster``.

    Also works in a notebook: if an event loop is running, the work is done in a thread.

    Raises:
        InputError, BadInputError: the input has faults; nothing was started.
        UnknownNameError: no metric, keyword or backend of that name; the nearest is named.
        ValueError: a backend that a metric needs is not given, or one is given that none needs.
        BackendError: a backend cannot be loaded; ``engine``'s package is not installed.
        RunFolderError: ``out`` holds another run.
    """
    kind, _, address = engine.partition(":")
    if kind == "ray":
        return _on_cluster(samples, metrics, out, address or None, dict(options))
    if kind != "local":
        raise UnknownNameError(did_you_mean("engine", kind, ["local", "ray"]))
    if named := [name for name in CLUSTER if name in options]:
        raise UsageError(f"{', '.join(named)}: for engine='ray' alone")
    local = cast(ScoreOptions, options)
    return run_anywhere(lambda: ascore(samples, metrics=metrics, out=out, **local))


def _on_cluster(
    samples: Source,
    metrics: Metrics | None,
    out: str | os.PathLike[str] | None,
    address: str | None,
    options: dict[str, Any],
) -> Run:
    """Score on a Ray cluster; a run that is merged already goes on here, as any other."""
    try:
        from trustassay_cluster.engine import HOME, score_on_cluster
        from trustassay_cluster.ray_cluster import ClusterOptions
    except ModuleNotFoundError:
        raise BackendError(
            "--engine ray needs trustassay-cluster: pip install ./cluster in a clone of trustassay"
        ) from None
    from trustassay.runs.results import apply_calibrator

    cluster = ClusterOptions(
        address, **{name: options.pop(name) for name in CLUSTER if name in options}
    )
    if out is None:
        raise UsageError("--engine ray needs the run's folder: out")
    chosen, samples, named, settings = _read(samples, metrics, options)
    if "second" in named:
        raise UsageError("second: not with engine='ray'; rescore the finished run with it")
    if given := [name for name in ("sample", "append") if options.get(name)]:
        raise UsageError(f"{given[0]}: not with engine='ray'")
    folder = Path(out)
    if (folder / "run.json").exists() and not (folder / HOME).exists():
        return run_anywhere(lambda: ascore(samples, metrics=chosen, out=folder, **options))
    result = score_on_cluster(samples, chosen, named, folder, settings, cluster)
    if settings.calibrator:
        apply_calibrator(result.folder, settings.calibrator, chosen, report=settings.report)
    return Run(result.folder, result.outcome)


@shows_keywords(RescoreOptions)
def rescore(
    run: str | os.PathLike[str],
    *,
    metrics: Metrics | None = None,
    out: str | os.PathLike[str],
    **options: Unpack[RescoreOptions],
) -> Run:
    """Score the samples of a stored run with other settings, into the folder ``out``.

    The new run starts with a copy of the old one's calls, so a model is only asked what it was
    not asked before. Metrics, backends and a seed that are not given are the run's own.

    Raises:
        RunFolderError: ``run`` holds no run.
        As :func:`score`.
    """
    from trustassay.runs.counts import DRAWN, UNIT
    from trustassay.runs.needs import backend_words, recorded_backends
    from trustassay.runs.prepare import POOL

    old, new = RunFolder(Path(run)), RunFolder(Path(out))
    settings = old.read_run()
    if settings is None or not old.samples_path.exists():
        raise RunFolderError(f"{old.path}: holds no run")
    if old.path.resolve() == new.path.resolve():
        raise RunFolderError(
            f"{new.path}: a run cannot be scored into its own folder; choose another out"
        )
    if metrics is None:
        classes = [recorded_class(name, options) for name, options in settings["metrics"].items()]
        metrics = [cls(**chosen) for cls, chosen in classes]
    chosen = _built(metrics)
    check_keywords(options, RescoreOptions, {*backend_words(), "metrics", "out"}, chosen)
    given: dict[str, Any] = dict(options)
    pool = old.pool_path if old.pool_path.exists() else settings.get(POOL)
    if pool is not None and any(metric.pool for metric in chosen):
        given.setdefault("pool", pool)
    if given.get("seed") is None:
        given["seed"] = settings["seed"]
    if given.get(UNIT) is None:
        given[UNIT] = settings.get(UNIT)
    given |= given.pop("backends", {})
    if "limit" not in given:
        given[DRAWN] = settings.get(DRAWN)
    recorded = recorded_backends(settings["backends"], chosen, old.calls_path, given)
    return score(
        old.samples_path, metrics=chosen, out=out, calls_from=old.calls_path, **(recorded | given)
    )


def _built(metrics: Metrics) -> list[Metric]:
    given = [metrics] if isinstance(metrics, str | Metric) else metrics
    chosen = [metric_from_text(m) if isinstance(m, str) else m for m in given]
    if not chosen:
        raise UsageError("no metric given")
    names = [metric.name for metric in chosen]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"metric {doubled[0]} is given more than once")
    return chosen
