"""The Python door: ``score`` and ``ascore``, and the run that they return."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trustassay.backends import resolve
from trustassay.capabilities import (
    BackendError,
    CallError,
    ChatRequest,
    Embedder,
    Reply,
    Similarity,
)
from trustassay.engine.anywhere import run_anywhere
from trustassay.engine.folder import RunFolder, RunFolderError, StoredAssessments
from trustassay.engine.intake import Source
from trustassay.engine.models import Backends
from trustassay.engine.outputs import write_report
from trustassay.engine.plan import Plan
from trustassay.engine.plan import plan as rehearsed
from trustassay.engine.run import RunOptions, RunOutcome, execute
from trustassay.engine.watching import Watched, WatchOptions
from trustassay.engine.watching import watch as follow_file
from trustassay.metric import Metric, Summary, UnknownNameError, metric_from_text

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "ascore", "plan", "rescore", "score", "watch"]

Metrics = Metric | str | Sequence[Metric | str]


class Run:
    """A finished run; everything is read from its folder when it is asked for."""

    def __init__(self, folder: RunFolder, outcome: RunOutcome) -> None:
        self._folder = folder
        self.outcome = outcome
        self.metrics = tuple(outcome.metrics)

    @property
    def path(self) -> Path:
        """The run's folder; without ``out`` it is temporary, and goes when nobody holds this object
        or its assessments any more.
        """
        return self._folder.path

    @cached_property
    def summary_file(self) -> dict[str, Any]:
        """The content of ``summary.json``."""
        return self._folder.read_summary() or {"metrics": {}}

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """The summary of each metric, with intervals and the samples behind each figure."""
        return {k: Summary(**v) for k, v in self.summary_file["metrics"].items()}

    @property
    def summary(self) -> Mapping[str, Mapping[str, float | int | None]]:
        """The figures of each metric: ``run.summary["grounding"]["trust_score"]``."""
        return {name: summary.values for name, summary in self.summaries.items()}

    @property
    def assessments(self) -> StoredAssessments:
        """The assessments in input order, a sequence that is read from disk."""
        return self._folder.assessments()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the assessments as a table; needs pandas and a Parquet engine for it."""
        import arro3.io
        import pandas

        table = arro3.io.read_parquet(self._folder.parquet_path).read_all()
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        return pandas.DataFrame(columns)

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report page, to ``path`` or into the run's folder, and return where it is."""
        write_report(self._folder, self.metrics)
        if path is None:
            return self._folder.report_path
        return Path(shutil.copyfile(self._folder.report_path, path))


async def ascore(
    samples: Source,
    *,
    metrics: Metrics,
    out: str | os.PathLike[str] | None = None,
    entailer: resolve.EntailerChoice = resolve.DEFAULT_ENTAILER,
    embedder: str | Embedder = resolve.DEFAULT_EMBEDDER,
    similarity: str | Similarity = resolve.DEFAULT_SIMILARITY,
    model: resolve.ChatChoice | None = None,
    **options: Any,
) -> Run:
    """Score samples inside an event loop; see :func:`score`."""
    chosen = _chosen(metrics)
    backends = await _loaded(chosen, entailer, embedder, similarity, model)
    settings = RunOptions(**({"report": out is not None} | options))
    path = Path(tempfile.mkdtemp(prefix="trustassay-")) if out is None else Path(out)
    folder = RunFolder(path)
    try:
        outcome = await execute(samples, chosen, backends, folder, settings)
    except BaseException:
        if out is None:
            shutil.rmtree(path, ignore_errors=True)
        raise
    run = Run(folder, outcome)
    if out is None:
        weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True)
    return run


async def _loaded(
    metrics: Sequence[Metric],
    entailer: resolve.EntailerChoice,
    embedder: str | Embedder,
    similarity: str | Similarity,
    model: resolve.ChatChoice | None,
) -> Backends:
    """Return the backends that the metrics need, and the model if there is one.

    Raises:
        ValueError: a metric needs a model, and there is none.
    """
    needed = frozenset().union(*(metric.needs for metric in metrics))
    if "model" in needed and model is None:
        asking = [metric.name for metric in metrics if "model" in metric.needs]
        raise ValueError(f"{' and '.join(asking)}: needs a model to ask (--model)")
    wanted: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "entailer": (resolve.entailer, entailer),
        "embedder": (resolve.embedder, embedder),
        "similarity": (resolve.similarity, similarity),
    }
    loaded = {
        name: await asyncio.to_thread(load, choice)
        for name, (load, choice) in wanted.items()
        if name in needed
    }
    if model is not None:
        loaded["chat"] = {"model": await asyncio.to_thread(resolve.chat, model)}
    return Backends(**loaded)


def plan(
    samples: Source,
    *,
    metrics: Metrics,
    out: str | os.PathLike[str] | None = None,
    entailer: resolve.EntailerChoice = resolve.DEFAULT_ENTAILER,
    embedder: str | Embedder = resolve.DEFAULT_EMBEDDER,
    similarity: str | Similarity = resolve.DEFAULT_SIMILARITY,
    model: resolve.ChatChoice | None = None,
    **options: Any,
) -> Plan:
    """Return what :func:`score` with the same arguments would ask; nothing is asked or written.

    Raises:
        As :func:`score`.
    """

    async def rehearse() -> Plan:
        chosen = _chosen(metrics)
        backends = await _loaded(chosen, entailer, embedder, similarity, model)
        folder = None if out is None else Path(out)
        return await rehearsed(samples, chosen, backends, RunOptions(**options), folder)

    return run_anywhere(rehearse)


