"""A run on a cluster: its shards are handed out to workers, and what they return is merged."""

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

from trustassay.errors import BackendError, RunFolderError, UsageError
from trustassay.event_loop import run_anywhere
from trustassay.files import write_whole
from trustassay.metric import Inventory, Metric
from trustassay.progress import Progress, Steps, tell
from trustassay.runs.counts import UNIT
from trustassay.runs.folder import RunFolder, as_stored, check_settings
from trustassay.runs.intake import RunOptions, Source, state_of
from trustassay.runs.lines import file_lines
from trustassay.runs.needs import check_run_keys, resolved, settle
from trustassay.runs.prepare import PREPARATION, Preparation
from trustassay_cluster.ray_cluster import ClusterOptions, Crew, cause_of, connected, import_ray
from trustassay_cluster.shards import MOST_SHARDS, WHOLE, Merged, merge_runs, split
from trustassay_cluster.store import Store, fetch, fetch_prepared, finished
from trustassay_cluster.worker import Job, remove_left

HOME = ".cluster"
"""The folder inside the run's, as long as the run is not merged."""
SHARDS_A_WORKER = 4
SAMPLES_A_SHARD = 5_000
LOOK_EVERY_S = 0.5
STOP_WITHIN_S = 30.0


def score_on_cluster(
    source: Source,
    metrics: Sequence[Metric],
    backends: Mapping[str, Any],
    out: Path,
    options: RunOptions,
    cluster: ClusterOptions,
) -> Merged:
    """Score ``source`` on a cluster into the folder ``out``; the same call goes on after a stop.

    Raises:
        As :func:`~trustassay.runs.execute.execute`, before anything is started.
        BackendError: Ray is not installed, or what :func:`~trustassay.runs.needs.settle` raises.
        ValueError: a metric, a backend or an option that only one machine can serve.
        RunFolderError: ``out`` holds another run; a shard's worker died again and again.
        KeyboardInterrupt: stopped; what was finished is kept.
    """
    import_ray(local=not cluster.address_of())
    _check(metrics, backends, options)
    home = out / HOME
    with ExitStack() as stack:
        stack.enter_context(RunFolder(home).claimed())
        stack.callback(remove_left, cluster.scratch)
        plan = _planned(_Asked(source, metrics, backends, home, options, cluster))
        store = Store(plan.job.store)
        names = {path: f"{plan.job.id}/shards/{path.name}" for path in plan.shards}
        if plan.pool:
            names[plan.pool] = plan.job.whole_name
        for path, name in names.items():
            if store.size(name) != path.stat().st_size:
                store.put(path, name)
        waiting = [one for one in plan.shards if not finished(store, plan.name_of(one))]
        if waiting:
            if slower := slower_than_local(plan.samples, cluster):
                tell(slower)
            _run(plan, waiting, cluster, options)
        runs = [home / "runs" / path.name for path in plan.shards]
        with Steps(shown=options.progress).begin("fetching shards", len(runs)) as step:
            for path in runs:
                if RunFolder(path).read_summary() is None and not fetch(
                    store, plan.name_of(path), path
                ):
                    raise RunFolderError(f"{store.url}: the run of {path.name} is not there")
                step()
        if plan.pool:  # nothing is there where preparing failed, as all samples say
            key = (RunFolder(runs[0]).read_run() or {}).get(PREPARATION, "")
            preparation, name = Preparation(plan.pool, key), plan.job.prepared_name(key)
            preparation.path.mkdir(parents=True, exist_ok=True)
            fetch_prepared(store, name, preparation, plan.metrics, calls=True)
        merged = merge_runs(
            runs,
            out,
            pool=plan.pool,
            prices=options.calls.prices,
            command=options.command,
            metrics=plan.metrics,
            source=plan.source,
            steps=Steps(shown=options.progress),
        )
    shutil.rmtree(home)
    return merged


