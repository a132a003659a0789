"""A run on a Ray cluster.

1. Divide the input into shards, and copy them to the store.
2. Let one worker prepare what metrics need of all samples.
3. Hand the shards out to workers until all are finished.
4. Fetch their runs from the store, and merge them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trustassay.calls.backends import MODEL_ROLE, Backends
from trustassay.core.event_loop import run_anywhere
from trustassay.core.files import make_private_folder, write_atomic
from trustassay.core.metric import Inventory, Metric
from trustassay.core.progress import Progress, StepProgress, tell
from trustassay.errors import BackendError, RunFolderError, UsageError
from trustassay.input.urls import refuse_secret
from trustassay.ray.cluster import (
    ClusterOptions,
    WorkerPool,
    cause_of,
    connect_to_cluster,
    import_ray,
)
from trustassay.ray.shards import MAX_SHARDS, POOL_SUFFIX, MergeResult, merge_runs, split
from trustassay.ray.store import Store, fetch, fetch_prepared, is_finished
from trustassay.ray.worker import ClusterJob, remove_stale_folders
from trustassay.runs.answering_models import settle_models
from trustassay.runs.folder import RunFolder, check_settings, to_stored
from trustassay.runs.intake import Intake, RunOptions, Source, read_source_state
from trustassay.runs.lines import read_lines
from trustassay.runs.needs import check_run_keys, choose_backends, name_models, resolve_metrics
from trustassay.runs.prepare import PREPARATION, Preparation
from trustassay.runs.units import UNIT

CLUSTER_FOLDER = ".cluster"
"""Folder inside the run's folder; it is removed after the merge."""
SHARDS_PER_WORKER = 4
"""Several, so that workers finish at about the same time."""
MAX_SAMPLES_PER_SHARD = 5_000
"""So that a shard whose worker died is scored again quickly."""
POLL_INTERVAL_S = 0.5
STOP_TIMEOUT_S = 30.0


def score_on_cluster(
    source: Source,
    metrics: Sequence[Metric],
    backends: Mapping[str, Any],
    out: Path,
    options: RunOptions,
    cluster: ClusterOptions,
) -> MergeResult:
    """Score ``source`` on a cluster into the folder ``out``; the same call continues a stopped run.

    Raises:
        As :func:`~trustassay.runs.execute.execute`, before anything is started.
        BackendError: Ray is not installed, or what :func:`~trustassay.runs.needs.choose_backends`
        raises.
        ValueError: a metric, a backend or an option that only one machine can serve.
        RunFolderError: ``out`` holds another run; the workers of a shard died repeatedly.
        KeyboardInterrupt: stopped; finished assessments are stored.
    """
    if cluster.store:
        refuse_secret(cluster.store)
    # First, so that a missing Ray is reported before the input is read.
    import_ray(local=not cluster.address_of())
    _check_supported(metrics, backends, options)
    home = out / CLUSTER_FOLDER
    with ExitStack() as stack:
        stack.enter_context(RunFolder(home).claim())
        stack.callback(remove_stale_folders, cluster.scratch)
        # 1. Divide the input, and copy shards and pool to the store.
        plan = _plan_shards(_RunRequest(source, metrics, backends, home, options, cluster))
        store = Store(plan.job.store)
        names = {path: plan.job.name_of_shard(path.name) for path in plan.shards}
        if plan.pool:
            names[plan.pool] = plan.job.pool_name
        for path, name in names.items():
            # Shards are written once, so one of the same size is the same.
            if store.size(name) != path.stat().st_size:
                store.put(path, name)
        # The store, not this machine, knows which shards are finished.
        waiting = [
            shard
            for shard in plan.shards
            if not is_finished(store, plan.job.name_of_run(shard.name))
        ]
        if waiting:
            # 2. Score the shards that are not finished.
            if slower := why_local_is_faster(plan.samples, cluster):
                tell(slower)
            _score_shards(plan, waiting, cluster, options)
        # 3. Fetch the runs of all shards.
        runs = [home / "runs" / path.name for path in plan.shards]
        with StepProgress(visible=options.progress).begin("fetching shards", len(runs)) as step:
            for path in runs:
                # A run that an earlier call fetched is not fetched again.
                if RunFolder(path).read_summary() is None and not fetch(
                    store, plan.job.name_of_run(path.name), path
                ):
                    raise RunFolderError(
                        f"{store.url}: the run of {path.name} is missing; run the same command "
                        "again to score it"
                    )
                step()
        # If preparing failed there is nothing to fetch, and all samples have the error.
        if plan.pool:
            key = (RunFolder(runs[0]).read_run() or {}).get(PREPARATION, "")
            preparation, name = Preparation(plan.pool, key), plan.job.name_of_prepared(key)
            make_private_folder(preparation.path)
            fetch_prepared(store, name, preparation, plan.metrics, calls=True)
        # 4. Merge them. The shards and their runs are removed only after that.
        merged = merge_runs(
            runs,
            out,
            pool=plan.pool,
            prices=options.calls.prices,
            command=options.command,
            metrics=plan.metrics,
            source=plan.source,
            steps=StepProgress(visible=options.progress),
        )
    shutil.rmtree(home)
    return merged


