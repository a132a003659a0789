"""A worker: scores one shard after another, with models that are loaded once.

It knows nothing of what starts it and hands out the shards.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trustassay.calls.backends import Backends
from trustassay.cluster.keeping import Keeper, Store
from trustassay.cluster.leases import Leases, ray_lease
from trustassay.cluster.replies import SharedReplies
from trustassay.errors import RunFolderError
from trustassay.metric import Metric
from trustassay.registry import metric_class
from trustassay.runs.folder import RunFolder
from trustassay.runs.options import RunOptions
from trustassay.runs.run import execute
from trustassay.runs.settling import settle

__all__ = ["Job", "Worker"]

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
    scratch: folder on each machine's own disk; ``None`` for one in the temporary folder.
    """

    id: str
    metrics: Mapping[str, Mapping[str, Any]]
    backends: Mapping[str, Any]
    options: RunOptions
    store: str
    replies: str
    workers: int = 1
    scratch: str | None = None
    keep_every_s: float = KEEP_EVERY_S

    def folder(self) -> Path:
        """Return the folder of this job on this machine."""
        home = Path(self.scratch) if self.scratch else Path(tempfile.gettempdir())
        return home / f"trustassay-{self.id}"


class Worker:
    """Scores shards; used in one event loop."""

    def __init__(self, job: Job, service: Any = None) -> None:
        """``service`` is the actor that leases calls to endpoints, if there is one."""
        self._job = job
        self._store = Store(job.store)
        self._options = replace(
            job.options,
            calls=replace(
                job.options.calls,
                cache=job.folder() / "calls",
                open_shared=lambda path: SharedReplies(path, self._store, job.replies, job.id),
                sharing=service and Leases(ray_lease(service), os.urandom(4).hex(), job.workers),
            ),
        )
        self._settled: tuple[list[Metric], Backends] | None = None
        self._work: asyncio.Task[int] | None = None
        self._folder: RunFolder | None = None
        self._counted = (0, 0)  # bytes and lines

    async def ready(self) -> None:
        """Load metrics and backends; raises what :func:`~trustassay.runs.settling.settle` does."""
        if self._settled is None:
            metrics = [metric_class(name)(**own) for name, own in self._job.metrics.items()]
            self._settled = metrics, await settle(metrics, self._job.backends)

    async def score(self, shard: str) -> int:
        """Score the shard of this file name to its end, and keep its run in the store.

        Return the number of assessments.

        Raises:
            asyncio.CancelledError: stopped; what was finished is kept.
            As :func:`~trustassay.runs.run.execute`; OSError.
        """
        await self.ready()
        self._work = asyncio.ensure_future(self._score(shard))
        try:
            return await self._work
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

    async def _score(self, shard: str) -> int:
        assert self._settled
        metrics, backends = self._settled
        home, job = self._job.folder(), self._job
        source = home / shard
        if not source.exists() and not await asyncio.to_thread(
            self._store.get, f"{job.id}/shards/{shard}", source
        ):
            raise RunFolderError(f"{job.store}: holds no {shard}; run the same command again")
        folder = RunFolder(home / "runs" / shard)
        keeper = Keeper(folder, self._store, f"{job.id}/runs/{shard}")
        await _free(folder)
        await asyncio.to_thread(keeper.fetch)
        self._folder, self._counted = folder, (0, 0)
        keeping = asyncio.create_task(self._keep(keeper))
        finished = False
        try:
            await execute(source, metrics, backends, folder, self._options)
            finished = True
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await asyncio.to_thread(keeper.keep, finished=finished)
        return (await self.done())[1]

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
    """Wait for the process that worked in the folder before to end.

    Raises:
        RunFolderError: it does not.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + FREE_WITHIN_S
    while True:
        try:
            folder.lock()
        except RunFolderError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.2)
        else:
            folder.unlock()
            return