def slower_than_local(samples: int, cluster: ClusterOptions) -> str:
    """Return why ``--engine local`` is likely faster; empty where it is not.

    On one machine the local engine uses all cores already, and starting a cluster takes seconds.
    """
    if not cluster.address_of():
        return (
            "a cluster of this machine alone is slower than --engine local, which uses all cores: "
            "it takes about 10 s to start and end"
        )
    if samples < SAMPLES_A_SHARD:
        return (
            f"{samples:,} samples: below {SAMPLES_A_SHARD:,} --engine local is usually faster, "
            "since workers take about 10 s to start"
        )
    return ""


@dataclass(frozen=True)
class _Plan:
    """The shards of a run, the largest first; ``pool`` is the file of all samples, if needed."""

    job: Job
    shards: Sequence[Path]
    pool: Path | None
    metrics: Sequence[Metric]
    source: str
    samples: int

    def name_of(self, shard: Path) -> str:
        """Return the name under which the run of a shard is kept."""
        return f"{self.job.id}/runs/{shard.name}"


def _check(metrics: Sequence[Metric], backends: Mapping[str, Any], options: RunOptions) -> None:
    """Refuse what a cluster cannot do, before anything is started."""
    if options.pool is not None and (beyond := [one.name for one in metrics if one.pool]):
        raise UsageError(
            f"{beyond[0]} compares a sample with those of --pool, which workers do not have: score "
            "it without --engine ray, or compare it with those of the input"
        )
    for word, choice in backends.items():
        values = choice.values() if isinstance(choice, Mapping) else choice
        several = isinstance(choice, Mapping | Sequence) and not isinstance(choice, str)
        for one in values if several else [choice]:
            if not isinstance(one, str | None):
                raise UsageError(
                    f"{word}: each worker loads its own, so --engine ray takes a URI, got "
                    f"{one!r:.60}"
                )
    if options.calls.budget:
        raise UsageError("--budget is not kept by several workers: score without --engine ray")


@dataclass(frozen=True)
class _Asked:
    """What the caller asked for. home: the folder inside the run's."""

    source: Source
    metrics: Sequence[Metric]
    backends: Mapping[str, Any]
    home: Path
    options: RunOptions
    cluster: ClusterOptions

    def settings(self) -> dict[str, Any]:
        """Return what must stay the same when a run goes on."""
        options = self.options
        return as_stored(
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
            }
        )


def _planned(asked: _Asked) -> _Plan:
    """Divide the input, anew if it was changed, or go on with the shards that are there."""
    if not isinstance(asked.source, str | os.PathLike):
        raise UsageError("--engine ray takes a file")
    home, options, cluster = asked.home, asked.options, asked.cluster
    settings, state = asked.settings(), [*state_of(asked.source), options.skip_bad]
    plan = RunFolder(home).read_json("plan")
    if plan:
        check_settings(home.parent, plan["settings"], settings, "an unfinished run")
    if plan is None or plan["state"] != state:
        divided = run_anywhere(lambda: _divided(asked, plan))
        plan = {**divided, "settings": settings, "state": state}
        write_whole(home / "plan.json", json.dumps(plan, indent=2).encode())
    inventory = Inventory(**plan["inventory"])
    settled = resolved(asked.metrics, inventory, asked.backends)
    first = [*plan["before"], plan["id"]][0]
    job = Job(
        plan["id"],
        {metric.name: metric.settings() for metric in settled},
        asked.backends,
        _for_workers(options),
        cluster.store or str((home / "store").resolve()),
        "replies" if options.calls.cache else f"{first}/replies",
        whole=plan["whole"],
        scratch=cluster.scratch,
        keep_every_s=cluster.keep_every_s,
        before=tuple(plan["before"]),
        files=tuple(metric.origin for metric in settled if metric.origin),
    )
    folder = home / plan["id"]
    pool = next(folder.glob(f"*{WHOLE}"), None)
    shards = sorted(
        (path for path in folder.iterdir() if path != pool),
        key=lambda path: (-path.stat().st_size, path.name),
    )
    return _Plan(job, shards, pool, settled, os.fspath(asked.source), inventory.samples)