def why_local_is_faster(samples: int, cluster: ClusterOptions) -> str:
    """Return why ``--engine local`` is likely faster; an empty text if it is not.

    On one machine the local engine uses all cores already, and starting a cluster takes seconds.
    """
    if not cluster.address_of():
        return (
            "on a single machine --engine local is faster: it uses all cores, and a Ray cluster "
            "takes about 10 s to start and end"
        )
    if samples < MAX_SAMPLES_PER_SHARD:
        return (
            f"with {samples:,} samples, --engine local is usually faster (below "
            f"{MAX_SAMPLES_PER_SHARD:,} samples), since workers take about 10 s to start"
        )
    return ""


@dataclass(frozen=True)
class _ShardPlan:
    """The shards of a run and the job of their workers."""

    job: ClusterJob
    shards: Sequence[Path]
    """The largest first."""
    pool: Path | None
    """The file of all samples, if a metric needs it."""
    metrics: Sequence[Metric]
    source: str
    samples: int
    """The number of samples."""


def _check_supported(
    metrics: Sequence[Metric], backends: Mapping[str, Any], options: RunOptions
) -> None:
    """Raise :class:`UsageError` for what a cluster cannot do, before anything is started."""
    if options.pool is not None and (beyond := [metric.name for metric in metrics if metric.pool]):
        raise UsageError(
            f"--pool: {beyond[0]} compares each sample with this file, which workers do not have; "
            "leave out --engine ray, or leave out --pool to compare with the input itself"
        )
    for role, choice in backends.items():
        values = choice.values() if isinstance(choice, Mapping) else choice
        has_several = isinstance(choice, Mapping | Sequence) and not isinstance(choice, str)
        for uri in values if has_several else [choice]:
            # An object in memory cannot be sent to a worker.
            if not isinstance(uri, str | None):
                raise UsageError(
                    f"{role}: --engine ray needs a URI, since each worker loads the model itself; "
                    f"got {uri!r:.60}"
                )
    if options.calls.budget:
        raise UsageError(
            "--budget: several workers cannot keep a budget together; leave out --engine ray"
        )


@dataclass(frozen=True)
class _RunRequest:
    """The arguments of :func:`score_on_cluster`."""

    source: Source
    metrics: Sequence[Metric]
    backends: Mapping[str, Any]
    home: Path
    """The folder :data:`CLUSTER_FOLDER` inside the run's folder."""
    options: RunOptions
    cluster: ClusterOptions

    def settings(self) -> dict[str, Any]:
        """Return what must stay the same when a run is continued."""
        options = self.options
        return to_stored(
            {
                "trustassay": version("trustassay"),
                "input": str(self.source),
                "metrics": {metric.name: metric.settings() for metric in self.metrics},
                "backends": dict(self.backends),
                "seed": options.seed,
                **({UNIT: options.unit} if options.unit else {}),
                "limit": options.limit,
                "fields": dict(options.fields),
                **({"turns": options.turns} if options.turns != RunOptions.turns else {}),
                **({"sheet": options.sheet} if options.sheet is not None else {}),
                **({"answer_span": options.answer_span} if options.answer_span else {}),
            }
        )


