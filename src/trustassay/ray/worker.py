"""A worker: scores one shard after another with models that are loaded once.

It does not depend on Ray, which starts it and hands out the shards.
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
from trustassay.calls.leases import LeaseGrant, LeaseRequest, Leases
from trustassay.core.capabilities import EndpointLimits
from trustassay.core.files import make_private_folder
from trustassay.core.metric import Metric
from trustassay.core.registry import MetricFile, find_recorded_class
from trustassay.errors import RunFolderError
from trustassay.ray.store import RunBackup, SharedReplies, Store, fetch_prepared, keep_prepared
from trustassay.runs.execute import execute
from trustassay.runs.fill import choose_stages
from trustassay.runs.folder import RunFolder
from trustassay.runs.intake import RunOptions
from trustassay.runs.needs import choose_backends
from trustassay.runs.prepare import Preparation, compute_key, prepare_once

T = TypeVar("T")
JOB_FOLDER_PREFIX = "trustassay-job-"
POOL_FILE = "whole.jsonl"
KEEP_EVERY_S = 30.0
"""Seconds between two copies of a shard's run."""
MAX_COPY_SHARE = 0.05
"""Share of the time that copies may take at most, roughly."""
FREE_WITHIN_S = 60.0
"""Seconds to wait for an earlier process on the same shard to end."""


class ScratchFolder:
    """A job's folder on this machine, from :meth:`enter` to :meth:`leave`.

    All workers of the job on one machine share ``path``. Each holds a shared lock on it; the folder
    is removed when nobody holds one.
    """

    def __init__(self, home: str | None, job: str) -> None:
        """Name the folder of ``job`` below ``home``, or in the temporary folder."""
        self.path = _base_folder(home) / f"{JOB_FOLDER_PREFIX}{job}"
        self._descriptor: int | None = None

    def enter(self) -> None:
        """Make the folder, readable by this user only, or share it with other workers.

        Raises:
            RunFolderError: another user owns it.
            OSError: it cannot be made.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._descriptor is None:
            self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                # Not following links: another user could place one in the temporary folder.
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:  # removed by another process in between
                continue
            if os.fstat(descriptor).st_uid != os.getuid():
                os.close(descriptor)
                raise RunFolderError(
                    f"{self.path}: belongs to another user; set --scratch to your own folder"
                )
            os.fchmod(descriptor, 0o700)
            # Another worker may remove the folder between opening and locking; then the lock is on
            # a folder that no longer has the name.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if self.path.exists() and os.path.samestat(os.fstat(descriptor), self.path.stat()):
                self._descriptor = descriptor
            else:  # removed before the lock was held
                os.close(descriptor)

    def leave(self) -> None:
        """Remove the folder, unless other workers use it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _remove_unused(self.path)


def remove_stale_folders(home: str | None) -> None:
    """Remove the folders that killed processes of this user left behind."""
    for path in _base_folder(home).glob(f"{JOB_FOLDER_PREFIX}*"):
        _remove_unused(path)


def _base_folder(home: str | None) -> Path:
    return Path(home or tempfile.gettempdir())


def _remove_unused(path: Path) -> None:
    """Remove a folder of this user that no process has locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # in use
        return
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ClusterJob:
    """What all workers of a run share."""

    id: str
    """Name under which the store keeps its shards."""
    metrics: Mapping[str, Mapping[str, Any]]
    """Settings by the name of the metric."""
    backends: Mapping[str, Any]
    """URIs by role."""
    options: RunOptions
    store: str
    """Folder or URL of the store."""
    replies: str
    """Folder in the store of the replies that workers share."""
    pool_sha256: str = ""
    """SHA-256 of all samples if a metric looks beyond a shard; else empty."""
    workers: int = 1
    """The number of workers."""
    scratch: str | None = None
    """Folder on each machine's own disk; ``None`` for one in the temporary folder."""
    keep_every_s: float = KEEP_EVERY_S
    """Seconds between two copies of a shard's run."""
    earlier_jobs: tuple[str, ...] = ()
    """Earlier jobs of this run, whose input was corrected since: their calls are not repeated."""
    files: tuple[MetricFile, ...] = ()
    """The user's own files that define metrics."""

    @property
    def pool_name(self) -> str:
        """The name of the file of all samples in the store."""
        return f"{self.id}/{POOL_FILE}"

    def name_of_shard(self, file: str) -> str:
        """Return the name in the store of a shard's file."""
        return f"{self.id}/shards/{file}"

    def name_of_run(self, file: str) -> str:
        """Return the name in the store of the run of a shard's file."""
        return f"{self.id}/runs/{file}"

    def name_of_prepared(self, key: str) -> str:
        """Return the name in the store of what is prepared for all shards."""
        return f"{self.id}/prepared/{key}"


