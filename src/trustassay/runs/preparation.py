"""What metrics prepare for all shards of an input: once, in a folder beside the file of the whole.

``WHOLE.prepared/KEY/``, where the key follows from the samples and the settings, holds

``calls.sqlite``    the calls that were made, which the merged run takes over
``METRIC.npz``      what a metric prepared, where it can be packed into arrays
``prepared.json``   the requests by metric; written last
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.opening import CallOptions, open_calls
from trustassay.errors import RunFolderError, UsageError
from trustassay.files import whole
from trustassay.metric import Metric
from trustassay.progress import tell
from trustassay.runs.intake import Intake, ShardMark
from trustassay.runs.pool import WholePool
from trustassay.runs.preparing import Prepared, prepare, requests_of
from trustassay.runs.stages import Stage, settings_of

Arrays = Mapping[str, NDArray[Any]]
__all__ = [
    "CALLS",
    "POOL",
    "PREPARATION",
    "PREPARED",
    "Preparation",
    "key_of",
    "packed_name",
    "preparation_of",
    "prepare_once",
]

POOL, PREPARATION = "whole", "preparation"
"""Fields of the ``run.json`` of a shard: where all samples are, and what is prepared of them."""
CALLS, PREPARED = "calls.sqlite", "prepared.json"
LOOK_EVERY_S = 0.2
SAY_AFTER_S = 2.0


def key_of(of: str, metrics: Sequence[Metric], stages: Sequence[Stage], backends: Backends) -> str:
    """Return the key of what metrics prepare: by samples, settings and models.

    ``of`` is the SHA-256 of all samples; ``metrics`` are resolved.
    """
    content = [
        version("trustassay"),
        of,
        {metric.name: metric.settings() for metric in metrics if metric.pool},
        backends.names(),
        settings_of(stages),
    ]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Preparation:
    """The folder of what metrics prepare for all shards of an input."""

    def __init__(self, pool: Path, key: str) -> None:
        self.pool, self.key = pool, key
        self.path = pool.with_name(f"{pool.name}.prepared") / key
        self.calls_path = self.path / CALLS

    def read(self) -> Mapping[str, Any] | None:
        """Return the requests by metric; ``None`` where it is not finished.

        Raises:
            RunFolderError: the file is damaged.
        """
        try:
            found = json.loads((self.path / PREPARED).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._damaged(PREPARED, error) from None
        if not isinstance(found, dict):
            raise self._damaged(PREPARED, "expected an object")
        return found

    def arrays(self, metric: str) -> Arrays | None:
        """Return what a metric packed; ``None`` if it packed nothing.

        Raises:
            RunFolderError: the file is damaged.
        """
        name = packed_name(metric)
        if not self._has(name):
            return None
        try:
            with np.load(self.path / name, allow_pickle=False) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise self._damaged(name, error) from None

    def write(self, packed: Mapping[str, Arrays], made: Mapping[str, Any]) -> None:
        """Write what metrics packed, by name, and end the preparation with their requests."""
        for name, arrays in packed.items():
            part = self.path / f".{name}.{os.getpid()}.part.npz"
            np.savez(part, allow_pickle=False, **arrays)
            part.replace(self.path / packed_name(name))
        with whole(self.path / PREPARED) as file:
            file.write((json.dumps(made, indent=2) + "\n").encode())

    @asynccontextmanager
    async def alone(self, *, shown: bool) -> AsyncIterator[None]:
        """Hold the folder, so that of several processes one prepares and the others wait.

        Raises:
            RunFolderError: its file system has no locks.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path, os.O_RDONLY)
        try:
            waited = 0.0
            while not self._locked(lock):
                await asyncio.sleep(LOOK_EVERY_S)
                if waited < SAY_AFTER_S <= (waited := waited + LOOK_EVERY_S) and shown:
                    tell(f"waiting for another process, which prepares {self.path}")
            yield
        finally:
            os.close(lock)

    def _locked(self, lock: int) -> bool:
        """Whether this process holds the folder now."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            words = f"cannot be locked ({error}); move the file of all samples to a local disk"
            raise RunFolderError(f"{self.path}: {words}") from None
        return True

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()

    def _damaged(self, name: str, why: object) -> RunFolderError:
        return RunFolderError(f"{self.path / name}: damaged ({why}); remove {self.path}")


def preparation_of(
    samples: Path,
    intake: Intake,
    pool: str | os.PathLike[str] | None,
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    backends: Backends,
) -> Preparation | None:
    """Return what is prepared for all shards, where a run's samples are a shard and a metric looks
    beyond them; ``metrics`` are resolved.

    Raises:
        ValueError: samples of the shard were left out, which the pool holds.
    """
    if pool is None or not any(metric.pool for metric in metrics):
        return None
    with samples.open("rb") as file:
        mark = ShardMark.take(json.loads(file.readline()))
    if mark is None:
        return None
    if intake.faulty:
        raise UsageError(
            f"{intake.faulty:,} samples of this shard cannot be scored, and others would be "
            "compared with them; remove them from the input, and divide it again"
        )
    return Preparation(Path(pool), key_of(mark.of, metrics, stages, backends))


async def prepare_once(
    preparation: Preparation,
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    backends: Backends,
    calls: CallOptions,
    *,
    shown: bool = False,
) -> dict[str, Prepared]:
    """Return what each metric prepares, by name, as :func:`~trustassay.runs.preparing.prepare`.

    What is there is taken. What is not is prepared, and stored for the runs of other shards; what
    fails, or lacks what a model did not answer, is not stored.
    """
    pool = WholePool(preparation.pool, stages)
    found: dict[str, Prepared] = {}
    async with preparation.alone(shown=shown):
        made = preparation.read()
        waiting = [metric for metric in metrics if metric.pool]
        if made is not None:
            found |= _unpacked(waiting, pool, preparation, made)
            waiting = [metric for metric in waiting if metric.name not in found]
        if waiting:
            async with open_calls(backends, calls, preparation.calls_path) as gatherers:
                found |= await prepare(waiting, pool, gatherers, preparation.path)
        failed = pool.failures or any(one.failure for one in found.values())
        if made is None and not failed:
            packed = await asyncio.to_thread(_packed, waiting, found)
            made = requests_of(found)
            preparation.write(packed, made)
            found |= _unpacked(waiting, pool, preparation, made)
    return {metric.name: found.get(metric.name, Prepared()) for metric in metrics}


def _packed(metrics: Sequence[Metric], found: Mapping[str, Prepared]) -> dict[str, Arrays]:
    packed = {metric.name: metric.pack(found[metric.name].value) for metric in metrics}
    return {name: arrays for name, arrays in packed.items() if arrays is not None}


def _unpacked(
    metrics: Sequence[Metric],
    pool: WholePool,
    preparation: Preparation,
    made: Mapping[str, Any],
) -> dict[str, Prepared]:
    """Return what of metrics is stored in arrays, by name."""
    found = {}
    for metric in metrics:
        if (arrays := preparation.arrays(metric.name)) is not None:
            value = metric.unpack(arrays, pool)
            found[metric.name] = Prepared(value, None, **made.get(metric.name, {}))
    return found


def packed_name(metric: str) -> str:
    """Return the name of the file of what a metric packed."""
    return f"{metric}.npz"
