"""The workers of a run as Ray actors, on a local cluster or on an existing one.

Ray sends no usage statistics and starts no dashboard, and a cluster that is started here listens
only on 127.0.0.1. All this is set before Ray is imported.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from trustassay.calls.leases import LeaseService
from trustassay.errors import BackendError, install_command
from trustassay.ray.worker import ClusterJob, Worker
from trustassay.runs.options import check_bounds

# The second: if the driver was started by `uv run`, Ray would start each worker by it again.
RAY_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
LOCAL_RAY_ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # 127.0.0.1, not the address in the network
    "RAY_AUTH_MODE": "token",
}
OBJECT_STORE_BYTES = 80 * 2**20
"""The smallest object store that Ray accepts: shards travel through files."""
MAX_START_TRIES = 4
"""Ray gives up after 30 s when a busy machine is slow to start its processes."""
RAY_FOLDER_PREFIX = "ta-ray-"
"""Short, since the paths of Ray's sockets start with it and may have 107 bytes at most."""


@dataclass(frozen=True)
class ClusterOptions:
    """Where a run's workers are: the options of ``--engine ray``, and

    address: of a Ray cluster; without one, and without ``RAY_ADDRESS``, one is started here.
    keep_every_s: seconds between two copies. retries: how often a shard is tried again whose worker
    dies before it has scored anything more.
    """

    address: str | None = None
    workers: int | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    store: str | None = None
    scratch: str | None = None
    shards: int | None = None
    keep_every_s: float = 30.0
    retries: int = 3

    def address_of(self) -> str | None:
        """Return the address of the cluster; ``None`` if one is to be started."""
        return self.address or os.environ.get("RAY_ADDRESS")

    def __post_init__(self) -> None:
        check_bounds(vars(self))


def import_ray(*, local: bool) -> Any:
    """Return the module ``ray``, set up so that a ``local`` cluster listens only on 127.0.0.1.

    Raises:
        BackendError: Ray is not installed.
    """
    os.environ |= RAY_ENVIRONMENT
    if local:
        os.environ |= LOCAL_RAY_ENVIRONMENT
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes ~/.ray
    try:
        import ray
    except ImportError:
        raise BackendError(f"--engine ray needs Ray: {install_command('ray')}") from None
    # Ray prints messages of dead workers to standard output, which is reserved for results.
    ray._private.worker._worker_logs_enabled = False
    return ray


@contextmanager
def connect_to_cluster(options: ClusterOptions) -> Iterator[Any]:
    """Yield the module ``ray``, connected to a cluster; a local one ends with the block."""
    address = options.address_of()
    ray = import_ray(local=not address)
    if ray.is_initialized():  # by the program that calls this one
        yield ray
        return
    with ExitStack() as stack:
        stack.callback(ray.shutdown)
        if address:
            _start_ray(ray, options, address)
        else:
            _remove_stale_folders()
            home = stack.enter_context(
                TemporaryDirectory(prefix=f"{RAY_FOLDER_PREFIX}{os.getpid()}-")
            )
            stack.callback(ray.shutdown)  # before its files are removed
            _start_ray(ray, options, "local", home)
        yield ray


def _remove_stale_folders() -> None:
    """Remove the folders that killed processes of this user left behind."""
    import psutil  # Ray brings it

    for path in Path(gettempdir()).glob(f"{RAY_FOLDER_PREFIX}*-*"):
        process = path.name.removeprefix(RAY_FOLDER_PREFIX).partition("-")[0]
        # Not a link: another user could place one in the temporary folder that leads elsewhere.
        is_own = path.lstat().st_uid == os.getuid() and not path.is_symlink()
        if is_own and process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _start_ray(ray: Any, options: ClusterOptions, address: str, home: str | None = None) -> None:
    """Connect to a cluster; starting a local one is tried several times.

    Raises:
        BackendError: Ray cannot be started or reached.
    """
    local_options: dict[str, Any] = {}
    if home is not None:
        local_options = {
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            # At least as many as the workers need, also beyond the cores.
            "num_cpus": max(os.cpu_count() or 1, math.ceil((options.workers or 1) * options.cpus)),
            "_temp_dir": home,
        }
    import psutil  # Ray brings it

    process = psutil.Process()
    # Processes that the caller started before are none of ours to kill.
    before = set(process.children())
    for tries_left in reversed(range(MAX_START_TRIES if home else 1)):
        try:
            ray.init(address, log_to_driver=False, logging_level="critical", **local_options)
        except Exception as error:  # Ray raises a bare one for what is slow to start
            ray.shutdown()
            for child in set(process.children()) - before:  # Ray leaves them where it gives up
                with suppress(psutil.Error):
                    child.kill()
                    child.wait(10)
            if not tries_left:
                message = str(error).strip().split("\n")[0]
                raise BackendError(f"Ray ({address}) cannot be used: {message}") from None
        else:
            return


class WorkerPool:
    """The workers of a job, each a Ray actor that is restarted when it dies."""

    def __init__(self, ray: Any, job: ClusterJob, options: ClusterOptions, shards: int) -> None:
        self.ray = ray
        # The cluster may be shared: count how many workers fit by the scarcest resource.
        resources, needs = ray.cluster_resources(), {"CPU": options.cpus, "GPU": options.gpus}
        slots = min(
            (resources.get(k, 0.0) // amount for k, amount in needs.items() if amount), default=1
        )
        count = min(options.workers or max(1, int(slots)), shards)
        if slots < count:
            raise BackendError(
                f"the cluster has room for {int(slots)} of {count} workers with {options.cpus:g} "
                f"CPUs and {options.gpus:g} GPUs each; lower --workers or --per-worker"
            )
        actor = ray.remote(Worker).options(
            num_cpus=options.cpus,
            num_gpus=options.gpus,
            # Ray starts a dead worker again; how often a shard is tried is counted in `engine`.
            max_restarts=-1,
            # Counts and `leave` are answered while a shard is scored.
            max_concurrency=8,
        )
        service = _start_lease_service(ray)
        self.workers: list[Any] = [
            actor.remote(replace(job, workers=count), service) for _ in range(count)
        ]

    @property
    def nodes(self) -> int:
        """The number of machines in the cluster."""
        return sum(node["Alive"] for node in self.ray.nodes())

    def is_done(self, task: Any) -> bool | None:
        """Whether a worker has finished a task; ``None`` if the worker died.

        Raises:
            BackendError: the worker cannot be started any more.
            Exception: the error that the task raised.
        """
        if not self.ray.wait([task], timeout=0)[0]:
            return False
        try:
            self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            raise cause_of(error) from None
        except self.ray.exceptions.ActorDiedError as error:  # for good
            lines = str(error).strip().split("\n")
            raise BackendError(f"a worker could not be started: {lines[-1]}") from None
        except self.ray.exceptions.RayActorError:
            return None
        return True


def _start_lease_service(ray: Any) -> Any:
    """Return the actor that leases calls to endpoints; all runs on the cluster share one."""
    options = ray.remote(LeaseService).options(
        # The version is in the name: runs of another version may speak another protocol.
        name=f"leases-{version('trustassay')}",
        namespace="trustassay",
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        # It only counts, so it must not take a place from a worker.
        num_cpus=0,
    )
    return options.remote()


def cause_of(error: Any) -> Exception:
    """Return the exception that a task raised on its worker."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return cause
    return BackendError(f"a worker failed: {str(error).strip().splitlines()[-1]}")