def _plan_shards(request: _RunRequest) -> _ShardPlan:
    """Divide the input, or continue with the existing shards if the input is unchanged."""
    if not isinstance(request.source, str | os.PathLike):
        raise UsageError("--engine ray: expected a file, a folder or a URL, not data in memory")
    home, options, cluster = request.home, request.options, request.cluster
    settings, state = request.settings(), [*read_source_state(request.source), options.skip_bad]
    plan = RunFolder(home).read_json("plan")
    if plan:
        # Raises if the unfinished run in the folder had other settings.
        check_settings(home.parent, plan["settings"], settings, "an unfinished run")
    if plan is None or plan["state"] != state:
        divided = run_anywhere(lambda: _divide_input(request, plan))
        plan = {**divided, "settings": settings, "state": state}
        write_atomic(home / "plan.json", json.dumps(plan, indent=2).encode())
    inventory = Inventory(**plan["inventory"])
    backends = {**request.backends, **plan.get("models", {})}
    settled = resolve_metrics(request.metrics, inventory, backends)
    # Replies belong to the whole series of jobs of a run, so a corrected input repeats none.
    first = [*plan["before"], plan["id"]][0]
    job = ClusterJob(
        plan["id"],
        {metric.name: metric.settings() for metric in settled},
        backends,
        _build_worker_options(options),
        cluster.store or str((home / "store").resolve()),
        "replies" if options.calls.cache else f"{first}/replies",
        pool_sha256=plan["whole"],
        scratch=cluster.scratch,
        keep_every_s=cluster.keep_every_s,
        earlier_jobs=tuple(plan["before"]),
        files=tuple(metric.origin for metric in settled if metric.origin),
    )
    folder = home / plan["id"]
    pool = next(folder.glob(f"*{POOL_SUFFIX}"), None)
    shards = sorted(
        (path for path in folder.iterdir() if path != pool),
        # The largest first: the end of the run then waits for a small one.
        key=lambda path: (-path.stat().st_size, path.name),
    )
    return _ShardPlan(job, shards, pool, settled, os.fspath(request.source), inventory.samples)


