"""The workers of a run as Ray actors: on a cluster of this machine alone, or on one that is there.

Ray reports nothing to its makers, starts no dashboard, and a cluster started here listens on
127.0.0.1 alone; all this is set before Ray is imported.
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
from trustassay.errors import BackendError
from trustassay.options import check_bounds
from trustassay_cluster.worker import Job, Worker

RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
RAY_LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # 127.0.0.1, not the address in the network
    "RAY_AUTH_MODE": "token",
}
OBJECT_STORE_BYTES = 80 * 2**20
"""Shards travel through files, so Ray's memory for objects is the smallest that it takes."""
START_TRIES = 4
PREFIX = "ta-ray-"
"""Short: the names of Ray's sockets start with it, and may have 107 bytes."""


@dataclass(frozen=True)
class ClusterOptions:
    """Where a run's workers are: the options of ``--engine ray`` in ``options.csv``, and

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
    """Return the module ``ray``; a cluster that it starts uses 127.0.0.1 alone if ``local``.

    Raises:
        BackendError: it is missing.
    """
    os.environ |= RAY
    if local:
        os.environ |= RAY_LOCAL
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else one is left in ~/.ray
    try:
        import ray
    except ImportError:
        raise BackendError(
            "--engine ray needs Ray: pip install ./cluster in a clone of trustassay"
        ) from None
    # It writes messages of dead workers to standard output, which is the results' alone.
    ray._private.worker._worker_logs_enabled = False
    return ray


@contextmanager
def connected(options: ClusterOptions) -> Iterator[Any]:
    """Yield Ray, connected to the cluster, or to one that ends with the block."""
    address = options.address_of()
    ray = import_ray(local=not address)
    if ray.is_initialized():  # by the program that calls this one
        yield ray
        return
    with ExitStack() as stack:
        stack.callback(ray.shutdown)
        if address:
            _start(ray, options, address)
        else:
            _remove_left()
            home = stack.enter_context(TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-"))
            stack.callback(ray.shutdown)  # before its files are removed
            _start(ray, options, "local", home)
        yield ray


def _remove_left() -> None:
    """Remove the folders of this user's clusters whose process was killed."""
    import psutil  # Ray brings it

    for path in Path(gettempdir()).glob(f"{PREFIX}*-*"):
        process = path.name.removeprefix(PREFIX).partition("-")[0]
        own = path.lstat().st_uid == os.getuid() and not path.is_symlink()
        if own and process.isdigit() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _start(ray: Any, options: ClusterOptions, address: str, home: str | None = None) -> None:
    """Connect; a cluster of this machine gets several tries, as Ray waits 30 s for its parts."""
    own: dict[str, Any] = {}
    if home is not None:
        own = {
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            # at least what the workers take
            "num_cpus": max(os.cpu_count() or 1, math.ceil((options.workers or 1) * options.cpus)),
            "_temp_dir": home,
        }
    import psutil  # Ray brings it

    this = psutil.Process()
    before = set(this.children())
    for left in reversed(range(START_TRIES if home else 1)):
        try:
            ray.init(address, log_to_driver=False, logging_level="critical", **own)
        except Exception as error:  # Ray raises a bare one for what is slow to start
            ray.shutdown()
            for begun in set(this.children()) - before:  # Ray leaves them where it gives up
                with suppress(psutil.Error):
                    begun.kill()
                    begun.wait(10)
            if not left:
                words = str(error).strip().split("\n")[0]
                raise BackendError(f"Ray ({address}) cannot be used: {words}") from None
        else:
            return


class Crew:
    """The workers of a job, each an actor that is started again where it dies."""

    def __init__(self, ray: Any, job: Job, options: ClusterOptions, shards: int) -> None:
        self.ray = ray
        there, each = ray.cluster_resources(), {"CPU": options.cpus, "GPU": options.gpus}
        room = min((there.get(k, 0.0) // wanted for k, wanted in each.items() if wanted), default=1)
        number = min(options.workers or max(1, int(room)), shards)
        if room < number:
            raise BackendError(
                f"{number} workers of {options.cpus:g} CPUs and {options.gpus:g} GPUs were asked "
                f"for, and the cluster has room for {int(room)}; lower --workers or --per-worker"
            )
        actor = ray.remote(Worker).options(
            num_cpus=options.cpus,
            num_gpus=options.gpus,
            max_restarts=-1,
            max_concurrency=8,
        )
        service = _service(ray)
        self.workers: list[Any] = [
            actor.remote(replace(job, workers=number), service) for _ in range(number)
        ]

    @property
    def nodes(self) -> int:
        """The number of machines in the cluster."""
        return sum(node["Alive"] for node in self.ray.nodes())

    def is_done(self, asked: Any) -> bool | None:
        """Whether a worker has done what it was asked; ``None`` if it died.

        Raises:
            Exception: what it met, while it loaded its models or later.
        """
        if not self.ray.wait([asked], timeout=0)[0]:
            return False
        try:
            self.ray.get(asked)
        except self.ray.exceptions.RayTaskError as error:
            raise cause_of(error) from None
        except self.ray.exceptions.ActorDiedError as error:  # for good
            words = str(error).strip().split("\n")
            raise BackendError(f"a worker could not be started: {words[-1]}") from None
        except self.ray.exceptions.RayActorError:
            return None
        return True


def _service(ray: Any) -> Any:
    """Return the one actor of the cluster that leases calls, for all runs on it."""
    options = ray.remote(LeaseService).options(
        name=f"leases-{version('trustassay')}",
        namespace="trustassay",
        lifetime="detached",
        get_if_exists=True,
        max_restarts=-1,
        num_cpus=0,
    )
    return options.remote()


def cause_of(error: Any) -> Exception:
    """Return what a task raised, as it was raised there."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return cause
    return BackendError(f"a worker failed: {str(error).strip().splitlines()[-1]}")