async def _divided(asked: _Asked, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the input and write its shards, as many as ``before``."""
    home, metrics, cluster = asked.home, asked.metrics, asked.cluster
    backends = await settle(metrics, asked.backends, load=False)
    shutil.rmtree(home / "new", ignore_errors=True)  # of a process that was killed
    found = await split(
        asked.source,
        home / "new",
        lambda samples: before["into"] if before else _into(samples, cluster),
        asked.options,
        metrics=metrics,
        backends=backends,
        keep_whole=any(metric.pool for metric in metrics),
    )
    inventory = found.intake.inventory
    if before is None and not (cluster.store or cluster.address_of()):
        # a store may have the replies, and workers elsewhere have keys of their own
        try:
            check_run_keys(metrics, backends, [], inventory.samples - inventory.responses)
        except BackendError:
            shutil.rmtree(home / "new")
            raise
    content = [
        {**asked.settings(), "input": 0},
        found.intake.sha256,
        found.intake.faulty,
        found.into,
    ]
    identifier = hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()
    for path in (home / identifier, home / "runs"):
        shutil.rmtree(path, ignore_errors=True)
    (home / "new").rename(home / identifier)
    earlier = [] if before is None else [*before["before"], before["id"]]
    return {
        "id": identifier,
        "into": found.into,
        "inventory": dataclasses.asdict(inventory),
        "whole": found.intake.sha256 if found.whole else "",
        "before": [one for one in dict.fromkeys(earlier) if one != identifier],
    }


def _for_workers(options: RunOptions) -> RunOptions:
    """Return the options of a shard's run; copies of what holds a template, which is not sent."""
    filling = options.filling
    return dataclasses.replace(
        options,
        fields={},
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


def _into(samples: int, cluster: ClusterOptions) -> int:
    """Return the number of shards: several for each worker, and none too large to do again."""
    workers = cluster.workers or os.cpu_count() or 1
    usual = max(SHARDS_A_WORKER * workers, -(-samples // SAMPLES_A_SHARD))
    return max(1, min(cluster.shards or usual, samples, MOST_SHARDS))


@dataclass
class _Board:
    """What is known of the shards while they are scored."""

    waiting: list[Path]
    running: dict[Any, tuple[Any, Path]] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)
    vain: dict[Path, tuple[int, int]] = field(default_factory=dict)
    deaths: int = 0

    def died(self, shard: Path, retries: int) -> None:
        """Put a shard back; raises :class:`RunFolderError` if that was in vain too often."""
        self.deaths += 1
        counted = self.counts.get(shard, 0)
        before, times = self.vain.get(shard, (-1, 0))
        times = times + 1 if counted <= before else 1
        if times > retries:
            raise RunFolderError(
                f"{shard.name}: its worker died {times} times without scoring more (memory?); "
                "what was finished is kept; run the same command again to continue"
            )
        self.vain[shard] = (counted, times)
        self.waiting.insert(0, shard)


def _run(
    plan: _Plan, waiting: Sequence[Path], cluster: ClusterOptions, options: RunOptions
) -> None:
    """Hand the shards out until all are finished."""
    with connected(cluster) as ray:
        crew = Crew(ray, plan.job, cluster, len(waiting))
        if crew.nodes > 1 and cluster.store is None:
            raise BackendError(
                f"the cluster has {crew.nodes} machines: give --store, a folder or URL that all "
                "of them reach"
            )
        total, each = plan.samples * len(plan.metrics), len(plan.metrics)
        ended = [shard for shard in plan.shards if shard not in waiting]
        counts = {shard: each * sum(1 for _ in file_lines(shard)) for shard in ended}
        board = _Board(list(waiting), counts=counts)
        with Progress("scoring", total, shown=options.progress) as progress:
            progress.step(sum(board.counts.values()))
            try:
                if plan.pool:
                    _prepare(crew, cluster.retries)
                _hand_out(crew, board, cluster, progress)
            finally:
                _leave(crew, board)
    if options.progress and board.deaths:
        tell(f"shards put back since their worker died: {board.deaths}")


def _prepare(crew: Crew, retries: int) -> None:
    """Let a worker prepare what all need of all samples, or another one where it dies."""
    deaths = 0
    asked = crew.workers[0].prepare.remote()
    while not (state := crew.is_done(asked)):
        if state is None:
            deaths += 1
            if deaths > retries:
                raise RunFolderError(
                    f"workers died {deaths} times while they prepared what all samples need "
                    "(memory?); run the same command again to retry"
                )
            asked = crew.workers[deaths % len(crew.workers)].prepare.remote()
        crew.ray.wait([asked], timeout=LOOK_EVERY_S)


def _hand_out(crew: Crew, board: _Board, cluster: ClusterOptions, progress: Progress) -> None:
    ray = crew.ray
    starting = [(worker, worker.ready.remote()) for worker in crew.workers]
    idle: list[Any] = []
    asked: dict[Any, Any] = {}  # the count of each worker's shard that was asked for
    while board.waiting or board.running:
        starting, before = [], starting
        for worker, ready in before:
            if state := crew.is_done(ready):
                idle.append(worker)
            else:
                starting.append((worker, worker.ready.remote() if state is None else ready))
        while idle and board.waiting:
            worker, shard = idle.pop(), board.waiting.pop(0)
            board.running[worker.score.remote(shard.name)] = (worker, shard)
        if not board.running:
            time.sleep(LOOK_EVERY_S)
            continue
        ended, _ = ray.wait(list(board.running), num_returns=1, timeout=LOOK_EVERY_S)
        for task in ended:
            worker, shard = board.running.pop(task)
            try:
                board.counts[shard] = max(board.counts.get(shard, 0), ray.get(task))
                idle.append(worker)
            except ray.exceptions.RayActorError:  # Ray starts it again
                board.died(shard, cluster.retries)
                starting.append((worker, worker.ready.remote()))
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
        for worker, shard in board.running.values():
            name, count = _answer(ray, asked, worker)
            if name == shard.name:
                board.counts[shard] = max(board.counts.get(shard, 0), count)
        progress.step(max(0, min(sum(board.counts.values()), progress.total or 0) - progress.done))


def _answer(ray: Any, asked: dict[Any, Any], worker: Any) -> tuple[str, int]:
    """Return the shard and the count that a worker answered, and ask it again, without waiting."""
    task = asked.get(worker)
    if task is None:
        asked[worker] = worker.done.remote()
        return "", 0
    if not ray.wait([task], timeout=0)[0]:
        return "", 0
    del asked[worker]
    try:
        name, count = ray.get(task)
    except ray.exceptions.RayError:
        return "", 0
    return name, count


def _leave(crew: Crew, board: _Board) -> None:
    """Stop all workers; what they have finished is kept, and nothing stays on their machines."""
    ray = crew.ray
    leaving = {worker.leave.remote(): worker for worker in crew.workers}
    until = time.monotonic() + STOP_WITHIN_S
    while leaving and time.monotonic() < until:
        for task in ray.wait(list(leaving), timeout=LOOK_EVERY_S)[0]:
            worker = leaving.pop(task)
            try:
                ray.get(task)
            except ray.exceptions.ActorUnavailableError:  # it is being started again
                time.sleep(LOOK_EVERY_S)
                leaving[worker.leave.remote()] = worker
            except ray.exceptions.RayError:  # it is dead, or its folder cannot be removed
                continue
    for worker in crew.workers:
        ray.kill(worker)
    board.running.clear()
