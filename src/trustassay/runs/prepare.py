"""Pools of samples with random access, and the preparation of metrics before the first sample.

All shards of an input share one preparation: the first process makes it, the others wait for it.
"""

import asyncio
import fcntl
import hashlib
import json
import os
from array import array
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from trustassay.calls.backends import Backends
from trustassay.calls.client import CallOptions, Client, SampleModels, open_calls
from trustassay.core.asked import Asked, count_failures_once
from trustassay.core.capabilities import Models
from trustassay.core.files import create_private, make_private_folder, open_atomic
from trustassay.core.metric import Metric
from trustassay.core.progress import tell
from trustassay.core.sample import Sample
from trustassay.core.tracebacks import describe_error, write_failure
from trustassay.errors import AssessmentError, BackendError, RunFolderError
from trustassay.runs.fill import FillFailure, Stage, collect_stage_settings
from trustassay.runs.lines import HashIndex, hash64, read_lines, read_located_lines


class StoredPool:
    """Samples in a file of canonical JSON Lines; only offsets and hashes of ids are in memory.

    Args:
        stages: they fill what a sample lacks when it is wanted, if the pool has a file of its own.
        run: the samples of the run, if the pool has a file of its own.
    """

    def __init__(
        self, path: Path, stages: Sequence[Stage] = (), run: "StoredPool | None" = None
    ) -> None:
        self._path, self._stages, self._run = path, stages, run
        # 24 bytes for each sample: the offset of its line, the hash of its id, and its place.
        places, hashes = array("q"), array("Q")
        for offset, line in read_located_lines(path):
            places.append(offset)
            hashes.append(hash64(json.loads(line)["id"]))
        self._places, self._index = places, HashIndex(hashes)

    @property
    def run_pool(self) -> "StoredPool":
        """The samples of the run itself."""
        return self if self._run is None else self._run

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Sample:
        with self._path.open("rb") as file:
            file.seek(self._places[index])
            return Sample.parse(json.loads(file.readline()))

    def __iter__(self) -> Iterator[Sample]:
        for line in read_lines(self._path):
            yield Sample.parse(json.loads(line))

    async def read_filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample with its references. They are requested once, since calls are stored."""
        sample = self[index]
        for stage in self._stages:
            if stage.field == "references" and stage.lacks(sample):
                sample = (await stage.fill(sample, cast(SampleModels, models))).sample
        return sample

    def index(self, sample_id: str) -> int | None:
        """Return the position of the sample with this id; ``None`` if there is none."""
        place = self._index.find(hash64(sample_id))
        return None if place < 0 else place


class WholePool(StoredPool):
    """All samples of an input of which the run scores a shard; metrics see them as the run's own.

    The file has the samples before the stages. They are filled when they are wanted.
    """

    def __init__(self, path: Path, stages: Sequence[Stage] = ()) -> None:
        super().__init__(path, stages)
        self.failures = 0
        """How often a stage could not fill a sample."""

    async def read_filled(self, index: int, models: Models, /) -> Sample:
        """Return a sample as the run of its own shard fills it; the calls count for no sample."""
        sample = self[index]
        uncounted_models = cast(SampleModels, models).without_counting()
        for stage in self._stages:
            if stage.lacks(sample) and not stage.problems(sample):
                result = await stage.fill(sample, uncounted_models)
                self.failures += result.failure is not None
                sample = result.sample
        return sample


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of a metric's preparation."""

    value: Any = None
    """What the metric prepared; its own type."""
    failure: FillFailure | None = None
    """Why it could not be prepared."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """The requests that it made, by capability."""
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Calls and tokens by chat model."""
    asked: Asked = field(default_factory=dict)
    """The outcomes of its requests."""


