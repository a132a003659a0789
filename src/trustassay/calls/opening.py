"""Opens and closes what calls need: a store, the file that runs share, the gatherers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from trustassay.calls.backends import Backends, any_shared
from trustassay.calls.counting import RequestCounter
from trustassay.calls.gatherers import Asking, Gatherers
from trustassay.calls.gathering import Policy
from trustassay.calls.sharing import Sharing
from trustassay.calls.spending import Budget, Prices
from trustassay.calls.store import CallStore, default_cache, open_cache

__all__ = ["CallOptions", "open_calls"]


@dataclass(frozen=True)
class CallOptions:
    """How models are called.

    cache: folder of the file of calls that runs share; ``None`` for no such file.
    prices: what models cost. budget: the maximum to spend.
    policy: the optimisations in use.
    calls_at_once: calls to one endpoint in progress at once, instead of what its backend says.
    again_after_s: an endpoint that was given up is asked again after so long; ``None``: never.
    open_shared: opens the file that runs share, in its folder. sharing: how the limits of endpoints
        are kept together with other processes.
    """

    cache: Path | None = field(default_factory=default_cache)
    prices: Prices = field(default_factory=Prices)
    budget: Budget | None = None
    policy: Policy = field(default_factory=Policy)
    calls_at_once: int | None = None
    again_after_s: float | None = None
    open_shared: Callable[[Path], CallStore] = open_cache
    sharing: Sharing | None = None


@asynccontextmanager
async def open_calls(
    backends: Backends,
    options: CallOptions,
    own: Path | None = None,
    count: Callable[[CallStore], RequestCounter] | None = None,
) -> AsyncIterator[Gatherers]:
    """Open the calls of a run or of anything else that calls models.

    Args:
        backends: the backends to call.
        options: how to call them.
        own: the file for all calls; ``None``: only the shared one is used.
        count: makes the counter of requests, from the file of the calls.

    Raises:
        OSError: a file of calls cannot be opened.
        BackendError: the budget cannot be kept.
    """
    async with AsyncExitStack() as stack:
        store = shared = None
        if own is not None:
            store = CallStore(own)
            stack.callback(store.close)
        if options.cache is not None and any_shared(backends):
            shared = options.open_shared(options.cache)
            stack.callback(shared.close, alone=False)
        gatherers = Gatherers(
            backends,
            Asking(
                store,
                shared,
                options.policy,
                options.prices,
                options.budget,
                options.calls_at_once,
                options.again_after_s,
                options.sharing,
                count(store) if count and store else None,
            ),
        )
        stack.push_async_callback(gatherers.close)
        yield gatherers