def watch(  # noqa: PLR0913 - one argument a choice
    source: str | os.PathLike[str],
    *,
    metric: Metric | str,
    out: str | os.PathLike[str],
    options: WatchOptions,
    tell: Callable[[str], None] = print,
    entailer: resolve.EntailerChoice = resolve.DEFAULT_ENTAILER,
    embedder: str | Embedder = resolve.DEFAULT_EMBEDDER,
    similarity: str | Similarity = resolve.DEFAULT_SIMILARITY,
    model: resolve.ChatChoice | None = None,
) -> Watched:
    """Score the records of a growing file as they arrive; see :mod:`trustassay.engine.watching`.

    Raises:
        As :func:`score`.
    """

    async def follow() -> Watched:
        chosen = _chosen(metric)
        backends = await _loaded(chosen, entailer, embedder, similarity, model)
        folder = RunFolder(Path(out))
        return await follow_file(Path(source), chosen[0], backends, folder, options, tell)

    return run_anywhere(follow)


def score(samples: Source, *, metrics: Metrics, **options: Any) -> Run:
    """Score samples with one or more metrics and return the run.

    Args:
        samples: a path, or an iterable of samples or of mappings in any recognised layout.
        metrics: metrics or their names as on the command line, a list or a single one
            (``"grounding:profile=paper"``).
        entailer: a URI, an object with ``name`` and ``scores``, or a plain function of premise
            and hypothesis.
        embedder: a URI, or an object with ``name`` and ``vectors``.
        similarity: ``cosine``, ``consistency``, ``lexical``, or an object with ``name`` and
            ``scores``.
        model: a chat model: a URI such as ``openai:MODEL[@BASE_URL]``, an object with ``name`` and
            ``reply``, or a function of the prompt. It is asked for the response of samples that
            have none, and by metrics that need it.
        out: the run's folder; a second call with the same settings goes on where the first
            stopped. Without it the folder is temporary, and no report is written until asked for.
        options: fields of :class:`~trustassay.engine.run.RunOptions`: ``fields``, ``limit``,
            ``seed``, ``skip_bad``, ``concurrency``, ``progress``, ``answering``, ``cache``,
            ``prices``, ``budget``.

    Works in a notebook, too: where an event loop is running, the work is done in a thread.

    Raises:
        InputError, BadInputError: the input has faults; nothing was started.
        UnknownNameError: no metric, option or backend of that name.
        BackendError: a backend cannot be loaded.
        RunFolderError: ``out`` holds another run.
    """
    return run_anywhere(lambda: ascore(samples, metrics=metrics, **options))


def rescore(
    run: str | os.PathLike[str],
    *,
    metrics: Metrics,
    out: str | os.PathLike[str],
    entailer: resolve.EntailerChoice | None = None,
    embedder: str | Embedder | None = None,
    model: resolve.ChatChoice | None = None,
    seed: int | None = None,
    **options: Any,
) -> Run:
    """Score the samples of a stored run with other settings, into the folder ``out``.

    The new run starts with a copy of the old one's calls, so a model is asked only for what it
    was not asked before. Without ``entailer``, ``embedder``, ``model`` and ``seed`` the run's own
    are used.

    Raises:
        RunFolderError: ``run`` holds no run.
        As :func:`score`.
    """
    old, new = RunFolder(Path(run)), RunFolder(Path(out))
    settings = old.read_run()
    if settings is None or not old.samples_path.exists():
        raise RunFolderError(f"{old.path}: holds no run")
    if old.path.resolve() == new.path.resolve():
        raise RunFolderError(f"{new.path}: a run is not scored into its own folder")
    backends = settings["backends"]
    return score(
        old.samples_path,
        metrics=metrics,
        entailer=entailer or backends.get("entailer", resolve.DEFAULT_ENTAILER),
        embedder=embedder or backends.get("embedder", resolve.DEFAULT_EMBEDDER),
        model=model or _as_recorded(backends.get("model")),
        out=out,
        seed=settings["seed"] if seed is None else seed,
        calls_from=old.calls_path,
        **options,
    )


def _as_recorded(name: str | None) -> resolve.ChatChoice | None:
    """Return the model that a run names, or, where it cannot be had here, one that only bears its
    name: what it replied then is stored under it.
    """
    if name is None:
        return None
    try:
        return resolve.chat(name)
    except (UnknownNameError, BackendError) as error:
        return _Absent(name, str(error))


class _Absent:
    """A chat model of which only the stored replies are here."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    async def reply(self, request: ChatRequest) -> Reply:  # noqa: ARG002
        """Refuse; raises :class:`CallError`."""
        words = f"the run's model {self.name} cannot be asked here ({self._reason}); give --model"
        raise CallError(words, "closed")


def _chosen(metrics: Metrics) -> list[Metric]:
    """Return the metrics, built where they are given by name."""
    given = [metrics] if isinstance(metrics, str | Metric) else metrics
    chosen = [metric_from_text(m) if isinstance(m, str) else m for m in given]
    _check_metrics(chosen)
    return chosen


def _check_metrics(metrics: Sequence[Metric]) -> None:
    if not metrics:
        raise ValueError("no metric given")
    names = [metric.name for metric in metrics]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"metric {doubled[0]} is given more than once")
