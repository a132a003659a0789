"""A folder in which models are asked what is no run of samples: locked, stored, resumed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from trustassay.engine.cache import CallStore, Usage, open_cache
from trustassay.engine.folder import RunFolder, RunFolderError
from trustassay.engine.limits import Endpoint
from trustassay.engine.models import Asking, Backends, Gatherers, SampleModels, is_shared
from trustassay.engine.usage import Budget, Prices

__all__ = ["Session", "SessionOptions", "in_session"]

T = TypeVar("T")


@dataclass(frozen=True)
class SessionOptions:
    """How the models are asked; as in :class:`~trustassay.engine.run.RunOptions`."""

    cache: Path | None = None
    prices: Prices = field(default_factory=Prices)
    budget: Budget | None = None


@dataclass(frozen=True)
class Session:
    """What was asked in a folder, by chat model, and how its endpoints behaved."""

    usage: Mapping[str, Usage]
    endpoints: Mapping[str, Endpoint]
    requests: int


async def in_session(
    path: Path,
    settings: Mapping[str, Any],
    backends: Backends,
    options: SessionOptions,
    work: Callable[[SampleModels], Awaitable[T]],
) -> tuple[T, Session]:
    """Do ``work`` with the models, and keep every call in the folder ``path``.

    The same settings go on where an interrupted session stopped: what was replied is stored.

    Raises:
        RunFolderError: the folder holds something else, or another process works in it.
    """
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path)
    folder.lock()
    try:
        _claim(folder, {**settings, "backends": backends.names()})
        with ExitStack() as stack:
            own = CallStore(folder.calls_path)
            stack.callback(own.close)
            remote = any(map(is_shared, (backends.embedder, *backends.chat.values())))
            shared = open_cache(options.cache) if options.cache and remote else None
            if shared:
                stack.callback(shared.close, alone=False)
            gatherers = Gatherers(
                backends, Asking(own, shared, prices=options.prices, budget=options.budget)
            )
            models = SampleModels(gatherers)
            try:
                found = await work(models)
            finally:
                await gatherers.close()
            requests = models.calls["chat"]
            return found, Session(own.usage("chat"), gatherers.endpoints.all(), requests)
    finally:
        folder.unlock()


def _claim(folder: RunFolder, settings: Mapping[str, Any]) -> None:
    """Write the settings down, or check that they are those of the folder."""
    wanted = json.loads(json.dumps(settings, default=str))
    before = folder.read_json("session")
    if before is None:
        if any(not found.name.startswith(".") for found in folder.path.iterdir()):
            words = "is not empty and holds no session; choose another --out"
            raise RunFolderError(f"{folder.path}: {words}")
        folder.write_json("session", wanted)
    elif before != wanted:
        names = [name for name in {**before, **wanted} if before.get(name) != wanted.get(name)]
        raise RunFolderError(
            f"{folder.path}: holds another session; choose another --out. Different: "
            + "; ".join(f"{n} was {before.get(n)!r}, now {wanted.get(n)!r}" for n in names)
        )