class Worker:
    """Scores shards; all methods run in one event loop."""

    def __init__(self, job: ClusterJob, service: Any = None) -> None:
        """``service`` is the actor that leases calls to endpoints, if there is one."""
        self._job, self._service = job, service
        self._store = Store(job.store)
        self._scratch = ScratchFolder(job.scratch, job.id)
        self._scratch.enter()
        # After entering: the lock keeps the own folder from being removed.
        remove_stale_folders(job.scratch)
        # All shards of this machine share one file of calls, with the store behind it.
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
        self._lines_read = (0, 0)  # bytes and lines of assessments

    async def _lease(self, address: str, limits: EndpointLimits, ask: LeaseRequest) -> LeaseGrant:
        grant: LeaseGrant = await self._service.lease.remote(address, limits, ask)
        return grant

    async def ready(self) -> None:
        """Load metrics and backends once; raises as
        :func:`~trustassay.runs.needs.choose_backends`."""
        if not self._metrics:
            # Metrics that the user wrote register themselves when their file is loaded.
            for file in self._job.files:
                file.load()
            classes = [
                find_recorded_class(name, settings) for name, settings in self._job.metrics.items()
            ]
            metrics = [metric_class(**options) for metric_class, options in classes]
            self._backends = await choose_backends(metrics, self._job.backends)
            self._metrics = metrics

    async def score(self, shard: str) -> int:
        """Score the shard with this file name completely, and copy its run to the store.

        Return the number of assessments.

        Raises:
            asyncio.CancelledError: stopped; finished assessments are stored.
            As :func:`~trustassay.runs.execute.execute`; OSError.
        """
        return await self._run_task(partial(self._score, shard))

    async def prepare(self) -> None:
        """Prepare what metrics need of all samples, and store it for all workers.

        If it fails, the run of each shard tries again, and its samples get the error.
        """
        await self._run_task(self._prepare)

    async def _run_task(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` as the task that :meth:`stop` cancels."""
        await self.ready()
        self._work = task = asyncio.ensure_future(work())
        try:
            return await task
        finally:
            self._work = self._folder = None

    async def count_assessments(self) -> tuple[str, int]:
        """Return the current shard, and the number of its assessments."""
        if self._folder is None or not self._folder.assessments_path.exists():
            return "", 0
        with self._folder.assessments_path.open("rb") as file:
            # Only what was appended since the last time is read.
            size, lines = self._lines_read
            file.seek(size)
            new_lines = file.read()
        self._lines_read = (size + len(new_lines), lines + new_lines.count(b"\n"))
        return self._folder.path.name, self._lines_read[1]

    async def stop(self) -> None:
        """Cancel the current task, and wait until finished assessments are stored."""
        if self._work:
            self._work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._work

    async def leave(self) -> None:
        """Stop, and remove the folder on this machine unless other workers use it."""
        await self.stop()
        await asyncio.to_thread(self._scratch.leave)

    async def _prepare(self) -> None:
        metrics, backends = self._metrics, self._backends
        preparation = await self._open_preparation()
        if preparation.read() is None:
            stages = choose_stages(metrics, backends, self._options.filling)
            await prepare_once(preparation, metrics, stages, backends, self._options.calls)
        await self._keep_prepared(preparation)

    async def _open_preparation(self) -> Preparation:
        """Fetch all samples, and what is already prepared of them."""
        job, pool = self._job, self._scratch.path / POOL_FILE
        if not pool.exists() and not await asyncio.to_thread(self._store.get, job.pool_name, pool):
            raise RunFolderError(f"{job.store}: lacks {POOL_FILE}; run the same command again")
        metrics, backends = self._metrics, self._backends
        stages = choose_stages(metrics, backends, self._options.filling)
        preparation = Preparation(pool, compute_key(job.pool_sha256, metrics, stages, backends))
        name = job.name_of_prepared(preparation.key)
        fetch = partial(fetch_prepared, self._store, name, preparation, metrics, calls=False)
        async with preparation.lock(show_progress=False):  # one worker of this machine fetches
            await asyncio.to_thread(fetch)
        return preparation

    async def _keep_prepared(self, preparation: Preparation) -> None:
        name = self._job.name_of_prepared(preparation.key)
        await asyncio.to_thread(keep_prepared, preparation, self._metrics, self._store, name)

    async def _score(self, shard: str) -> int:
        home, job = self._scratch.path, self._job
        source = home / shard
        if not source.exists() and not await asyncio.to_thread(
            self._store.get, job.name_of_shard(shard), source
        ):
            raise RunFolderError(f"{job.store}: lacks {shard}; run the same command again")
        options = replace(
            self._options, calls_from=await asyncio.to_thread(self._fetch_earlier_calls, shard)
        )
        preparation = None
        if job.pool_sha256:
            preparation = await self._open_preparation()
            options = replace(options, pool=preparation.pool)
        folder = RunFolder(home / "runs" / shard)
        keeper = RunBackup(folder, self._store, job.name_of_run(shard))
        # After a worker died, Ray may start the shard again while the old process still ends.
        await _wait_until_free(folder)
        await asyncio.to_thread(keeper.fetch)
        # From here on `count_assessments` counts this shard.
        self._folder, self._lines_read = folder, (0, 0)
        copying = asyncio.create_task(self._copy_regularly(keeper))
        finished = False
        try:
            await execute(source, self._metrics, self._backends, folder, options)
            if preparation:
                await self._keep_prepared(preparation)  # if the first attempt failed
            finished = True
        finally:
            copying.cancel()
            with suppress(asyncio.CancelledError):
                await copying
            # Also after an error or a cancellation: another worker continues from this copy.
            await asyncio.to_thread(keeper.keep, finished=finished)
        return (await self.count_assessments())[1]

    def _fetch_earlier_calls(self, shard: str) -> Path | None:
        """Fetch the calls that an earlier job made for a shard, if it stored any."""
        target = self._scratch.path / "before" / shard
        for identifier in reversed(self._job.earlier_jobs):
            job = replace(self._job, id=identifier)
            if self._store.get(f"{job.name_of_run(shard)}/calls.sqlite", target):
                return target
        return None

    async def _copy_regularly(self, keeper: RunBackup) -> None:
        """Copy the folder at intervals; a copy that fails is tried again at the next one."""
        copy_s = 0.0
        while True:
            # Large runs over a slow network are copied less often.
            await asyncio.sleep(max(self._job.keep_every_s, copy_s / MAX_COPY_SHARE))
            start = time.monotonic()
            copying = asyncio.ensure_future(asyncio.to_thread(keeper.keep))
            try:
                # A copy in a thread cannot be cancelled: wait for it, so that two never write at
                # once.
                await asyncio.shield(copying)
            except asyncio.CancelledError:
                await asyncio.wait([copying])
                raise
            except OSError:
                continue  # the last copy, at the end, reports it
            copy_s = time.monotonic() - start


async def _wait_until_free(folder: RunFolder) -> None:
    """Wait until an earlier process that works in the folder has ended."""
    make_private_folder(folder.path)
    deadline = time.monotonic() + FREE_WITHIN_S
    while True:
        try:
            with folder.claim():
                return
        except RunFolderError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
