"""A chat model by itself, with all that the engine does around it: ``trustassay.chat(URI)``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trustassay.backends import resolve
from trustassay.calls.backends import Backends, any_shared
from trustassay.calls.gatherers import Asking, Gatherers
from trustassay.calls.models import SampleModels
from trustassay.calls.spending import Budget, Prices
from trustassay.calls.store import default_cache, open_cache
from trustassay.capabilities import EndpointLimits, Message, Reply
from trustassay.errors import BackendError
from trustassay.event_loop import run_anywhere

__all__ = ["Chat", "chat"]

AHEAD = 2
"""Requests that are made before there is a place for them, as a multiple of the places."""
Cache = str | os.PathLike[str] | bool


class Chat:
    """Asks a chat model many things at once; made by :func:`chat`."""

    def __init__(
        self,
        model: resolve.ChatChoice,
        *,
        cache: Cache = True,
        concurrency: int | None = None,
        prices: Prices | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._model = resolve.chat(model)
        self._cache = cache_folder(cache)
        self._concurrency, self._prices, self._budget = concurrency, prices or Prices(), budget

    @property
    def name(self) -> str:
        """The model's name, as it is stored."""
        return self._model.name

    def ask(self, prompts: Sequence[str | Sequence[Message]], **parameters: Any) -> list[Reply]:
        """Return the replies to ``prompts``, in their order; ``parameters`` as of a request.

        Works in a notebook, too. What was replied stays in the cache, whatever happens after.

        Raises:
            BackendError: some were not answered: says how many, and why the first was not.
        """
        return run_anywhere(lambda: self.aask(prompts, **parameters))

    async def aask(
        self, prompts: Sequence[str | Sequence[Message]], **parameters: Any
    ) -> list[Reply]:
        """Do the same inside an event loop."""
        if isinstance(prompts, str):
            raise TypeError("expected a list of prompts, got one text")
        own = getattr(self._model, "limits", None)
        limits = own if isinstance(own, EndpointLimits) else EndpointLimits()
        ahead = asyncio.Semaphore(AHEAD * (self._concurrency or limits.concurrency))
        backends = Backends(chat={"model": self._model})
        with ExitStack() as stack:
            shared = None
            if self._cache and any_shared(backends):
                shared = open_cache(self._cache)
                stack.callback(shared.close, alone=False)
            asking = Asking(
                None,
                shared,
                prices=self._prices,
                budget=self._budget,
                concurrency=self._concurrency,
            )
            gatherers = Gatherers(backends, asking)
            try:
                models = SampleModels(gatherers)
                futures = []
                for prompt in prompts:
                    await ahead.acquire()
                    futures.append(models.chat(prompt, **parameters))
                    futures[-1].add_done_callback(lambda _: ahead.release())
                replies = await asyncio.gather(*futures, return_exceptions=True)
            finally:
                await gatherers.close()
        return _all_or_error(replies)


def _all_or_error(replies: Sequence[Reply | BaseException]) -> list[Reply]:
    answered = [reply for reply in replies if isinstance(reply, Reply)]
    if len(answered) == len(replies):
        return answered
    first = next(reply for reply in replies if not isinstance(reply, Reply))
    missing = len(replies) - len(answered)
    raise BackendError(f"{missing} of {len(replies)} prompts were not answered: {first}") from first


def cache_folder(cache: Cache) -> Path | None:
    """Return the folder that ``True`` (the default one), ``False`` or a path means."""
    if cache is True:
        return default_cache()
    return Path(cache) if cache else None


def chat(model: resolve.ChatChoice, **options: Any) -> Chat:
    """Return a chat model to ask by itself.

    Args:
        model: as of :func:`trustassay.score`.
        options: ``cache``, a folder, or ``False``; ``concurrency``, calls under way at once;
            ``prices`` and ``budget``, which holds for one call of ``ask``.

    Raises:
        UnknownNameError, BackendError: no such model, or it cannot be loaded.
    """
    return Chat(model, **options)