async def prepare(
    metrics: Sequence[Metric], pool: StoredPool | None, client: Client, folder: Path
) -> dict[str, Prepared]:
    """Prepare each metric that looks at a pool; return the results of all metrics by name.

    A failure is a value: it only fails the samples of its own metric.

    Args:
        folder: it gets the traceback of an error that a metric does not report itself.
    """
    result = {metric.name: Prepared() for metric in metrics}
    for metric in metrics:
        if metric.pool and pool is not None:
            result[metric.name] = await _prepare_metric(metric, pool, client, folder)
    return result


def collect_requests(prepared: Mapping[str, Prepared]) -> dict[str, Any]:
    """Return the requests of metrics that made some while they prepared, by name."""
    return {
        name: {
            "calls": dict(preparation.calls),
            "usage": dict(preparation.usage),
            "asked": dict(preparation.asked),
        }
        for name, preparation in prepared.items()
        if preparation.calls or preparation.asked
    }


async def _prepare_metric(
    metric: Metric, pool: StoredPool, client: Client, folder: Path
) -> Prepared:
    models = SampleModels(client)
    try:
        value = await metric.prepare(pool, cast(Models, models))
    # Errors for users: the message is enough. Others leave a traceback in the folder.
    except (AssessmentError, BackendError) as error:
        message = f"could not be prepared: {error}"
        failure = FillFailure(message, getattr(error, "kind", None))
        return Prepared(failure=failure, asked=count_failures_once(models.asked))
    except Exception as error:
        write_failure(folder, metric.name, error)
        message = f"{metric.name} failed during its preparation: {describe_error(error)}"
        return Prepared(failure=FillFailure(message))
    return Prepared(value, None, **models.count_requests())


Arrays = Mapping[str, NDArray[Any]]

POOL, PREPARATION = "whole", "preparation"
"""Fields in ``run.json`` of a shard: the file of all samples, and the key of the preparation."""
CALLS, PREPARED = "calls.sqlite", "prepared.json"
"""Files in the folder of a preparation. The second one says that it is finished."""
LOOK_EVERY_S = 0.2
"""Seconds between two attempts to lock the folder."""
SAY_AFTER_S = 2.0
"""Seconds of waiting after which the user is told."""


