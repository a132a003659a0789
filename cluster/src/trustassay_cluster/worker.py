"""A worker: scores one shard after another, with models that are loaded once.

It knows nothing of what starts it and hands out the shards.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trustassay.calls.backends import Backends
from trustassay.calls.leases import Ask, Grant, Leases
from trustassay.capabilities import EndpointLimits
from trustassay.errors import RunFolderError
from trustassay.metric import Metric
from trustassay.registry import MetricFile, recorded_class
from trustassay.runs.execute import execute
from trustassay.runs.fill import stages_of
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import settle
from trustassay.runs.prepare import Preparation, key_of, prepare_once
from trustassay_cluster.store import Keeper, SharedReplies, Store, fetch_prepared, keep_prepared

PREFIX = "trustassay-job-"


class Scratch:
    """A job's folder, from :meth:`enter` to :meth:`leave`.

    path: of the folder. All workers of the job on one machine share it.
    """

    def __init__(self, home: str | None, job: str) -> None:
        """``home`` is the folder for such folders; ``None`` for the temporary one."""
        self.path = _home(home) / f"{PREFIX}{job}"
        self._held: int | None = None

    def enter(self) -> None:
        """Make the folder, for this user alone, or share it with other workers.

        Raises:
            RunFolderError: another user owns it.
            OSError: it cannot be made.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._held is None:
            self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # removed by another process in between
                continue
            if os.fstat(held).st_uid != os.getuid():
                os.close(held)
                raise RunFolderError(
                    f"{self.path}: belongs to another user; give --scratch, a folder of your own"
                )
            os.fchmod(held, 0o700)
            fcntl.flock(held, fcntl.LOCK_SH)
            if self.path.exists() and os.path.samestat(os.fstat(held), self.path.stat()):
                self._held = held
            else:  # removed before the lock was held
                os.close(held)

    def leave(self) -> None:
        """Remove the folder, unless other workers use it."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
            _remove(self.path)


def remove_left(home: str | None) -> None:
    """Remove the folders of this user's killed processes."""
    for path in _home(home).glob(f"{PREFIX}*"):
        _remove(path)


def _home(home: str | None) -> Path:
    return Path(home or tempfile.gettempdir())