async def _divide_input(request: _RunRequest, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the input and write its shards; as many as ``before`` had, if there was a plan."""
    home, metrics, cluster = request.home, request.metrics, request.cluster
    backends = await choose_backends(metrics, request.backends, load=False)
    shutil.rmtree(home / "new", ignore_errors=True)  # of a process that was killed
    division = await split(
        request.source,
        home / "new",
        lambda samples: before["into"] if before else _choose_shard_count(samples, cluster),
        request.options,
        metrics=metrics,
        backends=backends,
        keep_whole=any(metric.pool for metric in metrics),
    )
    inventory = division.intake.inventory
    # A worker sees a part of the samples, and cannot say which models the input has.
    try:
        models = _settle_uris(request, backends, division.intake)
    except UsageError:
        shutil.rmtree(home / "new")
        raise
    if before is None and not (cluster.store or cluster.address_of()):
        # a store may have the replies, and workers elsewhere have keys of their own
        try:
            check_run_keys(metrics, backends, [], inventory.unanswered)
        except BackendError:
            shutil.rmtree(home / "new")
            raise
    content = [
        {**request.settings(), "input": 0},
        division.intake.sha256,
        division.intake.faulty,
        division.into,
    ]
    # The id follows from input and settings: the same input after a crash has the same shards.
    identifier = hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
    # Runs of the earlier division do not belong to these shards.
    for path in (home / identifier, home / "runs"):
        shutil.rmtree(path, ignore_errors=True)
    (home / "new").rename(home / identifier)
    earlier = [] if before is None else [*before["before"], before["id"]]
    return {
        "id": identifier,
        "into": division.into,
        "inventory": dataclasses.asdict(inventory),
        "whole": division.intake.sha256 if division.pool_path else "",
        "before": [job for job in dict.fromkeys(earlier) if job != identifier],
        "models": models,
    }


def _settle_uris(request: _RunRequest, backends: Backends, intake: Intake) -> dict[str, Any]:
    """Return the models under assessment, as a backend by its option name, if they have names.

    Raises:
        UsageError: as :func:`~trustassay.runs.answering_models.settle_models`.
    """
    settled = settle_models(backends, intake.census, is_drawn=request.options.is_part)
    old_names = {id(model): place.name for place, model in backends.by_key.items()}
    names = settled.names_of_role(MODEL_ROLE)
    if not names or "" in names:
        return {}
    uris = name_models(request.backends[MODEL_ROLE], MODEL_ROLE)
    models = {name: settled.find("chat", MODEL_ROLE, name) for name in names}
    return {MODEL_ROLE: {name: uris[old_names[id(model)]] for name, model in models.items()}}


def _build_worker_options(options: RunOptions) -> RunOptions:
    """Return the options of a shard's run, without what concerns the whole run.

    ``answering`` and ``pairing`` are copied, since they cache a template that cannot be pickled.
    """
    filling = options.filling
    return dataclasses.replace(
        options,
        fields={},
        sheet=None,
        limit=None,
        report=False,
        pool=None,
        progress=False,
        command=None,
        filling=dataclasses.replace(
            filling,
            answering=dataclasses.replace(filling.answering),
            pairing=dataclasses.replace(filling.pairing),
        ),
    )


def _choose_shard_count(samples: int, cluster: ClusterOptions) -> int:
    """Return the number of shards: several for each worker, none too large to score again."""
    workers = cluster.workers or os.cpu_count() or 1
    usual = max(SHARDS_PER_WORKER * workers, -(-samples // MAX_SAMPLES_PER_SHARD))
    return max(1, min(cluster.shards or usual, samples, MAX_SHARDS))


@dataclass
class _ShardStates:
    """The state of all shards while they are scored."""

    waiting: list[Path]
    running: dict[Any, tuple[Any, Path]] = field(default_factory=dict)
    """Worker and shard by Ray task."""
    counts: dict[Path, int] = field(default_factory=dict)
    """Assessments by shard."""
    deaths_without_progress: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """By shard: assessments when its worker last died, and deaths since it made progress."""
    deaths: int = 0
    """Deaths of workers in all."""

    def record_death(self, shard: Path, retries: int) -> None:
        """Put a shard back after its worker died.

        Raises:
            RunFolderError: it died more than ``retries`` times without scoring anything more.
        """
        self.deaths += 1
        assessments = self.counts.get(shard, 0)
        before, times = self.deaths_without_progress.get(shard, (-1, 0))
        # A shard that makes progress between deaths may die any number of times.
        times = times + 1 if assessments <= before else 1
        if times > retries:
            raise RunFolderError(
                f"{shard.name}: its worker died {times} times without progress, perhaps "
                "for lack of memory; finished work is kept; run the same command again to continue"
            )
        self.deaths_without_progress[shard] = (assessments, times)
        self.waiting.insert(0, shard)


def _score_shards(
    plan: _ShardPlan, waiting: Sequence[Path], cluster: ClusterOptions, options: RunOptions
) -> None:
    """Start the workers and score all waiting shards.

    Raises:
        BackendError: several machines cannot share a store in a local folder.
    """
    with connect_to_cluster(cluster) as ray:
        worker_pool = WorkerPool(ray, plan.job, cluster, len(waiting))
        if worker_pool.nodes > 1 and cluster.store is None:
            raise BackendError(
                f"the cluster has {worker_pool.nodes} machines; set --store to a folder or URL "
                "that all of them can reach"
            )
        total = plan.samples * len(plan.metrics)
        # A finished shard has an assessment for each line and metric.
        counts = {
            shard: len(plan.metrics) * sum(1 for _ in read_lines(shard))
            for shard in plan.shards
            if shard not in waiting
        }
        states = _ShardStates(list(waiting), counts=counts)
        with Progress("scoring", total, visible=options.progress) as progress:
            progress.resume(sum(states.counts.values()))
            try:
                if plan.pool:
                    _prepare_pool(worker_pool, cluster.retries)
                _hand_out(worker_pool, states, cluster, progress)
            finally:
                # Also on Ctrl-C, so that finished assessments are stored.
                _stop_workers(worker_pool, states)
    if options.progress and states.deaths:
        tell(f"shards retried because a worker died: {states.deaths}")


def _prepare_pool(worker_pool: WorkerPool, retries: int) -> None:
    """Let a worker prepare what metrics need of all samples; if it dies, another one tries."""
    deaths = 0
    task = worker_pool.workers[0].prepare.remote()
    while not (state := worker_pool.is_done(task)):
        if state is None:
            deaths += 1
            if deaths > retries:
                raise RunFolderError(
                    f"workers died {deaths} times while they prepared data for all "
                    "samples, perhaps for lack of memory; run the same command again to retry"
                )
            task = worker_pool.workers[deaths % len(worker_pool.workers)].prepare.remote()
        worker_pool.ray.wait([task], timeout=POLL_INTERVAL_S)


def _hand_out(
    worker_pool: WorkerPool, states: _ShardStates, cluster: ClusterOptions, progress: Progress
) -> None:
    """Hand waiting shards to idle workers until all are finished."""
    ray = worker_pool.ray
    starting = [(worker, worker.ready.remote()) for worker in worker_pool.workers]
    idle: list[Any] = []
    count_requests: dict[Any, Any] = {}  # the count of each worker's shard that was asked for
    while states.waiting or states.running:
        # 1. Workers that have loaded their models are idle; dead ones start again.
        starting, pending = [], starting
        for worker, ready in pending:
            if state := worker_pool.is_done(ready):
                idle.append(worker)
            else:
                starting.append((worker, worker.ready.remote() if state is None else ready))
        # 2. Give each idle worker a shard.
        while idle and states.waiting:
            worker, shard = idle.pop(), states.waiting.pop(0)
            states.running[worker.score.remote(shard.name)] = (worker, shard)
        if not states.running:
            time.sleep(POLL_INTERVAL_S)
            continue
        # 3. Collect finished shards; put those of dead workers back.
        finished_tasks, _ = ray.wait(list(states.running), num_returns=1, timeout=POLL_INTERVAL_S)
        for task in finished_tasks:
            worker, shard = states.running.pop(task)
            try:
                states.counts[shard] = max(states.counts.get(shard, 0), ray.get(task))
                idle.append(worker)
            except ray.exceptions.RayActorError:  # Ray starts it again
                states.record_death(shard, cluster.retries)
                starting.append((worker, worker.ready.remote()))
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
        # 4. Ask the others how far they are, without waiting for the answer.
        for worker, shard in states.running.values():
            name, count = _poll_count(ray, count_requests, worker)
            if name == shard.name:
                states.counts[shard] = max(states.counts.get(shard, 0), count)
        # A shard that started again may count less than before; progress never goes back.
        progress.step(max(0, min(sum(states.counts.values()), progress.total or 0) - progress.done))


def _poll_count(ray: Any, count_requests: dict[Any, Any], worker: Any) -> tuple[str, int]:
    """Return shard and count of a worker's last answer, and ask again; never wait."""
    task = count_requests.get(worker)
    if task is None:
        count_requests[worker] = worker.count_assessments.remote()
        return "", 0
    if not ray.wait([task], timeout=0)[0]:
        return "", 0
    del count_requests[worker]
    try:
        name, count = ray.get(task)
    except ray.exceptions.RayError:
        return "", 0
    return name, count


def _stop_workers(worker_pool: WorkerPool, states: _ShardStates) -> None:
    """Stop all workers; they store what is finished and remove their folders."""
    ray = worker_pool.ray
    leaving = {worker.leave.remote(): worker for worker in worker_pool.workers}
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while leaving and time.monotonic() < deadline:
        for task in ray.wait(list(leaving), timeout=POLL_INTERVAL_S)[0]:
            worker = leaving.pop(task)
            try:
                ray.get(task)
            except ray.exceptions.ActorUnavailableError:  # it is being started again
                time.sleep(POLL_INTERVAL_S)
                leaving[worker.leave.remote()] = worker
            except ray.exceptions.RayError:  # it is dead, or its folder cannot be removed
                continue
    for worker in worker_pool.workers:
        ray.kill(worker)
    states.running.clear()