def compute_key(
    input_digest: str, metrics: Sequence[Metric], stages: Sequence[Stage], backends: Backends
) -> str:
    """Return the key of a preparation, which depends on samples, settings and models.

    Args:
        input_digest: the SHA-256 of all samples.
        metrics: with their ``auto`` options settled.
    """
    content = [
        # Another version may prepare in another way.
        version("trustassay"),
        input_digest,
        {metric.name: metric.settings() for metric in metrics if metric.pool},
        backends.names(),
        collect_stage_settings(stages),
    ]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Preparation:
    """The folder of a preparation that all shards share, next to the file of all samples.

    Raises:
        RunFolderError: by its methods, if a file is damaged or the file system has no locks.
    """

    def __init__(self, pool: Path, key: str) -> None:
        self.pool, self.key = pool, key
        self.path = pool.with_name(f"{pool.name}.prepared") / key
        self.calls_path = self.path / CALLS

    def read(self) -> Mapping[str, Any] | None:
        """Return the requests by metric; ``None`` if the preparation is not finished."""
        try:
            result = json.loads((self.path / PREPARED).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self._build_damage_error(PREPARED, error) from None
        if not isinstance(result, dict):
            raise self._build_damage_error(PREPARED, "expected an object")
        return result

    def arrays(self, metric: str) -> Arrays | None:
        """Return the arrays that a metric packed; ``None`` if it packed nothing."""
        name = name_array_file(metric)
        if not (self.path / name).exists():
            return None
        try:
            # No pickles: the folder may come from another machine, and a pickle can run any code.
            with np.load(self.path / name, allow_pickle=False) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise self._build_damage_error(name, error) from None

    def write(self, packed: Mapping[str, Arrays], requests: Mapping[str, Any]) -> None:
        """Write the arrays of metrics by name, and then the requests, which mark the end."""
        for name, arrays in packed.items():
            # np.savez appends ".npz" to any other name.
            part = self.path / f".{name}.{os.getpid()}.part.npz"
            create_private(part)
            np.savez(part, allow_pickle=False, **arrays)
            part.replace(self.path / name_array_file(name))
        with open_atomic(self.path / PREPARED) as file:
            file.write((json.dumps(requests, indent=2) + "\n").encode())

    @asynccontextmanager
    async def lock(self, *, show_progress: bool) -> AsyncIterator[None]:
        """Lock the folder until the block ends: one process prepares while the others wait."""
        make_private_folder(self.path)
        # The lock of the folder ends with the process, however that ends.
        lock = os.open(self.path, os.O_RDONLY)
        try:
            waited = 0.0
            # Polling, since a blocking flock would stop the event loop, and Ctrl-C with it.
            while not self._try_lock(lock):
                await asyncio.sleep(LOOK_EVERY_S)
                if waited < SAY_AFTER_S <= (waited := waited + LOOK_EVERY_S) and show_progress:
                    tell(f"waiting for another process that prepares {self.path}")
            yield
        finally:
            os.close(lock)

    def _try_lock(self, lock: int) -> bool:
        """Try to lock the folder; return whether this process has the lock."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Some network file systems have no locks. Without one, two processes would pay for the same
        # calls.
        except OSError as error:
            message = f"cannot be locked ({error}); move the file of all samples to a local disk"
            raise RunFolderError(f"{self.path}: {message}") from None
        return True

    def _build_damage_error(self, name: str, reason: object) -> RunFolderError:
        return RunFolderError(f"{self.path / name}: damaged ({reason}); remove {self.path}")


async def prepare_once(
    preparation: Preparation,
    metrics: Sequence[Metric],
    stages: Sequence[Stage],
    backends: Backends,
    calls: CallOptions,
    *,
    show_progress: bool = False,
) -> dict[str, Prepared]:
    """Return the preparation of each metric by name, as :func:`prepare` does, shared by all shards.

    Stored results are loaded. Others are prepared, and stored for the runs of other shards unless
    a metric failed or a sample could not be filled.
    """
    pool = WholePool(preparation.pool, stages)
    result: dict[str, Prepared] = {}
    async with preparation.lock(show_progress=show_progress):
        # Inside the lock: another process may have finished it while this one waited.
        requests = preparation.read()
        # Metrics that look at no pool prepare nothing.
        waiting = [metric for metric in metrics if metric.pool]
        if requests is not None:
            result |= _unpack(waiting, pool, preparation, requests)
            waiting = [metric for metric in waiting if metric.name not in result]
        if waiting:
            async with open_calls(backends, calls, preparation.calls_path) as client:
                result |= await prepare(waiting, pool, client, preparation.path)
        # An incomplete preparation is not shared: the next process tries again.
        has_failed = pool.failures or any(outcome.failure for outcome in result.values())
        if requests is None and not has_failed:
            # Packing may take seconds, so that it runs in a thread.
            packed = {
                metric.name: arrays
                for metric in waiting
                if (arrays := await asyncio.to_thread(metric.pack, result[metric.name].value))
                is not None
            }
            requests = collect_requests(result)
            preparation.write(packed, requests)
            result |= _unpack(waiting, pool, preparation, requests)
    # In the order of the run's metrics, those without a pool included.
    return {metric.name: result.get(metric.name, Prepared()) for metric in metrics}


def _unpack(
    metrics: Sequence[Metric],
    pool: WholePool,
    preparation: Preparation,
    requests: Mapping[str, Any],
) -> dict[str, Prepared]:
    """Return the preparations that are stored as arrays, by metric."""
    result = {}
    for metric in metrics:
        if (arrays := preparation.arrays(metric.name)) is not None:
            value = metric.unpack(arrays, pool)
            result[metric.name] = Prepared(value, None, **requests.get(metric.name, {}))
    return result


def name_array_file(metric: str) -> str:
    """Return the name of the file with the arrays that a metric packed."""
    return f"{metric}.npz"