def _remove(path: Path) -> None:
    """Remove a folder of this user that no process holds."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(held).st_uid == os.getuid():
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # in use
        return
    finally:
        os.close(held)


T = TypeVar("T")
WHOLE = "whole.jsonl"
KEEP_EVERY_S = 30.0
KEEP_SHARE = 0.05
"""At most about this part of the time is spent on copying."""
FREE_WITHIN_S = 60.0
"""So long a worker waits for the process that worked on a shard before to end."""


@dataclass(frozen=True)
class Job:
    """What all workers of a run share.

    id: under which the store keeps its shards. metrics: settings by name. backends: URIs by word.
    replies: the folder in the store of the replies that workers share. workers: how many there are.
    whole: the SHA-256 of all samples, where metrics look beyond a shard; else empty.
    scratch: folder on each machine's own disk; ``None`` for one in the temporary folder.
    before: earlier jobs of this run, whose input was mended since: their calls are not repeated.
    files: the user's own, of metrics that are classes in them.
    """

    id: str
    metrics: Mapping[str, Mapping[str, Any]]
    backends: Mapping[str, Any]
    options: RunOptions
    store: str
    replies: str
    whole: str = ""
    workers: int = 1
    scratch: str | None = None
    keep_every_s: float = KEEP_EVERY_S
    before: tuple[str, ...] = ()
    files: tuple[MetricFile, ...] = ()

    @property
    def whole_name(self) -> str:
        """The name of the file of all samples in the store."""
        return f"{self.id}/{WHOLE}"

    def prepared_name(self, key: str) -> str:
        """Return under which name the store keeps what is prepared for all shards."""
        return f"{self.id}/prepared/{key}"


class Worker:
    """Scores shards; used in one event loop."""

    def __init__(self, job: Job, service: Any = None) -> None:
        """``service`` is the actor that leases calls to endpoints, if there is one."""
        self._job, self._service = job, service
        self._store = Store(job.store)
        self._scratch = Scratch(job.scratch, job.id)
        self._scratch.enter()
        remove_left(job.scratch)
        self._options = replace(
            job.options,
            calls=replace(
                job.options.calls,
                cache=self._scratch.path / "calls",
                open_shared=lambda path: SharedReplies(path, self._store, job.replies, job.id),
                sharing=service and Leases(self._lease, os.urandom(4).hex(), job.workers),
            ),
        )
        self._metrics: list[Metric] = []
        self._backends = Backends()
        self._work: asyncio.Task[Any] | None = None
        self._folder: RunFolder | None = None
        self._counted = (0, 0)  # bytes and lines

    async def _lease(self, address: str, limits: EndpointLimits, ask: Ask) -> Grant:
        found: Grant = await self._service.lease.remote(address, limits, ask)
        return found

    async def ready(self) -> None:
        """Load metrics and backends; raises what :func:`~trustassay.runs.needs.settle` does."""
        if not self._metrics:
            for file in self._job.files:
                file.load()
            classes = [recorded_class(name, own) for name, own in self._job.metrics.items()]
            metrics = [cls(**options) for cls, options in classes]
            self._backends = await settle(metrics, self._job.backends)
            self._metrics = metrics

    async def score(self, shard: str) -> int:
        """Score the shard of this file name to its end, and keep its run in the store.

        Return the number of assessments.

        Raises:
            asyncio.CancelledError: stopped; what was finished is kept.
            As :func:`~trustassay.runs.execute.execute`; OSError.
        """
        return await self._working(partial(self._score, shard))

    async def prepare(self) -> None:
        """Prepare what metrics need of all samples, and keep it in the store for all workers.

        What fails is tried again by the run of each shard, whose samples say why.
        """
        await self._working(self._prepare)

    async def _working(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do what :meth:`stop` stops."""
        await self.ready()
        self._work = task = asyncio.ensure_future(work())
        try:
            return await task
        finally:
            self._work = self._folder = None

    async def done(self) -> tuple[str, int]:
        """Return the present shard, and the number of its assessments."""
        if self._folder is None or not self._folder.assessments_path.exists():
            return "", 0
        with self._folder.assessments_path.open("rb") as file:
            size, lines = self._counted
            file.seek(size)
            more = file.read()
        self._counted = (size + len(more), lines + more.count(b"\n"))
        return self._folder.path.name, self._counted[1]

    async def stop(self) -> None:
        """Stop what is in progress, and wait until what was finished is kept."""
        if self._work:
            self._work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._work

    async def leave(self) -> None:
        """Stop, and remove what is on this machine, unless other workers use it."""
        await self.stop()
        await asyncio.to_thread(self._scratch.leave)

    async def _prepare(self) -> None:
        metrics, backends = self._metrics, self._backends
        preparation = await self._preparation()
        if preparation.read() is None:
            stages = stages_of(metrics, backends, self._options.filling)
            await prepare_once(preparation, metrics, stages, backends, self._options.calls)
        await self._keep_prepared(preparation)

    async def _preparation(self) -> Preparation:
        """Fetch all samples, and what is prepared of them, as far as it is kept."""
        job, pool = self._job, self._scratch.path / WHOLE
        if not pool.exists() and not await asyncio.to_thread(self._store.get, job.whole_name, pool):
            raise RunFolderError(f"{job.store}: holds no {WHOLE}; run the same command again")
        metrics, backends = self._metrics, self._backends
        stages = stages_of(metrics, backends, self._options.filling)
        preparation = Preparation(pool, key_of(job.whole, metrics, stages, backends))
        name = job.prepared_name(preparation.key)
        fetch = partial(fetch_prepared, self._store, name, preparation, metrics, calls=False)
        async with preparation.alone(shown=False):  # by one worker of this machine
            await asyncio.to_thread(fetch)
        return preparation

    async def _keep_prepared(self, preparation: Preparation) -> None:
        name = self._job.prepared_name(preparation.key)
        await asyncio.to_thread(keep_prepared, preparation, self._metrics, self._store, name)

    async def _score(self, shard: str) -> int:
        home, job = self._scratch.path, self._job
        source = home / shard
        if not source.exists() and not await asyncio.to_thread(
            self._store.get, f"{job.id}/shards/{shard}", source
        ):
            raise RunFolderError(f"{job.store}: holds no {shard}; run the same command again")
        options = replace(
            self._options, calls_from=await asyncio.to_thread(self._calls_before, shard)
        )
        preparation = None
        if job.whole:
            preparation = await self._preparation()
            options = replace(options, pool=preparation.pool)
        folder = RunFolder(home / "runs" / shard)
        keeper = Keeper(folder, self._store, f"{job.id}/runs/{shard}")
        await _free(folder)
        await asyncio.to_thread(keeper.fetch)
        self._folder, self._counted = folder, (0, 0)
        keeping = asyncio.create_task(self._keep(keeper))
        finished = False
        try:
            await execute(source, self._metrics, self._backends, folder, options)
            if preparation:
                await self._keep_prepared(preparation)  # where it failed before
            finished = True
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await asyncio.to_thread(keeper.keep, finished=finished)
        return (await self.done())[1]

    def _calls_before(self, shard: str) -> Path | None:
        """Fetch the calls that an earlier job made for a shard, if it kept any."""
        target = self._scratch.path / "before" / shard
        for job in reversed(self._job.before):
            if self._store.get(f"{job}/runs/{shard}/calls.sqlite", target):
                return target
        return None

    async def _keep(self, keeper: Keeper) -> None:
        """Keep the folder at intervals; a copy that fails is tried again at the next one."""
        took = 0.0
        while True:
            await asyncio.sleep(max(self._job.keep_every_s, took / KEEP_SHARE))
            began = time.monotonic()
            copying = asyncio.ensure_future(asyncio.to_thread(keeper.keep))
            try:
                await asyncio.shield(copying)
            except asyncio.CancelledError:
                await asyncio.wait([copying])
                raise
            except OSError:
                continue  # the last copy, at the end, reports it
            took = time.monotonic() - began


async def _free(folder: RunFolder) -> None:
    """Wait for the process that worked in the folder before to end."""
    folder.path.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + FREE_WITHIN_S
    while True:
        try:
            with folder.claimed():
                return
        except RunFolderError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.2)
